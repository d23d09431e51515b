// Package api turns what the daemon knows into answers over HTTP: JSON under
// /api/v1/, Prometheus metrics, health, and a stream of server-sent events.
//
// It reads only, but for POST /-/reload, which it hands on. It counts nothing, keeps no figure but the highest value of each
// metric that must not fall, and knows neither the store nor the sources: what it
// needs of them is the Reader, which the daemon implements. It does not draw: the
// page at / is whatever it is given.
package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options are what a Server needs besides its Reader. The zero value serves
// everybody, without TLS, on loopback only.
type Options struct {
	// Log gets one line for each request that was refused or failed, each other at the
	// level of debugging, and what went wrong.
	// Default: nothing is logged.
	Log *slog.Logger
	// Reload reads the configuration anew: all of it, or none if that is an error. Its
	// text is what the client is told; it holds no secret. ErrUnavailable among what
	// it wraps says that the same may work later. Default: there is no such route.
	Reload func(ctx context.Context) (*Reloaded, error)
	// Registry is where /metrics is gathered from; the daemon may register more
	// there. Default: a registry of the server's own.
	Registry *prometheus.Registry
	// Page is served at /. Default: nothing is.
	Page fs.FS
	// Tokens are the bearer tokens that are let in. None: everybody is.
	Tokens [][]byte
	// TLS is the certificate of the listener. Default: none.
	TLS *TLS
	// Insecure allows other addresses than loopback without TLS and Tokens.
	Insecure bool
	// Retention is how long rows of each resolution are kept. What is left out is
	// not checked.
	Retention map[time.Duration]time.Duration
	// Timeout bounds one request, above 0. Default 10 s.
	Timeout time.Duration
	// MaxStreams bounds the clients of the stream, above 0. Default 100.
	MaxStreams int
	// StaleAfter is the age of the snapshot from which the instance is not ready.
	// Default 15 s.
	StaleAfter time.Duration
}

// TLS names the files of a listener's certificate. With ClientCAFile, clients
// without a certificate of one of those authorities are refused.
type TLS struct{ CertFile, KeyFile, ClientCAFile string }

// Server answers requests. It is a http.Handler for tests and for other servers;
// Serve is what a daemon calls.
type Server struct {
	reader     Reader
	log        *slog.Logger
	registry   *prometheus.Registry
	metrics    *metrics
	page       fs.FS
	reload     func(ctx context.Context) (*Reloaded, error)
	access     atomic.Pointer[access]
	address    atomic.Pointer[net.Addr] // of the listener, while it serves
	timeout    time.Duration
	staleAfter time.Duration
	handler    http.Handler

	streams  chan struct{} // one for each client of the stream
	rendered rendered
	closing  chan struct{} // closed when the server shuts down
	close    sync.Once
}

// New returns a server. It is inert: it starts nothing and opens no listener. It
// fails if a certificate cannot be read or a token is empty.
func New(r Reader, o Options) (*Server, error) {
	if r == nil {
		return nil, errors.New("the API needs a reader")
	}
	s := &Server{
		reader: r, log: o.Log, registry: o.Registry, page: o.Page, reload: o.Reload,
		timeout: o.Timeout, staleAfter: o.StaleAfter, closing: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = s.log.With("component", "api")
	if s.registry == nil {
		s.registry = prometheus.NewRegistry()
	}
	if s.timeout <= 0 {
		s.timeout = 10 * time.Second
	}
	if s.staleAfter <= 0 {
		s.staleAfter = 15 * time.Second
	}
	if o.MaxStreams <= 0 {
		o.MaxStreams = 100
	}
	s.streams = make(chan struct{}, o.MaxStreams)
	x, err := newAccess(&o)
	if err != nil {
		return nil, err
	}
	s.access.Store(x)
	if s.metrics, err = newMetrics(s.registry); err != nil {
		return nil, err
	}
	if err := s.registry.Register(newCollector(r)); err != nil {
		return nil, fmt.Errorf("register the metrics of the daemon: %w", err)
	}
	s.handler = s.routes()
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }
