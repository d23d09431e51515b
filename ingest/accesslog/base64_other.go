//go:build !amd64 || purego

package accesslog

func decodeGroups(into, text []byte) (read, written int) { return 0, 0 }
