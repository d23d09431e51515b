package aggregate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// However arrivals come in and whenever beats are asked for: they add up to what
// the closed ticks count, second by second of log time.
func TestBeatsAddUpToWhatTicksCount(t *testing.T) {
	const horizon, lateness = 60 * sec, 25 * sec
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 31))
		in := randomArrivals(r, 1+r.IntN(250), 20*sec)
		cfg := Config{Horizon: horizon, Lateness: lateness, Live: true, Views: []View{{Every: 1, ByRoute: true, ByOriginator: true}, {Every: 1, ByRoute: true, ByPeer: true}}}
		l := NewLedger(cfg)
		out := new(Output)
		mark := int64(minTick)
		filed := 0
		for _, a := range disorder(r, in, lateness-8*sec) {
			l.Add(&a, nil, minTick)
			filed++
			if r.IntN(5) == 0 {
				l.Live(out)
			}
			mark = max(mark, a.Log)
			l.Close(floorDiv(mark-lateness, sec), out)
		}
		l.Finish(out)

		byDims, byOwner := map[Dims]*Sums{}, map[Dims]*Sums{}
		for i := range out.Beats {
			b := &out.Beats[i]
			sumsOf(byDims, Dims{Route: b.Dims.Route, Peer: b.Dims.Peer}).Add(b)
			sumsOf(byOwner, Dims{Route: b.Dims.Route, Originator: b.Dims.Originator}).Add(b)
		}
		got := map[string]any{}
		for d, s := range byDims {
			x := s.Totals()
			x.Originals, x.Estimated, x.Repeats, x.RepeatSeconds, x.UntimedRepeats = 0, 0, 0, 0, 0 // a question's peers may take turns
			got[fmt.Sprint("peer ", d)] = byArrival(x)
		}
		for d, s := range byOwner {
			x := s.Totals()
			x.RepeatSeconds, x.UntimedRepeats = 0, 0
			got[fmt.Sprint("originator ", d)] = byArrival(x)
		}
		sums := [2]map[Dims]*Counts{{}, {}}
		n := 0
		for _, row := range out.Rows {
			if !row.Wide {
				c := into(sums[row.View], row.Dims)
				row.Counts.Settle(0)
				c.Merge(row.Counts)
			}
		}
		want := map[string]any{}
		for view, name := range []string{"originator ", "peer "} {
			for d, c := range sums[view] {
				x := c.Totals()
				if x.RepeatSeconds, x.UntimedRepeats = 0, 0; view == 1 {
					x.Originals, x.Estimated, x.Repeats = 0, 0, 0
				}
				if x.Arrivals > 0 {
					want[fmt.Sprint(name, d)] = byArrival(x)
				}
			}
		}
		for _, x := range out.Ticks {
			n += int(x.N)
		}
		if n != filed {
			t.Fatalf("seed %d: %d records were filed, ticks tell of %d", seed, filed, n)
		}
		if !reflect.DeepEqual(got, want) {
			for k := range want {
				if !reflect.DeepEqual(got[k], want[k]) {
					t.Errorf("%s:\nbeats %+v\nticks %+v", k, got[k], want[k])
				}
			}
			t.Fatalf("seed %d: beats and ticks differ (%d and %d rows)", seed, len(got), len(want))
		}
	}
}

func sumsOf(m map[Dims]*Sums, d Dims) *Sums {
	if m[d] == nil {
		m[d] = new(Sums)
	}
	return m[d]
}

// byArrival leaves out what only a question's history tells.
func byArrival(t Totals) Totals {
	t.OrphanAttempts, t.Reopened, t.RetryReturned, t.RetryEarly = 0, 0, 0, 0
	t.Overspent, t.NotDecremented, t.Increased = 0, 0, 0
	t.AfterGone, t.AfterError, t.AfterOverload, t.AfterSuccess, t.AfterInFlight = 0, 0, 0, 0, 0
	return t
}

// A beat says repeat as soon as a second arrival is there, and a shipper's copy is
// none.
func TestCopiesAreNoRepeatsLive(t *testing.T) {
	l := NewLedger(Config{Horizon: 120 * sec, Lateness: 60 * sec, Live: true})
	a := Arrival{Start: testBase, Log: testBase + sec, Duration: sec, RetryAfter: -1, Question: ID{1, 2}, Text: 7, Route: 1, Originator: 1, Peer: 1, Class: 1, Flags: Head | Decidable, AttemptsLeft: NoBudget}
	out := new(Output)
	add := func(a Arrival) Totals {
		l.Add(&a, nil, minTick)
		l.Live(out)
		s := new(Sums)
		for i := range out.Beats {
			s.Add(&out.Beats[i])
		}
		return s.Totals()
	}
	if s := add(a); s.Originals != 1 || s.Repeats != 0 {
		t.Fatalf("one arrival: %+v", s)
	}
	if s := add(a); s.Arrivals != 1 {
		t.Fatalf("a copy of its record counts: %+v", s)
	}
	b := a
	b.Start, b.Log, b.Text = a.Start-5*sec, a.Log-5*sec, 8
	if s := add(b); s.Originals != 1 || s.Repeats != 1 {
		t.Fatalf("two arrivals: %+v", s)
	}
	l.Close(tickOf(testBase)+100, out)
	b.Start, b.Log, b.Text = a.Start+110*sec, a.Log+110*sec, 9
	if s := add(b); s.Originals != 1 || s.Repeats != 2 {
		t.Fatalf("a third, after the others' ticks were closed: %+v", s)
	}
}
