package lab

// event is something that happens to somebody at a moment of virtual time.
type event struct {
	at    int64  // ns since the beginning
	order uint64 // when it was thought of, and in the lowest bits what it is
	who   int32
	gen   uint32 // of whom; an event of somebody who is no more is nothing
}

// kind says what happens in an event.
type kind uint8

const (
	asks      kind = iota // a client's people ask the next question
	arrives               // a call is at the next node
	noticed               // a node sees that its caller has left
	timedOut              // an attempt took too long
	again                 // the wait before the next attempt is over
	worked                // a target is done with a call
	refused               // a target is done refusing one
	sent                  // the answer is written
	answered              // the answer is with whoever made the call
	impatient             // somebody no longer waits
	asksAgain             // and presses refresh
	changes               // something about a target changes
	sampled               // a second is over
	restarted             // a node that ran out of memory is back
	kindBits  = 4
)

func (e *event) kind() kind { return kind(e.order & (1<<kindBits - 1)) }

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// agenda is what is going to happen. Of several events at one moment, what was
// thought of first happens first.
//
// Most events are thought of a fixed time ahead: networks, timeouts, services. Those
// of one such time come in order by themselves, and stand in a lane, first in first
// out; what fits into no lane goes into a heap of four children a node.
type agenda struct {
	lanes [lanes]lane
	heap  []event
	order uint64
}

// lanes is how many there are; looking at them all costs less than a heap does.
const lanes = 8

// lane holds events in their order.
type lane struct {
	events []event
	head   int
	last   int64 // moment of the newest, once there was one
}

// add adds an event. It goes into the lane whose last event is the latest of those
// before it.
func (a *agenda) add(at int64, k kind, who int32, gen uint32) {
	a.order += 1 << kindBits
	e := event{at, a.order | uint64(k), who, gen}
	best, free := -1, -1
	for i := range a.lanes {
		l := &a.lanes[i]
		switch {
		case l.head == len(l.events):
			free = i
		case l.last <= at && (best < 0 || l.last > a.lanes[best].last):
			best = i
		}
	}
	// What is more than a millisecond after all others begins a lane of its own.
	if free >= 0 && (best < 0 || at-a.lanes[best].last > 1e6) {
		best = free
	}
	if best >= 0 {
		a.lanes[best].push(e)
		return
	}
	h := append(a.heap, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	a.heap = h
}

func (l *lane) push(e event) {
	if l.head > 1024 && l.head > len(l.events)/2 {
		l.events = l.events[:copy(l.events, l.events[l.head:])]
		l.head = 0
	}
	l.events = append(l.events, e)
	l.last = e.at
}

// first finds where the next event stands: in a lane, or in the heap (-1).
func (a *agenda) first() (e *event, lane int) {
	lane = -1
	if len(a.heap) > 0 {
		e = &a.heap[0]
	}
	for i := range a.lanes {
		l := &a.lanes[i]
		if l.head < len(l.events) && (e == nil || l.events[l.head].before(e)) {
			e, lane = &l.events[l.head], i
		}
	}
	return e, lane
}

// next takes out what happens first, if that is not after a moment.
func (a *agenda) next(last int64) (event, bool) {
	e, i := a.first()
	if e == nil || e.at > last {
		return event{}, false
	}
	first := *e
	if i < 0 {
		a.pop()
		return first, true
	}
	l := &a.lanes[i]
	if l.head++; l.head == len(l.events) {
		l.events, l.head = l.events[:0], 0
	}
	return first, true
}

// pop drops the heap's first.
func (a *agenda) pop() {
	h := a.heap
	e := h[len(h)-1]
	h = h[:len(h)-1]
	a.heap = h
	if len(h) == 0 {
		return
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for j := child + 1; j < min(child+4, len(h)); j++ {
			if h[j].before(&h[least]) {
				least = j
			}
		}
		if !h[least].before(&e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
}

// waiting is a queue of calls, first in, first out.
type waiting struct {
	calls []ref
	head  int
}

// ref names a call. Once the call is over and its place taken, it names nobody.
type ref struct {
	call int32
	gen  uint32
}

func (w *waiting) len() int { return len(w.calls) - w.head }

func (w *waiting) push(r ref) {
	if w.head > 1024 && w.head > len(w.calls)/2 {
		w.calls = w.calls[:copy(w.calls, w.calls[w.head:])]
		w.head = 0
	}
	w.calls = append(w.calls, r)
}

func (w *waiting) pop() ref {
	r := w.calls[w.head]
	w.head++
	if w.head == len(w.calls) {
		w.calls, w.head = w.calls[:0], 0
	}
	return r
}
