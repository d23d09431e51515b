package accesslog

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// numbers makes texts that are numbers or nearly so, each twice: at the end of
// its memory, where nothing can be loaded beyond it, and before other bytes.
func numbers(r *rand.Rand) (tight, roomy []byte) {
	alphabet := []byte("0123456789")
	if r.IntN(2) == 0 {
		alphabet = []byte("0123456789012345678901234567890123456789.-/:;e \x00\xff")
	}
	b := make([]byte, r.IntN(12))
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	if r.IntN(2) == 0 && len(b) > 1 {
		b[r.IntN(len(b))] = '.'
	}
	room := append(append(append([]byte{}, b...), b...), "9\xff99.9\xff9999"...)
	return b[:len(b):len(b)], room[:len(b)]
}

// TestDigits holds numbers that are read by the word to those that are read
// digit by digit.
func TestDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	fast := 0
	for range 100_000 {
		tight, roomy := numbers(r)
		if n, ok := small(roomy); ok {
			fast++
			if want, ok := digits(tight); !ok || int64(want) != n {
				t.Fatalf("%q: %d, want %d %v", tight, n, want, ok)
			}
		}
		if got, want := count(roomy), count(tight); got != want {
			t.Fatalf("count %q: %d, want %d", tight, got, want)
		}
		for u := range unit(len(unitNanoseconds)) {
			want, n, ok := decimal(tight, unitNanoseconds[u])
			if !ok || n != len(tight) {
				want, ok = spanSlow(tight, u)
			}
			if got, gotOK := span(roomy, u); gotOK != ok || ok && got != want {
				t.Fatalf("span %q, unit %d: %d %v, want %d %v", tight, u, got, gotOK, want, ok)
			}
		}
		if len(tight) != 0 {
			got, ok := tryTime(roomy)
			if want, wantOK := tryTime(tight); ok != wantOK || got != want {
				t.Fatalf("try %q: %d %v, want %d %v", tight, got, ok, want, wantOK)
			}
		}
	}
	if fast < 1000 {
		t.Fatalf("only %d numbers were read by the word", fast)
	}
}

// TestStampsByWord holds the stamps that are read by the word, in the minute of
// the one before, to those that are read field by field.
func TestStampsByWord(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var warm Parser
	fast := 0
	for range 100_000 {
		b := fmt.Appendf(nil, "2026-0%d-03T10:1%d:%02d.%03dZ", 1+r.IntN(2), r.IntN(2), r.IntN(62), r.IntN(1000))
		if r.IntN(2) == 0 {
			b = fmt.Appendf(nil, "%010d.%03d", []int64{1772532942, 99_999_999, 8_600_000_000, 8_600_000_001}[r.IntN(4)]+int64(r.IntN(100)), r.IntN(1000))
		}
		if r.IntN(4) == 0 {
			b = fmt.Appendf(nil, "%013d", []int64{1772532942000, 99_999_999_900, 8_600_000_000_000}[r.IntN(3)]+int64(r.IntN(1000)))
		}
		if r.IntN(3) == 0 {
			b[r.IntN(len(b))] = "09:.-, Z/;\x00\xff"[r.IntN(12)]
		}
		var cold Parser
		var want, uncertainty int64
		var ok bool
		if len(b) == 24 {
			if _, hit := warm.day.millis(b); hit {
				fast++
			}
		}
		if want, uncertainty, ok = cold.stamp(b); len(b) == 14 && b[4] != '-' && b[8] != 'T' || len(b) == 13 && allDigits(b) {
			want, uncertainty, ok = epoch(b)
		}
		ns, u, gotOK := warm.stamp(b)
		if gotOK != ok || ok && (ns != want || u != uncertainty) {
			t.Fatalf("%q: %d ±%d %v, want %d ±%d %v", b, ns, u, gotOK, want, uncertainty, ok)
		}
	}
	if fast < 1000 {
		t.Fatalf("only %d stamps were read by the word", fast)
	}
}

// TestNextJoint holds the search by words to that by bytes.
func TestNextJoint(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 20_000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = "0123456789-.:::,  "[r.IntN(18)]
		}
		n := r.IntN(len(b) + 1)
		for i := range n + 2 {
			want := min(i, n)
			for want < n && b[want] != ',' && b[want] != ' ' {
				want++
			}
			if got := nextJoint(b[:n], i); got != want {
				t.Fatalf("%q from %d: %d, want %d", b[:n], i, got, want)
			}
		}
	}
}
