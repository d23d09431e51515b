package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// caddyLive is a real Caddy with the shipped configuration before an application
// that answers by the request's path, and callers that write down what they do.
type caddyLive struct {
	t       *testing.T
	address string        // of Caddy
	arrived chan struct{} // a request reached the application
	sent    int           // requests
}

// serve is the application.
func (c *caddyLive) serve(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	piece := []byte(strings.Repeat("x", 1000))
	switch kind {
	case "waits":
		c.arrived <- struct{}{}
		<-r.Context().Done() // the caller has left
		return
	case "announced":
		w.Header().Set("Content-Length", "1000000")
		piece = bytes.Repeat(piece, 100) // more than Caddy's buffers
	case "refuses":
		if r.Header.Get("X-Envoy-Attempt-Count") != "3" {
			w.Header().Set("Retry-After", "7")
			http.Error(w, "too busy", http.StatusServiceUnavailable)
			return
		}
		fallthrough
	case "answers":
		w.Write([]byte(`{"ok":true}`))
		return
	}
	w.Write(piece) // announced, streams, dies
	w.(http.Flusher).Flush()
	if kind == "dies" {
		panic(http.ErrAbortHandler)
	}
	c.arrived <- struct{}{}
	<-r.Context().Done()
}

// open sends a request with a key and an attempt's number.
func (c *caddyLive) open(path, key string, attempt int) net.Conn {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	c.sent++
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: seats\r\nConnection: close\r\nUser-Agent: caller/1\r\n"+
		"Idempotency-Key: %s\r\nX-Envoy-Attempt-Count: %d\r\nGrpc-Timeout: 1S\r\n\r\n", path, key, attempt); err != nil {
		c.t.Fatal(err)
	}
	return conn
}

// ask waits for the whole answer and gives its status.
func (c *caddyLive) ask(path, key string, attempt int) int {
	c.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c.open(path, key, attempt)), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body) // may be cut off
	return resp.StatusCode
}

// reached waits until the application has the request.
func (c *caddyLive) reached() {
	c.t.Helper()
	select {
	case <-c.arrived:
	case <-time.After(10 * time.Second):
		c.t.Fatal("a request did not reach the application")
	}
}

// leave goes once the application has the request, and after the first bytes of the
// answer if there are any to be had.
func (c *caddyLive) leave(path, key string, reading, reset bool) {
	c.t.Helper()
	conn := c.open(path, key, 1)
	c.reached()
	if reading {
		if _, err := io.ReadFull(conn, make([]byte, 500)); err != nil {
			c.t.Fatal(err)
		}
	}
	if reset {
		conn.(*net.TCPConn).SetLinger(0)
	}
	conn.Close()
}

// TestCaddyLive audits what a real Caddy logs by the shipped configuration while
// callers behave, retry and leave, and compares with what they did. AUDITOR_CADDY is
// the program; make test-recorded fetches one.
func TestCaddyLive(t *testing.T) {
	caddy := os.Getenv("AUDITOR_CADDY")
	if caddy == "" {
		t.Skip("AUDITOR_CADDY names no Caddy to run: see make test-recorded")
	}
	c := &caddyLive{t: t, arrived: make(chan struct{}, 1)}
	app := httptest.NewServer(http.HandlerFunc(c.serve))
	defer app.Close()
	port := strconv.Itoa(freePort(t))
	c.address = net.JoinHostPort("127.0.0.1", port)
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	shipped, err := filepath.Abs(filepath.Join("..", "..", "examples", "formats", "caddy.Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	own := writeIn(t, filepath.Join(dir, "Caddyfile"), "{\n\tadmin off\n\tdefault_bind 127.0.0.1\n}\nimport "+shipped+"\n")
	server := exec.Command(caddy, "run", "--adapter", "caddyfile", "--config", own)
	server.Env = append(os.Environ(), "LISTEN=:"+port, "ACCESS_LOG="+log, "UPSTREAM="+strings.TrimPrefix(app.URL, "http://"),
		"HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var said bytes.Buffer
	server.Stderr = &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Wait() }()
	stop := sync.OnceFunc(func() {
		server.Process.Signal(syscall.SIGTERM)
		select {
		case <-stopped:
		case <-time.After(10 * time.Second):
			server.Process.Kill()
			<-stopped
		}
	})
	defer stop()
	until(t, "Caddy listens", func() bool {
		conn, err := net.Dial("tcp", c.address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})

	const each = 5
	for i := range each {
		key := func(kind string) string { return fmt.Sprintf("%s-%d", kind, i) }
		if status := c.ask("/answers/a", key("plain"), 1); status != 200 {
			t.Fatalf("status %d: %s", status, &said)
		}
		for attempt := 1; attempt <= 3; attempt++ { // two are refused
			c.ask("/refuses/a", key("retried"), attempt)
		}
		c.ask("/answers/b", key("rekeyed"), 1) // who makes a fresh key for each try
		c.ask("/answers/b", key("again"), 2)
		c.leave("/waits/a", key("fin"), false, false)
		c.leave("/waits/b", key("rst"), false, true)
		c.leave("/announced/a", key("cut"), true, true)
		c.leave("/streams/a", key("stream"), true, true)
		c.ask("/dies/a", key("died"), 1)
	}
	half := c.open("/waits/c", "half-closed", 1) // still listens
	c.reached()
	half.(*net.TCPConn).CloseWrite()
	if resp, err := http.ReadResponse(bufio.NewReader(half), nil); err != nil || resp.StatusCode != 499 {
		t.Fatalf("who closes the sending side alone gets %v, %v", resp, err)
	}
	until(t, "all is logged", func() bool {
		data, _ := os.ReadFile(log)
		return bytes.Count(data, []byte("\n")) >= c.sent
	})
	stop()

	config := writeIn(t, filepath.Join(dir, "auditor.yaml"), "dependency: seats\nkeys: {accept: [idempotency-key]}\nsources: [{file: {paths: ["+log+"]}, format: caddy-json}]\n")
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs, getenv: os.LookupEnv, now: time.Now}
	if code, err := replay(t.Context(), p, []string{"--config", config, "--output", "json", log}); code != exitOK || err != nil {
		t.Fatalf("exit status %d: %v\n%s", code, err, &errs)
	}
	var report map[string]any
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	equal := func(want int, path ...any) {
		t.Helper()
		if got := dig(report, append([]any{"total"}, path...)...); got != float64(want) {
			t.Errorf("%v: the audit says %v, the callers %d", path, got, want)
		}
	}
	equal(c.sent, "arrivals")
	equal(c.sent, "attributable")
	equal(9*each+1, "questions")
	equal(2*each, "repeats")
	equal(each, "orphan_attempts") // the second tries of who makes fresh keys
	equal(2*each, "retry_after", "asked")
	// The half-closed caller was there, and Caddy cannot know. Nor does it say that it
	// was the application that died.
	equal(2*each+1, "responses", "before_response")
	equal(3*each, "responses", "during_response")
	equal(0, "responses", "undelivered_answer")
	equal(0, "responses", "unknown_point")
	if got := dig(report, "total", "responses", "visibility"); got != 1.0 { // what came whole had its length announced
		t.Errorf("visibility is %v, want 1", got)
	}
	if got := dig(report, "input", "quarantined"); fmt.Sprint(got) != "map[]" {
		t.Errorf("quarantined: %v", got)
	}
}
