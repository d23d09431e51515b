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
