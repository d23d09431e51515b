package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// runAuditor runs the program in this process.
func runAuditor(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), &program{
		stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs,
		getenv: func(string) (string, bool) { return "", false },
		now:    func() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) },
	}, args)
	return code, out.String(), errs.String()
}

// handedCase is one file of lines that broke somebody's reader, in the layout
// that ingest/accesslog describes.
type handedCase struct {
	format string
	source []string // what a configuration must say of the source besides
	in     []string
	want   []map[string]any
	group  map[string]any
}

func readHandedCase(t *testing.T, name string) handedCase {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var c handedCase
	for line := range strings.Lines(string(data)) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var object map[string]any
		if word == "want" || word == "group" {
			if err := json.Unmarshal([]byte(rest), &object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		switch word {
		case "format":
			c.format = rest
		case "pattern":
			c.source = append(c.source, fmt.Sprintf("pattern: %q", rest))
		case "field":
			name, log, _ := strings.Cut(rest, "=")
			c.source = append(c.source, fmt.Sprintf("fields: {%s: %q}", name, log))
		case "in":
			c.in = append(c.in, rest)
		case "want":
			c.want = append(c.want, object)
		case "group":
			c.group = object
		case "about":
		default:
			t.Fatalf("%s: unknown word %q", name, word)
		}
	}
	return c
}

// TestHandedCases looks at the program as an outsider does: lines in, by
// --format alone where that says enough, and every expected member compared with
// what is printed.
func TestHandedCases(t *testing.T) {
	files, err := filepath.Glob("../../ingest/accesslog/testdata/cases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range files {
		c := readHandedCase(t, name)
		formats := []string{c.format}
		if c.format == "envoy-json" {
			formats = append(formats, "istio-json")
		}
		for _, format := range formats {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txt")+"/"+format, func(t *testing.T) {
				args := []string{"explain", "--format", format, "--output", "json"}
				if c.source != nil {
					name := filepath.Join(t.TempDir(), "auditor.yaml")
					text := fmt.Sprintf("sources:\n  - file: {paths: [x.log]}\n    format: %s\n    %s\n", format, strings.Join(c.source, "\n    "))
					if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					args = append(args, "--config", name)
				}
				code, stdout, stderr := runAuditor(t, strings.Join(c.in, "\n")+"\n", args...)
				if code != exitOK {
					t.Fatalf("exit status %d: %s", code, stderr)
				}
				var records, damaged, other []map[string]any
				for line := range strings.Lines(stdout) {
					var object map[string]any
					if err := json.Unmarshal([]byte(line), &object); err != nil {
						t.Fatal(err)
					}
					switch {
					case object["error"] != nil:
						damaged = append(damaged, object)
					case object["ignored"] != nil:
						other = append(other, object)
					default:
						records = append(records, object)
					}
				}
				if c.want != nil && len(records) != len(c.want) {
					t.Fatalf("got %d records, want %d:\n%s", len(records), len(c.want), stdout)
				}
				for i, want := range c.want {
					for _, field := range slices.Sorted(maps.Keys(want)) {
						compareExplained(t, fmt.Sprintf("record %d", i+1), field, records[i], want[field])
					}
				}
				compareGroupOf(t, c.group, records, damaged, other)
			})
		}
	}
}

func compareExplained(t *testing.T, where, field string, got map[string]any, want any) {
	t.Helper()
	have, known := got[field]
	if !known {
		t.Errorf("%s: there is no %s", where, field)
		return
	}
	if field == "notes" {
		for _, n := range want.([]any) {
			if !slices.Contains(have.([]any), n) {
				t.Errorf("%s: notes are %v, want %v among them", where, have, n)
			}
		}
		return
	}
	if h, ok := have.(float64); ok && field == "duration_ms" {
		if w, ok := want.(float64); ok && math.Abs(h-w) < 0.005 {
			return // hundredths are all that is written down
		}
	}
	// Members of objects that the case does not name are the program's own.
	if !contains(have, want) {
		h, _ := json.Marshal(have)
		w, _ := json.Marshal(want)
		t.Errorf("%s: %s is %s, want %s", where, field, h, w)
	}
}

// contains says that have is want, or, of objects, holds all its members.
func contains(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for name, w := range want {
			if v, ok := h[name]; !ok || !contains(v, w) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(want) {
			return false
		}
		for i := range want {
			if !contains(h[i], want[i]) {
				return false
			}
		}
		return true
	}
	return have == want
}

func compareGroupOf(t *testing.T, want map[string]any, records, damaged, other []map[string]any) {
	t.Helper()
	departed, lines := 0.0, map[any]bool{}
	var labels []any
	top := 0.0
	for _, r := range records {
		if g := r["gone"]; g == "yes" || g == "likely" {
			departed++
		}
		labels = append(labels, r["attempt"])
		if a, ok := r["attempt"].(float64); ok {
			top = max(top, a)
		}
		lines[r["line"]] = true
	}
	for field, w := range want {
		var have any
		switch field {
		case "arrivals", "requests":
			have = float64(len(records))
		case "departed":
			have = departed
		case "labels":
			have = labels
		case "max_label":
			have = top
		case "damaged":
			have = float64(len(damaged))
		case "group":
			have = records[0]["request_id"]
		case "other_lines": // the lines themselves are not shown
			w, have = float64(len(w.([]any))), float64(len(other))
		case "class_4xx", "class_5xx", "ratio_reported", "shipper_duplicates":
			continue // a report's
		default:
			t.Errorf("unknown member %q of group", field)
			continue
		}
		if !contains(have, w) {
			t.Errorf("%s is %v, want %v", field, have, w)
		}
	}
}

func TestExplainRequestIDMasked(t *testing.T) {
	for _, id := range []string{"6f9619ff-8b86-d011-b42d-00c04fc964ff", "6f9619ff-8b86-9011-b42d-00c04fc964ff"} {
		_, stdout, stderr := runAuditor(t, `{"time":"2026-03-03T10:15:42Z","status":200,"x_request_id":"`+id+`"}`, "explain", "--format", "json", "--output", "json")
		var got map[string]any
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatal(err, stderr)
		}
		if got["request_id"] != id || got["request_id_masked"] != "6f9619ff-8b86-_011-b42d-00c04fc964ff" {
			t.Errorf("got %v and %v", got["request_id"], got["request_id_masked"])
		}
		if got["key"] != nil {
			t.Errorf("an id that proxies mint is no key: %v", got["key"])
		}
	}
}

// TestExplainKey holds that a key is shown without its syntax, and that what is
// no whole key is none, whatever stands in the fields behind it.
func TestExplainKey(t *testing.T) {
	tests := []struct {
		name, members   string
		value, asLogged any
	}{
		{"plain", `"question_key":"q-1"`, "q-1", nil},
		{"structured field", `"question_key":"\"q-1\""`, "q-1", `"q-1"`},
		{"inner quotes", `"question_key":"q-\"1\""`, `q-"1"`, nil},
		{"the same twice", `"idempotency_key":"k, k"`, "k", "k, k"},
		{"two of them", `"idempotency_key":"k, l"`, nil, nil},
		{"never closed", `"idempotency_key":"\"k"`, nil, nil},
		{"cut off", `"question_key":"qk1.web.a.mjuohs3f.AAECAwQFBgcICQoL.aeXUVVFEFy4wOdge"`, nil, nil},
		{"a whole qk1", `"question_key":"qk1.web.a.mjuohs3f.AAECAwQFBgcICQoL.aeXUVVFEFy4wOdgeQAZjLw"`, "qk1.web.a.mjuohs3f.AAECAwQFBgcICQoL.aeXUVVFEFy4wOdgeQAZjLw", nil},
		{"empty", `"question_key":"","idempotency_key":"k"`, "k", nil},
		{"a dash", `"question_key":"-"`, nil, nil},
		{"a bad one does not fall through", `"question_key":"a, b","idempotency_key":"k"`, nil, nil},
		{"trace", `"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`, "4bf92f3577b34da6a3ce929d0e0e4736", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		{"composite", `"x_ms_client_request_id":"job7:1f2e:fs9::s1:RD:0"`, nil, nil},
		{"placeholder", `"idempotency_key":"[redacted]"`, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, stdout, stderr := runAuditor(t, `{"time":"2026-03-03T10:15:42Z","status":200,`+tt.members+`}`, "explain", "--format", "json", "--output", "json")
			var got struct{ Key map[string]any }
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatal(err, stderr)
			}
			if got.Key["value"] != tt.value || got.Key["as_logged"] != tt.asLogged {
				t.Errorf("got %v, want %v, as logged %v", got.Key, tt.value, tt.asLogged)
			}
		})
	}
}

// TestExplainNeverShowsUnreadLines: what cannot be read may hold anything.
func TestExplainNeverShowsUnreadLines(t *testing.T) {
	const log = "{\"time\":\"2026-03-03T10:15:42Z\",\"status\":200}\nnonsense with hunter2\n{\"time\":\"x-hunter2\",\"status\":200}\n{\"time\":\"2026-03-03T10:15:42Z\",\"path\":\"/hunter2"
	for _, output := range []string{"json", "text"} {
		code, stdout, stderr := runAuditor(t, log, "explain", "--format", "json", "--output", output)
		if code != exitOK {
			t.Errorf("%s: exit status %d, want 0: one record was read", output, code)
		}
		if strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%s shows a line that could not be read:\n%s%s", output, stdout, stderr)
		}
		if !strings.Contains(stderr, "1 records read, 3 could not be read") {
			t.Errorf("%s: stderr is %q", output, stderr)
		}
	}
	if code, _, _ := runAuditor(t, "nonsense\n", "explain", "--format", "json"); code != exitFailed {
		t.Errorf("nothing could be read: exit status %d, want 1", code)
	}
}

// TestExplainPlaces holds that lines and bytes are counted over blank lines,
// carriage returns and split lines, and that split lines are placed where they
// begin.
func TestExplainPlaces(t *testing.T) {
	log := strings.Join([]string{
		`2026-03-03T10:15:44.000000001Z stdout F {"t":"2026-03-03T10:15:43Z","st":200}` + "\r",
		``,
		`2026-03-03T10:15:44.000000001Z stdout P {"t":"2026-03-03T10:15:43Z","st`,
		`2026-03-03T10:15:44.000000002Z stderr P {"t":"2026-03-03T10:15:4`,
		`2026-03-03T10:15:44.000000003Z stdout F ":200}`,
		`2026-03-03T10:15:44.000000004Z stderr F 3Z","st":201}`,
		`2026-03-03T10:15:44.000000004Z stdout P {"t":`,
	}, "\n")
	_, stdout, stderr := runAuditor(t, log, "explain", "--format", "json", "--output", "json")
	type place struct {
		Line, Offset, Parts, Status int
		Error                       string
	}
	var got []place
	for line := range strings.Lines(stdout) {
		var p place
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	at := func(n int) int { return len(strings.Join(strings.SplitAfter(log, "\n")[:n-1], "")) }
	want := []place{{1, 0, 1, 200, ""}, {3, at(3), 2, 200, ""}, {4, at(4), 2, 201, ""}, {7, at(7), 0, 0, "cut_short"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v\n%s", got, want, stderr)
	}
}
