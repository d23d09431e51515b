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
