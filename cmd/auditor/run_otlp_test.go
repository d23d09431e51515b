package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A collector's requests are taken in both forms by one source, and what is counted of
// them are their records, not their lines.
func TestDaemonTakesOTLP(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	r := startDaemon(t, writeIn(t, filepath.Join(t.TempDir(), "auditor.yaml"), fmt.Sprintf(`dependency: shop
sources: [{http: {listen: %q}, format: otlp-proto}]
keys: {accept: [{field: http.request.header.question-key}]}
api: {listen: "127.0.0.1:0"}
`, address)))
	span := func(kind int, key string) string {
		now := time.Now().UnixNano()
		return fmt.Sprintf(`{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b17%d","kind":%d,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[`+
			`{"key":"http.request.method","value":{"stringValue":"GET"}},{"key":"url.path","value":{"stringValue":"/a"}},{"key":"http.response.status_code","value":{"intValue":"200"}},`+
			`{"key":"http.request.header.question-key","value":{"arrayValue":{"values":[{"stringValue":%q}]}}}]}`, kind, kind, now, now+1e6, key)
	}
	post := func(path, kind, body string) {
		res, err := http.Post("http://"+address+path, kind, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	spans := []string{span(2, "q-1"), span(2, "q-1"), span(2, "q-2")}
	for range 7 {
		spans = append(spans, span(3, "q-1")) // of a client, and so none
	}
	post("/v1/traces", "application/json", `{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[`+strings.Join(spans, ",")+`]}]}]}`)
	// A span of kind 3 alone, in the binary form: {1:{2:{2:{6:3}}}}.
	post("/v1/traces", "application/x-protobuf", "\x0a\x06\x12\x04\x12\x02\x30\x03")
	until(t, "what was sent is counted", func() bool { return dig(r.get("/api/v1/sources"), "sources", 0, "counted") == 3.0 })
	until(t, "what was sent is shown", func() bool {
		return dig(r.get("/api/v1/summary"), "dependencies", 0, "windows", 0, "repeats") == 1.0
	})
	if got := dig(r.get("/api/v1/sources"), "sources", 0, "ignored"); got != 8.0 {
		t.Errorf("ignored %v spans of 8", got)
	}
	if got := dig(r.get("/api/v1/summary"), "dependencies", 0, "read_share"); got != 1.0 {
		t.Errorf("the read share is %v", got)
	}
	// A record that is too large to be kept is counted as one that could not be read,
	// whatever its form, and is in the read share.
	large := strings.Repeat("z", 2<<20)
	post("/v1/logs", "application/json", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"`+large+`"}}]}]}]}`)
	for _, tag := range []byte{0x0a, 0x12, 0x12, 0x0a} { // what is in the record, record, scope, resource
		n := len(large) // of four bytes, as varints go
		large = string([]byte{tag, byte(n) | 0x80, byte(n>>7) | 0x80, byte(n>>14) | 0x80, byte(n >> 21)}) + large
	}
	post("/v1/logs", "application/x-protobuf", large)
	until(t, "what could not be kept is quarantined", func() bool {
		return dig(r.get("/api/v1/sources"), "sources", 0, "quarantined", "too_long") == 2.0
	})
	until(t, "what could not be kept is in the read share", func() bool {
		return dig(r.get("/api/v1/summary"), "dependencies", 0, "read_share") == 11.0/13
	})
	http.DefaultClient.CloseIdleConnections()
}
