// Command kafka measures what the daemon costs per record that comes from Kafka.
//
//	kafka compare -dir DIR -auditor BIN    the three programs, in turn
//	kafka latency -dir DIR -auditor BIN    how long until records are visible
//	kafka broker -log FILE                 a broker that has the lines of FILE
//	kafka drop -broker ADDR -records N     reads N records and drops them
//
// compare starts a broker in a process of its own, whose work is not counted, and
// takes the CPU seconds (user and system) of three others over the same records: the
// daemon, from Kafka to rows in SQLite, until it has counted all of them and stored
// every second that they allow to close; replay, over the file that the records came
// from; and drop, which has the daemon's Kafka source and a handler that does nothing.
// The daemon should cost no more than the other two together, but for what goes live
// and to rest: at most (replay + drop) / 0.7.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: kafka compare|latency|broker|drop [flags]")
		os.Exit(2)
	}
	f := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	var err error
	switch os.Args[1] {
	case "compare":
		dir := f.String("dir", ".cache/bench", "directory with a log that bench/gen made")
		auditor := f.String("auditor", "", "auditor binary")
		runs := f.Int("runs", 3, "rounds")
		f.Parse(os.Args[2:])
		err = compare(*dir, *auditor, *runs)
	case "latency":
		dir := f.String("dir", ".cache/bench", "directory to work in")
		auditor := f.String("auditor", "", "auditor binary")
		rate := f.Int("rate", 10_000, "records a second")
		lasts := f.Duration("for", 20*time.Second, "how long")
		f.Parse(os.Args[2:])
		err = latency(*dir, *auditor, *rate, *lasts)
	case "broker":
		log := f.String("log", "", "file whose lines are the records")
		f.Parse(os.Args[2:])
		err = broker(*log)
	case "drop":
		addr := f.String("broker", "", "address of the broker")
		n := f.Int64("records", 0, "records to read")
		f.Parse(os.Args[2:])
		err = drop(*addr, *n)
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafka:", err)
		os.Exit(1)
	}
}
