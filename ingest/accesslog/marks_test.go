package accesslog

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestMarks holds both ways of marking to what a search byte by byte finds, for
// every length and alignment, with garbage left behind by the text before and
// beyond the text.
func TestMarks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var room [markSpan + 64]byte
	for n := range 300 {
		for range 20 {
			at := r.IntN(64)
			for i := range room[:at+n+64] {
				room[i] = `"\a,"\b.é"`[r.IntN(11)]
			}
			if r.IntN(3) == 0 {
				for i := range room[:at+n+64] {
					room[i] = "abc\"\x7f"[r.IntN(5)]
				}
			}
			checkMarks(t, room[at:at+n:at+n], r)
		}
	}
	for _, n := range []int{markSpan - 1, markSpan, markSpan + 1, markSpan + 60} {
		for i := range room {
			room[i] = `"\a.`[min(r.IntN(90), 3)]
		}
		checkMarks(t, room[:n:n], r)
	}
}

func checkMarks(t *testing.T, text []byte, r *rand.Rand) {
	t.Helper()
	var m marks
	for i := range m.quotes {
		m.quotes[i], m.slashes[i] = byte(r.Uint32()), byte(r.Uint32())
	}
	plain := m.quotes
	m.set(text)
	if n := min(len(text), markSpan); markPlain(&plain, text[:n], '"') != mark(&m.quotes, text[:n], '"') ||
		!bytes.Equal(plain[:n/8+16], m.quotes[:n/8+16]) {
		t.Fatalf("%q: plain %x, marked %x", text, plain, m.quotes)
	}
	if len(text) <= markSpan && (m.slash != (bytes.IndexByte(text, '\\') >= 0) || m.escapes != m.slash) {
		t.Fatalf("%q: slash %v, escapes %v", text, m.slash, m.escapes)
	}
	high := bytes.IndexByte(text, '\\') >= 0 || bytes.ContainsFunc(text, func(c rune) bool { return c >= 0x80 })
	if m.ascii && high || !m.ascii && !high && len(text) <= markSpan {
		t.Fatalf("%q: ascii %v", text, m.ascii)
	}
	for i := 0; i <= len(text); i++ {
		want := bytes.IndexByte(text[i:], '"')
		if near := m.near(i); near < 64 && near != want || near == 64 && want >= 0 && want < 64 && i+want < m.n {
			t.Fatalf("%q, near %d: %d, want %d", text, i, near, want)
		}
		end := m.end(text, i)
		if want >= 0 && end != i+want || want < 0 && end >= 0 {
			t.Fatalf("%q, end of %d: %d, want %d more", text, i, end, want)
		}
		j := i + r.IntN(len(text)-i+1)
		if slash := bytes.IndexByte(text[i:j], '\\') >= 0; slash && !m.escaped(i, j) || !slash && j <= m.n && m.escaped(i, j) {
			t.Fatalf("%q: escape in %d:%d is %v", text, i, j, slash)
		}
	}
}

// TestMarkLine holds marking a line while its end is looked for to marking it when
// that is known.
func TestMarkLine(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 4000 {
		room := make([]byte, r.IntN(64)+markSpan+r.IntN(3)-1+64)
		for k := range room {
			room[k] = "abcdefghijkl\"\\.,\xc3\x0b"[r.IntN([]int{12, 13, 14, 18}[i%4])]
		}
		n := r.IntN(markSpan + 64)
		if i%8 < 4 {
			n = r.IntN(200)
		}
		copy(room[n:], "\n\\\"\xc3\n") // what follows is another line's
		for at := range min(n+1, 3) {
			checkMarkLine(t, room[at:])
		}
	}
}

func checkMarkLine(t *testing.T, text []byte) {
	t.Helper()
	var m, want marks
	for i := range m.quotes {
		m.quotes[i], m.slashes[i] = 0xa5, 0x5a
	}
	n := m.line(text)
	if n < 0 {
		if useAVX2 && len(text) >= markSpan && bytes.IndexByte(text[:markSpan], '\n') >= 0 {
			t.Fatalf("%q: no line found", text)
		}
		return
	}
	if n != bytes.IndexByte(text, '\n') {
		t.Fatalf("%q: a line of %d bytes", text, n)
	}
	line := text[:n]
	want.set(line)
	m.set(line)
	if m.text != nil || m.n != want.n || m.slash != want.slash || m.escapes != want.escapes || m.ascii != want.ascii ||
		!bytes.Equal(m.quotes[:n/8+16], want.quotes[:n/8+16]) ||
		m.slash && !bytes.Equal(m.slashes[:n/8+16], want.slashes[:n/8+16]) {
		t.Fatalf("%q: marked otherwise", line)
	}
	m.set(line[:n/2]) // not what was marked
	if m.n != n/2 {
		t.Fatalf("%q: the marks of a longer text", line[:n/2])
	}
}
