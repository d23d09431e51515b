package aggregate

// stepQuestion adds one arrival to its question, in order of start, and leaves
// in l.e what it changes.
func (l *Ledger) stepQuestion(i uint32, f *filed, at int64) {
	q := l.table.at(i)
	q.open--
	start := at*second + int64(f.start)
	e := &l.e
	e.begin(Dims{Route: q.route, Originator: q.originator, Peer: f.peer}, at, f)
	e.attributed(f, q.state&verifiedBit != 0)
	e.weight = l.weight(q.id)
	if q.n > 0 && start-q.last <= l.cfg.Horizon {
		l.repeat(i, q, f, start)
	} else {
		l.original(i, q, f, start)
	}
	if f.flags&NonIdempotent != 0 && f.flags.outcome() == OutcomeSuccess {
		e.countIf(!e.answered, nDoubleSuccess)
	}
	e.settled()
	if family := l.table.family(q.id.Key); family != nil {
		l.fans().arrived(family, q, start, l.fanReport(q, at))
	}
	l.counted(i, start)
	q.last, q.length, q.retry = start, f.lasted(l), f.retry
	q.peer, q.num, q.left = f.peer, f.num, f.flags.left()
	q.state = q.state&^ofLast | uint8(f.flags.outcome())
	if f.flags.departure() != StillThere {
		q.state |= lastGone
	}
	if f.flags&OriginScope != 0 {
		q.state |= lastOrigin
	}
	if q.n++; q.n == 0 {
		q.n-- // more than four thousand million: stay there
	}
}

// original opens an episode.
func (l *Ledger) original(i uint32, q *question, f *filed, start int64) {
	at := tickOf(start)
	if q.n > 0 {
		l.endEpisode(i, q, at)
	} else {
		l.watch(i, q, tickOf(start+l.cfg.Horizon))
	}
	q.setFirst(stamp(start))
	q.firstPeer = f.peer
	q.state &^= firstFailed | firstIsPast
	e := &l.e
	e.original = true
	if f.flags.failed() {
		q.state |= firstFailed
		e.failedFirst = true
	}
	e.answered = f.flags.outcome() == OutcomeSuccess
	e.countIf(f.flags&Reopening != 0, nReopened)
	e.countIf(f.num >= 2, nOrphanAttempts)
}

// repeat adds an arrival to the episode that is under way.
func (l *Ledger) repeat(i uint32, q *question, f *filed, start int64) {
	e := &l.e
	last := tickOf(q.last)
	began := tells(f.dur, startTold)
	if e.gap = -1; began && tells(q.length, startTold) {
		e.gap = start - q.last
		e.gapAt = gapBucket(e.gap)
	}
	e.prior[0].saw(theQuestions, last)
	e.countIf(f.peer == q.peer, nSamePeer)
	end := q.last + unpackDuration(q.length)
	inFlight := end > start
	e.after(Outcome(q.state&lastOutcome), q.state&lastGone != 0, inFlight)
	before, wasFailed := l.ordinal(q), l.failedFirst(q)
	l.rememberLast(q, f)
	l.slide(q, start)

	k := uint32(ringLen(l.arena.words(q.recent))) + 1
	if q.state&firstIsPast == 0 {
		k++
	}
	e.failedFirst = l.failedFirst(q)
	switch {
	case wasFailed && !e.failedFirst:
		l.arena.remember(q, seenFailed, q.peer).set(seenFailed, q.peer, 0, q.last)
	case wasFailed:
		e.saw(withFailedFirst, last, q.peer)
		if f.peer != q.peer {
			l.arena.remember(q, seenFailed, q.peer).set(seenFailed, q.peer, 0, q.last)
		}
	}
	l.stepPeer(i, q, f, start, k-1, before)
	if q.seen != 0 {
		l.stepSeen(q, f, start)
	}
	if q.num > 0 {
		switch {
		case q.state&lastOrigin == 0:
			if q.num == 1 {
				e.saw(withHopOne, last, q.peer)
			}
		default:
			e.saw(withOriginNumber, last, q.peer)
			if q.num == f.num {
				e.saw(originNumbers, last, q.peer)
			}
		}
	}
	if f.flags.left() != NoBudget || q.left != NoBudget || q.seen != 0 {
		e.countIf(l.overspent(q, f, start, k), nOverspent)
	}
	if f.flags.outcome() == OutcomeSuccess {
		e.answered = Outcome(q.state&lastOutcome) != OutcomeSuccess && !l.within(l.arena.seenOf(q, seenSuccess, 0), start)
	}
	if wait := UnpackRetry(q.retry); wait >= 0 && !inFlight && began && tells(q.length, endTold) {
		l.returned(q, start < end+wait)
	}
}

// ordinal is 1 + the arrivals at most one horizon before the latest one.
func (l *Ledger) ordinal(q *question) uint32 {
	if q.n == 1 {
		return 1
	}
	k := uint32(ringLen(l.arena.words(q.recent))) + 1
	if q.state&firstIsPast == 0 {
		k++
	}
	return k
}

// failedFirst says that the first arrival at most one horizon before the latest
// one failed.
func (l *Ledger) failedFirst(q *question) bool {
	if q.state&firstIsPast == 0 {
		return q.state&firstFailed != 0
	}
	return oldest(l.arena.words(q.recent)).failed()
}

// rememberLast moves what the latest arrival alone knew into the history, before
// the arrival f takes its place.
func (l *Ledger) rememberLast(q *question, f *filed) {
	a := &l.arena
	if q.n >= 2 {
		p := pastArrival(stamp(q.last)) | pastArrival(q.peer)<<timeBits
		if Outcome(q.state&lastOutcome) != OutcomeSuccess || q.state&lastGone != 0 {
			p |= pastFailed
		}
		a.pushRecent(q, p)
	}
	if q.num > 0 {
		switch {
		case q.state&lastOrigin != 0:
			if f.flags&OriginScope == 0 || f.num != q.num || f.peer != q.peer {
				a.rememberNumber(q, q.num, q.peer).set(seenNumber, q.num, q.peer, q.last)
			}
		case q.num == 1 && (f.num != 1 || f.flags&OriginScope != 0 || f.peer != q.peer):
			a.remember(q, seenFirstTry, q.peer).set(seenFirstTry, q.peer, 0, q.last)
		}
	}
	if q.left != NoBudget && f.flags.left() != q.left {
		a.remember(q, seenLeft, q.left).set(seenLeft, q.left, 0, q.last)
	}
	if Outcome(q.state&lastOutcome) == OutcomeSuccess && f.flags.outcome() != OutcomeSuccess {
		a.remember(q, seenSuccess, 0).set(seenSuccess, 0, 0, q.last)
	}
}

// slide lets go of arrivals that are more than one horizon before start.
func (l *Ledger) slide(q *question, start int64) {
	gone := func(peer uint8) {
		if r := l.arena.seenOf(q, seenPeer, peer); r.ok() {
			r.setCounts(r.count()-1, r.ordinal())
		}
	}
	if q.state&firstIsPast == 0 {
		if ago(start, q.first()) <= l.cfg.Horizon/1000 {
			return
		}
		q.setFirst(stampOf(q.last-ago(q.last, q.first())*1000, 1e6))
		q.state |= firstIsPast
		gone(q.firstPeer)
	}
	w := l.arena.words(q.recent)
	for ringLen(w) > 0 && ago(start, oldest(w).stamp()) > l.cfg.Horizon/1000 {
		gone(oldest(w).peer())
		dropOldest(w)
	}
}

// within says that a record exists and is at most one horizon before now.
func (l *Ledger) within(r record, now int64) bool {
	return r.ok() && ago(now, r.stamp()) <= l.cfg.Horizon/1000
}

// stepPeer does what is counted by question and peer. While all arrivals come by
// one peer nothing is kept; a second peer makes records for both. within is how
// many earlier arrivals are within the horizon, last the ordinal of the latest.
func (l *Ledger) stepPeer(i uint32, q *question, f *filed, start int64, within, last uint32) {
	e, a := &l.e, &l.arena
	many := q.seen != 0 && a.seenOf(q, seenPeer, q.peer).ok()
	if !many && f.peer == q.peer {
		e.prior[1].saw(theQuestions, tickOf(q.last))
		l.stepBudget(q.left, f.flags.left())
		return
	}
	if !many {
		r := a.remember(q, seenPeer, q.peer)
		r.set(seenPeer, q.peer, q.left, q.last)
		r.setCounts(within, last)
	}
	if f.peer != q.peer {
		l.watchPeer(i, q)
	}
	r := a.seenOf(q, seenPeer, f.peer)
	switch {
	case l.within(r, start):
		e.prior[1].saw(theQuestions, r.tick(start))
		l.stepBudget(r.left(), f.flags.left())
		r.setCounts(r.count()+1, r.count()+1)
	case r.ok():
		l.endPeer(q, r, tickOf(start))
		r.setCounts(1, 1)
	default:
		r = a.remember(q, seenPeer, f.peer)
		r.setCounts(1, 1)
	}
	r.set(seenPeer, f.peer, f.flags.left(), start)
}

// stepBudget compares the budgets that two successive arrivals by one peer
// carried.
func (l *Ledger) stepBudget(prev, now uint8) {
	if prev != NoBudget && now != NoBudget {
		l.e.countIf(now == prev, nNotDecremented)
		l.e.countIf(now > prev, nIncreased)
	}
}

// stepSeen looks through what earlier arrivals than the latest had.
func (l *Ledger) stepSeen(q *question, f *filed, start int64) {
	e := &l.e
	for w := l.arena.records(q); len(w) > 0; w = w[2:] {
		r := record{w[:2]}
		p := r.property()
		if p == seenPeer || !l.within(r, start) {
			continue
		}
		switch p {
		case seenFirstTry:
			e.saw(withHopOne, r.tick(start), r.value())
		case seenFailed:
			e.saw(withFailedFirst, r.tick(start), r.value())
		case seenNumber:
			e.saw(withOriginNumber, r.tick(start), r.left())
			if r.value() == f.num {
				e.saw(originNumbers, r.tick(start), r.left())
			}
		}
	}
}

// overspent says that the question has come more often than the largest budget
// it carried within the horizon allows: a budget of n left after an arrival
// allows n more.
func (l *Ledger) overspent(q *question, f *filed, start int64, k uint32) bool {
	most := -1
	for _, left := range [...]uint8{q.left, f.flags.left()} {
		if left != NoBudget {
			most = max(most, int(left))
		}
	}
	l.eachSeen(q, seenLeft, start, func(r record) { most = max(most, int(r.value())) })
	return most >= 0 && int64(k) > int64(most)+1
}

func (l *Ledger) eachSeen(q *question, p property, now int64, f func(record)) {
	for w := l.arena.records(q); len(w) > 0; w = w[2:] {
		if r := (record{w[:2]}); r.property() == p && l.within(r, now) {
			f(r)
		}
	}
}

// returned books, with the peer that got it, an answer that asked for patience
// and after which the question came again.
func (l *Ledger) returned(q *question, early bool) {
	d := Dims{Route: q.route, Originator: q.originator, Peer: q.peer}
	weight := l.e.weight
	if weight == 0 {
		return
	}
	for i := range l.views {
		c := l.views[i].row(l.e.tick, d)
		c.n[nRetryReturned] += weight
		if early {
			c.n[nRetryEarly] += weight
		}
	}
}

// endEpisode counts what is known of a question only when it is over. now is the
// tick in which that is found.
func (l *Ledger) endEpisode(i uint32, q *question, now int64) {
	var peers []uint8 // where there were several
	for w := l.arena.records(q); len(w) > 0; w = w[2:] {
		if r := (record{w[:2]}); r.property() == seenPeer {
			peers = append(peers, r.value())
			l.endPeer(q, r, now)
		}
	}
	last, k := l.endTick(tickOf(q.last), now), l.ordinal(q)
	d := Dims{Route: q.route, Originator: q.originator, Peer: q.peer}
	family := l.table.family(q.id.Key)
	alone := l.fans().alone(family, q)
	weight := l.weight(q.id)
	for i := range l.views {
		v := &l.views[i]
		if v.view.ByPeer && peers != nil || weight == 0 {
			continue
		}
		c := v.row(last, d)
		c.PerQuestion.addCount(k, weight)
		if !v.view.ByPeer {
			c.Spans.addGap(l.span(q), weight)
		}
		if !alone {
			c.n[nFamilyEnds] += weight
		}
	}
	l.worst.over(q, func() []uint8 {
		if peers == nil {
			return []uint8{q.peer}
		}
		return peers
	})
	l.keepOver(i, q, now)
	if family != nil {
		l.fans().closed(family, q, alone, l.fanReport(q, now))
	}
	l.arena.forget(q)
	q.n = 0
	l.ended(i, q)
}

// span is the time from the first to the latest arrival of an episode. Of rows, whose
// counts may not depend on more than a ledger that began to count again knows, the
// first is the first within the horizon of the latest.
func (l *Ledger) span(q *question) int64 {
	if q.state&firstIsPast == 0 || l.cfg.EndAtLast {
		return q.span()
	}
	return ago(q.last, oldest(l.arena.words(q.recent)).stamp()) * 1e3
}

// bookFan counts a fan-out that has come to its end.
func (l *Ledger) bookFan(q *question, now int64, n uint32, wide bool, last int64) {
	at := l.endTick(tickOf(last), now)
	d := Dims{Route: q.route, Originator: q.originator}
	for i := range l.views {
		v := &l.views[i]
		switch {
		case v.view.ByPeer:
		case wide:
			v.wideRow(at, d).FanOut.addCount(n, 1)
		case v.view.ByRoute:
			v.row(at, d).FanOut.addCount(n, 1)
		}
	}
}

func (l *Ledger) fans() fans { return fans{l.cfg.Horizon, !l.cfg.EndAtLast} }

func (l *Ledger) fanReport(q *question, now int64) fanReport {
	return func(n uint32, wide bool, last int64) { l.bookFan(q, now, n, wide, last) }
}

// endPeer counts a question's arrivals by one of several peers.
func (l *Ledger) endPeer(q *question, r record, now int64) {
	last := l.endTick(tickOf(q.last-ago(q.last, r.stamp())*1000), now)
	d := Dims{Route: q.route, Originator: q.originator, Peer: r.value()}
	weight := l.weight(q.id)
	for i := range l.views {
		if v := &l.views[i]; v.view.ByPeer && weight > 0 {
			v.row(last, d).PerQuestion.addCount(r.ordinal(), weight)
		}
	}
}

// endTick is the tick in which the end of an episode is booked.
func (l *Ledger) endTick(last, now int64) int64 {
	if l.cfg.EndAtLast {
		return last
	}
	return now
}
