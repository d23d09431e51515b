package aggregate

import (
	"cmp"
	"slices"

	"github.com/targetside/auditor/keys"
)

// naive counts a complete set of arrivals the slow way, straight from the
// definitions: for each arrival it looks at every other one. It shares no code
// with the ledger but the input type and the sums.
type naive struct {
	horizon int64
	real    []Arrival // without copies and interim records, in order
	dups    uint64
}

const sec = int64(1e9)

func newNaive(in []Arrival, horizon int64) *naive {
	n := &naive{horizon: horizon}
	all := slices.Clone(in)
	slices.SortStableFunc(all, func(a, b Arrival) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Log, b.Log), cmp.Compare(packFlags(a.Flags, &a), packFlags(b.Flags, &b)),
			cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(PackRetry(a.RetryAfter), PackRetry(b.RetryAfter)))
	})
	for i, a := range all {
		if i > 0 && a.Flags&Decidable != 0 && slices.ContainsFunc(all[:i], func(b Arrival) bool {
			return b.Start == a.Start && b.Log == a.Log && b.Text == a.Text
		}) {
			n.dups++
			continue
		}
		n.real = append(n.real, a)
	}
	return n
}

func (n *naive) known(a *Arrival) bool { return a.Class != keys.Unattributable }

// before lists the earlier arrivals of a's question that started at most one
// horizon before a and satisfy keep, latest first.
func (n *naive) before(i int, keep func(b *Arrival) bool) (out []*Arrival) {
	a := &n.real[i]
	for j := i - 1; j >= 0; j-- {
		b := &n.real[j]
		if n.known(b) && b.Question == a.Question && a.Start-b.Start <= n.horizon && (keep == nil || keep(b)) {
			out = append(out, b)
		}
	}
	return out
}

func failed(a *Arrival) bool { return a.Outcome != OutcomeSuccess || a.Departure != StillThere }

// failedFirst says that the first arrival within the horizon of a failed.
func (n *naive) failedFirst(a *Arrival) bool {
	for i := range n.real {
		if &n.real[i] == a {
			past := append([]*Arrival{a}, n.before(i, nil)...)
			return failed(past[len(past)-1])
		}
	}
	panic("not there")
}

// isOf says whether an arrival is of a distinct; same whether an earlier arrival
// of its question had what it has.
func (n *naive) isOf(d distinct, a *Arrival) bool {
	switch d {
	case withHopOne:
		return a.Attempt == 1 && a.Flags&OriginScope == 0
	case originNumbers, withOriginNumber:
		return a.Attempt > 0 && a.Flags&OriginScope != 0
	case withFailedFirst:
		return n.failedFirst(a)
	}
	return true
}

// prior is the latest earlier arrival that had what a has of a distinct.
func (n *naive) prior(d distinct, i int, byPeer bool) *Arrival {
	a := &n.real[i]
	past := n.before(i, func(b *Arrival) bool {
		return n.isOf(d, b) && (!byPeer || b.Peer == a.Peer) && (d != originNumbers || b.Attempt == a.Attempt)
	})
	if len(past) == 0 {
		return nil
	}
	return past[0]
}

// counts returns what the arrivals that match add up to; byPeer says that the
// measure is of a peer.
func (n *naive) counts(match func(*Arrival) bool, byPeer bool) *Counts {
	c := new(Counts)
	for i := range n.real {
		a := &n.real[i]
		// Retry-After is charged to the row of the arrival that was asked.
		if n.known(a) {
			if prev := n.before(i, nil); len(prev) > 0 && match(prev[0]) {
				p := prev[0]
				end := p.Start + max(p.Duration, 0)
				if p.RetryAfter >= 0 && a.Start >= end && toldOf(p, endTold) && toldOf(a, startTold) {
					c.n[nRetryReturned]++
					if a.Start < end+p.RetryAfter {
						c.n[nRetryEarly]++
					}
				}
			}
		}
		if match(a) {
			n.count(c, i, byPeer)
		}
	}
	n.ends(c, match, byPeer)
	return c
}

// toldOf says that an arrival's time is known, or what Untimed was told beside.
func toldOf(a *Arrival, what int64) bool { return a.Duration >= 0 || (-1-a.Duration)&what != 0 }

func (n *naive) count(c *Counts, i int, byPeer bool) {
	a := &n.real[i]
	dur := max(a.Duration, 0)
	c.n[nArrivals]++
	c.Busy += dur
	if a.Duration < 0 {
		c.n[nUntimed]++
		if toldOf(a, unjudged) && a.Departure == StillThere && a.Flags&Expired == 0 {
			c.n[nUnjudged]++
		}
	}
	if a.Departure != StillThere {
		c.n[int(nDepartures)+int(a.Departure)]++
	}
	is := func(f Flags) bool { return a.Flags&f != 0 }
	inc := func(p *uint64, yes bool) {
		if yes {
			*p++
		}
	}
	gone := a.Departure != StillThere
	expired := is(Expired) && !gone
	inc(&c.n[nVisible], is(Visible))
	inc(&c.n[nRefused], is(Refused))
	inc(&c.n[nAnswers], !is(Refused) && a.Departure != BeforeResponse &&
		!(is(InFront) && a.Outcome == OutcomeNone && !gone))
	inc(&c.n[nExpired], expired)
	if gone || expired {
		c.Dead += dur
		if a.Duration < 0 {
			c.n[nUntimedDead]++
		}
	}
	inc(&c.n[nDeadAnswers], !is(Refused) && a.Departure != BeforeResponse && (gone || expired))
	inc(&c.n[nSuccess], a.Outcome == OutcomeSuccess)
	inc(&c.n[nGood], a.Outcome == OutcomeSuccess && !gone && !expired)
	inc(&c.n[nStale], is(Stale))
	inc(&c.n[nRetryShown], is(RetryShown))
	inc(&c.n[nRetryAsked], a.RetryAfter >= 0)
	hop, origin := a.Attempt > 0 && !is(OriginScope), a.Attempt > 0 && is(OriginScope)
	inc(&c.n[nHopNumbered], hop)
	inc(&c.n[nHopOnes], hop && a.Attempt == 1)
	inc(&c.n[nHopTrusted], hop && is(TrustedHop))
	if !n.known(a) {
		c.n[int(nUnattributable)+int(a.Reason)]++
		return
	}
	claimed := a.Class == keys.Claimed
	inc(&c.n[nClaimed], claimed)
	inc(&c.n[nVerified], !claimed)

	past := n.before(i, nil)
	byMe := n.before(i, func(b *Arrival) bool { return b.Peer == a.Peer })
	k := uint32(len(past) + 1)
	first := a
	if len(past) > 0 {
		first = past[len(past)-1]
	}
	inc(&c.n[nFailedArrivals], failed(first))
	inc(&c.n[nOriginals], len(past) == 0)
	inc(&c.n[nOrphanAttempts], len(past) == 0 && a.Attempt >= 2)
	inc(&c.n[nReopened], len(past) == 0 && is(Reopening))
	if len(past) > 0 {
		p := past[0]
		c.Repeat += dur
		if a.Duration < 0 {
			c.n[nUntimedRepeats]++
		}
		if toldOf(p, startTold) && toldOf(a, startTold) {
			c.Gaps.addGap(a.Start-p.Start, 1)
		}
		inc(&c.n[nSamePeer], p.Peer == a.Peer)
		switch {
		case p.Start+max(p.Duration, 0) > a.Start:
			c.n[nAfterFlight]++
		case p.Departure != StillThere:
			c.n[nAfterGone]++
		case p.Outcome == OutcomeOverload:
			c.n[nAfterOverload]++
		case p.Outcome == OutcomeError:
			c.n[nAfterError]++
		case p.Outcome == OutcomeSuccess:
			c.n[nAfterSuccess]++
		}
	}
	inc(&c.n[nHopOnesKnown], hop && a.Attempt == 1)
	inc(&c.n[nOriginNumbered], origin)
	for d := range numDistinct {
		if n.isOf(d, a) && n.prior(d, i, byPeer) == nil {
			c.n[nFirsts+counter(d)]++
			inc(&c.n[nFirstsClaimed], d == theQuestions && claimed)
		}
	}
	most := -1
	for _, b := range append(past, a) {
		if b.AttemptsLeft != NoBudget {
			most = max(most, int(b.AttemptsLeft))
		}
	}
	inc(&c.n[nOverspent], most >= 0 && int(k) > most+1)
	if len(byMe) > 0 && a.AttemptsLeft != NoBudget && byMe[0].AttemptsLeft != NoBudget {
		inc(&c.n[nNotDecremented], a.AttemptsLeft == byMe[0].AttemptsLeft)
		inc(&c.n[nIncreased], a.AttemptsLeft > byMe[0].AttemptsLeft)
	}
	if a.Outcome == OutcomeSuccess {
		again := slices.ContainsFunc(past, func(b *Arrival) bool { return b.Outcome == OutcomeSuccess })
		inc(&c.n[nAnswered], !again)
		inc(&c.n[nDoubleSuccess], again && is(NonIdempotent))
	}
}

// ends counts questions, and keys, once each, at their last arrivals.
func (n *naive) ends(c *Counts, match func(*Arrival) bool, byPeer bool) {
	for i := range n.real {
		a := &n.real[i]
		if !n.known(a) || !match(a) {
			continue
		}
		later := func(b *Arrival) bool {
			return n.known(b) && b.Question == a.Question && (!byPeer || b.Peer == a.Peer)
		}
		if j := slices.IndexFunc(n.real[i+1:], func(b Arrival) bool { return later(&b) }); j >= 0 && n.real[i+1+j].Start-a.Start <= n.horizon {
			continue
		}
		// a is the last of an episode.
		if byPeer {
			c.PerQuestion.addCount(uint32(1+len(n.before(i, func(b *Arrival) bool { return b.Peer == a.Peer }))), 1)
			continue
		}
		c.PerQuestion.addCount(uint32(1+len(n.before(i, nil))), 1)
		first := a
		for j := i - 1; j >= 0; j-- {
			if b := &n.real[j]; n.known(b) && b.Question == a.Question {
				if first.Start-b.Start > n.horizon {
					break
				}
				first = b
			}
		}
		c.Spans.addGap(a.Start-first.Start, 1)
	}
}

// distinct is how many distinct have an arrival in ticks [from, to): those that
// came for the first time, or for the first time since from.
func (n *naive) distinct(d distinct, from, to int64, match func(*Arrival) bool, byPeer bool) (sum uint64) {
	for i := range n.real {
		a := &n.real[i]
		if t := floorDiv(a.Start, sec); !n.known(a) || t < from || t >= to || !match(a) || !n.isOf(d, a) {
			continue
		}
		if p := n.prior(d, i, byPeer); p == nil || floorDiv(p.Start, sec) < from {
			sum++
		}
	}
	return sum
}

// fanOut counts keys by the distinct questions that they ask before they are
// silent for a horizon, over all routes and by route.
func (n *naive) fanOut() (wide, narrow map[uint32]int) {
	type group struct {
		key   uint64
		route int
	}
	type life struct {
		last  int64
		asked map[ID]bool
	}
	lives := map[group]*life{}
	wide, narrow = map[uint32]int{}, map[uint32]int{}
	over := func(g group, x *life) {
		to := narrow
		if g.route < 0 {
			to = wide
		}
		to[uint32(countUpper(countBucket(uint32(len(x.asked)))))]++
	}
	for i := range n.real {
		a := &n.real[i]
		if !n.known(a) {
			continue
		}
		for _, g := range []group{{a.Question.Key, -1}, {a.Question.Key, int(a.Route)}} {
			x := lives[g]
			if x != nil && a.Start-x.last > n.horizon {
				over(g, x)
				x = nil
			}
			if x == nil {
				x = &life{asked: map[ID]bool{}}
				lives[g] = x
			}
			x.last = a.Start
			x.asked[a.Question] = true
		}
	}
	for g, x := range lives {
		over(g, x)
	}
	return wide, narrow
}
