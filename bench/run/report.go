package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// truth is the part of truth.json that the answers are held against.
type truth struct {
	Lines        int64 `json:"lines"`
	Bytes        int64 `json:"bytes"`
	Attributable int64 `json:"attributable"`
	Questions    int64 `json:"questions"`
	Success      int64 `json:"success"`
	Failed       int64 `json:"failed"`
	Disconnected struct {
		Total int64 `json:"total"`
	} `json:"disconnected"`
}

// none marks a count that a program does not give.
const none = -1

// answer is what a program said, as far as it can be compared.
type answer struct {
	arrivals, keyed, questions, cells, cellKeys, failed, success, disconnected int64
}

// readReport reads the auditor's report.
func readReport(text []byte) (answer, error) {
	var r struct {
		Schema string `json:"schema"`
		Total  struct {
			Arrivals     int64 `json:"arrivals"`
			Attributable int64 `json:"attributable"`
			Questions    int64 `json:"questions"`
			Responses    struct {
				Success      int64 `json:"success"`
				Disconnected int64 `json:"disconnected"`
			} `json:"responses"`
		} `json:"total"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return answer{}, err
	}
	if r.Schema != "auditor.report/1" {
		return answer{}, fmt.Errorf("schema %q, want auditor.report/1", r.Schema)
	}
	t := r.Total
	return answer{arrivals: t.Arrivals, keyed: t.Attributable, questions: t.Questions,
		cells: none, cellKeys: none, failed: none,
		success: t.Responses.Success, disconnected: t.Responses.Disconnected}, nil
}

// readSums reads what bench/duckdb and bench/scan print.
func readSums(text []byte) (answer, error) {
	var r struct {
		Cells    int64  `json:"cells"`
		Arrivals int64  `json:"arrivals"`
		Keyed    int64  `json:"keyed"`
		Failed   int64  `json:"failed"`
		CellKeys *int64 `json:"cell_keys"`
		Keys     *int64 `json:"keys"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return answer{}, err
	}
	a := answer{arrivals: r.Arrivals, keyed: r.Keyed, cells: r.Cells, failed: r.Failed,
		questions: none, cellKeys: none, success: none, disconnected: none}
	if r.CellKeys != nil {
		a.cellKeys = *r.CellKeys
	}
	if r.Keys != nil {
		a.questions = *r.Keys
	}
	return a, nil
}

func table(w io.Writer, t truth, programs []*program) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\twall s\tlines/s\tCPU s\tuser\tsys\tlines per CPU s\tleast..greatest\tpeak RSS MiB\tother load\t  program")
	for _, p := range programs {
		if p.err != nil {
			fmt.Fprintf(tw, "%s\t-\t-\t-\t-\t-\t-\t-\t-\t-\t  %s: NOT MEASURED\n", p.label, p.name)
			continue
		}
		of := func(f func(usage) float64) float64 { m, _, _ := spread(p.runs, f); return m }
		rate, least, greatest := spread(p.runs, func(u usage) float64 { return float64(t.Lines) / u.cpu() })
		other := "?"
		if o := of(func(u usage) float64 { return u.other }); o >= 0 {
			other = fmt.Sprintf("%.0f %%", 100*o)
		}
		fmt.Fprintf(tw, "%s\t%.2f\t%.0f k\t%.2f\t%.2f\t%.2f\t%.0f k\t%.0f..%.0f k\t%.0f\t%s\t  %s\n", p.label,
			of(func(u usage) float64 { return u.wall }),
			of(func(u usage) float64 { return float64(t.Lines) / u.wall / 1e3 }),
			of(usage.cpu), of(func(u usage) float64 { return u.user }), of(func(u usage) float64 { return u.sys }),
			rate/1e3, least/1e3, greatest/1e3,
			of(func(u usage) float64 { return float64(u.rss) / (1 << 20) }), other, p.name)
	}
	tw.Flush()
}

// ratios holds the first program against each of the others.
func ratios(w io.Writer, programs []*program) {
	subject := programs[0]
	for _, p := range programs[1:] {
		fmt.Fprintf(w, "%s/%s, lines per CPU second: ", subject.label, p.label)
		if subject.err != nil || p.err != nil {
			fmt.Fprintln(w, "not measured")
			continue
		}
		rounds := make([]float64, min(len(subject.runs), len(p.runs)))
		for i := range rounds {
			rounds[i] = p.runs[i].cpu() / subject.runs[i].cpu()
		}
		median, least, greatest := spread(rounds, func(x float64) float64 { return x })
		fmt.Fprintf(w, "%.2f (%.2f..%.2f)\n", median, least, greatest)
	}
}

func spread[T any](runs []T, f func(T) float64) (median, least, greatest float64) {
	v := make([]float64, len(runs))
	for i, r := range runs {
		v[i] = f(r)
	}
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]
}

// agree compares every answer with the truth and the answers with one another,
// each count as far as a program gives it. Counts that truth.json does not hold
// (the cells) are compared with the first program that gives them.
func agree(w io.Writer, t truth, programs []*program) error {
	var errs []error
	cells, cellKeys := int64(none), int64(none)
	for _, p := range programs {
		if p.err != nil {
			fmt.Fprintf(w, "%s: NOT MEASURED: %v\n", p.label, p.err)
			errs = append(errs, fmt.Errorf("%s: not measured", p.name))
			continue
		}
		a := p.answer
		if cells == none {
			cells = a.cells
		}
		if cellKeys == none {
			cellKeys = a.cellKeys
		}
		checked := ""
		for _, c := range []struct {
			what      string
			got, want int64
		}{
			{"arrivals", a.arrivals, t.Lines},
			{"with a key", a.keyed, t.Attributable},
			{"questions (distinct keys)", a.questions, t.Questions},
			{"status 5xx", a.failed, t.Failed},
			{"success", a.success, t.Success},
			{"disconnected", a.disconnected, t.Disconnected.Total},
			{"cells", a.cells, cells},
			{"distinct keys summed over cells", a.cellKeys, cellKeys},
		} {
			if c.got == none {
				continue
			}
			if c.got != c.want {
				errs = append(errs, fmt.Errorf("%s: %d %s, want %d", p.name, c.got, c.what, c.want))
				fmt.Fprintf(w, "%s: DISAGREES: %d %s, want %d\n", p.label, c.got, c.what, c.want)
				continue
			}
			checked += fmt.Sprintf(", %s %d", c.what, c.got)
		}
		if checked != "" {
			fmt.Fprintf(w, "%s: as expected: %s\n", p.label, checked[2:])
		}
	}
	return errors.Join(errs...)
}
