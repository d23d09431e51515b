package store

import (
	"database/sql"
	"errors"
)

// statements are the SQL of one level.
type statements struct {
	put, force, remove, clear, rows, someRows, first, rowsOf string
}

// tableNames are the tables of the levels.
var tableNames = [levels]string{"ticks", "ten_seconds", "minutes", "hours"}

var sqliteSQL = func() (out [levels]statements) {
	for i, table := range tableNames {
		put := "INSERT INTO " + table + " (at, series, late, rules, version, open, arrivals, verified, claimed, unattributable, originals, counts) " +
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (at, series, late) DO UPDATE SET rules = excluded.rules, " +
			"version = excluded.version, open = excluded.open, arrivals = excluded.arrivals, verified = excluded.verified, " +
			"claimed = excluded.claimed, unattributable = excluded.unattributable, originals = excluded.originals, counts = excluded.counts"
		out[i] = statements{
			put:    put + " WHERE (excluded.rules, excluded.version) > (rules, version)",
			force:  put,
			remove: "DELETE FROM " + table + " WHERE at = ? AND series = ? AND late = ?",
			clear:  "DELETE FROM " + table + " WHERE at >= ? AND at < ? AND series IN (SELECT id FROM series WHERE scope = ?)",
			rows: "SELECT at, series, late, rules, version, counts FROM " + table +
				" WHERE at >= ? AND at < ? AND series IN (SELECT id FROM series WHERE scope = ?) ORDER BY series, late >= 0, at",
			someRows: "WITH RECURSIVE n (t) AS (VALUES (?) UNION ALL SELECT t + ? FROM n WHERE t + ? < ?) " +
				"SELECT r.at, r.series, r.late, r.rules, r.version, r.counts FROM n CROSS JOIN " + table + " r CROSS JOIN series s " +
				"WHERE r.at = t AND r.series > ? AND r.series <= ? AND s.id = r.series AND s.scope = ? ORDER BY r.series, r.late >= 0, r.at",
			first: "SELECT at FROM " + table + " WHERE at >= ? AND at < ? AND series IN (SELECT id FROM series WHERE scope = ?) ORDER BY at LIMIT 1",
			rowsOf: "WITH RECURSIVE n (t) AS (VALUES (?) UNION ALL SELECT t + ? FROM n WHERE t + ? < ?) " +
				"SELECT at, series, late, rules, version, counts FROM n CROSS JOIN " + table +
				" WHERE at = t AND series = ? AND (late >= 0) = ?",
		}
	}
	return out
}()

func (t *transaction) state(scope string) (*state, error) {
	s := newState()
	id, err := t.scope(scope)
	if err != nil {
		return nil, err
	}
	err = t.one("SELECT made, hours, hour_series, gone_1, gone_10, gone_60, gone_3600, note FROM scopes WHERE id = ?", []any{id},
		&s.made, &s.hours, &s.hourSeries, &s.gone[0], &s.gone[1], &s.gone[2], &s.gone[3], &s.note)
	if err != nil {
		return nil, err
	}
	return s, t.all("SELECT rules, starts, closed, top FROM rules WHERE scope = ? ORDER BY rules", []any{id}, func(scan scanner) error {
		e := new(era)
		s.eras = append(s.eras, e)
		return scan(&e.rules, &e.starts, &e.closed, &e.top)
	})
}

func (t *transaction) setState(scope string, s *state) error {
	id, err := t.scope(scope)
	if err != nil {
		return err
	}
	err = t.exec("UPDATE scopes SET made = ?, hours = ?, hour_series = ?, gone_1 = ?, gone_10 = ?, gone_60 = ?, gone_3600 = ?, note = ? WHERE id = ?",
		s.made, s.hours, s.hourSeries, s.gone[0], s.gone[1], s.gone[2], s.gone[3], s.note, id)
	if err != nil {
		return err
	}
	if err := t.exec("DELETE FROM rules WHERE scope = ?", id); err != nil {
		return err
	}
	for _, e := range s.eras {
		if err := t.exec("INSERT INTO rules (scope, rules, starts, closed, top) VALUES (?, ?, ?, ?, ?)", id, e.rules, e.starts, e.closed, e.top); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) put(level int, k key, v *value, always bool) (bool, error) {
	text := sqliteSQL[level].put
	if always {
		text = sqliteSQL[level].force
	}
	n, err := t.change(text, k.at, k.series, k.late, v.rules, int64(v.version), v.open,
		int64(v.plain.Arrivals), int64(v.plain.Verified), int64(v.plain.Claimed), int64(v.plain.Unattributable.Total), int64(v.plain.Estimated), v.counts)
	return n > 0, err
}

func (t *transaction) remove(level int, k key) error {
	return t.exec(sqliteSQL[level].remove, k.at, k.series, k.late)
}

func (t *transaction) clear(level int, scope string, from, to int64) error {
	id, err := t.scope(scope)
	if err != nil {
		return err
	}
	return t.exec(sqliteSQL[level].clear, from, to, id)
}

func (t *transaction) dropTicks(scope string, from, to int64, below uint32, each func(key)) error {
	return t.drop("DELETE FROM ticks WHERE at >= ? AND at < ? AND rules < ? AND series IN (SELECT id FROM series WHERE scope = ?) RETURNING at, series, late",
		scope, each, from, to, below)
}

func (t *transaction) dropBlock(scope string, block int64, below uint32, each func(key)) error {
	// "late >= 0" lets the index of late rows be used.
	return t.drop("DELETE FROM ticks WHERE late >= 0 AND late = ? AND rules < ? AND series IN (SELECT id FROM series WHERE scope = ?) RETURNING at, series, late",
		scope, each, block, below)
}

func (t *transaction) drop(text, scope string, each func(key), args ...any) error {
	id, err := t.scope(scope)
	if err != nil {
		return err
	}
	return t.all(text, append(args, id), func(scan scanner) error {
		var k key
		if err := scan(&k.at, &k.series, &k.late); err != nil {
			return err
		}
		each(k)
		return nil
	})
}

func (t *transaction) tickRules(scope string, at int64) (uint32, error) {
	return t.highest("SELECT coalesce(max(rules), 0) FROM ticks WHERE at = ? AND late = -1 AND series IN (SELECT id FROM series WHERE scope = ?)", scope, at)
}

func (t *transaction) blockRules(scope string, block int64) (uint32, error) {
	return t.highest("SELECT coalesce(max(rules), 0) FROM ticks WHERE late >= 0 AND late = ? AND series IN (SELECT id FROM series WHERE scope = ?)", scope, block)
}

func (t *transaction) highest(text, scope string, of int64) (rules uint32, err error) {
	id, err := t.scope(scope)
	if err != nil {
		return 0, err
	}
	return rules, t.one(text, []any{of, id}, &rules)
}

func (t *transaction) rows(level int, scope string, from, to int64, each func(key, *value) error) error {
	id, err := t.scope(scope)
	if err != nil {
		return err
	}
	return t.report(sqliteSQL[level].rows, each, from, to, id)
}

func (t *transaction) someRows(level int, scope string, from, to, after int64, n int, each func(key, *value) error) (int64, error) {
	id, err := t.scope(scope)
	if err != nil {
		return 0, err
	}
	// The unary plus keeps SQLite from sorting all series of the scope.
	var last sql.NullInt64
	err = t.one("SELECT max(id) FROM (SELECT id FROM series WHERE id > ? AND +scope = ? ORDER BY id LIMIT ?)", []any{after, id, n}, &last)
	if err != nil || !last.Valid {
		return 0, err
	}
	step := resolutions[level]
	return last.Int64, t.report(sqliteSQL[level].someRows, each, from, step, step, to, after, last.Int64, id)
}

func (t *transaction) first(level int, scope string, from, to int64) (int64, error) {
	id, err := t.scope(scope)
	if err != nil {
		return 0, err
	}
	err = t.one(sqliteSQL[level].first, []any{from, to, id}, &from)
	if errors.Is(err, sql.ErrNoRows) {
		return to, nil
	}
	return from, err
}

func (t *transaction) rowsOf(level int, series, part, from, to int64, each func(key, *value) error) error {
	step := resolutions[level]
	return t.report(sqliteSQL[level].rowsOf, each, from, step, step, to, series, part == anyBlock)
}

func (t *transaction) report(text string, each func(key, *value) error, args ...any) error {
	return t.all(text, args, func(scan scanner) error {
		var k key
		var v value
		var version int64
		var counts sql.RawBytes
		if err := scan(&k.at, &k.series, &k.late, &v.rules, &version, &counts); err != nil {
			return err
		}
		v.version, v.counts = uint64(version), counts
		return each(k, &v)
	})
}

func (t *transaction) count(r Range) error {
	// What touches it at either end is put together with it.
	var from, to sql.NullInt64
	err := t.one("SELECT min(first), max(next) FROM counted WHERE partition = ? AND first <= ? AND next >= ?", []any{r.Partition, r.To, r.From}, &from, &to)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if from.Valid {
		r.From, r.To = min(r.From, from.Int64), max(r.To, to.Int64)
		if err := t.exec("DELETE FROM counted WHERE partition = ? AND first >= ? AND first <= ?", r.Partition, r.From, r.To); err != nil {
			return err
		}
	}
	return t.exec("INSERT INTO counted (partition, first, next) VALUES (?, ?, ?)", r.Partition, r.From, r.To)
}
