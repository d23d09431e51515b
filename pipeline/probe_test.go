package pipeline

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
)

// retried is a minute of a storm over partitions, by second: 200 questions a second,
// each asked three times within two seconds. place says by which partition an arrival
// comes.
func retried(seconds, parts int, place func(question, try int) int) (logs []partLog) {
	logs = make([]partLog, parts)
	for s := range seconds {
		for i := range 200 {
			for try := range 3 {
				q, ms := s*200+i, s*1000+i*5+try*700
				p := place(q, try)
				logs[p].lines = append(logs[p].lines, strings.TrimSpace(rec(ms, `,"my_id":"q%d","peer":"a","dependency":"d%d"`, q, q%2)))
			}
		}
	}
	return logs
}

func keyedFleet(t *testing.T, logs []partLog, log *bytes.Buffer) *fleet {
	f := &fleet{t: t, cfg: liveConfig(t, newRowStore()), committed: make([]ingest.Position, len(logs)), logs: logs}
	f.store = f.cfg.Writer.(*rowStore)
	f.cfg.Keyed = []bool{true}
	f.cfg.Parallel = 1
	f.cfg.Sources[0].Dependency, f.cfg.Sources[0].DependencyField = "", "dependency"
	f.cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	return f
}

// play feeds what is there in steps, and returns the dependencies that are said to be
// split.
func (f *fleet) play(steps int, each func(step int)) (split []string) {
	size := 0
	for i := range f.logs {
		size = max(size, len(f.logs[i].lines)/steps+1)
	}
	for step := range steps {
		for i := range f.logs {
			f.feed(i, size)
		}
		if each != nil {
			each(step)
		}
		time.Sleep(time.Second)
	}
	return f.split()
}

func (f *fleet) split() (split []string) {
	for _, d := range f.live.Picture().Dependencies {
		if d.ScopeSplit {
			split = append(split, d.Name)
		}
	}
	return split
}

// A topic that is said to be keyed and is not is found out within a minute, of each
// dependency, and said once.
func TestPartitionsThatAreNotKeyedAreFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 71))
		var log bytes.Buffer
		f := keyedFleet(t, retried(60, 2, func(int, int) int { return r.IntN(2) }), &log)
		f.start()
		time.Sleep(3 * time.Second)
		if got := fmt.Sprint(f.play(60, nil)); got != "[d0 d1]" {
			t.Errorf("split are %s", got)
		}
		// It is well again once that was long enough ago.
		time.Sleep(splitHolds)
		if got := f.split(); got != nil {
			t.Errorf("ten minutes later split are %q", got)
		}
		f.kill()
		if n := strings.Count(log.String(), "one question came in two scopes"); n != 2 {
			t.Errorf("it is logged %d times:\n%s", n, log.String())
		}
		if strings.Contains(log.String(), "q1") {
			t.Errorf("a key is logged:\n%s", log.String())
		}
	})
}

// One that is keyed is not, however its partitions come and go, are read again, and
// whatever else a key asks.
func TestKeyedPartitionsAreNotSplit(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 72))
			var log bytes.Buffer
			logs := retried(30, 3, func(q, _ int) int { return q % 3 })
			// A key that asks another dependency, or another route, or comes again after
			// a horizon, may come by another partition.
			for i := range logs {
				other := &logs[(i+1)%3]
				for n, line := range logs[i].lines[:2400] {
					switch n % 3 {
					case 0:
						line = strings.Replace(line, `"dependency":"d`, `"dependency":"e`, 1)
					case 1:
						line = strings.Replace(line, `"GET"`, `"PUT"`, 1)
					case 2:
						line = strings.Replace(line, `"/seats/7"`, `"/seats/8"`, 1)
					}
					other.lines = append(other.lines, line)
				}
			}
			for i := range logs {
				for n := range 1000 {
					logs[(i+1)%3].lines = append(logs[(i+1)%3].lines, strings.TrimSpace(rec(70_000+n, `,"my_id":"q%d","peer":"a","dependency":"d%d"`, 3*n+i, (3*n+i)%2)))
				}
			}
			for i := range logs {
				slices.Sort(logs[i].lines) // by time
			}
			f := keyedFleet(t, logs, &log)
			f.start()
			time.Sleep(3 * time.Second)
			disturb := func(int) {
				switch r.IntN(20) {
				case 0:
					f.kill()
					f.start()
					time.Sleep(3 * time.Second)
				case 1, 2, 3:
					f.commit()
				case 4:
					f.commit()
					f.assign()
				}
			}
			split := f.play(40, disturb)
			for !f.done() {
				split = append(split, f.play(20, disturb)...)
			}
			if split != nil || strings.Contains(log.String(), "two scopes") {
				t.Errorf("seed %d: split are %q, and logged is\n%s", seed, split, log.String())
			}
			f.kill()
		})
	}
}

// What the probe remembers is bounded, and a scope that is no more is not compared.
func TestTheProbeIsBounded(t *testing.T) {
	p := newProbe(time.Minute, time.Now)
	name := func(uint16) string { return "d" }
	at := func(i int, start int64) []aggregate.Sighting {
		return []aggregate.Sighting{{Question: aggregate.ID{Key: uint64(i)}, Start: start}}
	}
	for i := range 5 * probeSize {
		p.saw("a", at(i, int64(i)), name)
	}
	if n := len(p.young) + len(p.old); n > 2*probeSize {
		t.Errorf("%d questions are remembered", n)
	}
	last := 5*probeSize - 1
	far := int64(last) + int64(time.Minute)
	if got := p.saw("b", at(last, far+1), name); got != nil {
		t.Errorf("more than a horizon later, split is %q", got)
	}
	p.forget("b")
	p.saw("a", at(last, 0), name)
	p.forget("a")
	if got := p.saw("b", at(last, 1), name); got != nil {
		t.Errorf("beside a scope that is no more, split is %q", got)
	}
	if got := p.saw("c", at(last, -int64(time.Minute)+1), name); len(got) != 1 || !p.splits()["d"] {
		t.Errorf("split is %q", got)
	}
	if got := p.saw("b", at(last, 0), name); got != nil {
		t.Errorf("what is known is told again: %q", got)
	}
}
