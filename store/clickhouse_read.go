package store

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Rows implements Store. What is known of the scopes and their rows are read by one
// query, and so as they were at one moment.
func (c *clickhouse) Rows(ctx context.Context, q Query) ([]Row, error) {
	level, err := q.check()
	if err != nil {
		return nil, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, c.explain("read", err)
	}
	for minutes := int64(math.MaxInt64); ; {
		f, missing, err := c.rowsFrom(ctx, level, q, minutes)
		if errors.Is(err, ErrTooMany) {
			return nil, err
		}
		if err != nil {
			return nil, c.explain("read", err)
		}
		if missing >= minutes {
			return f.sorted(), nil
		}
		minutes = missing
	}
}

// rowsFrom reads the rows of a level, and with hours the minutes from some time on,
// of which hours that are not made are put together. missing is the time from which on
// minutes are needed; if it is before that, the rows are not all.
func (c *clickhouse) rowsFrom(ctx context.Context, level int, q Query, minutes int64) (f *found, missing int64, err error) {
	missing = math.MaxInt64
	where := fmt.Sprintf("family = %d", q.Family)
	for _, name := range [...]struct{ column, text string }{{"dependency", q.Dependency}, {"route", q.Route}, {"name", q.Name}} {
		if name.text != "" {
			where += " AND " + name.column + " = " + literal(name.text)
		}
	}
	ranges := fmt.Sprintf("kind IN ('scope', 'gone') AND at = 0 OR kind = '%s' AND at >= %d AND at < %d AND %s", kindNames[level], q.From, q.To, where)
	if level == hourLevel && minutes < q.To {
		ranges += fmt.Sprintf(" OR kind = '%s' AND at >= %d AND at < %d AND %s", kindNames[level-1], max(minutes, q.From), q.To, where)
	}
	k := newKnown()
	f = &found{q: &q, closed: k.closed}
	hours := pending{}
	names := map[int64]series{}
	var of knownFact
	var at key
	var v value
	s := series{}
	family := uint8(0)
	pendingOf := func(scope string) (from, to int64) { return k.state(scope).pendingHours() }
	err = c.query(ctx, "SELECT toInt8(kind), "+knownColumns+", at, series, family, dependency, route, wide, rules, version, open FROM facts FINAL PREWHERE "+ranges+
		" ORDER BY kind = 'minute', kind, at, series, late",
		[]any{&of.kind, &of.scope, &of.late, &of.last, &of.name, &of.minor, &of.text, &at.at, &at.series, &family, &s.dependency, &s.route, &s.wide, &v.rules, &v.version, &v.open},
		func() error {
			switch kind(of.kind) {
			case kindScope, kindGone:
				return k.add(&of)
			}
			st := k.state(of.scope)
			s.family, s.scope, s.name, at.late, v.counts = Family(family), of.scope, of.name, of.late, []byte(of.text)
			if kind(of.kind) != levelKind(level) { // a minute
				if from, to := pendingOf(of.scope); at.at >= from && at.at < to && !st.dead(level-1, at.at, v.rules) {
					names[at.series] = s
					return hours.add(at, &v)
				}
				return nil
			}
			if at.at < st.gone[level] || st.dead(level, at.at, v.rules) {
				return nil
			}
			if from, to := pendingOf(of.scope); level == hourLevel && at.at >= from && at.at < to {
				return nil // not made, or by older rules
			}
			return f.add(at, &s, &v)
		})
	if err != nil {
		return nil, 0, err
	}
	if level == hourLevel {
		for scope := range k.states {
			if from, to := pendingOf(scope); max(from, q.From) < min(to, q.To) {
				missing = min(missing, max(from, q.From))
			}
		}
	}
	return f, missing, f.addPending(hours, func(id int64) *series { s := names[id]; return &s })
}

// Closed implements Store.
func (c *clickhouse) Closed(ctx context.Context) (map[string]int64, error) {
	if err := c.ready(ctx); err != nil {
		return nil, c.explain("read", err)
	}
	k, err := c.know(ctx, "'scope'", always)
	if err != nil {
		return nil, c.explain("read", err)
	}
	out := map[string]int64{}
	for scope, s := range k.states {
		if at := s.closed(); at != never {
			out[scope] = at
		}
	}
	return out, nil
}

// Counted implements Store.
func (c *clickhouse) Counted(ctx context.Context, partition string) ([]Range, error) {
	if err := c.ready(ctx); err != nil {
		return nil, c.explain("read", err)
	}
	there, err := c.counted(ctx, partition)
	if err != nil {
		return nil, c.explain("read", err)
	}
	var out []Range
	for _, r := range there {
		out = addRange(out, r)
	}
	return out, nil
}

// counted reads the ranges of a partition as they were written: some may touch others.
func (c *clickhouse) counted(ctx context.Context, partition string) (out []Range, err error) {
	r := Range{Partition: partition}
	err = c.query(ctx, "SELECT last, first FROM facts FINAL PREWHERE kind = 'counted' AND at = 0 AND name = "+literal(partition),
		[]any{&r.From, &r.To}, func() error {
			out = append(out, r)
			return nil
		})
	return out, err
}
