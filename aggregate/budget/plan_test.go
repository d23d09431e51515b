package budget

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

func attempts(name string, n int, timeout, backoff time.Duration) Layer {
	return Layer{Name: name, Attempts: &n, Timeout: timeout, Backoff: backoff, HonoursRetryAfter: true}
}

func share(b float64, of Base) Layer {
	return Layer{Name: "x", Budget: &b, Base: of, HonoursRetryAfter: true}
}

func codes(p *Plan) (out []string) {
	for _, f := range p.Findings {
		out = append(out, string(f.Code))
	}
	return out
}

// walk makes every call of a policy's layers, each try of which fails, and returns
// how many arrive and when the last has ended.
func walk(layers []Layer, served time.Duration) (arrivals int, took time.Duration) {
	if len(layers) == 0 {
		return 1, served
	}
	l := &layers[0]
	for try := range l.tries() {
		if try > 0 {
			took += l.Backoff
		}
		n, d := walk(layers[1:], served)
		if l.Timeout > 0 {
			d = min(d, l.Timeout)
		}
		arrivals, took = arrivals+n, took+d
	}
	return arrivals, took
}

// A plan without budgets is what comes of making the calls one by one.
func TestPlanEqualsWalk(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := Policy{Chosen: 1 + r.Float64()*4, OfferedPerSecond: float64(r.IntN(1000)), CapacityPerSecond: float64(r.IntN(5000)), Deadline: time.Duration(r.IntN(20)) * time.Second}
		for range 1 + r.IntN(4) {
			n := 1 + r.IntN(4)
			l := Layer{Name: "layer", Backoff: time.Duration(r.IntN(3)) * 250 * time.Millisecond, HonoursRetryAfter: r.IntN(2) == 0}
			if r.IntN(2) == 0 {
				l.Attempts = &n
			} else {
				n--
				l.Retries = &n
			}
			if r.IntN(3) > 0 {
				l.Timeout = time.Duration(1+r.IntN(40)) * 100 * time.Millisecond
			}
			p.Layers = append(p.Layers, l)
		}
		innermost := &p.Layers[len(p.Layers)-1]
		innermost.Timeout = max(innermost.Timeout, time.Second)
		arrivals, took := walk(p.Layers, time.Hour) // longer than any timeout
		got := p.Plan()
		if *got.WorstCase != float64(arrivals) || *got.WaitSeconds != took.Seconds() {
			t.Fatalf("%+v: %v arrivals in %v s, want %v in %v s", p.Layers, *got.WorstCase, *got.WaitSeconds, arrivals, took.Seconds())
		}
		if yes := math.Abs(float64(arrivals)-p.Chosen) <= 0.0005; *got.AsChosen != yes {
			t.Fatalf("%d where %v was chosen: %v", arrivals, p.Chosen, *got.AsChosen)
		}
		owners := 0
		for i := range p.Layers {
			if n, _ := walk(p.Layers[i:i+1], 0); n > 1 {
				owners++
			}
		}
		if len(got.Owners) != owners || strings.Contains(strings.Join(codes(got), " "), "several_owners") != (owners > 1) {
			t.Fatalf("%+v: owners %v, findings %v", p.Layers, got.Owners, codes(got))
		}
		if p.OfferedPerSecond > 0 && *got.WorstPerSecond != p.OfferedPerSecond*float64(arrivals) {
			t.Fatalf("load %v", *got.WorstPerSecond)
		}
		if got.BeyondDeadline != nil != (p.Deadline > 0) || p.Deadline > 0 && *got.BeyondDeadline != (took > p.Deadline) {
			t.Fatalf("%v of %v: beyond %v", took, p.Deadline, got.BeyondDeadline)
		}
	}
}

// Budgets are reckoned in decimals, so that figures are right to the digit.
func TestBudgetsMultiplyExactly(t *testing.T) {
	for _, c := range []struct {
		share float64
		of    Base
		hops  int
		want  float64
	}{
		{0.2, Originals, 3, 1.728}, {0.2, "", 1, 1.2}, {0.1, Originals, 2, 1.21}, {0.1, Originals, 20, 6.7274999493256000920160999},
		{0.2, All, 3, 1.953125}, {0.5, All, 4, 16}, {0.1, All, 1, 10.0 / 9}, {0, All, 3, 1},
	} {
		p := Policy{Chosen: c.want}
		for range c.hops {
			p.Layers = append(p.Layers, share(c.share, c.of))
		}
		if got := p.Plan(); *got.WorstCase != c.want || !*got.AsChosen {
			t.Errorf("%v of %s over %d hops: %v, as chosen %v, want %v", c.share, c.of, c.hops, *got.WorstCase, *got.AsChosen, c.want)
		}
	}
}

// A budget says nothing about how long one call takes, unless a layer above cuts it
// off.
func TestWaitsOfBudgets(t *testing.T) {
	inner := share(0.2, All)
	inner.Timeout = time.Second
	p := Policy{Chosen: 1.25, Deadline: time.Second, Layers: []Layer{attempts("outer", 2, 0, 0), inner}}
	if got := p.Plan(); got.WaitSeconds != nil || got.BeyondDeadline != nil {
		t.Errorf("the wait is %v", *got.WaitSeconds)
	}
	p.Layers[0].Timeout = 3 * time.Second
	if got := p.Plan(); got.WaitSeconds == nil || *got.WaitSeconds != 6 || !*got.BeyondDeadline {
		t.Errorf("two tries of 3 s take %v", got.WaitSeconds)
	}
}

func TestFindings(t *testing.T) {
	fast := Policy{Chosen: 2, CapacityPerSecond: 200, OfferedPerSecond: 100, Service: 10 * time.Millisecond,
		Layers: []Layer{attempts("a", 2, 100*time.Millisecond, 0)}}
	change := func(change func(*Policy)) Policy {
		p := fast
		p.Layers = append([]Layer{}, fast.Layers...)
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		p    Policy
		want string
	}{
		"nothing declared":           {Policy{Chosen: 1.2}, ""},
		"fast, one hop":              {fast, "no_budget_needed"},
		"above capacity":             {change(func(p *Policy) { p.OfferedPerSecond = 101 }), "chosen_above_affordable above_capacity"},
		"demand alone":               {change(func(p *Policy) { p.OfferedPerSecond = 201 }), "demand_above_capacity above_capacity"},
		"capacity unknown":           {change(func(p *Policy) { p.CapacityPerSecond = 0 }), ""},
		"slow":                       {change(func(p *Policy) { p.Service = 101 * time.Millisecond }), "answers_too_late"},
		"as long as it waits":        {change(func(p *Policy) { p.Service = 100 * time.Millisecond }), "no_budget_needed"},
		"queue meets timeout":        {change(func(p *Policy) { p.Queue, p.DrainPerSecond, p.Service = 100, 1000, 20*time.Millisecond }), "answers_too_late"},
		"queue of unknown drain":     {change(func(p *Policy) { p.Queue = 100 }), ""},
		"two hops":                   {change(func(p *Policy) { p.Layers = append(p.Layers, attempts("b", 1, 100*time.Millisecond, 0)) }), ""},
		"deaf":                       {change(func(p *Policy) { p.Layers[0].HonoursRetryAfter = false }), "ignores_retry_after no_budget_needed"},
		"nobody retries":             {Policy{Chosen: 1, CapacityPerSecond: 200, OfferedPerSecond: 100, Service: time.Millisecond, Layers: []Layer{attempts("a", 1, time.Second, 0)}}, ""},
		"a fifth where 2 was chosen": {Policy{Chosen: 2, Layers: []Layer{share(0.2, Originals)}}, "not_chosen"},
		"more than chosen":           {Policy{Chosen: 1.2, Layers: []Layer{attempts("a", 2, 0, 0)}}, "not_chosen"},
		"beyond the deadline":        {Policy{Chosen: 2, Deadline: 3 * time.Second, Layers: []Layer{attempts("a", 2, 2*time.Second, 0)}}, "beyond_deadline"},
		"the caller's deadline":      {change(func(p *Policy) { p.Deadline = 9 * time.Millisecond }), "beyond_deadline answers_too_late"},
		"tries that outlast it":      {change(func(p *Policy) { p.Deadline = 199 * time.Millisecond }), "beyond_deadline"},
		"tries that do not":          {change(func(p *Policy) { p.Deadline = 200 * time.Millisecond }), "no_budget_needed"},
		"leaves first":               {Policy{Chosen: 2, Layers: []Layer{attempts("a", 1, 3*time.Second, 0), attempts("b", 2, 2*time.Second, 0)}}, "leaves_first"},
	} {
		if got := strings.Join(codes(c.p.Plan()), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	p := Policy{Chosen: 2, Layers: []Layer{share(0.2, Originals)}}
	if got := p.Plan().Findings[0].Text; got != "2 was chosen, where the layers stop at 1.2: one of the two is not meant" {
		t.Error(got)
	}
}

// sent follows one call through every layer and says how long the dependency's answer
// to it is waited for; 0 is for ever. Each layer hands on what is left of its own
// caller's patience.
func sent(layers []Layer, patience time.Duration) time.Duration {
	if len(layers) == 0 {
		return patience
	}
	if own := layers[0].Timeout; own > 0 && (patience == 0 || own < patience) {
		patience = own
	}
	return sent(layers[1:], patience)
}

// An answer is of use for as long as nobody around the call has left, wherever the
// shortest timeout stands.
func TestQueueMeetsTheFirstWhoLeaves(t *testing.T) {
	p := Policy{Chosen: 2, Deadline: 20 * time.Second, Queue: 3000, DrainPerSecond: 1000, Layers: []Layer{attempts("gateway", 2, 2*time.Second, 0), attempts("mesh", 1, 0, 0)}}
	if got := p.Plan(); *got.CallerTimeoutSeconds != 2 || !*got.AnswersTooLate || strings.Join(codes(got), " ") != "answers_too_late" {
		t.Errorf("waits %v s, %v", *got.CallerTimeoutSeconds, codes(got))
	}
	p = Policy{Chosen: 2, Deadline: time.Second, CapacityPerSecond: 2000, OfferedPerSecond: 900, Queue: 10000, DrainPerSecond: 2000, Service: time.Millisecond,
		Layers: []Layer{attempts("worker", 2, 10*time.Second, 0)}}
	if got := p.Plan(); *got.CallerTimeoutSeconds != 1 || strings.Join(codes(got), " ") != "beyond_deadline answers_too_late" {
		t.Errorf("waits %v s, %v", *got.CallerTimeoutSeconds, codes(got))
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 11))
		timeout := func() time.Duration { return time.Duration(max(0, r.IntN(30)-10)) * 100 * time.Millisecond }
		p := Policy{Chosen: 2, Deadline: timeout(), Queue: 1 + r.IntN(2000), DrainPerSecond: 1000}
		for range r.IntN(5) {
			p.Layers = append(p.Layers, attempts("layer", 1+r.IntN(3), timeout(), 0))
		}
		got, want := p.Plan(), sent(p.Layers, p.Deadline)
		if (got.CallerTimeoutSeconds != nil) != (want > 0) || want > 0 && *got.CallerTimeoutSeconds != want.Seconds() {
			t.Fatalf("%+v: waits %v, want %v", p, got.CallerTimeoutSeconds, want)
		}
		if late := float64(p.Queue)/1000 > want.Seconds(); want > 0 && *got.AnswersTooLate != late {
			t.Fatalf("%+v: too late is %v", p, !late)
		}
	}
}

// Every number of the largest plan that a configuration lets through is one.
func TestTheLargestPlan(t *testing.T) {
	p := Policy{Chosen: 1e15, CapacityPerSecond: 1e-6, OfferedPerSecond: 1e15, Queue: math.MaxInt, DrainPerSecond: 1e-6, Deadline: math.MaxInt64, Service: math.MaxInt64}
	for range 20 {
		p.Layers = append(p.Layers, attempts("x", 1000, math.MaxInt64, math.MaxInt64))
	}
	if _, err := json.Marshal(p.Plan()); err != nil {
		t.Error(err)
	}
	for i := range p.Layers {
		p.Layers[i] = share(0.999, All)
	}
	if got := p.Plan(); *got.WorstCase != 1e60 {
		t.Errorf("%v", *got.WorstCase)
	}
	if !reflect.DeepEqual((&Policy{Chosen: 1}).Plan().Layers, []LayerPlan{}) {
		t.Error("no layers are no list")
	}
}

// A number that is not 0 never looks like 0, and no number loses what it has before
// the point.
func TestDigits(t *testing.T) {
	for _, c := range []struct {
		value float64
		want  string
	}{
		{0, "0"}, {27, "27"}, {4860000, "4,860,000"}, {1.1111111, "1.111"}, {1.0005, "1.001"}, {0.25, "0.25"}, {0.0123, "0.012"}, {0.01, "0.01"},
		{0.0095, "0.0095"}, {0.00999, "0.01"}, {0.0004, "0.0004"}, {0.000123, "0.00012"}, {1e-6, "0.000001"}, {1e-21, "0.000000000000000000001"},
	} {
		if got := digits(decimal(c.value)); got != c.want {
			t.Errorf("%v: %q, want %q", c.value, got, c.want)
		}
	}
	p := Policy{Chosen: 1, OfferedPerSecond: 3e-4, CapacityPerSecond: 2e-4, Service: 300 * time.Nanosecond, Layers: []Layer{attempts("a", 1, 200*time.Nanosecond, 0)}}
	var texts []string
	for _, f := range p.Plan().Findings {
		texts = append(texts, f.Text)
	}
	if got, want := strings.Join(texts, "\n"), "0.0003 questions a second are more than the 0.0002 arrivals that can be served\n"+
		"0.0003 arrivals a second in the worst case, where 0.0002 can be served\n"+
		"a full queue is answered after 0.0003 ms, and its callers leave after 0.0002 ms: work for nobody, with retries or without"; got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}
