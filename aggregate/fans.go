package aggregate

import "slices"

// family is the live questions of one key, when it has several: a key that calls
// three operations asks three questions. Most keys ask one, and have none.
//
// A family also counts the key's fan-out. That follows episodes: it begins when
// a question of the key opens one while none has any, and ends, and is reported,
// when the last is over.
type family struct {
	members []uint32
	byRest  map[uint64]uint32 // of many members, by ID.Rest
	fans    []fan             // of the whole dependency first, then by route
}

// fan counts the questions that are in an episode, and all since the first.
type fan struct {
	route          uint32
	live, distinct uint32
}

const (
	allRoutes = ^uint32(0)

	// manyMembers is how many questions of one key are looked through one by one.
	manyMembers = 16
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
	f.members = append(f.members, i)
	switch {
	case f.byRest != nil:
		f.byRest[t.at(i).id.Rest] = i
	case len(f.members) > manyMembers:
		f.byRest = map[uint64]uint32{}
		for _, m := range f.members {
			f.byRest[t.at(m).id.Rest] = m
		}
	}
}

func (f *family) remove(t *questions, i uint32) {
	at := slices.Index(f.members, i)
	last := len(f.members) - 1
	f.members[at] = f.members[last]
	f.members = f.members[:last]
	delete(f.byRest, t.at(i).id.Rest)
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

// opened counts a member that opened an episode.
func (f *family) opened(route uint16) {
	for _, r := range [...]uint32{allRoutes, uint32(route)} {
		x := f.fan(r)
		x.live++
		x.distinct++
	}
}

// closed counts a member whose episode is over, and reports what ended with it.
func (f *family) closed(route uint16, report func(n uint32, wide bool)) {
	for _, r := range [...]uint32{allRoutes, uint32(route)} {
		x := f.fan(r)
		if x.live--; x.live == 0 {
			report(x.distinct, r == allRoutes)
			x.distinct = 0
		}
	}
}
