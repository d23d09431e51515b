package accesslog

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// markSpan is how many bytes of a text are marked; what lies beyond is searched
// when it is needed. It bounds what a line with many records costs.
const markSpan = 4096

// A bitmap has one bit for each of markSpan bytes, the first in the lowest bit,
// and sixteen bytes of zeros behind.
type bitmap [markSpan/8 + 24]byte

// marks say where the quotes of a text are, so that strings end where a bit is
// and nothing needs to be searched byte by byte.
type marks struct {
	text    *byte // the line that was marked before it is parsed
	n       int   // as many bytes are marked
	escapes bool  // there may be a backslash in the text
	slash   bool  // there is one among the bytes marked
	ascii   bool  // there is no byte from 0x80 on in the text, nor an escape
	quotes  bitmap
	slashes bitmap // only set with slash
}

// What mark has seen.
const (
	seenSlash = 1 << iota
	seenHigh
)

// line marks the line that text begins with and finds its length, in one go; it
// is -1 if the line must be searched for, and is not marked.
func (m *marks) line(text []byte) int {
	n, seen, ok := markLine(&m.quotes, text)
	if !ok {
		m.text = nil
		return -1
	}
	m.text, m.n = unsafe.SliceData(text), n
	m.saw(text[:n], seen)
	return n
}

// set marks text, or its beginning.
func (m *marks) set(text []byte) {
	if m.text == unsafe.SliceData(text) && m.n == len(text) && m.text != nil {
		m.text = nil // once: the memory may hold another line by then
		return
	}
	m.text, m.n = nil, min(len(text), markSpan)
	m.saw(text, mark(&m.quotes, text[:m.n], '"'))
}

// saw notes what was seen when text, or its beginning, was marked.
func (m *marks) saw(text []byte, seen uint8) {
	if m.slash = seen&seenSlash != 0; m.slash {
		mark(&m.slashes, text[:m.n], '\\')
	}
	m.escapes = m.slash || m.n < len(text)
	m.ascii = seen == 0 && m.n == len(text)
}

// clear forgets the text.
func (m *marks) clear() { m.text, m.n, m.escapes, m.slash, m.ascii = nil, 0, true, false, false }

// near is the distance from text[i] to the next quote, 64 if that is not among
// the 64 bytes that are looked at, or not known.
func (m *marks) near(i int) int {
	if uint(i) >= uint(m.n) {
		return 64
	}
	k, s := i>>3&(markSpan/8-1), i&7
	q := m.quotes[k : k+9]
	return bits.TrailingZeros64(binary.LittleEndian.Uint64(q)>>s | uint64(q[8])<<1<<(63-s))
}

// end is the place of the first quote from text[i] on, -1 if there is none.
func (m *marks) end(text []byte, i int) int {
	for at := i; at < m.n; at += 64 {
		if n := m.near(at); n < 64 {
			return at + n
		}
	}
	i = max(i, m.n)
	if j := bytes.IndexByte(text[i:], '"'); j >= 0 {
		return i + j
	}
	return -1
}

// escaped says that there may be a backslash in text[i:j].
func (m *marks) escaped(i, j int) bool {
	switch {
	case j > m.n:
		return m.escapes
	case !m.slash:
		return false
	}
	for ; i < j; i = i&^7 + 64 {
		w := binary.LittleEndian.Uint64(m.slashes[i>>3:]) >> (i & 7)
		if w<<(64-min(j-i, 64)) != 0 {
			return true
		}
	}
	return false
}

// markPlain sets bit i of dst where src[i] == c, and clears the sixteen bytes
// after. src is markSpan long at most.
func markPlain(dst *bitmap, src []byte, c byte) (seen uint8) {
	const slashes = '\\' * lows
	want := uint64(c) * lows
	var high, slash uint64
	i := 0
	for ; i+8 <= len(src); i += 8 {
		x := binary.LittleEndian.Uint64(src[i:])
		high |= x
		slash |= zeros(x ^ slashes)
		dst[i>>3] = byte(zeros(x^want) >> 7 * 0x0102040810204080 >> 56)
	}
	last := byte(0)
	for k, b := range src[i:] {
		high |= uint64(b)
		if b == '\\' {
			slash = 1
		}
		if b == c {
			last |= 1 << k
		}
	}
	i >>= 3
	dst[i] = last
	clear(dst[i+1 : i+17])
	if slash != 0 {
		seen = seenSlash
	}
	if high&highs != 0 {
		seen |= seenHigh
	}
	return seen
}
