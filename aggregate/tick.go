package aggregate

import "container/heap"

// tick is what is known of one second: the arrivals that started in it, the
// questions to look at when it closes, and the records that were written in it.
type tick struct {
	at      int64
	filed   []*page
	n       uint32 // arrivals in filed
	told    uint32 // of them, those that beats told of
	thinned int    // pages of filed without arrivals of questions that are not followed
	due     dueLists
	peers   []peerDue
	written []Event
	times   []int64  // of written, with Config.Fared
	long    []uint64 // of Ledger.long, to be forgotten
}

// page holds arrivals of one tick. Ticks take pages as they need them, so that
// none has much room to spare.
type page [pageArrivals]filed

const pageArrivals = 128

func (t *tick) arrival(i uint32) *filed { return &t.filed[i/pageArrivals][i%pageArrivals] }

// nearTicks is how many ticks are found without a search; a power of two.
const nearTicks = 256

// tickQueue is a heap of the ticks that have something to do.
type tickQueue []*tick

func (q tickQueue) Len() int           { return len(q) }
func (q tickQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q tickQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *tickQueue) Push(x any)        { *q = append(*q, x.(*tick)) }
func (q *tickQueue) Pop() any {
	old := *q
	t := old[len(old)-1]
	*q = old[:len(old)-1]
	return t
}

// tick returns the open tick at, made if there is none.
func (l *Ledger) tick(at int64) *tick {
	near := &l.near[at&(nearTicks-1)]
	if *near != nil && (*near).at == at {
		return *near
	}
	t := l.ticks[at]
	if t == nil {
		if n := len(l.spare); n > 0 {
			t, l.spare = l.spare[n-1], l.spare[:n-1]
			t.at = at
		} else {
			t = &tick{at: at, due: noneDue}
		}
		l.ticks[at] = t
		heap.Push(&l.queue, t)
	}
	*near = t
	return t
}

// sparePages is how many pages are kept for the next ticks in any case.
const sparePages = 64

func (l *Ledger) takePage() *page {
	n := len(l.pages)
	if n == 0 {
		return new(page)
	}
	p := l.pages[n-1]
	l.pages = l.pages[:n-1]
	return p
}
