package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func reloads(done *Reloaded, err error) func(context.Context) (*Reloaded, error) {
	return func(context.Context) (*Reloaded, error) { return done, err }
}

// A reload takes a POST and a token, says what has changed or what is wrong, and is
// not for pages from elsewhere.
func TestReloadRoute(t *testing.T) {
	good := reloads(&Reloaded{Changed: []string{"budget.ratio"}}, nil)
	bad := reloads(nil, errors.New("auditor.yaml:3: budget.ratio: found 2, want 0 to 1"))
	away := reloads(nil, fmt.Errorf("what is final could not be stored: %w", ErrUnavailable))
	for _, c := range []struct {
		name, method string
		reload       func(context.Context) (*Reloaded, error)
		header       []string
		status       int
		says         string
	}{
		{"done", "POST", good, []string{"Authorization", "Bearer t"}, 200, `{"changed":["budget.ratio"],"recounts":false}`},
		{"refused", "POST", bad, []string{"Authorization", "Bearer t"}, 422, "auditor.yaml:3: budget.ratio: found 2, want 0 to 1"},
		{"put off", "POST", away, []string{"Authorization", "Bearer t"}, 503, "could not be stored"},
		{"without a token", "POST", good, nil, 401, "api.tokens"},
		{"by a page", "POST", good, []string{"Authorization", "Bearer t", "Sec-Fetch-Site", "cross-site"}, 403, "a page from elsewhere"},
		{"read", "GET", good, []string{"Authorization", "Bearer t"}, 405, "by POST"},
		{"not there", "POST", nil, []string{"Authorization", "Bearer t"}, 404, "openapi.json"},
	} {
		w := ask(newServer(t, newFake(), Options{Tokens: [][]byte{[]byte("t")}, Reload: c.reload}), c.method, "/-/reload", c.header...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s; want %d and %q", c.name, w.Code, w.Body, c.status, c.says)
		}
		if allow := w.Header().Get("Allow"); c.status == 405 && allow != "POST" {
			t.Errorf("%s: Allow is %q", c.name, allow)
		}
	}
}

// Tokens and certificates change while the server serves, whole or not at all.
func TestChange(t *testing.T) {
	a := newAuthority(t)
	a.issue("one", false)
	a.issue("two", false)
	with := func(cert string, tokens ...string) Options {
		o := Options{TLS: &TLS{CertFile: a.path(cert + ".pem"), KeyFile: a.path(cert + ".key")}}
		for _, token := range tokens {
			o.Tokens = append(o.Tokens, []byte(token))
		}
		return o
	}
	s := newServer(t, newFake(), with("one", "first"))
	ln := listen(t, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	get := func(token string) (status int, certificate string) {
		t.Helper()
		tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		defer tr.CloseIdleConnections()
		req, _ := http.NewRequest("GET", "https://"+ln.Addr().String()+"/api/v1/summary", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.ProtoMajor != 2 {
			t.Errorf("HTTP/%d", res.ProtoMajor)
		}
		return res.StatusCode, res.TLS.PeerCertificates[0].Subject.CommonName
	}
	try := func(token string, status int, certificate string) {
		t.Helper()
		if code, name := get(token); code != status || name != certificate {
			t.Errorf("with token %s: %d from %s, want %d from %s", token, code, name, status, certificate)
		}
	}
	try("first", 200, "one")
	apply, err := s.Change(with("two", "second"))
	if err != nil {
		t.Fatal(err)
	}
	try("second", 401, "one")
	apply()
	try("first", 401, "two")
	try("second", 200, "two")
	for _, o := range []Options{with("two", ""), with("none", "second"), {Tokens: [][]byte{[]byte("second")}}} {
		if _, err := s.Change(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	try("second", 200, "two")
	var anywhere net.Addr = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9464}
	s.address.Store(&anywhere)
	if _, err := s.Change(with("two")); err == nil || !strings.Contains(err.Error(), "without tokens") {
		t.Errorf("an address of the network is left without tokens: %v", err)
	}
	cancel()
	select {
	case <-served:
	case <-time.After(30 * time.Second):
		t.Error("the server does not end")
	}
}

func TestReloadMetrics(t *testing.T) {
	f := newFake()
	s := newServer(t, f, Options{})
	snap := stormSnapshot()
	snap.Reload.Failed = true
	snap.Sources[0].State, snap.Sources[0].Restarts = "failed", 3
	f.set(snap)
	got := series(t, scrapeText(t, s))
	for name, want := range map[string]float64{
		"auditor_config_last_reload_successful":                0,
		"auditor_config_last_reload_success_timestamp_seconds": float64(noon.Add(-time.Hour).Unix()),
		`auditor_source_up{source="access-logs"}`:              0,
		`auditor_source_restarts_total{source="access-logs"}`:  3,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v %v, want %v", name, v, ok, want)
		}
	}
}
