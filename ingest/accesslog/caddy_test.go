package accesslog

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// reading is what a record shows of its answer and of its caller's leaving.
func reading(e *Entry) string {
	s := fmt.Sprintf("%s %v/%v/%v/%v", e.StatusRaw, e.Gone, e.Delivered, e.Work, e.Departure)
	for _, flag := range []struct {
		set  bool
		word string
	}{{e.Visible, "visible"}, {e.Local, "local"}, {e.Outbound, "outbound"}, {e.Duration == Unknown, "no duration"}} {
		if flag.set {
			s += " " + flag.word
		}
	}
	if n := e.Notes.Strings(); n != nil {
		s += fmt.Sprintf(" %v", n)
	}
	return s
}

// The log is what Caddy 2.11.7 wrote while callers behaved, left and half-closed,
// and the application died in mid-answer; the case is in each query.
func TestCaddyAsServed(t *testing.T) {
	const (
		whole   = "yes/not_recorded visible"
		unknown = "no_record/unknown/"
		cut     = "likely/partial/yes/during_response visible"
		held    = "likely/unknown/yes/during_response visible" // perhaps in Caddy's buffers alone
	)
	want := map[string]string{
		"ok":      "", // below: some are chunked
		"fin":     "499 yes/none/unknown/before_response visible",
		"rst":     "499 yes/none/unknown/before_response visible",
		"half":    "499 yes/none/unknown/before_response visible", // in truth it waited
		"mid":     "200 " + cut + " no duration [low_confidence]",
		"midrst":  "200 " + cut + " no duration [low_confidence]",
		"die":     "200 " + cut + " no duration [low_confidence]", // in truth the application died
		"relay":   "499 no/unknown/yes/not_recorded visible",
		"ra":      "503 no_record/all_handed_over/" + whole,
		"204":     "204 " + unknown + "yes/not_recorded",
		"none":    "200 no_record/all_handed_over/" + whole,
		"static":  "200 no_record/all_handed_over/unknown/not_recorded visible",
		"dead":    "502 " + unknown + "unknown/not_recorded",
		"respond": "200 " + unknown + "unknown/not_recorded",
		"nothing": "0 " + unknown + "no/not_recorded",
		"head":    "200 no_record/all_handed_over/" + whole,
		"twokeys": "200 no_record/all_handed_over/" + whole,
		"cutbody": "499 yes/none/unknown/before_response visible",
	}
	want["relayempty"], want["staticmid"] = want["relay"], "200 "+cut+" [low_confidence]"
	data, err := os.ReadFile("testdata/servers/caddy-2.11.7.log")
	if err != nil {
		t.Fatal(err)
	}
	p := mustNew(t, Config{Format: "caddy-json", Keys: []string{"question_key"}})
	others := 0
	for line := range bytes.Lines(data) {
		var e Entry
		_, err := p.Parse(line, &e)
		if err == RejectOther {
			others++
			continue
		}
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		path, name, _ := strings.Cut(string(e.Path), "case=")
		expected := want[name]
		switch {
		case name == "ok" && strings.HasPrefix(path, "/stream?"):
			expected = "200 " + unknown + "yes/not_recorded"
		case path == "/streamcl?" && name == "mid", path == "/diecl?":
			expected = "200 " + held + " no duration [low_confidence]"
		case name == "ok":
			expected = "200 no_record/all_handed_over/" + whole
		case name == "":
			expected = "404 " + unknown + "unknown/not_recorded"
		}
		if got := reading(&e); got != expected {
			t.Errorf("%s\n got %s\nwant %s", e.Path, got, expected)
		}
		key := "q1"
		if name == "twokeys" {
			key = "q1, q2"
		}
		if string(e.Keys[0]) != key || e.Attempt != 2 || e.Deadline != e.Start+250e6 || string(e.Peer) != "127.0.0.1" || string(e.UserAgent) != "c/1" {
			t.Errorf("%s: key %q, attempt %d, deadline in %d, peer %s, agent %s", e.Path, e.Keys[0], e.Attempt, e.Deadline-e.Start, e.Peer, e.UserAgent)
		}
		if !e.RetryAfterShown || (e.RetryAfter == 2e9) != (name == "ra") {
			t.Errorf("%s: retry after %d, shown %v", e.Path, e.RetryAfter, e.RetryAfterShown)
		}
		if !e.StampIsEnd || e.Uncertainty > 1e6 {
			t.Errorf("%s: stamp is end %v, ±%d", e.Path, e.StampIsEnd, e.Uncertainty)
		}
	}
	if others != 3 { // a handler's warning, a failed request's error, the server's start
		t.Errorf("%d lines are no access records, want 3", others)
	}
}

func TestCaddyDurations(t *testing.T) {
	const line = `{"ts":1772532942.25,"logger":"http.log.access","msg":"handled request","request":{"method":"GET","uri":"/a","headers":{"Grpc-Timeout":["2S"]}},"duration":%s,"size":5,"status":200,"resp_headers":{"Content-Length":["5"]}}`
	tests := []struct {
		logged, field string
		want          int64
		notes         string
	}{
		{"0.25", "", 250e6, "[]"},
		{"0.00003812", "", 38120, "[]"},
		{`"203ms"`, "", 203e6, "[]"},
		{"203", "", Unknown, "[bad_duration]"}, // perhaps milliseconds
		{"203", "duration_ms", 203e6, "[]"},
		{"0", "duration_ms", 0, "[]"}, // less than a millisecond
		{"203010117", "duration_ns", 203010117, "[]"},
		{"0", "", Unknown, "[low_confidence]"},
	}
	for _, tt := range tests {
		c := Config{Format: "caddy-json"}
		if tt.field != "" {
			c.Fields = map[string]string{tt.field: "duration"}
		}
		var e Entry
		if _, err := mustNew(t, c).Parse(fmt.Appendf(nil, line, tt.logged), &e); err != nil {
			t.Fatal(err)
		}
		if e.Duration != tt.want || fmt.Sprint(e.Notes.Strings()) != tt.notes || e.End-e.Start != max(tt.want, 0) || e.Deadline != e.Start+2e9 {
			t.Errorf("%s as %q: %d, %v, want %d, %s", tt.logged, tt.field, e.Duration, e.Notes.Strings(), tt.want, tt.notes)
		}
	}
}
