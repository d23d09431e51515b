package budget

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestReadingStates(t *testing.T) {
	m := DefaultModel(DefaultRatio())
	for _, c := range []struct {
		name     string
		c        Counts
		consumed float64
		state    State
		ok       bool
	}{
		{"honest", Counts{Arrivals: 100, Verified: 100, Originals: 100, Repeats: 0}, 0, OK, true},
		{"under half", Counts{Arrivals: 109, Verified: 109, Originals: 100, Repeats: 9}, 0.45, OK, true},
		{"half", Counts{Arrivals: 110, Verified: 110, Originals: 100, Repeats: 10}, 0.5, Low, true},
		{"all of it", Counts{Arrivals: 120, Verified: 120, Originals: 100, Repeats: 20}, 1, Exhausted, true},
		{"storm", Counts{Arrivals: 300, Verified: 300, Originals: 100, Repeats: 200}, 10, Exhausted, true},
		{"storm that cannot be believed", Counts{Arrivals: 300, Verified: 254, Originals: 100, Repeats: 200}, 10, Blind, true},
		{"at the coverage floor", Counts{Arrivals: 300, Verified: 255, Originals: 100, Repeats: 200}, 10, Exhausted, true},
		{"too few", Counts{Arrivals: 19, Verified: 19, Originals: 1, Repeats: 18}, 0, "", false},
		{"nothing allowed, nothing spent", Counts{Arrivals: 20, Verified: 20, Originals: 0, Repeats: 0}, 0, OK, true},
		{"nothing allowed", Counts{Arrivals: 20, Verified: 20, Originals: 0, Repeats: 20}, math.NaN(), Exhausted, true},
	} {
		r, ok := m.Read(c.c, Bucket{})
		if ok != c.ok || r.State != c.state || !(r.Consumed == c.consumed || math.IsNaN(r.Consumed) && math.IsNaN(c.consumed)) {
			t.Errorf("%s: %+v %v", c.name, r, ok)
		}
	}
	m.Grant = Ratio{Ratio: 0.2, FloorPerSecond: 10, Clients: 3}
	if r, _ := m.Read(Counts{Arrivals: 120, Verified: 120, Originals: 100, Repeats: 20}, Bucket{}); r.Allowance != 20+10*10*3 {
		t.Errorf("floor: allowance %v", r.Allowance)
	}
}

// The tracker must read what a recount of every window reads.
func TestTrackerEqualsRecount(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := DefaultModel(DefaultRatio())
		m.Window = 1 + r.IntN(12)
		m.MinArrivals = r.IntN(30)
		log := map[int64]Counts{}
		first := int64(1000)
		last := first + r.Int64N(120)
		tr := NewTracker(&m, first-r.Int64N(3))
		seen := map[int64]Reading{}
		tr.Each = func(end int64, x Reading) { seen[end] = x }
		for s := first; s <= last; s++ {
			if r.IntN(4) == 0 {
				c := Counts{Originals: r.Uint64N(20), Repeats: r.Uint64N(30)}
				c.Arrivals = c.Originals + c.Repeats + r.Uint64N(4)
				c.Verified = c.Originals
				log[s] = c
				tr.Feed(s, c)
			}
		}
		tr.Slide(last + 1)
		var peak, exhausted = -1.0, int64(-1)
		for end := tr.from + int64(m.Window); end <= last+1; end++ {
			var sum Counts
			for s := end - int64(m.Window); s < end; s++ {
				sum.Add(log[s])
			}
			want, ok := m.Read(sum, Bucket{})
			got, had := seen[end]
			if sum.Arrivals == 0 && m.MinArrivals == 0 {
				continue // an empty window says nothing; whether it is read does not matter
			}
			if ok != had || ok && got != want && !math.IsNaN(want.Consumed) {
				t.Fatalf("seed %d, window to %d: %+v %v, want %+v %v", seed, end, got, had, want, ok)
			}
			if ok && want.Consumed > peak {
				peak = want.Consumed
			}
			if ok && want.Consumed >= 1 && exhausted < 0 {
				exhausted = end
			}
		}
		most, _ := tr.Peak.Reading()
		if peak > 0 && most.Consumed != peak || exhausted > 0 && tr.ExhaustedAt != exhausted {
			t.Fatalf("seed %d: peak %v at %d, want %v at %d", seed, most.Consumed, tr.ExhaustedAt, peak, exhausted)
		}
	}
}
