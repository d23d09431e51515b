package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// What has expired is said first, by a tick for each scope and level: from then on it
// is not returned, and nothing is made of it. It is deleted later, when no write can
// still be under way that has not seen that.
const (
	// deleteAfter is how long after it has expired a row is deleted at the earliest.
	deleteAfter = time.Hour
	// deleteEvery is how often a process deletes: ClickHouse looks at every part of the
	// table for it.
	deleteEvery = time.Hour
)

// now is the server's time.
func (c *clickhouse) now(ctx context.Context) (now time.Time, err error) {
	err = c.one(ctx, "SELECT now64(3)", &now)
	return now, err
}

// Expire implements Store. What expires is gone for all, so that it does not go by one
// process whose clock is ahead of the server's.
func (c *clickhouse) Expire(ctx context.Context, now time.Time, retention map[Resolution]time.Duration) error {
	if err := c.ready(ctx); err != nil {
		return c.explain("expire rows of", err)
	}
	if c.clock != nil {
		at, err := c.clock(ctx)
		if err != nil {
			return c.explain("expire rows of", err)
		}
		if at.Before(now) {
			now = at
		}
	}
	ends, err := cutoffs(now, retention)
	if err != nil {
		return err
	}
	give, err := c.turnOf(ctx, "expire")
	if err != nil {
		return c.explain("expire rows of", err)
	}
	defer give()
	return c.explain("expire rows of", c.expire(ctx, now, ends))
}

func (c *clickhouse) expire(ctx context.Context, now time.Time, ends [levels]int64) error {
	k, err := c.know(ctx, "'scope', 'gone', 'claim'", always)
	if err != nil {
		return err
	}
	var gone []fact
	for scope, s := range k.states {
		before := s.gone
		s.expire(ends)
		for level, at := range s.gone {
			if at != before[level] {
				gone = append(gone, fact{kind: kindGone, scope: scope, late: int64(level), version: uint64(max(at, 0)), minor: tickOrder(at)})
			}
		}
	}
	if end := ends[questionLevel]; end > k.questionsGone {
		gone = append(gone, fact{kind: kindGone, late: goneQuestions, version: uint64(max(end, 0)), minor: tickOrder(end)})
		k.questionsGone = end
	}
	if len(gone) > 0 {
		err := c.insert(ctx, gone)
		c.expired.Add(1)
		if err != nil {
			return err
		}
	}
	if now.Sub(c.deleted) < deleteEvery {
		return nil
	}
	if err := c.delete(ctx, k); err != nil {
		return err
	}
	c.deleted = now
	return nil
}

// delete deletes what expired some time ago, and claims that are not the highest.
func (c *clickhouse) delete(ctx context.Context, k *known) error {
	grace := int64(deleteAfter / time.Second)
	var dead []string
	add := func(of string, at int64) {
		if at != never {
			dead = append(dead, fmt.Sprintf("%s AND at < %d", of, at-grace))
		}
	}
	for scope, s := range k.states {
		of := "scope = " + literal(scope) + " AND kind = "
		for level := range levels {
			if level == 0 {
				add(of+"'tick' AND late < 0", s.gone[0])
				add(of+"'tick' AND late >= 0", s.gone[1])
				continue
			}
			add(of+"'"+kindNames[level]+"'", s.gone[level])
		}
	}
	for scope, m := range k.claims {
		dead = append(dead, fmt.Sprintf("scope = %s AND kind = 'claim' AND at = 0 AND last < %d", literal(scope), m.number))
	}
	add("kind = 'question'", k.questionsGone)
	add("kind = 'split'", k.questionsGone)
	// No more in one statement than a query may be long.
	for len(dead) > 0 {
		n := min(len(dead), 200)
		where := "(" + strings.Join(dead[:n], ") OR (") + ")"
		dead = dead[n:]
		var rows uint64
		if err := c.one(ctx, "SELECT count() FROM facts WHERE "+where, &rows); err != nil {
			return err
		}
		if rows == 0 {
			continue
		}
		if err := c.conn.Exec(ctx, "DELETE FROM facts WHERE "+where); err != nil {
			return err
		}
	}
	return nil
}
