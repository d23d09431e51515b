package ingest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// otlpRequest is a request with one resource and scope, and records of those names.
func otlpRequest(names ...string) []byte {
	scope := appendWire(nil, 1, []byte("\x0a\x04http"))
	for _, name := range names {
		scope = appendWire(scope, 2, appendWire(nil, 5, []byte(name)))
	}
	resource := appendWire(nil, 1, appendWire(nil, 1, []byte("\x0a\x04host")))
	return appendWire(nil, 1, appendWire(resource, 2, scope))
}

func otlpSpans(names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"name":%q}`, name))
	}
	return `{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"scope":{"name":"http"},"spans":[` + strings.Join(list, ",") + `]}]}]}`
}

func snake(request string) string {
	return strings.NewReplacer("resourceSpans", "resource_spans", "scopeSpans", "scope_spans").Replace(request)
}

func base64Line(message []byte) string { return base64.StdEncoding.EncodeToString(message) + "\n" }

func newOTLPPush(t testing.TB, cfg PushConfig, disk spoolDisk) *Push {
	cfg.OTLP, cfg.MaxBody, cfg.MaxUnpacked, cfg.MaxLine = true, 1<<20, 1<<20, 1000
	return newTestPush(t, cfg, disk)
}

func TestPushOTLP(t *testing.T) {
	const proto, js = "application/x-protobuf", "application/json"
	long := strings.Repeat("z", 300)
	half := strings.Repeat("y", 400)
	pretty := strings.ReplaceAll(otlpSpans("a"), ",", ",\r\n  ")
	for _, c := range []struct {
		name, path, kind string
		body             []byte
		fields           []string
		status           int
		want             string // in the spool
		says             string // in the answer
	}{
		{"spans", "/v1/traces", proto, otlpRequest("a", "b"), nil, 200, base64Line(otlpRequest("a", "b")), ""},
		{"log records", "/v1/logs", proto, otlpRequest("a"), nil, 200, base64Line(otlpRequest("a")), ""},
		{"gzip", "/v1/traces", proto, gzipped(t, string(otlpRequest("a"))), []string{"Content-Encoding", "gzip"}, 200, base64Line(otlpRequest("a")), ""},
		{"nothing", "/v1/traces", proto, nil, nil, 200, "", ""},
		{"several lines", "/v1/traces", proto, otlpRequest(long, long, long), nil, 200, base64Line(otlpRequest(long, long)) + base64Line(otlpRequest(long)), ""},
		{"two resources in several lines", "/v1/traces", proto, append(otlpRequest(half, "a"), otlpRequest(half, "b")...), nil, 200, base64Line(otlpRequest(half, "a")) + base64Line(otlpRequest(half, "b")), ""},
		{"one too large", "/v1/traces", proto, otlpRequest("a", strings.Repeat("z", 1000), "b"), nil, 200, tooLong + base64Line(otlpRequest("a", "b")), "\x08\x01"},
		{"JSON", "/v1/traces", js, []byte(otlpSpans("a", "b")), nil, 200, otlpSpans("a", "b") + "\n", "{}"},
		{"JSON on several lines", "/v1/traces", js + "; charset=utf-8", []byte(pretty), nil, 200, otlpSpans("a") + "\n", "{}"},
		{"JSON in several lines", "/v1/traces", js, []byte(otlpSpans(long, long, long)), nil, 200, otlpSpans(long, long) + "\n" + otlpSpans(long) + "\n", "{}"},
		{"JSON, one too large", "/v1/traces", js, []byte(otlpSpans("a", strings.Repeat("z", 1000), "b")), nil, 200, tooLong + otlpSpans("a", "b") + "\n", `"rejectedSpans":"1"`},
		{"all too large", "/v1/logs", proto, otlpRequest(strings.Repeat("z", 1000), strings.Repeat("z", 2000)), nil, 200, tooLong + tooLong, "\x08\x02"},
		{"JSON by the definition's names", "/v1/traces", js, []byte(snake(otlpSpans("a"))), nil, 200, snake(otlpSpans("a")) + "\n", "{}"},
		{"those in several lines", "/v1/traces", js, []byte(snake(otlpSpans(long, long, long))), nil, 200, otlpSpans(long, long) + "\n" + otlpSpans(long) + "\n", "{}"},
		{"old names in several lines", "/v1/traces", js, []byte(strings.ReplaceAll(otlpSpans(long, long, long), "scopeSpans", "instrumentationLibrarySpans")), nil, 200, otlpSpans(long, long) + "\n" + otlpSpans(long) + "\n", "{}"},
		{"JSON of another signal", "/v1/logs", js, []byte(otlpSpans("a")), nil, 400, "", "/v1/traces"},
		{"of another signal by the definition's names", "/v1/logs", js, []byte(snake(otlpSpans("a"))), nil, 400, "", "/v1/traces"},
		{"log records for traces", "/v1/traces", js, []byte(`{"resourceLogs":[]}`), nil, 400, "", "/v1/logs"},
		{"metrics", "/v1/traces", js, []byte(`{"resourceMetrics":[]}`), nil, 400, "", "metrics are not taken"},
		{"the limit in protobuf", "/v1/traces", proto, otlpRequest(strings.Repeat("z", 800)), nil, 200, tooLong, "larger than 747 bytes"},
		{"the limit in JSON", "/v1/traces", js, []byte(otlpSpans(strings.Repeat("z", 1000))), nil, 200, tooLong, "larger than 1000 bytes"},
		{"JSON, nothing", "/v1/logs", js, []byte("{}"), nil, 200, "", "{}"},
		{"no message", "/v1/traces", proto, []byte("hello"), nil, 400, "", "no request of OTLP"},
		{"cut", "/v1/traces", proto, otlpRequest("a")[:len(otlpRequest("a"))-1], nil, 400, "", "no request of OTLP"},
		{"a record that is none", "/v1/traces", proto, appendWire(nil, 1, appendWire(nil, 2, appendWire(nil, 2, []byte("hello")))), nil, 400, "", "no request of OTLP"},
		{"no JSON", "/v1/traces", js, []byte(`{"resourceSpans":[`), nil, 400, "", "no JSON"},
		{"no list", "/v1/traces", js, []byte(`{"resourceSpans":{}}`), nil, 400, "", "resourceSpans"},
		{"no scopes", "/v1/traces", js, []byte(`{"resourceSpans":[{"scopeSpans":1}]}`), nil, 400, "", "scopeSpans"},
		{"lines", "/v1/traces", "application/x-ndjson", []byte("a\n"), nil, 415, "", "application/x-protobuf"},
		{"brotli", "/v1/traces", js, []byte("{}"), []string{"Content-Encoding", "br"}, 415, "", "gzip"},
		{"too large", "/v1/traces", proto, bytes.Repeat([]byte("a"), 2<<20), nil, 413, "", "1048576"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newOTLPPush(t, PushConfig{}, realDisk())
			w := send(p, "POST", c.path, bytes.NewReader(c.body), append([]string{"Content-Type", c.kind}, c.fields...)...)
			lines, _, _ := readSpool(t, p.spool, 0)
			if w.Code != c.status || textOf(lines) != c.want || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("status %d, kept\n%q\nand answered %q; want %d, \n%q\nand %q", w.Code, textOf(lines), w.Body, c.status, c.want, c.says)
			}
			if c.status == 200 && c.says == "" && w.Body.Len() != 0 {
				t.Errorf("answered %q", w.Body)
			}
			wantType := proto
			if strings.HasPrefix(c.kind, js) {
				wantType = js
			}
			if got := w.Header().Get("Content-Type"); got != wantType {
				t.Errorf("answered as %s", got)
			}
			for line := range strings.Lines(c.want) {
				if len(line) > 1000 {
					t.Errorf("a line of %d bytes", len(line))
				}
			}
			if p.bodies.inUse.Load() != 0 {
				t.Errorf("%d bytes are still counted", p.bodies.inUse.Load())
			}
		})
	}
}

// What a client may send again is 429 or 503, with a time, and every refusal is a
// google.rpc.Status in the request's own form.
func TestPushOTLPRefusals(t *testing.T) {
	d := &faultyDisk{}
	p := newOTLPPush(t, PushConfig{Spool: SpoolConfig{Max: 8 << 10}, Tokens: [][]byte{[]byte("secret")}}, d.disk())
	push := func(fields ...string) *httptest.ResponseRecorder {
		fields = append([]string{"Content-Type", "application/json", "Authorization", "Bearer secret"}, fields...)
		return send(p, "POST", "/v1/traces", strings.NewReader(otlpSpans(strings.Repeat("z", 800))), fields...)
	}
	said := func(w *httptest.ResponseRecorder, status, code int, retry bool) {
		t.Helper()
		var s struct {
			Code    int
			Message string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != status || s.Code != code || s.Message == "" {
			t.Errorf("%d %s (%v), want %d and code %d", w.Code, w.Body, err, status, code)
		}
		if got := w.Header().Get("Retry-After"); (got != "") != retry {
			t.Errorf("%d: Retry-After %q", status, got)
		}
	}
	if w := push(); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	said(push("Authorization", "Bearer other"), 401, 16, false)
	d.set(func() { d.sync = func() error { return syscall.ENOSPC } })
	said(push(), 503, 14, true) // and not 507, after which a client gives up
	d.set(func() { d.sync = func() error { return fmt.Errorf("broken") } })
	said(push(), 503, 14, true)
	d.set(func() { d.sync = nil })
	w := push()
	for ; w.Code == 200 || w.Code == 503; w = push() {
	}
	said(w, 429, 8, true)
	said(send(p, "GET", "/v1/traces", nil, "Content-Type", "application/json", "Authorization", "Bearer secret"), 405, 12, false)
	p.closing.Store(true)
	said(push(), 503, 14, true)

	w = send(p, "POST", "/v1/logs", nil, "Content-Type", "application/x-protobuf")
	if got := w.Body.String(); w.Code != 401 || !strings.HasPrefix(got, "\x08\x10\x12") || w.Header().Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("%d %q", w.Code, got)
	}

	// A source of lines has no such paths, and says what to write for it.
	lines := newTestPush(t, PushConfig{}, realDisk())
	if w := send(lines, "POST", "/v1/traces", strings.NewReader("{}"), "Content-Type", "application/json"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "otlp-proto") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
