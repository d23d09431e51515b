package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/config"
)

const planHelp = `Usage: auditor plan [flags] FILE

Works out what a retry policy can cost the dependency: arrivals per question, who
retries, how long all tries take, load against capacity, and whether a full queue is
answered in time. FILE holds the policy's keys alone (chosen, deadline, layers, …) or
is a whole auditor.yaml, of which the declared: section alone is read; "-" is
standard input.

Exits with 3 if the layers do not come to what was chosen.

Flags:
`

// planSchema names the shape of the JSON output.
const planSchema = "auditor.plan/1"

func planCommand(_ context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("plan", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), planHelp); f.PrintDefaults() }
	output := f.String("output", "text", "print `json` or text")
	files, err := parse(p, f, args)
	if err != nil {
		return exitUsage, err
	}
	if *output != "text" && *output != "json" {
		return exitUsage, fmt.Errorf("--output %q is unknown: json or text", *output)
	}
	if len(files) != 1 {
		return exitUsage, fmt.Errorf("found %d files, want one", len(files))
	}
	declared, err := readPlan(p, files[0])
	if err != nil {
		return exitFailed, err
	}
	plan := policy(declared).Plan()
	if *output == "json" {
		e := json.NewEncoder(p.stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		err = e.Encode(struct {
			Schema string `json:"schema"`
			*budget.Plan
		}{planSchema, plan})
	} else {
		err = writePlan(p.stdout, plan)
	}
	if err != nil {
		return exitFailed, fmt.Errorf("write plan: %w", err)
	}
	if plan.AsChosen != nil && !*plan.AsChosen {
		return exitNotChosen, nil
	}
	return exitOK, nil
}

func readPlan(p *program, file string) (*config.Declared, error) {
	if file != "-" {
		return config.LoadPlan(file, p.getenv)
	}
	data, err := io.ReadAll(io.LimitReader(p.stdin, 2<<20)) // more than is taken
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return config.ParsePlan("standard input", data, p.getenv)
}

// policy is what a configuration declares.
func policy(d *config.Declared) *budget.Policy {
	p := &budget.Policy{
		Chosen: d.Chosen, Deadline: d.Deadline, CapacityPerSecond: d.CapacityPerSecond, OfferedPerSecond: d.OfferedPerSecond,
		Queue: d.Queue, DrainPerSecond: d.DrainPerSecond, Service: d.Service,
	}
	for _, l := range d.Layers {
		p.Layers = append(p.Layers, budget.Layer{
			Name: l.Name, Attempts: l.Attempts, Retries: l.Retries, Budget: l.Budget, Base: budget.Base(l.BudgetOf),
			Timeout: l.Timeout, Backoff: l.Backoff, HonoursRetryAfter: l.HonoursRetryAfter,
		})
	}
	return p
}
