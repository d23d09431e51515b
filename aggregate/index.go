package aggregate

import "math/bits"

// index finds entries of a table by their keys' hashes. It is an array of
// small open-addressing tables, each grown on its own, so that no insertion waits
// for more than one of them.
//
// A slot holds seven bits of the hash and the number of the entry; a look-up
// reads an entry only when those bits agree.
type index struct {
	segs [segments]segment
}

// spread gives the bits of a key's hash that are used here.
func spread(key uint64) uint64 {
	key *= 0x9e3779b97f4a7c15
	return key ^ key>>32
}

const (
	segmentBits = 8
	segments    = 1 << segmentBits

	slotTagBits = 7
	slotTagMask = (1<<slotTagBits - 1) << (32 - slotTagBits)
	// maxEntries is how many entries an index can number; two values mark slots.
	maxEntries = 1<<(32-slotTagBits) - 2

	slotEmpty = uint32(0)
	slotGone  = uint32(1) // a removed entry, which a look-up passes over
	slotBase  = uint32(2) // added to entry numbers
)

type segment struct {
	slots []uint32
	live  int
	gone  int
}

// place gives the segment, the slot to begin at, and the tag of a hash. The
// three use different bits of it.
func (x *index) place(h uint64) (s *segment, pos int, tag uint32) {
	s = &x.segs[h>>(64-segmentBits)]
	p, _ := bits.Mul64(h<<segmentBits, uint64(len(s.slots)))
	return s, int(p), uint32(h) << (32 - slotTagBits)
}

// find returns the entry of a key.
func (x *index) find(t *questions, key uint64) (uint32, bool) {
	s, pos, tag := x.place(spread(key))
	for range s.slots {
		v := s.slots[pos]
		if v == slotEmpty {
			return 0, false
		}
		if v != slotGone && v&slotTagMask == tag {
			i := v&^slotTagMask - slotBase
			if t.at(i).id.Key == key {
				return i, true
			}
		}
		if pos++; pos == len(s.slots) {
			pos = 0
		}
	}
	return 0, false
}

// insert adds entry i, which must not be there.
func (x *index) insert(t *questions, i uint32) {
	if i > maxEntries-slotBase {
		panic("aggregate: more live questions than one shard can number")
	}
	h := spread(t.at(i).id.Key)
	s, _, _ := x.place(h)
	if 5*(s.live+s.gone+1) > 4*len(s.slots) {
		x.grow(t, s)
	}
	x.put(h, i)
	s.live++
}

func (x *index) put(h uint64, i uint32) {
	s, pos, tag := x.place(h)
	for {
		if v := s.slots[pos]; v == slotEmpty || v == slotGone {
			if v == slotGone {
				s.gone--
			}
			s.slots[pos] = tag | (i + slotBase)
			return
		}
		if pos++; pos == len(s.slots) {
			pos = 0
		}
	}
}

func (x *index) grow(t *questions, s *segment) {
	old := s.slots
	size := 2*s.live + 8 // half full after growing
	s.slots, s.gone = make([]uint32, size), 0
	for _, v := range old {
		if v >= slotBase && v != slotEmpty && v != slotGone {
			i := v&^slotTagMask - slotBase
			x.put(spread(t.at(i).id.Key), i)
		}
	}
}

// sweep empties the slot at pos and those before it that are of removed entries,
// if nothing is looked for beyond.
func (s *segment) sweep(pos int) {
	next := pos + 1
	if next == len(s.slots) {
		next = 0
	}
	if s.slots[next] != slotEmpty {
		return
	}
	for s.slots[pos] == slotGone {
		s.slots[pos] = slotEmpty
		s.gone--
		if pos--; pos < 0 {
			pos = len(s.slots) - 1
		}
	}
}

// remove takes entry i out.
func (x *index) remove(t *questions, i uint32) {
	s, pos, tag := x.place(spread(t.at(i).id.Key))
	want := tag | (i + slotBase)
	for range s.slots {
		switch s.slots[pos] {
		case want:
			s.slots[pos] = slotGone
			s.gone++
			s.live--
			s.sweep(pos)
			return
		case slotEmpty:
			return
		}
		if pos++; pos == len(s.slots) {
			pos = 0
		}
	}
}
