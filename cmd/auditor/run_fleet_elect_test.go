package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/store"
)

// electing are members of a fleet of which it is known only who tells sinks.
type electing struct {
	t       *testing.T
	begun   time.Time
	store   *store.Memory
	r       *rand.Rand
	trouble bool // exchanges fail, and members hang
	members []*elector

	mu    sync.Mutex
	terms []term // in which one member told, each from its first word to its last
	late  sync.WaitGroup
}

type term struct {
	member      string
	first, last time.Time
}

// elector is one of them. While it hangs it does nothing at all.
type elector struct {
	f       *fleet
	of      *electing
	hangs   time.Time // until then
	reached time.Time // when its latest exchange that succeeded began
	tries   int       // exchanges since then
	telling bool
	now     int // its latest term
}

func (e *electing) random(n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.r.IntN(n)
}

func (e *electing) millis(n int) time.Duration { return time.Duration(e.random(n)) * time.Millisecond }

// hang keeps a member from doing anything.
func (m *elector) hang(d time.Duration) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.hangs = time.Now().Add(d)
}

// await waits until a member does not hang.
func (m *elector) await() {
	for {
		m.of.mu.Lock()
		d := time.Until(m.hangs)
		m.of.mu.Unlock()
		if d <= 0 {
			return
		}
		time.Sleep(d + m.of.millis(50)) // who wakes first is not known
	}
}

// Exchange implements store.Sharer.
func (m *elector) Exchange(ctx context.Context, name, member string, seq uint64, told []store.Share, since store.Since) ([]store.Share, store.Since, error) {
	begun := time.Now()
	var says memberState
	if err := json.Unmarshal(told[0].State, &says); err != nil || says.Telling && begun.Sub(m.reached) >= staleAfter {
		m.of.t.Errorf("+%v %s says that it tells, and has not heard for %v whether others do (%v)", begun.Sub(m.of.begun), m.f.member, begun.Sub(m.reached), err)
	}
	out, next, err := m.exchange(ctx, name, member, seq, told, since)
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if m.tries++; err == nil {
		m.tries, m.reached = 0, begun
	}
	return out, next, err
}

// exchange is the store's, over a network on which everything happens that may.
func (m *elector) exchange(ctx context.Context, name, member string, seq uint64, told []store.Share, since store.Since) ([]store.Share, store.Since, error) {
	e := m.of
	do := func() ([]store.Share, store.Since, error) {
		return e.store.Exchange(context.Background(), name, member, seq, told, since)
	}
	failed := errors.New("of this test")
	time.Sleep(e.millis(50))
	e.mu.Lock()
	trouble := e.trouble
	e.mu.Unlock()
	what := 100
	if trouble {
		what = e.random(60)
	}
	switch what {
	case 0: // it is away for a while
		end := time.Now().Add(e.millis(20_000))
		for time.Now().Before(end) && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		return nil, since, failed
	case 1: // the answer is lost
		_, _, _ = do()
		return nil, since, failed
	case 2: // it is carried out when nobody waits for it any more
		late := e.millis(40_000)
		e.late.Go(func() {
			time.Sleep(late)
			_, _, _ = do()
		})
		<-ctx.Done()
		return nil, since, ctx.Err()
	case 3: // slow
		time.Sleep(e.millis(3_900))
	case 4: // the member hangs when all is done
		out, next, err := do()
		m.hang(e.millis(30_000))
		m.await()
		return out, next, err
	case 5: // and when it has told, but not heard
		_, _, _ = do()
		m.hang(e.millis(30_000))
		m.await()
	case 6: // and before
		m.hang(e.millis(30_000))
		m.await()
		if ctx.Err() != nil && e.random(2) == 0 {
			return nil, since, ctx.Err()
		}
	}
	return do()
}

// look looks as what judges does, and keeps what comes of it.
func (m *elector) look(model *budget.Model) {
	e := m.of
	e.mu.Lock()
	defer e.mu.Unlock()
	v := m.f.view(nil, model, nil)
	now := time.Now()
	is := v.mode == telling
	if v.mode == apart && m.tries < 2 {
		e.t.Errorf("+%v %s goes by its own share, and has hardly asked", now.Sub(e.begun), m.f.member)
	}
	switch {
	case is && !m.telling:
		m.now = len(e.terms)
		e.terms = append(e.terms, term{m.f.member, now, now})
	case is:
		e.terms[m.now].last = now
	}
	m.telling = is
}

func (e *electing) join(ctx context.Context, name string, all *sync.WaitGroup) *elector {
	m := &elector{of: e}
	m.f = newFleet(m, slog.New(slog.DiscardHandler))
	m.f.member = name
	m.f.offer(memberState{}, true)
	e.members = append(e.members, m)
	model := budget.DefaultModel(budget.DefaultRatio())
	all.Go(func() { every(ctx, exchangeEvery, func() { m.await(); m.f.round(ctx, "fleet", nil, memberState{}) }) })
	all.Go(func() { every(ctx, 500*time.Millisecond, func() { m.await(); m.look(&model) }) })
	return m
}

// Of the instances of a fleet one tells at a time, whatever fails, and whoever hangs and
// goes on; and one does once all is well. Between two terms of others each has seen that it
// tells no more: it forgets then what it knew of alerts, and goes on with what is kept.
func TestFleetElectsOne(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &electing{t: t, begun: time.Now(), store: store.NewMemory(), r: rand.New(rand.NewPCG(seed, 17))}
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for i := range 3 {
					e.join(ctx, fmt.Sprint("m", i), &all)
				}
				for range 4 {
					set := func(trouble bool) {
						e.mu.Lock()
						defer e.mu.Unlock()
						e.trouble = trouble
					}
					set(true)
					time.Sleep(3 * time.Minute)
					set(false)
					time.Sleep(time.Minute) // until whoever hangs goes on, and somebody is elected
					time.Sleep(time.Millisecond)
					one := 0
					for _, m := range e.members {
						e.mu.Lock()
						if m.telling {
							one++
						}
						e.mu.Unlock()
					}
					if one != 1 {
						t.Errorf("+%v %d instances tell", time.Since(e.begun), one)
					}
				}
				cancel()
				all.Wait()
				e.late.Wait()
				for i := 1; i < len(e.terms); i++ {
					a, b := e.terms[i-1], e.terms[i]
					if !a.last.Before(b.first) {
						t.Errorf("%s tells from +%v to +%v, and %s from +%v on", a.member, a.first.Sub(e.begun), a.last.Sub(e.begun), b.member, b.first.Sub(e.begun))
					}
				}
				t.Logf("%d terms", len(e.terms))
			})
		})
	}
}
