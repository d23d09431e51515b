package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

// Timeouts against clients that are slow by will or by accident. A request has no
// body, so reading one takes no longer than its header.
const (
	readTimeout  = 10 * time.Second
	writeSlack   = 20 * time.Second // beyond Options.Timeout, for the answer to reach the client
	idleTimeout  = 2 * time.Minute
	maxHeader    = 16 << 10
	shutdownTime = 5 * time.Second
)

// Serve answers on a listener until ctx is done; it owns the listener. Requests
// under way then get 5 s to end, streams are ended at once. It returns nil after
// an orderly end. It is called once.
//
// A listener on another address than loopback is refused unless there are TLS and
// tokens, or Options.Insecure.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	address := ln.Addr()
	if err := s.access.Load().mayListen(address); err != nil {
		ln.Close()
		return err
	}
	s.address.Store(&address)
	config := s.serverTLS()
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler: s, TLSConfig: config, BaseContext: func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: s.timeout + writeSlack,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() {
		if config != nil {
			served <- srv.ServeTLS(ln, "", "")
			return
		}
		served <- srv.Serve(ln)
	}()
	select {
	case err := <-served:
		s.endStreams()
		srv.Close()
		return fmt.Errorf("serve the API: %w", err)
	case <-ctx.Done():
	}
	s.endStreams()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer stop()
	err := srv.Shutdown(end)
	if err != nil {
		cancel()
		srv.Close()
		err = fmt.Errorf("shut down the API: %w", err)
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve the API: %w", e))
	}
	return err
}

func (s *Server) endStreams() { s.close.Do(func() { close(s.closing) }) }

// mayListen says what is wrong with serving at an address.
func (x *access) mayListen(a net.Addr) error {
	if x.insecure || x.tls != nil && len(x.tokens) > 0 {
		return nil
	}
	switch a := a.(type) {
	case *net.UnixAddr:
		return nil
	case *net.TCPAddr:
		if a.IP.IsLoopback() {
			return nil
		}
	}
	var lacks string
	switch {
	case x.tls == nil && len(x.tokens) == 0:
		lacks = "without TLS and tokens"
	case x.tls == nil:
		lacks = "without TLS"
	default:
		lacks = "without tokens"
	}
	return fmt.Errorf("the API would be open to the network at %s %s, and its figures name callers and routes: "+
		"set api.tls and api.tokens, or listen on a loopback address such as 127.0.0.1:9464, or set api.insecure: true", a, lacks)
}

// config reads the certificates.
func (t *TLS) config() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read api.tls: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if t.ClientCAFile != "" {
		pem, err := os.ReadFile(t.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("read api.tls.client_ca_file: %w", err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read api.tls.client_ca_file: %s holds no certificate", t.ClientCAFile)
		}
	}
	return c, nil
}
