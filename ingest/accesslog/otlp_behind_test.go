package accesslog

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reversed is a message with its fields in the opposite order, and those of the messages
// at these paths of field numbers, too. Fields of one number keep theirs.
func reversed(t testing.TB, b []byte, paths ...string) (out []byte) {
	t.Helper()
	byNumber := map[int]protoMessage{}
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			t.Fatal("no message")
		}
		var inner []string
		is := false
		for _, path := range paths {
			head, rest, more := strings.Cut(path, ".")
			if head == fmt.Sprint(f.number) {
				if is = true; more {
					inner = append(inner, rest)
				}
			}
		}
		m := byNumber[f.number]
		if is && f.wire == wireBytes {
			m.bytes(f.number, reversed(t, f.bytes, inner...))
		} else {
			m = append(m, b[i:next]...)
		}
		byNumber[f.number] = m
	}
	numbers := []int{}
	for n := range byNumber {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	for _, n := range numbers {
		out = append(out, byNumber[n]...)
	}
	return out
}

func unbase64(t testing.TB, line string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(line)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const otlpLogLine = `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"seats"}}]},"scopeLogs":[{"scope":{},"logRecords":[` +
	`{"timeUnixNano":"1772532942118000000","body":{"stringValue":"done"},"attributes":[{"key":"http.request.method","value":{"stringValue":"GET"}},{"key":"url.path","value":{"stringValue":"/a"}},` +
	`{"key":"http.response.status_code","value":{"intValue":"200"}},{"key":"question_key","value":{"arrayValue":{"values":[{"stringValue":"q-1"}]}}}]}]}]}]}`

// Neither the members of JSON nor the fields of a message have an order: in any other a
// record says the same.
func TestOTLPOrder(t *testing.T) {
	show := func(e *Entry) string {
		return fmt.Sprintf("%s %s %s %d %d %d %s %s", e.Dependency, e.Method, e.Path, e.Status, e.Start, e.Duration, e.Keys[0], e.ArrivalID)
	}
	c := Config{Format: "otlp-json", Keys: []string{"question_key"}, Fields: map[string]string{"dependency": "service.name"}}
	p := mustNew(t, c)
	member := regexp.MustCompile(`\{("key":"[^"]*"),("value":\{.*?\})\}([,\]])`)
	snake := strings.NewReplacer("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "scopeSpans", "scope_spans", "scopeLogs", "scope_logs", "logRecords", "log_records",
		"traceId", "trace_id", "spanId", "span_id", "parentSpanId", "parent_span_id", "startTimeUnixNano", "start_time_unix_nano", "endTimeUnixNano", "end_time_unix_nano",
		"timeUnixNano", "time_unix_nano", "stringValue", "string_value", "intValue", "int_value", "arrayValue", "array_value")
	for _, line := range []string{otlpLine(), otlpLogLine} {
		want := readOTLP(t, p, line, show)
		if len(want) == 0 || strings.HasPrefix(want[0], "!") {
			t.Fatalf("%q", want)
		}
		turned := member.ReplaceAllString(line, `{$2,$1}$3`)
		if strings.Contains(turned, `{"key":`) {
			t.Fatalf("not turned: %s", turned)
		}
		wantAll(t, readOTLP(t, p, turned, show), want...)
		wantAll(t, readOTLP(t, p, strings.ReplaceAll(turned, ",", " , "), show), want...)
		wantAll(t, readOTLP(t, p, snake.Replace(line), show), want...)

		c.Format = "otlp-proto"
		binary := mustNew(t, c)
		whole := unbase64(t, protoOf(t, line))
		wantAll(t, readOTLP(t, binary, base64.StdEncoding.EncodeToString(whole), show), want...)
		// All the fields of the request, of a resource and its attributes, of a scope, of a
		// record, of an attribute: the resource then follows its spans.
		for _, paths := range [][]string{{"1.2.2"}, {"1.2.2.9"}, {"1.2.2.6"}, {"1.1.1"}, {"1.2"}, {"1.2.2.9", "1.2.2.6", "1.1.1"}} {
			line := base64.StdEncoding.EncodeToString(reversed(t, whole, paths...))
			wantAll(t, readOTLP(t, binary, line, show), want...)
		}
	}
	als := mustNew(t, Config{Format: "envoy-als", Keys: []string{"question_key"}, Fields: map[string]string{"dependency": "log_name"}})
	message := alsLineOf(alsEntryOf(alsValues(t)), alsEntryOf(alsValues(t)))
	want := readOTLP(t, als, message, show)
	for _, paths := range [][]string{{"2.1"}, {"2.1.3.13"}, {"1.1", "2.1.1", "2.1.3", "2.1.4"}} {
		wantAll(t, readOTLP(t, als, base64.StdEncoding.EncodeToString(reversed(t, unbase64(t, message), paths...)), show), want...)
	}
}

// Whether a record is a span or a log record is told by its fields, whichever comes first,
// and not by which of them are there.
func TestProtoIsLog(t *testing.T) {
	var head protoMessage
	head.bytes(5, []byte("x"))
	head.bytes(3, []byte("y"))
	for name, c := range map[string]struct {
		build func(m *protoMessage)
		log   bool
	}{
		"kind":          {func(m *protoMessage) { m.varint(6, 2) }, false},
		"trace id":      {func(m *protoMessage) { m.bytes(1, make([]byte, 16)) }, false},
		"no trace id":   {func(m *protoMessage) { m.bytes(1, nil) }, false},
		"start":         {func(m *protoMessage) { m.fixed64(7, 1) }, false},
		"status":        {func(m *protoMessage) { m.bytes(15, nil) }, false},
		"attribute":     {func(m *protoMessage) { m.bytes(9, []byte("\x0a\x01a\x12\x00")) }, false},
		"time":          {func(m *protoMessage) { m.fixed64(1, 1) }, true},
		"severity":      {func(m *protoMessage) { m.varint(2, 9) }, true},
		"log attribute": {func(m *protoMessage) { m.bytes(6, nil) }, true},
		"observed":      {func(m *protoMessage) { m.fixed64(11, 1) }, true},
		"a log's trace": {func(m *protoMessage) { m.bytes(9, make([]byte, 16)) }, true},
	} {
		for _, m := range []protoMessage{{}, slices.Clone(head)} {
			c.build(&m)
			var f protoField
			next := f.read(m, 0)
			if got := protoIsLog(m, f, next); got != c.log {
				t.Errorf("%s, %x: a log record is %v", name, []byte(m), got)
			}
		}
	}
}

// A record that cannot be read is refused by itself, wherever it stands among others, and
// so is each record of a resource that cannot be.
func TestOTLPReadsOn(t *testing.T) {
	show := func(e *Entry) string { return string(e.Keys[0]) }
	p := mustNew(t, Config{Format: "otlp-json", Keys: []string{"question_key"}})
	good := func(key string) string { return otlpOf("00f067aa0ba902b7", "2", key) }
	line := func(records ...string) string {
		return `{"resourceSpans":[` + fmt.Sprintf(otlpResourceHead, "seats") + strings.Join(records, ",") + `]}]}]}`
	}
	for _, bad := range []string{`null`, `5`, `"a"`, `[]`, `{"attributes":[5]}`, `{"kind"2}`, `{"attributes":[null],"links":[{"a":"}"}]}`} {
		for at := range 4 {
			records, want := []string{good("q-1"), good("q-2"), good("q-3")}, []string{"q-1", "q-2", "q-3"}
			wantAll(t, readOTLP(t, p, line(slices.Insert(records, at, bad)...), show), slices.Insert(want, at, "!syntax")...)
		}
	}
	// A resource that is null holds nothing, and one whose attributes cannot be read none
	// that could be told whose they are.
	whole := line(good("q-1"), good("q-2"))
	wantAll(t, readOTLP(t, p, strings.Replace(whole, `[{"resource":`, `[null,{"resource":`, 1), show), "q-1", "q-2")
	two := strings.Replace(whole, `[{"resource":`, `[{"resource":{"attributes":[7]},"scopeSpans":[{"spans":[`+good("q-8")+`,`+good("q-9")+`]}]},{"resource":`, 1)
	wantAll(t, readOTLP(t, p, two, show), "!syntax", "!syntax", "q-1", "q-2")

	// Wherever a line breaks off and runs into another, all of that is read, and before it
	// what came whole.
	other := line(good("q-3"), good("q-4"))
	for cut := 1; cut < len(whole); cut++ {
		got := readOTLP(t, p, whole[:cut]+other, show)
		if n := len(got); n < 2 || got[n-2] != "q-3" || got[n-1] != "q-4" {
			t.Fatalf("cut at %d: %q", cut, got)
		}
		if got = got[:len(got)-2]; len(got) == 0 || len(got) > 3 {
			t.Fatalf("cut at %d: before it %q", cut, got)
		}
		if last := got[len(got)-1]; cut < len(whole)-4 && !strings.HasPrefix(last, "!") && !strings.HasSuffix(last, "damaged") {
			t.Fatalf("cut at %d: nothing says so: %q", cut, got)
		}
	}
}

func TestProtoReadsOn(t *testing.T) {
	show := func(e *Entry) string { return string(e.Keys[0]) }
	p := mustNew(t, Config{Format: "otlp-proto", Keys: []string{"question_key"}})
	var span, scope, resource, request, broken protoMessage
	span.varint(6, 2)
	span.fixed64(7, 1772532942118000000)
	for key, v := range map[string]string{"url.path": "/a", "question_key": "q-1"} {
		span.bytes(9, protoAttributeOf(map[string]any{"key": key, "value": map[string]any{"stringValue": v}}))
	}
	broken.bytes(9, []byte("\x0a\x7f"))
	scope.bytes(2, broken)
	scope.bytes(2, span)
	scope.bytes(2, []byte("\x0f"))
	scope.bytes(2, span)
	resource.bytes(2, scope)
	request.bytes(1, resource)
	line := func(m []byte) string { return base64.StdEncoding.EncodeToString(m) }
	wantAll(t, readOTLP(t, p, line(request), show), "!cut_short", "q-1", "!cut_short", "q-1")

	// What is no field ends the scope alone.
	var more protoMessage
	more.bytes(2, append(slices.Clone(scope), 0x12, 0x7f))
	more.bytes(2, scope)
	request = nil
	request.bytes(1, more)
	request.bytes(1, resource)
	of := []string{"!cut_short", "q-1", "!cut_short", "q-1"}
	wantAll(t, readOTLP(t, p, line(request), show), slices.Concat(of, []string{"!cut_short"}, of, of)...)

	// Whose the records are is not known.
	var lost protoMessage
	lost.bytes(1, []byte("\x0a\x7f"))
	lost.bytes(2, scope)
	request = nil
	request.bytes(1, lost)
	request.bytes(1, resource)
	wantAll(t, readOTLP(t, p, line(request), show), "!cut_short", "!cut_short", "!cut_short", "!cut_short", of[0], of[1], of[2], of[3])
}

func TestALSReadsOn(t *testing.T) {
	show := func(e *Entry) string { return string(e.Path) }
	p := mustNew(t, Config{Format: "envoy-als", Keys: []string{"question_key"}})
	good := func(path string) protoMessage { return alsEntryOf(alsValues(t, `{"path":"`+path+`"}`)) }
	var common, late protoMessage
	var nanos protoMessage
	nanos.varint(2, 1e9)
	common.bytes(5, nanos)
	late.bytes(1, common)
	entries := []protoMessage{protoMessage("\x0a\x7f"), good("/1"), late, good("/2"), []byte("\x0f"), good("/3")}
	wantAll(t, readOTLP(t, p, alsLineOf(entries...), show), "!cut_short", "/1", "!bad_time", "/2", "!cut_short", "/3")

	var logs, message protoMessage
	logs.bytes(1, good("/1"))
	message.bytes(2, append(slices.Clone(logs), 0x0a, 0x7f))
	message.bytes(2, logs)
	wantAll(t, readOTLP(t, p, base64.StdEncoding.EncodeToString(message), show), "/1", "!cut_short", "/1")
	message.bytes(1, []byte("\x0a\x7f")) // who sent it is not known
	wantAll(t, readOTLP(t, p, base64.StdEncoding.EncodeToString(message), show), "!cut_short", "!cut_short", "!cut_short")
}
