package budget

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// record is one request at a dependency, in milliseconds.
type record struct {
	start, end     int64
	repeat, hidden bool // hidden: nobody knows whose question it was
	status         int  // 0: the caller was gone
}

// count is a second's record, as the ledger counts it.
func (x *record) count() Counts {
	c := Counts{Arrivals: 1, Busy: (x.end - x.start) * 1e6}
	switch {
	case x.hidden:
		c.Unattributable, c.UnattributableBusy = 1, c.Busy
	case x.repeat:
		c.Repeats, c.RepeatBusy, c.Verified = 1, c.Busy, 1
	default:
		c.Originals, c.Verified = 1, 1
	}
	switch {
	case x.status == 0:
		c.Failed, c.Gone = 1, 1
	case x.status < 400:
		c.Success = 1
	case x.status >= 500 || x.status == 429:
		c.Failed = 1
	}
	return c
}

func randomRecords(r *rand.Rand, seconds int64) (out []record) {
	for range r.IntN(200) {
		x := record{start: r.Int64N(seconds * 1000), repeat: r.IntN(3) == 0, hidden: r.IntN(6) == 0}
		x.end = x.start + r.Int64N(3000)
		x.status = []int{0, 200, 200, 304, 404, 429, 500, 503}[r.IntN(8)]
		out = append(out, x)
	}
	return out
}

// slow reads a budget straight from its authors' words, over the records that were
// written in the window that ends with a second; from is where the log begins.
func slow(g Grant, records []record, from, end, window int64) (spent, high, allowance float64) {
	var originals, repeats, hidden, busy, repeated, unknown float64
	for _, x := range records {
		if at := x.end / 1000; at < end-window || at >= end {
			continue
		}
		took := float64(x.end-x.start) / 1000
		busy += took
		switch {
		case x.hidden:
			hidden, unknown = hidden+1, unknown+took
		case x.repeat:
			repeats, repeated = repeats+1, repeated+took
		default:
			originals++
		}
	}
	w := float64(window)
	switch g := g.(type) {
	case Ratio:
		return repeats, repeats + hidden, g.Ratio*originals + g.FloorPerSecond*w*float64(g.Clients)
	case Rate:
		return repeats, repeats + hidden, g.PerMinute / 60 * w * float64(g.Processes)
	case Concurrency:
		return repeated / w, (repeated + unknown) / w, math.Max(g.Share*busy/w, g.Min*float64(g.Proxies))
	case Tokens:
		size := g.Size * float64(g.Clients)
		left, least := size, size
		for s := from; s < end; s++ {
			gone, again := 0, 0
			for _, x := range records {
				if x.end/1000 != s {
					continue
				}
				takes := 0.0
				switch {
				case x.status == 0, x.status >= 500, x.status == 429:
					takes = g.PerFailure
				case x.status < 400:
					takes = -g.PerSuccess
				}
				left, least = left-takes, least-takes
				if x.repeat && !x.hidden {
					left -= g.PerRepeat
				}
				if x.repeat || x.hidden {
					least -= g.PerRepeat
					again++
				}
				if x.status == 0 {
					gone++
				}
			}
			for range min(gone, again) {
				least -= math.Max(g.PerTimeout-g.PerRepeat, 0)
			}
			left, least = math.Min(math.Max(left, 0), size), math.Min(math.Max(least, 0), size)
		}
		return size - left, size - least, size - g.Reserve*float64(g.Clients)
	}
	panic("unknown grant")
}

var grants = []Grant{
	DefaultRatio(), Ratio{Ratio: 0.1, FloorPerSecond: 0.5, Clients: 3}, DefaultConcurrency(), Concurrency{Share: 0.1, Min: 0.25, Proxies: 2},
	DefaultRate(), Rate{PerMinute: 6, Processes: 2}, GRPCTokens(), Tokens{Size: 4, Reserve: 2, PerFailure: 1, PerSuccess: 0.25, Clients: 2}, AWSTokens().Sized(50, 0, 2),
}

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(a)) || math.IsNaN(a) && math.IsNaN(b)
}

// Every model reads, in every window, what its authors' words make of the records.
// The order of the records of a second changes nothing, nor does giving a second in
// parts to models that keep no bucket.
func TestModelsEqualTheirWords(t *testing.T) {
	low, exhausted := map[string]int{}, map[string]int{}
	for _, g := range grants {
		for seed := range uint64(40) {
			name := fmt.Sprintf("%+v, seed %d", g, seed)
			r := rand.New(rand.NewPCG(seed, 3))
			records := randomRecords(r, 30)
			m := DefaultModel(g)
			m.Window, m.MinArrivals, m.CoverageFloor = 1+r.IntN(12), 1, 0
			from, last := int64(0), int64(33)
			seen := map[int64]Reading{}
			tr := NewTracker(&m, from)
			tr.Each = func(end int64, x Reading) { seen[end] = x }
			r.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
			slices.SortStableFunc(records, func(a, b record) int { return int(a.end/1000 - b.end/1000) })
			for i := 0; i < len(records); {
				at, c := records[i].end/1000, Counts{}
				for ; i < len(records) && records[i].end/1000 == at; i++ {
					c.Add(records[i].count())
				}
				tr.Feed(at, c)
			}
			tr.Slide(last)
			for end := from + int64(m.Window); end <= last; end++ {
				got, ok := seen[end]
				if !ok {
					continue // which windows have a reading, another test holds
				}
				spent, high, allowance := slow(g, records, from, end, int64(m.Window))
				if !near(got.Spent, spent) || !near(got.Allowance, allowance) || !near(got.Consumed, consumed(spent, allowance)) || !near(got.High, consumed(high, allowance)) {
					t.Fatalf("%s, window to %d: %+v, want %v (high %v) of %v", name, end, got, spent, high, allowance)
				}
				if got.High < got.Consumed-1e-9 {
					t.Fatalf("%s: the upper bound lies lower: %+v", name, got)
				}
				switch got.State {
				case Low:
					low[g.Name()]++
				case Exhausted:
					exhausted[g.Name()]++
				}
			}
		}
	}
	for _, name := range []string{"ratio", "concurrency", "rate", "tokens"} {
		if low[name] == 0 || exhausted[name] == 0 {
			t.Errorf("%s was low %d times and exhausted %d times", name, low[name], exhausted[name])
		}
	}
}

// Counts of parts of the traffic add up to those of the whole, and so does what is
// read from them.
func TestCountsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 100 {
		var whole, parts [2]Counts
		for _, x := range randomRecords(r, 10) {
			whole[0].Add(x.count())
			parts[r.IntN(2)].Add(x.count())
		}
		sum := parts[0]
		sum.Add(parts[1])
		if sum != whole[0] {
			t.Fatalf("%+v, want %+v", sum, whole[0])
		}
		if sum.sub(parts[1]); sum != parts[0] {
			t.Fatalf("%+v, want %+v", sum, parts[0])
		}
	}
}

// Where all of what is in flight begins and ends within the window, the mean number
// is what looking at every millisecond finds.
func TestConcurrencyIsWhatIsInFlight(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 100 {
		var c Counts
		all, repeats := int64(0), int64(0)
		for range 1 + r.IntN(60) {
			x := record{start: r.Int64N(9000), repeat: r.IntN(3) == 0, status: 200}
			x.end = x.start + r.Int64N(10_000-x.start)
			c.Add(x.count())
			for ms := range int64(10_000) {
				if x.start <= ms && ms < x.end {
					all++
					if x.repeat {
						repeats++
					}
				}
			}
		}
		g := Concurrency{Share: 1}
		if got, want := g.spent(c, 10), float64(repeats)/10_000; !near(got, want) {
			t.Fatalf("%v repeats in flight, want %v", got, want)
		}
		if got, want := g.allowance(c, 10), float64(all)/10_000; !near(got, want) {
			t.Fatalf("%v in flight, want %v", got, want)
		}
	}
}

func TestDefaultsAreTheAuthors(t *testing.T) {
	quiet := Counts{Arrivals: 100, Verified: 100, Originals: 100, Success: 100}
	for _, c := range []struct {
		g         Grant
		window    int
		allowance float64
	}{
		{DefaultRatio(), 10, 20}, {DefaultConcurrency(), 10, 3}, {DefaultRate(), 60, 60}, {GRPCTokens(), 10, 5}, {AWSTokens(), 10, 496},
		{GRPCTokens().Sized(100, 0, 1), 10, 50}, {GRPCTokens().Sized(0, 0.5, 4), 10, 20}, {AWSTokens().Sized(1000, 0, 2), 10, 1992},
	} {
		m := DefaultModel(c.g)
		r, ok := m.Read(quiet, Bucket{})
		if m.Window != c.window || !ok || r.Allowance != c.allowance || r.Consumed != 0 || r.State != OK {
			t.Errorf("%s: a window of %d s, %+v %v", c.g.Name(), m.Window, r, ok)
		}
	}
	// gRPC stops at half of its tokens, AWS when there is no cost of a retry left.
	grpc, aws := DefaultModel(GRPCTokens()), DefaultModel(AWSTokens())
	for _, c := range []struct {
		m     *Model
		left  float64
		state State
	}{{&grpc, 5.1, Low}, {&grpc, 5, Exhausted}, {&grpc, 8, OK}, {&aws, 5, Low}, {&aws, 4, Exhausted}, {&aws, 0, Exhausted}, {&aws, 253, OK}, {&aws, 252, Low}} {
		size := c.m.bucket()
		if r, _ := c.m.Read(quiet, Bucket{Spent: size - c.left}); r.State != c.state {
			t.Errorf("%v tokens of %v left: %s", c.left, size, r.State)
		}
	}
}

// Of buckets, too, it is said when they are empty, while they empty and only then.
func TestWhenABucketIsEmpty(t *testing.T) {
	for _, g := range []Grant{GRPCTokens().Sized(200, 0, 1), AWSTokens()} {
		m := DefaultModel(g)
		r := rand.New(rand.NewPCG(8, 8))
		var seconds []Counts
		var held Bucket
		second := func(failing float64) {
			c := Counts{Arrivals: 100, Verified: 100}
			for range 100 {
				if r.Float64() < failing {
					c.Failed++
					c.Repeats++
				} else {
					c.Success++
					c.Originals++
				}
			}
			seconds, held = append(seconds, c), m.Fill(held, c)
		}
		for range 200 {
			second(0.03)
			if in, ok := m.ExhaustsIn(seconds, held); ok {
				t.Fatalf("%s: a calm bucket is empty in %v s", m.Name(), in)
			}
		}
		said := 0
		for left := 0.0; ; left-- {
			second(0.25)
			reading, _ := m.Read(seconds[len(seconds)-1], held)
			in, ok := m.ExhaustsIn(seconds, held)
			if reading.Consumed >= 1 {
				if ok {
					t.Errorf("%s: what is exhausted will be so in %v s", m.Name(), in)
				}
				break
			}
			if ok {
				said++
			}
			if left < -200 {
				t.Fatalf("%s: %+v after %v s", m.Name(), reading, -left)
			}
		}
		if said == 0 {
			t.Errorf("%s: it was never said", m.Name())
		}
	}
}
