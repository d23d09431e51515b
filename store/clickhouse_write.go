package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// writeTries is how often a write is made that another process comes before.
const writeTries = 3

// Write implements Store.
func (c *clickhouse) Write(ctx context.Context, w *Write) error {
	if err := w.check(); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return c.explain("write to", err)
	}
	if len(w.Rows) == 0 && w.Closed <= 0 && len(w.Counted) == 0 && len(w.Questions) == 0 {
		return nil
	}
	x, give, err := c.scope(ctx, w.Scope)
	if err != nil {
		return c.explain("write to", err)
	}
	defer give()
	for range writeTries {
		if err = c.writeOnce(ctx, x, w); !errors.Is(err, ErrTakenOver) {
			break
		}
	}
	if errors.Is(err, ErrTakenOver) {
		err = fmt.Errorf("scope %q %w: what was not stored will be written again; if this goes on, two processes read the same records", w.Scope, err)
	}
	return c.explain("write to", err)
}

func (c *clickhouse) writeOnce(ctx context.Context, x *scopeTurn, w *Write) error {
	known, claim, err := c.stateOf(ctx, x, w.Scope)
	x.kept = nil // until it is written
	if err != nil {
		return err
	}
	x.seq++
	t := c.tables(ctx, x, w, known, claim)
	var ticks []int64
	for i := range w.Rows {
		ticks = append(ticks, w.Rows[i].At)
	}
	slices.Sort(ticks)
	if err := t.lookFor(slices.Compact(ticks)); err != nil {
		return err
	}
	if err := apply(t, w); err != nil {
		return err
	}
	b, err := t.facts()
	if err != nil {
		return err
	}
	if len(b.kind) > 0 {
		if err := c.insertColumns(ctx, b); err != nil {
			return err
		}
	}
	held := time.Now()
	if err := c.holds(ctx, w.Scope, claim); err != nil {
		return err
	}
	if err := c.compareAgain(ctx, t); err != nil {
		return err
	}
	x.kept, x.claim, x.held = t.known, claim, held
	if t.states != nil {
		x.kept = t.states
	}
	return nil
}

// facts are what the write has changed.
func (t *clickhouseTables) facts() (*columns, error) {
	n := len(t.questions) + len(t.splits) + 1
	for level := range t.changed {
		for _, rows := range t.changed[level] {
			n += len(rows)
		}
	}
	b := newColumns(n)
	var f fact
	for level := range t.changed {
		for _, rows := range t.changed[level] {
			for k, v := range rows {
				t.rowFact(&f, level, k, v)
				b.add(&f)
			}
		}
	}
	for i := range t.questions {
		b.add(questionFact(&t.questions[i]))
	}
	for s := range t.splits {
		b.add(splitFact(s))
	}
	for partition, ranges := range t.counts {
		if err := t.countFacts(b, partition, ranges); err != nil {
			return nil, err
		}
	}
	if t.states != nil {
		b.add(&fact{kind: kindScope, scope: t.w.Scope, counts: t.states.encode(), major: uint64(t.claim), minor: t.x.seq})
	}
	return b, nil
}

// rowFact makes a fact of what became of a row.
func (t *clickhouseTables) rowFact(f *fact, level int, k key, v *change) {
	s := t.x.series[k.series]
	*f = fact{
		kind: levelKind(level), at: k.at, scope: s.scope, family: uint8(s.family), dependency: s.dependency, route: s.route, name: s.name,
		wide: s.wide, late: k.late, series: k.series, deleted: v.deleted,
		claim: uint64(t.claim), major: uint64(t.claim), minor: t.x.seq,
	}
	switch {
	case level == 0 && v.deleted:
		f.major, f.minor = uint64(v.rules), 0
	case level == 0:
		f.major, f.minor = uint64(v.rules), v.version+1
	}
	if !v.deleted {
		f.rules, f.version, f.open, f.counts = v.rules, v.version, v.open, v.counts
		f.arrivals, f.verified, f.claimed = v.plain.Arrivals, v.plain.Verified, v.plain.Claimed
		f.unattributable, f.originals = v.plain.Unattributable.Total, v.plain.Estimated
	}
}

// count implements tables: it notes what facts puts together with what is there.
func (t *clickhouseTables) count(r Range) error {
	t.counts[r.Partition] = addRange(t.counts[r.Partition], r)
	return nil
}

// countFacts adds ranges to those of a partition: what touches one is put together
// with it, under the first offset of both.
func (t *clickhouseTables) countFacts(b *columns, partition string, added []Range) error {
	there, err := t.c.counted(t.ctx, partition)
	if err != nil {
		return err
	}
	before := map[Range]bool{}
	all := []Range(nil)
	for _, r := range there {
		before[r] = true
		all = addRange(all, r)
	}
	for _, r := range added {
		all = addRange(all, r)
	}
	add := func(r Range, deleted bool) {
		b.add(&fact{kind: kindCounted, name: partition, last: r.From, first: r.To, minor: uint64(r.To), deleted: deleted})
	}
	from := map[int64]bool{}
	for _, r := range all {
		if from[r.From] = true; !before[r] {
			add(r, false)
		}
	}
	for r := range before {
		if !from[r.From] {
			add(r, true)
		}
	}
	return nil
}

// Save implements Store.
func (c *clickhouse) Save(ctx context.Context, name string, state []byte) error {
	give, err := c.turnOf(ctx, "positions")
	if err != nil {
		return c.explain("write to", err)
	}
	defer give()
	// The insert's own query takes the next turn.
	return c.explain("write to", c.insertSelect(ctx, fmt.Sprintf("INSERT INTO positions (name, state, turn) SELECT %s, %s, max(turn) + 1 FROM positions WHERE name = %s",
		literal(name), literal(string(state)), literal(name))))
}

// Note implements Store.
func (c *clickhouse) Note(ctx context.Context, scope string) ([]byte, error) {
	if err := c.ready(ctx); err != nil {
		return nil, c.explain("read", err)
	}
	k, err := c.know(ctx, "'scope'", "scope = "+literal(scope))
	if err != nil {
		return nil, c.explain("read", err)
	}
	return k.state(scope).note, nil
}

// Load implements Store.
func (c *clickhouse) Load(ctx context.Context, name string) (state []byte, err error) {
	if err := c.ready(ctx); err != nil {
		return nil, c.explain("read", err)
	}
	var text string
	err = c.query(ctx, "SELECT state FROM positions FINAL WHERE name = "+literal(name), []any{&text}, func() error {
		state = []byte(text)
		return nil
	})
	return state, c.explain("read", err)
}

// Check implements Store: it writes, and looks whether the tables are there.
func (c *clickhouse) Check(ctx context.Context) error {
	if err := c.ready(ctx); err != nil {
		return c.explain("write to", err)
	}
	var n uint64
	err := c.one(ctx, "SELECT count() FROM facts WHERE kind = 'claim' AND at = 1", &n)
	if err == nil {
		err = c.insertSelect(ctx, "INSERT INTO checks (id) SELECT 1")
	}
	return c.explain("write to", err)
}
