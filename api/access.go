package api

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"time"
)

// access is what may change while a server serves: who is let in, by which
// certificate, and how far back there are rows.
type access struct {
	tokens    [][sha256.Size]byte
	tls       *tls.Config // nil: none
	insecure  bool
	retention map[time.Duration]time.Duration
}

func newAccess(o *Options) (*access, error) {
	x := &access{insecure: o.Insecure, retention: o.Retention}
	for i, token := range o.Tokens {
		if len(token) == 0 {
			return nil, fmt.Errorf("api.tokens[%d] is empty: it would let everybody in", i)
		}
		x.tokens = append(x.tokens, sha256.Sum256(token))
	}
	if o.TLS != nil {
		var err error
		if x.tls, err = o.TLS.config(); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Change prepares other Tokens, TLS, Insecure and Retention; the rest of o is as it
// was. It fails if a server could not be made of them, or not at its address; whether
// there is TLS at all cannot change. Nothing has changed until apply is called.
func (s *Server) Change(o Options) (apply func(), err error) {
	x, err := newAccess(&o)
	if err != nil {
		return nil, err
	}
	if (x.tls == nil) != (s.access.Load().tls == nil) {
		return nil, errors.New("api.tls comes or goes: that takes a restart")
	}
	if at := s.address.Load(); at != nil {
		if err := x.mayListen(*at); err != nil {
			return nil, err
		}
	}
	return func() { s.access.Store(x) }, nil
}

// serverTLS is the certificate of each new connection.
func (s *Server) serverTLS() *tls.Config {
	now := s.access.Load().tls
	if now == nil {
		return nil
	}
	c := now.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := s.access.Load().tls.Clone()
		c.NextProtos = []string{"h2", "http/1.1"}
		return c, nil
	}
	return c
}
