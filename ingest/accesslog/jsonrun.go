package accesslog

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// run reads members from b[i] on for as long as they follow prev in the order of
// the records before and are written in the plain way: nothing to unescape, no
// blanks, nothing nested, no name a second time. It gives the last member it
// took and the place after the comma behind it, or behind the closing brace when
// done. Of a member that it does not take it changes nothing: object reads it.
//
// It is object with all that can be foreseen left out, and most of the time that
// a record takes is spent here. Words are therefore loaded without the checks
// that the compiler would add; the conditions that make it safe stand beside.
func (p *Parser) run(b []byte, i int, prev *member) (last *member, next int, done bool) {
	k, r := &p.marks, &p.raw
	if i < 0 || k.n > len(b) {
		return prev, i, false
	}
	base, quotes, limit := unsafe.Pointer(unsafe.SliceData(b)), unsafe.Pointer(&k.quotes), k.n
	for {
		m, other := prev.next[0], prev.next[1]
	again:
		if m == nil || i+m.need > limit {
			return prev, i, false
		}
		v := i + m.size // of the value
		w := ((word(base, i) ^ m.words[0]) | (word(base, i+m.tail) ^ m.words[1])) & m.mask
		if m.size > 16 {
			w |= (word(base, i+8) ^ m.words[2]) | (word(base, v-16) ^ m.words[3])
			if m.size > 32 {
				w |= (word(base, i+16) ^ m.words[4]) | (word(base, v-24) ^ m.words[5])
			}
		}
		if w != 0 {
			if other == nil {
				return prev, i, false
			}
			prev.next[0], prev.next[1] = other, m
			m, other = other, nil
			goto again
		}

		// The next quote ends a string, or begins the name after a bare value.
		// What is marked lies in b, so from <= to < len(b).
		from := v + 1
		n := 0 // how far the quote is
		if w := word(quotes, from>>3) >> (from & 7); w != 0 {
			n = bits.TrailingZeros64(w)
		} else if w := word(quotes, from>>3+8); w != 0 {
			n = 64 - from&7 + bits.TrailingZeros64(w)
		} else {
			return prev, i, false
		}
		to, end, null := from+n, from+1+n, false
		if at(base, v) == '"' {
			null = n == 1 && at(base, from) == '-'
			if k.slash {
				w := word(unsafe.Pointer(&k.slashes[from>>3&(markSpan/8-1)]), 0) >> (from & 7)
				if n > 56 || w<<(64-n) != 0 {
					return prev, i, false
				}
			}
		} else {
			from, to, end = v, v+n, v+n
			if n < 1 || n > 16 || v+8 > len(b) {
				return prev, i, false
			}
			// Mostly it is a number of up to eight digits.
			first := word(base, v)
			if n > 8 || notDigits((first^'0'*lows)<<((64-8*n)&63)) {
				kind := bareKind(first, word(base, v+(n-8)&^((n-8)>>63)), n)
				if kind == bareOther {
					return prev, i, false
				}
				null = kind == bareNull
			}
			p.bare = true
		}
		if end >= len(b) {
			return prev, i, false
		}
		stop := at(base, end)
		if stop != ',' && stop != '}' {
			return prev, i, false
		}
		if t := m.one; t != nil {
			f := t.f & (maxFields - 1)
			bit := uint64(1) << (f & 63)
			if null {
				r.null[f>>6] |= bit
			} else {
				have := &r.have[f>>6]
				if *have&bit != 0 {
					return prev, i, false
				}
				*have |= bit
				c := &r.cells[f]
				c.b, c.by = b[from:to], t
			}
		} else if len(m.targets) != 0 {
			return prev, i, false
		}
		prev, i = m, end+1
		if stop == '}' {
			return prev, i, true
		}
	}
}

// at is the byte at p+i.
func at(p unsafe.Pointer, i int) byte { return *(*byte)(unsafe.Add(p, i)) }

// word loads the eight bytes at p+i, all of which must be there.
func word(p unsafe.Pointer, i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, i))[:])
}

const (
	bareOther = iota
	barePlain // a number without sign or exponent, true or false
	bareNull
)

// bareKind tells bare values apart by their first and last eight bytes; of a
// value of n bytes, fewer than eight, those of first count.
//
//go:noinline
func bareKind(first, last uint64, n int) int {
	const t, f, null = 't' | 'r'<<8 | 'u'<<16 | 'e'<<24, 'f' | 'a'<<8 | 'l'<<16 | 's'<<24 | 'e'<<32, 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24
	up := uint(64-8*min(n, 8)) & 63
	x, y := (first^'0'*lows)<<up, (last^'0'*lows)<<up
	if !notDigits(x) && !notDigits(y) {
		return barePlain
	}
	switch {
	case n == 4 && uint32(first) == t, n == 5 && first<<24 == f<<24:
		return barePlain
	case n == 4 && uint32(first) == null:
		return bareNull
	}
	const point = '.' ^ '0'
	x &^= zeros(x^point*lows) >> 7 * 0xff
	y &^= zeros(y^point*lows) >> 7 * 0xff
	if notDigits(x) || notDigits(y) {
		return bareOther
	}
	return barePlain
}
