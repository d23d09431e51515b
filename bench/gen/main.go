// Command gen writes an access log of which every figure is known: a file in
// format json with real, signed question keys, the originators and the config
// to audit it with, and truth.json with the exact counts.
//
// It shares no code with the auditor, the key format included, so that neither
// is tested with itself. The same flags give the same bytes.
//
//	gen -n 2000000 -span 1h -seed 1 -out DIR
//
// writes DIR/access.json.log, DIR/originators.yaml, DIR/auditor.yaml and
// DIR/truth.json. What the log contains is told at generate, what the counts
// mean at truth.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	var p params
	flag.IntVar(&p.lines, "n", 2_000_000, "lines to write")
	flag.DurationVar(&p.span, "span", time.Hour, "event time that the starts spread over, at least 1m")
	flag.Uint64Var(&p.seed, "seed", 1, "seed of everything random")
	out := flag.String("out", "", "directory to write to; it is created")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: gen [-n LINES] [-span DURATION] [-seed N] -out DIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 0 || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	t, err := generate(p, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "gen: %d lines, %d bytes (%.1f a line), %d questions, %.2f arrivals each\n",
		t.Lines, t.Bytes, float64(t.Bytes)/float64(t.Lines), t.Questions,
		float64(t.Attributable)/float64(max(t.Questions, 1)))
}
