package accesslog

import "testing"

// outcome is what a departure rule says of one record.
type outcome struct {
	gone      Gone
	delivered Delivered
	work      Work
	departure Departure
	visible   bool
	local     bool
}

func outcomeOf(e *Entry) outcome {
	return outcome{e.Gone, e.Delivered, e.Work, e.Departure, e.Visible, e.Local}
}

// The rows of what real nginx servers wrote, and of the table of signals.
func TestNginxDeparture(t *testing.T) {
	const absent = "absent"
	tests := []struct {
		name       string
		status     int
		bytes      int64 // $bytes_sent
		body       int64 // $body_bytes_sent
		completion string
		upstream   string // $upstream_status
		bodyOnly   bool
		want       outcome
	}{
		// Measured.
		{"FIN before headers", 499, 0, 0, "", "-.", false, outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}},
		{"leaves in mid-stream, buffered, small", 499, 0, 0, "", "200", false, outcome{GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer, true, false}},
		{"leaves in mid-stream, unbuffered", 200, 3124, 3000, "", "200", false, outcome{GoneYes, DeliveredPartial, WorkYes, DuringResponse, true, false}},
		{"abort ignored, FIN, small", 200, 132, 10, "OK", "200", false, outcome{GoneNoRecord, DeliveredAll, WorkYes, NotRecorded, true, false}},
		{"abort ignored, RST, small", 200, 0, 0, "", "200", false, outcome{GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer, true, false}},
		{"abort ignored, 2 MB", 200, 8202, 8000, "", "200", false, outcome{GoneYes, DeliveredPartial, WorkYes, DuringResponse, true, false}},
		{"cached location", 200, 0, 0, "", "200", false, outcome{GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer, true, false}},
		{"static file", 200, 3899640, 3899400, "", "-", false, outcome{GoneYes, DeliveredPartial, WorkNo, DuringResponse, true, false}},
		{"HTTP/2 cancel in mid-stream", 200, 51, 0, "", "200", false, outcome{GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer, true, false}},
		{"HTTP/2, abort ignored", 200, 0, 0, "", "200", false, outcome{GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer, true, false}},
		{"request cut off", 400, 0, 0, "", "-", false, outcome{GoneYes, DeliveredNone, WorkNo, BeforeResponse, true, false}},
		{"request cut off, no list of tries", 400, 0, 0, "", absent, false, outcome{GoneYes, DeliveredNone, WorkNo, BeforeResponse, true, false}},
		// The table.
		{"answer in full", 200, 500, 300, "OK", "200", false, outcome{GoneNoRecord, DeliveredAll, WorkYes, NotRecorded, true, false}},
		{"no completion field", 200, 500, 300, absent, "200", false, outcome{GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false}},
		{"status alone", 200, Unknown, Unknown, absent, absent, false, outcome{GoneNoRecord, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}},
		{"incomplete, no byte count", 200, Unknown, Unknown, "", absent, false, outcome{GoneYes, DeliveredUnknown, WorkYes, UnknownPoint, true, false}},
		{"incomplete, no list of tries", 200, 0, 0, "", absent, false, outcome{GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer, true, false}},
		{"499 alone", 499, Unknown, Unknown, absent, absent, false, outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}},
		{"499, body count only", 499, 0, 0, absent, absent, true, outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}},
		{"499 hides an earlier failure", 499, 0, 0, "", "500, -", false, outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}},
		{"499 hides an earlier 504", 499, 0, 0, absent, "504, 504, -", true, outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}},
		{"499 before any try", 499, 0, 0, "", "-", false, outcome{GoneYes, DeliveredNone, WorkNo, BeforeResponse, true, false}},
		{"499 relayed", 499, 180, 20, "OK", "499", false, outcome{GoneNo, DeliveredAll, WorkUnknown, NotRecorded, true, false}},
		{"499 relayed, no completion field", 499, 180, 20, absent, "499", false, outcome{GoneNo, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}},
		{"499 relayed, empty, body count only", 499, 0, 0, absent, "499", true, outcome{GoneNo, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}},
		{"499 from upstream, nothing sent", 499, 0, 0, "", "499", false, outcome{GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer, true, false}},
		{"499 relayed in part", 499, 180, 20, "", "499", false, outcome{GoneYes, DeliveredPartial, WorkYes, DuringResponse, true, false}},
		{"499 with a body is not nginx's own", 499, 180, 20, absent, absent, false, outcome{GoneNoRecord, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}},
		{"400 of the upstream's, unread", 400, 0, 0, "", "400", false, outcome{GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer, true, false}},
		{"400 of nginx's own", 400, 300, 150, "OK", "-", false, outcome{GoneNoRecord, DeliveredAll, WorkNo, NotRecorded, true, true}},
		{"408, caller too slow", 408, 0, 0, "", "-", false, outcome{GoneNo, DeliveredUnknown, WorkNo, NotRecorded, true, true}},
		{"444, nginx hung up", 444, 0, 0, "", "-", false, outcome{GoneNo, DeliveredNone, WorkNo, NotRecorded, true, true}},
		{"000", 0, 0, 0, "", "-", false, outcome{GoneLikely, DeliveredNone, WorkNo, BeforeResponse, true, false}},
		{"cache hit", 200, 500, 300, "OK", "-", false, outcome{GoneNoRecord, DeliveredAll, WorkNo, NotRecorded, true, false}},
		{"rate limit", 503, 500, 300, "OK", "-", false, outcome{GoneNoRecord, DeliveredAll, WorkNo, NotRecorded, true, true}},
		{"timed out upstream", 504, 500, 300, "OK", "504", false, outcome{GoneNoRecord, DeliveredAll, WorkUnknown, NotRecorded, true, false}},
		{"later try answered nothing", 200, 57, 57, absent, "200, -", true, outcome{GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Entry{Status: tt.status, StatusRaw: []byte("000"), BytesSent: tt.bytes}
			if tt.bodyOnly {
				e.Notes = NoteBodyBytesOnly
			}
			switch tt.upstream {
			case absent:
			case "-.": // one try without an answer
				e.Tries, _ = splitTries(nil, []byte("127.0.0.1:9101"), []byte("-"), []byte("0.206"))
			default:
				e.Tries, _ = splitTries(nil, nil, []byte(tt.upstream), nil)
			}
			completion := []byte(tt.completion)
			if tt.completion == absent {
				completion = nil
			}
			nginxDeparture(&e, completion, tt.completion != absent, tt.body)
			if got := outcomeOf(&e); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestEnvoyDeparture(t *testing.T) {
	gone := func(d Delivered, w Work, p Departure) outcome { return outcome{GoneYes, d, w, p, true, false} }
	normal := func(w Work) outcome { return outcome{GoneNoRecord, DeliveredUnknown, w, NotRecorded, true, false} }
	ended := func(w Work) outcome { return outcome{GoneNo, DeliveredUnknown, w, NotRecorded, true, false} }
	local := outcome{GoneNoRecord, DeliveredUnknown, WorkNo, NotRecorded, true, true}
	before := gone(DeliveredNone, WorkUnknown, BeforeResponse)
	tests := []struct {
		name    string
		raw     string
		bytes   int64
		flags   string
		details string
		want    outcome
	}{
		{"connection closed", "0", 0, "DC", "downstream_remote_disconnect", before},
		{"connection closed, dash", "-", 0, "DC", "", before},
		{"stream reset", "0", 0, "DR", "http2.remote_reset", before},
		{"stream reset, long", "0", 0, "DownstreamRemoteReset", "", before},
		{"long list", "0", 0, "DelayInjected,DownstreamConnectionTermination", "", before},
		{"before there was a flag", "0", 0, "-", "", before},
		{"reset before there was a flag", "0", 0, "-", "http2.remote_reset", before},
		{"100-continue", "100", 0, "DC", "", before},
		{"after the upstream's headers", "200", 0, "DC", "", gone(DeliveredUnknown, WorkYes, UndeliveredAnswer)},
		{"in mid-body", "200", 734003, "DC", "via_upstream", gone(DeliveredPartial, WorkYes, DuringResponse)},
		{"in mid-body, reset", "200", 9, "DR", "", gone(DeliveredPartial, WorkYes, DuringResponse)},
		{"no byte count", "200", Unknown, "DC", "", gone(DeliveredUnknown, WorkYes, UnknownPoint)},
		{"left after a time-out's answer began", "504", 24, "UT,DC", "", gone(DeliveredPartial, WorkUnknown, DuringResponse)},
		{"left while the pool overflowed", "0", 0, "UO,DC", "", outcome{GoneYes, DeliveredNone, WorkNo, BeforeResponse, true, true}},
		{"protocol error", "400", 11, "DPE", "http1.codec_error", outcome{GoneLikely, DeliveredUnknown, WorkUnknown, UnknownPoint, true, false}},
		{"unknown flag alone", "0", 0, "XYZ", "", outcome{GoneLikely, DeliveredNone, WorkUnknown, BeforeResponse, true, false}},
		{"unknown flag beside", "200", 5, "XYZ", "", normal(WorkYes)},

		{"ordinary", "200", 5, "-", "via_upstream", normal(WorkYes)},
		{"ordinary, no details", "200", 5, "-", "", normal(WorkYes)},
		{"delay injected", "200", 5, "DI", "via_upstream", normal(WorkYes)},
		{"499 is the upstream's", "499", 5, "-", "via_upstream", normal(WorkYes)},
		{"upstream's own 503", "503", 5, "URX", "via_upstream", ended(WorkYes)},

		{"Envoy closed", "0", 0, "DC", "downstream_local_disconnect(max_duration)", ended(WorkUnknown)},
		{"duration limit", "0", 0, "DT", "duration_timeout", ended(WorkUnknown)},
		{"idle stream", "408", 14, "SI", "stream_idle_timeout", ended(WorkUnknown)},
		{"upstream too slow", "504", 24, "UT", "response_timeout", ended(WorkUnknown)},
		{"upstream stream limit", "504", 24, "UMSDR", "", ended(WorkUnknown)},
		{"overload", "503", 24, "OM", "overload", outcome{GoneNo, DeliveredUnknown, WorkNo, NotRecorded, true, true}},
		{"drop overload", "503", 24, "DO", "drop_overload", outcome{GoneNo, DeliveredUnknown, WorkNo, NotRecorded, true, true}},
		{"upstream broke off", "200", 40, "UPE", "upstream_reset_after_response_started{protocol_error}", ended(WorkYes)},
		{"upstream reset after headers", "200", 40, "UR", "", ended(WorkYes)},
		{"upstream reset before headers", "503", 95, "UR", "upstream_reset_before_response_started{remote_reset}", normal(WorkUnknown)},
		{"connection lost", "503", 95, "UC", "", normal(WorkUnknown)},
		{"no connection", "503", 95, "UF", "", normal(WorkNo)},
		{"no connection after retries", "503", 95, "UF,URX", "", normal(WorkUnknown)},

		{"overflow", "503", 81, "UO", "", local},
		{"overflow, long", "503", 81, "UpstreamOverflow", "", local},
		{"overflow after a reset try", "503", 81, "UR,UO", "", normal(WorkUnknown)},
		{"no healthy host", "503", 19, "UH", "no_healthy_upstream", local},
		{"no route", "404", 0, "NR", "route_not_found", local},
		{"no cluster", "503", 0, "NC", "cluster_not_found", local},
		{"rate limited", "429", 18, "RL", "local_rate_limited", local},
		{"rate limit service", "500", 0, "RLSE", "rate_limiter_error", local},
		{"not authorised", "403", 0, "UAEX", "ext_authz_denied", local},
		{"fault injected", "418", 18, "FI", "fault_filter_abort", local},
		{"bad headers", "400", 0, "IH", "", local},
		{"refused without a flag", "403", 19, "-", "rbac_access_denied_matched_policy[none]", local},
		{"refused, blanks in the details", "403", 19, "-", "rbac access denied matched policy[none]", local},
		{"direct response", "200", 2, "-", "direct_response", local},
		{"from a cache", "200", 2, "RFCF", "", normal(WorkNo)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Entry{StatusRaw: []byte(tt.raw), BytesSent: tt.bytes}
			e.Status, _ = tryStatus(e.StatusRaw)
			envoyDeparture(&e, []byte(tt.flags), []byte(tt.details), true)
			if got := outcomeOf(&e); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestEnvoyDepartureWithoutFlags(t *testing.T) {
	e := Entry{Status: 200, StatusRaw: []byte("200"), BytesSent: 4}
	envoyDeparture(&e, nil, nil, false)
	if want := (outcome{GoneNoRecord, DeliveredUnknown, WorkYes, NotRecorded, false, false}); outcomeOf(&e) != want {
		t.Errorf("got %+v, want %+v", outcomeOf(&e), want)
	}
	e = Entry{StatusRaw: []byte("0")}
	envoyDeparture(&e, nil, nil, false)
	if want := (outcome{GoneLikely, DeliveredNone, WorkUnknown, BeforeResponse, true, false}); outcomeOf(&e) != want {
		t.Errorf("got %+v, want %+v", outcomeOf(&e), want)
	}
	// A record without a status says nothing about an answer.
	e = Entry{BytesSent: Unknown}
	envoyDeparture(&e, []byte("-"), nil, true)
	if e.Gone != GoneNoRecord || e.Departure != NotRecorded {
		t.Errorf("no status: got %+v", outcomeOf(&e))
	}
}
