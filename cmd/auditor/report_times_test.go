package main

import (
	"fmt"
	"testing"

	"github.com/targetside/auditor/aggregate"
)

// A time that no record could show is not printed as none.
func TestUnknownTimesAreNotZero(t *testing.T) {
	for _, tt := range []struct {
		busy, repeat float64
		want         string
	}{{0, 0, "– –"}, {2, 0, "– 2.00 s"}, {2, 1, "1.00 s 2.00 s"}} {
		m := &aggregate.Measure{Arrivals: 3, Repeats: 2}
		m.Responses.Total, m.Responses.BusySeconds, m.Responses.RepeatSeconds = 3, tt.busy, tt.repeat
		times := map[string]string{}
		for _, row := range responses(m).table.rows {
			times[row[0]] = row[1]
		}
		if got := fmt.Sprint(times["time of repeats"], " ", times["time in system"]); got != tt.want {
			t.Errorf("busy %v, repeats %v: %s, want %s", tt.busy, tt.repeat, got, tt.want)
		}
	}
}
