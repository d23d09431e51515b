package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// clickhouseTables are what one write sees: what is in the database, and over it what
// the write has changed. They are stored when apply is done, all at once.
type clickhouseTables struct {
	ctx    context.Context
	c      *clickhouse
	x      *scopeTurn
	w      *Write
	known  *state // of the scope, when the write began
	claim  int64
	states *state // as changed

	changed [levels]map[int64]map[key]*change
	ticks   map[int64]map[key]*row     // those that were looked for, without counts
	buckets map[bucket]map[int64][]row // rowsOf, by series, as they are in the database

	questions []Question
	drawn     []Question // in other scopes, of the keys that are drawn in this write
	splits    map[splitID]bool
	counts    map[string][]Range
}

// change is what became of a row: another value, or none.
type change struct {
	value
	deleted bool
}

// row is a row as it is read, and the claim under which it was written.
type row struct {
	key
	value
	claim uint64
}

// bucket is what rowsOf is asked for.
type bucket struct {
	level      int
	part, from int64
}

func (c *clickhouse) tables(ctx context.Context, x *scopeTurn, w *Write, known *state, claim int64) *clickhouseTables {
	t := &clickhouseTables{
		ctx: ctx, c: c, x: x, w: w, known: known, claim: claim, ticks: map[int64]map[key]*row{},
		buckets: map[bucket]map[int64][]row{}, splits: map[splitID]bool{}, counts: map[string][]Range{},
	}
	for i := range t.changed {
		t.changed[i] = map[int64]map[key]*change{}
	}
	if len(x.series) > maxNames {
		clear(x.series)
	}
	return t
}

func (t *clickhouseTables) state(string) (*state, error) { return t.known.clone(), nil }

func (t *clickhouseTables) setState(_ string, s *state) error {
	t.states = s
	return nil
}

// number is what a series is called, in all processes: 63 bits of a hash of its names.
func (s *series) number() int64 {
	h := sha256.New()
	var n [8]byte
	for _, text := range []string{s.scope, s.dependency, s.route, s.name} {
		binary.LittleEndian.PutUint64(n[:], uint64(len(text)))
		h.Write(n[:])
		h.Write([]byte(text))
	}
	h.Write([]byte{byte(s.family), strconv.FormatBool(s.wide)[0]})
	return int64(binary.LittleEndian.Uint64(h.Sum(nil))>>1) | 1 // none is 0
}

func (t *clickhouseTables) series(s series) (int64, error) {
	id := s.number()
	return id, t.learn(id, s)
}

// learn remembers what a number stands for. That two series have one is as likely as
// not among 3 thousand million of a scope.
func (t *clickhouseTables) learn(id int64, s series) error {
	if was, ok := t.x.series[id]; ok && was != s {
		return fmt.Errorf("two series have the number %d: give a route, originator or peer of scope %q another name", id, s.scope)
	}
	t.x.series[id] = s
	return nil
}

// dead says that a row of a level is of rules that higher ones have replaced in all that
// it is of. What comes from a process that did not know of these may be in the database
// all the same.
func (s *state) dead(level int, at int64, rules uint32) bool {
	for _, e := range s.eras {
		if e.rules > rules && e.covers(at) && e.covers(at+resolutions[level]-1) {
			return true
		}
	}
	return false
}

// load reads rows of a level from the database, in order of series, part and time.
// where is about the columns of the sorting key, and also about all others.
func (t *clickhouseTables) load(level int, from, to int64, where, also string, counts bool) ([]row, error) {
	var out []row
	var k key
	var v value
	s := series{scope: t.w.Scope}
	var text string
	var claim uint64
	column := "''"
	if counts {
		column = "counts"
	}
	family := uint8(0)
	err := t.c.query(t.ctx, fmt.Sprintf("SELECT at, series, late, family, dependency, route, name, wide, rules, version, open, claim, %s FROM facts FINAL "+
		"PREWHERE kind = '%s' AND at >= %d AND at < %d AND scope = %s AND %s WHERE %s ORDER BY series, late >= 0, at",
		column, kindNames[level], from, to, literal(t.w.Scope), where, also),
		[]any{&k.at, &k.series, &k.late, &family, &s.dependency, &s.route, &s.name, &s.wide, &v.rules, &v.version, &v.open, &claim, &text}, func() error {
			if t.known.dead(level, k.at, v.rules) {
				return nil
			}
			s.family = Family(family)
			v.counts = []byte(text)
			out = append(out, row{k, v, claim})
			return t.learn(k.series, s)
		})
	return out, err
}

// kindNames are the kinds of levels in SQL.
var kindNames = [levels]string{"tick", "ten_seconds", "minute", "hour"}

// always is a condition that is true.
const always = "1"

// find returns rows as they are with what has changed, in order of series, part and
// time. match says of the changed ones what the conditions say of the others.
func (t *clickhouseTables) find(level int, from, to int64, where, also string, counts bool, match func(key) bool) ([]row, error) {
	all, err := t.load(level, from, to, where, also, counts)
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(all, func(r row) bool { return t.changed[level][r.at][r.key] != nil })
	for at, rows := range t.changed[level] {
		if at < from || at >= to {
			continue
		}
		for k, v := range rows {
			if !v.deleted && match(k) {
				out = append(out, row{key: k, value: v.value})
			}
		}
	}
	slices.SortFunc(out, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.series, b.series), cmp.Compare(a.part(), b.part()), cmp.Compare(a.at, b.at), cmp.Compare(a.late, b.late))
	})
	return out, nil
}

func anyKey(key) bool { return true }

// lookFor reads the rules and versions of ticks that may be there.
func (t *clickhouseTables) lookFor(ticks []int64) error {
	top := t.known.top()
	missing := slices.DeleteFunc(slices.Clone(ticks), func(at int64) bool { return at >= top || t.ticks[at] != nil })
	if len(missing) == 0 {
		return nil
	}
	for _, at := range missing {
		t.ticks[at] = map[key]*row{}
	}
	in := literals(missing, func(at int64) string { return strconv.FormatInt(at, 10) })
	rows, err := t.load(0, slices.Min(missing), slices.Max(missing)+1, "at IN ("+in+")", always, false)
	for i := range rows {
		t.ticks[rows[i].at][rows[i].key] = &rows[i]
	}
	return err
}

func (t *clickhouseTables) put(level int, k key, v *value, always bool) (bool, error) {
	if !always {
		newer, touched, err := t.replaces(k, v)
		if err != nil || !newer {
			return touched, err
		}
	}
	own := *v
	own.counts = bytes.Clone(v.counts)
	t.change(level, k, &change{value: own})
	return true, nil
}

// replaces says whether a tick's row takes the place of what is there. What was written
// under another claim may have come when what is made of it was made already: whoever
// held that claim may have died while the row was on its way. So when it comes again
// that is made anew, also if it replaces nothing.
func (t *clickhouseTables) replaces(k key, v *value) (newer, touched bool, err error) {
	if was := t.changed[0][k.at][k]; was != nil {
		return was.deleted || v.newer(&was.value), false, nil
	}
	if err := t.lookFor([]int64{k.at}); err != nil {
		return false, false, err
	}
	was := t.ticks[k.at][k]
	if was == nil || v.newer(&was.value) {
		return true, true, nil
	}
	foreign := was.claim != uint64(t.claim)
	return foreign && !was.newer(v), foreign, nil
}

// withdraw implements withdrawer.
func (t *clickhouseTables) withdraw(k key) (bool, error) {
	if err := t.lookFor([]int64{k.at}); err != nil {
		return false, err
	}
	was := t.ticks[k.at][k]
	if was == nil || was.rules > t.w.Rules {
		return false, nil
	}
	t.change(0, k, dropped(t.w.Rules+1))
	return true, nil
}

// dropped is a tick's row that rules below some have and those do not.
func dropped(below uint32) *change { return &change{value: value{rules: below}, deleted: true} }

func (t *clickhouseTables) change(level int, k key, v *change) {
	if t.changed[level][k.at] == nil {
		t.changed[level][k.at] = map[key]*change{}
	}
	t.changed[level][k.at][k] = v
}

func (t *clickhouseTables) remove(level int, k key) error {
	t.change(level, k, &change{deleted: true})
	return nil
}

func (t *clickhouseTables) clear(level int, _ string, from, to int64) error {
	rows, err := t.find(level, from, to, always, always, false, anyKey)
	for _, r := range rows {
		t.change(level, r.key, &change{deleted: true})
	}
	return err
}

func (t *clickhouseTables) dropTicks(_ string, from, to int64, below uint32, each func(key)) error {
	rows, err := t.find(0, from, to, always, always, false, anyKey)
	t.drop(rows, below, each)
	return err
}

func (t *clickhouseTables) dropBlock(_ string, block int64, below uint32, each func(key)) error {
	rows, err := t.blockRows(block)
	t.drop(rows, below, each)
	return err
}

func (t *clickhouseTables) drop(rows []row, below uint32, each func(key)) {
	for _, r := range rows {
		if r.rules < below {
			t.change(0, r.key, dropped(below))
			each(r.key)
		}
	}
}

func (t *clickhouseTables) blockRows(block int64) ([]row, error) {
	return t.find(0, -maxTick, maxTick+1, "late = "+strconv.FormatInt(block, 10), always, false, func(k key) bool { return k.late == block })
}

func (t *clickhouseTables) tickRules(_ string, at int64) (uint32, error) {
	rows, err := t.find(0, at, at+1, "late < 0", always, false, func(k key) bool { return k.late == OnTime })
	return highestRules(rows), err
}

func (t *clickhouseTables) blockRules(_ string, block int64) (uint32, error) {
	rows, err := t.blockRows(block)
	return highestRules(rows), err
}

func highestRules(rows []row) (rules uint32) {
	for _, r := range rows {
		rules = max(rules, r.rules)
	}
	return rules
}

func (t *clickhouseTables) rows(level int, _ string, from, to int64, each func(key, *value) error) error {
	rows, err := t.find(level, from, to, always, always, true, anyKey)
	return reportRows(rows, err, each)
}

func reportRows(rows []row, err error, each func(key, *value) error) error {
	for i := 0; err == nil && i < len(rows); i++ {
		err = each(rows[i].key, &rows[i].value)
	}
	return err
}

func (t *clickhouseTables) someRows(level int, _ string, from, to, after int64, n int, each func(key, *value) error) (int64, error) {
	next := map[int64]bool{}
	var id int64
	err := t.c.query(t.ctx, fmt.Sprintf("SELECT DISTINCT series FROM facts FINAL PREWHERE kind = '%s' AND at >= %d AND at < %d AND scope = %s "+
		"WHERE series > %d ORDER BY series LIMIT %d", kindNames[level], from, to, literal(t.w.Scope), after, n), []any{&id}, func() error {
		next[id] = true
		return nil
	})
	if err != nil {
		return 0, err
	}
	for at, rows := range t.changed[level] {
		for k := range rows {
			if at >= from && at < to && k.series > after {
				next[k.series] = true
			}
		}
	}
	ids := slices.Sorted(maps.Keys(next))
	if len(ids) == 0 {
		return 0, nil
	}
	last := ids[min(n, len(ids))-1]
	rows, err := t.find(level, from, to, always, fmt.Sprintf("series > %d AND series <= %d", after, last), true,
		func(k key) bool { return k.series > after && k.series <= last })
	return last, reportRows(rows, err, each)
}

func (t *clickhouseTables) first(level int, _ string, from, to int64) (int64, error) {
	var at int64
	var n uint64
	err := t.c.one(t.ctx, fmt.Sprintf("SELECT min(at), count() FROM facts FINAL PREWHERE kind = '%s' AND at >= %d AND at < %d AND scope = %s",
		kindNames[level], from, to, literal(t.w.Scope)), &at, &n)
	if n > 0 {
		to = min(to, at)
	}
	for at, rows := range t.changed[level] {
		for _, v := range rows {
			if at >= from && !v.deleted {
				to = min(to, at)
			}
		}
	}
	return to, err
}

// rowsOf reads a whole bucket when it is first asked for one of its series: where one
// row came late others did.
func (t *clickhouseTables) rowsOf(level int, series, part, from, to int64, each func(key, *value) error) error {
	b := bucket{level, part, from}
	if t.buckets[b] == nil {
		where := "late < 0"
		if part == anyBlock {
			where = "late >= 0"
		}
		rows, err := t.load(level, from, to, where, always, true)
		if err != nil {
			return err
		}
		t.buckets[b] = map[int64][]row{}
		for _, r := range rows {
			t.buckets[b][r.series] = append(t.buckets[b][r.series], r)
		}
	}
	var out []row
	for _, r := range t.buckets[b][series] {
		if t.changed[level][r.at][r.key] == nil {
			out = append(out, r)
		}
	}
	for at := from; at < to; at += resolutions[level] {
		for k, v := range t.changed[level][at] {
			if !v.deleted && k.series == series && k.part() == part {
				out = append(out, row{key: k, value: v.value})
			}
		}
	}
	slices.SortFunc(out, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	return reportRows(out, nil, each)
}
