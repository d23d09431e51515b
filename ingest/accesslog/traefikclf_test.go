package accesslog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const traefikLine = `192.0.2.80 - ann [03/Mar/2026:10:15:42 +0000] "GET /report?x=1 HTTP/1.1" 200 312 "https://a.example/" "agent/1 (x)" 17 "report@docker" "http://10.0.8.1:80" 2003ms`

func TestTraefikCLF(t *testing.T) {
	tests := []struct {
		name, line, want string // start, duration, peer, method, path, agent, notes
		dependency       string
		err              error
	}{
		{name: "ordinary", line: traefikLine, want: `2026-03-03T10:15:42Z 2.003s 192.0.2.80 GET /report?x=1 "agent/1 (x)" []`},
		{name: "by router", dependency: "RouterName", line: traefikLine, want: `2026-03-03T10:15:42Z 2.003s 192.0.2.80 GET /report?x=1 "agent/1 (x)" [] report@docker`},
		{name: "raw quotes", line: strings.NewReplacer("agent/1 (x)", `a" 1 "b" "c`, "x=1", `x="1"`).Replace(traefikLine),
			want: `2026-03-03T10:15:42Z 2.003s 192.0.2.80 GET /report?x="1" "a\" 1 \"b\" \"c" [quote_in_header]`},
		{name: "no headers, no router", line: strings.NewReplacer(`"https://a.example/"`, `"-"`, `"agent/1 (x)"`, `"-"`, `"report@docker" "http://10.0.8.1:80"`, `"-" "-"`, " 17 ", " - ").Replace(traefikLine),
			want: `2026-03-03T10:15:42Z 2.003s 192.0.2.80 GET /report?x=1 "" []`},
		{name: "cut", line: traefikLine[:len(traefikLine)-2], err: RejectCut},
		{name: "cut in the request", line: traefikLine[:60], err: RejectCut},
		{name: "combined", line: apacheLine, err: RejectCut},
		{name: "a message", line: `time="2026-03-03T10:15:42Z" level=info msg="[x] y"`, err: RejectSyntax},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{Format: "traefik-clf"}
			if tt.dependency != "" {
				c.Fields = map[string]string{"dependency": tt.dependency}
			}
			var e Entry
			if _, err := mustNew(t, c).Parse([]byte(tt.line), &e); err != tt.err {
				t.Fatalf("error %v, want %v", err, tt.err)
			} else if err != nil {
				return
			}
			got := strings.TrimSpace(fmt.Sprintf("%s %v %s %s %s %q %v %s", time.Unix(0, e.Start).UTC().Format(time.RFC3339), time.Duration(e.Duration), e.Peer, e.Method, e.Path, e.UserAgent, e.Notes.Strings(), e.Dependency))
			if got != tt.want || e.Uncertainty != 1e9 || e.StampIsEnd {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTraefikCLFDeparture(t *testing.T) {
	p := mustNew(t, Config{Format: "traefik-clf"})
	for _, tt := range []struct {
		status, size, server string
		want                 outcome
	}{
		{"200", "312", `"http://10.0.8.1:80"`, outcome{GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false}},
		{"499", "21", `"http://10.0.8.1:80"`, outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}},
		{"499", "300", `"http://10.0.8.1:80"`, outcome{GoneNoRecord, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}},
		{"502", "11", `"http://10.0.8.1:80"`, outcome{GoneNoRecord, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}},
		{"404", "19", `"-"`, outcome{GoneNoRecord, DeliveredUnknown, WorkNo, NotRecorded, false, true}},
		{"404", "19", "-", outcome{GoneNoRecord, DeliveredUnknown, WorkNo, NotRecorded, false, true}},
		{"-", "-", `"http://10.0.8.1:80"`, outcome{GoneNoRecord, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}},
	} {
		var e Entry
		line := strings.NewReplacer(" 200 312 ", " "+tt.status+" "+tt.size+" ", `"http://10.0.8.1:80"`, tt.server).Replace(traefikLine)
		if _, err := p.Parse([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if got := outcomeOf(&e); got != tt.want {
			t.Errorf("%s %s: got %+v, want %+v", tt.status, tt.size, got, tt.want)
		}
	}
}
