package alerts

import "time"

// verdict is what one look says of a condition.
type verdict int8

const (
	// unknown is a condition that does not show, and of which that says nothing.
	unknown verdict = iota
	no
	// between is neither high enough to fire nor low enough to resolve.
	between
	yes
)

// timing is how long a condition holds before its alert fires, and how long it must
// not hold before that is resolved, both in log time.
type timing struct{ hold, keep time.Duration }

// episode is one alert while it is not inactive.
type episode struct {
	Alert
	timing
	began time.Time // when the condition began to hold, in log time, which may be a little ahead
	clear time.Time // since when the condition does not hold; zero: it does, or that is not known
	holds bool      // the condition held at the last look
	seen  time.Time // by the wall clock: when it was last looked at with figures of then
}

// step looks once more; ended is what an episode comes to that was firing: Resolved
// where all is seen, else nothing. It reports whether the episode goes on.
func (e *episode) step(v verdict, at, now time.Time, ended State) bool {
	e.holds = v == yes
	if e.State == Resolved {
		if v != yes {
			return now.Sub(e.Ended) < resolvedFor
		}
		e.begin(at, now)
	}
	switch {
	case v == yes:
		e.clear = time.Time{}
		if at.Before(e.began) && e.State == Pending { // the log is read again
			e.began, e.Since = at, earlier(at, now)
		}
		if e.State == Pending && at.Sub(e.began) >= e.hold {
			e.State, e.Fired = Firing, earlier(at, now)
		}
	case e.State == Pending:
		return false
	case v != no:
		e.clear = time.Time{}
	default:
		if e.clear.IsZero() || at.Before(e.clear) {
			e.clear = at
		}
		if at.Sub(e.clear) >= e.keep {
			e.State, e.Ended, e.Inhibited = ended, now, false
			return ended != ""
		}
	}
	return true
}

// begin begins an episode of an alert whose condition holds.
func (e *episode) begin(at, now time.Time) {
	e.began = at
	e.State, e.Since, e.Fired, e.Ended, e.clear = Pending, earlier(at, now), time.Time{}, time.Time{}, time.Time{}
	e.Told, e.Inhibited = false, false
}

// earlier is the earlier of two times: nobody is told of a time that has not come yet.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
