package api

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", true)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.pem and name.key.
func (a *authority) issue(name string, ca bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IsCA: ca, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(a.path(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return cert, key
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func TestTokens(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, newFake(), Options{Tokens: [][]byte{[]byte("first-token"), []byte("second token")}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, c := range []struct {
		header string
		ok     bool
	}{
		{"Bearer first-token", true}, {"bearer first-token", true}, {"Bearer second token", true}, {"Bearer  first-token ", true},
		{"", false}, {"Bearer", false}, {"Bearer ", false}, {"Bearer first-toke", false}, {"Bearer first-token2", false},
		{"Basic first-token", false}, {"first-token", false}, {"Bearer first-token,second token", false},
	} {
		for _, path := range allRoutes {
			if path == "/api/v1/stream" {
				path += "?nosuch" // 400 once it is let in
			}
			w := ask(s, "GET", path, "Authorization", c.header)
			open := path == "/healthz" || path == "/readyz" || path == "/openapi.json"
			if refused := w.Code == 401; refused == (c.ok || open) {
				t.Errorf("%q on %s: %d", c.header, path, w.Code)
			}
			if w.Code == 401 {
				isProblem(t, w.Header(), w.Body.Bytes(), 401)
				if !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("%s: no challenge", path)
				}
			}
		}
	}
	// Two headers: a proxy and we may each read another one.
	r, _ := http.NewRequest("GET", "/api/v1/summary", nil)
	r.Header["Authorization"] = []string{"Bearer wrong", "Bearer first-token"}
	if w := serve(s, r); w.Code != 401 {
		t.Errorf("two headers: %d", w.Code)
	}
	if strings.Contains(log.String(), "token") {
		t.Errorf("a token is logged: %s", log.String())
	}
	if _, err := New(newFake(), Options{Tokens: [][]byte{[]byte("x"), {}}}); err == nil || !strings.Contains(err.Error(), "api.tokens[1]") {
		t.Errorf("an empty token: %v", err)
	}
}

// Every combination of TLS, client certificates and tokens over a real socket.
func TestTLSMatrix(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	a.issue("server", false)
	a.issue("client", false)
	stranger.issue("client", false)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	load := func(x *authority) []tls.Certificate {
		c, err := tls.LoadX509KeyPair(x.path("client.pem"), x.path("client.key"))
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{c}
	}
	for _, mutual := range []bool{false, true} {
		for _, tokens := range [][][]byte{nil, {[]byte("right")}} {
			o := Options{Tokens: tokens, TLS: &TLS{CertFile: a.path("server.pem"), KeyFile: a.path("server.key")}}
			if mutual {
				o.TLS.ClientCAFile = a.path("ca.pem")
			}
			ln := listen(t, "127.0.0.1:0")
			stop := serving(t, newServer(t, newFake(), o), ln)
			for name, certs := range map[string][]tls.Certificate{"none": nil, "ours": load(a), "stranger": load(stranger)} {
				for _, token := range []string{"", "right", "wrong"} {
					transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certs}, ForceAttemptHTTP2: true}
					r, _ := http.NewRequest("GET", "https://"+ln.Addr().String()+"/api/v1/summary", nil)
					if token != "" {
						r.Header.Set("Authorization", "Bearer "+token)
					}
					response, err := transport.RoundTrip(r)
					admitted := !mutual || name == "ours"
					if admitted != (err == nil) {
						t.Errorf("mutual %v, certificate %s: %v", mutual, name, err)
					}
					if err == nil {
						want := 200
						if tokens != nil && token != "right" {
							want = 401
						}
						if response.StatusCode != want || response.ProtoMajor != 2 {
							t.Errorf("tokens %q, token %q: %s %s", tokens, token, response.Proto, response.Status)
						}
						io.Copy(io.Discard, response.Body)
						response.Body.Close()
					}
					transport.CloseIdleConnections()
				}
			}
			if c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
				c.Close()
				t.Error("TLS 1.1 is accepted")
			}
			stop()
		}
	}
	for want, files := range map[string]TLS{
		"api.tls":                {CertFile: a.path("nosuch.pem"), KeyFile: a.path("server.key")},
		"api.tls.client_ca_file": {CertFile: a.path("server.pem"), KeyFile: a.path("server.key"), ClientCAFile: a.path("nosuch.pem")},
		"holds no certificate":   {CertFile: a.path("server.pem"), KeyFile: a.path("server.key"), ClientCAFile: a.path("server.key")},
	} {
		if _, err := New(newFake(), Options{TLS: &files}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", files, err)
		}
	}
}

func TestOtherAddressesThanLoopback(t *testing.T) {
	a := newAuthority(t)
	a.issue("server", false)
	files := &TLS{CertFile: a.path("server.pem"), KeyFile: a.path("server.key")}
	tokens := [][]byte{[]byte("x")}
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 9464} }
	for _, c := range []struct {
		o    Options
		addr net.Addr
		want string // part of the error; empty: allowed
	}{
		{Options{}, tcp("127.0.0.1"), ""}, {Options{}, tcp("127.3.2.1"), ""}, {Options{}, tcp("::1"), ""}, {Options{}, &net.UnixAddr{Name: "s"}, ""},
		{Options{}, tcp("0.0.0.0"), "without TLS and tokens"}, {Options{}, tcp("::"), "without TLS and tokens"},
		{Options{}, tcp("10.0.0.1"), "without TLS and tokens"}, {Options{}, &net.TCPAddr{Port: 9464}, "without TLS and tokens"},
		{Options{Tokens: tokens}, tcp("10.0.0.1"), "without TLS, and"}, {Options{TLS: files}, tcp("10.0.0.1"), "without tokens, and"},
		{Options{TLS: files, Tokens: tokens}, tcp("10.0.0.1"), ""}, {Options{Insecure: true}, tcp("0.0.0.0"), ""},
	} {
		err := newServer(t, newFake(), c.o).access.Load().mayListen(c.addr)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "api.insecure: true")) {
			t.Errorf("%v: %v, want %q", c.addr, err, c.want)
		}
	}
	// Through the front door, and the listener is not left open.
	ln := listen(t, "0.0.0.0:0")
	if err := newServer(t, newFake(), Options{}).Serve(context.Background(), ln); err == nil || !strings.Contains(err.Error(), "api.tls") {
		t.Errorf("served at 0.0.0.0: %v", err)
	}
	if _, err := ln.Accept(); err == nil {
		t.Error("the listener is open")
	}
}

// waiting is a Reader that answers when it is let, or when its time is over.
type waiting struct {
	*fake
	entered, leave chan struct{}
}

func (w *waiting) Range(ctx context.Context, _ RangeQuery) (*Range, error) {
	w.entered <- struct{}{}
	select {
	case <-w.leave:
		return w.answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestShutdownWaitsForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &waiting{newFake(), make(chan struct{}), make(chan struct{})}
		ln := newPipes()
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- newServer(t, r, Options{}).Serve(ctx, ln) }()
		c := ln.dial()
		defer c.Close()
		request(t, c, "/api/v1/series")
		<-r.entered
		cancel()
		synctest.Wait()
		select {
		case err := <-served:
			t.Fatalf("did not wait: %v", err)
		default:
		}
		close(r.leave)
		answer := make([]byte, 12)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 200" {
			t.Errorf("%q %v", answer, err)
		}
		go io.Copy(io.Discard, c)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// A request that does not end is cut off, and Serve ends all the same.
func TestShutdownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &waiting{newFake(), make(chan struct{}), make(chan struct{})}
		ln := newPipes()
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- newServer(t, r, Options{Timeout: time.Hour}).Serve(ctx, ln) }()
		c := ln.dial()
		request(t, c, "/api/v1/series")
		<-r.entered
		go io.Copy(io.Discard, c)
		begin := time.Now()
		cancel()
		if err := <-served; err == nil || time.Since(begin) != shutdownTime {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		c.Close()
	})
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &waiting{newFake(), make(chan struct{}, 9), make(chan struct{})}
		ln := newPipes()
		stop := serving(t, newServer(t, r, Options{Timeout: 3 * time.Second}), ln)
		// A store that does not answer.
		begin := time.Now()
		c := ln.dial()
		request(t, c, "/api/v1/series")
		answer := make([]byte, 12)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 504" || time.Since(begin) != 3*time.Second {
			t.Errorf("%q %v after %v", answer, err, time.Since(begin))
		}
		c.Close()
		// A client that sends a header and no more.
		begin = time.Now()
		c = ln.dial()
		c.Write([]byte("GET / HTTP/1.1\r\nHost"))
		if _, err := io.Copy(io.Discard, c); err != nil || time.Since(begin) > readTimeout+time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		c.Close()
		// A client that does not take its answer.
		c = ln.dial()
		request(t, c, "/api/v1/summary")
		synctest.Wait()
		time.Sleep(3*time.Second + writeSlack + time.Second) // of the bubble's clock
		c.SetReadDeadline(time.Now().Add(time.Second))
		if got, err := io.ReadAll(c); err != nil || bytes.HasSuffix(got, []byte("}\n")) {
			t.Errorf("a slow client got %d bytes, %v", len(got), err)
		}
		c.Close()
		stop()
	})
}
