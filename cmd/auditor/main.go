// Auditor counts, at the target of a retry storm, how many arrivals one question
// costs. It reads the access logs of a protected dependency and sits nowhere in
// its request path.
//
// Usage:
//
//	auditor demo [--for 30s]
//	auditor run [--config auditor.yaml]
//	auditor replay [--config auditor.yaml] [--output json|text|markdown|html] FILE…
//	auditor explain [--format F] [--config auditor.yaml] [--output json|text] [FILE…]
//	auditor check [--config auditor.yaml]
//	auditor plan [--output json|text] FILE
//	auditor lab list|run NAME|compare NAME
//	auditor drill --upstream URL --route ROUTE
//	auditor migrate up|status|dry-run --config auditor.yaml
//	auditor key new|mint|verify
//	auditor version
//
// A FILE of "-" is standard input; gzip and zstd files are read as they are.
// Reports go to standard output, everything else to standard error. The exit
// status is 0 when the work was done, 1 when it could not be, 2 for a command
// line that cannot be read, and 3 when a log was audited but more of it than
// --max-quarantined could not be read, or when the layers of a plan do not come to
// what was chosen.
//
// Secrets, keys and log lines are never printed in messages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "time/tzdata" // zones of log stamps are known on every machine
)

// program is what a subcommand may touch of the world.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) (string, bool)
	now            func() time.Time
	terminal       bool // standard error is a terminal
}

// The exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitQuarantined = 3
	exitNotChosen   = 3
)

// subcommand is one word of the command line. run returns an exit status; what
// it returns as an error is printed, with exitFailed or exitUsage.
type subcommand struct {
	name, summary string
	run           func(ctx context.Context, p *program, args []string) (int, error)
	grace         time.Duration // to stop by itself after an interrupt; 0: grace
}

func subcommands() []subcommand {
	return []subcommand{
		{"replay", "audit log files and print the report", replay, 0},
		{"explain", "show how each record is read, and why", explain, 0},
		{"check", "validate a configuration and print what is in force", check, 0},
		{"plan", "work out what a retry policy can cost", planCommand, 0},
		{"run", "count what sources bring, as it comes", runCommand, 3 * stopTime},
		{"migrate", "make and change the tables of a ClickHouse store", migrate, 0},
		{"demo", "run everything on this machine, with traffic of its own", demoCommand, 4 * stopTime},
		{"lab", "play retry storms in virtual time, with the truth known", labCommand, 0},
		{"drill", "make a staging dependency fail in steps, and say what bounds its callers' repeats", drillCommand, 2 * stopTime},
		{"key", "make, mint and verify question keys", key, 0},
		{"version", "print the version", version, 0},
	}
}

// errUsage is a command line that cannot be read; the flag package has said why.
var errUsage = errors.New("usage")

// grace is how long most commands have to stop by themselves after an interrupt.
const grace = time.Second

// graceOf is how long the command of a command line has.
func graceOf(args []string) time.Duration {
	for _, c := range subcommands() {
		if len(args) > 0 && c.name == args[0] && c.grace > 0 {
			return c.grace
		}
	}
	return grace
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		// What waits for a pipe that says nothing cannot be told to stop.
		select {
		case <-done:
		case <-time.After(graceOf(os.Args[1:])):
			fmt.Fprintln(os.Stderr, "auditor: interrupted")
			os.Exit(exitFailed)
		}
	})
	code := run(ctx, &program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.LookupEnv, now: time.Now, terminal: isTerminal(os.Stderr),
	}, os.Args[1:])
	forget()
	close(done)
	stop()
	os.Exit(code)
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

func run(ctx context.Context, p *program, args []string) int {
	if len(args) == 0 {
		usage(p.stderr)
		return exitUsage
	}
	if args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help" {
		usage(p.stdout)
		return exitOK
	}
	for _, c := range subcommands() {
		if c.name != args[0] {
			continue
		}
		out := &checkedWriter{w: p.stdout}
		checked := *p
		checked.stdout = out
		code, err := c.run(ctx, &checked, args[1:])
		if err == nil && out.err != nil && c.grace == 0 { // what others than daemons are run for is lost
			code, err = exitFailed, fmt.Errorf("write: %w", out.err)
		}
		switch {
		case errors.Is(err, flag.ErrHelp):
			return exitOK
		case errors.Is(err, errUsage):
			return exitUsage
		case err != nil:
			fmt.Fprintf(p.stderr, "auditor %s: %v\n", c.name, err)
			if code == exitOK {
				code = exitFailed
			}
		}
		return code
	}
	fmt.Fprintf(p.stderr, "auditor: unknown command %q\n\n", args[0])
	usage(p.stderr)
	return exitUsage
}

// checkedWriter remembers the first error of writing.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

func usage(w io.Writer) {
	fmt.Fprint(w, "auditor counts how many arrivals one question costs the target of its retries.\n\nUsage: auditor COMMAND [flags]\n\n")
	for _, c := range subcommands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\nauditor COMMAND -h lists the flags of a command.\n")
}

// parse reads the flags of a subcommand, which may stand before and after its
// arguments, and returns the arguments.
func parse(p *program, f *flag.FlagSet, args []string) ([]string, error) {
	f.SetOutput(p.stderr)
	var rest []string
	for {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, errUsage
		}
		done := f.NArg() == 0 || len(args) > f.NArg() && args[len(args)-f.NArg()-1] == "--"
		if done {
			return append(rest, f.Args()...), nil
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
}
