package pipeline

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// Records that always come late are in live windows all the same, whether one by one or
// in bursts; an old log is not; and where nothing comes any more, windows run empty.
func TestWindowsWaitForRecordsThatAlwaysComeLate(t *testing.T) {
	for name, x := range map[string]struct {
		late, every int // seconds
		least, most uint64
	}{
		"at once":                     {0, 1, 90, 110},
		"each ten seconds ago":        {10, 1, 90, 110},
		"flushed":                     {0, 10, 90, 110}, // looked at when that has just been so
		"shipped late, and in bursts": {5, 5, 90, 110},
		"an old log":                  {40, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := liveConfig(t, newRowStore()) // with a lateness of 15 s
				begun := time.Now()
				cfg.Clock = func() time.Time { return noon.Add(time.Hour + time.Since(begun)) }
				f := &fleet{t: t, cfg: cfg, committed: make([]ingest.Position, 1), store: cfg.Writer.(*rowStore), logs: make([]partLog, 1)}
				f.start()
				defer f.kill()
				window := func() uint64 {
					for _, d := range f.live.Picture().Dependencies {
						for _, w := range d.Windows {
							if w.Length == 10*time.Second {
								return w.Total.Arrivals
							}
						}
					}
					return 0
				}
				time.Sleep(100 * time.Millisecond)
				for second := range 60 {
					if second%x.every == 0 {
						n := 0
						for ago := x.late; ago < x.late+x.every; ago++ {
							for i := range 10 {
								at := time.Hour + time.Since(begun) - time.Duration(ago)*time.Second
								f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(int(at/time.Millisecond), `,"my_id":"q%d-%d-%d"`, second, ago, i)))
								n++
							}
						}
						f.feed(0, n)
					} else {
						f.pause(0)
					}
					time.Sleep(time.Second)
					if second >= 30 && second%x.every == 0 {
						if got := window(); got < x.least || got > x.most {
							t.Errorf("after %d s: %d arrivals in 10 s, want %d to %d", second, got, x.least, x.most)
						}
					}
				}
				for range 25 {
					f.pause(0)
					time.Sleep(time.Second)
				}
				if got := window(); got != 0 {
					t.Errorf("%d arrivals in 10 s, long after the last", got)
				}
			})
		})
	}
}
