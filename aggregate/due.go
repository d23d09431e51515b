package aggregate

// A question with an episode is in one list of one tick, to be looked at when
// that closes: the tick in which the episode ended, unless it came again.

// dueLists are the heads of the lists of a tick. The lists are linked through the
// questions, each of which lies somewhere else in memory and has to be there before
// the next one is known; several lists side by side are waited for together.
type dueLists [32]uint32

var noneDue = func() (d dueLists) {
	for i := range d {
		d[i] = none
	}
	return d
}()

// watch has a question looked at when tick at closes.
func (l *Ledger) watch(i uint32, q *question, at int64) {
	head := &l.tick(at).due[i%uint32(len(dueLists{}))]
	q.due, *head = *head, i
}

// peerDue is a question and one of its peers, by which it came last a horizon before
// the end of the tick: unless it has come by it again, what it asked by that peer is
// over, though it may go on by others.
type peerDue struct {
	question uint32
	peer     uint8
}

// watchPeer has a question's latest arrival, which came by another peer than the one
// that follows, looked at when a horizon is over. A report books the end of a peer in
// the tick of its last arrival, whenever that is found out.
func (l *Ledger) watchPeer(i uint32, q *question) {
	if !l.cfg.EndAtLast {
		t := l.tick(l.peerEnd(floorDiv(q.last, 1e3)))
		t.peers = append(t.peers, peerDue{i, q.peer})
	}
}

// peerEnd is the tick in which what was asked by a peer is over, whose latest arrival
// came at some time in microseconds.
func (l *Ledger) peerEnd(last int64) int64 { return tickOf(last*1e3 + l.cfg.Horizon) }

// endPeers ends what questions asked by peers by which they do not come any more.
func (l *Ledger) endPeers(t *tick) {
	for _, d := range t.peers {
		q := l.table.at(d.question)
		if q.n == 0 || q.seen == 0 || d.peer == q.peer {
			continue
		}
		r := l.arena.seenOf(q, seenPeer, d.peer)
		if !r.ok() || l.peerEnd(floorDiv(q.last, 1e3)-ago(q.last, r.stamp())) > t.at {
			continue
		}
		l.endPeer(q, r, t.at)
		if l.cfg.shows() && !l.arena.seenOf(q, cameBy, d.peer).ok() {
			r.become(cameBy)
		} else {
			l.arena.removeRecord(q, r)
		}
	}
}

// endDue ends the episodes that end with a tick, and forgets the questions of
// which nothing is open.
func (l *Ledger) endDue(t *tick) {
	for t.due != noneDue {
		for _, i := range t.due {
			if i != none {
				l.touched += uint64(l.table.at(i).due)
			}
		}
		for k := range t.due {
			i := t.due[k]
			if i == none {
				continue
			}
			q := l.table.at(i)
			t.due[k] = q.due
			if len(l.sampler.ticks) > 0 && q.id.level() < l.sampler.least() {
				l.forget(i, q)
				continue
			}
			if due := tickOf(q.last + l.cfg.Horizon); q.n > 0 && due > t.at {
				l.watch(i, q, due)
				continue
			}
			if q.n > 0 {
				l.endEpisode(i, q, t.at)
			}
			q.due = none
			if q.open == 0 {
				l.table.drop(i)
			}
		}
	}
}
