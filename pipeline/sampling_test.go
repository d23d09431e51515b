package pipeline

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// In a storm of ten times as many questions as may be followed a daemon holds no
// more of them than it said; arrivals are all counted, originals to within what is
// said of their error; and so it is when the daemon is killed amid the storm.
func TestAStormOfTooManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := liveConfig(t, newRowStore())
		cfg.MaxLive, cfg.offsetBlock = 400, 16
		begun := time.Now()
		cfg.Clock = func() time.Time { return noon.Add(time.Since(begun)) }
		f := &fleet{t: t, cfg: cfg, committed: make([]ingest.Position, 1), store: cfg.Writer.(*rowStore)}
		f.store.sampled = true
		const seconds, perSecond, tries = 150, 200, 3
		type record struct {
			at   int
			line string
		}
		var all []record
		for q := range seconds * perSecond {
			for try := range tries {
				at := q*1000/perSecond + try*700
				all = append(all, record{at, strings.TrimSpace(rec(at, `,"my_id":"q%d"`, q))})
			}
		}
		slices.SortStableFunc(all, func(a, b record) int { return a.at - b.at })
		f.logs = make([]partLog, 1)
		for _, r := range all {
			f.logs[0].lines = append(f.logs[0].lines, r.line)
		}
		f.start()
		bits := 0
		for s := 0; !f.done(); s++ {
			f.feed(0, perSecond*tries)
			f.commit()
			time.Sleep(time.Second)
			synctest.Wait()
			p := f.live.Picture()
			if most := cfg.MaxLive + cfg.MaxLive/4 + 2; p.Live > most {
				t.Fatalf("%d questions are held after %d s, want at most %d", p.Live, s, most)
			}
			bits = max(bits, p.SampleBits)
			if s == 100 {
				f.kill()
				f.start()
			}
		}
		if bits < 3 || bits > 6 {
			t.Errorf("one question in 2^%d was followed; ten times as many as there may be are 2^3.3", bits)
		}
		for range 20 {
			f.pause(0)
			time.Sleep(time.Second)
		}
		to := noon.Unix() + 120
		got := f.store.totals(t, to)
		arrivals, originals := uint64(0), 0.0
		seen := map[string]bool{}
		for _, r := range all {
			if r.at >= 120_000 {
				break
			}
			arrivals++
			if id := r.line[strings.Index(r.line, "my_id"):]; !seen[id] {
				seen[id] = true
				originals++
			}
		}
		if got.Arrivals != arrivals || got.Claimed != arrivals {
			t.Errorf("%d arrivals are stored (%d claimed), want %d", got.Arrivals, got.Claimed, arrivals)
		}
		err := math.Sqrt(float64(got.Variance))
		if off := math.Abs(float64(got.Originals) - originals); off > 3*err || err > originals/10 || err == 0 {
			t.Errorf("%d originals are stored with a standard error of %.0f, want %.0f", got.Originals, err, originals)
		}
		f.kill()
	})
}
