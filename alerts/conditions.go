package alerts

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/targetside/auditor/aggregate/budget"
)

// What alerts compare with, beside what a site chooses. They are those of
// dashboards/rules where these have them.
const (
	// fewestRepeats is how many repeats are no accident of little traffic, in a budget
	// that counts them.
	fewestRepeats = 10
	// soon is the time to exhaustion that is called so, in seconds; soonOver is no
	// longer.
	soon, soonOver = 60, 120
	// beyondDeclared is how much more than the declared worst case is no rounding.
	beyondDeclared, withinDeclared = 1.1, 1.05
	// costly is the share of the time in system from which repeats cost something.
	costly = 0.1
	// deadShare is the share of answers for nobody, and deadRate how many of these a
	// second; below deadOver it is over.
	deadShare, deadOver, deadRate = 0.1, 0.05, 1.0
	// earlyShare is the share of answers with Retry-After after which somebody came too
	// early, and fewestEarly how many of them are no accident.
	earlyShare, earlyOver, fewestEarly = 0.1, 0.05, 20
	// fewestArrivals is how many arrivals, or records, a share is taken of.
	fewestArrivals = 100
	// mostUnread is the share of records that may be left unread.
	mostUnread = 0.01
	// lagging is how far behind is told, and holds back resolving; caughtUp is not.
	lagging, caughtUp = 30 * time.Second, 15 * time.Second
	// longestKnown is the longest live window: a budget's may be longer, and is taken
	// to be full then.
	longestKnown = 5 * time.Minute
	// sigmas is by how many standard deviations a share is below another so that it is
	// not by chance, and sigmasOver so that it may be.
	sigmas, sigmasOver = 3, 2
)

// timings of each alert. Those of dashboards/rules are of scrapes, and mostly longer.
// RetryBudgetLow does not wait: a budget is read over ten seconds, in which no blip is
// left, and in a burst of errors it is exhausted a second later.
var timings = map[string]timing{
	RetryBudgetLow:             {0, time.Minute},
	RetryBudgetExhausted:       {0, time.Minute},
	RetryBudgetExhaustsSoon:    {time.Second, time.Minute},
	AmplificationAboveDeclared: {time.Minute, time.Minute},
	DeadAnswers:                {2 * time.Second, time.Minute},
	CoverageTooLow:             {30 * time.Second, time.Minute},
	RetryAfterIgnored:          {time.Minute, time.Minute},
	AuditorBlind:               {30 * time.Second, time.Minute},
}

// observation is one look at the condition of one alert.
type observation struct {
	name   string
	labels map[string]string
	at     time.Time
	verdict
	value                float64
	summary, description string
}

// observe looks at everything that is known.
func observe(in *Input) (out []observation) {
	for i := range in.Dependencies {
		if in.Unknown {
			break
		}
		d := &in.Dependencies[i]
		look := &look{Input: in, d: d}
		for j := range d.Budgets {
			look.budget(&d.Budgets[j])
		}
		look.amplification()
		look.deadAnswers()
		look.retryAfter()
		look.coverage()
		look.blind()
		out = append(out, look.out...)
	}
	return append(out, observeSources(in)...)
}

// look looks at one dependency.
type look struct {
	*Input
	d   *Figures
	out []observation
}

func (l *look) add(name, severity string, v verdict, value float64, more ...string) *observation {
	labels := map[string]string{"dependency": l.d.Dependency, "severity": severity}
	for i := 0; i+1 < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	l.out = append(l.out, observation{name: name, labels: clean(labels), at: l.d.At, verdict: v, value: value})
	return &l.out[len(l.out)-1]
}

// bounded turns the verdict on a lower bound into what it says of the whole: that it
// is not reached there says nothing.
func bounded(v verdict, lower bool) verdict {
	if lower && v != yes {
		return unknown
	}
	return v
}

// missing says that repeats are missing in the figures of the dependency.
func (l *look) missing() bool { return l.Warming || l.d.ScopeSplit }

func (l *look) budget(b *Budget) {
	low, exhausted, soonGone := l.readBudget(b)
	where := SafeLabel(l.d.Dependency)
	if b.Route != "" {
		where += " " + SafeLabel(b.Route)
	}
	share := percent(b.Consumed)
	labels := []string{"model", b.Model, "route", b.Route}
	add := func(name, severity string, v verdict, value float64) *observation {
		return l.add(name, severity, v, value, labels...)
	}
	o := add(RetryBudgetLow, warning, low, b.Consumed)
	o.summary = fmt.Sprintf("%s: %s of the retry budget is spent", where, share)
	o.description = "Repeats have used much of what is allowed. If the dependency gets slower they rise by themselves."

	o = add(RetryBudgetExhaustsSoon, critical, soonGone, b.ExhaustsIn)
	o.summary = fmt.Sprintf("%s: the retry budget is spent in %.0f s", where, b.ExhaustsIn)
	o.description = fmt.Sprintf("%s of it is spent, and at the present slope repeats are above what is allowed within a minute.", share)

	value := b.Consumed
	if b.Some && math.IsNaN(value) {
		value = math.Inf(1)
	}
	o = add(RetryBudgetExhausted, critical, exhausted, value)
	o.summary = fmt.Sprintf("%s: the retry budget is spent (%s)", where, share)
	o.description = "More repeats arrive than are allowed."
}

func (l *look) readBudget(b *Budget) (low, exhausted, soonGone verdict) {
	if !b.Some {
		// With few arrivals there is no budget to spend; where the window is not full,
		// or not all of it is told, or too few questions are followed, or the log does not
		// give the times that are spent, that is not known.
		if b.Part || b.State == budget.Untimed || l.d.Known < min(b.Window, longestKnown) || l.d.SampleBits > 0 {
			return unknown, unknown, unknown
		}
		return no, no, no
	}
	used := b.Consumed
	if math.IsNaN(used) {
		used = math.Inf(1)
	}
	if b.Repeats && b.Spent < fewestRepeats {
		used = 0
	}
	over := func(limit, under float64) verdict {
		switch {
		case used >= limit:
			return yes
		case used < under:
			return no
		}
		return between
	}
	low, exhausted = over(l.Rules.Low, 0.8*l.Rules.Low), over(1, 0.9)
	switch {
	case used >= 1:
		soonGone = between // it is gone, which another alert says
	case used > 0 && b.ExhaustsIn > 0 && b.ExhaustsIn < soon:
		soonGone = yes
	case b.ExhaustsIn > 0 && b.ExhaustsIn < soonOver:
		soonGone = between
	default:
		soonGone = no
	}
	lower := l.missing() || b.State == budget.Blind
	return bounded(low, lower), bounded(exhausted, lower), bounded(soonGone, lower)
}

// deadAnswers looks at the last ten seconds: in an incident a minute is too long.
func (l *look) deadAnswers() {
	t := &l.d.Ten
	dead, answers := float64(t.DeadAnswers), float64(t.Answers)
	share := dead / max(answers, 1)
	v := between
	switch {
	case share > deadShare && dead > 10*deadRate:
		v = yes
	case share <= deadOver || dead <= 5*deadRate:
		v = no
	}
	seen := min(t.Visible, t.Arrivals-min(t.Unjudged, t.Arrivals)) // able to show a departure, and with no deadline that nobody can judge
	hidden := t.Arrivals > 0 && float64(seen) < l.Rules.VisibilityFloor*float64(t.Arrivals)
	o := l.add(DeadAnswers, critical, bounded(v, hidden || l.d.Known < 10*time.Second), share)
	o.summary = fmt.Sprintf("%s: %s of the answers are for callers who have left", SafeLabel(l.d.Dependency), percent(share))
	o.description = "The dependency works for nobody. It may do so without a single retry, when its queue is longer than its callers' patience."
}

func (l *look) retryAfter() {
	c := l.d.Closed
	if c == nil {
		return
	}
	early, asked := float64(c.RetryEarly), float64(c.RetryAsked)
	share := early / max(asked, 1)
	dark := c.Untimed > 0 && float64(c.Arrivals-min(c.Untimed, c.Arrivals)) < l.Rules.CoverageFloor*float64(c.Arrivals) // early rests on times
	v := between
	switch {
	case share > earlyShare && early > fewestEarly:
		v = yes
	case share <= earlyOver || early <= fewestEarly/2:
		v = no
	}
	o := l.add(RetryAfterIgnored, warning, bounded(v, l.missing() || dark), share)
	o.summary = fmt.Sprintf("%s: %s of those asked to wait come back too early", SafeLabel(l.d.Dependency), percent(share))
	o.description = fmt.Sprintf("Callers do not honour Retry-After: %.0f came back before the time that they were given.", early)
}

func (l *look) coverage() {
	t := &l.d.Minute
	v, share := l.below(t.Verified, t.Arrivals, l.Rules.CoverageExpected)
	o := l.add(CoverageTooLow, warning, v, share)
	o.summary = fmt.Sprintf("%s: only %s of arrivals carry a key that proves its author", SafeLabel(l.d.Dependency), percent(share))
	o.description = fmt.Sprintf("Fewer than the %s that are normal here. What arrives without one may be repeats that nobody can count.", percent(l.Rules.CoverageExpected))
}

// below says whether a share of the last minute is below what it should be, by more
// than chance makes it.
func (l *look) below(some, all uint64, want float64) (verdict, float64) {
	if all < fewestArrivals {
		if l.d.Known < time.Minute {
			return unknown, 0
		}
		return no, 0
	}
	n := float64(all)
	share, sigma := float64(some)/n, math.Sqrt(want*(1-want)/n)
	switch {
	case share < want-sigmas*sigma:
		return yes, share
	case share < want-sigmasOver*sigma:
		return between, share
	}
	return no, share
}

func (l *look) blind() {
	d := l.d
	add := func(reason string, v verdict, value float64, text string) {
		o := l.add(AuditorBlind, warning, v, value, "reason", reason)
		o.summary = fmt.Sprintf("%s: the auditor cannot see enough (%s: %.3g)", SafeLabel(d.Dependency), reason, value)
		o.description = text + " That no other alert fires says nothing."
	}
	v, share := l.below(d.Minute.Verified, d.Minute.Arrivals, l.Rules.CoverageFloor)
	add("coverage", v, share, "Too few arrivals carry a verified key: repeats cannot be counted, and figures are lower bounds.")
	v, share = l.below(d.Minute.Visible, d.Minute.Arrivals, l.Rules.VisibilityFloor)
	add("visibility", v, share, "Too few records can show that a caller left: answers for nobody cannot be counted.")
	if slices.ContainsFunc(d.Budgets, func(b Budget) bool { return b.Timed }) {
		v, share = l.below(d.Minute.Arrivals-min(d.Minute.Untimed, d.Minute.Arrivals), d.Minute.Arrivals, l.Rules.CoverageFloor)
		add("times", v, share, "Too few records have a duration, which is what the budget of concurrency is spent in: what is spent of it is not known, or a lower bound.")
	}
	v, share = no, 0
	if all := l.Read + l.Lost; all >= fewestArrivals {
		if share = float64(l.Lost) / float64(all); share > mostUnread {
			v = yes
		}
	}
	add("unread", v, share, "Records are quarantined, or were deleted before they were read.")
	v = no
	value := 0.0
	if d.ScopeSplit {
		v, value = yes, 1
	}
	add("scope_split", v, value, "One question was seen in two scopes: repeats are missing.")
}

// observeSources looks at what is of no dependency.
func observeSources(in *Input) (out []observation) {
	add := func(reason, source string, v verdict, value float64, summary, text string) {
		out = append(out, observation{
			name: AuditorBlind, labels: clean(map[string]string{"severity": warning, "reason": reason, "source": source}), at: in.Now, verdict: v, value: value,
			summary: summary, description: text,
		})
	}
	for i := range in.Sources {
		s := &in.Sources[i]
		v := no
		switch {
		case s.Behind && s.Lag > lagging:
			v = yes
		case s.Behind && s.Lag > caughtUp:
			v = between
		}
		add("lag", s.Name, bounded(v, s.Failed), s.Lag.Seconds(),
			fmt.Sprintf("%s: the auditor is %.0f s behind", SafeLabel(s.Name), s.Lag.Seconds()),
			"What is shown is that old, and nothing is resolved meanwhile. It catches up by itself once it is faster than what comes.")
		v, value := no, 1.0
		if s.Failed {
			v, value = yes, 0
		}
		add("source", s.Name, v, value, SafeLabel(s.Name)+": the auditor cannot read it", "A source has failed; its error stands in /api/v1/sources.")
	}
	v, value := no, float64(len(in.Missing))
	which := ""
	if len(in.Missing) > 0 {
		v, which = yes, SafeLabel(strings.Join(in.Missing, ", "))
	}
	add("scopes", "", v, value, fmt.Sprintf("%d partitions are counted by no instance: %s", len(in.Missing), which),
		"Their figures are those of when one did, and nothing is resolved meanwhile. An instance is gone and its partitions are not taken over, or not read again as far as now.")
	v, value = no, 0.0
	if in.Store {
		v, value = yes, 1
	}
	add("store", "", v, value, "the auditor cannot store what it counts", "Live figures go on and nothing is lost, but no position is committed, and stored figures are old.")
	return out
}

// held says that a source is so far behind, or fails, or that so much is missing, that
// what does not show may be there all the same.
func (in *Input) held() bool {
	if len(in.Missing) > 0 {
		return true
	}
	for i := range in.Sources {
		if s := &in.Sources[i]; s.Failed || s.Behind && s.Lag > lagging {
			return true
		}
	}
	return false
}

func percent(share float64) string {
	if math.IsNaN(share) || math.IsInf(share, 1) { // of nothing that was allowed
		return "more than all"
	}
	if share >= 1 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return fmt.Sprintf("%.3g %%", 100*share)
}
