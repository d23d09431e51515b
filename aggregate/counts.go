package aggregate

import "github.com/targetside/auditor/keys"

// counter names one of the plain sums of Counts.
type counter uint8

// What is counted. "First" is the first within the horizon.
const (
	nArrivals counter = iota
	nVerified
	nAnswers
	nVisible
	nSuccess
	nGood // successes that were neither cut off nor late
	nRefused
	nOriginals      // opened an episode
	nFailedArrivals // of questions whose first arrival failed
	nAnswered
	nSamePeer // repeats whose previous arrival came by the same peer
	nAfterGone
	nAfterError
	nAfterOverload
	nAfterSuccess
	nHopNumbered  // carried an attempt number of the adjacent hop
	nHopOnes      // number 1
	nHopOnesKnown // number 1, attributable
	nStale
	nExpired
	nDeadAnswers // answers that nobody was there to read
	nAfterFlight
	nClaimed
	nFirstsClaimed // of nFirsts, those of claimed keys, of questions
	nOrphanAttempts
	nReopened
	nHopTrusted     // a hop number that the source vouches for
	nOriginNumbered // carried an attempt number of the originator
	nFrontRecords   // records of loggers in front
	nFrontArrivals
	nOverspent
	nNotDecremented
	nIncreased
	nRetryShown
	nRetryAsked
	nRetryReturned
	nRetryEarly
	nDoubleSuccess
	nFamilyEnds // questions at their end, of keys that had several

	nDepartures                                                  // one for each Departure
	nUnattributable = nDepartures + counter(numDepartures)       // one for each reason
	nFirsts         = nUnattributable + counter(keys.NumReasons) // one for each distinct: what came for the first time
	nVariance       = nFirsts + counter(numDistinct)             // of nOriginals, see sampler

	// Later than the first version of the encoding. Arrivals whose time is not known, and of
	// them those whose answer nobody was there to read, and repeats.
	nUntimed        = nVariance + 1
	nUntimedDead    = nVariance + 2
	nUntimedRepeats = nVariance + 3
	// Arrivals that had a deadline, and whose time is not known: they may have expired.
	nUnjudged   = nVariance + 4
	numCounters = nVariance + 5
)

// distinct names what is counted once however often it comes within the horizon.
// In a view by peer all of these are counted by peer.
type distinct uint8

const (
	theQuestions     distinct = iota
	withHopOne                // questions with an arrival of hop number 1
	originNumbers             // questions and numbers of the originator
	withOriginNumber          // questions with such a number
	withFailedFirst           // questions whose first arrival failed
	numDistinct
)

// Counts is what was counted over one row: plain sums, which add over shards and
// over rows, and histograms. The ratios of a report are formed from sums only at
// the end (see Measure).
type Counts struct {
	// An arrival changes the first 128 bytes alone.
	tally tally
	// Nanoseconds in system: of answers for nobody, of all, of repeats.
	Dead, Busy, Repeat int64

	// Gaps counts successive arrivals, PerQuestion and Spans questions at their
	// end, FanOut keys that asked several at theirs.
	Gaps, PerQuestion, Spans, FanOut Histogram

	n [numCounters]uint64 // but for what is still in tally

	// carried counts, for each distinct, what came again, by how many rows before
	// this one it had come last. How many distinct there are over any run of rows
	// follows from that: see distinct.
	carried [numDistinct][]Carry
}

// raise adds one to each of some counters.
func (c *Counts) raise(ones uint64) {
	if c.tally.add(ones) {
		c.tally.empty(&c.n)
	}
}

// Carry counts what had come last Rows rows earlier.
type Carry struct {
	Rows       int64
	N, Claimed uint64
}

func addCarry(list []Carry, c Carry) []Carry {
	for i := range list {
		if list[i].Rows == c.Rows {
			list[i].N += c.N
			list[i].Claimed += c.Claimed
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
		}
	}
	return c
}

// Merge adds everything that o counted; both must be of the same row, or of rows
// whose carries were settled before (see Settle).
func (c *Counts) Merge(o *Counts) {
	c.mergePlain(o)
	for d := range o.carried {
		for _, x := range o.carried[d] {
			c.carried[d] = addCarry(c.carried[d], x)
		}
	}
}

// mergePlain adds all but the carries.
func (c *Counts) mergePlain(o *Counts) {
	for i, n := range o.n {
		c.n[i] += n
	}
	c.Dead += o.Dead
	c.Busy += o.Busy
	c.Repeat += o.Repeat
	c.PerQuestion.Merge(&o.PerQuestion)
	c.Spans.Merge(&o.Spans)
	c.FanOut.Merge(&o.FanOut)
	c.Gaps.Merge(&o.Gaps)
}

// Clone returns a copy.
func (c *Counts) Clone() *Counts {
	c.tally.empty(&c.n)
	out := new(Counts)
	out.Merge(c)
	return out
}

// Settle prepares a row for adding into a range of rows that begins back rows
// before it: what had come last before the range is new to the range, and stays
// as a carry of one; what had come within it is not, and vanishes.
func (c *Counts) Settle(back int64) {
	for d, list := range c.carried {
		b := beyond(list, back)
		c.carried[d] = list[:0]
		if b.N > 0 {
			b.Rows = 1
			c.carried[d] = append(list[:0], b)
		}
	}
}

// MergeFiner adds the counts of a row of a finer view, which stay as they are: at is
// the number of that row, and factor finer rows make one of c's. What had come last
// within the coarser row vanishes from the carries.
func (c *Counts) MergeFiner(o *Counts, at, factor int64) {
	o.tally.empty(&o.n)
	c.mergePlain(o)
	for d := range o.carried {
		for _, x := range o.carried[d] {
			if x.Rows = floorDiv(at, factor) - floorDiv(at-x.Rows, factor); x.Rows > 0 {
				c.carried[d] = addCarry(c.carried[d], x)
			}
		}
	}
}

// distinct is how many distinct there are in the range that the counts are of,
// and how many of those are of claimed keys (of questions only): what came for
// the first time, and what was under way when the range began.
func (c *Counts) distinct(d distinct) (n, claimed uint64) {
	under := beyond(c.carried[d], 0)
	n = c.n[nFirsts+counter(d)] + under.N
	if d == theQuestions {
		claimed = c.n[nFirstsClaimed] + under.Claimed
	}
	return n, claimed
}

// fanOut is the distribution of distinct questions per key. The keys of which
// nothing stands in FanOut asked one.
func (c *Counts) fanOut() *Histogram {
	h := new(Histogram)
	h.Merge(&c.FanOut)
	h.addMany(countBucket(1), c.PerQuestion.N()-c.n[nFamilyEnds], 1)
	return h
}
