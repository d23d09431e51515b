package aggregate

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"

	"github.com/targetside/auditor/keys"
)

// Ledger counts the arrivals of one scope, or of one hash shard of it.
type Ledger struct {
	cfg    Config
	margin int64

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

	order []uint64            // scratch of sorting
	from  [1e9>>20 + 2]uint32 // likewise
	spare []*tick
	pages []*page

	perSecond int    // room to give the events of a second
	touched   uint64 // keeps fetch from being optimised away
	e         effect
	booked    []*Counts // the rows of the effect, by view
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
}

// tick is what is known of one second: the arrivals that started in it, the
// questions to look at when it closes, and the records that were written in it.
type tick struct {
	at      int64
	filed   []*page
	n       uint32 // arrivals in filed
	due     uint32 // head of the list of questions
	written []Event
	long    []uint64 // of Ledger.long, to be forgotten
}

// page holds arrivals of one tick. Ticks take pages as they need them, so that
// none has much room to spare.
type page [pageArrivals]filed

const pageArrivals = 128

func (t *tick) arrival(i uint32) *filed { return &t.filed[i/pageArrivals][i%pageArrivals] }

// nearTicks is how many ticks are found without a search; a power of two.
const nearTicks = 256

// tickQueue is a heap of the ticks that have something to do.
type tickQueue []*tick

func (q tickQueue) Len() int           { return len(q) }
func (q tickQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q tickQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *tickQueue) Push(x any)        { *q = append(*q, x.(*tick)) }
func (q *tickQueue) Pop() any {
	old := *q
	t := old[len(old)-1]
	*q = old[:len(old)-1]
	return t
}

// NewLedger returns an empty ledger. Horizon and lateness must be positive and
// the horizon at most MaxHorizon.
func NewLedger(cfg Config) *Ledger {
	if cfg.Horizon <= 0 || cfg.Horizon > MaxHorizon || cfg.Lateness <= 0 {
		panic("aggregate: horizon or lateness out of range")
	}
	l := &Ledger{
		cfg: cfg, margin: cfg.margin(), closed: math.MinInt64,
		ticks: map[int64]*tick{}, long: map[uint64]struct{}{}, table: newQuestions(), worst: newWorst(cfg.Worst),
		stats: Stats{First: math.MaxInt64, Last: math.MinInt64, LastLog: math.MinInt64},
	}
	l.booked = make([]*Counts, len(cfg.Views))
	for i, v := range cfg.Views {
		l.views = append(l.views, rows{number: i, view: v, buckets: map[int64]*rowSet{}})
	}
	return l
}

// Stats returns the ledger's tallies so far.
func (l *Ledger) Stats() Stats {
	s := l.stats
	s.Live = l.table.live
	return s
}

// Add files an arrival under the tick in which it is counted: that of its start,
// or that of its log time less nearly the whole lateness when the request took
// longer than that. So lateness measures the shipper, never the request: a second
// is not late because the storm's requests hung for a minute.
//
// key is the text of its key, for Config.KeyHash. It keeps
// neither a nor key. watermark is the largest log time of the records that came
// before it in its partition: whether the arrival is late depends on that alone.
//
// A late arrival is unattributable, unless it was so for another reason. It is
// counted at once if its tick is closed. If it copies a request that took a second
// or more, and came within the lateness of that request's record, it is the
// shipper's duplicate all the same.
func (l *Ledger) Add(a *Arrival, key []byte, watermark int64) {
	start, flags := a.Start, a.Flags&^(clamped|unattributable|late)
	if floor := a.Log - (l.cfg.Lateness - l.margin); start < floor {
		start, flags = floor, flags|clamped
	}
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
	f := filed{
		start: uint32(start - at*second),
		dur:   packDuration(a.Duration),
		text:  uint32(a.Text),
		retry: packRetry(a.RetryAfter),
		peer:  a.Peer,
		num:   a.Attempt,
	}
	if class == keys.Unattributable {
		flags |= unattributable
		f.owner = uint32(a.Route)<<8 | uint32(reason)
	}
	f.flags = packFlags(flags, a)
	if at < l.closed {
		l.countLate(&f, at, a.Log)
		return
	}
	if class != keys.Unattributable {
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
		if l.worst.wants(q.n + q.open) {
			l.worst.offer(q, start, func() [16]byte { return l.cfg.KeyHash(key) })
		}
	}
	t := l.tick(at)
	if t.n%pageArrivals == 0 {
		t.filed = append(t.filed, l.takePage())
	}
	t.n++
	*t.arrival(t.n - 1) = f
	l.stats.Open++
}

// countLate counts an arrival of a closed tick.
func (l *Ledger) countLate(f *filed, at, log int64) {
	if f.long(l) && f.flags&Decidable != 0 {
		if _, copied := l.long[f.copyKey(l, at)]; copied {
			if f.flags&Head != 0 {
				l.stats.Duplicates++
			}
			return
		}
		l.keepLong(f, at, log)
	}
	if f.flags&clamped != 0 {
		l.stats.Clamped++
	}
	l.seen(at, log)
	l.countUnattributable(f, at, log)
}

// seen widens the range of what was counted.
func (l *Ledger) seen(at, log int64) {
	l.stats.First, l.stats.Last = min(l.stats.First, at), max(l.stats.Last, at)
	l.stats.LastLog = max(l.stats.LastLog, tickOf(log))
}

// long says that a request took so long that copies of its record may come,
// within the lateness of it, when its tick is already closed.
func (f *filed) long(l *Ledger) bool { return f.length(l) >= second }

// copyKey is equal for copies of one record.
func (f *filed) copyKey(l *Ledger, at int64) uint64 {
	return spread(uint64(at*second+int64(f.start))^uint64(f.text)<<32) + spread(uint64(f.length(l))<<8|uint64(f.peer))
}

// keepLong remembers the record of a long request of a closed tick until no copy
// of it can come within the lateness.
func (l *Ledger) keepLong(f *filed, at, log int64) {
	until := tickOf(log) + 1
	if until <= at || until < l.closed {
		return
	}
	k := f.copyKey(l, at)
	if _, ok := l.long[k]; !ok {
		l.long[k] = struct{}{}
		t := l.tick(until)
		t.long = append(t.long, k)
	}
}

// tick returns the open tick at, made if there is none.
func (l *Ledger) tick(at int64) *tick {
	near := &l.near[at&(nearTicks-1)]
	if *near != nil && (*near).at == at {
		return *near
	}
	t := l.ticks[at]
	if t == nil {
		if n := len(l.spare); n > 0 {
			t, l.spare = l.spare[n-1], l.spare[:n-1]
			t.at = at
		} else {
			t = &tick{at: at, due: none}
		}
		l.ticks[at] = t
		heap.Push(&l.queue, t)
	}
	*near = t
	return t
}

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
	l.stepAll(t)
	for i := t.due; i != none; {
		q := l.table.at(i)
		next := q.due
		if due := tickOf(q.last + l.cfg.Horizon); q.n > 0 && due > t.at {
			l.watch(i, q, due)
		} else {
			if q.n > 0 {
				l.endEpisode(q, t.at)
			}
			q.due = none
			if q.open == 0 {
				l.table.drop(i)
			}
		}
		i = next
	}
	if len(t.written) > 0 {
		l.perSecond = len(t.written) + len(t.written)/8
		out.Seconds = append(out.Seconds, Second{At: t.at, Events: t.written})
	}
	heap.Pop(&l.queue)
	delete(l.ticks, t.at)
	l.near[t.at&(nearTicks-1)] = nil
	l.closed = t.at + 1
	for _, k := range t.long {
		delete(l.long, k)
	}
	l.pages = append(l.pages, t.filed...)
	*t = tick{due: none, filed: t.filed[:0], long: t.long[:0]}
	if len(l.spare) < nearTicks {
		l.spare = append(l.spare, t)
	}
	if keep := l.stats.Open/pageArrivals/8 + sparePages; len(l.pages) > keep {
		clear(l.pages[keep:])
		l.pages = l.pages[:keep]
	}
}

// sparePages is how many pages are kept for the next ticks in any case.
const sparePages = 64

func (l *Ledger) takePage() *page {
	n := len(l.pages)
	if n == 0 {
		return new(page)
	}
	p := l.pages[n-1]
	l.pages = l.pages[:n-1]
	return p
}

func (l *Ledger) watch(i uint32, q *question, at int64) {
	t := l.tick(at)
	q.due, t.due = t.due, i
}

// stepAll takes the arrivals of a tick through their questions, in order of
// start. Equal starts are ordered by log time, and then by everything else that a
// count can depend on: where that is equal too, their order changes nothing.
func (l *Ledger) stepAll(t *tick) {
	l.sort(t)
	l.stats.Open -= len(l.order)
	ahead := l.order
	for rest := l.order; len(rest) > 0; {
		if len(ahead) >= len(rest) {
			ahead = l.fetch(t, ahead)
		}
		n := 1
		for n < len(rest) && rest[n]>>32 == rest[0]>>32 {
			n++
		}
		if n == 1 {
			l.step(t, t.arrival(uint32(rest[0])))
		} else {
			l.stepTied(t, rest[:n])
		}
		rest = rest[n:]
	}
}

// sort fills l.order with the arrivals of a tick in order of start, each as its
// start and its number. It deals them out by time and puts in order what falls
// together: by 17 ms, or by the millisecond where a tick has many.
func (l *Ledger) sort(t *tick) {
	l.order = slices.Grow(l.order[:0], int(t.n))[:t.n]
	switch {
	case t.n < 32:
		for i := range t.n {
			l.order[i] = uint64(t.arrival(i).start)<<32 | uint64(i)
		}
		slices.Sort(l.order)
	case t.n < 2048:
		l.deal(t, 24, l.from[:1e9>>24+2])
	default:
		l.deal(t, 20, l.from[:1e9>>20+2])
	}
}

func (l *Ledger) deal(t *tick, shift uint, from []uint32) {
	clear(from)
	for i := range t.n {
		from[t.arrival(i).start>>shift+1]++
	}
	for i := 1; i < len(from); i++ {
		from[i] += from[i-1]
	}
	for i := range t.n {
		start := t.arrival(i).start
		at := &from[start>>shift]
		l.order[*at] = uint64(start)<<32 | uint64(i)
		*at++
	}
	// from now holds where each part ends.
	begin := uint32(0)
	for _, end := range from[:len(from)-1] {
		insertionSort(l.order[begin:end])
		begin = end
	}
}

func insertionSort(part []uint64) {
	if len(part) > 32 {
		slices.Sort(part)
		return
	}
	for i := 1; i < len(part); i++ {
		x := part[i]
		j := i
		for ; j > 0 && part[j-1] > x; j-- {
			part[j] = part[j-1]
		}
		part[j] = x
	}
}

// fetchAhead is how many questions are brought into the cache together.
const fetchAhead = 32

// fetch touches the questions of the next arrivals. Each lies somewhere else in
// memory; asked for one after the other in stepping they would each be waited
// for, asked for together they come together.
func (l *Ledger) fetch(t *tick, order []uint64) (rest []uint64) {
	n := min(fetchAhead, len(order))
	for _, x := range order[:n] {
		if f := t.arrival(uint32(x)); f.flags&unattributable == 0 {
			l.touched += uint64(l.table.at(f.owner).recent)
		}
	}
	return order[n:]
}

// stepTied steps arrivals with one start. Copies of one record are among these,
// and so are the several records of one request.
func (l *Ledger) stepTied(t *tick, tied []uint64) {
	at := func(x uint64) *filed { return t.arrival(uint32(x)) }
	if strangers(t, tied) {
		for _, x := range tied {
			l.step(t, at(x))
		}
		return
	}
	slices.SortFunc(tied, func(x, y uint64) int {
		a, b := at(x), at(y)
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.flags.kind(), b.flags.kind()),
			cmp.Compare(a.length(l), b.length(l)), cmp.Compare(x, y))
	})
	kept := tied[:0]
	for i, x := range tied {
		f := at(x)
		if i > 0 {
			switch p := at(kept[len(kept)-1]); {
			case p.text != f.text:
			case f.flags&p.flags&Paired != 0:
				if f.flags.kind() == KindEnd && p.flags.kind() == KindEnd {
					l.stats.Duplicates++
				} else {
					l.stats.Interim++
				}
				l.release(p)
				kept[len(kept)-1] = x // the later kind knows more
				continue
			case p.length(l) != f.length(l) || p.peer != f.peer:
			case (p.flags|f.flags)&late != 0:
				if p.flags&f.flags&Decidable == 0 || !f.long(l) {
					break
				}
				if f.flags&Head != 0 {
					l.stats.Duplicates++
				}
				if p.flags&late != 0 {
					kept[len(kept)-1], f = x, p // the one that was in time stays
				}
				l.release(f)
				continue
			case p.flags != f.flags || p.owner != f.owner:
			case f.flags&Decidable == 0:
				l.stats.Undecidable++
			default:
				if f.flags&Head != 0 {
					l.stats.Duplicates++
				}
				l.release(f)
				continue
			}
		}
		kept = append(kept, x)
	}
	slices.SortFunc(kept, func(x, y uint64) int {
		a, b := at(x), at(y)
		return cmp.Or(cmp.Compare(a.length(l), b.length(l)), cmp.Compare(a.flags, b.flags),
			cmp.Compare(a.peer, b.peer), cmp.Compare(a.num, b.num), cmp.Compare(a.retry, b.retry), cmp.Compare(a.dur, b.dur))
	})
	for _, x := range kept {
		l.step(t, at(x))
	}
}

// strangers says that no two of a few arrivals can have to do with each other:
// they are of different questions and of different records.
func strangers(t *tick, tied []uint64) bool {
	if len(tied) > 8 {
		return false
	}
	for i, x := range tied {
		a := t.arrival(uint32(x))
		for _, y := range tied[:i] {
			b := t.arrival(uint32(y))
			if a.text == b.text || a.owner == b.owner && (a.flags|b.flags)&unattributable == 0 {
				return false
			}
		}
	}
	return true
}

// length is log time less start.
func (f *filed) length(l *Ledger) int64 {
	if f.flags&clamped != 0 {
		return l.cfg.Lateness - l.margin
	}
	return unpackDuration(f.dur)
}

// release takes back a filed arrival that is not one.
func (l *Ledger) release(f *filed) {
	if f.flags&unattributable != 0 {
		return
	}
	q := l.table.at(f.owner)
	if q.open--; q.open == 0 && q.n == 0 {
		l.table.drop(f.owner)
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
	l.written(log, l.e.dims, kind)
}

func (l *Ledger) countUnattributable(f *filed, at, log int64) {
	if f.flags&late != 0 {
		l.stats.Late++
	}
	e := &l.e
	e.begin(Dims{Route: uint16(f.owner >> 8), Peer: f.peer}, at, f)
	e.unattributed(keys.Reason(f.owner))
	l.book()
	l.written(log, e.dims, 0)
}

// book adds the effect at hand to the row of every view.
func (l *Ledger) book() {
	for i := range l.views {
		l.booked[i] = l.views[i].row(l.e.tick, l.e.dims)
	}
	for ones := l.e.ones; ones != 0; ones &= ones - 1 {
		k := bits.TrailingZeros64(ones)
		for _, c := range l.booked {
			c.n[k]++
		}
	}
	for i, c := range l.booked {
		c.add(&l.e, &l.views[i].view)
	}
}

// written notes that a record was written. A record that comes after its second
// has been handed out is in no second any more; only late ones are.
func (l *Ledger) written(log int64, d Dims, kind Event) {
	if at := tickOf(log); at >= l.closed {
		t := l.tick(at)
		if t.written == nil {
			t.written = make([]Event, 0, l.perSecond)
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
}
