package aggregate

import (
	"math/bits"

	"github.com/targetside/auditor/keys"
)

// Sums are the plain sums of some beats: what adds over seconds, shards and
// scopes.
type Sums struct {
	tally              tally
	n                  [numCounters]uint64 // but for what is still in tally
	dead, busy, repeat int64
}

// Add adds a beat.
func (s *Sums) Add(b *Beat) {
	if b.Back {
		for ones := b.ones; ones != 0; ones &= ones - 1 {
			s.n[bits.TrailingZeros64(ones)]-- // may pass below zero until tally is emptied
		}
		s.dead, s.busy, s.repeat = s.dead-b.Dead, s.busy-b.Busy, s.repeat-b.Repeat
		return
	}
	if s.tally.add(b.ones) {
		s.tally.empty(&s.n)
	}
	s.dead, s.busy, s.repeat = s.dead+b.Dead, s.busy+b.Busy, s.repeat+b.Repeat
}

// Merge adds other sums.
func (s *Sums) Merge(o *Sums) {
	o.tally.empty(&o.n)
	for i, n := range o.n {
		s.n[i] += n
	}
	s.dead, s.busy, s.repeat = s.dead+o.dead, s.busy+o.busy, s.repeat+o.repeat
}

// Totals are sums by name. docs/definitions.md says what each counts; seconds are
// of time in system.
type Totals struct {
	Arrivals, Verified, Claimed        uint64
	Unattributable                     [keys.NumReasons]uint64 // by reason
	Originals, Repeats, OrphanAttempts uint64
	Answers, DeadAnswers, Visible      uint64
	Success, Good, Refused, Expired    uint64
	Departures                         [numDepartures]uint64 // by Departure
	Stale, RetryAsked, RetryEarly      uint64
	Overspent, NotDecremented          uint64
	Increased                          uint64
	DeadSeconds, BusySeconds           float64
	RepeatSeconds                      float64
}

// Totals returns the sums by name.
func (s *Sums) Totals() Totals {
	s.tally.empty(&s.n)
	return totals(&s.n, s.dead, s.busy, s.repeat)
}

// Totals returns the plain sums among the counts by name.
func (c *Counts) Totals() Totals {
	c.tally.empty(&c.n)
	return totals(&c.n, c.Dead, c.Busy, c.Repeat)
}

func totals(n *[numCounters]uint64, dead, busy, repeat int64) Totals {
	t := Totals{
		Arrivals: n[nArrivals], Verified: n[nVerified], Claimed: n[nClaimed],
		Originals: n[nOriginals], Repeats: n[nVerified] + n[nClaimed] - n[nOriginals], OrphanAttempts: n[nOrphanAttempts],
		Answers: n[nAnswers], DeadAnswers: n[nDeadAnswers], Visible: n[nVisible],
		Success: n[nSuccess], Good: n[nGood], Refused: n[nRefused], Expired: n[nExpired],
		Stale: n[nStale], RetryAsked: n[nRetryAsked], RetryEarly: n[nRetryEarly],
		Overspent: n[nOverspent], NotDecremented: n[nNotDecremented], Increased: n[nIncreased],
		DeadSeconds: float64(dead) / 1e9, BusySeconds: float64(busy) / 1e9, RepeatSeconds: float64(repeat) / 1e9,
	}
	copy(t.Unattributable[:], n[nUnattributable:])
	copy(t.Departures[:], n[nDepartures:])
	return t
}

// AllUnattributable is the sum over the reasons.
func (t *Totals) AllUnattributable() (n uint64) {
	for _, x := range t.Unattributable {
		n += x
	}
	return n
}
