// Command run measures programs that answer the same question over the same
// generated log, in interleaved rounds, and checks that they agree.
//
//	run -dir DIR -auditor BIN -duckdb BIN -scan BIN [-threads 2] [-runs 3]
//
// Of each run it takes wall time and, from the kernel when the process has
// ended, CPU seconds (user and system, all threads) and peak resident memory.
// Rates are of lines. The rate per CPU second is the one to compare: it hardly
// moves when the machine has other work. The threads are GOMAXPROCS for the Go
// programs and DuckDB's own setting; both may run a few threads more that
// mostly sleep, which CPU seconds include and wall time does not show.
//
// They do not do the same work, only the same reading: DuckDB and the scan group
// by the second of the log's stamp, the auditor by that of the start; the auditor
// also verifies every key, tells repeats from originals, pairs each with the one
// before it and makes a whole report. DuckDB is asked for the least that gives
// the counts (a), so as not to flatter the auditor, and for the count of distinct
// keys in the whole file as well (a+), which the auditor has too.
//
// The ratio of two programs is taken within each round; median, least and
// greatest are printed. The exit status is 0 only if every program ran, gave
// truth.json's counts, and agreed with the others.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	dir := flag.String("dir", ".cache/bench", "directory with the generated log and its truth.json")
	auditor := flag.String("auditor", "", "auditor binary")
	duckdb := flag.String("duckdb", "", "binary of bench/duckdb")
	scan := flag.String("scan", "", "binary of bench/scan")
	threads := flag.Int("threads", 2, "threads for every program")
	runs := flag.Int("runs", 3, "interleaved rounds")
	flag.Parse()
	if flag.NArg() != 0 || *threads < 1 || *runs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	log := filepath.Join(*dir, "access.json.log")
	n := strconv.Itoa(*threads)
	err := compare(os.Stdout, *dir, log, *threads, *runs, []*program{
		{label: "0", name: "auditor replay", read: readReport,
			argv: []string{*auditor, "replay", "--config", filepath.Join(*dir, "auditor.yaml"), "--output", "json", log}},
		{label: "a", name: "duckdb, distinct per cell", read: readSums,
			argv: []string{*duckdb, "-threads", n, log}},
		{label: "a+", name: "duckdb, distinct per cell and overall", read: readSums,
			argv: []string{*duckdb, "-threads", n, "-overall", log}},
		{label: "b", name: "scan, no distinct, no checks", read: readSums,
			argv: []string{*scan, "-threads", n, log}},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

// program is one contender. It is left out when argv[0] is empty, and dropped
// when a run of it fails.
type program struct {
	label, name string
	argv        []string
	read        func([]byte) (answer, error)

	runs   []usage
	answer answer
	err    error
}

// usage is what one run took.
type usage struct {
	wall, user, sys float64 // seconds
	rss             int64   // bytes, peak
	other           float64 // share of all CPUs that others used meanwhile; below 0: not known
}

func (u usage) cpu() float64 { return u.user + u.sys }

func compare(w io.Writer, dir, log string, threads, runs int, programs []*program) error {
	var truth truth
	if err := readJSON(filepath.Join(dir, "truth.json"), &truth); err != nil {
		return err
	}
	if err := warm(log); err != nil {
		return err
	}
	for range runs {
		for _, p := range programs {
			if p.argv[0] == "" {
				p.err = errors.New("not built")
			}
			if p.err == nil {
				p.err = p.run(threads)
			}
		}
	}
	fmt.Fprintf(w, "%d lines, %.1f MB, %d questions; %s, %d CPUs, %s/%s; %d threads, %d interleaved runs, medians\n\n",
		truth.Lines, float64(truth.Bytes)/1e6, truth.Questions, cpuModel(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, threads, runs)
	table(w, truth, programs)
	fmt.Fprintln(w)
	ratios(w, programs)
	fmt.Fprintln(w)
	return agree(w, truth, programs)
}

// warm reads the log once, so that the first program does not pay for the disk.
func warm(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	return err
}

func (p *program) run(threads int) error {
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(threads))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	busy, total, known := cpuTicks()
	begin := time.Now()
	err := cmd.Run()
	wall := time.Since(begin).Seconds()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(p.argv, " "), err, lastLine(stderr.String()))
	}
	a, err := p.read(stdout.Bytes())
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", p.name, err)
	}
	if len(p.runs) > 0 && a != p.answer {
		return fmt.Errorf("%s: two runs gave different answers: %+v, %+v", p.name, p.answer, a)
	}
	p.answer = a
	u := usage{
		wall: wall,
		user: cmd.ProcessState.UserTime().Seconds(),
		sys:  cmd.ProcessState.SystemTime().Seconds(),
	}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.rss = int64(r.Maxrss) << 10
		if runtime.GOOS == "darwin" {
			u.rss = int64(r.Maxrss) // in bytes there
		}
	}
	u.other = -1
	if busy2, total2, ok := cpuTicks(); ok && known && total2 > total {
		share := float64(busy2-busy) / float64(total2-total)
		u.other = max(0, share-u.cpu()/(wall*float64(runtime.NumCPU())))
	}
	p.runs = append(p.runs, u)
	return nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
