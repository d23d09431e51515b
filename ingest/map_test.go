package ingest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// Mapped blocks, blocks that are read and looks ahead give every line once, in
// whatever turns they are asked for.
func TestMapReadsWhatNextReads(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		var text []byte
		for range r.IntN(400) {
			text = append(append(text, bytes.Repeat([]byte("x"), r.IntN(1+r.IntN(3000)))...), '\n')
		}
		if r.IntN(2) == 0 {
			text = append(text, "no newline at the end"...)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		mapped := 0
		for {
			size := 1 + r.IntN(20000)
			if r.IntN(4) == 0 {
				ahead, err := f.Peek(size)
				if err != nil || !bytes.HasPrefix(text[len(got):], ahead) {
					t.Fatalf("seed %d: looked ahead at %d: %d bytes, %v", seed, len(got), len(ahead), err)
				}
			}
			var b Block
			ok := false
			if r.IntN(3) > 0 {
				b, ok = f.Map(size)
			}
			if !ok {
				if b, err = f.Next(size, nil); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			} else {
				mapped++
			}
			if b.Offset != int64(len(got)) || len(b.Data) == 0 {
				t.Fatalf("seed %d: block of %d bytes at %d, want it at %d", seed, len(b.Data), b.Offset, len(got))
			}
			got = append(got, b.Data...)
			b.Free()
		}
		if !bytes.Equal(got, text) || f.Read() != int64(len(text)) {
			t.Fatalf("seed %d: %d bytes and %d counted, want %d", seed, len(got), f.Read(), len(text))
		}
		f.Close()
		if runtime.GOOS == "linux" && len(text) > 100_000 && mapped == 0 {
			t.Errorf("seed %d: nothing of %d bytes was mapped", seed, len(text))
		}
	}
}

// A block of a file that is cut short is a fault when it is touched, and known as
// that; other panics are not.
func TestMapOfAFileThatIsCutShort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing is mapped here")
	}
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(strings.Repeat("a line\n", 10000)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, ok := f.Map(50_000)
	if !ok {
		t.Fatal("not mapped")
	}
	defer b.Free()
	if err := os.Truncate(name, 10); err != nil {
		t.Fatal(err)
	}
	recovered := func(do func()) (what any) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { what = recover() }()
		do()
		return nil
	}
	for at, want := range map[int]bool{100: false, len(b.Data) - 1: true} {
		what := recovered(func() { _ = fmt.Sprint(b.Data[at]) })
		if err := f.Faulted(&b, what); (err != nil) != want {
			t.Errorf("byte %d: %v, %v", at, what, err)
		} else if want && !strings.Contains(err.Error(), "read "+name+": was cut short") {
			t.Error(err)
		}
	}
	if err := f.Faulted(&b, recovered(func() { panic("another") })); err != nil {
		t.Error(err)
	}
	if _, err := f.Next(1000, nil); err != io.EOF {
		t.Errorf("behind the end: %v", err)
	}
}
