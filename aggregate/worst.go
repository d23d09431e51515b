package aggregate

import (
	"cmp"
	"slices"
)

// Worst is one of the questions with the most arrivals in one episode.
type Worst struct {
	ID          ID
	KeyHash     [16]byte // Config.KeyHash of its key
	Dims        Dims     // Peer is the latest
	Arrivals    uint32
	First, Last int64 // starts, Unix nanoseconds
	Peers       []uint8

	ended uint32 // Arrivals of the largest episode that is over
}

// worst keeps candidates for the list of the worst questions. A candidate is
// ranked by the arrivals known of it so far, filed ones included, and among
// equals by its earliest start: both only ever raise a question's rank, so the
// list does not depend on the order of arrivals. Only a candidate's key is
// hashed, since that costs more than counting it.
type worst struct {
	keep int // candidates
	list []Worst
	at   map[ID]int
	low  int // index of the lowest candidate, once the list is full
}

// candidatesPerPlace is how many candidates are kept for one place in the list,
// because copies that turn out to be a shipper's count until their tick closes.
const candidatesPerPlace = 4

func newWorst(places int) worst {
	return worst{keep: places * candidatesPerPlace, at: map[ID]int{}}
}

func rank(a *Worst, n uint32, first int64) int {
	return cmp.Or(cmp.Compare(a.Arrivals, n), cmp.Compare(first, a.First))
}

// offer considers a question to which an arrival was filed.
func (w *worst) offer(q *question, start int64, key func() [16]byte) {
	if w.keep == 0 {
		return
	}
	n := q.n + q.open
	if len(w.list) == w.keep && n < w.list[w.low].Arrivals {
		return
	}
	if i, ok := w.at[q.id]; ok {
		c := &w.list[i]
		c.Arrivals, c.First = max(c.Arrivals, n), min(c.First, start)
		if i == w.low {
			w.findLow()
		}
		return
	}
	if q.n > 0 {
		start = min(start, q.last-q.span())
	}
	c := Worst{ID: q.id, Dims: Dims{Route: q.route, Originator: q.originator}, Arrivals: n, First: start}
	if len(w.list) < w.keep {
		c.KeyHash = key()
		w.at[q.id] = len(w.list)
		w.list = append(w.list, c)
		w.findLow()
		return
	}
	if r := rank(&w.list[w.low], n, start); r <= 0 {
		c.KeyHash = key()
		if r == 0 && slices.Compare(c.KeyHash[:], w.list[w.low].KeyHash[:]) >= 0 {
			return
		}
		delete(w.at, w.list[w.low].ID)
		w.at[q.id] = w.low
		w.list[w.low] = c
		w.findLow()
	}
}

func (w *worst) findLow() {
	w.low = 0
	for i := range w.list {
		a, b := &w.list[i], &w.list[w.low]
		if cmp.Or(rank(a, b.Arrivals, b.First), slices.Compare(b.KeyHash[:], a.KeyHash[:])) < 0 {
			w.low = i
		}
	}
}

// over completes a candidate whose episode is over, and keeps the larger of its
// episodes.
func (w *worst) over(q *question, peers func() []uint8) {
	if i, ok := w.at[q.id]; ok && q.n > w.list[i].ended {
		c := &w.list[i]
		c.Arrivals, c.ended, c.First, c.Last = q.n, q.n, q.last-q.span(), q.last
		c.Peers, c.Dims.Peer = peers(), q.peer
		if i == w.low {
			w.findLow()
		}
	}
}

// WorstOf returns the n questions with the most arrivals, most first; equals are
// ordered by their first arrival and then by key.
func WorstOf(n int, lists ...[]Worst) []Worst {
	var all []Worst
	for _, l := range lists {
		for _, c := range l {
			if c.ended > 0 {
				c.Arrivals = c.ended
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b Worst) int {
		return cmp.Or(cmp.Compare(b.Arrivals, a.Arrivals), cmp.Compare(a.First, b.First),
			slices.Compare(a.KeyHash[:], b.KeyHash[:]))
	})
	return all[:min(n, len(all))]
}
