package main

import (
	"fmt"
	"testing"

	"github.com/targetside/auditor/aggregate"
)

// A time that is not known is not printed as none, one that lacks some arrivals' is printed
// as the least that it can be, and one of 0 is 0.
func TestUnknownTimesAreNotZero(t *testing.T) {
	none, s := aggregate.Figure{}, aggregate.Number
	for _, tt := range []struct {
		dead, busy, repeat aggregate.Figure
		untimed            uint64
		want               string
	}{
		{none, none, none, 3, "– – –"},
		{none, s(2), none, 2, "– – ≥ 2.00 s"},
		{s(1), s(2), s(1), 1, "≥ 1.00 s ≥ 1.00 s ≥ 2.00 s"},
		{s(0.5), s(2), s(1), 0, "500 ms 1.00 s 2.00 s"},
		{s(0), s(0), s(0), 0, "0 s 0 s 0 s"},
	} {
		m := &aggregate.Measure{Arrivals: 3, Repeats: 2}
		r := &m.Responses
		r.Total, r.DeadSeconds, r.BusySeconds, r.RepeatSeconds, r.Untimed, r.Visibility = 3, tt.dead, tt.busy, tt.repeat, tt.untimed, s(1)
		times := map[string]string{}
		for _, row := range responses(m).table.rows {
			times[row[0]] = row[1]
		}
		if got := fmt.Sprint(times["dead time"], " ", times["time of repeats"], " ", times["time in system"]); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt, got, tt.want)
		}
	}
}
