package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
)

// view runs reads that see the file at one moment.
func (s *sqlite) view(ctx context.Context, f func(*sql.Tx) error) error {
	if s.closed.Load() {
		return errClosed
	}
	if err := present(s.path, s.file, nil); err != nil {
		return err
	}
	tx, err := s.reader.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to keep
	return f(tx)
}

func each(ctx context.Context, tx *sql.Tx, text string, args []any, f func(scanner) error) error {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	return drain(ctx, rows, f)
}

// Rows implements Store.
func (s *sqlite) Rows(ctx context.Context, q Query) ([]Row, error) {
	level, err := q.check()
	if err != nil {
		return nil, err
	}
	var out []Row
	err = s.view(ctx, func(tx *sql.Tx) error {
		closed, err := closedTicks(ctx, tx)
		if err != nil {
			return err
		}
		f := found{q: &q, closed: func(scope string) int64 {
			if at, ok := closed[scope]; ok {
				return at
			}
			return never
		}}
		if err := rowsOf(ctx, tx, level, &f); err != nil {
			return err
		}
		out = f.sorted()
		return nil
	})
	if errors.Is(err, ErrTooMany) {
		return nil, err
	}
	return out, s.explain("read", err)
}

// asked is a series of a query.
type asked struct {
	series
	gone     int64 // what lies before is not there any more
	from, to int64 // its hours are not made here, see pendingHours
}

// rowsOf finds the rows of a query.
func rowsOf(ctx context.Context, tx *sql.Tx, level int, f *found) error {
	q := f.q
	where, args := "s.family = ?", []any{q.Family}
	for _, name := range [...]struct{ column, text string }{{"dependency", q.Dependency}, {"route", q.Route}, {"name", q.Name}} {
		if name.text != "" {
			where += " AND s." + name.column + " = (SELECT id FROM texts WHERE text = ?)"
			args = append(args, name.text)
		}
	}
	byID := map[int64]*asked{}
	var ids, unmade []int64 // all, and those with hours that are not made
	from, notMade := int64(math.MaxInt64), int64(math.MaxInt64)
	gone := [...]string{"c.gone_1", "c.gone_10", "c.gone_60", "c.gone_3600"}[level]
	err := each(ctx, tx, "SELECT s.id, s.family, c.name, d.text, r.text, n.text, s.wide, "+gone+", c.hours, c.gone_60"+
		" FROM series s JOIN scopes c ON c.id = s.scope JOIN texts d ON d.id = s.dependency JOIN texts r ON r.id = s.route "+
		"JOIN texts n ON n.id = s.name WHERE "+where, args, func(scan scanner) error {
		var id, hours, minutesGone int64
		x := new(asked)
		err := scan(&id, &x.family, &x.scope, &x.dependency, &x.route, &x.name, &x.wide, &x.gone, &hours, &minutesGone)
		byID[id], ids = x, append(ids, id)
		from = min(from, max(x.gone, q.From))
		if level == hourLevel {
			if x.from, x.to = pendingHours(hours, f.closed(x.scope), minutesGone); x.from < x.to {
				unmade, notMade = append(unmade, id), min(notMade, max(x.from, q.From))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	err = rowsAt(ctx, tx, level, ids, from, q.To, func(k key, v *value) error {
		x := byID[k.series]
		if k.at < x.gone || k.at >= x.from && k.at < x.to {
			return nil // expired, and not deleted yet; or not made
		}
		return f.add(k, &x.series, v)
	})
	if err != nil {
		return err
	}
	hours := pending{}
	err = rowsAt(ctx, tx, hourLevel-1, unmade, notMade, q.To, func(k key, v *value) error {
		if x := byID[k.series]; k.at < x.from || k.at >= x.to {
			return nil
		}
		return hours.add(k, v)
	})
	if err != nil {
		return err
	}
	return f.addPending(hours, func(id int64) *series { return &byID[id].series })
}

// rowsAt reports the rows of some series, from one time up to another, in order of
// time and series. There are two ways: through all rows of the time, or from time
// to time and series to series; the second is faster when few series are asked for
// of many.
func rowsAt(ctx context.Context, tx *sql.Tx, level int, ids []int64, from, to int64, report func(key, *value) error) error {
	if len(ids) == 0 || from >= to {
		return nil
	}
	var all int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM series").Scan(&all); err != nil {
		return err
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	columns := "SELECT t.at, t.series, t.late, t.rules, t.version, t.open, t.counts FROM "
	order := " ORDER BY t.at, t.series, t.late"
	text := "WITH ids (id) AS MATERIALIZED (SELECT value FROM json_each(?)) " + columns + tableNames[level] +
		" t WHERE t.at >= ? AND t.at < ? AND t.series IN (SELECT id FROM ids)" + order
	args := []any{string(list), from, to}
	if len(ids)*seekCost < all {
		text = "WITH RECURSIVE ids (id) AS MATERIALIZED (SELECT value FROM json_each(?)), " +
			"n (at) AS (VALUES (?) UNION ALL SELECT at + ? FROM n WHERE at + ? < ?) " +
			columns + "n CROSS JOIN ids CROSS JOIN " + tableNames[level] + " t ON t.at = n.at AND t.series = ids.id" + order
		args = []any{string(list), from, resolutions[level], resolutions[level], to}
	}
	return each(ctx, tx, text, args, func(scan scanner) error {
		var k key
		var v value
		var version int64
		var counts sql.RawBytes
		if err := scan(&k.at, &k.series, &k.late, &v.rules, &version, &v.open, &counts); err != nil {
			return err
		}
		v.version, v.counts = uint64(version), counts
		return report(k, &v)
	})
}

// seekCost is how many rows are passed over in the time that one is searched for.
const seekCost = 8

// closedTicks reads, by scope, the tick before which all is final.
func closedTicks(ctx context.Context, tx *sql.Tx) (map[string]int64, error) {
	out := map[string]int64{}
	err := each(ctx, tx, "SELECT c.name, r.closed FROM rules r JOIN scopes c ON c.id = r.scope WHERE r.closed <> ? ORDER BY r.rules", []any{int64(never)},
		func(scan scanner) error {
			var scope string
			var closed int64
			err := scan(&scope, &closed)
			out[scope] = closed // the highest rules come last
			return err
		})
	return out, err
}

// Closed implements Store.
func (s *sqlite) Closed(ctx context.Context) (out map[string]int64, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		out, err = closedTicks(ctx, tx)
		return err
	})
	return out, s.explain("read", err)
}

// Counted implements Store.
func (s *sqlite) Counted(ctx context.Context, partition string) ([]Range, error) {
	var out []Range
	err := s.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, "SELECT first, next FROM counted WHERE partition = ? ORDER BY first", []any{partition}, func(scan scanner) error {
			r := Range{Partition: partition}
			err := scan(&r.From, &r.To)
			out = append(out, r)
			return err
		})
	})
	return out, s.explain("read", err)
}

// Note implements Store.
func (s *sqlite) Note(ctx context.Context, scope string) (note []byte, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, "SELECT note FROM scopes WHERE name = ?", []any{scope}, func(scan scanner) error { return scan(&note) })
	})
	return note, s.explain("read", err)
}

// Load implements Store.
func (s *sqlite) Load(ctx context.Context, name string) (state []byte, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, "SELECT state FROM positions WHERE name = ?", []any{name}, func(scan scanner) error {
			if err := scan(&state); err != nil {
				return err
			}
			if state == nil {
				state = []byte{}
			}
			return nil
		})
	})
	return state, s.explain("read", err)
}
