package accesslog

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// The writer below makes the binary form of what the JSON form says, field by field
// as opentelemetry-proto numbers them.

type protoMessage []byte

func (m *protoMessage) tag(number, wire int) {
	*m = binary.AppendUvarint(*m, uint64(number<<3|wire))
}

func (m *protoMessage) bytes(number int, b []byte) {
	m.tag(number, 2)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

func (m *protoMessage) varint(number int, v uint64) {
	m.tag(number, 0)
	*m = binary.AppendUvarint(*m, v)
}

func (m *protoMessage) fixed64(number int, v uint64) {
	m.tag(number, 1)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func number(v any) uint64 {
	switch v := v.(type) {
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return uint64(n)
	case float64:
		return uint64(int64(v))
	}
	return 0
}

func protoAnyOf(v map[string]any) (m protoMessage) {
	for kind, v := range v {
		switch kind {
		case "stringValue":
			m.bytes(1, []byte(v.(string)))
		case "boolValue":
			m.varint(2, map[bool]uint64{true: 1}[v.(bool)])
		case "intValue":
			m.varint(3, number(v))
		case "doubleValue":
			m.fixed64(4, math.Float64bits(v.(float64)))
		case "arrayValue", "kvlistValue":
			var list protoMessage
			for _, e := range v.(map[string]any)["values"].([]any) {
				if kind == "arrayValue" {
					list.bytes(1, protoAnyOf(e.(map[string]any)))
				} else {
					list.bytes(1, protoAttributeOf(e.(map[string]any)))
				}
			}
			m.bytes(map[string]int{"arrayValue": 5, "kvlistValue": 6}[kind], list)
		}
	}
	return m
}

func protoAttributeOf(a map[string]any) (m protoMessage) {
	m.bytes(1, []byte(a["key"].(string)))
	m.bytes(2, protoAnyOf(a["value"].(map[string]any)))
	return m
}

func protoAttributesOf(m *protoMessage, field int, of map[string]any) {
	list, _ := of["attributes"].([]any)
	for _, a := range list {
		m.bytes(field, protoAttributeOf(a.(map[string]any)))
	}
}

func protoRecordOf(r map[string]any, logs bool) (m protoMessage) {
	id := func(field int, name string) {
		if s, _ := r[name].(string); s != "" {
			b, _ := hex.DecodeString(s)
			m.bytes(field, b)
		}
	}
	stamp := func(field int, name string) {
		if n := number(r[name]); n != 0 {
			m.fixed64(field, n)
		}
	}
	if logs {
		stamp(1, "timeUnixNano")
		m.varint(2, 9)
		m.bytes(3, []byte("INFO"))
		if body, ok := r["body"].(map[string]any); ok {
			m.bytes(5, protoAnyOf(body))
		}
		protoAttributesOf(&m, 6, r)
		stamp(11, "observedTimeUnixNano")
		return m
	}
	id(1, "traceId")
	id(2, "spanId")
	id(4, "parentSpanId")
	m.bytes(5, []byte("GET /a"))
	kind := number(r["kind"])
	if r["kind"] == "SPAN_KIND_SERVER" {
		kind = 2
	}
	m.varint(6, kind)
	stamp(7, "startTimeUnixNano")
	stamp(8, "endTimeUnixNano")
	protoAttributesOf(&m, 9, r)
	m.bytes(11, []byte("\x12\x05event")) // an event with a name
	m.bytes(15, nil)
	m.tag(16, 5)
	return binary.LittleEndian.AppendUint32(m, 257)
}

// protoOf is a line of otlp-proto that says what a line of otlp-json says.
func protoOf(t testing.TB, line string) string {
	t.Helper()
	var request map[string]any
	if err := json.Unmarshal([]byte(line), &request); err != nil {
		t.Fatal(err)
	}
	var m protoMessage
	for _, form := range []struct {
		resources, scopes, records string
		logs                       bool
	}{{"resourceSpans", "scopeSpans", "spans", false}, {"resourceLogs", "scopeLogs", "logRecords", true}} {
		resources, _ := request[form.resources].([]any)
		for _, r := range resources {
			var resource, about protoMessage
			protoAttributesOf(&about, 1, r.(map[string]any)["resource"].(map[string]any))
			resource.bytes(1, about)
			for _, s := range r.(map[string]any)[form.scopes].([]any) {
				var scope protoMessage
				scope.bytes(1, []byte("\x0a\x08otelhttp"))
				for _, record := range s.(map[string]any)[form.records].([]any) {
					scope.bytes(2, protoRecordOf(record.(map[string]any), form.logs))
				}
				scope.bytes(3, []byte("schema"))
				resource.bytes(2, scope)
			}
			resource.bytes(3, []byte("schema"))
			m.bytes(1, resource)
		}
	}
	return base64.StdEncoding.EncodeToString(m)
}

// Both forms of a request read the same.
func TestOTLPProto(t *testing.T) {
	c := Config{Keys: []string{"question_key", "traceparent"}, Extra: []string{"host.name"}, Fields: map[string]string{"dependency": "service.name"}}
	show := func(e *Entry) string {
		o := *e
		o.Text, o.Notes = nil, o.Notes&^NoteUnwrapped
		return fmt.Sprintf("%q %q %q %q %+v", o.Keys, o.Extra, o.StatusRaw, o.ArrivalID, o)
	}
	logs := func(records ...string) string {
		return `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"seats"}}]},"scopeLogs":[{"scope":{},"logRecords":[` + strings.Join(records, ",") + `]}]}]}`
	}
	for _, line := range []string{
		otlpLine(),
		logs(`{"timeUnixNano":"1772532942118000000","body":{"stringValue":"done"},"attributes":[{"key":"http.request.method","value":{"stringValue":"GET"}},{"key":"url.path","value":{"stringValue":"/a"}},{"key":"status","value":{"intValue":"-1"}},{"key":"duration_ms","value":{"doubleValue":12.5}},{"key":"client_gone","value":{"boolValue":true}}]}`,
			`{"timeUnixNano":"0","observedTimeUnixNano":"1772532942118000000","body":{"stringValue":"listening"}}`,
			`{"timeUnixNano":"1772532942118000000","body":{"kvlistValue":{"values":[{"key":"method","value":{"stringValue":"GET"}},{"key":"path","value":{"stringValue":"/b"}},{"key":"headers","value":{"kvlistValue":{"values":[{"key":"question-key","value":{"arrayValue":{"values":[{"stringValue":"q-1"},{"stringValue":"q-2"}]}}}]}}}]}}}`,
			`{"timeUnixNano":"1772532942118000000","body":{"stringValue":"{\"method\":\"GET\",\"path\":\"/c\",\"status\":503,\"question_key\":\"q-1\"}"}}`),
		`{"resourceSpans":[]}`,
	} {
		c.Format = "otlp-json"
		want := readOTLP(t, mustNew(t, c), line, show)
		c.Format = "otlp-proto"
		p := mustNew(t, c)
		for range 2 {
			if line == `{"resourceSpans":[]}` {
				if _, err := p.Parse([]byte(protoOf(t, line)), &Entry{}); err == nil {
					t.Error("an empty request has a record")
				}
				continue
			}
			wantAll(t, readOTLP(t, p, protoOf(t, line), show), want...)
			wantAll(t, readOTLP(t, p, "2026-03-03T10:15:44Z stdout F "+protoOf(t, line), show), want...)
			wantAll(t, readOTLP(t, p, `{"message":"`+protoOf(t, line)+`"}`, show), want...)
		}
	}
}

// A field that a later release adds to a list is no value of it.
func TestOTLPProtoUnknownField(t *testing.T) {
	var value, list protoMessage
	value.bytes(1, []byte("q-1"))
	list.varint(9, 1)
	list.bytes(1, value)
	p := mustNew(t, Config{Format: "otlp-proto"})
	if v, err := p.protoArray(list); err != nil || string(v) != "q-1" {
		t.Errorf("%q, %v", v, err)
	}
}

func TestOTLPProtoBroken(t *testing.T) {
	p := mustNew(t, Config{Format: "otlp-proto", Keys: []string{"question_key"}})
	show := func(e *Entry) string { return string(e.Keys[0]) }
	whole, err := base64.StdEncoding.DecodeString(protoOf(t, otlpLine()))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for n := 1; n < len(whole); n++ {
		seen[strings.Join(readOTLP(t, p, base64.StdEncoding.EncodeToString(whole[:n]), show), " ")] = true
	}
	// What ends in the middle of a message that holds it has no length to read it by.
	for _, want := range []string{"!cut_short", "q-1 !other_stream q-\"2\" !cut_short"} {
		if !seen[want] {
			t.Errorf("no cut reads as %s: %v", want, seen)
		}
	}
	for _, line := range []string{"", "hello", "====", `{"a":1}`} {
		if _, err := p.Parse([]byte(line), &Entry{}); err != RejectSyntax {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// A number is read as the standard library reads it, wherever it stands and ends, and is
// written as strconv writes it.
func TestProtoNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	p := mustNew(t, Config{Format: "otlp-proto"})
	for n := range 50_000 {
		v := random.Uint64() >> random.UintN(65)
		if n < 2000 {
			v = uint64(n)
		}
		if got := p.numberOf(v); string(got) != strconv.FormatUint(v, 10) {
			t.Fatalf("%d is written %q", v, got)
		}
		p.scratch = p.scratch[:0]
		b := append(make([]byte, random.IntN(4)), binary.AppendUvarint(nil, v)...)
		at := len(b) - len(binary.AppendUvarint(nil, v))
		for range random.IntN(12) {
			b = append(b, byte(random.Uint32()))
		}
		if random.IntN(4) == 0 {
			b = b[:random.IntN(len(b)+1)]
		}
		if random.IntN(4) == 0 && at < len(b) { // longer than need be, or too long
			for i := range b[at:] {
				b[at+i] |= byte(random.UintN(2)) << 7
			}
		}
		want, size := uint64(0), 0
		if at < len(b) {
			want, size = binary.Uvarint(b[at:])
		}
		got, next := protoVarint(b, at)
		if size <= 0 && next != -1 || size > 0 && (got != want || next != at+size) {
			t.Fatalf("%x from %d: %d up to %d, want %d and %d bytes", b, at, got, next, want, size)
		}
	}
	for size := range 17 {
		id := make([]byte, size)
		for i := range id {
			id[i] = byte(random.Uint32())
		}
		if got := p.hexOf(id); string(got) != hex.EncodeToString(id) {
			t.Errorf("%x is written %q", id, got)
		}
	}
}

// What is read on a short way is what the long way reads: addresses with all that may be
// wrong with them.
func TestALSAddresses(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	short := 0
	for range 100_000 {
		var socket, address protoMessage
		if random.IntN(8) == 0 {
			socket.varint(1, uint64(random.IntN(2)))
		}
		socket.bytes(2, bytes.Repeat([]byte("1"), random.IntN(3)*random.IntN(70)))
		if random.IntN(4) != 0 {
			socket.varint(3, random.Uint64()>>(40+random.UintN(24)))
		}
		address.bytes(1+random.IntN(2), socket)
		if random.IntN(3) == 0 {
			address[random.IntN(len(address))] = byte(random.Uint32())
		}
		address = address[:len(address)-random.IntN(4)/3]
		host, port, is := alsSocket(address)
		if !is {
			continue
		}
		short++
		wantHost, wantPort, err := alsAnyAddress(address)
		if err != nil || !bytes.Equal(host, wantHost) || port != wantPort {
			t.Fatalf("%x: %q and %d, want %q and %d, %v", address, host, port, wantHost, wantPort, err)
		}
	}
	if short < 10_000 {
		t.Errorf("only %d addresses went the short way", short)
	}
}

// Numbers that take much room to write are read as any other, however little room is left.
func TestProtoLongDoubles(t *testing.T) {
	p := mustNew(t, Config{Format: "otlp-proto", Keys: []string{"question_key"}})
	for _, x := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, -math.MaxFloat64, math.Inf(-1), math.NaN(), 12.5} {
		var span, scope, resource, request, list protoMessage
		span.varint(6, 2)
		span.fixed64(7, 1772532942118000000)
		span.bytes(9, protoAttributeOf(map[string]any{"key": "url.path", "value": map[string]any{"stringValue": "/a"}}))
		value := protoAnyOf(map[string]any{"doubleValue": x})
		for range maxJoined {
			list.bytes(1, value)
		}
		for range 4 {
			for key, v := range map[string]protoMessage{"duration_ms": value, "question_key": alsField(5, list)} {
				var attribute protoMessage
				attribute.bytes(1, []byte(key))
				attribute.bytes(2, v)
				span.bytes(9, attribute)
			}
		}
		scope.bytes(2, span)
		resource.bytes(2, scope)
		request.bytes(1, resource)
		want := "/a -1"
		if x == 12.5 {
			want = "/a 12500000"
		} else if x == math.SmallestNonzeroFloat64 {
			want = "/a 0"
		}
		for range 2 {
			wantAll(t, readOTLP(t, p, base64.StdEncoding.EncodeToString(request), func(e *Entry) string { return fmt.Sprintf("%s %d", e.Path, e.Duration) }), want)
		}
	}
}

// FuzzOTLP holds the reader of both forms to what holds for every record, whatever bytes it
// is given.
func FuzzOTLP(f *testing.F) {
	for _, line := range []string{otlpLine(), otlpLogLine} {
		f.Add([]byte(line))
		f.Add([]byte(line + line[:len(line)/2] + line))
		whole, err := base64.StdEncoding.DecodeString(protoOf(f, line))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
		f.Add(whole[:len(whole)/2])
	}
	p := mustNew(f, Config{Format: "otlp-proto", Keys: []string{"question_key", "traceparent"}, Extra: []string{"host.name"},
		Fields: map[string]string{"dependency": "service.name", "status": "http.response.status_code"}})
	f.Fuzz(func(t *testing.T, message []byte) {
		room := 2*len(message) + 1024
		p.otlp.copied, p.otlp.memory = make([]byte, 0, room), [2][]byte{make([]byte, 0, room), make([]byte, 0, room)}
		if len(message) == 0 || message[0] != '{' {
			message = []byte(base64.StdEncoding.EncodeToString(message))
		}
		fuzzLine(t, p, bytes.Clone(message))
	})
}
