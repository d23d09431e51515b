package accesslog

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// textWant is what a line of a text format must give; the zero value of a field
// is "nothing there".
type textWant struct {
	method, path, agent, peer, authority string
	status                               int
	bytes                                int64
	durationMs                           float64
	requestID, arrivalID, key            string
	tries                                []string // addr status
	suspect                              bool
	notes                                []string
	gone                                 Gone
}

type textTest struct {
	name   string
	fields map[string]string
	line   string
	want   textWant
	err    error
}

func runText(t *testing.T, format string, tests []textTest) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(Config{Format: format, Fields: tt.fields, Keys: []string{"question_key", "idempotency_key"}})
			if err != nil {
				t.Fatal(err)
			}
			var e Entry
			rest, err := p.Parse([]byte(tt.line), &e)
			if err != tt.err {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			if len(rest) != 0 {
				t.Errorf("left over %q", rest)
			}
			got := textWant{
				method: string(e.Method), path: string(e.Path), agent: string(e.UserAgent), peer: string(e.Peer),
				authority: string(e.Authority), status: e.Status, bytes: e.BytesSent,
				requestID: string(e.RequestID), arrivalID: string(e.ArrivalID),
				suspect: e.KeySuspect, notes: e.Notes.Strings(), gone: e.Gone,
			}
			if e.Duration != Unknown {
				got.durationMs = float64(e.Duration) / 1e6
			}
			for _, k := range e.Keys {
				if len(k) != 0 && got.key == "" {
					got.key = string(k)
				}
			}
			for _, try := range e.Tries {
				got.tries = append(got.tries, string(try.Addr)+" "+statusText(try.Status))
			}
			compareText(t, got, tt.want)
		})
	}
}

func statusText(n int) string {
	if n == 0 {
		return "-"
	}
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

func compareText(t *testing.T, got, want textWant) {
	t.Helper()
	check := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	check("method", got.method, want.method)
	check("path", got.path, want.path)
	check("user agent", got.agent, want.agent)
	check("peer", got.peer, want.peer)
	check("authority", got.authority, want.authority)
	check("status", got.status, want.status)
	check("bytes", got.bytes, want.bytes)
	check("duration", got.durationMs, want.durationMs)
	check("request id", got.requestID, want.requestID)
	check("arrival id", got.arrivalID, want.arrivalID)
	check("key", got.key, want.key)
	check("suspect", got.suspect, want.suspect)
	check("gone", got.gone, want.gone)
	if !slices.Equal(got.tries, want.tries) {
		t.Errorf("tries: got %q, want %q", got.tries, want.tries)
	}
	if !slices.Equal(got.notes, want.notes) {
		t.Errorf("notes: got %q, want %q", got.notes, want.notes)
	}
}

func TestNginxCombined(t *testing.T) {
	const head = `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a?b=c HTTP/1.1" 200 57`
	plain := textWant{method: "GET", path: "/a?b=c", peer: "192.0.2.1", status: 200, bytes: 57, notes: []string{"body_bytes_only"}}
	with := func(change func(*textWant)) textWant {
		w := plain
		change(&w)
		return w
	}
	agent := func(s string) textWant { return with(func(w *textWant) { w.agent = s }) }
	runText(t, "nginx-combined", []textTest{
		{name: "combined", line: head + ` "-" "agent/1"`, want: agent("agent/1")},
		{name: "common", line: head, want: plain},
		{name: "escaped quotes", line: head + ` "-" "say \x22hi\x22 \xC3\xA9"`, want: agent(`say "hi" é`)},
		{name: "escapes of JSON", line: head + ` "-" "say \"hi\""`, want: agent(`say "hi"`)},
		{name: "empty agent", line: head + ` "-" ""`, want: plain},
		{name: "no agent", line: head + ` "-" "-"`, want: plain},
		{name: "raw quotes", line: head + ` "-" "say "hi" x"`,
			want: with(func(w *textWant) {
				w.agent, w.suspect, w.notes = `say "hi" x`, true, []string{"quote_in_header", "body_bytes_only"}
			})},
		{name: "raw quotes do not hide the pairs behind", line: head + ` "-" "say "hi"x" rt=0.250 idem=q-1`,
			want: with(func(w *textWant) {
				w.agent, w.suspect, w.durationMs, w.key = `say "hi"x`, true, 250, "q-1"
				w.notes = []string{"quote_in_header", "body_bytes_only"}
			})},
		{name: "raw quotes in the referer", line: head + ` "say "hi"x" "agent/1"`,
			want: with(func(w *textWant) { w.suspect, w.notes = true, []string{"quote_in_header", "body_bytes_only"} })},
		{name: "appended by position", fields: map[string]string{"duration_s": "$1", "question_key": "$2", "arrival_id": "$3"},
			line: head + ` "-" "agent/1" 0.093 "q-\x227\x22" 5f1d0c9a77e34b6c8f0b1a2d3c4e5f60`,
			want: with(func(w *textWant) {
				w.agent, w.durationMs, w.key = "agent/1", 93, `q-"7"`
				w.arrivalID, w.requestID = "5f1d0c9a77e34b6c8f0b1a2d3c4e5f60", "5f1d0c9a77e34b6c8f0b1a2d3c4e5f60"
			})},
		{name: "names do not count as positions", fields: map[string]string{"question_key": "$1"},
			line: head + ` "-" "agent/1" rt=0.093 "q-7"`,
			want: with(func(w *textWant) { w.agent, w.durationMs, w.key = "agent/1", 93, "q-7" })},
		{name: "pairs with lists", line: head + ` "-" "agent/1" rt=0.012 bs=180 comp="OK" ua="[::1]:80, unix:/a.sock : 10.0.0.3:80" us=502, 502 : 200 urt=[0.001, 0.002 : 0.003]`,
			want: with(func(w *textWant) {
				w.agent, w.durationMs, w.bytes = "agent/1", 12, 180
				w.tries = []string{"[::1]:80 502", "unix:/a.sock 502", "10.0.0.3:80 200"}
				w.notes = []string{"several_upstream_tries"}
			})},
		{name: "forged pair", line: head + ` "-" "x" idem="q-0" idem="q-1"`,
			want: with(func(w *textWant) {
				w.agent, w.key, w.suspect, w.notes = "x", "q-0", true, []string{"body_bytes_only", "duplicate_member"}
			})},
		{name: "columns by nginx's names", fields: map[string]string{"question_key": "http_referer"}, line: head + ` "q-1" "agent/1"`,
			want: with(func(w *textWant) { w.agent, w.key = "agent/1", "q-1" })},
		{name: "empty request", line: `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "" 400 0 "-" "-"`,
			want: textWant{peer: "192.0.2.1", status: 400, notes: []string{"body_bytes_only"}}},
		{name: "a key that ends like base64", fields: map[string]string{"question_key": "$1"}, line: head + ` "-" "agent/1" cS0x==`,
			want: with(func(w *textWant) { w.agent, w.key = "agent/1", "cS0x==" })},
		{name: "the user's name is the caller's", line: `192.0.2.1 - x [01/Jan/2020:00:00:00 +0000] y [03/Mar/2026:10:15:42 +0000] "GET /a?b=c HTTP/1.1" 200 57 "-" "agent/1"`,
			want: agent("agent/1")},
		{name: "finer stamp, pairs only", line: `[03/Mar/2026:10:15:42 +0000|1772532942.118] "GET /a?b=c HTTP/1.1" st=499 bs=0 bbs=0 rt=0.205 comp="" ua=[-] us=[-] urt=[-] url=[-] ua="agent/1"`,
			want: textWant{method: "GET", path: "/a?b=c", agent: "agent/1", status: 499, durationMs: 205, gone: GoneYes}},
		{name: "nothing but a request line's beginning", line: `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "\x16\x03\x01" 400 157 "-" "-"`,
			want: textWant{peer: "192.0.2.1", status: 400, bytes: 157, notes: []string{"body_bytes_only"}}},
		{name: "caller leaves", line: `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET / HTTP/1.1" 499 0 "-" "-"`,
			want: textWant{method: "GET", path: "/", peer: "192.0.2.1", status: 499, gone: GoneYes, notes: []string{"body_bytes_only"}}},

		{name: "cut in the agent", line: head + ` "-" "agent`, err: RejectCut},
		{name: "cut before the agent", line: head + ` "-"`, err: RejectCut},
		{name: "cut in the request", line: `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a`, err: RejectCut},
		{name: "cut behind the request", line: `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1"`, err: RejectCut},
		{name: "cut behind the status", line: `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200`, err: RejectCut},
		{name: "cut in the stamp", line: `192.0.2.1 - - [03/Mar/20`, err: RejectCut},
		{name: "cut in a pair", line: head + ` "-" "agent/1" idem="q-`, err: RejectCut},
		{name: "a broken stamp", line: `192.0.2.1 - - [03/Foo/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 1 "-" "-"`, err: RejectBadTime},
		{name: "a message", line: `starting worker process 12`, err: RejectSyntax},
		{name: "an error log's line", line: `2026/03/03 10:15:42 [error] 7#7: open() "/a" failed`, err: RejectSyntax},
		{name: "no status", line: `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 2000 1 "-" "-"`, err: RejectSyntax},
	})
}

func TestIngressNginx(t *testing.T) {
	const head = `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" `
	const tail = ` 204 0.093 [ns-app-80] [] 10.0.0.1:80 57 0.090 200 id-1`
	plain := textWant{method: "GET", path: "/a", agent: "agent/1", peer: "192.0.2.1", status: 200, bytes: 57, durationMs: 93,
		requestID: "id-1", tries: []string{"10.0.0.1:80 200"}, notes: []string{"request_id_may_be_made_by_the_proxy", "body_bytes_only"}}
	with := func(change func(*textWant)) textWant {
		w := plain
		change(&w)
		return w
	}
	runText(t, "ingress-nginx", []textTest{
		{name: "one try", line: head + `"agent/1"` + tail, want: plain},
		{name: "before the alternative", line: head + `"agent/1" 204 0.093 [ns-app-80] [::1]:80 57 0.090 200 id-1`,
			want: with(func(w *textWant) { w.tries = []string{"[::1]:80 200"} })},
		{name: "two groups", line: head + `"agent/1" 204 0.093 [ns-app-80] [] 10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80 0, 0 : 57 0.001, 0.002 : 0.090 502, 502 : 200 id-1`,
			want: with(func(w *textWant) {
				w.tries = []string{"10.0.0.1:80 502", "10.0.0.2:80 502", "10.0.0.3:80 200"}
				w.notes = []string{"several_upstream_tries", "request_id_may_be_made_by_the_proxy", "body_bytes_only"}
			})},
		{name: "trailing joints", line: head + `"agent/1" 204 0.093 [ns-app-80] [] 10.0.0.1:80 :  57 :  0.090 :  200 :  id-1`, want: plain},
		{name: "nothing tried", line: head + `"agent/1" 204 0.000 [] [] - - - - id-1`,
			want: with(func(w *textWant) { w.tries, w.durationMs = nil, 0 })},
		{name: "appended", fields: map[string]string{"question_key": "$1"}, line: head + `"agent/1"` + tail + ` "q-1"`,
			want: with(func(w *textWant) { w.key = "q-1" })},
		{name: "raw quotes", line: head + `"say "hi" x"` + tail,
			want: with(func(w *textWant) {
				w.agent, w.suspect = `say "hi" x`, true
				w.notes = []string{"quote_in_header", "request_id_may_be_made_by_the_proxy", "body_bytes_only"}
			})},
		{name: "raw quotes that look whole", line: head + `"x" "y"` + tail,
			want: with(func(w *textWant) {
				w.agent, w.suspect = `x" "y`, true
				w.notes = []string{"quote_in_header", "request_id_may_be_made_by_the_proxy", "body_bytes_only"}
			})},
		{name: "lists disagree", line: head + `"agent/1" 204 0.093 [ns-app-80] [] 10.0.0.1:80, 10.0.0.2:80 57 0.090 200 id-1`,
			want: with(func(w *textWant) {
				w.tries = nil
				w.notes = []string{"request_id_may_be_made_by_the_proxy", "body_bytes_only", "lists_disagree"}
			})},
		{name: "cut in the lists", line: head + `"agent/1" 204 0.093 [ns-app-80] [] 10.0.0.1:80 57 0.0`, err: RejectCut},
		{name: "cut before the id", line: head + `"agent/1" 204 0.093 [ns-app-80] [] 10.0.0.1:80 57 0.090 200`, err: RejectCut},
		{name: "cut in the name", line: head + `"agent/1" 204 0.093 [ns-app`, err: RejectCut},
		{name: "combined", line: head + `"agent/1"`, err: RejectCut},
		{name: "another tail", line: head + `"agent/1" 204 soon [a] [] b c d e f`, err: RejectSyntax},
	})
}

func TestEnvoyText(t *testing.T) {
	const head = `[2026-03-03T10:15:42.118Z] "GET /a HTTP/1.1" 200 - 0 5 3 2`
	const tail = ` "-" "agent/1" "id-1" "rank.internal" "10.0.3.21:9000"`
	plain := textWant{method: "GET", path: "/a", agent: "agent/1", authority: "rank.internal", status: 200, bytes: 5, durationMs: 3, requestID: "id-1"}
	with := func(change func(*textWant)) textWant {
		w := plain
		change(&w)
		return w
	}
	broken := func(agent string) textWant {
		return with(func(w *textWant) { w.agent, w.suspect, w.notes = agent, true, []string{"quote_in_header"} })
	}
	key := map[string]string{"question_key": "$1"}
	keyed := with(func(w *textWant) { w.key = "q-1" })
	runText(t, "envoy-text", []textTest{
		{name: "default", line: head + tail, want: plain},
		{name: "a backslash is a character", line: head + ` "-" "agent\" "id-1" "rank.internal" "10.0.3.21:9000"`,
			want: with(func(w *textWant) { w.agent = `agent\` })},
		{name: "stamp in seconds", line: strings.Replace(head, "2026-03-03T10:15:42.118Z", "1772532942", 1) + tail, want: plain},
		{name: "stamp without brackets", line: strings.Replace(head, "[2026-03-03T10:15:42.118Z]", "2026-03-03T10:15:42.118000Z", 1) + tail, want: plain},
		{name: "stamp with a blank", line: strings.Replace(head, "2026-03-03T10:15:42.118Z", "2026-03-03 10:15:42.118", 1) + tail, want: plain},
		{name: "no status", line: strings.Replace(head, "200 -", "- DC", 1) + tail,
			want: with(func(w *textWant) { w.status, w.gone = 0, GoneYes })},
		{name: "reset", line: strings.Replace(head, "200 -", "0 DR", 1) + tail,
			want: with(func(w *textWant) { w.status, w.gone = 0, GoneYes })},
		{name: "unknown flag", line: strings.Replace(head, "200 -", "200 XYZ,DI", 1) + tail, want: plain},

		{name: "appended, unquoted", line: head + tail + ` inbound|9000|| 10.0.3.1:1 -`, want: plain},
		{name: "appended key", fields: key, line: head + tail + ` "q-1"`, want: keyed},
		{name: "appended key, absent", fields: key, line: head + tail + ` "-"`, want: plain},
		{name: "appended pair", line: head + tail + ` idempotency_key="q-1"`, want: keyed},
		{name: "appended without a name", line: head + tail + ` "whatever"`, want: plain},
		{name: "host is no address, key configured", fields: key, line: head + ` "-" "agent/1" "id-1" "rank.internal" "-" "q-1"`, want: keyed},

		{name: "columns by Istio's names", fields: map[string]string{"question_key": "request_id"}, line: head + tail,
			want: with(func(w *textWant) { w.key = "id-1" })},

		{name: "one quote in the agent", line: head + ` "-" "say "hi" "id-1" "rank.internal" "10.0.3.21:9000"`, want: broken(`say "hi`)},
		{name: "forged values", line: head + ` "-" "x" "id-0" "evil.example" "y" "id-1" "rank.internal" "10.0.3.21:9000"`,
			want: broken(`x" "id-0" "evil.example" "y`)},
		{name: "forged host", line: head + ` "-" "x" "id-0" "evil.example" "10.9.9.9:1" "id-1" "rank.internal" "10.0.3.21:9000"`,
			want: broken(`x" "id-0" "evil.example" "10.9.9.9:1`)},
		{name: "forged key", fields: key, line: head + ` "-" "x" "y" "id-1" "rank.internal" "10.0.3.21:9000" "q-1"`, want: broken(`x" "y`)},
		{name: "forged pair", line: head + ` "-" "x" "id-0" "evil.example" "10.9.9.9:1" idempotency_key="q-0" "id-1" "rank.internal" "10.0.3.21:9000"`,
			want: broken(`x" "id-0" "evil.example" "10.9.9.9:1" idempotency_key="q-0`)},
		{name: "forged without an upstream", line: head + ` "-" "x" "id-0" "evil.example" "10.9.9.9:1" "id-1" "rank.internal" "-"`,
			want: broken(`x" "id-0" "evil.example" "10.9.9.9:1`)},
		{name: "quote in the path", line: strings.Replace(head, "/a", `/a"b`, 1) + tail,
			want: with(func(w *textWant) { w.path, w.suspect, w.notes = `/a"b`, true, []string{"quote_in_header"} })},

		{name: "a value left out", line: strings.Replace(head, " 3 2", " 3 ", 1) + tail, err: RejectSyntax},
		{name: "a value left out, blanks folded", line: strings.Replace(head, " 3 2", " 3", 1) + tail, err: RejectSyntax},
		{name: "Istio's columns", line: strings.Replace(head, "200 -", `200 - via_upstream - "-"`, 1) + tail, err: RejectSyntax},
		{name: "cut in the head", line: `[2026-03-03T10:15:42.118Z] "GET /a HTTP/1.1" 200 - 0`, err: RejectCut},
		{name: "cut in the request", line: `[2026-03-03T10:15:42.118Z] "GET /a`, err: RejectCut},
		{name: "cut in the values", line: head + ` "-" "agent/1" "id-1"`, err: RejectCut},
		{name: "cut in a value", line: head + ` "-" "agent/1" "id`, err: RejectCut},
		{name: "a message", line: `[2026-03-03 10:15:42.118][1][info][main] starting "x"`, err: RejectSyntax},
	})
}

// A caller may fill a line with quotes: that must not cost the square of its length.
func TestEnvoyTextFullOfQuotes(t *testing.T) {
	for _, part := range []string{`"`, `\"`, `" `, `" 2`} {
		for _, format := range []string{"envoy-text", "istio-text"} {
			p, err := New(Config{Format: format})
			if err != nil {
				t.Fatal(err)
			}
			line := "[2026-03-03T10:15:42.161Z] \"GET /" + strings.Repeat(part, (MaxLine-100)/len(part))
			if _, err := p.Parse([]byte(line), new(Entry)); err == nil {
				t.Errorf("%s: a line of %q is read as a record", format, part)
			}
		}
	}
}

func TestIstioText(t *testing.T) {
	const line = `[2026-03-03T10:15:42.118Z] "GET /a HTTP/1.1" 200 - via_upstream - "-" 0 5 3 2 "-" "agent/1" "id-1" "rank.internal" "10.0.3.21:9000" ` +
		`outbound|9000||rank.internal 10.0.3.1:1 10.0.3.21:9000 10.0.3.9:2 - default`
	want := textWant{method: "GET", path: "/a", agent: "agent/1", authority: "rank.internal", status: 200, bytes: 5, durationMs: 3,
		requestID: "id-1", peer: "10.0.3.9:2"}
	blanks := want
	runText(t, "istio-text", []textTest{
		{name: "default", line: line, want: want},
		{name: "blanks in the details", line: strings.Replace(line, "via_upstream", "filter chain not found", 1), want: blanks},
		{name: "Envoy's columns", line: `[2026-03-03T10:15:42.118Z] "GET /a HTTP/1.1" 200 - 0 5 3 2 "-" "agent/1" "id-1" "rank.internal" "10.0.3.21:9000"`, err: RejectSyntax},
	})
	p, err := New(Config{Format: "istio-text"})
	if err != nil {
		t.Fatal(err)
	}
	var e Entry
	if _, err := p.Parse([]byte(line), &e); err != nil || !e.Outbound || e.Work != WorkYes {
		t.Errorf("error %v, outbound %v, work %v; want the caller's side, work done", err, e.Outbound, e.Work)
	}
}

func TestLogfmt(t *testing.T) {
	plain := textWant{method: "GET", path: "/a", status: 200, bytes: 5, durationMs: 41, key: "q-1"}
	with := func(change func(*textWant)) textWant {
		w := plain
		change(&w)
		return w
	}
	runText(t, "logfmt", []textTest{
		{name: "bare", line: `time=2026-03-03T10:15:42.118Z method=GET path=/a status=200 bytes_sent=5 duration_ms=41 question_key=q-1`, want: plain},
		{name: "quoted", line: `time="2026-03-03T10:15:42.118Z" method="GET" path="/a" status="200" bytes_sent="5" duration_ms="41" question_key="q-1"`, want: plain},
		{name: "words and order", line: `done question_key=q-1 finished duration_ms=41 bytes_sent=5 status=200 path=/a method=GET time=2026-03-03T10:15:42.118Z`, want: plain},
		{name: "escapes", line: `time=2026-03-03T10:15:42.118Z msg="say \"hi\"" request="GET /a HTTP/1.1" status=200 bytes_sent=5 duration_ms=41 question_key="q-\"1\""`,
			want: with(func(w *textWant) { w.key = `q-"1"` })},
		{name: "empty value", line: `time=2026-03-03T10:15:42.118Z method=GET path=/a status=200 bytes_sent=5 duration_ms=41 question_key= idempotency_key="q-1"`, want: plain},
		{name: "addresses are no lists", line: `time=2026-03-03T10:15:42.118Z peer=[::1]:80 method=GET path=/a status=200 bytes_sent=5 duration_ms=41 question_key=q-1`,
			want: with(func(w *textWant) { w.peer = "[::1]:80" })},
		{name: "raw quotes", line: `time=2026-03-03T10:15:42.118Z method=GET path=/a ua="say "hi" x" status=200 bytes_sent=5 duration_ms=41 question_key=q-1`,
			want: with(func(w *textWant) { w.suspect, w.notes = true, []string{"quote_in_header"} })},
		{name: "cut", line: `time=2026-03-03T10:15:42.118Z method=GET path="/a`, err: RejectCut},
		{name: "a message", line: `listening on port 80`, err: RejectSyntax},
	})
}

// Text formats are read without allocating, so that a replay runs at the speed
// of the disk.
func TestTextFormatsDoNotAllocate(t *testing.T) {
	for _, tt := range textLines {
		doesNotAllocate(t, Config{Format: tt.format}, tt.line)
	}
}

var textLines = []struct{ format, line string }{
	{"nginx-combined", `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a?b=c HTTP/1.1" 200 57 "-" "say \x22hi\x22" rt=0.012 ua="10.0.0.1:80, 10.0.0.2:80" us="502, 200" urt="0.001, 0.011" comp="OK" key="q-1"`},
	{"ingress-nginx", `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "agent/1" 204 0.093 [ns-app-80] [] 10.0.0.1:80, 10.0.0.2:80 0, 57 0.001, 0.090 502, 200 5f1d0c9a77e34b6c8f0b1a2d3c4e5f60`},
	{"envoy-text", `[2026-03-03T10:15:42.118Z] "GET /a HTTP/1.1" 200 - 0 5 3 2 "-" "agent/1" "33333333-4444-4555-8666-777777777777" "rank.internal" "10.0.3.21:9000" key="q-1"`},
	{"istio-text", `[2026-03-03T10:15:42.118Z] "GET /a HTTP/1.1" 200 - via_upstream - "-" 0 5 3 2 "-" "agent/1" "33333333-4444-4555-8666-777777777777" "rank.internal" "10.0.3.21:9000" inbound|9000|| 10.0.3.1:1 10.0.3.21:9000 10.0.3.9:2 - default`},
	{"logfmt", `time=2026-03-03T10:15:42.118Z method=GET path=/a status=200 bytes_sent=5 duration_ms=41 msg="say \"hi\"" question_key=q-1`},
}

func BenchmarkParseText(b *testing.B) {
	for _, tt := range textLines {
		b.Run(tt.format, func(b *testing.B) { benchmarkLine(b, Config{Format: tt.format}, tt.line) })
	}
}

// Whatever stands in a line, the parser gives a record or a reason and leaves
// every value inside its bounds.
func FuzzTextFormats(f *testing.F) {
	for i, tt := range textLines {
		f.Add(uint8(i), []byte(tt.line))
	}
	f.Add(uint8(2), []byte(`[2026-03-03T10:15:42.118Z] "GET /a HTTP/1.1" 200 - 0 5 3 2 "-" "x" "y" "z" "a" "b" "10.0.0.1:1"`))
	f.Add(uint8(0), []byte(`[03/Mar/2026:10:15:42 +0000|1772532942.118] "GET / HTTP/1.1" st=499 us=[504, - : 200 : ]`))
	var parsers []*Parser
	for _, tt := range textLines {
		p, err := New(Config{Format: tt.format, Keys: []string{"question_key"}, Fields: map[string]string{"idempotency_key": "$1"}})
		if err != nil {
			f.Fatal(err)
		}
		parsers = append(parsers, p)
	}
	f.Fuzz(func(t *testing.T, n uint8, line []byte) {
		fuzzLine(t, parsers[int(n)%len(parsers)], bytes.Clone(line))
	})
}
