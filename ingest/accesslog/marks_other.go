//go:build !amd64 || purego

package accesslog

func mark(dst *bitmap, src []byte, c byte) (seen uint8) { return markPlain(dst, src, c) }

const useAVX2 = false

func markLine(*bitmap, []byte) (n int, seen uint8, ok bool) { return 0, 0, false }
