package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recordedTruth is what callers and application counted while the sample logs
// were recorded; examples/README.md explains it.
type recordedTruth struct {
	Dependencies map[string]struct {
		Arrivals, Verified, Questions, Repeats int
		HealthChecks                           int            `json:"health_checks"`
		OddAgents                              int            `json:"odd_agent_arrivals"`
		Unattributable                         map[string]int `json:"unattributable"`
		Histogram                              map[string]int `json:"arrivals_per_question"`
		Originators                            map[string]struct{ Arrivals, Questions int }
		Peers                                  map[string]int
		Statuses                               map[string]int
		Departures                             map[string]any
		Tries                                  map[string]int                `json:"tries_per_record"`
		RetryAfter                             struct{ Returned, Early int } `json:"retry_after"`
		RepeatAfter                            map[string]int                `json:"repeat_after"`
		Hops                                   struct {
			With  int `json:"with_attempt"`
			One   int `json:"attempt_one"`
			Above int `json:"questions_with_attempt_one"`
		}
		InFront     struct{ Arrivals, Verified, Questions int } `json:"in_front"`
		ByRequestID struct{ Arrivals, Questions int }           `json:"by_x_request_id"`
	}
}

// auditRecorded replays one recorded log with its shipped configuration.
func auditRecorded(t *testing.T, logs, config, log string) map[string]any {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs, getenv: os.LookupEnv, now: time.Now}
	code, err := replay(context.Background(), p, []string{
		"--config", filepath.Join("..", "..", "examples", config+".yaml"), "--output", "json", filepath.Join(logs, log+".log"),
	})
	if code != exitOK || err != nil {
		t.Fatalf("exit status %d: %v\n%s", code, err, &errs)
	}
	var report map[string]any
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

// at walks a report: member names, or "name=value" for the element of a list
// whose member has that value.
func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for _, p := range path {
		if list, ok := v.([]any); ok {
			var found any
			for _, x := range list {
				for _, name := range []string{"dependency", "route", "originator", "peer"} {
					if m := x.(map[string]any); m[name] == p && found == nil {
						found = m
					}
				}
			}
			if v = found; v == nil {
				t.Fatalf("no %q in the list", p)
			}
			continue
		}
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("nothing at %q of %v", p, path)
		}
		v = m[p]
	}
	return v
}

// TestRecorded holds the audit of logs that real servers wrote against what was
// counted outside of them. AUDITOR_RECORDED names the directory of a fresh
// recording; without it the shipped one is used.
func TestRecorded(t *testing.T) {
	logs := os.Getenv("AUDITOR_RECORDED")
	if logs == "" {
		logs = filepath.Join("..", "..", "examples", "logs")
	}
	text, err := os.ReadFile(filepath.Join(logs, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var truth recordedTruth
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		log, dependency string
		subsecond       bool // stamps are finer than a second, so that retries can be ordered
	}{{"nginx-json", "seats", true}, {"nginx-combined", "seats", false}, {"envoy-json", "prices", true}} {
		t.Run(c.log, func(t *testing.T) {
			r, want := auditRecorded(t, logs, c.log, c.log), truth.Dependencies[c.dependency]
			equal := func(want int, path ...string) {
				t.Helper()
				got := at(t, r, path...)
				if got == nil {
					got = 0.0
				}
				if got != float64(want) {
					t.Errorf("%v is %v, want %d", path, got, want)
				}
			}
			equal(want.Arrivals, "total", "arrivals")
			equal(want.Arrivals, "input", "arrivals")
			equal(want.HealthChecks, "input", "ignored", "path")
			equal(want.Verified, "total", "verified")
			equal(want.Questions, "total", "questions")
			equal(want.Repeats, "total", "repeats")
			for reason, n := range want.Unattributable {
				equal(n, "total", "unattributable", reason)
			}
			for k, n := range want.Histogram {
				equal(n, "total", "per_question", "histogram", k)
			}
			for name, o := range want.Originators {
				equal(o.Arrivals, "dependencies", c.dependency, "originators", name, "arrivals")
				equal(o.Questions, "dependencies", c.dependency, "originators", name, "questions")
			}
			for _, kind := range []string{"before_response", "undelivered_answer", "during_response"} {
				n, _ := want.Departures[kind].(float64)
				equal(int(n), "total", "responses", kind)
			}
			equal(want.Statuses["503"], "total", "responses", "refused")
			if c.subsecond {
				for k, n := range want.RepeatAfter {
					equal(n, "total", "repeat_after", k)
				}
				equal(want.RetryAfter.Returned, "total", "retry_after", "returned")
				equal(want.RetryAfter.Early, "total", "retry_after", "early")
			}
			above := at(t, r, "total", "hops", "above")
			if wantAbove := float64(want.Hops.One) / float64(want.Hops.Above); above != wantAbove {
				t.Errorf("hops.above is %v, want %v", above, wantAbove)
			}
		})
	}
	t.Run("nginx-json in front", func(t *testing.T) {
		r, want := auditRecorded(t, logs, "nginx-json-in-front", "nginx-json"), truth.Dependencies["seats"]
		for path, n := range map[string]int{"arrivals": want.InFront.Arrivals, "verified": want.InFront.Verified, "questions": want.InFront.Questions} {
			if got := at(t, r, "total", path); got != float64(n) {
				t.Errorf("%s is %v, want %d", path, got, n)
			}
		}
		if got := at(t, r, "input", "ignored", "not_forwarded"); got != float64(want.Tries["0"]) {
			t.Errorf("not forwarded: %v, want %d", got, want.Tries["0"])
		}
	})
	t.Run("envoy-text", func(t *testing.T) {
		// The default text format holds no question key: only x-request-id, and not
		// where a caller's quotes could have put it.
		// Two tries within a millisecond may write the same line twice, which nobody
		// can tell from a shipper's copy.
		r, want := auditRecorded(t, logs, "envoy-text", "envoy-text"), truth.Dependencies["prices"]
		same := equalLines(t, filepath.Join(logs, "envoy-text.log"))
		for path, n := range map[string]int{"arrivals": want.ByRequestID.Arrivals - same, "claimed": want.ByRequestID.Arrivals - want.OddAgents - same, "questions": want.ByRequestID.Questions - want.OddAgents, "verified": 0} {
			if got := at(t, r, "total", path); got != float64(n) {
				t.Errorf("%s is %v, want %d", path, got, n)
			}
		}
	})
}

// equalLines counts the lines of a file that stood in it before.
func equalLines(t *testing.T, name string) (n int) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if seen[line] {
			n++
		}
		seen[line] = true
	}
	return n
}
