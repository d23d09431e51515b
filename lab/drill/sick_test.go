package drill

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// failing fails every n-th of the requests whose path begins so, from a time after the
// first on.
func failing(prefix string, every int64, after time.Duration) http.HandlerFunc {
	var first, seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		first.CompareAndSwap(0, time.Now().UnixNano())
		if strings.HasPrefix(r.URL.Path, prefix) && time.Now().UnixNano()-first.Load() >= int64(after) && seen.Add(1)%every == 0 {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		dependency(w, r)
	}
}

// TestSickDependency: nothing is concluded from failures that were not injected, and a
// few of them keep no answer back.
func TestSickDependency(t *testing.T) {
	if raced {
		t.Skip("one drill is enough for the race detector, which takes long")
	}
	for name, c := range map[string]struct {
		behind         http.HandlerFunc
		fault          Fault
		ceiling, scope string
	}{
		"down from the beginning":     {failing("/", 1, 0), Fault{Kind: Error, Status: 503}, Unclear, Unclear},
		"down, under latency":         {failing("/", 1, 0), Fault{Kind: Latency, Latency: time.Second}, Unclear, Unclear},
		"sick from the beginning":     {failing("/seats/", 20, 0), Fault{Kind: Error, Status: 503}, Unclear, Unclear},
		"down in the middle":          {failing("/", 1, 50*time.Second), Fault{Kind: Error, Status: 503}, Unclear, Unclear},
		"down in the middle, latency": {failing("/", 1, 50*time.Second), Fault{Kind: Latency, Latency: time.Second}, Unclear, Unclear},
		"the control's alone is sick": {failing("/prices/", 10, 0), Fault{Kind: Error, Status: 503}, PerCall, Unclear},
		"one of a hundred":            {failing("/", 100, 0), Fault{Kind: Error, Status: 503}, PerCall, Never},
		"well, and answers come late": {nil, Fault{Kind: Latency, Latency: time.Second}, PerCall, Never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := rig{plan: quiet, rate: 20, behind: c.behind, callers: []*caller{{attempts: 3, backoff: 20 * time.Millisecond, timeout: 500 * time.Millisecond}}}
			g.plan.Fault = c.fault
			r, _ := g.play(t)
			a := r.Answers
			if a.Ceiling.Kind != c.ceiling || a.Scope.Kind != c.scope {
				t.Errorf("ceiling %+v\nscope %+v", a.Ceiling, a.Scope)
			}
			failed, passed, failedBefore, passedBefore := r.WithoutFault()
			figures := fmt.Sprintf("the dependency failed by itself: %d of %d requests before any fault, and %d of %d without one in all", failedBefore, passedBefore, failed, passed)
			for _, x := range []Answer{a.Ceiling, a.Spent} {
				if says := strings.HasPrefix(x.Says, figures); says != (c.ceiling == Unclear) {
					t.Errorf("%s; want %v: %s", x.Says, c.ceiling == Unclear, figures)
				}
			}
			if c.scope == Unclear && !strings.Contains(a.Scope.Says, "the dependency failed by itself: ") {
				t.Error(a.Scope.Says)
			}
			if name == "down from the beginning" && (failed != passed || failedBefore != passedBefore || passedBefore < 100) || c.behind == nil && failed != 0 {
				t.Error(figures)
			}
		})
	}
}

// TestInterrupted: a step that never began is in no report.
func TestInterrupted(t *testing.T) {
	if raced {
		t.Skip("one drill is enough for the race detector, which takes long")
	}
	for ends, steps := range map[time.Duration]int{4 * time.Second: 1, 15 * time.Second: 2, 35 * time.Second: 3, 95 * time.Second: 6} {
		g := rig{plan: quiet, rate: 5, ends: ends, callers: []*caller{{attempts: 3, backoff: 20 * time.Millisecond, timeout: 500 * time.Millisecond}}}
		r, _ := g.play(t)
		if len(r.Steps) != steps || r.Whole {
			t.Errorf("interrupted after %v: %d steps, want %d; whole: %v", ends, len(r.Steps), steps, r.Whole)
		}
		n := 0
		for _, s := range r.Steps {
			n += s.Route.Arrivals + s.Control.Arrivals
			if !s.To.After(s.From) || s.Route.Arrivals == 0 {
				t.Errorf("interrupted after %v: a step from %v to %v with %d arrivals", ends, s.From, s.To, s.Route.Arrivals)
			}
		}
		if n != r.Requests {
			t.Errorf("interrupted after %v: %d of %d requests are in a step", ends, n, r.Requests)
		}
	}
}
