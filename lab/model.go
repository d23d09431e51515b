package lab

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// model plays one arm of a scenario.
type model struct {
	s       *Scenario
	now     int64 // ns since the beginning
	end     int64 // questions are asked before it
	agenda  agenda
	chance  *rand.Rand
	network int64

	clients []clientState
	layers  []layerState
	targets []targetState
	routes  []routeState

	calls     []call
	free      []int32
	questions []question
	unused    []int32
	asked     uint64 // questions so far; numbers them
	reminted  uint64 // keys that layers minted

	book book
	log  *logbook
	live Live // nil: nobody is told
}

// routeState is a route with its nodes found.
type routeState struct {
	*Route
	through []int // into layers
	target  int
	peer    string // address of the last layer
}

// question is one thing somebody wants.
type question struct {
	id      uint64
	key     uint64 // the id of the first that bears its key
	minted  int64
	asked   int64
	client  int32
	call    ref // by which its asker waits; none when it left
	calls   int32
	item    int32
	refresh int32 // how often this person has asked again
	made    int32 // calls under its key, with this one
	sent    int32 // requests that reached the target
	result  result
	deaf    bool // its asker has left, or has an answer
	done    bool // what it asks for has been done
	facts   []fact
	text    []byte // of its key, once it was written
}

// call is one request from one node to the next, from when it is made until the
// node it is made to is done with it. That node serves it by calls of its own.
type call struct {
	gen      uint32
	question int32
	parent   ref // the call that it serves; no gen: its asker's
	child    ref // the attempt under way
	key      uint64
	at       int8 // place on the route: a layer, or the target after the last
	attempt  uint8
	tries    uint8 // attempts made of it
	state    state
	left     bool // whoever made it is gone
	live     bool
	recorded bool  // its line is in the log
	carried  int16 // attempts that it leaves for; -1: does not say
	status   int16 // of its answer, once that is known
	retryIn  int32 // seconds that its answer asks to wait
	leftAt   int64
	start    int64
	until    int64 // when the attempt under way times out
	deadline int64 // that it carries; 0: none
}

type state uint8

const (
	travelling state = iota
	inQueue
	inWork
	inWait    // before the next attempt
	refusing  // waits for a slot, or has one, to be refused
	sending   // its answer is being written
	answering // its answer is on the way
)

// none is nobody's call.
var none = ref{-1, 0}

func newModel(s *Scenario, log *logbook) *model {
	m := &model{s: s, end: int64(s.Lasts), network: int64(s.Network), chance: rand.New(rand.NewPCG(s.Seed, 0x1ab)), log: log}
	for i := range s.Layers {
		m.layers = append(m.layers, newLayer(&s.Layers[i], s))
	}
	for i := range s.Targets {
		m.targets = append(m.targets, newTarget(&s.Targets[i], s))
	}
	for i := range s.Routes {
		r := routeState{Route: &s.Routes[i]}
		for _, name := range r.Through {
			r.through = append(r.through, slices.IndexFunc(s.Layers, func(l Layer) bool { return l.Name == name }))
		}
		r.target = slices.IndexFunc(s.Targets, func(t Target) bool { return t.Name == r.Target })
		r.peer = address(r.through[len(r.through)-1])
		m.routes = append(m.routes, r)
	}
	for i := range s.Clients {
		m.clients = append(m.clients, m.newClient(&s.Clients[i]))
	}
	m.book.begin(m)
	return m
}

// play plays everything. stop is asked now and then whether to go on.
func (m *model) play(stop func() error) error {
	for i := range m.clients {
		m.begin(int32(i))
	}
	for i := range m.targets {
		for j := range m.targets[i].Changes {
			c := &m.targets[i].Changes[j]
			m.agenda.add(int64(c.At), changes, int32(i), 0)
			if c.Lasts > 0 {
				m.agenda.add(int64(c.At+c.Lasts), changes, int32(i), 0)
			}
		}
	}
	m.agenda.add(int64(time.Second), sampled, 0, 0)
	last := int64(m.s.Lasts + m.s.Drain)
	for n := 0; ; n++ {
		if n%(1<<16) == 0 {
			if err := stop(); err != nil {
				return err
			}
		}
		e, ok := m.agenda.next(last)
		if !ok {
			break
		}
		if err := m.happensLater(e.at); err != nil {
			return err
		}
		m.now = e.at
		m.happens(&e)
		if m.log.err != nil {
			return m.log.err
		}
	}
	m.now = last
	m.book.finish(m)
	return m.log.flush()
}

func (m *model) happens(e *event) {
	switch e.kind() {
	case asks:
		m.asksNext(e.who)
		return
	case sampled:
		m.book.sample(m)
		m.agenda.add(m.now+int64(time.Second), sampled, 0, 0)
		return
	case changes:
		m.targets[e.who].change(m.now)
		m.fill(&m.targets[e.who])
		return
	case asksAgain:
		m.asksMore(e.who, int32(e.gen))
		return
	}
	c := &m.calls[e.who]
	if c.gen != e.gen {
		return
	}
	r := ref{e.who, e.gen}
	switch e.kind() {
	case arrives:
		m.arrive(r, c)
	case noticed:
		m.notice(r, c)
	case timedOut:
		m.timeout(r, c)
	case again:
		m.repeat(r, c)
	case worked:
		m.work(r, c)
	case refused:
		m.refusedAt(r, c)
	case sent:
		m.conclude(r, c)
	case answered:
		m.answer(r, c, int(c.status), c.retryIn)
	case impatient:
		m.impatient(r, c)
	}
}

// call makes a call to the node at a place of the question's route.
func (m *model) call(of int32, parent ref, at int8, attempt uint8) (ref, *call) {
	i := place(&m.calls, &m.free)
	c := &m.calls[i]
	*c = call{gen: c.gen + 1, question: of, parent: parent, child: none, at: at, attempt: attempt, carried: -1, live: true}
	m.questions[of].calls++
	return ref{i, c.gen}, c
}

// place finds room for one more: where one is no more, or else at the end, which may
// move all others.
func place[T any](all *[]T, unused *[]int32) int32 {
	if n := len(*unused); n > 0 {
		i := (*unused)[n-1]
		*unused = (*unused)[:n-1]
		return i
	}
	var one T
	*all = append(*all, one)
	return int32(len(*all) - 1)
}

// over ends a call: nobody works on it any more.
func (m *model) over(r ref) {
	c := &m.calls[r.call]
	q := c.question
	c.gen++
	c.live = false
	m.free = append(m.free, r.call)
	m.questions[q].calls--
	m.settle(q)
}

// settle forgets a question to which nothing more can happen.
func (m *model) settle(i int32) {
	q := &m.questions[i]
	if q.calls > 0 || !q.deaf {
		return
	}
	m.book.settle(m, q)
	m.log.event(m, q)
	q.facts = q.facts[:0]
	q.id = 0
	m.unused = append(m.unused, i)
}

// of is the call that a name names, nil if it is over.
func (m *model) of(r ref) *call {
	if r.call < 0 || m.calls[r.call].gen != r.gen {
		return nil
	}
	return &m.calls[r.call]
}

// routeOf numbers the route of a call.
func (m *model) routeOf(c *call) int32 { return m.clients[m.questions[c.question].client].route }

func (m *model) route(c *call) *routeState { return &m.routes[m.routeOf(c)] }

// atTarget says whether a call is made to its route's target.
func (m *model) atTarget(c *call) bool { return int(c.at) == len(m.route(c).through) }

func (m *model) layer(c *call) *layerState { return &m.layers[m.route(c).through[c.at]] }

func (m *model) target(c *call) *targetState { return &m.targets[m.route(c).target] }

func (m *model) arrive(r ref, c *call) {
	if m.atTarget(c) {
		m.arriveAtTarget(r, c)
	} else {
		m.arriveAtLayer(r, c)
	}
}

// abandon is what a caller does with an attempt that it no longer waits for.
func (m *model) abandon(r ref) {
	c := m.of(r)
	if c == nil {
		return
	}
	c.left, c.leftAt = true, m.now
	cares := false
	if m.atTarget(c) {
		t := m.target(c)
		cares = t.Cancels || t.Logs == "departures"
	} else {
		cares = m.layer(c).Cancels
	}
	if cares {
		m.agenda.add(m.now+m.network, noticed, r.call, r.gen)
	}
}

// notice is a node that learns of a caller that has left.
func (m *model) notice(r ref, c *call) {
	if m.atTarget(c) {
		m.noticeAtTarget(r, c)
	} else {
		m.noticeAtLayer(r, c)
	}
}

// reply ends a call with an answer, which whoever made it has a moment later.
func (m *model) reply(r ref, c *call, status int, retryAfter int32) {
	if m.network == 0 || c.at == 0 {
		m.answer(r, c, status, retryAfter)
		return
	}
	// The call stays until its answer is there, to carry it.
	c.state, c.status, c.retryIn = answering, int16(status), retryAfter
	m.agenda.add(m.now+m.network, answered, r.call, r.gen)
}

// answer is an answer with whoever made the call.
func (m *model) answer(r ref, c *call, status int, retryAfter int32) {
	parent, question, left := c.parent, c.question, c.left
	m.over(r)
	if left {
		return
	}
	if parent.gen == 0 {
		m.toAsker(question, status)
		return
	}
	if p := m.of(parent); p != nil && p.child == r {
		m.attempted(parent, p, status, retryAfter)
	}
}

// between is a chance from 0 up to n ns.
func (m *model) between(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return m.chance.Int64N(n)
}

// exponential is a chance with a mean.
func (m *model) exponential(mean float64) int64 {
	return int64(math.Round(m.chance.ExpFloat64() * mean))
}
