package pipeline

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/store"
)

// Partitions that are not read for a while, as when a source has failed, lose nothing:
// what was stored meanwhile stands without them, and every record that they have of it
// is counted late once they are read, also if the process was killed in between.
func TestPartitionsThatWereAwayLoseNothing(t *testing.T) {
	for seed := range uint64(*schedules) {
		t.Run(fmt.Sprint("schedule=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { absences(t, seed) })
		})
	}
}

// comeOrGo makes a partition absent, or come back.
func (f *fleet) comeOrGo(i int, keep bool) {
	s := f.sessions[i]
	if s == nil {
		delete(f.absent, i)
		f.join(i)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Close(ctx)
	if keep {
		f.committed[i] = s.Released()
	}
	f.absent[i], f.sessions[i] = true, nil
}

func absences(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 47))
	// A copy that comes late is an arrival, unless its request was long.
	lines := slices.CompactFunc(storm(30+r.IntN(60)), func(a, b logged) bool { return a.text == b.text })
	logs, end := deal(r, lines, 2+r.IntN(2))
	cfg := liveConfig(t, nil)
	cfg.offsetBlock = []int64{1, 4, 16}[r.IntN(3)]
	want := undisturbed(t, logs, cfg).store.totals(t, end)

	f := &fleet{t: t, logs: logs, committed: make([]ingest.Position, len(logs)), store: newRowStore(), absent: map[int]bool{}}
	f.store.sampled = true // who came back depends on what was read
	f.cfg = liveConfig(t, f.store)
	f.cfg.Parallel, f.cfg.offsetBlock = 1+r.IntN(3), cfg.offsetBlock
	luck := rand.New(rand.NewPCG(seed, 48))
	f.store.fail = func() (bool, bool) { return luck.IntN(6) == 0, luck.IntN(6) == 0 }
	f.start()
	for known := false; !known && !f.done(); { // before a first position all is read from the beginning
		for i := range logs {
			f.feed(i, 10)
		}
		time.Sleep(2 * time.Second)
		f.commit()
		known = !slices.ContainsFunc(f.committed, func(p ingest.Position) bool { return p.Metadata == "" })
	}
	for crashes := 0; !f.done(); {
		i := r.IntN(len(logs))
		switch r.IntN(14) {
		case 0:
			if crashes < 8 {
				crashes++
				f.kill()
				f.start()
			}
		case 1, 2: // one goes, or comes back
			f.comeOrGo(i, r.IntN(2) == 0)
		case 3, 4:
			f.commit()
		case 5, 6, 7:
			time.Sleep(time.Duration(r.IntN(8000)) * time.Millisecond)
		default:
			if f.sessions[i] != nil {
				f.feed(i, r.IntN(40))
			}
		}
	}
	f.store.mu.Lock()
	f.store.fail = nil
	f.store.mu.Unlock()
	time.Sleep(30 * time.Second)
	f.kill()
	f.store.newest()
	if got := f.store.totals(t, end); got.Arrivals != want.Arrivals || got.Success != want.Success || got.Answers != want.Answers || got.BusySeconds != want.BusySeconds {
		t.Errorf("schedule %d: rows have %d arrivals in %v s, want %d in %v", seed, got.Arrivals, got.BusySeconds, want.Arrivals, want.BusySeconds)
	}
}

// A partition that is away, a process that ends and is started anew with another
// configuration, in any order: every arrival is counted once.
func TestPartitionsThatWereAwayWhileTheConfigurationChanged(t *testing.T) {
	for seed := range uint64(*schedules) {
		other := []time.Duration{15 * time.Second, 25 * time.Second, 11 * time.Second}[seed%3]
		t.Run(fmt.Sprint("schedule=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { changedAway(t, seed, other) })
		})
	}
}

func changedAway(t *testing.T, seed uint64, other time.Duration) {
	r := rand.New(rand.NewPCG(seed, 67))
	lines := slices.CompactFunc(storm(30+r.IntN(60)), func(a, b logged) bool { return a.text == b.text })
	logs, end := deal(r, lines, 2+r.IntN(2))
	block := []int64{1, 4, 16}[r.IntN(3)]
	cfg := variant(t, 1, 15*time.Second)
	cfg.offsetBlock = block
	want := undisturbed(t, logs, cfg).store.totals(t, end).Arrivals

	luck := rand.New(rand.NewPCG(seed, 68))
	sh := &shelf{t: t, rows: store.NewMemory(), by: map[uint32]string{}, fail: func() (bool, bool) { return luck.IntN(6) == 0, luck.IntN(6) == 0 }}
	variants := [2]LiveConfig{variant(t, 1, 15*time.Second), variant(t, 2, other)}
	keyed := r.IntN(4) == 0 && other == 15*time.Second // each partition is a scope
	mutes := rand.New(rand.NewPCG(seed, 69))
	for i := range variants {
		variants[i].offsetBlock, variants[i].Parallel, variants[i].Keyed = block, 1+r.IntN(3), []bool{keyed}
		variants[i].Writer = mute{writer{sh, variants[i].Reading}, new(atomic.Int32), func() bool { return mutes.IntN(6) == 0 }}
	}
	f := &fleet{t: t, logs: logs, committed: make([]ingest.Position, len(logs)), cfg: variants[0], absent: map[int]bool{}}
	if r.IntN(3) == 0 { // one comes for the first time later
		f.absent[len(logs)-1] = true
	}
	f.start()
	for known := false; !known && !f.done(); { // before a first position all is read from the beginning
		known = true
		for i := range logs {
			if f.sessions[i] != nil {
				f.feed(i, 10)
			}
		}
		time.Sleep(2 * time.Second)
		f.commit()
		for i, at := range f.committed {
			known = known && (f.absent[i] || at.Metadata != "")
		}
	}
	now := 0
	for changes := 0; !f.done(); {
		i := r.IntN(len(logs))
		switch r.IntN(14) {
		case 0:
			if changes < 6 {
				changes++
				f.kill()
				if r.IntN(2) == 0 {
					now = 1 - now
					f.cfg = variants[now]
				}
				f.start()
			}
		case 8:
			if err := f.handover(variants[1-now], r.IntN(2) == 0); err == nil {
				now = 1 - now
			}
		case 1, 2:
			f.comeOrGo(i, r.IntN(2) == 0)
		case 3, 4:
			f.commit()
		case 5, 6, 7:
			time.Sleep(time.Duration(r.IntN(8000)) * time.Millisecond)
		default:
			if f.sessions[i] != nil {
				f.feed(i, r.IntN(40))
			}
		}
	}
	sh.mu.Lock()
	sh.fail = func() (bool, bool) { return false, false }
	sh.mu.Unlock()
	for range 3 {
		time.Sleep(30 * time.Second)
		for i := range logs { // some may have to begin anew
			if f.sessions[i] != nil {
				f.feed(i, len(logs[i].lines))
			}
		}
		f.commit()
	}
	time.Sleep(30 * time.Second)
	f.kill()
	if got := arrivalsOf(sh.stored(noon.Unix()-3600, end)); got != want {
		t.Errorf("schedule %d: rows have %d arrivals, want %d", seed, got, want)
	}
}

// mute is a store that does not say what it knows while that lasts.
type mute struct {
	Writer
	asked *atomic.Int32
	lasts func() bool
}

func (m mute) Note(ctx context.Context, scope string) ([]byte, error) {
	m.asked.Add(1)
	if m.lasts() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.Writer.Note(ctx, scope)
}

// A store that hangs holds the first partition of a scope up for a moment and the others
// not at all. Live figures go on; nothing is stored, nor said to be counted, before the
// store has said what it knows. Then all is counted.
func TestAStoreThatDoesNotSayWhatItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, end := deal(rand.New(rand.NewPCG(1, 47)), storm(30), 3)
		f := &fleet{t: t, logs: logs, committed: make([]ingest.Position, len(logs)), store: newRowStore()}
		f.cfg = liveConfig(t, f.store)
		var asked atomic.Int32
		var deaf atomic.Bool
		deaf.Store(true)
		f.cfg.Writer = mute{f.store, &asked, deaf.Load}
		begun := time.Now()
		f.start()
		if took := time.Since(begun); took != noteWithin || asked.Load() != 1 {
			t.Errorf("three partitions were assigned in %v, the store being asked %d times", took, asked.Load())
		}
		time.Sleep(3 * time.Second)
		for i := range logs {
			f.feed(i, len(logs[i].lines))
		}
		time.Sleep(20 * time.Second)
		f.commit()
		for i, at := range f.committed {
			if at.Metadata != "" {
				t.Errorf("partition %d would be read again from %v", i, at)
			}
		}
		p := f.live.Picture()
		if n := f.store.totals(t, end).Arrivals; n != 0 || p.Sources[0].Lines == 0 || p.StoreErr == nil {
			t.Errorf("%d arrivals are stored, %d lines counted, error %v", n, p.Sources[0].Lines, p.StoreErr)
		}
		deaf.Store(false)
		time.Sleep(20 * time.Second)
		f.kill()
		if n := f.store.totals(t, end).Arrivals; n == 0 {
			t.Error("nothing is stored though the store has said what it knows")
		}
	})
}

// A partition that goes on with a store that has no note of it, that of another instance
// or of an earlier version, and a process that ends while it is read again: what is in
// the rows of the one or the other is counted once.
func TestTakenOverWithoutANote(t *testing.T) {
	for name, changed := range map[string]int{"the same configuration": 0, "another configuration": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{t: t, logs: make([]partLog, 1), committed: make([]ingest.Position, 1)}
				for i := range 300 {
					at := 1000 * i
					if i%20 == 0 {
						at = max(0, at-30_000) // late
					}
					f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(at, `,"my_id":"a%d"`, i)))
				}
				never := func() (bool, bool) { return false, false }
				var shelves []*shelf
				for i := range 2 {
					sh := &shelf{t: t, rows: store.NewMemory(), by: map[uint32]string{}, fail: never}
					shelves = append(shelves, sh)
					f.cfg = variant(t, i*changed, 15*time.Second)
					f.cfg.Writer = writer{sh, f.cfg.Reading}
					f.start()
					time.Sleep(settle + time.Second)
					if i == 1 { // it ends in the midst of what is read again
						f.feed(0, 50)
						for range 4 {
							time.Sleep(time.Second)
							f.commit()
						}
						f.kill()
						f.start()
						time.Sleep(settle + time.Second)
					}
					for range 150 * (1 + i) {
						f.feed(0, 1+i)
						time.Sleep(time.Second)
						f.commit()
					}
					time.Sleep(30 * time.Second * time.Duration(i))
					f.kill()
				}
				newest := map[string]store.Row{} // of both: that of the highest rules, then version
				for _, sh := range shelves {
					for _, r := range sh.stored(noon.Unix(), noon.Unix()+280) {
						id := fmt.Sprint(r.At, r.LateBlock, r.Dependency, r.Name)
						if o, is := newest[id]; !is || r.Rules > o.Rules || r.Rules == o.Rules && r.Version > o.Version {
							newest[id] = r
						}
					}
				}
				got := arrivalsOf(slices.Collect(maps.Values(newest)))
				want := uint64(0)
				for i := range 300 {
					if at := i; i%20 != 0 && at < 280 || i%20 == 0 && at-30 < 280 {
						want++
					}
				}
				if got != want {
					t.Errorf("%d arrivals, want %d", got, want)
				}
			})
		})
	}
}

// A partition that was counted with others is not taken in by itself, nor the reverse.
func TestKeyedCannotBeChanged(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{t: t, logs: make([]partLog, 1), committed: make([]ingest.Position, 1), store: newRowStore()}
			for i := range 100 {
				f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(1000*i, `,"my_id":"a%d"`, i)))
			}
			f.cfg = liveConfig(t, f.store)
			f.cfg.Keyed = []bool{keyed}
			f.start()
			time.Sleep(settle + time.Second)
			f.feed(0, 100)
			time.Sleep(2 * time.Second)
			f.commit()
			f.kill()
			f.cfg.Keyed = []bool{!keyed}
			l := NewLive(f.cfg)
			_, _, err := l.Assigned(t.Context(), ingest.Partition{Name: "log/0"}, f.committed[0])
			if want := fmt.Sprintf("log/0 was counted with keyed: %t", keyed); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want one with %q", err, want)
			}
		})
	}
}
