package api

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/targetside/auditor/aggregate"
)

// contract is the metrics that rules and dashboards are written to, with their
// labels and types.
var contract = map[string]string{
	"auditor_arrivals_total":                   "counter class,dependency,route",
	"auditor_unattributable_arrivals_total":    "counter dependency,reason",
	"auditor_originals_total":                  "counter dependency,route",
	"auditor_repeats_total":                    "counter dependency,route",
	"auditor_load_factor_ratio":                "gauge dependency,window",
	"auditor_amplification_ratio":              "gauge bound,dependency,window",
	"auditor_declared_amplification_ratio":     "gauge dependency",
	"auditor_key_coverage_ratio":               "gauge class,dependency",
	"auditor_read_share_ratio":                 "gauge dependency",
	"auditor_response_visibility_ratio":        "gauge dependency",
	"auditor_arrivals_per_question":            "histogram dependency",
	"auditor_responses_total":                  "counter dependency,outcome,route",
	"auditor_good_responses_total":             "counter dependency,route",
	"auditor_dead_answers_total":               "counter dependency,kind,route",
	"auditor_unjudged_responses_total":         "counter dependency,route",
	"auditor_dead_seconds_total":               "counter dependency,route",
	"auditor_busy_seconds_total":               "counter dependency,route",
	"auditor_repeat_seconds_total":             "counter dependency,route",
	"auditor_retry_budget_consumed_ratio":      "gauge bound,dependency,model",
	"auditor_retry_budget_exhausts_in_seconds": "gauge dependency,model",
	"auditor_retry_after_asked_total":          "counter dependency",
	"auditor_retry_after_early_total":          "counter dependency",
	"auditor_stale_arrivals_total":             "counter dependency",
	"auditor_attempt_budget_violations_total":  "counter dependency,kind",
	"auditor_records_total":                    "counter outcome,source",
	"auditor_quarantined_records_total":        "counter reason,source",
	"auditor_duplicate_records_total":          "counter source",
	"auditor_late_arrivals_total":              "counter source",
	"auditor_offset_gap_records_total":         "counter source",
	"auditor_ingest_lag_seconds":               "gauge source",
	"auditor_watermark_timestamp_seconds":      "gauge source",
	"auditor_live_questions":                   "gauge ",
	"auditor_questions_left_out_total":         "counter ",
	"auditor_sampling_ratio":                   "gauge dependency",
	"auditor_scope_split":                      "gauge dependency",
	"auditor_store_write_seconds":              "histogram ",
	"auditor_store_errors_total":               "counter kind",
	"auditor_source_up":                        "gauge source",
	"auditor_source_restarts_total":            "counter source",
	"auditor_intake_messages_total":            "counter outcome,source",
	"auditor_intake_waits_total":               "counter source",
	"auditor_intake_connections":               "gauge source",
	"auditor_config_last_reload_successful":    "gauge ",

	"auditor_config_last_reload_success_timestamp_seconds": "gauge ",

	"auditor_alerts":              "gauge alert,state",
	"auditor_notifications_total": "counter outcome,sink",

	"auditor_build_info":                    "gauge goversion,revision,version",
	"auditor_http_requests_total":           "counter code,route",
	"auditor_http_request_duration_seconds": "histogram route",
	"auditor_http_streams":                  "gauge ",
}

func scrapeText(t testing.TB, s *Server) string {
	t.Helper()
	w := ask(s, "GET", "/metrics")
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// series reads a text exposition: value by name and labels.
func series(t testing.TB, text string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		if err != nil {
			t.Fatal(err)
		}
		values[line[:i]] = v
	}
	return values
}

func TestMetricNames(t *testing.T) {
	f := newFake()
	f.snap.Dependencies[0].Budgets[0].ExhaustsIn = aggregate.Number(1)
	s := newServer(t, f, Options{})
	ask(s, "GET", "/api/v1/summary")
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, x := range families {
		for _, m := range x.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName())
			}
			is := strings.ToLower(x.GetType().String()) + " " + strings.Join(labels, ",")
			if was, ok := found[x.GetName()]; ok && was != is {
				t.Errorf("%s has labels %s and %s", x.GetName(), was, is)
			}
			found[x.GetName()] = is
		}
		if x.GetHelp() == "" || strings.HasSuffix(x.GetName(), "_total") != (x.GetType().String() == "COUNTER") {
			t.Errorf("%s is a %s", x.GetName(), x.GetType())
		}
	}
	for name, is := range contract {
		if found[name] != is {
			t.Errorf("%s is %q, want %q", name, found[name], is)
		}
	}
	for name := range found {
		if contract[name] == "" {
			t.Errorf("%s is not in the contract", name)
		}
	}
}

func TestMetricValues(t *testing.T) {
	f := newFake()
	s := newServer(t, f, Options{})
	got := series(t, scrapeText(t, s))
	for name, want := range map[string]float64{
		`auditor_arrivals_total{class="verified",dependency="inventory",route="GET /seats/{id}"}`:       800,
		`auditor_arrivals_total{class="unattributable",dependency="inventory",route="GET /seats/{id}"}`: 100,
		`auditor_alerts{alert="RetryBudgetExhausted",state="firing"}`:                                   1,
		`auditor_alerts{alert="RetryBudgetExhausted",state="pending"}`:                                  0,
		`auditor_alerts{alert="AuditorBlind",state="pending"}`:                                          1,
		`auditor_alerts{alert="AuditorBlind",state="firing"}`:                                           0,
		`auditor_alerts{alert="DeadAnswers",state="firing"}`:                                            0,
		`auditor_notifications_total{outcome="taken",sink="alertmanagers[0]"}`:                          12,
		`auditor_notifications_total{outcome="failed",sink="webhooks[0]"}`:                              3,
		`auditor_notifications_total{outcome="dropped",sink="webhooks[0]"}`:                             1,
		// Live and not closed yet: from 0.
		`auditor_arrivals_total{class="verified",dependency="inventory",route="POST /orders"}`: 0,
		`auditor_unattributable_arrivals_total{dependency="inventory",reason="absent"}`:        70,
		`auditor_unattributable_arrivals_total{dependency="inventory",reason="late"}`:          0,
		// 1000 = (700 − 140) + 140 + 200 + 100.
		`auditor_responses_total{dependency="inventory",outcome="answered",route="GET /seats/{id}"}`:  560,
		`auditor_good_responses_total{dependency="inventory",route="GET /seats/{id}"}`:                450,
		`auditor_responses_total{dependency="inventory",outcome="dead",route="GET /seats/{id}"}`:      140,
		`auditor_responses_total{dependency="inventory",outcome="refused",route="GET /seats/{id}"}`:   200,
		`auditor_responses_total{dependency="inventory",outcome="abandoned",route="GET /seats/{id}"}`: 100,
		`auditor_dead_answers_total{dependency="inventory",kind="expired",route="GET /seats/{id}"}`:   40,
		`auditor_busy_seconds_total{dependency="inventory",route="GET /seats/{id}"}`:                  400.25,
		`auditor_load_factor_ratio{dependency="inventory",window="1m"}`:                               3,
		`auditor_amplification_ratio{bound="high",dependency="inventory",window="5m"}`:                1000.0 / 280,
		`auditor_key_coverage_ratio{class="verified",dependency="inventory"}`:                         0.8,
		`auditor_retry_budget_consumed_ratio{bound="high",dependency="inventory",model="ratio"}`:      11.5,
		`auditor_declared_amplification_ratio{dependency="inventory"}`:                                2.4,
		`auditor_scope_split{dependency="inventory"}`:                                                 0,
		`auditor_sampling_ratio{dependency="inventory"}`:                                              0.5,
		`auditor_attempt_budget_violations_total{dependency="inventory",kind="not_decremented"}`:      5,
		`auditor_arrivals_per_question_bucket{dependency="inventory",le="1"}`:                         100,
		`auditor_arrivals_per_question_bucket{dependency="inventory",le="2"}`:                         100,
		`auditor_arrivals_per_question_bucket{dependency="inventory",le="3"}`:                         280,
		`auditor_arrivals_per_question_bucket{dependency="inventory",le="27"}`:                        295,
		`auditor_arrivals_per_question_bucket{dependency="inventory",le="32"}`:                        295,
		`auditor_arrivals_per_question_bucket{dependency="inventory",le="64"}`:                        300,
		`auditor_arrivals_per_question_sum{dependency="inventory"}`:                                   1300,
		`auditor_store_write_seconds_bucket{le="0.1"}`:                                                12,
		`auditor_store_write_seconds_bucket{le="+Inf"}`:                                               13,
		`auditor_store_errors_total{kind="full"}`:                                                     7,
		`auditor_store_errors_total{kind="other"}`:                                                    0,
		`auditor_records_total{outcome="quarantined",source="access-logs"}`:                           5,
		`auditor_records_total{outcome="duplicate",source="access-logs"}`:                             3,
		`auditor_records_total{outcome="duplicate",source="all that are counted together"}`:           8,
		`auditor_duplicate_records_total{source="all that are counted together"}`:                     8,
		`auditor_late_arrivals_total{source="all that are counted together"}`:                         10,
		`auditor_ingest_lag_seconds{source="access-logs"}`:                                            1.5,
		`auditor_watermark_timestamp_seconds{source="access-logs"}`:                                   float64(noon.Unix() - 2),
		`auditor_build_info{goversion="go1.26",revision="abcdef",version="1.2.3"}`:                    1,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (there: %v), want %v", name, v, ok, want)
		}
	}
	if text := scrapeText(t, s); strings.Contains(text, "0100000000000000") || strings.Contains(text, "qk1") {
		t.Error("a key is in the metrics")
	}
	// What cannot be told of one source is not told of it, and what is not a source is not
	// told to be up.
	for name := range got {
		if strings.Contains(name, `source="127.0.0.1:5514"`) && (strings.Contains(name, "duplicate") || strings.Contains(name, "late_arrivals")) ||
			strings.Contains(name, togetherName) && strings.Contains(name, "source_up") {
			t.Errorf("there is %s", name)
		}
	}
}

// A gauge without a value has no sample; an unbounded one is +Inf.
func TestGaugesAreAbsent(t *testing.T) {
	f := newFake()
	d := &f.snap.Dependencies[0]
	for i := range d.Windows {
		d.Windows[i].Total, d.ClosedWindows[i].Total = Sums{}, Sums{}
	}
	d.ClosedWindows[1].Total = Sums{Totals: aggregate.Totals{Arrivals: 5}}
	d.ClosedWindows[1].Total.Unattributable.Total = 5
	d.ClosedWindows[2].Total = Sums{Totals: aggregate.Totals{Arrivals: 5, Verified: 5, Originals: 5}} // questions not known
	d.Windows[1].Total = Sums{Totals: aggregate.Totals{Arrivals: 5}}
	d.Windows[1].Total.Unattributable.Total = 5
	d.Windows[2].Total = Sums{Totals: aggregate.Totals{Arrivals: 5, Verified: 5, Originals: 5}}
	d.ReadShare = aggregate.Figure{}
	d.Budgets[0] = Budget{Model: "ratio"}
	f.snap.Policy = nil
	f.snap.Sources[0].Partitions = nil
	got := series(t, scrapeText(t, newServer(t, f, Options{})))
	for name, v := range got {
		if math.IsNaN(v) {
			t.Errorf("%s is NaN", name)
		}
		for _, p := range []string{"auditor_load_factor_ratio{dependency=\"inventory\",window=\"1", "auditor_read_share", "auditor_retry_budget", "auditor_declared", "auditor_ingest_lag", "auditor_watermark",
			`auditor_amplification_ratio{bound="high",dependency="inventory",window="10s"`, `auditor_amplification_ratio{bound="measured"`} {
			if strings.HasPrefix(name, p) {
				t.Errorf("%s %v has no value to show", name, v)
			}
		}
		if strings.HasPrefix(name, "auditor_amplification_ratio") && strings.Contains(name, `"5m"`) {
			t.Errorf("%s %v: the questions are not known", name, v)
		}
	}
	if v := got[`auditor_amplification_ratio{bound="high",dependency="inventory",window="1m"}`]; !math.IsInf(v, 1) {
		t.Errorf("unbounded is %v", v)
	}
	if v := got[`auditor_load_factor_ratio{dependency="inventory",window="5m"}`]; v != 1 {
		t.Errorf("load factor %v", v)
	}
	// A standby exports no figure of a dependency.
	f.set(&Snapshot{At: noon, State: Standby})
	if text := scrapeText(t, newServer(t, f, Options{})); strings.Contains(text, "dependency=") {
		t.Errorf("a standby exports %s", text)
	}
}

// arrive counts one random arrival as an aggregator would.
func arrive(r *rand.Rand, s *Sums) {
	s.Arrivals++
	switch r.IntN(3) {
	case 0:
		s.Unattributable.Total++
		s.Unattributable.Reasons[1+r.IntN(9)]++
	case 1:
		s.Verified++
		s.Originals++
	default:
		s.Claimed++
		s.Repeats++
		s.RepeatSeconds += r.Float64()
	}
	refused, before, dead, success := r.IntN(4) == 0, r.IntN(5) == 0, r.IntN(3) == 0, r.IntN(2) == 0
	if refused {
		s.Refused++
	}
	if before {
		s.BeforeResponse++
	}
	if success {
		s.Success++
	}
	if success && !dead && !before {
		s.Good++
	}
	if !refused && !before {
		s.Answers++
		if dead {
			s.DeadAnswers++
		}
	}
	if dead {
		s.Expired++
		s.DeadSeconds += r.Float64()
	}
	s.BusySeconds += r.Float64()
}

// Over any run of snapshots, whatever a Reader does: no counter falls and none
// vanishes while its dependency is there, cardinality stays bounded, and every
// scrape is whole.
func TestCountersNeverFall(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		broken := seed%3 == 2 // this Reader does not keep its contract
		f := newFake()
		f.set(&Snapshot{At: noon})
		s := newServer(t, f, Options{})
		routes := map[string]*Sums{}
		questions := map[float64]uint64{}
		var count uint64
		var total Sums
		last := map[string]float64{}
		for range 15 {
			for range r.IntN(50) {
				name := "/r" + string(rune('a'+r.IntN(8)))
				if routes[name] == nil {
					routes[name] = new(Sums)
				}
				arrive(r, routes[name])
				total.StaleArrivals++
				n := math.Ldexp(1, r.IntN(14))
				questions[n]++
				count++
			}
			c := Counters{Total: total}
			for _, name := range sortedNames(routes) {
				if !broken || r.IntN(5) > 0 {
					x := *routes[name]
					if broken && r.IntN(3) == 0 {
						x = Sums{Totals: aggregate.Totals{Arrivals: x.Arrivals / 2, DeadSeconds: math.NaN(), BusySeconds: -1}}
					}
					c.Routes = append(c.Routes, Part{name, x})
				}
			}
			r.Shuffle(len(c.Routes), func(i, j int) { c.Routes[i], c.Routes[j] = c.Routes[j], c.Routes[i] })
			for n, k := range questions {
				if !broken || r.IntN(5) > 0 {
					c.PerQuestion.Buckets = append(c.PerQuestion.Buckets, Bucket{n, k})
				}
				c.PerQuestion.Sum += n * float64(k)
			}
			slices.SortFunc(c.PerQuestion.Buckets, func(a, b Bucket) int { return int(a.Upper - b.Upper) })
			c.PerQuestion.Count = count
			f.set(&Snapshot{At: noon, State: Ready, Dependencies: []Dependency{{Name: "d", Closed: c}}})
			now := series(t, scrapeText(t, s))
			for name, v := range last {
				counter := strings.Contains(name, "_total") || strings.Contains(name, "per_question") || strings.Contains(name, "store_write")
				if w, ok := now[name]; counter && !strings.Contains(name, "http") && (ok && w < v || !ok && !broken) {
					t.Fatalf("seed %d: %s was %v and is %v (there: %v)", seed, name, v, w, ok)
				}
			}
			le := 0.0
			for _, b := range questionBounds {
				v := now[`auditor_arrivals_per_question_bucket{dependency="d",le="`+strconv.FormatFloat(b, 'g', -1, 64)+`"}`]
				if v < le {
					t.Fatalf("seed %d: bucket %v holds %v after %v", seed, b, v, le)
				}
				le = v
			}
			if !broken {
				for name, x := range routes {
					var sum float64
					for _, o := range []string{"answered", "dead", "refused", "abandoned"} {
						sum += now[`auditor_responses_total{dependency="d",outcome="`+o+`",route="`+name+`"}`]
					}
					if sum != float64(x.Arrivals) {
						t.Fatalf("seed %d: the outcomes of %s add up to %v, not to %d", seed, name, sum, x.Arrivals)
					}
				}
			}
			last = now
		}
	}
}

// Names that no metric can bear, too long or too many: the scrape stays whole and
// small.
func TestHostileLabels(t *testing.T) {
	f := newFake()
	long := strings.Repeat("é", 200)
	snap := &Snapshot{At: noon, State: Ready}
	for _, name := range []string{"\xff\xfe", "\xff\xfd", long, long + "x", "a\nb", `a"b\`, "", "other"} {
		d := Dependency{Name: name}
		d.Closed.Routes = []Part{part(name, 1, 1, 0, 0), part(name, 1, 1, 0, 0)}
		snap.Dependencies = append(snap.Dependencies, d)
		snap.Sources = append(snap.Sources, Source{Name: name, Quarantined: map[string]uint64{name: 1}}, Source{Name: name})
	}
	f.set(snap)
	s := newServer(t, f, Options{})
	got := series(t, scrapeText(t, s))
	n := 0
	for name, v := range got {
		if strings.HasPrefix(name, "auditor_originals_total") {
			n++
			if v != 2 {
				t.Errorf("%s is %v: two parts of one name add", name, v)
			}
		}
	}
	if n != 8 {
		t.Errorf("%d of 8 dependencies", n)
	}

	many := &Snapshot{At: noon, State: Ready, Dependencies: []Dependency{{Name: "d"}}}
	for i := range 3000 {
		name := "/" + strings.Repeat("x", i%50) + string(rune('a'+i/50%26)) + string(rune('a'+i/1300))
		many.Dependencies[0].Closed.Routes = append(many.Dependencies[0].Closed.Routes, part(name, 1, 1, 0, 0))
		many.Dependencies = append(many.Dependencies, Dependency{Name: name, Closed: Counters{Routes: []Part{part(name, 1, 1, 0, 0)}, PerQuestion: Distribution{[]Bucket{{2, 1}}, 1, 2}}})
		many.Sources = append(many.Sources, Source{Name: name, Quarantined: map[string]uint64{name: 1}})
	}
	f.set(many)
	s = newServer(t, f, Options{})
	got = series(t, scrapeText(t, s))
	count := map[string]int{}
	var sum, all, questions float64
	for name, v := range got {
		family, _, _ := strings.Cut(name, "{")
		switch family {
		case "auditor_originals_total":
			all += v
		case "auditor_arrivals_per_question_count":
			questions += v
		}
		count[family]++
		if family == "auditor_originals_total" && strings.Contains(name, `dependency="d"`) {
			sum += v
		}
	}
	if count["auditor_originals_total"] > mostRoutes+1+mostDependencies+1 || count["auditor_live_questions"] > 1 || count["auditor_late_arrivals_total"] > mostSources+1 ||
		count["auditor_quarantined_records_total"] > mostSources+1+mostReasons {
		t.Errorf("unbounded: %v", count)
	}
	if all != 6000 || questions != 3000 {
		t.Errorf("%v of 6000 originals, %v of 3000 questions: dependencies beyond what is told apart are other", all, questions)
	}
	if sum != 3000 {
		t.Errorf("%v of 3000 originals: what is too much is other, and not lost", sum)
	}
}

// A mistake in a snapshot costs a scrape and not the daemon.
func TestCollectSurvives(t *testing.T) {
	f := newFake()
	f.set(nil)
	s := newServer(t, f, Options{})
	if w := ask(s, "GET", "/metrics"); w.Code != 200 || !strings.Contains(w.Body.String(), "auditor_http") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Two servers in one registry would count as one.
func TestRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	newServer(t, newFake(), Options{Registry: registry})
	if _, err := New(newFake(), Options{Registry: registry}); err == nil {
		t.Error("registered twice")
	}
}

// promtool is Prometheus' own judge of metrics. In CI it must be there.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("promtool is not installed: it is in Debian's package prometheus")
		}
		t.Skip("promtool is not installed: it is in Debian's package prometheus")
	}
	f := newFake()
	f.snap.Dependencies[0].Budgets[0].ExhaustsIn = aggregate.Number(1)
	s := newServer(t, f, Options{})
	ask(s, "GET", "/api/v1/summary")
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(scrapeText(t, s))
	out, err := cmd.CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// A time that no record tells is null in answers and has no sample, and is there from the first
// record on that tells it.
func TestUnknownTimes(t *testing.T) {
	sums := Sums{Totals: aggregate.Totals{
		Arrivals: 10, Verified: 10, Originals: 6, Repeats: 4, UnknownPoint: 2, Expired: 1,
		Untimed: 10, UntimedDead: 3, UntimedRepeats: 4,
	}}
	f := newFake()
	shown := func() (metrics map[string]float64, responses map[string]any) {
		t.Helper()
		f.set(&Snapshot{At: noon, State: Ready, Dependencies: []Dependency{{
			Name: "d", Closed: Counters{Total: sums, Routes: []Part{{"/a", sums}}},
			Windows: []Window{{Length: 10 * time.Second, From: noon.Add(-10 * time.Second), To: noon, Total: sums}},
		}}})
		s := newServer(t, f, Options{})
		var answer struct {
			Dependencies []struct {
				Windows []struct{ Responses map[string]any }
			}
		}
		if err := json.Unmarshal(ask(s, "GET", "/api/v1/summary").Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		return series(t, scrapeText(t, s)), answer.Dependencies[0].Windows[0].Responses
	}
	for _, tt := range []struct {
		dead, busy, repeat any
		untimed            float64
	}{{nil, nil, nil, 10}, {nil, 1.5, 1.5, 9}, {0.25, 1.75, 1.5, 8}} {
		metrics, responses := shown()
		for name, want := range map[string]any{"dead_seconds": tt.dead, "busy_seconds": tt.busy, "repeat_seconds": tt.repeat} {
			if got, there := responses[name]; got != want || !there {
				t.Errorf("%v untimed: %s is %v, want %v", tt.untimed, name, got, want)
			}
			got, there := metrics[`auditor_`+name+`_total{dependency="d",route="/a"}`]
			if there != (want != nil) || there && got != want {
				t.Errorf("%v untimed: the metric of %s is %v (%v), want %v", tt.untimed, name, got, there, want)
			}
		}
		if responses["untimed"] != tt.untimed {
			t.Errorf("untimed is %v, want %v", responses["untimed"], tt.untimed)
		}
		switch sums.Untimed {
		case 10: // a repeat comes that tells its time
			sums.Untimed, sums.UntimedRepeats, sums.BusySeconds, sums.RepeatSeconds = 9, 3, 1.5, 1.5
		case 9: // an original whose caller left
			sums.Untimed, sums.UntimedDead, sums.BusySeconds, sums.DeadSeconds = 8, 2, 1.75, 0.25
		}
	}
}

// What rests on times has no sample while the log gives none, neither of what is closed nor of
// the live windows before, and no 0 in answers.
func TestUnjudgedDeadlines(t *testing.T) {
	dark := Sums{History: true, Totals: aggregate.Totals{Arrivals: 10, Verified: 10, Originals: 6, Repeats: 4, Answers: 10, Success: 10, Good: 10, Visible: 10, RetryAsked: 6, Untimed: 10, UntimedRepeats: 4, Unjudged: 10}}
	half := dark
	half.Untimed, half.UntimedRepeats, half.Unjudged, half.Expired, half.DeadAnswers, half.BusySeconds, half.DeadSeconds = 5, 2, 5, 1, 1, 9, 5
	for _, tt := range []struct {
		name   string
		closed Counters
		window Sums
		want   map[string]any // responses; of metrics what is nil has no sample
		sample map[string]any
	}{
		{"before the first tick is closed", Counters{}, dark, map[string]any{"expired": nil, "dead_share": nil, "dead_seconds": nil, "unjudged": 10.0}, map[string]any{"busy": nil, "repeat": nil, "expired": nil, "early": nil}},
		{"all dark", Counters{Total: dark, Routes: []Part{{"/a", dark}}}, dark, map[string]any{"expired": nil, "dead_share": nil}, map[string]any{"busy": nil, "repeat": nil, "expired": nil, "early": nil}},
		{"half", Counters{Total: half, Routes: []Part{{"/a", half}}}, half, map[string]any{"expired": 1.0, "dead_share": 0.1, "dead_seconds": 5.0, "unjudged": 5.0}, map[string]any{"busy": 9.0, "repeat": 0.0, "expired": 1.0, "early": 0.0}},
		{"no longer dark", Counters{}, half, map[string]any{"expired": 1.0}, map[string]any{"busy": 0.0, "repeat": 0.0, "expired": 0.0, "early": 0.0}},
	} {
		f := newFake()
		f.set(&Snapshot{At: noon, State: Ready, Dependencies: []Dependency{{
			Name: "d", Closed: tt.closed,
			Windows: []Window{{Length: 10 * time.Second, From: noon.Add(-10 * time.Second), To: noon, Total: tt.window, Routes: []Part{{"/a", tt.window}}}},
		}}})
		s := newServer(t, f, Options{})
		var answer struct {
			Dependencies []struct {
				Windows []struct {
					Responses  map[string]any
					RetryAfter map[string]any `json:"retry_after"`
				}
			}
		}
		if err := json.Unmarshal(ask(s, "GET", "/api/v1/summary").Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		w := answer.Dependencies[0].Windows[0]
		for name, want := range tt.want {
			if got, there := w.Responses[name]; got != want || !there {
				t.Errorf("%s: %s is %v, want %v", tt.name, name, got, want)
			}
		}
		if got, there := w.RetryAfter["early"]; there && (got == nil) != (tt.window.Untimed == 10) {
			t.Errorf("%s: early is %v", tt.name, got)
		}
		metrics := series(t, scrapeText(t, s))
		for name, series := range map[string]string{
			"busy": `auditor_busy_seconds_total{dependency="d",route="/a"}`, "repeat": `auditor_repeat_seconds_total{dependency="d",route="/a"}`,
			"expired": `auditor_dead_answers_total{dependency="d",kind="expired",route="/a"}`, "early": `auditor_retry_after_early_total{dependency="d"}`,
		} {
			got, there := metrics[series]
			if want := tt.sample[name]; there != (want != nil) || there && got != want {
				t.Errorf("%s: %s is %v (%v), want %v", tt.name, series, got, there, want)
			}
		}
		if got := metrics[`auditor_unjudged_responses_total{dependency="d",route="/a"}`]; got != float64(tt.closed.Total.Unjudged) {
			t.Errorf("%s: %v are unjudged", tt.name, got)
		}
		if got := metrics[`auditor_arrivals_total{class="verified",dependency="d",route="/a"}`]; got != float64(tt.closed.Total.Verified) {
			t.Errorf("%s: %v arrivals", tt.name, got)
		}
	}
}
