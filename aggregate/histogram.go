package aggregate

import (
	"math"
	"slices"
)

// Histogram counts values by bucket. New values are only noted; they are sorted
// into an array of buckets when they have become many, so that counting one
// touches memory in order.
type Histogram struct {
	noted []uint16
	many  []uint64
	n     uint64
	max   int64
}

// Buckets are numbered in 16 bits: MaxHorizon falls below 10,000.

// growAhead spares the array from being copied for every new largest value.
const growAhead = 256

// notedValues is how many values a histogram notes before it makes an array.
const notedValues = 2048

// N is the number of values counted, Max the largest of them, exact.
func (h *Histogram) N() uint64  { return h.n }
func (h *Histogram) Max() int64 { return h.max }

func (h *Histogram) add(at uint32, value int64) {
	h.n++
	h.max = max(h.max, value)
	h.noted = append(h.noted, uint16(at))
	if len(h.noted) == notedValues {
		for _, at := range h.noted {
			h.grow(uint32(at))
			h.many[at]++
		}
		h.noted = h.noted[:0]
	}
}

// addMany counts a value n times.
func (h *Histogram) addMany(at uint32, n uint64, value int64) {
	if n == 0 {
		return
	}
	h.n += n
	h.max = max(h.max, value)
	h.grow(at)
	h.many[at] += n
}

func (h *Histogram) grow(at uint32) {
	if int(at) >= len(h.many) {
		h.many = append(h.many, make([]uint64, int(at)+1-len(h.many)+growAhead)...)
	}
}

// merge adds everything that o counted.
func (h *Histogram) merge(o *Histogram) {
	for _, at := range o.noted {
		h.add(uint32(at), 0)
	}
	if n := len(o.many); n > 0 {
		h.grow(uint32(n - 1))
		for at, n := range o.many {
			h.many[at] += n
			h.n += n
		}
	}
	h.max = max(h.max, o.max)
}

// each reports the buckets in order.
func (h *Histogram) each(f func(at uint32, n uint64)) {
	slices.Sort(h.noted)
	rest := h.noted
	report := func(below int) {
		for len(rest) > 0 && int(rest[0]) < below {
			n := 1
			for n < len(rest) && rest[n] == rest[0] {
				n++
			}
			more := uint64(0)
			if int(rest[0]) < len(h.many) {
				more = h.many[rest[0]]
			}
			f(uint32(rest[0]), uint64(n)+more)
			rest = rest[n:]
		}
	}
	for at, n := range h.many {
		if n > 0 && (len(rest) == 0 || int(rest[0]) > at) {
			f(uint32(at), n)
			continue
		}
		report(at + 1)
	}
	report(math.MaxInt)
}

// rank returns the bucket that holds the q-quantile by nearest rank.
func (h *Histogram) rank(q float64) uint32 {
	want := uint64(q * float64(h.n))
	if float64(want) < q*float64(h.n) || want == 0 {
		want++
	}
	var at uint32
	var seen uint64
	h.each(func(b uint32, n uint64) {
		if seen < want {
			at = b
		}
		seen += n
	})
	return at
}

// Counts of arrivals and of operations are kept exactly up to 32 and then by
// powers of two: bucket k−1 holds k, bucket 32 holds 33…64, and so on.
const exactCounts = 32

func countBucket(k uint32) uint32 {
	if k <= exactCounts {
		return k - 1
	}
	b := uint32(exactCounts)
	for top := uint64(2 * exactCounts); uint64(k) > top; top *= 2 {
		b++
	}
	return b
}

// countUpper is the largest count in a bucket.
func countUpper(b uint32) uint64 {
	if b < exactCounts {
		return uint64(b) + 1
	}
	return 2 * exactCounts << (b - exactCounts)
}

// Merge adds everything that o counted.
func (h *Histogram) Merge(o *Histogram) { h.merge(o) }

// EachCount reports the buckets of a histogram of counts, as PerQuestion is, in
// order: how many values there are up to upper, and above the bucket before.
func (h *Histogram) EachCount(f func(upper, n uint64)) {
	h.each(func(at uint32, n uint64) { f(countUpper(at), n) })
}

func (h *Histogram) addCount(k uint32) { h.add(countBucket(k), int64(k)) }

// Gaps between arrivals are kept to the millisecond below two seconds, and to
// three digits or better above: steps of 10 ms to 20 s, 100 ms to 200 s, and so
// on. The error is below half a percent, and spacings that people configure fall
// on a bucket's upper bound exactly.
const (
	gapFine  = 2000 // buckets of the first step
	gapSteps = 1800 // buckets of every further step
)

// gapBucket takes nanoseconds and rounds up.
func gapBucket(ns int64) uint32 {
	v := (ns + 999999) / 1e6
	base, step := uint32(0), int64(1)
	if v <= gapFine {
		return uint32(v)
	}
	for base = gapFine; v > 20*100*step*10; base += gapSteps {
		step *= 10
	}
	step *= 10
	return base + uint32((v-200*step+step-1)/step)
}

// gapUpper is the upper bound of a bucket in seconds.
func gapUpper(b uint32) float64 {
	if b <= gapFine {
		return float64(b) / 1000
	}
	step := int64(10)
	for b -= gapFine; b > gapSteps; b -= gapSteps {
		step *= 10
	}
	return float64(200*step+int64(b)*step) / 1000
}

func (h *Histogram) addGap(ns int64) { h.add(gapBucket(ns), ns) }
