package ingest

import (
	"encoding/binary"
	"net"
	"syscall"
)

// countKernelDrops asks the kernel to say, beside each datagram, how many it had no
// room for since the socket was made, and gives what reads that.
func countKernelDrops(conn *net.UDPConn) (read func(control []byte) (n uint32, ok bool)) {
	if raw, err := conn.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RXQ_OVFL, 1)
		})
		if err == nil {
			return kernelDrops
		}
	}
	return func([]byte) (uint32, bool) { return 0, false }
}

func kernelDrops(control []byte) (n uint32, ok bool) {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level == syscall.SOL_SOCKET && m.Header.Type == syscall.SO_RXQ_OVFL && len(m.Data) >= 4 {
			return binary.NativeEndian.Uint32(m.Data), true
		}
	}
	return 0, false
}

func isTruncated(flags int) bool { return flags&syscall.MSG_TRUNC != 0 }
