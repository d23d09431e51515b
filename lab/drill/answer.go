package drill

import (
	"fmt"
	"strings"
	"time"
)

// Schema names the shape of a Report.
const Schema = "auditor.drill/1"

// Report is what a drill saw, and what follows.
type Report struct {
	Schema     string    `json:"schema"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Upstream   string    `json:"upstream"`
	Dependency string    `json:"dependency"`
	Fault      string    `json:"fault"`
	Route      string    `json:"route"`
	Control    string    `json:"control,omitempty"`
	Whole      bool      `json:"whole"` // all steps were played to their end
	// Requests are all that were seen between From and To, Unjudged those of them that
	// were too many to be judged.
	Requests int `json:"requests"`
	Unjudged int `json:"unjudged"`
	// Attempts is how many arrivals questions of the route come to, at most: of all but
	// one in a hundred. 0: none of them failed.
	Attempts int          `json:"attempts"`
	Steps    []StepReport `json:"steps"` // that began
	Answers  Answers      `json:"answers"`
}

// StepReport is one step.
type StepReport struct {
	Share   float64   `json:"share"` // of the route's requests that are chosen; 0: traffic as it is
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Route   Figures   `json:"route"`
	Control *Figures  `json:"control,omitempty"`
	// Limited says that fewer repeats arrived than failures asked for; null where these
	// are too few to say.
	Limited *bool `json:"limited"`
}

// Answers are what a drill is made for. The kinds are constants of this package; an
// answer that figures do not bear out is Unclear, and says why.
type Answers struct {
	Ceiling Answer      `json:"ceiling"`
	Scope   Answer      `json:"scope"`
	Spent   Answer      `json:"once_spent"`
	Alert   AlertAnswer `json:"alert"`
}

// Answer is one, in a word, and in a sentence with its figures.
type Answer struct {
	Kind string   `json:"kind"`
	Says string   `json:"says"`
	Is   *float64 `json:"is"` // the figure of the kind, null where it has none
}

// The kinds of answers.
const (
	Unclear = "unclear"

	PerCall  = "per_call"      // ceiling: Is attempts for each call
	Share    = "share"         // ceiling: Is repeats per question, at which they stay
	NoRepeat = "no_repeats"    // ceiling: Is 0
	Own      = "per_route"     // scope: the other route keeps its repeats; Is the share of them that it keeps
	Shared   = "shared"        // scope: it loses them; Is the share that it keeps
	NotAsked = "not_asked"     // no control was named, or no auditor
	Never    = "never_spent"   // nothing ran out; of once_spent: they keep retrying
	FailFast = "fails_fast"    // once_spent: Is the share of failures that no repeat follows
	Queues   = "queues"        // once_spent: Is within how many seconds nine of ten repeats come
	Before   = "before"        // alert: Is the seconds by which it led
	After    = "after"         // alert: Is the seconds by which it came too late
	NoAlert  = "none"          // alert: none in the whole drill
	Off      = "not_evaluated" // alert: that auditor evaluates none
)

// What it takes to say something.
const (
	enough        = 20   // failures that a repeat could follow
	enoughControl = 10   // and of the control, in all such steps together
	bounded       = 0.9  // fewer repeats for each such failure than this are a bound
	plateau       = 1.25 // the largest of the bounded ratios over the least
	alike         = 0.15 // between shares of failures that are followed
	itself        = 0.02 // of what passed to the dependency, more may not fail by itself
	rise          = 1.3  // of questions per second over those of the first hold
	longer        = 3    // times the usual delay are a queue
)

// Report judges what was seen up to now, and closes the book: what comes later is
// recorded and no longer judged.
func (p *Proxy) Report() *Report {
	p.mu.Lock()
	begun := p.begun
	p.mu.Unlock()
	now := time.Now()
	since := now.Sub(begun)
	plan := &p.plan
	r := &Report{Schema: Schema, From: begun.UTC(), To: now.UTC(), Upstream: plan.Upstream.Host, Dependency: plan.Dependency,
		Fault: plan.Fault.String(), Route: plan.Route.String(), Control: plan.Control.String(), Whole: since >= plan.Lasts()}
	steps := len(plan.Steps) + 2
	seconds := make([]float64, steps)
	for i := range steps {
		from, to := plan.span(i)
		if i > 0 && since <= from {
			break // interrupted before it began
		}
		if i == steps-1 || since < to { // the last goes on until now
			to = since
		}
		seconds[i] = (to - from).Seconds()
		r.Steps = append(r.Steps, StepReport{Share: plan.share(i), From: begun.Add(from).UTC(), To: begun.Add(to).UTC()})
	}
	route, most := p.book.judge(ofRoute, seconds)
	control, _ := p.book.judge(ofControl, seconds)
	r.Attempts = most
	p.book.mu.Lock()
	p.book.closed = true
	r.Unjudged = p.book.unjudged
	for i := range p.book.counts {
		for of := range p.book.counts[i] {
			r.Requests += p.book.counts[i][of].arrivals
		}
	}
	p.book.mu.Unlock()
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Route = route[i]
		if plan.Control.Prefix != "" {
			s.Control = &control[i]
		}
		if f := &s.Route; s.Share > 0 && f.Could >= enough {
			limited := float64(f.Repeats) < bounded*float64(f.Could)
			s.Limited = &limited
		}
	}
	j := judge{r: r, began: seconds[0]}
	r.Answers.Ceiling, r.Answers.Spent, r.Answers.Scope = j.ceiling(), j.spent(), j.scope(plan)
	return r
}

// RanOut is when a failure was first left without the repeat that a smaller share of
// failures would have had; zero if it never was.
func (r *Report) RanOut() (at time.Time) {
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Limited == nil || !*s.Limited {
			continue
		}
		if at = s.Route.first; at.IsZero() { // all were followed, late
			at = s.From
		}
		return at.UTC()
	}
	return at
}

// judge answers from figures.
type judge struct {
	r     *Report
	began float64 // seconds of the first hold
}

// judged are the steps with enough failures, and those of them that are limited.
func (j *judge) judged() (all, limited []*StepReport) {
	for i := range j.r.Steps {
		s := &j.r.Steps[i]
		if s.Limited == nil {
			continue
		}
		all = append(all, s)
		if *s.Limited {
			limited = append(limited, s)
		}
	}
	return all, limited
}

func (f *Figures) follow() float64 { return float64(f.Followed) / float64(f.Could) }

func list(steps []*StepReport, of func(*Figures) *float64) string {
	var out []string
	for _, s := range steps {
		if v := of(&s.Route); v != nil {
			out = append(out, fmt.Sprintf("%.2f", *v))
		}
	}
	return strings.Join(out, ", ")
}

func unclear(format string, args ...any) Answer {
	return Answer{Kind: Unclear, Says: fmt.Sprintf(format, args...)}
}

func number(v float64) *float64 { return &v }

// ceiling says what bounds repeats: a count for each call, or a share of traffic.
func (j *judge) ceiling() Answer {
	if a := j.unfit(); a != nil {
		return *a
	}
	if j.r.Attempts == 1 {
		return Answer{Kind: NoRepeat, Is: number(0), Says: "no failure was followed by a repeat"}
	}
	all, limited := j.judged()
	if len(all) == 0 {
		return unclear("fewer than %d failures in any step: more traffic, longer steps, or larger ones", enough)
	}
	ratios := list(all, func(f *Figures) *float64 { return f.RepeatsPerQuestion })
	counted := list(all, func(f *Figures) *float64 { return f.IfCounted })
	if len(limited) == 0 {
		return Answer{Kind: PerCall, Is: number(float64(j.r.Attempts)),
			Says: fmt.Sprintf("a count: %d attempts for each call, however many fail; %s repeats per question, where that count makes %s", j.r.Attempts, ratios, counted)}
	}
	least, most := 1.0, 0.0
	for _, s := range all {
		least, most = min(least, s.Route.follow()), max(most, s.Route.follow())
	}
	low, high, sum, n := *limited[0].Route.RepeatsPerQuestion, 0.0, 0, 0
	for _, s := range limited {
		low, high = min(low, *s.Route.RepeatsPerQuestion), max(high, *s.Route.RepeatsPerQuestion)
		sum, n = sum+s.Route.Repeats, n+s.Route.Questions
	}
	flat := high <= plateau*low
	switch {
	case len(limited) > 1 && flat:
		b := float64(sum) / float64(n)
		return Answer{Kind: Share, Is: &b, Says: fmt.Sprintf("a share of traffic: %.2f repeats per question, %.2f of all arrivals, where a count of %d attempts would make %s", b, b/(1+b), j.r.Attempts, list(limited, func(f *Figures) *float64 { return f.IfCounted }))}
	case len(all) > 1 && most-least < alike:
		return unclear("a repeat follows %.0f to %.0f %% of failures, however many there are: callers differ, and are to be drilled one at a time", 100*least, 100*most)
	case len(limited) == 1:
		return unclear("%.2f repeats per question in the one step in which something bounded them: steps between are to show whether they stay there", high)
	}
	return unclear("bounded, at %.2f to %.2f repeats per question from step to step: neither a count nor one share", low, high)
}

// unfit says why figures would mislead.
func (j *judge) unfit() *Answer {
	var keyless, arrivals int
	for i := range j.r.Steps {
		keyless, arrivals = keyless+j.r.Steps[i].Route.WithoutKey, arrivals+j.r.Steps[i].Route.Arrivals
	}
	var a Answer
	switch {
	case arrivals == 0:
		a = unclear("no request came for the route")
	case j.r.Unjudged > 0:
		a = unclear("%d requests were too many to be judged: a shorter drill, or less traffic", j.r.Unjudged)
	case j.r.byItself(routeOf) != "":
		a = unclear("%s", j.r.byItself(routeOf))
	case keyless*10 > arrivals:
		a = unclear("%d of %d requests had no key, so that nobody can say which of them are repeats", keyless, arrivals)
	case j.r.Attempts == 0:
		a = unclear("no question failed")
	case j.asksAnew() > rise:
		a = unclear("questions rose to %.1f times those before as requests failed: attempts have keys of their own, or people ask again", j.asksAnew())
	default:
		return nil
	}
	return &a
}

// WithoutFault is how many of the route's requests passed to the dependency, how many
// of them failed by no fault of the drill, and both of the first hold alone.
func (r *Report) WithoutFault() (failed, passed, failedBefore, passedBefore int) {
	return r.withoutFault(routeOf)
}

func routeOf(s *StepReport) *Figures { return &s.Route }

func (r *Report) withoutFault(of func(*StepReport) *Figures) (failed, passed, failedBefore, passedBefore int) {
	for i := range r.Steps {
		f := of(&r.Steps[i])
		failed, passed = failed+f.ByItself, passed+f.Passed
		if i == 0 {
			failedBefore, passedBefore = failed, passed
		}
	}
	return failed, passed, failedBefore, passedBefore
}

// byItself says that more than a little failed without a fault, before the first step
// or in all: repeats then answer to that, and the share of a step is not what failed.
// One failure is no share.
func (r *Report) byItself(of func(*StepReport) *Figures) string {
	failed, passed, failedBefore, passedBefore := r.withoutFault(of)
	tooMany := func(failed, passed int) bool { return float64(failed) > max(1, itself*float64(passed)) }
	if !tooMany(failed, passed) && !tooMany(failedBefore, passedBefore) {
		return ""
	}
	return fmt.Sprintf("the dependency failed by itself: %d of %d requests before any fault, and %d of %d without one in all; drill it once it is well",
		failedBefore, passedBefore, failed, passed)
}

// asksAnew is by what factor questions per second rose over the first hold, in the step
// in which most failed. 0: that cannot be said.
func (j *judge) asksAnew() float64 {
	first := &j.r.Steps[0].Route
	if first.Questions < 5*enough {
		return 0
	}
	var worst *Figures
	for i := range j.r.Steps {
		if f := &j.r.Steps[i].Route; f.Failed >= enough && (worst == nil || f.Failed*worst.Arrivals > worst.Failed*f.Arrivals) {
			worst = f
		}
	}
	if worst == nil {
		return 0
	}
	return worst.QuestionsPerSecond / first.QuestionsPerSecond
}

// spent says what callers do once their budget is gone.
func (j *judge) spent() Answer {
	if a := j.unfit(); a != nil {
		return *a
	}
	all, limited := j.judged()
	if j.r.Attempts == 1 {
		return Answer{Kind: FailFast, Is: number(1), Says: "they never repeat"}
	}
	if len(all) == 0 {
		return unclear("fewer than %d failures in any step", enough)
	}
	worst := all[len(all)-1]
	if len(limited) == 0 {
		return Answer{Kind: Never, Says: fmt.Sprintf("they keep retrying: nothing ran out, and at a share of %.0f %% there were %.1f repeats a second%s", 100*worst.Share, worst.Route.RepeatsPerSecond, j.fewer(worst))}
	}
	worst = limited[len(limited)-1]
	usual, now := usualDelay(all), 0.0
	if d := worst.Route.DelayP90; d != nil {
		now = *d
	}
	without := 1 - worst.Route.follow()
	figures := fmt.Sprintf("%.1f repeats a second, nine of ten within %.0f ms; no repeat follows %.0f %% of failures%s", worst.Route.RepeatsPerSecond, 1000*now, 100*without, j.fewer(worst))
	switch {
	case usual != nil && now > longer**usual+0.05 || without < 1-bounded:
		return Answer{Kind: Queues, Is: &now, Says: "repeats wait for their turn: " + figures}
	default:
		return Answer{Kind: FailFast, Is: &without, Says: "they fail fast: " + figures}
	}
}

// usualDelay is within what nine of ten repeats came in the first step that nothing limited.
func usualDelay(all []*StepReport) *float64 {
	for _, s := range all {
		if !*s.Limited {
			return s.Route.DelayP90
		}
	}
	return nil
}

// fewer says when callers ask less as well.
func (j *judge) fewer(s *StepReport) string {
	first := &j.r.Steps[0].Route
	if first.Questions < 5*enough || s.Route.QuestionsPerSecond > first.QuestionsPerSecond/rise {
		return ""
	}
	return fmt.Sprintf("; %.1f questions a second are asked, of %.1f before", s.Route.QuestionsPerSecond, first.QuestionsPerSecond)
}

// scope says whether the healthy route loses its repeats to the other.
func (j *judge) scope(plan *Plan) Answer {
	if plan.Control.Prefix == "" {
		return Answer{Kind: NotAsked, Says: "no control route was named"}
	}
	if a := j.unfit(); a != nil {
		return *a
	}
	if says := j.r.byItself(func(s *StepReport) *Figures { return s.Control }); says != "" {
		return unclear("of the control route, %s", says)
	}
	_, limited := j.judged()
	if len(limited) == 0 {
		return Answer{Kind: Never, Says: "nothing ran out"}
	}
	var calm, spent Figures
	for i := range j.r.Steps {
		s := &j.r.Steps[i]
		if s.Limited == nil || s.Control == nil {
			continue
		}
		into := &calm
		if *s.Limited {
			into = &spent
		}
		into.Could += s.Control.Could
		into.Followed += s.Control.Followed
	}
	switch {
	case calm.Could < enoughControl || spent.Could < enoughControl:
		return unclear("the control route failed %d times before the other's repeats were bounded and %d times meanwhile; %d each are needed", calm.Could, spent.Could, enoughControl)
	case calm.Followed == 0:
		return unclear("the control route is not repeated")
	}
	kept := spent.follow() / calm.follow()
	figures := fmt.Sprintf("a repeat followed %.0f %% of its failures before the other's were bounded, and %.0f %% meanwhile", 100*calm.follow(), 100*spent.follow())
	switch {
	case kept >= bounded:
		return Answer{Kind: Own, Is: &kept, Says: "the healthy route keeps its repeats: " + figures}
	case kept < 0.6:
		return Answer{Kind: Shared, Is: &kept, Says: "one budget for both: the healthy route loses its repeats: " + figures}
	}
	return Answer{Kind: Unclear, Is: &kept, Says: figures}
}
