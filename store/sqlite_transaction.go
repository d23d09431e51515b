package store

import (
	"context"
	"database/sql"
	"errors"
)

// transaction is one write transaction of a sqlite store. It is what apply writes
// through; see sqlite_tables.go.
type transaction struct {
	ctx   context.Context
	s     *sqlite
	fresh names // given in this transaction
	ran   int
}

// scanner reads the columns of a row.
type scanner func(into ...any) error

// checkEvery is after how many statements a transaction looks whether it was
// cancelled. The driver would start a goroutine for each statement to find out.
const checkEvery = 64

// stmt returns a prepared statement of the connection.
func (t *transaction) stmt(text string) (*sql.Stmt, context.Context, error) {
	if t.ran++; t.ran%checkEvery == 0 {
		if err := t.ctx.Err(); err != nil {
			return nil, nil, err
		}
	}
	ctx := context.WithoutCancel(t.ctx)
	st := t.s.stmts[text]
	if st == nil {
		var err error
		if st, err = t.s.conn.PrepareContext(ctx, text); err != nil {
			return nil, nil, err
		}
		t.s.stmts[text] = st
	}
	return st, ctx, nil
}

func (t *transaction) exec(text string, args ...any) error {
	_, err := t.change(text, args...)
	return err
}

// change runs a statement and returns how many rows it changed.
func (t *transaction) change(text string, args ...any) (int64, error) {
	st, ctx, err := t.stmt(text)
	if err != nil {
		return 0, err
	}
	r, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// all reports every row of a query.
func (t *transaction) all(text string, args []any, each func(scanner) error) error {
	st, ctx, err := t.stmt(text)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return drain(t.ctx, rows, each)
}

// drain reports every row and closes the rows.
func drain(ctx context.Context, rows *sql.Rows, each func(scanner) error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for n := 1; rows.Next(); n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// one reads the one row of a query; sql.ErrNoRows if there is none.
func (t *transaction) one(text string, args []any, into ...any) error {
	st, ctx, err := t.stmt(text)
	if err != nil {
		return err
	}
	return st.QueryRowContext(ctx, args...).Scan(into...)
}

// text returns the number of a text, given if it has none.
func (t *transaction) text(s string) (int64, error) {
	return t.number(s, t.s.names.texts, t.fresh.texts,
		"SELECT id FROM texts WHERE text = ?", "INSERT INTO texts (text) VALUES (?) RETURNING id")
}

// scope returns the number of a scope, given if it has none.
func (t *transaction) scope(s string) (int64, error) {
	return t.number(s, t.s.names.scopes, t.fresh.scopes, "SELECT id FROM scopes WHERE name = ?",
		"INSERT INTO scopes (name, made, hours, gone_1, gone_10, gone_60, gone_3600) "+
			"VALUES (?, -1 << 63, -1 << 63, -1 << 63, -1 << 63, -1 << 63, -1 << 63) RETURNING id")
}

func (t *transaction) number(s string, known, fresh map[string]int64, find, give string) (int64, error) {
	if id, ok := known[s]; ok {
		return id, nil
	}
	if id, ok := fresh[s]; ok {
		return id, nil
	}
	var id int64
	err := t.one(find, []any{s}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = t.one(give, []any{s}, &id)
	}
	if err == nil {
		fresh[s] = id
	}
	return id, err
}

// series implements tables.
func (t *transaction) series(s series) (int64, error) {
	if id, ok := t.s.names.series[s]; ok {
		return id, nil
	}
	if id, ok := t.fresh.series[s]; ok {
		return id, nil
	}
	scope, err := t.scope(s.scope)
	if err != nil {
		return 0, err
	}
	args := []any{scope, s.family}
	for _, name := range [...]string{s.dependency, s.route, s.name} {
		id, err := t.text(name)
		if err != nil {
			return 0, err
		}
		args = append(args, id)
	}
	args = append(args, s.wide)
	var id int64
	err = t.one("SELECT id FROM series WHERE scope = ? AND family = ? AND dependency = ? AND route = ? AND name = ? AND wide = ?", args, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = t.one("INSERT INTO series (scope, family, dependency, route, name, wide) VALUES (?, ?, ?, ?, ?, ?) RETURNING id", args, &id)
	}
	if err == nil {
		t.fresh.series[s] = id
	}
	return id, err
}
