package aggregate

import "github.com/targetside/auditor/keys"

// effect is everything that one arrival changes in the counts, worked out once
// and then added to the row of each view.
type effect struct {
	dims     Dims
	tick     int64
	duration int64
	flags    Flags
	num      uint8
	class    keys.Class
	reason   keys.Reason
	asked    bool

	// The rest is of attributable arrivals only; "prev" is the previous arrival
	// of the question, within the horizon.
	original    bool
	failedFirst bool // the first arrival within the horizon failed
	gap         int64
	prevTick    int64
	prevOutcome Outcome
	prevGone    bool
	inFlight    bool
	samePeer    bool

	peerFirst bool
	peerTick  int64 // of the peer's previous arrival, unless peerFirst

	hopFirst, hopPeerFirst bool
	hopTick                int64 // of the previous arrival with hop number 1
	hopPeerTick            int64

	newNumber, firstNumber   bool
	overspent, notLess, more bool
	answered, secondSuccess  bool
}

// add books the effect in a row of a view.
func (c *Counts) add(e *effect, v *View) {
	c.Arrivals++
	f := e.flags
	outcome, departure := f.outcome(), f.departure()
	c.Busy += e.duration
	c.Departures[departure]++
	if f&Visible != 0 {
		c.Visible++
	}
	if f&Refused != 0 {
		c.Refused++
	} else if departure != BeforeResponse {
		c.Answers++
	}
	gone, expired := departure != StillThere, f&Expired != 0 && departure == StillThere
	if expired {
		c.Expired++
	}
	if gone || expired {
		c.Dead += e.duration
	}
	if outcome == OutcomeSuccess {
		c.Success++
		if !gone && !expired {
			c.Good++
		}
	}
	if f&Stale != 0 {
		c.Stale++
	}
	if f&RetryShown != 0 {
		c.RetryShown++
	}
	if e.asked {
		c.RetryAsked++
	}
	if f&InFront != 0 {
		c.FrontArrivals++
		if f&Head != 0 {
			c.FrontRecords++
		}
	}
	hop := e.num > 0 && f&OriginScope == 0
	if hop {
		c.HopNumbered++
		if e.num == 1 {
			c.HopOnes++
		}
		if f&TrustedHop != 0 {
			c.HopTrusted++
		}
	}
	if e.class == keys.Unattributable {
		c.Unattributable[e.reason]++
		return
	}
	claimed := e.class == keys.Claimed
	if claimed {
		c.Claimed++
	} else {
		c.Verified++
	}
	c.addQuestion(e, v, claimed)
	if hop && e.num == 1 {
		c.HopOnesKnown++
		first, prev := e.hopFirst, e.hopTick
		if v.ByPeer {
			first, prev = e.hopPeerFirst, e.hopPeerTick
		}
		if first {
			c.HopFirsts++
		} else if back := v.rowsBetween(prev, e.tick); back > 0 {
			c.HopCarried = carry(c.HopCarried, Carry{Rows: back, N: 1})
		}
	}
	if e.num > 0 && f&OriginScope != 0 {
		c.OriginNumbered++
		if e.newNumber {
			c.OriginNumbers++
		}
		if e.firstNumber {
			c.OriginQuestions++
		}
	}
}

// addQuestion books what depends on the question's other arrivals.
func (c *Counts) addQuestion(e *effect, v *View, claimed bool) {
	if e.failedFirst {
		c.FailedArrivals++
	}
	if e.original {
		c.Originals++
		if claimed {
			c.OriginalsClaimed++
		}
		if e.failedFirst {
			c.FailedOriginals++
		}
		if e.num >= 2 {
			c.OrphanAttempts++
		}
		if e.flags&Reopening != 0 {
			c.Reopened++
		}
	} else {
		c.addRepeat(e)
	}
	if e.peerFirst {
		c.PeerFirsts++
		if claimed {
			c.PeerFirstsClaimed++
		}
		if e.failedFirst {
			c.FailedPeerFirsts++
		}
	}
	isNew, prev := e.original, e.prevTick
	if v.ByPeer {
		isNew, prev = e.peerFirst, e.peerTick
	}
	if back := v.rowsBetween(prev, e.tick); !isNew && back > 0 {
		x := Carry{Rows: back, N: 1}
		if claimed {
			x.Claimed = 1
		}
		if e.failedFirst {
			x.Failed = 1
		}
		c.Carried = carry(c.Carried, x)
	}
	if e.answered {
		c.Answered++
	}
	if e.secondSuccess {
		c.DoubleSuccess++
	}
	if e.overspent {
		c.Overspent++
	}
	if e.notLess {
		c.NotDecremented++
	}
	if e.more {
		c.Increased++
	}
}

func (c *Counts) addRepeat(e *effect) {
	c.Repeat += e.duration
	c.Gaps.addGap(e.gap)
	if e.samePeer {
		c.SamePeer++
	}
	switch {
	case e.inFlight:
		c.AfterFlight++
	case e.prevGone:
		c.AfterGone++
	case e.prevOutcome == OutcomeOverload:
		c.AfterOverload++
	case e.prevOutcome == OutcomeError:
		c.AfterError++
	case e.prevOutcome == OutcomeSuccess:
		c.AfterSuccess++
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
