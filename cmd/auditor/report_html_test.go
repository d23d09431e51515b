package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

func htmlOf(t *testing.T, r *aggregate.Report, o renderOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := writeHTML(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// cutStyle takes the style out of a report. It is that of report.css, there once, and the
// one whose hash the policy names.
func cutStyle(t *testing.T, text string) (head, body string) {
	t.Helper()
	head, rest, ok := strings.Cut(text, "<style>")
	style, body, ok2 := strings.Cut(rest, "</style>")
	if !ok || !ok2 || style != reportStyle || strings.Contains(body, "<style") {
		t.Fatal("the style is not report.css alone")
	}
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	if !strings.Contains(html.UnescapeString(head), `content="`+policy+`"`) {
		t.Fatalf("no strict policy that lets the style be: %s", head)
	}
	return head, body
}

// Whatever a log holds, the file is made of these elements and attributes alone: none
// of them runs, loads or leads anywhere but within the file.
func TestHTMLHoldsNothingThatRuns(t *testing.T) {
	tag := regexp.MustCompile(`<(/?)([a-zA-Z!][^\s/>]*)((?:\s+[^\s=>]+(?:="[^"]*")?)*)\s*/?>`)
	attribute := regexp.MustCompile(`([^\s=]+)(?:="([^"]*)")?`)
	elements := strings.Fields(`!doctype html head meta title style body header h1 h2 h3 p main section ul li dl div dt dd b small nav a span
		svg defs pattern line figure figcaption rect path text table thead tbody tr th td`)
	attributes := strings.Fields(`html lang charset http-equiv content name class id aria-label aria-labelledby aria-hidden focusable href role scope tabindex
		width height patternUnits patternTransform x y x1 x2 y1 y2 dx dy d viewBox preserveAspectRatio text-anchor`)
	for name, l := range map[string]*testLog{"storm": storm(), "dark": dark(), "several": several(), "hostile": hostile(), "empty": {}} {
		text := htmlOf(t, l.report(), evilFiles())
		if strings.Contains(text, "ZgotmplZ") {
			t.Errorf("%s: the template refused a value", name)
		}
		_, body := cutStyle(t, text)
		for _, m := range tag.FindAllStringSubmatch(body, -1) {
			if !slices.Contains(elements, m[2]) {
				t.Errorf("%s: element %s", name, m[0])
			}
			for _, a := range attribute.FindAllStringSubmatch(m[3], -1) {
				if !slices.Contains(attributes, a[1]) || a[1] == "href" && !strings.HasPrefix(a[2], "#") {
					t.Errorf("%s: attribute %s in %s", name, a[0], m[0])
				}
			}
		}
		if rest := tag.ReplaceAllString(body, ""); strings.ContainsAny(rest, "<>") {
			t.Errorf("%s: < or > outside of tags", name)
		}
	}
	for _, no := range []string{"@import", "http", "src:", "expression"} {
		if strings.Contains(reportStyle, no) {
			t.Errorf("the style has %q", no)
		}
	}
	if text := htmlOf(t, hostile().report(), evilFiles()); !strings.Contains(text, "&lt;img src=x onerror=alert(1)&gt;") {
		t.Error("a hostile name is not shown as what it is")
	}
}

// What the charts draw is what the timeline has; what is not known is a gap, and what
// was not read is hatched.
func TestChartsDrawNoZeroForWhatIsNotKnown(t *testing.T) {
	of := func(l *testLog, o renderOptions) map[string]chart {
		out := map[string]chart{}
		for _, c := range charts(l.report(), o) {
			out[c.ID] = c
			if !strings.Contains(strings.ToLower(c.Note+c.Title), "coverage") && !strings.Contains(c.Note, "can show a departure") && !strings.Contains(c.Note, "Verified") {
				t.Errorf("%s has no coverage: %s", c.ID, c.Note)
			}
			for _, h := range c.Hits {
				if !strings.Contains(h.Text, "coverage ") {
					t.Errorf("%s: %s", c.ID, h.Text)
				}
			}
		}
		return out
	}
	c := of(dark(), granted())
	for id, lines := range map[string][]int{"load": {1}, "factor": {0}, "answers": {1}, "dead": {0}, "budget": {0}} {
		for _, i := range lines {
			if path := c[id].Lines[i].Path; path != "" {
				t.Errorf("%s draws %s where nothing is known: %s", id, c[id].Lines[i].Label, path)
			}
		}
	}
	if path := c["load"].Lines[0].Path; path == "" {
		t.Error("arrivals are known, and are not drawn")
	}
	if text := c["load"].Hits[0].Text; text != "12:00:00 UTC: arrivals 3.00/s, originals –, coverage 0 %" {
		t.Errorf("under the pointer: %s", text)
	}

	c = of(several(), granted())
	gaps := 0
	for _, b := range c["load"].Bands {
		if b.Class == "nothing" {
			gaps++
		}
	}
	if runs := strings.Count(c["load"].Lines[0].Path, "M"); gaps < 10 || runs != gaps+1 {
		t.Errorf("%d gaps are hatched, and the line of arrivals has %d parts", gaps, runs)
	}

	// Two steps: 6 arrivals in ten seconds, of them 3 originals; then 12, all original.
	l := &testLog{names: testNames{routes: [][2]string{{"inventory", "GET /"}}, originators: []string{"", "web"}, peers: []string{"bff"}}}
	for i := range 6 {
		l.at(float64(i), uint64(i/2+1), nil)
	}
	for i := range 12 {
		l.at(10+float64(i)/2, uint64(i+10), nil)
	}
	l.at(19.5, 100, nil)
	c = of(l, granted())
	if got, want := c["load"].Lines[0].Path, "M0 72H500V16H1000"; got != want { // 0.6/s and 1.3/s of 1.5/s
		t.Errorf("arrivals are drawn as %s, want %s", got, want)
	}
	if got, want := c["load"].Lines[1].Path, "M0 96H500V16H1000"; got != want { // 0.3/s
		t.Errorf("originals are drawn as %s, want %s", got, want)
	}
	if got, want := c["factor"].Lines[0].Path, "M0 0H500V60H1000"; got != want { // 2× and 1× of 2×
		t.Errorf("load factors are drawn as %s, want %s", got, want)
	}
}

// A share of answers whose readers could not all be seen is a bound: beside the chart, and
// under the pointer of the moments where that is so, alone.
func TestChartsMarkBounds(t *testing.T) {
	l := &testLog{names: testNames{routes: [][2]string{{"inventory", "GET /"}}, originators: []string{"", "web"}, peers: []string{"bff"}}}
	add := func(at float64, change func(*aggregate.Arrival)) {
		l.at(at, uint64(len(l.arrivals)+1), func(a *aggregate.Arrival) {
			a.Flags |= aggregate.Visible
			a.Outcome = aggregate.OutcomeSuccess
			if change != nil {
				change(a)
			}
		})
	}
	gone := func(a *aggregate.Arrival) { a.Departure = aggregate.UndeliveredAnswer }
	for i, odd := range []func(*aggregate.Arrival){
		nil,
		func(a *aggregate.Arrival) { a.Flags &^= aggregate.Visible },
		func(a *aggregate.Arrival) { a.Duration = aggregate.Untimed(true, false, true) }, // with a deadline
		func(a *aggregate.Arrival) { a.Duration = aggregate.Untimed(true, false, false) },
	} {
		for n, change := range []func(*aggregate.Arrival){gone, nil, nil, odd} {
			add(float64(10*i+n), change)
		}
	}
	add(39.5, nil)
	bounds := map[string]chart{}
	for _, c := range charts(l.report(), granted()) {
		bounds[c.ID] = c
	}
	for id, want := range map[string][]string{
		"dead":    {"dead 25.0 %,", "dead ≥ 25.0 %,", "dead ≥ 25.0 %,", "dead 20.0 %,"},
		"answers": {"goodput 0.30/s,", "goodput ≤ 0.30/s,", "goodput ≤ 0.30/s,", "goodput 0.40/s,"},
	} {
		c := bounds[id]
		if len(c.Hits) != len(want) {
			t.Fatalf("%s has %d moments", id, len(c.Hits))
		}
		for i, h := range c.Hits {
			if !strings.Contains(h.Text, want[i]) {
				t.Errorf("%s says %s, want %s", id, h.Text, want[i])
			}
		}
	}
	if dead, good := bounds["dead"].Lines[0].Label, bounds["answers"].Lines[1].Label; dead != "dead, at least" || good != "goodput, at most" {
		t.Errorf("beside the charts stand %q and %q", dead, good)
	}
	l.arrivals = l.arrivals[:4]
	for _, c := range charts(l.report(), granted()) {
		for _, line := range c.Lines {
			if strings.Contains(line.Label, ", at ") {
				t.Errorf("%s is called a bound where all could be judged: %s", c.ID, line.Label)
			}
		}
	}
}

// The newest part is provisional, and says so in words and under the pointer.
func TestNewestPartIsProvisional(t *testing.T) {
	l := storm()
	o := granted()
	for _, x := range []struct {
		lateness time.Duration
		width    string
		words    string
	}{{time.Minute, "5%", "The last 1 min of the log is provisional"}, {time.Hour, "100%", "All of the log is provisional"}, {0, "", ""}} {
		o.Lateness = x.lateness
		r := l.report()
		c := charts(r, o)[0]
		width := ""
		for _, b := range c.Bands {
			if b.Class == "provisional" {
				width = b.Width
			}
		}
		last := c.Hits[len(c.Hits)-1].Text
		if width != x.width || strings.HasSuffix(last, "provisional") != (x.words != "") || !strings.Contains(strings.Join(chartNotes(r, o), " "), x.words) {
			t.Errorf("lateness %v: width %q, %q, %q", x.lateness, width, last, chartNotes(r, o))
		}
	}
}

func storms(l *testLog, chosen float64) (out [][2]int64) {
	all, _ := stormsOf(l.report(), budget.Rules{Chosen: chosen, MinArrivals: 20})
	for _, s := range all {
		out = append(out, [2]int64{s.from - testStart, s.to - testStart})
	}
	return out
}

// A storm begins where the load factor leaves what is usual, and the usual is what it
// was before, not what it becomes.
func TestOnset(t *testing.T) {
	// 30 minutes of an original a second. So many in ten of them come back at all times,
	// and so many more from the 10th to the 20th minute.
	load := func(always, storm int) *testLog {
		l := &testLog{names: testNames{routes: [][2]string{{"inventory", "GET /"}}, originators: []string{"", "web"}, peers: []string{"bff"}}}
		for s := range 30 * 60 {
			again := always
			if s >= 600 && s < 1200 {
				again += storm
			}
			l.at(float64(s), uint64(s+1), nil)
			if s%10 < again {
				l.at(float64(s)+0.1, uint64(s+1), nil)
			}
		}
		return l
	}
	for _, x := range []struct {
		name          string
		always, storm int
		chosen        float64
		want          [][2]int64
	}{
		{"half as many again", 0, 5, 1.2, [][2]int64{{600, 1200}}},
		{"which was chosen", 0, 5, 1.5, nil},
		{"1.4 where 1.2 is usual, and 1 was chosen", 2, 2, 1, nil},
		{"1.5 where 1.2 is usual", 2, 3, 1, [][2]int64{{600, 1200}}},
		{"a storm all the time", 8, 0, 1.2, [][2]int64{{0, 1800}}},
	} {
		if got := storms(load(x.always, x.storm), x.chosen); !slices.Equal(got, x.want) {
			t.Errorf("%s: storms %v, want %v", x.name, got, x.want)
		}
	}
	if got := storms(storm(), 1.2); !slices.Equal(got, [][2]int64{{600, 900}}) { // the last repeats come 12 s after 14 min
		t.Errorf("storms %v", got)
	}
	// Too few arrivals are no storm, and no end of one either.
	quiet := storm()
	r := quiet.report()
	r.Windows[15].Arrivals = 19
	all, judged := stormsOf(r, granted().Rules)
	if len(all) != 1 || all[0].after != nil || judged != 19 {
		t.Errorf("%d storms, ended by %v, of %d windows", len(all), all[0].after, judged)
	}
}

// The alerts' section has each budget's own moments, and no zero for one that cannot
// be read.
func TestAlarms(t *testing.T) {
	o := granted()
	own := o.Budget
	o.RouteBudgets = map[string]*budget.Model{"POST /orders": &own}
	s := alarms(storm().report(), o)
	want := [][]string{
		{"inventory", "2026-01-01 12:10:04", "4,000 %", "320 of 8.00", "85.7 %", "RetryBudgetExhausted"},
		// Later, as it takes 20 arrivals in a window.
		{"POST /orders", "2026-01-01 12:10:07", "4,000 %", "80.0 of 2.00", "100 %", "RetryBudgetExhausted"},
	}
	for i, row := range s.table.rows {
		if i >= len(want) || !slices.Equal(row, want[i]) {
			t.Errorf("row %d: %q", i, row)
		}
	}
	if s := alarms(dark().report(), o); s.title != "" {
		t.Errorf("a log without keys: %q", s.title)
	}
	for _, row := range alarms(several().report(), o).table.rows {
		if row[1] != unknown || row[2] != unknown || row[3] != unknown {
			t.Errorf("a budget that cannot be read: %q", row)
		}
	}
}

// Parts are ordered by what they repeat beyond their own allowance.
func TestExcess(t *testing.T) {
	l := &testLog{names: testNames{routes: [][2]string{{"inventory", "GET /"}}, originators: []string{"", "web"}, peers: []string{"many", "few"}}}
	q := uint64(0)
	for i := range 100 { // 100 originals, 20 repeats: all of them granted
		q++
		for try := range 1 + (i%5)/4 {
			l.at(float64(i)+float64(try)/10, q, nil)
		}
	}
	for i := range 5 { // 5 originals, 10 repeats, of which 1 is granted
		q++
		for try := range 3 {
			l.at(float64(i)+float64(try)/10, q, func(a *aggregate.Arrival) { a.Peer = 1 })
		}
	}
	o := granted()
	s := byPeer(l.report(), o)
	at := slices.IndexFunc(s.table.columns, func(c column) bool { return c.title == "excess" })
	if rows := s.table.rows; s.title != "Peers, largest excess first" || at < 0 || rows[0][0] != "few" || rows[0][at] != "9.00" || rows[1][0] != "many" || rows[1][at] != "0" {
		t.Errorf("%s: %q", s.title, s.table.rows)
	}
	o.Budget.Grant = budget.Concurrency{Share: 0.2, Min: 3, Proxies: 1}
	if s := byPeer(l.report(), o); s.title != "Peers, most repeats first" || s.table.rows[0][0] != "many" {
		t.Errorf("without a ratio: %s: %q", s.title, s.table.rows)
	}
	// A floor is granted to the dependency, and not to each of its peers.
	o.Budget.Grant = budget.Ratio{Ratio: 0.2, FloorPerSecond: 1, Clients: 1}
	r := l.report()
	if e, ok := excessOf(r, &o.Budget, false, &r.Total); !ok || e != 9 {
		t.Errorf("excess of a part: %v, %v", e, ok)
	}
	if e, ok := excessOf(r, &o.Budget, true, &r.Total); !ok || e != 9-100 {
		t.Errorf("excess of the whole: %v, %v", e, ok)
	}
}
