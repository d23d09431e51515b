package alerts

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/targetside/auditor/aggregate"
)

// Labels are text and never empty, and the same for the same.
func TestLabels(t *testing.T) {
	b := newBench(t)
	b.dep().Dependency = "a\xff"
	b.consume(2)
	b.dep().Budgets = append(b.dep().Budgets, b.dep().Budgets[0])
	b.dep().Budgets[1].Route = "GET /a"
	b.pass(5)
	var got []map[string]string
	for _, a := range b.e.Alerts() {
		if a.Name == RetryBudgetExhausted {
			got = append(got, a.Labels)
		}
	}
	want := []map[string]string{
		{"dependency": SafeLabel("a\xff"), "model": "ratio", "route": "GET /a", "severity": "critical"},
		{"dependency": SafeLabel("a\xff"), "model": "ratio", "severity": "critical"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// No name is told at a length that somebody else chose, and none stands for another.
func TestNamesAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 30_000)
	if a, b := SafeLabel(long+"a"), SafeLabel(long+"b"); a == b || len(a) > mostLabel || !utf8.ValidString(a) {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := SafeLabel("a\xff"), SafeLabel("a\xfe"); a == b || !strings.HasPrefix(a, "a\uFFFD…") {
		t.Errorf("%q and %q", a, b)
	}
	b := newBench(t)
	d := b.dep()
	d.Dependency, d.ScopeSplit, b.in.Lost, d.Minute.Verified, d.Minute.Visible, d.Ten.DeadAnswers = long, true, 500, 3000, 100, 500
	b.in.Rules.Declared = plan(100, 3, 3)
	d.Closed = &Closed{Span: 10 * time.Second, Totals: aggregate.Totals{Arrivals: 2000, Verified: 2000, RetryAsked: 200, RetryEarly: 100}, Questions: 20}
	b.consume(2)
	d.Budgets[0].Route = long
	b.in.Sources, b.in.Store = []Source{{Name: long, Failed: true}}, true
	b.pass(100)
	b.in.Sources = []Source{{Name: long, Behind: true, Lag: time.Hour}}
	b.pass(100)
	seen := map[string]bool{}
	for _, a := range b.e.Alerts() {
		seen[a.Name] = true
		if len(a.Summary)+len(a.Description) > 1000 {
			t.Errorf("%s: %d bytes of words", a.Name, len(a.Summary)+len(a.Description))
		}
		for k, v := range a.Labels {
			if len(v) > mostLabel {
				t.Errorf("%s: %s has %d bytes", a.Name, k, len(v))
			}
		}
	}
	if len(seen) < len(Names)-1 { // RetryBudgetExhaustsSoon is none where it is exhausted
		t.Errorf("only %v", seen)
	}
}

// What is bounded once stays as it is, and no two become one.
func TestSafeLabel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{}
	for range 2000 {
		b := make([]byte, r.IntN(300))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		in := string(b)
		out := SafeLabel(in)
		if len(out) > mostLabel || strings.ToValidUTF8(out, "") != out || SafeLabel(out) != out {
			t.Fatalf("%q is made %q", in, out)
		}
		if was, ok := seen[out]; ok && was != in {
			t.Fatalf("%q and %q are both %q", in, was, out)
		}
		seen[out] = in
	}
}
