package store

import (
	"cmp"
	"math"
	"slices"
)

// never stands for a tick that no closing has been told of.
const never = math.MinInt64

// era is the part of a scope's time that one version of its rules covers.
//
// Rules start, for a scope, at the first Closed that is written under them, or at
// a row on time that lies before that. From there up to what they have closed the
// ticks are theirs alone.
type era struct {
	rules  uint32
	starts int64 // math.MaxInt64 while unknown
	closed int64
	top    int64 // no row written under the rules is of a tick at or after it
}

// covers says that a tick is closed under these rules: rows of lower ones are
// gone, and if they come again they stay out.
func (e *era) covers(at int64) bool { return e.starts <= at && at < e.closed }

// state is what is known of a scope besides its rows.
type state struct {
	eras []*era // by rules, ascending
	// made is the tick up to which buckets have their roll-ups, of an hour apart.
	// Until something is closed no row lies before it; never while there are none.
	made int64
	// hours is the same of rows of an hour. They are made a part at a time: in the
	// hour that begins there, those of series up to hourSeries are made.
	hours, hourSeries int64
	// gone says, by level, before which tick the rows have expired. It is a
	// multiple of the next coarser resolution, so that a coarser row's finer ones
	// are all there or none is.
	gone [levels]int64
	note []byte // see Write.Note; never changed in place
}

func newState() *state {
	s := &state{made: never, hours: never}
	for i := range s.gone {
		s.gone[i] = never
	}
	return s
}

// clone is a copy that shares nothing.
func (s *state) clone() *state {
	own := *s
	own.eras = nil
	for _, e := range s.eras {
		x := *e
		own.eras = append(own.eras, &x)
	}
	return &own
}

// era returns the era of some rules, made if there is none.
func (s *state) era(rules uint32) *era {
	i, found := slices.BinarySearchFunc(s.eras, rules, func(e *era, r uint32) int { return cmp.Compare(e.rules, r) })
	if !found {
		s.eras = slices.Insert(s.eras, i, &era{rules: rules, starts: math.MaxInt64, closed: never, top: never})
	}
	return s.eras[i]
}

// inForce is the era of the highest rules that have closed anything, nil if there
// are none.
func (s *state) inForce() *era {
	for _, e := range slices.Backward(s.eras) {
		if e.closed != never {
			return e
		}
	}
	return nil
}

// closed is the tick before which all is final, never if none is.
func (s *state) closed() int64 {
	if e := s.inForce(); e != nil {
		return e.closed
	}
	return never
}

// top is the tick from which on there are no rows.
func (s *state) top() int64 {
	top := int64(never)
	for _, e := range s.eras {
		top = max(top, e.top)
	}
	return top
}

// topBelow is the tick from which on there are no rows of rules lower than these.
func (s *state) topBelow(rules uint32) int64 {
	top := int64(never)
	for _, e := range s.eras {
		if e.rules < rules {
			top = max(top, e.top)
		}
	}
	return top
}

// unmade moves back to a tick what roll-ups are made up to, if it is beyond it.
func (s *state) unmade(at int64) {
	if s.made == never || s.made > at {
		s.made = at
	}
	if hour := floor(at, int64(Hour)); s.hours == never || s.hours >= hour {
		s.hours, s.hourSeries = hour, 0
	}
}

// pendingHours are the hours that are closed, and not all made: from one time up
// to another, not included. What there is of rows of them is of no use.
func (s *state) pendingHours() (from, to int64) {
	return pendingHours(s.hours, s.closed(), s.gone[hourLevel-1])
}

func pendingHours(hours, closed, gone int64) (from, to int64) {
	if hours == never || closed == never {
		return never, never
	}
	return max(floor(hours, int64(Hour)), gone), floor(closed, int64(Hour))
}

// accepts says whether a row of a tick may still be written: whether everything
// that is made of it still can be made anew, of all that belongs to it. Ticks
// expire first; late rows are kept for as long as the rows of ten seconds are,
// apart from those that were on time, and so are needed no longer.
func (s *state) accepts(at int64, late bool) bool {
	return at >= s.gone[1] && at >= s.gone[2] && (late || at >= s.gone[0])
}

// The resolutions by level, from fine to coarse.
const (
	levels    = 4
	hourLevel = levels - 1
)

var resolutions = [levels]int64{int64(Tick), int64(TenSeconds), int64(Minute), int64(Hour)}

// level returns the place of a resolution in resolutions, -1 if it is none.
func level(r Resolution) int { return slices.Index(resolutions[:], int64(r)) }

// floor is the largest multiple of step that is not above at.
func floor(at, step int64) int64 {
	if rest := at % step; rest < 0 {
		return at - rest - step
	} else {
		return at - rest
	}
}
