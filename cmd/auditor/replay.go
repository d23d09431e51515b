package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/keys"
	"github.com/targetside/auditor/pipeline"
)

const replayHelp = `Usage: auditor replay [flags] [FILE…]

Audits access logs from beginning to end and prints the report. FILE may be
compressed with gzip or zstd; "-" is standard input. Without a FILE those of the
configuration are read. Several files are merged by log time: their order does
not matter, and rotated ones belong together.

Flags:
`

// worstQuestions is how many questions a report names.
const worstQuestions = 20

func replay(ctx context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("replay", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), replayHelp); f.PrintDefaults() }
	configFile := f.String("config", "", "read the configuration from `FILE` (default: none, and formats are detected)")
	format := f.String("format", "", "read the files as `FORMAT`, whatever the configuration says")
	output := f.String("output", "text", "print `json`, text, markdown or html")
	most := f.Float64("max-quarantined", 0.01, "exit with 3 if more than this `SHARE` of lines could not be read")
	files, err := parse(p, f, args)
	if err != nil {
		return exitUsage, err
	}
	render, ok := renderers[*output]
	if !ok {
		return exitUsage, fmt.Errorf("--output %q is unknown: json, text, markdown or html", *output)
	}
	if !(*most >= 0 && *most <= 1) {
		return exitUsage, fmt.Errorf("--max-quarantined %v is no share: 0 to 1", *most)
	}
	if err := checkFormat(*format); err != nil {
		return exitUsage, err
	}
	l, err := load(p, *configFile, false)
	if err != nil {
		return exitFailed, err
	}
	inputs, err := l.inputs(files)
	if err != nil {
		return exitFailed, err
	}
	c, err := l.pipelineConfig(p.now())
	if err != nil {
		return exitFailed, err
	}
	if *format != "" {
		for i := range c.Sources {
			reformat(&c.Sources[i].Parser, *format)
		}
	}
	options := rendering(inputs, &c)
	// Files are complete, so a tick may wait as long as a question is remembered:
	// what a shipper delayed is not late.
	c.Lateness = max(c.Lateness, c.Horizon)
	c.Worst = worstQuestions

	bar := newProgress(p, inputs)
	a, err := pipeline.Replay(ctx, c, inputs, p.stdin, bar.show)
	bar.clear()
	if err != nil {
		return exitFailed, err
	}
	if err := render(p.stdout, a.Report, options); err != nil {
		return exitFailed, fmt.Errorf("write report: %w", err)
	}
	doubts(p.stderr, a.Report, len(l.originators))
	return quarantined(p.stderr, a, *most), nil
}

var renderers = map[string]func(io.Writer, *aggregate.Report, renderOptions) error{
	"json": func(w io.Writer, r *aggregate.Report, _ renderOptions) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(r)
	},
	"text":     writeText,
	"markdown": writeMarkdown,
	"html":     writeHTML,
}

func rendering(in []pipeline.Input, c *pipeline.Config) renderOptions {
	o := renderOptions{Horizon: c.Horizon, Lateness: c.Lateness, Rules: c.Rules, Budget: c.Budget, RouteBudgets: c.RouteBudgets}
	for _, x := range in {
		o.Files = append(o.Files, x.File)
	}
	return o
}

// doubts says what in a report looks as if the log was read wrongly.
func doubts(w io.Writer, r *aggregate.Report, originators int) {
	t := &r.Total
	if odd := r.Input.Late + r.Input.Clamped; 20*odd > t.Arrivals && t.Arrivals > 0 {
		fmt.Fprintf(w, "auditor replay: %d arrivals came late and %d took longer than a lateness, of %d: are format, zone and the unit of durations right? auditor explain shows how a line is read\n", r.Input.Late, r.Input.Clamped, t.Arrivals)
	}
	if n := t.Unattributable.Reasons[keys.UnknownOriginator]; originators == 0 && 2*n > t.Arrivals {
		fmt.Fprintf(w, "auditor replay: %d of %d arrivals carry a signed key, and no originators are known to check them: name keys.originators in a --config\n", n, t.Arrivals)
	}
}

// quarantined says which lines could not be read, and whether they were too many.
func quarantined(w io.Writer, a *pipeline.Audit, most float64) int {
	var n uint64
	for _, c := range a.Report.Input.Quarantined {
		n += c
	}
	if n == 0 {
		return exitOK
	}
	lines := max(a.Report.Input.Lines, 1)
	fmt.Fprintf(w, "auditor replay: %d records in %d lines could not be read (%.2f %%):\n", n, lines, 100*float64(n)/float64(lines))
	for _, q := range a.Quarantined {
		fmt.Fprintf(w, "  %s:%d, byte %d: %s\n", q.Source, q.Line, q.Offset, q.Reason)
	}
	fmt.Fprintln(w, "  auditor explain shows how a line is read")
	if float64(n) > most*float64(lines) {
		return exitQuarantined
	}
	return exitOK
}
