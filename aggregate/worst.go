package aggregate

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Worst is one of the questions with the most arrivals in one episode.
type Worst struct {
	ID          ID
	KeyHash     [16]byte // Config.KeyHash of its key
	Dims        Dims     // Peer is that of the latest arrival
	Arrivals    uint32
	First, Last int64   // starts, Unix nanoseconds
	Peers       []uint8 // of that episode
}

// candidate is a question that may be one of the worst. It is ranked by the
// arrivals that were filed for it, which are at least those that will count, and
// among equals by its earliest start and then by its key.
type candidate struct {
	id      ID
	keyHash [16]byte
	filed   uint32
	first   int64
	largest Worst // the largest episode that is over
}

// worst keeps candidates for the list of the worst questions. Their ranks only
// ever rise, so which are kept does not depend on the order of arrivals, as long
// as no more than the spare places are lost to copies of records, which are filed
// and not counted. Only a candidate's key is hashed: that costs more than counting
// it.
type worst struct {
	keep  int
	list  []*candidate // a heap, the lowest first
	at    map[ID]int
	floor uint32 // fewer arrivals than this are of no interest
}

// candidatesPerPlace is how many candidates are kept for one place in the list.
const candidatesPerPlace = 64

func newWorst(places int) worst {
	w := worst{keep: places * candidatesPerPlace, at: map[ID]int{}}
	if w.keep == 0 {
		w.floor = math.MaxUint32
	}
	return w
}

func (c *candidate) compare(o *candidate) int {
	return cmp.Or(cmp.Compare(c.filed, o.filed), cmp.Compare(o.first, c.first), slices.Compare(o.keyHash[:], c.keyHash[:]))
}

func (w *worst) Len() int           { return len(w.list) }
func (w *worst) Less(i, j int) bool { return w.list[i].compare(w.list[j]) < 0 }
func (w *worst) Swap(i, j int) {
	w.list[i], w.list[j] = w.list[j], w.list[i]
	w.at[w.list[i].id], w.at[w.list[j].id] = i, j
}

func (w *worst) Push(x any) {
	c := x.(*candidate)
	w.at[c.id] = len(w.list)
	w.list = append(w.list, c)
}

func (w *worst) Pop() any {
	last := len(w.list) - 1
	c := w.list[last]
	w.list = w.list[:last]
	delete(w.at, c.id)
	return c
}

// wants says whether a question with n arrivals may be a candidate.
func (w *worst) wants(n uint32) bool { return n >= w.floor }

// offer considers a question to which an arrival was filed.
func (w *worst) offer(q *question, start int64, key func() [16]byte) {
	defer func() {
		if len(w.list) == w.keep {
			w.floor = w.list[0].filed
		}
	}()
	n := q.n + q.open
	if i, ok := w.at[q.id]; ok {
		c := w.list[i]
		if n > c.filed || start < c.first {
			c.filed, c.first = max(c.filed, n), min(c.first, start)
			heap.Fix(w, i)
		}
		return
	}
	if q.n > 0 {
		start = min(start, q.last-q.span())
	}
	if len(w.list) == w.keep && n == w.list[0].filed && start > w.list[0].first {
		return
	}
	c := &candidate{id: q.id, keyHash: key(), filed: n, first: start}
	if len(w.list) == w.keep {
		if c.compare(w.list[0]) < 0 {
			return
		}
		heap.Pop(w)
	}
	heap.Push(w, c)
}

// over completes a candidate whose episode is over, and keeps the larger of its
// episodes.
func (w *worst) over(q *question, peers func() []uint8) {
	i, ok := w.at[q.id]
	if !ok || q.n <= w.list[i].largest.Arrivals {
		return
	}
	c := w.list[i]
	c.largest = Worst{
		ID: q.id, KeyHash: c.keyHash, Dims: Dims{q.route, q.originator, q.peer}, Arrivals: q.n,
		First: q.last - q.span(), Last: q.last, Peers: peers(),
	}
}

// found lists the candidates' largest episodes.
func (w *worst) found() []Worst {
	var out []Worst
	for _, c := range w.list {
		if c.largest.Arrivals > 0 {
			out = append(out, c.largest)
		}
	}
	return out
}

// WorstOf returns the n questions with the most arrivals, most first; equals are
// ordered by their first arrival and then by key.
func WorstOf(n int, all []Worst) []Worst {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Worst) int {
		return cmp.Or(cmp.Compare(b.Arrivals, a.Arrivals), cmp.Compare(a.First, b.First),
			slices.Compare(a.KeyHash[:], b.KeyHash[:]))
	})
	return all[:min(n, len(all))]
}
