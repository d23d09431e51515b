package budget

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// stream makes seconds of traffic: originals that come by chance, some of which fail
// and are repeated after about one, two, four seconds.
type stream struct {
	r       *rand.Rand
	rate    float64 // originals a second
	tries   int     // at most
	seconds []Counts
	times   *rand.Rand
}

func (s *stream) poisson(mean float64) (n int) {
	for left := s.r.ExpFloat64(); left < mean; left += s.r.ExpFloat64() {
		n++
	}
	return n
}

// took is how long a request takes, in nanoseconds.
func (s *stream) took() int64 {
	if s.times == nil {
		s.times = rand.New(rand.NewPCG(1, 2))
	}
	return int64(2e8 * s.times.ExpFloat64())
}

// run goes on for some seconds in which that share of tries fails.
func (s *stream) run(seconds int, failing func(second int) float64) {
	from := len(s.seconds)
	s.seconds = append(s.seconds, make([]Counts, seconds)...)
	later := make([]Counts, len(s.seconds)+100)
	copy(later, s.seconds)
	for at := from; at < from+seconds; at++ {
		p := failing(at - from)
		for range s.poisson(s.rate) {
			later[at].Originals++
			later[at].Busy += s.took()
			when := float64(at) + s.r.Float64()
			for try := 1; try < s.tries && s.r.Float64() < p; try++ {
				when += float64(int(1)<<(try-1)) * (0.5 + s.r.Float64())
				c, took := &later[min(int(when), len(later)-1)], s.took()
				c.Repeats++
				c.Busy, c.RepeatBusy = c.Busy+took, c.RepeatBusy+took
			}
		}
	}
	copy(s.seconds, later)
}

// share is how many of the looks after each second say when the budget is exhausted.
func (s *stream) share(m *Model) float64 {
	looks, said := 0, 0
	for at := m.RiseSeconds(); at <= len(s.seconds); at++ {
		looks++
		if _, ok := m.ExhaustsIn(s.seconds[:at], Bucket{}); ok {
			said++
		}
	}
	return float64(said) / float64(looks)
}

func TestACalmStreamExhaustsNothing(t *testing.T) {
	for _, window := range []int{1, 10, 60} {
		for _, rate := range []float64{2, 20, 200} {
			for _, tries := range []int{2, 9} {
				for _, failing := range []float64{0.01, 0.05, 0.15} {
					for _, waves := range []bool{false, true} {
						m := DefaultModel(DefaultRatio())
						m.Window = window
						r := rand.New(rand.NewPCG(uint64(window*1000+tries), math.Float64bits(rate+failing)))
						s := &stream{r: r, rate: rate, tries: tries}
						s.run(1000, func(int) float64 {
							if waves { // some seconds are worse than others
								return 2 * failing * r.Float64()
							}
							return failing
						})
						if share := s.share(&m); share > 0.01 {
							t.Errorf("window %d, %v a second, %d tries, %v failing, waves %v: %.2f %% of looks say when", window, rate, tries, failing, waves, 100*share)
						}
					}
				}
			}
		}
	}
}

// Nor do budgets of other models by chance, and all of them say when they will be
// exhausted before they are.
func TestCalmAndRampOfOtherModels(t *testing.T) {
	for _, c := range []struct {
		g    Grant
		rate float64
	}{
		{Concurrency{Share: 0.2, Min: 0.1, Proxies: 1}, 20}, {Concurrency{Share: 0.2, Min: 3, Proxies: 1}, 200}, {Concurrency{Share: 0.2, Min: 0.1, Proxies: 1}, 1000},
		{Rate{PerMinute: 60, Processes: 20}, 100}, {Rate{PerMinute: 60, Processes: 200}, 1000},
	} {
		for _, window := range []int{10, 60} {
			m := DefaultModel(c.g)
			m.Window = window
			share, seeds := 0.0, 8
			for seed := range seeds {
				r := rand.New(rand.NewPCG(uint64(seed), math.Float64bits(c.rate)))
				s := &stream{r: r, rate: c.rate, tries: 4}
				s.run(600, func(int) float64 { return 0.05 * 2 * r.Float64() })
				share += s.share(&m) / float64(seeds)
				calm, said := len(s.seconds), false
				s.run(150, func(at int) float64 { return 0.05 + 0.4*min(1, float64(at)/60) })
				for at := calm; at < len(s.seconds) && !said && m.consumed(s.seconds[at-window:at]) < 1; at++ {
					_, said = m.ExhaustsIn(s.seconds[:at], Bucket{})
				}
				if !said && c.rate > 50 {
					t.Errorf("%+v, window %d, seed %d: it was not said", c.g, window, seed)
				}
			}
			if share > 0.01 {
				t.Errorf("%+v, window %d: %.2f %% of looks say when", c.g, window, 100*share)
			}
		}
	}
}

// A ramp from next to nothing is said within seconds if it is steep, and rightly
// when it matters.
func TestARampExhausts(t *testing.T) {
	for _, c := range []struct {
		rate   float64
		ramp   float64 // seconds from a share of 0.02 to one of 0.3
		within int     // seconds, it is said
		right  int     // seconds before the end, it is right from here on
	}{
		{100, 15, 9, 4}, {1000, 15, 6, 5}, {100, 40, 16, 4}, {1000, 40, 9, 15}, {1000, 120, 18, 45},
	} {
		for seed := range uint64(20) {
			m := DefaultModel(DefaultRatio())
			s := &stream{r: rand.New(rand.NewPCG(seed, math.Float64bits(c.rate))), rate: c.rate, tries: 4}
			const calm = 60
			s.run(calm, func(int) float64 { return 0.02 })
			s.run(int(c.ramp)+60, func(at int) float64 { return 0.02 + 0.28*float64(at)/c.ramp })
			end := calm
			for m.consumed(s.seconds[end-m.Window:end]) < 1 {
				end++
			}
			if in, ok := m.ExhaustsIn(s.seconds[:end], Bucket{}); ok {
				t.Errorf("%+v: what is exhausted will be so in %v s", c, in)
			}
			said := false
			for at := calm; at < end; at++ {
				in, ok := m.ExhaustsIn(s.seconds[:at], Bucket{})
				said = said || ok && at <= calm+c.within
				if left := float64(end - at); left <= float64(c.right) && (!ok || in < left/2.5-2 || in > 2.5*left+2) {
					t.Errorf("%+v, seed %d: %v s before the end it is said to be in %v s, %v", c, seed, left, in, ok)
				}
			}
			if !said {
				t.Errorf("%+v, seed %d: not said within %d s", c, seed, c.within)
			}
		}
	}
}

func TestWhatCannotBeSaid(t *testing.T) {
	m := DefaultModel(DefaultRatio())
	flat := func(repeats ...uint64) (out []Counts) {
		for _, r := range repeats {
			out = append(out, Counts{Originals: 1000, Repeats: r})
		}
		return out
	}
	long := make([]uint64, m.RiseSeconds())
	for i := range long {
		long[i] = 10
	}
	step := append(append([]uint64{}, long...), 100, 100, 100, 100, 100)
	if in, ok := m.ExhaustsIn(flat(step...), Bucket{}); !ok || math.Abs(in-16.11) > 0.01 { // 0.275 is consumed, and 0.045 more each second
		t.Errorf("a step to 0.5 exhausts in %v, %v", in, ok)
	}
	many := func(repeats uint64, seconds int) []Counts {
		return slices.Repeat([]Counts{{Originals: 1e8, Repeats: repeats}}, seconds)
	}
	for name, seconds := range map[string][]Counts{
		"none":          nil,
		"too few":       flat(step[len(step)-m.Window-slowSeconds+1:]...),
		"nothing spent": flat(make([]uint64, 40)...),
		"all alike":     flat(long...),
		"falling":       flat(append(append([]uint64{}, step...), 1, 1, 1, 1, 1, 1, 1, 1)...),
		"no originals":  make([]Counts, 40),
		"far ahead":     append(many(1e6, 40), many(1.004e6, 5)...),
	} {
		if in, ok := m.ExhaustsIn(seconds, Bucket{}); ok || in != 0 {
			t.Errorf("%s: exhausted in %v", name, in)
		}
	}
}
