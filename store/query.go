package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/targetside/auditor/aggregate"
)

// check returns an error for a query that cannot be answered exactly.
func (q *Query) check() (int, error) {
	i := level(q.Resolution)
	switch {
	case i < 0:
		return 0, fmt.Errorf("store: rows of %d s are not kept; there are %d, %d, %d and %d", q.Resolution, Tick, TenSeconds, Minute, Hour)
	case q.Family > ByPeer:
		return 0, fmt.Errorf("store: family %d is not known", q.Family)
	case q.From%int64(q.Resolution) != 0 || q.To%int64(q.Resolution) != 0:
		return 0, fmt.Errorf("store: %d to %d are no bounds of rows of %d s", q.From, q.To, q.Resolution)
	}
	return i, nil
}

func (q *Query) matches(s *series) bool {
	return s.family == q.Family && (q.Dependency == "" || s.dependency == q.Dependency) &&
		(q.Route == "" || s.route == q.Route) && (q.Name == "" || s.name == q.Name)
}

// found collects the rows of a query's answer, which must come in order of time
// and series.
type found struct {
	q      *Query
	closed func(scope string) int64
	last   key
	rows   []Row
	series []int64 // of each row
}

// add takes one row at rest. In roll-ups what was on time and what was late of one
// series become one row here.
func (f *found) add(k key, s *series, v *value) error {
	c, err := aggregate.DecodeCounts(v.counts)
	if err != nil {
		return fmt.Errorf("row at %d of series %d: %w", k.at, k.series, err)
	}
	if f.q.Resolution != Tick {
		k.late = OnTime
		if len(f.rows) > 0 && f.last == k {
			r := &f.rows[len(f.rows)-1]
			r.Counts.Merge(c)
			r.Rules = max(r.Rules, v.rules)
			r.Version += v.version
			return nil
		}
	}
	if len(f.rows) >= f.q.Limit {
		return fmt.Errorf("%w: at most %d", ErrTooMany, f.q.Limit)
	}
	f.last, f.series = k, append(f.series, k.series)
	f.rows = append(f.rows, Row{
		Family: s.family, At: k.at, Scope: s.scope, LateBlock: k.late, Dependency: s.dependency, Route: s.route, Name: s.name,
		Wide: s.wide, Rules: v.rules, Version: v.version, Open: v.open && k.at >= f.closed(s.scope), Counts: c,
	})
	return nil
}

// pending puts rows of an hour together that are not made yet.
type pending map[key]*sum

// add adds a row of a minute.
func (p pending) add(k key, v *value) error {
	in := key{floor(k.at, resolutions[hourLevel]), k.series, k.part()}
	if p[in] == nil {
		p[in] = new(sum)
	}
	return p[in].add(hourLevel-1, k.at, v)
}

// addPending adds them to the rows of hours, by series.
func (f *found) addPending(p pending, of func(series int64) *series) error {
	for _, k := range slices.SortedFunc(maps.Keys(p), compareKeys) {
		p[k].value.counts = p[k].counts.Append(nil)
		if err := f.add(k, of(k.series), &p[k].value); err != nil {
			return err
		}
	}
	return nil
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.series, b.series), cmp.Compare(a.late, b.late))
}

// sorted returns the rows in the order that Store.Rows promises. Names are compared
// once for each series, and not for each row.
func (f *found) sorted() []Row {
	of := map[int64]*Row{}
	for i, id := range f.series {
		of[id] = &f.rows[i]
	}
	ids := slices.SortedFunc(maps.Keys(of), func(x, y int64) int {
		a, b := of[x], of[y]
		return cmp.Or(cmp.Compare(a.Dependency, b.Dependency), cmp.Compare(a.Route, b.Route), cmp.Compare(a.Name, b.Name),
			compareBool(a.Wide, b.Wide), cmp.Compare(a.Scope, b.Scope))
	})
	rank := map[int64]int{}
	for i, id := range ids {
		rank[id] = i
	}
	type place struct {
		at, late int64
		rank, i  int
	}
	order := make([]place, len(f.rows))
	for i := range f.rows {
		order[i] = place{f.rows[i].At, f.rows[i].LateBlock, rank[f.series[i]], i}
	}
	slices.SortFunc(order, func(a, b place) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.rank != b.rank:
			return cmp.Compare(a.rank, b.rank)
		}
		return cmp.Compare(a.late, b.late)
	})
	out := make([]Row, len(order))
	for i, p := range order {
		out[i] = f.rows[p.i]
	}
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
