package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// unsafeInMarkdown are the plain characters that could end a code span or a
// table's cell, or begin a link or HTML.
const unsafeInMarkdown = "|`<>[]"

// writeMarkdown prints a report for an incident document: what writeText says,
// as headings and tables, and how far the figures can be trusted. Names out of
// logs stand in code spans, in which nothing is a link, a mention or HTML.
func writeMarkdown(w io.Writer, r *aggregate.Report, o renderOptions) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Retry audit, %s\n\n## Summary\n\n", prose(period(r)))
	for _, s := range summary(r) {
		fmt.Fprintf(&b, "- %s\n", prose(s))
	}
	b.WriteString("\n## Input\n\n")
	names := make([]string, len(r.Dependencies))
	for i := range r.Dependencies {
		names[i] = code(r.Dependencies[i].Name)
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "- Dependency: %s\n", few(names))
	}
	fmt.Fprintf(&b, "- %s\n", prose(inputLine(r)))
	if len(o.Files) > 0 {
		files := make([]string, len(o.Files))
		for i, f := range o.Files {
			files[i] = code(fileName(f))
		}
		fmt.Fprintf(&b, "- From: %s\n", few(files))
	}
	for _, s := range sections(r, o) {
		fmt.Fprintf(&b, "\n## %s\n", prose(s.title))
		for _, x := range s.lines {
			fmt.Fprintf(&b, "\n%s\n", prose(x))
		}
		if s.table != nil {
			markdownTable(&b, s.table)
		}
		for _, x := range s.notes {
			fmt.Fprintf(&b, "\n%s\n", prose(x))
		}
	}
	b.WriteString("\n## Method and limits\n\n")
	for _, x := range method(r, o) {
		fmt.Fprintf(&b, "- %s\n", prose(x))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// code shows a text out of a log.
func code(s string) string {
	if s == "" {
		return "*none*"
	}
	return "`" + visible(s, 80, unsafeInMarkdown) + "`"
}

var proseEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "*", `\*`, "_", `\_`, "#", `\#`)

// prose shows a text of our own.
func prose(s string) string { return proseEscapes.Replace(s) }

func markdownTable(b *bytes.Buffer, t *table) {
	row := func(cell func(i int) string) {
		for i, c := range t.columns {
			if c.kind != bar {
				b.WriteString("| " + cell(i) + " ")
			}
		}
		b.WriteString("|\n")
	}
	b.WriteByte('\n')
	row(func(i int) string { return prose(t.columns[i].title) })
	row(func(i int) string {
		if k := t.columns[i].kind; k == figures || k == spare {
			return "---:"
		}
		return "---"
	})
	for _, cells := range t.rows {
		row(func(i int) string {
			if t.columns[i].kind == name {
				return code(cells[i])
			}
			return prose(cells[i])
		})
	}
}

// method says how the figures come about, how sure they are, and what they leave
// out.
func method(r *aggregate.Report, o renderOptions) []string {
	m, in := &r.Total, &r.Input
	horizon := "one horizon"
	if o.Horizon > 0 {
		horizon = "one horizon (" + length(int64(o.Horizon.Seconds())) + ")"
	}
	out := []string{
		"An arrival is one request at the dependency. It repeats a question if an arrival with the same key, route and discriminator started at most " + horizon +
			" before it, and is an original otherwise. Load factor = attributable arrivals / originals; amplification = attributable arrivals / distinct questions.",
		"Arrivals without an accepted key are never counted as questions. The bounds on all traffic take each of them as a question of its own (low) and each as a repeat (high).",
		"Counts are exact for what was read: nothing is sampled. Where coverage is below 100 %, repeats are a lower bound. Quantiles are by nearest rank.",
		"– is a figure that this log cannot give; it does not mean 0.",
	}
	if _, ok := o.Budget.Grant.(budget.Ratio); ok {
		out = append(out, "Excess = the repeats of a part − the share of its own originals that the budget grants as repeats; below 0 there is room left.")
	}
	if m.Arrivals > 0 {
		sure := fmt.Sprintf("How sure: %s of the arrivals prove who asked, %s only claim it, %s could not be attributed.",
			of(m.Verified, m.Arrivals, percent), of(m.Claimed, m.Arrivals, percent), of(m.Unattributable.Total, m.Arrivals, percent))
		if see := sightOf(m); see.none {
			sure += " No record can show that its caller left, so work for nobody is not seen."
		} else if !see.all {
			sure += fmt.Sprintf(" %s of the records can show that their caller left, so figures on that are lower bounds (≥).", show(m.Responses.Visibility, percent))
		}
		out = append(out, sure)
	}
	var bad uint64
	for _, n := range in.Quarantined {
		bad += n
	}
	if bad > 0 {
		out = append(out, fmt.Sprintf("Records not read: %s (%s). They are in no figure; read share %s.", whole(bad), reasonList(in.Quarantined), show(m.ReadShare, percent)))
	} else {
		out = append(out, "Records not read: none.")
	}
	var ignored uint64
	for _, n := range in.Ignored {
		ignored += n
	}
	if ignored > 0 {
		out = append(out, fmt.Sprintf("Records that are no arrivals: %s (%s).", whole(ignored), reasonList(in.Ignored)))
	}
	if in.Late > 0 {
		out = append(out, fmt.Sprintf("Late: %s. They came after their second had been closed, and count as unattributable.", whole(in.Late)))
	}
	if in.Clamped > 0 {
		out = append(out, fmt.Sprintf("Clamped: %s. They took so long that they count in a second after their start.", whole(in.Clamped)))
	}
	return append(out, "What began before the log, or went on after it, is not seen: the first and the last questions may have more arrivals than were counted.")
}
