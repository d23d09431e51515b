package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/pipeline"
	"github.com/targetside/auditor/store"
)

// storeFrom is from how many arrivals on a question is stored by itself, by
// store.questions.
var storeFrom = map[string]uint32{"none": 0, "repeated": 2, "all": 1}

func storedQuestion(scope string, q *pipeline.Question) store.Question {
	return store.Question{
		KeyHash: q.KeyHash, Lot: q.Lot, Scope: scope, Dependency: q.Dependency, Route: q.Route, Originator: q.Originator,
		Peers: q.Peers, First: q.First, Last: q.Last, Arrivals: q.Arrivals,
	}
}

func showStored(in []store.Question) (out []api.Question) {
	for _, q := range in {
		out = append(out, api.Question{
			KeyHash: q.KeyHash, Dependency: q.Dependency, Route: q.Route, Originator: q.Originator,
			Peers: q.Peers, First: q.First, Last: q.Last, Arrivals: q.Arrivals,
		})
	}
	return out
}

func showLive(in []pipeline.Question) (out []api.Question) {
	for _, q := range in {
		out = append(out, api.Question{
			KeyHash: q.KeyHash, Dependency: q.Dependency, Route: q.Route, Originator: q.Originator,
			Peers: q.Peers, First: q.First, Last: q.Last, Arrivals: q.Arrivals, Live: q.Live,
		})
	}
	return out
}

// Questions implements api.Reader. What is live is asked for first: a question that is
// over in between is found in the store, too, and shown once.
func (r *reader) Questions(ctx context.Context, keyHash [16]byte, limit int) ([]api.Question, error) {
	live, err := r.d.setup.Load().live.Questions(ctx, keyHash)
	if err != nil {
		return nil, unavailable(err)
	}
	stored, err := r.d.store.Questions(ctx, keyHash, limit)
	if err != nil {
		return nil, unavailable(err)
	}
	same := func(q *pipeline.Question) func(store.Question) bool {
		return func(s store.Question) bool {
			return s.Dependency == q.Dependency && s.Route == q.Route && s.Lot == q.Lot && s.Last.Equal(q.Last)
		}
	}
	live = slices.DeleteFunc(live, func(q pipeline.Question) bool { return slices.ContainsFunc(stored, same(&q)) })
	out := append(showLive(live), showStored(stored)...)
	slices.SortStableFunc(out, func(a, b api.Question) int { return cmp.Or(b.Last.Compare(a.Last), b.First.Compare(a.First)) })
	return out[:min(len(out), limit)], nil
}

// maxAmong bounds the questions that are gone through for the worst of a range: as many
// as in about a second, in SQLite and in ClickHouse.
const (
	maxAmong           = 500_000
	maxAmongClickHouse = 20_000_000
)

// WorstQuestions implements api.Reader.
func (r *reader) WorstQuestions(ctx context.Context, q api.WorstQuery) ([]api.Question, error) {
	among := maxAmong
	if r.d.setup.Load().loaded.Store.ClickHouse != nil {
		among = maxAmongClickHouse
	}
	found, err := r.d.store.WorstQuestions(ctx, store.QuestionQuery{
		From: q.From, To: q.To, Dependency: q.Dependency, Route: q.Route, Originator: q.Originator,
		Limit: q.Limit, Among: among,
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return showStored(found), nil
}

// splits are the dependencies of which the store has lately seen one question in two
// scopes: what instances find out together.
type splits struct {
	stored atomic.Pointer[map[string]bool]
}

const (
	splitsEvery = 10 * time.Second
	// splitsFor is how far back a question in two scopes is looked for: it is stored a
	// horizon and a lateness after its last arrival, and then said for some minutes.
	splitsFor = 15 * time.Minute
)

// watchSplits asks the store now and then. What it said last holds while it cannot be
// asked.
func (r *reader) watchSplits(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(splitsEvery)
	defer tick.Stop()
	for {
		now := r.newest().Unix()
		if names, err := r.d.store.Splits(ctx, now-int64(splitsFor/time.Second), now+1); err == nil {
			found := map[string]bool{}
			for _, name := range names {
				if found[name] = true; !r.splits.has(name) && !slices.Contains(r.splitNow(), name) {
					log.Warn(splitReason(name))
				}
			}
			r.splits.stored.Store(&found)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// splitNow lists the dependencies that are said to be split.
func (r *reader) splitNow() (names []string) {
	snap := r.Snapshot()
	for i := range snap.Dependencies {
		if d := &snap.Dependencies[i]; d.ScopeSplit {
			names = append(names, d.Name)
		}
	}
	return names
}

func (x *splits) has(dependency string) bool {
	found := x.stored.Load()
	return found != nil && (*found)[dependency]
}

// newest is the newest second of the live windows: logs may be of long ago.
func (r *reader) newest() time.Time {
	snap := r.Snapshot()
	var at time.Time
	for i := range snap.Dependencies {
		for _, w := range snap.Dependencies[i].Windows {
			if w.To.After(at) {
				at = w.To
			}
		}
	}
	if at.IsZero() {
		return snap.At
	}
	return at
}

// splitReason says what is wrong, and what to do about it.
func splitReason(dependency string) string {
	return fmt.Sprintf("%s: one question came in two scopes, so that repeats are missing; say keyed: false of topics that are not keyed by question key", dependency)
}

// splitIn lists the dependencies that are split in a range: as the store knows them,
// and as they are now if the range reaches until then.
func (r *reader) splitIn(ctx context.Context, q *api.RangeQuery) ([]string, error) {
	names, err := r.d.store.Splits(ctx, q.From.Unix(), q.To.Unix())
	if err != nil {
		return nil, err
	}
	if !q.To.Before(r.newest().Add(-splitsFor)) {
		names = append(names, r.splitNow()...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return q.Dependency != "" && name != q.Dependency })
	slices.Sort(names)
	return slices.Compact(names), nil
}
