package ingest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// SyslogConfig says where records are sent to by syslog.
type SyslogConfig struct {
	// Source is the index of the source in the configuration, given on in Partition.
	Source int
	// Name is the partition's. Default "syslog ", the protocol, a slash and Listen.
	Name string
	// Protocol is tcp or udp. Default tcp.
	Protocol string
	// Listen is host:port.
	Listen string
	// Listener or Packets, unless nil, is used in place of one at Listen. Run closes it.
	Listener net.Listener
	Packets  *net.UDPConn
	// TLS is the listener's (RFC 5425), for tcp alone; nil is none.
	TLS *tls.Config
	// Spool keeps the records until they are counted.
	Spool SpoolConfig
	// MaxConnections is how many may be open at a time. Default 1,024.
	MaxConnections int
	// Logger is told what happens, never what is in the messages. Default: nobody.
	Logger *slog.Logger
	// CloseTimeout is how long the session may take to close. Default 10 s.
	CloseTimeout time.Duration
}

// Syslog takes records by syslog (RFC 3164 and 5424) and keeps them in a spool until
// they are counted: over TCP, with a count of bytes or a line feed between messages
// (RFC 6587), over TLS (RFC 5425), or over UDP, one message a datagram (RFC 5426).
//
// The protocol has no answer, so nothing is promised to whoever sends: what was read is
// durable a moment later, and what lies in the network when either side ends is lost.
// Over TCP a sender is held back while nothing can be kept, and no message is dropped.
// Over UDP nobody can be held back: what finds no room is dropped and counted, and what
// is lost on the way nobody counts.
type Syslog struct {
	*spooled
	cfg SyslogConfig
}

// A message may be that long, and half of the spool, and about so much of messages is
// kept at a time.
const (
	maxMessage  = 1 << 20
	syslogBatch = 256 << 10
)

// NewSyslog opens the spool. Whoever does not call Run calls Close.
func NewSyslog(cfg SyslogConfig) (*Syslog, error) {
	if cfg.Protocol == "" {
		cfg.Protocol = "tcp"
	}
	switch {
	case cfg.Protocol != "tcp" && cfg.Protocol != "udp":
		return nil, fmt.Errorf("syslog: unknown protocol %q: want tcp or udp", cfg.Protocol)
	case cfg.Listen == "" && cfg.Listener == nil && cfg.Packets == nil:
		return nil, errors.New("syslog: no address to listen at")
	case cfg.Protocol == "udp" && cfg.TLS != nil:
		return nil, errors.New("syslog: TLS goes over tcp")
	}
	if cfg.Name == "" {
		cfg.Name = "syslog " + cfg.Protocol + "/" + cfg.Listen
	}
	if cfg.Spool.Logger == nil {
		cfg.Spool.Logger = cfg.Logger
	}
	spool, err := OpenSpool(cfg.Spool)
	if err != nil {
		return nil, err
	}
	return newSyslog(cfg, spool), nil
}

func newSyslog(cfg SyslogConfig, spool *Spool) *Syslog {
	if cfg.MaxConnections <= 0 {
		cfg.MaxConnections = 1024
	}
	return &Syslog{newSpooled(Partition{Source: cfg.Source, Name: cfg.Name}, spool, cfg.Logger, cfg.CloseTimeout), cfg}
}

// Run takes what is sent and hands it to h until ctx is done, and then keeps what was
// read, closes the session and the spool.
func (s *Syslog) Run(ctx context.Context, h Handler) error {
	serve := s.serveTCP
	if s.cfg.Protocol == "udp" {
		serve = s.serveUDP
	}
	if err := s.run(ctx, h, serve); err != nil {
		return fmt.Errorf("syslog: %w", err)
	}
	return nil
}

func (s *Syslog) serveTCP(ctx context.Context) (err error) {
	l := s.cfg.Listener
	if l == nil {
		if l, err = net.Listen("tcp", s.cfg.Listen); err != nil {
			return err
		}
	}
	defer l.Close()
	var conns sync.WaitGroup
	defer conns.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case err != nil && !isPassing(err):
			return err
		case err != nil:
			s.log.Warn("a connection could not be taken", "err", err)
			rest(ctx, waitForRoom)
		case s.connections.Load() >= int64(s.cfg.MaxConnections):
			s.log.Warn("a connection is refused: there are too many", "connections", s.cfg.MaxConnections)
			conn.Close()
		default:
			s.connections.Add(1)
			conns.Go(func() {
				defer s.connections.Add(-1)
				s.converse(ctx, conn)
			})
		}
	}
}

// isPassing says that a listener may go on after an error.
func isPassing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

// converse takes what one connection sends until it ends or ctx is done.
func (s *Syslog) converse(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	if s.cfg.TLS != nil {
		secure := tls.Server(conn, s.cfg.TLS)
		shaken, done := context.WithTimeout(ctx, 10*time.Second)
		err := secure.HandshakeContext(shaken)
		done()
		if err != nil {
			s.log.Debug("a connection is given up: no TLS", "err", err)
			return
		}
		conn = secure
	}
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now()) })()
	frames := syslogFrames{max: s.maxMessage()}
	var lines []byte
	for counted := int64(0); ; {
		n, err := conn.Read(frames.room())
		frames.took(n)
		for message, ok := frames.next(); ok; message, ok = frames.next() {
			if lines = appendSyslog(lines, message); len(lines) >= syslogBatch {
				if s.keepLines(ctx, lines) != nil {
					return // nothing can be kept any more
				}
				lines = lines[:0]
			}
		}
		if s.keepLines(ctx, lines) != nil {
			return
		}
		lines = lines[:0]
		if err != nil {
			frames.end()
		}
		s.truncated.Add(frames.truncated - counted)
		counted = frames.truncated
		if err != nil {
			if err != io.EOF && !errors.Is(err, os.ErrDeadlineExceeded) {
				s.log.Debug("a connection ended", "err", err)
			}
			return
		}
	}
}

// maxMessage is how long a message may be.
func (s *Syslog) maxMessage() int { return int(min(maxMessage, s.spool.cfg.Max/2)) }

// keepLines keeps messages, a line each, in parts that any spool has room for.
func (s *Syslog) keepLines(ctx context.Context, lines []byte) (err error) {
	for len(lines) > 0 && err == nil {
		n := len(lines)
		if n > syslogBatch {
			if n = bytes.LastIndexByte(lines[:syslogBatch], '\n') + 1; n == 0 {
				n = bytes.IndexByte(lines, '\n') + 1
			}
		}
		err = s.keep(ctx, lines[:n], int64(bytes.Count(lines[:n], []byte("\n"))))
		lines = lines[n:]
	}
	s.dropped.Add(int64(bytes.Count(lines, []byte("\n"))))
	return err
}
