package aggregate

import (
	"math"
	"math/bits"

	"github.com/targetside/auditor/aggregate/budget"
)

// The bounds of a row that covers everything.
const (
	minTick = math.MinInt64
	maxTick = math.MaxInt64
)

// Output is what a ledger has found final.
type Output struct {
	Rows    []Row
	Seconds []Second
	Worst   []Worst

	// With Config.Live: what is told before ticks are closed, the closed ones, and
	// late arrivals.
	Beats []Beat
	Ticks []Filed
	Late  []Beat // those of Beats that are late
	// With KeyHash, too: questions that are over, and arrivals of those drawn.
	Episodes  []Episode
	Sightings []Sighting
}

// Filed is how many records were filed in a tick, copies included.
type Filed struct {
	At int64
	N  uint32
}

// Row is one row of a view: ticks From up to To, not included.
type Row struct {
	View     int
	From, To int64
	Dims     Dims
	// Wide marks what belongs to a whole dependency and to none of its routes
	// (the fan-out of a key over routes); Dims.Route is then any route of it.
	Wide   bool
	Counts *Counts
}

// Second is what was written in one second of log time.
type Second struct {
	At     int64
	Events []Event
	// Times are, with Config.Fared, the nanoseconds in system of each; -1: not known.
	Times []int64
}

// Event is one record in its second of log time: route, originator, peer, and
// what the arrival turned out to be.
type Event uint64

const (
	eventOriginator = 8
	eventRoute      = 24
	eventFate       = 40

	wasOriginal = Event(1) << eventFate
	wasRepeat   = Event(1) << (eventFate + 1)
	wasVerified = Event(1) << (eventFate + 2)
	wasGood     = Event(1) << (eventFate + 3)
	wasFailed   = Event(1) << (eventFate + 4)
	wasGone     = Event(1) << (eventFate + 5)
	fates       = 1 << 6
)

// Dims are the dimensions of the event.
func (e Event) Dims() Dims {
	return Dims{Route: uint16(e >> eventRoute), Originator: uint16(e >> eventOriginator), Peer: uint8(e)}
}

// Original and Repeat are both false for an unattributable arrival.
func (e Event) Original() bool { return e&wasOriginal != 0 }

// Repeat says that an earlier arrival of the question was within the horizon.
func (e Event) Repeat() bool { return e&wasRepeat != 0 }

// Verified says that the key proved its author.
func (e Event) Verified() bool { return e&wasVerified != 0 }

// fate is what an event says but for its dimensions.
func (e Event) fate() int { return int(e >> eventFate & (fates - 1)) }

// secondly counts the events of a second by their fate. One counter for each takes
// less than several of which each event raises some.
type secondly struct {
	some uint64 // bits by fate, of those with an event
	n    [fates]uint64
	busy [fates]int64  // nanoseconds in system
	dark [fates]uint64 // of n, those whose time is not known
}

func (s *secondly) add(e Event, busy int64) {
	fate := e.fate()
	s.some |= 1 << fate
	s.n[fate]++
	if busy < 0 {
		s.dark[fate]++
		return
	}
	s.busy[fate] += busy
}

// counts returns the counts and begins anew.
func (s *secondly) counts() (c budget.Counts) {
	for ; s.some != 0; s.some &= s.some - 1 {
		fate := bits.TrailingZeros64(s.some)
		e, n, busy, dark := Event(fate)<<eventFate, s.n[fate], s.busy[fate], s.dark[fate]
		one := budget.Counts{Arrivals: n, Busy: busy, Untimed: dark}
		switch {
		case e.Original():
			one.Originals = n
		case e.Repeat():
			one.Repeats, one.RepeatBusy, one.UntimedRepeats = n, busy, dark
		default:
			one.Unattributable, one.UnattributableBusy = n, busy
		}
		one.Verified = n * bit(e.Verified())
		one.Success, one.Failed, one.Gone = n*bit(e&wasGood != 0), n*bit(e&wasFailed != 0), n*bit(e&wasGone != 0)
		c.Add(one)
		s.n[fate], s.busy[fate], s.dark[fate] = 0, 0, 0
	}
	return c
}

// fared is what became of an arrival, as an event has it.
func (f *filed) fared() Event {
	gone, good := f.unread(), f.flags.outcome() == OutcomeSuccess
	return wasGood*Event(bit(good && !gone)) | wasFailed*Event(bit(f.unserved())) | wasGone*Event(bit(gone))
}

// unread says that nobody was there for the answer.
func (f *filed) unread() bool { return f.flags.departure() != StillThere || f.flags&Expired != 0 }

// unserved says that the arrival got 429 or 5xx, or that nobody was there for the
// answer.
func (f *filed) unserved() bool {
	o := f.flags.outcome()
	return o == OutcomeOverload || o == OutcomeError || f.unread()
}

// rows holds the rows of one view that may still change.
type rows struct {
	number  int
	view    View
	buckets map[int64]*rowSet

	last     *rowSet // the rows of ticks from up to to, unless nil
	from, to int64
}

// rowSet is the rows of one stretch of time; wide holds what belongs to whole
// dependencies.
type rowSet struct {
	at           int64
	narrow, wide grid
}

// grid is rows by route and then by originator or peer.
type grid [][]*Counts

func (g *grid) at(i, j int) *Counts {
	if i < len(*g) && j < len((*g)[i]) && (*g)[i][j] != nil {
		return (*g)[i][j]
	}
	for i >= len(*g) {
		*g = append(*g, nil)
	}
	for j >= len((*g)[i]) {
		(*g)[i] = append((*g)[i], nil)
	}
	c := new(Counts)
	(*g)[i][j] = c
	return c
}

func (r *rows) set(tick int64) *rowSet {
	if r.last != nil && tick >= r.from && tick < r.to {
		return r.last
	}
	at, from, to := int64(0), int64(minTick), int64(maxTick)
	if every := r.view.Every; every > 0 {
		at = floorDiv(tick, every)
		from, to = at*every, (at+1)*every
	}
	s := r.buckets[at]
	if s == nil {
		s = &rowSet{at: at}
		r.buckets[at] = s
	}
	r.last, r.from, r.to = s, from, to
	return s
}

// since is how many rows a tick lies before those asked for last.
func (r *rows) since(tick int64) int64 {
	if tick >= r.from {
		return 0
	}
	return (r.from-1-tick)/r.view.Every + 1
}

// row returns the row for a tick and dimensions.
func (r *rows) row(tick int64, d Dims) *Counts {
	i, j := r.view.index(d)
	return r.set(tick).narrow.at(i, j)
}

// wideRow returns the row for what belongs to the whole dependency of a route. A
// view by peer has none: fan-out is of keys.
func (r *rows) wideRow(tick int64, d Dims) *Counts {
	i, j := r.view.index(d)
	return r.set(tick).wide.at(i, j)
}

func (v *View) index(d Dims) (i, j int) {
	if v.ByRoute {
		i = int(d.Route)
	}
	switch {
	case v.ByOriginator:
		j = int(d.Originator)
	case v.ByPeer:
		j = int(d.Peer)
	}
	return i, j
}

func (v *View) dims(i, j int) Dims {
	if v.ByOriginator {
		return Dims{Route: uint16(i), Originator: uint16(j)}
	}
	return Dims{Route: uint16(i), Peer: uint8(j)}
}

// emit hands out every row that ends at or before tick to.
func (r *rows) emit(to int64, out *[]Row) {
	for at, s := range r.buckets {
		from, end := at*r.view.Every, (at+1)*r.view.Every
		if r.view.Every == 0 {
			if from, end = minTick, maxTick; to < end {
				continue
			}
		} else if end > to {
			continue
		}
		for wide, g := range map[bool]grid{false: s.narrow, true: s.wide} {
			for i, list := range g {
				for j, c := range list {
					if c != nil {
						c.tally.empty(&c.n)
						*out = append(*out, Row{View: r.number, From: from, To: end, Dims: r.view.dims(i, j), Wide: wide, Counts: c})
					}
				}
			}
		}
		delete(r.buckets, at)
		if r.last == s {
			r.last = nil
		}
	}
}
