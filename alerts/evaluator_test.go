package alerts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// nine is when log time begins in these tests, and the wall clock with it.
var nine = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// bench steps an evaluator second by second.
type bench struct {
	t    *testing.T
	e    *Evaluator
	in   Input
	told []string // "+12 RetryBudgetLow firing"
	at   int      // seconds of log time since nine
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, e: NewEvaluator()}
	b.in.Rules = Rules{Low: 0.5, CoverageFloor: 0.85, CoverageExpected: 0.95, VisibilityFloor: 0.5, MinArrivals: 20}
	b.in.Dependencies, b.in.Read = []Figures{quiet()}, 1000
	return b
}

// quiet is a dependency of which all is well.
func quiet() Figures {
	f := Figures{Dependency: "seats", Known: 5 * time.Minute}
	f.Ten = aggregate.Totals{Arrivals: 1000, Verified: 1000, Visible: 1000, Answers: 1000}
	f.Minute = aggregate.Totals{Arrivals: 6000, Verified: 6000, Visible: 6000, Answers: 6000}
	f.Budgets = []Budget{{Model: "ratio", Window: 10 * time.Second, Repeats: true, Some: true, Reading: budget.Reading{Allowance: 200, State: budget.OK}}}
	return f
}

func (b *bench) dep() *Figures { return &b.in.Dependencies[0] }

// consume spends a share of the budget.
func (b *bench) consume(share float64) {
	x := &b.dep().Budgets[0]
	x.Consumed, x.Spent, x.State = share, 200*share, budget.OK
	switch {
	case share >= 1:
		x.State = budget.Exhausted
	case share >= 0.5:
		x.State = budget.Low
	}
}

// pass lets seconds go by, in each of which it looks twice.
func (b *bench) pass(seconds int) {
	for range seconds {
		b.at++
		for half := range 2 {
			b.in.Now = nine.Add(time.Duration(b.at)*time.Second + time.Duration(half)*500*time.Millisecond)
			for i := range b.in.Dependencies {
				b.in.Dependencies[i].At = nine.Add(time.Duration(b.at) * time.Second)
			}
			for _, c := range b.e.Step(&b.in) {
				b.told = append(b.told, fmt.Sprintf("+%d %s %s", b.at, c.Name, c.State))
			}
		}
	}
}

func (b *bench) wants(told ...string) {
	b.t.Helper()
	if !slices.Equal(b.told, told) {
		b.t.Errorf("told %q, want %q", b.told, told)
	}
}

// state is where an alert stands: of its labels, some are named as "key=value".
func (b *bench) state(name string, labels ...string) State {
	for _, a := range b.e.Alerts() {
		if a.Name == name && !slices.ContainsFunc(labels, func(l string) bool {
			k, v, _ := strings.Cut(l, "=")
			return a.Labels[k] != v
		}) {
			return a.State
		}
	}
	return ""
}

func TestQuietSaysNothing(t *testing.T) {
	b := newBench(t)
	b.pass(600)
	b.wants()
	if all := b.e.Alerts(); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

func TestBudgetFromLowToSpentAndBack(t *testing.T) {
	b := newBench(t)
	b.pass(5)
	b.consume(0.6)
	b.pass(2)
	b.wants("+6 RetryBudgetLow firing") // at the first look
	b.consume(1.5)
	b.pass(1)
	b.wants("+6 RetryBudgetLow firing", "+8 RetryBudgetExhausted firing")
	b.consume(0.95) // still as good as spent
	b.pass(100)
	b.consume(0.7)
	b.pass(60)
	b.wants("+6 RetryBudgetLow firing", "+8 RetryBudgetExhausted firing")
	b.pass(1)
	b.consume(0.45) // not yet clear of it
	b.pass(100)
	b.consume(0.1)
	b.pass(61)
	b.wants("+6 RetryBudgetLow firing", "+8 RetryBudgetExhausted firing", "+169 RetryBudgetExhausted resolved", "+330 RetryBudgetLow resolved")
	if s := b.state(RetryBudgetLow); s != Resolved {
		t.Errorf("it is shown as %q", s)
	}
	b.pass(301)
	if all := b.e.Alerts(); len(all) > 0 {
		t.Errorf("shown for longer than promised: %+v", all)
	}
}

// What is spent at once is told once: that it is low, too, is no news. When it is not
// spent any more, that is.
func TestExhaustedInhibits(t *testing.T) {
	b := newBench(t)
	b.consume(3)
	b.dep().Budgets[0].ExhaustsIn = 10
	b.pass(30)
	b.wants("+1 RetryBudgetExhausted firing")
	if b.state(RetryBudgetLow) != Firing {
		t.Error("it is not shown that it is low")
	}
	for _, a := range b.e.Alerts() {
		if inhibited := a.Name == RetryBudgetLow; a.Inhibited != inhibited || a.Told == inhibited {
			t.Errorf("%+v", a)
		}
	}
	b.consume(0.6)
	b.dep().Budgets[0].ExhaustsIn = 0
	b.pass(61)
	b.wants("+1 RetryBudgetExhausted firing", "+91 RetryBudgetExhausted resolved", "+91 RetryBudgetLow firing")

	// Another dependency's budget is another matter.
	b = newBench(t)
	b.in.Dependencies = append(b.in.Dependencies, quiet())
	b.in.Dependencies[1].Dependency = "prices"
	b.consume(3)
	b.in.Dependencies[1].Budgets[0].Reading = budget.Reading{Allowance: 200, Spent: 120, Consumed: 0.6}
	b.pass(5)
	b.wants("+1 RetryBudgetExhausted firing", "+1 RetryBudgetLow firing")
}

// What was inhibited and does not hold any more is never told, in whatever order the two
// are clear; once it holds anew it is, with words of that time.
func TestInhibitedAndOverIsNoNews(t *testing.T) {
	b := newBench(t)
	b.consume(0.6)
	b.dep().Budgets[0].Consumed = 3 // at once: Low and Exhausted
	b.pass(30)
	b.consume(0.85) // Exhausted begins to be clear, Low does not
	b.pass(1)
	for _, share := range []float64{0.1, 0.45} { // clear, or neither nor
		c := *b
		c.e, c.told = NewEvaluator(), nil
		if err := c.e.Restore(b.e.State(), b.in.Now); err != nil {
			t.Fatal(err)
		}
		c.in.Dependencies = slices.Clone(b.in.Dependencies)
		c.in.Dependencies[0].Budgets = slices.Clone(b.in.Dependencies[0].Budgets)
		c.consume(0.85)
		c.pass(1)
		c.consume(share)
		c.pass(60)
		c.wants("+92 RetryBudgetExhausted resolved")
		if share < 0.2 {
			c.pass(200)
			c.wants("+92 RetryBudgetExhausted resolved")
			continue
		}
		c.pass(10)
		c.consume(0.55)
		c.pass(1)
		c.wants("+92 RetryBudgetExhausted resolved", "+103 RetryBudgetLow firing")
		for _, a := range c.e.Alerts() {
			if a.Name == RetryBudgetLow && !strings.Contains(a.Summary, "55 %") {
				t.Error(a.Summary)
			}
		}
	}
}

// Log time may be ahead of the clock on the wall: no time that is told is, and what is
// told of one alert is one time. How long a condition has held is of log time alone.
func TestNoTimeIsAhead(t *testing.T) {
	b := newBench(t)
	b.dep().Ten.DeadAnswers = 500
	b.consume(2)
	begun := time.Time{}
	for half := range 200 {
		b.in.Now = nine.Add(time.Duration(half) * 500 * time.Millisecond)
		b.dep().At = b.in.Now.Add(400 * time.Millisecond)
		if half == 100 {
			b.dep().Ten.DeadAnswers = 0
			b.consume(0)
		}
		for _, c := range b.e.Step(&b.in) {
			if c.Since.After(b.in.Now) || c.Fired.After(b.in.Now) {
				t.Errorf("at %v: %+v", b.in.Now, c)
			}
			if c.Name == DeadAnswers && c.State == Firing {
				begun = c.Since
				if half != 4 {
					t.Errorf("it fires at look %d", half)
				}
			}
		}
		for _, a := range b.e.Alerts() {
			if a.Since.After(b.in.Now) || a.Fired.After(b.in.Now) || a.Name == DeadAnswers && a.Told && !a.Since.Equal(begun) {
				t.Errorf("at %v: %+v", b.in.Now, a)
			}
		}
	}
	if begun.IsZero() {
		t.Error("nothing was told")
	}
}

// What is a lower bound, or old, fires and never resolves; once it is known again it
// does.
func TestNothingResolvesUnseen(t *testing.T) {
	for name, c := range map[string]struct{ hide, show func(b *bench) }{
		"a source is behind": {
			func(b *bench) { b.in.Sources = []Source{{Name: "log", Behind: true, Lag: time.Minute}} },
			func(b *bench) { b.in.Sources[0].Behind = false }},
		"a source has failed": {
			func(b *bench) { b.in.Sources = []Source{{Name: "log", Failed: true}} },
			func(b *bench) { b.in.Sources[0].Failed = false }},
		"warming": {func(b *bench) { b.in.Warming = true }, func(b *bench) { b.in.Warming = false }},
		"blind": {
			func(b *bench) { b.dep().Budgets[0].State = budget.Blind },
			func(b *bench) { b.dep().Budgets[0].State = budget.OK }},
		"scopes are split":   {func(b *bench) { b.dep().ScopeSplit = true }, func(b *bench) { b.dep().ScopeSplit = false }},
		"rebuilding":         {func(b *bench) { b.in.Unknown = true }, func(b *bench) { b.in.Unknown = false }},
		"no figures, behind": {func(b *bench) { b.in.Dependencies = nil; b.in.Sources = []Source{{Name: "log", Failed: true}} }, func(b *bench) { b.in.Sources = nil }},
		"a window not full":  {func(b *bench) { b.dep().Known, b.dep().Budgets[0].Some = 3*time.Second, false }, func(b *bench) { b.dep().Known = time.Minute }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.consume(0.6)
			b.pass(2)
			b.consume(0)
			c.hide(b)
			b.pass(600)
			if b.state(RetryBudgetLow) != Firing {
				t.Fatalf("it is %q: %q", b.state(RetryBudgetLow), b.told)
			}
			c.show(b)
			b.pass(60)
			if b.state(RetryBudgetLow) != Firing {
				t.Error("resolved before it was seen for a minute")
			}
			b.pass(1)
			if b.state(RetryBudgetLow) != Resolved {
				t.Errorf("it is %q", b.state(RetryBudgetLow))
			}
		})
	}
}

// Lag does not hold back firing.
func TestLagDoesNotHoldBackFiring(t *testing.T) {
	b := newBench(t)
	b.in.Sources = []Source{{Name: "log", Behind: true, Lag: time.Hour}}
	b.pass(40)
	b.consume(2)
	b.pass(1)
	b.wants("+31 AuditorBlind firing", "+41 RetryBudgetExhausted firing")
}

// Log time that runs faster than the clock, as when a log is read that is there
// already, counts as it says.
func TestDurationsAreOfLogTime(t *testing.T) {
	b := newBench(t)
	b.consume(0.6)
	b.pass(2)
	b.consume(0)
	b.pass(1)
	b.at += 60 // within a second
	b.pass(1)
	b.wants("+1 RetryBudgetLow firing", "+64 RetryBudgetLow resolved")

	// And time that stands still holds nothing for long enough.
	b = newBench(t)
	b.dep().Minute.Verified = 3000
	for range 1000 {
		b.at = 0
		b.pass(1)
	}
	b.wants()
}

// Who sees a share tells what fires and resolves nothing; a standby says nothing, and
// knows nothing when it takes over.
func TestOfManyInstances(t *testing.T) {
	b := newBench(t)
	b.in.Share = true
	b.consume(0.6)
	b.pass(2)
	b.consume(0)
	b.pass(100)
	b.wants("+1 RetryBudgetLow firing")
	if all := b.e.Alerts(); len(all) > 0 {
		t.Errorf("%+v", all)
	}

	b = newBench(t)
	b.consume(0.6)
	b.pass(2)
	b.in.Standby = true
	b.consume(5)
	b.pass(100)
	b.in.Standby = false
	b.consume(0)
	b.pass(100)
	b.wants("+1 RetryBudgetLow firing")
}

// What is not there any more is over: a dependency without traffic, a budget that is
// not configured.
func TestWhatIsGoneIsOver(t *testing.T) {
	for _, gone := range []func(b *bench){
		func(b *bench) { b.in.Dependencies = nil },
		func(b *bench) { b.dep().Budgets = nil },
		func(b *bench) { b.dep().Budgets[0].Some, b.dep().Budgets[0].Window = false, 10*time.Minute }, // so few that there is no reading
	} {
		b := newBench(t)
		b.consume(0.6)
		b.pass(2)
		gone(b)
		b.pass(61)
		b.wants("+1 RetryBudgetLow firing", "+63 RetryBudgetLow resolved")
	}
}

// Answers whose deadlines, and returns whose moments, nobody can judge do not resolve what
// is said of those that could be.
func TestNothingResolvesUnjudged(t *testing.T) {
	for name, hold := range map[string]func(b *bench, on bool){
		DeadAnswers: func(b *bench, on bool) {
			b.dep().Ten.DeadAnswers, b.dep().Ten.Unjudged = 500, 0
			if !on {
				b.dep().Ten.DeadAnswers, b.dep().Ten.Unjudged = 0, 1000
			}
		},
		RetryAfterIgnored: func(b *bench, on bool) {
			c := Closed{Span: 300 * time.Second, Totals: aggregate.Totals{Arrivals: 1000, Verified: 1000, RetryAsked: 500, RetryEarly: 400}, Questions: 1000}
			if !on {
				c.RetryEarly, c.Untimed = 0, 1000
			}
			b.dep().Closed = &c
		},
	} {
		b := newBench(t)
		hold(b, true)
		b.pass(120)
		hold(b, false)
		b.pass(300)
		if b.state(name) != Firing {
			t.Errorf("%s is %q: %q", name, b.state(name), b.told)
		}
		if name == DeadAnswers {
			b.dep().Ten.Unjudged = 0
		} else {
			b.dep().Closed.Untimed = 0
		}
		b.pass(120)
		if b.state(name) != Resolved {
			t.Errorf("%s, judged, is %q", name, b.state(name))
		}
	}
}
