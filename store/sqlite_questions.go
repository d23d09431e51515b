package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

func (t *transaction) question(q *Question) error {
	args := []any{q.KeyHash[:]}
	for _, s := range [...]string{q.Dependency, q.Route, q.Scope, q.Originator} {
		id, err := t.text(s)
		if err != nil {
			return err
		}
		args = append(args, id)
	}
	peers, err := json.Marshal(q.Peers)
	if err != nil {
		return err
	}
	args = append(args, q.Lot, q.Last.UnixNano(), q.First.UnixNano(), q.Arrivals, string(peers))
	return t.exec("INSERT INTO episodes (key_hash, dependency, route, scope, originator, lot, last, first, arrivals, peers) "+
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key_hash, dependency, route, lot, scope, last) DO UPDATE SET "+
		"first = excluded.first, arrivals = excluded.arrivals, originator = excluded.originator, peers = excluded.peers "+
		"WHERE excluded.arrivals > arrivals", args...)
}

func (t *transaction) elsewhere(q *Question, within time.Duration) (yes bool, err error) {
	args := []any{q.KeyHash[:]}
	for _, s := range [...]string{q.Dependency, q.Route, q.Scope} {
		id, err := t.text(s)
		if err != nil {
			return false, err
		}
		args = append(args, id)
	}
	args = append(args, q.Lot, q.First.Add(-within).UnixNano(), q.Last.Add(within).UnixNano(), q.Last.UnixNano())
	err = t.one("SELECT 1 FROM episodes WHERE key_hash = ? AND dependency = ? AND route = ? AND scope <> ? AND lot = ? "+
		"AND last >= ? AND first <= ? AND last <> ? LIMIT 1", args, &yes)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return yes, err
}

func (t *transaction) split(dependency string, at int64) error {
	id, err := t.text(dependency)
	if err != nil {
		return err
	}
	return t.exec("INSERT INTO splits (dependency, at) VALUES (?, ?) ON CONFLICT DO NOTHING", id, at)
}

// expireQuestions deletes what came last before a time in Unix seconds.
func (s *sqlite) expireQuestions(ctx context.Context, end int64) error {
	err := s.chunks(ctx, func(t *transaction) (int64, error) {
		return t.change("DELETE FROM episodes WHERE (key_hash, dependency, route, lot, scope, last) IN "+
			"(SELECT key_hash, dependency, route, lot, scope, last FROM episodes WHERE last < ? ORDER BY last LIMIT ?)", end*int64(time.Second), expireRows)
	})
	if err != nil {
		return err
	}
	return s.chunks(ctx, func(t *transaction) (int64, error) {
		return t.change("DELETE FROM splits WHERE (dependency, at) IN (SELECT dependency, at FROM splits WHERE at < ? LIMIT ?)", end-splitEvery, expireRows)
	})
}

// questionColumns and questionNames are what scanQuestion reads, of q.
const (
	questionColumns = "q.key_hash, q.lot, c.text, d.text, r.text, o.text, q.peers, q.first, q.last, q.arrivals"
	questionNames   = "JOIN texts c ON c.id = q.scope JOIN texts d ON d.id = q.dependency JOIN texts r ON r.id = q.route " +
		"JOIN texts o ON o.id = q.originator"
)

func scanQuestion(scan scanner) (q Question, err error) {
	var hash, peers []byte
	var first, last int64
	if err := scan(&hash, &q.Lot, &q.Scope, &q.Dependency, &q.Route, &q.Originator, &peers, &first, &last, &q.Arrivals); err != nil {
		return q, err
	}
	copy(q.KeyHash[:], hash)
	q.First, q.Last = time.Unix(0, first).UTC(), time.Unix(0, last).UTC()
	return q, json.Unmarshal(peers, &q.Peers)
}

// Questions implements Store.
func (s *sqlite) Questions(ctx context.Context, keyHash [16]byte, limit int) (out []Question, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, "SELECT "+questionColumns+" FROM episodes q "+questionNames+
			" WHERE q.key_hash = ? ORDER BY q.last DESC, q.first DESC, c.text, d.text, r.text, q.lot LIMIT ?", []any{keyHash[:], max(limit, 0)},
			func(scan scanner) error {
				q, err := scanQuestion(scan)
				out = append(out, q)
				return err
			})
	})
	return out, s.explain("read", err)
}

// WorstQuestions implements Store. The index alone says which are the worst.
func (s *sqlite) WorstQuestions(ctx context.Context, q QuestionQuery) (out []Question, err error) {
	from, to := q.From.UnixNano(), q.To.UnixNano()
	err = s.view(ctx, func(tx *sql.Tx) error {
		var looked int
		err := tx.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM episodes WHERE last >= ? AND last < ? LIMIT ?)", from, to, q.Among+1).Scan(&looked)
		if err != nil {
			return err
		}
		if looked > q.Among {
			return q.tooMany()
		}
		where, args := "last >= ? AND last < ?", []any{from, to}
		for _, name := range [...]struct{ column, text string }{{"dependency", q.Dependency}, {"route", q.Route}, {"originator", q.Originator}} {
			if name.text != "" {
				where += " AND " + name.column + " = (SELECT id FROM texts WHERE text = ?)"
				args = append(args, name.text)
			}
		}
		args = append(args, max(q.Limit, 0))
		return each(ctx, tx, "WITH worst AS MATERIALIZED (SELECT key_hash, dependency, route, lot, scope, last FROM episodes INDEXED BY episodes_by_last WHERE "+where+
			" ORDER BY arrivals DESC, last, key_hash LIMIT ?) SELECT "+questionColumns+" FROM worst w CROSS JOIN episodes q "+
			"ON (q.key_hash, q.dependency, q.route, q.lot, q.scope, q.last) = (w.key_hash, w.dependency, w.route, w.lot, w.scope, w.last) "+questionNames, args,
			func(scan scanner) error {
				q, err := scanQuestion(scan)
				out = append(out, q)
				return err
			})
	})
	if errors.Is(err, ErrTooMany) {
		return nil, err
	}
	slices.SortFunc(out, worse)
	return out, s.explain("read", err)
}

// Splits implements Store.
func (s *sqlite) Splits(ctx context.Context, from, to int64) (out []string, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, "SELECT DISTINCT d.text FROM splits s JOIN texts d ON d.id = s.dependency WHERE s.at >= ? AND s.at < ? ORDER BY d.text",
			[]any{floor(from, splitEvery), to}, func(scan scanner) error {
				out = append(out, "")
				return scan(&out[len(out)-1])
			})
	})
	return out, s.explain("read", err)
}
