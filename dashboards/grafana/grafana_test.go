// Package grafana_test holds the dashboards for Grafana to what they promise: they are
// whole and can be told apart, ask only for metrics that there are, show no figure
// without its coverage, never draw what is not known as zero, and no panel is empty on
// a Prometheus that has scraped a daemon (live_test.go), or on the ClickHouse into which
// one has written (live_clickhouse_test.go).
package grafana_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the dashboards anew")

// dashboard is what these tests read of a file.
type dashboard struct {
	UID, Title, Description string
	SchemaVersion           int
	GraphTooltip            int
	Links                   []struct{ Type, URL string }
	Annotations             struct{ List []query }
	Templating              struct{ List []variable }
	Panels                  []shown
}

type variable struct {
	Name, Type, Definition string
	Query                  any
	Multi                  bool
	Datasource             reference
}

type reference struct{ Type, UID string }

type shown struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Datasource               reference
	Targets                  []query
	Links                    []struct{ Title, URL string }
	Transformations          []struct {
		ID      string
		Options struct{ IndexByName map[string]int }
	}
	FieldConfig struct {
		Defaults struct {
			Unit, NoValue string
			Mappings      any
			Custom        struct{ SpanNulls, InsertNulls any }
		}
		Overrides []struct {
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
}

type query struct {
	Name, RefID, Expr, LegendFormat string
	RawSQL, QueryType, EditorType   string
	Format                          any
	Instant, Range                  bool
	Datasource                      reference
}

// text is what is asked, in either language.
func (q query) text() string { return q.Expr + q.RawSQL }

// files are the dashboards, by the names of their files.
var files = map[string]board{
	"overview.json": overview, "dependency.json": dependency, "pipeline.json": pipeline, "ledger.json": ledger,
	"clickhouse-overview.json": storedOverview, "clickhouse-dependency.json": storedDependency, "clickhouse-pipeline.json": storedPipeline,
}

func text(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFilesAreAsWritten(t *testing.T) {
	for name, b := range files {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(b.json()); err != nil {
			t.Fatal(err)
		}
		if *write {
			if err := os.WriteFile(name, out.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if text(t, name) != out.String() {
			t.Errorf("%s is not what the Go files say: go test ./dashboards/grafana -run Written -write", name)
		}
	}
}

// dashboards reads every file, by its name.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	names, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(files) {
		t.Fatalf("%d files of %d dashboards: %v", len(names), len(files), names)
	}
	all := map[string]dashboard{}
	for _, name := range names {
		var d dashboard
		if err := json.Unmarshal([]byte(text(t, name)), &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = d
	}
	return all
}

// units are those that were looked up in @grafana/data, and suffixes.
var units = regexp.MustCompile(`^(none|short|percentunit|s|reqps|recps|cps|bytes|suffix:.+)$`)

func TestDashboardsAreWhole(t *testing.T) {
	uids := map[string]string{}
	for name, d := range dashboards(t) {
		if want := "auditor-" + strings.TrimSuffix(name, ".json"); d.UID != want || uids[d.UID] != "" {
			t.Errorf("%s: uid %q, want %q, for it is in links that people keep", name, d.UID, want)
		}
		uids[d.UID] = name
		if d.Title == "" || d.Description == "" || d.SchemaVersion != 41 || d.GraphTooltip != 1 {
			t.Errorf("%s: title, description, schema 41 and a shared crosshair are wanted: %q %q %d %d", name, d.Title, d.Description, d.SchemaVersion, d.GraphTooltip)
		}
		uid, kind := "${datasource}", "prometheus"
		if files[name].stored {
			uid, kind = "${clickhouse}", clickhouseKind
		}
		if v := d.Templating.List; "${"+v[0].Name+"}" != uid || v[0].Type != "datasource" || v[0].Query != kind {
			t.Errorf("%s: the first variable is %+v, want a datasource", name, v[0])
		}
		if !slices.ContainsFunc(d.Links, func(l struct{ Type, URL string }) bool { return strings.HasSuffix(l.URL, "docs/operations/README.md") }) {
			t.Errorf("%s has no link to the runbooks", name)
		}
		ids := map[int]bool{}
		taken := map[[2]int]string{}
		for _, p := range d.Panels {
			if p.ID == 0 || ids[p.ID] {
				t.Errorf("%s: %s: id %d is there twice, or 0", name, p.Title, p.ID)
			}
			ids[p.ID] = true
			g := p.GridPos
			if g.W < 1 || g.H < 1 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
				t.Errorf("%s: %s: lies outside: %+v", name, p.Title, g)
			}
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if over := taken[[2]int{x, y}]; over != "" {
						t.Fatalf("%s: %s lies over %s", name, p.Title, over)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			f := p.FieldConfig.Defaults
			if p.Title == "" || p.Description == "" || len(p.Targets) == 0 || !units.MatchString(f.Unit) {
				t.Errorf("%s: %s: title, description, targets and a known unit are wanted: %q %d %q", name, p.Title, p.Description, len(p.Targets), f.Unit)
			}
			for _, o := range p.FieldConfig.Overrides {
				for _, x := range o.Properties {
					if u, ok := x.Value.(string); x.ID == "unit" && (!ok || !units.MatchString(u)) {
						t.Errorf("%s: %s: unit %v of a column is not known", name, p.Title, x.Value)
					}
				}
			}
			if f.NoValue != "no data" || f.Custom.SpanNulls == true || f.Custom.InsertNulls == true {
				t.Errorf("%s: %s: what is not known has to be a gap, and to be called so", name, p.Title)
			}
			if (p.Type == "timeseries" || p.Type == "state-timeline") && (f.Custom.SpanNulls != false || f.Custom.InsertNulls != false) {
				t.Errorf("%s: %s connects over gaps", name, p.Title)
			}
			checkWords(t, name+": "+p.Title, f.Mappings)
			for _, o := range p.FieldConfig.Overrides {
				for _, x := range o.Properties {
					if x.ID == "mappings" {
						checkWords(t, name+": "+p.Title, x.Value)
					}
				}
			}
			refs := map[string]bool{}
			for _, q := range p.Targets {
				if q.Datasource != (reference{kind, uid}) || p.Datasource != q.Datasource || q.RefID == "" || refs[q.RefID] || (q.Expr == "") == (q.RawSQL == "") {
					t.Errorf("%s: %s: target %+v", name, p.Title, q)
				}
				refs[q.RefID] = true
				if files[name].stored {
					checkSQL(t, name+": "+p.Title, p.Type, q)
					continue
				}
				if q.Instant == q.Range {
					t.Errorf("%s: %s: target %+v", name, p.Title, q)
				}
				// The newest value of a range may be an old one, of what is gone by now.
				if now := p.Type == "stat" || p.Type == "table"; now != q.Instant {
					t.Errorf("%s: %s: asks for a range: %v", name, p.Title, q.Range)
				}
				if regexp.MustCompile(`\bor\b|vector\(|absent|clamp`).MatchString(q.Expr) {
					t.Errorf("%s: %s: %s draws as zero what is not known", name, p.Title, q.Expr)
				}
				if strings.Count(q.Expr, " / ") > strings.Count(q.Expr, "> 0)") {
					t.Errorf("%s: %s: %s divides by what may be zero", name, p.Title, q.Expr)
				}
				if closedCounter.MatchString(q.Expr) && !strings.Contains(p.Description, "time.lateness") {
					t.Errorf("%s: %s does not say that its counters trail", name, p.Title)
				}
			}
		}
	}
}

// checkSQL wants a query of the views alone, whose lines have a row for each step, and
// which puts nothing in the place of what is not known.
func checkSQL(t *testing.T, where, panel string, q query) {
	t.Helper()
	if lines := panel == "timeseries"; q.EditorType != "sql" || (q.QueryType == "timeseries") != lines || (q.Format == 0.0) != lines || strings.Contains(q.RawSQL, "WITH FILL") != lines {
		t.Errorf("%s: %s %s %v: %s", where, q.EditorType, q.QueryType, q.Format, q.RawSQL)
	}
	for _, m := range regexp.MustCompile(`FROM (\w+)`).FindAllStringSubmatch(q.RawSQL, -1) {
		if !slices.Contains([]string{"figures", "questions", "scopes", "measures", "counted", "splits", "kept", "steps", "system", "toDateTime"}, m[1]) {
			t.Errorf("%s asks %s, which is no view that is kept", where, m[1])
		}
	}
	if regexp.MustCompile(`(?i)ifNull|coalesce|zeroIfNull`).MatchString(q.RawSQL) {
		t.Errorf("%s: %s draws as zero what is not known", where, q.RawSQL)
	}
	for _, divisor := range regexp.MustCompile(`/ ([\w(]+)`).FindAllStringSubmatch(q.RawSQL, -1) {
		// Of parts there is a row because there were arrivals.
		if !regexp.MustCompile(`^(nullIf|multiIf|1000|sum\(a)`).MatchString(divisor[1]) {
			t.Errorf("%s: %s divides by what may be zero", where, q.RawSQL)
		}
	}
}

// checkWords wants a text beside each colour, and of ranges both ends: Grafana takes
// null for 0 there.
func checkWords(t *testing.T, where string, mappings any) {
	t.Helper()
	list, _ := mappings.([]any)
	for _, m := range list {
		options := m.(map[string]any)["options"].(map[string]any)
		results := options
		if m.(map[string]any)["type"] == "range" {
			if options["from"] == nil || options["to"] == nil {
				t.Errorf("%s: a range without an end: %v", where, options)
			}
			results = map[string]any{"": options["result"]}
		}
		for _, r := range results {
			if r := r.(map[string]any); r["text"] == "" || r["color"] == "" {
				t.Errorf("%s: a state without words or colour: %v", where, r)
			}
		}
	}
}

// closedCounter is a counter that trails, being of closed seconds.
var closedCounter = regexp.MustCompile(`auditor_(arrivals|unattributable_arrivals|originals|repeats|responses|good_responses|unjudged_responses|dead_answers|dead_seconds|busy_seconds|repeat_seconds|retry_after_\w+|stale_arrivals|attempt_budget_violations)_total|auditor_arrivals_per_question`)

// What says how far the others of its section can be believed. Of the pipeline all
// does.
var coverage = map[string]*regexp.Regexp{
	"questions":  regexp.MustCompile(`auditor_key_coverage_ratio|class="verified"|by \(class\)|sum\(v\)`),
	"departures": regexp.MustCompile(`auditor_response_visibility_ratio|sum\(vi\)`),
}

func TestNoFigureStandsWithoutItsCoverage(t *testing.T) {
	needs := map[string]*regexp.Regexp{
		"questions":  regexp.MustCompile(`auditor_(load_factor|amplification|retry_budget|originals|repeats|arrivals_per_question|stale|attempt_budget|retry_after)|sum\(o\)|FROM questions`),
		"departures": regexp.MustCompile(`outcome="dead"|auditor_(good|dead)|sum\(de\)|sum\(go\)`),
	}
	seen := map[string]int{}
	for name, d := range dashboards(t) {
		section, asked := "", map[string]string{}
		sections := []string{}
		for _, p := range d.Panels {
			if p.Type == "row" {
				section = p.Title
				sections = append(sections, section)
			}
			for _, q := range p.Targets {
				asked[section] += q.text() + "\n"
			}
		}
		for _, s := range sections {
			for what, need := range needs {
				if s == "Routes" && what == "departures" {
					continue // visibility is of the dependency, and stands above
				}
				if !need.MatchString(asked[s]) {
					continue
				}
				seen[what]++
				if !coverage[what].MatchString(asked[s]) {
					t.Errorf("%s: %s: figures of %s stand without their coverage", name, s, what)
				}
			}
		}
	}
	if seen["questions"] < 6 || seen["departures"] < 3 {
		t.Errorf("figures were looked for and not found: %v", seen)
	}
}

// That docs/api.md lists what /metrics says, the api package tests. The two others are
// Prometheus' own.
func TestDashboardsAskForMetricsThatThereAre(t *testing.T) {
	there := map[string]bool{"up": true, "ALERTS": true}
	for _, m := range regexp.MustCompile("(?m)^\\| `(auditor_[a-z_]+)` \\| (\\w+) \\|").FindAllStringSubmatch(text(t, "..", "..", "docs", "api.md"), -1) {
		there[m[1]] = true
		if m[2] == "histogram" {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				there[m[1]+part] = true
			}
		}
	}
	asked := map[string]bool{}
	look := func(where, expr string) {
		found := regexp.MustCompile(`auditor_[a-z_]+|\bup\b|\bALERTS\b`).FindAllString(expr, -1)
		if len(found) == 0 {
			t.Errorf("%s asks for nothing that is known: %s", where, expr)
		}
		for _, m := range found {
			if asked[m] = true; !there[m] {
				t.Errorf("%s asks for %s, which nobody exports", where, m)
			}
		}
	}
	for name, d := range dashboards(t) {
		if files[name].stored {
			continue
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				look(name+": "+p.Title, q.Expr)
			}
		}
		for _, v := range d.Templating.List[1:] {
			look(name+": "+v.Name, v.Definition)
		}
		for _, a := range d.Annotations.List {
			look(name+": "+a.Name, a.Expr)
		}
	}
	for m := range there {
		if part := regexp.MustCompile(`_(bucket|sum|count)$`); !asked[m] && !part.MatchString(m) && !asked[m+"_bucket"] && !asked[m+"_sum"] {
			t.Errorf("%s is on no dashboard", m)
		}
	}
}

// Who is called by an alert finds its page from the panel that shows it, and the
// other way round.
func TestEachRunbookIsLinked(t *testing.T) {
	pages := filepath.Join("..", "..", "docs", "operations")
	linked := map[string]bool{}
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, l := range p.Links {
				page, ok := strings.CutPrefix(l.URL, "https://github.com/targetside/auditor/blob/main/docs/operations/")
				if !ok || page != l.Title+".md" {
					t.Errorf("%s: %s: link %q to %s", name, p.Title, l.Title, l.URL)
				}
				text(t, pages, page)
				linked[l.Title] = true
			}
		}
	}
	rules := regexp.MustCompile(`(?m)- alert: (\w+)`).FindAllStringSubmatch(text(t, "..", "rules", "auditor.rules.yaml"), -1)
	if len(rules) != len(alerts) {
		t.Errorf("there are %d alerts, and %d in annotations", len(rules), len(alerts))
	}
	for _, m := range rules {
		if !linked[m[1]] || !slices.Contains(alerts, m[1]) {
			t.Errorf("%s: linked from a panel: %v, in annotations: %v", m[1], linked[m[1]], slices.Contains(alerts, m[1]))
		}
	}
	doc := text(t, pages, "grafana.md")
	for name, d := range dashboards(t) {
		if !strings.Contains(doc, name) || !strings.Contains(doc, d.UID) {
			t.Errorf("docs/operations/grafana.md does not know %s", name)
		}
	}
}
