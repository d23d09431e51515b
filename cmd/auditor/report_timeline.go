package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// mostSlots is how many rows a timeline has at most.
const mostSlots = 20

// slot is one row of the timeline: some windows put together from what adds up
// (counts) or has a largest (the budget's peak). Distinct questions do neither,
// so a row has none.
type slot struct {
	from, to int64 // Unix seconds, within the report

	arrivals, attributable, verified, originals, answers, dead uint64
	// visible are the records able to show a departure, and good the successes with
	// a reader; both are shares and rates in a window, so that sums of them are rounded.
	visible, good float64

	see    sight
	some   bool
	budget aggregate.Budget
	blind  bool // in some window
}

func (s *slot) add(m *aggregate.Measure, seconds int64) {
	see := sightOf(m).past(&m.Responses)
	if m.Arrivals > 0 {
		if s.arrivals == 0 {
			s.see = see
		}
		s.see = sight{all: s.see.all && see.all, none: s.see.none && see.none}
	}
	s.arrivals += m.Arrivals
	s.attributable += m.Attributable
	s.verified += m.Verified
	s.originals += m.Originals
	s.answers += m.Responses.Answers
	s.dead += dead(&m.Responses)
	visibility, _ := m.Responses.Visibility.Value()
	s.visible += visibility * float64(m.Responses.Total)
	good, _ := m.Responses.Goodput.Value()
	s.good += good * float64(seconds)
	if v, ok := m.Budget.PeakConsumed.Value(); ok {
		if old, _ := s.budget.PeakConsumed.Value(); !s.some || v > old {
			s.some, s.budget = true, m.Budget
		}
		s.blind = s.blind || blind(&m.Budget)
	}
}

// per is a count by the seconds of the row.
func (s *slot) per(n float64) float64 { return n / float64(s.to-s.from) }

// stepFor returns the length of a row: a multiple of the windows' length that
// gives at most so many rows.
func stepFor(from, to, most int64) int64 {
	slots := func(step int64) int64 { return (to-1)/step - from/step + 1 }
	for _, step := range [...]int64{10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200} {
		if (step >= 60 || to-from < 600) && slots(step) <= most {
			return step
		}
	}
	step := int64(86400)
	for slots(step) > most {
		step *= 2
	}
	return step
}

// slotsOf puts a report's windows together to at most so many rows of step seconds;
// none without a range.
func slotsOf(r *aggregate.Report, most int64) (slots []slot, step int64) {
	from, to, ok := rangeOf(r)
	if !ok || from < 0 || len(r.Windows) == 0 {
		return nil, 0
	}
	step = stepFor(from, to, most)
	first := from / step
	slots = make([]slot, (to-1)/step-first+1)
	for i := range slots {
		begin := (first + int64(i)) * step
		slots[i].from, slots[i].to = max(begin, from), min(begin+step, to)
	}
	for i := range r.Windows {
		begin, end, ok := spanOf(&r.Windows[i])
		if n := begin/step - first; ok && n >= 0 && n < int64(len(slots)) {
			slots[n].add(&r.Windows[i].Measure, end-begin)
		}
	}
	return slots, step
}

// spanOf is the time that a window is of, in Unix seconds.
func spanOf(w *aggregate.Window) (from, to int64, ok bool) {
	a, err := time.Parse(time.RFC3339, w.From)
	b, err2 := time.Parse(time.RFC3339, w.To)
	return a.Unix(), b.Unix(), err == nil && err2 == nil && b.After(a)
}

// clockOf is how moments of a range are written, at least so many seconds apart.
func clockOf(from, to, apart int64) string {
	switch {
	case apart >= 86400:
		return "2006-01-02"
	case from/86400 != (to-1)/86400:
		return "01-02 15:04"
	case apart < 60:
		return "15:04:05"
	}
	return "15:04"
}

func timeline(r *aggregate.Report) section {
	slots, step := slotsOf(r, mostSlots)
	if len(slots) == 0 {
		return section{}
	}
	label := clockOf(slots[0].from, slots[len(slots)-1].to, step)
	var most float64
	for i := range slots {
		most = max(most, slots[i].per(float64(slots[i].arrivals)))
	}
	t := &table{columns: []column{{"from", words}, {"arrivals/s", figures}, {"", bar}, {"originals/s", figures}, {"load f.", figures}, {"dead share", figures}, {"budget", figures}, {"coverage", figures}}}
	notes := []string{"Arrivals stand where they started, budgets (the most spent) where their records were written."}
	for i := range slots {
		s := &slots[i]
		originals := unknown
		if s.attributable > 0 || s.arrivals == 0 {
			originals = number(s.per(float64(s.originals)))
		}
		rate := s.per(float64(s.arrivals))
		t.add(time.Unix(s.from, 0).UTC().Format(label), number(rate), barOf(rate, most, 12), originals,
			of(s.attributable, s.originals, factor), s.see.share(s.dead, s.answers), peakOf(&s.budget, s.attributable, s.blind), of(s.attributable, s.arrivals, percent))
	}
	if slices.ContainsFunc(slots, func(s slot) bool { return s.blind && s.attributable > 0 }) {
		notes = append(notes, "Blind: too few keys were verified"+orTimes(&r.Total)+", in part of the row at least, for that budget to be relied on.")
	}
	return section{title: fmt.Sprintf("Timeline, a row is %s, UTC", length(step)), table: t, notes: notes}
}

// barOf draws v in proportion to most. A little of something is not nothing.
func barOf(v, most float64, width int) string {
	if v <= 0 || most <= 0 {
		return ""
	}
	out := make([]rune, max(1, int(v/most*float64(width)+0.5)))
	for i := range out {
		out[i] = '█'
	}
	return string(out)
}
