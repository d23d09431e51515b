package aggregate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/targetside/auditor/keys"
)

const testBase = 1_795_000_000 * sec

// randomArrivals makes traffic that meets every rule: retries in and out of the
// horizon, several peers, numbers, budgets, departures, ties, copies.
func randomArrivals(r *rand.Rand, n int, horizon int64) []Arrival {
	questions := 1 + r.IntN(max(1, n/3))
	span := horizon * int64(1+r.IntN(5))
	fan := 1 + r.IntN(40) // questions of a key
	grain := []int64{sec, sec / 10, 1e6}[r.IntN(3)]
	var out []Arrival
	for range n {
		q := r.IntN(questions)
		a := Arrival{
			Start:        testBase + r.Int64N(span)/grain*grain,
			Duration:     r.Int64N(3*sec) / 1e6 * 1e6,
			RetryAfter:   -1,
			Text:         r.Uint64(),
			Route:        uint16(1 + q%3),
			Originator:   uint16(1 + q%2),
			Peer:         uint8(1 + r.IntN(1+q%4)),
			Question:     ID{uint64(q/fan + 1), uint64(q + 1)},
			Class:        keys.Verified,
			Kind:         KindEnd,
			Outcome:      Outcome(r.IntN(5)),
			AttemptsLeft: NoBudget,
			Flags:        Head | Decidable,
		}
		if r.IntN(8) == 0 {
			a.Duration = -1 - int64(a.Text%8) // with anything known beside
		}
		if q%5 == 0 {
			a.Class = keys.Claimed
			a.Originator = 3
		}
		if r.IntN(4) == 0 {
			a.Departure = Departure(1 + r.IntN(4))
		}
		for _, f := range []Flags{Refused, Visible, Expired, Stale, Reopening, NonIdempotent, RetryShown, TrustedHop} {
			if r.IntN(3) == 0 {
				a.Flags |= f
			}
		}
		switch r.IntN(4) {
		case 0:
			a.Attempt = uint8(1 + r.IntN(3))
		case 1:
			a.Attempt = uint8(1 + r.IntN(3))
			a.Flags |= OriginScope
		}
		if r.IntN(3) == 0 {
			a.AttemptsLeft = uint8(r.IntN(4))
		}
		if r.IntN(3) == 0 {
			a.RetryAfter = int64(r.IntN(5)) * sec
		}
		if r.IntN(10) == 0 {
			a.Class, a.Reason, a.Question, a.Originator = keys.Unattributable, keys.Reason(1+r.IntN(8)), ID{}, 0
		}
		a.Log = a.Start + max(a.Duration, 0)
		out = append(out, a)
		if r.IntN(15) == 0 {
			out = append(out, a)
		}
	}
	return out
}

// feed adds arrivals in the order of in, closing ticks as a watermark of largest
// log time less lateness allows.
func feed(l *Ledger, in []Arrival, lateness int64) *Output {
	out := new(Output)
	mark := int64(math.MinInt64)
	for i := range in {
		l.Add(&in[i], nil, minTick)
		if mark = max(mark, in[i].Log); i%7 == 0 {
			l.Close(floorDiv(mark-lateness, sec), out)
		}
	}
	l.Finish(out)
	return out
}

// disorder shuffles arrivals as far as lateness allows: by log time plus a
// random delay.
func disorder(r *rand.Rand, in []Arrival, delay int64) []Arrival {
	type delayed struct {
		at int64
		a  Arrival
	}
	var d []delayed
	for _, a := range in {
		d = append(d, delayed{a.Log + r.Int64N(delay), a})
	}
	slices.SortFunc(d, func(x, y delayed) int { return int(x.at - y.at) })
	var out []Arrival
	for _, x := range d {
		out = append(out, x.a)
	}
	return out
}

func testConfig(horizon, lateness int64) Config {
	return Config{
		Horizon: horizon, Lateness: lateness, EndAtLast: true, Worst: 5,
		KeyHash: func([]byte) [16]byte { return [16]byte{} },
		Views: []View{
			{ByRoute: true, ByOriginator: true},
			{ByRoute: true, ByPeer: true},
			{Every: 10},
		},
	}
}

// total adds up the rows of a view that match.
func total(out *Output, view int, match func(Dims) bool) *Counts {
	c := new(Counts)
	for _, r := range out.Rows {
		if r.View == view && !r.Wide && match(r.Dims) {
			x := *r.Counts
			x.carried = [numDistinct][]Carry{}
			c.Merge(&x)
		}
	}
	return c
}

// plain is everything of Counts that must agree, in a comparable form.
func plain(c *Counts) map[string]any {
	m := map[string]any{"dead": c.Dead, "busy": c.Busy, "repeat": c.Repeat}
	for i, n := range c.n {
		if counter(i) != nFamilyEnds { // of fan-out, which is compared apart
			m[fmt.Sprint("counter ", i)] = n
		}
	}
	for name, h := range map[string]*Histogram{"per question": &c.PerQuestion, "spans": &c.Spans, "gaps": &c.Gaps} {
		buckets := map[uint32]uint64{}
		h.each(func(at uint32, n uint64) { buckets[at] += n })
		m[name] = fmt.Sprint(buckets, h.N(), h.max, h.sum)
	}
	return m
}

func compare(t *testing.T, what string, got, want *Counts) {
	t.Helper()
	g, w := plain(got), plain(want)
	for k := range w {
		if !reflect.DeepEqual(g[k], w[k]) {
			t.Errorf("%s: %s is %v, want %v", what, k, g[k], w[k])
		}
	}
}

func TestLedgerEqualsTheNaiveModel(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 60
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			horizon := []int64{2 * sec, 10 * sec, 120 * sec}[r.IntN(3)]
			lateness := horizon + 20*sec
			in := randomArrivals(r, 1+r.IntN(250), horizon)
			n := newNaive(in, horizon)
			l := NewLedger(testConfig(horizon, lateness))
			out := feed(l, disorder(r, in, lateness-8*sec), lateness)

			s := l.Stats()
			if s.Duplicates != n.dups || s.Late != 0 || s.Clamped != 0 || s.Live != 0 || s.Open != 0 {
				t.Fatalf("stats %+v; want %d duplicates, none late or clamped, nothing left", s, n.dups)
			}
			any := func(Dims) bool { return true }
			compare(t, "total", total(out, 0, any), n.counts(func(*Arrival) bool { return true }, false))
			for route := uint16(1); route <= 3; route++ {
				for orig := uint16(0); orig <= 3; orig++ {
					compare(t, fmt.Sprint("route ", route, " originator ", orig),
						total(out, 0, func(d Dims) bool { return d.Route == route && d.Originator == orig }),
						n.counts(func(a *Arrival) bool { return a.Route == route && a.Originator == orig }, false))
				}
			}
			for peer := uint8(1); peer <= 4; peer++ {
				compare(t, fmt.Sprint("peer ", peer), total(out, 1, func(d Dims) bool { return d.Peer == peer }),
					n.counts(func(a *Arrival) bool { return a.Peer == peer }, true))
			}
			wantWide, wantNarrow := n.fanOut()
			gotWide, gotNarrow := map[uint32]int{}, map[uint32]int{}
			for _, row := range out.Rows {
				if row.View == 0 {
					to := gotNarrow
					if row.Wide {
						to = gotWide
					}
					row.Counts.FanOut.each(func(at uint32, n uint64) { to[uint32(countUpper(at))] += int(n) })
					// Keys that asked one question are only counted in all.
					if n := row.Counts.PerQuestion.N() - row.Counts.n[nFamilyEnds]; n > 0 {
						gotWide[1] += int(n)
						gotNarrow[1] += int(n)
					}
				}
			}
			if !reflect.DeepEqual(gotWide, wantWide) || !reflect.DeepEqual(gotNarrow, wantNarrow) {
				t.Errorf("fan-out is %v and by route %v, want %v and %v", gotWide, gotNarrow, wantWide, wantNarrow)
			}
			compare(t, "windows together", total(out, 2, any), n.counts(func(*Arrival) bool { return true }, false))
		})
	}
}

func TestOrderOfInputChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	const horizon, lateness = 10 * sec, 30 * sec
	in := randomArrivals(r, 400, horizon)
	var want map[string]any
	for round := range 20 {
		l := NewLedger(testConfig(horizon, lateness))
		out := feed(l, disorder(r, in, lateness-8*sec), lateness)
		got := map[string]any{}
		for _, row := range out.Rows {
			got[fmt.Sprint(row.View, row.From, row.Dims, row.Wide)] = plain(row.Counts)
			got[fmt.Sprint(row.View, row.From, row.Dims, row.Wide, "carries")] = sortedCarries(row.Counts)
		}
		got["worst"] = fmt.Sprint(WorstOf(5, out.Worst))
		got["seconds"] = fmt.Sprint(sortedSeconds(out.Seconds))
		if want == nil {
			want = got
		} else if !reflect.DeepEqual(got, want) {
			for k := range want {
				if !reflect.DeepEqual(got[k], want[k]) {
					t.Errorf("round %d: %s differs:\n%v\n%v", round, k, got[k], want[k])
				}
			}
			t.FailNow()
		}
	}
}

func sortedCarries(c *Counts) string {
	for _, list := range c.carried {
		slices.SortFunc(list, func(a, b Carry) int { return int(a.Rows - b.Rows) })
	}
	return fmt.Sprint(c.carried)
}

func sortedSeconds(s []Second) []Second {
	for _, x := range s {
		slices.Sort(x.Events)
	}
	return s
}

// Shards over disjoint keys must add up to one ledger over all.
func TestShardsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	const horizon, lateness = 10 * sec, 30 * sec
	in := randomArrivals(r, 600, horizon)
	whole := feed(NewLedger(testConfig(horizon, lateness)), in, 1<<50)
	var parts [3][]Arrival
	for _, a := range in {
		i := a.Question.Key % 3
		if a.Class == keys.Unattributable {
			i = a.Text % 3
		}
		parts[i] = append(parts[i], a)
	}
	sum := new(Output)
	for _, p := range parts {
		sum.Rows = append(sum.Rows, feed(NewLedger(testConfig(horizon, lateness)), p, 1<<50).Rows...)
	}
	any := func(Dims) bool { return true }
	for view := range 3 {
		compare(t, fmt.Sprint("view ", view), total(sum, view, any), total(whole, view, any))
	}
}

// Distinct questions of any range follow from originals and carries.
func TestDistinctOfAnyRange(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 11))
		horizon := []int64{3 * sec, 12 * sec}[r.IntN(2)]
		in := randomArrivals(r, 200, horizon)
		n := newNaive(in, horizon)
		for _, every := range []int64{1, 10} {
			l := NewLedger(Config{Horizon: horizon, Lateness: 60 * sec, Views: []View{{Every: every}, {ByPeer: true, Every: every}}})
			out := new(Output)
			for i := range in {
				l.Add(&in[i], nil, minTick)
			}
			l.Finish(out)
			for range 40 {
				from := floorDiv(testBase/sec+r.Int64N(60), every) * every
				to := from + (1+r.Int64N(20))*every
				for view, byPeer := range []bool{false, true} {
					c := new(Counts)
					for _, row := range out.Rows {
						if row.View == view && !row.Wide && row.From >= from && row.To <= to && (!byPeer || row.Dims.Peer == 2) {
							x := *row.Counts
							for d := range x.carried {
								x.carried[d] = slices.Clone(x.carried[d])
							}
							x.Settle((row.From - from) / every)
							c.Merge(&x)
						}
					}
					for d := range numDistinct {
						want := n.distinct(d, from, to, func(a *Arrival) bool { return !byPeer || a.Peer == 2 }, byPeer)
						if got, _ := c.distinct(d); got != want {
							t.Fatalf("seed %d every %d [%d,%d) by peer %v: %d of distinct %d, want %d", seed, every, from, to, byPeer, got, d, want)
						}
					}
				}
			}
		}
	}
}
