package accesslog

import "testing"

// What client_gone and departure say is a word that is known, or nothing: neither
// that somebody left nor that nobody did.
func TestToldWords(t *testing.T) {
	var (
		nobody  = outcome{GoneNo, DeliveredUnknown, WorkUnknown, NotRecorded, true, false}
		nothing = outcome{GoneNoRecord, DeliveredUnknown, WorkUnknown, NotRecorded, false, false}
		left    = outcome{GoneYes, DeliveredPartial, WorkYes, DuringResponse, true, false}
		before  = outcome{GoneYes, DeliveredNone, WorkUnknown, BeforeResponse, true, false}
	)
	type test struct {
		members string
		want    outcome
		note    bool
	}
	var tests []test
	add := func(want outcome, note bool, members ...string) {
		for _, m := range members {
			tests = append(tests, test{m, want, note})
		}
	}
	for _, word := range []string{`true`, `1`, `1.0`, `"1"`, `"true"`, `"TRUE"`, `"True"`, `"y"`, `"Y"`, `"yes"`, `"YES"`, `"t"`, `"T"`, `"on"`, `"On"`, `" yes "`} {
		add(left, false, `"client_gone":`+word)
	}
	for _, word := range []string{`false`, `0`, `0.0`, `"0"`, `"false"`, `"FALSE"`, `"n"`, `"N"`, `"no"`, `"NO"`, `"f"`, `"F"`, `"off"`, `"OFF"`, `""`, `" "`} {
		add(nobody, false, `"client_gone":`+word, `"departure":"","client_gone":`+word, `"departure":"no_record","client_gone":`+word)
	}
	for _, word := range []string{`"maybe"`, `2`, `0.5`, `-1`, `"unknown"`, `"client closed request"`, `"yess"`} {
		add(nothing, true, `"client_gone":`+word)
	}
	for _, word := range []string{`"client_reset"`, `"before response"`, `"Before_response!"`, `""`, `" "`, `"none"`, `"not_recorded"`, `"no_record"`, `"0"`} {
		add(nothing, true, `"departure":`+word)
	}
	add(before, false, `"departure":"before_response"`, `"departure":"before_response","client_gone":"maybe"`, `"departure":"before_response","client_gone":false`)
	add(nothing, true, `"departure":"client_reset","client_gone":false`, `"departure":"client_reset","client_gone":"maybe"`)
	add(left, true, `"departure":"client_reset","client_gone":true`)
	add(nothing, false, `"departure":null`, `"client_gone":null`, `"departure":"-","client_gone":"-"`)

	p := mustNew(t, Config{Format: "json"})
	for _, tt := range tests {
		var e Entry
		if _, err := p.Parse([]byte(`{"time":1772532942,"path":"/","status":200,"bytes_sent":7,`+tt.members+`}`), &e); err != nil {
			t.Errorf("%s: %v", tt.members, err)
			continue
		}
		if got := outcomeOf(&e); got != tt.want || (e.Notes&NoteDepartureUnread != 0) != tt.note {
			t.Errorf("%s: %+v, notes %v; want %+v, note %v", tt.members, got, e.Notes.Strings(), tt.want, tt.note)
		}
	}
}

// A status that cannot be read, or is not there, does not place a departure: with nothing
// sent it may have been an answer that nobody got, or none. A status that is shown as none
// is read as that.
func TestToldUnreadableStatus(t *testing.T) {
	p := mustNew(t, Config{Format: "json"})
	for _, sent := range []string{"", `,"bytes_sent":0`} {
		for status, want := range map[string]Departure{
			`,"status":0`: BeforeResponse, `,"status":"000"`: BeforeResponse, `,"status":499.0`: BeforeResponse,
			`,"status":"-"`: BeforeResponse, `,"status":null`: BeforeResponse,
			`,"status":"abc"`: UnknownPoint, `,"status":1000`: UnknownPoint, `,"status":"5xx"`: UnknownPoint, `,"status":""`: UnknownPoint, ``: UnknownPoint,
		} {
			var e Entry
			if _, err := p.Parse([]byte(`{"time":1772532942,"path":"/","client_gone":true`+sent+status+`}`), &e); err != nil || e.Departure != want {
				t.Errorf("status %q, sent %q: %+v, %v; want %v", status, sent, outcomeOf(&e), err, want)
			}
			if e.Departure == UnknownPoint && (e.Work != WorkUnknown || e.Delivered != DeliveredUnknown || !e.Visible || e.Gone != GoneYes) {
				t.Errorf("status %q, sent %q: %+v", status, sent, outcomeOf(&e))
			}
		}
		// Whatever the status, what was sent was sent.
		var e Entry
		if _, err := p.Parse([]byte(`{"time":1772532942,"path":"/","client_gone":true,"status":"abc","bytes_sent":7}`), &e); err != nil || e.Departure != DuringResponse {
			t.Errorf("%+v, %v", outcomeOf(&e), err)
		}
	}
}

// In a pattern a group that took part and holds no word is no proof.
func TestToldPattern(t *testing.T) {
	p := mustNew(t, Config{Format: "pattern", Pattern: `(?P<time>\S+) (?P<status>\d+) departure="(?P<departure>[^"]*)"`})
	for word, visible := range map[string]bool{"": false, "client_reset": false, "-": false, "during_response": true} {
		var e Entry
		if _, err := p.Parse([]byte(`2026-03-03T10:15:42Z 200 departure="`+word+`"`), &e); err != nil || e.Visible != visible {
			t.Errorf("%q: %+v, %v", word, outcomeOf(&e), err)
		}
	}
}
