package main

import (
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/targetside/auditor/lab"
)

// writeArms prints arms side by side: what the whole log of each says, then what was
// true of every route in every phase. Rates are at full size.
func writeArms(w io.Writer, s *lab.File, results []*labResult) {
	rows := [][]string{{"arm", "asked", "arrivals", "questions", "per question", "most", "dead", "audit"}}
	for _, r := range results {
		t := r.truth.Total
		most := unknown
		if t.PerQuestion.Max != nil {
			most = fmt.Sprint(*t.PerQuestion.Max)
		}
		audit := "= truth"
		if len(r.wrong) > 0 {
			audit = fmt.Sprintf("≠ truth (%d)", len(r.wrong))
		}
		rows = append(rows, []string{r.arm.Name, fmt.Sprint(r.truth.Asked), fmt.Sprint(t.Arrivals), fmt.Sprint(t.Questions),
			of(t.Attributable, t.Questions, hundredths), most, of(t.Dead(), t.Responses.Answers, percent), audit})
	}
	fmt.Fprintln(w)
	writeRows(w, rows)
	for _, phase := range phasesOf(results) {
		for i := range s.Routes {
			route := s.Routes[i].Name
			rows := [][]string{{"arm", "asked/s", "arrivals/s", "per question", "answered", "useful/s", "for nobody", "refused", "left for"}}
			for _, r := range results {
				for _, p := range r.truth.Phases {
					x := p.Routes[route]
					if p.Phase != phase || x.Asked+x.Arrivals == 0 {
						continue
					}
					oldest := unknown
					if x.ForNobody > 0 {
						oldest = fmt.Sprintf("%.1f s", x.Oldest)
					}
					rows = append(rows, []string{r.arm.Name, rate(x.Asking), rate(x.Load), of(x.Arrivals, x.Asked, hundredths), of(x.Answered, x.Asked, percent),
						rate(x.UsefulRate), of(x.ForNobody, x.Completed, percent), of(x.Refused, x.Arrivals, percent), oldest})
				}
			}
			if len(rows) == 1 {
				continue
			}
			fmt.Fprintf(w, "\nroute %s, phase %s\n", route, phase)
			writeRows(w, rows)
		}
	}
	fmt.Fprintln(w)
}

// phasesOf lists the phases of all arms, in order.
func phasesOf(results []*labResult) []string {
	var names []string
	for _, r := range results {
		for _, p := range r.truth.Phases {
			if !slices.Contains(names, p.Phase) {
				names = append(names, p.Phase)
			}
		}
	}
	return names
}

func rate(v float64) string {
	if v >= 1e6 {
		return fmt.Sprintf("%.2f M", v/1e6)
	}
	return fmt.Sprintf("%.0f", v)
}

func hundredths(v float64) string { return fmt.Sprintf("%.2f", v) }

// writeRows prints a table: its first column to the left, the others to the right.
func writeRows(w io.Writer, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range rows {
		line := fmt.Sprintf("%-*s", width[0], r[0])
		for i, c := range r[1:] {
			line += fmt.Sprintf("  %*s", width[i+1], c)
		}
		fmt.Fprintln(w, line)
	}
}
