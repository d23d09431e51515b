package accesslog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	iisHead = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2026-03-03 10:00:00\n#Fields: " + iisDefault
	iisLine = `2026-03-03 10:15:42 10.0.0.5 GET /seats/7 x=1 443 - 192.0.2.9 Mozilla/5.0+(x;+y) - 200 0 0 1500`
)

func TestIIS(t *testing.T) {
	type want struct {
		start, path, peer, agent, key string
		status                        int
		bytes                         int64
		durationMs                    int64
	}
	plain := want{start: "2026-03-03T10:15:40.5Z", path: "/seats/7?x=1", peer: "192.0.2.9", agent: "Mozilla/5.0+(x;+y)", status: 200, bytes: Unknown, durationMs: 1500}
	with := func(change func(*want)) want { w := plain; change(&w); return w }
	tests := []struct {
		name, pattern, line string
		fields              map[string]string
		want                want
		err                 error
	}{
		{name: "as it comes", line: iisLine, want: plain},
		{name: "no query", line: strings.Replace(iisLine, "x=1", "-", 1), want: with(func(w *want) { w.path = "/seats/7" })},
		{name: "a header of the operator's", pattern: "#Fields: " + iisDefault + " cs(Question-Key) sc-bytes", line: iisLine + " q-1 312",
			want: with(func(w *want) { w.key, w.bytes = "q-1", 312 })},
		{name: "a mapped header", pattern: iisDefault + " cs(X-Key)", line: iisLine + " q-1", fields: map[string]string{"question_key": "X-Key"},
			want: with(func(w *want) { w.key = "q-1" })},
		{name: "a custom field", pattern: iisDefault + " question-key", line: iisLine + " q-1", want: with(func(w *want) { w.key = "q-1" })},
		{name: "another order", pattern: "sc-status time date cs-uri-stem", line: "404 10:15:42 2026-03-03 /a",
			want: want{start: "2026-03-03T10:15:42Z", path: "/a", status: 404, bytes: Unknown, durationMs: -1}},
		{name: "a header named like a field", pattern: "date time sc-status cs(Status) cs(Path)", line: "2026-03-03 10:15:42 200 500 /x",
			want: want{start: "2026-03-03T10:15:42Z", status: 200, bytes: Unknown, durationMs: -1}},

		{name: "its own head", line: "#Fields: " + iisDefault, err: RejectOther},
		{name: "a remark", line: "#Date: 2026-03-03 10:00:00", err: RejectOther},
		{name: "other columns from here on", line: "#Fields: date time cs-method", err: RejectSyntax},
		{name: "one column more", line: iisLine + " 7", err: RejectSyntax},
		{name: "cut", line: iisLine[:70], err: RejectCut},
		{name: "columns moved", line: strings.Replace(iisLine, "10.0.0.5 ", "", 1) + " x", err: RejectSyntax},
		{name: "no time", line: strings.Replace(iisLine, "10:15:42", "10:75:42", 1), err: RejectBadTime},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// The time is UTC whatever the zone.
			p := mustNew(t, Config{Format: "iis", Pattern: tt.pattern, Fields: tt.fields, Keys: []string{"question_key"}, Zone: time.FixedZone("", 3600)})
			var e Entry
			if _, err := p.Parse([]byte(tt.line), &e); err != tt.err {
				t.Fatalf("error %v, want %v", err, tt.err)
			} else if err != nil {
				return
			}
			got := want{start: time.Unix(0, e.Start).UTC().Format(time.RFC3339Nano), path: string(e.Path), peer: string(e.Peer), agent: string(e.UserAgent),
				key: string(e.Keys[0]), status: e.Status, bytes: e.BytesSent, durationMs: e.Duration / 1e6}
			if e.Duration == Unknown {
				got.durationMs = -1
			}
			if got != tt.want || e.Uncertainty != 1e9 || !e.StampIsEnd {
				t.Errorf("\n got %+v\nwant %+v", got, tt.want)
			}
		})
	}
	for pattern, want := range map[string]string{
		"date cs-method sc-status": "no time", "#Fields: date time": "no sc-status", "date time sc-status time": "time is there twice",
	} {
		if _, err := New(Config{Format: "iis", Pattern: pattern}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", pattern, err, want)
		}
	}
	if got := HeadPattern("iis", []byte("\xEF\xBB\xBF#Version: 1.0\r\n#Fields: date time \r\n#Fields: time date\r\n2026 #Fields: x\n#Fields: y\n")); got != "time date" {
		t.Errorf("pattern %q", got)
	}
	if got := HeadPattern("json", []byte(iisHead)); got != "" {
		t.Errorf("pattern %q", got)
	}
}

// Where a parser is told what was declared, a #Fields line holds for what follows it.
func TestIISDeclare(t *testing.T) {
	p := mustNew(t, Config{Format: "iis", Pattern: iisDefault, Keys: []string{"question_key"}})
	const other = "#Fields: date time c-ip cs-uri-stem Question-Key sc-status"
	var e Entry
	read := func(line string) string {
		if _, err := p.Parse([]byte(line), &e); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s %s", e.Path, e.Keys[0])
	}
	const record = "2026-03-03 10:15:42 192.0.2.9 /a k-1 200"
	for i, step := range []struct{ line, want string }{
		{"", ""}, {iisLine, "/seats/7?x=1 "}, {record, "cut_short"},
		{other, "other_stream"}, {record, "/a k-1"}, {iisLine, "syntax"},
		{"#Fields: time", "syntax"}, {record, "syntax"}, {"#Date: x", "other_stream"}, {record, "syntax"},
		{"#Fields: " + iisDefault, "other_stream"}, {iisLine, "/seats/7?x=1 "},
		{" " + other, ""}, {record, "/a k-1"},
		{"", ""}, {iisLine, "/seats/7?x=1 "},
	} {
		if step.want == "" { // another block
			p.Declare(step.line)
			continue
		}
		if got := read(step.line); got != step.want {
			t.Errorf("%d: %q reads %q, want %q", i, step.line, got, step.want)
		}
	}
	for i := range 3 * maxColumns { // what is remembered is bounded
		read(fmt.Sprintf("#Fields: date time sc-status x-%d", i))
	}
	if len(p.iis.known) > maxColumns {
		t.Errorf("%d lines are remembered", len(p.iis.known))
	}
	if Declares("iis") != "#Fields:" || Declares("json") != "" {
		t.Errorf("lines that declare begin with %q, and with %q in JSON", Declares("iis"), Declares("json"))
	}
}

func TestIISDeparture(t *testing.T) {
	p := mustNew(t, Config{Format: "iis", Pattern: "date time sc-status sc-substatus sc-win32-status"})
	for _, tt := range []struct {
		codes string
		want  outcome
	}{
		{"200 0 0", outcome{GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false}},
		{"200 0 64", outcome{GoneLikely, DeliveredUnknown, WorkYes, UnknownPoint, true, false}},
		{"500 19 64", outcome{GoneLikely, DeliveredUnknown, WorkUnknown, UnknownPoint, true, false}},
		{"200 0 995", outcome{GoneLikely, DeliveredUnknown, WorkUnknown, UnknownPoint, true, false}},
		{"200 0 1236", outcome{GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false}},
		{"503 2 0", outcome{GoneNoRecord, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}},
	} {
		var e Entry
		if _, err := p.Parse(fmt.Appendf(nil, "2026-03-03 10:15:42 %s", tt.codes), &e); err != nil {
			t.Fatal(err)
		}
		if got := outcomeOf(&e); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.codes, got, tt.want)
		}
	}
}
