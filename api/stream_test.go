package api

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections in memory: nothing waits on a kernel, so a
// bubble's clock can stand for the clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// request sends one without reading the answer.
func request(t *testing.T, c net.Conn, target string) {
	t.Helper()
	if _, err := c.Write([]byte("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
}

func serving(t *testing.T, s *Server, ln net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	return func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
}

// A bubble fails if a goroutine is left behind when its function returns.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ln := newFake(), newPipes()
		s := newServer(t, f, Options{})
		stop := serving(t, s, ln)
		c := ln.dial()
		request(t, c, "/api/v1/stream?dependency=inventory")
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v %v", err, response)
		}
		body := bufio.NewReader(response.Body)
		next := func() string { // one event or comment
			var lines []string
			for {
				line, err := body.ReadString('\n')
				if err != nil {
					return "end"
				}
				if line = strings.TrimSuffix(line, "\n"); line == "" {
					return strings.Join(lines, "\n")
				}
				lines = append(lines, line)
			}
		}
		if got := next(); got != "retry: 2000" {
			t.Fatalf("began with %q", got)
		}
		summary := ask(s, "GET", "/api/v1/summary").Body.String()
		if got := next(); !strings.HasPrefix(got, "event: summary\nid: ") || !strings.HasSuffix(got, "data: "+strings.TrimSpace(summary)) {
			t.Fatalf("event %q", got)
		}
		begin := time.Now()
		if got := next(); got != ": heartbeat" || time.Since(begin) != heartbeatEvery {
			t.Fatalf("%q after %v", got, time.Since(begin))
		}
		for range 100 { // far beyond every timeout of a request
			snap := *f.Snapshot()
			snap.At = snap.At.Add(time.Second)
			f.set(&snap)
			if got := next(); !strings.Contains(got, snap.At.Format(time.RFC3339)) {
				t.Fatalf("after %v: %q", time.Since(begin), got)
			}
		}
		if took := time.Since(begin) - heartbeatEvery; took < 99*time.Second || took > 101*time.Second {
			t.Errorf("100 events in %v", took)
		}
		begin = time.Now()
		ended := make(chan struct{})
		go func() { stop(); close(ended) }()
		if got := next(); got != "end" {
			t.Errorf("after the end: %q", got)
		}
		c.Close()
		if <-ended; time.Since(begin) > time.Second {
			t.Errorf("ended after %v", time.Since(begin))
		}
	})
}

// A client that takes nothing and one that goes away are dropped, and their places
// are free again.
func TestStreamDropsSlowAndVanished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ln := newFake(), newPipes()
		s := newServer(t, f, Options{MaxStreams: 2})
		stop := serving(t, s, ln)
		slow, vanishing := ln.dial(), ln.dial()
		request(t, slow, "/api/v1/stream")
		request(t, vanishing, "/api/v1/stream")
		synctest.Wait()
		if n := len(s.streams); n != 2 {
			t.Fatalf("%d streams", n)
		}
		if w := ask(s, "GET", "/api/v1/stream"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("a third: %d", w.Code)
		} else {
			isProblem(t, w.Header(), w.Body.Bytes(), 503)
		}
		vanishing.Close()
		synctest.Wait()
		if n := len(s.streams); n != 1 {
			t.Errorf("%d streams after one went away", n)
		}
		time.Sleep(streamWrite + time.Second) // of the bubble's clock
		synctest.Wait()
		if n := len(s.streams); n != 0 {
			t.Errorf("%d streams after one took nothing for %v", n, streamWrite)
		}
		slow.Close()
		stop()
		if w := ask(s, "GET", "/api/v1/stream"); w.Code != 503 {
			t.Errorf("after the end: %d", w.Code)
		}
	})
}

// Many clients at once, as the snapshot changes; run with the race detector.
func TestStreamsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ln := newFake(), newPipes()
		s := newServer(t, f, Options{MaxStreams: 50})
		stop := serving(t, s, ln)
		var readers sync.WaitGroup
		var mu sync.Mutex
		events := 0
		for i := range 50 {
			c := ln.dial()
			request(t, c, "/api/v1/stream?dependency="+[]string{"", "inventory"}[i%2])
			readers.Go(func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if lines.Text() == "event: summary" {
						mu.Lock()
						events++
						mu.Unlock()
						if i%10 == 0 {
							return // vanishes
						}
					}
				}
			})
		}
		time.Sleep(streamEvery / 2) // of the bubble's clock: between two ticks
		for range 20 {
			snap := *f.Snapshot()
			snap.At = snap.At.Add(time.Second)
			f.set(&snap)
			time.Sleep(streamEvery)
		}
		stop()
		readers.Wait()
		if events != 45*21+5 {
			t.Errorf("%d events for 45 clients in 20 s and 5 of one", events)
		}
	})
}
