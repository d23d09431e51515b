package accesslog

import "testing"

// A status may be a float, and what is none is not known: no format takes it for
// a caller that left.
func TestStatusText(t *testing.T) {
	lines := map[string]string{
		"json":       `{"time":1772532942,"path":"/","bytes_sent":0,"status":`,
		"envoy-json": `{"start_time":"2026-03-03T10:15:42Z","path":"/","response_flags":"-","bytes_sent":0,"response_code":`,
		"istio-json": `{"start_time":"2026-03-03T10:15:42Z","path":"/","response_flags":"-","bytes_sent":0,"response_code":`,
		"nginx-json": `{"msec":1772532942.118,"request_uri":"/","request_completion":"","bytes_sent":0,"body_bytes_sent":0,"status":`,
	}
	for format, line := range lines {
		p := mustNew(t, Config{Format: format})
		read := func(status string) Entry {
			t.Helper()
			var e Entry
			if _, err := p.Parse([]byte(line+status+"}"), &e); err != nil {
				t.Fatalf("%s %s: %v", format, status, err)
			}
			return e
		}
		for _, status := range []string{`200.0`, `"200.0"`, `200.00`} {
			want, got := read("200"), read(status)
			if got.Status != 200 || outcomeOf(&got) != outcomeOf(&want) {
				t.Errorf("%s: status %s is %d, %+v; want what 200 is", format, status, got.Status, outcomeOf(&got))
			}
		}
		for _, status := range []string{`"abc"`, `1000`, `99`, `-1`, `"-1"`, `200.5`, `1000.0`, `null`, `"-"`, `""`} {
			// nginx's mark of an answer that was cut off stands for itself.
			if got := read(status); got.Status != 0 || format != "nginx-json" && got.Gone >= GoneLikely || got.Departure == BeforeResponse {
				t.Errorf("%s: status %s is %d, %+v", format, status, got.Status, outcomeOf(&got))
			}
		}
		for _, status := range []string{`0`, `"000"`, `0.0`} {
			if got := read(status); got.Status != 0 || (got.Departure == BeforeResponse) != (format != "json") {
				t.Errorf("%s: status %s is %d, %+v", format, status, got.Status, outcomeOf(&got))
			}
		}
	}
}

// A flag says that the caller left, whatever the code; a code that cannot be read
// does not say when.
func TestEnvoyUnreadableStatus(t *testing.T) {
	for raw, want := range map[string]Departure{
		"0": BeforeResponse, "0.0": BeforeResponse, "-": BeforeResponse, "100": BeforeResponse,
		"abc": UnknownPoint, "1000": UnknownPoint, "99": UnknownPoint, "-1": UnknownPoint, "": UnknownPoint,
	} {
		e := Entry{StatusRaw: []byte(raw)}
		if n := count(e.StatusRaw); n >= 100 && n <= 999 {
			e.Status = int(n)
		}
		if envoyDeparture(&e, []byte("DC"), nil, true); e.Gone != GoneYes || e.Departure != want {
			t.Errorf("code %q with DC: %+v", raw, outcomeOf(&e))
		}
	}
}
