package accesslog

import (
	"fmt"
	"math"
	"testing"
)

// A deadline of nothing is none, but where gRPC says so.
func TestNoDeadline(t *testing.T) {
	p := mustNew(t, Config{Format: "json", Fields: map[string]string{"deadline": "mapped"}})
	for member, want := range map[string]int64{
		`"deadline":0`: Unknown, `"deadline_ms":"0"`: Unknown, `"deadline_s":0.0`: Unknown, `"deadline":"0s"`: Unknown, `"deadline":"0ms"`: Unknown,
		`"x-envoy-expected-rq-timeout-ms":0`: Unknown, `"connect_timeout_ms":0`: Unknown, `"deadline":0,"grpc-timeout":"5m"`: 5e6,
		`"grpc-timeout":"0n"`: 0, `"mapped":"0n"`: 0, `"mapped":"1n"`: 1, `"deadline_ms":1`: 1e6,
	} {
		var e Entry
		if _, err := p.Parse([]byte(`{"time":1772532942,"path":"/","status":200,"duration_ms":10,`+member+`}`), &e); err != nil {
			t.Fatal(err)
		}
		got := e.Deadline - e.Start
		if e.Deadline == 0 {
			got = Unknown
		}
		if got != want {
			t.Errorf("%s: %d ns from the start, want %d", member, got, want)
		}
	}
}

// However far a stamp and a duration lie, a request does not end before it starts, and one of
// the future is not of the past.
func TestTimesAtBounds(t *testing.T) {
	stamps := []string{"1973-03-03T09:46:40Z", "2026-03-03T10:15:42Z", "2242-07-11T00:53:20Z"}
	durations := []string{"0", "1", "3153600000", "1e9", "-1", "NaN", "1e400", "9223372036854775807"}
	p := mustNew(t, Config{Format: "json"})
	for _, stamp := range stamps {
		for _, duration := range durations {
			for _, name := range []string{"start_time", "end_time"} {
				var e Entry
				line := fmt.Sprintf(`{"%s":"%s","path":"/","status":200,"duration_s":%s,"deadline_s":99999999}`, name, stamp, duration)
				if _, err := p.Parse([]byte(line), &e); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if e.Start > e.End || e.Deadline < e.Start || e.Duration < Unknown {
					t.Errorf("%s: from %d to %d, deadline %d", line, e.Start, e.End, e.Deadline)
				}
				if name == "start_time" && e.Duration != Unknown && e.End != e.Start+e.Duration && e.End != math.MaxInt64 {
					t.Errorf("%s: from %d to %d in %d", line, e.Start, e.End, e.Duration)
				}
			}
		}
	}
	for _, stamp := range []string{"1973-03-03T09:46:39Z", "2242-07-11T00:53:21Z", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "2026-02-30T00:00:00Z"} {
		var e Entry
		if _, err := p.Parse([]byte(`{"time":"`+stamp+`","path":"/","status":200}`), &e); err != RejectBadTime {
			t.Errorf("%s: %v", stamp, err)
		}
	}
}
