package pipeline

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// away is a fleet whose store can be taken away.
func away(t *testing.T, seed uint64) (f *fleet, end int64, gone *atomic.Bool) {
	logs, end := deal(rand.New(rand.NewPCG(seed, 43)), storm(60), 2)
	gone = new(atomic.Bool)
	f = &fleet{t: t, logs: logs, committed: make([]ingest.Position, len(logs)), store: newRowStore()}
	f.store.fail = func() (bool, bool) { return gone.Load(), false }
	f.cfg = liveConfig(t, f.store)
	f.cfg.offsetBlock = 4
	return f, end, gone
}

// While the store is away live figures go on and offsets wait; when it is back
// everything lands.
func TestWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, end, _ := away(t, 1)
		f.start()
		time.Sleep(3 * time.Second)
		for i := range f.logs {
			f.feed(i, len(f.logs[i].lines))
		}
		time.Sleep(5 * time.Second)
		want := f.store.contents(end)
		f.kill()

		f, _, gone := away(t, 1)
		f.start()
		gone.Store(true)
		time.Sleep(3 * time.Second)
		for i := range f.logs {
			f.feed(i, len(f.logs[i].lines))
		}
		time.Sleep(10 * time.Minute)
		p := f.live.Picture()
		if len(p.Dependencies) == 0 || p.StoreErr == nil {
			t.Errorf("the picture has %d dependencies, and the store's error is %v", len(p.Dependencies), p.StoreErr)
		}
		before := slices.Clone(f.committed)
		f.commit()
		if !slices.Equal(f.committed, before) {
			t.Errorf("positions moved to %v though nothing was stored", f.committed)
		}
		gone.Store(false)
		time.Sleep(time.Minute)
		same(t, "rows", f.store.contents(end), want)
		if p := f.live.Picture(); p.StoreErr != nil {
			t.Errorf("the store is back, and its error is %v", p.StoreErr)
		}
		f.kill()
	})
}

// The store is away for ten minutes while records come. The windows end later each
// minute and have arrivals, and no position moves; when it is back everything lands, as
// if it had never been away.
func TestTenMinutesWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const minutes = 10
		run := func(without bool) string {
			logs, end := deal(rand.New(rand.NewPCG(5, 43)), storm(300), 2)
			gone := new(atomic.Bool)
			f := &fleet{t: t, logs: logs, committed: make([]ingest.Position, len(logs)), store: newRowStore()}
			f.store.fail = func() (bool, bool) { return gone.Load(), false }
			f.cfg = liveConfig(t, f.store)
			f.cfg.offsetBlock = 4
			f.start()
			time.Sleep(3 * time.Second)
			gone.Store(without)
			before, to := slices.Clone(f.committed), int64(0)
			for minute := range minutes {
				for i := range f.logs {
					n := len(f.logs[i].lines)
					f.feed(i, n*(minute+1)/(minutes+1)-n*minute/(minutes+1))
				}
				time.Sleep(time.Minute)
				f.commit()
				if !without {
					continue
				}
				if !slices.Equal(f.committed, before) {
					t.Errorf("minute %d: positions moved to %v though nothing was stored", minute, f.committed)
				}
				p := f.live.Picture()
				if len(p.Dependencies) == 0 {
					t.Fatalf("minute %d: nothing is live", minute)
				}
				w := p.Dependencies[0].Windows[len(p.Dependencies[0].Windows)-1]
				if w.To <= to || w.Total.Arrivals == 0 {
					t.Errorf("minute %d: a window up to %d, after %d, has %d arrivals", minute, w.To, to, w.Total.Arrivals)
				}
				to = w.To
				if minute > 3 && p.StoreErr == nil { // seconds are over by then
					t.Errorf("minute %d: the store has no error", minute)
				}
			}
			gone.Store(false)
			for i := range f.logs {
				f.feed(i, len(f.logs[i].lines))
			}
			time.Sleep(time.Minute)
			f.commit()
			if p := f.live.Picture(); p.StoreErr != nil || slices.Equal(f.committed, before) {
				t.Errorf("the store is back, its error is %v, positions are %v", p.StoreErr, f.committed)
			}
			out := f.store.contents(end)
			f.kill()
			return out
		}
		want := run(false)
		if strings.Count(want, "\n") < 300 {
			t.Fatalf("there are few rows:\n%s", want)
		}
		same(t, "rows", run(true), want)
	})
}

// Rows that cannot be stored are bounded: reading stops, and goes on.
func TestReadingWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, gone := away(t, 2)
		f.cfg.MaxPending = 1
		f.start()
		gone.Store(true)
		time.Sleep(3 * time.Second)
		for i := range f.logs {
			f.feed(i, len(f.logs[i].lines))
		}
		synctest.Wait() // rows of closed ticks are there
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		b := &ingest.Batch{Next: f.next[0], AtEnd: true}
		if err := f.sessions[0].Consume(ctx, b); err != context.DeadlineExceeded {
			t.Errorf("with more rows than may wait, a batch is answered with %v", err)
		}
		gone.Store(false)
		if err := f.sessions[0].Consume(context.Background(), b); err != nil {
			t.Error(err)
		}
		f.kill()
	})
}

// What is not this instance's any more is in no picture, and in the end forgotten.
func TestRevokedPartitionsAreNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, _ := away(t, 3)
		f.cfg.Keyed = []bool{true}
		f.start()
		time.Sleep(3 * time.Second)
		for i := range f.logs {
			f.feed(i, 10)
		}
		time.Sleep(2 * time.Second)
		if p := f.live.Picture(); p.Scopes != 2 || len(p.Dependencies) == 0 {
			t.Fatalf("%d scopes, want one for each partition", p.Scopes)
		}
		for _, s := range f.sessions {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if p := f.live.Picture(); p.Scopes != 0 || len(p.Dependencies) != 0 {
			t.Errorf("another instance's partitions are shown: %+v", p.Dependencies)
		}
		time.Sleep(2 * time.Minute)
		if n := len(f.live.all()); n != 0 {
			t.Errorf("%d scopes are remembered", n)
		}
		f.kill()
	})
}

// A partition that comes when ticks are closed already, with records of these, has
// them counted: late, and not among what was final.
func TestAPartitionThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, end, _ := away(t, 4)
		f.start()
		time.Sleep(3 * time.Second)
		late := f.sessions[1]
		if err := late.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		f.feed(0, len(f.logs[0].lines))
		time.Sleep(3 * time.Second)
		before := f.store.totals(t, end)

		f.assign()
		time.Sleep(3 * time.Second)
		f.feed(1, len(f.logs[1].lines))
		time.Sleep(3 * time.Second)
		after := f.store.totals(t, end)
		f.kill()

		whole, _, _ := away(t, 4)
		whole.start()
		time.Sleep(3 * time.Second)
		for i := range whole.logs {
			whole.feed(i, len(whole.logs[i].lines))
		}
		time.Sleep(3 * time.Second)
		want := whole.store.totals(t, end)
		whole.kill()
		if before.Arrivals >= want.Arrivals || after.Originals != before.Originals {
			t.Fatalf("before %+v, after %+v", before, after)
		}
		if got := after.Arrivals; got < want.Arrivals-uint64(len(f.logs[1].lines))/10 || got > want.Arrivals+uint64(len(f.logs[1].lines))/10 {
			t.Errorf("%d arrivals are stored of %d; %d were before", got, want.Arrivals, before.Arrivals)
		}
	})
}
