package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// What is read is in the next picture, a second later, though its tick stays open
// for a lateness; a shipper's copies are in none.
func TestAPictureShowsWhatWasReadASecondAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := liveConfig(t, newRowStore())
		begun := time.Now()
		cfg.Clock = func() time.Time { return noon.Add(15*time.Second + time.Since(begun)) }
		f := &fleet{t: t, cfg: cfg, committed: make([]ingest.Position, 1), store: cfg.Writer.(*rowStore)}
		var lines []string
		for q := range 30 {
			for try := range 3 {
				line := strings.TrimSpace(rec(q*500+try*50, `,"my_id":"q%d","method":"GET","path":"/seats/1","peer":"10.1.0.%d:1"`, q, try))
				lines = append(lines, line, line)
			}
		}
		f.logs = []partLog{{lines}}
		f.start()
		time.Sleep(2500 * time.Millisecond)
		f.feed(0, len(lines))
		time.Sleep(1100 * time.Millisecond)
		p := f.live.Picture()
		if len(p.Dependencies) != 1 || len(p.Dependencies[0].Windows) != len(WindowLengths) {
			t.Fatalf("%+v", p)
		}
		d := p.Dependencies[0]
		w := d.Windows[1]
		if w.Total.Arrivals != 90 || w.Total.Originals != 30 || w.Total.Repeats != 60 || w.Total.Claimed != 90 {
			t.Errorf("a minute's window has %+v", w.Total)
		}
		if len(w.Routes) != 1 || w.Routes[0].Name != "GET /seats/{id}" || len(w.Peers) != 1 || w.Peers[0].Name != "bff" || w.Originators[0].Name != "claimed:my_id" {
			t.Errorf("parts are %+v %+v %+v", w.Routes, w.Peers, w.Originators)
		}
		if len(d.Budgets) != 1 || !d.Budgets[0].Some || d.Budgets[0].Consumed < 9.9 || d.Budgets[0].State != "blind" {
			t.Errorf("of the budget is said %+v", d.Budgets)
		}
		if d.Closed.Arrivals != 0 || !p.Warming {
			t.Errorf("closed ticks have %+v, warming %v", d.Closed, p.Warming)
		}
		// The window slides on while nothing comes.
		time.Sleep(6 * time.Minute)
		if p := f.live.Picture(); len(p.Dependencies) > 0 && len(p.Dependencies[0].Windows) > 0 {
			t.Errorf("figures of long ago: %+v", p.Dependencies[0].Windows[0].Total)
		}
		// Nor does it have to be written to for what was asked before to be known.
		if p := f.live.Picture(); p.Warming {
			t.Error("warming does not end while the log rests")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		f.sessions[0].Close(ctx)
		f.kill()
	})
}

// What cannot be read is counted, by reason, and handed on with its place.
func TestDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := liveConfig(t, newRowStore())
		var letters []string
		cfg.DeadLetters = []func([]byte, string, ingest.Partition, ingest.Ref){
			func(line []byte, reason string, from ingest.Partition, at ingest.Ref) {
				letters = append(letters, fmt.Sprintf("%s %s %s/%d.%d", line, reason, from.Name, at.Offset, at.Line))
			},
		}
		f := &fleet{t: t, cfg: cfg, committed: make([]ingest.Position, 1), store: cfg.Writer.(*rowStore)}
		f.logs = []partLog{{[]string{strings.TrimSpace(rec(1, "")), "prose", strings.TrimSpace(rec(2, "")), `{"status":200,"path":"/x"}`}}}
		f.start()
		f.feed(0, 4)
		want := []string{"prose syntax log/0/1.1", `{"status":200,"path":"/x"} no_time log/0/3.1`}
		if !slices.Equal(letters, want) {
			t.Errorf("dead letters are %q, want %q", letters, want)
		}
		if q := f.live.Picture().Sources[0].Quarantined; q["syntax"] != 1 || q["no_time"] != 1 {
			t.Errorf("counted are %v", q)
		}
		f.kill()
	})
}

// A partition to which nothing comes does not hold back those that are read to
// their end again and again: what arrives does so at the end, but it does arrive.
func TestAnIdlePartitionHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, cfg: liveConfig(t, newRowStore()), committed: make([]ingest.Position, 2), logs: make([]partLog, 2)}
		f.cfg.Idle = 5 * time.Second
		f.store = f.cfg.Writer.(*rowStore)
		f.start()
		time.Sleep(3 * time.Second)
		f.logs[1].lines = append(f.logs[1].lines, strings.TrimSpace(rec(0, "")))
		f.feed(1, 1)
		const seconds = 60
		for s := range seconds {
			f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(s*1000, "")))
			f.feed(0, 1)
			f.pause(1)
			f.commit()
			time.Sleep(time.Second)
		}
		p := f.live.Picture()
		lateness := int64(f.cfg.Lateness / time.Second)
		if behind := noon.Unix() + seconds - p.Closed; behind > lateness+2 {
			t.Errorf("what is closed ends %d s ago, with a lateness of %d s", behind, lateness)
		}
		for _, part := range p.Partitions {
			if part.Idle != (part.Name == "log/1") {
				t.Errorf("%s: idle %v", part.Name, part.Idle)
			}
		}
		f.kill()
	})
}

// Nor does a partition that never had a record: that it is idle is kept before
// anything is stored, or nothing would ever be.
func TestAnEmptyPartitionHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, cfg: liveConfig(t, newRowStore()), committed: make([]ingest.Position, 2), logs: make([]partLog, 2)}
		f.cfg.Idle = 5 * time.Second
		f.store = f.cfg.Writer.(*rowStore)
		f.start()
		run := func(from, seconds int) {
			for s := range seconds {
				f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec((from+s)*1000, "")))
				f.feed(0, 3)
				f.pause(1)
				f.commit()
				time.Sleep(time.Second)
			}
		}
		run(0, 20)
		f.kill() // what was decided is not forgotten with it
		f.start()
		run(20, 40)
		if got := f.store.totals(t, noon.Unix()+30).Arrivals; got != 30 {
			t.Errorf("%d arrivals of the first 30 s are stored", got)
		}
		f.kill()
	})
}

// When a budget is exhausted is said while its consumption rises, and only then; of
// budgets with a long window, too, which need seconds of longer ago than any other.
func TestWhenABudgetIsExhausted(t *testing.T) {
	for _, window := range []int{10, 600} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{t: t, cfg: liveConfig(t, newRowStore()), committed: make([]ingest.Position, 1), logs: make([]partLog, 1)}
			f.store = f.cfg.Writer.(*rowStore)
			f.cfg.Budget.Window = window
			begun := time.Now()
			f.cfg.Clock = func() time.Time { return noon.Add(time.Since(begun)) }
			f.start()
			defer f.kill()
			n := 0
			second := func(repeats int) LiveBudget {
				at := int(time.Since(begun) / time.Millisecond)
				for q := range 100 {
					n++
					for try := range 1 + min(1, max(0, repeats-q)) {
						f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(at, `,"my_id":"q%d","peer":"10.1.0.1:%d"`, n, try)))
					}
				}
				f.feed(0, 200)
				time.Sleep(time.Second)
				return f.live.Picture().Dependencies[0].Budgets[0]
			}
			var b LiveBudget
			for range window + 30 {
				b = second(1)
			}
			if !b.Some || b.ExhaustsIn != 0 {
				t.Errorf("window of %d s: calm there is %+v", window, b)
			}
			for range 7 {
				b = second(15)
			}
			// 14 repeats more each second, of 20 in each second of a window.
			want := (1 - b.Consumed) * float64(20*window) / 14
			if window == 10 && (b.ExhaustsIn < want/2 || b.ExhaustsIn > 2*want) || window == 600 && b.ExhaustsIn == 0 {
				t.Errorf("window of %d s: exhausted in %v s, want %v: %+v", window, b.ExhaustsIn, want, b)
			}
		})
	}
}
