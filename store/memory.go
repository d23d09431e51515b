package store

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// Memory is a store that lasts as long as its process. It keeps the contract in
// the plainest way there is, so that it can stand for the others in tests.
type Memory struct {
	mu        sync.Mutex
	closed    bool
	rows      [levels]map[int64]map[key]value // by time, too
	ids       map[series]int64
	names     []series // by number, from 1
	states    map[string]*state
	rules     map[string]uint32 // taken
	questions map[questionID]Question
	splits    map[splitID]bool
	counted   map[string][]Range
	positions map[string][]byte
	shares    map[toldID]toldShare
}

type questionID struct {
	keyHash                  [16]byte
	lot                      aggregate.Lot
	scope, dependency, route string
	last                     int64
}

type splitID struct {
	dependency string
	at         int64
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	m := &Memory{
		ids: map[series]int64{}, names: make([]series, 1), states: map[string]*state{}, rules: map[string]uint32{},
		questions: map[questionID]Question{}, splits: map[splitID]bool{}, counted: map[string][]Range{}, positions: map[string][]byte{}, shares: map[toldID]toldShare{},
	}
	for i := range m.rows {
		m.rows[i] = map[int64]map[key]value{}
	}
	return m
}

// do runs f alone, unless the store is closed or ctx is done.
func (m *Memory) do(ctx context.Context, f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f()
}

// Write implements Store. Once it is checked, a write cannot fail.
func (m *Memory) Write(ctx context.Context, w *Write) error {
	if err := w.check(); err != nil {
		return err
	}
	return m.do(ctx, func() error { return apply(memoryTables{m}, w) })
}

// Rows implements Store.
func (m *Memory) Rows(ctx context.Context, q Query) (out []Row, err error) {
	level, err := q.check()
	if err != nil {
		return nil, err
	}
	err = m.do(ctx, func() error {
		f := found{q: &q, closed: func(scope string) int64 { return m.states[scope].closed() }}
		notMade := func(k key) bool {
			from, to := m.states[m.names[k.series].scope].pendingHours()
			return k.at >= from && k.at < to
		}
		keys := m.keys(level, q.From, q.To, func(k key) bool {
			s := &m.names[k.series]
			return q.matches(s) && k.at >= m.states[s.scope].gone[level] && (level != hourLevel || !notMade(k))
		})
		slices.SortFunc(keys, compareKeys)
		for _, k := range keys {
			v := m.rows[level][k.at][k]
			if err := f.add(k, &m.names[k.series], &v); err != nil {
				return err
			}
		}
		if level == hourLevel {
			hours := pending{}
			for _, k := range m.keys(level-1, q.From, q.To, func(k key) bool { return q.matches(&m.names[k.series]) && notMade(k) }) {
				v := m.rows[level-1][k.at][k]
				if err := hours.add(k, &v); err != nil {
					return err
				}
			}
			if err := f.addPending(hours, func(id int64) *series { return &m.names[id] }); err != nil {
				return err
			}
		}
		out = f.sorted()
		return nil
	})
	return out, err
}

// keys returns the keys of a level from one time to another, not included, that
// match.
func (m *Memory) keys(level int, from, to int64, match func(key) bool) []key {
	var out []key
	add := func(at int64) {
		for k := range m.rows[level][at] {
			if match(k) {
				out = append(out, k)
			}
		}
	}
	if step := resolutions[level]; from < to && uint64(to-from)/uint64(step) <= uint64(len(m.rows[level])) {
		for at := -floor(-from, step); at < to; at += step {
			add(at)
		}
		return out
	}
	for at := range m.rows[level] {
		if at >= from && at < to {
			add(at)
		}
	}
	return out
}

// Questions implements Store.
func (m *Memory) Questions(ctx context.Context, keyHash [16]byte, limit int) (out []Question, err error) {
	err = m.do(ctx, func() error {
		out = m.asked(func(q *Question) bool { return q.KeyHash == keyHash })
		slices.SortFunc(out, latest)
		out = out[:min(len(out), max(limit, 0))]
		return nil
	})
	return out, err
}

// WorstQuestions implements Store.
func (m *Memory) WorstQuestions(ctx context.Context, q QuestionQuery) (out []Question, err error) {
	err = m.do(ctx, func() error {
		out = m.asked(func(x *Question) bool { return !x.Last.Before(q.From) && x.Last.Before(q.To) })
		if len(out) > q.Among {
			out = nil
			return q.tooMany()
		}
		out = slices.DeleteFunc(out, func(x Question) bool { return !q.matches(&x) })
		slices.SortFunc(out, worse)
		out = out[:min(len(out), max(q.Limit, 0))]
		return nil
	})
	return out, err
}

func (m *Memory) asked(match func(*Question) bool) (out []Question) {
	for _, q := range m.questions {
		if match(&q) {
			q.Peers = slices.Clone(q.Peers)
			out = append(out, q)
		}
	}
	return out
}

// Splits implements Store.
func (m *Memory) Splits(ctx context.Context, from, to int64) (out []string, err error) {
	err = m.do(ctx, func() error {
		for s := range m.splits {
			if s.at >= floor(from, splitEvery) && s.at < to {
				out = append(out, s.dependency)
			}
		}
		slices.Sort(out)
		out = slices.Compact(out)
		return nil
	})
	return out, err
}

// Counted implements Store.
func (m *Memory) Counted(ctx context.Context, partition string) (out []Range, err error) {
	err = m.do(ctx, func() error {
		out = slices.Clone(m.counted[partition])
		return nil
	})
	return out, err
}

// Closed implements Store.
func (m *Memory) Closed(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	err := m.do(ctx, func() error {
		for scope, s := range m.states {
			if at := s.closed(); at != never {
				out[scope] = at
			}
		}
		return nil
	})
	return out, err
}

// NextRules implements Store.
func (m *Memory) NextRules(ctx context.Context, scope string) (rules uint32, err error) {
	err = m.do(ctx, func() error {
		rules = m.rules[scope]
		if s := m.states[scope]; s != nil {
			for _, e := range s.eras {
				rules = max(rules, e.rules)
			}
		}
		rules++
		m.rules[scope] = rules
		return nil
	})
	return rules, err
}

// Note implements Store.
func (m *Memory) Note(ctx context.Context, scope string) (note []byte, err error) {
	err = m.do(ctx, func() error {
		if s := m.states[scope]; s != nil {
			note = bytes.Clone(s.note)
		}
		return nil
	})
	return note, err
}

// Load implements Store.
func (m *Memory) Load(ctx context.Context, name string) (state []byte, err error) {
	err = m.do(ctx, func() error {
		state = bytes.Clone(m.positions[name])
		return nil
	})
	return state, err
}

// Save implements Store.
func (m *Memory) Save(ctx context.Context, name string, state []byte) error {
	return m.do(ctx, func() error {
		m.positions[name] = append([]byte{}, state...)
		return nil
	})
}

// Expire implements Store.
func (m *Memory) Expire(ctx context.Context, now time.Time, retention map[Resolution]time.Duration) error {
	ends, err := cutoffs(now, retention)
	if err != nil {
		return err
	}
	return m.do(ctx, func() error {
		for _, s := range m.states {
			s.expire(ends)
		}
		for i := range m.rows {
			maps.DeleteFunc(m.rows[i], func(_ int64, rows map[key]value) bool {
				maps.DeleteFunc(rows, func(k key, _ value) bool {
					gone := m.states[m.names[k.series].scope].gone
					if i == 0 && k.late != OnTime {
						return k.at < gone[1]
					}
					return k.at < gone[i]
				})
				return len(rows) == 0
			})
		}
		maps.DeleteFunc(m.questions, func(_ questionID, q Question) bool {
			return ends[questionLevel] != never && q.Last.UnixNano() < ends[questionLevel]*int64(time.Second)
		})
		maps.DeleteFunc(m.splits, func(s splitID, _ bool) bool {
			return ends[questionLevel] != never && s.at < ends[questionLevel]-splitEvery
		})
		return nil
	})
}

// Check implements Store.
func (m *Memory) Check(ctx context.Context) error { return m.do(ctx, func() error { return nil }) }

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
