package aggregate

import (
	"encoding/binary"
	"math/bits"
)

// Sums are told from one instance to another as varints: which counters there are, and
// then what they are. What follows them is the caller's. Newer programs have more
// counters, behind the others.

// AppendSums appends encoded sums.
func (s *Sums) AppendSums(dst []byte) []byte {
	s.tally.empty(&s.n)
	dst = binary.AppendUvarint(dst, notZero(&s.n))
	dst = appendNotZero(dst, &s.n)
	for _, v := range [...]int64{s.dead, s.busy, s.repeat, s.unknown} {
		dst = binary.AppendVarint(dst, v)
	}
	return binary.AppendUvarint(dst, s.failed)
}

// AppendSums appends encoded sums of a closed tick.
func (s *ClosedSums) AppendSums(dst []byte) []byte {
	return appendCarries(appendCarries(s.Sums.AppendSums(dst), s.again), s.ones)
}

// AddTold adds sums that Sums.AppendSums wrote, and returns what follows. The error is
// ErrCounts, also of counters that this program does not know; then a part is added.
func (s *Sums) AddTold(b []byte) ([]byte, error) {
	d := decoder{b: b}
	d.sums(s)
	if d.bad {
		return nil, ErrCounts
	}
	return d.b, nil
}

// DecodeClosedSums reads what ClosedSums.AppendSums wrote, and returns what follows. The
// error is ErrCounts.
func DecodeClosedSums(b []byte) (*ClosedSums, []byte, error) {
	d, s := decoder{b: b}, new(ClosedSums)
	d.sums(&s.Sums)
	s.again, s.ones = d.carries(), d.carries()
	if d.bad {
		return nil, nil, ErrCounts
	}
	return s, d.b, nil
}

// sums adds what it reads.
func (d *decoder) sums(s *Sums) {
	some := d.uint()
	d.bad = d.bad || bits.Len64(some) > int(numCounters)
	for ; some != 0 && !d.bad; some &= some - 1 {
		s.n[bits.TrailingZeros64(some)] += d.uint()
	}
	for _, v := range [...]*int64{&s.dead, &s.busy, &s.repeat, &s.unknown} {
		*v += d.int()
	}
	s.failed += d.uint()
}
