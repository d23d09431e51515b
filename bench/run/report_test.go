package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpread(t *testing.T) {
	same := func(x float64) float64 { return x }
	for _, c := range []struct {
		in   []float64
		want [3]float64
	}{
		{[]float64{4}, [3]float64{4, 4, 4}},
		{[]float64{3, 1, 2}, [3]float64{2, 1, 3}},
		{[]float64{8, 1, 2, 4}, [3]float64{3, 1, 8}},
	} {
		m, lo, hi := spread(c.in, same)
		if [3]float64{m, lo, hi} != c.want {
			t.Errorf("%v: %v %v %v, want %v", c.in, m, lo, hi, c.want)
		}
	}
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	// Each round's machine is twice as slow as the one before; the ratio is 2 in all.
	p := []*program{
		{label: "0", runs: []usage{{user: 1}, {user: 2}, {user: 4}}},
		{label: "a", runs: []usage{{user: 1, sys: 1}, {user: 4}, {user: 8}}},
		{label: "b", err: errors.New("not built")},
	}
	var out strings.Builder
	ratios(&out, p)
	want := "0/a, lines per CPU second: 2.00 (2.00..2.00)\n0/b, lines per CPU second: not measured\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestAgree(t *testing.T) {
	tr := truth{Lines: 10, Attributable: 8, Questions: 3, Failed: 4}
	good := answer{arrivals: 10, keyed: 8, questions: none, cells: 5, cellKeys: none, failed: 4, success: none, disconnected: none}
	for name, c := range map[string]struct {
		change func(*answer)
		err    error
		want   string
	}{
		"all agree":       {change: func(*answer) {}},
		"arrivals":        {change: func(a *answer) { a.arrivals = 11 }, want: "11 arrivals, want 10"},
		"questions":       {change: func(a *answer) { a.questions = 2 }, want: "2 questions (distinct keys), want 3"},
		"cells":           {change: func(a *answer) { a.cells = 6 }, want: "6 cells, want 5"},
		"one did not run": {change: func(*answer) {}, err: errors.New("not built"), want: "not measured"},
	} {
		other := good
		c.change(&other)
		var out strings.Builder
		err := agree(&out, tr, []*program{{label: "a", name: "a", answer: good}, {label: "b", name: "b", answer: other, err: c.err}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestReadReport(t *testing.T) {
	a, err := readReport([]byte(`{"schema":"auditor.report/1","total":{"arrivals":5,"attributable":4,"questions":2,"responses":{"success":3,"disconnected":1}}}`))
	if want := (answer{5, 4, 2, none, none, none, 3, 1}); err != nil || a != want {
		t.Errorf("%+v, %v, want %+v", a, err, want)
	}
	for _, text := range []string{"", "{}", `{"schema":"auditor.report/2"}`} {
		if _, err := readReport([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestParseTicks(t *testing.T) {
	busy, total, known := parseTicks("cpu  10 20 30 400 50 6 7 8 99 0\ncpu0 1 2\n")
	if busy != 81 || total != 531 || !known {
		t.Errorf("%d %d %v, want 81 531 true", busy, total, known)
	}
	if _, _, known := parseTicks("intr 1 2 3"); known {
		t.Error("a text without a cpu line is known")
	}
}

// The usage of a child is read from the kernel: a shell that counts must show
// CPU time and memory, one that exits 3 must be an error with its last word.
func TestRun(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "out"), []byte(`{"arrivals":7,"cells":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &program{name: "count", read: readSums, argv: []string{sh, "-c",
		`i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; test "$GOMAXPROCS" = 2 && cat "$0"`, filepath.Join(dir, "out")}}
	if err := p.run(2); err != nil {
		t.Fatal(err)
	}
	if u := p.runs[0]; u.cpu() <= 0 || u.wall <= 0 || u.rss < 1<<16 || p.answer.arrivals != 7 {
		t.Errorf("usage %+v, answer %+v", u, p.answer)
	}
	p = &program{name: "fail", read: readSums, argv: []string{sh, "-c", "echo why >&2; exit 3"}}
	if err := p.run(1); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("error %v", err)
	}
}
