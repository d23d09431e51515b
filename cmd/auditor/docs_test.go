package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
)

// fieldNames adds the JSON names of a type's fields, with those of the objects
// inside it after a dot.
func fieldNames(t reflect.Type, prefix string, add func(string)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			fieldNames(f.Type, prefix, add)
		case tag != "" && tag != "-":
			add(prefix + tag)
			inner := prefix + tag + "."
			if t == reflect.TypeFor[aggregate.Report]() && tag != "input" || strings.HasSuffix(f.Type.String(), "Measure") {
				inner = "" // parts of a report are sections of the page
			}
			fieldNames(f.Type, inner, add)
		}
	}
}

// The page defines every field of a report, every reason and every state.
func TestDefinitionsAreComplete(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "definitions.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	want := func(name string) {
		if !seen[name] && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s does not define `%s`", file, name)
		}
		seen[name] = true
	}
	fieldNames(reflect.TypeFor[aggregate.Report](), "", want)
	if len(seen) < 100 {
		t.Errorf("only %d fields were found: the test does not see them", len(seen))
	}
	want("unattributable.total")
	for r := keys.Absent; int(r) < keys.NumReasons; r++ {
		want(r.String())
	}
	for _, s := range []budget.State{budget.OK, budget.Low, budget.Exhausted, budget.Blind} {
		want(string(s))
	}
	for _, r := range []accesslog.Reject{accesslog.RejectSyntax, accesslog.RejectCut, accesslog.RejectBinary, accesslog.RejectNoTime,
		accesslog.RejectBadTime, accesslog.RejectTooLong, accesslog.RejectDamaged, accesslog.RejectOther} {
		want(string(r))
	}
	for _, word := range []string{"future", "interim", "path", "user_agent", "peer", "outbound", "not_forwarded",
		"no_attempt_numbers", "one_attempt_or_rewritten", aggregate.Schema, "unbounded"} {
		want(word)
	}
}
