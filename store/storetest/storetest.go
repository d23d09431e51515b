// Package storetest holds what every store must do as tests, and a store that
// fails when told to. Only tests import it.
//
// The truth that stores are held to is not a store's: rows of every resolution are
// counted directly, by package aggregate, from the same arrivals.
package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/store"
)

// Run holds a store to the contract of package store. open makes an empty one,
// which Run closes.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, test := range []struct {
		name string
		run  func(*suite)
	}{
		{"a higher version replaces, whichever comes last", (*suite).versions},
		{"what is equal changes nothing", (*suite).equalVersion},
		{"rows of all names are kept apart", (*suite).names},
		{"open rows are closed by closing", (*suite).open},
		{"higher rules replace a tick as a whole", (*suite).higherRules},
		{"higher rules replace late blocks as a whole", (*suite).lateBlocks},
		{"a late owner of lower rules changes nothing", (*suite).zombies},
		{"writes of two owners in any order", (*suite).anyOrder},
		{"roll-ups are what counting at their resolution gives", (*suite).rollUps},
		{"distinct questions of any range", (*suite).distinct},
		{"open buckets have no roll-ups", (*suite).openBuckets},
		{"late rows remake closed buckets", (*suite).lateAfterClosing},
		{"late rows of before the first tick", (*suite).lateBeforeAll},
		{"rows expire and their roll-ups stay exact", (*suite).retention},
		{"what is not rolled up does not expire", (*suite).lagging},
		{"what is not closed does not expire beside what is old", (*suite).lateAndOpen},
		{"what nobody works on expires", (*suite).abandoned},
		{"closed ticks", (*suite).closedTicks},
		{"notes", (*suite).notes},
		{"counted ranges", (*suite).ranges},
		{"questions", (*suite).questions},
		{"the worst questions of a range", (*suite).worstQuestions},
		{"the worst questions of what was replaced", (*suite).worstReplacedQuestions},
		{"too many questions to find the worst of", (*suite).tooManyQuestions},
		{"questions in two scopes", (*suite).splits},
		{"rules are taken once", (*suite).nextRules},
		{"positions", (*suite).positions},
		{"shares of a fleet", (*suite).shares},
		{"limits", (*suite).limits},
		{"filters and order", (*suite).filters},
		{"writes that nobody can keep", (*suite).refused},
		{"a refused write leaves nothing", (*suite).atomic},
		{"empty writes", (*suite).empty},
		{"names of all kinds", (*suite).strangeNames},
		{"cancelled calls", (*suite).cancelled},
		{"calls from many goroutines", (*suite).concurrent},
		{"closed stores", (*suite).closing},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { _ = s.Close() })
			test.run(&suite{T: t, store: s, fresh: open})
		})
	}
}

// suite is one test with its store.
type suite struct {
	*testing.T
	store store.Store
	fresh func(*testing.T) store.Store
}

var ctx = context.Background()

// everything is a limit that no test comes near.
const everything = 1 << 20

// base is a whole hour.
const base = 1_795_000_000 / 3600 * 3600

func (s *suite) write(w *store.Write) {
	s.Helper()
	if err := s.store.Write(ctx, w); err != nil {
		s.Fatal(err)
	}
}

// rows returns the rows of a resolution, of both families.
func (s *suite) rows(r store.Resolution) []store.Row {
	s.Helper()
	var out []store.Row
	for _, f := range []store.Family{store.ByOriginator, store.ByPeer} {
		got, err := s.store.Rows(ctx, store.Query{Family: f, Resolution: r, From: 0, To: base * 2, Limit: everything})
		if err != nil {
			s.Fatal(err)
		}
		out = append(out, got...)
	}
	return out
}

// row is a row of one route by one originator, on time.
func row(at int64, name string, rules uint32, version uint64, arrivals int) store.Row {
	return store.Row{
		At: at, Scope: "s", LateBlock: store.OnTime, Dependency: "seats", Route: "GET /seats", Name: name,
		Rules: rules, Version: version, Counts: arrived(at, arrivals),
	}
}

func lateRow(at, block int64, rules uint32, version uint64, arrivals int) store.Row {
	r := row(at, "", rules, version, arrivals)
	r.LateBlock = block
	return r
}

// arrived are the counts of some arrivals in a tick.
func arrived(at int64, n int) *aggregate.Counts {
	var in []aggregate.Arrival
	for i := range n {
		in = append(in, arrival(at*second+int64(i)))
	}
	c := new(aggregate.Counts)
	for _, r := range ledger(in, 1, false) {
		if r.View == 0 {
			c.Merge(r.Counts)
		}
	}
	return c
}

func write(rules uint32, closed int64, rows ...store.Row) *store.Write {
	return &store.Write{Scope: "s", Rules: rules, Closed: closed, Rows: rows}
}

// brief is a row in few words: its time, name, late block, rules, version and how
// many arrivals it has.
func brief(rows []store.Row) []string {
	var out []string
	for _, r := range rows {
		s := fmt.Sprintf("%d %q %d r%d v%d: %d", r.At-base, r.Name, r.LateBlock, r.Rules, r.Version, r.Counts.Totals().Arrivals)
		if r.Open {
			s += " open"
		}
		out = append(out, s)
	}
	return out
}

// want compares the rows of a resolution with what they should be in brief.
func (s *suite) want(r store.Resolution, want ...string) {
	s.Helper()
	if got := brief(s.rows(r)); !slices.Equal(got, want) {
		s.Errorf("rows of %d s are\n%q, want\n%q", r, got, want)
	}
}

// name is everything that names a row of one resolution.
type name struct {
	family                         store.Family
	at, late                       int64
	scope, dependency, route, name string
	wide                           bool
}

func nameOf(r *store.Row) name {
	return name{r.Family, r.At, r.LateBlock, r.Scope, r.Dependency, r.Route, r.Name, r.Wide}
}

// encoded are rows by name, as bytes.
func (s *suite) encoded(rows []store.Row) map[name]string {
	s.Helper()
	out := map[name]string{}
	for i := range rows {
		n := nameOf(&rows[i])
		if _, twice := out[n]; twice {
			s.Errorf("%+v comes twice", n)
		}
		out[n] = string(rows[i].Counts.Append(nil))
	}
	return out
}

// same compares rows by name.
func (s *suite) same(what string, got, want map[name]string) {
	s.Helper()
	for n := range want {
		if _, ok := got[n]; !ok {
			s.Fatalf("%s: %+v is missing (%d of %d rows are there)", what, n, len(got), len(want))
		}
		if got[n] != want[n] {
			s.Fatalf("%s: the counts of %+v are\n%x, want\n%x", what, n, got[n], want[n])
		}
	}
	for n := range maps.Keys(got) {
		if _, ok := want[n]; !ok {
			s.Fatalf("%s: %+v should not be there", what, n)
		}
	}
}
