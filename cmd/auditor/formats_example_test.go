package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// shipped is one of the files in examples/formats, which docs/formats.md shows.
func shipped(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "formats", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// example is a file in examples/formats without its comments.
func example(t *testing.T, name string) string {
	t.Helper()
	return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(shipped(t, name), "")
}

// What the page shows is what lies in examples/formats, and what the tests run.
func TestDocumentedExamples(t *testing.T) {
	page := formatsPage(t)
	for _, text := range []string{example(t, "caddy.Caddyfile"), example(t, "traefik.yaml"), shipped(t, "haproxy.cfg"), shipped(t, "apache.conf")} {
		if !strings.Contains(page, "\n"+text+"```\n") {
			t.Errorf("docs/formats.md does not show what is in examples/formats:\n%s", text)
		}
	}
	files, err := os.ReadDir("../../examples/formats")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.Contains(page, f.Name()) {
			t.Errorf("docs/formats.md does not name examples/formats/%s", f.Name())
		}
	}
}

// wantShown checks that a record of a documented configuration shows what the page
// promises of it; deadline is nil where there is none.
func wantShown(t *testing.T, r docRecord, deadline any) {
	t.Helper()
	switch {
	case r.Start == nil || *r.Start != "2026-03-03T10:15:42.000Z":
		t.Errorf("start %v", r.Start)
	case r.Key == nil || r.Key.Value != "q-1":
		t.Errorf("key %v", r.Key)
	case r.Attempt == nil || *r.Attempt != 2:
		t.Errorf("attempt %v", r.Attempt)
	case deref(r.Deadline) != deadline:
		t.Errorf("deadline %v", deref(r.Deadline))
	case r.RetryAfter == nil || *r.RetryAfter != 3000:
		t.Errorf("retry after %v", r.RetryAfter)
	case !r.Visible || r.Class != "during_response":
		t.Errorf("visible %v, %s", r.Visible, r.Class)
	case r.Peer == nil || r.RequestID == nil:
		t.Errorf("%+v", r)
	}
}

// TestTraefikExample logs what the shipped configuration keeps, and nothing else,
// of a request whose answer was cut off.
func TestTraefikExample(t *testing.T) {
	record := map[string]any{"ClientHost": "10.0.0.9", "StartUTC": "2026-03-03T10:15:42Z", "Duration": 12000000, "RequestMethod": "GET",
		"RequestPath": "/a", "DownstreamStatus": 503, "DownstreamContentSize": 10, "OriginStatus": 503}
	request := map[string]string{"Question-Key": "q-1", "Idempotency-Key": "q-2", "X-Request-Id": "6f9619ff-8b86-d011-b42d-00c04fc964ff",
		"X-Envoy-Attempt-Count": "2", "Grpc-Timeout": "2S", "User-Agent": "a/1"}
	answer := map[string]string{"Content-Length": "20", "Content-Type": "text/plain", "Retry-After": "3"}
	kept := regexp.MustCompile(`(?m)^ +([A-Z][A-Za-z-]+): keep$`).FindAllStringSubmatch(example(t, "traefik.yaml"), -1)
	for _, m := range kept {
		switch v, ok := request[m[1]]; {
		case ok:
			record["request_"+m[1]] = v
		case answer[m[1]] != "":
			record["downstream_"+m[1]], record["origin_"+m[1]] = answer[m[1]], answer[m[1]]
		default:
			t.Errorf("what is %s kept for?", m[1])
		}
	}
	line, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	wantShown(t, explainDocLine(t, "traefik-json", string(line)), "2026-03-03T10:15:44.000Z")
	wantShown(t, explainDocLine(t, "auto", string(line)), "2026-03-03T10:15:44.000Z")
}

// TestIstioExample fills the shipped line as Envoy would.
func TestIstioExample(t *testing.T) {
	values := map[string]any{
		"%START_TIME%": "2026-03-03T10:15:42.000Z", "%REQ(:METHOD)%": "GET", "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%": "/a",
		"%REQ(:AUTHORITY)%": "h", "%RESPONSE_CODE%": 503, "%RESPONSE_FLAGS%": "DC", "%RESPONSE_CODE_DETAILS%": "downstream_remote_disconnect",
		"%BYTES_SENT%": 10, "%DURATION%": 12, "%UPSTREAM_CLUSTER%": "inbound|80||", "%UPSTREAM_HOST%": "10.0.3.21:80",
		"%UPSTREAM_LOCAL_ADDRESS%": "127.0.0.6:1", "%UPSTREAM_REQUEST_ATTEMPT_COUNT%": 1, "%DOWNSTREAM_PEER_URI_SAN%": "spiffe://a",
		"%REQ(QUESTION-KEY)%": "q-1", "%REQ(X-ENVOY-ATTEMPT-COUNT)%": "2", "%REQ(GRPC-TIMEOUT)%": "2S",
		"%REQ(X-REQUEST-ID)%": "6f9619ff-8b86-d011-b42d-00c04fc964ff", "%RESP(RETRY-AFTER)%": "3", "%REQ(USER-AGENT)%": "a/1",
	}
	_, object, ok := strings.Cut(example(t, "istio.yaml"), "accessLogFormat: |\n")
	if !ok {
		t.Fatal("the example has no accessLogFormat")
	}
	var members map[string]string
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		t.Fatal(err)
	}
	record := map[string]any{}
	for name, operator := range members {
		if record[name], ok = values[operator]; !ok {
			t.Errorf("no value for %s", operator)
		}
	}
	line, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"istio-json", "auto"} {
		wantShown(t, explainDocLine(t, format, string(line)), "2026-03-03T10:15:44.000Z")
	}
}

// TestOTelExample holds the shipped collector to what its comments say, and counts
// what it would write: every served span of a line is an arrival of its own.
func TestOTelExample(t *testing.T) {
	var c struct {
		Processors map[string]struct{ Traces struct{ Span []string } }
		Exporters  map[string]struct{ Traces struct{ Encoding string } }
		Service    struct {
			Pipelines map[string]struct{ Receivers, Processors, Exporters []string }
		}
	}
	text := example(t, "otel-collector.yaml")
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if c.Exporters["kafka"].Traces.Encoding != "otlp_json" || len(c.Processors["filter/served"].Traces.Span) == 0 || len(c.Service.Pipelines["traces"].Exporters) == 0 {
		t.Errorf("the collector does not write served spans as otlp_json: %+v", c)
	}

	span := func(id int, service, key string) string {
		return fmt.Sprintf(`{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}}]},"scopeSpans":[{"scope":{},"spans":[`, service) +
			fmt.Sprintf(`{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"%016x","kind":2,"startTimeUnixNano":"17725329421%08d","endTimeUnixNano":"17725329422%08d","attributes":[`, id, id, id) +
			`{"key":"http.request.method","value":{"stringValue":"GET"}},{"key":"url.path","value":{"stringValue":"/a"}},{"key":"http.response.status_code","value":{"intValue":"200"}},` +
			fmt.Sprintf(`{"key":"http.request.header.idempotency-key","value":{"arrayValue":{"values":[{"stringValue":%q}]}}}]},{"spanId":"%016x","kind":3,"attributes":[]}]}]}`, key, id+1000)
	}
	line := func(spans ...string) string { return `{"resourceSpans":[` + strings.Join(spans, ",") + "]}\n" }
	dir := t.TempDir()
	log, config := filepath.Join(dir, "spans.json"), filepath.Join(dir, "auditor.yaml")
	first := line(span(1, "seats", "k-1"), span(2, "seats", "k-1"), span(3, "prices", "k-1"))
	writeIn(t, log, first+line(span(4, "seats", "k-2"))+line(span(1, "seats", "k-1"))) // the last is shipped again
	writeIn(t, config, "dependency: {field: service.name}\nkeys: {accept: [idempotency-key]}\nsources: [{file: {paths: ["+log+"]}, format: otlp-json}]\n")
	code, stdout, stderr := runAuditor(t, "", "replay", "--config", config, "--output", "json")
	if code != exitOK {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	var report struct {
		Input struct {
			Lines, Arrivals, Duplicates int
			Ignored, Quarantined        map[string]int
		}
		Dependencies []struct {
			Dependency          string
			Arrivals, Questions int
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+v", report), "{Input:{Lines:3 Arrivals:4 Duplicates:1 Ignored:map[other_stream:5] Quarantined:map[]} "+
		"Dependencies:[{Dependency:prices Arrivals:1 Questions:1} {Dependency:seats Arrivals:3 Questions:2}]}"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
