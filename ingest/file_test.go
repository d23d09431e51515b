package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func gzipped(t testing.TB, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, m := range members {
		w := gzip.NewWriter(&b)
		if _, err := io.WriteString(w, m); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func zstded(t testing.TB, frames ...string) []byte {
	t.Helper()
	var b []byte
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		b = w.EncodeAll([]byte(f), b)
	}
	return b
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// drain reads a file to its end and holds every block to what Next promises.
func drain(t testing.TB, f *File, size int) (string, error) {
	t.Helper()
	var all []byte
	var buf []byte
	for {
		b, err := f.Next(size, buf)
		if errors.Is(err, io.EOF) {
			if _, err := f.Next(size, nil); !errors.Is(err, io.EOF) {
				t.Errorf("after the end: %v, want io.EOF", err)
			}
			return string(all), nil
		}
		if err != nil {
			return string(all), err
		}
		switch {
		case len(b.Data) == 0:
			t.Fatal("an empty block")
		case b.Offset != int64(len(all)):
			t.Fatalf("block at offset %d, %d bytes came before it", b.Offset, len(all))
		case len(all) > 0 && all[len(all)-1] != '\n':
			t.Fatalf("a line is split before byte %d", len(all))
		case len(b.Data) > size && bytes.IndexByte(b.Data, '\n') < size-1 && bytes.IndexByte(b.Data, '\n') >= 0:
			t.Fatalf("a block of %d bytes whose first line fits in %d", len(b.Data), size)
		}
		all = append(all, b.Data...)
		buf = b.Data
	}
}

// log is n lines of all lengths from 0 up.
func log(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat("x", i%97))
	}
	return b.String()
}

func TestFileHoldsTheSameLogHoweverItIsStored(t *testing.T) {
	text := log(3000)
	half := strings.Index(text[len(text)/2:], "\n") + len(text)/2 + 1
	inLine := half + 1 // members and frames may split a line
	for name, data := range map[string][]byte{
		"plain.log":    []byte(text),
		"one.gz":       gzipped(t, text),
		"members.gz":   gzipped(t, text[:half], "", text[half:]),
		"in-line.gz":   gzipped(t, text[:inLine], text[inLine:]),
		"one.zst":      zstded(t, text),
		"frames.zst":   zstded(t, text[:inLine], text[inLine:]),
		"misnamed.log": gzipped(t, text), // the first bytes decide, not the name
		"misnamed.gz":  []byte(text),
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, name, data)
			f, err := Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, err := drain(t, f, 1000)
			if err != nil || got != text {
				t.Errorf("read %d bytes, error %v; want all %d", len(got), err, len(text))
			}
			if f.Read() != int64(len(data)) || f.Name() != path {
				t.Errorf("Read %d, Name %q; want %d, %q", f.Read(), f.Name(), len(data), path)
			}
		})
		t.Run("stdin "+name, func(t *testing.T) {
			f, err := Open(Stdin, bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got, err := drain(t, f, 1000); err != nil || got != text {
				t.Errorf("read %d bytes, error %v; want all %d", len(got), err, len(text))
			}
			if f.Name() != "standard input" {
				t.Errorf("Name is %q", f.Name())
			}
		})
	}
}

func TestNextAtEveryBlockSize(t *testing.T) {
	for name, text := range map[string]string{
		"lines":            "a\nbb\n\nccc\ndddddddddddddddddddddddddddddddd\n\n\ne\n",
		"no final newline": "a\nbb\nccc",
		"crlf":             "a\r\nbb\r\n\r\nccc\r\n",
		"one line":         "abc\n",
		"one byte":         "a",
		"newlines":         "\n\n\n",
		"long last":        "a\n" + strings.Repeat("z", 40),
		"looks compressed": "\x1f\n\x8b\n",
	} {
		for size := 1; size <= len(text)+2; size++ {
			for _, chunk := range []int{1, 3, 1 << 20} {
				f, err := Open(Stdin, &chunked{text, chunk})
				if err != nil {
					t.Fatal(err)
				}
				if size%2 == 0 {
					f.Peek(1 + len(text)/2) // changes nothing, not even the size of blocks
				}
				if got, err := drain(t, f, size); err != nil || got != text {
					t.Errorf("%s in blocks of %d, read by %d: %q, %v", name, size, chunk, got, err)
				}
				f.Close()
			}
		}
	}
}

// chunked is a pipe that gives n bytes at a time.
type chunked struct {
	rest string
	n    int
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func TestPeekTakesNothing(t *testing.T) {
	text := log(500)
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		f, err := Open(Stdin, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for {
			n := 1 + r.IntN(5000)
			ahead, err := f.Peek(n)
			if err != nil {
				t.Fatal(err)
			}
			if want := text[len(got):min(len(got)+n, len(text))]; string(ahead) != want {
				t.Fatalf("peek of %d at %d: %d bytes that are not those to come", n, len(got), len(ahead))
			}
			b, err := f.Next(1+r.IntN(3000), nil)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || b.Offset != int64(len(got)) || b.Data[len(b.Data)-1] != '\n' {
				t.Fatalf("block at %d after %d bytes: %v", b.Offset, len(got), err)
			}
			got = append(got, b.Data...)
		}
		if string(got) != text {
			t.Fatalf("read %d bytes of %d", len(got), len(text))
		}
	}
}

func TestEmptyFileIsNoError(t *testing.T) {
	for name, data := range map[string][]byte{"empty.log": nil, "empty.gz": gzipped(t, ""), "empty.zst": zstded(t, "")} {
		f, err := Open(write(t, name, data), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p, err := f.Peek(100); err != nil || len(p) != 0 {
			t.Errorf("%s: peek gives %q, %v", name, p, err)
		}
		if got, err := drain(t, f, 100); err != nil || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		f.Close()
		f.Close() // once more does no harm
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "nowhere.log")
	for _, c := range []struct{ name, want string }{
		{dir, "is a directory; name the log files in it"},
		{missing, "no such file"},
		{write(t, "a.bz2", []byte("BZh91AY&SY")), "compressed with bzip2; gzip and zstd are read as they are, unpack"},
		{write(t, "a.xz", []byte("\xfd7zXZ\x00\x00")), "compressed with xz"},
		{write(t, "a.zip", []byte("PK\x03\x04\x14\x00")), "compressed with zip"},
		{write(t, "magic.gz", []byte("\x1f\x8b")), "cut short"},
		{write(t, "odd.gz", []byte("\x1f\x8b\x63not gzip at all")), "gzip"},
	} {
		f, err := Open(c.name, nil)
		if err == nil {
			f.Close()
			t.Errorf("%s is opened", c.name)
			continue
		}
		if !strings.HasPrefix(err.Error(), "read "+c.name+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want the file and %q", c.name, err, c.want)
		}
	}
	if os.Getuid() == 0 {
		return // root may read everything
	}
	secret := write(t, "secret.log", []byte("x\n"))
	if err := os.Chmod(secret, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(secret, nil); err == nil || err.Error() != "read "+secret+": permission denied" {
		t.Errorf("without permission: %v", err)
	}
}

// A file that is cut short says so, wherever it is cut and whoever asks first,
// and says it again when asked again: what is missing is never taken for the end.
func TestCutShort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range 5000 {
		fmt.Fprintf(&b, "%016x%016x\n", r.Uint64(), r.Uint64())
	}
	text := b.String()
	for name, data := range map[string][]byte{
		"one.gz":     gzipped(t, text),
		"members.gz": gzipped(t, text[:20000], text[20000:]),
		"one.zst":    zstded(t, text),
		"frames.zst": zstded(t, text[:20000], text[20000:]),
	} {
		for _, keep := range []int{5, 20, len(data) / 3, len(data) / 2, len(data) - 9, len(data) - 1} {
			for _, peek := range []bool{false, true} {
				path := write(t, name, data[:keep])
				f, err := Open(path, nil)
				if err == nil {
					for err == nil {
						if peek {
							f.Peek(64 << 10) // whose error may be lost
						}
						_, err = f.Next(4096, nil)
					}
					_, again := f.Next(4096, nil)
					if again == nil || again.Error() != err.Error() {
						t.Errorf("%s cut to %d: asked again, the error is %v", name, keep, again)
					}
					f.Close()
				}
				for _, want := range []string{path, "cut short", "fetch it again"} {
					if !strings.Contains(fmt.Sprint(err), want) {
						t.Errorf("%s cut to %d of %d, peek %v: %v; want %q", name, keep, len(data), peek, err, want)
					}
				}
			}
		}
	}
}

func TestDamagedInside(t *testing.T) {
	for name, data := range map[string][]byte{"a.gz": gzipped(t, log(5000)), "a.zst": zstded(t, log(5000))} {
		data = bytes.Clone(data)
		for i := len(data) / 2; i < len(data)/2+20; i++ {
			data[i] ^= 0xff
		}
		path := write(t, name, data)
		f, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = f.Next(4096, nil)
		}
		f.Close()
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "read "+path+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadErrorNamesTheFile(t *testing.T) {
	broken := errors.New("input/output error")
	f, err := Open(Stdin, io.MultiReader(strings.NewReader("a line\nand more\n"), failing{broken}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Next(1000, nil)
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "read standard input: ") {
		t.Errorf("error is %v", err)
	}
	if _, err := Open(Stdin, failing{broken}); !errors.Is(err, broken) {
		t.Errorf("at the first byte: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// endless is a file without a line end, and counts what was taken of it.
type endless struct{ left, taken int }

func (e *endless) Read(p []byte) (int, error) {
	n := min(len(p), e.left)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left, e.taken = e.left-n, e.taken+n
	return n, nil
}

func TestLineWithoutEnd(t *testing.T) {
	// The least of some: what other tests left running makes memory, too.
	least := uint64(math.MaxUint64)
	const most = 2*maxLine>>20 + 8
	for try := 0; try < 5 && least > most; try++ {
		src := &endless{left: 100 << 20}
		f, err := Open(Stdin, io.MultiReader(strings.NewReader("first\n"), src))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := f.Next(3, nil); err != nil || string(b.Data) != "first\n" {
			t.Fatalf("first block %q, %v", b.Data, err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = f.Next(256<<10, nil)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "standard input: no end of line within 64 MiB from byte 6 on") {
			t.Errorf("error is %v", err)
		}
		if src.taken > maxLine+1<<20 {
			t.Errorf("%d bytes read", src.taken)
		}
		least = min(least, (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	// All that was ever made, so that nothing hides behind the collector: the
	// buffer doubles up to the limit. A little is for what others make meanwhile.
	if least > most {
		t.Errorf("%d MiB of memory", least)
	}
}

// A block is the caller's: what the file does next does not change it.
func TestBlocksKeepTheirBytes(t *testing.T) {
	text := log(2000)
	f, err := Open(Stdin, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []Block
	for {
		f.Peek(3000)
		b, err := f.Next(1000, nil)
		if err != nil {
			break
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		if want := text[b.Offset : b.Offset+int64(len(b.Data))]; string(b.Data) != want {
			t.Fatalf("block at %d was overwritten", b.Offset)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add("a\nb\n", 1, 1)
	f.Add("\x1f\x8b\x08", 10, 2)
	f.Add("\x28\xb5\x2f\xfd", 10, 2)
	f.Add("no end", 3, 100)
	f.Fuzz(func(t *testing.T, text string, size, chunk int) {
		size, chunk = 1+size&1023, 1+chunk&1023
		file, err := Open(Stdin, &chunked{text, chunk})
		if err != nil {
			return
		}
		defer file.Close()
		got, err := drain(t, file, size)
		if packed := strings.HasPrefix(text, "\x1f\x8b") || strings.HasPrefix(text, "\x28\xb5\x2f\xfd"); !packed && (err != nil || got != text) {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
	})
}
