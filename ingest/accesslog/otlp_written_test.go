package accesslog

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// A rewriter writes JSON in another of the ways that mean the same: members in any order,
// blanks, escapes, and members that nobody knows.
type rewriter struct {
	*rand.Rand
	out bytes.Buffer
}

func (w *rewriter) blank() {
	for w.IntN(4) == 0 {
		w.out.WriteByte(" \t\r\n"[w.IntN(4)])
	}
}

func (w *rewriter) text(s string) {
	w.out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\' || r < ' ' || w.IntN(12) == 0 && r < 0x10000:
			fmt.Fprintf(&w.out, `\u%04x`, r)
		default:
			w.out.WriteRune(r)
		}
	}
	w.out.WriteByte('"')
}

func (w *rewriter) value(v any) {
	w.blank()
	defer w.blank()
	switch v := v.(type) {
	case map[string]any:
		names := []string{}
		for name := range v {
			names = append(names, name)
		}
		if w.IntN(4) == 0 {
			names = append(names, "")
		}
		w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		w.out.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.blank()
			if name == "" {
				w.out.WriteString([]string{`"later":[{"x":"}]\"{["},1,[]]`, `"x":"]}"`, `"y":null`, `"z":{"values":[{"stringValue":"f"}],"key":"question_key"}`, `"w":-1.5e9`}[w.IntN(5)])
				continue
			}
			w.text(name)
			w.blank()
			w.out.WriteByte(':')
			w.value(v[name])
		}
		w.out.WriteByte('}')
	case []any:
		w.out.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.value(e)
		}
		w.out.WriteByte(']')
	case string:
		w.text(v)
	default:
		json.NewEncoder(&w.out).Encode(v)
	}
}

// However JSON is written, a record says the same.
func TestOTLPWritten(t *testing.T) {
	c := Config{Format: "otlp-json", Keys: []string{"question_key", "traceparent"}, Extra: []string{"host.name"}, Fields: map[string]string{"dependency": "service.name"}}
	show := func(e *Entry) string {
		o := *e
		o.Text = nil
		o.Notes &^= NoteEscapeRepaired
		return fmt.Sprintf("%q %q %q %q %+v", o.Keys, o.Extra, o.StatusRaw, o.ArrivalID, o)
	}
	w := &rewriter{Rand: rand.New(rand.NewPCG(9, 10))}
	p := mustNew(t, c)
	for _, line := range []string{
		otlpLine(), otlpLogLine,
		strings.Replace(otlpLogLine, `{"key":"url.path"`, `{"key":"a\"b\\","value":{"kvlistValue":{"values":[{"key":"c","value":{"boolValue":true}}]}}},{"key":"url.path"`, 1),
		strings.Replace(otlpLogLine, `[{"stringValue":"q-1"}]`, `[{"stringValue":"q-1"},{"stringValue":"q-2"},{"stringValue":"é\"☃"}]`, 1),
	} {
		want := readOTLP(t, mustNew(t, c), line, show)
		var request any
		if err := json.Unmarshal([]byte(line), &request); err != nil {
			t.Fatal(err)
		}
		for range 300 {
			w.out.Reset()
			w.value(request)
			if !json.Valid(w.out.Bytes()) {
				t.Fatal("no JSON")
			}
			got := readOTLP(t, p, w.out.String(), show)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Fatalf("%s\n got %s\nwant %s", w.out.String(), got, want)
			}
		}
	}
}

// What a value does not say is not known: a list with something else in it, or with more
// than are joined, and one of which another kind is said later.
func TestOTLPValue(t *testing.T) {
	p := mustNew(t, Config{Format: "otlp-json", Keys: []string{"question_key"}})
	show := func(e *Entry) string {
		return fmt.Sprintf("%s %d %d %s %v", e.Keys[0], e.Status, e.Duration, strings.Join(e.Notes.Strings(), ","), e.KeySuspect)
	}
	const head = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":2,"startTimeUnixNano":"1772532942118000000","endTimeUnixNano":%s,"attributes":[{"key":"url.path","value":{"stringValue":"/a"}},%s]}]}]}]}`
	const end = `"1772532942128000000"`
	attribute := func(key, value string) string { return `{"key":"` + key + `","value":` + value + `}` }
	list := func(values ...string) string {
		return attribute("question_key", `{"arrayValue":{"values":[`+strings.Join(values, ",")+`]}}`)
	}
	const q = `{"stringValue":"q-1"}`
	long := strings.Split(strings.Repeat(q+" ", maxJoined+1), " ")[:maxJoined+1]
	for _, c := range []struct{ name, end, attributes, want string }{
		{"one", end, list(q), "q-1 0 10000000  false"},
		{"none", end, list(), " 0 10000000  false"},
		{"null among them", end, list(q, `null`), " 0 10000000  false"},
		{"a bare word among them", end, list(q, `"q-2"`), " 0 10000000  false"},
		{"as many as are joined", end, list(long[:maxJoined]...), strings.Repeat("q-1, ", maxJoined-1) + "q-1 0 10000000  false"},
		{"more than are joined", end, list(long...), " 0 10000000  false"},
		{"two keys", end, attribute("question_key", q) + "," + attribute("question_key", `{"stringValue":"q-2"}`), "q-1 0 10000000 duplicate_member true"},
		{"one key twice", end, attribute("question_key", q) + "," + attribute("question_key", q), "q-1 0 10000000 duplicate_member false"},
		{"a status that is none", end, attribute("http.response.status_code", `{"intValue":"NaN"}`), " 0 10000000  false"},
		{"a number out of bounds", end, attribute("http.response.status_code", `{"doubleValue":1e400}`), " 0 10000000  false"},
		{"an infinite duration", end, attribute("duration_ms", `{"doubleValue":"Infinity"}`), " 0 10000000 bad_duration false"},
		{"a duration below zero", end, attribute("duration_ms", `{"intValue":"-5"}`), " 0 10000000 bad_duration false"},
		{"an end before the start", `"1772532942117999999"`, list(q), "q-1 0 -1 bad_duration false"},
		{"an end that is none", `"18446744073709551615"`, list(q), "q-1 0 -1 bad_duration false"},
		{"no end", `"0"`, list(q), "q-1 0 -1  false"},
	} {
		t.Run(c.name, func(t *testing.T) { wantAll(t, readOTLP(t, p, fmt.Sprintf(head, c.end, c.attributes), show), c.want) })
	}
	for _, start := range []string{`"18446744073709551615"`, `"9999999999999999999"`, `"9223372036854775807"`, `-1`, `"-1"`, `"1"`, `1e400`, `"NaN"`, `{}x`} {
		line := strings.Replace(fmt.Sprintf(head, end, list(q)), `"1772532942118000000"`, start, 1)
		want := "!bad_time"
		if start == `{}x` {
			want = "!syntax"
		}
		wantAll(t, readOTLP(t, p, line, show), want)
	}
	for _, nothing := range []string{`{"resourceSpans":null}`, `{"resource_metrics":null}`, `{"resourceSpans":[null]}`, `{"resourceSpans":[{"scopeSpans":[{"spans":null}]}]}`} {
		wantAll(t, readOTLP(t, p, nothing, show), "!other_stream")
	}
}

// The same in the binary form, where a field of a later release takes nothing away and a
// resource may be in two parts.
func TestProtoValue(t *testing.T) {
	p := mustNew(t, Config{Format: "otlp-proto", Keys: []string{"question_key"}, Fields: map[string]string{"dependency": "service.name"}, Extra: []string{"zone"}})
	show := func(e *Entry) string { return fmt.Sprintf("%s %s %s %s", e.Path, e.Keys[0], e.Dependency, e.Extra[0]) }
	text := func(s string) (m protoMessage) { m.bytes(1, []byte(s)); return m }
	attribute := func(key string, value protoMessage) (m protoMessage) {
		m.bytes(1, []byte(key))
		m.bytes(2, value)
		return m
	}
	request := func(key protoMessage) string {
		var span, scope, resource, request protoMessage
		span.varint(6, 2)
		span.fixed64(7, 1772532942118000000)
		span.bytes(9, attribute("url.path", text("/a")))
		span.bytes(9, attribute("question_key", key))
		scope.bytes(2, span)
		resource.bytes(1, alsField(1, attribute("zone", text("z"))))
		resource.bytes(2, scope)
		resource.bytes(1, alsField(1, attribute("service.name", text("seats"))))
		request.bytes(1, resource)
		return base64.StdEncoding.EncodeToString(request)
	}
	many := text("q-1")
	for range 100 {
		many = append(many, 0x9a, 0x06, 0x01, 'x') // field 99
	}
	list := protoMessage{}
	for range maxJoined + 1 {
		list.bytes(1, text("q-1"))
	}
	for name, c := range map[string]struct {
		value protoMessage
		want  string
	}{
		"text":                           {text("q-1"), "q-1"},
		"text, then what is not known":   {many, "q-1"},
		"text, then bytes":               {append(text("q-1"), 0x3a, 1, 'x'), ""},
		"text, then a list of names":     {append(text("q-1"), 0x32, 0), ""},
		"text, then another":             {append(text("q-1"), text("q-2")...), "q-2"},
		"text of another wire type":      {append(text("q-1"), 0x08, 1), "q-1"},
		"a list of one":                  {alsField(5, alsField(1, text("q-1"))), "q-1"},
		"a list of more than are joined": {alsField(5, list), ""},
	} {
		t.Run(name, func(t *testing.T) { wantAll(t, readOTLP(t, p, request(c.value), show), "/a "+c.want+" seats z") })
	}
}

// Of a line of many broken ones each is refused, in a time that grows with its length.
func TestOTLPManyBroken(t *testing.T) {
	p := mustNew(t, Config{Format: "otlp-json"})
	for _, unit := range []string{
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{`, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"a":"b`, `{"resourceSpans":[{"scopeSpans":[{"spans":[5,`,
		`{"resourceLogs":[{"resource":{"attributes":[{"key":"`, `{"resourceSpans":[{"x":[[[`, `{"resourceSpans":[`,
	} {
		n := 1 << 21 / len(unit)
		line := []byte(strings.Repeat(unit, n))
		refused := 0
		for late := time.Now().Add(30 * time.Second); len(line) != 0; refused++ {
			rest, err := p.Parse(line, &Entry{})
			if err == nil {
				t.Fatalf("%s: is a record", unit)
			}
			if line = rest; time.Now().After(late) {
				t.Fatalf("%s: after 30 s %d bytes are left", unit, len(line))
			}
		}
		if refused < n {
			t.Errorf("%s: %d are refused of %d", unit, refused, n)
		}
	}
}

// The end of a line whose beginning is lost takes nothing away from the line behind it, nor
// does what a program has written before one.
func TestOTLPBeginningLost(t *testing.T) {
	show := func(e *Entry) string { return string(e.Keys[0]) + " " + strings.Join(e.Notes.Strings(), ",") }
	for _, format := range []string{"otlp-json", "otlp-proto"} {
		p := mustNew(t, Config{Format: format, Keys: []string{"question_key"}})
		line := `{"resourceSpans":[` + fmt.Sprintf(otlpResourceHead, "seats") + otlpOf("00f067aa0ba902b7", "2", "q-1") + `]}]}]}`
		for cut := 1; cut < len(line); cut++ {
			got := readOTLP(t, p, line[cut:]+line, show)
			if n := len(got); got[n-1] != "q-1 " && got[n-1] != "q-1 resynchronised" && got[n-1] != "q-1 prefix_skipped" {
				t.Fatalf("%s, cut at %d: %q", format, cut, got)
			} else if n == 1 && !strings.HasSuffix(got[0], "skipped") || n > 3 {
				t.Fatalf("%s, cut at %d: %q", format, cut, got)
			}
		}
		wantAll(t, readOTLP(t, p, "otel: "+line, show), "q-1 prefix_skipped")
		wantAll(t, readOTLP(t, p, `{"a":1}`+line, show), "!syntax", "q-1 resynchronised")
	}
}

// A line is not taken for what was left of another that lay where it lies.
func TestOTLPSameMemory(t *testing.T) {
	p := mustNew(t, Config{Format: "otlp-json", Keys: []string{"question_key"}})
	two := otlpLine()
	one := `{"resourceSpans":[` + fmt.Sprintf(otlpResourceHead, "seats") + otlpOf("00f067aa0ba902b7", "2", "q-7") + `]}]}]}`
	buffer := []byte("2026-03-03T10:15:44Z stdout P " + two)
	if rest, err := p.Parse(buffer, &Entry{}); err != RejectCut || len(rest) != 0 {
		t.Fatalf("%v, %d bytes are left", err, len(rest))
	}
	// Where the second span began, and as long as all from there on.
	at := len(buffer) - len(two) + strings.Index(two, `,{"traceId"`) + 1
	line := buffer[at:]
	copy(line, bytes.Repeat([]byte(" "), len(line)))
	copy(line, one)
	if &line[0] != unsafe.SliceData(buffer[at:]) {
		t.Fatal("it lies elsewhere")
	}
	var e Entry
	if _, err := p.Parse(line, &e); err != nil || string(e.Keys[0]) != "q-7" {
		t.Errorf("%v, key %s", err, e.Keys)
	}
}
