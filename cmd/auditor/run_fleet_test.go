package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/alerts"
	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/pipeline"
	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// sharing is a fleet of instances that share out the partitions of a topic, each with all
// that judges and tells, over one store.
type sharing struct {
	t         *testing.T
	config    string
	store     store.Store
	begun     time.Time
	logs      [2][]string
	committed [2]ingest.Position
	members   []*sharer
	n         [2]int
	due       [2][2]float64

	mu    sync.Mutex
	posts []string // what sinks were told, by whom
}

// sharer is one instance.
type sharer struct {
	f        *sharing
	name     string
	d        *daemon
	dead     atomic.Bool // its store does not answer
	killed   atomic.Bool
	parts    map[int]ingest.Session
	held     atomic.Int32 // how many these are
	next     map[int]int64
	stop     context.CancelFunc
	finished sync.WaitGroup
}

var errDead = errors.New("the store of this test does not answer")

// sharedStore is the store as one member has it.
type sharedStore struct {
	store.Store
	m *sharer
}

func (s *sharedStore) away() error {
	if s.m.dead.Load() {
		return errDead
	}
	return nil
}

func (s *sharedStore) Write(ctx context.Context, w *store.Write) error {
	if err := s.away(); err != nil {
		return err
	}
	return s.Store.Write(ctx, w)
}

func (s *sharedStore) Load(ctx context.Context, name string) ([]byte, error) {
	if err := s.away(); err != nil {
		return nil, err
	}
	return s.Store.Load(ctx, name)
}

func (s *sharedStore) Save(ctx context.Context, name string, state []byte) error {
	if err := s.away(); err != nil {
		return err
	}
	return s.Store.Save(ctx, name, state)
}

func (s *sharedStore) Exchange(ctx context.Context, fleet, member string, seq uint64, told []store.Share, since store.Since) ([]store.Share, store.Since, error) {
	if err := s.away(); err != nil {
		return nil, since, err
	}
	return s.Store.(store.Sharer).Exchange(ctx, fleet, member, seq, told, since)
}

// sharedTopic is a source whose partitions a test gives.
type sharedTopic struct{ m *sharer }

func (s sharedTopic) Run(ctx context.Context, _ ingest.Handler) error {
	<-ctx.Done()
	return nil
}
func (s sharedTopic) Partitions() []ingest.PartitionState { return nil }
func (s sharedTopic) Shared() bool                        { return int(s.m.held.Load()) < len(s.m.f.logs) }
func (s sharedTopic) Standby() bool                       { return s.m.held.Load() == 0 }
func (s sharedTopic) Whole() []string                     { return []string{partOf(0), partOf(1)} }

func partOf(i int) string { return fmt.Sprintf("kafka access/%d", i) }

// postLog is a log that keeps what the sink log was told.
type postLog struct {
	slog.Handler
	m *sharer
}

func (h postLog) WithAttrs([]slog.Attr) slog.Handler           { return h }
func (h postLog) WithGroup(string) slog.Handler                { return h }
func (h postLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (h postLog) Handle(_ context.Context, r slog.Record) error {
	status := ""
	switch {
	case strings.HasPrefix(r.Message, "an alert fires"):
		status = "fires"
	case r.Message == "an alert is resolved":
		status = "resolved"
	}
	if status == "" || h.m.killed.Load() {
		return nil
	}
	var words []string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "alert" || a.Key == "reason" {
			words = append(words, a.Value.String())
		}
		return true
	})
	f := h.m.f
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posts = append(f.posts, strings.Join(append(words, status), " "))
	f.t.Logf("+%d %s: %s", int(time.Since(f.begun)/time.Second), h.m.name, f.posts[len(f.posts)-1])
	return nil
}

func newSharing(t *testing.T, s store.Store, granted string) *sharing {
	dir := t.TempDir()
	writeIn(t, filepath.Join(dir, "salt"), "the salt that all instances of a test share")
	return &sharing{t: t, store: s, begun: time.Now(), config: writeIn(t, filepath.Join(dir, "auditor.yaml"), `dependency: seats
sources: [{kafka: {brokers: ["127.0.0.1:1"], topics: [access], keyed: true}, format: json}]
keys: {accept: [{field: my_id}], horizon: 6s, salt_file: salt}
time: {lateness: 4s, idle: 2s}
budget: {coverage_floor: 0, coverage_expected: 0, visibility_floor: 0, `+granted+`}
store: {clickhouse: {addr: ["127.0.0.1:1"], database: auditor}}
api: {listen: "127.0.0.1:0"}
`)}
}

// join starts an instance that reads some partitions.
func (f *sharing) join(name string, parts ...int) *sharer {
	f.t.Helper()
	m := &sharer{f: f, name: name, parts: map[int]ingest.Session{}, next: map[int]int64{}}
	l, err := load(&program{now: time.Now, getenv: func(string) (string, bool) { return "", false }}, f.config, true)
	if err != nil {
		f.t.Fatal(err)
	}
	log := slog.New(postLog{slog.DiscardHandler, m})
	d := &daemon{log: log, now: time.Now}
	counter := store.CountErrors(&sharedStore{f.store, m})
	d.store, d.sharer, d.storeErrors = counter, counter, counter.Errors
	d.watch, d.rows = &storeWatch{store: d.store, log: log}, &rowWriter{store: d.store}
	sources := []*source{{name: "access", kind: "kafka", identity: l.identity(0), log: log, reads: sharedTopic{m}}}
	x, err := d.newSetup(l, sources)
	if err != nil {
		f.t.Fatal(err)
	}
	d.setup.Store(x)
	d.reloaded.Store(&api.Reload{At: time.Now()})
	d.reader, d.alerting = newReader(d), newAlerting(d)
	m.d = d
	for _, i := range parts {
		m.assign(i)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	x.start(ctx)
	for _, run := range []func(){
		func() { d.reader.run(ctx) }, func() { d.alerting.keep(ctx) }, func() { d.alerting.fleet.run(ctx, d.setup.Load) },
		func() { d.alerting.notifier.Run(ctx) }, func() { <-x.ended },
	} {
		m.finished.Go(run)
	}
	f.t.Cleanup(m.end)
	f.members = append(f.members, m)
	return m
}

func (m *sharer) end() {
	m.stop()
	m.finished.Wait()
}

// kill ends an instance without a word.
func (m *sharer) kill() {
	m.killed.Store(true)
	m.dead.Store(true)
	m.end()
	m.f.members = slices.DeleteFunc(m.f.members, func(o *sharer) bool { return o == m })
}

func (m *sharer) assign(i int) {
	s, at, err := m.d.setup.Load().live.Assigned(context.Background(), ingest.Partition{Name: partOf(i)}, m.f.committed[i])
	if err != nil {
		m.f.t.Fatal(err)
	}
	m.parts[i], m.next[i] = s, at.Offset
	m.held.Store(int32(len(m.parts)))
}

// read reads what is written, and commits.
func (m *sharer) read() {
	for i, s := range m.parts {
		lines := m.f.logs[i]
		from, to := m.next[i], int64(len(lines))
		b := &ingest.Batch{Next: to, AtEnd: true}
		b.Offset = from
		for at := from; at < to; at++ {
			b.Data = append(append(b.Data, lines[at]...), '\n')
			b.Refs = append(b.Refs, ingest.Ref{Line: 1, Offset: at})
		}
		if err := s.Consume(context.Background(), b); errors.Is(err, ingest.ErrAnew) { // it was taken to be idle
			m.assign(i)
			continue
		} else if err != nil {
			m.f.t.Fatal(err)
		}
		m.next[i] = to
		m.f.committed[i] = s.Released()
		s.Committed(m.f.committed[i])
	}
}

// pass lets seconds go by, with so many originals and repeats a second in each partition.
func (f *sharing) pass(seconds int, traffic [2][2]float64) {
	for range seconds {
		now := time.Now()
		for i, t := range traffic {
			due := &f.due[i]
			due[0], due[1] = due[0]+t[0], due[1]+t[1]
			line := func(id int) {
				f.logs[i] = append(f.logs[i], fmt.Sprintf(`{"time":%q,"method":"GET","path":"/seats","status":200,"duration_ms":0,"my_id":"q%d-%d","peer":"10.0.0.1:%d"}`,
					now.UTC().Format("2006-01-02T15:04:05.000Z"), i, id, len(f.logs[i])))
			}
			for ; due[0] >= 1-1e-6; due[0]-- {
				f.n[i]++
				line(f.n[i])
			}
			for ; due[1] >= 1-1e-6; due[1]-- {
				line(f.n[i])
			}
		}
		for _, m := range f.members {
			m.read()
		}
		time.Sleep(time.Second)
	}
}

func (f *sharing) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.posts)
}

// wants holds what sinks were told of some alerts to what they should have been.
func (f *sharing) wants(name string, statuses ...string) {
	f.t.Helper()
	var got []string
	for _, p := range f.told() {
		if status, ok := strings.CutPrefix(p, name+" "); ok {
			got = append(got, status)
		}
	}
	if !slices.Equal(got, statuses) {
		f.t.Errorf("sinks were told of %s %q, want %q", name, got, statuses)
	}
}

// states are the states of an alert as each instance shows it.
func (f *sharing) states(name string) (out []alerts.State) {
	for _, m := range f.members {
		state := alerts.State("")
		for _, a := range m.d.reader.Snapshot().Alerts {
			if a.Name == name {
				state = a.State
			}
		}
		out = append(out, state)
	}
	return out
}

// asked is the fleet's budget as each instance has it.
func (f *sharing) asked() (out []api.Budget) {
	for _, m := range f.members {
		if s := m.d.reader.Snapshot(); s.Fleet != nil && len(s.Fleet.Dependencies) > 0 {
			out = append(out, s.Fleet.Dependencies[0].Budgets...)
		}
	}
	return out
}

func (m *sharer) own() api.Budget {
	if s := m.d.reader.Snapshot(); len(s.Dependencies) > 0 {
		return s.Dependencies[0].Budgets[0]
	}
	return api.Budget{}
}

const rateOfAMinute = "model: rate, per_minute: 60, window: 10s"

// Each half of the traffic is below what a budget needs to speak, and below what it
// allows. The sum is above both: it fires, sinks are told of it once, by one instance,
// and every instance shows the same.
func TestFleetFiresOnTheSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharing(t, store.NewMemory(), rateOfAMinute)
		a, b := f.join("a", 0), f.join("b", 1)
		f.pass(60, [2][2]float64{{0.6, 0}, {0.6, 0}})
		if told := f.told(); len(told) > 0 {
			t.Fatalf("before the storm: %q", told)
		}
		fired := 0
		readings := [2]map[int64]api.Budget{{}, {}} // by member and end of the window
		for second := range 20 {
			f.pass(1, [2][2]float64{{0.6, 0.7}, {0.6, 0.7}})
			for i, b := range f.asked() {
				readings[i][b.To.Unix()] = b
			}
			if fired == 0 && len(f.told()) > 0 {
				fired = second + 1
			}
		}
		// Ten repeats of both came in the eighth second.
		if fired == 0 || fired > 10 {
			t.Errorf("it fired in second %d", fired)
		}
		f.wants(alerts.RetryBudgetExhausted, "fires")
		if got := f.states(alerts.RetryBudgetExhausted); !slices.Equal(got, []alerts.State{alerts.Firing, alerts.Firing}) {
			t.Errorf("shown are %v", got)
		}
		for _, m := range []*sharer{a, b} {
			s := m.d.reader.Snapshot()
			if s.Fleet == nil || s.Fleet.Members != 2 || s.Fleet.Scopes != 2 || len(s.Fleet.Missing) > 0 || s.Share || !s.Part || !s.Evaluated {
				t.Errorf("%s shows %+v, share %v", m.name, s.Fleet, s.Share)
			}
			if own := m.own(); own.State != "" {
				t.Errorf("%s alone reads %+v", m.name, own)
			}
		}
		same, most := 0, 0.0
		for to, x := range readings[0] {
			y, ok := readings[1][to]
			// Each takes pictures at moments of its own, and says which was the first.
			if ok && x.ExhaustedAt.Sub(y.ExhaustedAt).Abs() <= 2*time.Second {
				y.ExhaustedAt = x.ExhaustedAt
			}
			if ok && x != y {
				t.Errorf("asked, they say %+v and %+v", x, y)
			} else if ok {
				consumed, _ := x.Consumed.Value()
				same, most = same+1, max(most, consumed)
			}
		}
		if same < 5 || most < 1.2 {
			t.Errorf("%d readings are the same, and at most %v is consumed", same, most)
		}
		if a.d.reader.Snapshot().Fleet.Telling == b.d.reader.Snapshot().Fleet.Telling {
			t.Error("not one of them tells sinks")
		}
		// It is over, everywhere and once.
		f.pass(90, [2][2]float64{{0.6, 0}, {0.6, 0}})
		f.wants(alerts.RetryBudgetExhausted, "fires", "resolved")
		if got := f.states(alerts.RetryBudgetExhausted); !slices.Equal(got, []alerts.State{alerts.Resolved, alerts.Resolved}) {
			t.Errorf("shown are %v", got)
		}
	})
}

// One instance's share is hot, since its partition has those who retry. The sum is well
// below what is allowed: nothing fires.
func TestFleetIsCalmWhereOneShareIsHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharing(t, store.NewMemory(), "ratio: 0.2")
		a, _ := f.join("a", 0), f.join("b", 1)
		f.pass(100, [2][2]float64{{20, 8}, {100, 0}})
		if own := a.own(); own.State != "exhausted" {
			t.Errorf("alone it reads %+v", own)
		}
		if told := f.told(); len(told) > 0 {
			t.Errorf("told is %q", told)
		}
		if got := f.states(alerts.RetryBudgetExhausted); !slices.Equal(got, []alerts.State{"", ""}) {
			t.Errorf("shown are %v", got)
		}
	})
}

// An instance is killed in the middle of a storm. Whichever it is: what fires goes on,
// nothing is resolved until its partition is taken over and known, although the storm is
// over, and then once.
func TestFleetGoesOnWhenOneIsKilled(t *testing.T) {
	for _, which := range []string{"that tells", "that does not"} {
		t.Run("the one "+which, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newSharing(t, store.NewMemory(), rateOfAMinute)
				a, b := f.join("a", 0), f.join("b", 1)
				f.pass(60, [2][2]float64{{2, 0}, {2, 0}})
				f.pass(20, [2][2]float64{{2, 0.7}, {2, 0.7}})
				f.wants(alerts.RetryBudgetExhausted, "fires")
				dead, left, part := a, b, 0
				if a.d.reader.Snapshot().Fleet.Telling != (which == "that tells") {
					dead, left, part = b, a, 1
				}
				dead.kill()
				f.pass(1, [2][2]float64{{2, 0.7}, {2, 0.7}})
				f.pass(12, [2][2]float64{{2, 0}, {2, 0}})
				s := left.d.reader.Snapshot()
				if !s.Fleet.Telling || !slices.Equal(s.Fleet.Missing, []string{partOf(part)}) || s.Fleet.Members != 1 {
					t.Errorf("ten seconds later it shows %+v", s.Fleet)
				}
				f.pass(100, [2][2]float64{{2, 0}, {2, 0}})
				f.wants(alerts.RetryBudgetExhausted, "fires")
				f.wants(alerts.AuditorBlind+" scopes", "fires")
				left.assign(part)
				f.pass(30, [2][2]float64{{2, 0}, {2, 0}})
				if s := left.d.reader.Snapshot(); len(s.Fleet.Missing) > 0 || s.Part {
					t.Errorf("it is taken over, and %+v", s.Fleet)
				}
				f.wants(alerts.RetryBudgetExhausted, "fires")
				f.pass(70, [2][2]float64{{2, 0}, {2, 0}})
				f.wants(alerts.RetryBudgetExhausted, "fires", "resolved")
				f.wants(alerts.AuditorBlind+" scopes", "fires", "resolved")
			})
		})
	}
}

// Instances come and go as they are deployed: a storm that goes on all the while is told
// of once.
func TestFleetTellsOnceThroughARollOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharing(t, store.NewMemory(), rateOfAMinute)
		f.join("a", 0)
		f.join("b", 1)
		f.pass(60, [2][2]float64{{2, 0}, {2, 0}})
		storm := [2][2]float64{{2, 0.7}, {2, 0.7}}
		f.pass(20, storm)
		for round := range 4 {
			old := f.members[0]
			var part int
			for part = range old.parts {
			}
			f.members = f.members[1:]
			old.end()
			f.join(fmt.Sprint("new ", round), part)
			f.pass(25, storm)
		}
		f.wants(alerts.RetryBudgetExhausted, "fires")
		f.pass(100, [2][2]float64{{2, 0}, {2, 0}})
		f.wants(alerts.RetryBudgetExhausted, "fires", "resolved")
	})
}

// While the store cannot be reached each instance goes by its own share: after a while
// what that shows fires, and nothing is resolved by anyone. When it is back all is again as
// it was.
func TestFleetWithoutItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSharing(t, store.NewMemory(), "ratio: 0.2")
		a, b := f.join("a", 0), f.join("b", 1)
		calm, storm := [2][2]float64{{20, 0}, {20, 0}}, [2][2]float64{{20, 10}, {20, 10}}
		f.pass(60, calm)
		f.pass(15, storm)
		f.wants(alerts.RetryBudgetExhausted, "fires")
		away := func(is bool) { a.dead.Store(is); b.dead.Store(is) }
		away(true)
		f.pass(3, storm)
		if s := a.d.reader.Snapshot(); s.Share || s.Fleet == nil {
			t.Errorf("a moment later it shows share %v, %+v", s.Share, s.Fleet)
		}
		f.pass(20, storm)
		for _, m := range f.members {
			if s := m.d.reader.Snapshot(); !s.Share || s.Fleet != nil || !s.Evaluated {
				t.Errorf("%s shows share %v, %+v", m.name, s.Share, s.Fleet)
			}
		}
		f.wants(alerts.RetryBudgetExhausted, "fires", "fires", "fires") // each tells of its share
		f.pass(120, calm)
		f.wants(alerts.RetryBudgetExhausted, "fires", "fires", "fires")
		away(false)
		f.pass(30, calm)
		for _, m := range f.members {
			if s := m.d.reader.Snapshot(); s.Share || s.Fleet == nil || s.Fleet.Members != 2 || len(s.Fleet.Missing) > 0 {
				t.Errorf("it is back, and %s shows share %v, %+v", m.name, s.Share, s.Fleet)
			}
		}
		f.pass(70, calm)
		f.wants(alerts.RetryBudgetExhausted, "fires", "fires", "fires", "resolved")
	})
}

// On the real engine two halves make a whole as well, and the dead of a moment ago is
// missing.
func TestFleetOnClickHouse(t *testing.T) {
	server := clickhousetest.Start(t)
	at := store.ClickHouse{Addr: []string{server.Addr}, Database: server.Database, User: clickhousetest.User, HTTP: true}
	if err := store.MigrateClickHouse(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	s, err := store.OpenClickHouse(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := newSharing(t, s, rateOfAMinute)
	a, b := f.join("a", 0), f.join("b", 1)
	until := func(what string, holds func() bool) {
		t.Helper()
		for range 60 {
			if f.pass(1, [2][2]float64{{1, 0.8}, {1, 0.8}}); holds() {
				return
			}
		}
		t.Fatalf("not within a minute: %s; told is %q, %+v", what, f.told(), a.d.reader.Snapshot().Fleet)
	}
	until("both show that it fires", func() bool {
		return slices.Equal(f.states(alerts.RetryBudgetExhausted), []alerts.State{alerts.Firing, alerts.Firing})
	})
	f.wants(alerts.RetryBudgetExhausted, "fires")
	until("they say the same", func() bool {
		x := f.asked()
		return len(x) == 2 && x[0].Consumed == x[1].Consumed && x[0].To.Equal(x[1].To)
	})
	a.kill()
	until("its partition is missing", func() bool {
		s := b.d.reader.Snapshot()
		return s.Fleet != nil && slices.Equal(s.Fleet.Missing, []string{partOf(0)}) && s.Fleet.Telling
	})
	until("the other tells", func() bool { return slices.Equal(f.states(alerts.RetryBudgetExhausted), []alerts.State{alerts.Firing}) })
	b.assign(0)
	until("nothing is missing", func() bool { s := b.d.reader.Snapshot(); return s.Fleet != nil && len(s.Fleet.Missing) == 0 })
	f.wants(alerts.RetryBudgetExhausted, "fires")
	t.Logf("at rest: %v", server.Query(t, "SELECT member, kind, count(), sum(length(state)) FROM shares FINAL GROUP BY member, kind ORDER BY member, kind"))
}

// A member that is of a version that tells what this one cannot read is not counted,
// however well it is.
func TestFleetOfTwoVersions(t *testing.T) {
	f := newFleet(store.NewMemory(), slog.New(slog.DiscardHandler))
	f.begin("fleet", time.Now())
	f.reached = time.Now()
	model := budget.DefaultModel(budget.DefaultRatio())
	missing := func() []string {
		return f.view([]string{partOf(0)}, &model, nil).Missing
	}
	say := func(seq uint64) store.Share {
		m := memberState{Seq: seq, Scopes: []pipeline.ScopeState{{Scope: partOf(0), Rules: 1, Head: 7, Closed: 3}}}
		return store.Share{Member: "other", Kind: toldMember, State: m.encode()}
	}
	f.hear([]store.Share{say(1)}, time.Now())
	if got := missing(); len(got) != 1 {
		t.Errorf("heard once it is known to go on: missing is %q", got)
	}
	f.hear([]store.Share{say(1), say(2)}, time.Now())
	if got := missing(); len(got) != 0 {
		t.Errorf("missing is %q", got)
	}
	for i, newer := range []store.Share{
		{Member: "other", Kind: uint8(pipeline.ToldSecond), Name: partOf(0), At: 7, State: []byte("\xffnewer")},
		{Member: "other", Kind: toldMember, State: []byte(`{"seq":11,"telling":true,"alerts":[{"value":"much"}]}`)}, // no list is no empty list
	} {
		f.peer("other").broken = time.Time{}
		f.hear([]store.Share{newer, say(uint64(10 + 2*i))}, time.Now())
		if got := missing(); len(got) != 1 {
			t.Errorf("what cannot be read is not missing: %q", got)
		}
	}
}

// forgetful is a store that does not return everything that it was told lately.
type forgetful struct {
	*store.Memory
	forgets bool
	asked   store.Since
}

func (s *forgetful) Exchange(ctx context.Context, fleet, member string, seq uint64, told []store.Share, since store.Since) ([]store.Share, store.Since, error) {
	s.asked = since
	out, next, err := s.Memory.Exchange(ctx, fleet, member, seq, told, since)
	if s.forgets {
		out = nil
	}
	return out, next, err
}

// A store that does not return what a member has just told does not return what others
// have told either: that is no silence of theirs. It tells nobody then, and asks for all
// there is.
func TestFleetOfAForgetfulStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &forgetful{Memory: store.NewMemory()}
		f := newFleet(s, slog.New(slog.DiscardHandler))
		f.offer(memberState{}, true)
		model := budget.DefaultModel(budget.DefaultRatio())
		pass := func(seconds int) *fleetView {
			for range seconds {
				f.round(t.Context(), "fleet", []pipeline.Told{{Kind: pipeline.ToldSecond, Scope: partOf(0), At: time.Now().Unix()}}, memberState{})
				time.Sleep(time.Second)
			}
			return f.view(nil, &model, nil)
		}
		if v := pass(5); v.mode != telling || s.asked == (store.Since{}) {
			t.Errorf("alone it is %v, and asks since %v", v.mode, s.asked)
		}
		s.forgets = true
		if v := pass(6); v.mode != waiting || s.asked != (store.Since{}) || len(f.pending) != 6 {
			t.Errorf("it is %v, asks since %v, and %d are to be told again", v.mode, s.asked, len(f.pending))
		}
		s.forgets = false
		if v := pass(5); v.mode != telling || len(f.pending) > 0 {
			t.Errorf("it is %v, and %d are to be told again", v.mode, len(f.pending))
		}
	})
}
