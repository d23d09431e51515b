package aggregate

import "math"

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
}

// Event is one record in its second of log time: route, originator, peer, and
// what the arrival turned out to be.
type Event uint64

const (
	eventOriginator = 8
	eventRoute      = 24

	wasOriginal = Event(1) << 40
	wasRepeat   = Event(1) << 41
	wasVerified = Event(1) << 42
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

// rows holds the rows of one view that may still change.
type rows struct {
	number  int
	view    View
	buckets map[int64]*rowSet
	last    *rowSet
}

// rowSet is the rows of one stretch of time, indexed by route and then by
// originator or peer.
type rowSet struct {
	at     int64
	byDims [][]*Counts
	wide   map[Dims]*Counts
}

func (r *rows) set(tick int64) *rowSet {
	at := int64(0)
	if r.view.Every > 0 {
		at = floorDiv(tick, r.view.Every)
	}
	if r.last != nil && r.last.at == at {
		return r.last
	}
	s := r.buckets[at]
	if s == nil {
		s = &rowSet{at: at}
		r.buckets[at] = s
	}
	r.last = s
	return s
}

// row returns the row for a tick and dimensions.
func (r *rows) row(tick int64, d Dims) *Counts {
	s := r.set(tick)
	var i, j int
	if r.view.ByRoute {
		i = int(d.Route)
	}
	switch {
	case r.view.ByOriginator:
		j = int(d.Originator)
	case r.view.ByPeer:
		j = int(d.Peer)
	}
	for i >= len(s.byDims) {
		s.byDims = append(s.byDims, nil)
	}
	for j >= len(s.byDims[i]) {
		s.byDims[i] = append(s.byDims[i], nil)
	}
	c := s.byDims[i][j]
	if c == nil {
		c = new(Counts)
		s.byDims[i][j] = c
	}
	return c
}

// wideRow returns the row for what belongs to a whole dependency. A view by peer
// has none: fan-out is of keys.
func (r *rows) wideRow(tick int64, d Dims) *Counts {
	s := r.set(tick)
	if s.wide == nil {
		s.wide = map[Dims]*Counts{}
	}
	d.Peer = 0
	if !r.view.ByOriginator {
		d.Originator = 0
	}
	if !r.view.ByRoute {
		d.Route = 0
	}
	c := s.wide[d]
	if c == nil {
		c = new(Counts)
		s.wide[d] = c
	}
	return c
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
		for i, list := range s.byDims {
			for j, c := range list {
				if c == nil {
					continue
				}
				row := Row{View: r.number, From: from, To: end, Dims: Dims{Route: uint16(i)}, Counts: c}
				if r.view.ByOriginator {
					row.Dims.Originator = uint16(j)
				} else {
					row.Dims.Peer = uint8(j)
				}
				*out = append(*out, row)
			}
		}
		for d, c := range s.wide {
			*out = append(*out, Row{View: r.number, From: from, To: end, Dims: d, Wide: true, Counts: c})
		}
		delete(r.buckets, at)
		if r.last == s {
			r.last = nil
		}
	}
}
