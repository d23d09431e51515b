package api

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// within says where an example is not a part of an answer; empty if it is.
func within(at string, example, answer any) string {
	switch e := example.(type) {
	case map[string]any:
		a, ok := answer.(map[string]any)
		if !ok {
			return at
		}
		for key, v := range e {
			got, ok := a[key]
			if !ok {
				return at + "." + key
			}
			if where := within(at+"."+key, v, got); where != "" {
				return where
			}
		}
		return ""
	case []any:
		a, ok := answer.([]any)
		if !ok || len(a) < len(e) {
			return at
		}
		for i := range e {
			if where := within(fmt.Sprintf("%s[%d]", at, i), e[i], a[i]); where != "" {
				return where
			}
		}
		return ""
	}
	if !reflect.DeepEqual(example, answer) {
		return fmt.Sprintf("%s is %v", at, answer)
	}
	return ""
}

// Each example of the page is what the API answers.
func TestDocumentedExamples(t *testing.T) {
	s := newServer(t, newFake(), Options{})
	examples := regexp.MustCompile("(?s)\n    GET (\\S+)\n\n```json\n(.*?)\n```").FindAllStringSubmatch(page(t), -1)
	if len(examples) < 9 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, x := range examples {
		var example any
		if err := json.Unmarshal([]byte(x[2]), &example); err != nil {
			t.Errorf("%s: %v", x[1], err)
			continue
		}
		if where := within("", example, any(object(t, ask(s, "GET", x[1]).Body))); where != "" {
			t.Errorf("%s: %s", x[1], where)
		}
	}
}

// The table of metrics is the contract, and every route is on the page.
func TestDocumentedMetricsAndRoutes(t *testing.T) {
	text := page(t)
	found := map[string]string{}
	for _, x := range regexp.MustCompile("(?m)^\\| `(auditor_\\w+)` \\| (\\w+) \\| (.*?) ?\\|").FindAllStringSubmatch(text, -1) {
		labels := regexp.MustCompile(`\w+`).FindAllString(x[3], -1)
		slices.Sort(labels)
		found[x[1]] = x[2] + " " + strings.Join(labels, ",")
	}
	if !reflect.DeepEqual(found, contract) {
		for name, is := range contract {
			if found[name] != is {
				t.Errorf("%s is %q, documented %q", name, is, found[name])
			}
		}
		for name := range found {
			if contract[name] == "" {
				t.Errorf("%s is documented only", name)
			}
		}
	}
	for _, path := range keysOf(document(t)["paths"]) {
		if !strings.Contains(text, "`"+path+"`") {
			t.Errorf("%s is not on the page", path)
		}
	}
}
