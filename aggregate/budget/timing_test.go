package budget

import (
	"math"
	"testing"
)

// What is spent in times is not read from a log that does not give them, and is a lower
// bound where it gives those of too few repeats. Other models do without.
func TestTimesThatAreNotKnown(t *testing.T) {
	const ns = 1e9
	all := Counts{Arrivals: 100, Verified: 100, Originals: 60, Repeats: 40, Busy: 100 * ns, RepeatBusy: 40 * ns}
	with := func(change func(c *Counts)) Counts { c := all; change(&c); return c }
	m := DefaultModel(DefaultConcurrency())
	for _, c := range []struct {
		name     string
		c        Counts
		state    State
		consumed float64
		ok, high bool
	}{
		{"all are known", all, Exhausted, 4. / 3, true, true},
		{"none is", with(func(c *Counts) { c.Busy, c.RepeatBusy, c.Untimed, c.UntimedRepeats = 0, 0, 100, 40 }), Untimed, 0, false, false},
		{"none is, and nothing came again", Counts{Arrivals: 100, Verified: 100, Originals: 100, Untimed: 100}, Untimed, 0, false, false},
		{"of no repeat", with(func(c *Counts) { c.Busy, c.RepeatBusy, c.Untimed, c.UntimedRepeats = 60*ns, 0, 40, 40 }), Untimed, 0, false, false},
		{"of one repeat", with(func(c *Counts) { c.Busy, c.RepeatBusy, c.Untimed, c.UntimedRepeats = 61*ns, ns, 39, 39 }), Blind, 1. / 30, true, false},
		{"of one original", with(func(c *Counts) { c.Busy, c.Untimed = 41*ns, 59 }), Untimed, 0, false, false},
		{"of most, at the floor", with(func(c *Counts) { c.Untimed, c.UntimedRepeats = 15, 6 }), Exhausted, 4. / 3, true, true},
		{"of one repeat fewer", with(func(c *Counts) { c.Untimed, c.UntimedRepeats = 16, 7 }), Blind, 4. / 3, true, false},
		{"of one other fewer", with(func(c *Counts) { c.Untimed, c.UntimedRepeats = 16, 6 }), Untimed, 0, false, false},
		{"sampled, with more repeats than arrivals", Counts{Arrivals: 100, Verified: 100, Repeats: 128, Busy: ns, RepeatBusy: ns, Untimed: 40, UntimedRepeats: 64}, Blind, 1. / 30, true, false},
		{"too few arrivals", Counts{Arrivals: 19, Verified: 19, Originals: 19, Untimed: 19}, "", 0, false, false},
	} {
		r, ok := m.Read(c.c, Bucket{})
		if r.State != c.state || ok != c.ok || !near(r.Consumed, c.consumed) || ok && math.IsNaN(r.High) == c.high {
			t.Errorf("%s: %+v %v", c.name, r, ok)
		}
	}
	dark := with(func(c *Counts) { c.Busy, c.RepeatBusy, c.Untimed, c.UntimedRepeats = 0, 0, 100, 40 })
	for _, g := range grants {
		m := DefaultModel(g)
		lit := dark
		lit.Untimed, lit.UntimedRepeats = 0, 0
		got, ok := m.Read(dark, Bucket{})
		if want, _ := m.Read(lit, Bucket{}); !m.Timed() && (!ok || got != want) {
			t.Errorf("%s: %+v without times, %+v with them", g.Name(), got, want)
		}
	}
	// Whoever cannot be attributed may be among those without a time.
	some := Counts{Arrivals: 1000, Verified: 990, Originals: 990, Unattributable: 10, Busy: 900 * ns, Untimed: 10}
	if r, ok := m.Read(some, Bucket{}); !ok || r.State != OK || !math.IsNaN(r.High) {
		t.Errorf("as many without a time as cannot be attributed: %+v %v", r, ok)
	}
	some.Untimed = 1
	if r, _ := m.Read(some, Bucket{}); math.IsNaN(r.High) {
		t.Errorf("one of them: %+v", r)
	}
}

// A peak is what is known of it: windows that cannot be read make it a lower bound, and
// alone they make none.
func TestPeakOfWindowsWithoutTimes(t *testing.T) {
	m := DefaultModel(DefaultConcurrency())
	lit := Counts{Arrivals: 100, Verified: 100, Originals: 90, Repeats: 10, Busy: 1e9, RepeatBusy: 1e8}
	dark := Counts{Arrivals: 100, Verified: 100, Originals: 50, Repeats: 50, Untimed: 100, UntimedRepeats: 50}
	peak := func(seconds ...Counts) (Reading, bool, int) {
		tr, said := NewTracker(&m, 0), 0
		tr.Each = func(_ int64, r Reading) {
			if r.State == Untimed {
				said++
			}
		}
		for i, c := range seconds {
			tr.Feed(int64(i), c)
		}
		r, ok := tr.Peak.Reading()
		return r, ok, said
	}
	times := func(n int, c Counts) (out []Counts) {
		for range n {
			out = append(out, c)
		}
		return out
	}
	if r, ok, _ := peak(times(30, lit)...); !ok || r.State != OK {
		t.Errorf("all known: %+v %v", r, ok)
	}
	if r, ok, said := peak(times(30, dark)...); ok || said != 21 {
		t.Errorf("none known: %+v %v, said of %d windows", r, ok, said)
	}
	if r, ok, said := peak(append(times(30, lit), times(30, dark)...)...); !ok || r.State != Blind || said == 0 {
		t.Errorf("half of them: %+v %v", r, ok)
	}
	storm := lit
	storm.RepeatBusy = 1e11
	if r, ok, _ := peak(append(times(30, storm), times(30, dark)...)...); !ok || r.State != Exhausted {
		t.Errorf("a storm, then none known: %+v %v", r, ok)
	}
}

// Times that begin to be known are no rise of what is spent.
func TestTimesThatAppearAreNoRise(t *testing.T) {
	m := DefaultModel(Concurrency{Share: 0.2, Min: 0.5, Proxies: 1})
	lit := Counts{Arrivals: 1000, Verified: 1000, Originals: 900, Repeats: 100, Busy: 2e9, RepeatBusy: 3e8}
	for _, untimed := range []bool{false, true} {
		var seconds []Counts
		said := false
		for i := range 80 {
			c := lit
			if i < 60 {
				if c.RepeatBusy = 0; untimed {
					c.UntimedRepeats, c.Untimed = c.Repeats, c.Repeats
				}
			}
			seconds = append(seconds, c)
			_, ok := m.ExhaustsIn(seconds, Bucket{})
			said = said || ok
		}
		if said == untimed {
			t.Errorf("untimed %v: it is said to rise: %v", untimed, said)
		}
	}
}
