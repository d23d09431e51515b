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

// exactRows counts the arrivals of questions with a level and above, and those of
// no question, by row.
func exactRows(in []Arrival, cfg Config, level uint8) map[string]*Counts {
	cfg.MaxLive = 0
	l := NewLedger(cfg)
	for i := range in {
		if in[i].Class == keys.Unattributable || in[i].Question.level() >= level {
			l.Add(&in[i], nil, minTick)
		}
	}
	out := new(Output)
	l.Finish(out)
	return byName(out.Rows)
}

func byName(list []Row) map[string]*Counts {
	m := map[string]*Counts{}
	for _, r := range list {
		if !r.Wide {
			m[fmt.Sprint(r.View, r.From, r.Dims)] = r.Counts
		}
	}
	return m
}

// waves is traffic that rises far above what a ledger of a few hundred questions
// can follow, and falls again.
func waves(r *rand.Rand, horizon int64) (out []Arrival) {
	at := int64(0)
	for _, n := range []int{300, 6000, 100, 50, 50, 50, 4000, 60, 60} {
		part := randomArrivals(r, n, horizon)
		last := int64(0)
		for i := range part {
			a := &part[i]
			if a.Class != keys.Unattributable {
				a.Question.Key += uint64(at) << 20
				a.Question.Rest += uint64(at) << 20
			}
			last = max(last, a.Start-testBase)
			a.Start, a.Log = a.Start+at, a.Log+at
		}
		out = append(out, part...)
		at += last/sec*sec + 2*horizon
	}
	return out
}

// What a ledger counts while it follows a part of the questions is, tick by tick,
// what one that follows everything counts of that part, times its weight; and all
// else is what there is.
func TestSampledRowsAreThoseOfWholeQuestions(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 9))
		horizon := 4*sec + r.Int64N(2)*sec/2
		lateness := 3 * sec
		cfg := Config{Horizon: horizon, Lateness: lateness, Live: true, MaxLive: 40 + r.IntN(200), Views: []View{
			{ByRoute: true, ByOriginator: true, Every: 1}, {ByRoute: true, ByPeer: true, Every: 1},
		}}
		in := waves(r, horizon)
		l := NewLedger(cfg)
		ks := map[int64]uint8{}
		out := new(Output)
		mark := int64(math.MinInt64)
		closeTo := func(to int64) {
			for len(l.queue) > 0 && l.queue[0].at < to {
				at := l.queue[0].at
				ks[at] = l.exponent(at)
				l.Close(at+1, out)
			}
		}
		most := 0
		for i, a := range disorder(r, in, sec) {
			l.Add(&a, nil, minTick)
			most = max(most, l.Stats().Live)
			if mark = max(mark, a.Log); i%7 == 0 {
				if l.Live(out); i%3 == 0 {
					closeTo(floorDiv(mark-lateness, sec))
				}
			}
		}
		closeTo(math.MaxInt64)
		if limit := cfg.MaxLive + cfg.MaxLive/4 + 1; most > limit {
			t.Errorf("seed %d: %d questions were held, want at most %d", seed, most, limit)
		}
		if l.table.live != 0 {
			t.Errorf("seed %d: %d questions are left when all is over", seed, l.table.live)
		}
		got := byName(out.Rows)
		all := exactRows(in, cfg, 0)
		exact := map[uint8]map[string]*Counts{}
		fell := false
		var used [maxExponent + 1]bool
		for _, at := range sortedTicks(ks) {
			k := ks[at]
			used[k] = true
			fell = fell || k > 0 && ks[at+1] < k
			if exact[k] == nil {
				exact[k] = exactRows(in, cfg, k)
			}
		}
		if !used[0] || !used[1] || !used[2] || !fell {
			t.Fatalf("seed %d: the exponents %v are not what this is to try", seed, ks)
		}
		names := map[string]bool{}
		for _, m := range []map[string]*Counts{got, all} {
			for name := range m {
				names[name] = true
			}
		}
		zero := new(Counts)
		of := func(m map[string]*Counts, name string) *Counts {
			if m[name] == nil {
				return zero
			}
			return m[name]
		}
		for name := range names {
			var view int
			var at int64
			fmt.Sscan(name, &view, &at)
			k, closed := ks[at]
			if !closed && of(all, name).n[nArrivals] == 0 { // only questions that were not followed end in it
				continue
			}
			g, a, x := of(got, name), of(all, name), of(exact[k], name)
			w := uint64(1) << k
			for c := range counter(numCounters) {
				want := a.n[c]
				switch {
				case c == nVariance:
					want = x.n[nOriginals] * w * (w - 1)
				case c == nFamilyEnds: // of keys, whatever their age
					continue
				case ofQuestion>>c&1 != 0:
					want = x.n[c] * w
				}
				if g.n[c] != want {
					t.Fatalf("seed %d: row %s (k %d): counter %d is %d, want %d", seed, name, k, c, g.n[c], want)
				}
			}
			if g.Busy != a.Busy || g.Dead != a.Dead || g.Repeat != x.Repeat*int64(w) {
				t.Fatalf("seed %d: row %s (k %d): seconds %d %d %d, want %d %d %d", seed, name, k, g.Busy, g.Dead, g.Repeat, a.Busy, a.Dead, x.Repeat*int64(w))
			}
			if want := times(&x.Gaps, w); !reflect.DeepEqual(times(&g.Gaps, 1), want) {
				t.Fatalf("seed %d: row %s (k %d): gaps %v, want %v", seed, name, k, times(&g.Gaps, 1), want)
			}
			if want := times(&x.PerQuestion, w); !reflect.DeepEqual(times(&g.PerQuestion, 1), want) {
				t.Fatalf("seed %d: row %s (k %d): per question %v, want %v", seed, name, k, times(&g.PerQuestion, 1), want)
			}
			for d := range g.carried {
				want := map[int64]Carry{}
				for _, y := range x.carried[d] {
					want[y.Rows] = Carry{y.Rows, y.N * w, y.Claimed * w}
				}
				have := map[int64]Carry{}
				for _, y := range g.carried[d] {
					have[y.Rows] = y
				}
				if !reflect.DeepEqual(have, want) {
					t.Fatalf("seed %d: row %s (k %d): distinct %d carries %v, want %v", seed, name, k, d, have, want)
				}
			}
		}
	}
}

func sortedTicks(m map[int64]uint8) (out []int64) {
	for at := range m {
		out = append(out, at)
	}
	slices.Sort(out)
	return out
}

// times is a histogram by bucket, each count n times, and the sum of its values.
func times(h *Histogram, n uint64) map[int64]uint64 {
	m := map[int64]uint64{-1: uint64(h.sum) * n}
	h.each(func(at uint32, x uint64) { m[int64(at)] = x * n })
	return m
}

// In a storm of ten times as many questions as are followed, the figures lie within
// three of their standard errors, live and closed, in 99 of 100 runs.
func TestSampledFiguresKeepTheirErrors(t *testing.T) {
	const runs = 100
	const most = 500
	horizon, lateness := 20*sec, 5*sec
	off := map[string]int{}
	for run := range runs {
		r := rand.New(rand.NewPCG(uint64(run), 3))
		var in []Arrival
		for q := range 20 * most { // in 40 s, of which 20 are remembered: ten times as many
			id := ID{r.Uint64(), r.Uint64()}
			at := testBase + int64(q)*40*sec/(20*most)
			for i := range int64(1 + r.IntN(4)) {
				in = append(in, Arrival{
					Start: at + i*700e6, Log: at + i*700e6 + 1e6, Duration: 1e6, RetryAfter: -1, Text: r.Uint64(), Route: 1, Originator: 1, Peer: 1,
					Question: id, Class: keys.Verified, Kind: KindEnd, Outcome: OutcomeError, AttemptsLeft: NoBudget, Flags: Head | Decidable,
				})
			}
		}
		slices.SortFunc(in, func(a, b Arrival) int { return int(a.Log - b.Log) })
		l := NewLedger(Config{Horizon: horizon, Lateness: lateness, Live: true, MaxLive: most, Views: []View{{ByRoute: true, Every: 1}}})
		out := new(Output)
		held := 0
		for i := range in {
			l.Add(&in[i], nil, minTick)
			held = max(held, l.table.live)
			if i%1000 == 999 {
				l.Live(out)
				l.Close(tickOf(in[i].Log-lateness), out)
			}
		}
		l.Live(out)
		l.Finish(out)
		if held > most+most/4 {
			t.Fatalf("run %d: %d questions were held, want at most %d", run, held, most+most/4)
		}
		total, live := new(Counts), new(Sums)
		from, to := tickOf(testBase)+5, tickOf(testBase)+35
		for _, row := range out.Rows {
			if row.From >= from && row.From < to {
				row.Counts.Settle(row.From - from)
				total.Merge(row.Counts)
			}
		}
		for i := range out.Beats {
			live.Add(&out.Beats[i])
		}
		trueOriginals, trueQuestions := 0.0, 0.0
		seen := map[ID]bool{}
		within := map[ID]bool{}
		for i := range in {
			if at := tickOf(in[i].Start); at >= from && at < to {
				if !seen[in[i].Question] {
					trueOriginals++
				}
				within[in[i].Question] = true
			}
			seen[in[i].Question] = true
		}
		trueQuestions = float64(len(within))
		check := func(name string, got, want, err float64) {
			if err <= 0 || err > want/5 {
				t.Errorf("run %d: the standard error of %s is %.1f of %.1f", run, name, err, want)
			}
			if math.Abs(got-want) > 3*err {
				off[name]++
			}
		}
		c := total.Totals()
		err := math.Sqrt(float64(c.Variance))
		check("originals", float64(c.Originals), trueOriginals, err)
		check("questions", float64(total.Questions()), trueQuestions, err*math.Sqrt(float64(total.Questions())/float64(c.Originals)))
		check("live originals", float64(live.Totals().Originals), float64(len(seen)), math.Sqrt(float64(live.Totals().Variance)))
		if want := uint64(len(in)); live.Totals().Arrivals != want || live.Totals().Verified != want {
			t.Fatalf("run %d: %d arrivals, %d verified, want %d: arrivals are not sampled", run, live.Totals().Arrivals, live.Totals().Verified, want)
		}
	}
	for name, n := range off {
		if n > runs/100 {
			t.Errorf("%s were off by more than three standard errors in %d of %d runs", name, n, runs)
		}
	}
}

func TestCountsOfAnEarlierVersionAreRead(t *testing.T) {
	c := new(Counts)
	c.n[nArrivals], c.n[nFirsts] = 3, 2
	b := c.Append(nil)
	b[1] = firstCounters
	got, err := DecodeCounts(b)
	if err != nil || !reflect.DeepEqual(got.n, c.n) {
		t.Errorf("%v, %v", got, err)
	}
	if b[1]--; true {
		if _, err := DecodeCounts(b); err == nil {
			t.Error("counts with fewer counters than there ever were are read")
		}
	}
}
