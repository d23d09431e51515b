package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
)

func questionFact(q *Question) *fact {
	return &fact{
		kind: kindQuestion, at: secondOf(q.Last), scope: q.Scope, dependency: q.Dependency, route: q.Route, keyHash: string(q.KeyHash[:]),
		lot: uint32(q.Lot), last: q.Last.UnixNano(), first: q.First.UnixNano(), originator: q.Originator, peers: q.Peers,
		arrivals: uint64(q.Arrivals), minor: uint64(q.Arrivals),
	}
}

// secondOf is the second that a time is in.
func secondOf(t time.Time) int64 { return floor(t.UnixNano(), int64(time.Second)) / int64(time.Second) }

func splitFact(s splitID) *fact {
	return &fact{kind: kindSplit, at: s.at, dependency: s.dependency}
}

func (t *clickhouseTables) question(q *Question) error {
	t.questions = append(t.questions, *q)
	return nil
}

func (t *clickhouseTables) split(dependency string, at int64) error {
	t.splits[splitID{dependency, at}] = true
	return nil
}

func (t *clickhouseTables) elsewhere(q *Question, within time.Duration) (bool, error) {
	if t.drawn == nil {
		var err error
		if t.drawn, err = t.c.drawnElsewhere(t.ctx, t.w); err != nil {
			return false, err
		}
	}
	for i := range t.drawn {
		if q.splits(&t.drawn[i], within) {
			return true, nil
		}
	}
	return false, nil
}

// drawnElsewhere are the questions of other scopes that those drawn of a write may be
// parts of. It is not nil.
func (c *clickhouse) drawnElsewhere(ctx context.Context, w *Write) ([]Question, error) {
	from := int64(math.MaxInt64)
	var hashes []string
	for i := range w.Questions {
		if q := &w.Questions[i]; q.Lot.Drawn() {
			hashes = append(hashes, string(q.KeyHash[:]))
			from = min(from, secondOf(q.First.Add(-w.Horizon)))
		}
	}
	out := []Question{}
	if len(hashes) == 0 {
		return out, nil
	}
	err := c.asked(ctx, fmt.Sprintf("at >= %d AND scope <> %s AND key_hash IN (%s)", from, literal(w.Scope), literals(hashes, literal)), "",
		func(q Question) { out = append(out, q) })
	return out, err
}

// compareAgain compares the drawn questions of a write once more, now that it is
// stored. Of two scopes that write parts of one question at the same time neither has
// seen the other's before; after both have written at least one does.
func (c *clickhouse) compareAgain(ctx context.Context, t *clickhouseTables) error {
	if t.drawn == nil {
		return nil
	}
	others, err := c.drawnElsewhere(ctx, t.w)
	if err != nil {
		return err
	}
	var missing []fact
	for i := range t.w.Questions {
		q := &t.w.Questions[i]
		id := splitID{q.Dependency, floor(q.Last.Unix(), splitEvery)}
		if !q.Lot.Drawn() || t.splits[id] {
			continue
		}
		if slices.ContainsFunc(others, func(x Question) bool { return q.splits(&x, t.w.Horizon) }) {
			t.splits[id] = true
			missing = append(missing, *splitFact(id))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return c.insert(ctx, missing)
}

// factQuestion are the columns of a question that scanQuestions reads.
const factQuestion = "key_hash, lot, scope, dependency, route, originator, peers, first, last, toUInt32(arrivals)"

// asked reads questions that have not expired. where is about columns of the sorting
// key; rest is what comes after it in the query.
func (c *clickhouse) asked(ctx context.Context, where, rest string, each func(Question)) error {
	return c.scanQuestions(ctx, "SELECT "+factQuestion+" FROM facts FINAL PREWHERE "+storedQuestions+" AND "+where+" "+rest, each)
}

func (c *clickhouse) scanQuestions(ctx context.Context, text string, each func(Question)) error {
	var q Question
	var hash string
	var lot, arrivals uint32
	var first, last int64
	return c.query(ctx, text,
		[]any{&hash, &lot, &q.Scope, &q.Dependency, &q.Route, &q.Originator, &q.Peers, &first, &last, &arrivals}, func() error {
			out := q
			copy(out.KeyHash[:], hash)
			out.Lot, out.Arrivals = aggregate.Lot(lot), arrivals
			out.First, out.Last = time.Unix(0, first).UTC(), time.Unix(0, last).UTC()
			out.Peers = slices.Clone(q.Peers)
			each(out)
			return nil
		})
}

// questionsGone is, in SQL, the second before which questions have expired.
var questionsGone = fmt.Sprintf("(SELECT max(version) FROM facts WHERE kind = 'gone' AND at = 0 AND late = %d)", goneQuestions)

// storedQuestions is, in SQL, what is true of questions that have not expired.
var storedQuestions = "kind = 'question' AND at >= " + questionsGone

// Questions implements Store.
func (c *clickhouse) Questions(ctx context.Context, keyHash [16]byte, limit int) (out []Question, err error) {
	if err := c.ready(ctx); err != nil {
		return nil, c.explain("read", err)
	}
	err = c.asked(ctx, "key_hash = "+literal(string(keyHash[:])), fmt.Sprintf("ORDER BY last DESC, first DESC, scope, dependency, route, lot LIMIT %d", max(limit, 0)),
		func(q Question) { out = append(out, q) })
	return out, c.explain("read", err)
}

// WorstQuestions implements Store.
func (c *clickhouse) WorstQuestions(ctx context.Context, q QuestionQuery) (out []Question, err error) {
	if err := c.ready(ctx); err != nil {
		return nil, c.explain("read", err)
	}
	out, err = c.worst(ctx, &q)
	if errors.Is(err, ErrTooMany) {
		return nil, err
	}
	return out, c.explain("read", err)
}

// worst finds the questions with the most arrivals. Of two rows of one question the one
// with more arrivals is the one that stays, so it is found first among all rows too,
// which need not be merged for it: it is enough to leave out what was there before.
func (c *clickhouse) worst(ctx context.Context, q *QuestionQuery) ([]Question, error) {
	if err := c.notTooMany(ctx, q); err != nil || q.Limit <= 0 {
		return nil, err
	}
	where := storedQuestions + lastWithin(q)
	for _, name := range [...]struct{ column, text string }{{"dependency", q.Dependency}, {"route", q.Route}} {
		if name.text != "" {
			where += " AND " + name.column + " = " + literal(name.text)
		}
	}
	from := "facts WHERE " + where
	if q.Originator != "" { // is not of the key: a row may have another than the one that replaced it
		from = "facts FINAL PREWHERE " + where + " WHERE originator = " + literal(q.Originator)
	}
	// What is read again after a crash makes few rows of a question.
	for rows := q.Limit + q.Limit/4 + 10; ; rows *= 4 {
		var out []Question
		err := c.scanQuestions(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY facts.arrivals DESC, facts.last LIMIT %d", factQuestion, from, rows),
			func(x Question) { out = append(out, x) })
		if err != nil {
			return nil, err
		}
		all := len(out) < rows
		slices.SortFunc(out, worse)
		var end Question // some that equal the last one may be missing
		if !all {
			end = out[rows-1]
		}
		out = whole(out)
		if all || len(out) >= q.Limit && (out[q.Limit-1].Arrivals != end.Arrivals || !out[q.Limit-1].Last.Equal(end.Last)) {
			return out[:min(len(out), q.Limit)], nil
		}
	}
}

// lastWithin is, in SQL, that a question came last in the range of a query.
func lastWithin(q *QuestionQuery) string {
	return fmt.Sprintf(" AND at >= %d AND at <= %d AND last >= %d AND last < %d", secondOf(q.From), secondOf(q.To), q.From.UnixNano(), q.To.UnixNano())
}

// whole leaves out all but the first of what is one question.
func whole(list []Question) []Question {
	type name struct {
		key                      [16]byte
		lot                      aggregate.Lot
		scope, dependency, route string
		last                     int64
	}
	had := map[name]bool{}
	return slices.DeleteFunc(list, func(q Question) bool {
		n := name{q.KeyHash, q.Lot, q.Scope, q.Dependency, q.Route, q.Last.UnixNano()}
		again := had[n]
		had[n] = true
		return again
	})
}

// notTooMany returns an error if more questions came last in a range than a query may
// look at. Whole seconds are counted first, with rows that others have replaced: that
// the index knows, and it is seldom too many.
func (c *clickhouse) notTooMany(ctx context.Context, q *QuestionQuery) error {
	var rows uint64
	err := c.one(ctx, fmt.Sprintf("SELECT count() FROM facts WHERE kind = 'question' AND at >= %d AND at <= %d", secondOf(q.From), secondOf(q.To)), &rows)
	if err != nil || rows <= uint64(q.Among) {
		return err
	}
	err = c.one(ctx, fmt.Sprintf("SELECT count() FROM (SELECT 1 FROM facts FINAL PREWHERE %s%s LIMIT %d)", storedQuestions, lastWithin(q), q.Among+1), &rows)
	if err == nil && rows > uint64(q.Among) {
		err = q.tooMany()
	}
	return err
}

// Splits implements Store.
func (c *clickhouse) Splits(ctx context.Context, from, to int64) (out []string, err error) {
	if err := c.ready(ctx); err != nil {
		return nil, c.explain("read", err)
	}
	var dependency string
	err = c.query(ctx, fmt.Sprintf("SELECT DISTINCT dependency FROM facts WHERE kind = 'split' AND at >= %d AND at < %d AND at >= %s - %d ORDER BY dependency",
		floor(from, splitEvery), to, questionsGone, splitEvery), []any{&dependency}, func() error {
		out = append(out, dependency)
		return nil
	})
	return out, c.explain("read", err)
}
