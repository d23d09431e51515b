package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// running is a daemon of a test.
type running struct {
	t    testing.TB
	d    *daemon
	stop func()
}

// startDaemon runs a daemon of a configuration until stop is called.
func startDaemon(t testing.TB, config string, with ...func(*daemon)) *running {
	t.Helper()
	return startDaemonAt(t, config, time.Now, with...)
}

// startDaemonAt does so with another clock on the wall.
func startDaemonAt(t testing.TB, config string, now func() time.Time, with ...func(*daemon)) *running {
	t.Helper()
	p := &program{stdout: io.Discard, stderr: io.Discard, now: now, getenv: os.LookupEnv}
	read := func() (*loaded, error) { return load(p, config, true) }
	l, err := read()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d, err := newDaemon(ctx, l, read, slog.New(slog.DiscardHandler), now)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range with {
		f(d)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	r := &running{t: t, d: d}
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.stop = func() {}
	}
	t.Cleanup(func() { r.stop() })
	return r
}

// get asks the API.
func (r *running) get(path string) (answer map[string]any) {
	r.t.Helper()
	res, err := http.Get("http://" + r.d.listener.Addr().String() + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %s: %s", path, res.Status, body)
	}
	if strings.HasPrefix(path, "/metrics") {
		return map[string]any{"text": string(body)}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		r.t.Fatal(err)
	}
	return answer
}

// until polls until something holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within 30 s: %s", what)
}

// dig follows a path into an answer; nil if it leads nowhere.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			list, _ := v.([]any)
			if k >= len(list) {
				return nil
			}
			v = list[k]
		}
	}
	return v
}

// A followed file is in the live figures at once, in the stored ones when its ticks
// are closed, and once in both after a restart.
func TestDaemonFollowsAFileThroughARestart(t *testing.T) {
	dir := t.TempDir()
	log, config := filepath.Join(dir, "access.log"), filepath.Join(dir, "auditor.yaml")
	text := fmt.Sprintf(`dependency: seats
sources: [{file: {paths: [%q]}, format: json}]
keys: {accept: [{field: my_id}], horizon: 3s}
time: {lateness: 1s, idle: 2s}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, log)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	n := 0
	write := func(key string) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n++
		fmt.Fprintf(f, `{"time":%q,"method":"GET","path":"/seats/%d","status":503,"duration_ms":1,"my_id":%q,"peer":"10.0.0.1:%d"}`+"\n",
			time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), n/3, key, n)
	}
	r := startDaemon(t, config)
	for range 3 {
		write("one question")
	}
	until(t, "three arrivals of one question are live", func() bool {
		w := dig(r.get("/api/v1/summary"), "dependencies", 0, "windows", 1)
		return dig(w, "arrivals") == 3.0
	})
	if text := r.get("/metrics")["text"].(string); !strings.Contains(text, `auditor_load_factor_ratio{dependency="seats",window="1m"}`) {
		t.Error("/metrics has no load factor")
	}
	stored := func(r *running) float64 {
		from, to := begun.Add(-10*time.Second), time.Now().Add(10*time.Second)
		s := r.get(fmt.Sprintf("/api/v1/series?measure=arrivals&by=dependency&from=%s&to=%s&step=1s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)))
		sum := 0.0
		for i := 0; dig(s, "series", 0, "points", i) != nil; i++ {
			if v, ok := dig(s, "series", 0, "points", i, "values", "arrivals").(float64); ok {
				sum += v
			}
		}
		return sum
	}
	final := func(r *running, want float64) {
		t.Helper()
		until(t, fmt.Sprintf("%v arrivals are stored", want), func() bool {
			write("later") // the watermark moves on
			return stored(r) >= want
		})
	}
	final(r, 3)
	until(t, "the histogram has questions that are over", func() bool {
		write("later")
		return regexp.MustCompile(`auditor_arrivals_per_question_count{dependency="seats"} [1-9]`).MatchString(r.get("/metrics")["text"].(string))
	})
	r.stop()

	r = startDaemon(t, config)
	final(r, float64(n))
	r.stop()
	r = startDaemon(t, config)
	until(t, "all is read again", func() bool {
		return dig(r.get("/api/v1/sources"), "sources", 0, "counted") != 0.0 && dig(r.get("/api/v1/sources"), "sources", 0, "state") == "idle"
	})
	if got := stored(r); got > float64(n) {
		t.Errorf("%v arrivals are stored of %d", got, n)
	}
}
