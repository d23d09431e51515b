package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strconv"

	"github.com/targetside/auditor/aggregate"
)

// writeHTML prints a report as one file for the post-mortem: what writeMarkdown says,
// and charts of it over time. The file needs nothing else: it has its style and its
// charts in it, no script, and a policy that lets the browser load and run nothing. It
// can be read on paper, dark and light, and on a telephone. Names out of logs are made
// visible as in the other reports, and are escaped by html/template besides.
func writeHTML(w io.Writer, r *aggregate.Report, o renderOptions) error {
	var b bytes.Buffer
	if err := reportTemplate.Execute(&b, reportPage(r, o)); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

//go:embed report/report.html
var reportHTML string

//go:embed report/report.css
var reportStyle string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"name": func(s string) string { return visible(orNone(s), 80, "") },
	"add":  func(a, b int) int { return a + b },
}).Parse(reportHTML))

// reportPolicy lets the one style that is in the file be, and nothing else.
func reportPolicy() string {
	sum := sha256.Sum256([]byte(reportStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// What the template is filled from.
type (
	htmlReport struct {
		Policy                string
		Style                 template.CSS // our own file, with the hash that the policy names
		Title, Period         string
		Dependencies          []string // names
		Level, Word           string
		Summary               []string
		Tiles                 []tile
		Charts                []chart
		ChartNotes            []string
		PlotWidth, PlotHeight int
		PlotTop, Bottom       int
		First, Sections       []htmlSection // above and below the charts
		Input                 string
		Files                 []string // names
		Method                []string
	}
	tile        struct{ Name, Value, More string }
	htmlSection struct {
		ID      string
		Title   string
		Lines   []string
		Columns []htmlColumn
		Rows    [][]htmlCell
		Notes   []string
	}
	htmlColumn struct {
		Title  string
		Figure bool
	}
	htmlCell struct {
		Text         string
		Figure, Name bool
	}
)

func reportPage(r *aggregate.Report, o renderOptions) htmlReport {
	m := &r.Total
	p := htmlReport{
		Policy: reportPolicy(), Style: template.CSS(reportStyle), Title: "Retry audit, " + period(r), Period: period(r),
		Summary: summary(r), Charts: charts(r, o), Input: inputLine(r), Method: method(r, o),
		PlotWidth: plotWidth, PlotHeight: plotHeight, PlotTop: plotTop, Bottom: plotTop + plotHeight,
	}
	p.Level, p.Word = verdictOf(r, o)
	for i := range r.Dependencies {
		p.Dependencies = append(p.Dependencies, r.Dependencies[i].Name)
	}
	for _, f := range o.Files {
		p.Files = append(p.Files, fileName(f))
	}
	if m.Arrivals > 0 {
		p.Tiles = tiles(r)
	}
	if len(p.Charts) > 0 {
		p.ChartNotes = chartNotes(r, o)
	}
	for i, s := range append(sections(r, o), coverageStatement(r)) {
		if s.title == "" {
			continue
		}
		x := ofSection(s)
		x.ID = "s" + strconv.Itoa(i+1)
		if s.early {
			p.First = append(p.First, x)
		} else {
			p.Sections = append(p.Sections, x)
		}
	}
	return p
}

// tiles are the figures that are looked for first, each with what it rests on.
func tiles(r *aggregate.Report) []tile {
	m := &r.Total
	covered := "coverage " + show(m.Coverage, percent)
	spent, more := unknown, "cannot be read"
	if m.Budget.State != nil && m.Attributable > 0 {
		spent, more = peakOf(&m.Budget, m.Attributable, blind(&m.Budget)), "spent at most, never exhausted; "
		if m.Budget.ExhaustedAt != nil {
			more = "spent at most, exhausted " + moment(*m.Budget.ExhaustedAt) + "; "
		}
		more += of(m.Verified, m.Arrivals, percent) + " verified"
	}
	see := sightOf(m)
	low, high := show(m.AmplificationLow, factor), show(m.AmplificationHigh, factor)
	return []tile{
		{"Load factor", show(m.LoadFactor, factor), covered},
		{"Amplification", show(m.Amplification, factor), covered + "; of all traffic " + low + " to " + high},
		{"Coverage", show(m.Coverage, percent), of(m.Verified, m.Arrivals, percent) + " verified, " + of(m.Claimed, m.Arrivals, percent) + " claimed"},
		{"Retry budget", spent, more},
		{"Work for nobody", see.deadSeconds(&m.Responses), "in system, " + see.past(&m.Responses).share(dead(&m.Responses), m.Responses.Answers) + " of answers; " + show(m.Responses.Visibility, percent) + " of records can show a departure"},
		{"Records read", show(m.ReadShare, percent), whole(m.Arrivals) + " arrivals"},
	}
}

// chartNotes say how all charts are read.
func chartNotes(r *aggregate.Report, o renderOptions) []string {
	from, to, _ := rangeOf(r)
	out := []string{"A step is " + length(stepFor(from, to, mostColumns)) + ". Arrivals stand where they started, budgets where their records were written. The table of the timeline below has figures, and so has each step under the pointer."}
	if l := lateness(o); l > 0 {
		which := "The last " + length(l) + " of the log is"
		if to-from <= l {
			which = "All of the log is"
		}
		out = append(out, which+" provisional: requests that were still running when the log ended are not in it, so that arrivals seem to fall.")
	}
	if h := int64(o.Horizon.Seconds()); h > 0 {
		which := "In the first " + length(h)
		if to-from <= h {
			which = "In all of the log"
		}
		out = append(out, which+" a repeat whose question began before the log counts as an original: load factors may read low.")
	}
	return out
}

// coverageStatement says what share of arrivals the figures speak for, and why not for
// the others.
func coverageStatement(r *aggregate.Report) section {
	m := &r.Total
	if m.Arrivals == 0 {
		return section{}
	}
	t := &table{columns: []column{{"arrivals", words}, {"count", figures}, {"share", figures}, {"meaning", words}}}
	add := func(what string, n uint64, meaning string) {
		t.add(what, whole(n), of(n, m.Arrivals, percent), meaning)
	}
	add("verified", m.Verified, "the key proves who asked")
	add("claimed", m.Claimed, "the key says who asked, and proves nothing")
	add("unattributable", m.Unattributable.Total, "in no count of questions or repeats")
	m.Unattributable.Each(func(reason string, n uint64) {
		if n > 0 {
			add("… "+reason, n, "")
		}
	})
	s := section{title: "Coverage", lines: []string{coverage(m)}, table: t}
	if b := bounds(m); b != "" {
		s.notes = append(s.notes, b)
	}
	s.notes = append(s.notes, visibilityNote(&m.Responses))
	return s
}

// ofSection lays a section out; bars are for text.
func ofSection(s section) htmlSection {
	out := htmlSection{Title: s.title, Lines: s.lines, Notes: s.notes}
	if s.table == nil {
		return out
	}
	figure := func(c column) bool { return c.kind == figures || c.kind == spare }
	for _, c := range s.table.columns {
		if c.kind != bar {
			out.Columns = append(out.Columns, htmlColumn{c.title, figure(c)})
		}
	}
	for _, cells := range s.table.rows {
		var row []htmlCell
		for i, c := range s.table.columns {
			if c.kind != bar {
				row = append(row, htmlCell{cells[i], figure(c), c.kind == name})
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
