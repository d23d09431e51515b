package accesslog

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"unsafe"
)

// seeds are one record of every shape that the formats know, and the ways in
// which they break.
func seeds() []string {
	const a = `{"t":"2026-03-03T10:15:42.118Z","key":"q-\"1\"","st":200,"uri":"/a\u00e9\x22"}`
	return []string{
		a, a + a, a[:40] + a, a[:40] + `{"t":` + a, "\xEF\xBB\xBF" + a, "\x00\x00" + a, "escape=json" + a,
		string(benchLines("json", 1)[0]), string(benchLines("nginx-json", 1)[0]), string(benchLines("envoy-json", 1)[0]),
		`{"t":"2026-03-03T10:15:43+00:00","uri":"/health","st":200,"urt":-,"us":1, 2,"key":""}`,
		`{"start_time":"2026-03-03T10:15:42.118Z","response_code":"200","user_agent":"a"b","question_key":"k"}`,
		`{"log":"{\"t\":\"2026-03-03T10:15:42.118Z\",\"st\":200}{\"t\":1772532942,\"st\":200}\n","stream":"stdout","time":"2026-03-03T10:15:43Z"}`,
		`2026-03-03T10:15:44.000000001Z stdout F ` + a, `2026-03-03T10:15:44Z stderr P warn`,
		`{"@timestamp":"2026-03-03T10:15:50Z","log":{"offset":1},"message":"` + `[2026-03-03T10:15:42.118Z] \"GET /e HTTP/1.1\" 200 DC 0 7 21 12 \"-\" \"dl/1\" \"id\" \"files\" \"10.0.3.31:9000\""}`,
		`[2026-03-03T10:15:42.118Z] "GET /export HTTP/1.1" 200 DC 0 734003 2150 12 "-" "dl/1" "11111111-2222-4333-8444-555555555555" "files.internal" "10.0.3.31:9000"`,
		`192.0.2.41 - - [03/Mar/2026:10:15:42 +0000] "GET /v1/quote?id=7 HTTP/1.1" 499 0 "-" "quoter/2.1" 318 12.480 [shop-quote-80] [] 10.0.3.11:8080, 10.0.3.12:8080 0, 0 5.000, 5.001 504, - 5f1d0c9a77e34b6c8f0b1a2d3c4e5f60`,
		`t=2026-03-03T10:15:42+00:00 req="GET /item/9 HTTP/1.1" st=200 bytes=812 rt=0.041 comp="OK" ua="10.0.4.1:80, 10.0.4.2:80 : 10.0.5.1:80" us="502, 502 : 200" urt="0.002, 0.003 : 0.036"`,
		patternLine, traefikLine, iisLine, iisHead,
		"<134>Mar  3 10:15:42 lb1 haproxy[811]: " + haproxyLine("q-1", "q#231") + ` abortonclose=on question_key="q\"2"`,
		`{"time":"2026-03-03T10:15:42Z","path":"/","amz-sdk-request":"attempt=2; max=3; ttl=20260303T101545Z","x-goog-api-client":"gl-go/1 gccl-invocation-id/u gccl-attempt-count/2","retry_after":"Tue, 03 Mar 2026 10:15:52 GMT"}`,
	}
}

// FuzzParse holds the parser of every format to its promises: it never panics, a
// request does not end before it starts, what an entry points at lies in the
// line or in the parser's memory, and what a line says depends neither on what
// was read before it nor on whether its quotes were marked beforehand.
func FuzzParse(f *testing.F) {
	for _, s := range seeds() {
		for i := range Formats() {
			f.Add([]byte(s), uint8(i))
		}
	}
	for format, s := range servedLines(f) {
		f.Add([]byte(s), uint8(slices.Index(Formats(), format)))
	}
	warm, slow := map[string]*Parser{}, map[string]*Parser{}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		c := Config{Keys: []string{"question_key", "traceparent", "my_id"}, Extra: []string{"shop"}}
		switch c.Format = Formats()[int(which)%len(Formats())]; c.Format {
		case "pattern":
			c.Pattern = patternOf
		case "apache", "iis":
		default:
			c.Fields = map[string]string{"peer": "who", "deadline": "request.headers.Deadline"}
		}
		if warm[c.Format] == nil {
			warm[c.Format], slow[c.Format] = mustNew(t, c), mustNew(t, c)
			slow[c.Format].unmarked = true
		}
		if got, want := readAll(warm[c.Format], bytes.Clone(data)), readAll(slow[c.Format], bytes.Clone(data)); got != want {
			t.Fatalf("read differently\n  marked %s\nunmarked %s", got, want)
		}
		cold := mustNew(t, c)
		line, again := bytes.Clone(data), bytes.Clone(data)
		for n := 0; n < 8 && (n == 0 || len(line) != 0); n++ {
			var e, o Entry
			room := 64*len(line) + 1024
			for _, p := range []*Parser{cold, warm[c.Format]} {
				if n == 0 {
					p.scratch, p.spare = make([]byte, 0, room), make([]byte, 0, room)
					p.otlp.copied = make([]byte, 0, room)
					p.otlp.memory = [2][]byte{make([]byte, 0, room), make([]byte, 0, room)}
				}
			}
			rest, err := cold.Parse(line, &e)
			restAgain, errAgain := warm[c.Format].Parse(again, &o)
			if err != errAgain || !bytes.Equal(rest, restAgain) {
				t.Fatalf("cold %v %q, warm %v %q", err, rest, errAgain, restAgain)
			}
			if err == nil {
				if a, b := fmt.Sprintf("%+v", e), fmt.Sprintf("%+v", o); a != b {
					t.Fatalf("read differently\ncold %s\nwarm %s", a, b)
				}
				check(t, cold, line, &e)
			} else if _, ok := err.(Reject); !ok {
				t.Fatalf("error %v is no Reject", err)
			}
			if len(rest) != 0 && len(rest) >= len(line) {
				t.Fatal("the rest does not get shorter")
			}
			line, again = rest, restAgain
		}
	})
}

func check(t *testing.T, p *Parser, line []byte, e *Entry) {
	t.Helper()
	if e.Start > e.End {
		t.Fatalf("start %d after end %d", e.Start, e.End)
	}
	if e.Duration < Unknown || e.BytesSent < Unknown || e.RetryAfter < Unknown || e.AttemptsLeft < Unknown || e.Attempt < 0 || e.Deadline < 0 {
		t.Fatalf("a number is below unknown: %+v", e)
	}
	if e.Status != 0 && (e.Status < 100 || e.Status > 999) {
		t.Fatalf("status %d", e.Status)
	}
	_ = [...]string{e.Gone.String(), e.Delivered.String(), e.Work.String(), e.Departure.String()}
	all := [][]byte{e.Text, e.Dependency, e.Route, e.Method, e.Path, e.Authority, e.UserAgent, e.Peer, e.StatusRaw,
		e.RequestID, e.ArrivalID, e.StreamID}
	all = append(append(all, e.Keys...), e.Extra...)
	for _, try := range e.Tries {
		all = append(all, try.Addr)
	}
	for _, b := range all {
		if len(b) != 0 && !within(b, line) && !within(b, p.scratch) && !within(b, p.spare) && !within(b, dash) &&
			!within(b, p.otlp.copied) && !within(b, p.otlp.memory[0]) && !within(b, p.otlp.memory[1]) {
			t.Fatalf("value %q lies outside the line and the scratch memory", b)
		}
	}
}

// fuzzLine holds a parser to what holds for every record, whatever the line. The memory for
// values is large, so that none moves while they are looked at; then it is small, and what
// the line says is the same.
func fuzzLine(t *testing.T, p *Parser, line []byte) {
	t.Helper()
	again := bytes.Clone(line)
	var said [2][]string
	for n, data := range [2][]byte{line, again} {
		room := 0
		if n == 0 {
			room = 64*len(line) + 1024
		}
		p.scratch, p.spare = make([]byte, 0, room), make([]byte, 0, room)
		for records := 0; records < 64 && (records == 0 || len(data) != 0); records++ {
			var e Entry
			rest, err := p.Parse(data, &e)
			if len(rest) != 0 && len(rest) >= len(data) {
				t.Fatal("no progress")
			}
			if err != nil {
				if _, ok := err.(Reject); !ok {
					t.Fatalf("%v is no reason", err)
				}
				said[n] = append(said[n], err.Error())
				data = rest
				continue
			}
			if n == 0 {
				check(t, p, data, &e)
			}
			if e.Gone >= GoneLikely != (e.Departure != NotRecorded) {
				t.Fatalf("gone %v but departure %v", e.Gone, e.Departure)
			}
			if e.Gone >= GoneLikely && !e.Visible {
				t.Fatal("a departure that would not show")
			}
			said[n] = append(said[n], fmt.Sprintf("%q %q %q %+v", e.Keys, e.Extra, e.Text, e))
			data = rest
		}
	}
	if !slices.Equal(said[0], said[1]) {
		t.Fatalf("with room %q\nwithout  %q", said[0], said[1])
	}
}

func within(b, in []byte) bool {
	if cap(in) == 0 {
		return false
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(in)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return at >= start && at+uintptr(len(b)) <= start+uintptr(cap(in))
}

func FuzzStamp(f *testing.F) {
	for _, s := range []string{"2026-03-03T10:15:42.118Z", "2026-03-03 10:15:42,5+0100", "[03/Mar/2026:10:15:42 +0000]",
		"03/Mar/2026:10:15:42.500", "1772532942.118", "1772532942118", "1.7725e9", "20260303T101542Z"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Parser
		ns, uncertainty, ok := p.stamp(b)
		if ok && (ns < minSecond*1e9-86400e9 || uncertainty < 0 || uncertainty > 1e9) {
			t.Fatalf("%q: %d ±%d", b, ns, uncertainty)
		}
		again, _, ok2 := p.stamp(b)
		if ok != ok2 || ns != again {
			t.Fatalf("%q: %d, then %d", b, ns, again)
		}
		if d, ok := span(b, unitSeconds); ok && (d < 0 || d > maxSpan) {
			t.Fatalf("%q: span %d", b, d)
		}
	})
}

// FuzzDetect also runs the Joiner, whose lines are never longer than the source.
func FuzzDetect(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s + "\n" + s))
	}
	f.Fuzz(func(t *testing.T, sample []byte) {
		if len(sample) > 1<<14 {
			return
		}
		if format, err := Detect(sample); err == nil {
			if _, err := New(Config{Format: format}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
