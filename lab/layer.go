package lab

import (
	"math"
	"slices"
	"time"
)

// degraded is the status of an answer that a layer makes up for one that it did not
// get.
const degraded = 203

// layerState is a layer while it works.
type layerState struct {
	*Layer
	workers, queue int
	routeMost      int   // workers that one route may hold
	memory         int   // calls that are held at most
	down           int64 // until when, after it ran out of memory
	busy           int
	byRoute        []int // of busy
	waiting        fifo[ref]
	queued         int             // of waiting, those that are still wanted
	repeats        [byLeaving]bool // after which failures
	budgets        []budget        // by target, or one for all
}

func newLayer(l *Layer, s *Scenario) layerState {
	st := layerState{Layer: l, workers: l.Workers.scaled(s.Scale), queue: l.Queue.scaled(s.Scale), byRoute: make([]int, len(s.Routes)),
		memory: l.Memory.scaled(s.Scale), routeMost: math.MaxInt}
	if l.RouteShare > 0 {
		st.routeMost = max(int(l.RouteShare*float64(st.workers)), 1)
	}
	for by, what := range [...]string{byTimeout: onTimeout, byError: onError, byRefusal: onRefused} {
		st.repeats[by] = len(l.RetryOn) == 0 || slices.Contains(l.RetryOn, what)
	}
	if l.Budget != nil {
		n := len(s.Targets)
		if l.Budget.Per == "layer" {
			n = 1
		}
		for range n {
			st.budgets = append(st.budgets, newBudget(l.Budget, s.Scale))
		}
	}
	return st
}

// budget is the one that repeats to a target are taken from, nil if none bounds them.
func (l *layerState) budget(target int) budget {
	switch {
	case l.budgets == nil:
		return nil
	case len(l.budgets) == 1:
		return l.budgets[0]
	}
	return l.budgets[target]
}

func (m *model) arriveAtLayer(r ref, c *call) {
	l := m.layer(c)
	c.start = m.now
	if m.now < l.down {
		m.turnAway(r, c)
		return
	}
	full := l.busy >= l.workers
	if l.byRoute[m.routeOf(c)] >= l.routeMost || full && l.queued >= l.queue {
		m.turnAway(r, c)
		return
	}
	if l.busy+l.queued >= l.memory {
		m.layerDies(l)
		return
	}
	if full {
		c.state = inQueue
		l.queued++
		l.waiting.push(r)
		return
	}
	m.serve(r, c)
}

// turnAway is a 503 without work.
func (m *model) turnAway(r ref, c *call) { m.reply(r, c, 503, 0) }

// serve gives a call a worker.
func (m *model) serve(r ref, c *call) {
	l := m.layer(c)
	l.busy++
	l.byRoute[m.routeOf(c)]++
	c.state = inWork
	if l.Deadlines && c.deadline > 0 && m.now >= c.deadline {
		m.served(r, c, 504, 0)
		return
	}
	m.try(r, c)
}

// try makes the next attempt of a call.
func (m *model) try(r ref, c *call) {
	l, rt := m.layer(c), m.route(c)
	c.tries++
	c.state = inWork
	repeat := c.tries > 1
	child, a := m.call(c.question, r, c.at+1, c.tries)
	c = &m.calls[r.call] // it may have moved
	c.child = child

	a.key = c.key
	switch l.Key {
	case "drop":
		a.key = keyDropped
	case "remint":
		m.reminted++
		a.key = m.reminted
	}
	switch l.AttemptBudget {
	case "decrement":
		if repeat && c.carried > 0 {
			c.carried--
		}
		a.carried = c.carried
	case "forward":
		a.carried = c.carried
	}
	limit := int64(math.MaxInt64)
	if l.Timeout > 0 {
		limit = m.now + int64(l.Timeout)
	}
	if l.Deadlines {
		if c.deadline > 0 {
			limit = min(limit, c.deadline)
		}
		if limit < math.MaxInt64 {
			a.deadline = limit
		}
	}
	if b := l.budget(rt.target); b != nil {
		b.began(m.now, repeat)
	}
	c.until = limit
	if limit < math.MaxInt64 {
		m.agenda.add(limit, timedOut, r.call, r.gen)
	}
	m.agenda.add(m.now+m.network, arrives, child.call, child.gen)
}

// timeout is an attempt that took too long, unless it is over.
func (m *model) timeout(r ref, c *call) {
	if c.state != inWork || c.until != m.now || c.child == none {
		return
	}
	child := c.child
	c.child = none
	m.abandon(child)
	m.failed(r, c, byTimeout, 504, 0)
}

// attempted is a call with the answer to its attempt.
func (m *model) attempted(r ref, c *call, status int, retryAfter int32) {
	c.child = none
	switch {
	case status < 400:
		l := m.layer(c)
		if b := l.budget(m.route(c).target); b != nil {
			b.ended(m.now, c.tries > 1, byNothing)
		}
		m.served(r, c, status, 0)
	case status == 429 || status == 503:
		m.failed(r, c, byRefusal, status, retryAfter)
	default:
		m.failed(r, c, byError, status, retryAfter)
	}
}

// failed is a call whose attempt did not succeed: it is made again, or given up.
func (m *model) failed(r ref, c *call, by failure, status int, retryAfter int32) {
	l := m.layer(c)
	b := l.budget(m.route(c).target)
	if b != nil {
		b.ended(m.now, c.tries > 1, by)
	}
	if !l.repeats[by] || int(c.tries) >= l.Attempts || l.AttemptBudget == "decrement" && c.carried == 0 {
		m.served(r, c, status, retryAfter)
		return
	}
	wait := m.wait(&l.Backoff, int(c.tries))
	if l.Honours {
		wait = max(wait, int64(retryAfter)*int64(time.Second))
	}
	if l.Deadlines && c.deadline > 0 && m.now+wait >= c.deadline {
		m.served(r, c, status, retryAfter)
		return
	}
	if b != nil && !b.takes(m.now, by) {
		m.book.denied(m, c)
		m.served(r, c, status, retryAfter)
		return
	}
	if wait == 0 {
		m.try(r, c)
		return
	}
	c.state = inWait
	m.agenda.add(m.now+wait, again, r.call, r.gen)
}

// repeat is the end of a wait.
func (m *model) repeat(r ref, c *call) {
	if c.state == inWait {
		m.try(r, c)
	}
}

// served ends a call that had a worker.
func (m *model) served(r ref, c *call, status int, retryAfter int32) {
	l := m.layer(c)
	m.letGo(l, c)
	if l.Fallback && status >= 400 {
		status, retryAfter = degraded, 0
	}
	m.reply(r, c, status, retryAfter)
	m.serveNext(l)
}

// letGo takes the worker from a call.
func (m *model) letGo(l *layerState, c *call) {
	l.busy--
	l.byRoute[m.routeOf(c)]--
}

// serveNext gives free workers to those who wait. Whether their callers still do, a
// layer that does not cancel has no idea.
func (m *model) serveNext(l *layerState) {
	for l.busy < l.workers && l.waiting.len() > 0 {
		r := l.waiting.pop()
		c := m.of(r)
		if c == nil || c.state != inQueue {
			continue
		}
		l.queued--
		switch {
		case l.byRoute[m.routeOf(c)] >= l.routeMost:
			m.turnAway(r, c)
		case l.Deadlines && c.deadline > 0 && m.now >= c.deadline:
			m.reply(r, c, 504, 0)
		default:
			m.serve(r, c)
		}
	}
}

// noticeAtLayer stops a call whose caller has left.
func (m *model) noticeAtLayer(r ref, c *call) {
	l := m.layer(c)
	switch c.state {
	case inQueue:
		l.queued--
		m.over(r)
	case inWork, inWait:
		m.stop(l, c)
		m.letGo(l, c)
		m.over(r)
		m.serveNext(l)
	}
}

// stop ends what a layer does for a call, with an attempt under way or without.
func (m *model) stop(l *layerState, c *call) {
	if b := l.budget(m.route(c).target); b != nil {
		switch c.state {
		case inWork:
			b.ended(m.now, c.tries > 1, byLeaving)
		case inWait:
			b.returned()
		}
	}
	if c.child != none {
		m.abandon(c.child)
	}
}

// layerDies drops everything that a layer holds.
func (m *model) layerDies(l *layerState) {
	l.down = m.now + int64(l.Memory.Restart)
	l.busy, l.queued = 0, 0
	clear(l.byRoute)
	l.waiting = fifo[ref]{}
	for i := range m.calls {
		c := &m.calls[i]
		if !c.live || m.atTarget(c) || m.layer(c) != l || c.state == travelling && c.start != m.now || c.state == answering {
			continue
		}
		m.stop(l, c)
		m.reply(ref{int32(i), c.gen}, c, 502, 0)
	}
}
