package main

import (
	"bytes"
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

	status *int
	class  string
	gone   string
	work   string
	seen   bool // a departure would show
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

// ask makes the request of one caller. let says when a held answer is given: at
// once after the caller has left, or once the record is there.
func (c *triedCaller) ask(t *testing.T, a *triedApp, address string, logged func(string) bool, waits bool) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
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
	case "sending":
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
		if waits {
			eventually(t, c.name+" to be logged", func() bool { return logged(c.name) })
		}
		latch(&a.let, c.name) <- struct{}{}
	}
	if how == "half" {
		io.Copy(io.Discard, conn)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// tryServer starts a server with the shipped lines in its configuration, lets all
// callers ask, and compares what explain says of its log with what they know.
func tryServer(t *testing.T, a *triedApp, cmd *exec.Cmd, port int, log, config string, waits bool, callers []triedCaller) {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Signal(os.Interrupt); cmd.Wait() })
	address := "127.0.0.1:" + strconv.Itoa(port)
	eventually(t, filepath.Base(cmd.Path)+" to listen: "+errs.String(), func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	text := func() string { b, _ := os.ReadFile(log); return string(b) }
	for i := range callers {
		callers[i].ask(t, a, address, func(name string) bool { return strings.Contains(text(), "case="+name) }, waits)
	}
	for _, c := range callers {
		eventually(t, c.name+" to be logged", func() bool { return strings.Contains(text(), "case="+c.name) })
	}

	code, stdout, stderr := runAuditor(t, "", "explain", "--config", config, "--output", "json", log)
	if code != exitOK || strings.Contains(stderr, "could not be read") {
		t.Fatalf("exit status %d: %s\n%s", code, stderr, text())
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
		if r.ArrivalID == nil {
			bad("arrival id", nil, "one")
		}
		if c.leave == "" && (r.RetryAfter == nil || *r.RetryAfter != 7000) {
			bad("retry after", deref(r.RetryAfter), 7000)
		}
		if r.Uncertainty == nil || *r.Uncertainty != 1 || r.Duration == nil {
			bad("time", []any{deref(r.Uncertainty), deref(r.Duration)}, "to the millisecond, with a duration")
		}
	}
	if t.Failed() {
		t.Log(text())
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

// shipped is one of the files in examples/formats, which docs/formats.md shows.
func shipped(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "formats", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	a, dir, port := newTriedApp(t), t.TempDir(), freePort(t)
	log := filepath.Join(dir, "haproxy.log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	dead := freePort(t)
	conf := "global\n    log stdout len 8192 format raw local0\n" + shipped(t, "haproxy.cfg") + fmt.Sprintf(`    log global
    bind 127.0.0.1:%d
    timeout client 30s
    use_backend moved if { path /moved }
    use_backend again if { path /refused }
    default_backend app
backend app
    timeout connect 5s
    timeout server 30s
    server s1 127.0.0.1:%s
backend moved
    timeout connect 5s
    timeout server 30s
    balance first
    option redispatch
    server s1 127.0.0.1:%d
    server s2 127.0.0.1:%[2]s
backend again
    timeout connect 5s
    timeout server 30s
    retries 2
    retry-on 503
    server s1 127.0.0.1:%[2]s
`, port, a.port(), dead)
	cmd := exec.Command(bin, "-f", writeIn(t, filepath.Join(dir, "haproxy.cfg"), conf))
	cmd.Env = append(os.Environ(), "TZ=Europe/Berlin")
	cmd.Stdout = out
	config := writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf("sources:\n  - file: {paths: [%q]}\n    format: haproxy\n    zone: Europe/Berlin\n", log))
	begun := time.Now().Add(-time.Second)
	tryServer(t, a, cmd, port, log, config, true, []triedCaller{
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
// and so none that shows no departure may count as able to.
func TestServerApache(t *testing.T) {
	bin := findServer(t, "apache2", "Debian: apt-get install apache2-bin")
	a, dir, port := newTriedApp(t), t.TempDir(), freePort(t)
	log := filepath.Join(dir, "audit.log")
	modules := ""
	for _, m := range []string{"mpm_event", "authz_core", "proxy", "proxy_http", "unique_id"} {
		modules += fmt.Sprintf("LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n", m, m)
	}
	conf := modules + fmt.Sprintf("ServerRoot %[1]s\nServerName shop.test\nPidFile %[1]s/httpd.pid\nErrorLog %[1]s/error.log\nDefaultRuntimeDir %[1]s\nListen 127.0.0.1:%[2]d\nProxyPass / http://127.0.0.1:%[3]s/\n", dir, port, a.port()) +
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
	tryServer(t, a, cmd, port, log, config, false, []triedCaller{
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
