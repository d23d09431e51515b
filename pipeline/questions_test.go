package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
)

// askedStore keeps questions as every store must: known by their last arrival, and
// of two that are one the one with more arrivals.
type askedStore map[askedID]Question

type askedID struct {
	scope, dependency, route string
	keyHash                  [16]byte
	lot                      aggregate.Lot
	last                     int64
}

func (a askedStore) write(w *Written) {
	for _, q := range w.Questions {
		id := askedID{w.Scope, q.Dependency, q.Route, q.KeyHash, q.Lot, q.Last.UnixNano()}
		if was, ok := a[id]; !ok || q.Arrivals > was.Arrivals {
			a[id] = q
		}
	}
}

// contents are the questions that came last before a tick, in a comparable form; of
// one that went on for longer than a horizon, as whole tells, only its end.
func (a askedStore) contents(to int64, horizon time.Duration, whole askedStore) string {
	var out []string
	for id, q := range a {
		if q.Last.Unix() >= to {
			continue
		}
		first := q.First
		if w, ok := whole[id]; ok {
			first = w.First
		}
		text := fmt.Sprintf("%x %d %s %q %q %q", q.KeyHash, q.Lot, q.Last, q.Dependency, q.Route, q.Originator)
		if q.Last.Sub(first) <= horizon {
			text += fmt.Sprintf(" %s %d %q", q.First, q.Arrivals, q.Peers)
		}
		out = append(out, id.scope+" "+text)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// once wants no question twice: two episodes of one are more than a horizon apart.
func (a askedStore) once(t *testing.T, horizon time.Duration) {
	t.Helper()
	ids := slices.SortedFunc(maps.Keys(a), func(x, y askedID) int {
		return cmp.Or(slices.Compare(x.keyHash[:], y.keyHash[:]), cmp.Compare(x.lot, y.lot), cmp.Compare(x.route, y.route), cmp.Compare(x.last, y.last))
	})
	for i := 1; i < len(ids); i++ {
		x, y := a[ids[i-1]], a[ids[i]]
		if x.KeyHash == y.KeyHash && x.Lot == y.Lot && x.Route == y.Route && y.First.Sub(x.Last) <= horizon {
			t.Errorf("one question is stored twice:\n%+v\n%+v", x, y)
		}
	}
}

// asks makes a log: arrivals of questions, some of them keys of several questions.
func asks(times ...string) (lines []string) {
	for _, x := range times {
		var ms, id int
		var peer string
		if _, err := fmt.Sscanf(x, "%d q%d %s", &ms, &id, &peer); err != nil {
			panic(err)
		}
		lines = append(lines, strings.TrimSpace(rec(ms, `,"my_id":"q%d","peer":%q`, id, peer)))
	}
	return lines
}

func oneLog(t *testing.T, from uint32, lines []string) *fleet {
	f := &fleet{t: t, cfg: liveConfig(t, newRowStore()), committed: make([]ingest.Position, 1), logs: []partLog{{lines}}}
	f.store, f.cfg.StoreFrom = f.cfg.Writer.(*rowStore), from
	f.start()
	time.Sleep(3 * time.Second)
	return f
}

func brief(list []Question) (out []string) {
	for _, q := range list {
		out = append(out, fmt.Sprintf("%s %s %d %v %s %s live=%v", q.Route, q.Originator, q.Arrivals, q.Peers,
			q.First.Format("05.000"), q.Last.Format("05.000"), q.Live))
	}
	return out
}

// A question is found while it goes on, and when it is over until it is stored; in
// the picture are those that came back, the worst first.
func TestQuestionsAreFoundAndRanked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := asks("0 q1 a", "1000 q2 a", "2000 q2 10.2.0.9", "3000 q3 a", "4000 q3 a", "5000 q3 a", "60000 q4 a")
		f := oneLog(t, 2, lines)
		f.store.fail = func() (bool, bool) { return true, false }
		hash := KeyHasher(f.cfg.Salt)
		find := func(key string) []string {
			t.Helper()
			got, err := f.live.Questions(context.Background(), hash([]byte(key)))
			if err != nil {
				t.Fatal(err)
			}
			return brief(got)
		}
		worst := func() []string {
			p := f.live.Picture()
			if len(p.Dependencies) == 0 {
				return nil
			}
			return brief(p.Dependencies[0].Worst)
		}
		f.feed(0, 6)
		time.Sleep(3 * time.Second)
		q2 := "GET /seats/{id} claimed:my_id 2 [a batch] 01.000 02.000 live="
		q3 := "GET /seats/{id} claimed:my_id 3 [a] 03.000 05.000 live="
		if got := worst(); !slices.Equal(got, []string{q3 + "true", q2 + "true"}) {
			t.Errorf("worst are %q", got)
		}
		if got := find("q2"); !slices.Equal(got, []string{q2 + "true"}) {
			t.Errorf("found %q", got)
		}
		if got := find("q1"); len(got) != 0 {
			t.Errorf("asked once, and found: %q", got)
		}
		f.feed(0, 1) // closes what came before 45 s: both are over, and not stored
		time.Sleep(3 * time.Second)
		if got := worst(); len(got) != 0 {
			t.Errorf("questions that are over are under way: %q", got)
		}
		if got := find("q2"); !slices.Equal(got, []string{q2 + "false"}) {
			t.Errorf("over and not stored, found %q", got)
		}
		f.store.mu.Lock()
		f.store.fail = nil
		f.store.mu.Unlock()
		time.Sleep(10 * time.Second)
		if got := find("q2"); len(got) != 0 {
			t.Errorf("stored, and found beside the store: %q", got)
		}
		if got := f.store.asked.contents(noon.Unix()+100, f.cfg.Horizon, nil); strings.Count(got, "\n") != 1 {
			t.Errorf("stored are\n%s", got)
		}
		f.kill()
	})
}

// store.questions decides what is stored, but for what is drawn.
func TestWhichQuestionsAreStored(t *testing.T) {
	const questions = 3000
	var drawn int
	var lines []string
	draw := newLots(testConfig(t).Salt)
	for q := range questions {
		key := fmt.Sprintf("q%d", q)
		if draw.draw([]byte(key), []byte("/seats/7")).Drawn() {
			drawn++
		}
		for try := range 1 + q%3 {
			lines = append(lines, asks(fmt.Sprintf("%d %s a", 20*q+try, key))...)
		}
	}
	if drawn < questions/aggregate.DrawnOneIn/2 || drawn > questions/aggregate.DrawnOneIn*2 {
		t.Fatalf("%d of %d questions are drawn", drawn, questions)
	}
	lines = append(lines, strings.TrimSpace(rec(100_000, "")))
	for from, least := range map[uint32]int{0: drawn, 1: questions, 2: questions / 3 * 2} {
		synctest.Test(t, func(t *testing.T) {
			f := oneLog(t, from, lines)
			f.feed(0, len(lines))
			time.Sleep(3 * time.Second)
			f.kill()
			if got := len(f.store.asked); got < least || got > least+drawn || from == 0 && got != drawn {
				t.Errorf("from %d arrivals on, %d are stored; want %d and up to %d drawn", from, got, least, drawn)
			}
		})
	}
}

// Of two forms of one episode, of which one was read again in part, the whole stays.
func TestAnEpisodeLongerThanWhatIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []string
		for s := range 100 { // asked for 100 s; two horizons are 40
			times = append(times, fmt.Sprintf("%d q1 a", s*1000))
		}
		lines := append(asks(times...), asks("180000 q2 a")...)
		f := oneLog(t, 2, lines)
		f.cfg.offsetBlock = 1
		f.kill()
		f.start()
		time.Sleep(3 * time.Second)
		f.feed(0, 100)
		time.Sleep(3 * time.Second)
		f.commit()
		f.feed(0, 1)
		time.Sleep(3 * time.Second) // the question is stored, and the daemon dies before it can say so
		f.kill()
		whole := f.store.asked.contents(noon.Unix()+150, time.Hour, nil)
		if !strings.Contains(whole, " 100 ") {
			t.Fatalf("stored is %q", whole)
		}
		clear(f.store.rows) // their spans, too, are of what is read again
		f.start()
		time.Sleep(3 * time.Second)
		f.feed(0, 101)
		time.Sleep(3 * time.Second)
		f.kill()
		if got := f.store.asked.contents(noon.Unix()+150, time.Hour, nil); got != whole {
			t.Errorf("read again, in part, stored is\n%s\nwant\n%s", got, whole)
		}
	})
}

// Of more questions than are stored of one second those with the most arrivals stay,
// and all that are drawn, whichever came first.
func TestOnlyTheWorstOfASecondAreStored(t *testing.T) {
	const over, many = 1_000, 5 * mostEpisodes
	var list []aggregate.Episode
	drawn := 0
	for i := range many {
		e := aggregate.Episode{Over: over, Arrivals: uint32(2 + i), Lot: 1 << 30, First: int64(i)}
		if i%50 == 0 {
			e.Lot = aggregate.Lot(1 + i)
			drawn++
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b aggregate.Episode) int { return cmp.Compare(a.Arrivals*7919%many, b.Arrivals*7919%many) })
	p := newEpisodes()
	p.take(list[:many/2], noTick)
	p.take(append(list[many/2:], aggregate.Episode{Over: over + 1, Arrivals: 2}), noTick)
	if n := p.pick(over, false); n != 0 || p.n != many+1 {
		t.Errorf("%d are left out of a second that is not closed, %d stay", n, p.n)
	}
	if n := p.pick(over+1, true); n != 0 {
		t.Errorf("%d are left out of all", n)
	}
	p.picked = noTick
	left := p.pick(over+1, false)
	worst, lots := 0, 0
	for _, e := range p.ticks[over] {
		if e.Arrivals >= 2+many-mostEpisodes {
			worst++
		}
		if e.Lot.Drawn() {
			lots++
		}
	}
	if worst != mostEpisodes || lots != drawn || left != many-len(p.ticks[over]) || p.n != len(p.ticks[over])+1 {
		t.Errorf("of %d stay %d of the worst and %d that are drawn, want %d and %d; %d left out, %d in all", many, worst, lots, mostEpisodes, drawn, left, p.n)
	}
	if p.drop(over + 1); p.n != 1 {
		t.Errorf("%d are left when the second is stored", p.n)
	}
}
