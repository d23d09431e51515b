package pipeline

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/ingest"
)

// telling is a fleet in a test: daemons that share one store, and what they tell.
type telling struct {
	t       *testing.T
	cfg     LiveConfig
	begun   time.Time
	fleet   *Fleet
	members map[string]*fleet
	whole   *fleet // reads all partitions
	logs    []partLog
	last    map[string][]ScopeState // by member, as last told
	history []Told                  // of everybody
	r       *rand.Rand
	n       int
}

var toldRoutes = []string{"GET /a", "GET /b", "GET /c", "GET /d"}

func newTelling(t *testing.T, parts int) *telling {
	x := &telling{t: t, begun: time.Now(), fleet: NewFleet(), members: map[string]*fleet{}, logs: make([]partLog, parts), last: map[string][]ScopeState{}, r: rand.New(rand.NewPCG(5, 5))}
	x.cfg = liveConfig(t, newRowStore())
	x.cfg.Clock = func() time.Time { return noon.Add(time.Since(x.begun)) }
	x.cfg.Keyed, x.cfg.Horizon, x.cfg.Lateness, x.cfg.offsetBlock = []bool{true}, 6*time.Second, 4*time.Second, 16
	x.cfg.Rules = budget.Rules{Chosen: 1.2, MinArrivals: 20}
	x.cfg.RouteBudgets = map[string]*budget.Model{}
	for i, g := range []budget.Grant{budget.Concurrency{Share: 0.05, Min: 0.1, Proxies: 1}, budget.Rate{PerMinute: 300, Processes: 2}, budget.GRPCTokens().Sized(0, 0, 30), budget.AWSTokens()} {
		m := budget.DefaultModel(g)
		m.Window, m.CoverageFloor = x.cfg.Budget.Window, 0
		x.cfg.RouteBudgets[toldRoutes[i]] = &m
	}
	x.whole = x.daemon(newRowStore())
	return x
}

// daemon starts one that reads the partitions with these numbers, in a store.
func (x *telling) daemon(store *rowStore, parts ...int) *fleet {
	f := &fleet{t: x.t, cfg: x.cfg, committed: make([]ingest.Position, len(x.logs)), store: store, logs: x.logs, absent: map[int]bool{}}
	f.cfg.Writer = store
	for i := range x.logs {
		f.absent[i] = len(parts) > 0 && !slices.Contains(parts, i)
	}
	f.start()
	x.t.Cleanup(f.kill)
	return f
}

// write writes what is asked in a second, of so many questions and a share that comes
// back. Requests of one question end in the order in which they began, so that it does
// not matter how many are read at once; see aggregate.Beat.
func (x *telling) write(questions int, again float64) {
	at := int(time.Since(x.begun) / time.Millisecond)
	lines := make([][]string, len(x.logs))
	for range questions {
		x.n++
		part, route, took := x.r.IntN(len(x.logs)), toldRoutes[x.r.IntN(len(toldRoutes))], 1+x.r.IntN(300)
		tries := 1
		for x.r.Float64() < again && tries < 6 {
			tries++
		}
		for try := range tries {
			status := 200
			if try+1 < tries || x.r.IntN(9) == 0 {
				status = 503
			}
			lines[part] = append(lines[part], fmt.Sprintf(`{"time":%q,"time_is":"end","method":"GET","path":"/%s","status":%d,"duration_ms":%d,"bytes_sent":1,"my_id":"q%d","peer":"10.1.0.1:%d"}`,
				noon.Add(time.Duration(at+x.n%300+100*try)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), route[5:], status, took, x.n, x.n*10+try))
		}
	}
	for i := range lines {
		slices.Sort(lines[i]) // by time
		x.logs[i].lines = append(x.logs[i].lines, lines[i]...)
	}
}

// pass lets a second go by in which everybody reads what is written, and tells of it.
func (x *telling) pass(questions int, again float64) {
	x.write(questions, again)
	time.Sleep(900 * time.Millisecond) // within the second that it is of
	read := func(f *fleet) {
		for i := range f.logs {
			if !f.absent[i] {
				f.feed(i, len(x.logs[i].lines))
			}
		}
	}
	read(x.whole)
	for _, f := range x.members {
		read(f)
	}
	time.Sleep(time.Second - 900*time.Millisecond + PulseEvery) // and a pulse more
	for name, f := range x.members {
		f.commit()
		x.tell(name, f)
	}
	time.Sleep(time.Second - PulseEvery)
}

func (x *telling) tell(name string, f *fleet) {
	told, states, routes := f.live.Tell()
	for i := range told {
		if err := x.fleet.Hear(name, &told[i]); err != nil {
			x.t.Fatal(err)
		}
	}
	x.fleet.HearStates(name, states, routes)
	x.last[name], x.history = states, append(x.history, told...)
}

func (x *telling) expected() (names []string) {
	for i := range x.logs {
		names = append(names, fmt.Sprint("log/", i))
	}
	return names
}

// sum is the picture of those members that are there.
func (x *telling) sum() *FleetPicture {
	var present []ScopeState
	for name := range x.members {
		present = append(present, x.last[name]...)
	}
	return x.fleet.Picture(present, x.expected(), 0, x.cfg.Budget, x.cfg.RouteBudgets)
}

// equals holds the sum to what one daemon knows that reads everything.
func (x *telling) equals(at string) {
	x.t.Helper()
	p := x.sum()
	want := x.whole.live.Picture().Dependencies
	if len(p.Dependencies) != 1 || len(want) != 1 {
		x.t.Fatalf("%s: %d dependencies of %d", at, len(p.Dependencies), len(want))
	}
	got, w := &p.Dependencies[0], &want[0]
	x.equalWindows(at, got, w)
	if x.members["c"] != nil { // while a scope is missing there are no peaks
		for i := range got.Budgets {
			got.Budgets[i].Peak, w.Budgets[i].Peak = 0, 0
		}
	}
	if !reflect.DeepEqual(got.Budgets, w.Budgets) {
		x.t.Fatalf("%s: budgets are\n%+v\nwant\n%+v", at, got.Budgets, w.Budgets)
	}
	if !reflect.DeepEqual(got.ClosedWindows, w.ClosedWindows) {
		x.t.Fatalf("%s: closed windows are\n%+v\nwant\n%+v", at, got.ClosedWindows, w.ClosedWindows)
	}
}

// equalWindows holds live windows to what one daemon knows that reads everything.
func (x *telling) equalWindows(at string, got, w *LiveDependency) {
	x.t.Helper()
	for i := range w.Windows {
		a, b := got.Windows[i], w.Windows[i]
		b.Routes, b.Originators, b.Peers = nil, nil, nil
		if !reflect.DeepEqual(a, b) {
			x.t.Fatalf("%s: the window of %v is\n%+v\nwant\n%+v", at, a.Length, a, b)
		}
	}
}

// The sum of what two instances tell is what one knows that reads everything: every
// window, and every budget second for second, buckets among them, through quiet and
// storm. No instance alone says the same.
func TestFleetTellsWhatOneInstanceKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTelling(t, 2)
		store := newRowStore()
		x.members["a"], x.members["b"] = x.daemon(store, 0), x.daemon(store, 1)
		bytes, rows, exhausted, differs := 0, 0, 0, 0
		for second := range 90 {
			again := 0.02
			if second > 30 && second < 60 {
				again = 0.7
			}
			before := len(x.history)
			x.pass(40, again)
			if second < 2 {
				continue
			}
			x.equals(fmt.Sprint("second ", second))
			for _, b := range x.sum().Dependencies[0].Budgets {
				if b.Some && b.Consumed >= 1 {
					exhausted++
				}
			}
			own := x.members["a"].live.Picture().Dependencies[0].Budgets[0]
			if own != x.sum().Dependencies[0].Budgets[0] {
				differs++
			}
			for _, told := range x.history[before:] {
				bytes, rows = bytes+len(told.State), rows+1
			}
		}
		if exhausted == 0 || differs == 0 {
			t.Errorf("%d budgets are exhausted, and in %d seconds an instance alone knows another", exhausted, differs)
		}
		// Bounded: a scope tells of the newest second and of those that close.
		if rows > 88*2*6 || bytes > 400*rows {
			t.Errorf("%d rows of %d bytes are told in 88 seconds", rows, bytes)
		}
		if p := x.sum(); len(p.Missing) > 0 || p.Warming || p.Scopes != 2 {
			t.Errorf("missing are %q, warming is %v", p.Missing, p.Warming)
		}
	})
}

// An instance that is killed leaves its scope missing, and what it told last in the sum.
// Whoever takes over goes on where it was: once it has read as far nothing is missing,
// and all is again as one instance knows that reads everything. What the first tells
// afterwards, not knowing, changes nothing, and nor does hearing everything again.
func TestFleetThroughACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTelling(t, 2)
		store := newRowStore()
		a := x.daemon(store, 0)
		x.members["a"], x.members["b"] = a, x.daemon(store, 1)
		for range 40 {
			x.pass(40, 0.3)
		}
		x.equals("before")
		delete(x.members, "a") // cut off: it reads on, but nobody hears of it
		for range 3 {
			x.pass(40, 0.3)
		}
		p := x.sum()
		if !slices.Equal(p.Missing, []string{"log/0"}) || p.Scopes != 1 {
			t.Errorf("missing are %q", p.Missing)
		}
		own := x.members["b"].live.Picture().Dependencies[0].Windows[0].Total.Arrivals
		if sum := p.Dependencies[0].Windows[0].Total.Arrivals; sum < own*3/2 {
			t.Errorf("what was told last is gone: %d arrivals, and %d of them those of the other", sum, own)
		}
		c := &fleet{t: t, cfg: a.cfg, committed: slices.Clone(a.committed), store: store, logs: x.logs, absent: map[int]bool{1: true}}
		c.start()
		t.Cleanup(c.kill)
		x.members["c"] = c
		seconds := 0
		for ; seconds < 20; seconds++ {
			if x.pass(40, 0.3); len(x.sum().Missing) == 0 {
				break
			}
		}
		if seconds == 20 {
			t.Fatalf("it is not taken over: %+v", x.last["c"])
		}
		for range 8 {
			x.pass(40, 0.3)
		}
		x.equals("after")
		// The one that was cut off reads on, a part of what there is, and tells of it.
		a.feed(0, 60)
		x.pass(40, 0.3)
		x.tell("a", a)
		if last := x.last["a"][0]; last.Scope != "log/0" || last.Head < x.last["c"][0].Head-20 {
			t.Errorf("it has read up to %d, the others up to %d", last.Head, x.last["c"][0].Head)
		}
		x.equals("after it told")
		for i := range x.history { // as if it had told all of that
			if err := x.fleet.Hear("a", &x.history[i]); err != nil {
				t.Fatal(err)
			}
		}
		x.equals("after all of it was heard again")
	})
}

// A scope that is behind neither holds the others back nor hides what is in them.
func TestFleetOfAScopeThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTelling(t, 2)
		store := newRowStore()
		x.members["a"], x.members["b"] = x.daemon(store, 0), x.daemon(store, 1)
		for range 15 {
			x.pass(40, 0.1)
		}
		x.members["a"].absent[0] = true // it reads nothing more for now
		for range 20 {
			x.pass(40, 0.8)
		}
		p := x.sum()
		d := &p.Dependencies[0]
		if now := x.cfg.Clock().Unix(); d.Windows[0].To < now-3 || len(p.Missing) > 0 {
			t.Errorf("%d s ago it ends, missing are %q", now-d.Windows[0].To, p.Missing)
		}
		if b := d.Budgets[0]; !(b.Consumed >= 1) {
			t.Errorf("a storm of the other does not show: %+v", b)
		}
	})
}

// What cannot be read is no figure.
func TestFleetHearsNothingOfWhatItCannotRead(t *testing.T) {
	f := NewFleet()
	for _, state := range []string{"", "\x01", "\x02", "\x02\x01", "\x02\x01\x02", "\x02\x01\x02\x00\x05seats", "\x02\x01\x02\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		err := f.Hear("a", &Told{Kind: ToldSecond, Scope: "log/0", At: 7, State: []byte(state)})
		if err == nil || !strings.Contains(err.Error(), "log/0 at 7") {
			t.Errorf("%q is heard: %v", state, err)
		}
	}
	if p := f.Picture(nil, []string{"log/0"}, 0, budget.DefaultModel(budget.DefaultRatio()), nil); len(p.Dependencies) > 0 || len(p.Missing) != 1 {
		t.Errorf("there is %+v", p)
	}
}

// Whatever is told is heard as a whole or not at all, and a picture can be taken of it.
func FuzzTold(f *testing.F) {
	f.Add(uint8(ToldSecond), []byte("\x02\x01\x02\x00\x05seats\x00\x01\x05\x02\x02\x02\x02\x00"))
	f.Add(uint8(ToldTick), []byte("\x02\x01\x02\x00\x05seats\x00\x01\x05\x02\x02\x02\x02\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, kind uint8, state []byte) {
		fleet := NewFleet()
		err := fleet.Hear("a", &Told{Kind: ToldKind(kind), Scope: "log/0", At: 7, State: state})
		fleet.HearStates("a", []ScopeState{{Scope: "log/0", Rules: 1, Head: 7, From: 7, Closed: 8}}, nil)
		p := fleet.Picture([]ScopeState{{Scope: "log/0"}}, nil, 0, budget.DefaultModel(budget.DefaultRatio()), nil)
		if err != nil && len(p.Dependencies) > 0 {
			t.Errorf("%x is not heard, and there is %+v", state, p.Dependencies)
		}
	})
}

// An instance of another configuration does not tell of the routes that have a budget in
// this one. Their budgets have no reading as long as seconds of it are looked at; that of
// the dependency has. Once it is of one configuration with the others, by a reload or
// since another has taken its place, all is as one instance knows.
func TestFleetOfTwoConfigurations(t *testing.T) {
	for _, how := range []string{"a reload", "another instance"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTelling(t, 2)
				store := newRowStore()
				cfg := x.cfg
				x.cfg.RouteBudgets = nil
				old := x.daemon(store, 0)
				x.cfg = cfg
				x.members["a"], x.members["b"] = old, x.daemon(store, 1)
				parts, readings := 0, 0
				look := func(second int) {
					got, want := x.sum().Dependencies[0].Budgets, x.whole.live.Picture().Dependencies[0].Budgets
					if len(got) != len(want) || second > 0 && got[0].Reading != want[0].Reading {
						t.Fatalf("second %d: budgets are\n%+v\nwant\n%+v", second, got, want)
					}
					for i := range got[1:] {
						switch b := got[i+1]; {
						case b.Part:
							if parts++; b.Some || b.Route != want[i+1].Route {
								t.Errorf("second %d: of a part there is %+v", second, b)
							}
						case b.Some && b.Reading == want[i+1].Reading:
							readings++
						default:
							t.Errorf("second %d: %+v, want %+v", second, b, want[i+1])
						}
					}
				}
				for second := range 40 {
					if x.pass(40, 0.3); second > 15 {
						look(second)
					}
				}
				if readings > 0 || parts == 0 {
					t.Errorf("while it is of another configuration there are %d readings, and %d of a part", readings, parts)
				}
				parts = 0
				if how == "a reload" {
					old.live.SetBudgets(cfg.Budget, cfg.RouteBudgets, cfg.Rules)
				} else {
					delete(x.members, "a")
					c := &fleet{t: t, cfg: cfg, committed: slices.Clone(old.committed), store: store, logs: x.logs, absent: map[int]bool{1: true}}
					c.cfg.Writer = store
					c.start()
					t.Cleanup(c.kill)
					x.members["c"] = c
					for seconds := 0; len(x.sum().Missing) > 0; seconds++ {
						if x.pass(40, 0.3); seconds == 20 {
							t.Fatal("it is not taken over")
						}
					}
					x.pass(40, 0.3)
					x.pass(40, 0.3)
				}
				for second := range 320 {
					x.pass(40, 0.3)
					look(second)
				}
				if readings == 0 || how == "a reload" && parts > 0 || parts > 4*300 {
					t.Errorf("there are %d readings, and %d of a part", readings, parts)
				}
			})
		})
	}
}

// tellSecond tells of a second with one second of work.
func tellSecond(t *testing.T, f *Fleet, member string, at, read int64) {
	t.Helper()
	s := new(aggregate.Sums)
	s.Add(&aggregate.Beat{Busy: 1e9})
	state := binary.AppendVarint([]byte{toldVersion, 1, 0}, read)
	if err := f.Hear(member, &Told{ToldSecond, "log/0", at, s.AppendSums(appendName(state, routeName{"seats", ""}))}); err != nil {
		t.Fatal(err)
	}
}

// The clock of an instance is fast, so that it takes its partition to be further than it is
// while nothing comes. When another counts the partition the windows are of what comes
// there, and not of nothing.
func TestFleetAfterAFastClock(t *testing.T) {
	f := NewFleet()
	state := func(head int64) []ScopeState {
		return []ScopeState{{Scope: "log/0", Rules: 1, Head: head, From: noTick, Closed: noTick}}
	}
	m := budget.DefaultModel(budget.DefaultRatio())
	for at := range int64(100) {
		tellSecond(t, f, "fast", at, at)
	}
	f.HearStates("fast", state(1000), nil)
	for at := int64(90); at < 200; at++ {
		tellSecond(t, f, "b", at, at)
		f.HearStates("b", state(at), nil)
		p := f.Picture(state(at), []string{"log/0"}, 0, m, nil)
		if at < 99 { // what the one before told goes on
			continue
		}
		w := p.Dependencies[0].Windows[0]
		if w.To != at+1 || w.Total.BusySeconds != 10 || len(p.Missing) > 0 {
			t.Fatalf("at %d there are %v s of work in the ten seconds up to %d", at, w.Total.BusySeconds, w.To)
		}
	}
}

// One that is dead has told of a second of which nothing is left: what was in it came again
// in another one. Whoever counts now, and has read as far, has nothing to tell of it.
func TestFleetForgetsWhatCameAgain(t *testing.T) {
	f := NewFleet()
	m := budget.DefaultModel(budget.DefaultRatio())
	work := func(first, read int64) float64 {
		b := []ScopeState{{Scope: "log/0", Rules: 1, First: first, Read: read, Head: 56, From: noTick, Closed: noTick}}
		f.HearStates("b", b, nil)
		return f.Picture(b, []string{"log/0"}, 0, m, nil).Dependencies[0].Windows[0].Total.BusySeconds
	}
	f.HearStates("dead", []ScopeState{{Scope: "log/0", Rules: 1, Read: 10, Head: 52, From: noTick, Closed: noTick}}, nil)
	tellSecond(t, f, "dead", 50, 9)
	tellSecond(t, f, "dead", 51, 10)
	tellSecond(t, f, "b", 51, 10) // of both, the first stays
	tellSecond(t, f, "b", 56, 20)
	if got := work(40, 8); got != 3 {
		t.Errorf("before it has read as far there are %v s of work, want 3", got)
	}
	if got := work(50, 20); got != 3 {
		t.Errorf("what it may have begun in the midst of counts no more: %v s of work, want 3", got)
	}
	if got := work(40, 20); got != 2 {
		t.Errorf("there are %v s of work, want 2", got)
	}
}

// A logger tells of a request when it begins and when it ends. With the second record the
// first is none any more, in an earlier second: of these the newest word counts, and not
// that with the most arrivals. So it does of two instances that have read the partition.
func TestFleetOfRecordsThatReplaceOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTelling(t, 2)
		x.cfg.Sources = slices.Clone(x.cfg.Sources)
		x.cfg.Sources[0].Parser.Format = "envoy-json"
		x.cfg.Lateness = 20 * time.Second // the ticks of both are that of the start
		x.whole.kill()
		x.whole = x.daemon(newRowStore())
		store := newRowStore()
		a := x.daemon(store, 0)
		x.members["a"], x.members["b"] = a, x.daemon(store, 1)
		var starts []time.Time
		second := func() {
			starts = append(starts, noon.Add(time.Since(x.begun)).Add(100*time.Millisecond))
			for i := range x.logs {
				line := func(kind string, request, n int, took time.Duration) {
					x.logs[i].lines = append(x.logs[i].lines, fmt.Sprintf(`{"start_time":%q,"access_log_type":%q,"stream_id":"s-%d-%d-%d","method":"GET","path":"/seats/7","response_code":200,"response_flags":"-","bytes_sent":1,"duration":%d,"question_key":"-"}`,
						starts[request].Format("2006-01-02T15:04:05.000Z"), kind, i, request, n, took.Milliseconds()))
				}
				newest := len(starts) - 1
				for n := range 20 {
					if ended := newest - 2; ended >= 0 {
						line("DownstreamEnd", ended, n, starts[newest].Sub(starts[ended]))
					}
					line("DownstreamStart", newest, n, 0)
				}
			}
			x.pass(0, 0)
		}
		equal := func(at string) {
			x.equalWindows(at, &x.sum().Dependencies[0], &x.whole.live.Picture().Dependencies[0])
		}
		for i := range 30 {
			if second(); i > 2 {
				equal(fmt.Sprint("second ", i))
			}
		}
		// It is taken over, and goes on all the same, a part behind.
		delete(x.members, "a")
		c := &fleet{t: t, cfg: a.cfg, committed: slices.Clone(a.committed), store: store, logs: x.logs, absent: map[int]bool{1: true}}
		c.start()
		t.Cleanup(c.kill)
		x.members["c"] = c
		for i := range 20 {
			second()
			if x.tell("a", a); len(x.sum().Missing) == 0 && i > 8 {
				equal(fmt.Sprint("taken over, second ", i))
			}
		}
		if len(x.sum().Missing) > 0 {
			t.Error("it is not taken over")
		}
	})
}
