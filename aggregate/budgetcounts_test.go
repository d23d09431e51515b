package aggregate

import (
	"math/rand/v2"
	"testing"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/keys"
)

// budgetOf counts one arrival straight from the definitions.
func (n *naive) budgetOf(i int) budget.Counts {
	a := &n.real[i]
	gone := a.Departure != StillThere || a.Flags&Expired != 0
	c := budget.Counts{
		Arrivals: 1, Success: bit(a.Outcome == OutcomeSuccess && !gone), Gone: bit(gone),
		Failed: bit(gone || a.Outcome == OutcomeOverload || a.Outcome == OutcomeError), Busy: max(a.Duration, 0), Untimed: bit(a.Duration < 0),
	}
	switch {
	case !n.known(a):
		c.Unattributable, c.UnattributableBusy = 1, c.Busy
	case len(n.before(i, nil)) > 0:
		c.Repeats, c.RepeatBusy, c.UntimedRepeats = 1, c.Busy, c.Untimed
	default:
		c.Originals = 1
	}
	c.Verified = bit(a.Class == keys.Verified)
	return c
}

// What budgets are read from is, second by second of log time, what a recount finds:
// in a report all of it, and live all but which arrivals are originals, which depends
// on the order in which they come.
func TestBudgetCountsEqualRecount(t *testing.T) {
	const horizon, lateness = 60 * sec, 90 * sec
	unattributed, failures, untimed := uint64(0), uint64(0), uint64(0)
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 61))
		in := randomArrivals(r, 1+r.IntN(200), 20*sec)
		want := map[int64]budget.Counts{}
		n := newNaive(in, horizon)
		for i := range n.real {
			c := n.budgetOf(i)
			at := want[tickOf(n.real[i].Log)]
			at.Add(c)
			want[tickOf(n.real[i].Log)] = at
			unattributed, failures, untimed = unattributed+c.Unattributable, failures+c.Failed, untimed+c.UntimedRepeats
		}

		report := NewLedger(Config{Horizon: horizon, Lateness: lateness, Fared: true})
		live := NewLedger(Config{Horizon: horizon, Lateness: lateness, Live: true})
		out, told := new(Output), new(Output)
		for _, a := range in {
			report.Add(&a, nil, minTick)
			live.Add(&a, nil, minTick)
			if r.IntN(9) == 0 {
				live.Live(told)
			}
		}
		report.Finish(out)
		live.Finish(told)

		got := map[int64]budget.Counts{}
		for _, s := range out.Seconds {
			var all secondly
			for i, e := range s.Events {
				all.add(e, s.Times[i])
			}
			c := got[s.At]
			c.Add(all.counts())
			got[s.At] = c
		}
		for at := range want {
			if got[at] != want[at] {
				t.Fatalf("seed %d, second %d of a report: %+v, want %+v", seed, at, got[at], want[at])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d seconds, want %d", seed, len(got), len(want))
		}
		bySecond := map[int64]*Sums{}
		for i := range told.Beats {
			b := &told.Beats[i]
			if bySecond[b.Second] == nil {
				bySecond[b.Second] = new(Sums)
			}
			bySecond[b.Second].Add(b)
		}
		for at, w := range want {
			c := bySecond[at].Budget()
			c.Originals, c.Repeats, c.RepeatBusy, c.UntimedRepeats = w.Originals, w.Repeats, w.RepeatBusy, w.UntimedRepeats
			if c != w {
				t.Fatalf("seed %d, second %d live: %+v, want %+v", seed, at, c, w)
			}
		}
	}
	if unattributed == 0 || failures == 0 || untimed == 0 {
		t.Error("nothing was unattributable, nothing failed, or every repeat had its time")
	}
}

// A late arrival counts in budgets as any other that cannot be attributed.
func TestBudgetCountsOfLateArrivals(t *testing.T) {
	const horizon, lateness = 60 * sec, 90 * sec
	n := newNaive(randomArrivals(rand.New(rand.NewPCG(1, 61)), 200, 20*sec), horizon)
	l, out, want, got := NewLedger(Config{Horizon: horizon, Lateness: lateness, Live: true}), new(Output), budget.Counts{}, new(Sums)
	for i := range n.real {
		l.AddLate(&n.real[i], out)
		n.real[i].Class = keys.Unattributable
		want.Add(n.budgetOf(i))
	}
	for i := range out.Beats {
		got.Add(&out.Beats[i])
	}
	if c := got.Budget(); c != want || c.Failed == 0 || c.Success == 0 {
		t.Errorf("%+v, want %+v", c, want)
	}
}
