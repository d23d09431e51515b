package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/targetside/auditor/aggregate"
)

const (
	textWidth = 96
	widest    = 60 // columns of a name where there is room
	readable  = 20 // columns of a name that other columns are kept for
	narrowest = 8  // columns of a name at least
	indent    = "  "
)

// writeText prints a report for a terminal, without colour: first what an
// engineer on call has to know, then the tables it is read from.
func writeText(w io.Writer, r *aggregate.Report, o renderOptions) error {
	_, err := w.Write(textReport(r, o, textWidth))
	return err
}

// textReport keeps to width columns, 80 or more.
func textReport(r *aggregate.Report, o renderOptions, width int) []byte {
	var b bytes.Buffer
	names := make([]string, len(r.Dependencies))
	for i := range r.Dependencies {
		names[i] = visible(orNone(r.Dependencies[i].Name), 30, "")
	}
	what := "Audit"
	if len(names) > 0 {
		what += " of " + few(names)
	}
	wrap(&b, "", what+", "+period(r), width)
	b.WriteByte('\n')
	for _, s := range summary(r) {
		wrap(&b, "", s, width)
	}
	b.WriteByte('\n')
	wrap(&b, "", "Read: "+inputLine(r), width)
	if len(o.Files) > 0 {
		files := make([]string, len(o.Files))
		for i, f := range o.Files {
			files[i] = visible(fileName(f), widest, "")
		}
		wrap(&b, "", "From: "+few(files), width)
	}
	for _, s := range sections(r, o) {
		fmt.Fprintf(&b, "\n%s\n", s.title)
		for _, x := range s.lines {
			wrap(&b, indent, x, width)
		}
		if s.table != nil {
			layOut(&b, s.table, width)
		}
		for _, x := range s.notes {
			wrap(&b, indent, x, width)
		}
	}
	return b.Bytes()
}

// few joins texts, and says how many more there are where there are many.
func few(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

func fileName(f string) string {
	if f == "-" {
		return "standard input"
	}
	return f
}

// orNone stands in for a name that is empty.
func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// wrap prints prose in lines of at most width columns; further lines of it are
// set in.
func wrap(b *bytes.Buffer, lead, text string, width int) {
	line, used := lead, columnsOf(lead)
	empty := true
	for _, word := range strings.Fields(text) {
		n := columnsOf(word)
		if !empty && used+1+n > width {
			b.WriteString(line + "\n")
			line, used, empty = lead+indent, columnsOf(lead+indent), true
		}
		if !empty {
			line, used = line+" ", used+1
		}
		line, used, empty = line+word, used+n, false
	}
	b.WriteString(line + "\n")
}

// layOut prints a table. Where it would be too wide, names give way down to a
// readable length, then bars and spare columns go, and then names give way again.
func layOut(b *bytes.Buffer, t *table, width int) {
	const gap = 2
	widths := make([]int, len(t.columns)) // 0: left out
	for i, c := range t.columns {
		widths[i] = columnsOf(c.title)
		for _, row := range t.rows {
			n := columnsOf(row[i])
			if c.kind == name {
				n = columnsOf(visible(orNone(row[i]), widest, ""))
			}
			widths[i] = max(widths[i], n)
		}
	}
	tooWide := func() bool {
		total := len(indent) - gap
		for _, w := range widths {
			if w > 0 {
				total += w + gap
			}
		}
		return total > width
	}
	narrow := func(least int) {
		for tooWide() {
			most := -1
			for i, c := range t.columns {
				if c.kind == name && widths[i] > least && (most < 0 || widths[i] > widths[most]) {
					most = i
				}
			}
			if most < 0 {
				return
			}
			widths[most]--
		}
	}
	narrow(readable)
	for i, c := range t.columns {
		if (c.kind == bar || c.kind == spare) && tooWide() {
			widths[i] = 0
		}
	}
	narrow(narrowest)
	row := func(cell func(i int) string) {
		line := indent
		for i, c := range t.columns {
			if widths[i] == 0 {
				continue
			}
			text := cell(i)
			pad := strings.Repeat(" ", max(0, widths[i]-columnsOf(text)))
			if c.kind == figures || c.kind == spare {
				line += pad + text
			} else {
				line += text + pad
			}
			line += strings.Repeat(" ", gap)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row(func(i int) string { return visible(t.columns[i].title, max(widths[i], 1), "") })
	for _, cells := range t.rows {
		row(func(i int) string {
			if t.columns[i].kind == name {
				return visible(orNone(cells[i]), widths[i], "")
			}
			return cells[i]
		})
	}
}
