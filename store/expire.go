package store

import (
	"fmt"
	"math"
	"time"
)

// questionLevel is the level whose retention questions have: like rows of ten
// seconds they are for looking at an incident closely, soon after it.
const questionLevel = 1

// cutoffs returns, by level, the time before which rows have expired; never where
// there is no retention, and all rows are kept.
func cutoffs(now time.Time, retention map[Resolution]time.Duration) ([levels]int64, error) {
	ends := [levels]int64{never, never, never, never}
	for r, d := range retention {
		i := level(r)
		if i < 0 {
			return ends, fmt.Errorf("store: retention of rows of %d s: there are none", r)
		}
		if d <= 0 {
			return ends, fmt.Errorf("store: retention of rows of %d s is %v: it must be more than nothing", r, d)
		}
		ends[i] = now.Add(-d).Unix()
	}
	return ends, nil
}

// expire moves what is gone of a scope up to the ends of retention, and says
// whether that changed anything.
//
// Rows that coarser ones are still to be made of are kept, however old: those of
// buckets that are not closed. Otherwise a reader that lags behind by more than
// the retention would lose what it has just written. They go all the same once
// even a row of an hour would have expired: then nobody works on the scope.
func (s *state) expire(ends [levels]int64) (changed bool) {
	for i, end := range ends {
		if end == never {
			continue
		}
		coarser := resolutions[min(i+1, levels-1)]
		to := floor(end, coarser)
		if hours := ends[levels-1]; i+1 < levels && s.closed() == never {
			if hours == never {
				continue
			}
			to = min(to, floor(hours, coarser))
		} else if i+1 < levels && hours < s.made {
			made := s.made
			if i == hourLevel-1 {
				made = s.hours
			}
			to = min(to, floor(made, coarser))
		}
		if to > s.gone[i] {
			s.gone[i], changed = to, true
		}
	}
	if gone := s.gone[hourLevel-1]; s.hours != never && gone > floor(s.hours, int64(Hour)) {
		s.hours, s.hourSeries = gone, 0
	}
	// Rules whose rows are all gone have nothing to say any more, unless they are
	// in force or above those that are.
	now := s.inForce()
	kept := s.eras[:0]
	for _, e := range s.eras {
		if now != nil && e.rules < now.rules && e.top <= s.oldest() {
			changed = true
			continue
		}
		kept = append(kept, e)
	}
	s.eras = kept
	return changed
}

// oldest is the tick before which there are neither ticks nor late rows.
func (s *state) oldest() int64 {
	if s.gone[0] == never || s.gone[1] == never {
		return math.MinInt64
	}
	return min(s.gone[0], s.gone[1])
}
