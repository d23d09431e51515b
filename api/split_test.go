package api

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// That a dependency is split is said by every answer about it, and by none about
// another.
func TestScopeSplitIsSaid(t *testing.T) {
	f := newFake()
	snap := stormSnapshot()
	snap.Dependencies[0].ScopeSplit = true
	other := snap.Dependencies[0]
	other.Name, other.ScopeSplit = "orders", false
	snap.Dependencies = append(snap.Dependencies, other)
	f.set(snap)
	f.answer.ScopeSplitIn = []string{"inventory"}
	s := newServer(t, f, Options{})
	for target, want := range map[string]string{
		"summary": "true [inventory]", "summary?dependency=orders": "false <nil>", "budgets?dependency=inventory": "true [inventory]",
		"series": "true [inventory]", "top?by=peer": "true [inventory]", "top?by=peer&from=-1h": "true [inventory]", "policy": "true [inventory]",
		"questions/qk1.web.a.secret%2F1": "true [inventory]", "top?by=question&dependency=orders": "false <nil>",
		"top?by=question&from=-1h": "true [inventory]",
	} {
		v := object(t, ask(s, "GET", "/api/v1/"+target).Body)
		if got := fmt.Sprint(v["scope_split"], " ", v["scope_split_in"]); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	metrics := ask(s, "GET", "/metrics").Body.String()
	for _, want := range []string{`auditor_scope_split{dependency="inventory"} 1`, `auditor_scope_split{dependency="orders"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s", want)
		}
	}
}

// Of a range the store is asked, for as many as are counted.
func TestWorstQuestionsOfARange(t *testing.T) {
	f := newFake()
	s := newServer(t, f, Options{})
	v := object(t, ask(s, "GET", "/api/v1/top?by=question&from=-2h&to=-30m&dependency=inventory&route=x&originator=web&limit=1").Body)
	want := WorstQuery{noon.Add(-2 * time.Hour), noon.Add(-30 * time.Minute), "inventory", "x", "web", 1000}
	if len(f.worst) != 1 || f.worst[0] != want {
		t.Errorf("asked for %+v, want %+v", f.worst, want)
	}
	if at(v, "questions", 0, "arrivals") != 9.0 || at(v, "questions", 0, "live") != false || v["coverage"] != 0.9 || v["window"] != nil {
		t.Errorf("%v", v)
	}
}
