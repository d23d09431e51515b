package alerts

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

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

// Where only a part is known of what a budget is of, it neither fires nor is resolved.
func TestBudgetOfAPart(t *testing.T) {
	b := newBench(t)
	b.consume(1.5)
	b.pass(5)
	b.wants("+1 RetryBudgetExhausted firing")
	x := &b.dep().Budgets[0]
	x.Some, x.Part, x.Reading = false, true, budget.Reading{}
	b.pass(200)
	b.wants("+1 RetryBudgetExhausted firing")
	x.Part = false // too few arrivals for a reading
	b.pass(70)
	b.wants("+1 RetryBudgetExhausted firing", "+266 RetryBudgetExhausted resolved")
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
		"a lost record of many": func(b *bench) { b.in.Lost = 9 },
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
		"records cannot be read":    {func(b *bench) { b.in.Lost = 100 }, []string{"+31 AuditorBlind firing"}},
		"times are not known": {func(b *bench) {
			b.dep().Budgets[0] = Budget{Model: "concurrency", Window: 10 * time.Second, Timed: true, Reading: budget.Reading{State: budget.Untimed}}
			b.dep().Minute.Untimed = 6000
		}, []string{"+31 AuditorBlind firing"}},
		"times are not known, and nothing is spent in them": {func(b *bench) { b.dep().Minute.Untimed = 6000 }, nil},
		"a question in two scopes":                          {func(b *bench) { b.dep().ScopeSplit = true }, []string{"+31 AuditorBlind firing"}},
		"the store":                                         {func(b *bench) { b.in.Store = true }, []string{"+31 AuditorBlind firing"}},
		"a source fails":                                    {func(b *bench) { b.in.Sources = []Source{{Name: "log", Failed: true}} }, []string{"+31 AuditorBlind firing"}},
		"a source is behind":                                {func(b *bench) { b.in.Sources = []Source{{Name: "log", Behind: true, Lag: 31 * time.Second}} }, []string{"+31 AuditorBlind firing"}},
		"old, and read to its end":                          {func(b *bench) { b.in.Sources = []Source{{Name: "log", Lag: time.Hour}} }, nil},
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

// A budget whose times are no longer known is not spent less for that: what fires goes on.
func TestTimesThatAreNotKnownResolveNothing(t *testing.T) {
	for _, state := range []budget.State{budget.OK, budget.Untimed} {
		b := newBench(t)
		b.dep().Budgets[0] = Budget{Model: "concurrency", Window: 10 * time.Second, Timed: true, Some: true, Reading: budget.Reading{Consumed: 2, Spent: 6, State: budget.Exhausted}}
		b.pass(5)
		x := &b.dep().Budgets[0]
		x.Reading = budget.Reading{State: state}
		x.Some = state != budget.Untimed
		b.pass(200)
		fires := false
		for _, a := range b.e.Alerts() {
			fires = fires || a.Name == RetryBudgetExhausted && a.State == Firing
		}
		if fires != (state == budget.Untimed) {
			t.Errorf("%s: it fires: %v", state, fires)
		}
	}
}

// What is unread is told by the share that is.
func TestUnreadSaysTheShareUnread(t *testing.T) {
	b := newBench(t)
	b.in.Lost = 250 // of 1250
	b.pass(40)
	all := b.e.Alerts()
	if len(all) != 1 || all[0].Value != 0.2 || !strings.Contains(all[0].Summary, "(unread: 0.2)") {
		t.Errorf("%+v", all)
	}
}
