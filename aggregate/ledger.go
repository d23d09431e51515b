package aggregate

import (
	"container/heap"
	"math"

	"github.com/targetside/auditor/keys"
)

// Ledger counts the arrivals of one scope, or of one hash shard of it.
type Ledger struct {
	cfg Config

	closed int64 // ticks before this one are closed
	ticks  map[int64]*tick
	queue  tickQueue
	near   [nearTicks]*tick // a tick by its number, if it was asked for lately

	table questions
	arena arena
	long  map[uint64]struct{} // records of long requests of closed ticks, see keepLong
	views []rows
	worst worst
	stats Stats

	sampler sampler
	k       uint8 // by which questions count in the tick at hand

	order   []uint64            // scratch of sorting
	from    [1e9>>20 + 2]uint32 // likewise
	met     met                 // likewise
	spare   []*tick
	settle  func(t *tick, x, by uint64, why fate) // dropped
	pending map[uint32]pending                    // by question, with Config.Live
	pages   []*page

	hashes    []*shownPage // by page of the table, see shown.go
	over      []Episode
	sightings []Sighting

	perSecond int    // room to give the events of a second
	touched   uint64 // keeps fetch from being optimised away
	e         effect
}

// Stats are what a ledger dropped or moved, and what it holds.
type Stats struct {
	Duplicates  uint64 // copies of a record that the shipper sent again
	Undecidable uint64 // equal records that may be copies or arrivals; counted as arrivals
	Interim     uint64 // start and progress records of requests counted by a later record
	Late        uint64 // arrivals of closed ticks
	Clamped     uint64 // arrivals counted in a tick after their start
	First, Last int64  // first and last tick with an arrival; First > Last if there is none
	LastLog     int64  // last second in which a record was written
	Live        int    // questions remembered
	Open        int    // arrivals in open ticks
	Bits        uint8  // one question in 2^Bits is followed, or was when what is not closed came
}

// NewLedger returns an empty ledger. Horizon and lateness must be positive and
// the horizon at most MaxHorizon.
func NewLedger(cfg Config) *Ledger {
	if cfg.Horizon <= 0 || cfg.Horizon > MaxHorizon || cfg.Lateness <= 0 {
		panic("aggregate: horizon or lateness out of range")
	}
	l := &Ledger{
		cfg: cfg, closed: math.MinInt64,
		ticks: map[int64]*tick{}, long: map[uint64]struct{}{}, table: newQuestions(), worst: newWorst(cfg.Worst),
		stats: Stats{First: math.MaxInt64, Last: math.MinInt64, LastLog: math.MinInt64},
	}
	l.settle, l.pending = l.dropped, map[uint32]pending{}
	l.Bound(cfg.MaxLive)
	for i, v := range cfg.Views {
		l.views = append(l.views, rows{number: i, view: v, buckets: map[int64]*rowSet{}})
	}
	return l
}

// Stats returns the ledger's tallies so far.
func (l *Ledger) Stats() Stats {
	s := l.stats
	s.Live, s.Bits = l.table.live, l.sampler.most()
	return s
}

// Add files an arrival under the tick in which it is counted: that of its start,
// or that of its log time less nearly the whole lateness when the request took
// longer than that. So lateness measures the shipper, never the request: a second
// is not late because the storm's requests hung for a minute.
//
// key is the text of its key, for Config.KeyHash; Add keeps neither a nor key.
// watermark is the largest log time of the records that came before it in its
// partition: whether the arrival is late depends on that alone.
//
// A late arrival is unattributable, unless it was so for another reason. It is
// counted at once if its tick is closed. If it copies a request that took a second
// or more, and came within the lateness of that request's record, it is the
// shipper's duplicate all the same.
func (l *Ledger) Add(a *Arrival, key []byte, watermark int64) {
	start, flags := l.cfg.counted(a)
	at := tickOf(start)
	class, reason := a.Class, a.Reason
	if at*second+l.cfg.Lateness <= watermark || at < l.closed {
		flags |= late
		if a.Log+l.cfg.Lateness < watermark {
			flags &^= Decidable // too late to be taken for a copy
		}
		if class != keys.Unattributable {
			class, reason = keys.Unattributable, keys.Late
		}
	}
	// It is written where it stays: what was just written in small pieces is slow to
	// copy. What is let go of meanwhile must find nothing half filed.
	f, followed := &filed{}, false
	if at >= l.closed {
		followed = class != keys.Unattributable && l.follows(a.Question, at)
		f = l.file(at)
	}
	f.start, f.dur = uint32(start-at*second), packDuration(a.Duration)
	f.text, f.retry = uint32(a.Text), PackRetry(a.RetryAfter)
	f.peer, f.num = a.Peer, a.Attempt
	if class == keys.Unattributable {
		flags = flags&^notFollowed | unattributable
		f.owner = uint32(a.Route)<<8 | uint32(reason)
	}
	f.flags = packFlags(flags, a)
	if at < l.closed {
		l.countLate(f, at, a.Log)
		return
	}
	switch {
	case class == keys.Unattributable:
	case !followed:
		f.leave(a.Route, a.Originator, class == keys.Verified)
	default:
		i, made := l.table.get(a.Question)
		q := l.table.at(i)
		if made {
			q.route, q.originator = a.Route, a.Originator
			if class == keys.Verified {
				q.state = verifiedBit
			}
		}
		q.open++
		f.owner = i
		if l.cfg.shows() {
			l.show(i, q, made, a, start, key)
		}
		if l.worst.wants(q.n + q.open) {
			l.worst.offer(q, start, func() [16]byte { return l.cfg.KeyHash(key) })
		}
	}
	if l.table.live > l.sampler.max {
		l.full()
	}
}

// file gives the place of the next arrival in an open tick; all of it is to be
// written.
func (l *Ledger) file(at int64) *filed {
	t := l.tick(at)
	if t.n%pageArrivals == 0 {
		t.filed = append(t.filed, l.takePage())
	}
	t.n++
	l.stats.Open++
	return t.arrival(t.n - 1)
}

// Closed says that the tick of an arrival is closed.
func (l *Ledger) Closed(a *Arrival) bool { return l.cfg.Tick(a) < l.closed }

// Close closes every tick before to: all that will ever be counted in them has
// been added. What is final by then is appended to out.
func (l *Ledger) Close(to int64, out *Output) {
	for len(l.queue) > 0 && l.queue[0].at < to {
		l.closeTick(l.queue[0], out)
	}
	l.closed = max(l.closed, to)
	for i := range l.views {
		l.views[i].emit(l.rowsUpTo(to), &out.Rows)
	}
}

// rowsUpTo is the tick before which no row can change any more.
func (l *Ledger) rowsUpTo(to int64) int64 {
	if l.cfg.EndAtLast && to != math.MaxInt64 {
		to -= l.cfg.Horizon/second + 1
	}
	return to
}

// Finish closes everything and forgets every question.
func (l *Ledger) Finish(out *Output) {
	l.Close(math.MaxInt64, out)
	out.Worst = append(out.Worst, l.worst.found()...)
}

func (l *Ledger) closeTick(t *tick, out *Output) {
	l.closed = t.at
	l.thinAll(t)
	if l.cfg.Live {
		l.beat(t, out)
		out.Ticks = append(out.Ticks, Filed{t.at, t.n})
	}
	l.weigh(t.at)
	l.stepAll(t)
	l.endDue(t)
	l.endPeers(t)
	if len(t.written) > 0 {
		l.perSecond = len(t.written) + len(t.written)/8
		out.Seconds = append(out.Seconds, Second{At: t.at, Events: t.written, Times: t.times})
	}
	l.handOut(out)
	heap.Pop(&l.queue)
	delete(l.ticks, t.at)
	l.near[t.at&(nearTicks-1)] = nil
	l.closed = t.at + 1
	l.relax()
	for _, k := range t.long {
		delete(l.long, k)
	}
	l.pages = append(l.pages, t.filed...)
	*t = tick{due: noneDue, peers: t.peers[:0], filed: t.filed[:0], long: t.long[:0]}
	if len(l.spare) < nearTicks {
		l.spare = append(l.spare, t)
	}
	if keep := l.stats.Open/pageArrivals/8 + sparePages; len(l.pages) > keep {
		clear(l.pages[keep:])
		l.pages = l.pages[:keep]
	}
}

// step counts one arrival.
func (l *Ledger) step(t *tick, f *filed) {
	log := t.at*second + int64(f.start) + f.length(l)
	if f.long(l) && f.flags&(Decidable|Paired) == Decidable {
		l.keepLong(f, t.at, log)
	}
	if f.flags&clamped != 0 {
		l.stats.Clamped++
	}
	l.seen(t.at, log)
	if f.flags&unattributable != 0 {
		l.countUnattributable(f, t.at, log)
		return
	}
	l.stepQuestion(f.owner, f, t.at)
	kind := wasRepeat
	if l.e.original {
		kind = wasOriginal
	}
	if !l.e.claimed {
		kind |= wasVerified
	}
	l.book()
	l.written(log, f, kind)
}

func (l *Ledger) countUnattributable(f *filed, at, log int64) {
	if f.flags&late != 0 {
		l.stats.Late++
	}
	e := &l.e
	if f.unfollowed() {
		e.beginUnfollowed(at, f)
	} else {
		e.begin(Dims{Route: uint16(f.owner >> 8), Peer: f.peer}, at, f)
		e.unattributed(keys.Reason(f.owner))
	}
	l.book()
	l.written(log, f, 0)
}

// seen widens the range of what was counted.
func (l *Ledger) seen(at, log int64) {
	l.stats.First, l.stats.Last = min(l.stats.First, at), max(l.stats.Last, at)
	l.stats.LastLog = max(l.stats.LastLog, tickOf(log))
}

// book adds the effect at hand to the row of every view.
func (l *Ledger) book() {
	for i := range l.views {
		v := &l.views[i]
		v.row(l.e.tick, l.e.dims).add(&l.e, v)
	}
}

// written notes that a record was written. A record that comes after its second
// has been handed out is in no second any more; only late ones are.
func (l *Ledger) written(log int64, f *filed, kind Event) {
	if at := tickOf(log); at >= l.closed && !l.cfg.Live {
		d := &l.e.dims
		t := l.tick(at)
		if t.written == nil {
			t.written = make([]Event, 0, l.perSecond)
		}
		if l.cfg.Fared {
			kind |= f.fared()
			t.times = append(t.times, l.e.told())
		}
		t.written = append(t.written, kind|Event(d.Route)<<eventRoute|Event(d.Originator)<<eventOriginator|Event(d.Peer))
	}
}

// Add adds the tallies of another shard.
func (s *Stats) Add(o Stats) {
	s.Duplicates += o.Duplicates
	s.Undecidable += o.Undecidable
	s.Interim += o.Interim
	s.Late += o.Late
	s.Clamped += o.Clamped
	s.First, s.Last, s.LastLog = min(s.First, o.First), max(s.Last, o.Last), max(s.LastLog, o.LastLog)
	s.Live += o.Live
	s.Open += o.Open
	s.Bits = max(s.Bits, o.Bits)
}
