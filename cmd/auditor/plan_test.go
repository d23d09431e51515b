package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/config"
)

// planned are the figures of examples/plan, to the digit, as JSON prints them.
var planned = map[string]struct {
	exit  int
	wants string // what the JSON holds
	finds string // the findings, in order
}{
	"on-sale.yaml":           {3, `"worst_case":27, "worst_per_second":1080, "wait_seconds":54, "beyond_deadline":true, "layers.0.wait_seconds":54, "layers.1.wait_seconds":18, "layers.2.wait_seconds":6, "deadline_seconds":20, "owners":["browser","gateway","mesh"]`, "not_chosen several_owners beyond_deadline ignores_retry_after"},
	"on-sale-one-owner.yaml": {0, `"worst_case":2, "worst_per_second":80, "wait_seconds":4.5, "beyond_deadline":false, "owners":["gateway"]`, ""},
	"on-sale-budget.yaml":    {0, `"worst_case":1.1, "worst_per_second":44, "owners":["gateway"]`, ""},
	"two-each.yaml":          {3, `"worst_case":8`, "not_chosen several_owners ignores_retry_after"},
	"busy-hour.yaml":         {3, `"worst_case":27, "worst_per_second":4860000, "capacity_per_second":200000, "affordable":1.1111111111111112, "above_capacity":true`, "not_chosen several_owners chosen_above_affordable above_capacity ignores_retry_after"},
	"busy-hour-budgets.yaml": {3, `"worst_case":1.728, "worst_per_second":311040, "affordable":1.1111111111111112, "above_capacity":true`, "not_chosen several_owners chosen_above_affordable above_capacity ignores_retry_after"},
	"envoy-hops.yaml":        {3, `"worst_case":1.953125, "layers.0.budget_of":"all"`, "not_chosen several_owners ignores_retry_after"},
	"four-tries.yaml":        {3, `"worst_case":64`, "not_chosen several_owners ignores_retry_after"},
	"five-deep.yaml":         {3, `"worst_case":243`, "not_chosen several_owners ignores_retry_after"},
	"one-stopped.yaml":       {3, `"worst_case":9, "owners":["client","gateway"]`, "not_chosen several_owners ignores_retry_after"},
	"queue.yaml":             {0, `"worst_case":1, "answer_seconds":0.12, "caller_timeout_seconds":0.1, "answers_too_late":true, "owners":[]`, "answers_too_late"},
	"fast-failure.yaml":      {0, `"worst_case":2, "no_budget_needed":true, "answer_seconds":0.006`, "no_budget_needed"},
}

func TestExamplePlans(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "plan", "*.yaml"))
	if err != nil || len(files) != len(planned) {
		t.Fatalf("%d plans, of which %d are known: %v", len(files), len(planned), err)
	}
	for _, file := range files {
		want, ok := planned[filepath.Base(file)]
		if !ok {
			t.Errorf("%s: its figures are not known", file)
			continue
		}
		var stdout, stderr bytes.Buffer
		p := &program{stdout: &stdout, stderr: &stderr, getenv: os.LookupEnv, now: time.Now}
		if code := run(context.Background(), p, []string{"plan", "--output", "json", file}); code != want.exit {
			t.Errorf("%s: exit status %d, want %d: %s", file, code, want.exit, &stderr)
		}
		var got map[string]any
		if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var wants map[string]json.RawMessage
		if err := json.Unmarshal([]byte("{"+want.wants+"}"), &wants); err != nil {
			t.Fatal(err)
		}
		wants["schema"] = json.RawMessage(`"auditor.plan/1"`)
		for path, value := range wants {
			var steps []any
			for step := range strings.SplitSeq(path, ".") {
				if step[0] >= '0' && step[0] <= '9' {
					steps = append(steps, int(step[0]-'0'))
				} else {
					steps = append(steps, step)
				}
			}
			text, _ := json.Marshal(dig(got, steps...))
			if string(text) != string(value) {
				t.Errorf("%s: %s is %s, want %s", file, path, text, value)
			}
		}
		var plan budget.Plan
		if err := json.Unmarshal(stdout.Bytes(), &plan); err != nil {
			t.Fatal(err)
		}
		var finds []string
		for _, f := range plan.Findings {
			finds = append(finds, string(f.Code))
		}
		if got := strings.Join(finds, " "); got != want.finds {
			t.Errorf("%s: finds %q, want %q", file, got, want.finds)
		}
	}
}

// The page defines what a plan holds, and the policy that it shows is one.
func TestPlanPage(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "plan.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```\n")
	declared, err := config.ParsePlan(file, []byte(text), os.LookupEnv)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	plan := policy(declared).Plan()
	given := map[string]bool{}
	fieldNames(reflect.TypeFor[budget.Plan](), "", func(name string) {
		if !strings.HasPrefix(name, "layers.") && !strings.HasPrefix(name, "findings.") {
			given[name] = true
		}
	})
	for _, name := range []string{"layers[].factor", "layers[].arrivals", "layers[].wait_seconds"} {
		given[name] = true
	}
	for name := range given {
		// What is declared is defined with the configuration's keys.
		name = strings.TrimSuffix(name, "_seconds")
		if !strings.Contains(string(page), "`"+name) && !strings.Contains(text, name+":") {
			t.Errorf("%s does not define %s", file, name)
		}
	}
	if len(given) < 20 || len(plan.Findings) == 0 {
		t.Errorf("%d fields, %d findings", len(given), len(plan.Findings))
	}
	for _, code := range findingCodes(t) {
		if !strings.Contains(string(page), "| `"+code+"` |") {
			t.Errorf("%s does not define the finding %s", file, code)
		}
	}
}

// findingCodes are those that the API documents.
func findingCodes(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, code := range dig(doc, "components", "schemas", "Finding", "properties", "code", "enum").([]any) {
		out = append(out, code.(string))
	}
	return out
}

// Whatever a file holds, it is refused or has a plan whose figures can be written.
func FuzzPlan(f *testing.F) {
	for _, file := range []string{"on-sale.yaml", "busy-hour-budgets.yaml", "envoy-hops.yaml", "queue.yaml", "fast-failure.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", "plan", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("declared: {queue: 9000000000000000000, drain_per_second: 1e-6, layers: [{name: a, budget: 0.999, budget_of: all}]}"))
	f.Add([]byte(" "))
	f.Fuzz(func(t *testing.T, text []byte) {
		declared, err := config.ParsePlan("a.yaml", text, nil)
		if err != nil {
			return
		}
		plan := policy(declared).Plan()
		if _, err := json.Marshal(plan); err != nil {
			t.Fatal(err)
		}
		if err := writePlan(io.Discard, plan); err != nil {
			t.Fatal(err)
		}
		if plan.WorstCase != nil && *plan.WorstCase < 1 {
			t.Errorf("%v arrivals for a question", *plan.WorstCase)
		}
	})
}

// A figure that is not 0 is not printed as 0, and those that are not small look as
// they did.
func TestSmallFigures(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 27: "27", 4.86e6: "4,860,000", 10.0 / 9: "1.111", 0.25: "0.25", 0.0123: "0.012", 0.0095: "0.0095", 0.00999: "0.01", 4e-4: "0.0004",
		1.23e-5: "0.000012", 1e-6: "0.000001", 1e-21: "0.000000000000000000001", 1.26e-9: "0.0000000013", 1e15: "1e+15",
	} {
		if got := decimals(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{3e-7: "0.0003 ms", 0.0005: "0.5 ms", 0: "0 ms", 4.5: "4.5 s"} {
		if got := inTime(v); got != want {
			t.Errorf("%v s: %q, want %q", v, got, want)
		}
	}
}
