package main

import (
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
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/targetside/auditor/keys"
)

// envoyLive is a chain of real Envoys: three layers that retry, and one on the inbound
// side of a target that fails, whose access log a daemon reads.
type envoyLive struct {
	t       *testing.T
	program string
	front   string // of the outermost layer
	log     string // of the inbound one
	arrived atomic.Int64
	stops   []func()
}

// start runs an Envoy with a configuration, until it is ready.
func (e *envoyLive) start(name, tmpl string, admin int, data any) {
	e.t.Helper()
	t, err := template.ParseFiles(tmpl)
	if err != nil {
		e.t.Fatal(err)
	}
	var config bytes.Buffer
	if err := t.Execute(&config, data); err != nil {
		e.t.Fatal(err)
	}
	file := writeIn(e.t, filepath.Join(filepath.Dir(e.log), name+".yaml"), config.String())
	cmd := exec.Command(e.program, "-c", file, "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning", "--file-flush-interval-msec", "100")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	e.stops = append(e.stops, func() {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
		if e.t.Failed() {
			e.t.Logf("%s: %s", name, &said)
		}
	})
	until(e.t, name+" is ready", func() bool {
		res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/ready", admin))
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

func (e *envoyLive) stop() {
	for _, stop := range e.stops {
		stop()
	}
	e.stops = nil
}

// newEnvoyLive starts the chain. retries is what bounds them in each layer's cluster.
func newEnvoyLive(t *testing.T, program, retries string) *envoyLive {
	e := &envoyLive{t: t, program: program, log: filepath.Join(t.TempDir(), "envoy-json.log")}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.arrived.Add(1)
		time.Sleep(20 * time.Millisecond) // so that many are under way at a time
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(target.Close)
	t.Cleanup(e.stop)
	port, admin := freePort(t), freePort(t)
	e.start("inbound", filepath.Join("..", "..", "examples", "record", "inbound.yaml.tmpl"), admin, map[string]any{
		"InboundAdmin": admin, "Inbound": port, "Logs": filepath.Dir(e.log), "AppC": target.Listener.Addr().(*net.TCPAddr).Port,
	})
	for layer := range 3 {
		own, admin := freePort(t), freePort(t)
		e.start(fmt.Sprint("layer-", layer), filepath.Join("testdata", "envoy", "layer.yaml.tmpl"), admin, map[string]any{
			"Admin": admin, "Port": own, "Below": port, "Retries": retries,
		})
		port = own
	}
	e.front = "http://127.0.0.1:" + strconv.Itoa(port)
	return e
}

// ask asks questions, as many at a time, and wants all to fail.
func (e *envoyLive) ask(minter keys.Minter, questions, at int) {
	e.t.Helper()
	var asking sync.WaitGroup
	turn := make(chan struct{}, at)
	for range questions {
		turn <- struct{}{}
		asking.Go(func() {
			defer func() { <-turn }()
			key, err := minter.Mint(time.Now())
			if err != nil {
				e.t.Error(err)
				return
			}
			req, err := http.NewRequest("GET", e.front+"/seats/7", nil)
			if err != nil {
				e.t.Error(err)
				return
			}
			req.Header.Set("Question-Key", key)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				e.t.Error(err)
				return
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusServiceUnavailable {
				e.t.Errorf("a question was answered with %s", res.Status)
			}
		})
	}
	asking.Wait()
	http.DefaultClient.CloseIdleConnections()
}

// TestEnvoyLayers: three layers of real Envoy that make three attempts each, before a
// target that fails, bring 27 arrivals per question, as the daemon reads in the
// target's log; and with Envoy's retry budget as many as it says. AUDITOR_ENVOY is the
// program; make test-recorded fetches one.
func TestEnvoyLayers(t *testing.T) {
	envoy := os.Getenv("AUDITOR_ENVOY")
	if envoy == "" {
		t.Skip("AUDITOR_ENVOY names no Envoy to run: see make test-recorded")
	}
	for name, c := range map[string]struct {
		retries       string
		budget        bool
		questions, at int
	}{
		"three attempts each": {"max_retries: 10000", false, 100, 20},
		// 20 % of what is under way, and three at a time in any case.
		"with a retry budget": {"retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 3}", true, 2000, 200},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvoyLive(t, envoy, c.retries)
			dir := filepath.Dir(e.log)
			secret, err := keys.NewSecret("web", "a")
			if err != nil {
				t.Fatal(err)
			}
			writeIn(t, filepath.Join(dir, "originators.yaml"), fmt.Sprintf("originators: [{id: web, keys: [{kid: a, secret: %q}]}]\n", secret.Secret))
			config := writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf(`dependency: seats
sources:
  - file: {paths: [%q]}
    format: envoy-json
    fields: {question_key: question_key, attempt: attempt_count}
keys: {originators: originators.yaml}
declared: {chosen: 27, layers: [{name: client, attempts: 3}, {name: gateway, attempts: 3}, {name: mesh, attempts: 3}]}
api: {listen: "127.0.0.1:0"}
`, e.log))
			daemon := startDaemon(t, config)
			e.ask(keys.Minter{Originator: "web", KID: "a", Secret: []byte(secret.Secret)}, c.questions, c.at)
			arrived := int(e.arrived.Load())
			var w any
			until(t, "the daemon has read what arrived", func() bool {
				w = dig(daemon.get("/api/v1/summary"), "dependencies", 0, "windows", 1)
				return dig(w, "arrivals") == float64(arrived)
			})
			e.stop()
			per := float64(arrived) / float64(c.questions)
			if dig(w, "load_factor") != per || dig(w, "originals") != float64(c.questions) || dig(w, "coverage") != 1.0 {
				t.Errorf("the daemon says %v, and %d arrived of %d questions", w, arrived, c.questions)
			}
			var out, errs bytes.Buffer
			p := &program{stdout: &out, stderr: &errs, getenv: os.LookupEnv, now: time.Now}
			if code, err := replay(t.Context(), p, []string{"--config", config, "--output", "json", e.log}); code != exitOK || err != nil {
				t.Fatalf("exit status %d: %v\n%s", code, err, &errs)
			}
			var report map[string]any
			if err := json.Unmarshal(out.Bytes(), &report); err != nil {
				t.Fatal(err)
			}
			total := dig(report, "total")
			adjacent, above, most := dig(total, "hops", "adjacent"), dig(total, "hops", "above"), dig(total, "per_question", "max")
			t.Logf("%s: %.2f arrivals per question, %v by the neighbour and %v above it, %v at most", name, per, adjacent, above, most)
			if dig(total, "amplification") != per {
				t.Errorf("a replay says %v", dig(total, "amplification"))
			}
			if !c.budget {
				if per != 27 || adjacent != 3.0 || above != 9.0 || most != 27.0 {
					t.Error("want 27, 3, 9 and 27")
				}
				return
			}
			if per <= 1 || per > 4 {
				t.Errorf("with a budget: %.2f arrivals per question", per)
			}
		})
	}
}
