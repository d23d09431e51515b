package lab

import "time"

// targetState is a target while it works.
type targetState struct {
	*Target
	scale        float64
	slots, queue int
	service      int64
	slow         Slow
	errors       float64
	memory       int // calls that are held at most
	down         int64
	busy, queued int
	waiting      fifo[ref]
	refusals     fifo[ref] // to be refused, once a slot is free to do so
}

func newTarget(t *Target, s *Scenario) targetState {
	st := targetState{Target: t, scale: s.Scale, queue: t.Queue.scaled(s.Scale), memory: t.Memory.scaled(s.Scale)}
	st.change(0)
	return st
}

// change puts into force what holds at a moment.
func (t *targetState) change(now int64) {
	t.slots, t.service, t.slow, t.errors = t.Slots.scaled(t.scale), int64(t.Service), t.Slow, t.Errors
	for i := range t.Changes {
		c := &t.Changes[i]
		if now < int64(c.At) || c.Lasts > 0 && now >= int64(c.At+c.Lasts) {
			continue
		}
		if c.Slots != nil {
			t.slots = c.Slots.scaled(t.scale)
		}
		if c.Service != nil {
			t.service = int64(*c.Service)
		}
		if c.Slow != nil {
			t.slow = *c.Slow
		}
		if c.Errors != nil {
			t.errors = *c.Errors
		}
	}
}

func (m *model) arriveAtTarget(r ref, c *call) {
	t := m.target(c)
	c.start = m.now
	m.book.arrived(m, c)
	if m.now < t.down {
		m.book.lost++ // the connection is refused, and nobody logs it
		m.reply(r, c, 502, 0)
		return
	}
	if t.busy+t.queued+t.refusals.len() >= t.memory {
		m.targetDies(t)
		return
	}
	switch {
	case t.busy < t.slots:
		m.workOn(r, c)
	case t.queued < t.queue:
		c.state = inQueue
		t.queued++
		t.waiting.push(r)
	case t.Refusal.Costs > 0:
		c.state = refusing
		t.refusals.push(r)
	default:
		m.refuse(r, c)
	}
}

// refuse says 503.
func (m *model) refuse(r ref, c *call) {
	t := m.target(c)
	c.status, c.retryIn = 503, int32(t.Refusal.RetryAfter/time.Second)
	m.conclude(r, c)
}

// workOn gives a call a slot.
func (m *model) workOn(r ref, c *call) {
	t := m.target(c)
	if t.Deadlines && c.deadline > 0 && m.now >= c.deadline {
		c.status = 504
		m.conclude(r, c)
		return
	}
	t.busy++
	c.state, c.status = inWork, 200
	d := t.service
	if t.Jitter > 0 {
		d = int64(float64(d) * (1 + t.Jitter*(2*m.chance.Float64()-1)))
	}
	if t.slow.Share > 0 && m.chance.Float64() < t.slow.Share {
		d = int64(t.slow.Takes)
	}
	if t.errors > 0 && m.chance.Float64() < t.errors {
		c.status = 500
	}
	m.agenda.add(m.now+d, worked, r.call, r.gen)
}

// work is the end of a call's work: its answer is there.
func (m *model) work(r ref, c *call) {
	t := m.target(c)
	t.busy--
	m.book.completed(m, c)
	if q := &m.questions[c.question]; c.status < 400 {
		if q.done && !t.Idempotent {
			m.book.doneAgain(m, q)
		}
		q.done = true
	}
	if t.Sending > 0 {
		c.state, c.until = sending, m.now
		m.agenda.add(m.now+int64(t.Sending), sent, r.call, r.gen)
	} else {
		m.conclude(r, c)
	}
	m.fill(t)
}

// refusedAt is the end of the work that a refusal was.
func (m *model) refusedAt(r ref, c *call) {
	t := m.target(c)
	t.busy--
	m.refuse(r, c)
	m.fill(t)
}

// conclude is the end of a call: its record is written, and its answer sent.
func (m *model) conclude(r ref, c *call) {
	if !c.recorded {
		d := stays
		if at := c.leftAt + m.network; c.left && at <= m.now {
			switch {
			case c.state != sending || at <= c.until:
				d = undelivered
			default:
				d = during
			}
		}
		m.record(c, d)
	}
	m.reply(r, c, int(c.status), c.retryIn)
}

// fill gives free slots to those who wait: first to say no, then to work.
func (m *model) fill(t *targetState) {
	for t.busy < t.slots {
		if t.refusals.len() > 0 {
			r := t.refusals.pop()
			if m.of(r) != nil {
				t.busy++
				m.agenda.add(m.now+int64(t.Refusal.Costs), refused, r.call, r.gen)
			}
			continue
		}
		if t.waiting.len() == 0 {
			return
		}
		r := t.waiting.pop()
		c := m.of(r)
		if c == nil || c.state != inQueue {
			continue
		}
		t.queued--
		m.workOn(r, c)
	}
}

// noticeAtTarget is a target that sees its caller leave.
func (m *model) noticeAtTarget(r ref, c *call) {
	t := m.target(c)
	if c.state == answering {
		return
	}
	if !c.recorded {
		d := before
		if c.state == sending {
			d = during
		}
		m.record(c, d)
		c.recorded = true
	}
	if !t.Cancels {
		return
	}
	switch c.state {
	case inQueue:
		t.queued--
		m.over(r)
	case inWork:
		t.busy--
		m.over(r)
		m.fill(t)
	}
}

// targetDies drops everything that a target holds. What it had not answered, it
// does not log.
func (m *model) targetDies(t *targetState) {
	t.down = m.now + int64(t.Memory.Restart)
	t.busy, t.queued = 0, 0
	t.waiting, t.refusals = fifo[ref]{}, fifo[ref]{}
	for i := range m.calls {
		c := &m.calls[i]
		if !c.live || !m.atTarget(c) || m.target(c) != t || c.state == travelling && c.start != m.now || c.state == answering {
			continue
		}
		if !c.recorded {
			m.book.lost++
		}
		m.reply(ref{int32(i), c.gen}, c, 502, 0)
	}
}
