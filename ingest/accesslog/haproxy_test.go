package accesslog

import (
	"strings"
	"testing"
	"time"
)

// haproxyLine is an ordinary line with some of its columns replaced.
func haproxyLine(replace ...string) string {
	return strings.NewReplacer(replace...).Replace(
		`192.0.2.9:3301 [03/Mar/2026:10:15:42.000] fe~ be/s1 0/0/0/2/5 200 116 - - ---- 1/1/0/0/0 0/0 {q-1|2} {3} "GET /ok HTTP/1.1"`)
}

func TestHAProxy(t *testing.T) {
	type want struct {
		start, peer, path, authority, key, id string
		attempt                               int
		retryAfter                            time.Duration
		bytes                                 int64
		durationMs                            int64
		tries                                 int
		suspect                               bool
		notes                                 string
	}
	named := map[string]string{"question_key": "capture 0", "x_envoy_attempt_count": "capture 1", "retry_after": "response capture 0"}
	request := map[string]string{"question_key": "capture 0"}
	response := map[string]string{"retry_after": "response capture 0"}
	plain := want{start: "2026-03-03T10:15:42Z", peer: "192.0.2.9", path: "/ok", key: "q-1", bytes: 116, durationMs: 5, tries: 1, retryAfter: Unknown, notes: "zone_not_in_line"}
	with := func(change func(*want)) want { w := plain; change(&w); return w }
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		fields map[string]string
		zone   *time.Location
		line   string
		want   want
		err    error
	}{
		{name: "captures in order", line: haproxyLine(), want: plain},
		{name: "captures by name", fields: named, line: haproxyLine(),
			want: with(func(w *want) { w.attempt, w.retryAfter = 2, 3*time.Second })},
		{name: "one group, named", fields: request, line: haproxyLine(" {3}", ""), want: plain},
		{name: "one group, of the response", fields: response, line: haproxyLine(" {3}", "", "{q-1|2}", "{7}"),
			want: with(func(w *want) { w.key, w.retryAfter = "", 7*time.Second })},
		{name: "one group of two kinds", fields: named, line: haproxyLine(" {3}", ""),
			want: with(func(w *want) { w.key, w.notes = "", "zone_not_in_line capture_group_not_named" })},
		{name: "empty captures", fields: named, line: haproxyLine("{q-1|2} {3}", "{|} {}"), want: with(func(w *want) { w.key = "" })},
		{name: "blanks and escapes", line: haproxyLine("q-1|2", "a b#7C#22#7Bc#23|2"), want: with(func(w *want) { w.key = `a b|"{c#` })},
		{name: "a hash that escapes nothing", line: haproxyLine("q-1|2", "a#zz#7"), want: with(func(w *want) { w.key = "a#zz#7" })},

		{name: "RFC 3164", line: `<134>Mar  3 10:15:42 lb1 haproxy[811]: ` + haproxyLine(), want: plain},
		{name: "RFC 3164 without priority", line: `Mar  3 10:15:42 lb1 haproxy[811]: ` + haproxyLine(), want: plain},
		{name: "RFC 5424", line: `<134>1 2026-03-03T10:15:42.005Z lb1 haproxy 811 - [a@1 b="c"] ` + haproxyLine(), want: plain},

		{name: "local time", zone: berlin, line: haproxyLine(), want: with(func(w *want) { w.start = "2026-03-03T09:15:42Z" })},
		{name: "local time in summer", zone: berlin, line: haproxyLine("03/Mar", "03/Jul"), want: with(func(w *want) { w.start = "2026-07-03T08:15:42Z" })},
		{name: "GMT stamp", zone: berlin, line: haproxyLine(":42.000]", ":42 +0000]"), want: with(func(w *want) { w.notes = "" })},

		{name: "IPv6 without brackets", line: haproxyLine("192.0.2.9:3301", "2001:db8::1:3301"), want: with(func(w *want) { w.peer = "2001:db8::1" })},
		{name: "no address", line: haproxyLine("192.0.2.9:3301", "-"), want: with(func(w *want) { w.peer = "" })},
		{name: "HTTP/2 logs an absolute URI", line: haproxyLine("GET /ok HTTP/1.1", "GET https://shop.example:8443/ok?a=1 HTTP/2.0"),
			want: with(func(w *want) { w.path, w.authority = "/ok?a=1", "shop.example:8443" })},
		{name: "httpslog", line: haproxyLine() + ` 0/0000000000000000/0/0/0 shop.example/TLSv1.3/TLS_AES_128_GCM_SHA256`, want: plain},
		{name: "logasap", line: haproxyLine("0/0/0/2/5 200 116", "0/0/0/2/+5 200 +116"), want: with(func(w *want) { w.notes = "zone_not_in_line lower_bounds" })},
		{name: "retries", line: haproxyLine("1/1/0/0/0", "1/1/0/0/2"), want: with(func(w *want) {
			w.tries, w.notes = 3, "several_upstream_tries low_confidence zone_not_in_line"
		})},
		{name: "appended pairs", line: haproxyLine(" {q-1|2} {3}", "") + ` abortonclose=on arrival_id=AB:1 question_key="q\"2" x_envoy_attempt_count="3" retry_after="4"`,
			want: with(func(w *want) { w.key, w.id, w.attempt, w.retryAfter = `q"2`, "AB:1", 3, 4*time.Second })},
		{name: "appended pair without escapes", line: haproxyLine(" {q-1|2} {3}", "") + ` user_agent="a" question_key="x" b" question_key="q-2"`,
			want: with(func(w *want) { w.key, w.suspect, w.notes = "x", true, "quote_in_header zone_not_in_line" })},

		{name: "appended pair twice", line: haproxyLine(" {q-1|2} {3}", "") + ` user_agent=" question_key="q-1" question_key="q-2" "`,
			want: with(func(w *want) { w.key, w.suspect, w.notes = "", true, "quote_in_header zone_not_in_line" })},

		{name: "cut in the query", line: strings.TrimSuffix(haproxyLine("/ok", "/ok?a=1"), ` HTTP/1.1"`),
			want: with(func(w *want) { w.path, w.notes = "/ok?a=1", "line_truncated zone_not_in_line" })},
		{name: "cut in the path", line: strings.TrimSuffix(haproxyLine(), `k HTTP/1.1"`),
			want: with(func(w *want) { w.path, w.suspect, w.notes = "/o", true, "line_truncated zone_not_in_line" })},
		{name: "cut in a pair", line: haproxyLine(" {q-1|2} {3}", "") + ` question_key="q-`,
			want: with(func(w *want) { w.key, w.suspect, w.notes = "", true, "line_truncated zone_not_in_line" })},
		{name: "cut in the captures", line: haproxyLine()[:strings.Index(haproxyLine(), "2} {3}")], err: RejectCut},
		{name: "cut in the columns", line: haproxyLine()[:80], err: RejectCut},
		{name: "TCP log", line: `192.0.2.9:3301 [03/Mar/2026:10:15:42.000] fe be/s1 0/0/5 116 -- 1/1/0/0/0 0/0`, err: RejectCut},
		{name: "a message", line: `[NOTICE]   (811) : haproxy version is 2.6.12`, err: RejectSyntax},
		{name: "no stamp in the brackets", line: "0 []0/000/0000:", err: RejectSyntax},
		{name: "no time", line: haproxyLine("10:15:42.000", "10:75:42.000"), err: RejectBadTime},
		{name: "status is no number", line: haproxyLine(" 200 ", " two "), err: RejectSyntax},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustNew(t, Config{Format: "haproxy", Fields: tt.fields, Zone: tt.zone, Keys: []string{"question_key"}})
			var e Entry
			if _, err := p.Parse([]byte(tt.line), &e); err != tt.err {
				t.Fatalf("error %v, want %v", err, tt.err)
			} else if err != nil {
				return
			}
			if text := string(e.Text); !strings.HasSuffix(tt.line, text) || strings.HasPrefix(text, "<") || strings.HasPrefix(text, "Mar") {
				t.Errorf("with syslog's frame: %s", text)
			}
			got := want{start: time.Unix(0, e.Start).UTC().Format(time.RFC3339Nano), peer: string(e.Peer), path: string(e.Path),
				authority: string(e.Authority), key: string(e.Keys[0]), id: string(e.ArrivalID), attempt: e.Attempt,
				retryAfter: time.Duration(e.RetryAfter), bytes: e.BytesSent, durationMs: e.Duration / 1e6, tries: len(e.Tries),
				suspect: e.KeySuspect, notes: strings.Join(e.Notes.Strings(), " ")}
			if got != tt.want {
				t.Errorf("\n got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// The rows are what a real HAProxy wrote, and the table of termination states.
func TestHAProxyDeparture(t *testing.T) {
	tests := []struct {
		state, server, timers, status, bytes string
		watched                              bool
		want                                 outcome
		real                                 int // status
	}{
		// Measured with 2.6.12; watched is abortonclose.
		{"----", "be/s1", "0/0/0/801/801", "200", "137", false, outcome{GoneNoRecord, DeliveredAll, WorkYes, NotRecorded, false, false}, 200},
		{"----", "be/s1", "0/0/0/801/801", "200", "137", true, outcome{GoneNoRecord, DeliveredAll, WorkYes, NotRecorded, true, false}, 200},
		{"CH--", "be/s1", "0/0/0/-1/200", "400", "206", true, outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}, 0},
		{"CD--", "be/s1", "0/0/0/-1/200", "-1", "0", true, outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}, 0},
		{"CD--", "be/s1", "0/0/0/0/502", "200", "3129", true, outcome{GoneYes, DeliveredPartial, WorkYes, DuringResponse, true, false}, 200},
		{"CD--", "be/s1", "0/0/0/802/802", "200", "137", false, outcome{GoneYes, DeliveredUnknown, WorkYes, DuringResponse, true, false}, 200},
		{"CQ--", "be/<NOSRV>", "0/200/-1/-1/200", "-1", "0", false, outcome{GoneYes, DeliveredNone, WorkNo, BeforeResponse, true, false}, 0},
		{"CQ--", "be/<NOSRV>", "0/200/-1/-1/200", "503", "0", false, outcome{GoneYes, DeliveredNone, WorkNo, BeforeResponse, true, false}, 0},
		{"CR--", "f1/<NOSRV>", "-1/-1/-1/-1/100", "400", "0", false, outcome{GoneYes, DeliveredNone, WorkNo, BeforeResponse, true, false}, 0},
		{"PR--", "f1/<NOSRV>", "-1/-1/-1/-1/0", "400", "0", false, outcome{GoneNo, DeliveredUnknown, WorkNo, NotRecorded, false, true}, 400},
		{"cD--", "be/s1", "0/0/0/2/30002", "200", "600000", false, outcome{GoneLikely, DeliveredPartial, WorkYes, DuringResponse, true, false}, 200},
		{"sH--", "be/s1", "0/0/0/-1/30000", "504", "220", false, outcome{GoneNo, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}, 504},
		{"sQ--", "be/<NOSRV>", "0/5000/-1/-1/5000", "503", "220", false, outcome{GoneNo, DeliveredUnknown, WorkNo, NotRecorded, false, true}, 503},
		{"SC--", "be/s1", "0/0/-1/-1/2003", "503", "217", false, outcome{GoneNo, DeliveredUnknown, WorkNo, NotRecorded, false, true}, 503},
		// The table.
		{"cR--", "f1/<NOSRV>", "-1/-1/-1/-1/5000", "408", "212", false, outcome{GoneLikely, DeliveredNone, WorkNo, BeforeResponse, true, false}, 408},
		{"CL--", "be/s1", "0/0/0/2/9", "200", "116", false, outcome{GoneYes, DeliveredAll, WorkYes, UnknownPoint, true, false}, 200},
		{"CT--", "f1/<NOSRV>", "0/-1/-1/-1/900", "-1", "0", false, outcome{GoneYes, DeliveredNone, WorkNo, BeforeResponse, true, false}, 0},
		{"PT--", "f1/<NOSRV>", "0/-1/-1/-1/900", "500", "212", false, outcome{GoneNo, DeliveredUnknown, WorkNo, NotRecorded, false, true}, 500},
		{"LR--", "f1/<STATS>", "0/-1/-1/-1/0", "200", "900", false, outcome{GoneNo, DeliveredUnknown, WorkNo, NotRecorded, false, false}, 200},
		{"SD--", "be/s1", "0/0/0/2/90", "200", "900", true, outcome{GoneNo, DeliveredUnknown, WorkYes, NotRecorded, true, false}, 200},
		{"C---", "be/s1", "0/0/0/2/90", "200", "900", false, outcome{GoneNo, DeliveredUnknown, WorkYes, NotRecorded, false, false}, 200},
		{"----", "be/s1", "0/0/0/2/+2", "200", "+116", true, outcome{GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false}, 200},
	}
	p := mustNew(t, Config{Format: "haproxy"})
	for _, tt := range tests {
		t.Run(tt.state+" "+tt.status, func(t *testing.T) {
			line := haproxyLine("----", tt.state, "be/s1", tt.server, "0/0/0/2/5", tt.timers, " 200 ", " "+tt.status+" ", " 116 ", " "+tt.bytes+" ")
			if tt.watched {
				line += " abortonclose=on"
			}
			var e Entry
			if _, err := p.Parse([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if got := outcomeOf(&e); got != tt.want || e.Status != tt.real {
				t.Errorf("got %+v, status %d, want %+v, %d", got, e.Status, tt.want, tt.real)
			}
			if len(e.Tries) == 0 != strings.Contains(tt.server, "<") {
				t.Errorf("tries %v", e.Tries)
			}
		})
	}
}

// What a caller puts into its own headers makes no record visible.
func TestHAProxyMarkIsTheOperators(t *testing.T) {
	p := mustNew(t, Config{Format: "haproxy"})
	var e Entry
	for _, tail := range []string{` user_agent="abortonclose=on"`, ` x="" abortonclose=on`} {
		if _, err := p.Parse([]byte(haproxyLine()+tail), &e); err != nil || e.Visible {
			t.Errorf("%s: visible %v, %v", tail, e.Visible, err)
		}
	}
}

func TestLocalZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	p := mustNew(t, Config{Format: "json", Zone: berlin})
	for _, tt := range []struct {
		in, want    string
		uncertainty time.Duration
	}{
		{"2026-03-29 01:59:59.5", "2026-03-29T00:59:59.5Z", 100 * time.Millisecond},
		{"2026-03-29 02:30:00", "2026-03-29T01:30:00Z", time.Second}, // never shown
		{"2026-03-29 03:00:00", "2026-03-29T01:00:00Z", time.Second},
		{"2026-10-25 01:59:59", "2026-10-24T23:59:59Z", time.Second},
		{"2026-10-25 02:00:00", "2026-10-25T00:00:00Z", time.Hour}, // shown twice
		{"2026-10-25 02:59:59.123", "2026-10-25T00:59:59.123Z", time.Hour},
		{"2026-10-25 03:00:00", "2026-10-25T02:00:00Z", time.Second},
		{"2026-10-25 02:00:00Z", "2026-10-25T02:00:00Z", time.Second},
	} {
		ns, uncertainty, ok := p.stamp([]byte(tt.in))
		if got := time.Unix(0, ns).UTC().Format(time.RFC3339Nano); !ok || got != tt.want || time.Duration(uncertainty) != tt.uncertainty {
			t.Errorf("%s: got %s ±%v, want %s ±%v", tt.in, got, time.Duration(uncertainty), tt.want, tt.uncertainty)
		}
	}
}
