package alerts

import (
	"fmt"

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
	share := 0.0
	if c.BusySeconds > 0 {
		share = c.RepeatSeconds / c.BusySeconds
	}
	tooMany := plan.CapacityPerSecond != nil && rate > *plan.CapacityPerSecond
	switch {
	case share >= costly || tooMany:
		costs = v
	case share >= costly/2 && v != no:
		costs = between
	}
	summary := fmt.Sprintf("%s: %.3g arrivals per question, where the declared policy makes %.3g at most (%.3g times as many)",
		SafeLabel(l.d.Dependency), measured, worst, measured/worst)
	side := l.side(plan)
	o := l.add(AmplificationAboveDeclared, warning, bounded(v, l.missing()), measured)
	o.summary = summary
	o.description = side + fmt.Sprintf(" Repeats take %s of the time in system.", percent(share))

	o = l.add(AmplificationAboveDeclared, critical, bounded(costs, l.missing()), measured)
	o.summary = summary
	o.description = side + fmt.Sprintf(" It costs: repeats take %s of the time in system", percent(share))
	if tooMany {
		o.description += fmt.Sprintf(", and %.4g arrivals/s are more than the declared capacity of %.4g", rate, *plan.CapacityPerSecond)
	}
	o.description += "."
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
