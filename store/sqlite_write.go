package store

import (
	"context"
	"time"
)

// Write implements Store.
func (s *sqlite) Write(ctx context.Context, w *Write) error {
	if err := w.check(); err != nil {
		return err
	}
	return s.update(ctx, "write to", func(t *transaction) error { return apply(t, w) })
}

// NextRules implements Store. Rules that were written without having been taken
// count as taken.
func (s *sqlite) NextRules(ctx context.Context, scope string) (rules uint32, err error) {
	err = s.update(ctx, "write to", func(t *transaction) error {
		id, err := t.scope(scope)
		if err != nil {
			return err
		}
		return t.one("UPDATE scopes SET rules_taken = 1 + max(rules_taken, (SELECT coalesce(max(rules), 0) FROM rules WHERE scope = ?1)) "+
			"WHERE id = ?1 RETURNING rules_taken", []any{id}, &rules)
	})
	return rules, err
}

// Save implements Store.
func (s *sqlite) Save(ctx context.Context, name string, state []byte) error {
	if state == nil {
		state = []byte{}
	}
	return s.update(ctx, "write to", func(t *transaction) error {
		return t.exec("INSERT INTO positions (name, state) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET state = excluded.state", name, state)
	})
}

// Check implements Store: it writes.
func (s *sqlite) Check(ctx context.Context) error {
	return s.update(ctx, "write to", func(t *transaction) error {
		return t.exec("INSERT INTO checks (id, times) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET times = times + 1")
	})
}

// expireRows is how many rows are deleted in one transaction: a write waits for no
// more than that, some milliseconds.
const expireRows = 2000

// Expire implements Store.
func (s *sqlite) Expire(ctx context.Context, now time.Time, retention map[Resolution]time.Duration) error {
	ends, err := cutoffs(now, retention)
	if err != nil {
		return err
	}
	var scopes []string
	err = s.update(ctx, "expire rows of", func(t *transaction) error {
		return t.all("SELECT name FROM scopes", nil, func(scan scanner) error {
			scopes = append(scopes, "")
			return scan(&scopes[len(scopes)-1])
		})
	})
	if err != nil {
		return err
	}
	// First it is settled what has expired, then that is deleted. What is not yet
	// deleted is not returned any more, nor is anything made of it.
	for _, scope := range scopes {
		err := s.update(ctx, "expire rows of", func(t *transaction) error {
			st, err := t.state(scope)
			if err != nil || !st.expire(ends) {
				return err
			}
			return t.setState(scope, st)
		})
		if err != nil {
			return err
		}
	}
	for level, table := range tableNames {
		gone, end := [...]string{"c.gone_1", "c.gone_10", "c.gone_60", "c.gone_3600"}[level], ends[level]
		if level == 0 {
			gone, end = "CASE WHEN late >= 0 THEN c.gone_10 ELSE c.gone_1 END", max(ends[0], ends[1])
		}
		if err := s.expireTable(ctx, table, gone, end); err != nil {
			return err
		}
	}
	if end := ends[questionLevel]; end != never {
		if err := s.expireQuestions(ctx, end); err != nil {
			return err
		}
	}
	return s.shrink(ctx)
}

// chunks repeats a deletion until it deletes less than a chunk. Each is a
// transaction, and other writers have their turn in between.
func (s *sqlite) chunks(ctx context.Context, f func(*transaction) (int64, error)) error {
	for {
		var n int64
		err := s.update(ctx, "expire rows of", func(t *transaction) (err error) {
			n, err = f(t)
			return err
		})
		if err != nil || n < expireRows {
			return err
		}
	}
}

// expireTable deletes the expired rows of a table, from the oldest on: those before
// what is gone of their scope, an SQL expression, which is never after end.
func (s *sqlite) expireTable(ctx context.Context, table, gone string, end int64) error {
	from := int64(never)
	return s.chunks(ctx, func(t *transaction) (n int64, err error) {
		last := from
		err = t.all("DELETE FROM "+table+" WHERE (at, series, late) IN (SELECT t.at, t.series, t.late FROM "+table+" t "+
			"CROSS JOIN series s ON s.id = t.series CROSS JOIN scopes c ON c.id = s.scope "+
			"WHERE t.at >= ? AND t.at < ? AND t.at < "+gone+" ORDER BY t.at LIMIT ?) RETURNING at",
			[]any{from, end, expireRows}, func(scan scanner) error {
				var at int64
				err := scan(&at)
				last = max(last, at)
				n++
				return err
			})
		if err == nil {
			from = last
		}
		return n, err
	})
}

// spare is the share of free pages in the file that is kept for rows to come, and
// shrinkPages how many are given back to the file system at once.
const (
	spare       = 4 // one in four
	shrinkPages = 1000
)

// shrink gives free pages back once there are many. In the long run as much is
// written as expires, so that most of them are used again.
func (s *sqlite) shrink(ctx context.Context) error {
	for more := true; more; {
		more = false
		give, err := s.take(ctx)
		if err != nil {
			return s.explain("shrink", err)
		}
		err = func() error {
			defer give()
			if s.conn == nil {
				return nil
			}
			t := &transaction{ctx: ctx, s: s}
			var free, all int64
			if err := t.one("PRAGMA freelist_count", nil, &free); err != nil {
				return err
			}
			if err := t.one("PRAGMA page_count", nil, &all); err != nil {
				return err
			}
			if free <= shrinkPages || free*spare <= all {
				return nil
			}
			more = true
			return t.all("PRAGMA incremental_vacuum(1000)", nil, func(scanner) error { return nil })
		}()
		if err != nil {
			return s.explain("shrink", err)
		}
	}
	return nil
}
