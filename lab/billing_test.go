package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strconv"
	"testing"
	"time"
)

// noted is what whoever asked notes of a question.
type noted struct {
	Time     time.Time `json:"time"`
	Key      string    `json:"key"`
	Route    string    `json:"route"`
	Attempts uint64    `json:"attempts"`
	Outcome  string    `json:"outcome"`
}

// playedEvents plays an arm and reads what those who asked noted.
func playedEvents(t *testing.T, f *File, arm string) (*Truth, []noted) {
	t.Helper()
	a, err := f.Arm(arm)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	truth, err := Run(t.Context(), &a, Output{Events: &b})
	if err != nil {
		t.Fatal(err)
	}
	var out []noted
	for lines := bufio.NewScanner(&b); lines.Scan(); {
		var e noted
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return truth, out
}

func TestBilling(t *testing.T) {
	f := scenario(t, "billing")
	for _, c := range []struct {
		arm               string
		perQuestion, load float64
	}{{"as-it-was", 27, 1080}, {"one-layer", 2, 80}, {"budget", 1.1, 44}} {
		x := played(t, f, c.arm).on("hangs", "bills")
		about(t, c.arm+": arrivals per question", x.PerQuestion, c.perQuestion, 0.01)
		about(t, c.arm+": arrivals per second at 40 questions/s", x.Load, c.load, 0.01)
	}
	// Whoever asks waits for all attempts, and gets something made up.
	base := played(t, f, "as-it-was").on("hangs", "bills")
	if base.Degraded != base.Asked || base.Asked == 0 {
		t.Errorf("as-it-was: %d of %d got a degraded answer, want all", base.Degraded, base.Asked)
	}
}

// The waits are 27 × 2 s, and 2 × 2 s with half a second between.
func TestBillingWaits(t *testing.T) {
	f := scenario(t, "billing")
	for arm, want := range map[string]time.Duration{"as-it-was": 54 * time.Second, "one-layer": 4500 * time.Millisecond} {
		a, err := f.Arm(arm)
		if err != nil {
			t.Fatal(err)
		}
		// One question in the middle of it.
		a.Clients[0].Rate, a.Clients[0].From, a.Clients[0].Until = 1, 30*time.Second, 30500*time.Millisecond
		r, err := Run(t.Context(), &a, Output{})
		if err != nil {
			t.Fatal(err)
		}
		waited := time.Duration(whole(r).Waited * 1e9)
		if d := waited - want; d < 0 || d > 50*time.Millisecond { // the network
			t.Errorf("%s: whoever asks waits %v, want %v", arm, waited, want)
		}
	}
}

// Ten bills under one key are ten questions at the ledger, each with one arrival.
func TestBillingFansOut(t *testing.T) {
	r, events := playedEvents(t, scenario(t, "billing"), "tool-calls")
	keys := map[string]int{}
	for _, e := range events {
		keys[e.Key]++
	}
	for k, n := range keys {
		if n != 10 {
			t.Fatalf("key %s asked for %d bills, want 10", k, n)
		}
	}
	if len(keys) != 480 || r.Total.Questions != 4800 || r.Total.Repeats != 0 {
		t.Errorf("%d keys, %d questions, %d repeats; want 480, 4,800 and 0", len(keys), r.Total.Questions, r.Total.Repeats)
	}
}

// A dispute whose first answer was too late has been filed, and is filed again.
func TestBillingDisputes(t *testing.T) {
	f := scenario(t, "billing")
	twice, once := played(t, f, "dispute"), played(t, f, "dispute-idempotent")
	a, b := whole(twice), whole(once)
	if a.Again == 0 || b.Again != 0 {
		t.Errorf("filed again: %d without an idempotency key, %d with one; want some and none", a.Again, b.Again)
	}
	// The log shows a second success either way: not whether it was done or found done.
	if a.Again != twice.Total.DoubleSuccess || once.Total.DoubleSuccess != twice.Total.DoubleSuccess {
		t.Errorf("%d filed again, and %d and %d double successes in the log", a.Again, twice.Total.DoubleSuccess, once.Total.DoubleSuccess)
	}
}

// One event for each question: what they say together is what was counted at the
// target.
func TestBillingEvents(t *testing.T) {
	f := scenario(t, "billing")
	for _, a := range f.Arms {
		r, events := playedEvents(t, f, a.Name)
		var attempts, asked uint64
		histogram, outcomes := map[string]uint64{}, map[string]uint64{}
		for _, e := range events {
			asked++
			attempts += e.Attempts
			outcomes[e.Outcome]++
			histogram[strconv.FormatUint(e.Attempts, 10)]++
		}
		if asked != r.Asked || asked != r.Total.Questions || attempts != r.Total.Arrivals {
			t.Errorf("%s: %d events and %d attempts; %d asked, %d questions and %d arrivals were counted", a.Name, asked, attempts, r.Asked, r.Total.Questions, r.Total.Arrivals)
		}
		for k, n := range r.Total.PerQuestion.Histogram {
			if histogram[k] != n {
				t.Errorf("%s: %d events of %s attempts, %d questions of as many arrivals", a.Name, histogram[k], k, n)
			}
		}
		s := whole(r)
		for name, n := range map[string]uint64{"answered": s.Answered, "late": s.Late, "degraded": s.Degraded, "failed": s.Failed, "left": s.Left} {
			if outcomes[name] != n {
				t.Errorf("%s: %d events say %s, and %d were", a.Name, outcomes[name], name, n)
			}
		}
	}
}
