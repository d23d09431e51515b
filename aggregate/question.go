package aggregate

// question is the ledger's entry for one live question: one cache line, without
// pointers, so that millions of them cost the garbage collector nothing. What a
// longer or a mixed history needs lies in the arena under recent and seen.
type question struct {
	id   ID
	last int64 // start of the latest arrival

	// first is the start of the episode's first arrival, as a stamp: of
	// microseconds while it is within the horizon of the latest arrival, of
	// milliseconds once firstIsPast is set.
	firstLow  uint32
	firstHigh uint8
	firstPeer uint8
	left      uint8 // carried budget of the latest arrival
	state     uint8

	recent block  // arrivals between first and last that are within the horizon
	seen   block  // latest start by property, for what the latest arrival does not tell
	n      uint32 // arrivals of the episode; 0: no episode
	open   uint32 // arrivals in open ticks
	due    uint32 // next question in the same due list, or in the free list

	length     uint32 // log time less start of the latest arrival, packed
	route      uint16
	originator uint16
	retry      uint16 // packed, of the latest arrival
	peer       uint8  // of the latest arrival
	num        uint8  // of the latest arrival
}

func (q *question) first() uint64 { return uint64(q.firstHigh)<<32 | uint64(q.firstLow) }

func (q *question) setFirst(s uint64) { q.firstLow, q.firstHigh = uint32(s), uint8(s>>32) }

// span is last − first of the episode, in nanoseconds.
func (q *question) span() int64 {
	if q.state&firstIsPast != 0 {
		return int64((stampOf(q.last, 1e6)-q.first())&timeMask) * 1e6
	}
	return ago(q.last, q.first()) * 1e3
}

// The bits of question.state.
const (
	lastOutcome = 7      // Outcome of the latest arrival
	lastGone    = 1 << 3 // the latest arrival's caller left
	lastOrigin  = 1 << 4 // its number is of the originator
	firstFailed = 1 << 5 // the first arrival of the episode failed
	firstIsPast = 1 << 6 // the first arrival is out of the horizon
	verifiedBit = 1 << 7 // the key proves its author

	ofLast = lastOutcome | lastGone | lastOrigin
)

// questions is the table: entries in pages that never move, and an index by key.
// The questions of a key that has several are found through its family.
type questions struct {
	pages    [][]question
	used     uint32   // entries handed out at least once
	freed    []uint32 // entries that are free again: maxFreed of them
	free     uint32   // head of the list of the others
	live     int
	index    index
	families map[uint64]*family // by ID.Key
}

const (
	pageBits = 11
	pageSize = 1 << pageBits
	none     = ^uint32(0)

	// maxFreed bounds questions.freed, which saves reading an entry, somewhere in
	// memory, only to learn which is the next that is free.
	maxFreed = 1 << 13
)

func newQuestions() questions { return questions{free: none, families: map[uint64]*family{}} }

func (t *questions) at(i uint32) *question { return &t.pages[i>>pageBits][i&(pageSize-1)] }

// family returns the family of a key, nil if it has none.
func (t *questions) family(key uint64) *family {
	if len(t.families) == 0 {
		return nil
	}
	return t.families[key]
}

// get returns the entry of id, made if there is none.
func (t *questions) get(id ID) (i uint32, made bool) {
	if f := t.family(id.Key); f != nil {
		i, ok := f.find(t, id.Rest)
		if !ok {
			i = t.make(id)
			f.add(t, i)
		}
		return i, !ok
	}
	other, ok := t.index.find(t, id.Key)
	if !ok {
		i = t.make(id)
		t.index.insert(t, i)
		return i, true
	}
	q := t.at(other)
	if q.id.Rest == id.Rest {
		return other, false
	}
	t.index.remove(t, other)
	f := &family{}
	t.families[id.Key] = f
	f.add(t, other)
	if q.n > 0 {
		for _, r := range [...]uint32{allRoutes, uint32(q.route)} {
			f.fan(r).asked(q.id.Rest, q.last, 0)
		}
	}
	i = t.make(id)
	f.add(t, i)
	return i, true
}

func (t *questions) make(id ID) uint32 {
	i := t.free
	if n := len(t.freed); n > 0 {
		i, t.freed = t.freed[n-1], t.freed[:n-1]
	} else if i != none {
		t.free = t.at(i).due
	} else {
		i = t.used
		if i&(pageSize-1) == 0 {
			t.pages = append(t.pages, make([]question, pageSize))
		}
		t.used++
	}
	*t.at(i) = question{id: id, due: none}
	t.live++
	return i
}

func (t *questions) drop(i uint32) {
	q := t.at(i)
	if f := t.family(q.id.Key); f == nil {
		t.index.remove(t, i)
	} else if f.remove(t, i); f.size() == 0 {
		delete(t.families, q.id.Key)
	}
	if len(t.freed) < maxFreed {
		t.freed = append(t.freed, i)
	} else {
		q.due, t.free = t.free, i
	}
	t.live--
}
