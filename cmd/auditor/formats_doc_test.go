package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

func formatsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// docBlock is the first block of a language in docs/formats.md.
func docBlock(t *testing.T, language string) string {
	t.Helper()
	_, rest, ok := strings.Cut(formatsPage(t), "\n```"+language+"\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !ok || !closed {
		t.Fatalf("docs/formats.md has no %s block", language)
	}
	return block
}

// docRecord is what must be read from a line of a documented format.
type docRecord struct {
	Start       *string `json:"ts_start"`
	Duration    *float64
	Method      *string
	Path        *string
	Authority   *string
	Peer        *string
	Status      *int
	Attempt     *int
	RetryAfter  *float64 `json:"retry_after_ms"`
	Key         *struct{ Value string }
	Tries       []struct{ Status *int }
	Visible     bool
	Class       string
	ArrivalID   *string `json:"arrival_id"`
	RequestID   *string `json:"request_id"`
	Deadline    *string
	Uncertainty float64 `json:"ts_uncertainty_ms"`
}

func explainDocLine(t *testing.T, format, line string) docRecord {
	t.Helper()
	code, stdout, stderr := runAuditor(t, line+"\n", "explain", "--format", format, "--output", "json")
	var r docRecord
	if code != exitOK {
		t.Fatalf("a line as documented cannot be read: %s\n%s", stderr, line)
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDocumentedNginxFormat fills the documented log_format as nginx would, and
// wants everything that the page promises of it.
func TestDocumentedNginxFormat(t *testing.T) {
	values := map[string]string{
		"msec": "1772532942.250", "request_time": "0.250", "remote_addr": "192.0.2.1", "request_method": "GET",
		"request_uri": "/seats/7?x=1", "host": "seats.example", "status": "200", "bytes_sent": "3124",
		"body_bytes_sent": "3000", "request_completion": "", "upstream_addr": "10.0.0.1:80, 10.0.0.2:80",
		"upstream_status": "504, 200", "upstream_response_time": "0.100, 0.150", "http_question_key": "q-1",
		"http_x_envoy_attempt_count": "2", "sent_http_retry_after": "3", "request_id": "0c0d1e2f30415263748596a7b8c9daeb",
		"http_user_agent": `say \"hi\"`,
	}
	var line strings.Builder
	for _, part := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(docBlock(t, "nginx"), -1) {
		line.WriteString(part[1])
	}
	filled := regexp.MustCompile(`\$[a-z_]+`).ReplaceAllStringFunc(line.String(), func(v string) string {
		value, ok := values[v[1:]]
		if !ok {
			t.Fatalf("no value for %s", v)
		}
		return value
	})
	r := explainDocLine(t, "nginx-json", filled)
	wantShown(t, r, nil)
	switch {
	case r.Uncertainty != 1:
		t.Errorf("start to %v ms", r.Uncertainty)
	case len(r.Tries) != 2 || *r.Tries[0].Status != 504:
		t.Errorf("tries %v", r.Tries)
	case r.ArrivalID == nil || r.Authority == nil || r.Path == nil || *r.Path != "/seats/7?x=1":
		t.Errorf("%+v", r)
	}
	if r := explainDocLine(t, "auto", filled); r.Key == nil {
		t.Error("the format is not found out")
	}
}

// TestDocumentedNginxPairs does the same for what is appended to combined.
func TestDocumentedNginxPairs(t *testing.T) {
	const line = `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /seats/7 HTTP/1.1" 200 3000 "-" "reader/5" ` +
		`rt=0.250 completion="" key="q-1" msec=1772532942.250`
	r := explainDocLine(t, "nginx-combined", line)
	if r.Key == nil || r.Key.Value != "q-1" || !r.Visible || r.Class != "during_response" || r.Uncertainty != 1 || *r.Start != "2026-03-03T10:15:42.000Z" {
		t.Errorf("%+v", r)
	}
}

// TestDocumentedEnvoyFormat fills the documented json_format as Envoy would.
func TestDocumentedEnvoyFormat(t *testing.T) {
	values := map[string]any{
		"start_time": "2026-03-03T10:15:42.000Z", "method": "GET", "path": "/seats/7", "authority": "seats.example",
		"response_code": 200, "response_flags": "DC", "response_code_details": "via_upstream", "bytes_sent": 9, "duration": 250,
		"upstream_request_attempt_count": 2, "upstream_cluster": "inbound|8080||", "upstream_host": "10.0.0.1:80",
		"upstream_local_address": "10.0.0.9:1", "downstream_direct_remote_address": "192.0.2.1", "question_key": "q-1",
		"x_envoy_attempt_count": "2", "request_id": "6f9619ff-8b86-d011-b42d-00c04fc964ff", "retry_after": "3",
		"user_agent": "say \"hi\"", "access_log_type": "DownstreamEnd",
	}
	record := map[string]any{}
	for _, m := range regexp.MustCompile(`(?m)^    ([a-z_]+): "%`).FindAllStringSubmatch(docBlock(t, "yaml"), -1) {
		v, ok := values[m[1]]
		if !ok {
			t.Fatalf("no value for %s", m[1])
		}
		record[m[1]] = v
	}
	line, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"envoy-json", "istio-json", "auto"} {
		r := explainDocLine(t, format, string(line))
		wantShown(t, r, nil)
		if len(r.Tries) != 2 {
			t.Errorf("tries %v", r.Tries)
		}
	}
}

// docPattern is the pattern that the page configures for a format.
func docPattern(t *testing.T, format string) string {
	t.Helper()
	m := regexp.MustCompile(`    format: ` + format + `\n    pattern: '(.*)'\n`).FindStringSubmatch(formatsPage(t))
	if m == nil {
		t.Fatalf("docs/formats.md configures no %s", format)
	}
	return m[1]
}

// TestDocumentedPatterns reads a line by each documented pattern.
func TestDocumentedPatterns(t *testing.T) {
	if log := docPattern(t, "apache"); !strings.Contains(shipped(t, "apache.conf"), "\n"+log+"\n") {
		t.Errorf("examples/formats/apache.conf does not have %s", log)
	}
	const line = `2026-03-03T10:15:42.000Z 192.0.2.1 "GET /seats/7?x=\"1\" HTTP/1.1" 499 0 250.5 gone=true timeout=300m attempt=2 key=q-1`
	code, stdout, stderr := runAuditor(t, line+"\n", "explain", "--format", "pattern", "--pattern", docPattern(t, "pattern"), "--output", "json")
	if code != exitOK {
		t.Fatal(stderr)
	}
	var r explained
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	switch {
	case r.Key == nil || r.Key.Value != "q-1" || r.Source["question_key"] != "question_key":
		t.Errorf("key %v from %v", r.Key, r.Source)
	case r.Start == nil || *r.Start != "2026-03-03T10:15:42.000Z" || r.Duration == nil || *r.Duration != 250.5 || *r.Attempt != 2:
		t.Errorf("%+v", r)
	case r.Deadline == nil || *r.Deadline != "2026-03-03T10:15:42.300Z" || !r.Visible || r.Class != "before_response":
		t.Errorf("deadline %v, visible %v, class %s", r.Deadline, r.Visible, r.Class)
	}

	const w3c = "2026-03-03 10:15:42 10.0.0.5 GET /seats/7 - 443 - 192.0.2.9 Mozilla/5.0 - 200 0 64 1500 q-1 2"
	code, stdout, stderr = runAuditor(t, w3c+"\n", "explain", "--format", "iis", "--pattern", docPattern(t, "iis"), "--output", "json")
	if code != exitOK {
		t.Fatal(stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Key == nil || r.Key.Value != "q-1" || r.Attempt == nil || *r.Attempt != 2 || r.Class != "unknown_point" || r.Gone != "likely" {
		t.Errorf("%+v", r)
	}
}
