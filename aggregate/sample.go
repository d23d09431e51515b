package aggregate

import (
	"math"
	"math/bits"
)

// With more questions than Config.MaxLive a ledger follows a part of them: those
// whose hash has at least k leading zeros, one in 2^k. What an arrival counts by
// itself (arrivals, classes, responses) is counted of all. What takes knowledge of
// its question (originals, firsts, what came before) is counted of the followed
// ones, and each counts for 2^k.
//
// Promises:
//   - A question is followed or not, as a whole. Sums of questions are right in the
//     mean, and nVariance says how far off they may be: the variance of originals is
//     the sum of w(w−1) over what was counted with weight w = 2^k, since each of
//     those stands for a draw with probability 1/w.
//   - Each tick has one k. A k that rises takes effect in all open ticks, so that
//     memory is given back at once; one that falls, from a tick to come, and counts
//     only when the questions it adds have been followed for two horizons, as far as
//     a count depends on the past.
//   - The questions held stay below MaxLive and what is filed while the ledger lets
//     go of those that are not followed any more: at most a quarter of MaxLive, even
//     if all of them come in one second.
//   - No arrival waits for more than a page of arrivals or the questions that are due
//     in one second to be let go.
//
// Fan-out is of keys, not of questions, and is not known of a part of those.

// change is a k and the first tick that has it.
type change struct {
	from int64
	k    uint8
}

// sampler is what a ledger knows of what it follows.
type sampler struct {
	max    int
	steps  []change // in order of from; before the first, and without any, k is 0
	newest int64    // latest tick with an arrival

	// What is still to be let go after k has risen: ticks, whose arrivals come first
	// and then the questions that are due in them.
	ticks []int64
}

// maxExponent bounds k: weights stay far below 2^32.
const maxExponent = 24

// level is the largest k with which a question is followed.
func (id ID) level() uint8 {
	return uint8(bits.LeadingZeros64(spread(id.Key ^ bits.RotateLeft64(id.Rest, 32))))
}

// kept is the k by which questions are followed that arrive in a tick.
func (s *sampler) kept(tick int64) (k uint8) {
	for _, x := range s.steps {
		if x.from > tick {
			break
		}
		k = x.k
	}
	return k
}

// most is the largest k by which a tick may still be counted.
func (s *sampler) most() (k uint8) {
	for _, x := range s.steps {
		k = max(k, x.k)
	}
	return k
}

// least is the k below which no question is followed any more.
func (s *sampler) least() uint8 {
	if n := len(s.steps); n > 0 {
		return s.steps[n-1].k
	}
	return 0
}

// exponent is the k by which a tick is counted: the largest in its reach.
func (l *Ledger) exponent(tick int64) (k uint8) {
	s := &l.sampler
	for i, x := range s.steps {
		over := i+1 < len(s.steps) && s.steps[i+1].from < tick-l.reach()
		if x.from <= tick && !over {
			k = max(k, x.k)
		}
	}
	return k
}

// reach is how many ticks a count may look back: a horizon to the arrivals that came
// before, and another to what these had looked back to. So does what is counted at the
// end of a question, which is a horizon after its latest arrival.
func (l *Ledger) reach() int64 { return 2 * (l.cfg.Horizon/second + 1) }

// Bound sets how many questions may be held from now on; 0 is any number.
func (l *Ledger) Bound(questions int) {
	if l.sampler.max = questions; questions <= 0 {
		l.sampler.max = math.MaxInt
	}
}

// weigh sets the weight of a tick's questions.
func (l *Ledger) weigh(tick int64) {
	l.k = 0
	if len(l.sampler.steps) > 0 {
		l.k = l.exponent(tick)
	}
}

// weight is for how many questions one counts in the tick that was weighed: none if
// it is followed, but not yet for as far as counts reach back.
func (l *Ledger) weight(id ID) uint64 {
	switch {
	case l.k == 0:
		return 1
	case id.level() < l.k:
		return 0
	}
	return 1 << l.k
}

// follows says whether an arrival's question is followed. While the ledger lets go of
// others, it does some of that.
func (l *Ledger) follows(id ID, tick int64) bool {
	s := &l.sampler
	if len(s.steps) == 0 {
		return true
	}
	s.newest = max(s.newest, tick)
	if len(s.ticks) > 0 {
		l.letGo()
	}
	return id.level() >= s.kept(tick)
}

// full sees to it that the ledger gets no fuller. It is called when there are more
// questions than may be.
func (l *Ledger) full() {
	s := &l.sampler
	if len(s.ticks) > 0 {
		if l.table.live <= s.max+s.max/4 {
			return
		}
		for len(s.ticks) > 0 {
			l.letGo()
		}
	}
	if l.table.live <= s.max || s.least() == maxExponent {
		return
	}
	k := s.least() + 1
	n := len(s.steps)
	for n > 0 && s.steps[n-1].from >= l.closed {
		n--
	}
	s.steps = append(s.steps[:n], change{l.closed, k})
	s.ticks = s.ticks[:0]
	for at, t := range l.ticks {
		t.thinned = 0
		s.ticks = append(s.ticks, at)
	}
}

// letGo lets go of some of what is not followed any more.
func (l *Ledger) letGo() {
	s := &l.sampler
	at := s.ticks[len(s.ticks)-1]
	t := l.ticks[at]
	if t != nil && t.thinned < len(t.filed) {
		l.thin(t, 1)
		return
	}
	if t != nil {
		l.dropDue(t)
	}
	s.ticks = s.ticks[:len(s.ticks)-1]
}

// thin turns the arrivals of questions that are not followed into ones that count
// by themselves alone, in some pages of a tick.
func (l *Ledger) thin(t *tick, pages int) {
	for ; pages > 0 && t.thinned < len(t.filed); pages-- {
		n := min(pageArrivals, t.n-uint32(t.thinned)*pageArrivals)
		page := t.filed[t.thinned]
		for i := range page[:n] {
			f := &page[i]
			if f.flags&unattributable != 0 {
				continue
			}
			if q := l.table.at(f.owner); q.id.level() < l.sampler.least() {
				owner := f.owner
				f.leave(q.route, q.originator, q.state&verifiedBit != 0)
				l.closeOpen(owner)
			}
		}
		t.thinned++
	}
}

// thinAll makes a tick ready to be counted or told of: its arrivals are all filed as
// its k wants it.
func (l *Ledger) thinAll(t *tick) {
	if len(l.sampler.ticks) > 0 {
		l.thin(t, len(t.filed))
	}
}

// dropDue lets go of the questions due in a tick that are not followed.
func (l *Ledger) dropDue(t *tick) {
	for n := range t.due {
		at := &t.due[n]
		for *at != none {
			i := *at
			q := l.table.at(i)
			if q.id.level() >= l.sampler.least() {
				at = &q.due
				continue
			}
			*at = q.due
			l.forget(i, q)
		}
	}
}

// forget lets go of a question that is in no list of due ones. Its episode counts
// nowhere.
func (l *Ledger) forget(i uint32, q *question) {
	q.due = none
	if q.n > 0 {
		l.arena.forget(q)
		q.n = 0
		l.ended(i, q)
	}
	if q.open == 0 {
		l.table.drop(i)
	}
}

// relax follows more questions again, once there is room for twice as many. It is
// called when a tick has been closed.
func (l *Ledger) relax() {
	s := &l.sampler
	n := len(s.steps)
	if n == 0 {
		return
	}
	for n > 1 && s.steps[1].from < l.closed-l.reach() {
		s.steps = s.steps[1:]
		n--
	}
	last := s.steps[n-1]
	switch {
	case last.k == 0 && n == 1:
		s.steps = nil
	case last.k > 0 && len(s.ticks) == 0 && l.table.live < s.max*3/8 && l.closed > last.from+l.reach():
		s.steps = append(s.steps, change{max(s.newest, l.closed) + 1, last.k - 1})
	}
}

// An arrival of a question that is not followed has no question: its owner is its
// route and originator, and these flags, which mean something else where there is a
// question, tell it from one that is unattributable, and whether its key is verified.
const (
	notFollowed      = Reopening
	notFollowedProof = NonIdempotent
)

// leave makes an arrival one of a question that is not followed.
func (f *filed) leave(route, originator uint16, verified bool) {
	f.owner = uint32(route)<<16 | uint32(originator)
	f.flags = f.flags&^notFollowedProof | unattributable | notFollowed
	if verified {
		f.flags |= notFollowedProof
	}
}

// unfollowed says that an arrival is of a question that is not followed.
func (f *filed) unfollowed() bool {
	return f.flags&(unattributable|notFollowed) == unattributable|notFollowed
}

// beginUnfollowed works out what such an arrival changes.
func (e *effect) beginUnfollowed(tick int64, f *filed) {
	e.begin(Dims{Route: uint16(f.owner >> 16), Originator: uint16(f.owner), Peer: f.peer}, tick, f)
	e.attributed(f, f.flags&notFollowedProof != 0)
	e.known = false
}

// ofQuestion are the counters that take knowledge of the question.
const ofQuestion = uint64(1<<nOriginals | 1<<nFailedArrivals | 1<<nAnswered | 1<<nSamePeer |
	1<<nAfterGone | 1<<nAfterError | 1<<nAfterOverload | 1<<nAfterSuccess | 1<<nAfterFlight |
	1<<nFirstsClaimed | 1<<nOrphanAttempts | 1<<nReopened | 1<<nOverspent | 1<<nNotDecremented | 1<<nIncreased |
	1<<nRetryReturned | 1<<nRetryEarly | 1<<nDoubleSuccess | 1<<nFamilyEnds | 1<<nUntimedRepeats | (1<<numDistinct-1)<<nFirsts)

// raiseMany adds n to each of some counters.
func (c *Counts) raiseMany(ones, n uint64) {
	for ; ones != 0; ones &= ones - 1 {
		c.n[bits.TrailingZeros64(ones)] += n
	}
}

// original counts the variance of an original with some weight.
func (c *Counts) original(weight uint64) { c.n[nVariance] += weight * (weight - 1) }
