package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// example is a configuration in examples/formats, without its comments.
func example(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../examples/formats/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(data), "")
}

// What the page shows is what lies in examples/formats, and what the tests run.
func TestDocumentedExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"caddy.Caddyfile", "traefik.yaml"} {
		if !strings.Contains(string(page), "\n"+example(t, name)+"```\n") {
			t.Errorf("docs/formats.md does not show examples/formats/%s", name)
		}
	}
	files, err := os.ReadDir("../../examples/formats")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.Contains(string(page), f.Name()) {
			t.Errorf("docs/formats.md does not name examples/formats/%s", f.Name())
		}
	}
}

// wantShown checks that a record of a shipped configuration shows what the page
// promises of it.
func wantShown(t *testing.T, r docRecord) {
	t.Helper()
	switch {
	case r.Start == nil || *r.Start != "2026-03-03T10:15:42.000Z":
		t.Errorf("start %v", r.Start)
	case r.Key == nil || r.Key.Value != "q-1":
		t.Errorf("key %v", r.Key)
	case r.Attempt == nil || *r.Attempt != 2:
		t.Errorf("attempt %v", r.Attempt)
	case r.Deadline == nil || *r.Deadline != "2026-03-03T10:15:44.000Z":
		t.Errorf("deadline %v", r.Deadline)
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
	wantShown(t, explainDocLine(t, "traefik-json", string(line)))
	wantShown(t, explainDocLine(t, "auto", string(line)))
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
		wantShown(t, explainDocLine(t, format, string(line)))
	}
}
