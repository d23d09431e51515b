package ingest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ALSConfig says where Envoy sends its access log to.
type ALSConfig struct {
	// Source is the index of the source in the configuration, given on in Partition.
	Source int
	// Name is the partition's. Default "als " and Listen.
	Name string
	// Listen is host:port.
	Listen string
	// Listener, unless nil, is used in place of one at Listen. Run closes it.
	Listener net.Listener
	// TLS is the listener's; nil is HTTP/2 in the clear.
	TLS *tls.Config
	// Tokens are the bearer tokens that are let in, none of them empty. None:
	// everybody is.
	Tokens [][]byte
	// Spool keeps the records until they are counted.
	Spool SpoolConfig
	// MaxStreams is how many may be open at a time. Default 1,024.
	MaxStreams int
	// Logger is told what happens, never what is in the records. Default: nobody.
	Logger *slog.Logger
	// CloseTimeout is how long streams may take to end, and then the session to close.
	// Default 10 s.
	CloseTimeout time.Duration
}

// ALS is a server of Envoy's gRPC Access Log Service
// (envoy.service.accesslog.v3.AccessLogService), which keeps in a spool what it is sent.
// Each message becomes a line of the format envoy-als, the HTTP entries alone.
//
// Envoy is not answered while a stream lasts, so nothing is promised to it: what was
// read is durable a moment later, and what was under way when either side ends is lost. Of
// a message that is cut off, when the stream ends or breaks within it, the entries that
// came whole are kept, once: Envoy sends none of it again. It counts as truncated. A
// message that came whole and is none of the service's is not read at all.
// While nothing can be kept a stream is not read on, and no entry is dropped here; Envoy
// buffers (buffer_size_bytes), then drops, and counts that in
// access_logs.grpc_access_log.logs_dropped.
type ALS struct {
	*spooled
	cfg     ALSConfig
	tokens  tokens
	running context.Context // of Run
}

const (
	alsPath = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"
	// maxALS is the largest message: its line is no longer than an entry of the spool.
	maxALS = maxEntry/4*3 - 4<<10
	// maxALSName bounds what is kept of the names by which a stream identifies itself.
	maxALSName = 256
)

// NewALS opens the spool. Whoever does not call Run calls Close.
func NewALS(cfg ALSConfig) (*ALS, error) {
	if cfg.Listen == "" && cfg.Listener == nil {
		return nil, errors.New("als: no address to listen at")
	}
	if cfg.Name == "" {
		cfg.Name = "als " + cfg.Listen
	}
	if cfg.Spool.Logger == nil {
		cfg.Spool.Logger = cfg.Logger
	}
	spool, err := OpenSpool(cfg.Spool)
	if err != nil {
		return nil, err
	}
	return newALS(cfg, spool), nil
}

func newALS(cfg ALSConfig, spool *Spool) *ALS {
	if cfg.MaxStreams <= 0 {
		cfg.MaxStreams = 1024
	}
	return &ALS{
		spooled: newSpooled(Partition{Source: cfg.Source, Name: cfg.Name}, spool, cfg.Logger, cfg.CloseTimeout),
		cfg:     cfg, tokens: hashTokens(cfg.Tokens),
	}
}

// Run takes streams and hands what is in them to h until ctx is done, and then ends
// them, closes the session and the spool.
func (a *ALS) Run(ctx context.Context, h Handler) error {
	return a.run(ctx, h, func(ctx context.Context) (err error) {
		l := a.cfg.Listener
		if l == nil {
			if l, err = net.Listen("tcp", a.cfg.Listen); err != nil {
				return fmt.Errorf("als: %w", err)
			}
		}
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		a.running = running
		server := &http.Server{
			Handler:           a,
			TLSConfig:         a.cfg.TLS,
			Protocols:         new(http.Protocols),
			HTTP2:             &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       5 * time.Minute,
			MaxHeaderBytes:    32 << 10,
			ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
		}
		server.Protocols.SetHTTP2(true)
		server.Protocols.SetUnencryptedHTTP2(a.cfg.TLS == nil)
		if err := serveUntil(ctx, server, l, a.closeIn, stop); err != nil {
			return fmt.Errorf("als: %w", err)
		}
		return nil
	})
}

// grpcStatus is how a stream ends.
type grpcStatus struct {
	code    int
	message string
}

// The codes of gRPC that are used here.
const (
	grpcOK                = 0
	grpcInvalidArgument   = 3
	grpcResourceExhausted = 8
	grpcUnimplemented     = 12
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

// ServeHTTP answers StreamAccessLogs.
func (a *ALS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if kind := r.Header.Get("Content-Type"); r.ProtoMajor != 2 || r.Method != http.MethodPost || kind != "application/grpc" && !strings.HasPrefix(kind, "application/grpc+proto") {
		problemf(http.StatusUnsupportedMediaType, "this is a gRPC service: name it in Envoy's envoy.access_loggers.http_grpc").write(w)
		return
	}
	s := a.stream(w, r)
	w.Header().Set("Content-Type", "application/grpc")
	if s.code == grpcOK { // what the service answers has no field
		w.Write(make([]byte, 5))
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		return
	}
	w.Header().Set("Grpc-Status", strconv.Itoa(s.code))
	w.Header().Set("Grpc-Message", s.message)
}

// stream takes one stream until it ends, or cannot be read on.
func (a *ALS) stream(w http.ResponseWriter, r *http.Request) grpcStatus {
	switch encoding := r.Header.Get("Grpc-Encoding"); {
	case a.tokens.refuse(r) != nil:
		return grpcStatus{grpcUnauthenticated, "no token, or another: set initial_metadata authorization to Bearer TOKEN"}
	case r.URL.Path != alsPath:
		return grpcStatus{grpcUnimplemented, "the service here is envoy.service.accesslog.v3.AccessLogService"}
	case encoding != "" && encoding != "identity":
		w.Header().Set("Grpc-Accept-Encoding", "identity")
		return grpcStatus{grpcUnimplemented, "messages are not compressed here"}
	}
	if a.connections.Add(1) > int64(a.cfg.MaxStreams) {
		a.connections.Add(-1)
		a.log.Warn("a stream is refused: there are too many", "streams", a.cfg.MaxStreams)
		return grpcStatus{grpcResourceExhausted, "too many streams"}
	}
	defer a.connections.Add(-1)
	control := http.NewResponseController(w)
	defer context.AfterFunc(a.running, func() { control.SetReadDeadline(time.Now()) })()

	most := int(min(maxALS, a.spool.cfg.Max/4))
	var head [5]byte
	var message, identifier, line []byte
	for {
		if n, err := io.ReadFull(r.Body, head[:]); err != nil {
			if n > 0 {
				a.truncated.Add(1)
			}
			return a.ended(err)
		}
		size := binary.BigEndian.Uint32(head[1:])
		if head[0] != 0 || uint64(size) > uint64(most) {
			a.truncated.Add(1)
			a.log.Warn("a stream is ended: a message is compressed or too large", "bytes", size, "most", most)
			return grpcStatus{grpcResourceExhausted, fmt.Sprintf("a message is compressed, or has more than %d bytes: lower buffer_size_bytes", most)}
		}
		if uint32(cap(message)) < size {
			message = make([]byte, size)
		}
		message = message[:size]
		if n, err := io.ReadFull(r.Body, message); err != nil {
			a.truncated.Add(1)
			if line, _, n, ok := appendALS(line[:0], message[:n], identifier, true); ok {
				a.keep(a.running, line, n) // which counts what it cannot keep
			}
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return a.ended(err)
		}
		var n int64
		var ok bool
		if line, identifier, n, ok = appendALS(line[:0], message, identifier, false); !ok {
			a.truncated.Add(1)
			a.log.Warn("a stream is ended: a message is none of the service's")
			return grpcStatus{grpcInvalidArgument, "a message is no StreamAccessLogsMessage"}
		}
		if n == 0 {
			continue
		}
		if a.keep(a.running, line, n) != nil {
			return grpcStatus{grpcUnavailable, "nothing can be kept"}
		}
	}
}

// ended is the answer to a stream that could not be read on.
func (a *ALS) ended(err error) grpcStatus {
	switch {
	case err == io.EOF:
		return grpcStatus{code: grpcOK}
	case a.running.Err() != nil:
		return grpcStatus{grpcUnavailable, "the daemon is shutting down"}
	case err == io.ErrUnexpectedEOF:
		a.log.Warn("a stream was ended within a message")
		return grpcStatus{grpcInvalidArgument, "the stream was ended within a message: what came whole of it is kept"}
	}
	a.log.Debug("a stream broke off", "err", err)
	return grpcStatus{grpcUnavailable, "the stream broke off"} // which reaches nobody
}

// appendALS appends the line of a StreamAccessLogsMessage: its HTTP entries, of which
// there are n, and the identifier of its stream, which the first message brings. ok says
// that it is such a message, or where that is cut, the beginning of one; the line then has
// the entries that are whole. A line without an entry is none.
func appendALS(line, message, before []byte, cut bool) (_, identifier []byte, n int64, ok bool) {
	identifier = before
	entries := make([]byte, 0, len(message))
	for rest := message; len(rest) > 0; {
		var f wireField
		if f, rest, ok = wireNext(rest); !ok && !(cut && f.cut) {
			return line, identifier, 0, false
		}
		whole := ok
		switch {
		case f.wire != wireLength:
		case f.number == 1 && whole:
			if identifier, ok = alsIdentifier(f.value); !ok {
				return line, identifier, 0, false
			}
		case f.number == 2:
			if entries, n, ok = appendEntries(entries, n, f.value, !whole); !ok {
				return line, identifier, 0, false
			}
		}
	}
	if n == 0 {
		return line, identifier, 0, true
	}
	kept := appendWire(bytes.Clone(identifier), 2, entries)
	return append(base64.StdEncoding.AppendEncode(line, kept), '\n'), identifier, n, true
}

// appendEntries appends the HTTP entries of b that are whole, and counts them in n; ok says
// that b is a list of them, or where that is cut, the beginning of one.
func appendEntries(entries []byte, n int64, b []byte, cut bool) (_ []byte, _ int64, ok bool) {
	for len(b) > 0 {
		var f wireField
		if f, b, ok = wireNext(b); !ok {
			return entries, n, cut && f.cut
		}
		if f.number == 1 && f.wire == wireLength {
			entries = append(entries, f.all...)
			n++
		}
	}
	return entries, n, true
}

// alsIdentifier is the field of a message that says who sends it: the node's id and
// cluster, and the log's name. Of what else Envoy says of itself, all its extensions
// among it, nothing is kept.
func alsIdentifier(b []byte) (field []byte, ok bool) {
	var node, identifier []byte
	for len(b) > 0 {
		var f wireField
		if f, b, ok = wireNext(b); !ok {
			return nil, false
		}
		switch {
		case f.wire != wireLength:
		case f.number == 1:
			for rest := f.value; len(rest) > 0; {
				var of wireField
				if of, rest, ok = wireNext(rest); !ok {
					return nil, false
				}
				if (of.number == 1 || of.number == 2) && of.wire == wireLength && len(of.value) <= maxALSName {
					node = append(node, of.all...)
				}
			}
			identifier = appendWire(identifier, 1, node)
		case f.number == 2 && len(f.value) <= maxALSName:
			identifier = append(identifier, f.all...)
		}
	}
	return appendWire(nil, 1, identifier), true
}
