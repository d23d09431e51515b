package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/examples"
	"github.com/targetside/auditor/lab"
	"github.com/targetside/auditor/pipeline"
)

const labHelp = `Usage: auditor lab list
       auditor lab run [flags] NAME
       auditor lab compare [flags] NAME

Plays retry storms in virtual time, with the truth known. NAME is one of those
that list prints, or a scenario file of your own.

run writes into a folder what one arm makes: the target's access log, the
configuration to audit it with, the truth (truth.json), what those who asked note of
each question (events.jsonl), the audit of the log (report.json), and a chart
(chart.svg). It compares audit and truth, count by count. compare plays all arms, and
prints them side by side.

The exit status is 0 when the audit equals the truth, as far as the log's format can
show it, 1 when it does not or could not be made, and 2 for a command line that cannot
be read.
`

func labCommand(ctx context.Context, p *program, args []string) (int, error) {
	if len(args) == 0 {
		fmt.Fprint(p.stderr, labHelp)
		return exitUsage, nil
	}
	switch args[0] {
	case "list":
		return labList(p, args[1:])
	case "run":
		return labRun(ctx, p, args[1:])
	case "compare":
		return labCompare(ctx, p, args[1:])
	case "-h", "-help", "--help", "help":
		fmt.Fprint(p.stdout, labHelp)
		return exitOK, nil
	}
	return exitUsage, fmt.Errorf("%q is unknown: list, run or compare", args[0])
}

// labScenario is the scenario of a name: a file, or one that ships with the program.
func labScenario(name string) (*lab.File, error) {
	if strings.ContainsAny(name, `/\.`) {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		return lab.Parse(name, data)
	}
	data, err := examples.Lab.ReadFile("lab/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no scenario is named %q: %s; a file of your own is named with its path: ./%s.yaml", name, strings.Join(labNames(), ", "), name)
	}
	return lab.Parse(name+".yaml", data)
}

// labNames are the scenarios that ship with the program.
func labNames() []string {
	entries, err := examples.Lab.ReadDir("lab")
	if err != nil {
		panic(err) // embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

func labList(p *program, args []string) (int, error) {
	f := flag.NewFlagSet("lab list", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), labHelp) }
	rest, err := parse(p, f, args)
	if err != nil {
		return exitUsage, err
	}
	if len(rest) > 0 {
		return exitUsage, fmt.Errorf("list takes no name: %q", rest[0])
	}
	for _, name := range labNames() {
		s, err := labScenario(name)
		if err != nil {
			return exitFailed, err
		}
		fmt.Fprintf(p.stdout, "%s: %s\n", name, s.Says)
		for _, a := range s.Arms {
			fmt.Fprintf(p.stdout, "  %-24s %s\n", a.Name, a.Says)
		}
	}
	return exitOK, nil
}

// labFlags are what run and compare are called with: the flags that both have, and
// one scenario.
type labFlags struct {
	*flag.FlagSet
	word   string
	format *string
}

func newLabFlags(word string) labFlags {
	f := flag.NewFlagSet("lab "+word, flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), labHelp)
		fmt.Fprintf(f.Output(), "\nFlags of %s:\n", word)
		f.PrintDefaults()
	}
	return labFlags{f, word, f.String("format", "json", "write logs in `FORMAT`: "+strings.Join(lab.Formats(), ", "))}
}

// scenario reads the flags, and the scenario that is named.
func (f labFlags) scenario(p *program, args []string) (*lab.File, int, error) {
	names, err := parse(p, f.FlagSet, args)
	if err != nil {
		return nil, exitUsage, err
	}
	if len(names) != 1 {
		return nil, exitUsage, fmt.Errorf("%s takes the name of one scenario: %s", f.word, strings.Join(labNames(), ", "))
	}
	if !slices.Contains(lab.Formats(), *f.format) {
		return nil, exitUsage, fmt.Errorf("--format %q is not written here: %s", *f.format, strings.Join(lab.Formats(), ", "))
	}
	s, err := labScenario(names[0])
	return s, exitFailed, err
}

func labRun(ctx context.Context, p *program, args []string) (int, error) {
	f := newLabFlags("run")
	arm := f.String("arm", "", "play the `ARM` of that name (default: the first)")
	out := f.String("out", "", "write into this `FOLDER` (default: lab-NAME-ARM)")
	seed := f.Uint64("seed", 0, "play with this `SEED` (default: the scenario's)")
	s, status, err := f.scenario(p, args)
	if err != nil {
		return status, err
	}
	a, err := s.Arm(*arm)
	if err != nil {
		return exitUsage, err
	}
	f.Visit(func(x *flag.Flag) {
		if x.Name == "seed" {
			a.Seed = *seed
		}
	})
	dir := *out
	if dir == "" {
		dir = "lab-" + s.Name + "-" + a.Name
	}
	if err := labFolder(dir); err != nil {
		return exitFailed, err
	}
	r, err := playArm(ctx, p, &a, *f.format, dir)
	if err != nil {
		return exitFailed, fmt.Errorf("%w; what is in %s is not whole", err, dir)
	}
	fmt.Fprintf(p.stdout, "%s, %s: %s\n", s.Name, a.Name, a.Says)
	writeArms(p.stdout, s, []*labResult{r})
	fmt.Fprintf(p.stdout, "\n%s holds %s.\n", dir, strings.Join(labFiles, ", "))
	return r.judged(p)
}

func labCompare(ctx context.Context, p *program, args []string) (int, error) {
	f := newLabFlags("compare")
	arms := f.String("arms", "", "play only these `ARMS`, with commas between (default: all)")
	s, status, err := f.scenario(p, args)
	if err != nil {
		return status, err
	}
	play := s.Arms
	if *arms != "" {
		play = nil
		for name := range strings.SplitSeq(*arms, ",") {
			a, err := s.Arm(strings.TrimSpace(name))
			if err != nil {
				return exitUsage, err
			}
			play = append(play, a)
		}
	}
	dir, err := os.MkdirTemp("", "auditor-lab-")
	if err != nil {
		return exitFailed, err
	}
	defer os.RemoveAll(dir)
	var results []*labResult
	for i := range play {
		r, err := playArm(ctx, p, &play[i], *f.format, dir)
		if err != nil {
			return exitFailed, err
		}
		results = append(results, r)
	}
	fmt.Fprintf(p.stdout, "%s: %s\n", s.Name, s.Says)
	writeArms(p.stdout, s, results)
	code := exitOK
	for _, r := range results {
		if c, _ := r.judged(p); c != exitOK {
			code = c
		}
	}
	return code, nil
}

// labResult is an arm, played and audited.
type labResult struct {
	arm    *lab.Arm
	truth  *lab.Truth
	report *aggregate.Report
	wrong  []string // where they differ
}

// judged says whether the audit equals the truth.
func (r *labResult) judged(p *program) (int, error) {
	if len(r.wrong) == 0 {
		fmt.Fprintf(p.stdout, "%s: the audit equals the truth in all counts%s, of %d arrivals.\n", r.arm.Name, r.shown(), r.truth.Total.Arrivals)
		return exitOK, nil
	}
	const most = 20
	fmt.Fprintf(p.stderr, "auditor lab: %s: the audit differs from the truth in %d counts:\n", r.arm.Name, len(r.wrong))
	for _, w := range r.wrong[:min(most, len(r.wrong))] {
		fmt.Fprintln(p.stderr, "  "+w)
	}
	return exitFailed, nil
}

// shown says what the log cannot.
func (r *labResult) shown() string {
	if r.truth.Shown == nil {
		return ""
	}
	return " that the log can show (not " + strings.Join(r.truth.Shown.Without, "; not ") + ")"
}

// labFiles are what a run writes into its folder, and labMark is there from its
// beginning.
var labFiles = []string{"access.log", "events.jsonl", "auditor.yaml", "originators.yaml", "truth.json", "report.json", "chart.svg"}

const labMark = ".auditor-lab"

// labFolder makes the folder of a run. One that holds files of these names which no run
// has written is somebody's, and refused.
func labFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mark := filepath.Join(dir, labMark)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	for _, name := range labFiles {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s holds %s, which no run of the lab has written: give another folder with --out, or move that away", dir, name)
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.WriteFile(mark, nil, 0o644)
}

// playArm plays an arm into a folder, audits its log as anybody would, from the files
// alone, and compares.
func playArm(ctx context.Context, p *program, a *lab.Arm, format, dir string) (*labResult, error) {
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range labFiles {
		if err := os.Remove(in(name)); err != nil && !errors.Is(err, os.ErrNotExist) { // of an earlier run
			return nil, err
		}
	}
	truth, err := playInto(ctx, a, format, in("access.log"), in("events.jsonl"))
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"auditor.yaml": a.Config(format, "access.log"), "originators.yaml": a.Originators()} {
		if err := os.WriteFile(in(name), text, 0o644); err != nil {
			return nil, err
		}
	}
	report, err := auditLab(ctx, p, in("auditor.yaml"))
	if err != nil {
		return nil, fmt.Errorf("audit %s: %w", in("access.log"), err)
	}
	for name, v := range map[string]any{"truth.json": truth, "report.json": report} {
		if err := writeJSON(in(name), v); err != nil {
			return nil, err
		}
	}
	var chart bytes.Buffer
	if err := truth.Chart(&chart); err != nil {
		return nil, err
	}
	if err := os.WriteFile(in("chart.svg"), chart.Bytes(), 0o644); err != nil {
		return nil, err
	}
	wrong, err := untrue(truth, report)
	return &labResult{a, truth, report, wrong}, err
}

// playInto plays an arm and writes the log and the events of those who asked.
func playInto(ctx context.Context, a *lab.Arm, format, logFile, eventsFile string) (truth *lab.Truth, err error) {
	o := lab.Output{Format: format}
	for file, w := range map[string]*io.Writer{logFile: &o.Log, eventsFile: &o.Events} {
		f, e := os.Create(file)
		if e != nil {
			return nil, e
		}
		b := bufio.NewWriterSize(f, 1<<20)
		*w = b
		defer func() {
			err = errors.Join(err, b.Flush(), f.Close())
		}()
	}
	return lab.Run(ctx, a, o)
}

// auditLab is a replay by a configuration.
func auditLab(ctx context.Context, p *program, configFile string) (*aggregate.Report, error) {
	l, err := load(p, configFile, false)
	if err != nil {
		return nil, err
	}
	inputs, err := l.inputs(nil)
	if err != nil {
		return nil, err
	}
	c, err := l.pipelineConfig(p.now())
	if err != nil {
		return nil, err
	}
	c.Lateness = max(c.Lateness, c.Horizon)
	// A scenario has its own time, which may be ahead of ours.
	c.MaxFuture = 200 * 365 * 24 * time.Hour
	c.Worst = worstQuestions
	a, err := pipeline.Replay(ctx, c, inputs, p.stdin, func(int64) {})
	if err != nil {
		return nil, err
	}
	return a.Report, nil
}

func writeJSON(name string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}
