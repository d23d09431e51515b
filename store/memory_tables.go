package store

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"time"
)

// memoryTables are the tables of a Memory whose lock is held. Nothing that is
// written through them can fail, so that there is nothing to take back.
type memoryTables struct{ m *Memory }

func (t memoryTables) state(scope string) (*state, error) {
	if was := t.m.states[scope]; was != nil {
		return was.clone(), nil
	}
	return newState(), nil
}

func (t memoryTables) setState(scope string, s *state) error {
	t.m.states[scope] = s
	return nil
}

func (t memoryTables) series(s series) (int64, error) {
	id, ok := t.m.ids[s]
	if !ok {
		id = int64(len(t.m.names))
		t.m.names = append(t.m.names, s)
		t.m.ids[s] = id
	}
	return id, nil
}

func (t memoryTables) put(level int, k key, v *value, always bool) (bool, error) {
	if was, ok := t.m.rows[level][k.at][k]; ok && !always && !v.newer(&was) {
		return false, nil
	}
	own := *v
	own.counts = bytes.Clone(v.counts)
	if t.m.rows[level][k.at] == nil {
		t.m.rows[level][k.at] = map[key]value{}
	}
	t.m.rows[level][k.at][k] = own
	return true, nil
}

func (t memoryTables) remove(level int, k key) error {
	delete(t.m.rows[level][k.at], k)
	return nil
}

func (t memoryTables) clear(level int, scope string, from, to int64) error {
	for _, k := range t.m.keys(level, from, to, t.in(scope)) {
		delete(t.m.rows[level][k.at], k)
	}
	return nil
}

func (t memoryTables) in(scope string) func(key) bool {
	return func(k key) bool { return t.m.names[k.series].scope == scope }
}

func (t memoryTables) dropTicks(scope string, from, to int64, below uint32, each func(key)) error {
	t.drop(t.m.keys(0, from, to, t.in(scope)), below, each)
	return nil
}

func (t memoryTables) dropBlock(scope string, block int64, below uint32, each func(key)) error {
	t.drop(t.blockKeys(scope, block), below, each)
	return nil
}

func (t memoryTables) blockKeys(scope string, block int64) []key {
	return t.m.keys(0, never, math.MaxInt64, func(k key) bool { return k.late == block && t.m.names[k.series].scope == scope })
}

func (t memoryTables) drop(keys []key, below uint32, each func(key)) {
	for _, k := range keys {
		if t.m.rows[0][k.at][k].rules < below {
			delete(t.m.rows[0][k.at], k)
			each(k)
		}
	}
}

func (t memoryTables) tickRules(scope string, at int64) (uint32, error) {
	return t.highest(t.m.keys(0, at, at+1, func(k key) bool { return k.late == OnTime && t.m.names[k.series].scope == scope })), nil
}

func (t memoryTables) blockRules(scope string, block int64) (uint32, error) {
	return t.highest(t.blockKeys(scope, block)), nil
}

func (t memoryTables) highest(keys []key) (rules uint32) {
	for _, k := range keys {
		rules = max(rules, t.m.rows[0][k.at][k].rules)
	}
	return rules
}

func (t memoryTables) rows(level int, scope string, from, to int64, each func(key, *value) error) error {
	return t.report(level, t.m.keys(level, from, to, t.in(scope)), each)
}

func (t memoryTables) someRows(level int, scope string, from, to, after int64, n int, each func(key, *value) error) (int64, error) {
	last := int64(0)
	for id := after + 1; id < int64(len(t.m.names)) && n > 0; id++ {
		if t.m.names[id].scope == scope {
			last = id
			n--
		}
	}
	in := func(k key) bool { return k.series > after && k.series <= last && t.m.names[k.series].scope == scope }
	return last, t.report(level, t.m.keys(level, from, to, in), each)
}

func (t memoryTables) first(level int, scope string, from, to int64) (int64, error) {
	for _, k := range t.m.keys(level, from, to, t.in(scope)) {
		to = min(to, k.at)
	}
	return to, nil
}

func (t memoryTables) rowsOf(level int, series, part, from, to int64, each func(key, *value) error) error {
	return t.report(level, t.m.keys(level, from, to, func(k key) bool { return k.series == series && k.part() == part }), each)
}

func (t memoryTables) report(level int, keys []key, each func(key, *value) error) error {
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.series, b.series), cmp.Compare(a.part(), b.part()), cmp.Compare(a.at, b.at))
	})
	for _, k := range keys {
		v := t.m.rows[level][k.at][k]
		if err := each(k, &v); err != nil {
			return err
		}
	}
	return nil
}

func (t memoryTables) question(q *Question) error {
	id := questionID{q.KeyHash, q.Lot, q.Scope, q.Dependency, q.Route, q.Last.UnixNano()}
	if was, ok := t.m.questions[id]; ok && q.Arrivals <= was.Arrivals {
		return nil
	}
	own := *q
	own.First, own.Last, own.Peers = q.First.UTC().Round(0), q.Last.UTC().Round(0), slices.Clone(q.Peers)
	t.m.questions[id] = own
	return nil
}

func (t memoryTables) elsewhere(q *Question, within time.Duration) (bool, error) {
	for _, x := range t.m.questions {
		if q.splits(&x, within) {
			return true, nil
		}
	}
	return false, nil
}

func (t memoryTables) split(dependency string, at int64) error {
	t.m.splits[splitID{dependency, at}] = true
	return nil
}

func (t memoryTables) count(r Range) error {
	t.m.counted[r.Partition] = addRange(t.m.counted[r.Partition], r)
	return nil
}
