package lab

import "testing"

func TestRecoverySurge(t *testing.T) {
	f := scenario(t, "recovery-surge")
	base, budgets := played(t, f, "as-it-was"), played(t, f, "budgets")
	usual := base.on("before", "orders").Load
	about(t, "load while it is down, of the usual", base.on("down", "orders").Load/usual, 12, 0.01) // 6 attempts, twice
	surge := base.on("recovery", "orders")
	about(t, "load in recovery, of the usual", surge.Load/usual, 10, 0.15)
	// It is the limit that answers, not the dependency.
	atLeast(t, "refused in recovery", float64(surge.Refused)/float64(surge.Arrivals), 0.8)

	atMost(t, "with budgets: load while it is down", budgets.on("down", "orders").Load/usual, 1.2*1.2*1.25)
	atMost(t, "with budgets: load in recovery", budgets.on("recovery", "orders").Load/usual, 1.2*1.2)
	atLeast(t, "with budgets: answered in recovery", budgets.on("recovery", "orders").Success, 0.99)
	atLeast(t, "with backoff and jitter alone: load while it is down", played(t, f, "backoff-and-jitter").on("down", "orders").Load/usual, 10)
}

// 10,000 clients × 5 retries are 50,000, with jitter and without. Only when they come
// is different.
func TestJitterChangesWhenNotHowMany(t *testing.T) {
	f := scenario(t, "recovery-surge")
	waves, spread := played(t, f, "waves"), played(t, f, "waves-with-jitter")
	for _, r := range []*Truth{waves, spread} {
		if r.Total.Questions != 10_000 || r.Total.Repeats != 50_000 {
			t.Errorf("%s: %d clients, %d retries, want 10,000 and 50,000", r.Arm, r.Total.Questions, r.Total.Repeats)
		}
	}
	// Without jitter each wave is a second in which all come, with silence between.
	peaks, silent := 0, 0
	for _, s := range waves.Routes[0].Seconds[1:32] {
		switch {
		case s.Arrivals == 10_000:
			peaks++
		case s.Arrivals == 0:
			silent++
		}
	}
	if peaks != 5 || silent != 26 {
		t.Errorf("waves: %d seconds of 10,000 and %d of silence, want 5 and 26", peaks, silent)
	}
	// With it the last wave, of 16 s, is spread over as long.
	most := uint64(0)
	for _, s := range spread.Routes[0].Seconds[8:32] {
		most = max(most, s.Arrivals)
	}
	atMost(t, "with jitter: the busiest second, of 10,000", float64(most)/10_000, 0.2)
}
