package api

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

var update = flag.Bool("update", false, "write the golden answers anew")

// targets are one request for each answer, by the name of its golden file.
func targets() map[string]string {
	f := newFake()
	hash := f.HashKey("qk1.web.a.secret/1")
	return map[string]string{
		"summary":        "/api/v1/summary",
		"series":         "/api/v1/series?by=peer&measure=load_factor,amplification_high,responses.dead_share,unattributable.absent,retry_after.early,per_question.p99&from=2026-11-29T11:49:30Z&to=now&step=1m",
		"top_peer":       "/api/v1/top?by=peer",
		"top_route":      "/api/v1/top?by=route&sort=seconds&window=1m&dependency=inventory",
		"top_originator": "/api/v1/top?by=originator&limit=1",
		"top_question":   "/api/v1/top?by=question",
		"top_asked":      "/api/v1/top?by=question&from=-2h&to=-30m&originator=web",
		"top_stored":     "/api/v1/top?by=peer&from=-2h&to=-1h&route=x",
		"question_text":  "/api/v1/questions/qk1.web.a.secret%2F1",
		"question_hash":  "/api/v1/questions/" + hex.EncodeToString(hash[:]) + "?limit=5",
		"budgets":        "/api/v1/budgets",
		"alerts":         "/api/v1/alerts",
		"policy":         "/api/v1/policy",
		"sources":        "/api/v1/sources",
	}
}

func TestGoldenAnswers(t *testing.T) {
	s := newServer(t, newFake(), Options{})
	for name, target := range targets() {
		t.Run(name, func(t *testing.T) {
			w := ask(s, "GET", target)
			if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			var got bytes.Buffer
			json.Indent(&got, w.Body.Bytes(), "", "  ")
			golden := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("differs from %s:\n%s", golden, got.String())
			}
		})
	}
}

// at follows a path of names and indices into decoded JSON.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

// The figures of the storm, worked out by hand.
func TestFiguresByHand(t *testing.T) {
	s := newServer(t, newFake(), Options{})
	type want struct {
		target string
		path   []any
		value  any
	}
	in := func(more ...any) []any { return append([]any{"dependencies", 0, "windows", 1}, more...) }
	for _, c := range []want{
		{"/api/v1/summary", []any{"coverage"}, 0.9},
		{"/api/v1/summary", []any{"coverage_verified"}, 0.8},
		{"/api/v1/summary", []any{"complete_until"}, "2026-11-29T11:59:00Z"},
		{"/api/v1/summary", []any{"provisional"}, true},
		{"/api/v1/summary", []any{"sampling", "share"}, 0.5},
		// Of 300 originals half were followed: 2 √(150 × 0.5).
		{"/api/v1/summary", []any{"sampling", "originals_standard_error"}, 17.320508075688775},
		{"/api/v1/summary", in("load_factor"), 3.0},
		{"/api/v1/summary", in("amplification"), 3.0},
		{"/api/v1/summary", in("amplification_low"), 1000.0 / 400},
		{"/api/v1/summary", in("amplification_high"), 1000.0 / 280},
		{"/api/v1/summary", in("strict_low"), 1000.0 / (270 + 100 + 100)},
		{"/api/v1/summary", in("strict_high"), 1000.0 / 250},
		{"/api/v1/summary", in("responses", "dead_share"), 0.2},
		{"/api/v1/summary", in("responses", "abandoned_share"), 0.1},
		{"/api/v1/summary", in("responses", "visibility"), 0.95},
		{"/api/v1/summary", in("responses", "disconnected"), 200.0},
		{"/api/v1/summary", in("responses", "goodput_per_second"), 7.5},
		{"/api/v1/summary", in("originals_per_second"), 5.0},
		{"/api/v1/summary", in("unattributable"), map[string]any{"total": 100.0, "absent": 70.0, "forged": 30.0}},
		// bff: 450 − 0.2 × 50; batch: 150 − 0.2 × 250.
		{"/api/v1/top?by=peer", []any{"parts", 0, "name"}, "bff"},
		{"/api/v1/top?by=peer", []any{"parts", 0, "excess"}, 440.0},
		{"/api/v1/top?by=peer", []any{"parts", 1, "excess"}, 100.0},
		{"/api/v1/top?by=peer&sort=seconds", []any{"parts", 0, "name"}, "batch"},
		// Its own budget: 100 − (0.1 × 100 + 0.1/s × 2 clients × 300 s).
		{"/api/v1/top?by=route", []any{"parts", 1, "excess"}, 30.0},
		{"/api/v1/top?by=question", []any{"questions", 0, "excess"}, 25.8},
		{"/api/v1/policy", []any{"measured", 0, "above_worst_case"}, true},
		{"/api/v1/policy", []any{"measured", 0, "above_capacity"}, false},
		{"/api/v1/summary", []any{"part"}, true},
		{"/api/v1/budgets", []any{"budgets", 0, "consumed"}, 10.0},
		{"/api/v1/budgets", []any{"fleet", "budgets", 0, "consumed"}, 7.0},
		{"/api/v1/budgets", []any{"fleet", "missing", 0}, "kafka access/3"},
		// What another instance alone counts is known to the fleet.
		{"/api/v1/budgets?dependency=elsewhere", []any{"fleet", "budgets", 0, "dependency"}, "elsewhere"},
		{"/api/v1/budgets?dependency=elsewhere", []any{"budgets"}, []any{}},
		{"/api/v1/series?from=-10m", []any{"part"}, false},
		{"/api/v1/alerts", []any{"evaluated"}, true},
		{"/api/v1/alerts", []any{"alerts", 0, "alert"}, "RetryBudgetExhausted"},
		{"/api/v1/alerts", []any{"alerts", 0, "runbook_url"}, "https://github.com/targetside/auditor/blob/main/docs/operations/RetryBudgetExhausted.md"},
		{"/api/v1/alerts", []any{"alerts", 2, "value"}, "unbounded"},
		// Those of another dependency are left out, and those of none are not.
		{"/api/v1/alerts?dependency=inventory", []any{"alerts", 2, "alert"}, "AuditorBlind"},
		{"/api/v1/alerts", []any{"past", 0, "labels", "dependency"}, "orders"},
		{"/api/v1/alerts?dependency=inventory", []any{"past", 0, "labels", "dependency"}, "inventory"},
		{"/api/v1/sources", []any{"sources", 0, "lag_records"}, 5.0},
		{"/api/v1/sources", []any{"sources", 0, "watermark"}, "2026-11-29T11:59:58Z"},
		{"/api/v1/series?from=-10m", []any{"series", 0, "points", 0, "values", "load_factor"}, 3.0},
		{"/api/v1/series?from=-10m", []any{"series", 0, "points", 0, "provisional"}, false},
		{"/api/v1/series?from=-10m", []any{"series", 0, "points", 1, "provisional"}, true},
		{"/api/v1/series?from=-10m", []any{"series", 0, "points", 1, "values", "load_factor"}, nil},
		{"/api/v1/series?from=-10m", []any{"coverage"}, 0.9},
	} {
		w := ask(s, "GET", c.target)
		if w.Code != 200 {
			t.Errorf("%s: %d %s", c.target, w.Code, w.Body)
			continue
		}
		if got := at(object(t, w.Body), c.path...); !reflect.DeepEqual(got, c.value) {
			t.Errorf("%s %v: %v, want %v", c.target, c.path, got, c.value)
		}
	}
	if n := len(at(object(t, ask(s, "GET", "/api/v1/budgets?dependency=inventory").Body), "fleet", "budgets").([]any)); n != 1 {
		t.Errorf("%d budgets of one dependency", n)
	}
	if w := ask(s, "GET", "/api/v1/summary?dependency=elsewhere"); w.Code != 404 {
		t.Errorf("live figures of what is not live here: %d", w.Code)
	}
	// An old question is not of the last five minutes.
	if n := len(at(object(t, ask(s, "GET", "/api/v1/top?by=question").Body), "questions").([]any)); n != 1 {
		t.Errorf("%d questions", n)
	}
}

// What is not known is null, and never 0 or 1.
func TestNothingIsNull(t *testing.T) {
	f := newFake()
	d := &f.snap.Dependencies[0]
	d.CompleteUntil, d.ReadShare = time.Time{}, d.Budgets[1].Consumed
	d.Windows[1].Total = Sums{Totals: aggregate.Totals{Arrivals: 10}}
	d.Windows[1].Total.Unattributable.Total = 10
	d.Windows[2].Total = Sums{Totals: aggregate.Totals{Arrivals: 10, Verified: 10, Repeats: 10}} // questions not known
	d.Windows[0] = Window{Length: 10 * time.Second}
	s := newServer(t, f, Options{})
	v := object(t, ask(s, "GET", "/api/v1/summary").Body)
	for _, c := range []struct {
		path []any
		want any
	}{
		{[]any{"complete_until"}, nil},
		{[]any{"coverage"}, 0.0}, // ten arrivals, none of them attributable: this is 0
		{[]any{"dependencies", 0, "read_share"}, nil},
		{[]any{"dependencies", 0, "windows", 0, "coverage"}, nil},
		{[]any{"dependencies", 0, "windows", 0, "arrivals_per_second"}, nil},
		{[]any{"dependencies", 0, "windows", 0, "from"}, nil},
		{[]any{"dependencies", 0, "windows", 1, "load_factor"}, nil},
		{[]any{"dependencies", 0, "windows", 1, "questions"}, 0.0},
		{[]any{"dependencies", 0, "windows", 1, "amplification"}, nil},
		{[]any{"dependencies", 0, "windows", 1, "amplification_low"}, 1.0},
		{[]any{"dependencies", 0, "windows", 1, "amplification_high"}, "unbounded"},
		{[]any{"dependencies", 0, "windows", 2, "questions"}, nil},
		{[]any{"dependencies", 0, "windows", 2, "load_factor"}, nil},
		{[]any{"dependencies", 0, "windows", 2, "amplification_high"}, nil},
	} {
		if got := at(v, c.path...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.path, got, c.want)
		}
	}
	// A standby knows no dependency and still answers.
	f.set(&Snapshot{At: noon, State: Standby})
	for _, target := range []string{"/api/v1/summary", "/api/v1/top?by=peer", "/api/v1/budgets", "/api/v1/policy", "/api/v1/series", "/api/v1/top?by=peer&from=-1h", "/api/v1/sources"} {
		if w := ask(s, "GET", target); w.Code != 200 || strings.Contains(w.Body.String(), "0001-01-01") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}

func TestRangesAreAlignedOutward(t *testing.T) {
	day := 24 * time.Hour
	kept := map[time.Duration]time.Duration{time.Second: 2 * time.Hour, 10 * time.Second: day, time.Minute: 14 * day, time.Hour: 400 * day}
	for _, c := range []struct{ query, from, to, step, resolution string }{
		{"from=2026-11-29T11:49:31Z&to=2026-11-29T11:58:01Z&step=1m", "11:49:00", "11:59:00", "1m0s", "1m0s"},
		{"from=2026-11-29T11:49:00Z&to=2026-11-29T11:58:00Z&step=3m", "11:48:00", "12:00:00", "3m0s", "1m0s"},
		{"from=2026-11-29T11:49:31Z&to=2026-11-29T11:58:01.5Z&step=5s", "11:49:30", "11:58:05", "5s", "1s"},
		{"from=2026-11-29T11:49:31.9Z&to=2026-11-29T11:58:00.001Z&step=5s", "11:49:30", "11:58:05", "5s", "1s"},
		{"from=2026-11-29T13:49:31%2B02:00&to=2026-11-29T11:58:01Z&step=30s", "11:49:30", "11:58:30", "30s", "10s"},
		{"from=2026-11-29T13:49:31+02:00&to=2026-11-29T11:58:01Z&step=30s", "11:49:30", "11:58:30", "30s", "10s"},
		{"", "11:00:00", "12:00:00", "30s", "10s"}, // an hour: 120 points, for 10 s make 360
		{"from=-5m", "11:55:00", "12:00:00", "1s", "1s"},
		{"from=-12h", "00:00:00", "12:00:00", "5m0s", "1m0s"},
		{"from=-200m&to=-199m", "08:40:00", "08:41:00", "10s", "10s"}, // seconds are no longer kept
		{"from=-399d", "00:00:00", "00:00:00", "24h0m0s", "1h0m0s"},
	} {
		f := newFake()
		s := newServer(t, f, Options{Retention: kept})
		w := ask(s, "GET", "/api/v1/series?"+c.query)
		if w.Code != 200 {
			t.Errorf("%s: %d %s", c.query, w.Code, w.Body)
			continue
		}
		q := f.asked[0]
		if q.From.Format(time.TimeOnly) != c.from || q.To.Format(time.TimeOnly) != c.to || q.Step.String() != c.step || q.Resolution.String() != c.resolution {
			t.Errorf("%s: %v", c.query, q)
		}
		v := object(t, w.Body)
		if v["from"] != q.From.Format(time.RFC3339) || v["to"] != q.To.Format(time.RFC3339) || v["step_seconds"] != q.Step.Seconds() {
			t.Errorf("%s: the answer names another range: %v %v %v", c.query, v["from"], v["to"], v["step_seconds"])
		}
	}
}

// What is compared with nothing is not said to be below it.
func TestAbove(t *testing.T) {
	two := 2.0
	for _, c := range []struct {
		a        aggregate.Figure
		declared *float64
		want     any
	}{
		{aggregate.Number(3), &two, true}, {aggregate.Number(2), &two, false}, {aggregate.Number(1), &two, false},
		{aggregate.Figure{}, &two, nil}, {aggregate.Bound(1, 0), &two, nil}, {aggregate.Number(3), nil, nil}, {aggregate.Figure{}, nil, nil},
	} {
		var got any
		if p := above(c.a, c.declared); p != nil {
			got = *p
		}
		if got != c.want {
			t.Errorf("%v above %v: %v, want %v", c.a, c.declared, got, c.want)
		}
	}
}

// A verdict that cannot be given is none, one of repeats alone has no load factor, and
// that it is blind is said in any case.
func TestVerdicts(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		v    budget.Verdict
		want string
	}{
		{budget.Verdict{}, `null`},
		{budget.Verdict{Usual: 1.2, LoadFactor: nan, Storm: nan, Demand: nan, Blind: true},
			`{"kind":null,"load_factor":null,"usual_load_factor":1.2,"storm":null,"demand":null,"re_ask":false,"hidden_repeats_suspected":false,"blind":true}`},
		{budget.Verdict{Kind: budget.Storm, Usual: 1.2, LoadFactor: inf, Storm: inf, Demand: nan},
			`{"kind":"storm","load_factor":null,"usual_load_factor":1.2,"storm":"unbounded","demand":null,"re_ask":false,"hidden_repeats_suspected":false,"blind":false}`},
		{budget.Verdict{Kind: budget.Quiet, Usual: 1.2, LoadFactor: 1.2, Storm: 1, Demand: 1.25, HiddenRepeats: true},
			`{"kind":"quiet","load_factor":1.2,"usual_load_factor":1.2,"storm":1,"demand":1.25,"re_ask":false,"hidden_repeats_suspected":true,"blind":false}`},
	} {
		got, err := json.Marshal(newVerdict(&c.v))
		if err != nil || string(got) != c.want {
			t.Errorf("%+v: %s %v, want %s", c.v, got, err, c.want)
		}
	}
}
