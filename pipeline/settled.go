package pipeline

import (
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// settled says of ticks that were closed by another lateness than the one in force
// what made a record of them late: Lateness ns. Their rows stand, so whether a record
// is in them has to be judged as it was then: those on time only teach the ledger, the
// others are in rows of their own.
type settled struct {
	Tick     int64 `json:"t"` // the first that is not of them
	Lateness int64 `json:"l"`
}

// maxSettled is how many changes of the lateness fit a position. More than that within one
// lateness, and records of the oldest are judged by the present one.
const maxSettled = 6

// history is what makes an arrival of a partition late besides the watermark.
type history struct {
	old  []settled
	away []absence
}

// none says that there is nothing of the kind.
func (h *history) none() bool { return len(h.old) == 0 && len(h.away) == 0 }

// heed notes that ticks were closed by another lateness than the present one.
func (p *livePart) heed(x settled, now time.Duration) {
	if x.Lateness == int64(now) || slices.Contains(p.old, x) {
		return
	}
	p.old = slices.Clone(p.old)
	if n := len(p.old); n > 0 && p.old[n-1].Lateness == x.Lateness {
		p.old[n-1].Tick = max(p.old[n-1].Tick, x.Tick)
		return
	}
	p.old = append(p.old, x)
	p.old = p.old[max(0, len(p.old)-maxSettled):]
}

// forget drops what changes nothing any more: where the watermark is at mark, what
// still comes of those ticks is late by any lateness.
func (p *livePart) forget(mark int64, now time.Duration) {
	longest := int64(now)
	for _, x := range p.old {
		longest = max(longest, x.Lateness)
	}
	p.old = slices.DeleteFunc(slices.Clone(p.old), func(x settled) bool { return x.Tick*int64(time.Second)+longest <= mark })
	p.away = slices.DeleteFunc(slices.Clone(p.away), func(x absence) bool { return x.Tick*int64(time.Second)+longest <= mark })
}

// judge says whether an arrival is late, which by the lateness in force it is or is
// not, or whether it is in the rows of a settled tick and has no place in the ledger.
func (s *shared) judge(h *history, a *aggregate.Arrival, offset, mark int64, late bool) (_, counted bool) {
	for i := range h.away {
		if h.away[i].has(offset, s.ledger.Tick(a)) {
			return true, false
		}
	}
	earlier := int64(noTick)
	for _, x := range h.old {
		then := s.ledger
		then.Lateness = x.Lateness
		tick := then.Tick(a)
		if tick >= x.Tick {
			earlier = x.Tick
			continue
		}
		// What was of a tick that was settled by then was late, too.
		if tick < earlier || then.Late(tick, mark) {
			return true, false
		}
		return false, s.ledger.Tick(a) >= x.Tick
	}
	return late || s.ledger.Tick(a) < earlier, false
}
