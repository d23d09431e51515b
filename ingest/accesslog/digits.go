package accesslog

import (
	"encoding/binary"
	"math/bits"
)

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// zeros has the top bit of every byte set that is zero in x.
func zeros(x uint64) uint64 { return ^((x&^highs + ^uint64(highs)) | x) & highs }

// notDigits says that one of the bytes of x is above 9.
func notDigits(x uint64) bool { return (x+(0x80-10)*lows|x)&highs != 0 }

// upper loads b, of one to eight bytes, into the upper bytes of a word whose
// others are zero; ok is false if b is of another length, or so near the end of
// its line that the word cannot be loaded.
func upper(b []byte) (x uint64, shift uint, ok bool) {
	if uint(len(b)-1) > 7 || cap(b) < 8 {
		return 0, 0, false
	}
	shift = uint(64-8*len(b)) & 63
	return binary.LittleEndian.Uint64(b[:8]) << shift, shift, true
}

// eight reads the digits of x, from 0 to 9 each, the lowest byte first.
func eight(x uint64) int64 {
	x = (x*10 + x>>8) & 0x00ff00ff00ff00ff
	x = (x*100 + x>>16) & 0x0000ffff0000ffff
	return int64((x*10000 + x>>32) & 0xffffffff)
}

// small reads up to eight digits, where upper can load them: not ok does not
// mean that b is no number.
func small(b []byte) (n int64, ok bool) {
	x, shift, ok := upper(b)
	x ^= '0' * lows << shift
	if !ok || notDigits(x) {
		return 0, false
	}
	return eight(x), true
}

// smallDecimal is small for numbers that may have a point: it gives the digits
// without it and how many of them stand behind it.
func smallDecimal(b []byte) (n int64, behind int, ok bool) {
	x, shift, ok := upper(b)
	if !ok {
		return 0, 0, false
	}
	if point := zeros(x ^ '.'*lows); point != 0 {
		// Everything before the point moves up by a byte, over it.
		before := (point&-point)>>7 - 1 // the bytes below
		last := before<<8 | 0xff
		behind = 7 - bits.TrailingZeros64(point)/8
		if x = x&^last | x&before<<8; behind == 0 || shift == 56 {
			return 0, 0, false
		}
		shift += 8
	}
	x ^= '0' * lows << shift
	if notDigits(x) {
		return 0, 0, false
	}
	return eight(x), behind, true
}
