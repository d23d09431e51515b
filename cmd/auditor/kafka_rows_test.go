//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/keys"
	"github.com/targetside/auditor/store"
)

// What daemons that share nothing but a topic have at rest, taken together.

// rowName is all that names a row.
type rowName struct {
	family                    store.Family
	at, late                  int64
	scope, dep, route, origin string
	wide                      bool
}

// union is the rows of several stores: of two with one name the one with the higher
// rules, and then the higher version.
type union struct {
	t      *testing.T
	rows   map[rowName]*store.Row
	closed map[string]int64
	same   int // that more than one store has
	newer  int // of them, in another version
	writes map[string]int
}

func newUnion(t *testing.T) *union {
	return &union{t: t, rows: map[rowName]*store.Row{}, closed: map[string]int64{}, writes: map[string]int{}}
}

// addFile takes in the ticks from up to to, not included, of a SQLite store.
func (u *union) addFile(database string, from, to int64) {
	u.t.Helper()
	s, err := store.OpenSQLite(context.Background(), database)
	if err != nil {
		u.t.Fatal(err)
	}
	defer s.Close()
	u.add(database, s, from, to)
}

// add takes in the ticks from up to to, not included, of a store that has a name.
func (u *union) add(database string, s store.Store, from, to int64) {
	u.t.Helper()
	ctx := context.Background()
	closed, err := s.Closed(ctx)
	if err != nil {
		u.t.Fatal(err)
	}
	for scope, at := range closed {
		u.closed[scope] = max(u.closed[scope], at)
	}
	for _, family := range []store.Family{store.ByOriginator, store.ByPeer} {
		rows, err := s.Rows(ctx, store.Query{Family: family, Resolution: store.Tick, From: from, To: to, Limit: 10_000_000})
		if err != nil {
			u.t.Fatal(err)
		}
		for i := range rows {
			r := &rows[i]
			u.writes[database]++
			name := rowName{r.Family, r.At, r.LateBlock, r.Scope, r.Dependency, r.Route, r.Name, r.Wide}
			old := u.rows[name]
			if old == nil {
				u.rows[name] = r
				continue
			}
			u.same++
			switch {
			case old.Rules == r.Rules && old.Version == r.Version:
				if !bytes.Equal(old.Counts.Append(nil), r.Counts.Append(nil)) {
					u.t.Errorf("row %+v has two contents in version %d:\n%s\n%s", name, r.Version, brief(old.Counts), brief(r.Counts))
				}
				continue
			case old.Rules < r.Rules || old.Rules == r.Rules && old.Version < r.Version:
				u.rows[name] = r
			}
			if u.newer++; r.LateBlock == store.OnTime { // all of its records were read before it was written
				u.t.Errorf("row %+v has two versions, of %d records and %d:\n%s\n%s", name, old.Version, r.Version, brief(old.Counts), brief(r.Counts))
			}
		}
	}
}

func brief(c *aggregate.Counts) string {
	t := c.Totals()
	return fmt.Sprintf("%d arrivals, %d originals, %d repeats, %d unattributable", t.Arrivals, t.Originals, t.Repeats, t.Unattributable.Total)
}

// newest drops what the newest rules of a scope's tick do not have.
func (u *union) newest() {
	type tick struct {
		scope string
		at    int64
	}
	rules := map[tick]uint32{}
	for n, r := range u.rows {
		rules[tick{n.scope, n.at}] = max(rules[tick{n.scope, n.at}], r.Rules)
	}
	for n, r := range u.rows {
		if r.Rules < rules[tick{n.scope, n.at}] {
			delete(u.rows, n)
		}
	}
}

// measure adds the rows of a family up as the API does, over a range.
func (u *union) measure(family store.Family, from, to int64) aggregate.Measure {
	whole := &sums{byPeer: family == store.ByPeer}
	for n, r := range u.rows {
		if n.family == family {
			whole.add(r, r.At-from)
		}
	}
	return whole.measure(to-from, aggregate.Number(1))
}

// equals holds the rows against the truth, count for count.
func (u *union) equals(t *kafkaTruth) {
	u.t.Helper()
	from, to := t.firstTick, t.lastTick+1
	m := u.measure(store.ByOriginator, from, to)
	type figure struct {
		name      string
		got, want uint64
	}
	reason := func(r keys.Reason) uint64 { return m.Unattributable.Reasons[r] }
	known := []keys.Reason{keys.Absent, keys.Malformed, keys.Forged, keys.UnknownOriginator, keys.Expired, keys.NotYetValid, keys.Late}
	others := uint64(0)
	for r, n := range m.Unattributable.Reasons {
		if !slices.Contains(known, keys.Reason(r)) {
			others += n
		}
	}
	for _, f := range []figure{
		{"arrivals", m.Arrivals, t.arrivals},
		{"arrivals by peer", u.measure(store.ByPeer, from, to).Arrivals, t.arrivals},
		{"verified", m.Verified, t.verified},
		{"claimed", m.Claimed, t.claimed},
		{"absent", reason(keys.Absent), t.absent},
		{"malformed", reason(keys.Malformed), t.malformed},
		{"forged", reason(keys.Forged), t.forged},
		{"unknown_originator", reason(keys.UnknownOriginator), t.unknown},
		{"expired", reason(keys.Expired), t.expired},
		{"not_yet_valid", reason(keys.NotYetValid), t.notYet},
		{"late", reason(keys.Late), t.late},
		{"other reasons", others, 0},
		{"originals", m.Originals, t.originals},
		{"repeats", m.Repeats, t.repeats},
		{"distinct questions", m.Questions, t.originals},
		{"success", m.Responses.Success, t.success},
		{"disconnected", m.Responses.Disconnected, t.gone},
	} {
		if f.got != f.want {
			u.t.Errorf("%s: %d at rest, %d in truth (%+d)", f.name, f.got, f.want, int64(f.got-f.want))
		}
	}
	if u.t.Failed() {
		u.where(t)
	}
}

// where logs the ticks in which rows and truth differ.
func (u *union) where(t *kafkaTruth) {
	got := map[int64]*[4]uint64{}
	for n, r := range u.rows {
		if n.family != store.ByOriginator || n.wide {
			continue
		}
		x := got[n.at]
		if x == nil {
			x = new([4]uint64)
			got[n.at] = x
		}
		c := r.Counts.Totals()
		for i, v := range []uint64{c.Arrivals, c.Originals, c.Repeats, c.Unattributable.Reasons[keys.Late]} {
			x[i] += v
		}
	}
	told := 0
	for at := t.firstTick; at <= t.lastTick && told < 40; at++ {
		var g, w [4]uint64
		if got[at] != nil {
			g = *got[at]
		}
		if t.byTick[at] != nil {
			w = *t.byTick[at]
		}
		if g != w {
			told++
			u.t.Logf("tick %d (second %d): arrivals, originals, repeats, late at rest %v, in truth %v", at, at-t.firstTick, g, w)
		}
	}
}
