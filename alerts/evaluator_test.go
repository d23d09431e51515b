package alerts

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
	b.in.Dependencies = []Figures{quiet()}
	return b
}

// quiet is a dependency of which all is well.
func quiet() Figures {
	f := Figures{Dependency: "seats", Known: 5 * time.Minute, Read: 1000}
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

// The machine alone, over every sequence of looks up to a length, one a second: what
// it promises holds at every step, whatever came before.
func TestEverySequenceOfLooks(t *testing.T) {
	const length = 7
	looks := []verdict{unknown, no, between, yes}
	for _, timing := range []timing{{0, 2 * time.Second}, {2 * time.Second, 2 * time.Second}, {time.Second, 0}} {
		sequence := make([]verdict, length)
		for n := range 1 << (2 * length) {
			for i := range sequence {
				sequence[i] = looks[n>>(2*i)&3]
			}
			var e *episode
			for i, v := range sequence {
				at := nine.Add(time.Duration(i) * time.Second)
				was := State("")
				if e != nil {
					was = e.State
				}
				if e == nil {
					if v != yes {
						continue
					}
					e = &episode{timing: timing}
					e.begin(at, at)
				}
				if !e.step(v, at, at, Resolved) {
					e = nil
				}
				is := State("")
				if e != nil {
					is = e.State
				}
				held := func(back time.Duration, v verdict) bool {
					for j := i; j >= 0 && j >= i-int(back/time.Second); j-- {
						if sequence[j] != v {
							return false
						}
					}
					return i >= int(back/time.Second)
				}
				fault := ""
				switch {
				case is == Firing && was != Firing && !held(timing.hold, yes):
					fault = "fires though its condition has not held for long enough"
				case held(timing.hold, yes) && is != Firing:
					fault = "does not fire though its condition has"
				case is == Resolved && was == Firing && !held(timing.keep, no):
					fault = "is resolved though that has not been clear for long enough"
				case was == Firing && held(timing.keep, no) && is != Resolved:
					fault = "is not resolved though it is clear"
				case was == Firing && v != no && is != Firing:
					fault = "does not fire on while it is not clear"
				case is == Pending && v != yes:
					fault = "is pending though its condition does not hold"
				}
				if fault != "" {
					t.Fatalf("%v %v: at %d it %s (%q, then %q)", timing, sequence, i, fault, was, is)
				}
			}
		}
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

func TestExhaustsSoon(t *testing.T) {
	b := newBench(t)
	b.consume(0.3)
	b.dep().Budgets[0].ExhaustsIn = 61
	b.pass(10)
	b.wants()
	b.dep().Budgets[0].ExhaustsIn = 40
	b.pass(2)
	b.wants("+12 RetryBudgetExhaustsSoon firing")
	b.dep().Budgets[0].ExhaustsIn = 0 // a wave is over: the slope comes and goes
	b.pass(59)
	b.dep().Budgets[0].ExhaustsIn = 30
	b.pass(1)
	b.dep().Budgets[0].ExhaustsIn = 0
	b.pass(60)
	b.wants("+12 RetryBudgetExhaustsSoon firing")
	b.pass(1)
	b.wants("+12 RetryBudgetExhaustsSoon firing", "+133 RetryBudgetExhaustsSoon resolved")
}

// Nothing of what grows honestly, or is little, or cannot be read, fires.
func TestNoFalseAlarm(t *testing.T) {
	for name, change := range map[string]func(b *bench){
		"three times the demand": func(b *bench) {
			d := b.dep()
			for _, w := range []*aggregate.Totals{&d.Ten, &d.Minute} {
				w.Arrivals, w.Verified, w.Visible, w.Answers = 3*w.Arrivals, 3*w.Verified, 3*w.Visible, 3*w.Answers
			}
			b.consume(0.05)
		},
		"a handful of repeats": func(b *bench) {
			b.dep().Budgets[0].Reading = budget.Reading{Allowance: 4, Spent: 9, Consumed: 2.25, State: budget.Exhausted}
		},
		"no traffic":         func(b *bench) { d := b.dep(); d.Ten, d.Minute, d.Budgets = aggregate.Totals{}, aggregate.Totals{}, nil },
		"a window half full": func(b *bench) { b.dep().Known, b.dep().Budgets[0].Some = 5*time.Second, false },
		"a few dead answers": func(b *bench) { b.dep().Ten.Answers, b.dep().Ten.DeadAnswers = 12, 10 },
		"a small dead share": func(b *bench) { b.dep().Ten.DeadAnswers = 99 },
		"a jump of few keys": func(b *bench) { b.dep().Minute = aggregate.Totals{Arrivals: 99, Visible: 99} },
		"keys that chance drops": func(b *bench) {
			b.dep().Minute = aggregate.Totals{Arrivals: 200, Verified: 184, Visible: 200} // 92 %, and 1.5 % is a deviation
		},
		"few of those asked to wait": func(b *bench) {
			b.dep().Closed = &Closed{Totals: aggregate.Totals{RetryAsked: 20, RetryEarly: 20}}
		},
		"a lost record of many": func(b *bench) { b.dep().Lost = 9 },
		"a blip": func(b *bench) {
			b.consume(0.3)
			b.dep().Budgets[0].ExhaustsIn = 20
			b.at--
			b.pass(1)
			b.dep().Budgets[0].ExhaustsIn = 0
		},
		"as declared": func(b *bench) {
			b.in.Rules.Declared = plan(0, 3, 3)
			b.dep().Closed = &Closed{Span: 300 * time.Second, Totals: aggregate.Totals{Verified: 980}, Questions: 100}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			change(b)
			b.pass(300)
			b.wants()
		})
	}
}

func plan(capacity float64, attempts ...int) *budget.Plan {
	p := budget.Policy{Chosen: 1.2, CapacityPerSecond: capacity}
	for i, n := range attempts {
		p.Layers = append(p.Layers, budget.Layer{Name: fmt.Sprint("layer ", i), Attempts: &n})
	}
	return p.Plan()
}

// Each of the others, when it is so.
func TestConditions(t *testing.T) {
	closed := func(c Closed) func(b *bench) {
		return func(b *bench) {
			b.in.Rules.Declared = plan(100, 3, 3)
			b.dep().Closed = &c
		}
	}
	above := Closed{Span: 300 * time.Second, Totals: aggregate.Totals{Arrivals: 2000, Verified: 1800, Claimed: 200, BusySeconds: 100, RepeatSeconds: 1}, Questions: 200}
	costly := above
	costly.RepeatSeconds = 10
	many := above
	many.Span = 10 * time.Second
	for name, c := range map[string]struct {
		change func(b *bench)
		want   []string
	}{
		"nothing is allowed": {func(b *bench) {
			b.dep().Budgets[0].Reading = budget.Reading{Spent: 10, Consumed: math.NaN(), State: budget.Exhausted}
		}, []string{"+1 RetryBudgetExhausted firing"}},
		"blind, and low all the same":   {func(b *bench) { b.consume(0.5); b.dep().Budgets[0].State = budget.Blind }, []string{"+1 RetryBudgetLow firing"}},
		"warming, and low all the same": {func(b *bench) { b.consume(0.5); b.in.Warming = true }, []string{"+1 RetryBudgetLow firing"}},
		"dead answers":                  {func(b *bench) { b.dep().Ten.DeadAnswers = 101 }, []string{"+3 DeadAnswers firing"}},
		"keys are dropped":              {func(b *bench) { b.dep().Minute.Verified = 5600 }, []string{"+31 CoverageTooLow firing"}},
		"keys are minted anew": {func(b *bench) { b.dep().Minute.Verified = 3000 },
			[]string{"+31 CoverageTooLow firing", "+31 AuditorBlind firing"}},
		"departures cannot be seen": {func(b *bench) { b.dep().Minute.Visible = 100 }, []string{"+31 AuditorBlind firing"}},
		"records cannot be read":    {func(b *bench) { b.dep().Lost = 100 }, []string{"+31 AuditorBlind firing"}},
		"a question in two scopes":  {func(b *bench) { b.dep().ScopeSplit = true }, []string{"+31 AuditorBlind firing"}},
		"the store":                 {func(b *bench) { b.in.Store = true }, []string{"+31 AuditorBlind firing"}},
		"a source fails":            {func(b *bench) { b.in.Sources = []Source{{Name: "log", Failed: true}} }, []string{"+31 AuditorBlind firing"}},
		"a source is behind":        {func(b *bench) { b.in.Sources = []Source{{Name: "log", Behind: true, Lag: 31 * time.Second}} }, []string{"+31 AuditorBlind firing"}},
		"old, and read to its end":  {func(b *bench) { b.in.Sources = []Source{{Name: "log", Lag: time.Hour}} }, nil},
		"Retry-After is ignored": {func(b *bench) { b.dep().Closed = &Closed{Totals: aggregate.Totals{RetryAsked: 200, RetryEarly: 21}} },
			[]string{"+61 RetryAfterIgnored firing"}},
		"more than declared, and cheap": {closed(above), []string{"+61 AmplificationAboveDeclared firing"}},
		"more than declared, and dear":  {closed(costly), []string{"+61 AmplificationAboveDeclared firing"}},
		"more than can be served":       {closed(many), []string{"+61 AmplificationAboveDeclared firing"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.change(b)
			b.pass(100)
			b.wants(c.want...)
			for _, a := range b.e.Alerts() {
				if a.Told && (a.Summary == "" || a.Description == "" || a.Labels["severity"] == "" || strings.Contains(a.Summary+a.Description, "%!")) {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}

// Above what is declared says by how much, which side of the neighbour it is, and
// whether it costs.
func TestAboveDeclaredNamesTheSide(t *testing.T) {
	rewritten := "one_attempt_or_rewritten"
	for _, c := range []struct {
		hops aggregate.Hops
		says string
	}{
		{aggregate.Hops{Adjacent: aggregate.Number(5), Above: aggregate.Number(2)}, "The neighbour itself retries more than declared: the neighbour makes 5 attempts (declared for layer 1: 3), and 2 calls"},
		{aggregate.Hops{Adjacent: aggregate.Number(2), Above: aggregate.Number(5)}, "What is above the neighbour"},
		{aggregate.Hops{Adjacent: aggregate.Number(4), Above: aggregate.Number(4)}, "Both sides"},
		{aggregate.Hops{Adjacent: aggregate.Number(3), Above: aggregate.Number(3)}, "Neither side alone"},
		{aggregate.Hops{Reason: &rewritten}, "cannot be said (one_attempt_or_rewritten)"},
	} {
		for _, costs := range []bool{false, true} {
			b := newBench(t)
			b.in.Rules.Declared = plan(1000, 3, 3)
			b.dep().Closed = &Closed{Span: 300 * time.Second, Totals: aggregate.Totals{Arrivals: 2000, Verified: 2000, BusySeconds: 100}, Questions: 200, Hops: c.hops}
			severity := warning
			if costs {
				b.dep().Closed.RepeatSeconds, severity = 50, critical
			}
			b.pass(70)
			var told []Alert
			for _, a := range b.e.Alerts() {
				if a.Told {
					told = append(told, a)
				}
			}
			if len(told) != 1 || told[0].Labels["severity"] != severity || !strings.Contains(told[0].Summary, "10 arrivals per question, where the declared policy makes 9 at most (1.11 times") ||
				!strings.Contains(told[0].Description, c.says) {
				t.Errorf("%s, costs %v: %+v", c.says, costs, told)
			}
		}
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

// A restart goes on with what fires: it tells nothing twice, resolves what it knows
// of when it is over, and nothing that it knows nothing of.
func TestRestart(t *testing.T) {
	before := newBench(t)
	before.consume(0.6)
	before.pass(10)
	state, changed := before.e.Unsaved()
	if !changed {
		t.Fatal("nothing is to be kept")
	}
	before.pass(10)
	if _, changed := before.e.Unsaved(); changed {
		t.Error("the same is kept again")
	}
	for name, restored := range map[string]bool{"restored": true, "forgotten": false} {
		for over, want := range map[bool][]string{false: nil, true: {"+91 RetryBudgetLow resolved"}} {
			b := newBench(t)
			b.at = 30
			if restored {
				if err := b.e.Restore(state, nine.Add(30*time.Second)); err != nil {
					t.Fatal(err)
				}
			} else if want = nil; !over {
				want = []string{"+31 RetryBudgetLow firing"}
			}
			if !over {
				b.consume(0.6)
			}
			b.pass(100)
			if !slices.Equal(b.told, want) {
				t.Errorf("%s, over: %v: told %q, want %q", name, over, b.told, want)
			}
		}
	}
	// Labels and texts are as they were; its value is not known until it is seen again.
	e := NewEvaluator()
	if err := e.Restore(state, nine); err != nil {
		t.Fatal(err)
	}
	was, is := before.e.Alerts()[0], e.Alerts()[0]
	known := !math.IsNaN(is.Value)
	is.Value = was.Value
	if known || !reflect.DeepEqual(was, is) {
		t.Errorf("%+v, then %+v", was, is)
	}
	for _, bad := range []string{"", "{", `{"version":1}`} {
		if err := NewEvaluator().Restore([]byte(bad), nine); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// While something fires it is kept anew, with when it was seen; what was seen too long
// ago to say anything of now is not restored as firing: it is resolved if somebody was
// told, once, and what fires by then is told as of then.
func TestStaleIsOver(t *testing.T) {
	before := newBench(t)
	before.consume(3) // Low is inhibited and untold
	kept := 0
	var state []byte
	for range 600 {
		before.pass(1)
		if s, is := before.e.Unsaved(); is {
			state, kept = s, kept+1
		}
	}
	if kept < 19 || kept > 22 {
		t.Errorf("in ten minutes it was kept %d times", kept)
	}
	restart := func(after time.Duration, change func(b *bench), want ...string) {
		t.Helper()
		b := newBench(t)
		b.at = 600 + int(after/time.Second)
		if err := b.e.Restore(state, nine.Add(time.Duration(b.at)*time.Second)); err != nil {
			t.Fatal(err)
		}
		change(b)
		b.pass(1)
		if _, is := b.e.Unsaved(); !is {
			t.Error("what became of what was kept is not kept")
		}
		for _, a := range b.e.Alerts() {
			if a.Told && a.State == Firing && after > staleAfter && a.Since.Before(nine.Add(10*time.Minute)) {
				t.Errorf("it fires with a time of before: %+v", a)
			}
		}
		b.pass(59)
		b.wants(want...)
	}
	calm, storm := func(*bench) {}, func(b *bench) { b.consume(3) }
	restart(4*time.Minute, storm)
	restart(6*time.Minute, calm, "+961 RetryBudgetExhausted resolved")
	restart(6*time.Minute, func(b *bench) { b.in.Unknown = true }, "+961 RetryBudgetExhausted resolved")
	restart(6*time.Minute, storm, "+961 RetryBudgetExhausted resolved", "+961 RetryBudgetExhausted firing")
	restart(6*time.Minute, func(b *bench) { b.in.Share = true })

	// What nobody sees grows old, however often a daemon that does not see it begins anew.
	b := newBench(t)
	b.at, b.in.Unknown = 700, true
	if err := b.e.Restore(state, nine.Add(700*time.Second)); err != nil {
		t.Fatal(err)
	}
	b.pass(200)
	state = b.e.State()
	restart(6*time.Minute, calm, "+961 RetryBudgetExhausted resolved")
}

// Between the first look and what was kept the same may have begun to fire.
func TestRestoreKeepsWhatIsSeen(t *testing.T) {
	old := newBench(t)
	old.consume(0.6)
	old.pass(5)
	b := newBench(t)
	b.consume(2)
	b.pass(1)
	if err := b.e.Restore(old.e.State(), nine); err != nil {
		t.Fatal(err)
	}
	b.pass(5)
	b.wants("+1 RetryBudgetExhausted firing")
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

// Labels are text and never empty, and the same for the same.
func TestLabels(t *testing.T) {
	b := newBench(t)
	b.dep().Dependency = "a\xff"
	b.consume(2)
	b.dep().Budgets = append(b.dep().Budgets, b.dep().Budgets[0])
	b.dep().Budgets[1].Route = "GET /a"
	b.pass(5)
	var got []map[string]string
	for _, a := range b.e.Alerts() {
		if a.Name == RetryBudgetExhausted {
			got = append(got, a.Labels)
		}
	}
	want := []map[string]string{
		{"dependency": bound("a\xff"), "model": "ratio", "route": "GET /a", "severity": "critical"},
		{"dependency": bound("a\xff"), "model": "ratio", "severity": "critical"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// No name is told at a length that somebody else chose, and none stands for another.
func TestNamesAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 30_000)
	if a, b := bound(long+"a"), bound(long+"b"); a == b || len(a) > mostLabel || !utf8.ValidString(a) {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := bound("a\xff"), bound("a\xfe"); a == b || !strings.HasPrefix(a, "a\uFFFD…") {
		t.Errorf("%q and %q", a, b)
	}
	b := newBench(t)
	d := b.dep()
	d.Dependency, d.ScopeSplit, d.Lost, d.Minute.Verified, d.Minute.Visible, d.Ten.DeadAnswers = long, true, 500, 3000, 100, 500
	b.in.Rules.Declared = plan(100, 3, 3)
	d.Closed = &Closed{Span: 10 * time.Second, Totals: aggregate.Totals{Arrivals: 2000, Verified: 2000, RetryAsked: 200, RetryEarly: 100}, Questions: 20}
	b.consume(2)
	d.Budgets[0].Route = long
	b.in.Sources, b.in.Store = []Source{{Name: long, Failed: true}}, true
	b.pass(100)
	b.in.Sources = []Source{{Name: long, Behind: true, Lag: time.Hour}}
	b.pass(100)
	seen := map[string]bool{}
	for _, a := range b.e.Alerts() {
		seen[a.Name] = true
		if len(a.Summary)+len(a.Description) > 1000 {
			t.Errorf("%s: %d bytes of words", a.Name, len(a.Summary)+len(a.Description))
		}
		for k, v := range a.Labels {
			if len(v) > mostLabel {
				t.Errorf("%s: %s has %d bytes", a.Name, k, len(v))
			}
		}
	}
	if len(seen) < len(Names)-1 { // RetryBudgetExhaustsSoon is none where it is exhausted
		t.Errorf("only %v", seen)
	}
}

// What is unread is told by the share that is.
func TestUnreadSaysTheShareUnread(t *testing.T) {
	b := newBench(t)
	b.dep().Lost = 250 // of 1250
	b.pass(40)
	all := b.e.Alerts()
	if len(all) != 1 || all[0].Value != 0.2 || !strings.Contains(all[0].Summary, "(unread: 0.2)") {
		t.Errorf("%+v", all)
	}
}
