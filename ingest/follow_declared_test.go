package ingest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeclared(t *testing.T) {
	const block = "#Fields: a\r\n2026 #Fields: x\n#Fields: b \r\nz\n"
	for _, c := range [][3]string{{"#Fields:", block, "b"}, {"#Fields:", "z\n" + block[:12], "a"}, {"#Fields:", block[:12], "a"}, {"#Fields:", "z\n", "before"}, {"", block, "before"}} {
		if got := Declared([]byte(c[1]), c[0], "before"); got != c[2] {
			t.Errorf("%q with lines of %q declares %q, want %q", c[1], c[0], got, c[2])
		}
	}
}

// Each batch bears what the last line before it declares, wherever batches begin, and
// after a restart in the middle of the file as well.
func TestFollowDeclared(t *testing.T) {
	const prefix = "#Fields:"
	var text strings.Builder
	for i := range 300 {
		switch {
		case i%37 == 5:
			fmt.Fprintf(&text, "%s a b-%d \r\n", prefix, i)
		case i == 100:
			text.WriteString(strings.Repeat("z", 5000) + prefix + " no\n")
		case i%11 == 3:
			fmt.Fprintf(&text, "x %s no-%d\n", prefix, i)
		default:
			fmt.Fprintf(&text, "line %d\n", i)
		}
	}
	before := func(offset int64) (declared string) {
		for line := range strings.Lines(text.String()[:offset]) {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				declared = strings.TrimSpace(rest)
			}
		}
		return declared
	}
	for _, chunk := range []int{64, 300, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "u_ex.log")
			positions := newMemory()
			put(t, path, text.String()[:text.Len()/2])
			for round := range 3 {
				r := newRecorder(t)
				r.keep = 777 // what is released trails, so that a restart is in the midst
				seen := map[string]bool{}
				r.consume = func(_ string, b *Batch) error {
					if len(b.Data) == 0 {
						return nil
					}
					if want := before(b.Offset); b.Declares != prefix || b.Declared != want {
						t.Errorf("chunks of %d, round %d, offset %d: %v %q, want %q", chunk, round, b.Offset, b.Declares, b.Declared, want)
					}
					seen[b.Declared] = true
					return nil
				}
				f, err := NewFollow(FollowConfig{Paths: []string{path}, Positions: positions, Declares: prefix})
				must(t, err)
				f.tuning.chunk = chunk
				run := runFollow(t, f, r)
				time.Sleep(5 * time.Second)
				if round == 1 {
					put(t, path, text.String()[text.Len()/2:])
					time.Sleep(5 * time.Second)
				}
				run.stop()
				if len(seen) == 0 {
					t.Errorf("chunks of %d, round %d: nothing was read", chunk, round)
				}
			}
		})
	}
}
