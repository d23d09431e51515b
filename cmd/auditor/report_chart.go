package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// Charts of a report in HTML, as shapes for a template to place in SVG. They are drawn
// without a script: what lies across is in parts of the plot's width, which the browser
// stretches, and what lies up is in pixels. A value stands for the whole of its row of
// time, so that lines are steps. What is not known is a gap in a line; where nothing
// was read the plot is hatched, for no arrivals and no log look alike. Of newest rows
// the slow requests are not logged yet: they are hatched too, and called provisional.

const (
	mostColumns = 240  // rows of time in a chart
	plotWidth   = 1000 // units across
	plotHeight  = 120  // pixels
	plotTop     = 30   // above it stand the names of marks
	xTicks      = 4
)

// chart is one of them.
type chart struct {
	ID, Title, Note string
	Lines           []chartLine
	Bands           []chartBand
	Marks           []chartMark
	Grid, Times     []chartTick
	Hits            []chartHit
	Limit           string // y of the limit in pixels, empty without one
	LimitLabel      string
}

// chartLine is a figure over time.
type chartLine struct {
	Label, Class string
	Dash, Fill   bool
	Path, Area   string // in plot units
}

// chartBand is a stretch of time that is hatched.
type chartBand struct{ X, Width, Class, Label string } // percent

// chartMark is a moment.
type chartMark struct{ X, Y, Label, Anchor, Dx string }

// chartTick is a line of the grid, or a time below it.
type chartTick struct{ At, TextAt, Label, Anchor string }

// chartHit says in words what is under the pointer.
type chartHit struct{ X, Width, Text string }

// series is a line before it is drawn; value says NaN for what is not known. Where not all
// answers could be judged it is a bound, if it says so.
type series struct {
	label, class, bound string
	dash, fill          bool
	format              func(float64) string
	value               func(s *slot) float64
}

// legend is how a line is called beside its chart.
func (l *series) legend(slots []slot) string {
	if l.bound == "" || !slices.ContainsFunc(slots, func(s slot) bool { return s.arrivals > 0 && !s.see.all && !math.IsNaN(l.value(&s)) }) {
		return l.label
	}
	return l.label + map[string]string{atLeast: ", at least", atMost: ", at most"}[l.bound]
}

// charts draws what is told over time.
func charts(r *aggregate.Report, o renderOptions) []chart {
	slots, step := slotsOf(r, mostColumns)
	if len(slots) == 0 {
		return nil
	}
	m := &r.Total
	rate := func(v float64) string { return number(v) + "/s" }
	ratio := func(a, b uint64) float64 {
		if b == 0 {
			return math.NaN()
		}
		return float64(a) / float64(b)
	}
	known := func(v float64, yes bool) float64 {
		if !yes {
			return math.NaN()
		}
		return v
	}
	covered := "Coverage " + show(m.Coverage, percent) + " in the whole, by row below."
	seen := "Of the records " + show(m.Responses.Visibility, percent) + " can show a departure."
	if m.Responses.Unjudged > 0 {
		seen += " Of " + of(m.Responses.Unjudged, m.Arrivals, percent) + " of arrivals it is not known whether they ended within their deadline."
	}
	if see := sightOf(m).past(&m.Responses); !see.all {
		seen += " Goodput is therefore at most what is drawn, and the dead share at least."
	}
	spent := "The most that was spent in a window of " + length(int64(o.Budget.Window)) + ", by log time. Verified " + of(m.Verified, m.Arrivals, percent) + " of arrivals."
	if slices.ContainsFunc(slots, func(s slot) bool { return s.blind }) {
		spent += " Some of it is blind: too few keys were verified" + orTimes(m) + ", and more may have been spent."
	}
	from, to := slots[0].from, slots[len(slots)-1].to
	across := func(at int64) float64 { return float64(at-from) / float64(to-from) }
	all := chart{Times: timesBelow(from, to, step, across), Bands: bands(slots, o, across), Marks: marks(r, o, from, to, across)}
	draw := func(id, title, note string, top, limit float64, lines ...series) chart {
		c := all
		c.ID, c.Title, c.Note = id, title, note
		c.plot(slots, step, lateness(o), across, top, limit, lines)
		return c
	}
	return []chart{
		draw("load", "Originals and arrivals", "In a storm arrivals rise and originals stay flat. "+covered, 0, 0,
			series{"arrivals", "bad", "", false, true, rate, func(s *slot) float64 { return s.per(float64(s.arrivals)) }},
			series{"originals", "good", "", false, false, rate, func(s *slot) float64 { return known(s.per(float64(s.originals)), s.attributable > 0) }}),
		draw("factor", "Load factor", "Attributable arrivals for each original; a gap where there is none. "+covered, 1.5, 0,
			series{"load factor", "bad", "", false, false, factor, func(s *slot) float64 { return ratio(s.attributable, s.originals) }}),
		draw("answers", "Answers and goodput", seen, 0, 0,
			series{"answers", "bad", "", false, true, rate, func(s *slot) float64 { return s.per(float64(s.answers)) }},
			series{"goodput", "good", atMost, false, false, rate, func(s *slot) float64 { return known(s.per(s.good), !s.see.none) }}),
		draw("dead", "Dead share of answers", seen, 1, 0,
			series{"dead", "bad", atLeast, false, true, percent, func(s *slot) float64 { return known(ratio(s.dead, s.answers), !s.see.none) }},
			series{"records that could show it", "other", "", true, false, percent, func(s *slot) float64 { return s.visible / float64(s.arrivals) }}),
		draw("budget", "Retry budget spent", spent, 1.25, 1,
			series{"spent", "bad", "", false, true, percent, func(s *slot) float64 {
				v, ok := s.budget.PeakConsumed.Value()
				return known(v, ok && s.attributable > 0)
			}}),
		draw("coverage", "Coverage by class", "What is above both lines could not be attributed.", 1, 0,
			series{"verified and claimed", "other", "", true, false, percent, func(s *slot) float64 { return ratio(s.attributable, s.arrivals) }},
			series{"verified", "good", "", false, true, percent, func(s *slot) float64 { return ratio(s.verified, s.arrivals) }}),
	}
}

// plot draws lines. The axis goes up to top, or further if a line does.
func (c *chart) plot(slots []slot, step, lateness int64, across func(int64) float64, top, limit float64, lines []series) {
	for i := range slots {
		for _, l := range lines {
			if v := l.value(&slots[i]); slots[i].arrivals > 0 && v > top && !math.IsInf(v, 0) {
				top = v
			}
		}
	}
	top = roundUp(top)
	up := func(v float64) float64 { return plotHeight * (1 - v/top) }
	for _, l := range lines {
		line := chartLine{Label: l.legend(slots), Class: l.class, Dash: l.dash, Fill: l.fill}
		var path, area strings.Builder
		began := math.NaN() // where the run of known values began
		var end float64
		leave := func() {
			if !math.IsNaN(began) {
				fmt.Fprintf(&area, "V%d H%s Z", plotHeight, coordinate(began))
			}
			began = math.NaN()
		}
		for i := range slots {
			s := &slots[i]
			v := l.value(s)
			if s.arrivals == 0 || math.IsNaN(v) {
				leave()
				continue
			}
			x, y := across(s.from)*plotWidth, coordinate(up(v))
			if end = across(s.to) * plotWidth; math.IsNaN(began) {
				began = x
				fmt.Fprintf(&path, "M%s %s", coordinate(x), y)
				fmt.Fprintf(&area, "M%s %d V%s", coordinate(x), plotHeight, y)
			} else {
				fmt.Fprintf(&path, "V%s", y)
				fmt.Fprintf(&area, "V%s", y)
			}
			fmt.Fprintf(&path, "H%s", coordinate(end))
			fmt.Fprintf(&area, "H%s", coordinate(end))
		}
		leave()
		if line.Path = path.String(); l.fill {
			line.Area = area.String()
		}
		c.Lines = append(c.Lines, line)
	}
	format := lines[0].format
	for _, v := range [...]float64{0, top / 2, top} {
		y := plotTop + up(v)
		c.Grid = append(c.Grid, chartTick{At: coordinate(y), TextAt: coordinate(y - 3), Label: format(v)})
	}
	if limit > 0 {
		c.Limit, c.LimitLabel = coordinate(plotTop+up(limit)), "all of it"
	}
	to := slots[len(slots)-1].to
	clock := clockOf(slots[0].from, to, step)
	for i := range slots {
		s := &slots[i]
		if s.arrivals == 0 {
			continue // a band says so
		}
		text := time.Unix(s.from, 0).UTC().Format(clock) + " UTC: "
		for _, l := range lines {
			v, figure := l.value(s), unknown
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				figure = marked(l.bound, l.format(v), !s.see.all)
			}
			text += l.label + " " + figure + ", "
		}
		text += "coverage " + of(s.attributable, s.arrivals, percent)
		if c.ID == "budget" && s.blind {
			text += ", blind"
		}
		if s.to > to-lateness {
			text += ", provisional"
		}
		c.Hits = append(c.Hits, chartHit{X: coordinate(across(s.from) * plotWidth), Width: coordinate((across(s.to) - across(s.from)) * plotWidth), Text: text})
	}
}

// timesBelow are the times that stand below charts.
func timesBelow(from, to, step int64, across func(int64) float64) (out []chartTick) {
	clock := clockOf(from, to, max(step, 60))
	if to-from < 1800 {
		clock = clockOf(from, to, 1)
	}
	for i := range xTicks + 1 {
		at := from + (to-from)*int64(i)/xTicks
		anchor := "middle"
		switch i {
		case 0:
			anchor = "start"
		case xTicks:
			anchor = "end"
		}
		out = append(out, chartTick{At: share(across(at)), Label: time.Unix(at, 0).UTC().Format(clock), Anchor: anchor})
	}
	return out
}

// lateness is how long a second is provisional, in seconds.
func lateness(o renderOptions) int64 { return int64(o.Lateness / time.Second) }

// bands hatches what was not read, and what may still change.
func bands(slots []slot, o renderOptions, across func(int64) float64) (out []chartBand) {
	band := func(from, to int64, class, label string) {
		out = append(out, chartBand{X: share(across(from)), Width: share(across(to) - across(from)), Class: class, Label: label})
	}
	for i := 0; i < len(slots); i++ {
		if slots[i].arrivals > 0 {
			continue
		}
		begin := i
		for i+1 < len(slots) && slots[i+1].arrivals == 0 {
			i++
		}
		band(slots[begin].from, slots[i].to, "nothing", "no arrivals were read")
	}
	if l := lateness(o); l > 0 {
		end := slots[len(slots)-1].to
		band(max(slots[0].from, end-l), end, "provisional", "provisional")
	}
	return out
}

// marks are the moments that the report names.
func marks(r *aggregate.Report, o renderOptions, from, to int64, across func(int64) float64) (out []chartMark) {
	mark := func(at int64, row int, label string) {
		if at < from || at > to {
			return
		}
		m := chartMark{X: share(across(at)), Y: strconv.Itoa(11 + 13*row), Label: label, Anchor: "start", Dx: "3"}
		if across(at) > 0.6 {
			m.Anchor, m.Dx = "end", "-3"
		}
		out = append(out, m)
	}
	if o.Rules.Chosen > 0 {
		storms, _ := stormsOf(r, o.Rules)
		for _, s := range storms[:min(len(storms), mostStorms)] {
			mark(s.from, 0, "onset")
			if s.after != nil {
				mark(s.to, 0, "end")
			}
		}
	}
	if at := r.Total.Budget.ExhaustedAt; at != nil && r.Total.Attributable > 0 {
		if t, err := time.Parse(time.RFC3339, *at); err == nil {
			mark(t.Unix(), 1, "budget exhausted")
		}
	}
	return out
}

// verdictOf is the first line of a report in HTML: a level, and words for it.
func verdictOf(r *aggregate.Report, o renderOptions) (level, word string) {
	m := &r.Total
	if m.Arrivals == 0 {
		return "unknown", "Nothing was read"
	}
	if m.Attributable == 0 {
		return "unknown", "Cannot be judged"
	}
	storms, judged := stormsOf(r, o.Rules)
	b := m.Budget.State
	switch {
	case judged == 0 || o.Rules.Chosen == 0:
		return "unknown", "Too little to judge"
	case len(storms) > 0:
		return "bad", "Retry storm"
	case b != nil && (m.Budget.ExhaustedAt != nil || *b == budget.Low):
		return "warn", "Retries rose"
	case float64(m.Verified) < o.Rules.CoverageFloor*float64(m.Arrivals):
		return "unknown", "No storm is seen, and much is not seen"
	}
	return "good", "No storm"
}

// roundUp is the next number that is easily read.
func roundUp(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, x := range [...]float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if v <= x*power*(1+1e-9) {
			return x * power
		}
	}
	return 10 * power
}

func coordinate(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func share(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e4)/100, 'f', -1, 64) + "%"
}
