package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// One record of a clock that is fast moves its partition's watermark, and with it
// what is late. The default of time.max_future leaves everybody else on time, those
// too that took longer than a lateness, for which only the 10 s count that their
// shippers have; a minute would not.
func TestOneFastClock(t *testing.T) {
	const lateness = time.Minute
	for _, c := range []struct {
		maxFuture, ahead time.Duration
		late             bool // some are
		future           bool // the record is quarantined
	}{
		{5 * time.Second, 4900 * time.Millisecond, false, false},
		{5 * time.Second, 5100 * time.Millisecond, false, true},
		{5 * time.Second, 58 * time.Second, false, true},
		{time.Minute, 58 * time.Second, true, false},
		{20 * time.Second, 19 * time.Second, true, false}, // to those that take long
	} {
		t.Run(fmt.Sprint(c.maxFuture, " ", c.ahead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{t: t, logs: make([]partLog, 1), committed: make([]ingest.Position, 1), store: newRowStore()}
				f.cfg = liveConfig(t, f.store)
				f.cfg.Lateness, f.cfg.Horizon, f.cfg.MaxFuture = lateness, lateness, c.maxFuture
				begun := time.Now()
				f.cfg.Clock = func() time.Time { return noon.Add(time.Since(begun)) }
				type came struct {
					at   int // ms since noon, when it comes
					line string
				}
				const fast = 200_000
				lines := []came{{fast, rec(fast+int(c.ahead/time.Millisecond), `,"my_id":"fast"`)}}
				for i := range 601 {
					logged := 10_000 + i*500
					took := []int{5, 800, 0, 75_000}[i%4]
					line := strings.Replace(rec(logged-took, `,"my_id":"a%d"`, i), `"duration_ms":0`, fmt.Sprintf(`"duration_ms":%d`, took), 1)
					lines = append(lines, came{logged + i*37%4000, line}) // shippers take up to 4 s
				}
				slices.SortStableFunc(lines, func(a, b came) int { return a.at - b.at })
				f.start()
				defer f.kill()
				for _, l := range lines {
					if wait := time.Duration(l.at)*time.Millisecond - time.Since(begun); wait > 0 {
						time.Sleep(wait)
					}
					f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(l.line))
					f.feed(0, 1)
				}
				time.Sleep(2 * time.Second)
				p := f.live.Picture()
				var late uint64
				for _, s := range p.Stats {
					late += s.Late
				}
				if future := p.Sources[0].Quarantined["future"]; (late > 0) != c.late || (future > 0) != c.future {
					t.Errorf("%d of 601 are late, %d quarantined", late, future)
				}
				t.Logf("%d of 601 are late", late)
			})
		})
	}
}
