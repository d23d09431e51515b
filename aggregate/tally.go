package aggregate

import "math/bits"

// tally counts how often each of 64 counters went up, in one line of the cache:
// bit k of a counter's number is its bit in plane k. An arrival raises about a
// dozen counters, and which ones cannot be foreseen; here all of them take the
// same few instructions, one addition with carry, where counting them one by one
// would take a dozen and a jump that is predicted wrong.
type tally struct {
	planes [tallyPlanes]uint64
	added  uint64
}

const tallyPlanes = 7

// The counters fit the bits of a word.
var _ [64 - numCounters]struct{}

// add raises the counters whose bits are set, and says whether the tally must be
// emptied before the next.
func (t *tally) add(ones uint64) (full bool) {
	p := &t.planes
	c0 := p[0] & ones
	p[0] ^= ones
	c1 := p[1] & c0
	p[1] ^= c0
	c2 := p[2] & c1
	p[2] ^= c1
	c3 := p[3] & c2
	p[3] ^= c2
	c4 := p[4] & c3
	p[4] ^= c3
	c5 := p[5] & c4
	p[5] ^= c4
	p[6] ^= c5
	t.added++
	return t.added == 1<<tallyPlanes-1
}

// empty moves what was counted to n.
func (t *tally) empty(n *[numCounters]uint64) {
	for k, plane := range t.planes {
		for ; plane != 0; plane &= plane - 1 {
			n[bits.TrailingZeros64(plane)] += 1 << k
		}
	}
	*t = tally{}
}
