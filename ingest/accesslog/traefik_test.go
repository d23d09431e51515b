package accesslog

import (
	"fmt"
	"strings"
	"testing"
)

// tried writes down tries as address, status, milliseconds and whether they were
// sent.
func tried(e *Entry) string {
	var all []string
	for _, t := range e.Tries {
		s := fmt.Sprintf("%s %d", t.Addr, t.Status)
		if t.Time != Unknown {
			s += fmt.Sprintf(" %dms", t.Time/1e6)
		}
		if t.Sent {
			s += " sent"
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

func TestTraefik(t *testing.T) {
	const (
		head    = `{"ClientAddr":"192.0.2.80:50022","ClientHost":"192.0.2.80","Duration":2003000000,"RequestMethod":"GET","RequestPath":"/a","RequestHost":"h","StartUTC":"2026-03-03T10:15:42.000000000Z","level":"info","msg":"","time":"2026-03-03T10:15:44Z"`
		service = `,"ServiceAddr":"10.0.8.1:80","ServiceURL":"http://10.0.8.1:80/x","OriginDuration":2002000000,"Overhead":1000000,"RetryAttempts":0`
	)
	tests := []struct{ name, line, want, tries string }{
		{"ordinary", head + service + `,"DownstreamStatus":200,"DownstreamContentSize":10,"OriginStatus":200,"OriginContentSize":10}`,
			"200 no_record/unknown/yes/not_recorded", "10.0.8.1:80 200 2002ms sent"},
		{"length known", head + service + `,"DownstreamStatus":200,"DownstreamContentSize":10,"OriginStatus":200,"downstream_Content-Length":"10"}`,
			"200 no_record/all_handed_over/yes/not_recorded visible", "10.0.8.1:80 200 2002ms sent"},
		{"cut off", head + service + `,"DownstreamStatus":200,"DownstreamContentSize":9,"OriginStatus":200,"origin_Content-Length":"10"}`,
			"200 likely/unknown/yes/during_response visible [low_confidence]", "10.0.8.1:80 200 2002ms sent"},
		{"cut off late", head + service + `,"DownstreamStatus":200,"DownstreamContentSize":9000,"OriginStatus":200,"origin_Content-Length":"10000"}`,
			"200 likely/partial/yes/during_response visible [low_confidence]", "10.0.8.1:80 200 2002ms sent"},
		{"gone", head + service + `,"DownstreamStatus":499,"DownstreamContentSize":21,"OriginStatus":499,"OriginContentSize":21}`,
			"499 yes/none/unknown/before_response visible [low_confidence]", "10.0.8.1:80 0 2002ms sent"},
		{"gone, with a page of another size", head + service + `,"DownstreamStatus":499,"DownstreamContentSize":512,"OriginStatus":499,"OriginContentSize":21}`,
			"499 yes/none/unknown/before_response visible [low_confidence]", "10.0.8.1:80 0 2002ms sent"},
		{"499 of the origin's", head + service + `,"DownstreamStatus":499,"DownstreamContentSize":4,"OriginStatus":499,"OriginContentSize":4}`,
			"499 no_record/unknown/unknown/not_recorded [low_confidence]", "10.0.8.1:80 499 2002ms sent"},
		{"retried", head + strings.Replace(service, `"RetryAttempts":0`, `"RetryAttempts":2`, 1) + `,"DownstreamStatus":200,"DownstreamContentSize":10,"OriginStatus":200}`,
			"200 no_record/unknown/yes/not_recorded [several_upstream_tries low_confidence]", " 0,  0, 10.0.8.1:80 200 sent"},
		{"no origin", head + `,"DownstreamStatus":404,"DownstreamContentSize":19,"Overhead":2003000000,"OriginStatus":0}`,
			"404 no_record/unknown/no/not_recorded local", ""},
		{"no origin, told by the overhead", head + `,"DownstreamStatus":429,"DownstreamContentSize":19,"Overhead":2003000000}`,
			"429 no_record/unknown/no/not_recorded local", ""},
		{"origin's members dropped", head + `,"DownstreamStatus":503,"DownstreamContentSize":19}`,
			"503 no_record/unknown/unknown/not_recorded", ""},
		{"502 is nobody's in particular", head + service + `,"DownstreamStatus":502,"DownstreamContentSize":11,"OriginStatus":502}`,
			"502 no_record/unknown/unknown/not_recorded", "10.0.8.1:80 502 2002ms sent"},
		{"URL alone", head + `,"ServiceURL":"http://10.0.8.1:80/x","DownstreamStatus":200,"OriginStatus":200}`,
			"200 no_record/unknown/yes/not_recorded", "10.0.8.1:80 200 sent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var e Entry
			if _, err := mustNew(t, Config{Format: "traefik-json"}).Parse([]byte(tt.line), &e); err != nil {
				t.Fatal(err)
			}
			if got := reading(&e); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
			if got := tried(&e); got != tt.tries {
				t.Errorf("tries %q, want %q", got, tt.tries)
			}
			if e.End-e.Start != 2003e6 || e.Uncertainty != 0 || e.StampIsEnd || string(e.Peer) != "192.0.2.80" || string(e.Authority) != "h" {
				t.Errorf("times %d..%d ±%d, peer %s, authority %s", e.Start, e.End, e.Uncertainty, e.Peer, e.Authority)
			}
		})
	}
}

// Kept headers carry the key, the attempt, the deadline and the answer's wish; of
// two keys none is taken for the other.
func TestTraefikHeaders(t *testing.T) {
	p := mustNew(t, Config{Format: "traefik-json", Keys: []string{"question_key", "X-Tenant"}, Trace: true})
	line := `{"Duration":1000000,"DownstreamStatus":503,"RequestMethod":"GET","RequestPath":"/a","StartUTC":"2026-03-03T10:15:42Z",` +
		`"request_Question-Key":"q-1","request_X-Tenant":"t","request_X-Envoy-Attempt-Count":"3","request_Grpc-Timeout":"2S","request_User-Agent":"a/1",` +
		`"request_X-Request-Id":"r-1","downstream_Retry-After":"4","downstream_Content-Type":"text/plain"}`
	var e Entry
	if _, err := p.Parse([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %d %d %s %s %d %v %s", e.Keys[0], e.Keys[1], e.Attempt, (e.Deadline-e.Start)/1e6, e.UserAgent, e.RequestID, e.RetryAfter/1e9, e.RetryAfterShown, e.Sources["question_key"])
	if want := "q-1 t 3 2000 a/1 r-1 4 true request_question_key"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Without StartUTC there is the line's own stamp, which is the end.
func TestTraefikLineStamp(t *testing.T) {
	p := mustNew(t, Config{Format: "traefik-json"})
	var e Entry
	line := `{"Duration":250000000,"DownstreamStatus":200,"RequestMethod":"GET","RequestPath":"/a","level":"info","time":"2026-03-03T10:15:44Z"}`
	if _, err := p.Parse([]byte(line), &e); err != nil || !e.StampIsEnd || e.End-e.Start != 250e6 || e.Uncertainty != 1e9 {
		t.Errorf("error %v, end %v, %d..%d", err, e.StampIsEnd, e.Start, e.End)
	}
	if _, err := p.Parse([]byte(`{"level":"info","version":"3.0.0","time":"2026-03-03T10:15:44Z","message":"Traefik version 3.0.0"}`), &e); err != RejectOther {
		t.Errorf("a message of Traefik's own: %v", err)
	}
}

func TestLinkerd(t *testing.T) {
	const line = `{"client.addr":"10.1.2.3:4444","client.id":"-","host":"seats","method":"GET","processing_ns":"40000","request_bytes":"","response_bytes":"11","status":%s,"timestamp":"2026-03-03T10:15:42.118273645Z","total_ns":"%s","trace_id":"t-1","uri":"http://seats:80/a?b=c","user_agent":"a/1","version":"HTTP/2.0"}`
	p := mustNew(t, Config{Format: "linkerd-json"})
	var e Entry
	if _, err := p.Parse(fmt.Appendf(nil, line, "200", "250000000"), &e); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %s %s %s %s %d %d %d ±%d", e.Method, e.Path, e.Authority, e.Peer, e.UserAgent, e.RequestID, e.BytesSent, e.Start%1e9, (e.End-e.Start)/1e6, e.Uncertainty)
	if want := "GET /a?b=c seats 10.1.2.3:4444 a/1 t-1 -1 118273645 250 ±0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := reading(&e); got != "200 no_record/unknown/unknown/not_recorded" {
		t.Error(got)
	}
	identified := strings.Replace(line, `"client.id":"-"`, `"client.id":"web.shop.serviceaccount.identity"`, 1)
	if _, err := p.Parse(fmt.Appendf(nil, identified, `""`, ""), &e); err != nil || string(e.Peer) != "web.shop.serviceaccount.identity" {
		t.Errorf("error %v, peer %s", err, e.Peer)
	}
	if got := reading(&e); got != " no_record/unknown/unknown/not_recorded no duration [low_confidence]" {
		t.Error(got)
	}
}
