package accesslog

import (
	"fmt"
	"strings"
	"testing"
)

const albLine = `https 2026-03-03T10:15:42.218440Z app/lb-a/1a2b 192.0.2.33:40112 10.0.9.5:80 0.001 0.040 0.002 200 200 201 812 ` +
	`"GET https://api.example.com:443/v1/quote?a=b HTTP/1.1" "q/1" ECDHE TLSv1.2 arn:aws:tg/tg-a/9f8e ` +
	`"Self=1-67891234-12456789abcdef012345678a;Root=1-69a6b4ce-a1b2c3d4e5f60718293a4b5c" "api.example.com" "session-reused" 0 2026-03-03T10:15:42.175000Z ` +
	`"forward" "-" "-" "10.0.9.5:80" "200" "-" "-" TID_1234`

func TestALB(t *testing.T) {
	replace := strings.NewReplacer
	tests := []struct{ name, line, want, tries string }{
		{"ordinary", albLine, "200 no_record/unknown/yes/not_recorded", "10.0.9.5:80 200 40ms sent"},
		{"more columns", albLine + ` "h" "/u" "Success" "one more"`, "200 no_record/unknown/yes/not_recorded", "10.0.9.5:80 200 40ms sent"},
		{"fewer columns", albLine[:strings.Index(albLine, ` TID_`)], "200 no_record/unknown/yes/not_recorded", "10.0.9.5:80 200 40ms sent"},
		{"gone", replace(" 0.001 0.040 0.002 200 200 201 812", " 0.001 -1 -1 460 - 201 0").Replace(albLine),
			"460 yes/none/unknown/before_response visible", "10.0.9.5:80 0 sent"},
		{"gone when the target had answered", replace(" 200 200 201 812", " 460 200 201 0").Replace(albLine),
			"460 yes/none/yes/undelivered_answer visible", "10.0.9.5:80 200 40ms sent"},
		{"gone while it was sent", replace(" 200 200 201 812", " 460 200 201 99").Replace(albLine),
			"460 yes/partial/yes/during_response visible", "10.0.9.5:80 200 40ms sent"},
		{"460 of the target's", replace(" 200 200 201 812", " 460 460 201 99").Replace(albLine),
			"460 no/unknown/yes/not_recorded visible", "10.0.9.5:80 460 40ms sent"},
		{"no target", replace(" 10.0.9.5:80 0.001 0.040 0.002 200 200", " - -1 -1 -1 503 -").Replace(albLine),
			"503 no_record/unknown/no/not_recorded local", ""},
		{"redirect", replace(" 10.0.9.5:80 0.001 0.040 0.002 200 200", " - -1 -1 -1 301 -").Replace(albLine),
			"301 no_record/unknown/no/not_recorded", ""},
		{"no answer of the target's", replace(" 0.001 0.040 0.002 200 200", " 0.001 -1 -1 502 -").Replace(albLine),
			"502 no_record/unknown/unknown/not_recorded", "10.0.9.5:80 0 sent"},
		{"connection ended", replace(" 200 200 201 812", " 000 - 201 0").Replace(albLine),
			"000 no_record/unknown/unknown/not_recorded", "10.0.9.5:80 0 40ms sent"},
		{"two targets", replace(`"10.0.9.5:80" "200"`, `"10.0.9.4:80 10.0.9.5:80" "- 200"`).Replace(albLine),
			"200 no_record/unknown/yes/not_recorded [several_upstream_tries]", "10.0.9.4:80 0 sent, 10.0.9.5:80 200 sent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustNew(t, Config{Format: "alb", Keys: []string{"question_key"}})
			var e Entry
			if _, err := p.Parse([]byte(tt.line), &e); err != nil {
				t.Fatal(err)
			}
			if got := reading(&e); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
			if got := tried(&e); got != tt.tries {
				t.Errorf("tries %q, want %q", got, tt.tries)
			}
			got := fmt.Sprintf("%s %s %s %s %s %s %d %v", e.Method, e.Path, e.Authority, e.Peer, e.UserAgent, e.RequestID, (e.End-e.Start)/1e6, e.Keys[0])
			if want := "GET /v1/quote?a=b api.example.com:443 192.0.2.33 q/1 1-69a6b4ce-a1b2c3d4e5f60718293a4b5c 43 []"; got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

// Where the time is none, the creation stands for the start, and the end is not
// known.
func TestALBWithoutTime(t *testing.T) {
	line := strings.Replace(albLine, "2026-03-03T10:15:42.218440Z app", "2026-03-33T10:15:42.218440Z app", 1)
	var e Entry
	if _, err := mustNew(t, Config{Format: "alb"}).Parse([]byte(line), &e); err != nil || e.StampIsEnd || e.Duration != Unknown || e.Start%60e9 != 42175e6 {
		t.Errorf("%v, end %v, duration %d, start %d", err, e.StampIsEnd, e.Duration, e.Start)
	}
}

// Lines from before the creation time was logged have their start from the
// processing times, if the request had all of them.
func TestALBWithoutCreation(t *testing.T) {
	short := albLine[:strings.Index(albLine, ` ECDHE`)]
	p := mustNew(t, Config{Format: "alb"})
	for _, tt := range []struct {
		times string
		want  int64
	}{{" 0.001 0.040 0.002 ", 43e6}, {" 0.001 -1 -1 ", Unknown}} {
		var e Entry
		if _, err := p.Parse([]byte(strings.Replace(short, " 0.001 0.040 0.002 ", tt.times, 1)), &e); err != nil {
			t.Fatal(err)
		}
		if !e.StampIsEnd || e.Duration != tt.want || e.End-e.Start != max(tt.want, 0) || e.Uncertainty != 1e6 {
			t.Errorf("%s: end %v, duration %d, %d..%d ±%d", tt.times, e.StampIsEnd, e.Duration, e.Start, e.End, e.Uncertainty)
		}
	}
}

func TestALBRequests(t *testing.T) {
	tests := []struct{ request, want string }{
		{`"- http://api.example.com:80- -"`, "  api.example.com:80-"},
		{`"- - - "`, "  "},
		{`"-"`, "  "},
		{`"GET http://h:80/a b c HTTP/1.1"`, "GET /a b c h:80"},
		{`"GET https://[2001:db8::1]:443/x?y=\"z\" HTTP/2.0"`, `GET /x?y="z" [2001:db8::1]:443`},
		{`"GET wss://h:443/ws HTTP/1.1"`, "GET /ws h:443"},
		{`"GET http://h:80 HTTP/1.1"`, "GET  h:80"},
	}
	const request = `"GET https://api.example.com:443/v1/quote?a=b HTTP/1.1"`
	for _, tt := range tests {
		var e Entry
		if _, err := mustNew(t, Config{Format: "alb"}).Parse([]byte(strings.Replace(albLine, request, tt.request, 1)), &e); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s %s", e.Method, e.Path, e.Authority); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.request, got, tt.want)
		}
	}
}

func TestALBRefuses(t *testing.T) {
	p := mustNew(t, Config{Format: "alb"})
	for _, tt := range []struct {
		line string
		want error
	}{
		{"Enable AccessLog for ELB: app/lb-a at 2026-03-03T10:15:42Z", RejectOther},
		{albLine[:strings.Index(albLine, `HTTP/1.1`)], RejectCut},
		{albLine[:strings.Index(albLine, ` 201 812`)], RejectCut},
		{albLine[:strings.Index(albLine, `.175000Z`)], RejectCut},
		{albLine[:strings.Index(albLine, `5000Z "forward"`)], RejectCut},
		{albLine[:strings.Index(albLine, ` 0.040`)], RejectSyntax},
		{`192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "a"`, RejectSyntax},
	} {
		var e Entry
		if _, err := p.Parse([]byte(tt.line), &e); err != tt.want {
			t.Errorf("%.60s: %v, want %v", tt.line, err, tt.want)
		}
	}
}

// A caller that writes quotes into its user agent does not choose the columns
// behind.
func TestALBQuotes(t *testing.T) {
	line := strings.Replace(albLine, `"q/1"`, `"q "x"y z"`, 1)
	var e Entry
	if _, err := mustNew(t, Config{Format: "alb"}).Parse([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	if !e.KeySuspect || e.Notes&NoteQuoteInHeader == 0 || !e.StampIsEnd || len(e.RequestID) != 0 || e.Duration != 43e6 {
		t.Errorf("suspect %v, notes %v, end %v, id %q, duration %d", e.KeySuspect, e.Notes.Strings(), e.StampIsEnd, e.RequestID, e.Duration)
	}
}
