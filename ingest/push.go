package ingest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// PushConfig says where lines are pushed to.
type PushConfig struct {
	// Source is the index of the source in the configuration, given on in Partition.
	Source int
	// Name is the partition's. Default "http " and Listen.
	Name string
	// Listen is host:port.
	Listen string
	// Listener, unless nil, is used in place of one at Listen. Run closes it.
	Listener net.Listener
	// TLS is the listener's; nil is none.
	TLS *tls.Config
	// Tokens are the bearer tokens that are let in, none of them empty. None:
	// everybody is.
	Tokens [][]byte
	// Spool keeps the lines until they are counted.
	Spool SpoolConfig
	// OTLP takes requests of OTLP/HTTP, too, at /v1/traces and /v1/logs. The lines are
	// then of the formats otlp-json and otlp-proto, each of which reads both.
	OTLP bool
	// MaxBody is the largest body as it is sent. Default 16 MiB.
	MaxBody int64
	// MaxUnpacked is the largest body when it is decompressed. Default 64 MiB, at
	// most half of the spool.
	MaxUnpacked int64
	// MaxLine is the longest line, with its newline. Default 1 MiB, at most 4 MiB.
	MaxLine int
	// Logger is told what happens, never what is in the lines. Default: nobody.
	Logger *slog.Logger
	// CloseTimeout is how long pushes that are under way may take to end, and then
	// the session to close. Default 10 s.
	CloseTimeout time.Duration
}

// Push takes lines by HTTP and keeps them in a spool until they are counted.
//
// It answers POST /ingest. A 2xx says that every line of the body is durable;
// anything else that none was promised, with a problem document that names what
// to do. A push that was not answered may have been kept: sent again, its lines
// are there twice. With PushConfig.OTLP it answers POST /v1/traces and /v1/logs as
// OTLP/HTTP wants it, under the same promise.
type Push struct {
	*spooled
	cfg     PushConfig
	bodies  bodyReader
	tokens  tokens
	closing atomic.Bool
	mux     *http.ServeMux
}

// maxMemory bounds the bodies that are held at a time, and maxWait is how long a
// shipper is asked to wait when the spool is full: it is looked for room each second.
const (
	maxMemory = 256 << 20
	maxWait   = 5 * time.Second
)

// NewPush opens the spool. Whoever does not call Run calls Close.
func NewPush(cfg PushConfig) (*Push, error) {
	if cfg.Listen == "" && cfg.Listener == nil {
		return nil, errors.New("push: no address to listen at")
	}
	if cfg.Name == "" {
		cfg.Name = "http " + cfg.Listen
	}
	if cfg.Spool.Logger == nil {
		cfg.Spool.Logger = cfg.Logger
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = 16 << 20
	}
	if cfg.MaxUnpacked <= 0 {
		cfg.MaxUnpacked = 64 << 20
	}
	if cfg.MaxLine <= 0 {
		cfg.MaxLine = 1 << 20
	}
	cfg.MaxLine = min(cfg.MaxLine, maxEntry)
	spool, err := OpenSpool(cfg.Spool)
	if err != nil {
		return nil, err
	}
	return newPush(cfg, spool), nil
}

func newPush(cfg PushConfig, spool *Spool) *Push {
	p := &Push{
		spooled: newSpooled(Partition{Source: cfg.Source, Name: cfg.Name}, spool, cfg.Logger, cfg.CloseTimeout),
		cfg:     cfg, mux: http.NewServeMux(), tokens: hashTokens(cfg.Tokens),
		bodies: bodyReader{
			maxBody: cfg.MaxBody, maxUnpacked: min(cfg.MaxUnpacked, spool.cfg.Max/2),
			maxLine: cfg.MaxLine, maxMemory: maxMemory,
		},
	}
	p.mux.HandleFunc("/ingest", p.ingest)
	p.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		problemf(http.StatusNotFound, "there is nothing here; POST lines to /ingest, and OTLP to /v1/traces or /v1/logs of a source whose format is otlp-proto").write(w)
	})
	if cfg.OTLP {
		p.mux.HandleFunc("/v1/traces", func(w http.ResponseWriter, r *http.Request) { p.otlp(w, r, otlpTraces) })
		p.mux.HandleFunc("/v1/logs", func(w http.ResponseWriter, r *http.Request) { p.otlp(w, r, otlpLogs) })
	}
	return p
}

// Run listens and hands what was pushed to h until ctx is done, and then lets
// pushes that are under way end, closes the session and the spool.
func (p *Push) Run(ctx context.Context, h Handler) error {
	return p.run(ctx, h, func(ctx context.Context) (err error) {
		l := p.cfg.Listener
		if l == nil {
			if l, err = net.Listen("tcp", p.cfg.Listen); err != nil {
				return fmt.Errorf("push: %w", err)
			}
		}
		if p.cfg.TLS != nil {
			l = tls.NewListener(l, p.cfg.TLS)
		}
		server := &http.Server{
			Handler:           p,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       time.Minute,
			WriteTimeout:      2 * time.Minute,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    32 << 10,
			ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
		}
		err = serveUntil(ctx, server, l, p.closeIn, func() { p.closing.Store(true) })
		if err != nil {
			return fmt.Errorf("push: %w", err)
		}
		return nil
	})
}

// serveUntil serves what comes to l until ctx is done, calls closing, and lets what is
// under way end within that time. A server that cannot serve any more is an error.
func serveUntil(ctx context.Context, server *http.Server, l net.Listener, within time.Duration, closing func()) error {
	served := make(chan error, 1)
	go func() {
		if server.TLSConfig != nil {
			served <- server.ServeTLS(l, "", "")
			return
		}
		served <- server.Serve(l) // with TLS, if the listener has it
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	closing()
	shut, done := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer done()
	if server.Shutdown(shut) != nil {
		server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP lets whoever has a token in, and answers.
func (p *Push) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.connections.Add(1)
	defer p.connections.Add(-1)
	if refusal := p.tokens.refuse(r); refusal != nil {
		if p.cfg.OTLP && isOTLP(r) {
			refuseOTLP(w, r, refusal)
			return
		}
		refusal.write(w)
		return
	}
	p.mux.ServeHTTP(w, r)
}

func (p *Push) ingest(w http.ResponseWriter, r *http.Request) {
	lines, bytes, err := p.take(r)
	if err == nil {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(struct { // who is gone is not told
			Lines int64 `json:"lines"`
			Bytes int64 `json:"bytes"`
		}{lines, bytes})
		return
	}
	p.answer(w, err).write(w)
}

// answer is the problem that an error is.
func (p *Push) answer(w http.ResponseWriter, err error) *problem {
	answer, ok := err.(*problem)
	if !ok {
		answer = p.refusal(err)
	}
	if answer.after > 0 {
		p.refused.Add(1)
	}
	if answer.status == http.StatusServiceUnavailable || answer.status == http.StatusRequestEntityTooLarge {
		w.Header().Set("Connection", "close")
	}
	return answer
}

// postOnly refuses all but POST, and everything once the daemon stops.
func (p *Push) postOnly(r *http.Request) error {
	if r.Method != http.MethodPost {
		wrong := problemf(http.StatusMethodNotAllowed, "records are sent with POST")
		wrong.header = http.Header{"Allow": {http.MethodPost}}
		return wrong
	}
	if p.closing.Load() {
		return errSpoolClosed
	}
	return nil
}

// take makes the lines of a request durable and says how many lines and bytes
// they are.
func (p *Push) take(r *http.Request) (n, size int64, err error) {
	if err := p.postOnly(r); err != nil {
		return 0, 0, err
	}
	lines, n, release, err := p.bodies.read(r)
	if err != nil {
		return 0, 0, err
	}
	defer release()
	if err := p.append(r, lines); err != nil {
		return 0, 0, err
	}
	return n, int64(len(lines)), nil
}

// append makes the lines of a push durable.
func (p *Push) append(r *http.Request, lines []byte) error {
	err := p.spool.Append(r.Context(), lines)
	if err == nil {
		p.kept.Add(1)
	}
	return err
}

// refusal is the answer to an error of the spool.
func (p *Push) refusal(err error) *problem {
	switch {
	case errors.Is(err, errSpoolFull):
		return problemf(http.StatusTooManyRequests, "the spool is full; keep the lines and send them again later. /api/v1/sources says what makes room").retryAfter(maxWait)
	case errors.Is(err, errSpoolClosed):
		return problemf(http.StatusServiceUnavailable, "the daemon is shutting down; send this again when it is back").retryAfter(maxWait)
	case errors.Is(err, errTooLarge):
		return problemf(http.StatusRequestEntityTooLarge, "the lines are larger than the spool; send fewer at a time, or raise spool_max")
	case errors.Is(err, errLineTooLong):
		return problemf(http.StatusRequestEntityTooLarge, "a line is longer than %d bytes; send one record a line", maxEntry)
	case isFull(err):
		return problemf(http.StatusInsufficientStorage, "the disk of the spool is full, and nothing was kept; make room there, and send this again").retryAfter(maxWait)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problemf(http.StatusServiceUnavailable, "the push was given up before it was kept").retryAfter(time.Second)
	}
	return problemf(http.StatusServiceUnavailable, "the spool cannot be written to, and nothing was kept; see the daemon's log, and send this again").retryAfter(maxWait)
}
