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
			cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(packRetry(a.RetryAfter), packRetry(b.RetryAfter)))
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
				if p.RetryAfter >= 0 && a.Start >= end {
					c.RetryReturned++
					if a.Start < end+p.RetryAfter {
						c.RetryEarly++
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

func (n *naive) count(c *Counts, i int, byPeer bool) {
	a := &n.real[i]
	dur := max(a.Duration, 0)
	c.Arrivals++
	c.Busy += dur
	c.Departures[a.Departure]++
	is := func(f Flags) bool { return a.Flags&f != 0 }
	inc := func(p *uint64, yes bool) {
		if yes {
			*p++
		}
	}
	gone := a.Departure != StillThere
	expired := is(Expired) && !gone
	inc(&c.Visible, is(Visible))
	inc(&c.Refused, is(Refused))
	inc(&c.Answers, !is(Refused) && a.Departure != BeforeResponse)
	inc(&c.Expired, expired)
	if gone || expired {
		c.Dead += dur
	}
	inc(&c.Success, a.Outcome == OutcomeSuccess)
	inc(&c.Good, a.Outcome == OutcomeSuccess && !gone && !expired)
	inc(&c.Stale, is(Stale))
	inc(&c.RetryShown, is(RetryShown))
	inc(&c.RetryAsked, a.RetryAfter >= 0)
	hop, origin := a.Attempt > 0 && !is(OriginScope), a.Attempt > 0 && is(OriginScope)
	inc(&c.HopNumbered, hop)
	inc(&c.HopOnes, hop && a.Attempt == 1)
	inc(&c.HopTrusted, hop && is(TrustedHop))
	if !n.known(a) {
		c.Unattributable[a.Reason]++
		return
	}
	claimed := a.Class == keys.Claimed
	inc(&c.Claimed, claimed)
	inc(&c.Verified, !claimed)

	past := n.before(i, nil)
	byMe := n.before(i, func(b *Arrival) bool { return b.Peer == a.Peer })
	k := uint32(len(past) + 1)
	first := a
	if len(past) > 0 {
		first = past[len(past)-1]
	}
	inc(&c.FailedArrivals, failed(first))
	inc(&c.Originals, len(past) == 0)
	inc(&c.OriginalsClaimed, len(past) == 0 && claimed)
	inc(&c.FailedOriginals, len(past) == 0 && failed(first))
	inc(&c.OrphanAttempts, len(past) == 0 && a.Attempt >= 2)
	inc(&c.Reopened, len(past) == 0 && is(Reopening))
	inc(&c.PeerFirsts, len(byMe) == 0)
	inc(&c.PeerFirstsClaimed, len(byMe) == 0 && claimed)
	inc(&c.FailedPeerFirsts, len(byMe) == 0 && failed(first))
	if len(past) > 0 {
		p := past[0]
		c.Repeat += dur
		c.Gaps.addGap(a.Start - p.Start)
		inc(&c.SamePeer, p.Peer == a.Peer)
		switch {
		case p.Start+max(p.Duration, 0) > a.Start:
			c.AfterFlight++
		case p.Departure != StillThere:
			c.AfterGone++
		case p.Outcome == OutcomeOverload:
			c.AfterOverload++
		case p.Outcome == OutcomeError:
			c.AfterError++
		case p.Outcome == OutcomeSuccess:
			c.AfterSuccess++
		}
	}
	if hop && a.Attempt == 1 {
		ones := n.before(i, func(b *Arrival) bool {
			return b.Attempt == 1 && b.Flags&OriginScope == 0 && (!byPeer || b.Peer == a.Peer)
		})
		c.HopOnesKnown++
		inc(&c.HopFirsts, len(ones) == 0)
	}
	if origin {
		numbered := n.before(i, func(b *Arrival) bool { return b.Attempt > 0 && b.Flags&OriginScope != 0 })
		c.OriginNumbered++
		inc(&c.OriginQuestions, len(numbered) == 0)
		inc(&c.OriginNumbers, !slices.ContainsFunc(numbered, func(b *Arrival) bool { return b.Attempt == a.Attempt }))
	}
	most := -1
	for _, b := range append(past, a) {
		if b.AttemptsLeft != NoBudget {
			most = max(most, int(b.AttemptsLeft))
		}
	}
	inc(&c.Overspent, most >= 0 && int(k) > most+1)
	if len(byMe) > 0 && a.AttemptsLeft != NoBudget && byMe[0].AttemptsLeft != NoBudget {
		inc(&c.NotDecremented, a.AttemptsLeft == byMe[0].AttemptsLeft)
		inc(&c.Increased, a.AttemptsLeft > byMe[0].AttemptsLeft)
	}
	if a.Outcome == OutcomeSuccess {
		again := slices.ContainsFunc(past, func(b *Arrival) bool { return b.Outcome == OutcomeSuccess })
		inc(&c.Answered, !again)
		inc(&c.DoubleSuccess, again && is(NonIdempotent))
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
			c.PerQuestion.addCount(uint32(1 + len(n.before(i, func(b *Arrival) bool { return b.Peer == a.Peer }))))
			continue
		}
		c.PerQuestion.addCount(uint32(1 + len(n.before(i, nil))))
		first := a
		for j := i - 1; j >= 0; j-- {
			if b := &n.real[j]; n.known(b) && b.Question == a.Question {
				if first.Start-b.Start > n.horizon {
					break
				}
				first = b
			}
		}
		c.Spans.addGap(a.Start - first.Start)
	}
}

// distinct is the number of questions with an arrival in ticks [from, to), a
// question being counted once per episode; byPeer once per question and peer.
func (n *naive) distinct(from, to int64, match func(*Arrival) bool, byPeer bool) (d uint64) {
	for i := range n.real {
		a := &n.real[i]
		if t := floorDiv(a.Start, sec); !n.known(a) || t < from || t >= to || !match(a) {
			continue
		}
		past := n.before(i, func(b *Arrival) bool { return !byPeer || b.Peer == a.Peer })
		if len(past) == 0 || floorDiv(past[0].Start, sec) < from {
			d++
		}
	}
	return d
}
