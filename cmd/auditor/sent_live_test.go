package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sentLive is a real proxy that sends its access log to the daemon, before the
// application of servers_test.go.
type sentLive struct {
	cmd     *exec.Cmd
	address string // of the proxy
	listen  string // a line of auditor.yaml: the source
	more    string // of the same source
}

// ask makes one whole request.
func (s *sentLive) ask(t *testing.T, path, key string, attempt int) {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+s.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	r.Header.Set("Question-Key", key)
	r.Header.Set("X-Envoy-Attempt-Count", strconv.Itoa(attempt))
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// leave makes a request and resets its connection when when returns.
func (s *sentLive) leave(t *testing.T, path, key string, when func(conn net.Conn)) {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: shop.test\r\nQuestion-Key: %s\r\nX-Envoy-Attempt-Count: 1\r\n\r\n", path, key)
	when(conn)
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

// audit runs the daemon and the proxy, lets callers ask and retry, and holds what the
// daemon says against what they did.
func (s *sentLive) audit(t *testing.T, a *triedApp) (r *running) {
	t.Helper()
	dir := t.TempDir()
	r = startDaemon(t, writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf(`dependency: shop
sources:
  - %s
    %s
keys: {accept: [{field: question_key}]}
api: {listen: "127.0.0.1:0"}
`, s.listen, s.more)))
	var errs bytes.Buffer
	s.cmd.Stderr, s.cmd.Stdout = &errs, &errs
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { s.cmd.Process.Signal(os.Interrupt); s.cmd.Wait() }
	t.Cleanup(stop)
	until(t, "the proxy listens", func() bool {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	counted := func() float64 {
		n, _ := dig(r.get("/api/v1/sources"), "sources", 0, "counted").(float64)
		return n
	}

	// The truth: 30 questions, asked one to three times; every fifth is refused each
	// time. Then 3 callers that leave before the answer, and 2 in its middle.
	truth := map[string]float64{}
	for q := range 30 {
		path := "/"
		if q%5 == 0 {
			path = "/refused"
		}
		for try := range 1 + q%3 {
			s.ask(t, path, fmt.Sprint("q-", q), 1+try)
			truth["arrivals"]++
			if path == "/refused" {
				truth["refused"]++
			}
			if try > 0 {
				truth["repeats"]++
			}
		}
		truth["originals"]++
	}
	for i := range 3 {
		s.leave(t, "/held?case="+fmt.Sprint(i), fmt.Sprint("gone-", i), func(net.Conn) { <-latch(&a.arrived, fmt.Sprint(i)) })
		truth["arrivals"]++
		truth["originals"]++
		truth["before_response"]++
	}
	for i := range 2 {
		s.leave(t, "/endless", fmt.Sprint("cut-", i), func(conn net.Conn) {
			if _, err := io.ReadFull(conn, make([]byte, 4096)); err != nil {
				t.Error(err)
			}
		})
		truth["arrivals"]++
		truth["originals"]++
		truth["during_response"]++
	}
	for i := range 3 { // what waits for nobody ends in any case
		t.Cleanup(func() { latch(&a.let, fmt.Sprint(i)) <- struct{}{} })
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%v\n%s", r.get("/api/v1/sources"), errs.String())
		}
	})
	var last any
	until(t, fmt.Sprintf("%v arrivals are counted and shown", truth["arrivals"]), func() bool {
		windows, _ := dig(r.get("/api/v1/summary"), "dependencies", 0, "windows").([]any)
		if len(windows) == 0 {
			return false
		}
		last = windows[len(windows)-1]
		n, _ := dig(last, "arrivals").(float64)
		return n >= truth["arrivals"] && counted() >= truth["arrivals"]
	})
	for name, want := range truth {
		got := dig(last, name)
		if got == nil {
			got = dig(last, "responses", name)
		}
		if got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := dig(last, "coverage"); got != 1.0 {
		t.Errorf("coverage is %v", got)
	}
	source := dig(r.get("/api/v1/sources"), "sources", 0)
	for _, name := range []string{"dropped", "truncated"} {
		if got := dig(source, "intake", name); got != 0.0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := dig(source, "intake", "kept"); got == nil || got.(float64) < truth["arrivals"] {
		t.Errorf("kept: %v", got)
	}
	if q, _ := dig(source, "quarantined").(map[string]any); len(q) != 0 {
		t.Errorf("quarantined: %v", q)
	}
	return r
}

// A real nginx sends its access log by UDP, with the shipped lines.
func TestServerNginxSyslogSource(t *testing.T) {
	bin := findServer(t, "nginx", "Debian: apt-get install nginx-light")
	a, dir, port, to := newTriedApp(t), t.TempDir(), freePort(t), freeUDPPort(t)
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n"
	}
	format, _, _ := strings.Cut(docBlock(t, "nginx"), "access_log ")
	conf := fmt.Sprintf(`%[1]sdaemon off;
worker_processes 1;
pid %[2]s/nginx.pid;
error_log stderr;
events { worker_connections 256; }
http {
    client_body_temp_path %[2]s/1; proxy_temp_path %[2]s/2; fastcgi_temp_path %[2]s/3; uwsgi_temp_path %[2]s/4; scgi_temp_path %[2]s/5;
%[3]s
%[4]s
    server {
        listen 127.0.0.1:%[5]d;
        proxy_buffering off;
        location / { proxy_pass http://127.0.0.1:%[6]s; }
    }
}
`, user, dir, format, strings.Replace(shipped(t, "nginx-syslog.conf"), ":5514", ":"+strconv.Itoa(to), 1), port, a.port())
	s := &sentLive{
		cmd: exec.Command(bin, "-p", dir, "-c", writeIn(t, filepath.Join(dir, "nginx.conf"), conf)), address: "127.0.0.1:" + strconv.Itoa(port),
		listen: fmt.Sprintf(`syslog: {protocol: udp, listen: "127.0.0.1:%d"}`, to), more: "format: nginx-json",
	}
	s.audit(t, a)
}

// A real HAProxy sends its log over TCP through a ring, with the shipped lines, and by
// UDP in both forms of the header.
func TestServerHAProxySyslogSource(t *testing.T) {
	bin := findServer(t, "haproxy", "Debian: apt-get install haproxy")
	for _, how := range []string{"ring", "rfc3164", "rfc5424"} {
		t.Run(how, func(t *testing.T) {
			a, dir, port, to := newTriedApp(t), t.TempDir(), freePort(t), freePort(t)
			global := strings.Replace(shipped(t, "haproxy-syslog.cfg"), ":5514", ":"+strconv.Itoa(to), 1)
			source := fmt.Sprintf(`syslog: {listen: "127.0.0.1:%d"}`, to)
			if how != "ring" {
				to = freeUDPPort(t)
				global = fmt.Sprintf("global\n    log 127.0.0.1:%d len 8192 format %s local0\n", to, how)
				source = fmt.Sprintf(`syslog: {protocol: udp, listen: "127.0.0.1:%d"}`, to)
			}
			conf := global + shipped(t, "haproxy.cfg") + fmt.Sprintf(`    log global
    bind 127.0.0.1:%d
    option dontlognull
    timeout client 30s
    default_backend app
backend app
    timeout connect 5s
    timeout server 30s
    server s1 127.0.0.1:%s
`, port, a.port())
			cmd := exec.Command(bin, "-f", writeIn(t, filepath.Join(dir, "haproxy.cfg"), conf))
			cmd.Env = append(os.Environ(), "TZ=UTC")
			s := &sentLive{cmd: cmd, address: "127.0.0.1:" + strconv.Itoa(port), listen: source, more: "format: haproxy"}
			s.audit(t, a)
		})
	}
}

// TestEnvoyLive runs a real Envoy with the shipped configuration, which sends its access
// log by gRPC. AUDITOR_ENVOY names the program.
func TestEnvoyLive(t *testing.T) {
	bin := os.Getenv("AUDITOR_ENVOY")
	if bin == "" {
		t.Skip("AUDITOR_ENVOY names no Envoy: run examples/record/test.sh")
	}
	a, dir, port, to := newTriedApp(t), t.TempDir(), freePort(t), freePort(t)
	conf := shipped(t, "envoy-als.yaml")
	for from, to := range map[string]string{"port_value: 10000": fmt.Sprint("port_value: ", port), "port_value: 9466": fmt.Sprint("port_value: ", to), "port_value: 8080": "port_value: " + a.port()} {
		if strings.Count(conf, from) != 1 {
			t.Fatalf("the configuration has no place for %s", to)
		}
		conf = strings.Replace(conf, from, to, 1)
	}
	s := &sentLive{
		cmd:     exec.Command(bin, "-c", writeIn(t, filepath.Join(dir, "envoy.yaml"), conf), "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning"),
		address: "127.0.0.1:" + strconv.Itoa(port), listen: fmt.Sprintf(`als: {listen: "127.0.0.1:%d"}`, to), more: "vantage: at_target",
	}
	s.audit(t, a)
}

func freeUDPPort(t *testing.T) int {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).Port
}
