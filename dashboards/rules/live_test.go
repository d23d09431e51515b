package rules_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/targetside/auditor/dashboards/livetest"
	"github.com/targetside/auditor/keys"
)

// caller writes the access log of two dependencies: seats, which storms when it is
// told to, and prices, where a seventh of the questions come twice until then.
type caller struct {
	web   keys.Minter
	file  *os.File
	waves int
	storm atomic.Int32 // 0 before, 1 while, 2 after it
}

const secret = "0123456789abcdef0123456789abcdef"

// wave is a tenth of a second.
func (c *caller) wave(now time.Time) error {
	c.waves++
	var b strings.Builder
	add := func(dependency string, question, tries int, gone bool) error {
		at := now.Add(time.Duration(question-90) * time.Millisecond)
		key, err := c.web.Mint(at)
		if err != nil {
			return err
		}
		bytes := 500
		if gone {
			bytes = 0
		}
		for try := range tries {
			fmt.Fprintf(&b, `{"time":%q,"duration_ms":5,"dependency":%q,"method":"GET","path":"/%s/%d","peer":"bff","status":200,"bytes_sent":%d,"client_gone":%t,"question_key":%q}`+"\n",
				at.Add(time.Duration(5*try)*time.Millisecond).UTC().Format("2006-01-02T15:04:05.000Z"), dependency, dependency, question, bytes, gone, key)
		}
		return nil
	}
	storm := c.storm.Load()
	for q := range 7 {
		seats, prices := 1, 1
		if storm == 1 {
			seats = 3
		}
		if storm < 2 && q == c.waves%7 {
			prices = 2
		}
		if err := errors.Join(add("seats", q, seats, storm == 1 && q > 0), add("prices", q, prices, false)); err != nil {
			return err
		}
	}
	_, err := c.file.WriteString(b.String())
	return err
}

// The rules as they ship, in a real Prometheus that scrapes two daemons each second: what
// they find reaches whoever a real Alertmanager calls, once, and so does its end.
func TestRulesCallSomebodyWhileALiveDaemonSeesAStorm(t *testing.T) {
	livetest.Find(t, "prometheus", "prometheus")
	livetest.Find(t, "prometheus-alertmanager", "prometheus-alertmanager", "alertmanager")
	program := livetest.Auditor(t)
	config := func(listen string) (dir string) {
		dir = t.TempDir()
		for name, text := range map[string]string{
			"access.log":       "",
			"originators.yaml": fmt.Sprintf("originators: [{id: web, deadline: 500ms, keys: [{kid: a, secret: %s}]}]\n", secret),
			"auditor.yaml": fmt.Sprintf(`dependency: {field: dependency}
sources: [{file: {paths: [access.log]}, format: json}]
time: {lateness: 2s, idle: 2s}
keys: {originators: originators.yaml, horizon: 3s}
store: {sqlite: rows.db}
api: {listen: %q}
`, listen),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	addresses := [2]string{livetest.Free(t), livetest.Free(t)}
	dir, other := config(addresses[0]), config(addresses[1])
	livetest.Run(t, program, filepath.Join(dir, "auditor.yaml"))
	second := livetest.Run(t, program, filepath.Join(other, "auditor.yaml"))

	log, err := os.OpenFile(filepath.Join(dir, "access.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	callers := &caller{web: keys.Minter{Originator: "web", KID: "a", Secret: []byte(secret)}, file: log}
	t.Cleanup(func() { log.Close() })
	livetest.Traffic(t, callers.wave)

	readme, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	inhibit := regexp.MustCompile(`(?m)^    (inhibit_rules:\n(?:      .*\n)+)`).FindSubmatch(readme)
	if inhibit == nil {
		t.Fatal("docs/operations shows no inhibit_rules")
	}
	called := livetest.NewCalled(t)
	alertmanager := livetest.Alertmanager(t, called, time.Second, string(inhibit[1]))
	shipped, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	prometheus := livetest.Prometheus(t, fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
scrape_configs: [{job_name: auditor, static_configs: [{targets: [%q, %q]}]}]
`, shipped, strings.TrimPrefix(alertmanager, "http://"), addresses[0], addresses[1]))

	// calls waits until somebody was called for an alert so often, and no more often.
	calls := func(most time.Duration, name string, want ...string) {
		t.Helper()
		livetest.Until(t, most, func() string {
			if got := called.Calls()[name]; !slices.Equal(got, want) {
				return fmt.Sprintf("%s: called with %q, want %q; of all: %v", name, got, want, called.Calls())
			}
			return ""
		})
	}
	const (
		low       = "RetryBudgetLow dependency=prices model=ratio severity=warning"
		exhausted = "RetryBudgetExhausted dependency=seats model=ratio severity=critical"
		dead      = "DeadAnswers dependency=seats severity=critical"
	)
	down := "AuditorDown instance=" + addresses[1] + " job=auditor severity=critical"
	began := time.Now()
	say := func(what string) { t.Logf("%3.0f s: %s", time.Since(began).Seconds(), what) }

	livetest.Until(t, 30*time.Second, func() string { return unready(prometheus) })
	second.Stop()
	say("all rules are evaluated; one daemon is stopped")
	calls(60*time.Second, low, "firing")
	say("the budget of prices is low, and somebody is called")
	callers.storm.Store(1)
	calls(40*time.Second, exhausted, "firing")
	say("seats storm, and somebody is called")
	calls(100*time.Second, dead, "firing")
	say("its answers are for nobody, and somebody is called")
	callers.storm.Store(2)
	calls(100*time.Second, down, "firing")
	say("somebody is called for the daemon that is down")
	livetest.Run(t, program, filepath.Join(other, "auditor.yaml"))
	calls(30*time.Second, down, "firing", "resolved")
	say("it is up again")
	calls(120*time.Second, dead, "firing", "resolved")
	calls(120*time.Second, exhausted, "firing", "resolved")
	calls(120*time.Second, low, "firing", "resolved")
	say("the storm is over")
	for name := range called.Calls() {
		// On its way from nothing to exhausted, a budget may be seen to be so soon.
		if !slices.Contains([]string{low, exhausted, dead, down}, name) && !strings.HasPrefix(name, "RetryBudgetExhaustsSoon dependency=seats ") {
			t.Errorf("nobody had to be called for %s", name)
		}
	}
}

// unready says which of the rules are not evaluated, or not without an error.
func unready(prometheus string) string {
	var found struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := livetest.Ask(prometheus, "/api/v1/rules", url.Values{}, &found); err != nil {
		return err.Error()
	}
	n := 0
	for _, g := range found.Groups {
		for _, r := range g.Rules {
			if n++; r.Health != "ok" {
				return fmt.Sprintf("%s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if n < 20 {
		return fmt.Sprintf("%d rules", n)
	}
	var up []any
	if err := livetest.Ask(prometheus, "/api/v1/series", url.Values{"match[]": {"auditor_build_info"}}, &up); err != nil || len(up) != 2 {
		return fmt.Sprintf("%d daemons are scraped: %v", len(up), err)
	}
	return ""
}
