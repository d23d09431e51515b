package alerts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

func plan(capacity float64, attempts ...int) *budget.Plan {
	p := budget.Policy{Chosen: 1.2, CapacityPerSecond: capacity}
	for i, n := range attempts {
		p.Layers = append(p.Layers, budget.Layer{Name: fmt.Sprint("layer ", i), Attempts: &n})
	}
	return p.Plan()
}

// What is not known to be cheap is not called so, nor is it called dear.
func TestAboveDeclaredWithoutTimes(t *testing.T) {
	for _, c := range []struct {
		name                             string
		untimed, repeats, repeatsUntimed uint64
		repeatSeconds                    float64
		capacity                         float64
		severity, says                   string
	}{
		{"known", 0, 1800, 0, 5, 1000, warning, "Repeats take 5 % of the time in system."},
		{"none", 2000, 1800, 1800, 0, 1000, warning, "What part of the time in system repeats take is not known"},
		{"none, and more than can be served", 2000, 1800, 1800, 0, 1, critical, "not known, for want of durations in the log, and 6.667 arrivals/s are more than"},
		{"of too few others", 100, 1800, 0, 90, 1000, warning, "is not known"},
		{"of too few repeats", 900, 1800, 900, 5, 1000, warning, "Repeats take at least 5 % of the time in system (of too few is it known)."},
		{"of too few repeats, and dear all the same", 900, 1800, 900, 50, 1000, critical, "It costs: repeats take at least 50 % of"},
	} {
		b := newBench(t)
		b.in.Rules.Declared = plan(c.capacity, 3, 3)
		b.dep().Closed = &Closed{Span: 300 * time.Second, Questions: 200, Totals: aggregate.Totals{
			Arrivals: 2000, Verified: 2000, Repeats: c.repeats, BusySeconds: 100, RepeatSeconds: c.repeatSeconds, Untimed: c.untimed, UntimedRepeats: c.repeatsUntimed,
		}}
		b.pass(70)
		told := 0
		for _, a := range b.e.Alerts() {
			if a.Told {
				told++
				if a.Labels["severity"] != c.severity || !strings.Contains(a.Description, c.says) {
					t.Errorf("%s: %+v", c.name, a)
				}
			}
		}
		if told != 1 {
			t.Errorf("%s: %d are told", c.name, told)
		}
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
