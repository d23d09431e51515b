package aggregate

import (
	"math/bits"

	"github.com/targetside/auditor/keys"
)

// effect is everything that one arrival changes in the counts, worked out once
// and then added to the row of each view.
type effect struct {
	dims Dims
	tick int64

	ones uint64 // the counters that go up by one, in every view, as bits

	dead, busy, repeat int64

	weight uint64 // how many questions that of the arrival counts for

	// Of attributable arrivals only; "previous" is within the horizon.
	known       bool
	claimed     bool
	failedFirst bool // the first arrival within the horizon failed
	original    bool
	answered    bool
	gap         int64  // since the previous arrival, -1 if that is not known
	gapAt       uint32 // its bucket
	// For each distinct that the arrival is of: when it had come last, in all and
	// by the same peer. firsts has the counters of those that had not come at all,
	// again the distincts of the others.
	is     uint8 // bits by distinct
	prior  [2]prior
	firsts [2]uint64
	again  [2]uint8
}

// has marks the arrival as one of a distinct.
func (e *effect) has(d distinct) { e.is |= 1 << d }

// prior is which distincts had come before, as bits, and the ticks in which they
// had come last.
type prior struct {
	some uint8
	tick [numDistinct]int64
}

// saw notes one earlier arrival that had a distinct.
func (p *prior) saw(d distinct, tick int64) {
	if p.some>>d&1 == 0 || tick > p.tick[d] {
		p.some, p.tick[d] = p.some|1<<d, tick
	}
}

// saw notes one earlier arrival that had a distinct.
func (e *effect) saw(d distinct, tick int64, peer uint8) {
	e.prior[0].saw(d, tick)
	if peer == e.dims.Peer {
		e.prior[1].saw(d, tick)
	}
}

// bit is 1 for true. The compiler makes no jump of it: which counters an arrival
// raises cannot be predicted.
func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (e *effect) count(c counter) { e.ones |= 1 << c }

func (e *effect) countIf(yes bool, c counter) { e.ones |= bit(yes) << c }

// begin works out what an arrival changes by itself, whatever its question.
func (e *effect) begin(dims Dims, tick int64, f *filed) {
	flags := f.flags
	outcome, departure := flags.outcome(), flags.departure()
	gone := departure != StillThere
	expired := flags&Expired != 0 && !gone
	refused := flags&Refused != 0
	front := flags&InFront != 0
	unanswered := front && outcome == OutcomeNone && !gone // a try of which no answer is known
	answer := !refused && departure != BeforeResponse && !unanswered
	dead := gone || expired
	success := outcome == OutcomeSuccess
	hop := f.num > 0 && flags&OriginScope == 0
	untimed := bit(f.dur&unitMask == noDuration)
	undecided := untimed & uint64(f.dur) & unjudged &^ bit(dead)

	e.dims, e.tick, e.weight = dims, tick, 1
	e.busy = unpackDuration(f.dur)
	e.dead, e.repeat = e.busy*int64(bit(dead)), 0
	e.known, e.claimed, e.failedFirst, e.original, e.answered = false, false, false, false, false
	e.is, e.prior[0].some, e.prior[1].some, e.firsts = 0, 0, 0, [2]uint64{}
	e.ones = 1<<nArrivals |
		bit(gone)<<(nDepartures+counter(departure)) |
		bit(flags&Visible != 0)<<nVisible |
		bit(refused)<<nRefused |
		bit(answer)<<nAnswers |
		bit(expired)<<nExpired |
		bit(dead && answer)<<nDeadAnswers |
		bit(success)<<nSuccess |
		bit(success && !dead)<<nGood |
		bit(flags&Stale != 0)<<nStale |
		bit(flags&RetryShown != 0)<<nRetryShown |
		bit(f.retry != 0)<<nRetryAsked |
		bit(front)<<nFrontArrivals |
		bit(front && flags&Head != 0)<<nFrontRecords |
		bit(hop)<<nHopNumbered |
		bit(hop && f.num == 1)<<nHopOnes |
		bit(hop && flags&TrustedHop != 0)<<nHopTrusted |
		untimed<<nUntimed | untimed&bit(dead)<<nUntimedDead | undecided<<nUnjudged
}

// attributed adds what every attributable arrival counts.
func (e *effect) attributed(f *filed, verified bool) {
	e.known, e.claimed = true, !verified
	e.countIf(verified, nVerified)
	e.countIf(!verified, nClaimed)
	e.has(theQuestions)
	if f.num == 0 {
		return
	}
	if f.flags&OriginScope != 0 {
		e.has(originNumbers)
		e.has(withOriginNumber)
		e.count(nOriginNumbered)
	} else if f.num == 1 {
		e.has(withHopOne)
		e.count(nHopOnesKnown)
	}
}

// unattributed adds why an arrival could not be attributed.
func (e *effect) unattributed(reason keys.Reason) { e.count(nUnattributable + counter(reason)) }

// after counts a repeat by what the previous arrival got.
func (e *effect) after(prev Outcome, gone, inFlight bool) {
	seen := bit(!inFlight && !gone)
	e.ones |= bit(inFlight)<<nAfterFlight | bit(gone && !inFlight)<<nAfterGone |
		seen&bit(prev == OutcomeOverload)<<nAfterOverload |
		seen&bit(prev == OutcomeError)<<nAfterError |
		seen&bit(prev == OutcomeSuccess)<<nAfterSuccess
}

// told is the time in system, -1 where it is not known.
func (e *effect) told() int64 {
	if e.ones>>nUntimed&1 != 0 {
		return -1
	}
	return e.busy
}

// settled turns what was found out about the question into counts.
func (e *effect) settled() {
	e.repeat = e.busy * int64(bit(!e.original))
	e.is |= uint8(bit(e.failedFirst)) << withFailedFirst
	e.ones |= e.ones >> nUntimed & bit(!e.original) << nUntimedRepeats
	e.ones |= bit(e.original)<<nOriginals | bit(e.failedFirst)<<nFailedArrivals | bit(e.answered)<<nAnswered
	for by := range e.prior {
		some := e.prior[by].some
		e.again[by] = e.is & some
		firsts := uint64(e.is &^ some)
		e.firsts[by] = firsts<<nFirsts | firsts>>theQuestions&bit(e.claimed)<<nFirstsClaimed
	}
}

// add books the effect in its row of a view, which has just been asked for.
func (c *Counts) add(e *effect, r *rows) {
	by := 0
	if r.view.ByPeer {
		by = 1
	}
	if ones := e.ones | e.firsts[by]; e.weight == 1 {
		c.raise(ones)
	} else {
		c.raise(ones &^ ofQuestion)
		c.raiseMany(ones&ofQuestion, e.weight)
		if e.original {
			c.original(e.weight)
		}
	}
	c.Busy += e.busy
	c.Dead += e.dead
	if !e.known || e.weight == 0 {
		return
	}
	if !e.original {
		c.Repeat += e.repeat * int64(e.weight)
		if e.gap >= 0 {
			c.Gaps.addTimes(e.gapAt, e.gap, e.weight)
		}
	}
	if r.view.Every == 0 {
		return
	}
	for again := e.again[by]; again != 0; again &= again - 1 {
		d := distinct(bits.TrailingZeros8(again))
		if back := r.since(e.prior[by].tick[d]); back > 0 {
			x := Carry{Rows: back, N: e.weight}
			if e.claimed {
				x.Claimed = e.weight
			}
			c.carried[d] = addCarry(c.carried[d], x)
		}
	}
}
