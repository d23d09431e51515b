package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A tried caller is one request through a real server, and what its record must
// then say. The caller, and not the log, knows what happened.
type triedCaller struct {
	name  string // in the query, by which the record is found
	path  string
	leave string // "": reads to the end; else when and how it goes, as in leaveAs
	send  string // instead of a request
	http2 bool

	status *int
	class  string
	gone   string
	work   string
	seen   bool // a departure would show
	maybe  bool // or the record looks like any other, and proves nothing
	tries  int
}

// The headers that every whole request carries: a quote, a backslash and a pipe
// are in the key.
const (
	triedKey     = `q-"1"\|{é`
	triedHeaders = "Host: shop.test\r\nConnection: close\r\nQuestion-Key: " + triedKey + "\r\nX-Envoy-Attempt-Count: 2\r\nGrpc-Timeout: 300m\r\nUser-Agent: tried/1 \"x\"\r\n\r\n"
)

// triedApp answers behind the server. It holds answers back until the test lets
// them go, and says what has arrived.
type triedApp struct {
	*httptest.Server
	arrived sync.Map // name: chan struct{}
	let     sync.Map
}

func latch(m *sync.Map, name string) chan struct{} {
	c, _ := m.LoadOrStore(name, make(chan struct{}, 64))
	return c.(chan struct{})
}

func newTriedApp(t *testing.T) *triedApp {
	a := &triedApp{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("case")
		latch(&a.arrived, name) <- struct{}{}
		w.Header().Set("Retry-After", "7")
		switch r.URL.Path {
		case "/held":
			<-latch(&a.let, name)
			fmt.Fprint(w, "an answer")
		case "/endless":
			part := bytes.Repeat([]byte("x"), 16<<10)
			for range 1 << 14 {
				if _, err := w.Write(part); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		case "/refused":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, "an answer")
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *triedApp) port() string {
	u, _ := url.Parse(a.URL)
	return u.Port()
}

// A triedServer is a real server that a test has configured with the shipped
// lines, and how it is.
type triedServer struct {
	cmd         *exec.Cmd
	port, http2 int
	log, config string
	waits       bool // it notices who has left, so that the answer can be held until it has
	ids         bool // it logs an id of its own
}

func (s *triedServer) address(c *triedCaller) string {
	if c.http2 {
		return "127.0.0.1:" + strconv.Itoa(s.http2)
	}
	return "127.0.0.1:" + strconv.Itoa(s.port)
}

// logged says that the record of a caller is there.
func (s *triedServer) logged(name string) bool {
	text, _ := os.ReadFile(s.log)
	return bytes.Contains(text, []byte("case="+name))
}

// askHTTP2 is ask by HTTP/2, where leaving is a reset of the stream.
func (c *triedCaller) askHTTP2(t *testing.T, a *triedApp, s *triedServer) {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	request := func(ctx context.Context, path, name string) *http.Request {
		r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://%s%s?case=%s", s.address(c), path, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := request(ctx, c.path, c.name)
	for name, value := range map[string]string{"Question-Key": triedKey, "X-Envoy-Attempt-Count": "2", "Grpc-Timeout": "300m", "User-Agent": `tried/1 "x"`} {
		r.Header.Set(name, value)
	}
	done := make(chan error)
	go func() {
		resp, err := transport.RoundTrip(r)
		if err == nil {
			part := make([]byte, 4096)
			if c.leave == "during" {
				_, err = io.ReadFull(resp.Body, part)
				cancel()
			} else {
				_, err = io.Copy(io.Discard, resp.Body)
			}
			resp.Body.Close()
		}
		done <- err
	}()
	if c.leave == "before" {
		<-latch(&a.arrived, c.name)
		cancel()
		<-done
		// What comes behind the reset on the same connection is answered after it.
		resp, err := transport.RoundTrip(request(t.Context(), "/", "behind-"+c.name))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if s.waits {
			until(t, c.name+" is logged", func() bool { return s.logged(c.name) })
		}
		latch(&a.let, c.name) <- struct{}{}
		return
	}
	if err := <-done; err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
	if c.leave == "after" {
		until(t, c.name+" is logged", func() bool { return s.logged(c.name) })
	}
}

// ask makes the request of one caller. A held answer is given when it has left.
func (c *triedCaller) ask(t *testing.T, a *triedApp, s *triedServer) {
	t.Helper()
	if c.http2 {
		c.askHTTP2(t, a, s)
		return
	}
	conn, err := net.Dial("tcp", s.address(c))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	text := c.send
	if text == "" {
		text = fmt.Sprintf("GET %s?case=%s HTTP/1.1\r\n%s", c.path, c.name, triedHeaders)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	when, how, _ := strings.Cut(c.leave, " ")
	switch when {
	case "":
		if c.path == "/held" {
			latch(&a.let, c.name) <- struct{}{}
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		return
	case "before":
		<-latch(&a.arrived, c.name)
	case "during":
		if _, err := io.ReadFull(conn, make([]byte, 4096)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	switch how {
	case "fin":
		conn.Close()
	case "rst":
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	case "half":
		conn.(*net.TCPConn).CloseWrite()
	}
	if when == "before" {
		if s.waits {
			until(t, c.name+" is logged", func() bool { return s.logged(c.name) })
		}
		latch(&a.let, c.name) <- struct{}{}
	}
	if how == "half" {
		io.Copy(io.Discard, conn)
	}
}

// tryServer starts a server with the shipped lines in its configuration, lets all
// callers ask, and compares what explain says of its log with what they know.
func tryServer(t *testing.T, a *triedApp, s *triedServer, callers []triedCaller) {
	t.Helper()
	cmd := s.cmd
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Signal(os.Interrupt); cmd.Wait() })
	until(t, filepath.Base(cmd.Path)+" listens", func() bool {
		conn, err := net.Dial("tcp", s.address(&triedCaller{}))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	for i := range callers {
		callers[i].ask(t, a, s)
	}
	for _, c := range callers {
		until(t, c.name+" is logged", func() bool { return s.logged(c.name) })
	}

	code, stdout, stderr := runAuditor(t, "", "explain", "--config", s.config, "--output", "json", s.log)
	text, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	if code != exitOK || strings.Contains(stderr, "could not be read") {
		t.Fatalf("exit status %d: %s\n%s", code, stderr, text)
	}
	records := map[string]explained{}
	for line := range strings.Lines(stdout) {
		var r explained
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Path == nil {
			continue
		}
		_, name, _ := strings.Cut(*r.Path, "case=")
		if _, twice := records[name]; twice {
			t.Errorf("%s: two records", name)
		}
		records[name] = r
	}
	for _, c := range callers {
		r, ok := records[c.name]
		if !ok {
			t.Errorf("%s: no record", c.name)
			continue
		}
		bad := func(what string, got, want any) { t.Errorf("%s: %s is %v, want %v", c.name, what, got, want) }
		if got, want := fmt.Sprint(deref(r.Status)), fmt.Sprint(deref(c.status)); c.status != nil && got != want {
			bad("status", got, want)
		}
		if c.maybe && r.Class == "not_recorded" && !r.Visible {
			c.class, c.gone, c.seen = r.Class, "no_record", false
		}
		if r.Class != c.class || r.Gone != c.gone || r.Work != c.work || r.Visible != c.seen || len(r.Tries) != c.tries {
			bad("departure", []any{r.Class, r.Gone, r.Work, r.Visible, len(r.Tries)}, []any{c.class, c.gone, c.work, c.seen, c.tries})
		}
		if c.send != "" {
			continue
		}
		if r.Key == nil || r.Key.Value != triedKey {
			bad("key", r.Key, triedKey)
		}
		if r.Attempt == nil || *r.Attempt != 2 {
			bad("attempt", deref(r.Attempt), 2)
		}
		if r.Deadline == nil {
			bad("deadline", nil, "300 ms after the start")
		}
		if r.Peer == nil || *r.Peer != "127.0.0.1" {
			bad("peer", deref(r.Peer), "127.0.0.1")
		}
		if r.UserAgent == nil || *r.UserAgent != `tried/1 "x"` {
			bad("user agent", deref(r.UserAgent), `tried/1 "x"`)
		}
		if s.ids != (r.ArrivalID != nil) {
			bad("arrival id", deref(r.ArrivalID), s.ids)
		}
		if c.leave == "" && (r.RetryAfter == nil || *r.RetryAfter != 7000) {
			bad("retry after", deref(r.RetryAfter), 7000)
		}
		if r.Uncertainty == nil || *r.Uncertainty != 1 || r.Duration == nil {
			bad("time", []any{deref(r.Uncertainty), deref(r.Duration)}, "to the millisecond, with a duration")
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// findServer is where a server is. Without it the test is skipped, except where
// it must run.
func findServer(t *testing.T, name, install string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not in PATH: %s", name, install)
		}
		t.Skipf("%s is not in PATH: %s", name, install)
	}
	return path
}

func freePort(t *testing.T) int {
	t.Helper()
	l := listenAnywhere(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func writeIn(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func httpStatus(n int) *int { return &n }

// TestServerHAProxy runs a real HAProxy. It notices a caller that closes, also
// one that closes its sending side alone; what it hands over at once it cannot
// call back.
func TestServerHAProxy(t *testing.T) {
	bin := findServer(t, "haproxy", "Debian: apt-get install haproxy")
	a, dir, port, port2 := newTriedApp(t), t.TempDir(), freePort(t), freePort(t)
	log := filepath.Join(dir, "haproxy.log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	dead := freePort(t)
	conf := "global\n    log stdout len 8192 format raw local0\n" + shipped(t, "haproxy.cfg") + fmt.Sprintf(`    log global
    bind 127.0.0.1:%[1]d
    bind 127.0.0.1:%[4]d proto h2
    timeout client 30s
    use_backend moved if { path /moved }
    use_backend again if { path /refused }
    default_backend app
backend app
    timeout connect 5s
    timeout server 30s
    server s1 127.0.0.1:%[2]s
backend moved
    timeout connect 5s
    timeout server 30s
    balance first
    option redispatch
    server s1 127.0.0.1:%[3]d
    server s2 127.0.0.1:%[2]s
backend again
    timeout connect 5s
    timeout server 30s
    retries 2
    retry-on 503
    server s1 127.0.0.1:%[2]s
`, port, a.port(), dead, port2)
	cmd := exec.Command(bin, "-f", writeIn(t, filepath.Join(dir, "haproxy.cfg"), conf))
	cmd.Env = append(os.Environ(), "TZ=Europe/Berlin")
	cmd.Stdout = out
	config := writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf("sources:\n  - file: {paths: [%q]}\n    format: haproxy\n    zone: Europe/Berlin\n", log))
	begun := time.Now().Add(-time.Second)
	tryServer(t, a, &triedServer{cmd: cmd, port: port, http2: port2, log: log, config: config, waits: true, ids: true}, []triedCaller{
		{name: "h2", path: "/", http2: true, status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes", seen: true, tries: 1},
		{name: "h2before", path: "/held", http2: true, leave: "before", class: "before_response", gone: "yes", work: "unknown", seen: true, tries: 1},
		{name: "h2during", path: "/endless", http2: true, leave: "during", status: httpStatus(200), class: "during_response", gone: "yes", work: "yes", seen: true, tries: 1},
		{name: "ok", path: "/", status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes", seen: true, tries: 1},
		{name: "held", path: "/held", status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes", seen: true, tries: 1},
		{name: "fin", path: "/held", leave: "before fin", class: "before_response", gone: "yes", work: "unknown", seen: true, tries: 1},
		{name: "rst", path: "/held", leave: "before rst", class: "before_response", gone: "yes", work: "unknown", seen: true, tries: 1},
		{name: "half", path: "/held", leave: "before half", class: "before_response", gone: "yes", work: "unknown", seen: true, tries: 1},
		{name: "midfin", path: "/endless", leave: "during fin", status: httpStatus(200), class: "during_response", gone: "yes", work: "yes", seen: true, tries: 1},
		{name: "midrst", path: "/endless", leave: "during rst", status: httpStatus(200), class: "during_response", gone: "yes", work: "yes", seen: true, tries: 1},
		{name: "moved", path: "/moved", status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes", seen: true, tries: 2},
		{name: "again", path: "/refused", status: httpStatus(503), class: "not_recorded", gone: "no_record", work: "yes", seen: true, tries: 3},
	})
	if r := firstRecord(t, config, log); r.Start == nil || *r.Start < begun.UTC().Format("2006-01-02T15:04:05.000Z") || *r.Start > time.Now().UTC().Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("the first request began at %v, by the clock after %v", deref(r.Start), begun.UTC())
	}
}

// TestServerHAProxySyslog runs HAProxy with its own line and captured headers, as
// syslog frames it in both ways.
func TestServerHAProxySyslog(t *testing.T) {
	bin := findServer(t, "haproxy", "Debian: apt-get install haproxy")
	for _, frame := range []string{"rfc3164", "rfc5424"} {
		t.Run(frame, func(t *testing.T) {
			a, dir, port := newTriedApp(t), t.TempDir(), freePort(t)
			log := filepath.Join(dir, "haproxy.log")
			syslog := receive(t, log)
			conf := fmt.Sprintf(`global
    log %s len 8192 format %s local0
defaults
    mode http
    timeout client 30s
    timeout server 30s
    timeout connect 5s
    option abortonclose
frontend f
    bind 127.0.0.1:%d
    log global
    option httplog
    capture request header Question-Key len 256
    capture request header X-Envoy-Attempt-Count len 8
    capture request header Grpc-Timeout len 12
    capture request header User-Agent len 64
    capture response header Retry-After len 32
    default_backend b
backend b
    server s1 127.0.0.1:%s
`, syslog, frame, port, a.port())
			cmd := exec.Command(bin, "-f", writeIn(t, filepath.Join(dir, "haproxy.cfg"), conf))
			cmd.Env = append(os.Environ(), "TZ=UTC")
			config := writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf(`sources:
  - file: {paths: [%q]}
    format: haproxy
    fields: {question_key: capture 0, x_envoy_attempt_count: capture 1, grpc_timeout: capture 2, user_agent: capture 3, retry_after: response capture 0}
`, log))
			tryServer(t, a, &triedServer{cmd: cmd, port: port, log: log, config: config, waits: true}, []triedCaller{
				{name: "ok", path: "/", status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes", tries: 1},
				{name: "fin", path: "/held", leave: "before fin", class: "before_response", gone: "yes", work: "unknown", seen: true, tries: 1},
				{name: "midrst", path: "/endless", leave: "during rst", status: httpStatus(200), class: "during_response", gone: "yes", work: "yes", seen: true, tries: 1},
			})
		})
	}
}

// receive writes what comes by syslog into a file, a line for each datagram.
func receive(t *testing.T, name string) (address string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for datagram := make([]byte, 64<<10); ; {
			n, _, err := conn.ReadFrom(datagram)
			if err != nil {
				return
			}
			if bytes.Contains(datagram[:n], []byte("HTTP/")) { // and not HAProxy's own notices
				out.Write(append(bytes.TrimRight(datagram[:n], "\n"), '\n'))
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done; out.Close() })
	return conn.LocalAddr().String()
}

func firstRecord(t *testing.T, config, log string) (r explained) {
	t.Helper()
	_, stdout, _ := runAuditor(t, "", "explain", "--config", config, "--output", "json", log)
	line, _, _ := strings.Cut(stdout, "\n")
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestServerApache runs a real httpd before the same application. It does not
// notice a caller that closes while it waits: those records look like any other,
// and so none that shows no departure may count as able to. By HTTP/2 it says of
// answers that were read to the end that they were not, now and then.
func TestServerApache(t *testing.T) {
	bin := findServer(t, "apache2", "Debian: apt-get install apache2-bin")
	a, dir, port := newTriedApp(t), t.TempDir(), freePort(t)
	log := filepath.Join(dir, "audit.log")
	modules := ""
	for _, m := range []string{"mpm_event", "authz_core", "proxy", "proxy_http", "unique_id", "http2"} {
		modules += fmt.Sprintf("LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n", m, m)
	}
	conf := modules + fmt.Sprintf("ServerRoot %[1]s\nProtocols h2c http/1.1\nServerName shop.test\nPidFile %[1]s/httpd.pid\nErrorLog %[1]s/error.log\nDefaultRuntimeDir %[1]s\nListen 127.0.0.1:%[2]d\nProxyPass / http://127.0.0.1:%[3]s/\n", dir, port, a.port()) +
		shipped(t, "apache.conf")
	cmd := exec.Command(bin, "-X", "-f", writeIn(t, filepath.Join(dir, "httpd.conf"), conf))
	cmd.Env = append(os.Environ(), "APACHE_LOG_DIR="+dir)
	var format string
	for line := range strings.Lines(shipped(t, "apache.conf")) {
		if strings.HasPrefix(line, "LogFormat ") {
			format = strings.TrimSpace(line)
		}
	}
	config := writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf("sources:\n  - file: {paths: [%q]}\n    format: apache\n    pattern: '%s'\n", log, format))
	tryServer(t, a, &triedServer{cmd: cmd, port: port, http2: port, log: log, config: config, ids: true}, []triedCaller{
		{name: "h2", path: "/", http2: true, status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes"},
		{name: "h2after", path: "/", http2: true, leave: "after", status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes"},
		{name: "h2before", path: "/held", http2: true, leave: "before", status: httpStatus(200), class: "undelivered_answer", gone: "yes", work: "yes", seen: true},
		{name: "h2during", path: "/endless", http2: true, leave: "during", status: httpStatus(200), class: "during_response", gone: "yes", work: "yes", seen: true, maybe: true},
		{name: "ok", path: "/", status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes"},
		{name: "held", path: "/held", status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes"},
		{name: "fin", path: "/held", leave: "before fin", status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes"},
		{name: "rst", path: "/held", leave: "before rst", status: httpStatus(200), class: "undelivered_answer", gone: "yes", work: "yes", seen: true},
		{name: "half", path: "/held", leave: "before half", status: httpStatus(200), class: "not_recorded", gone: "no_record", work: "yes"},
		{name: "midfin", path: "/endless", leave: "during fin", status: httpStatus(200), class: "during_response", gone: "yes", work: "yes", seen: true},
		{name: "midrst", path: "/endless", leave: "during rst", status: httpStatus(200), class: "during_response", gone: "yes", work: "yes", seen: true},
		{name: "refused", path: "/refused", status: httpStatus(503), class: "not_recorded", gone: "no_record", work: "unknown"},
	})
}
