package livetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// client gives up on a program that hangs.
var client = &http.Client{Timeout: 10 * time.Second}

// Prometheus starts a Prometheus on a configuration. It returns its URL.
func Prometheus(t testing.TB, config string) string {
	t.Helper()
	dir := t.TempDir()
	return "http://" + Start(t, `msg="Listening on".* address="?([0-9.:]+)`, exec.Command(Find(t, "prometheus", "prometheus"),
		"--config.file="+write(t, dir, "prometheus.yml", config), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")).Said
}

// Alertmanager starts an Alertmanager that calls somebody at once, for each alert by
// itself, looks for changes every so often, and has further sections of a
// configuration. It returns its URL.
func Alertmanager(t testing.TB, called *Called, every time.Duration, more string) string {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf(`route: {receiver: called, group_by: ["..."], group_wait: 0s, group_interval: %v, repeat_interval: 4h}
receivers: [{name: called, webhook_configs: [{url: %q, send_resolved: true}]}]
%s`, every, called.url, more)
	return "http://" + Start(t, `msg="?Listening(?: on)?"?.* address="?([0-9.:]+)`, exec.Command(Find(t, "prometheus-alertmanager", "prometheus-alertmanager", "alertmanager"),
		"--config.file="+write(t, dir, "alertmanager.yml", config), "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--cluster.listen-address=")).Said
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Ask decodes what the HTTP API of Prometheus (api/v1) answers.
func Ask(prometheus, path string, parameters url.Values, into any) error {
	body, err := get(prometheus + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	answer := struct {
		Status string
		Data   any
	}{Data: into}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return fmt.Errorf("prometheus: %s (%v)", body, err)
	}
	return nil
}

func get(url string) ([]byte, error) {
	res, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// Standing is an alert that an Alertmanager has, not resolved.
type Standing struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
}

// Standings are the alerts that an Alertmanager has (API v2).
func Standings(alertmanager string) (all []Standing, err error) {
	body, err := get(alertmanager + "/api/v2/alerts")
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(body, &all)
}

// Called is whoever an Alertmanager calls.
type Called struct {
	url string

	mu    sync.Mutex
	calls []Call
}

// Call is one alert in one notification.
type Call struct {
	Status string // firing or resolved
	Labels map[string]string
	At     time.Time
}

// Name is the alert's name and its other labels, in order.
func (c *Call) Name() string { return Name(c.Labels) }

// Name is an alert's name and its other labels, in order.
func Name(labels map[string]string) string {
	var rest []string
	for k, v := range labels {
		if k != "alertname" {
			rest = append(rest, k+"="+v)
		}
	}
	slices.Sort(rest)
	return strings.Join(append([]string{labels["alertname"]}, rest...), " ")
}

// NewCalled is somebody who notes each call until the test ends.
func NewCalled(t testing.TB) *Called {
	c := new(Called)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message struct{ Alerts []Call }
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Errorf("a call that cannot be read: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, a := range message.Alerts {
			a.At = time.Now()
			c.calls = append(c.calls, a)
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// Calls are what came so far, by alert: "firing" and "resolved", in order.
func (c *Called) Calls() map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string][]string{}
	for i := range c.calls {
		name := c.calls[i].Name()
		all[name] = append(all[name], c.calls[i].Status)
	}
	return all
}
