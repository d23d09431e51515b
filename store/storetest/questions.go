package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/store"
)

// question is one from base + first to base + last, in seconds.
func question(first, last float64, arrivals uint32) store.Question {
	at := func(seconds float64) time.Time { return time.Unix(base, int64(seconds*1e9)).UTC() }
	return store.Question{
		KeyHash: [16]byte{1, 0, 255}, Lot: 1 << 31, Scope: "s", Dependency: "seats", Route: "GET /", Originator: "web", Peers: []string{"a", `b"`},
		First: at(first), Last: at(last), Arrivals: arrivals,
	}
}

func (s *suite) ask(list ...store.Question) {
	s.Helper()
	for _, q := range list {
		s.write(&store.Write{Scope: q.Scope, Rules: 1, Questions: []store.Question{q}, Horizon: 2 * time.Minute})
	}
}

func (s *suite) questions() {
	q := question(0.123456789, 5.5, 3)
	check := func(limit int, want ...store.Question) {
		s.Helper()
		got, err := s.store.Questions(ctx, q.KeyHash, limit)
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			s.Errorf("questions are\n%+v, %v; want\n%+v", got, err, want)
		}
	}
	check(10)
	s.ask(q)
	s.ask(q, q)
	check(10, q)
	// Known by its last arrival: the whole replaces what was seen in part, and not the
	// other way round, whatever rules it was read by.
	part, whole := question(3, 5.5, 2), question(-900, 5.5, 9)
	whole.Peers = []string{"a"}
	s.ask(part)
	check(10, q)
	s.ask(whole)
	s.ask(part, q)
	s.write(&store.Write{Scope: "s", Rules: 7, Questions: []store.Question{q}})
	check(10, whole)
	other, lot, scope, later := q, q, q, question(3600, 3600, 1)
	other.Route, lot.Lot, scope.Scope = "POST /", 5<<28, "t"
	s.ask(other, lot, scope, later)
	check(10, later, lot, other, scope, whole)
	check(1, later)
	check(0)
	if got, err := s.store.Questions(ctx, [16]byte{2}, 10); err != nil || len(got) != 0 {
		s.Errorf("an unknown key gives %v, %v", got, err)
	}
	s.expire(base + 24*3600 + 15)
	check(10, later)
	s.expire(base + 26*3600)
	check(10)
}

func (s *suite) worstQuestions() {
	r := rand.New(rand.NewPCG(1, 81))
	var all []store.Question
	for i := range 300 {
		at := float64(r.IntN(1000))
		q := question(at-10, at, uint32(1+r.IntN(9)))
		q.KeyHash[0], q.KeyHash[1] = byte(i), byte(i>>8)
		q.Dependency, q.Route, q.Originator = fmt.Sprint("d", r.IntN(2)), fmt.Sprint("r", r.IntN(3)), fmt.Sprint("o", r.IntN(2))
		all = append(all, q)
	}
	s.write(&store.Write{Scope: "s", Rules: 1, Questions: all})
	at := func(seconds int64) time.Time { return time.Unix(base+seconds, 0) }
	for _, q := range []store.QuestionQuery{
		{From: at(0), To: at(1000), Limit: 1000},
		{From: at(100), To: at(900), Limit: 20},
		{From: at(0), To: at(1000), Dependency: "d1", Limit: 7},
		{From: at(0), To: at(1000), Dependency: "d0", Route: "r2", Originator: "o1", Limit: 100},
		{From: at(0), To: at(1000), Route: "no such", Limit: 100},
		{From: at(500), To: at(500), Limit: 100},
		{From: at(0), To: at(1000)},
	} {
		var want []store.Question
		for _, x := range all {
			if !x.Last.Before(q.From) && x.Last.Before(q.To) && (q.Dependency == "" || q.Dependency == x.Dependency) &&
				(q.Route == "" || q.Route == x.Route) && (q.Originator == "" || q.Originator == x.Originator) {
				want = append(want, x)
			}
		}
		slices.SortFunc(want, func(a, b store.Question) int {
			if a.Arrivals != b.Arrivals {
				return int(b.Arrivals) - int(a.Arrivals)
			}
			if c := a.Last.Compare(b.Last); c != 0 {
				return c
			}
			return slices.Compare(a.KeyHash[:], b.KeyHash[:])
		})
		want = want[:min(len(want), q.Limit)]
		q.Among = len(all)
		got, err := s.store.WorstQuestions(ctx, q)
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			s.Errorf("%+v gives %d, %v; want %d", q, len(got), err, len(want))
		}
	}
}

// A question that was seen in part before is what it is now, also for whoever asks by
// what it no longer says.
func (s *suite) worstReplacedQuestions() {
	before, now := question(0, 1, 2), question(0, 1, 5)
	before.Originator, now.Originator = "before", "now"
	s.ask(before)
	s.ask(now)
	for originator, want := range map[string]int{"before": 0, "now": 1, "": 1} {
		q := store.QuestionQuery{From: time.Unix(base, 0), To: time.Unix(base+3, 0), Originator: originator, Limit: 10, Among: 10}
		got, err := s.store.WorstQuestions(ctx, q)
		if err != nil || len(got) != want || want > 0 && !reflect.DeepEqual(got[0], now) {
			s.Errorf("originator %q gives %v, %v; want %d", originator, got, err, want)
		}
	}
}

func (s *suite) tooManyQuestions() {
	s.ask(question(0, 1, 1), question(0, 2, 1), question(0, 3, 1))
	q := store.QuestionQuery{From: time.Unix(base, 0), To: time.Unix(base+3, 0), Dependency: "other", Limit: 1, Among: 2}
	if got, err := s.store.WorstQuestions(ctx, q); err != nil || len(got) != 0 {
		s.Errorf("among as many as may be: %v, %v", got, err)
	}
	q.To = q.To.Add(1)
	if got, err := s.store.WorstQuestions(ctx, q); !errors.Is(err, store.ErrTooMany) || got != nil {
		s.Errorf("among more than may be: %v, %v", got, err)
	}
}

func (s *suite) splits() {
	drawn := func(first, last float64) store.Question {
		q := question(first, last, 2)
		q.Lot = 1<<32/aggregate.DrawnOneIn - 1
		return q
	}
	in := func(scope, dependency string, q store.Question) store.Question {
		q.Scope, q.Dependency = scope, dependency
		return q
	}
	check := func(from, to int64, want ...string) {
		s.Helper()
		got, err := s.store.Splits(ctx, base+from, base+to)
		if err != nil || !slices.Equal(got, want) {
			s.Errorf("split from %d to %d are %q, %v; want %q", from, to, got, err, want)
		}
	}
	// None of these is one question in two scopes: the same again, as another scope
	// took over; another route, lot, key or dependency; one that is not drawn; one
	// more than a horizon later.
	s.ask(in("p/0", "a", drawn(0, 10)), in("p/0", "a", drawn(0, 10)), in("all", "a", drawn(5, 10)), in("p/0", "a", drawn(200, 210)))
	route, lot, key, other, far := drawn(1, 11), drawn(1, 11), drawn(1, 11), question(1, 11, 2), drawn(10+120.001, 140)
	route.Route, lot.Lot, key.KeyHash = "POST /", lot.Lot-1, [16]byte{9}
	for _, q := range []store.Question{route, lot, key, other} {
		s.ask(in("p/1", "a", q))
	}
	s.ask(in("p/1", "b", drawn(1, 11)))
	plain := question(1, 12, 2)
	s.ask(in("p/0", "c", plain), in("p/1", "c", plain), in("p/0", "d", drawn(0, 10)), in("p/1", "d", far))
	check(-3600, 3600)
	// Without a horizon nothing is compared.
	s.write(&store.Write{Scope: "p/1", Rules: 1, Questions: []store.Question{in("p/1", "a", drawn(1, 11))}})
	check(-3600, 3600)

	s.ask(in("p/1", "a", drawn(1, 11.5)))
	check(0, 60, "a")
	check(-3600, 0)
	check(60, 3600)
	s.ask(in("p/1", "a", drawn(1, 11.5)), in("p/2", "b", drawn(11+120, 179)))
	check(30, 60, "a")
	check(0, 121, "a", "b")
	check(120, 121, "b")
	s.expire(base + 24*3600 + 125)
	check(-3600, 3600, "b")
	s.expire(base + 26*3600)
	check(-3600, 3600)
}
