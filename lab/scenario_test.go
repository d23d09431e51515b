package lab

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// scenario reads a shipped scenario.
func scenario(t testing.TB, name string) *File {
	t.Helper()
	if name == "on-sale" && raced {
		t.Skip("on-sale is millions of events in one goroutine: the race detector has nothing to find there, and takes ten times as long")
	}
	file := filepath.Join("..", "examples", "lab", name+".yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// played is the truth of an arm.
func played(t testing.TB, f *File, arm string) *Truth {
	t.Helper()
	a, err := f.Arm(arm)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := Run(t.Context(), &a, Output{})
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

// on is a route in a phase.
func (t *Truth) on(phase, route string) PhaseRoute {
	for _, p := range t.Phases {
		if p.Phase == phase {
			return p.Routes[route]
		}
	}
	return PhaseRoute{}
}

// about wants a figure within a share of another.
func about(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) || math.IsNaN(got) {
		t.Errorf("%s: %.4g, want %.4g within %.3g %%", what, got, want, 100*within)
	}
}

func atMost(t *testing.T, what string, got, most float64) {
	t.Helper()
	if !(got <= most) {
		t.Errorf("%s: %.4g, want at most %.4g", what, got, most)
	}
}

func atLeast(t *testing.T, what string, got, least float64) {
	t.Helper()
	if !(got >= least) {
		t.Errorf("%s: %.4g, want at least %.4g", what, got, least)
	}
}
