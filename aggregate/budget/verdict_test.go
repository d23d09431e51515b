package budget

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

var rules = Rules{Chosen: 1.2, CoverageFloor: 0.85, VisibilityFloor: 0.5, MinArrivals: 20}

// traffic is a window of so many originals, repeats and unattributable arrivals, of
// which so many were answered.
func traffic(originals, repeats, unattributable, success uint64) Counts {
	return Counts{
		Arrivals: originals + repeats + unattributable, Verified: originals + repeats, Originals: originals, Repeats: repeats,
		Unattributable: unattributable, Success: success,
	}
}

// calm lets a watch see some seconds of a hundred originals, ten repeats and ten that
// cannot be attributed, of which a hundred are answered.
func calm(w *Watch, seconds int) (to int64) {
	for range seconds {
		to++
		w.Judge(&rules, to, traffic(100, 10, 10, 100), 120)
	}
	return to
}

func TestEachRuleOfAVerdict(t *testing.T) {
	for _, c := range []struct {
		name    string
		calm    int
		c       Counts
		visible uint64
		kind    Kind
		also    []string
	}{
		{"as always", 600, traffic(100, 10, 10, 100), 120, Quiet, nil},
		{"storm at the line", 600, traffic(100, 44, 10, 100), 154, Quiet, nil}, // 1.44 is 1.2 times what was chosen
		{"storm above it", 600, traffic(100, 45, 10, 100), 155, Storm, nil},
		{"demand at the line", 600, traffic(150, 15, 10, 150), 175, Quiet, nil},
		{"demand above it", 600, traffic(151, 15, 10, 151), 176, Demand, nil},
		{"both", 600, traffic(151, 70, 10, 151), 231, Both, nil},
		{"demand without enough seconds", 59, traffic(300, 30, 10, 300), 340, Quiet, nil},
		{"demand with just enough", 61, traffic(300, 30, 10, 300), 340, Demand, nil},
		{"a storm right after the start", 0, traffic(100, 45, 10, 100), 155, Storm, nil},
		{"asked again", 600, traffic(121, 12, 10, 83), 143, Quiet, []string{"re-ask"}},
		{"more asked, as many answered", 600, traffic(121, 12, 10, 84), 143, Quiet, nil},
		{"as many asked, fewer answered", 600, traffic(120, 12, 10, 50), 142, Quiet, nil},
		{"asked again by many", 600, traffic(200, 20, 10, 50), 230, Demand, []string{"re-ask"}},
		{"hidden at the line", 600, traffic(100, 10, 34, 100), 144, Quiet, []string{"blind"}}, // 24 more are 0.2 of 1.2 × 100
		{"hidden above it", 600, traffic(100, 10, 35, 100), 145, Quiet, []string{"hidden", "blind"}},
		{"hidden, originals at the edge", 600, traffic(120, 12, 60, 100), 192, Quiet, []string{"hidden", "blind"}},
		{"more of everything", 600, traffic(121, 12, 60, 100), 193, Quiet, []string{"blind"}},
		{"keys that were lost", 600, traffic(83, 8, 60, 100), 151, Quiet, []string{"blind"}},
		{"coverage at the floor", 600, traffic(85, 0, 15, 100), 100, Quiet, nil},
		{"coverage below", 600, traffic(84, 0, 16, 100), 100, Quiet, []string{"blind"}},
		{"visibility at the floor", 600, traffic(100, 10, 10, 100), 60, Quiet, nil},
		{"visibility below", 600, traffic(100, 10, 10, 100), 59, Quiet, []string{"blind"}},
		{"a storm that is blind", 600, traffic(100, 100, 60, 100), 260, Storm, []string{"hidden", "blind"}},
		{"too few", 600, traffic(10, 9, 0, 10), 19, "", nil},
		{"nothing attributable", 600, traffic(0, 0, 30, 10), 30, "", []string{"blind"}},
		{"repeats alone", 600, traffic(0, 30, 0, 10), 30, Storm, nil},
	} {
		w := new(Watch)
		v := w.Judge(&rules, calm(w, c.calm)+1, c.c, c.visible)
		var also []string
		for _, x := range []struct {
			yes  bool
			name string
		}{{v.ReAsk, "re-ask"}, {v.HiddenRepeats, "hidden"}, {v.Blind, "blind"}} {
			if x.yes {
				also = append(also, x.name)
			}
		}
		if v.Kind != c.kind || !slices.Equal(also, c.also) {
			t.Errorf("%s: %q %v, want %q %v: %+v", c.name, v.Kind, also, c.kind, c.also, v)
		}
	}
}

// The eleventh minute of a storm is still one, and what follows it is compared with
// what was before. High demand is usual after some minutes.
func TestAStormStaysOne(t *testing.T) {
	w := new(Watch)
	to := calm(w, 600)
	for range 700 {
		to++
		if v := w.Judge(&rules, to, traffic(100, 80, 10, 100), 190); v.Kind != Storm || v.Usual != 1.2 {
			t.Fatalf("second %d of a storm: %+v", to-600, v)
		}
	}
	if v := w.Judge(&rules, to+1, traffic(100, 10, 10, 100), 120); v.Kind != Quiet {
		t.Errorf("after it: %+v", v)
	}
	// A load factor that is always above what was chosen is usual.
	w = new(Watch)
	for to = 1; to < 700; to++ {
		w.Judge(&Rules{Chosen: 2}, to, traffic(100, 120, 0, 100), 220)
	}
	if v := w.Judge(&rules, to, traffic(100, 120, 0, 100), 220); v.Usual != 2.2 || v.Kind != Quiet {
		t.Errorf("%+v", v)
	}
	w = new(Watch)
	to = calm(w, 600)
	demand := 0
	for range 600 {
		to++
		if w.Judge(&rules, to, traffic(300, 30, 10, 300), 340).Kind == Demand {
			demand++
		}
	}
	if demand != 300 { // then it is half of ten minutes
		t.Errorf("demand was said for %d s", demand)
	}
}

// A watch says of every second what a recount of all that came before says, however
// often it is told of one.
func TestWatchEqualsRecount(t *testing.T) {
	kinds := map[Kind]int{}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 12))
		w := new(Watch)
		var past []Counts // what was told last of each second that could be judged
		var storms []bool // and whether it was a storm
		var factors []float64
		level, retry := 100.0, 0.1
		to := int64(0)
		for range 900 {
			to += 1 + r.Int64N(2)*r.Int64N(2)
			if r.IntN(120) == 0 {
				level = 40 + 200*r.Float64()
			}
			if r.IntN(60) == 0 {
				retry = []float64{0.05, 0.1, 0.3, 0.9}[r.IntN(4)]
			}
			var c Counts
			var got Verdict
			for range 1 + r.IntN(3) {
				o := uint64(level * (0.9 + 0.2*r.Float64()))
				c = traffic(o, uint64(float64(o)*retry), r.Uint64N(40), uint64(float64(o)*r.Float64()))
				if r.IntN(30) == 0 {
					c = traffic(1, 1, 1, 1)
				}
				got = w.Judge(&rules, to, c, c.Arrivals)
			}
			want := recount(past, factors, c)
			if !same(got, want) {
				t.Fatalf("seed %d, second %d: %+v, want %+v", seed, to, got, want)
			}
			kinds[want.Kind]++
			if want.Kind == "" {
				continue
			}
			past, storms = append(past, c), append(storms, want.Kind == Storm || want.Kind == Both)
			if !storms[len(storms)-1] {
				factors = append(factors, want.LoadFactor)
			}
		}
	}
	for _, k := range []Kind{Quiet, Storm, Demand, Both} {
		if kinds[k] == 0 {
			t.Errorf("there was no %s", k)
		}
	}
}

func same(a, b Verdict) bool {
	for _, v := range []*Verdict{&a, &b} {
		for _, f := range []*float64{&v.LoadFactor, &v.Usual, &v.Storm, &v.Demand} {
			if math.IsNaN(*f) {
				*f = -1
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

// recount judges a second by the rules' words.
func recount(past []Counts, factors []float64, c Counts) Verdict {
	v := Verdict{LoadFactor: math.NaN(), Usual: 1.2, Storm: math.NaN(), Demand: math.NaN()}
	if c.Arrivals < 20 {
		return v
	}
	v.Blind = float64(c.Verified)/float64(c.Arrivals) < 0.85
	half := func(list []float64) float64 {
		list = slices.Clone(list[max(0, len(list)-600):])
		if len(list) < 60 {
			return math.NaN()
		}
		slices.Sort(list)
		return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	}
	of := func(f func(Counts) uint64) float64 {
		var list []float64
		for _, p := range past {
			list = append(list, float64(f(p)))
		}
		return half(list)
	}
	o, s, u := of(func(c Counts) uint64 { return c.Originals }), of(func(c Counts) uint64 { return c.Success }), of(func(c Counts) uint64 { return c.Unattributable })
	if f := half(factors); f > v.Usual {
		v.Usual = f
	}
	v.LoadFactor = float64(c.Originals+c.Repeats) / float64(c.Originals)
	v.Storm, v.Demand = v.LoadFactor/v.Usual, float64(c.Originals)/o
	v.Kind = map[[2]bool]Kind{{false, false}: Quiet, {true, false}: Storm, {false, true}: Demand, {true, true}: Both}[[2]bool{v.Storm > 1.2, v.Demand > 1.5}]
	v.ReAsk = v.Demand > 1.2 && 1.2*float64(c.Success) < s
	v.HiddenRepeats = v.Demand <= 1.2 && 1.2*v.Demand >= 1 && float64(c.Unattributable) > 1.2*u && float64(c.Unattributable)-u > (StormAbove-1)*v.Usual*float64(c.Originals)
	return v
}
