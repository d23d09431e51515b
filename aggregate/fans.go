package aggregate

import "slices"

// family is the live questions of one key, when it has several: a key that calls
// three operations asks three questions. Most keys ask one, and have none.
//
// A family also counts the key's fan-out: the distinct questions that it asks
// before it is silent for a horizon.
type family struct {
	members []uint32          // while they are few
	byRest  map[uint64]uint32 // and once they were many, by ID.Rest
	fans    []fan             // of the whole dependency first, then by route
}

func (f *family) size() int { return max(len(f.members), len(f.byRest)) }

// fan is what a key has asked, in all or on one route, since it last was silent.
type fan struct {
	route uint32
	last  int64 // start of its latest arrival
	few   []uint64
	many  map[uint64]struct{}
}

const (
	allRoutes = ^uint32(0)

	// manyMembers is how many questions of one key are looked through one by one.
	manyMembers = 16
	// maxFan is how many questions of a key are told apart; a key that is no key
	// may go on for days.
	maxFan = 4096
)

func (f *family) find(t *questions, rest uint64) (uint32, bool) {
	if f.byRest != nil {
		i, ok := f.byRest[rest]
		return i, ok
	}
	for _, i := range f.members {
		if t.at(i).id.Rest == rest {
			return i, true
		}
	}
	return 0, false
}

func (f *family) add(t *questions, i uint32) {
	if f.byRest == nil && len(f.members) < manyMembers {
		f.members = append(f.members, i)
		return
	}
	if f.byRest == nil {
		f.byRest = map[uint64]uint32{}
		for _, m := range f.members {
			f.byRest[t.at(m).id.Rest] = m
		}
		f.members = nil
	}
	f.byRest[t.at(i).id.Rest] = i
}

func (f *family) remove(t *questions, i uint32) {
	if f.byRest != nil {
		delete(f.byRest, t.at(i).id.Rest)
		return
	}
	at := slices.Index(f.members, i)
	f.members = slices.Delete(f.members, at, at+1)
}

func (f *family) fan(route uint32) *fan {
	for i := range f.fans {
		if f.fans[i].route == route {
			return &f.fans[i]
		}
	}
	f.fans = append(f.fans, fan{route: route})
	return &f.fans[len(f.fans)-1]
}

// asked notes an arrival of a question.
func (x *fan) asked(rest uint64, start int64) {
	x.last = start
	switch {
	case x.many != nil:
		if len(x.many) < maxFan {
			x.many[rest] = struct{}{}
		}
	case slices.Contains(x.few, rest):
	case len(x.few) < manyMembers:
		x.few = append(x.few, rest)
	default:
		x.many = map[uint64]struct{}{rest: {}}
		for _, r := range x.few {
			x.many[r] = struct{}{}
		}
	}
}

func (x *fan) distinct() uint32 { return uint32(max(len(x.few), len(x.many))) }

// fanReport is told how many questions a key asked: on one route, or in the whole
// dependency; last is the start of the latest arrival.
type fanReport func(n uint32, wide bool, last int64)

// over reports a fan that has come to its end, and begins anew.
func (x *fan) over(report fanReport) {
	if n := x.distinct(); n > 0 {
		report(n, x.route == allRoutes, x.last)
		x.few, x.many = x.few[:0], nil
	}
}

// arrived counts an arrival of a member towards the fan-out.
func (f *family) arrived(q *question, start, horizon int64, report fanReport) {
	for _, r := range [...]uint32{allRoutes, uint32(q.route)} {
		x := f.fan(r)
		if start-x.last > horizon {
			x.over(report)
		}
		x.asked(q.id.Rest, start)
	}
}

// closed ends what ended with the episode of a member: all of it, if the key has
// not come since.
func (f *family) closed(q *question, report fanReport) {
	for _, r := range [...]uint32{allRoutes, uint32(q.route)} {
		if x := f.fan(r); x.last <= q.last {
			x.over(report)
		}
	}
}
