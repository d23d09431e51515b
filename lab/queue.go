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
	fifo[event]
	last int64 // moment of the newest, once there was one
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
		case l.len() == 0:
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
		a.lanes[best].last = at
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

// first finds where the next event stands: in a lane, or in the heap (-1).
func (a *agenda) first() (e *event, lane int) {
	lane = -1
	if len(a.heap) > 0 {
		e = &a.heap[0]
	}
	for i := range a.lanes {
		l := &a.lanes[i]
		if l.len() > 0 && (e == nil || l.all[l.head].before(e)) {
			e, lane = &l.all[l.head], i
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
	if i >= 0 {
		return a.lanes[i].pop(), true
	}
	first := *e
	a.pop()
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

// ref names a call. Once the call is over and its place taken, it names nobody.
type ref struct {
	call int32
	gen  uint32
}

// fifo is a queue, first in, first out.
type fifo[T any] struct {
	all  []T
	head int
}

func (f *fifo[T]) len() int { return len(f.all) - f.head }

func (f *fifo[T]) push(x T) {
	if f.head > 1024 && f.head > len(f.all)/2 {
		f.all = f.all[:copy(f.all, f.all[f.head:])]
		f.head = 0
	}
	f.all = append(f.all, x)
}

func (f *fifo[T]) pop() T {
	x := f.all[f.head]
	if f.head++; f.head == len(f.all) {
		f.all, f.head = f.all[:0], 0
	}
	return x
}
