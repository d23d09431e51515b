package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/targetside/auditor/store"
)

const migrateHelp = `Usage: auditor migrate up|status|dry-run --config auditor.yaml

Makes the tables of a ClickHouse store, or brings them to this version.

  up       run the steps that are missing, one statement at a time; the database is
           made if there is none. Of several that are started at once, one runs.
  status   print each step, and whether it was run; the exit status is 1 while some
           are missing
  dry-run  print the statements that up would run

A daemon of this version works once all steps were run. Steps add to what is there:
run them before the daemons of the new version start. A SQLite store is brought to
this version whenever it is opened, and needs none of this.

Flags:
`

// migrate is the subcommand.
func migrate(ctx context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("migrate", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), migrateHelp); f.PrintDefaults() }
	configFile := f.String("config", "auditor.yaml", "read the configuration from `FILE`")
	rest, err := parse(p, f, args)
	if err != nil {
		return exitUsage, err
	}
	if len(rest) != 1 || rest[0] != "up" && rest[0] != "status" && rest[0] != "dry-run" {
		return exitUsage, fmt.Errorf("want one of up, status and dry-run")
	}
	l, err := load(p, *configFile, true)
	if err != nil {
		return exitFailed, err
	}
	if l.Store.ClickHouse == nil {
		fmt.Fprintf(p.stdout, "%s is a SQLite file: it is brought to this version whenever it is opened\n", l.Store.SQLite)
		return exitOK, nil
	}
	at, err := l.clickhouse()
	if err != nil {
		return exitFailed, err
	}
	if rest[0] == "up" {
		n := 0
		err := store.MigrateClickHouse(ctx, at, func(step string) {
			n++
			fmt.Fprintf(p.stdout, "running %s\n", step)
		})
		if err == nil {
			fmt.Fprintf(p.stdout, "%d steps were run: the database is that of this version\n", n)
		}
		return exitOK, err
	}
	steps, err := store.ClickHouseSteps(ctx, at)
	if err != nil {
		return exitFailed, err
	}
	if rest[0] == "dry-run" {
		return exitOK, dryRun(p.stdout, steps)
	}
	missing := 0
	for _, s := range steps {
		word := "done"
		if !s.Done {
			missing++
			word = "missing"
		}
		fmt.Fprintf(p.stdout, "%-8s %s\n", word, s.Name)
	}
	if missing > 0 {
		return exitFailed, fmt.Errorf("%d of %d steps are missing: run auditor migrate up --config %s", missing, len(steps), *configFile)
	}
	return exitOK, nil
}

// dryRun prints what up would run, as a file of SQL.
func dryRun(w io.Writer, steps []store.MigrationStep) error {
	for _, s := range steps {
		if s.Done {
			continue
		}
		if _, err := fmt.Fprintf(w, "-- %s\n", s.Name); err != nil {
			return err
		}
		for _, text := range s.Statements {
			if _, err := fmt.Fprintf(w, "%s;\n\n", text); err != nil {
				return err
			}
		}
	}
	return nil
}
