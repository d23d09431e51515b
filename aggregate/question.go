package aggregate

// question is the ledger's entry for one live question: 72 bytes without
// pointers, so that millions of them cost the garbage collector nothing. What a
// longer or a mixed history needs lies in the arena under recent and seen.
type question struct {
	id    ID
	last  int64 // start of the latest arrival
	first int64 // start of the episode's first arrival

	recent block  // starts between first and last that are within the horizon
	seen   block  // latest start by property, for what last alone does not tell
	n      uint32 // arrivals of the episode; 0: no episode
	k      uint32 // ordinal of the latest arrival
	open   uint32 // arrivals in open ticks
	due    uint32 // next question to look at in the same tick, or in the free list

	dur        uint32 // packed, of the latest arrival
	route      uint16
	originator uint16
	retry      uint16 // packed, of the latest arrival
	peer       uint8  // of the latest arrival
	num        uint8  // of the latest arrival
	left       uint8  // of the latest arrival
	state      uint8
	firstPeer  uint8 // of the episode's first arrival
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

// questions is the table: entries in pages that never move, an index by
// identity, and a free list.
type questions struct {
	pages [][]question
	used  uint32 // entries handed out at least once
	free  uint32 // head of the free list
	live  int
	index index
}

const (
	pageBits = 11
	pageSize = 1 << pageBits
	none     = ^uint32(0)
)

func newQuestions() questions { return questions{free: none} }

func (t *questions) at(i uint32) *question { return &t.pages[i>>pageBits][i&(pageSize-1)] }

func (id ID) hash() uint64 {
	x := (id.Key ^ id.Rest) * 0x9e3779b97f4a7c15
	return x ^ x>>32
}

// get returns the entry of id, made if there is none.
func (t *questions) get(id ID) (i uint32, made bool) {
	h := id.hash()
	i, ok := t.index.find(h, func(i uint32) bool { return t.at(i).id == id })
	if ok {
		return i, false
	}
	if t.free != none {
		i = t.free
		t.free = t.at(i).due
	} else {
		i = t.used
		if i&(pageSize-1) == 0 {
			t.pages = append(t.pages, make([]question, pageSize))
		}
		t.used++
	}
	*t.at(i) = question{id: id, due: none}
	t.index.insert(h, i, func(i uint32) uint64 { return t.at(i).id.hash() })
	t.live++
	return i, true
}

func (t *questions) drop(i uint32) {
	q := t.at(i)
	t.index.remove(q.id.hash(), i)
	q.due, t.free = t.free, i
	t.live--
}
