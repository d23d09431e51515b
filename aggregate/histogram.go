package aggregate

import "slices"

// Histogram counts values by bucket. New values are only noted; they are counted
// into an array of buckets when their notes have taken as much memory as it does,
// so that counting one touches memory in order, and rows with few values stay
// small.
type Histogram struct {
	noted   []uint16
	max     int64
	sum     int64  // of the values
	counted uint64 // values in many
	many    []uint64
}

// Buckets are numbered in 16 bits: MaxHorizon falls below 10,000.

// fewestNoted is how many values a histogram notes before it may make an array.
const fewestNoted = 64

// N is the number of values counted, Max the largest of them, exact.
func (h *Histogram) N() uint64  { return h.counted + uint64(len(h.noted)) }
func (h *Histogram) Max() int64 { return h.max }

// Sum is the sum of all values, exact.
func (h *Histogram) Sum() int64 { return h.sum }

func (h *Histogram) add(at uint32, value int64) {
	h.max = max(h.max, value)
	h.sum += value
	if len(h.noted) == cap(h.noted) {
		h.makeRoom()
	}
	h.noted = append(h.noted, uint16(at))
}

// addTimes counts a value n times.
func (h *Histogram) addTimes(at uint32, value int64, n uint64) {
	if n == 1 {
		h.add(at, value)
		return
	}
	h.addMany(at, n, value)
	h.sum += value * int64(n)
}

// makeRoom makes room to note more.
func (h *Histogram) makeRoom() {
	n := len(h.noted)
	if n >= fewestNoted && n >= 4*(1+int(slices.Max(h.noted))) {
		h.settle()
	} else {
		h.noted = slices.Grow(h.noted, max(n, 8))
	}
}

// settle counts what is noted into the array.
func (h *Histogram) settle() {
	h.tally(h.noted)
	h.noted = h.noted[:0]
}

// tally counts notes into the array.
func (h *Histogram) tally(noted []uint16) {
	if len(noted) == 0 {
		return
	}
	h.grow(int(slices.Max(noted)) + 1)
	many := h.many
	for _, at := range noted {
		many[at]++
	}
	h.counted += uint64(len(noted))
}

// addMany counts n values of a bucket, the largest of which is given; what they add
// up to is for the caller to add.
func (h *Histogram) addMany(at uint32, n uint64, largest int64) {
	if n == 0 {
		return
	}
	h.max = max(h.max, largest)
	h.grow(int(at) + 1)
	h.many[at] += n
	h.counted += n
}

// grow makes the array n buckets long, if it is not longer.
func (h *Histogram) grow(n int) {
	if n > len(h.many) {
		h.many = slices.Grow(h.many, n-len(h.many))[:n]
	}
}

// Merge adds everything that o counted.
func (h *Histogram) Merge(o *Histogram) {
	h.max = max(h.max, o.max)
	h.sum += o.sum
	if len(h.many) > 0 {
		h.tally(o.noted)
	} else {
		for _, at := range o.noted {
			h.add(uint32(at), 0)
		}
	}
	if len(o.many) > 0 {
		h.grow(len(o.many))
		many := h.many[:len(o.many)]
		for at, n := range o.many {
			many[at] += n
		}
		h.counted += o.counted
	}
}

// each reports the buckets in order. Few values need no array for that.
func (h *Histogram) each(f func(at uint32, n uint64)) {
	if len(h.many) == 0 {
		slices.Sort(h.noted)
		for rest := h.noted; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n] == rest[0] {
				n++
			}
			f(uint32(rest[0]), uint64(n))
			rest = rest[n:]
		}
		return
	}
	h.settle()
	for at, n := range h.many {
		if n > 0 {
			f(uint32(at), n)
		}
	}
}

// rank returns the bucket that holds the q-quantile by nearest rank.
func (h *Histogram) rank(q float64) uint32 {
	h.settle()
	want := uint64(q * float64(h.counted))
	if float64(want) < q*float64(h.counted) || want == 0 {
		want++
	}
	var seen uint64
	for at, n := range h.many {
		if seen += n; seen >= want {
			return uint32(at)
		}
	}
	return 0
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

// EachCount reports the buckets of a histogram of counts, as PerQuestion is, in
// order: how many values there are up to upper, and above the bucket before.
func (h *Histogram) EachCount(f func(upper, n uint64)) {
	h.each(func(at uint32, n uint64) { f(countUpper(at), n) })
}

func (h *Histogram) addCount(k uint32, n uint64) { h.addTimes(countBucket(k), int64(k), n) }

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

func (h *Histogram) addGap(ns int64, n uint64) { h.addTimes(gapBucket(ns), ns, n) }
