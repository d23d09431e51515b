package accesslog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	otlpSpan = `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"%s","traceState":"","parentSpanId":"eee19b7ec3c1b173","flags":257,"name":"GET /v1/seats/{id}","kind":%s,` +
		`"startTimeUnixNano":"1772532942118000000","endTimeUnixNano":"1772532942368000000","attributes":[` +
		`{"key":"http.request.method","value":{"stringValue":"GET"}},{"key":"url.path","value":{"stringValue":"/v1/seats/7"}},` +
		`{"key":"url.scheme","value":{"stringValue":"http"}},{"key":"server.address","value":{"stringValue":"seats"}},{"key":"server.port","value":{"intValue":"8080"}},` +
		`{"key":"network.peer.address","value":{"stringValue":"10.0.3.9"}},{"key":"network.peer.port","value":{"intValue":"41578"}},` +
		`{"key":"user_agent.original","value":{"stringValue":"a/1"}},{"key":"http.route","value":{"stringValue":"/v1/seats/{id}"}},` +
		`{"key":"http.request.header.question-key","value":{"arrayValue":{"values":[{"stringValue":"%s"}]}}},` +
		`{"key":"http.request.header.x-envoy-attempt-count","value":{"arrayValue":{"values":[{"stringValue":"2"}]}}},` +
		`{"key":"http.request.header.grpc-timeout","value":{"arrayValue":{"values":[{"stringValue":"2S"}]}}},` +
		`{"key":"http.response.status_code","value":{"intValue":"200"}}],"status":{}}`
	otlpResourceHead = `{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"%s"}},{"key":"host.name","value":{"stringValue":"h\"1\""}}]},"scopeSpans":[{"scope":{"name":"otelhttp","version":"1"},"spans":[`
)

func otlpOf(id, kind, key string) string { return fmt.Sprintf(otlpSpan, id, kind, key) }

// otlpLine is a request with two resources, of which the first has two scopes.
func otlpLine() string {
	return `{"resourceSpans":[` +
		fmt.Sprintf(otlpResourceHead, "seats") + otlpOf("00f067aa0ba902b7", "2", "q-1") + "," + otlpOf("00f067aa0ba902b8", "3", "q-1") + `]},` +
		`{"scope":{},"spans":[` + otlpOf("00f067aa0ba902b9", `"SPAN_KIND_SERVER"`, `q-\"2\"`) + `],"schemaUrl":"x"}],"schemaUrl":"https://opentelemetry.io/schemas/1.21.0"},` +
		fmt.Sprintf(otlpResourceHead, "prices") + otlpOf("00f067aa0ba902ba", "2", "q-3") + `]}]}]}`
}

// readOTLP reads all that a line holds.
func readOTLP(t *testing.T, p *Parser, line string, show func(*Entry) string) (all []string) {
	t.Helper()
	rest := []byte(line)
	for n := 0; n == 0 || len(rest) != 0; n++ {
		var e Entry
		more, err := p.Parse(rest, &e)
		if err != nil {
			all = append(all, "!"+err.Error())
		} else {
			s := show(&e)
			if e.Damaged > 0 {
				s += " damaged"
			}
			all = append(all, s)
		}
		if len(more) >= len(rest) {
			t.Fatalf("no progress: %d bytes are left of %d", len(more), len(rest))
		}
		rest = more
	}
	return all
}

func wantAll(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("\ngot\n%s\nwant\n%s", g, w)
	}
}

// Every record of a line is read once, with the attributes of its own resource.
func TestOTLPSpans(t *testing.T) {
	p := mustNew(t, Config{Format: "otlp-json", Keys: []string{"question_key", "traceparent"}, Extra: []string{"host.name"},
		Fields: map[string]string{"dependency": "service.name"}, Trace: true})
	show := func(e *Entry) string {
		return fmt.Sprintf("%s %s %s %s %s %d %s %s %d %d ±%d %s %s %s %s %s", e.Dependency, e.Method, e.Path, e.Authority, e.Peer, e.Status, e.UserAgent, e.ArrivalID,
			(e.End-e.Start)/1e6, e.Start%1e9, e.Uncertainty, e.Keys[0], e.Keys[1], e.Extra[0], e.RequestID, e.Text[:12])
	}
	const same = ` 5b8efff798038103d269b633813fc60c {"traceId":"`
	record := func(dependency, id, key string) string {
		return dependency + ` GET /v1/seats/7 seats 10.0.3.9 200 a/1 ` + id + ` 250 118000000 ±0 ` + key +
			` 00-5b8efff798038103d269b633813fc60c-eee19b7ec3c1b173-01 h"1"` + same
	}
	want := []string{record("seats", "00f067aa0ba902b7", "q-1"), "!other_stream", record("seats", "00f067aa0ba902b9", `q-"2"`), record("prices", "00f067aa0ba902ba", "q-3")}
	for range 3 {
		wantAll(t, readOTLP(t, p, otlpLine(), show), want...)
	}
	// Two lines glued, the same in an envelope, and the resource behind its spans.
	wantAll(t, readOTLP(t, p, otlpLine()+otlpLine(), show), append(want, want...)...)
	wantAll(t, readOTLP(t, p, `{"log":"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(otlpLine())+`\n","stream":"stdout","time":"2026-03-03T10:15:44Z"}`, show), want...)
	wantAll(t, readOTLP(t, p, "2026-03-03T10:15:44Z stdout F "+otlpLine(), show), want...)
	resource, scopes, _ := strings.Cut(fmt.Sprintf(otlpResourceHead, "late"), `,"scopeSpans"`)
	late := `{"resourceSpans": [ {"scopeSpans"` + scopes + otlpOf("00f067aa0ba902b7", "2", "q-9") + `]}] , ` + resource[1:] + `} ]}`
	wantAll(t, readOTLP(t, p, late, show), record("late", "00f067aa0ba902b7", "q-9"))

	var e Entry
	if _, err := p.Parse([]byte(otlpLine()), &e); err != nil {
		t.Fatal(err)
	}
	if e.Attempt != 2 || e.Deadline != e.Start+2e9 || e.Visible || e.Sources["question_key"] != "http.request.header.question_key" || e.Sources["start_time"] != "startTimeUnixNano" {
		t.Errorf("attempt %d, deadline %d, visible %v, sources %v", e.Attempt, e.Deadline-e.Start, e.Visible, e.Sources)
	}
}

func TestOTLPBroken(t *testing.T) {
	line := otlpLine()
	show := func(e *Entry) string { return string(e.Keys[0]) }
	p := mustNew(t, Config{Format: "otlp-json", Keys: []string{"question_key"}})
	second := strings.Index(line, "00f067aa0ba902b8")
	tests := []struct {
		name, line string
		want       []string
	}{
		{"cut in the second span", line[:second], []string{"q-1", "!cut_short"}},
		{"cut between spans", line[:strings.Index(line, `,{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"00f067aa0ba902b8`)], []string{"q-1 damaged"}},
		{"cut at the end", line[:len(line)-2], []string{"q-1", "!other_stream", `q-"2"`, "q-3 damaged"}},
		{"no span", `{"resourceSpans":[]}`, []string{"!other_stream"}},
		{"metrics", `{"resourceMetrics":[{"scopeMetrics":[]}]}`, []string{"!other_stream"}},
		{"another object", `{"a":1}`, []string{"!syntax"}},
		{"cut in the first span", line[:200], []string{"!cut_short"}},
		{"text", "hello", []string{"!syntax"}},
		{"broken in the first span", strings.Replace(line, `"kind":2`, `"kind"2`, 1), []string{"!syntax", "!other_stream", `q-"2"`, "q-3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantAll(t, readOTLP(t, p, tt.line, show), tt.want...) })
	}
	// What another line left behind is not gone on with.
	var e Entry
	rest, err := p.Parse([]byte(line), &e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Parse([]byte(string(rest)), &e); err != RejectSyntax {
		t.Errorf("the rest of a line that is another's: %v", err)
	}
}

func TestOTLPLogs(t *testing.T) {
	head := `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"seats"}}]},"scopeLogs":[{"scope":{},"logRecords":[`
	show := func(e *Entry) string {
		return fmt.Sprintf("%s %s %s %d %d %s", e.Method, e.Path, e.Keys[0], (e.End-e.Start)/1e6, e.Start%1e9, reading(e))
	}
	p := mustNew(t, Config{Format: "otlp-json", Keys: []string{"question_key"}})
	at := `{"timeUnixNano":"1772532942118000000","observedTimeUnixNano":"1772532943000000000","severityText":"INFO",`
	tests := []struct{ name, record, want string }{
		{"attributes", at + `"body":{"stringValue":"done"},"attributes":[{"key":"http.request.method","value":{"stringValue":"GET"}},{"key":"url.path","value":{"stringValue":"/a"}},{"key":"http.response.status_code","value":{"intValue":"200"}},{"key":"duration_ms","value":{"doubleValue":12.5}},{"key":"question_key","value":{"stringValue":"q-1"}}]}`,
			"GET /a q-1 12 118000000 200 no_record/unknown/unknown/not_recorded"},
		{"body of names", at + `"body":{"kvlistValue":{"values":[{"key":"method","value":{"stringValue":"GET"}},{"key":"path","value":{"stringValue":"/a"}},{"key":"status","value":{"intValue":200}},{"key":"headers","value":{"kvlistValue":{"values":[{"key":"question-key","value":{"stringValue":"q-1"}}]}}},{"key":"client_gone","value":{"boolValue":true}},{"key":"bytes_sent","value":{"intValue":"0"}}]}}}`,
			"GET /a q-1 0 118000000 200 yes/none/yes/undelivered_answer visible no duration"},
		{"body of JSON", at + `"body":{"stringValue":"{\"method\":\"GET\",\"path\":\"/a\",\"status\":503,\"question_key\":\"q-1\"}"}}`,
			"GET /a q-1 0 118000000 503 no_record/unknown/unknown/not_recorded no duration"},
		{"Envoy's", at + `"attributes":[{"key":"method","value":{"stringValue":"GET"}},{"key":"path","value":{"stringValue":"/a"}},{"key":"response_code","value":{"stringValue":"0"}},{"key":"response_flags","value":{"stringValue":"DC"}},{"key":"bytes_sent","value":{"stringValue":"0"}},{"key":"duration","value":{"stringValue":"20"}},{"key":"question_key","value":{"stringValue":"q-1"}}]}`,
			"GET /a q-1 20 118000000 0 yes/none/unknown/before_response visible"},
		{"no request", at + `"body":{"stringValue":"listening"},"attributes":[{"key":"duration_ms","value":{"intValue":"5"}}]}`, "!other_stream"},
		{"no time", `{"timeUnixNano":"0","observedTimeUnixNano":"1772532943000000000","attributes":[{"key":"method","value":{"stringValue":"GET"}},{"key":"path","value":{"stringValue":"/a"}}]}`,
			"GET /a  0 0  no_record/unknown/unknown/not_recorded no duration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantAll(t, readOTLP(t, p, head+tt.record+`]}]}]}`, show), tt.want)
		})
	}
}

// Lists in lists are read a few deep, and what lies deeper costs no more than to pass
// over it.
func TestOTLPNesting(t *testing.T) {
	const depth = 20000
	value := strings.Repeat(`{"arrayValue":{"values":[`, depth) + `{"stringValue":"q"}` + strings.Repeat(`]}}`, depth)
	line := `{"resourceSpans":[{"resource":{},"scopeSpans":[{"spans":[{"kind":2,"startTimeUnixNano":"1772532942118000000","attributes":[{"key":"url.path","value":{"stringValue":"/a"}},` +
		`{"key":"question_key","value":` + value + `}]}]}]}]}`
	p := mustNew(t, Config{Format: "otlp-json", Keys: []string{"question_key"}})
	done := make(chan []string, 1)
	go func() {
		done <- readOTLP(t, p, line, func(e *Entry) string { return string(e.Path) + string(e.Keys[0]) })
	}()
	select {
	case got := <-done:
		wantAll(t, got, "/a")
	case <-time.After(20 * time.Second):
		t.Fatal("it takes too long")
	}
}

func TestOTLPgRPC(t *testing.T) {
	const span = `{"resourceSpans":[{"resource":{},"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"00f067aa0ba902b7","kind":2,` +
		`"startTimeUnixNano":"1772532942118000000","endTimeUnixNano":"1772532942368000000","attributes":[{"key":"rpc.system","value":{"stringValue":"grpc"}},%s` +
		`{"key":"rpc.request.metadata.grpc-previous-rpc-attempts","value":{"arrayValue":{"values":[{"stringValue":"1"}]}}},` +
		`{"key":"rpc.request.metadata.question-key","value":{"arrayValue":{"values":[{"stringValue":"q-1"},{"stringValue":"q-2"}]}}}]}]}]}]}`
	show := func(e *Entry) string {
		return fmt.Sprintf("%s %d %d %s %s %s", e.Path, e.GRPCStatus, e.Attempt, e.Keys[0], e.Keys[1], reading(e))
	}
	p := mustNew(t, Config{Format: "otlp-json", Keys: []string{"question_key", "traceparent"}})
	for attributes, want := range map[string]string{
		`{"key":"rpc.service","value":{"stringValue":"rank.Rank"}},{"key":"rpc.method","value":{"stringValue":"Get"}},{"key":"rpc.grpc.status_code","value":{"intValue":"1"}},`:             "/rank.Rank/Get 1 2 q-1, q-2   likely/unknown/unknown/unknown_point visible",
		`{"key":"rpc.method","value":{"stringValue":"rank.Rank/Get"}},{"key":"rpc.response.status_code","value":{"stringValue":"DEADLINE_EXCEEDED"}},`:                                      "/rank.Rank/Get 4 2 q-1, q-2   no_record/unknown/unknown/not_recorded",
		`{"key":"url.path","value":{"stringValue":"/up"}},{"key":"http.response.status_code","value":{"intValue":201}},{"key":"error.type","value":{"stringValue":"WebSocketDisconnect"}},`: "/up -1 2 q-1, q-2  201 likely/unknown/yes/unknown_point visible",
		`{"key":"url.path","value":{"stringValue":"/up"}},{"key":"http.response.status_code","value":{"intValue":499}},{"key":"error.type","value":{"stringValue":"499"}},`:                 "/up -1 2 q-1, q-2  499 no_record/unknown/unknown/not_recorded",
	} {
		wantAll(t, readOTLP(t, p, fmt.Sprintf(span, attributes), show), want)
	}
}

// In place of a record that was too large to be kept stands the reason for which it is
// refused, and nothing else is taken for that.
func TestOTLPTooLong(t *testing.T) {
	for _, format := range []string{"otlp-json", "otlp-proto"} {
		p := mustNew(t, Config{Format: format})
		for line, want := range map[string]error{"too_long": RejectTooLong, "too_long ": RejectSyntax, "too_long1": RejectSyntax, "too_lon": RejectSyntax} {
			var e Entry
			if rest, err := p.Parse([]byte(line), &e); err != want || len(rest) != 0 {
				t.Errorf("%s: %q: %v, and %d bytes are left; want %v", format, line, err, len(rest), want)
			}
		}
	}
}
