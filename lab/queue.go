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
// thought of first happens first. It is a heap of four children a node.
type agenda struct {
	events []event
	order  uint64
}

func (a *agenda) add(at int64, k kind, who int32, gen uint32) {
	a.order += 1 << kindBits
	e := event{at, a.order | uint64(k), who, gen}
	h := append(a.events, e)
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
	a.events = h
}

// next takes out what happens first.
func (a *agenda) next() event {
	h := a.events
	first, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	a.events = h
	if len(h) == 0 {
		return first
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
	return first
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
