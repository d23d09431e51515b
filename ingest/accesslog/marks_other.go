//go:build !amd64 || purego

package accesslog

func mark(dst *bitmap, src []byte, c byte) (seen uint8) { return markPlain(dst, src, c) }
