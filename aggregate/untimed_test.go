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

// What rests on times is not known without them: whether a deadline had passed, and who came
// back too early, or how soon. It is null where nothing is timed, and else known of what is.
func TestUntimedIsNotJudged(t *testing.T) {
	const ms = 1_000_000
	end, start, nothing := Untimed(false, true, true), Untimed(true, false, true), Untimed(false, false, true)
	for _, tt := range []struct {
		name      string
		durations []int64 // of arrivals of one question, a second apart, that ask for 2 s of patience
		expired   int     // how many of them, from the first on
		want      string
	}{
		{"all timed", []int64{5 * ms, 5 * ms, 5 * ms}, 1, "expired 1 unjudged 0 dead 0.3333333333333333 seconds 0.005 good 2 asked 3 returned 2 early 2 gap 1"},
		{"ends alone", []int64{end, end, end}, 0, "expired null unjudged 3 dead null seconds null good 3 asked 3 returned null early null gap null"},
		{"starts alone", []int64{start, start, start}, 0, "expired null unjudged 3 dead null seconds null good 3 asked 3 returned null early null gap 1"},
		{"no deadline", []int64{-1, -1, -1}, 0, "expired 0 unjudged 0 dead 0 seconds 0 good 3 asked 3 returned null early null gap null"},
		{"one expired of those timed", []int64{5 * ms, end, nothing}, 1, "expired 1 unjudged 2 dead 0.3333333333333333 seconds 0.005 good 2 asked 3 returned 0 early 0 gap null"},
		{"an end, then a start", []int64{end, 5 * ms, start}, 0, "expired 0 unjudged 2 dead 0 seconds 0 good 3 asked 3 returned 2 early 2 gap 1"},
		{"a start, then a time", []int64{start, 5 * ms, nothing}, 0, "expired 0 unjudged 2 dead 0 seconds 0 good 3 asked 3 returned 0 early 0 gap 1"},
	} {
		l := NewLedger(testConfig(60*sec, 10*sec))
		for i, d := range tt.durations {
			a := Arrival{
				Start: testBase + int64(i)*sec, Log: testBase + int64(i)*sec + max(d, 0), Duration: d, RetryAfter: 2 * sec, AttemptsLeft: NoBudget,
				Text: uint64(i + 1), Question: ID{1, 2}, Class: keys.Verified, Kind: KindEnd, Outcome: OutcomeSuccess, Route: 1, Originator: 1, Peer: 1,
				Flags: Head | Decidable | RetryShown,
			}
			if i < tt.expired {
				a.Flags |= Expired
			}
			l.Add(&a, nil, minTick)
		}
		out := new(Output)
		l.Finish(out)
		c, err := DecodeCounts(total(out, 0, func(Dims) bool { return true }).Append(nil)) // as a row at rest
		if err != nil {
			t.Fatal(err)
		}
		m := c.Measure(1, Figure{}, false)
		show := func(v any) string { b, _ := json.Marshal(v); return string(b) }
		r, a := &m.Responses, m.RetryAfter
		if got := fmt.Sprintf("expired %s unjudged %d dead %s seconds %s good %s asked %d returned %s early %s gap %s", show(r.Expired), r.Unjudged, show(r.DeadShare), show(r.DeadSeconds),
			show(r.Goodput), a.Asked, show(a.Returned), show(a.Early), show(m.RetryGap.P50)); got != tt.want {
			t.Errorf("%s: %s, want\n%s", tt.name, got, tt.want)
		}
	}
}
