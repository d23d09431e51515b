package pipeline

import (
	"fmt"
	"time"
)

// stallMargin is how much longer than a lateness and the time of idleness seconds may
// stay open, or closed and not stored.
const stallMargin = 30 * time.Second

// stalled says what the scope's ticks wait for that should long have been stored,
// empty if none do. While all partitions are idle nothing has to close. The scope is
// locked.
func (s *scope) stalled(now time.Time) string {
	lateness := s.live.cfg.Lateness
	low, high, idle := (*livePart)(nil), int64(noTick), true
	for _, name := range sortedKeys(s.parts) {
		if p := s.parts[name]; p.assigned {
			if low == nil || p.mark < low.mark {
				low = p
			}
			high = max(high, p.mark)
			idle = idle && p.idle(now, s.live.cfg.Idle)
		}
	}
	if high == noTick || idle && s.closed <= s.stored || s.stored > (high-int64(lateness))/1e9 {
		s.moved = now
		return ""
	}
	if now.Sub(s.moved) < lateness+s.live.cfg.Idle+stallMargin {
		return ""
	}
	if s.anew && s.stored != noTick && s.since != s.rules {
		return "no second is stored since the configuration changed: positions cannot be kept, see the sources"
	}
	since := s.moved.UTC().Format(time.TimeOnly)
	if s.closed > s.stored {
		return fmt.Sprintf("no second is stored since %s, though records come and seconds close: the store does not answer", since)
	}
	upTo := "none of its records is read"
	if low.mark != noTick {
		upTo = "it is read up to " + time.Unix(0, low.mark).UTC().Format(time.RFC3339)
	}
	why := "and there may be more in it that is not read"
	switch {
	case low.decided != nil:
		why = "and that it is idle could not be kept as its position"
	case len(low.raised) >= maxRaised:
		why = "and it was taken to be idle too often since its position last moved"
	case low.idle(now, s.live.cfg.Idle):
		why = "and it is idle"
	}
	return fmt.Sprintf("no second closes since %s, though records come: %s holds them open; %s, %s", since, low.Name, upTo, why)
}
