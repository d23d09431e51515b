package pipeline

import (
	"fmt"
	"math"
	"testing"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// BenchmarkFleetPicture takes pictures of 64 partitions with four dependencies each, of
// which every second of five minutes is told: more than most have.
func BenchmarkFleetPicture(b *testing.B) {
	const scopes, dependencies, seconds = 64, 4, 300
	f := NewFleet()
	var present []ScopeState
	var expected []string
	size := 0
	for i := range scopes {
		name := fmt.Sprint("log/", i)
		expected = append(expected, name)
		present = append(present, ScopeState{Scope: name, Rules: 1, First: 0, Head: seconds - 1, From: math.MinInt64, Closed: math.MinInt64})
		for at := range int64(seconds) {
			state := []byte{toldVersion, 1, 0, 0}
			for d := range dependencies {
				s := new(aggregate.Sums)
				for range 200 {
					s.Add(&aggregate.Beat{Busy: 3e6})
				}
				state = s.AppendSums(appendName(state, routeName{fmt.Sprint("dependency ", d), ""}))
			}
			size += len(state)
			if err := f.Hear("a", &Told{ToldSecond, name, at, state}); err != nil {
				b.Fatal(err)
			}
		}
	}
	f.HearStates("a", present, nil)
	m := budget.DefaultModel(budget.DefaultRatio())
	for b.Loop() {
		if p := f.Picture(present, expected, 0, m, nil); len(p.Dependencies) != dependencies || p.Scopes != scopes {
			b.Fatalf("%+v", p)
		}
	}
	b.ReportMetric(float64(size)/scopes/seconds, "B/second")
}
