package pipeline

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/gzip"
)

// A replay that is called off ends with all its goroutines: the bubble of synctest
// would not end otherwise.
func TestInterrupted(t *testing.T) {
	lines := text(storm(300))
	for _, after := range []int{0, 1, 3, 10} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			cfg := testConfig(t)
			cfg.block = 2000
			if after == 0 {
				cancel()
			}
			blocks := 0
			a, err := Replay(ctx, cfg, []Input{{File: "-"}}, strings.NewReader(lines), func(int64) {
				if blocks++; blocks == after {
					cancel()
				}
			})
			cancel()
			if a != nil || !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "interrupted") {
				t.Errorf("called off after %d blocks: %v, %v", after, a, err)
			}
		})
	}
}

// What cannot be read to its end is not audited, wherever it breaks off and
// whatever else is read: half a log is a wrong number.
func TestUnreadableInTheMiddle(t *testing.T) {
	lines := text(storm(2000))
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(lines))
	w.Close()
	dir := t.TempDir()
	cut, whole := filepath.Join(dir, "a.gz"), filepath.Join(dir, "b.log")
	if err := os.WriteFile(whole, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	for _, keep := range []int{z.Len() / 10, z.Len() / 2, z.Len() - 1} {
		if err := os.WriteFile(cut, z.Bytes()[:keep], 0o600); err != nil {
			t.Fatal(err)
		}
		for _, in := range [][]Input{{{File: cut}}, {{File: cut}, {File: whole}}, {{File: whole}, {File: cut}}} {
			for _, cfg.block = range []int{10_000, 0} {
				var a *Audit
				var err error
				synctest.Test(t, func(t *testing.T) { a, err = Replay(context.Background(), cfg, in, nil, nil) })
				if a != nil || err == nil || !strings.Contains(err.Error(), "read "+cut+": ") || !strings.Contains(err.Error(), "cut short") {
					t.Fatalf("cut to %d of %d, %d files, blocks of %d: %v, %v", keep, z.Len(), len(in), cfg.block, a != nil, err)
				}
			}
		}
	}
}

// A file that is cut short under the reader, as copytruncate does it, ends the
// replay with a message and not with a fault.
func TestCutShortWhileItIsRead(t *testing.T) {
	lines := text(storm(4000))
	name := filepath.Join(t.TempDir(), "a.log")
	for _, parallel := range []int{1, 3} {
		if err := os.WriteFile(name, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := testConfig(t)
		cfg.Parallel, cfg.block = parallel, 50_000
		a, err := Replay(context.Background(), cfg, []Input{{File: name}}, nil, func(int64) { os.Truncate(name, 1) })
		if runtime.GOOS == "linux" && (a != nil || err == nil || !strings.HasPrefix(err.Error(), "read "+name+": was cut short")) {
			t.Errorf("%d in parallel: %v, %v", parallel, a != nil, err)
		}
	}
}

func TestReadErrorInTheMiddle(t *testing.T) {
	broken := errors.New("input/output error")
	lines := text(storm(2000))
	synctest.Test(t, func(t *testing.T) {
		_, err := Replay(context.Background(), testConfig(t), []Input{{File: "-"}}, io.MultiReader(strings.NewReader(lines), failing{broken}), nil)
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "standard input") {
			t.Errorf("error is %v", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWhatCannotBeAudited(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty, blank := file("empty.log", ""), file("blank.log", "\n \n")
	good := file("good.log", rec(0, `,"my_id":"k"`))
	for _, c := range []struct {
		files []string
		want  []string // parts of the error
	}{
		{[]string{empty}, []string{"nothing to audit: every file is empty"}},
		{[]string{empty, blank}, []string{"nothing to audit: every file is empty"}},
		{[]string{empty, good}, nil},
		{[]string{dir, filepath.Join(dir, "none.log"), good}, []string{"read " + dir + ": is a directory", "none.log: no such file"}},
		{[]string{file("binary", "\x7fELF\x02\x01\x01\x00\x00SECRET")}, []string{"binary: is not a text log: byte 7 is 0x00"}},
		{[]string{file("prose.txt", "SECRET words;\nand more.\n")}, []string{"prose.txt: ", "detect format"}},
		{[]string{good, good}, []string{"good.log: is named twice"}},
		{[]string{"-", "-"}, []string{"named twice"}},
		{[]string{file("blanks.log", strings.Repeat(" ", 65<<20))}, []string{"blanks.log: is no log: nothing but blanks"}},
	} {
		cfg := testConfig(t)
		cfg.Sources[0].Parser.Format = "auto"
		var in []Input
		for _, f := range c.files {
			in = append(in, Input{File: f})
		}
		_, err := Replay(context.Background(), cfg, in, strings.NewReader(rec(0, "")), nil)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%q: %v", c.files, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%q: %v; want %q, and no text of the file", c.files, err, w)
			}
		}
	}
}
