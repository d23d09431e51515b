package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// renderOptions says how a report is printed for people.
type renderOptions struct {
	Files []string // that were read, as they were named
	// Horizon is the horizon that the report was made with, 0 if it is not to be
	// said.
	Horizon time.Duration
	// Rules are what a storm is found by; without a chosen load factor none is looked
	// for.
	Rules budget.Rules
	// Budget and RouteBudgets are what was granted; without a Grant nothing is.
	Budget       budget.Model
	RouteBudgets map[string]*budget.Model
	// Lateness is how long requests may take to be logged.
	Lateness time.Duration
}

// A report for people is a list of sections. What they say is decided here, once;
// how it is laid out, by writeText, writeMarkdown and writeHTML.
//
// Three rules hold for all of it. A figure that is not known is "–", never 0. A
// figure that only has a bound on one side says so with ≥ or ≤. Texts that come
// out of logs are in columns marked name and nowhere else, and are passed through
// visible by the layout.
type section struct {
	title string
	lines []string // prose
	table *table
	notes []string // prose under the table
	early bool     // goes above charts, where there are any
}

type table struct {
	columns []column
	rows    [][]string
}

type column struct {
	title string
	kind  columnKind
}

type columnKind uint8

const (
	words columnKind = iota
	figures
	name  // texts out of logs
	bar   // a length for the eye; text only
	spare // figures that are left out of text where there is no room for them
)

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// sections returns everything that follows the summary.
func sections(r *aggregate.Report, o renderOptions) []section {
	m := &r.Total
	all := []section{
		course(r, o),
		alarms(r, o),
		timeline(r),
		questions(m),
		byDependency(r, o),
		byRoute(r, o),
		byOriginator(r, o),
		byPeer(r, o),
		perQuestion(m),
		hops(m),
		repeatAfter(m),
		retryAfter(m),
		responses(m),
		worst(r),
	}
	return slices.DeleteFunc(all, func(s section) bool { return s.title == "" })
}

// summary is what is read in ten seconds.
func summary(r *aggregate.Report) []string {
	m := &r.Total
	if m.Arrivals == 0 {
		return []string{"No arrival was read: there is nothing to say about this log."}
	}
	out := []string{costs(m), coverage(m)}
	if s := bounds(m); s != "" {
		out = append(out, s)
	}
	out = append(out, budgetLine(m), deadLine(m))
	if s := stampLine(r); s != "" {
		out = append(out, s)
	}
	return out
}

func costs(m *aggregate.Measure) string {
	if m.Originals == 0 {
		if m.Attributable == 0 {
			return "No arrival could be attributed to a question: what a question costs cannot be said from this log (load factor –)."
		}
		return "No question began in this log: its load factor cannot be said."
	}
	share := percent(float64(m.Attributable) / float64(m.Arrivals))
	if m.Repeats == 0 {
		return fmt.Sprintf("No repeats: load factor 1.00× among the %s of arrivals that could be attributed to a question.", share)
	}
	return fmt.Sprintf("Load factor %s: each original brought %s more arrivals, so %s of what could be attributed (%s of arrivals) are repeats.",
		show(m.LoadFactor, factor), of(m.Repeats, m.Originals, number), of(m.Repeats, m.Attributable, percent), share)
}

func bounds(m *aggregate.Measure) string {
	low, high := show(m.AmplificationLow, factor), show(m.AmplificationHigh, factor)
	s := fmt.Sprintf("Amplification of all traffic lies between %s and %s", low, high)
	if low == high {
		s = fmt.Sprintf("Amplification of all traffic: %s", low)
	}
	if m.AmplificationHigh.Unbounded() {
		s = fmt.Sprintf("Amplification of all traffic is at least %s and has no upper bound", low)
	}
	if m.Claimed > 0 {
		if strict := show(m.StrictHigh, factor); m.StrictHigh.Unbounded() {
			s += fmt.Sprintf("; by verified keys alone it is at least %s, without an upper bound", show(m.StrictLow, factor))
		} else {
			s += fmt.Sprintf("; by verified keys alone, between %s and %s", show(m.StrictLow, factor), strict)
		}
	}
	return s + "."
}

func coverage(m *aggregate.Measure) string {
	s := fmt.Sprintf("Coverage %s: verified %s, claimed %s; unattributable %s", show(m.Coverage, percent),
		of(m.Verified, m.Arrivals, percent), of(m.Claimed, m.Arrivals, percent), of(m.Unattributable.Total, m.Arrivals, percent))
	reasons := map[string]uint64{}
	m.Unattributable.Each(func(reason string, n uint64) { reasons[reason] = n })
	if list := reasonList(reasons); list != "" {
		s += " (" + list + ")"
	}
	return s + ". Read share " + show(m.ReadShare, percent) + "."
}

// reasonList prints tallies by reason, the largest first. Reasons are this
// program's own words, but they are printed like any text.
func reasonList(reasons map[string]uint64) string {
	names := make([]string, 0, len(reasons))
	for r, n := range reasons {
		if n > 0 {
			names = append(names, r)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b)) })
	for i, r := range names {
		names[i] = visible(r, 30, unsafeInMarkdown) + " " + whole(reasons[r])
	}
	return strings.Join(names, ", ")
}

func budgetLine(m *aggregate.Measure) string {
	b := &m.Budget
	if m.Attributable == 0 {
		return "Retry budget: without attributable arrivals it cannot be read."
	}
	if b.State == nil && untimed(m) {
		return "Retry budget: it could not be read, for the log gives too few of the times in system that a budget of concurrency is spent in."
	}
	if b.State == nil {
		return "Retry budget: it could not be read, for want of a full window with enough arrivals and an allowance."
	}
	what := "%s repeats of %s allowed in a window"
	switch b.Model {
	case "concurrency":
		what = "%s repeats in flight of %s allowed, in the mean of a window"
	case "tokens":
		what = "%s tokens of %s that may be spent"
	}
	s := fmt.Sprintf("Retry budget (%s): %s spent at its peak, "+what, b.Model, show(b.PeakConsumed, percent), show(b.Spent, number), show(b.Allowance, number))
	if b.ExhaustedAt != nil {
		s += "; first exhausted " + moment(*b.ExhaustedAt)
	} else {
		s += "; never exhausted"
	}
	switch {
	case blind(b) && untimed(m):
		s += ". Blind: too few keys are verified or too few times known for this reading to be relied on, and more may have been spent"
	case blind(b):
		s += ". Blind: too few keys are verified for this reading to be relied on"
	case untimed(m):
		s += ". Of " + of(m.Responses.Untimed, m.Arrivals, percent) + " of arrivals the time is not known, and not in it"
	}
	return s + "."
}

func deadLine(m *aggregate.Measure) string {
	r := &m.Responses
	see := sightOf(m)
	if see.none && dead(r) == 0 {
		return "Whether callers were still there to read their answers, this log does not show."
	}
	past := see.past(r)
	if past.none && dead(r) == 0 {
		return "Whether callers were still there to read their answers, this log does not show: they had deadlines, and it gives no times to judge them by."
	}
	shown := fmt.Sprintf("%s in system (%s of records can show a departure)", see.deadSeconds(r), show(r.Visibility, percent))
	answers := "there were no answers"
	if r.Answers > 0 {
		answers = past.share(dead(r), r.Answers) + " of answers"
	}
	line := fmt.Sprintf("Work for nobody: %s, %s.", answers, shown)
	if r.BeforeResponse > 0 {
		line += fmt.Sprintf(" Left before any answer: %s of arrivals.", see.share(r.BeforeResponse, m.Arrivals))
	}
	if r.Unjudged > 0 {
		line += fmt.Sprintf(" Of %s of arrivals it is not known whether they ended within their deadline: the log gives no time of them.", of(r.Unjudged, m.Arrivals, percent))
	}
	return line
}

// stampLine warns of stamps of whole seconds, where something rests on them.
func stampLine(r *aggregate.Report) string {
	m, in := &r.Total, &r.Input
	asked := m.RetryAfter != nil && m.RetryAfter.Asked > 0
	if in.Coarse == 0 || m.Repeats == 0 && (m.Responses.Expired == nil || *m.Responses.Expired == 0) && m.StaleArrivals == 0 && !asked {
		return ""
	}
	whose := "All stamps"
	if all := in.Arrivals + in.Duplicates; in.Coarse < all {
		whose = "The stamps of " + of(in.Coarse, all, percent) + " of arrivals"
	}
	return whose + " are whole seconds: which of a question's arrivals came first, what a repeat followed, who came back too early and what was stale or expired is known to a second."
}

// inputLine says what was read and what was left out.
func inputLine(r *aggregate.Report) string {
	in := &r.Input
	group := func(word string, reasons map[string]uint64) string {
		var n uint64
		for _, x := range reasons {
			n += x
		}
		if n == 0 {
			return word + " 0"
		}
		return fmt.Sprintf("%s %s (%s)", word, whole(n), reasonList(reasons))
	}
	duplicates := "duplicates " + whole(in.Duplicates)
	if in.Undecidable > 0 {
		duplicates += fmt.Sprintf(" (%s more cannot be told from arrivals, and count as such)", whole(in.Undecidable))
	}
	return fmt.Sprintf("%s lines (%s), %s arrivals; %s; %s; %s; late %s; clamped %s.", whole(in.Lines), size(in.Bytes), whole(in.Arrivals),
		duplicates, group("ignored", in.Ignored), group("quarantined", in.Quarantined), whole(in.Late), whole(in.Clamped))
}

// period is the range of the report in words.
func period(r *aggregate.Report) string {
	from, to, ok := rangeOf(r)
	if !ok {
		return "no arrivals"
	}
	return between(from, to)
}

// between is a stretch of time in words.
func between(from, to int64) string {
	end := "15:04:05"
	if from/86400 != (to-1)/86400 {
		end = "2006-01-02 15:04:05"
	}
	return fmt.Sprintf("%s to %s UTC (%s)", time.Unix(from, 0).UTC().Format("2006-01-02 15:04:05"), time.Unix(to, 0).UTC().Format(end), length(to-from))
}

func rangeOf(r *aggregate.Report) (from, to int64, ok bool) {
	a, err := time.Parse(time.RFC3339, r.From)
	b, err2 := time.Parse(time.RFC3339, r.To)
	return a.Unix(), b.Unix(), err == nil && err2 == nil && b.After(a)
}

// attributed prints a count that only attributable arrivals can add to: where
// there are none, it is not known.
func attributed(m *aggregate.Measure, n uint64) string {
	if n == 0 && m.Attributable == 0 && m.Arrivals > 0 {
		return unknown
	}
	return whole(n)
}

func questions(m *aggregate.Measure) section {
	if m.Arrivals == 0 {
		return section{}
	}
	t := &table{columns: []column{{"figure", words}, {"value", figures}, {"meaning", words}}}
	p := &m.PerQuestion
	t.add("arrivals", whole(m.Arrivals), "requests at the dependency")
	t.add("attributable", whole(m.Attributable), "with an accepted key; so is all below")
	t.add("questions", attributed(m, m.Questions), "distinct ones")
	t.add("originals", attributed(m, m.Originals), "that asked something new")
	t.add("repeats", attributed(m, m.Repeats), "that asked it again: at least so many")
	t.add("load factor", show(m.LoadFactor, factor), "attributable arrivals per original")
	t.add("amplification", show(m.Amplification, factor), "attributable arrivals per question")
	t.add("… if failed", show(m.AmplificationIfFailed, factor), "per question whose first arrival failed")
	t.add("per question", fmt.Sprintf("%s / %s / %s / %s", wholeOrNone(p.P50), wholeOrNone(p.P90), wholeOrNone(p.P99), wholeOrNone(p.Max)), "arrivals: p50 / p90 / p99 / most")
	t.add("fan-out", fmt.Sprintf("%s / %s", wholeOrNone(m.FanOut.P50), wholeOrNone(m.FanOut.Max)), "questions per key: p50 / most")
	t.add("answered", attributed(m, m.Answered), "questions with a success")
	t.add("double success", attributed(m, m.DoubleSuccess), "successes after one, of unsafe methods")
	t.add("stale", attributed(m, m.StaleArrivals), "past their question's known deadline")
	t.add("orphan attempts", attributed(m, m.OrphanAttempts), "originals that say they are a later try")
	t.add("reopened", attributed(m, m.Reopened), "originals with a key older than a horizon")
	a := &m.AttemptBudget
	t.add("overspent", attributed(m, a.Overspent), "beyond the attempt budget they carried")
	t.add("not decremented", attributed(m, a.NotDecremented), "attempt budgets that came back the same")
	t.add("increased", attributed(m, a.Increased), "attempt budgets that had grown")
	s := section{title: "Questions", table: t}
	if m.Claimed > 0 {
		s.notes = append(s.notes, "Claimed keys prove no author. A layer that makes new ones for each try looks like no amplification at all.")
	}
	if m.OrphanAttempts > 0 || m.Reopened > 0 {
		s.notes = append(s.notes, "Orphan attempts and reopened keys are signs that some originals are repeats in truth.")
	}
	return s
}

// exactRows is how many different counts of arrivals are shown one by one.
const exactRows = 16

func perQuestion(m *aggregate.Measure) section {
	h := m.PerQuestion.Histogram
	if len(h) == 0 {
		return section{}
	}
	upper := func(n uint64) uint64 { return n }
	if len(h) > exactRows {
		upper = func(n uint64) uint64 { // powers of two, as the counts above 32 are anyway
			to := uint64(1)
			for to < n {
				to *= 2
			}
			return to
		}
	}
	sums := map[uint64]uint64{}
	var total, most uint64
	for k, n := range h {
		at, err := strconv.ParseUint(k, 10, 64)
		if err != nil {
			continue
		}
		sums[upper(at)] += n
		total += n
	}
	var tops []uint64
	for to, n := range sums {
		tops, most = append(tops, to), max(most, n)
	}
	slices.Sort(tops)
	t := &table{columns: []column{{"arrivals", figures}, {"questions", figures}, {"share", figures}, {"", bar}}}
	for _, to := range tops {
		label := whole(to)
		if to > 2 && (to > 32 || len(h) > exactRows) {
			label = whole(to/2+1) + "–" + label
		}
		t.add(label, whole(sums[to]), of(sums[to], total, percent), barOf(float64(sums[to]), float64(most), 30))
	}
	return section{title: "Arrivals per question", table: t}
}

func hops(m *aggregate.Measure) section {
	if m.Arrivals == 0 {
		return section{}
	}
	h := &m.Hops
	s := section{title: "Who multiplies"}
	adjacent, ok := h.Adjacent.Value()
	above, ok2 := h.Above.Value()
	switch {
	case h.Reason != nil && *h.Reason == "no_attempt_numbers":
		s.lines = append(s.lines, "Which hop multiplies cannot be said: no record carries an attempt number of the hop before the dependency.")
	case h.Reason != nil && *h.Reason == "one_attempt_or_rewritten":
		s.lines = append(s.lines, "Which hop multiplies cannot be said: questions repeat although every attempt number is 1. Either the adjacent caller makes one attempt, or a proxy between it and this log writes the number anew.")
	case h.Reason != nil:
		s.lines = append(s.lines, "Which hop multiplies cannot be said: "+visible(*h.Reason, 60, unsafeInMarkdown)+".")
	case !ok || !ok2:
		s.lines = append(s.lines, "Which hop multiplies can be said in part only: no attributable arrival has attempt number 1.")
	case adjacent == 1 && above == 1:
		s.lines = append(s.lines, "No hop multiplies.")
	case adjacent >= above:
		s.lines = append(s.lines, "The adjacent caller multiplies most.")
	default:
		s.lines = append(s.lines, "Most is multiplied further out than the adjacent caller.")
	}
	t := &table{columns: []column{{"hop", words}, {"factor", figures}, {"meaning", words}}}
	add := func(hop string, f aggregate.Figure, format func(float64) string, meaning string) {
		if v := show(f, format); v != unknown {
			t.add(hop, v, meaning)
		}
	}
	add("adjacent", h.Adjacent, factor, "tries of the adjacent caller per call it makes")
	add("above", h.Above, factor, "calls per question, made by all that lies further out")
	add("origin", h.Origin, factor, "tries of the originator per question, by its own numbers")
	add("between", h.Between, factor, "arrivals per try of the originator")
	add("logger", h.Logger, factor, "tries of the proxy that wrote the log, per record")
	add("same peer", h.SamePeer, percent, "of repeats, by the peer of the arrival before")
	if len(t.rows) > 0 {
		s.table = t
	}
	return s
}

func repeatAfter(m *aggregate.Measure) section {
	if m.Repeats == 0 {
		return section{}
	}
	t := &table{columns: []column{{"the arrival before", words}, {"repeats", figures}, {"share", figures}}}
	type before struct {
		what string
		n    uint64
	}
	rows := []before{
		{"had lost its caller", m.RepeatAfter.Gone},
		{"got a 5xx", m.RepeatAfter.Error},
		{"got a 429 or 503", m.RepeatAfter.Overload},
		{"succeeded", m.RepeatAfter.Success},
		{"was still in flight", m.RepeatAfter.InFlight},
	}
	other := m.Repeats
	for _, x := range rows {
		other -= min(other, x.n)
	}
	rows = append(rows, before{"got something else, or no status", other})
	slices.SortStableFunc(rows, func(a, b before) int { return cmp.Compare(b.n, a.n) })
	for _, x := range rows {
		t.add(x.what, whole(x.n), of(x.n, m.Repeats, percent))
	}
	s := section{title: "What repeats followed", table: t}
	if 2*m.RepeatAfter.Success > m.Repeats {
		s.lines = append(s.lines, "Most repeats follow a success: that is polling, or one key used for several questions, rather than retries.")
	}
	g := &m.RetryGap
	between := fmt.Sprintf("Between successive arrivals of a question: p50 %s, p90 %s, p99 %s.", secondsOrNone(g.P50), secondsOrNone(g.P90), secondsOrNone(g.P99))
	if m.Responses.Untimed > 0 {
		between += " That is of those whose starts the log gives; where it gives no duration, it is not known what was still in flight."
	}
	s.notes = append(s.notes, between)
	return s
}

func retryAfter(m *aggregate.Measure) section {
	if m.Arrivals == 0 {
		return section{}
	}
	s := section{title: "Retry-After"}
	a, r := m.RetryAfter, &m.Responses
	switch {
	case a == nil:
		s.lines = append(s.lines, "Whether callers honour Retry-After cannot be said: the log has no place for that header.")
	case a.Asked == 0:
		s.lines = append(s.lines, "No answer asked for patience.")
	case a.Early == nil:
		s.lines = append(s.lines, fmt.Sprintf("Answers that asked for patience: %s. Who came again after one, and whether too early, is not known: the log gives no times.", whole(a.Asked)))
	default:
		line := fmt.Sprintf("Answers that asked for patience: %s. Questions that came again after one: %s, of them too early: %s (%s).",
			whole(a.Asked), timedCount(r, *a.Returned), timedCount(r, *a.Early), of(*a.Early, *a.Returned, percent))
		if r.Untimed > 0 {
			line += " Judged are those of which the log gives the end of that answer, and the start of what came after."
		}
		s.lines = append(s.lines, line)
	}
	return s
}

func responses(m *aggregate.Measure) section {
	if m.Arrivals == 0 {
		return section{}
	}
	r, see := &m.Responses, sightOf(m)
	past := see.past(r)
	t := &table{columns: []column{{"responses", words}, {"count", figures}, {"share", figures}, {"of", words}}}
	t.add("success", whole(r.Success), of(r.Success, r.Total, percent), "arrivals")
	t.add("refused", whole(r.Refused), of(r.Refused, r.Total, percent), "arrivals")
	t.add("answers", whole(r.Answers), of(r.Answers, r.Total, percent), "arrivals")
	t.add("gone before any response", see.count(r.BeforeResponse), see.share(r.BeforeResponse, r.Total), "arrivals")
	t.add("gone, answer undelivered", see.count(r.UndeliveredAnswer), see.share(r.UndeliveredAnswer, r.Total), "arrivals")
	t.add("gone during the response", see.count(r.DuringResponse), see.share(r.DuringResponse, r.Total), "arrivals")
	t.add("gone, point unknown", see.count(r.UnknownPoint), see.share(r.UnknownPoint, r.Total), "arrivals")
	expired, share := unknown, unknown
	if r.Expired != nil {
		judged := sight{all: r.Unjudged == 0}
		expired, share = judged.count(*r.Expired), judged.share(*r.Expired, r.Total)
	}
	t.add("expired (inferred)", expired, share, "arrivals")
	t.add("dead answers", past.count(dead(r)), past.share(dead(r), r.Answers), "answers")
	t.add("dead time", see.deadSeconds(r), see.deadTimeShare(r), "time in system")
	t.add("time of repeats", timed(r, r.RepeatSeconds), timeShare(r.RepeatSeconds, r.BusySeconds), "time in system")
	t.add("time in system", timed(r, r.BusySeconds), "", "")
	t.add("goodput", marked(atMost, show(r.Goodput, number), !past.all)+"/s", "", "successes with a reader")
	return section{title: "Responses", table: t, notes: []string{visibilityNote(r)}}
}

func visibilityNote(r *aggregate.Responses) string {
	return fmt.Sprintf("Visibility %s: the share of records able to show that a caller left.", show(r.Visibility, percent))
}

// dead is the number of answers that nobody was there to read. A report has it
// as a share of the answers, and the count follows from that exactly. It is not
// the sum of the kinds of departure: those count refused arrivals too.
func dead(r *aggregate.Responses) uint64 {
	share, _ := r.DeadShare.Value()
	return uint64(math.Round(share * float64(r.Answers)))
}

// timed prints a time, which is a lower bound where that of some arrivals is not known.
func timed(r *aggregate.Responses, v aggregate.Figure) string {
	return marked(atLeast, show(v, seconds), r.Untimed > 0)
}

// timedCount prints a count that rests on times, likewise.
func timedCount(r *aggregate.Responses, n uint64) string {
	return marked(atLeast, whole(n), r.Untimed > 0)
}

// timeShare is the share of the time that is known.
func timeShare(a, b aggregate.Figure) string {
	part, ok := a.Value()
	all, some := b.Value()
	if !ok || !some || all == 0 {
		return unknown
	}
	return percent(part / all)
}

func worst(r *aggregate.Report) section {
	if len(r.Worst) == 0 {
		return section{}
	}
	t := &table{columns: []column{{"key hash", words}, {"arrivals", figures}, {"first", words}, {"for", spare}, {"originator", name}, {"route", name}, {"peers", name}}}
	several := len(r.Dependencies) > 1
	if several {
		t.columns = append(t.columns, column{"dependency", name})
	}
	for _, w := range r.Worst {
		hash, first, span := w.KeyHash, unknown, unknown
		if len(hash) > 12 {
			hash = hash[:12]
		}
		hash = visible(hash, 12, unsafeInMarkdown)
		a, err := time.Parse(time.RFC3339Nano, w.First)
		b, err2 := time.Parse(time.RFC3339Nano, w.Last)
		if err == nil && err2 == nil {
			first, span = a.UTC().Format("01-02 15:04:05"), seconds(b.Sub(a).Seconds())
		}
		row := []string{hash, whole(uint64(w.Arrivals)), first, span, w.Originator, w.Route, strings.Join(w.Peers, ", ")}
		if several {
			row = append(row, w.Dependency)
		}
		t.add(row...)
	}
	return section{title: "Worst questions", table: t, notes: []string{"Key hashes are cut to 12 characters; the JSON report has them whole."}}
}

// sight is what a measure's records can show of callers that left.
type sight struct{ all, none bool }

func sightOf(m *aggregate.Measure) sight {
	v, ok := m.Responses.Visibility.Value()
	return sight{all: ok && v == 1, none: !ok || v == 0}
}

// past is what they can show of answers that nobody was there to read, whose deadline had
// passed included.
func (s sight) past(r *aggregate.Responses) sight {
	_, ok := r.DeadShare.Value()
	return sight{all: s.all && r.Unjudged == 0, none: s.none || r.Unjudged > 0 && !ok}
}

// mark marks what is a lower bound, unless all of it can be seen.
func (s sight) mark(figure string) string { return marked(atLeast, figure, !s.all) }

func (s sight) count(n uint64) string {
	if s.none && n == 0 {
		return unknown
	}
	return s.mark(whole(n))
}

func (s sight) share(a, b uint64) string {
	if s.none && a == 0 {
		return unknown
	}
	return s.mark(of(a, b, percent))
}

func (s sight) deadSeconds(r *aggregate.Responses) string {
	v, ok := r.DeadSeconds.Value()
	if !ok || s.none && v == 0 {
		return unknown
	}
	return marked(atLeast, seconds(v), !s.all || r.Untimed > 0)
}

func (s sight) deadTimeShare(r *aggregate.Responses) string {
	if v, ok := r.DeadSeconds.Value(); !ok || s.none && v == 0 {
		return unknown
	}
	return s.mark(timeShare(r.DeadSeconds, r.BusySeconds))
}

// peakOf prints the most that was spent of a budget. Without an attributable
// arrival nothing is known to be spent, and nothing not to be.
func peakOf(b *aggregate.Budget, attributable uint64, blind bool) string {
	s := show(b.PeakConsumed, percent)
	if s == unknown || attributable == 0 {
		return unknown
	}
	if blind {
		s += " blind"
	}
	return s
}

// untimed says that arrivals are missing in a budget that is spent in times.
func untimed(m *aggregate.Measure) bool {
	return m.Budget.Model == budget.DefaultConcurrency().Name() && m.Responses.Untimed > 0
}

// orTimes is the other reason for which a budget may be blind.
func orTimes(m *aggregate.Measure) string {
	if untimed(m) {
		return " or too few times known"
	}
	return ""
}

func blind(b *aggregate.Budget) bool { return b.State != nil && *b.State == budget.Blind }
