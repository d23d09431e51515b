package alerts

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

// A restart goes on with what fires: it tells nothing twice, resolves what it knows
// of when it is over, and nothing that it knows nothing of.
func TestRestart(t *testing.T) {
	before := newBench(t)
	before.consume(0.6)
	before.pass(10)
	state, changed := before.e.Unsaved()
	if !changed {
		t.Fatal("nothing is to be kept")
	}
	before.pass(10)
	if _, changed := before.e.Unsaved(); changed {
		t.Error("the same is kept again")
	}
	for name, restored := range map[string]bool{"restored": true, "forgotten": false} {
		for over, want := range map[bool][]string{false: nil, true: {"+91 RetryBudgetLow resolved"}} {
			b := newBench(t)
			b.at = 30
			if restored {
				if err := b.e.Restore(state, nine.Add(30*time.Second)); err != nil {
					t.Fatal(err)
				}
			} else if want = nil; !over {
				want = []string{"+31 RetryBudgetLow firing"}
			}
			if !over {
				b.consume(0.6)
			}
			b.pass(100)
			if !slices.Equal(b.told, want) {
				t.Errorf("%s, over: %v: told %q, want %q", name, over, b.told, want)
			}
		}
	}
	// Labels and texts are as they were; its value is not known until it is seen again.
	e := NewEvaluator()
	if err := e.Restore(state, nine); err != nil {
		t.Fatal(err)
	}
	was, is := before.e.Alerts()[0], e.Alerts()[0]
	known := !math.IsNaN(is.Value)
	is.Value = was.Value
	if known || !reflect.DeepEqual(was, is) {
		t.Errorf("%+v, then %+v", was, is)
	}
	for _, bad := range []string{"", "{", `{"version":1}`} {
		if err := NewEvaluator().Restore([]byte(bad), nine); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// While something fires it is kept anew, with when it was seen; what was seen too long
// ago to say anything of now is not restored as firing: it is resolved if somebody was
// told, once, and what fires by then is told as of then.
func TestStaleIsOver(t *testing.T) {
	before := newBench(t)
	before.consume(3) // Low is inhibited and untold
	kept := 0
	var state []byte
	for range 600 {
		before.pass(1)
		if s, is := before.e.Unsaved(); is {
			state, kept = s, kept+1
		}
	}
	if kept < 19 || kept > 22 {
		t.Errorf("in ten minutes it was kept %d times", kept)
	}
	restart := func(after time.Duration, change func(b *bench), want ...string) {
		t.Helper()
		b := newBench(t)
		b.at = 600 + int(after/time.Second)
		if err := b.e.Restore(state, nine.Add(time.Duration(b.at)*time.Second)); err != nil {
			t.Fatal(err)
		}
		change(b)
		b.pass(1)
		if _, is := b.e.Unsaved(); !is {
			t.Error("what became of what was kept is not kept")
		}
		for _, a := range b.e.Alerts() {
			if a.Told && a.State == Firing && after > staleAfter && a.Since.Before(nine.Add(10*time.Minute)) {
				t.Errorf("it fires with a time of before: %+v", a)
			}
		}
		b.pass(59)
		b.wants(want...)
	}
	calm, storm := func(*bench) {}, func(b *bench) { b.consume(3) }
	restart(4*time.Minute, storm)
	restart(6*time.Minute, calm, "+961 RetryBudgetExhausted resolved")
	restart(6*time.Minute, func(b *bench) { b.in.Unknown = true }, "+961 RetryBudgetExhausted resolved")
	restart(6*time.Minute, storm, "+961 RetryBudgetExhausted resolved", "+961 RetryBudgetExhausted firing")
	restart(6*time.Minute, func(b *bench) { b.in.Share = true })

	// What nobody sees grows old, however often a daemon that does not see it begins anew.
	b := newBench(t)
	b.at, b.in.Unknown = 700, true
	if err := b.e.Restore(state, nine.Add(700*time.Second)); err != nil {
		t.Fatal(err)
	}
	b.pass(200)
	state = b.e.State()
	restart(6*time.Minute, calm, "+961 RetryBudgetExhausted resolved")
}

// Between the first look and what was kept the same may have begun to fire.
func TestRestoreKeepsWhatIsSeen(t *testing.T) {
	old := newBench(t)
	old.consume(0.6)
	old.pass(5)
	b := newBench(t)
	b.consume(2)
	b.pass(1)
	if err := b.e.Restore(old.e.State(), nine); err != nil {
		t.Fatal(err)
	}
	b.pass(5)
	b.wants("+1 RetryBudgetExhausted firing")
}
