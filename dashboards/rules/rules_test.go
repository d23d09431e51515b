// Package rules_test holds the rules for Prometheus to what they promise: they load,
// each alert fires in its scenario and is silent in another, has a page that says what
// to do, and asks only for metrics that there are.
package rules_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	rulesFile = "auditor.rules.yaml"
	testFile  = "auditor.rules.test.yaml"
)

type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func rules(t *testing.T) (all []rule) {
	var f struct{ Groups []struct{ Rules []rule } }
	read(t, rulesFile, &f)
	for _, g := range f.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func TestPromtoolLoadsAndTestsTheRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("promtool is not installed: it is in Debian's package prometheus")
		}
		t.Skip("promtool is not installed: it is in Debian's package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", rulesFile}, {"test", "rules", testFile}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestEachAlertFiresAndIsSilent(t *testing.T) {
	var f struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string
				ExpAlerts []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	read(t, testFile, &f)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, x := range f.Tests {
		for _, a := range x.AlertRuleTest {
			if len(a.ExpAlerts) > 0 {
				fires[a.Alertname] = true
			} else {
				silent[a.Alertname] = true
			}
		}
	}
	for _, r := range rules(t) {
		if r.Alert != "" && (!fires[r.Alert] || !silent[r.Alert]) {
			t.Errorf("%s: a test in which it fires: %v, in which it is silent: %v", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}

func TestEachAlertHasItsPage(t *testing.T) {
	pages := filepath.Join("..", "..", "docs", "operations")
	index, err := os.ReadFile(filepath.Join(pages, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		known[r.Alert+".md"] = true
		if want := "https://github.com/targetside/auditor/blob/main/docs/operations/" + r.Alert + ".md"; r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
		if row := "| [" + r.Alert + "](" + r.Alert + ".md) | " + r.Labels["severity"] + " |"; !strings.Contains(string(index), row) {
			t.Errorf("the index of operations has no row %q", row)
		}
		page, err := os.ReadFile(filepath.Join(pages, r.Alert+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		at := 0
		for _, part := range []string{"# " + r.Alert, "## What it means", "## Look first", "## What to do", "## How it can be wrong"} {
			i := strings.Index(string(page[at:]), part+"\n\n")
			if i < 0 {
				t.Errorf("%s.md has no %q in its place", r.Alert, part)
				continue
			}
			at += i
		}
	}
	files, err := filepath.Glob(filepath.Join(pages, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	known["README.md"], known["grafana.md"], known["lead-time.md"] = true, true, true
	for _, f := range files {
		if name := filepath.Base(f); !known[name] {
			t.Errorf("%s is the page of no alert", name)
		}
	}
}

// What is asked for has to be among the metrics that docs/api.md lists; that these are
// what /metrics says, the api package tests.
func TestRulesAskForMetricsThatThereAre(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(auditor_[a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		there[m[1]] = true
	}
	all := rules(t)
	for _, r := range all {
		if r.Record != "" {
			there[r.Record] = true
		}
	}
	asked := 0
	for _, r := range all {
		for _, name := range regexp.MustCompile(`auditor[_:][a-z_:0-9]+`).FindAllString(r.Expr, -1) {
			if asked++; !there[name] {
				t.Errorf("%s%s asks for %s, which nobody exports", r.Alert, r.Record, name)
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d metrics were found in the rules", asked)
	}
}
