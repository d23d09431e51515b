package aggregate

import "github.com/targetside/auditor/keys"

// Counts is what was counted over one row: plain sums, which add over shards and
// over rows, and histograms. The ratios of a report are formed from sums only at
// the end (see Measure).
type Counts struct {
	Arrivals, Verified, Claimed uint64
	Unattributable              [keys.NumReasons]uint64

	// Originals opened an episode; PeerFirsts were the question's first by their
	// peer; both with their share of claimed keys.
	Originals, OriginalsClaimed   uint64
	PeerFirsts, PeerFirstsClaimed uint64
	OrphanAttempts, Reopened      uint64

	// Of questions whose first arrival (within the horizon) failed.
	FailedArrivals, FailedOriginals, FailedPeerFirsts uint64

	// Hop numbers: arrivals with one, with number 1, with one that the source
	// vouches for; attributable ones with number 1, and how many of those were
	// the first with it of their question (by their peer, in a view by peer).
	HopNumbered, HopOnes, HopTrusted uint64
	HopOnesKnown, HopFirsts          uint64
	// Originator's numbers: arrivals with one, distinct (question, number),
	// questions with one.
	OriginNumbered, OriginNumbers, OriginQuestions uint64
	// Records of loggers in front, and the arrivals inside them.
	FrontRecords, FrontArrivals uint64

	SamePeer                                                        uint64
	AfterGone, AfterError, AfterOverload, AfterSuccess, AfterFlight uint64
	Overspent, NotDecremented, Increased                            uint64
	RetryShown, RetryAsked, RetryReturned, RetryEarly               uint64
	Stale, Answered, DoubleSuccess                                  uint64

	Answers, Refused, Success, Visible, Expired uint64
	Departures                                  [numDepartures]uint64
	// Good are successes that were neither cut off nor late.
	Good uint64
	// Nanoseconds in system: of answers for nobody, of all, of repeats.
	Dead, Busy, Repeat int64

	// PerQuestion and Spans count questions at their end, FanOut keys at theirs,
	// Gaps successive arrivals.
	PerQuestion, Spans, FanOut, Gaps Histogram

	// Carried and HopCarried count repeats by how many rows before this one
	// their question's previous arrival (with hop number 1) lies. Distinct
	// questions over any run of rows follow from them: see Distinct.
	Carried, HopCarried []Carry
}

// Carry counts repeats whose question was last seen Rows rows earlier.
type Carry struct {
	Rows               int64
	N, Claimed, Failed uint64
}

func carry(list []Carry, c Carry) []Carry {
	for i := range list {
		if list[i].Rows == c.Rows {
			list[i].N += c.N
			list[i].Claimed += c.Claimed
			list[i].Failed += c.Failed
			return list
		}
	}
	return append(list, c)
}

// beyond sums the carries from before a row that lies back rows earlier: the
// questions that were under way when the range began.
func beyond(list []Carry, back int64) (c Carry) {
	for _, x := range list {
		if x.Rows > back {
			c.N += x.N
			c.Claimed += x.Claimed
			c.Failed += x.Failed
		}
	}
	return c
}

// Merge adds everything that o counted; both must be of the same row, or of rows
// whose carries were settled before (see Settle).
func (c *Counts) Merge(o *Counts) {
	c.Arrivals += o.Arrivals
	c.Verified += o.Verified
	c.Claimed += o.Claimed
	for i := range c.Unattributable {
		c.Unattributable[i] += o.Unattributable[i]
	}
	c.Originals += o.Originals
	c.OriginalsClaimed += o.OriginalsClaimed
	c.PeerFirsts += o.PeerFirsts
	c.PeerFirstsClaimed += o.PeerFirstsClaimed
	c.OrphanAttempts += o.OrphanAttempts
	c.Reopened += o.Reopened
	c.FailedArrivals += o.FailedArrivals
	c.FailedOriginals += o.FailedOriginals
	c.FailedPeerFirsts += o.FailedPeerFirsts
	c.HopNumbered += o.HopNumbered
	c.HopOnes += o.HopOnes
	c.HopTrusted += o.HopTrusted
	c.HopOnesKnown += o.HopOnesKnown
	c.HopFirsts += o.HopFirsts
	c.OriginNumbered += o.OriginNumbered
	c.OriginNumbers += o.OriginNumbers
	c.OriginQuestions += o.OriginQuestions
	c.FrontRecords += o.FrontRecords
	c.FrontArrivals += o.FrontArrivals
	c.SamePeer += o.SamePeer
	c.AfterGone += o.AfterGone
	c.AfterError += o.AfterError
	c.AfterOverload += o.AfterOverload
	c.AfterSuccess += o.AfterSuccess
	c.AfterFlight += o.AfterFlight
	c.Overspent += o.Overspent
	c.NotDecremented += o.NotDecremented
	c.Increased += o.Increased
	c.RetryShown += o.RetryShown
	c.RetryAsked += o.RetryAsked
	c.RetryReturned += o.RetryReturned
	c.RetryEarly += o.RetryEarly
	c.Stale += o.Stale
	c.Answered += o.Answered
	c.DoubleSuccess += o.DoubleSuccess
	c.Answers += o.Answers
	c.Refused += o.Refused
	c.Success += o.Success
	c.Visible += o.Visible
	c.Expired += o.Expired
	for i := range c.Departures {
		c.Departures[i] += o.Departures[i]
	}
	c.Good += o.Good
	c.Dead += o.Dead
	c.Busy += o.Busy
	c.Repeat += o.Repeat
	c.PerQuestion.merge(&o.PerQuestion)
	c.Spans.merge(&o.Spans)
	c.FanOut.merge(&o.FanOut)
	c.Gaps.merge(&o.Gaps)
	for _, x := range o.Carried {
		c.Carried = carry(c.Carried, x)
	}
	for _, x := range o.HopCarried {
		c.HopCarried = carry(c.HopCarried, x)
	}
}

// Settle prepares a row for adding into a range of rows that begins back rows
// before it: repeats whose question was last seen before the range are what the
// range's distinct questions exceed its originals by, and stay as a carry of
// one; all others vanish.
func (c *Counts) Settle(back int64) {
	settle := func(list []Carry) []Carry {
		b := beyond(list, back)
		if b.N == 0 {
			return list[:0]
		}
		b.Rows = 1
		return append(list[:0], b)
	}
	c.Carried, c.HopCarried = settle(c.Carried), settle(c.HopCarried)
}

// Distinct is the number of distinct questions with an arrival in the range that
// the counts are of: those that opened in it, and those under way when it began.
// Of a peer's counts it is the number of distinct questions by that peer.
func (c *Counts) Distinct(byPeer bool) uint64 {
	n := c.Originals
	if byPeer {
		n = c.PeerFirsts
	}
	return n + beyond(c.Carried, 0).N
}
