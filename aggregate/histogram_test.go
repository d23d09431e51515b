package aggregate

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestGapBucketsBoundTheirValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		ns := r.Int64N(int64(1) << (20 + r.IntN(28)))
		up := gapUpper(gapBucket(ns))
		v := float64(ns) / 1e9
		if up < v-1e-12 || (v > 0.2 && up > v*1.005+0.001) {
			t.Fatalf("gap %v s in a bucket with upper bound %v s", v, up)
		}
	}
	for _, s := range []float64{0, 0.001, 0.05, 0.2, 1, 1.5, 2, 2.01, 4.5, 5, 6, 18, 20, 20.1, 54, 110} {
		if up := gapUpper(gapBucket(int64(s*1e9 + 0.5))); up != s {
			t.Errorf("gap %v s: upper bound %v, want it exact", s, up)
		}
	}
	for b := range uint32(9000) {
		if back := gapBucket(int64(gapUpper(b)*1e9 + 0.5)); back != b {
			t.Fatalf("bucket %d: its upper bound falls into %d", b, back)
		}
	}
}

func TestCountBuckets(t *testing.T) {
	for _, c := range []struct {
		k  uint32
		up uint64
	}{{1, 1}, {2, 2}, {32, 32}, {33, 64}, {64, 64}, {65, 128}, {128, 128}, {129, 256}, {1 << 31, 1 << 31}} {
		if up := countUpper(countBucket(c.k)); up != c.up {
			t.Errorf("%d arrivals are counted under %d, want %d", c.k, up, c.up)
		}
	}
}

func TestHistogramRankIsNearestRank(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		n := 1 + r.IntN(400)
		var h, half1, half2 Histogram
		var all []uint32
		for i := range n {
			k := 1 + uint32(r.IntN(1+r.IntN(200)))
			all = append(all, k)
			h.addCount(k, 1)
			[]*Histogram{&half1, &half2}[i%2].addCount(k, 1)
		}
		half1.Merge(&half2)
		slices.Sort(all)
		for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
			rank := int(q * float64(n))
			if float64(rank) < q*float64(n) {
				rank++
			}
			want := countUpper(countBucket(all[max(rank, 1)-1]))
			if got := countUpper(h.rank(q)); got != want {
				t.Fatalf("n=%d q=%v: %d, want %d", n, q, got, want)
			}
			if got := countUpper(half1.rank(q)); got != want {
				t.Fatalf("merged, n=%d q=%v: %d, want %d", n, q, got, want)
			}
		}
		if h.Max() != int64(all[n-1]) || half1.Max() != h.Max() || half1.N() != uint64(n) {
			t.Fatal("max or number differ")
		}
	}
}
