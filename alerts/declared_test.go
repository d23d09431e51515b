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
