package alerts

import (
	"fmt"
	"strings"

	"github.com/targetside/auditor/aggregate/budget"
)

// amplification compares what one question costs with what the declared policy can
// make of it at most. Above that is a layer that is not on the drawing: a warning, and
// critical in addition where repeats take a part of the time in system or the
// arrivals are more than the declared capacity.
func (l *look) amplification() {
	c, plan := l.d.Closed, l.Rules.Declared
	if c == nil || plan == nil || plan.WorstCase == nil {
		return
	}
	worst := *plan.WorstCase
	v, costs, measured := no, no, 0.0
	if c.Questions > 0 && c.Questions >= uint64(l.Rules.MinArrivals) {
		measured = float64(c.Verified+c.Claimed) / float64(c.Questions)
		switch {
		case measured > worst*beyondDeclared:
			v = yes
		case measured > worst*withinDeclared:
			v = between
		}
	}
	rate := float64(c.Arrivals) / max(c.Span.Seconds(), 1)
	share, timing := 0.0, l.timing()
	if c.BusySeconds > 0 {
		share = c.RepeatSeconds / c.BusySeconds
	}
	tooMany := plan.CapacityPerSecond != nil && rate > *plan.CapacityPerSecond
	switch {
	case tooMany, timing != budget.TimesUnknown && share >= costly:
		costs = v
	case timing != budget.TimesKnown && v != no:
		costs = unknown
	case share >= costly/2 && v != no:
		costs = between
	}
	summary := fmt.Sprintf("%s: %.3g arrivals per question, where the declared policy makes %.3g at most (%.3g times as many)",
		SafeLabel(l.d.Dependency), measured, worst, measured/worst)
	side := l.side(plan)
	cost := fmt.Sprintf("repeats take %s of the time in system", percent(share))
	switch timing {
	case budget.TimesLow:
		cost = fmt.Sprintf("repeats take at least %s of the time in system (of too few is it known)", percent(share))
	case budget.TimesUnknown:
		cost = "what part of the time in system repeats take is not known, for want of durations in the log"
	}
	o := l.add(AmplificationAboveDeclared, warning, bounded(v, l.missing()), measured)
	o.summary = summary
	o.description = side + " " + strings.ToUpper(cost[:1]) + cost[1:] + "."

	o = l.add(AmplificationAboveDeclared, critical, bounded(costs, l.missing()), measured)
	o.summary = summary
	o.description = side + " It costs: " + cost
	if tooMany {
		o.description += fmt.Sprintf(", and %.4g arrivals/s are more than the declared capacity of %.4g", rate, *plan.CapacityPerSecond)
	}
	o.description += "."
}

// timing is what is known of the times of arrivals in the closed window. Taken as 0, what
// is not known would make every repeat cheap.
func (l *look) timing() budget.Timing {
	t := &l.d.Closed.Totals
	c := budget.Counts{Arrivals: t.Arrivals, Repeats: t.Repeats, Untimed: t.Untimed, UntimedRepeats: t.UntimedRepeats}
	return c.Timing(l.Rules.CoverageFloor)
}

// side says on which side of the neighbour the arrivals multiply beyond what is
// declared, as far as attempt numbers tell.
func (l *look) side(plan *budget.Plan) string {
	h := &l.d.Closed.Hops
	adjacent, ok := h.Adjacent.Value()
	above, known := h.Above.Value()
	if !ok || !known || len(plan.Layers) == 0 {
		why := "no_attempt_numbers"
		if h.Reason != nil {
			why = *h.Reason
		}
		return "A layer retries that is not on the drawing; which side of the neighbour cannot be said (" + why + ")."
	}
	last := &plan.Layers[len(plan.Layers)-1]
	others := *plan.WorstCase / last.Factor
	mine, theirs := adjacent > last.Factor*withinDeclared, above > others*withinDeclared
	figures := fmt.Sprintf("the neighbour makes %.3g attempts (declared for %s: %.3g), and %.3g calls reach it per question (declared: %.3g)",
		adjacent, last.Name, last.Factor, above, others)
	switch {
	case mine && theirs:
		return "Both sides of the neighbour retry more than declared: " + figures + "."
	case mine:
		return "The neighbour itself retries more than declared: " + figures + "."
	case theirs:
		return "What is above the neighbour retries more than declared: " + figures + "."
	}
	return "Neither side alone is above what is declared: " + figures + "."
}
