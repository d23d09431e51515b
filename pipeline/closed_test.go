package pipeline

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
)

// Windows of closed ticks say what the stored rows of their ticks add up to, distinct
// questions included, of all shards and through late records.
func TestClosedWindowsAreTheRowsOfTheirTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := liveConfig(t, newRowStore())
		logs, _ := deal(rand.New(rand.NewPCG(5, 5)), storm(200), 2)
		f := &fleet{t: t, cfg: cfg, logs: logs, committed: make([]ingest.Position, 2), store: cfg.Writer.(*rowStore)}
		f.start()
		time.Sleep(3 * time.Second)
		looks, told := 0, 0
		for i := range logs {
			logs[i].lines = logs[i].lines[:len(logs[i].lines)-1]
		}
		for !f.done() {
			for i := range logs {
				f.feed(i, 20)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			p := f.live.Picture()
			for _, d := range p.Dependencies {
				for _, w := range d.ClosedWindows {
					if w.To != p.Closed || w.To-w.From > int64(w.Length/time.Second) {
						t.Fatalf("a window of %v from %d to %d, closed is %d", w.Length, w.From, w.To, p.Closed)
					}
					looks++
					want := f.store.between(t, d.Name, w.From, w.To)
					if got := want.Totals(); got != w.Total {
						t.Fatalf("%s, %v: %+v, the rows say %+v", d.Name, w.Length, w.Total, got)
					}
					if got := want.Questions(); got != w.Questions {
						t.Fatalf("%s, %v: %d questions, the rows say %d", d.Name, w.Length, w.Questions, got)
					}
					hops := want.Measure(w.To-w.From, aggregate.Figure{}, false).Hops
					if w.Hops.Adjacent != hops.Adjacent || w.Hops.Above != hops.Above {
						t.Fatalf("%s, %v: hops %v, the rows say %v", d.Name, w.Length, w.Hops, hops)
					}
					if above, ok := hops.Above.Value(); ok && above > 1 {
						told++
					}
				}
			}
		}
		if looks < 30 {
			t.Errorf("only %d windows were seen", looks)
		}
		if told < 10 {
			t.Errorf("hops above the neighbour stood in %d windows", told)
		}
		f.kill()
	})
}

// between adds up the rows by originator of a dependency.
func (s *rowStore) between(t *testing.T, dependency string, from, to int64) *aggregate.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := new(aggregate.Counts)
	for _, r := range s.rows {
		if r.at >= from && r.at < to && !r.byPeer && !r.wide && r.dependency == dependency {
			c, err := aggregate.DecodeCounts(r.counts)
			if err != nil {
				t.Fatal(err)
			}
			c.Settle(r.at - from)
			sum.Merge(c)
		}
	}
	return sum
}
