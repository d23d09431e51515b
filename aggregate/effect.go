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

	ones uint64 // bits of the counters that go up by one, in every view

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

// The counters that an arrival can raise by itself are fewer than the bits of
// effect.ones.
var _ [64 - nFirsts]struct{}

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
	answer := !refused && departure != BeforeResponse
	dead := gone || expired
	success := outcome == OutcomeSuccess
	hop := f.num > 0 && flags&OriginScope == 0
	front := flags&InFront != 0

	e.dims, e.tick = dims, tick
	e.busy = unpackDuration(f.dur)
	e.dead, e.repeat = e.busy*int64(bit(dead)), 0
	e.known, e.claimed, e.failedFirst, e.original, e.answered = false, false, false, false, false
	e.is = 0
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
		bit(hop && flags&TrustedHop != 0)<<nHopTrusted
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
	seen := bit(!inFlight && !gone)
	e.ones |= bit(inFlight)<<nAfterFlight | bit(gone && !inFlight)<<nAfterGone |
		seen&bit(prev == OutcomeOverload)<<nAfterOverload |
		seen&bit(prev == OutcomeError)<<nAfterError |
		seen&bit(prev == OutcomeSuccess)<<nAfterSuccess
}

// settled turns what was found out about the question into counts.
func (e *effect) settled() {
	e.repeat = e.busy * int64(bit(!e.original))
	e.is |= uint8(bit(e.failedFirst)) << withFailedFirst
	e.ones |= bit(e.original)<<nOriginals | bit(e.failedFirst)<<nFailedArrivals | bit(e.answered)<<nAnswered
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
