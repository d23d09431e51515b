//go:build !linux

package ingest

import "net"

// countKernelDrops: here the kernel does not say what it had no room for.
func countKernelDrops(*net.UDPConn) (read func(control []byte) (n uint32, ok bool)) {
	return func([]byte) (uint32, bool) { return 0, false }
}

// isTruncated: a datagram that is too long for the buffer is an error here, and no
// datagram is.
func isTruncated(int) bool { return false }
