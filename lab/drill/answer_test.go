package drill

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

// TestAnswers: callers that bound their repeats in a way that is known are told apart.
func TestAnswers(t *testing.T) {
	budget := func(share float64) *bucket { return &bucket{share: share} }
	one := func(c *caller) func() []*caller { return func() []*caller { return []*caller{c} } }
	with := func(change func(*Plan)) Plan { p := quiet; change(&p); return p }
	for name, c := range map[string]struct {
		plan                  Plan
		callers               func() []*caller
		ceiling, scope, spent string
		is                    float64 // of the ceiling
	}{
		"a count": {quiet, one(&caller{attempts: 3, backoff: 20 * time.Millisecond}), PerCall, Never, Never, 3},
		"a count, and slow answers": {with(func(p *Plan) { p.Fault = Fault{Kind: Latency, Latency: time.Second} }),
			one(&caller{attempts: 3}), PerCall, Never, Never, 3},
		"a count, and resets": {with(func(p *Plan) { p.Fault = Fault{Kind: Reset} }), one(&caller{attempts: 4}), PerCall, Never, Never, 4},
		"a budget for each route": {quiet, func() []*caller {
			return []*caller{{attempts: 3, bucket: budget(0.2)}, {attempts: 3, bucket: budget(0.2)}}
		}, Share, Own, FailFast, 0.2},
		"a budget for both routes": {quiet, one(&caller{attempts: 3, bucket: budget(0.1)}), Share, Shared, FailFast, 0.2},
		"a budget that is waited for": {quiet, func() []*caller {
			return []*caller{{attempts: 2, bucket: budget(0.2), waits: 3 * time.Second}, {attempts: 2, bucket: budget(0.2), waits: 3 * time.Second}}
		}, Share, Own, Queues, 0.2},
		"callers that stop asking": {quiet, one(&caller{attempts: 3, breaks: true}), PerCall, Never, Never, 3},
		"no repeats":               {quiet, one(&caller{attempts: 1}), NoRepeat, Never, FailFast, 0},
		"some callers repeat, some do not": {with(func(p *Plan) { p.Route, p.Control = Route{"GET", "/"}, Route{} }),
			func() []*caller { return []*caller{{attempts: 3}, {attempts: 1}} }, Unclear, NotAsked, "", 0},
		"attempts with keys of their own": {quiet, one(&caller{attempts: 3, rekeys: true}), Unclear, Unclear, Unclear, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if raced && name != "a budget for both routes" {
				t.Skip("one drill is enough for the race detector, which takes long")
			}
			g := rig{plan: c.plan, callers: c.callers(), rate: 30}
			for _, x := range g.callers {
				if x.timeout = 500 * time.Millisecond; x.backoff == 0 {
					x.backoff = 20 * time.Millisecond
				}
			}
			r, lines := g.play(t)
			a := r.Answers
			if a.Ceiling.Kind != c.ceiling || a.Scope.Kind != c.scope || c.spent != "" && a.Spent.Kind != c.spent {
				t.Errorf("ceiling %s, scope %s, once spent %s; want %s, %s, %s", a.Ceiling.Kind, a.Scope.Kind, a.Spent.Kind, c.ceiling, c.scope, c.spent)
			}
			if c.ceiling != Unclear && (a.Ceiling.Is == nil || math.Abs(*a.Ceiling.Is-c.is) > 0.1*c.is) {
				t.Errorf("the ceiling is %v, want %v", a.Ceiling.Is, c.is)
			}
			if fewer := strings.Contains(a.Spent.Says, "questions a second are asked"); fewer != g.callers[0].breaks {
				t.Errorf("that they ask less: %v", fewer)
			}
			if r.Requests != len(lines) || !r.Whole {
				t.Errorf("%d requests and %d records of a drill that is whole: %v", r.Requests, len(lines), r.Whole)
			}
			if t.Failed() {
				text, _ := json.MarshalIndent(r, "", " ")
				t.Log(string(text))
			}
			for _, x := range []Answer{a.Ceiling, a.Scope, a.Spent} {
				t.Log(x.Says)
			}
		})
	}
}
