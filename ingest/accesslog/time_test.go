package accesslog

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestStamp(t *testing.T) {
	tests := []struct {
		in          string
		want        string // RFC 3339; "" is refused
		uncertainty int64
	}{
		{"2026-03-03T10:15:42Z", "2026-03-03T10:15:42Z", 1e9},
		{"2026-03-03T10:15:42.1Z", "2026-03-03T10:15:42.1Z", 1e8},
		{"2026-03-03T10:15:42.118Z", "2026-03-03T10:15:42.118Z", 1e6},
		{"2026-03-03T10:15:42.123456Z", "2026-03-03T10:15:42.123456Z", 1e3},
		{"2026-03-03T10:15:42.123456789Z", "2026-03-03T10:15:42.123456789Z", 0},
		{"2026-03-03T10:15:42.1234567891Z", "2026-03-03T10:15:42.123456789Z", 0},
		{"2026-03-03T10:15:42.118+05:30", "2026-03-03T04:45:42.118Z", 1e6},
		{"2026-03-03T10:15:42-0800", "2026-03-03T18:15:42Z", 1e9},
		{"2026-03-03T10:15:42+01", "2026-03-03T09:15:42Z", 1e9},
		{"2026-03-03 10:15:42,118", "2026-03-03T09:15:42.118Z", 1e6}, // the configured zone
		{"2026-03-03T10:15:42", "2026-03-03T09:15:42Z", 1e9},
		{"2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", 1e9},
		{"2026-12-31T23:59:60Z", "2027-01-01T00:00:00Z", 1e9},
		{"[03/Mar/2026:10:15:42 +0000]", "2026-03-03T10:15:42Z", 1e9},
		{"03/Mar/2026:10:15:42 +0200", "2026-03-03T08:15:42Z", 1e9},
		{"03/Mar/2026:10:15:42.500", "2026-03-03T09:15:42.5Z", 1e6},
		{"1772532942", "2026-03-03T10:15:42Z", 1e9},
		{"1772532942.118", "2026-03-03T10:15:42.118Z", 1e6},
		{"1772532942118", "2026-03-03T10:15:42.118Z", 1e6},
		{"1772532942118.25", "2026-03-03T10:15:42.11825Z", 1e4},
		{"1772532942118123", "2026-03-03T10:15:42.118123Z", 1e3},
		{"1772532942118123456", "2026-03-03T10:15:42.118123456Z", 0},
		{"20260303T101542Z", "2026-03-03T10:15:42Z", 1e9},
		{"1.772532942e9", "2026-03-03T10:15:42Z", 1e9},

		{"2026-02-29T10:15:42Z", "", 0}, {"2026-13-01T10:15:42Z", "", 0}, {"2026-03-03T24:00:00Z", "", 0},
		{"2026-03-03T10:60:42Z", "", 0}, {"2026-03-03T10:15:42.Z", "", 0}, {"2026-03-03T10:15:42+25:00", "", 0},
		{"1970-01-01T00:00:00Z", "", 0}, {"9999-01-01T00:00:00Z", "", 0}, {"0", "", 0}, {"99999999999999999999", "", 0},
		{"-1772532942", "", 0}, {"NaN", "", 0}, {"1e400", "", 0}, {"", "", 0}, {"03/Foo/2026:10:15:42 +0000", "", 0},
		{"2026-03-03T10:15:4", "", 0}, {"1772532942.118x", "", 0}, {"20260303T10", "", 0},
	}
	p := mustNew(t, Config{Format: "json", Zone: time.FixedZone("", 3600)})
	for range 2 {
		for _, tt := range tests {
			ns, uncertainty, ok := p.stamp([]byte(tt.in))
			got := ""
			if ok {
				got = time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
			}
			if got != tt.want || ok && uncertainty != tt.uncertainty {
				t.Errorf("%q: got %q ±%d, want %q ±%d", tt.in, got, uncertainty, tt.want, tt.uncertainty)
			}
		}
	}
}

// The day count agrees with package time on days drawn from the whole range.
func TestStampAgreesWithTime(t *testing.T) {
	var p Parser
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		want := time.Unix(minSecond+r.Int64N(maxSecond-minSecond), r.Int64N(1e9)).UTC()
		if ns, _, ok := p.stamp([]byte(want.Format("2006-01-02T15:04:05.000000000Z"))); !ok || ns != want.UnixNano() {
			t.Fatalf("%s: got %d, %v", want, ns, ok)
		}
		if ns, _, ok := p.stamp([]byte(want.Format("02/Jan/2006:15:04:05 -0700"))); !ok || ns != want.Unix()*1e9 {
			t.Fatalf("%s in CLF: got %d, %v", want, ns, ok)
		}
		if ns, ok := httpDate([]byte(want.Format("Mon, 02 Jan 2006 15:04:05 GMT"))); !ok || ns != want.Unix()*1e9 {
			t.Fatalf("%s as HTTP date: got %d, %v", want, ns, ok)
		}
	}
}

func TestSpan(t *testing.T) {
	tests := []struct {
		in   string
		u    unit
		want int64 // -1 is refused
	}{
		{"12", unitMillis, 12e6}, {"0.012", unitSeconds, 12e6}, {"1600.5", unitMillis, 16005e5}, {"7", unitNanos, 7},
		{"1.5", unitNanos, 1}, {"1e3", unitMillis, 1e9}, {"12ms", unitSeconds, 12e6}, {"1.5s", unitMillis, 15e8},
		{"1m30s", unitMillis, 90e9}, {"20m", unitSeconds, 20e6}, {"2S", unitMillis, 2e9}, {"3us", unitMillis, 3000},
		{"-1", unitMillis, -1}, {"NaN", unitMillis, -1}, {"", unitMillis, -1}, {".", unitMillis, -1}, {"x", unitMillis, -1},
		{"99999999999999999999", unitSeconds, -1}, {"+Inf", unitSeconds, -1}, {"1,2", unitSeconds, -1},
	}
	for _, tt := range tests {
		got, ok := span([]byte(tt.in), tt.u)
		if !ok {
			got = -1
		}
		if got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.in, got, tt.want)
		}
	}
}

// What a request carries about attempts and deadlines, in every usual spelling.
func TestMetadata(t *testing.T) {
	const start = 1772532942_000000000
	tests := []struct {
		member   string
		attempt  int
		scope    Scope
		deadline int64 // from the start
		retry    int64
		shown    bool
	}{
		{`"attempt":3`, 3, ScopeHop, 0, Unknown, false},
		{`"attempt":"2","attempt_scope":"origin"`, 2, ScopeOrigin, 0, Unknown, false},
		{`"attempt":0`, 0, ScopeNone, 0, Unknown, false},
		{`"attempt":null,"x_envoy_attempt_count":"2"`, 2, ScopeHop, 0, Unknown, false},
		{`"request":{"headers":{"X-Envoy-Attempt-Count":["2"]}}`, 2, ScopeHop, 0, Unknown, false},
		{`"http_amz_sdk_request":"attempt=2; max=3; ttl=20260303T101545Z"`, 2, ScopeOrigin, 3e9, Unknown, false},
		{`"amz-sdk-request":"ttl=20260303T101545Z; attempt=1"`, 1, ScopeOrigin, 3e9, Unknown, false},
		{`"x-goog-api-client":"gl-go/1.26 gccl-invocation-id/u-1 gccl-attempt-count/4"`, 4, ScopeOrigin, 0, Unknown, false},
		{`"grpc-previous-rpc-attempts":"1"`, 2, ScopeOrigin, 0, Unknown, false},
		{`"x-retry-attempt":"1"`, 2, ScopeOrigin, 0, Unknown, false},
		{`"x-stainless-retry-count":"0"`, 1, ScopeOrigin, 0, Unknown, false},
		{`"grpc-timeout":"1500m"`, 0, ScopeNone, 15e8, Unknown, false},
		{`"x-envoy-expected-rq-timeout-ms":"250"`, 0, ScopeNone, 25e7, Unknown, false},
		{`"l5d-ctx-deadline":"1772532942000000000 1772532944000000000"`, 0, ScopeNone, 2e9, Unknown, false},
		{`"deadline":"2026-03-03T10:15:43.5Z"`, 0, ScopeNone, 15e8, Unknown, false},
		{`"deadline":1772532943`, 0, ScopeNone, 1e9, Unknown, false},
		{`"deadline":1500`, 0, ScopeNone, 15e8, Unknown, false},
		{`"deadline":"2s"`, 0, ScopeNone, 2e9, Unknown, false},
		{`"deadline_s":2`, 0, ScopeNone, 2e9, Unknown, false},
		{`"deadline":"soon"`, 0, ScopeNone, 0, Unknown, false},
		{`"retry_after":"3"`, 0, ScopeNone, 0, 3e9, true},
		{`"retry-after":"Tue, 03 Mar 2026 10:15:52 GMT"`, 0, ScopeNone, 0, 9e9, true}, // from the end
		{`"sent_http_retry_after":"-"`, 0, ScopeNone, 0, Unknown, true},
		{`"retry_after":""`, 0, ScopeNone, 0, Unknown, true},
	}
	p := mustNew(t, Config{Format: "json", Keys: []string{"gccl_invocation_id"}})
	for _, tt := range tests {
		var e Entry
		line := `{"time":1772532942,"path":"/","status":503,"duration_ms":1000,` + tt.member + `}`
		if _, err := p.Parse([]byte(line), &e); err != nil {
			t.Errorf("%s: %v", tt.member, err)
			continue
		}
		deadline := e.Deadline
		if deadline != 0 {
			deadline -= start
		}
		if e.Attempt != tt.attempt || e.AttemptScope != tt.scope || deadline != tt.deadline || e.RetryAfter != tt.retry || e.RetryAfterShown != tt.shown {
			t.Errorf("%s: attempt %d scope %d deadline %d retry %d %v", tt.member, e.Attempt, e.AttemptScope, deadline, e.RetryAfter, e.RetryAfterShown)
		}
		if tt.attempt == 4 && string(e.Keys[0]) != "u-1" {
			t.Errorf("gccl key %q", e.Keys[0])
		}
	}
}

func TestEnvoyRecordKinds(t *testing.T) {
	p := mustNew(t, Config{Format: "envoy-json"})
	for member, want := range map[string]Entry{
		`"access_log_type":"DownstreamStart","stream_id":"s"`:                                {Kind: KindStart, StreamID: []byte("s")},
		`"access_log_type":"DownstreamPeriodic","request_id":"r"`:                            {Kind: KindPeriodic, StreamID: []byte("r")},
		`"access_log_type":"DownstreamEnd","stream_id":"s"`:                                  {Kind: KindEnd, StreamID: []byte("s")},
		`"upstream_cluster":"outbound|80||x"`:                                                {Outbound: true},
		`"upstream_request_attempt_count":3,"upstream_host":"h","upstream_local_address":""`: {Tries: make([]Try, 3)},
		`"upstream_request_attempt_count":0`:                                                 {},
	} {
		var e Entry
		if _, err := p.Parse([]byte(`{"start_time":"2026-03-03T10:15:42Z","response_code":503,"response_flags":"-",`+member+`}`), &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind != want.Kind || string(e.StreamID) != string(want.StreamID) || e.Outbound != want.Outbound || len(e.Tries) != len(want.Tries) || e.Attempt != 0 {
			t.Errorf("%s: %+v", member, e)
		}
		if len(e.Tries) == 3 && (e.Tries[2].Sent || string(e.Tries[2].Addr) != "h") {
			t.Errorf("last try: %+v", e.Tries[2])
		}
	}
}

// Nanoseconds are read the same way by the short way and by the long one.
func TestWholeNanos(t *testing.T) {
	for _, text := range []string{"1772532942118000000", "1772532942118273645", "1000000000000000001", "9223372036854775807", "9223372036854775808",
		"177253294211800000x", "1772532942.11800000", "-772532942118000000", "0000000000000000000", "0000000001772532942"} {
		slow, fine, slowOK := epoch([]byte(text))
		if fast, ok := wholeNanos([]byte(text)); ok && (!slowOK || fast != slow || fine != 0) {
			t.Errorf("%s: %d the short way, %d ±%d (%v) the long one", text, fast, slow, fine, slowOK)
		}
	}
	if ns, ok := wholeNanos([]byte("1772532942118273645")); !ok || ns != 1772532942118273645 {
		t.Errorf("%d, %v", ns, ok)
	}
}
