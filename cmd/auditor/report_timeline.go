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
	arrivals, attributable, originals, answers, dead uint64

	see    sight
	some   bool
	budget aggregate.Budget
	blind  bool // in some window
}

func (s *slot) add(m *aggregate.Measure) {
	see := sightOf(m)
	if m.Arrivals > 0 {
		if s.arrivals == 0 {
			s.see = see
		}
		s.see = sight{all: s.see.all && see.all, none: s.see.none && see.none}
	}
	s.arrivals += m.Arrivals
	s.attributable += m.Attributable
	s.originals += m.Originals
	s.answers += m.Responses.Answers
	s.dead += dead(&m.Responses)
	if v, ok := m.Budget.PeakConsumed.Value(); ok {
		if old, _ := s.budget.PeakConsumed.Value(); !s.some || v > old {
			s.some, s.budget = true, m.Budget
		}
		s.blind = s.blind || blind(&m.Budget)
	}
}

// stepFor returns the length of a row: a multiple of the windows' length that
// gives few enough rows.
func stepFor(from, to int64) int64 {
	slots := func(step int64) int64 { return (to-1)/step - from/step + 1 }
	for _, step := range [...]int64{10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200} {
		if (step >= 60 || to-from < 600) && slots(step) <= mostSlots {
			return step
		}
	}
	step := int64(86400)
	for slots(step) > mostSlots {
		step *= 2
	}
	return step
}

func timeline(r *aggregate.Report) section {
	from, to, ok := rangeOf(r)
	if !ok || from < 0 || len(r.Windows) == 0 {
		return section{}
	}
	step := stepFor(from, to)
	first := from / step
	slots := make([]slot, (to-1)/step-first+1)
	for i := range r.Windows {
		at, err := time.Parse(time.RFC3339, r.Windows[i].From)
		if n := at.Unix()/step - first; err == nil && n >= 0 && n < int64(len(slots)) {
			slots[n].add(&r.Windows[i].Measure)
		}
	}
	label := "15:04"
	if step < 60 {
		label = "15:04:05"
	}
	if from/86400 != (to-1)/86400 {
		label = "01-02 15:04"
	}
	if step >= 86400 {
		label = "2006-01-02"
	}
	rates := make([]float64, len(slots))
	var most float64
	for i := range slots {
		begin := (first + int64(i)) * step
		rates[i] = float64(slots[i].arrivals) / float64(min(begin+step, to)-max(begin, from))
		most = max(most, rates[i])
	}
	t := &table{columns: []column{{"from", words}, {"arrivals/s", figures}, {"", bar}, {"originals/s", figures}, {"load f.", figures}, {"dead share", figures}, {"budget", figures}, {"coverage", figures}}}
	notes := []string{"Arrivals stand where they started, budgets (the most spent) where their records were written."}
	for i := range slots {
		s := &slots[i]
		begin := (first + int64(i)) * step
		originals := unknown
		if s.attributable > 0 || s.arrivals == 0 {
			originals = number(float64(s.originals) / float64(min(begin+step, to)-max(begin, from)))
		}
		t.add(time.Unix(max(begin, from), 0).UTC().Format(label), number(rates[i]), barOf(rates[i], most, 12), originals,
			of(s.attributable, s.originals, factor), s.see.share(s.dead, s.answers), peakOf(&s.budget, s.attributable, s.blind), of(s.attributable, s.arrivals, percent))
	}
	if slices.ContainsFunc(slots, func(s slot) bool { return s.blind && s.attributable > 0 }) {
		notes = append(notes, "Blind: too few keys were verified, in part of the row at least, for that budget to be relied on.")
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
