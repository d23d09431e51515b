//go:build !purego

package accesslog

//go:noescape
func markAVX2(dst, src *byte, n int, c byte) (seen uint8)

//go:noescape
func markLineAVX2(dst, src *byte) (n int, seen uint8)

func haveAVX2() bool

var useAVX2 = haveAVX2()

// mark is markPlain, faster.
func mark(dst *bitmap, src []byte, c byte) (seen uint8) {
	if !useAVX2 || len(src) < 64 {
		return markPlain(dst, src, c)
	}
	return markAVX2(&dst[0], &src[0], len(src), c)
}

// markLine marks the quotes of the line that text begins with, and finds its
// length; not ok if it does not, for whatever reason.
func markLine(dst *bitmap, text []byte) (n int, seen uint8, ok bool) {
	if !useAVX2 || len(text) < markSpan {
		return 0, 0, false
	}
	n, seen = markLineAVX2(&dst[0], &text[0])
	return n, seen, n < markSpan
}
