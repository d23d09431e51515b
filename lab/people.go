package lab

import (
	"math"
	"slices"
	"time"
)

// clientState is a client while its people ask.
type clientState struct {
	*Client
	route  int32
	gap    float64 // ns between questions, of open-loop people
	people int
	begun  float64 // questions so far
	until  int64
}

func (m *model) newClient(c *Client) clientState {
	st := clientState{Client: c, until: m.end, route: int32(slices.IndexFunc(m.s.Routes, func(r Route) bool { return r.Name == c.Route }))}
	if c.Until > 0 {
		st.until = min(int64(c.Until), m.end)
	}
	if c.Rate > 0 {
		st.gap = float64(time.Second) / (c.Rate / m.s.Scale)
	}
	st.people = int(math.Round(c.People / m.s.Scale))
	return st
}

// begin lets a client's people begin: open-loop ones with a question, closed-loop
// ones each somewhere in the middle of thinking.
func (m *model) begin(i int32) {
	c := &m.clients[i]
	if c.Rate > 0 {
		m.agenda.add(int64(c.From), asks, i, 0)
		return
	}
	for range c.people {
		m.agenda.add(int64(c.From)+m.between(int64(c.Think)), asks, i, 0)
	}
}

// asksNext is somebody's turn to ask.
func (m *model) asksNext(i int32) {
	c := &m.clients[i]
	if m.now >= c.until {
		return
	}
	if c.Rate > 0 {
		at := m.now
		c.begun++
		if c.Spacing == "random" {
			at += m.exponential(c.gap)
		} else {
			at = int64(c.From) + int64(math.Round(c.begun*c.gap))
		}
		m.agenda.add(at, asks, i, 0)
	}
	m.ask(i, 0, nil)
}

// asksMore is somebody who presses refresh.
func (m *model) asksMore(i, refresh int32) {
	if m.now < m.clients[i].until {
		m.ask(i, refresh, nil)
	}
}

// ask asks a question: somebody's own layer is called, without a network between. One
// after another goes on under its key.
func (m *model) ask(i, refresh int32, after *question) {
	c := &m.clients[i]
	n := place(&m.questions, &m.unused)
	m.asked++
	next := question{id: m.asked, key: m.asked, minted: m.now, asked: m.now, client: i, refresh: refresh, made: 1}
	if after == nil {
		next.item = int32(m.between(int64(m.routes[c.route].Items)))
	} else {
		next.key, next.minted, next.made = after.key, after.minted, after.made+1
		next.item = (after.item + 1) % int32(m.routes[c.route].Items)
	}
	q := &m.questions[n]
	next.facts, next.text = q.facts, q.text[:0]
	*q = next
	r, call := m.call(n, none, 0, 1)
	q = &m.questions[n]
	q.call = r
	if c.Sends && c.Deadline > 0 {
		call.deadline = q.minted + int64(c.Deadline)
	}
	if c.AttemptBudget > 0 {
		call.carried = int16(c.AttemptBudget - 1)
	}
	m.book.asked(m, q)
	if c.Refresh.Patience > 0 {
		m.agenda.add(m.now+int64(c.Refresh.Patience), impatient, r.call, r.gen)
	}
	m.agenda.add(m.now, arrives, r.call, r.gen)
}

// toAsker is an answer with whoever asked.
func (m *model) toAsker(n int32, status int) {
	q := &m.questions[n]
	q.deaf = true
	m.book.outcome(m, q, status)
	m.goesOn(q, status < 400)
	m.settle(n)
}

// impatient is somebody who has waited long enough. What was asked goes on.
func (m *model) impatient(r ref, c *call) {
	q := &m.questions[c.question]
	if q.deaf {
		return
	}
	q.deaf = true
	m.book.outcome(m, q, 0)
	m.abandon(r)
	m.goesOn(q, false) // may move the question
}

// goesOn is what somebody does next.
func (m *model) goesOn(q *question, content bool) {
	c := &m.clients[q.client]
	if int(q.made) < c.Calls {
		before := *q
		m.ask(q.client, 0, &before)
		return
	}
	f := &c.Refresh
	if !content && int(q.refresh) < f.Most && m.chance.Float64() < f.Chance {
		m.agenda.add(m.now+int64(f.Pause), asksAgain, q.client, uint32(q.refresh+1))
		return
	}
	if c.people > 0 {
		m.agenda.add(m.now+m.think(c), asks, q.client, 0)
	}
}

// think is how long somebody thinks: half to one and a half of Think.
func (m *model) think(c *clientState) int64 {
	return int64(c.Think)/2 + m.between(int64(c.Think))
}
