package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/targetside/auditor/lab/drill"
)

// writeDrill prints a drill for people.
func writeDrill(w io.Writer, r *drill.Report, handed *drill.Handed) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s of %s (%s), %s to %s UTC\n\n", r.Fault, r.Route, r.Dependency, r.Upstream,
		r.From.Format(time.DateTime), r.To.Format(time.TimeOnly))
	rows := [][]string{{"share", "requests", "questions/s", "failed", "repeats/s", "repeats per question", "as a count", "repeated", "within"}}
	if r.Control != "" {
		rows[0] = append(rows[0], "control repeated")
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		f := &s.Route
		name := "as it is"
		if s.Share > 0 {
			name = decimals(100*s.Share) + " %"
		}
		row := []string{name, fmt.Sprint(f.Arrivals), tenths(f.QuestionsPerSecond), fmt.Sprint(f.Failed), tenths(f.RepeatsPerSecond),
			hundredthsOf(f.RepeatsPerQuestion), hundredthsOf(f.IfCounted), of(uint64(f.Followed), uint64(f.Could), percent), unknown}
		if f.DelayP90 != nil {
			row[len(row)-1] = inTime(math.Round(*f.DelayP90*1000) / 1000)
		}
		if s.Control != nil {
			row = append(row, of(uint64(s.Control.Followed), uint64(s.Control.Could), percent))
		}
		rows = append(rows, row)
	}
	writeRows(&b, rows)
	a := &r.Answers
	fmt.Fprintln(&b)
	for _, x := range [][2]string{{"ceiling", a.Ceiling.Says}, {"scope", a.Scope.Says}, {"once spent", a.Spent.Says}, {"alert", a.Alert.Says}} {
		fmt.Fprintf(&b, "%-10s  %s\n", x[0], x[1])
	}
	fmt.Fprintf(&b, "\n%s requests; records: %s written, %s pushed, %s lost.\n", grouped(fmt.Sprint(r.Requests)),
		grouped(fmt.Sprint(handed.Written)), grouped(fmt.Sprint(handed.Pushed)), grouped(fmt.Sprint(handed.Lost)))
	if failed, passed, failedBefore, passedBefore := r.WithoutFault(); failed > 0 {
		fmt.Fprintf(&b, "By itself, without a fault, %s of %s requests of the route failed; %s of %s before the first step.\n", grouped(fmt.Sprint(failed)),
			grouped(fmt.Sprint(passed)), grouped(fmt.Sprint(failedBefore)), grouped(fmt.Sprint(passedBefore)))
	}
	if !r.Whole {
		fmt.Fprintln(&b, "It was ended before its last step.")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func tenths(v float64) string { return fmt.Sprintf("%.1f", v) }

func hundredthsOf(v *float64) string {
	if v == nil {
		return unknown
	}
	return hundredths(*v)
}
