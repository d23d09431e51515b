package aggregate

import (
	"math"
	"slices"

	"github.com/targetside/auditor/keys"
)

// Beat is what is known of one arrival as soon as it is filed, a lateness before
// its tick is closed: what live figures are made of. Beats of one arrival add up
// to it: when a later record of the same request says more, a beat takes the
// earlier one back.
//
// Whether it is a repeat is what closing the tick will find, but for two things.
// Of arrivals that come out of order the first to come is taken for the original,
// which moves it by the disorder: as many are repeats, but where long requests are
// logged after their short repeats, Repeat reads high. And while ticks stay open for
// longer than three quarters of the horizon, an arrival more than one horizon
// behind another may be taken for its repeat.
type Beat struct {
	Second int64  // of log time
	Tick   int64  // that it is counted in
	Dims   Dims   // all of them
	ones   uint64 // the counters that it raises
	// Nanoseconds in system: if nobody was there for the answer, in any case, and
	// if it is a repeat.
	Dead, Busy, Repeat int64
	Back               bool   // takes an earlier beat back
	Late               bool   // its tick has it in rows of their own
	failed             bool   // see filed.unserved
	more               uint32 // how many questions beside its own the arrival's counts for
}

// Live appends the beats of the arrivals that were filed since it was last called.
func (l *Ledger) Live(out *Output) {
	for _, t := range l.queue {
		l.beat(t, out)
	}
	l.handOut(out)
}

// beat tells of the arrivals of a tick that are new.
func (l *Ledger) beat(t *tick, out *Output) {
	fresh := t.told
	if fresh == t.n {
		return
	}
	t.told = t.n
	l.thinAll(t)
	l.weigh(t.at)
	l.gather(t, fresh)
	var more []uint64 // what takes the place of an earlier record that was told of
	replaced := func(t *tick, x, by uint64, why fate) {
		if why != interim || uint32(by) < fresh {
			return
		}
		switch told := uint32(x) < fresh; {
		case told:
			l.tell(t, x, true, true, out)
			more = append(more, by)
		case slices.Contains(more, x):
			more = append(more, by)
		}
	}
	for rest := l.order; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n]>>32 == rest[0]>>32 {
			n++
		}
		kept := rest[:n]
		if n > 1 {
			more = more[:0]
			kept = l.kept(t, kept, replaced)
		}
		for _, x := range kept {
			if uint32(x) >= fresh {
				l.tell(t, x, slices.Contains(more, x), false, out)
			}
		}
		rest = rest[n:]
	}
}

// gather fills l.order with the arrivals of a tick from number fresh on and those
// that have a start in common with one of them, in order of start.
func (l *Ledger) gather(t *tick, fresh uint32) {
	if t.n-fresh > fresh/8 {
		l.sort(t)
		return
	}
	var some [64]uint64 // a set of starts, too large rather than too small
	place := func(start uint32) uint32 { return start * 0x9e3779b1 >> 20 }
	l.order = l.order[:0]
	for i := fresh; i < t.n; i++ {
		start := t.arrival(i).start
		l.order = append(l.order, uint64(start)<<32|uint64(i))
		some[place(start)/64] |= 1 << (place(start) % 64)
	}
	for i := range fresh {
		if start := t.arrival(i).start; some[place(start)/64]>>(place(start)%64)&1 != 0 {
			l.order = append(l.order, uint64(start)<<32|uint64(i))
		}
	}
	slices.Sort(l.order)
}

// tell appends the beat of an arrival, or takes it back. A record that takes the
// place of another leaves it as it was whether the arrival is a repeat, so that both
// are told as one.
func (l *Ledger) tell(t *tick, x uint64, repeat, back bool, out *Output) {
	e, f := &l.e, t.arrival(uint32(x))
	start := t.at*second + int64(f.start)
	log := start + f.length(l)
	switch {
	case f.unfollowed():
		e.beginUnfollowed(t.at, f)
	case f.flags&unattributable != 0:
		e.begin(Dims{Route: uint16(f.owner >> 8), Peer: f.peer}, t.at, f)
		e.unattributed(keys.Reason(f.owner))
	default:
		q := l.table.at(f.owner)
		e.begin(Dims{Route: q.route, Originator: q.originator, Peer: f.peer}, t.at, f)
		e.attributed(f, q.state&verifiedBit != 0)
		e.weight = l.weight(q.id)
		e.original = !repeat && !l.known(f.owner, q, start, log, out)
		e.settled()
	}
	b := e.beat(f, log)
	b.Back, b.Repeat = back, e.repeat*int64(e.weight)
	if e.weight == 0 {
		b.ones &^= ofQuestion
	} else {
		b.more = uint32(e.weight - 1)
	}
	out.Beats = append(out.Beats, b)
}

// beat is what an arrival changes whatever its question, as a beat.
func (e *effect) beat(f *filed, log int64) Beat {
	return Beat{Second: tickOf(log), Tick: e.tick, Dims: e.dims, ones: e.ones, Dead: e.dead, Busy: e.busy, failed: f.unserved()}
}

// wasTold marks a question without an episode of which a beat told: its time of
// the latest arrival is not used then.
const wasTold = math.MinInt64

// pending is what beats told of a question that has an episode and open arrivals:
// the start of its first original more than one horizon behind the latest arrival
// that was counted, and the log time of that; or, of repeats that lie so far
// behind it that such an original might follow, the last.
type pending struct {
	start, log int64
	repeats    bool
	weight     uint32 // of the original
}

// known says whether an earlier beat told of the question, or a closed tick within
// the horizon, and notes that now one did. An arrival that comes late enough to
// lie between a closed tick and what was told as an original more than one horizon
// after it makes that a repeat.
func (l *Ledger) known(i uint32, q *question, start, log int64, out *Output) bool {
	if q.n == 0 {
		told := q.last == wasTold
		q.last = wasTold
		return told
	}
	p, told := l.pending[i]
	near := start-q.last <= l.cfg.Horizon
	switch {
	case near && told && !p.repeats && p.start-start <= l.cfg.Horizon:
		if p.weight > 0 {
			out.Beats = append(out.Beats, Beat{Second: tickOf(p.log), Tick: tickOf(p.start), Dims: l.e.dims, ones: 1 << nOriginals, Back: true, more: p.weight - 1})
		}
		l.pending[i] = pending{start, log, true, 0}
	case near && (!told || p.repeats) && start-q.last > l.cfg.Horizon/4:
		l.pending[i] = pending{max(start, p.start), log, true, 0}
	case near || told && p.repeats:
	case !told:
		l.pending[i] = pending{start, log, false, uint32(l.e.weight)}
	default:
		p.start = min(p.start, start)
		l.pending[i] = p
	}
	return near || told
}

// counted forgets what is pending of a question whose arrival a closed tick has
// counted now.
func (l *Ledger) counted(i uint32, start int64) {
	if len(l.pending) > 0 {
		if p, ok := l.pending[i]; ok && p.repeats && start >= p.start {
			delete(l.pending, i)
		}
	}
}

// ended does so at the end of an episode, and keeps for the next that a beat told
// of it.
func (l *Ledger) ended(i uint32, q *question) {
	q.last = 0
	if _, ok := l.pending[i]; ok {
		delete(l.pending, i)
		q.last = wasTold
	}
}
