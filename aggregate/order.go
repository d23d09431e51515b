package aggregate

import (
	"cmp"
	"math/bits"
	"slices"
)

// stepAll takes the arrivals of a tick through their questions, in order of
// start. Equal starts are ordered by log time, and then by everything else that a
// count can depend on: where that is equal too, their order changes nothing.
func (l *Ledger) stepAll(t *tick) {
	l.sort(t)
	l.stats.Open -= len(l.order)
	ahead := l.order
	for rest := l.order; len(rest) > 0; {
		if len(ahead) >= len(rest) {
			ahead = l.fetch(t, ahead)
		}
		n := 1
		for n < len(rest) && rest[n]>>32 == rest[0]>>32 {
			n++
		}
		if n == 1 {
			l.step(t, t.arrival(uint32(rest[0])))
		} else {
			l.stepTied(t, rest[:n])
		}
		rest = rest[n:]
	}
}

// sort fills l.order with the arrivals of a tick in order of start, each as its
// start and its number. It deals them out by time and puts in order what falls
// together: by 17 ms, or by the millisecond where a tick has many.
func (l *Ledger) sort(t *tick) {
	l.order = slices.Grow(l.order[:0], int(t.n))[:t.n]
	switch {
	case t.n < 32:
		for i := range t.n {
			l.order[i] = uint64(t.arrival(i).start)<<32 | uint64(i)
		}
		slices.Sort(l.order)
	case t.n < 2048:
		l.deal(t, 24, l.from[:1e9>>24+2])
	default:
		l.deal(t, 20, l.from[:1e9>>20+2])
	}
}

func (l *Ledger) deal(t *tick, shift uint, from []uint32) {
	clear(from)
	for i := range t.n {
		from[t.arrival(i).start>>shift+1]++
	}
	for i := 1; i < len(from); i++ {
		from[i] += from[i-1]
	}
	for i := range t.n {
		start := t.arrival(i).start
		at := &from[start>>shift]
		l.order[*at] = uint64(start)<<32 | uint64(i)
		*at++
	}
	// from now holds where each part ends.
	begin := uint32(0)
	for _, end := range from[:len(from)-1] {
		insertionSort(l.order[begin:end])
		begin = end
	}
}

func insertionSort(part []uint64) {
	if len(part) > 32 {
		slices.Sort(part)
		return
	}
	for i := 1; i < len(part); i++ {
		x := part[i]
		j := i
		for ; j > 0 && part[j-1] > x; j-- {
			part[j] = part[j-1]
		}
		part[j] = x
	}
}

// fetchAhead is how many questions are brought into the cache together.
const fetchAhead = 32

// fetch touches the questions of the next arrivals. Each lies somewhere else in
// memory; asked for one after the other in stepping they would each be waited
// for, asked for together they come together.
func (l *Ledger) fetch(t *tick, order []uint64) (rest []uint64) {
	n := min(fetchAhead, len(order))
	for _, x := range order[:n] {
		if f := t.arrival(uint32(x)); f.flags&unattributable == 0 {
			l.touched += uint64(l.table.at(f.owner).recent)
		}
	}
	return order[n:]
}

// stepTied steps arrivals with one start. Copies of one record are among these,
// and so are the several records of one request.
func (l *Ledger) stepTied(t *tick, tied []uint64) {
	for _, x := range l.kept(t, tied, l.settle) {
		l.step(t, t.arrival(uint32(x)))
	}
}

// fate is what becomes of an arrival that is filed beside others like it.
type fate uint8

const (
	interim     fate = iota // a later record of the same request knows more
	duplicate               // the shipper sent the record again
	undecidable             // equal, and nothing proves a copy: counted
)

// dropped settles the fate of an arrival for good.
func (l *Ledger) dropped(t *tick, x, _ uint64, why fate) {
	f := t.arrival(uint32(x))
	switch why {
	case undecidable:
		l.stats.Undecidable++
		return
	case interim:
		l.stats.Interim++
	default:
		if f.flags&Head != 0 {
			l.stats.Duplicates++
		}
	}
	l.release(f)
}

// kept returns those of some arrivals with one start that count, in the order in
// which they do, and reports the others, each with the one that stands for it. It
// uses the memory of tied.
func (l *Ledger) kept(t *tick, tied []uint64, report func(t *tick, x, by uint64, why fate)) []uint64 {
	if l.strangers(t, tied) {
		return tied
	}
	at := func(x uint64) *filed { return t.arrival(uint32(x)) }
	slices.SortFunc(tied, func(x, y uint64) int {
		a, b := at(x), at(y)
		return cmp.Or(cmp.Compare(a.text>>PairShift, b.text>>PairShift), cmp.Compare(a.flags.kind(), b.flags.kind()),
			cmp.Compare(a.text, b.text), cmp.Compare(a.length(l), b.length(l)), cmp.Compare(x, y))
	})
	kept := tied[:0]
	for i, x := range tied {
		f := at(x)
		if i > 0 {
			switch p := at(kept[len(kept)-1]); {
			case p.flags.kind() != KindEnd && f.flags&p.flags&Paired != 0:
				if p.text>>PairShift != f.text>>PairShift || p.owner != f.owner || p.peer != f.peer {
					break
				}
				report(t, kept[len(kept)-1], x, interim)
				kept[len(kept)-1] = x
				continue
			case p.text != f.text || p.num != f.num || p.flags.kind() != f.flags.kind():
			case p.length(l) != f.length(l) || p.peer != f.peer:
			case (p.flags|f.flags)&late != 0:
				if p.flags&f.flags&Decidable == 0 || !f.long(l) {
					break
				}
				last := &kept[len(kept)-1]
				if p.flags&late != 0 {
					*last, x = x, *last // the one that was in time stays
				}
				report(t, x, *last, duplicate)
				continue
			case p.flags != f.flags || p.owner != f.owner:
			case f.flags&Decidable == 0:
				report(t, x, kept[len(kept)-1], undecidable)
			default:
				report(t, x, kept[len(kept)-1], duplicate)
				continue
			}
		}
		kept = append(kept, x)
	}
	slices.SortFunc(kept, func(x, y uint64) int {
		a, b := at(x), at(y)
		return cmp.Or(cmp.Compare(a.length(l), b.length(l)), cmp.Compare(a.flags, b.flags),
			cmp.Compare(a.peer, b.peer), cmp.Compare(a.num, b.num), cmp.Compare(a.retry, b.retry), cmp.Compare(a.dur, b.dur))
	})
	return kept
}

// strangers says that no two of some arrivals can have to do with each other: they
// are of different questions and of different records.
func (l *Ledger) strangers(t *tick, tied []uint64) bool {
	if len(tied) > 8 {
		return l.manyStrangers(t, tied)
	}
	for i, x := range tied {
		a := t.arrival(uint32(x))
		for _, y := range tied[:i] {
			b := t.arrival(uint32(y))
			if a.text>>PairShift == b.text>>PairShift || a.owner == b.owner && (a.flags|b.flags)&unattributable == 0 {
				return false
			}
		}
	}
	return true
}

// manyStrangers does so in time that grows with their number alone.
func (l *Ledger) manyStrangers(t *tick, tied []uint64) bool {
	const text, owner = 1 << 63, 1 << 62
	l.met.empty(2 * len(tied))
	for _, x := range tied {
		f := t.arrival(uint32(x))
		if !l.met.add(text|uint64(f.text>>PairShift)) || f.flags&unattributable == 0 && !l.met.add(owner|uint64(f.owner)) {
			return false
		}
	}
	return true
}

// met is a set of numbers other than 0, for a short while.
type met struct {
	slots []uint64
	shift uint // what is left of a product is a place
}

// empty makes room for so many numbers.
func (m *met) empty(n int) {
	size := 1 << bits.Len(uint(2*n))
	m.shift = uint(64 - bits.TrailingZeros(uint(size)))
	m.slots = slices.Grow(m.slots[:0], size)[:size]
	clear(m.slots)
}

// add says whether the number was not there yet.
func (m *met) add(n uint64) bool {
	for i := n * 0x9e3779b97f4a7c15 >> m.shift; ; i++ {
		at := &m.slots[i&uint64(len(m.slots)-1)]
		switch *at {
		case 0:
			*at = n
			return true
		case n:
			return false
		}
	}
}

// length is log time less start.
func (f *filed) length(l *Ledger) int64 {
	if f.flags&clamped != 0 {
		return l.cfg.Lateness - l.cfg.margin()
	}
	return unpackDuration(f.dur)
}

// lasted is length, packed, and with what is known where that is not.
func (f *filed) lasted(l *Ledger) uint32 {
	if f.dur&unitMask == noDuration && f.flags&clamped == 0 {
		return f.dur
	}
	return packDuration(f.length(l))
}

// release takes back a filed arrival that is not one.
func (l *Ledger) release(f *filed) {
	if f.flags&unattributable != 0 {
		return
	}
	l.closeOpen(f.owner)
}

// closeOpen takes one open arrival from a question.
func (l *Ledger) closeOpen(i uint32) {
	q := l.table.at(i)
	if q.open--; q.open == 0 && q.n == 0 {
		l.table.drop(i)
	}
}
