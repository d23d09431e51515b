package api

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The resolutions that rows are stored in, the finest first.
var resolutions = []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour}

// The steps that are chosen from where none is given.
var steps = []time.Duration{
	time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
	time.Hour, 6 * time.Hour, 24 * time.Hour,
}

const (
	maxStep    = 31 * 24 * time.Hour
	autoPoints = 300  // points that a chosen step makes at most
	maxPoints  = 2000 // points of a series that may be asked for
	maxValues  = 50_000
	defaultAgo = time.Hour
)

// span is a range of start time, aligned outward to step.
type span struct {
	from, to         time.Time
	step, resolution time.Duration
}

func (s span) points() int64 { return int64(s.to.Sub(s.from) / s.step) }

// resolutionOf is the coarsest resolution that a step can be made of.
func resolutionOf(step time.Duration) time.Duration {
	for _, r := range slices.Backward(resolutions) {
		if step%r == 0 {
			return r
		}
	}
	return resolutions[0]
}

// align widens a range to multiples of step in Unix time.
func align(from, to time.Time, step time.Duration) (a, b time.Time) {
	s := int64(step / time.Second)
	lo, hi := from.Unix()/s*s, to.Unix()
	if to.Nanosecond() > 0 {
		hi++
	}
	hi = (hi + s - 1) / s * s
	return time.Unix(lo, 0).UTC(), time.Unix(hi, 0).UTC()
}

// span reads from, to and step. At most points points come of it; one point is of
// the whole range, whose step is then that of the alignment.
func (p *params) span(now time.Time, retention map[time.Duration]time.Duration) span {
	from := p.moment("from", now, now.Add(-defaultAgo))
	to := p.moment("to", now, now)
	given := p.seconds("step", maxStep)
	if !from.Before(to) {
		p.fault("from", clip(from.UTC().Format(time.RFC3339)), "a time before to ("+to.UTC().Format(time.RFC3339)+")")
		return span{now, now.Add(time.Second), time.Second, time.Second}
	}
	kept := func(step time.Duration) bool {
		r := resolutionOf(step)
		return retention[r] == 0 || !from.Before(now.Add(-retention[r]).Add(-step))
	}
	over := func(step time.Duration) span {
		a, b := align(from, to, step)
		return span{a, b, step, resolutionOf(step)}
	}
	if given > 0 {
		s := over(given)
		if n := s.points(); n > maxPoints {
			p.fault("step", fmt.Sprintf("%s, which makes %d points of the range", shortDuration(given), n),
				fmt.Sprintf("at most %d points: a longer step or a shorter range", maxPoints))
		} else if !kept(given) {
			p.fault("step", shortDuration(given)+", which needs rows that are no longer kept at from",
				"a multiple of a longer resolution, or a later from; kept are "+retained(retention))
		}
		return s
	}
	longest := steps[len(steps)-1]
	for _, step := range steps {
		most := int64(autoPoints)
		if step == longest {
			most = maxPoints
		}
		if s := over(step); s.points() <= most && kept(step) {
			return s
		}
	}
	if !kept(longest) {
		p.fault("from", clip(from.UTC().Format(time.RFC3339)), "a time of which rows are kept: "+retained(retention))
	} else {
		p.fault("from", fmt.Sprintf("a range of %s", shortDuration(to.Sub(from).Truncate(time.Hour))),
			fmt.Sprintf("at most %s", shortDuration(maxPoints*longest)))
	}
	return over(longest)
}

// retained says how long the rows of each resolution are kept.
func retained(retention map[time.Duration]time.Duration) string {
	var list []string
	for _, r := range resolutions {
		if retention[r] > 0 {
			list = append(list, shortDuration(r)+" rows for "+shortDuration(retention[r]))
		}
	}
	return strings.Join(list, ", ")
}
