package aggregate

// The history of a question is kept only as far as a count can depend on it:
// one horizon back from the arrival at hand. Most questions need none beyond
// their entry, which holds the first and the latest arrival. Two blocks of the
// arena hold the rest.
//
// recent is a ring of the arrivals between the first and the latest. It is what
// the ordinal and "the first arrival within the horizon" are read from.
//
// seen holds the latest start by property (a peer, an attempt number, a carried
// budget, a success), for properties that the latest arrival does not have. "Has
// the question had this within the horizon" is then one comparison.
//
// Times in both are 40 bits of microseconds, which is unambiguous within
// MaxHorizon.

const (
	timeBits = 40
	timeMask = 1<<timeBits - 1
)

func stamp(ns int64) uint64 { return stampOf(ns, 1e3) }

func stampOf(ns, unit int64) uint64 { return uint64(floorDiv(ns, unit)) & timeMask }

// ago is how long before now (Unix ns) a stamp was, in microseconds.
func ago(now int64, s uint64) int64 { return int64((stamp(now) - s) & timeMask) }

// A ring's first word has the position of its oldest element in the high half
// and its length in the low half.
type pastArrival uint64

const pastFailed = 1 << 48

func (p pastArrival) stamp() uint64 { return uint64(p) & timeMask }
func (p pastArrival) peer() uint8   { return uint8(p >> timeBits) }
func (p pastArrival) failed() bool  { return p&pastFailed != 0 }

func ringLen(w []uint64) int {
	if w == nil {
		return 0
	}
	return int(uint32(w[0]))
}

// pushRecent appends an arrival to the ring.
func (a *arena) pushRecent(q *question, p pastArrival) {
	w := a.words(q.recent)
	if w == nil {
		q.recent = a.alloc(2)
		w = a.words(q.recent)
		w[0] = 0
	}
	n, room := ringLen(w), len(w)-1
	if n == room {
		// Unroll so that the copy into the larger block is in order.
		head := int(w[0] >> 32)
		bigger := a.alloc(2 * len(w))
		to := a.words(bigger)
		for i := range n {
			to[1+i] = w[1+(head+i)%room]
		}
		to[0] = uint64(n)
		a.release(q.recent)
		q.recent, w, room = bigger, to, len(to)-1
	}
	head := int(w[0] >> 32)
	at := head + n
	if at >= room {
		at -= room
	}
	w[1+at] = uint64(p)
	w[0]++
}

// oldest returns the head of a ring that is not empty.
func oldest(w []uint64) pastArrival { return pastArrival(w[1+w[0]>>32]) }

func dropOldest(w []uint64) {
	head := w[0]>>32 + 1
	if int(head) == len(w)-1 {
		head = 0
	}
	w[0] = head<<32 | uint64(uint32(w[0])-1)
}

// property is what a record of seen is about.
type property uint8

const (
	noProperty   property = iota
	seenPeer              // value: the peer; has counts
	seenFirstTry          // hop number 1, value: the peer
	seenNumber            // value: an originator's attempt number
	seenLeft              // value: a carried budget
	seenSuccess
	seenFailed // the question's first arrival had failed; value: the peer
	cameBy     // value: a peer by which it came a horizon ago or longer; see shown.go
)

// A record of seen has two words. The first holds property, value, one byte more
// (the carried budget for seenPeer, the peer for seenNumber) and the stamp. The
// second is for seenPeer: how many of the peer's arrivals are within the horizon,
// and the ordinal that its latest had among them.
type record struct{ w []uint64 }

func (r record) ok() bool           { return r.w != nil }
func (r record) property() property { return property(r.w[0] >> 56) }
func (r record) value() uint8       { return uint8(r.w[0] >> 48) }
func (r record) left() uint8        { return uint8(r.w[0] >> timeBits) }
func (r record) stamp() uint64      { return r.w[0] & timeMask }
func (r record) count() uint32      { return uint32(r.w[1] >> 32) }
func (r record) ordinal() uint32    { return uint32(r.w[1]) }

// tick is the tick of the record's arrival, seen from a time that follows it.
func (r record) tick(now int64) int64 { return tickOf(now - ago(now, r.stamp())*1000) }

func (r record) set(p property, value, more uint8, start int64) {
	r.w[0] = uint64(p)<<56 | uint64(value)<<48 | uint64(more)<<timeBits | stamp(start)
}

// become makes it a record of another property, with the same value.
func (r record) become(p property) { r.w[0] = uint64(p)<<56 | r.w[0]&(1<<56-1) }

func (r record) setCounts(count, ordinal uint32) { r.w[1] = uint64(count)<<32 | uint64(ordinal) }

// records returns what q has in seen, two words a record. The rest of the block
// is empty: its records' first words are 0.
func (a *arena) records(q *question) []uint64 {
	w := a.words(q.seen)
	for len(w) > 0 && w[len(w)-2] == 0 {
		w = w[:len(w)-2]
	}
	return w
}

func (a *arena) seenOf(q *question, p property, value uint8) record {
	key := uint64(p)<<8 | uint64(value)
	for w := a.records(q); len(w) > 0; w = w[2:] {
		if w[0]>>48 == key {
			return record{w[:2]}
		}
	}
	return record{}
}

// remember returns the record for a property, made if there is none.
func (a *arena) remember(q *question, p property, value uint8) record {
	if r := a.seenOf(q, p, value); r.ok() {
		return r
	}
	return a.addRecord(q, p, value)
}

// rememberNumber returns the record for an originator's number by a peer.
func (a *arena) rememberNumber(q *question, num, peer uint8) record {
	for w := a.records(q); len(w) > 0; w = w[2:] {
		if r := (record{w[:2]}); r.property() == seenNumber && r.value() == num && r.left() == peer {
			return r
		}
	}
	return a.addRecord(q, seenNumber, num)
}

func (a *arena) addRecord(q *question, p property, value uint8) record {
	n := len(a.records(q))
	w := a.words(q.seen)
	if n == len(w) {
		bigger := a.alloc(max(2, 2*n))
		to := a.words(bigger)
		clear(to[copy(to, w):])
		a.release(q.seen)
		q.seen, w = bigger, to
	}
	w[n], w[n+1] = (uint64(p)<<8|uint64(value))<<48, 0
	return record{w[n : n+2]}
}

// removeRecord takes a record out; others may move.
func (a *arena) removeRecord(q *question, r record) {
	w := a.records(q)
	last := w[len(w)-2:]
	copy(r.w, last)
	last[0], last[1] = 0, 0
}

// forget gives a question's history back.
func (a *arena) forget(q *question) {
	a.release(q.recent)
	a.release(q.seen)
	q.recent, q.seen = 0, 0
}
