package accesslog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestApache(t *testing.T) {
	const line = `192.0.2.1 - ann [03/Mar/2026:10:15:42 +0000] "GET /a?b=\"c\" HTTP/1.1" 200 57 "-" "say \"hi\" \xc3\xa9\\"`
	tests := []struct {
		name, pattern, line string
		fields              map[string]string
		want                string // the words of start duration peer method path authority status bytes key attempt retry suspect agent
		err                 error
	}{
		{name: "combined by default", line: line,
			want: `2026-03-03T10:15:42Z -1ns 192.0.2.1 GET /a?b="c"  200 57  0 -1ns false say "hi" é\`},
		{name: "common", pattern: "common", line: `192.0.2.1 - ann b [03/Mar/2026:10:15:42 +0100] "GET /a HTTP/1.1" 304 -`,
			want: `2026-03-03T09:15:42Z -1ns 192.0.2.1 GET /a  304 0  0 -1ns false `},
		{name: "vhost_combined", pattern: "vhost_combined", line: `shop.example:443 2001:db8::1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 257 "-" "x"`,
			want: `2026-03-03T10:15:42Z -1ns 2001:db8::1 GET /a shop.example 200 257  0 -1ns false x`},
		{name: "as in httpd.conf", pattern: `LogFormat "%a %t \"%r\" %>s \"%{Question-Key}i\" %%" audit`, line: `192.0.2.1 [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 "\"q 1\"" %`,
			want: `2026-03-03T10:15:42Z -1ns 192.0.2.1 GET /a  200 -1 "q 1" 0 -1ns false `},
		{name: "headers", pattern: `%{begin:usec}t %D "%r" %s %>s %O "%{Host}i" "%{X-Envoy-Attempt-Count}i" "%{Retry-After}o" "%{Question-Key}i" %{c}a %a`,
			line: `1772532942118042 1500 "GET /a HTTP/1.1" 301 200 99 "shop.example" "2" "7" "q-1" 10.0.0.9 192.0.2.1`,
			want: `2026-03-03T10:15:42.118042Z 1.5ms 10.0.0.9 GET /a shop.example 200 99 q-1 2 7s false `},
		{name: "configured names", pattern: `%t "%{X-Key}i" "%{Try}e"`, line: `[03/Mar/2026:10:15:42 +0000] "k-1" "3"`,
			fields: map[string]string{"question_key": "%{X-Key}i", "attempt": "Try"},
			want:   `2026-03-03T10:15:42Z -1ns    0 -1 k-1 3 -1ns false `},
		{name: "a header is not what its name says", pattern: `%t "%{Status}i" "%{Path}i" "%{Time}i"`, line: `[03/Mar/2026:10:15:42 +0000] "500" "/x" "0"`,
			want: `2026-03-03T10:15:42Z -1ns    0 -1  0 -1ns false `},
		{name: "path and query apart", pattern: `%{msec}t %m %U%q %H %{ms}T %T`, line: `1772532942118 GET /a?x=1 HTTP/1.1 41 0`,
			want: `2026-03-03T10:15:42.118Z 41ms  GET /a?x=1  0 -1  0 -1ns false `},
		{name: "stamp of several directives", pattern: `[%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] %>s`, line: `[03/Mar/2026:10:15:42.118 +0200] 200`,
			want: `2026-03-03T08:15:42.118Z -1ns    200 -1  0 -1ns false `},
		{name: "ISO stamp of the end", pattern: `%{end:%FT%T}t.%{end:usec_frac}t%{end:%z}t %D`, line: `2026-03-03T10:15:42.118042+0000 118042`,
			want: `2026-03-03T10:15:42Z 118.042ms    0 -1  0 -1ns false `},
		{name: "the finer stamp", pattern: `%t %{usec}t %{sec}t`, line: `[03/Mar/2026:10:15:42 +0000] 1772532942118042 1772532942`,
			want: `2026-03-03T10:15:42.118042Z -1ns    0 -1  0 -1ns false `},
		{name: "whole seconds do not measure", pattern: `%{begin:sec}t %{end:sec}t %D`, line: `1772532942 1772532943 41000`,
			want: `2026-03-03T10:15:42Z 41ms    0 -1  0 -1ns false `},
		{name: "a list of addresses without quotes", pattern: `%{X-Forwarded-For}i %l %u %t "%r" %>s "%{Question-Key}i"`,
			line: `192.0.2.1, 192.0.2.2 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 "q-1"`,
			want: `2026-03-03T10:15:42Z -1ns  GET /a  200 -1 q-1 0 -1ns false `},
		{name: "a key without quotes", pattern: `%t %>s %{Question-Key}i %{User-Agent}i`, line: `[03/Mar/2026:10:15:42 +0000] 200 q-1 agent/1`,
			want: `2026-03-03T10:15:42Z -1ns    200 -1 q-1 0 -1ns false agent/1`},
		{name: "a key without quotes, and a blank", pattern: `%t %>s %{User-Agent}i %{Question-Key}i`, line: `[03/Mar/2026:10:15:42 +0000] 200 agent q-1 q-2`,
			want: `2026-03-03T10:15:42Z -1ns    200 -1 q-1 q-2 0 -1ns true agent`},
		{name: "cut in the agent", line: line[:len(line)-3], err: RejectCut},
		{name: "cut in the columns", line: line[:70], err: RejectCut},
		{name: "another format", pattern: "common", line: line, err: RejectSyntax},
		{name: "a raw quote", line: strings.Replace(line, `\"c`, `"c`, 1), err: RejectSyntax},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustNew(t, Config{Format: "apache", Pattern: tt.pattern, Fields: tt.fields, Keys: []string{"question_key"}})
			var e Entry
			if _, err := p.Parse([]byte(tt.line), &e); err != tt.err {
				t.Fatalf("error %v, want %v", err, tt.err)
			} else if err != nil {
				return
			}
			got := fmt.Sprintf("%s %v %s %s %s %s %d %d %s %d %v %v %s", time.Unix(0, e.Start).UTC().Format(time.RFC3339Nano), time.Duration(e.Duration),
				e.Peer, e.Method, e.Path, e.Authority, e.Status, e.BytesSent, e.Keys[0], e.Attempt, time.Duration(e.RetryAfter), e.KeySuspect, e.UserAgent)
			if words := strings.Fields(got); strings.Join(words, " ") != strings.Join(strings.Fields(tt.want), " ") {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestApacheErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		`%h %Q`:                       `"%Q" at byte 4 is no directive`,
		`%h %{User-Agent`:             `"%{User-Agent" at byte 4 has no closing brace`,
		`%h %`:                        "cut short",
		`%t %h%u`:                     "nothing stands between %h and %u",
		`%h %>s`:                      "no time: add %{begin:msec}t",
		`%{%A}t %h`:                   "%A is not read here",
		`%{%H:%M:%S}t %h`:             "not read as a time",
		`LogFormat "%t %h`:            "no closing quote",
		`%t\n%h`:                      "line break",
		`LogFormat "%t \"%Z\"" audit`: `"%Z" at byte 5 is no directive`,
	} {
		if _, err := New(Config{Format: "apache", Pattern: pattern}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", pattern, err, want)
		}
	}
	_, err := New(Config{Format: "apache", Fields: map[string]string{"question_key": "Question-Key"}})
	if err == nil || !strings.Contains(err.Error(), `nothing in it is called "Question-Key", which fields.question_key names`) {
		t.Errorf("got %v", err)
	}
}

// What a real httpd wrote, and what %X and %O can say.
func TestApacheDeparture(t *testing.T) {
	tests := []struct {
		state, status, size string
		want                outcome
	}{
		{"X", "200", "20000098", outcome{GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false}}, // read to its end by HTTP/2
		{"+", "200", "122", outcome{GoneNoRecord, DeliveredAll, WorkYes, NotRecorded, false, false}},          // also after a FIN
		{"-", "200", "122", outcome{GoneNoRecord, DeliveredAll, WorkYes, NotRecorded, false, false}},
		{"X", "200", "0", outcome{GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer, true, false}},
		{"X", "200", "3899392", outcome{GoneYes, DeliveredPartial, WorkYes, DuringResponse, true, false}},
		{"X", "504", "0", outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}},
		{"-", "502", "400", outcome{GoneNoRecord, DeliveredAll, WorkUnknown, NotRecorded, false, false}},
	}
	p := mustNew(t, Config{Format: "apache", Pattern: "%t %X %>s %O %B"})
	for _, tt := range tests {
		var e Entry
		if _, err := p.Parse(fmt.Appendf(nil, "[03/Mar/2026:10:15:42 +0000] %s %s %s 20000000", tt.state, tt.status, tt.size), &e); err != nil {
			t.Fatal(err)
		}
		if got := outcomeOf(&e); got != tt.want {
			t.Errorf("%s %s %s: got %+v, want %+v", tt.state, tt.status, tt.size, got, tt.want)
		}
	}
	var e Entry
	p = mustNew(t, Config{Format: "apache", Pattern: "%t %X %>s %B"})
	if _, err := p.Parse([]byte("[03/Mar/2026:10:15:42 +0000] X 200 20000000"), &e); err != nil || e.Departure != UnknownPoint || e.Delivered != DeliveredUnknown {
		t.Errorf("without %%O: %v, %v, %v", err, e.Departure, e.Delivered)
	}
	for line, want := range map[string]outcome{
		`"GET /a HTTP/1.1" -`: {GoneYes, DeliveredPartial, WorkYes, DuringResponse, true, false},
		`"GET /a HTTP/2.0" -`: {GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false},
		`"-" HTTP/1.1`:        {GoneYes, DeliveredPartial, WorkYes, DuringResponse, true, false},
		`"-" HTTP/2.0`:        {GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false},
		`"-" HTTP/1.0`:        {GoneYes, DeliveredPartial, WorkYes, DuringResponse, true, false},
		`"-" -`:               {GoneLikely, DeliveredUnknown, WorkYes, UnknownPoint, true, false},
	} {
		p := mustNew(t, Config{Format: "apache", Pattern: `%t %X %>s %O "%r" %H`})
		if _, err := p.Parse([]byte("[03/Mar/2026:10:15:42 +0000] X 200 98 "+line), &e); err != nil || outcomeOf(&e) != want {
			t.Errorf("without %%B, %s: %v, got %+v, want %+v", line, err, outcomeOf(&e), want)
		}
	}
	p = mustNew(t, Config{Format: "apache", Pattern: "combined"})
	if _, err := p.Parse([]byte(apacheLine), &e); err != nil || e.Delivered != DeliveredUnknown || e.Visible {
		t.Errorf("without %%X: %v, %v, visible %v", err, e.Delivered, e.Visible)
	}
}

const apacheLine = `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "x"`

// FuzzApache tries LogFormats and lines.
func FuzzApache(f *testing.F) {
	for _, name := range []string{"combined", "common", "vhost_combined", apacheAudit, `%{%FT%T}t.%{msec_frac}t%{%z}t %U%q %{X}i`} {
		f.Add(name, []byte(apacheLine))
		f.Add(name, []byte(apacheAuditLine))
	}
	parsers := map[string]*Parser{}
	f.Fuzz(func(t *testing.T, format string, line []byte) {
		p := parsers[format]
		if p == nil {
			var err error
			if p, err = New(Config{Format: "apache", Pattern: format, Keys: []string{"question_key"}}); err != nil {
				return
			}
			if len(parsers) < 64 {
				parsers[format] = p
			}
		}
		fuzzLine(t, p, bytes.Clone(line))
	})
}

// apacheAudit is the shipped LogFormat.
const apacheAudit = `%{c}a %{begin:msec}t %{end:msec}t "%m" "%U%q" %H "%{Host}i" %>s %B %O %X unique_id="%{UNIQUE_ID}e" question_key="%{Question-Key}i" attempt="%{X-Envoy-Attempt-Count}i" timeout="%{Grpc-Timeout}i" retry_after="%{Retry-After}o" agent="%{User-Agent}i"`

const apacheAuditLine = `192.0.2.1 1772532942118 1772532942159 "GET" "/seats/7?x=1" HTTP/1.1 "shop.example" 200 57 312 + unique_id="aB3-x" question_key="qk1.web.a.mjq3k2zz.AAAAAAAAAAAA0001.BBBBBBBBBBBBBBBBBBBBBB" attempt="2" timeout="-" retry_after="-" agent="seat-client/2.1 (x; y)"`
