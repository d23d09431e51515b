package keys

import "sync/atomic"

// limiter counts signature checks per second of log time, for all checkers of a ring together. Records of several seconds
// come interleaved, so the last 64 seconds each have a slot of their own: a straggler neither resets nor borrows from
// another second's count.
type limiter struct {
	perSecond int // 0 = no limit
	slots     [64]atomic.Uint64
}

// allow takes one check out of the second that holds t (Unix ns), and reports whether one was left.
func (l *limiter) allow(t int64) bool {
	if l.perSecond == 0 {
		return true
	}
	second := t / 1e9
	slot := &l.slots[uint64(second)%uint64(len(l.slots))]
	for {
		old := slot.Load() // upper half: the second, lower half: checks taken in it
		spent := uint32(old)
		if uint32(old>>32) != uint32(second) {
			spent = 0
		}
		if uint64(spent) >= uint64(l.perSecond) {
			return false
		}
		if slot.CompareAndSwap(old, uint64(uint32(second))<<32|uint64(spent+1)) {
			return true
		}
	}
}
