package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// usualOver is how many seconds without a storm the usual load factor is the median
// of, and leastUsual how many it takes for one, as in the live verdict.
const usualOver, leastUsual = 600, 60

// mostStorms is how many storms are told one by one.
const mostStorms = 5

// episode is a storm: a run of windows whose load factor is a storm's by the rule of the verdict:
// more than budget.StormAbove times the usual, which is what was chosen or the median of
// the ten minutes without a storm before, if that is more. The live verdict asks that
// each second, in log time, of a budget's window; this asks it of the report's own
// windows, so that a storm begins and ends on their edges.
type episode struct {
	from, to int64             // Unix seconds
	first    *aggregate.Window // which it begins with
	worst    *aggregate.Window // with the largest load factor
	after    *aggregate.Window // which ended it; nil if that is not known
	usual    float64           // what the first was compared with
}

// stormsOf finds the storms of a report, and how many windows could be judged.
func stormsOf(r *aggregate.Report, rules budget.Rules) (storms []episode, judged int) {
	type past struct {
		factor  float64
		seconds int64
	}
	var quiet []past // without a storm, the newest last
	for i := range r.Windows {
		w := &r.Windows[i]
		from, to, ok := spanOf(w)
		if !ok || w.Attributable == 0 || w.Arrivals < uint64(rules.MinArrivals) {
			continue
		}
		judged++
		usual, seconds := rules.Chosen, int64(0)
		for _, p := range quiet {
			seconds += p.seconds
		}
		if seconds >= leastUsual {
			byFactor := slices.Clone(quiet)
			slices.SortFunc(byFactor, func(a, b past) int { return cmp.Compare(a.factor, b.factor) })
			half := int64(0)
			for _, p := range byFactor {
				if half += p.seconds; 2*half >= seconds {
					usual = max(usual, p.factor)
					break
				}
			}
		}
		load := loadOf(w)
		n := len(storms) - 1
		goesOn := n >= 0 && storms[n].to == from
		if load <= budget.StormAbove*usual {
			if goesOn {
				storms[n].after = w
			}
			quiet = append(quiet, past{load, to - from})
			for seconds += to - from; len(quiet) > 1 && seconds-quiet[0].seconds >= usualOver; {
				seconds -= quiet[0].seconds
				quiet = quiet[1:]
			}
			continue
		}
		if goesOn {
			s := &storms[n]
			s.to = to
			if load > loadOf(s.worst) {
				s.worst = w
			}
			continue
		}
		storms = append(storms, episode{from: from, to: to, first: w, worst: w, usual: usual})
	}
	return storms, judged
}

// loadOf is the load factor of a window with attributable arrivals; without an
// original it has no end.
func loadOf(w *aggregate.Window) float64 {
	if w.Originals == 0 {
		return math.Inf(1)
	}
	return float64(w.Attributable) / float64(w.Originals)
}

// course says when it began, when it was worst, and when it ended.
func course(r *aggregate.Report, o renderOptions) section {
	m := &r.Total
	if m.Arrivals == 0 || o.Rules.Chosen == 0 {
		return section{}
	}
	s := section{title: "Onset, peak and end", early: true}
	storms, judged := stormsOf(r, o.Rules)
	enough := "a window needs " + whole(uint64(o.Rules.MinArrivals)) + " arrivals"
	covered := of(m.Attributable, m.Arrivals, percent)
	switch {
	case m.Attributable == 0:
		s.lines = append(s.lines, "Whether there was a storm cannot be said: no arrival could be attributed to a question.")
	case judged == 0:
		s.lines = append(s.lines, "Whether there was a storm cannot be said: "+enough+", and none has as many.")
	case len(storms) == 0:
		s.lines = append(s.lines, fmt.Sprintf("No window has the load factor of a storm: none is above %s times the usual, by the %s of arrivals that could be attributed.",
			number(budget.StormAbove), covered))
	case len(storms) == 1:
		s.lines = append(s.lines, "One storm, from "+between(storms[0].from, storms[0].to)+".")
	default:
		s.lines = append(s.lines, fmt.Sprintf("%s storms, the first from %s.", whole(uint64(len(storms))), between(storms[0].from, storms[0].to)))
	}
	if m.Attributable > 0 && float64(m.Verified) < o.Rules.CoverageFloor*float64(m.Arrivals) {
		s.lines = append(s.lines, fmt.Sprintf("Blind: keys prove %s of arrivals, and %s are wanted; what could not be attributed may hide a storm, or make one look smaller.",
			of(m.Verified, m.Arrivals, percent), percent(o.Rules.CoverageFloor)))
	}
	t := &table{columns: []column{{"moment", words}, {"UTC", words}, {"load f.", figures}, {"arrivals/s", figures}, {"originals/s", figures}, {"coverage", figures}}}
	add := func(what string, w *aggregate.Window, at int64) {
		from, to, _ := spanOf(w)
		originals := number(float64(w.Originals) / float64(to-from))
		if w.Attributable == 0 {
			originals = unknown
		}
		t.add(what, time.Unix(at, 0).UTC().Format("01-02 15:04:05"), loadText(w), number(float64(w.Arrivals)/float64(to-from)), originals, of(w.Attributable, w.Arrivals, percent))
	}
	_, end, _ := rangeOf(r)
	for i, x := range storms[:min(len(storms), mostStorms)] {
		which := ""
		if len(storms) > 1 {
			which = fmt.Sprintf("storm %d: ", i+1)
		}
		worst, _, _ := spanOf(x.worst)
		add(which+"onset", x.first, x.from)
		add(which+"worst", x.worst, worst)
		switch {
		case x.after != nil:
			add(which+"end", x.after, x.to)
		case x.to >= end:
			s.notes = append(s.notes, "The log ends within a storm: its end is not known.")
		default:
			s.notes = append(s.notes, "What follows on "+between(x.from, x.to)+" is too little to be judged: whether the storm ended then is not known.")
		}
	}
	if w := busiest(r); w != nil {
		from, _, _ := spanOf(w)
		add("most arrivals", w, from)
	}
	if len(t.rows) > 0 {
		s.table = t
		if len(storms) > 0 {
			s.notes = append(s.notes, fmt.Sprintf("A storm is a load factor above %s times the usual: %s before the first one, which is what was chosen or the median of ten minutes without a storm, if that is more. Worst is the window with the largest. Moments are the beginnings of windows, of start time; %s.",
				number(budget.StormAbove), factor(storms[0].usual), enough))
		}
	}
	if n := len(storms) - mostStorms; n > 0 {
		s.notes = append(s.notes, "Not shown: "+whole(uint64(n))+" more storms.")
	}
	if len(r.Dependencies) > 1 {
		s.notes = append(s.notes, "Of all dependencies together, in which the storm of one is less plain.")
	}
	return s
}

// loadText prints the load factor of a window.
func loadText(w *aggregate.Window) string {
	if w.Attributable > 0 && w.Originals == 0 {
		return "unbounded"
	}
	return show(w.LoadFactor, factor)
}

// busiest is the window with the most arrivals a second.
func busiest(r *aggregate.Report) (most *aggregate.Window) {
	var rate float64
	for i := range r.Windows {
		w := &r.Windows[i]
		if from, to, ok := spanOf(w); ok && float64(w.Arrivals)/float64(to-from) > rate {
			most, rate = w, float64(w.Arrivals)/float64(to-from)
		}
	}
	return most
}

// alarms says what the budget's alerts would have said, and when: by dependency, as they
// are asked, and for routes that have a budget of their own. What they wait for before
// they tell anybody is not in it.
func alarms(r *aggregate.Report, o renderOptions) section {
	if r.Total.Attributable == 0 || o.Budget.Grant == nil {
		return section{}
	}
	s := section{title: "What the budget's alerts would have said", early: true}
	t := &table{columns: []column{{"budget of", name}, {"exhausted, UTC", words}, {"spent at most", figures}, {"of allowed", spare}, {"verified", figures}, {"alert", words}}}
	blinded, dark := false, false
	add := func(who string, m *aggregate.Measure) {
		b, at, spent, allowed, alert := &m.Budget, unknown, unknown, unknown, "none: it cannot be read"
		dark = dark || untimed(m)
		if peak, ok := b.PeakConsumed.Value(); ok && b.State != nil && m.Attributable > 0 {
			at, spent, allowed, alert = "never", show(b.PeakConsumed, percent), show(b.Spent, number)+" of "+show(b.Allowance, number), "none"
			switch {
			case b.ExhaustedAt != nil:
				at, alert = strings.TrimSuffix(moment(*b.ExhaustedAt), " UTC"), "RetryBudgetExhausted"
			case peak >= o.Budget.Low:
				alert = "RetryBudgetLow"
			}
			if blind(b) {
				blinded = true
				spent += " blind"
			}
		}
		t.add(who, at, spent, allowed, of(m.Verified, m.Arrivals, percent), alert)
	}
	for i := range r.Dependencies {
		d := &r.Dependencies[i]
		add(d.Name, &d.Measure)
		for j := range d.Routes {
			if o.RouteBudgets[d.Routes[j].Name] != nil {
				add(d.Routes[j].Name, &d.Routes[j].Measure)
			}
		}
	}
	if n := len(t.rows) - mostRows; n > 0 {
		t.rows = t.rows[:mostRows]
		s.notes = append(s.notes, "Not shown: "+whole(uint64(n))+" more budgets.")
	}
	s.table = t
	if over := windowsSpent(r); len(r.Dependencies) == 1 && over.n > 0 {
		s.lines = append(s.lines, fmt.Sprintf("All of the budget was spent in %s of %s windows, the first from %s and the last until %s.", whole(uint64(over.n)), whole(uint64(len(r.Windows))),
			time.Unix(over.from, 0).UTC().Format("15:04:05"), time.Unix(over.to, 0).UTC().Format("15:04:05")))
	}
	s.notes = append(s.notes, fmt.Sprintf("RetryBudgetLow is about %s spent or more, RetryBudgetExhausted about all of it, in %s of log time with at least %s arrivals. How long that has to last before anybody is told is not reckoned with.",
		percent(o.Budget.Low), length(int64(o.Budget.Window)), whole(uint64(o.Budget.MinArrivals))))
	if blinded {
		s.notes = append(s.notes, fmt.Sprintf("Blind: fewer than %s of the arrivals in that window were verified, so that more may have been spent. AuditorBlind asks for that, too.", percent(o.Budget.CoverageFloor)))
	}
	if dark {
		s.notes = append(s.notes, fmt.Sprintf("A budget of concurrency is spent in times in system, which the log does not give of all arrivals: where it gives fewer than %s of them the budget is blind or cannot be read, and more may have been spent. AuditorBlind asks for that, too.", percent(o.Budget.CoverageFloor)))
	}
	return s
}

// stretch is how many windows have something in common, and when.
type stretch struct {
	n        int
	from, to int64
}

// windowsSpent finds the windows in which all of the budget was spent.
func windowsSpent(r *aggregate.Report) (out stretch) {
	for i := range r.Windows {
		w := &r.Windows[i]
		from, to, ok := spanOf(w)
		if v, some := w.Budget.PeakConsumed.Value(); !ok || !some || v < 1 {
			continue
		}
		if out.n == 0 {
			out.from = from
		}
		out.n, out.to = out.n+1, to
	}
	return out
}

// excessOf is repeats beyond the allowance of a part: the granted ratio of its own
// originals. A floor is granted to a dependency or a route as a whole: it counts for
// those, and is not dealt out among other parts. The excess is not known where no ratio
// is granted, nor without attributable arrivals.
func excessOf(r *aggregate.Report, model *budget.Model, whole bool, m *aggregate.Measure) (float64, bool) {
	ratio, ok := model.Grant.(budget.Ratio)
	if !ok || m.Attributable == 0 {
		return 0, false
	}
	allowed := ratio.Ratio * float64(m.Originals)
	if from, to, ok := rangeOf(r); whole && ok {
		allowed += ratio.FloorPerSecond * float64(ratio.Clients) * float64(to-from)
	}
	return float64(m.Repeats) - allowed, true
}
