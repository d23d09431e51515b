package grafana_test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/dashboards/livetest"
)

// quiet are metrics that have nothing to show while all is well, or for a moment only.
// Queries for them have to be valid; but for those that say "absent" they have to give
// zeros, not nothing.
var quiet = map[string]string{
	"auditor_retry_budget_exhausts_in_seconds": "absent: only while consumption rises by more than chance",
	"ALERTS":                           "absent: the rules are not loaded, without which the dashboards have to work",
	"auditor_offset_gap_records_total": "nothing is deleted before it is read",
	"auditor_source_restarts_total":    "no source fails",
	"auditor_scope_split":              "questions are seen whole",
	"auditor_store_errors_total":       "the store of this daemon answers with no error",
	"auditor_questions_left_out_total": "so many questions do not end in one second",
	"auditor_http_streams":             "nobody looks at the stream",
	"auditor_intake_waits_total":       "no sender is held back",
	"auditor_intake_connections":       "no push is under way for long",
}

// client gives up on a program that hangs.
var client = &http.Client{Timeout: 10 * time.Second}

// asking is a query that a panel makes, with what its variables stand for.
type asking struct {
	where, expr string
	instant     bool
	labels      []string // that the panel tells series apart by
	got         string
}

// labels are those that the panel names series by, or joins lines of a table by.
func (p *shown) labels(q query) (all []string) {
	for _, m := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(q.LegendFormat, -1) {
		all = append(all, m[1])
	}
	for _, x := range p.Transformations {
		for field, at := range x.Options.IndexByName {
			if at == 0 {
				all = append(all, field)
			}
		}
	}
	return all
}

// Every query of every panel has an answer in a Prometheus that scrapes a daemon in a
// storm: numbers, and not only zeros.
func TestNoPanelIsEmptyOnALiveDaemon(t *testing.T) {
	livetest.Find(t, "prometheus", "prometheus") // before a storm is made
	began := time.Now()
	daemon := startStorm(t, "{sqlite: rows.db}", 0)
	prometheus := startPrometheus(t, daemon)

	livetest.Until(t, 30*time.Second, func() string {
		var found []map[string]string
		if err := livetest.Ask(prometheus, "/api/v1/series", url.Values{"match[]": {`auditor_originals_total{dependency="seats"}`}}, &found); err != nil || len(found) == 0 {
			return fmt.Sprintf("nothing is scraped: %v", err)
		}
		return ""
	})

	var waiting []*asking
	for name, d := range dashboards(t) {
		if files[name].stored {
			continue
		}
		values := map[string]string{}
		for _, v := range d.Templating.List[1:] {
			values[v.Name] = ""
		}
		// What a variable offers is what is there, and each value of it is tried at once.
		for _, v := range d.Templating.List[1:] {
			m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition)
			if m == nil || m[2] != v.Name {
				t.Fatalf("%s: variable %s has the query %s", name, v.Name, v.Definition)
			}
			livetest.Until(t, 30*time.Second, func() string {
				var found []map[string]string
				match := fill(m[1], values, began)
				if err := livetest.Ask(prometheus, "/api/v1/series", url.Values{"match[]": {match}}, &found); err != nil {
					return err.Error()
				}
				var all []string
				for _, labels := range found {
					if x := regexp.QuoteMeta(labels[v.Name]); !slices.Contains(all, x) {
						all = append(all, x)
					}
				}
				if len(all) == 0 || v.Name != "job" && v.Multi && len(all) < 2 {
					return fmt.Sprintf("%s: variable %s offers only %q for %s", name, v.Name, all, match)
				}
				if slices.Sort(all); v.Multi {
					values[v.Name] = "(" + strings.Join(all, "|") + ")"
				} else {
					values[v.Name] = all[len(all)-1]
				}
				return ""
			})
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				waiting = append(waiting, &asking{name + ": " + p.Title + " " + q.RefID, fill(q.Expr, values, began), q.Instant, p.labels(q), "it was not asked"})
			}
		}
		for _, a := range d.Annotations.List {
			waiting = append(waiting, &asking{name + ": " + a.Name, fill(a.Expr, values, began), false, nil, "it was not asked"})
		}
	}
	if len(waiting) < 80 {
		t.Fatalf("only %d queries", len(waiting))
	}
	all := len(waiting)
	livetest.Until(t, 45*time.Second, func() string {
		now := strconv.FormatInt(time.Now().Unix(), 10)
		var still []string
		waiting = slices.DeleteFunc(waiting, func(a *asking) bool {
			var data struct {
				Result []struct {
					Metric map[string]string
					Value  [2]any
					Values [][2]any
				}
			}
			path, parameters := "/api/v1/query_range", url.Values{"query": {a.expr}, "start": {strconv.FormatInt(began.Unix(), 10)}, "end": {now}, "step": {"1"}}
			if a.instant {
				path, parameters = "/api/v1/query", url.Values{"query": {a.expr}, "time": {now}}
			}
			if err := livetest.Ask(prometheus, path, parameters, &data); err != nil {
				t.Fatalf("%s: %v", a.where, err)
			}
			texts := []string{}
			for _, r := range data.Result {
				for _, v := range append(r.Values, r.Value) {
					if s, ok := v[1].(string); ok {
						texts = append(texts, s)
					}
				}
			}
			a.got = answered(a.expr, texts)
			for _, r := range data.Result {
				for _, label := range a.labels {
					if r.Metric[label] == "" {
						a.got = "it has no label " + label
					}
				}
			}
			if a.got != "" {
				still = append(still, fmt.Sprintf("%s: %s: %s", a.where, a.got, a.expr))
			}
			return a.got == ""
		})
		return strings.Join(still, "\n")
	})
	t.Logf("%d queries have answers after %v", all, time.Since(began).Round(time.Second))
}

// answered says what an answer lacks.
func answered(expr string, values []string) string {
	zeros, nothing := false, false
	for metric, why := range quiet {
		if regexp.MustCompile(`\b` + metric + `\b`).MatchString(expr) {
			zeros, nothing = true, strings.HasPrefix(why, "absent")
		}
	}
	if len(values) == 0 && !nothing {
		return "it is empty"
	}
	some := false
	for _, s := range values {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) {
			return "it has the value " + s
		}
		some = some || v != 0
	}
	if !some && !zeros {
		return "it is all zeros"
	}
	return ""
}

// fill puts in what Grafana would. The interval is that of a step and a scrape each
// second.
func fill(expr string, values map[string]string, began time.Time) string {
	in := []string{"$__rate_interval", "4s", "$__range", strconv.Itoa(int(time.Since(began).Seconds())+5) + "s"}
	for name, v := range values {
		in = append(in, "$"+name, strings.ReplaceAll(v, `\`, `\\`))
	}
	return strings.NewReplacer(in...).Replace(expr)
}

// startPrometheus scrapes the daemon each second. It returns where it answers.
func startPrometheus(t *testing.T, daemon string) string {
	t.Helper()
	return livetest.Prometheus(t, fmt.Sprintf("scrape_configs:\n  - {job_name: auditor, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{targets: [%q]}]}\n", daemon))
}
