package accesslog

import (
	"slices"
	"testing"
)

func TestEnvoyTries(t *testing.T) {
	const ms = int64(1e6)
	type try struct {
		status int
		time   int64
		sent   bool
	}
	lost := try{0, Unknown, true} // of which the record says nothing
	none := try{0, Unknown, false}
	tests := []struct {
		name, members string
		want          []try
	}{
		{"one", `"upstream_request_attempt_count":1,"response_code":200,"response_flags":"-","response_code_details":"via_upstream","upstream_local_address":"a:1"`, []try{{200, 40 * ms, true}}},
		{"one, no details", `"upstream_request_attempt_count":1,"response_code":500,"response_flags":"-","upstream_host":"h:1"`, []try{{500, 40 * ms, true}}},
		{"one, the upstream's 503", `"upstream_request_attempt_count":1,"response_code":503,"response_flags":"-","upstream_host":"h:1"`, []try{{503, 40 * ms, true}}},
		{"one as a float", `"upstream_request_attempt_count":1.0,"response_code":200.0,"response_flags":"-","upstream_host":"h:1"`, []try{{200, 40 * ms, true}}},
		{"one that timed out", `"upstream_request_attempt_count":1,"response_code":504,"response_flags":"UT","upstream_host":"h:1"`, []try{{0, 40 * ms, true}}},
		{"one that was lost", `"upstream_request_attempt_count":1,"response_code":503,"response_flags":"UC","upstream_host":"h:1","upstream_local_address":"a:1"`, []try{{0, 40 * ms, true}}},
		{"one that the caller left", `"upstream_request_attempt_count":1,"response_code":0,"response_flags":"DC","upstream_host":"h:1"`, []try{{0, 40 * ms, true}}},
		{"one refused", `"upstream_request_attempt_count":1,"response_code":503,"response_flags":"UF","upstream_host":"h:1","upstream_local_address":null`, []try{none}},
		{"one refused, no local address", `"upstream_request_attempt_count":1,"response_code":503,"response_flags":"UF","upstream_host":"h:1"`, []try{none}},
		{"three", `"upstream_request_attempt_count":3,"response_code":200,"response_flags":"-","response_code_details":"via_upstream","upstream_host":"h:1"`, []try{lost, lost, {200, Unknown, true}}},
		{"three, no details", `"upstream_request_attempt_count":3,"response_code":200,"response_flags":"-","upstream_host":"h:1"`, []try{lost, lost, {200, Unknown, true}}},
		{"three, all answered", `"upstream_request_attempt_count":3,"response_code":503,"response_flags":"URX","response_code_details":"via_upstream","upstream_host":"h:1"`, []try{lost, lost, {503, Unknown, true}}},
		{"three refused", `"upstream_request_attempt_count":3,"response_code":503,"response_flags":"UF,URX","upstream_host":"h:1","upstream_local_address":null`, []try{none, none, none}},
		{"three refused, long", `"upstream_request_attempt_count":3,"response_code":503,"response_flags":"UpstreamConnectionFailure,UpstreamRetryLimitExceeded","upstream_host":"h:1"`, []try{none, none, none}},
		{"one reset, then refused", `"upstream_request_attempt_count":2,"response_code":503,"response_flags":"UR,UF,URX","upstream_host":"h:1","upstream_local_address":null`, []try{lost, none}},
		{"none", `"upstream_request_attempt_count":0,"response_code":503,"response_flags":"UH"`, nil},
	}
	for _, format := range []string{"envoy-json", "istio-json"} {
		p := mustNew(t, Config{Format: format})
		for _, tt := range tests {
			var e Entry
			if _, err := p.Parse([]byte(`{"start_time":"2026-03-03T10:15:42Z","path":"/","duration":40,`+tt.members+`}`), &e); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			var got []try
			for _, x := range e.Tries {
				got = append(got, try{x.Status, x.Time, x.Sent})
			}
			if e.Tries == nil || !slices.Equal(got, tt.want) {
				t.Errorf("%s, %s: %+v, want %+v", format, tt.name, got, tt.want)
			}
		}
	}
	// However many there were, the last is the one with the status.
	p := mustNew(t, Config{Format: "envoy-json"})
	var e Entry
	if _, err := p.Parse([]byte(`{"start_time":"2026-03-03T10:15:42Z","path":"/","response_code":200,"response_flags":"-","upstream_host":"h:1","upstream_request_attempt_count":1000}`), &e); err != nil ||
		len(e.Tries) != maxTries || e.Tries[maxTries-1].Status != 200 {
		t.Errorf("%d tries, %v", len(e.Tries), err)
	}
}
