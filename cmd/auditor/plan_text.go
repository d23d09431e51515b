package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/targetside/auditor/aggregate/budget"
)

// writePlan prints a plan for people.
func writePlan(w io.Writer, p *budget.Plan) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "layer\ttries\tarrivals per call\tone call takes up to")
	for i := range p.Layers {
		l := &p.Layers[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", l.Name, triesOf(l), decimals(l.Arrivals), takes(l.WaitSeconds))
	}
	fmt.Fprintln(t)
	line := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("arrivals per question", "%s (chosen %s)", decimals(*p.WorstCase), decimals(p.Chosen))
	owners := "nobody"
	if len(p.Owners) > 0 {
		owners = strings.Join(p.Owners, ", ")
	}
	line("who retries", "%s", owners)
	line("all tries take", "%s%s", takes(p.WaitSeconds), against(p.DeadlineSeconds, "the caller waits %s", inTime))
	if p.WorstPerSecond != nil {
		line("load in the worst case", "%s/s%s", decimals(*p.WorstPerSecond), against(p.CapacityPerSecond, "capacity %s/s", decimals))
	}
	if p.Affordable != nil {
		line("affordable", "%s arrivals per question", decimals(*p.Affordable))
	}
	if p.AnswerSeconds != nil {
		line("a full queue is answered after", "%s%s", inTime(*p.AnswerSeconds), against(p.CallerTimeoutSeconds, "the caller waits %s", inTime))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(p.Findings) > 0 {
		b.WriteString("\n")
		for _, f := range p.Findings {
			fmt.Fprintf(&b, "- %s\n", f.Text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// triesOf is what a layer declares.
func triesOf(l *budget.LayerPlan) string {
	switch {
	case l.Budget == nil:
		return decimals(l.Factor)
	case *l.BudgetOf == budget.All:
		return decimals(100**l.Budget) + " % of all"
	}
	return decimals(100**l.Budget) + " % more"
}

// against prints what a figure is compared with, if that is declared.
func against(v *float64, format string, show func(float64) string) string {
	if v == nil {
		return ""
	}
	return " (" + fmt.Sprintf(format, show(*v)) + ")"
}

func takes(seconds *float64) string {
	if seconds == nil {
		return unknown
	}
	return inTime(*seconds)
}

// inTime prints seconds, or milliseconds below one.
func inTime(s float64) string {
	if s < 1 {
		return decimals(s*1000) + " ms"
	}
	return decimals(s) + " s"
}

// decimals prints a number of 0 or more with as many decimals as it has, at most
// three, or as many as show two of its digits.
func decimals(v float64) string {
	if v >= 1e15 {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	scale := 1e3
	for v > 0 && v < 10/scale {
		scale *= 10
	}
	s := strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
	whole, rest, point := strings.Cut(s, ".")
	if whole = grouped(whole); point {
		whole += "." + rest
	}
	return whole
}
