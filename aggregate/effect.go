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

	one  [maxOnes]counter // counters that go up by one, in every view
	ones int

	dead, busy, repeat int64

	// Of attributable arrivals only; "previous" is within the horizon.
	known       bool
	claimed     bool
	failedFirst bool // the first arrival within the horizon failed
	original    bool
	answered    bool
	gap         int64  // since the previous arrival
	gapAt       uint32 // its bucket
	// For each distinct that the arrival is of: when it had come last, in all and
	// by the same peer.
	is    uint8 // bits by distinct
	prior [numDistinct][2]prior
}

// has marks the arrival as one of a distinct that nothing earlier is known of.
func (e *effect) has(d distinct) {
	e.is |= 1 << d
	e.prior[d] = [2]prior{}
}

// prior is the tick in which something had come last, if it had.
type prior struct {
	some bool
	tick int64
}

// saw notes one earlier arrival that had it.
func (p *prior) saw(tick int64) {
	if !p.some || tick > p.tick {
		p.some, p.tick = true, tick
	}
}

// saw notes one earlier arrival that had a distinct.
func (e *effect) saw(d distinct, tick int64, peer uint8) {
	e.prior[d][0].saw(tick)
	if peer == e.dims.Peer {
		e.prior[d][1].saw(tick)
	}
}

// maxOnes is more than the counters that one arrival can raise.
const maxOnes = 40

func (e *effect) count(c counter) {
	e.one[e.ones] = c
	e.ones++
}

func (e *effect) countIf(yes bool, c counter) {
	e.one[e.ones] = c
	if yes {
		e.ones++
	}
}

// begin works out what an arrival changes by itself, whatever its question.
func (e *effect) begin(dims Dims, tick int64, f *filed) {
	e.dims, e.tick, e.ones = dims, tick, 0
	e.busy, e.dead, e.repeat = unpackDuration(f.dur), 0, 0
	e.known, e.claimed, e.failedFirst, e.original, e.answered = false, false, false, false, false
	e.is = 0
	e.count(nArrivals)
	flags := f.flags
	outcome, departure := flags.outcome(), flags.departure()
	gone := departure != StillThere
	e.countIf(gone, nDepartures+counter(departure))
	late := flags&Expired != 0 && !gone
	answer := flags&Refused == 0 && departure != BeforeResponse
	e.countIf(flags&Visible != 0, nVisible)
	e.countIf(flags&Refused != 0, nRefused)
	e.countIf(answer, nAnswers)
	if gone || late {
		e.dead = e.busy
		e.countIf(late, nExpired)
		e.countIf(answer, nDeadAnswers)
	}
	if outcome == OutcomeSuccess {
		e.count(nSuccess)
		e.countIf(!gone && !late, nGood)
	}
	e.countIf(flags&Stale != 0, nStale)
	e.countIf(flags&RetryShown != 0, nRetryShown)
	e.countIf(f.retry != 0, nRetryAsked)
	if flags&InFront != 0 {
		e.count(nFrontArrivals)
		e.countIf(flags&Head != 0, nFrontRecords)
	}
	if f.num > 0 && flags&OriginScope == 0 {
		e.count(nHopNumbered)
		e.countIf(f.num == 1, nHopOnes)
		e.countIf(flags&TrustedHop != 0, nHopTrusted)
	}
}

// attributed adds what every attributable arrival counts.
func (e *effect) attributed(f *filed, verified bool) {
	e.known, e.claimed = true, !verified
	e.countIf(verified, nVerified)
	e.countIf(!verified, nClaimed)
	e.has(theQuestions)
	e.prior[withFailedFirst] = [2]prior{}
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
	switch {
	case inFlight:
		e.count(nAfterFlight)
	case gone:
		e.count(nAfterGone)
	case prev == OutcomeOverload:
		e.count(nAfterOverload)
	case prev == OutcomeError:
		e.count(nAfterError)
	case prev == OutcomeSuccess:
		e.count(nAfterSuccess)
	}
}

// settled turns what was found out about the question into counts.
func (e *effect) settled() {
	if e.original {
		e.count(nOriginals)
	} else {
		e.repeat = e.busy
	}
	if e.failedFirst {
		e.is |= 1 << withFailedFirst
		e.count(nFailedArrivals)
	}
	e.countIf(e.answered, nAnswered)
}

// add books the effect in a row of a view, but for the counters that go up by one
// in every view.
func (c *Counts) add(e *effect, v *View) {
	c.Busy += e.busy
	c.Dead += e.dead
	if !e.known {
		return
	}
	if !e.original {
		c.Repeat += e.repeat
		c.Gaps.add(e.gapAt, e.gap)
	}
	by := 0
	if v.ByPeer {
		by = 1
	}
	for is := e.is; is != 0; is &= is - 1 {
		d := distinct(bits.TrailingZeros8(is))
		p := &e.prior[d][by]
		if !p.some {
			c.n[nFirsts+counter(d)]++
			if d == theQuestions && e.claimed {
				c.n[nFirstsClaimed]++
			}
		} else if back := v.rowsBetween(p.tick, e.tick); back > 0 {
			x := Carry{Rows: back, N: 1}
			if e.claimed {
				x.Claimed = 1
			}
			c.carried[d] = carry(c.carried[d], x)
		}
	}
}

// rowsBetween is how many rows of the view lie between two ticks.
func (v *View) rowsBetween(from, to int64) int64 {
	switch {
	case v.Every == 0:
		return 0
	case v.Every == 1:
		return to - from
	}
	return floorDiv(to, v.Every) - floorDiv(from, v.Every)
}
