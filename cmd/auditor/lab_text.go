package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/targetside/auditor/lab"
)

// writeArms prints arms side by side: what the whole log of each says, then what was
// true of every route in every phase. Rates are at full size.
func writeArms(w io.Writer, s *lab.File, results []*labResult) {
	rows := [][]string{{"arm", "asked", "arrivals", "questions", "per question", "most", "dead", "audit"}}
	for _, r := range results {
		t := r.truth.Total
		most := "–"
		if t.PerQuestion.Max != nil {
			most = fmt.Sprint(*t.PerQuestion.Max)
		}
		audit := "= truth"
		if len(r.wrong) > 0 {
			audit = fmt.Sprintf("≠ truth (%d)", len(r.wrong))
		}
		rows = append(rows, []string{r.arm.Name, fmt.Sprint(r.truth.Asked), fmt.Sprint(t.Arrivals), fmt.Sprint(t.Questions),
			fmt.Sprintf("%.2f", t.Amplification()), most, percentage(t.DeadShare()), audit})
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
					nobody, oldest := 0.0, "–"
					if x.Completed > 0 {
						nobody = float64(x.ForNobody) / float64(x.Completed)
					}
					if x.ForNobody > 0 {
						oldest = fmt.Sprintf("%.1f s", x.Oldest)
					}
					refused := 0.0
					if x.Arrivals > 0 {
						refused = float64(x.Refused) / float64(x.Arrivals)
					}
					rows = append(rows, []string{r.arm.Name, rate(x.Asking), rate(x.Load), fmt.Sprintf("%.2f", x.PerQuestion),
						percentage(x.Success), rate(x.UsefulRate), percentage(nobody), percentage(refused), oldest})
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
	seen := map[string]bool{}
	for _, r := range results {
		for _, p := range r.truth.Phases {
			if !seen[p.Phase] {
				seen[p.Phase] = true
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

func percentage(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// writeRows prints a table: its first column to the left, the others to the right.
func writeRows(w io.Writer, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			switch i {
			case 0:
				line.WriteString(c + pad)
			default:
				line.WriteString("  " + pad + c)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}
