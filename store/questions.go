package store

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// Question is one episode of a question, stored by itself under the hash of its key.
//
// It is named by its scope, dependency, route, key, lot and last arrival. What is read
// again after a crash may lack the first arrivals of an episode that went on for long,
// but not its last; so of two with one name the one with more arrivals stays.
type Question struct {
	KeyHash     [16]byte
	Lot         aggregate.Lot
	Scope       string
	Dependency  string
	Route       string
	Originator  string
	Peers       []string
	First, Last time.Time
	Arrivals    uint32
}

// QuestionQuery asks for the questions that came last from From up to To, not
// included. An empty Dependency, Route or Originator asks for all.
type QuestionQuery struct {
	From, To                      time.Time
	Dependency, Route, Originator string
	// Limit bounds the questions returned, Among those that they are looked for among,
	// whatever they are of; more is ErrTooMany.
	Limit, Among int
}

func (q *QuestionQuery) tooMany() error {
	return fmt.Errorf("%w: more than %d questions came last in that range", ErrTooMany, q.Among)
}

func (q *QuestionQuery) matches(x *Question) bool {
	return (q.Dependency == "" || x.Dependency == q.Dependency) && (q.Route == "" || x.Route == q.Route) &&
		(q.Originator == "" || x.Originator == q.Originator)
}

// worse orders by arrivals, the most first, and equals by their last arrival.
func worse(a, b Question) int {
	return cmp.Or(cmp.Compare(b.Arrivals, a.Arrivals), a.Last.Compare(b.Last), slices.Compare(a.KeyHash[:], b.KeyHash[:]), named(a, b))
}

// latest orders by last arrival, the latest first.
func latest(a, b Question) int {
	return cmp.Or(b.Last.Compare(a.Last), b.First.Compare(a.First), named(a, b))
}

func named(a, b Question) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Dependency, b.Dependency), cmp.Compare(a.Route, b.Route), cmp.Compare(a.Lot, b.Lot))
}

// check returns an error for a question that no store can keep.
func (q *Question) check(w *Write) error {
	if q.Scope != w.Scope {
		return fmt.Errorf("store: a question of scope %q in a write of scope %q", q.Scope, w.Scope)
	}
	if q.First.IsZero() || q.Last.Before(q.First) {
		return fmt.Errorf("store: a question from %v to %v", q.First, q.Last)
	}
	return nil
}

// splitEvery is how finely it is kept, in seconds, when a dependency was split.
const splitEvery = int64(Minute)

// question stores a question. One that is drawn is compared with what other scopes
// stored of it: within a horizon of each other, the two are one question, of which
// each scope saw a part. That they have a last arrival in common means that one scope
// took over from the other, and counted nothing twice.
func (p *writing) question(q *Question) error {
	if err := p.t.question(q); err != nil || p.w.Horizon <= 0 || !q.Lot.Drawn() {
		return err
	}
	split, err := p.t.elsewhere(q, p.w.Horizon)
	if err != nil || !split {
		return err
	}
	return p.t.split(q.Dependency, floor(q.Last.Unix(), splitEvery))
}

// splits says that x is one question with q, of which another scope saw a part.
func (q *Question) splits(x *Question, within time.Duration) bool {
	return x.KeyHash == q.KeyHash && x.Dependency == q.Dependency && x.Route == q.Route && x.Lot == q.Lot && x.Scope != q.Scope &&
		!x.Last.Before(q.First.Add(-within)) && !x.First.After(q.Last.Add(within)) && !x.Last.Equal(q.Last)
}
