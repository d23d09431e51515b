package lab

import (
	"cmp"
	"slices"
	"time"
)

// book is the truth: what happened, counted where it happens.
type book struct {
	horizon int64 // ms
	counts  []*Counts
	series  [][]Second // by route, then by second
	busy    [][][]int  // by layer, by second, by route
	reached uint64     // questions with a record
	lost    uint64     // arrivals without a record: the target died, or the end came
	signers []*signer
	shown   []*Counts // by route: what is left of counts in the log, nil if all is
	seen    []fact    // room for a question's
	text    []byte    // room for a key
}

// Second is what happened on a route in one second. Asked and what came of it stand
// in the second of asking; the others in their own.
type Second struct {
	Asked    uint64 `json:"asked"`
	Answered uint64 `json:"answered"` // in time
	Late     uint64 `json:"late"`     // after the deadline of those who asked
	Degraded uint64 `json:"degraded"` // answered with something made up for it
	Failed   uint64 `json:"failed"`
	Left     uint64 `json:"left"` // before there was anything

	// Waited is the longest that somebody asking waited for what came, in seconds.
	Waited float64 `json:"waited"`

	Arrivals  uint64 `json:"arrivals"`
	Completed uint64 `json:"completed"`  // answers made by work
	ForNobody uint64 `json:"for_nobody"` // of them, those that nobody up to the asker waits for
	Useful    uint64 `json:"useful"`     // successes for somebody who waits for them
	Again     uint64 `json:"done_again"` // successful work for a question that had been done already
	Refused   uint64 `json:"refused"`
	// Oldest is how long ago, in seconds, the caller had left to whom the most belated
	// of the answers for nobody was made.
	Oldest float64 `json:"oldest"`
	Denied uint64  `json:"denied"` // repeats that a budget did not allow
}

func (b *book) begin(m *model) {
	b.horizon = m.s.Horizon().Milliseconds()
	for range m.routes {
		b.counts = append(b.counts, newCounts())
	}
	if m.log.sight.without != nil {
		for range m.routes {
			b.shown = append(b.shown, newCounts())
		}
	}
	b.series = make([][]Second, len(m.routes))
	b.busy = make([][][]int, len(m.layers))
	b.text = make([]byte, 0, 256)
	for i := range m.clients {
		b.signers = append(b.signers, newSigner(m.clients[i].originator(), m.s.Seed))
	}
}

// Horizon is after how long a silent question is forgotten: longer than the scenario,
// so that whatever the longest wait, it is one question.
func (s *Scenario) Horizon() time.Duration {
	return max(2*time.Minute, (s.Lasts + s.Drain + time.Minute).Round(time.Minute))
}

func (b *book) second(route int32, at int64) *Second {
	i := int(at / int64(time.Second))
	for len(b.series[route]) <= i {
		b.series[route] = append(b.series[route], Second{})
	}
	return &b.series[route][i]
}

func (b *book) asked(m *model, q *question) { b.second(m.clients[q.client].route, q.asked).Asked++ }

// outcome is what somebody got: a status, or 0 for having left.
func (b *book) outcome(m *model, q *question, status int) {
	c := &m.clients[q.client]
	s := b.second(c.route, q.asked)
	s.Waited = max(s.Waited, float64(m.now-q.asked)/1e9)
	switch {
	case status == 0:
		s.Left++
		q.result = hasLeft
	case status >= 400:
		s.Failed++
		q.result = hasFailed
	case status == degraded:
		s.Degraded++
		q.result = isDegraded
	case c.Deadline > 0 && m.now-q.minted > int64(c.Deadline):
		s.Late++
		q.result = isLate
	default:
		s.Answered++
		q.result = isAnswered
	}
}

// result is what somebody got.
type result uint8

const (
	isOpen result = iota
	isAnswered
	isLate
	isDegraded
	hasFailed
	hasLeft
)

func (r result) String() string {
	return [...]string{"open", "answered", "late", "degraded", "failed", "left"}[r]
}

// doneAgain is work that was done for a question a second time.
func (b *book) doneAgain(m *model, q *question) { b.second(m.clients[q.client].route, m.now).Again++ }

func (b *book) arrived(m *model, c *call) {
	q := &m.questions[c.question]
	if q.sent++; q.sent == 1 && m.live != nil {
		m.live.Opened(q.id, m.target(c).Name, m.s.begins.Add(time.Duration(m.now)).Unix())
	}
	b.second(m.routeOf(c), m.now).Arrivals++
}

// completed is work that is done. It is for nobody if its caller has left, or
// whoever that caller called for, up to those who asked.
func (b *book) completed(m *model, c *call) {
	s := b.second(m.routeOf(c), m.now)
	s.Completed++
	nobody, known := false, m.network // when those further up leave is nothing to the target
	for x := c; x != nil; x = m.of(x.parent) {
		if x.left && x.leftAt+known <= m.now {
			nobody = true
			s.Oldest = max(s.Oldest, float64(m.now-x.leftAt)/1e9)
		}
		known = 0
	}
	switch {
	case nobody:
		s.ForNobody++
	case c.status < 400:
		s.Useful++
	}
}

func (b *book) denied(m *model, c *call) {
	b.second(m.routeOf(c), m.now).Denied++
}

// sample looks at who holds the workers.
func (b *book) sample(m *model) {
	for i := range m.layers {
		b.busy[i] = append(b.busy[i], slices.Clone(m.layers[i].byRoute))
	}
}

func (b *book) recorded(m *model, route int32, f *fact) {
	if f.status == 429 || f.status == 503 {
		b.second(route, m.now).Refused++
	}
}

// finish settles what is still open at the end. Requests that are not over by then
// have no record.
func (b *book) finish(m *model) {
	for i := range m.calls {
		if c := &m.calls[i]; c.live && m.atTarget(c) && c.state != travelling && c.state != answering && !c.recorded {
			b.lost++
		}
	}
	for i := range m.questions {
		if q := &m.questions[i]; q.id != 0 {
			b.settle(m, q)
			m.log.event(m, q)
		}
	}
}

// settle counts the arrivals of a question to which nothing more can happen.
func (b *book) settle(m *model, q *question) {
	if m.live != nil && q.sent > 0 {
		defer b.tell(m, q)
	}
	if len(q.facts) == 0 {
		return
	}
	b.reached++
	c := b.counts[m.clients[q.client].route]
	b.tally(m, q, q.facts, func(*fact) *Counts { return c })
	b.shows(m, q)
}

// tally counts a question's arrivals, each into where to says.
func (b *book) tally(m *model, q *question, f []fact, to func(*fact) *Counts) {
	client := &m.clients[q.client]
	unsafe := mayNotRepeat(m.routes[client.route].Method)
	slices.SortStableFunc(f, func(a, b fact) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	deadline := int64(0)
	if client.Deadline > 0 && client.Key == "qk1" {
		deadline = m.s.begins.UnixMilli() + q.minted/1e6 + client.Deadline.Milliseconds()
	}
	for len(f) > 0 {
		n := 1
		for n < len(f) && f[n].key == f[0].key {
			n++
		}
		group := f[:n]
		f = f[n:]
		switch key := group[0].key; {
		case client.Key == "none" || key == keyDropped:
			without(group, "absent", to)
		case client.Key == "qk1" && key != 0:
			without(group, "forged", to)
		default:
			proven := client.Key == "qk1"
			for i := range group {
				if proven {
					to(&group[i]).Verified++
				} else {
					to(&group[i]).Claimed++
				}
			}
			if !proven {
				deadline = 0
			}
			with(group, deadline, b.horizon, unsafe, to)
		}
	}
}

// mayNotRepeat says that doing something twice is not the same as doing it once.
func mayNotRepeat(method string) bool { return method == "POST" || method == "PATCH" }

// without counts arrivals that cannot be attributed to a question.
func without(f []fact, why string, to func(*fact) *Counts) {
	for i := range f {
		c := to(&f[i])
		c.Unattributable["total"]++
		c.Unattributable[why]++
		c.response(&f[i], 0)
		if f[i].attempt == 1 {
			c.first++
		}
	}
}

// with counts the arrivals of one key, in the order of their starts.
func with(f []fact, deadline, horizon int64, unsafe bool, to func(*fact) *Counts) {
	firsts := false
	k, begun := uint64(0), 0 // ordinal in the episode, and where the horizon begins
	for i := range f {
		x := &f[i]
		c := to(x)
		c.Attributable++
		c.response(x, deadline)
		if deadline > 0 && x.start > deadline {
			c.Stale++
		}
		if x.attempt == 1 {
			c.first++
			c.firstAttributable++
			if !firsts {
				c.firstQuestions++
			}
			firsts = true
		}
		if i == 0 || x.start-f[i-1].start > horizon {
			if i > 0 {
				to(&f[i-1]).exact[k]++
			}
			c.Questions++ // over the whole log, distinct questions are episodes
			c.Originals++
			if x.attempt > 1 {
				c.OrphanAttempts++
			}
			begun = i
		} else {
			c.Repeats++
			c.after(x, &f[i-1])
		}
		for f[begun].start < x.start-horizon {
			begun++
		}
		k = uint64(i-begun) + 1
		answered, left := false, int16(-1)
		for j := begun; j <= i; j++ {
			answered = answered || j < i && ok(&f[j])
			left = max(left, f[j].carried)
		}
		if ok(x) {
			if !answered {
				c.Answered++
			} else if unsafe {
				c.DoubleSuccess++
			}
		}
		if left >= 0 && k > uint64(left)+1 {
			c.AttemptBudget.Overspent++
		}
		if i > begun && x.carried >= 0 && f[i-1].carried >= 0 {
			switch {
			case x.carried == f[i-1].carried:
				c.AttemptBudget.NotDecremented++
			case x.carried > f[i-1].carried:
				c.AttemptBudget.Increased++
			}
		}
	}
	to(&f[len(f)-1]).exact[k]++
}

func ok(f *fact) bool { return f.status >= 200 && f.status < 400 }

// after counts a repeat by what came before it.
func (c *Counts) after(x, before *fact) {
	switch {
	case before.end > x.start:
		c.RepeatAfter.InFlight++
	case before.departure != stays:
		c.RepeatAfter.Gone++
	case before.status == 429 || before.status == 503:
		c.RepeatAfter.Overload++
	case before.status >= 500:
		c.RepeatAfter.Error++
	case ok(before):
		c.RepeatAfter.Success++
	}
	if before.retryAfter > 0 && before.end <= x.start {
		c.RetryAfter.Returned++
		if x.start < before.end+int64(before.retryAfter)*1000 {
			c.RetryAfter.Early++
		}
	}
}

// response counts what became of an arrival's answer.
func (c *Counts) response(f *fact, deadline int64) {
	c.Arrivals++
	r := &c.Responses
	r.Total++
	refused := f.status == 429 || f.status == 503
	if refused {
		r.Refused++
	} else if f.departure != before {
		r.Answers++
	}
	if ok(f) {
		r.Success++
	}
	dead := true
	switch {
	case f.departure == undelivered:
		r.Undelivered++
	case f.departure == during:
		r.During++
	case f.departure == before:
		r.Before++
	case f.departure == unplaced:
		r.Unplaced++
	case deadline > 0 && f.end > deadline:
		r.Expired++
	default:
		dead = false
	}
	if f.departure != stays {
		r.Disconnected++
	}
	d := float64(f.end-f.start) / 1000
	r.BusySeconds += d
	if dead {
		r.DeadSeconds += d
	}
	if f.retryAfter > 0 {
		c.RetryAfter.Asked++
	}
}
