package pipeline

import "github.com/targetside/auditor/aggregate"

// openTicks are the sums of what was read of the ticks of a scope that are not stored
// yet, by route and originator and by route and peer, as rows are. Nothing of them is
// final.
type openTicks struct {
	ticks map[int64]*openTick
	cells int   // sums in all ticks
	whole int64 // the first tick of which nothing was left out
}

type openTick struct {
	originators, peers sumsBy // by route
	cells              int
}

// mostOpen bounds the memory of open ticks: about 600 bytes a cell. With more they are
// dropped, and there is no word of any until those are stored.
const mostOpen = 100_000

func newOpenTicks() *openTicks { return &openTicks{ticks: map[int64]*openTick{}, whole: noTick} }

// add takes beats; ticks before stored are at rest.
func (o *openTicks) add(beats []aggregate.Beat, stored int64) {
	for i := range beats {
		b := &beats[i]
		if b.Tick < max(stored, o.whole) || b.Late {
			continue
		}
		t := o.ticks[b.Tick]
		if t == nil {
			t = new(openTick)
			o.ticks[b.Tick] = t
		}
		before := t.cells
		t.add(&t.originators, int(b.Dims.Route), int(b.Dims.Originator), b)
		t.add(&t.peers, int(b.Dims.Route), int(b.Dims.Peer), b)
		if o.cells += t.cells - before; o.cells > mostOpen {
			for at := range o.ticks {
				o.whole = max(o.whole, at+1)
			}
			o.forget(o.whole)
		}
	}
}

func (t *openTick) add(g *sumsBy, route, i int, b *aggregate.Beat) {
	if route >= len(*g) || i >= len((*g)[route]) || (*g)[route][i] == nil {
		t.cells++
	}
	g.at(route, i).Add(b)
}

// forget drops the ticks before one.
func (o *openTicks) forget(stored int64) {
	for at, t := range o.ticks {
		if at < stored {
			o.cells -= t.cells
			delete(o.ticks, at)
		}
	}
}

// OpenScope is what was read of the ticks of a scope from From on, none of which is at
// rest; math.MinInt64 if nothing of it is. The counts of its rows are plain sums: what takes the past of a question is
// not known yet.
type OpenScope struct {
	Scope string
	From  int64
	Rows  []Row
}

// Open returns the open rows of the scopes that this instance counts, of ticks from one
// up to another, not included. A scope that has too much that is open is left
// out.
func (l *Live) Open(from, to int64) (out []OpenScope) {
	for _, s := range l.all() {
		if x, ok := s.openRows(from, to); ok {
			out = append(out, x)
		}
	}
	return out
}

func (s *scope) openRows(from, to int64) (OpenScope, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := OpenScope{Scope: s.name, From: max(s.stored, s.emitFrom)}
	if !s.counts() || s.open.whole > x.From {
		return x, false
	}
	for at, t := range s.open.ticks {
		if at < x.From || at < from || at >= to {
			continue
		}
		for _, byPeer := range []bool{false, true} {
			g := t.originators
			if byPeer {
				g = t.peers
			}
			for route, list := range g {
				for i, sums := range list {
					if sums == nil {
						continue
					}
					k := rowKey{dims: aggregate.Dims{Route: uint16(route), Originator: uint16(i)}, byPeer: byPeer}
					if byPeer {
						k.dims = aggregate.Dims{Route: uint16(route), Peer: uint8(i)}
					}
					x.Rows = append(x.Rows, s.row(at, k, sums.Counts()))
				}
			}
		}
	}
	return x, true
}
