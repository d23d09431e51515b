package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/lab"
)

func labProgram() *program {
	return &program{stdin: strings.NewReader(""), stdout: new(bytes.Buffer), stderr: new(bytes.Buffer),
		getenv: func(string) (string, bool) { return "", false },
		now:    func() time.Time { return time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC) }}
}

// TestLabTruth: for every scenario, arm and format the audit of the log equals the
// truth. Counts do not depend on the size of a model, so large ones are played
// smaller, and much smaller in all formats but the first.
func TestLabTruth(t *testing.T) {
	for _, name := range labNames() {
		f, err := labScenario(name)
		if err != nil {
			t.Fatal(err)
		}
		arms := f.Arms
		if raced {
			arms = arms[:1] // the model is one goroutine, and replays are raced elsewhere
		}
		for _, arm := range arms {
			little := smaller(arm)
			if arm.Scale > 1 {
				arm.Scale *= 8
			}
			for i, format := range lab.Formats() {
				if i > 0 && (testing.Short() || raced) {
					break
				}
				arm := arm
				if i > 0 {
					arm = little
				}
				t.Run(name+"/"+arm.Name+"/"+format, func(t *testing.T) {
					t.Parallel()
					r, err := playArm(t.Context(), labProgram(), &arm, format, t.TempDir())
					if err != nil {
						t.Fatal(err)
					}
					if r.truth.Total.Arrivals < 20 {
						t.Errorf("%d arrivals: this shows nothing", r.truth.Total.Arrivals)
					}
					for _, w := range r.wrong {
						t.Error(w)
					}
				})
			}
		}
	}
}

// smaller is an arm at a scale at which every limit of a node is one at least, and some
// hundreds of questions are asked at least.
func smaller(a lab.Arm) lab.Arm {
	least, asked := 64*a.Scale, 0.0
	limit := func(l lab.Limit) {
		if l > 0 {
			least = min(least, 2*float64(l)) // half a one is one
		}
	}
	for _, l := range a.Layers {
		limit(l.Workers)
		limit(l.Queue)
	}
	for _, t := range a.Targets {
		limit(t.Slots)
		limit(t.Queue)
	}
	for _, c := range a.Clients {
		limit(lab.Limit(c.People))
		until := a.Lasts
		if c.Until > 0 {
			until = c.Until
		}
		asked += c.Rate * (until - c.From).Seconds()
	}
	if asked > 0 {
		least = min(least, asked/500)
	}
	a.Scale = max(a.Scale, least)
	return a
}

// Every format that is read is written here, so that TestLabTruth reads it, and has its
// place in the table of docs/lab.md.
func TestLabWritesEveryFormat(t *testing.T) {
	page, err := os.ReadFile("../../docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Formats\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, format := range accesslog.Formats() {
		if !slices.Contains(lab.Formats(), format) {
			t.Errorf("%s is read and not written by the lab", format)
		}
		equals := ""
		for row := range strings.Lines(section) {
			if cells := strings.Split(row, "|"); len(cells) == 5 && strings.Contains(cells[1], "`"+format+"`") {
				equals = strings.TrimSpace(cells[3])
			}
		}
		if (equals == "the truth") != (lab.Without(format) == nil) || equals == "" {
			t.Errorf("docs/lab.md says that the audit of %s equals %q, and it lacks %q", format, equals, lab.Without(format))
		}
	}
}

// What a format lacks the report says, and no count in its place: the share of records
// that would have shown a departure, and the share that could be attributed. What is
// left is no more than what happened.
func TestLabShowsNoMore(t *testing.T) {
	f, err := lab.Parse("lies.yaml", []byte(lyingScenario))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Arm("")
	a.Scale = 1.5 // two of three slots
	for _, format := range lab.Formats() {
		if lab.Without(format) == nil {
			continue
		}
		t.Run(format, func(t *testing.T) {
			r, err := playArm(t.Context(), labProgram(), &a, format, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range r.wrong {
				t.Error(w)
			}
			m, shown, truth := &r.report.Total, r.truth.Shown.Total, r.truth.Total
			visible, _ := m.Responses.Visibility.Value()
			if departed := float64(truth.Responses.Disconnected) / float64(truth.Arrivals); format != "haproxy" && visible > departed {
				t.Errorf("%v of the records are said to be able to show a departure, and %v show one", visible, departed)
			}
			for what, n := range map[string][2]uint64{
				"verified": {shown.Verified, truth.Verified}, "claimed": {shown.Claimed, truth.Claimed}, "questions": {shown.Questions, truth.Questions},
				"disconnected": {shown.Responses.Disconnected, truth.Responses.Disconnected}, "before": {shown.Responses.Before, truth.Responses.Before},
				"success": {shown.Responses.Success, truth.Responses.Success}, "asked to wait": {shown.RetryAfter.Asked, truth.RetryAfter.Asked},
			} {
				if n[0] > n[1] {
					t.Errorf("%s: %d are said to be shown, of %d", what, n[0], n[1])
				}
			}
			if shown.Verified > 0 {
				return
			}
			if x, ok := m.Coverage.Value(); !ok || x != 0 {
				t.Errorf("coverage %v, want 0", m.Coverage)
			}
			_, amplified := m.Amplification.Value()
			if _, hops := m.Hops.Adjacent.Value(); amplified || hops || m.RetryAfter != nil {
				t.Errorf("amplification %v, hops %v, Retry-After %v of a log without a header", m.Amplification, m.Hops, m.RetryAfter)
			}
		})
	}
}

// lyingScenario has something of everything that is counted.
const lyingScenario = `
name: lies
lasts: 30s
drain: 20s
network: 1ms
clients:
  a: {route: x, rate: 100, spacing: random, deadline: 300ms, attempt_budget: 4}
  b: {route: y, rate: 30, key: x-request-id}
  c: {route: y, rate: 10, key: none}
  d: {route: z, rate: 20, deadline: 300ms, originator: a}
  e: {route: v, rate: 20, attempt_budget: 2}
  f: {route: z, rate: 20, key: x-request-id}
layers:
  app: {attempts: 3, timeout: 150ms, backoff: {base: 20ms}, attempt_budget: forward}
  bff: {attempts: 2, timeout: 90ms, attempt_budget: decrement}
  mesh: {attempts: 2, timeout: 90ms, key: remint}
  lax: {attempts: 4, timeout: 90ms, attempt_budget: forward}
targets:
  t: {slots: 3, queue: 30, service: 20ms, jitter: 0.9, errors: 0.1, sending: 8ms, refusal: {retry_after: 1s}}
  u: {slots: 3, queue: 10, service: 20ms, logs: departures, slow: {share: 0.2, takes: 200ms}}
routes:
  x: {method: POST, path: /x/, through: [app, bff], target: t}
  y: {path: /y/, through: [app, bff], target: u}
  z: {path: /z/, through: [mesh], target: u}
  v: {path: /v/, through: [lax], target: t}
`

// TestLabSeesLies: a comparison that overlooks a count proves nothing of it. Every
// count of the truth is made wrong, one at a time.
func TestLabSeesLies(t *testing.T) {
	f, err := lab.Parse("lies.yaml", []byte(lyingScenario))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Arm("")
	r, err := playArm(t.Context(), labProgram(), &a, "json", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.wrong {
		t.Error(w)
	}
	truth, err := asObject(r.truth)
	if err != nil {
		t.Fatal(err)
	}
	report, err := asObject(r.report)
	if err != nil {
		t.Fatal(err)
	}
	lies, zeros := 0, []string{}
	var lie func(path string, v any)
	lie = func(path string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			list, _ := v.([]any)
			for i, x := range list {
				lie(fmt.Sprintf("%s[%d]", path, i), x)
			}
			return
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			n, ok := m[k].(json.Number)
			if !ok {
				lie(path+"."+k, m[k])
				continue
			}
			if x, _ := n.Float64(); x == 0 && strings.HasPrefix(path, "total") {
				zeros = append(zeros, path+"."+k)
			}
			x, _ := n.Float64()
			m[k] = json.Number(fmt.Sprint(x + 1))
			lies++
			if len(untrueObjects(truth, report)) == 0 {
				t.Errorf("%s.%s: %v is said to be %v, and nobody notices", path, k, n, m[k])
			}
			m[k] = n
		}
	}
	lie("total", truth["total"])
	lie("targets", truth["targets"])
	if lies < 200 {
		t.Errorf("only %d counts were made wrong", lies)
	}
	if len(zeros) > 0 {
		t.Errorf("nothing in the scenario happens of %v", zeros)
	}
	if wrong := untrueObjects(truth, report); len(wrong) != 0 {
		t.Errorf("the lies were not taken back: %v", wrong)
	}
}

// TestLabSeesChangedLogs: a log that says something else than what happened is found.
func TestLabSeesChangedLogs(t *testing.T) {
	f, err := lab.Parse("lies.yaml", []byte(lyingScenario))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Arm("")
	dir := t.TempDir()
	p := labProgram()
	r, err := playArm(t.Context(), p, &a, "json", dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "access.log")
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(log, []byte("\n")), []byte("\n"))
	replaced := func(old, new string) func() []byte {
		return func() []byte { return bytes.Replace(log, []byte(old), []byte(new), 1) }
	}
	for what, change := range map[string]func() []byte{
		"a line less":        func() []byte { return bytes.Join(lines[1:], nil) },
		"a status":           replaced(`"status":500`, `"status":200`),
		"a departure":        replaced(`"client_gone":true,"departure":"undelivered_answer"`, `"client_gone":false`),
		"a key":              replaced(`"question_key":"qk1.a.lab.`, `"question_key":"qk1.a.lab.a`),
		"an attempt":         replaced(`"attempt":2`, `"attempt":1`),
		"a peer":             replaced(`"peer":"10.77.0.2"`, `"peer":"10.77.0.3"`),
		"an attempts_left":   replaced(`"attempts_left":2`, `"attempts_left":9`),
		"a Retry-After less": replaced(`"retry_after":1`, `"retry_after":null`),
	} {
		text := change()
		if bytes.Equal(text, log) {
			t.Errorf("%s: there is none in the log", what)
			continue
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := auditLab(t.Context(), p, filepath.Join(dir, "auditor.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if wrong, err := untrue(r.truth, report); err != nil || len(wrong) == 0 {
			t.Errorf("%s was changed in the log, and the audit is said to be true (%v)", what, err)
		}
	}
}

// audited is an arm of a shipped scenario, played and audited.
func audited(t *testing.T, scenario, arm string) *labResult {
	t.Helper()
	f, err := labScenario(scenario)
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Arm(arm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := playArm(t.Context(), labProgram(), &a, "json", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What docs/lab.md says that the audit of nine arrivals for one question shows.
func TestLabNineForOne(t *testing.T) {
	for arm, want := range map[string]string{
		"forwarded":         "amplification 9, coverage 1, verified 9000, adjacent 1, above 9, strict 9 to 9",
		"claimed":           "amplification 9, coverage 1, verified 0, adjacent 1, above 9, strict 1 to unbounded",
		"re-minted":         "amplification null, coverage 0, verified 0, adjacent 1, above null, strict 1 to unbounded",
		"re-minted-claimed": "amplification 1, coverage 1, verified 0, adjacent 1, above 1, strict 1 to unbounded",
		"dropped":           "amplification null, coverage 0, verified 0, adjacent 1, above null, strict 1 to unbounded",
	} {
		r := audited(t, "nine-for-one", arm)
		m := &r.report.Total
		figure := func(v json.Marshaler) string {
			text, err := v.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Trim(string(text), `"`)
		}
		got := fmt.Sprintf("amplification %s, coverage %s, verified %d, adjacent %s, above %s, strict %s to %s", figure(m.Amplification), figure(m.Coverage), m.Verified,
			figure(m.Hops.Adjacent), figure(m.Hops.Above), figure(m.StrictLow), figure(m.StrictHigh))
		if got != want {
			t.Errorf("%s: the audit says\n  %s, want\n  %s", arm, got, want)
		}
	}
}

// A model that calls a tool for ten items under one key is fan-out in the audit.
func TestLabFanOut(t *testing.T) {
	m := &audited(t, "billing", "tool-calls").report.Total
	if x, _ := m.Amplification.Value(); m.FanOut.Max == nil || *m.FanOut.Max != 10 || *m.FanOut.P50 != 10 || x != 1 {
		t.Errorf("fan-out %v, amplification %v; want 10 and 1", m.FanOut, x)
	}
}

// What an interrupted run leaves is of that run alone.
func TestLabInterrupted(t *testing.T) {
	dir := t.TempDir()
	if status, err := labCommand(t.Context(), labProgram(), []string{"run", "--out", dir, "nine-for-one"}); status != exitOK || err != nil {
		t.Fatal(status, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := labCommand(ctx, labProgram(), []string{"run", "--out", dir, "work-for-nobody"})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "is not whole") {
		t.Errorf("an interrupted run says %v", err)
	}
	for _, name := range []string{"truth.json", "report.json", "auditor.yaml", "chart.svg"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of the run before is there: %v", name, err)
		}
	}
}
