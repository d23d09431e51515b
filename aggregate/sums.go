package aggregate

import (
	"math"
	"math/bits"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/keys"
)

// Sums are the plain sums of some beats: what adds over seconds, shards and
// scopes.
type Sums struct {
	tally              tally
	n                  [numCounters]uint64 // but for what is still in tally
	dead, busy, repeat int64

	// Of beats alone: no row has these.
	failed  uint64
	unknown int64 // nanoseconds in system of unattributable arrivals
}

// ofReasons are the counters of unattributable arrivals.
const ofReasons = (1<<keys.NumReasons - 1) << nUnattributable

// Add adds a beat.
func (s *Sums) Add(b *Beat) {
	n, unknown := bit(b.failed), b.Busy*int64(bit(b.ones&ofReasons != 0))
	if b.Back {
		s.failed, s.unknown = s.failed-n, s.unknown-unknown
		for ones := b.ones; ones != 0; ones &= ones - 1 {
			s.n[bits.TrailingZeros64(ones)]-- // may pass below zero until tally is emptied
		}
		s.more(b, -uint64(b.more))
		s.dead, s.busy, s.repeat = s.dead-b.Dead, s.busy-b.Busy, s.repeat-b.Repeat
		return
	}
	if s.tally.add(b.ones) {
		s.tally.empty(&s.n)
	}
	s.failed, s.unknown = s.failed+n, s.unknown+unknown
	s.more(b, uint64(b.more))
	s.dead, s.busy, s.repeat = s.dead+b.Dead, s.busy+b.Busy, s.repeat+b.Repeat
}

// more adds what a question counts for beside itself, n times.
func (s *Sums) more(b *Beat, n uint64) {
	if n == 0 {
		return
	}
	for ones := b.ones & ofQuestion; ones != 0; ones &= ones - 1 {
		s.n[bits.TrailingZeros64(ones)] += n
	}
	if b.ones>>nOriginals&1 != 0 {
		s.n[nVariance] += n * (uint64(b.more) + 1)
	}
}

// Merge adds other sums.
func (s *Sums) Merge(o *Sums) {
	o.tally.empty(&o.n)
	for i, n := range o.n {
		s.n[i] += n
	}
	s.dead, s.busy, s.repeat = s.dead+o.dead, s.busy+o.busy, s.repeat+o.repeat
	s.failed, s.unknown = s.failed+o.failed, s.unknown+o.unknown
}

// AddCounts adds the plain sums of a row.
func (s *Sums) AddCounts(c *Counts) {
	c.tally.empty(&c.n)
	for i, n := range c.n {
		s.n[i] += n
	}
	s.dead, s.busy, s.repeat = s.dead+c.Dead, s.busy+c.Busy, s.repeat+c.Repeat
}

// Counts are the sums as a row has them, without histograms and without what tells
// distinct ones.
func (s *Sums) Counts() *Counts {
	s.tally.empty(&s.n)
	return &Counts{n: s.n, Dead: s.dead, Busy: s.busy, Repeat: s.repeat}
}

// Totals are sums by name. docs/definitions.md says what each counts; seconds are
// of time in system.
type Totals struct {
	Arrivals, Verified, Claimed                                       uint64
	Unattributable                                                    Unattributable
	Originals, Repeats, OrphanAttempts, Reopened                      uint64
	Answers, DeadAnswers, Visible, Success, Good, Refused, Expired    uint64
	UndeliveredAnswer, DuringResponse, BeforeResponse, UnknownPoint   uint64
	RetryAsked, RetryReturned, RetryEarly                             uint64
	StaleArrivals, Overspent, NotDecremented, Increased               uint64
	AfterGone, AfterError, AfterOverload, AfterSuccess, AfterInFlight uint64
	// The seconds are of what the log gives a time of: of Untimed arrivals it does not, and
	// of them UntimedDead and UntimedRepeats are in what the other two sum over.
	DeadSeconds, BusySeconds, RepeatSeconds float64
	Untimed, UntimedDead, UntimedRepeats    uint64
	// Unjudged arrivals had a deadline and are Untimed: they may have expired, so that
	// Expired and DeadAnswers are lower bounds, and Good an upper one.
	Unjudged uint64
	// Variance is that of Originals, which is 0 if every question was followed.
	Variance uint64
	// Estimated is Originals as they add over rows. Where a part of the questions was
	// followed it is right in the mean and may pass the attributable arrivals; Originals
	// do not pass them, so that their sum over many rows is too low.
	Estimated uint64
}

// Totals returns the sums by name.
func (s *Sums) Totals() Totals {
	s.tally.empty(&s.n)
	return totals(&s.n, s.dead, s.busy, s.repeat)
}

// Budget returns what retry budgets are read from. Only sums of beats have all of it.
func (s *Sums) Budget() budget.Counts {
	t := s.Totals()
	return budget.Counts{
		Arrivals: t.Arrivals, Verified: t.Verified, Originals: t.Originals, Repeats: t.Repeats, Unattributable: t.Unattributable.Total,
		Success: t.Good, Failed: s.failed, Gone: t.UndeliveredAnswer + t.DuringResponse + t.BeforeResponse + t.UnknownPoint + t.Expired,
		Busy: s.busy, RepeatBusy: s.repeat, UnattributableBusy: s.unknown,
		Untimed: t.Untimed, UntimedRepeats: t.UntimedRepeats,
	}
}

// Totals returns the plain sums among the counts by name.
func (c *Counts) Totals() Totals {
	c.tally.empty(&c.n)
	return totals(&c.n, c.Dead, c.Busy, c.Repeat)
}

func totals(n *[numCounters]uint64, dead, busy, repeat int64) Totals {
	t := Totals{
		Arrivals: n[nArrivals], Verified: n[nVerified], Claimed: n[nClaimed],
		OrphanAttempts: n[nOrphanAttempts], Reopened: n[nReopened],
		Answers: n[nAnswers], DeadAnswers: n[nDeadAnswers], Visible: n[nVisible],
		Success: n[nSuccess], Good: n[nGood], Refused: n[nRefused], Expired: n[nExpired],
		UndeliveredAnswer: n[nDepartures+counter(UndeliveredAnswer)], DuringResponse: n[nDepartures+counter(DuringResponse)],
		BeforeResponse: n[nDepartures+counter(BeforeResponse)], UnknownPoint: n[nDepartures+counter(UnknownPoint)],
		RetryAsked: n[nRetryAsked], RetryReturned: n[nRetryReturned], RetryEarly: n[nRetryEarly],
		StaleArrivals: n[nStale], Overspent: n[nOverspent], NotDecremented: n[nNotDecremented], Increased: n[nIncreased],
		AfterGone: n[nAfterGone], AfterError: n[nAfterError], AfterOverload: n[nAfterOverload],
		AfterSuccess: n[nAfterSuccess], AfterInFlight: n[nAfterFlight],
		DeadSeconds: float64(dead) / 1e9, BusySeconds: float64(busy) / 1e9, RepeatSeconds: float64(repeat) / 1e9,
		Untimed: n[nUntimed], UntimedDead: n[nUntimedDead], UntimedRepeats: n[nUntimedRepeats],
		Unjudged: n[nUnjudged],
		Variance: n[nVariance],
	}
	t.Estimated = n[nOriginals]
	t.Originals = t.Estimated
	if t.Variance > 0 { // an estimate may pass what it is of
		t.Originals = min(t.Originals, t.Verified+t.Claimed)
	}
	t.Repeats = t.Verified + t.Claimed - t.Originals
	copy(t.Unattributable.Reasons[:], n[nUnattributable:])
	for _, x := range t.Unattributable.Reasons {
		t.Unattributable.Total += x
	}
	return t
}

// dark says that arrivals had deadlines, and that the time of none is known.
func (t *Totals) dark() bool { return t.Unjudged > 0 && t.Untimed >= t.Arrivals }

// Past is Expired, and nil where the log gives no times and some arrivals had a deadline.
// With some of them Unjudged it is a lower bound.
func (t *Totals) Past() *uint64 {
	if t.dark() && t.Expired == 0 {
		return nil
	}
	n := t.Expired
	return &n
}

// DeadShare is the share of answers that nobody was there to read, and null where Past is
// nil and nobody was seen to leave either.
func (t *Totals) DeadShare() Figure {
	if t.dark() && t.DeadAnswers == 0 {
		return Figure{}
	}
	return Share(t.DeadAnswers, t.Answers)
}

// Retries is what became of answers that asked for patience. Who came again, and who did
// so early, is nil where the log gives no times; with some arrivals Untimed both are lower
// bounds.
func (t *Totals) Retries() *RetryAfter {
	if t.RetryReturned == 0 && t.Untimed > 0 && t.Untimed >= t.Arrivals {
		return &RetryAfter{Asked: t.RetryAsked}
	}
	returned, early := t.RetryReturned, t.RetryEarly
	return &RetryAfter{t.RetryAsked, &returned, &early}
}

// BusyTime is BusySeconds, and null where there are arrivals and the time of none is
// known. With some of them Untimed it is a lower bound.
func (t *Totals) BusyTime() Figure { return timeOf(t.BusySeconds, t.Arrivals, t.Untimed) }

// DeadTime is BusyTime for the arrivals whose caller had left or given up; null, too,
// where Past is nil.
func (t *Totals) DeadTime() Figure {
	if t.dark() {
		return Figure{}
	}
	return timeOf(t.DeadSeconds, t.UndeliveredAnswer+t.DuringResponse+t.BeforeResponse+t.UnknownPoint+t.Expired, t.UntimedDead)
}

// RepeatTime is BusyTime for repeats.
func (t *Totals) RepeatTime() Figure { return timeOf(t.RepeatSeconds, t.Repeats, t.UntimedRepeats) }

// timeOf is the time of n arrivals, which is not known where that of none is.
func timeOf(seconds float64, n, untimed uint64) Figure {
	if untimed > 0 && untimed >= n {
		return Figure{}
	}
	return Number(seconds)
}

// SampleBits is the k for one question in 2^k being followed: in the mean, where it
// changed.
func (c *Counts) SampleBits() int {
	if c.n[nOriginals] == 0 {
		return 0
	}
	return int(math.Round(math.Log2(1 + float64(c.n[nVariance])/float64(c.n[nOriginals]))))
}

// Questions is how many distinct questions there are in the range that the counts
// are of; see Settle. Those of two ranges do not add.
func (c *Counts) Questions() uint64 {
	c.tally.empty(&c.n)
	n, _ := c.distinct(theQuestions)
	return n
}
