//go:build !purego

package accesslog

//go:noescape
func markAVX2(dst, src *byte, n int, c byte) (seen uint8)

func haveAVX2() bool

var useAVX2 = haveAVX2()

// mark is markPlain, faster.
func mark(dst *bitmap, src []byte, c byte) (seen uint8) {
	if !useAVX2 || len(src) < 64 {
		return markPlain(dst, src, c)
	}
	return markAVX2(&dst[0], &src[0], len(src), c)
}
