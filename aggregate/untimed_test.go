package aggregate

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/targetside/auditor/keys"
)

// Time that no record tells is null and not 0, a sum that lacks some is told to, and a time
// of 0 that records do tell is 0.
func TestUntimed(t *testing.T) {
	const ms = 1_000_000
	for _, tt := range []struct {
		name      string
		durations []int64 // of three arrivals of one question, the first two of which nobody waited for
		want      string
	}{
		{"all", []int64{5 * ms, 7 * ms, 9 * ms}, "dead 0.012 busy 0.021 repeat 0.016 untimed 0"},
		{"none", []int64{-1, -1, -1}, "dead null busy null repeat null untimed 3"},
		{"the original alone", []int64{5 * ms, -1, -1}, "dead 0.005 busy 0.005 repeat null untimed 2"},
		{"a repeat alone", []int64{-1, -1, 9 * ms}, "dead null busy 0.009 repeat 0.009 untimed 2"},
		{"no time at all", []int64{0, 0, 0}, "dead 0 busy 0 repeat 0 untimed 0"},
	} {
		l := NewLedger(testConfig(60*sec, 10*sec))
		for i, d := range tt.durations {
			a := Arrival{
				Start: testBase + int64(i)*sec, Log: testBase + int64(i)*sec + max(d, 0), Duration: d, RetryAfter: -1, AttemptsLeft: NoBudget,
				Text: uint64(i + 1), Question: ID{1, 2}, Class: keys.Verified, Kind: KindEnd, Route: 1, Originator: 1, Peer: 1, Flags: Head | Decidable,
			}
			if i < 2 {
				a.Departure = UnknownPoint
			}
			l.Add(&a, nil, minTick)
		}
		out := new(Output)
		l.Finish(out)
		c := total(out, 0, func(Dims) bool { return true })
		c, err := DecodeCounts(c.Append(nil)) // as a row at rest
		if err != nil {
			t.Fatal(err)
		}
		m := c.Measure(10, Figure{}, false)
		show := func(f Figure) string { b, _ := json.Marshal(f); return string(b) }
		r := &m.Responses
		if got := fmt.Sprintf("dead %s busy %s repeat %s untimed %d", show(r.DeadSeconds), show(r.BusySeconds), show(r.RepeatSeconds), r.Untimed); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
