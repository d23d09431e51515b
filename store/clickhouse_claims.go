package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// A claim is what a process writes before it writes to a scope, and looks for after
// each write. As all look after they have written, of two processes that write a
// scope at once at least one sees the other: it does not acknowledge its write, claims
// the scope anew, reads what is there by then, and writes again. So nobody who
// acknowledged a write did so by what another had changed meanwhile. Claims are
// numbered; one is held by the process that alone made the highest.
//
// What a process that has lost its claim still writes, say because it was held up on
// the way, is either a tick's row, which may come at any time, or loses against what is
// written under the later claim. Ticks' rows say under which claim they were written:
// see replaces.

// known is what facts say of scopes.
type known struct {
	states        map[string]*state
	claims        map[string]*claim
	questionsGone int64 // questions that came last before it have expired
}

// claim is the highest claim of a scope.
type claim struct {
	number int64
	tokens []string
}

// heldBy says that a process alone made the claim.
func (m *claim) heldBy(token string) bool {
	return m != nil && len(m.tokens) == 1 && m.tokens[0] == token
}

// goneQuestions is the level of kindGone that is of questions, of all scopes.
const goneQuestions = 100

// knownColumns are what known.add reads.
const knownColumns = "scope, late, last, name, minor, counts"

// knownFact are the columns of a fact that known.add reads.
type knownFact struct {
	kind              int8
	scope, name, text string
	late, last        int64
	minor             uint64
}

func newKnown() *known {
	return &known{states: map[string]*state{}, claims: map[string]*claim{}, questionsGone: never}
}

// state is that of a scope, made if there is none.
func (k *known) state(scope string) *state {
	s := k.states[scope]
	if s == nil {
		s = newState()
		k.states[scope] = s
	}
	return s
}

// closed is what found asks.
func (k *known) closed(scope string) int64 { return k.state(scope).closed() }

func (k *known) add(f *knownFact) error {
	switch kind(f.kind) {
	case kindScope:
		return k.state(f.scope).decode([]byte(f.text))
	case kindGone:
		switch at := tickOf(f.minor); {
		case f.late == goneQuestions:
			k.questionsGone = max(k.questionsGone, at)
		case f.late >= 0 && f.late < levels:
			k.state(f.scope).gone[f.late] = at
		}
	case kindClaim:
		switch m := k.claims[f.scope]; {
		case m == nil || m.number < f.last:
			k.claims[f.scope] = &claim{f.last, []string{f.name}}
		case m.number == f.last:
			m.tokens = append(m.tokens, f.name)
		}
	}
	return nil
}

// tickOf and tickOrder turn a tick into a number of the same order, from 0 on.
func tickOf(order uint64) int64   { return int64(order ^ 1<<63) }
func tickOrder(tick int64) uint64 { return uint64(tick) ^ 1<<63 }

// storedState is a state in a fact, but for what is gone.
type storedState struct {
	Eras       []storedEra `json:"eras"`
	Made       int64       `json:"made"`
	Hours      int64       `json:"hours"`
	HourSeries int64       `json:"hour_series"`
	Note       []byte      `json:"note,omitempty"`
}

type storedEra struct {
	Rules  uint32 `json:"rules"`
	Starts int64  `json:"starts"`
	Closed int64  `json:"closed"`
	Top    int64  `json:"top"`
}

func (s *state) encode() []byte {
	out := storedState{Eras: []storedEra{}, Made: s.made, Hours: s.hours, HourSeries: s.hourSeries, Note: s.note}
	for _, e := range s.eras {
		out.Eras = append(out.Eras, storedEra{e.rules, e.starts, e.closed, e.top})
	}
	text, _ := json.Marshal(out) // of numbers and bytes
	return text
}

func (s *state) decode(text []byte) error {
	var in storedState
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("%w: the state of a scope: %w", ErrSchema, err)
	}
	s.made, s.hours, s.hourSeries, s.note, s.eras = in.Made, in.Hours, in.HourSeries, in.Note, nil
	for _, e := range in.Eras {
		s.eras = append(s.eras, &era{e.Rules, e.Starts, e.Closed, e.Top})
	}
	return nil
}

// know reads what facts say of the scopes that a condition in SQL is true of.
func (c *clickhouse) know(ctx context.Context, kinds, where string) (*known, error) {
	k, f := newKnown(), new(knownFact)
	err := c.query(ctx, "SELECT toInt8(kind), "+knownColumns+" FROM facts FINAL PREWHERE kind IN ("+kinds+") AND at = 0 AND "+where,
		[]any{&f.kind, &f.scope, &f.late, &f.last, &f.name, &f.minor, &f.text}, func() error { return k.add(f) })
	return k, err
}

// How long a process goes by what it knows of a scope that it holds. Only who holds the
// claim changes a scope's state, but for what has expired.
const (
	// keepFor is until it is read again, for what has expired: far less than deleteAfter,
	// until when that is still there.
	keepFor = time.Minute
	// holdFor is how long after the claim was seen to hold: writes come each second, and
	// who was held up for longer may have lost it.
	holdFor = 3 * time.Second
)

// stateOf is what is known of a scope, and the number of the claim under which it may be
// changed. It is what this process knows since it last wrote, or read anew. If it is
// out of date another process has claimed the scope since, and then the write that it is
// for is not acknowledged.
func (c *clickhouse) stateOf(ctx context.Context, x *scopeTurn, scope string) (s *state, number int64, err error) {
	expired := c.expired.Load()
	if x.kept != nil && x.expired == expired && time.Since(x.read) < keepFor && time.Since(x.held) < holdFor {
		return x.kept, x.claim, nil
	}
	x.read, x.expired = time.Now(), expired
	return c.hold(ctx, scope)
}

// claimTries is how often a process claims a scope that others claim too.
const claimTries = 8

// hold reads what is known of a scope, and claims it unless this process has. number
// is that of the claim.
func (c *clickhouse) hold(ctx context.Context, scope string) (s *state, number int64, err error) {
	where := "scope = " + literal(scope)
	read := func() (*known, *claim, error) {
		k, err := c.know(ctx, "'scope', 'gone', 'claim'", where)
		if err != nil {
			return nil, nil, err
		}
		return k, k.claims[scope], nil
	}
	k, m, err := read()
	for try := 0; err == nil && !m.heldBy(c.token); try++ {
		if try == claimTries {
			return nil, 0, ErrTakenOver
		}
		if m != nil && len(m.tokens) > 1 { // all who claimed it give way
			if err := giveWay(ctx, try); err != nil {
				return nil, 0, err
			}
		}
		number = 1
		if m != nil {
			number = m.number + 1
		}
		if err := c.insert(ctx, []fact{{kind: kindClaim, scope: scope, last: number, name: c.token}}); err != nil {
			return nil, 0, err
		}
		k, m, err = read()
	}
	if err != nil {
		return nil, 0, err
	}
	// What has expired since the owner wrote is none of its state any more.
	s = k.state(scope)
	s.expire([levels]int64{never, never, never, never})
	return s, m.number, nil
}

// holds says whether this process still holds a claim, after it has written.
func (c *clickhouse) holds(ctx context.Context, scope string, number int64) error {
	k, err := c.know(ctx, "'claim'", "scope = "+literal(scope))
	if err != nil {
		return err
	}
	if m := k.claims[scope]; !m.heldBy(c.token) || m.number != number {
		return ErrTakenOver
	}
	return nil
}

// giveWay waits for a time that others who were too early do not wait too, and longer
// the more often one was.
func giveWay(ctx context.Context, try int) error {
	select {
	case <-time.After(time.Duration(1+rand.IntN(50<<min(try, 4))) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NextRules implements Store. What was written without having been taken counts as
// taken; so does what two processes took at once, and both take another.
func (c *clickhouse) NextRules(ctx context.Context, scope string) (uint32, error) {
	give, err := c.turnOf(ctx, "rules")
	if err != nil {
		return 0, c.explain("write to", err)
	}
	defer give()
	rules, err := c.takeRules(ctx, scope)
	return rules, c.explain("write to", err)
}

func (c *clickhouse) takeRules(ctx context.Context, scope string) (uint32, error) {
	where := "scope = " + literal(scope)
	for try := range claimTries {
		k, err := c.know(ctx, "'scope'", where)
		if err != nil {
			return 0, err
		}
		var next uint32
		for _, e := range k.state(scope).eras {
			next = max(next, e.rules)
		}
		var taken uint32
		err = c.one(ctx, "SELECT max(rules) FROM takings WHERE "+where, &taken)
		if err != nil {
			return 0, err
		}
		next = max(next, taken) + 1
		if err := c.insertSelect(ctx, fmt.Sprintf("INSERT INTO takings (scope, rules, token) SELECT %s, %d, %s", literal(scope), next, literal(c.token))); err != nil {
			return 0, err
		}
		var asked uint64
		err = c.one(ctx, fmt.Sprintf("SELECT count() FROM takings WHERE %s AND rules = %d", where, next), &asked)
		if err != nil {
			return 0, err
		}
		if asked == 1 {
			return next, nil
		}
		if err := giveWay(ctx, try); err != nil {
			return 0, err
		}
	}
	return 0, ErrTakenOver
}
