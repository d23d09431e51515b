package pipeline

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
)

// rowStore keeps rows as every store must, and fails as stores do.
type rowStore struct {
	mu    sync.Mutex
	rows  map[string]storedRow
	asked askedStore
	rules map[string]uint32
	notes map[string][]byte
	fail  func() (before, after bool)

	sampled bool // which questions are followed, and so a row's content, may differ from run to run
}

type storedRow struct {
	scope   string
	at      int64
	late    int64
	rules   uint32
	version uint64
	counts  []byte
	byPeer  bool
	wide    bool
	names   string

	dependency string
}

func newRowStore() *rowStore {
	return &rowStore{rows: map[string]storedRow{}, asked: askedStore{}, rules: map[string]uint32{}, notes: map[string][]byte{}}
}

var errStore = errors.New("the store of this test fails")

func (s *rowStore) Write(_ context.Context, w *Written) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var before, after bool
	if s.fail != nil {
		before, after = s.fail()
	}
	if before {
		return errStore
	}
	for i := range w.Rows {
		r := &w.Rows[i]
		names := fmt.Sprintf("%q %q %q", r.Dependency, r.Route, r.Name)
		id := fmt.Sprint(w.Scope, r.At, names, r.ByPeer, r.Wide, r.Late)
		old, ok := s.rows[id]
		if ok && (old.rules > w.Rules || old.rules == w.Rules && old.version >= r.Version) {
			if !s.sampled && old.rules == w.Rules && old.version == r.Version && !bytes.Equal(old.counts, r.Counts.Append(nil)) {
				panic(fmt.Sprintf("row %s has two contents in one version", id))
			}
			continue
		}
		s.rows[id] = storedRow{w.Scope, r.At, r.Late, w.Rules, r.Version, r.Counts.Append(nil), r.ByPeer, r.Wide, names, r.Dependency}
	}
	if w.Note != nil {
		s.notes[w.Scope] = w.Note
	}
	s.asked.write(w)
	if after {
		return errStore
	}
	return nil
}

func (s *rowStore) NextRules(_ context.Context, scope string) (uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules[scope]++
	return s.rules[scope], nil
}

func (s *rowStore) Note(_ context.Context, scope string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes[scope], nil
}

// newest drops what the newest rules of a tick do not have.
func (s *rowStore) newest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := map[int64]uint32{}
	for _, r := range s.rows {
		rules[r.at] = max(rules[r.at], r.rules)
	}
	for id, r := range s.rows {
		if r.rules < rules[r.at] {
			delete(s.rows, id)
		}
	}
}

// contents are all rows of ticks before to, in a comparable form.
func (s *rowStore) contents(to int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for id, r := range s.rows {
		if r.at < to {
			out = append(out, fmt.Sprintf("%s %x", id, r.counts))
		}
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// totals adds up the rows by originator of ticks before to.
func (s *rowStore) totals(t *testing.T, to int64) aggregate.Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := new(aggregate.Counts)
	for _, r := range s.rows {
		if r.at < to && !r.byPeer && !r.wide {
			c, err := aggregate.DecodeCounts(r.counts)
			if err != nil {
				t.Fatal(err)
			}
			c.Settle(0)
			sum.Merge(c)
		}
	}
	return sum.Totals()
}

// partLog is a partition that can be read again and again.
type partLog struct {
	lines []string
}

// fleet is one daemon at a time over some partitions, and what outlives it.
type fleet struct {
	t         *testing.T
	cfg       LiveConfig
	logs      []partLog
	committed []ingest.Position
	store     *rowStore

	live     *Live
	stop     context.CancelFunc
	ended    chan struct{}
	sessions []ingest.Session // nil of those that are absent
	absent   map[int]bool     // partitions that are not read
	next     []int64
	seen     map[int]int64 // as far as any daemon has read: no record below is still to come
}

// start begins a daemon where the last one left off.
func (f *fleet) start() {
	if f.seen == nil {
		f.seen = map[int]int64{}
	}
	live := NewLive(f.cfg)
	ctx, stop := context.WithCancel(context.Background())
	f.live, f.stop, f.ended = live, stop, make(chan struct{})
	go func() { live.Run(ctx); close(f.ended) }()
	f.assign()
}

// undisturbed is a fleet that has read all there is, in one go: what is to come of it,
// whatever happens to others.
func undisturbed(t *testing.T, logs []partLog, cfg LiveConfig) *fleet {
	f := &fleet{t: t, logs: logs, committed: make([]ingest.Position, len(logs)), store: newRowStore(), cfg: cfg}
	f.cfg.Writer = f.store
	f.start()
	time.Sleep(settle + time.Second)
	for i := range logs {
		f.feed(i, len(logs[i].lines))
	}
	time.Sleep(5 * time.Second)
	f.kill()
	return f
}

func (f *fleet) assign() {
	f.sessions, f.next = make([]ingest.Session, len(f.logs)), make([]int64, len(f.logs))
	for i := range f.logs {
		if !f.absent[i] {
			f.join(i)
		}
	}
}

// join assigns one partition.
func (f *fleet) join(i int) {
	s, at, err := f.live.Assigned(context.Background(), ingest.Partition{Name: fmt.Sprint("log/", i)}, f.committed[i])
	if err != nil {
		f.t.Fatal(err)
	}
	f.sessions[i], f.next[i] = s, at.Offset
}

// kill ends the daemon without a word; what it had not committed is lost.
func (f *fleet) kill() {
	f.stop()
	<-f.ended
}

func (f *fleet) commit() {
	for i, s := range f.sessions {
		if s != nil {
			f.committed[i] = s.Released()
			s.Committed(f.committed[i])
		}
	}
}

// consume gives a batch to a partition, and begins that anew if it is told to, as
// sources do.
func (f *fleet) consume(i int, b *ingest.Batch) bool {
	err := f.sessions[i].Consume(context.Background(), b)
	if err == nil {
		f.next[i] = b.Next
		f.seen[i] = max(f.seen[i], b.Next)
		return true
	}
	if !errors.Is(err, errDecided) && !errors.Is(err, errMoved) {
		f.t.Fatal(err)
	}
	s, at, failed := f.live.Assigned(context.Background(), ingest.Partition{Name: fmt.Sprint("log/", i)}, f.committed[i])
	if failed != nil {
		f.t.Fatal(failed)
	}
	if errors.Is(err, errDecided) && at.Offset != f.next[i] {
		f.t.Fatalf("reading goes on at %d, and had come to %d", at.Offset, f.next[i])
	}
	f.sessions[i], f.next[i] = s, at.Offset
	return false
}

// feed reads up to n records of a partition.
func (f *fleet) feed(i, n int) {
	lines := f.logs[i].lines
	from := f.next[i]
	to := min(from+int64(n), int64(len(lines)))
	b := &ingest.Batch{Next: to, AtEnd: to == int64(len(lines))}
	b.Offset = from
	for at := from; at < to; at++ {
		b.Data = append(append(b.Data, lines[at]...), '\n')
		b.Refs = append(b.Refs, ingest.Ref{Line: 1, Offset: at})
	}
	f.consume(i, b)
}

// pause says that there is nothing to read for now.
func (f *fleet) pause(i int) {
	if f.next[i] < f.seen[i] {
		return
	}
	b := &ingest.Batch{Next: f.next[i], AtEnd: true}
	b.Offset = f.next[i]
	f.consume(i, b)
}

func (f *fleet) done() bool {
	for i := range f.logs {
		if f.next[i] < int64(len(f.logs[i].lines)) {
			return false
		}
	}
	return true
}

func liveConfig(t testing.TB, store *rowStore) LiveConfig {
	begun := time.Now()
	c := testConfig(t)
	c.Horizon, c.Lateness, c.MaxFuture = 20*time.Second, 15*time.Second, 100*365*24*time.Hour
	c.Sources[0].Parser.Format = "json"
	return LiveConfig{
		Config: c, Idle: time.Hour, Keyed: []bool{false}, Parts: []bool{true}, Writer: store,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: func() time.Time { return noon.Add(2*time.Hour + time.Since(begun)) },
	}
}

// deal gives the lines of a log to partitions, some of them late, and closes those
// with records an hour later, so that every tick before is closed.
func deal(r *rand.Rand, lines []logged, parts int) (logs []partLog, end int64) {
	logs = make([]partLog, parts)
	last := int64(0)
	type came struct {
		at int64
		logged
	}
	var order []came
	for _, l := range lines {
		at := l.at + r.Int64N(3000)
		if r.IntN(10) == 0 {
			at += r.Int64N(60_000)
		}
		order = append(order, came{at, l})
	}
	slices.SortStableFunc(order, func(a, b came) int { return int(a.at - b.at) })
	for _, l := range order {
		i := r.IntN(parts)
		logs[i].lines = append(logs[i].lines, l.text)
		last = max(last, l.logged.at)
	}
	end = noon.Add(time.Duration(last)*time.Millisecond).Unix() + 1800
	for i := range logs {
		logs[i].lines = append(logs[i].lines, strings.TrimSpace(rec(int(last)+3600_000+i, "")))
	}
	return logs, end
}

var schedules = flag.Int("schedules", 25, "random schedules of crashes, rebalances and failing stores")
var schedule = flag.Uint64("schedule", 0, "the only schedule to run")

// Whatever happens on the way, the rows at rest are those of an undisturbed run,
// byte for byte, and those of a replay, count for count.
func TestNothingChangesTheRowsAtRest(t *testing.T) {
	for seed := uint64(1); seed <= uint64(*schedules); seed++ {
		if *schedule != 0 && seed != *schedule {
			if seed == uint64(*schedules) && *schedule > seed {
				seed = *schedule
			} else {
				continue
			}
		}
		t.Run(fmt.Sprint("schedule=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { disturbed(t, seed, mood{}) })
		})
	}
}

// Whether a partition is idle is a matter of the moment, and makes records late that
// would not be; but every arrival is counted once all the same.
func TestIdlePartitionsLoseNothing(t *testing.T) {
	for seed := range uint64(*schedules) / 2 {
		t.Run(fmt.Sprint("schedule=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { disturbed(t, seed, mood{idle: true, parted: seed%2 == 1}) })
		})
	}
}

// Nor do lines that a container's runtime has parted, wherever a restart begins.
func TestNothingChangesTheRowsOfPartedLines(t *testing.T) {
	for seed := range uint64(*schedules) / 2 {
		t.Run(fmt.Sprint("schedule=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { disturbed(t, seed, mood{parted: true}) })
		})
	}
}

// mood is what else a schedule has.
type mood struct {
	idle   bool // partitions that are taken for idle
	parted bool // lines in parts
}

func disturbed(t *testing.T, seed uint64, how mood) {
	idle := how.idle
	r := rand.New(rand.NewPCG(seed, 41))
	lines := storm(30 + r.IntN(60))
	if idle { // a copy that comes late is an arrival, unless its request was long
		lines = slices.CompactFunc(lines, func(a, b logged) bool { return a.text == b.text })
	}
	logs, end := deal(r, lines, 1+r.IntN(3))
	if how.parted {
		for i := range logs {
			logs[i].lines = partLines(r, logs[i].lines)
		}
	}
	cfg := liveConfig(t, nil)
	cfg.offsetBlock, cfg.StoreFrom = []int64{1, 4, 16}[r.IntN(3)], 1+uint32(seed%2)
	quiet := undisturbed(t, logs, cfg)
	want := quiet.store.contents(end)

	f := &fleet{t: t, logs: logs, committed: make([]ingest.Position, len(logs)), store: newRowStore()}
	f.cfg = liveConfig(t, f.store)
	f.cfg.Parallel, f.cfg.offsetBlock, f.cfg.StoreFrom = 1+r.IntN(3), quiet.cfg.offsetBlock, quiet.cfg.StoreFrom
	luck := rand.New(rand.NewPCG(seed, 42))
	f.store.fail = func() (bool, bool) { return luck.IntN(6) == 0, luck.IntN(6) == 0 }
	if idle {
		f.cfg.Idle = time.Duration(r.IntN(5000)) * time.Millisecond
	}
	f.start()
	crashes := 0
	for !f.done() {
		if idle && r.IntN(4) == 0 {
			f.pause(r.IntN(len(logs)))
		}
		switch r.IntN(12) {
		case 0:
			if crashes < 8 {
				crashes++
				f.kill()
				f.start()
			}
		case 1:
			for _, s := range f.sessions {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				s.Close(ctx)
				cancel()
			}
			f.commit()
			f.assign()
		case 2, 3:
			f.commit()
		case 4, 5, 6:
			time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
		default:
			f.feed(r.IntN(len(logs)), r.IntN(40))
		}
	}
	f.store.mu.Lock()
	f.store.fail = nil
	f.store.mu.Unlock()
	time.Sleep(30 * time.Second)
	f.commit()
	f.kill()
	f.store.newest()
	f.store.asked.once(t, f.cfg.Horizon)
	if idle {
		got, want := f.store.totals(t, end), quiet.store.totals(t, end)
		if got.Arrivals != want.Arrivals || got.Success != want.Success || got.Answers != want.Answers || got.BusySeconds != want.BusySeconds {
			t.Errorf("schedule %d: rows have %d arrivals in %v s, want %d in %v", seed, got.Arrivals, got.BusySeconds, want.Arrivals, want.BusySeconds)
		}
		return
	}
	same(t, fmt.Sprintf("schedule %d, rows", seed), f.store.contents(end), want)
	wanted := quiet.store.asked.contents(end, f.cfg.Horizon, quiet.store.asked)
	same(t, fmt.Sprintf("schedule %d, questions", seed), f.store.asked.contents(end, f.cfg.Horizon, quiet.store.asked), wanted)
	if strings.Count(wanted, "\n") < 3 {
		t.Errorf("schedule %d: questions at rest are only\n%s", seed, wanted)
	}

	replay := testConfig(t)
	replay.Horizon, replay.Lateness, replay.MaxFuture = quiet.cfg.Horizon, quiet.cfg.Lateness, quiet.cfg.MaxFuture
	var texts []string
	for _, l := range logs {
		texts = append(texts, strings.Join(l.lines[:len(l.lines)-1], "\n")+"\n")
	}
	report := audit(t, replay, texts...).Report
	late := uint64(0)
	for _, row := range quiet.store.rows {
		if c, err := aggregate.DecodeCounts(row.counts); err == nil && row.late != 0 && !row.byPeer {
			late += c.Totals().Arrivals
		}
	}
	if late != report.Input.Late {
		t.Errorf("schedule %d: rows of their own have %d late arrivals, a replay %d", seed, late, report.Input.Late)
	}
	got, m := quiet.store.totals(t, end), report.Total
	if got.Arrivals != m.Arrivals || got.Verified != m.Verified || got.Claimed != m.Claimed || got.Originals != m.Originals || got.Repeats != m.Repeats ||
		got.Unattributable != m.Unattributable || got.Success != m.Responses.Success || got.Answers != m.Responses.Answers || got.Expired != *m.Responses.Expired {
		t.Errorf("schedule %d: rows add up to\n%+v, a replay says\n%+v", seed, got, m)
	}
}
