package aggregate

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Counts are kept at rest as a sequence of varints: which counters there are,
// then the sums, the histograms and the carries. Equal counts have equal bytes,
// whatever the order in which they were counted.

// encoding is the version of that format, its first byte.
const encoding = 1

// firstCounters is how many counters the first version had. New ones come last.
const firstCounters = byte(nVariance)

// ErrCounts is the error of Counts that cannot be decoded.
var ErrCounts = errors.New("aggregate: not counts as this version encodes them")

// Append appends the encoded counts to dst.
func (c *Counts) Append(dst []byte) []byte {
	c.tally.empty(&c.n)
	dst = append(dst, encoding, byte(numCounters), byte(numDistinct))
	dst = binary.LittleEndian.AppendUint64(dst, notZero(&c.n))
	dst = appendNotZero(dst, &c.n)
	for _, v := range [...]int64{c.Dead, c.Busy, c.Repeat} {
		dst = binary.AppendVarint(dst, v)
	}
	for _, h := range c.histograms() {
		dst = h.append(dst)
	}
	for _, list := range c.carried {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b Carry) int { return int(a.Rows - b.Rows) })
		dst = appendCarries(dst, list)
	}
	return dst
}

// notZero has a bit for each counter that is not 0.
func notZero(n *[numCounters]uint64) (some uint64) {
	for i, n := range n {
		some |= bit(n != 0) << i
	}
	return some
}

func appendNotZero(dst []byte, n *[numCounters]uint64) []byte {
	for _, n := range n {
		if n != 0 {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

func appendCarries(dst []byte, list []Carry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, x := range list {
		dst = binary.AppendVarint(dst, x.Rows)
		dst = binary.AppendUvarint(dst, x.N)
		dst = binary.AppendUvarint(dst, x.Claimed)
	}
	return dst
}

// DecodeCounts reads what Append wrote. The error is ErrCounts.
func DecodeCounts(b []byte) (*Counts, error) {
	d := decoder{b: b}
	known, counters := d.byte() == encoding, d.byte() // those of an earlier version are the first of these
	if !known || counters < firstCounters || counters > byte(numCounters) || d.byte() != byte(numDistinct) || len(d.b) < 8 {
		return nil, ErrCounts
	}
	c := new(Counts)
	some := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[8:]
	if some>>counters != 0 {
		return nil, ErrCounts
	}
	for i := range c.n {
		if some>>i&1 != 0 {
			c.n[i] = d.uint()
		}
	}
	c.Dead, c.Busy, c.Repeat = d.int(), d.int(), d.int()
	for _, h := range c.histograms() {
		d.histogram(h)
	}
	for i := range c.carried {
		c.carried[i] = d.carries()
	}
	if d.bad || len(d.b) != 0 {
		return nil, ErrCounts
	}
	return c, nil
}

func (c *Counts) histograms() [4]*Histogram {
	return [...]*Histogram{&c.PerQuestion, &c.Spans, &c.FanOut, &c.Gaps}
}

// append writes the buckets as distances from one to the next.
func (h *Histogram) append(dst []byte) []byte {
	buckets := uint64(0)
	h.each(func(uint32, uint64) { buckets++ })
	dst = binary.AppendUvarint(dst, buckets)
	if buckets == 0 {
		return dst
	}
	dst = binary.AppendVarint(binary.AppendVarint(dst, h.max), h.sum)
	last := uint32(0)
	h.each(func(at uint32, n uint64) {
		dst = binary.AppendUvarint(dst, uint64(at-last))
		dst = binary.AppendUvarint(dst, n)
		last = at
	})
	return dst
}

// decoder reads varints until something is wrong.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) carries() (list []Carry) {
	for n := d.uint(); n > 0 && !d.bad; n-- {
		list = append(list, Carry{d.int(), d.uint(), d.uint()})
	}
	return list
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	x := d.b[0]
	d.b = d.b[1:]
	return x
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	return v + d.take(n)
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	return v + int64(d.take(n))
}

// take passes over n bytes; it returns 0.
func (d *decoder) take(n int) uint64 {
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return 0
}

// fewNoted is how many equal values are noted one by one: most rows of a second have
// few, and an array of buckets takes kilobytes.
const fewNoted = 16

// maxBucket is beyond every bucket there is.
const maxBucket = 1 << 14

func (d *decoder) histogram(h *Histogram) {
	buckets := d.uint()
	if buckets == 0 || d.bad {
		return
	}
	largest, sum := d.int(), d.int()
	h.sum = sum
	at := uint64(0)
	for ; buckets > 0 && !d.bad; buckets-- {
		if at += d.uint(); at >= maxBucket {
			d.bad = true
			return
		}
		n := d.uint()
		if n > fewNoted {
			h.addMany(uint32(at), n, largest)
			continue
		}
		h.max = max(h.max, largest)
		for range n {
			h.noted = append(h.noted, uint16(at))
		}
	}
}
