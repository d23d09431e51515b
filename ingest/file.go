package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// File reads one log file, or standard input, from its beginning to its end.
type File struct {
	name    string
	raw     *os.File
	plain   bool // raw is a regular file, and not compressed
	counter countingReader
	r       io.Reader
	closers []func()
	offset  int64  // of rest
	rest    []byte // read, and not yet handed out; the file's own memory
	ended   bool
	broken  error // why it ended, if not at its end
}

// Stdin is the name that stands for standard input.
const Stdin = "-"

// magics are the first bytes of the formats that hold a log inside.
var magics = []struct {
	magic, name string
	open        func(io.Reader) (io.Reader, func(), error)
}{
	{"\x1f\x8b", "gzip", openGzip},
	{"\x28\xb5\x2f\xfd", "zstd", openZstd},
	{"BZh", "bzip2", nil},
	{"\xfd7zXZ", "xz", nil},
	{"PK\x03\x04", "zip", nil},
}

func openGzip(r io.Reader) (io.Reader, func(), error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, nil, err
	}
	return z, func() { z.Close() }, nil
}

func openZstd(r io.Reader) (io.Reader, func(), error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}

// Open opens a file, or stdin under the name Stdin.
func Open(name string, stdin io.Reader) (*File, error) {
	f := &File{name: name}
	if name == Stdin {
		f.name = "standard input"
		f.counter.r = stdin
	} else {
		raw, err := os.Open(name)
		if err != nil {
			return nil, openError(name, err)
		}
		if st, err := raw.Stat(); err == nil && st.IsDir() {
			raw.Close()
			return nil, fmt.Errorf("read %s: is a directory; name the log files in it", name)
		}
		f.raw, f.counter.r = raw, raw
		if st, err := raw.Stat(); err == nil {
			f.plain = st.Mode().IsRegular()
		}
		f.closers = append(f.closers, func() { raw.Close() })
	}
	head := make([]byte, 6)
	n, err := io.ReadFull(&f.counter, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		f.Close()
		return nil, fmt.Errorf("read %s: %w", f.name, err)
	}
	f.r = io.MultiReader(bytes.NewReader(head[:n]), &f.counter)
	for _, m := range magics {
		if !bytes.HasPrefix(head[:n], []byte(m.magic)) {
			continue
		}
		f.plain = false
		if m.open == nil {
			f.Close()
			return nil, fmt.Errorf("read %s: is compressed with %s; gzip and zstd are read as they are, unpack others first", f.name, m.name)
		}
		r, done, err := m.open(f.r)
		if err != nil {
			f.Close()
			return nil, f.readError(err)
		}
		f.r = r
		f.closers = append(f.closers, done)
		break
	}
	return f, nil
}

func openError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: no such file", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("read %s: permission denied", name)
	}
	return fmt.Errorf("read %s: %w", name, errors.Unwrap(err))
}

func (f *File) readError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read %s: the compressed data ends too early, after %d bytes of log; the file is cut short: fetch it again, or unpack what is there and audit that", f.name, f.offset+int64(len(f.rest)))
	}
	return fmt.Errorf("read %s: %w, after %d bytes of log", f.name, err, f.offset+int64(len(f.rest)))
}

// Name is what the file is called in messages.
func (f *File) Name() string { return f.name }

// Read is how many bytes of the file itself were read, compressed or not.
func (f *File) Read() int64 { return f.counter.n.Load() }

// Peek reads up to size bytes ahead and returns them, until the next call; they
// are still to come in blocks.
func (f *File) Peek(size int) ([]byte, error) {
	if err := f.fill(size); err != nil {
		return nil, err
	}
	return f.rest[:min(size, len(f.rest))], nil
}

// fill reads until rest holds size bytes or the file ends. Once that went wrong
// it answers the same error for ever: what could not be read is never the end.
func (f *File) fill(size int) error {
	if cap(f.rest) < size {
		f.rest = append(make([]byte, 0, size), f.rest...)
	}
	for len(f.rest) < size && !f.ended {
		n, err := f.r.Read(f.rest[len(f.rest):size])
		f.rest = f.rest[:len(f.rest)+n]
		if err != nil {
			f.ended = true
			if err != io.EOF {
				f.broken = f.readError(err)
			}
		}
	}
	return f.broken
}

// maxLine bounds the memory that a file without line ends can take.
const maxLine = 64 << 20

// Next returns the next block of whole lines, of about size bytes; io.EOF when
// there is none. The block is the caller's and lies in buf, unless it finds no
// room there: who decodes in one piece of memory keeps that in a fast cache. A
// line longer than size makes its block longer.
func (f *File) Next(size int, buf []byte) (Block, error) {
	own := f.rest
	if cap(buf) < size {
		buf = make([]byte, 0, max(size, len(own)))
	}
	f.rest = append(buf[:0], own...)
	for {
		if err := f.fill(size); err != nil {
			return Block{}, err
		}
		if len(f.rest) == 0 {
			return Block{}, io.EOF
		}
		end := bytes.LastIndexByte(f.rest[:min(size, len(f.rest))], '\n') + 1
		if end == 0 && len(f.rest) > size { // more was peeked at
			end = bytes.IndexByte(f.rest, '\n') + 1
		}
		if f.ended && (len(f.rest) <= size || end == 0) {
			end = len(f.rest)
		}
		if end == 0 {
			if size *= 2; size > maxLine {
				f.ended, f.broken = true, fmt.Errorf("read %s: no end of line within %d MiB from byte %d on; this is not a log of lines", f.name, maxLine>>20, f.offset)
				return Block{}, f.broken
			}
			continue
		}
		b := Block{Data: f.rest[:end], Offset: f.offset}
		f.rest = append(own[:0], f.rest[end:]...)
		f.offset += int64(end)
		return b, nil
	}
}

// Close gives everything back.
func (f *File) Close() {
	for i := len(f.closers) - 1; i >= 0; i-- {
		f.closers[i]()
	}
	f.closers = nil
}

type countingReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
