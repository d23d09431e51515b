package aggregate

import (
	"math"
	"slices"
)

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
	said  bool  // how many there are was reported, as the key was silent
	few   []askedQuestion
	many  map[uint64]int64 // once they were many, by ID.Rest
	tidy  int64            // when many was last rid of what is too old
}

// askedQuestion is a question by its ID.Rest, and the start of its latest arrival.
type askedQuestion struct {
	rest uint64
	last int64
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
func (x *fan) asked(rest uint64, start, horizon int64) {
	if x.said {
		x.few, x.many, x.said = x.few[:0], nil, false
	}
	x.last = start
	if x.many != nil {
		if _, ok := x.many[rest]; ok || x.room(start, horizon) {
			x.many[rest] = start
		}
		return
	}
	for i := range x.few {
		if x.few[i].rest == rest {
			x.few[i].last = start
			return
		}
	}
	if len(x.few) < manyMembers {
		x.few = append(x.few, askedQuestion{rest, start})
		return
	}
	x.many = map[uint64]int64{rest: start}
	for _, q := range x.few {
		x.many[q.rest] = q.last
	}
}

// room makes room in many for one more, if it can be had.
func (x *fan) room(start, horizon int64) bool {
	if len(x.many) == maxFan && start-x.tidy > horizon {
		x.tidy = start
		for rest, last := range x.many {
			if start-last > horizon {
				delete(x.many, rest)
			}
		}
	}
	return len(x.many) < maxFan
}

// since reports the questions that came at some time or later, until it is told to
// stop.
func (x *fan) since(at int64, f func(rest uint64) (on bool)) {
	for rest, last := range x.many {
		if last >= at && !f(rest) {
			return
		}
	}
	if x.many != nil {
		return
	}
	for _, q := range x.few {
		if q.last >= at && !f(q.rest) {
			return
		}
	}
}

// fanReport is told how many questions a key asked: on one route, or in the whole
// dependency; last is the start of the latest arrival.
type fanReport func(n uint32, wide bool, last int64)

// fans is how the fan-out of keys is counted. Of rows, whose counts may not depend on
// more than a ledger that began to count again knows, it is of what a key asked within
// a horizon before its last arrival; and a question counts for a key of its own if no
// other of its key came within a horizon of its end.
type fans struct {
	horizon int64
	bounded bool
}

func (s fans) from(last int64) int64 {
	if s.bounded {
		return last - s.horizon
	}
	return math.MinInt64
}

// over reports a fan that has come to its end. One question that counts for a key of
// its own is not reported.
func (s fans) over(x *fan, alone bool, report fanReport) {
	if x.said || len(x.few) == 0 {
		return
	}
	x.said = true
	n := uint32(0)
	x.since(s.from(x.last), func(uint64) bool { n++; return true })
	if n > 1 || n == 1 && !alone {
		report(n, x.route == allRoutes, x.last)
	}
}

// arrived counts an arrival of a member towards the fan-out.
func (s fans) arrived(f *family, q *question, start int64, report fanReport) {
	for _, r := range [...]uint32{allRoutes, uint32(q.route)} {
		x := f.fan(r)
		if start-x.last > s.horizon {
			s.over(x, false, report)
		}
		x.asked(q.id.Rest, start, s.horizon)
	}
}

// alone says that a question that is over counts for a key of its own.
func (s fans) alone(f *family, q *question) bool {
	if f == nil || !s.bounded {
		return f == nil
	}
	alone := true
	f.fan(allRoutes).since(s.from(q.last), func(rest uint64) bool {
		alone = rest == q.id.Rest
		return alone
	})
	return alone
}

// closed ends what ended with the episode of a member: all of it, if the key has
// not come since.
func (s fans) closed(f *family, q *question, alone bool, report fanReport) {
	for _, r := range [...]uint32{allRoutes, uint32(q.route)} {
		if x := f.fan(r); x.last <= q.last {
			s.over(x, alone, report)
		}
	}
}
