package aggregate

import (
	"cmp"
	"slices"
)

// What is told of single questions while they go on is what closing their ticks
// would find by now: of those that are asked for, the arrivals in open ticks are
// looked through once more, without the copies and interim records among them.

// sparePlaces are for questions that fall back when copies are left out.
const sparePlaces = 100

// UnderWay returns, of each group of routes, the places questions that came back
// most often and are not over. group is, by route, what it belongs to.
func (l *Ledger) UnderWay(places int, group []uint16) []Episode {
	type ranked struct{ i, n uint32 }
	// By group, the most first; n is what was filed, at least what counts.
	best := map[uint16][]ranked{}
	var least []uint32 // by group: as many arrivals are of no interest, nor are fewer
	room := places + sparePlaces
	groupOf := func(route uint16) uint16 {
		if int(route) < len(group) {
			return group[route]
		}
		return route
	}
	for i := range l.table.used {
		q := l.table.at(i)
		n := q.n + q.open
		if n < 2 {
			continue
		}
		g := groupOf(q.route)
		for int(g) >= len(least) {
			least = append(least, 0)
		}
		if n <= least[g] {
			continue
		}
		list := best[g]
		at, _ := slices.BinarySearchFunc(list, n, func(r ranked, n uint32) int { return cmp.Compare(n, r.n) })
		if len(list) == room {
			list = list[:room-1]
		}
		list = slices.Insert(list, at, ranked{i, n})
		if best[g] = list; len(list) == room {
			least[g] = list[room-1].n
		}
	}
	var ids []uint32
	for _, list := range best {
		for _, r := range list {
			ids = append(ids, r.i)
		}
	}
	found := l.soFar(ids)
	slices.SortFunc(found, func(a, b Episode) int {
		return cmp.Or(cmp.Compare(b.Arrivals, a.Arrivals), cmp.Compare(a.First, b.First), slices.Compare(a.KeyHash[:], b.KeyHash[:]))
	})
	given := map[uint16]int{}
	return slices.DeleteFunc(found, func(e Episode) bool {
		g := groupOf(e.Dims.Route)
		given[g]++
		return e.Arrivals < 2 || given[g] > places
	})
}

// Find returns the questions of a key that are not over, as far as their hash is
// known.
func (l *Ledger) Find(keyHash [16]byte) []Episode {
	if keyHash == [16]byte{} { // that of every place whose hash is not known, or that is not used
		return nil
	}
	var ids []uint32
	for p, page := range l.hashes {
		if page == nil {
			continue
		}
		for i := range page {
			if page[i].keyHash == keyHash {
				ids = append(ids, uint32(p<<pageBits+i))
			}
		}
	}
	return l.soFar(ids)
}

// soFar describes questions as closing every tick would find them. One without an
// arrival, whose hash is not known, or whose beginning may not have been followed, is
// left out.
func (l *Ledger) soFar(ids []uint32) []Episode {
	if len(ids) == 0 {
		return nil
	}
	at := map[uint32]int{}
	among := make([]uint64, l.table.used/64+1) // the set of ids
	out := make([]Episode, len(ids))
	for k, i := range ids {
		at[i] = k
		among[i/64] |= 1 << (i % 64)
		s, q := l.shownAs(i), l.table.at(i)
		e := Episode{KeyHash: s.keyHash, Lot: s.lot, Dims: Dims{q.route, q.originator, q.peer}}
		if q.n > 0 {
			e.Arrivals, e.First, e.Last, e.Peers = q.n, q.last-q.span(), q.last, l.peersOf(q)
		}
		out[k] = e
	}
	ticks := slices.Clone(l.queue)
	slices.SortFunc(ticks, func(a, b *tick) int { return cmp.Compare(a.at, b.at) })
	open := make([][]uint64, len(ids)) // starts and numbers of a tick's arrivals
	for _, t := range ticks {
		for k := range t.n {
			f := t.arrival(k)
			if f.flags&unattributable == 0 && among[f.owner/64]>>(f.owner%64)&1 != 0 {
				n := at[f.owner]
				open[n] = append(open[n], uint64(f.start)<<32|uint64(k))
			}
		}
		for n, list := range open {
			if len(list) > 0 {
				l.proceed(&out[n], t, list)
				open[n] = list[:0]
			}
		}
	}
	k := l.exponent(max(l.sampler.newest, l.closed))
	kept := out[:0]
	for n, e := range out {
		if e.Arrivals > 0 && e.KeyHash != [16]byte{} && l.table.at(ids[n]).id.level() >= k {
			kept = append(kept, e)
		}
	}
	return kept
}

// proceed adds the arrivals of an open tick to what is known of a question.
func (l *Ledger) proceed(e *Episode, t *tick, list []uint64) {
	slices.Sort(list)
	for rest := list; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n]>>32 == rest[0]>>32 {
			n++
		}
		for _, x := range l.kept(t, rest[:n], func(*tick, uint64, uint64, fate) {}) {
			f := t.arrival(uint32(x))
			start := t.at*second + int64(f.start)
			if e.Arrivals == 0 || start-e.Last > l.cfg.Horizon {
				e.Arrivals, e.First, e.Peers = 0, start, nil
			}
			e.Arrivals++
			e.Last, e.Dims.Peer = start, f.peer
			if !slices.Contains(e.Peers, f.peer) {
				e.Peers = append(e.Peers, f.peer)
			}
		}
		rest = rest[n:]
	}
}
