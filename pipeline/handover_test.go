package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/store"
)

// shelf is a store behind daemons whose configurations differ. It fails as stores do.
type shelf struct {
	t    *testing.T
	rows store.Store
	fail func() (before, after bool)

	mu sync.Mutex
	by map[uint32]string // by rules, the Config.Reading of whoever wrote under them
}

// writer is the shelf as one configuration sees it.
type writer struct {
	*shelf
	reading string
}

func (w writer) Write(ctx context.Context, in *Written) error {
	w.mu.Lock()
	if was, ok := w.by[in.Rules]; ok && was != w.reading && in.Scope == everything {
		w.t.Errorf("rules %d are those of %q and of %q", in.Rules, was, w.reading)
	}
	w.by[in.Rules] = w.reading
	before, after := w.fail()
	w.mu.Unlock()
	if before {
		return errStore
	}
	out := &store.Write{Scope: in.Scope, Rules: in.Rules, Closed: in.Closed, Note: in.Note}
	for _, r := range in.Rows {
		row := store.Row{
			At: r.At, Scope: in.Scope, LateBlock: store.OnTime, Dependency: r.Dependency, Route: r.Route, Name: r.Name,
			Wide: r.Wide, Rules: in.Rules, Version: r.Version, Counts: r.Counts.Clone(),
		}
		if r.ByPeer {
			row.Family = store.ByPeer
		}
		if r.Late != 0 {
			row.LateBlock = r.Late
		}
		out.Rows = append(out.Rows, row)
	}
	if err := w.rows.Write(ctx, out); err != nil {
		return err
	}
	if after {
		return errStore
	}
	return nil
}

func (w writer) NextRules(ctx context.Context, scope string) (uint32, error) {
	return w.rows.NextRules(ctx, scope)
}

func (w writer) Note(ctx context.Context, scope string) ([]byte, error) {
	return w.rows.Note(ctx, scope)
}

// stored are the rows by originator of ticks from from up to to.
func (s *shelf) stored(from, to int64) []store.Row {
	rows, err := s.rows.Rows(context.Background(), store.Query{Resolution: store.Tick, From: from, To: to, Limit: 1e6})
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

func arrivalsOf(rows []store.Row) (n uint64) {
	for i := range rows {
		if !rows[i].Wide {
			n += rows[i].Counts.Totals().Arrivals
		}
	}
	return n
}

// onTime is what rows on time say, in a comparable form.
func onTime(rows []store.Row) string {
	var out []string
	for i := range rows {
		if r := &rows[i]; r.LateBlock == store.OnTime {
			out = append(out, fmt.Sprintf("%d %q %q %d/%d %x", r.At, r.Route, r.Name, r.Rules, r.Version, r.Counts.Clone().Append(nil)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// variant is one of two configurations that read differently.
func variant(t *testing.T, n int, lateness time.Duration) LiveConfig {
	c := liveConfig(t, nil)
	c.Sources[0].Name, c.Lateness = "log", lateness
	c.Reading = fmt.Sprint(n, " ", lateness)
	c.Routes.Templates = []string{fmt.Sprintf("GET /seats/{seat%d}", n), fmt.Sprintf("/orders/{order%d}/lines", n)}
	return c
}

// handover changes the configuration of a fleet. Positions are those of the sessions
// if keep is set, else what was committed before.
func (f *fleet) handover(cfg LiveConfig, keep bool) error {
	next := NewLive(cfg)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := f.live.Handover(ctx, next)
	for i, s := range f.sessions {
		if s == nil {
			continue
		}
		b := &ingest.Batch{Block: ingest.Block{Offset: f.next[i]}, Next: f.next[i], AtEnd: true}
		if said := s.Consume(context.Background(), b); err == nil && !errors.Is(said, ingest.ErrAnew) {
			f.t.Errorf("after a handover a session is told %v", said)
		}
		s.Close(ctx)
		if pos := s.Released(); keep {
			f.committed[i] = pos
		}
	}
	if err == nil {
		f.kill()
		f.cfg, f.live = cfg, next
		run, stop := context.WithCancel(context.Background())
		f.stop, f.ended = stop, make(chan struct{})
		go func() { next.Run(run); close(f.ended) }()
	}
	at := f.next
	f.assign()
	if err != nil && f.absent == nil && !slices.Equal(at, f.next) {
		f.t.Errorf("after a handover that failed reading goes on at %v, and had come to %v", f.next, at)
	}
	return err
}

// However often the way of reading changes, every arrival is counted once, ticks that
// were stored stay as they were, and later ones are as the newest rules have them.
func TestHandover(t *testing.T) {
	for seed := uint64(1); seed <= uint64(*schedules); seed++ {
		for name, c := range map[string]struct{ other time.Duration }{
			"one lateness": {15 * time.Second}, "a longer one": {25 * time.Second}, "a shorter one": {11 * time.Second},
		} {
			t.Run(fmt.Sprint(name, "/schedule=", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { handedOver(t, seed, c.other) })
			})
		}
	}
}

func handedOver(t *testing.T, seed uint64, other time.Duration) {
	r := rand.New(rand.NewPCG(seed, 57))
	lines := slices.CompactFunc(storm(30+r.IntN(60)), func(a, b logged) bool { return a.text == b.text })
	logs, end := deal(r, lines, 1+r.IntN(3))
	block := []int64{1, 4, 16}[r.IntN(3)]
	variants := [2]LiveConfig{variant(t, 1, 15*time.Second), variant(t, 2, other)}
	sh := &shelf{t: t, rows: store.NewMemory(), by: map[uint32]string{}, fail: func() (bool, bool) { return false, false }}
	for i := range variants {
		variants[i].offsetBlock, variants[i].Parallel = block, 1+r.IntN(3)
		variants[i].Writer = writer{sh, variants[i].Reading}
	}
	f := &fleet{t: t, logs: logs, committed: make([]ingest.Position, len(logs)), cfg: variants[0]}

	cfg := variant(t, 1, 15*time.Second)
	cfg.offsetBlock = block
	quiet := undisturbed(t, logs, cfg)
	want := quiet.store.totals(t, end).Arrivals
	read := quiet.live.Picture().Sources[0].Lines

	luck := rand.New(rand.NewPCG(seed, 58))
	sh.fail = func() (bool, bool) { return luck.IntN(6) == 0, luck.IntN(6) == 0 }
	f.start()
	now, crashed := 0, false
	crashes := r.IntN(2) == 0 // else the counters of the process are looked at
	for !f.done() {
		switch r.IntN(14) {
		case 0:
			if crashes {
				crashed = true
				f.kill()
				f.start()
			}
		case 1, 2:
			if slices.ContainsFunc(f.sessions, func(s ingest.Session) bool { return len(s.(*session).part.old) >= maxSettled }) {
				continue
			}
			sh.mu.Lock()
			if r.IntN(4) == 0 {
				sh.fail = func() (bool, bool) { return true, false }
			}
			sh.mu.Unlock()
			if err := f.handover(variants[1-now], r.IntN(2) == 0); err == nil {
				now = 1 - now
				from := f.live.scopes[everything].past
				if from != nil && from.stored > noTick {
					final := sh.stored(noon.Unix()-3600, from.stored)
					was := onTime(final)
					defer func() {
						if is := onTime(sh.stored(noon.Unix()-3600, from.stored)); is != was && !crashed {
							t.Errorf("ticks before %d were final, and are\n%s\nnow, were\n%s", from.stored-noon.Unix(), is, was)
						}
					}()
				}
			}
			sh.mu.Lock()
			sh.fail = func() (bool, bool) { return luck.IntN(6) == 0, luck.IntN(6) == 0 }
			sh.mu.Unlock()
		case 3, 4:
			f.commit()
		case 5, 6, 7:
			time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
		default:
			f.feed(r.IntN(len(logs)), r.IntN(40))
		}
	}
	sh.mu.Lock()
	sh.fail = func() (bool, bool) { return false, false }
	sh.mu.Unlock()
	for range 2 { // rows wait for positions
		time.Sleep(30 * time.Second)
		f.commit()
	}
	time.Sleep(30 * time.Second)
	p := f.live.Picture()
	f.kill()

	rows := sh.stored(noon.Unix()-3600, end)
	if got := arrivalsOf(rows); got != want {
		t.Errorf("schedule %d: rows have %d arrivals, want %d", seed, got, want)
	}
	highest := map[int64]uint32{}
	for i := range rows {
		if row := &rows[i]; row.LateBlock == store.OnTime {
			highest[row.At] = max(highest[row.At], row.Rules)
		}
	}
	for i := range rows {
		row := &rows[i]
		other := strings.Contains(row.Route, "{seat1}") && strings.HasPrefix(sh.by[row.Rules], "2") || strings.Contains(row.Route, "{seat2}") && strings.HasPrefix(sh.by[row.Rules], "1")
		if other {
			t.Errorf("schedule %d: %s stands in rows of rules %d, which are those of %s", seed, row.Route, row.Rules, sh.by[row.Rules])
		}
		if row.LateBlock == store.OnTime && row.Rules < highest[row.At] {
			t.Errorf("schedule %d: tick %d has rows on time of rules %d and %d", seed, row.At, row.Rules, highest[row.At])
		}
	}
	if crashed || t.Failed() {
		return
	}
	if p.Sources[0].Lines != read {
		t.Errorf("schedule %d: %d lines were counted, want %d", seed, p.Sources[0].Lines, read)
	}
	if got := p.Dependencies[0].Closed.Arrivals; other == 15*time.Second && got != want {
		t.Errorf("schedule %d: the counters have %d arrivals, want %d", seed, got, want)
	}
}

// A partition that could not be read for a while when the configuration changes has
// records of ticks that were stored without it. They are late, and not lost; what it
// had in these ticks before is not counted again.
func TestHandoverOfAPartitionInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, logs: make([]partLog, 2), committed: make([]ingest.Position, 2)}
		for i := range 200 {
			for p := range f.logs {
				f.logs[p].lines = append(f.logs[p].lines, strings.TrimSpace(rec(1000*i+p, `,"my_id":"a%d"`, i)))
			}
		}
		sh := &shelf{t: t, rows: store.NewMemory(), by: map[uint32]string{}, fail: func() (bool, bool) { return false, false }}
		one, two := variant(t, 1, 15*time.Second), variant(t, 2, 15*time.Second)
		one.Writer, two.Writer = writer{sh, one.Reading}, writer{sh, two.Reading}
		one.offsetBlock, two.offsetBlock = 1, 1
		f.cfg = one
		f.start()
		time.Sleep(settle + time.Second)
		for range 60 {
			f.feed(0, 1)
			f.feed(1, 1)
			time.Sleep(time.Second)
			f.commit()
		}
		f.sessions[1].Close(t.Context()) // in trouble
		f.committed[1] = f.sessions[1].Released()
		for range 100 {
			f.feed(0, 1)
			time.Sleep(time.Second)
			f.committed[0] = f.sessions[0].Released()
			f.sessions[0].Committed(f.committed[0])
		}
		if err := f.handover(two, true); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			f.feed(0, 5)
			f.feed(1, 5)
			time.Sleep(time.Second)
			f.commit()
		}
		f.kill()
		for second := range int64(180) {
			if n := arrivalsOf(sh.stored(noon.Unix()+second, noon.Unix()+second+1)); n != 2 {
				t.Fatalf("second %d has %d arrivals, want 2", second, n)
			}
		}
	})
}

// A change waits until the one before has every partition back: what has not begun to
// be read again would be forgotten.
func TestHandoverWaitsForTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, logs: make([]partLog, 2), committed: make([]ingest.Position, 2)}
		for i := range 120 {
			for p := range f.logs {
				f.logs[p].lines = append(f.logs[p].lines, strings.TrimSpace(rec(1000*i+p, `,"my_id":"a%d"`, i)))
			}
		}
		sh := &shelf{t: t, rows: store.NewMemory(), by: map[uint32]string{}, fail: func() (bool, bool) { return false, false }}
		var cfgs []LiveConfig
		for n := range 3 {
			c := variant(t, n, 15*time.Second)
			c.Writer, c.offsetBlock = writer{sh, c.Reading}, 1
			cfgs = append(cfgs, c)
		}
		f.cfg = cfgs[0]
		f.start()
		time.Sleep(settle + time.Second)
		run := func(seconds int) {
			for range seconds {
				f.feed(0, 2)
				f.feed(1, 2)
				time.Sleep(time.Second)
				f.commit()
			}
		}
		run(30)
		if err := f.handover(cfgs[1], true); err != nil {
			t.Fatal(err)
		}
		// As if a partition were still to come when the next change does.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		other := NewLive(cfgs[1])
		f.live.mu.Lock()
		f.live.scopes[everything].mu.Lock()
		f.live.scopes[everything].expected["log/1"] = true
		f.live.scopes[everything].mu.Unlock()
		f.live.mu.Unlock()
		if err := f.live.Handover(ctx, other); !errors.Is(err, errNotInForce) {
			t.Fatalf("a change amid another is told %v", err)
		}
		f.live.mu.Lock()
		f.live.scopes[everything].mu.Lock()
		delete(f.live.scopes[everything].expected, "log/1")
		f.live.scopes[everything].mu.Unlock()
		f.live.mu.Unlock()
		run(5)
		if err := f.handover(cfgs[2], true); err != nil {
			t.Fatal(err)
		}
		run(60)
		f.kill()
		for second := range int64(100) {
			if n := arrivalsOf(sh.stored(noon.Unix()+second, noon.Unix()+second+1)); n != 2 {
				t.Fatalf("second %d has %d arrivals, want 2", second, n)
			}
		}
	})
}
