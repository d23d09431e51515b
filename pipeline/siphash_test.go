package pipeline

import "testing"

// The vectors of the reference implementation: key 00…0f, texts of the bytes 0, 1, 2 …
func TestSipHash(t *testing.T) {
	key := sipKey{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	text := make([]byte, 64)
	for i := range text {
		text[i] = byte(i)
	}
	for n, want := range map[int]uint64{
		0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 7: 0xab0200f58b01d137, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5,
	} {
		if got := key.hash(text[:n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}
