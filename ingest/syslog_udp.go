package ingest

import (
	"context"
	"net"
	"sync"
)

// datagrams are messages that were received and not kept yet.
type datagrams struct {
	mu    sync.Mutex
	lines []byte
	more  chan struct{} // has one when there are some
}

const (
	// waitingDatagrams is how much is held while nothing can be kept. What comes
	// beyond that is dropped.
	waitingDatagrams = 8 << 20
	// kernelDatagrams is what the kernel is asked to hold; it may hold less.
	kernelDatagrams = 8 << 20
	// largestDatagram is one byte more than any over IPv4 or IPv6.
	largestDatagram = 64 << 10
)

// put takes a message; false if there is no room.
func (d *datagrams) put(message []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lines)+len(message) >= waitingDatagrams {
		return false
	}
	d.lines = appendSyslog(d.lines, message)
	select {
	case d.more <- struct{}{}:
	default:
	}
	return true
}

// take gives what there is, and takes memory back that is done with.
func (d *datagrams) take(done []byte) (lines []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines, d.lines = d.lines, done[:0]
	return lines
}

func (s *Syslog) serveUDP(ctx context.Context) (err error) {
	conn := s.cfg.Packets
	if conn == nil {
		addr, err := net.ResolveUDPAddr("udp", s.cfg.Listen)
		if err != nil {
			return err
		}
		if conn, err = net.ListenUDP("udp", addr); err != nil {
			return err
		}
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer conn.Close()
	if err := conn.SetReadBuffer(kernelDatagrams); err != nil {
		s.log.Debug("the kernel holds fewer datagrams than asked for", "err", err)
	}
	lost := countKernelDrops(conn)

	d := &datagrams{more: make(chan struct{}, 1)}
	var keeping sync.WaitGroup
	defer keeping.Wait()
	read, stop := context.WithCancel(context.WithoutCancel(ctx)) // until all that was read is kept
	defer stop()
	keeping.Go(func() {
		var lines []byte
		for {
			select {
			case <-d.more:
			case <-read.Done():
			}
			if lines = d.take(lines); len(lines) == 0 && read.Err() != nil {
				return
			}
			s.keepLines(read, lines) // counts what it cannot keep
		}
	})

	buf, control := make([]byte, largestDatagram), make([]byte, 128)
	seen := uint32(0)
	for {
		n, told, flags, _, err := conn.ReadMsgUDPAddrPort(buf, control)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if !isPassing(err) {
				return err
			}
			s.log.Debug("a datagram could not be received", "err", err)
			continue
		}
		if now, ok := lost(control[:told]); ok {
			s.dropped.Add(int64(now - seen)) // it wraps around
			seen = now
		}
		switch {
		case isTruncated(flags):
			s.truncated.Add(1)
		case !d.put(buf[:n]):
			if s.dropped.Add(1) == 1 {
				s.log.Warn("datagrams are dropped: they come faster than they can be kept")
			}
		}
	}
}
