package alerts

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestAllowance(t *testing.T) {
	now := time.Now()
	a := newAllowance(now)
	take := func() (n int) {
		for n < 100 && a.take(now) == 0 {
			n++
		}
		return n
	}
	if n := take(); n != 10 {
		t.Errorf("%d at once", n)
	}
	if wait := a.take(now); wait.Round(time.Second) != time.Minute {
		t.Errorf("then a wait of %v", wait)
	}
	for range 10 {
		a.delivered()
	}
	if n := take(); n != 2 {
		t.Errorf("%d after ten deliveries", n)
	}
	now = now.Add(3*time.Minute + time.Second)
	if n := take(); n != 3 {
		t.Errorf("%d after three minutes", n)
	}
	now = now.Add(24 * time.Hour)
	if n := take(); n != 10 {
		t.Errorf("%d after a day", n)
	}
}

// A peer that repeats what it was asked makes nobody else do so: of what goes wrong only
// its cause is told.
func TestCausesAreOurs(t *testing.T) {
	echo := func(answer string) string { // {} is the request's path
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err == nil {
					io.Copy(io.Discard, r.Body)
					io.WriteString(c, strings.ReplaceAll(answer, "{}", r.URL.Path))
				}
				c.Close()
			}
		}()
		return "http://" + l.Addr().String()
	}
	dead := httptest.NewServer(nil)
	dead.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	strange := httptest.NewUnstartedServer(nil)
	strange.Config.ErrorLog = log.New(io.Discard, "", 0)
	strange.StartTLS()
	defer strange.Close()
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	client := NewNotifier(slog.New(slog.DiscardHandler)).client
	for _, c := range []struct {
		at   string
		want error
	}{
		{echo("HTTP/1.1 {} no\r\n\r\n"), errBroken},
		{echo("{} 200 OK\r\n\r\n"), errBroken},
		{echo("HTTP/1.1 200 OK\r\n{}\r\n\r\n"), errBroken},
		{echo("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n"), errBroken},
		{echo("HTTP/1.1 200 OK\r\nTransfer-Encoding: {}\r\n\r\n"), errBroken},
		{echo(""), errReset},
		{dead.URL, errRefused},
		{strange.URL, errUntrusted},
		{strings.Replace(plain.URL, "http", "https", 1), errPlain},
	} {
		err := post(t.Context(), client, c.at+"/hunter2", nil, []byte("{}"))
		if err != c.want {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := post(ctx, client, hangs.URL, nil, nil); err != errTimeout {
		t.Error(err)
	}
	if err := post(t.Context(), client, echo("HTTP/1.1 404 {}\r\nContent-Length: 0\r\n\r\n")+"/hunter2", nil, nil); err == nil || err.Error() != "it answers 404 Not Found" {
		t.Error(err)
	}
	for err, want := range map[error]error{
		&net.DNSError{Err: "hunter2", IsNotFound: true}:                                    errNoHost,
		&net.DNSError{Err: "hunter2", IsTimeout: true}:                                     errTimeout,
		&net.DNSError{Err: "hunter2"}:                                                      errLookup,
		&net.OpError{Op: "remote error", Err: errors.New("tls: hunter2")}:                  errTLS,
		&net.OpError{Op: "dial", Err: errors.New("hunter2")}:                               errConnect,
		&url.Error{Op: "Post", URL: "hunter2", Err: &net.OpError{Op: "read", Err: io.EOF}}: errReset,
		errors.New("hunter2"):                                                              errBroken,
	} {
		if got := failed(err); got != want {
			t.Errorf("%v: %v", want, got)
		}
	}
}
