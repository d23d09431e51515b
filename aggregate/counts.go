package aggregate

import "github.com/targetside/auditor/keys"

// counter names one of the plain sums of Counts.
type counter uint8

// What is counted. "First" is the first within the horizon.
const (
	// What almost every arrival raises some of stands together, so that counting
	// one touches little memory.
	nArrivals counter = iota
	nVerified
	nAnswers
	nVisible
	nSuccess
	nGood // successes that were neither cut off nor late
	nRefused
	nOriginals           // opened an episode
	nPeerFirsts          // first of their question by their peer
	nFailedArrivals      // of questions whose first arrival failed
	nFailedQuestions     // such questions, each when it becomes one
	nFailedPeerQuestions // the same by question and peer
	nAnswered
	nSamePeer // repeats whose previous arrival came by the same peer
	nAfterGone
	nAfterError
	nAfterOverload
	nAfterSuccess
	nHopNumbered  // carried an attempt number of the adjacent hop
	nHopOnes      // number 1
	nHopOnesKnown // number 1, attributable
	nHopFirsts    // the first of those of their question (and peer, in a view by peer)
	nStale
	nExpired
	nDeadAnswers // answers that nobody was there to read

	nAfterFlight
	nClaimed
	nOriginalsClaimed
	nPeerFirstsClaimed
	nOrphanAttempts
	nReopened
	nHopTrusted      // a hop number that the source vouches for
	nOriginNumbered  // carried an attempt number of the originator
	nOriginNumbers   // the first of their question and number
	nOriginQuestions // the first of their question with a number
	nFrontRecords    // records of loggers in front
	nFrontArrivals
	nOverspent
	nNotDecremented
	nIncreased
	nRetryShown
	nRetryAsked
	nRetryReturned
	nRetryEarly
	nDoubleSuccess

	nDepartures                                            // one for each Departure
	nUnattributable = nDepartures + counter(numDepartures) // one for each reason
	numCounters     = nUnattributable + counter(keys.NumReasons)
)

// Counts is what was counted over one row: plain sums, which add over shards and
// over rows, and histograms. The ratios of a report are formed from sums only at
// the end (see Measure).
type Counts struct {
	n [numCounters]uint64
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
	for i, n := range o.n {
		c.n[i] += n
	}
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
	n := c.n[nOriginals]
	if byPeer {
		n = c.n[nPeerFirsts]
	}
	return n + beyond(c.Carried, 0).N
}
