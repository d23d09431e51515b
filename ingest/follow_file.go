package ingest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// headSize is how many first bytes tell a file from another in the same inode,
// and a copy of it from another file. A line of a log has a stamp: fewer do.
const headSize = 1024

// copyHead is the fewest first bytes by which any file is believed to be a copy.
const copyHead = 32

// followed is one file that a path led to. A file that was cut to zero is another
// one from then on.
type followed struct {
	dev, ino uint64
	head     []byte    // its first bytes, of those read; headSize at most
	headLen  int       // of the head, also while only its sum is known
	headSum  string    // hex SHA-256 of the head, as saved; empty while head is known
	read     int64     // bytes that were handed out, or skipped
	size     int64     // as last seen
	mtime    time.Time // as last seen
	under    time.Time // mtime when the path last led to it: what came after it is no older
	path     string    // where it was found

	st      fs.FileInfo // when it was opened
	f       *os.File    // nil: not to be read, or not any more
	clean   int64       // no line ends in bytes [read, clean)
	quiet   time.Time   // since when it has not grown, once it was left
	final   bool        // nothing more will be written: an unfinished line is handed out
	refused bool        // it is compressed
	lost    bool        // it was cut to zero, and no copy was found
	passed  bool        // it was there before anything was read, and is not to be read
	gone    int64       // bytes behind read that were called lost when it was given up

	declared   string // what was declared last before byte declaredAt
	declaredAt int64
}

// openFollowed opens a regular file.
func openFollowed(path string) (*followed, error) {
	st, err := os.Stat(path) // a named pipe would block
	if err != nil {
		return nil, openError(path, err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, openError(path, err)
	}
	if st, err = f.Stat(); err != nil {
		f.Close()
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	g := &followed{f: f, st: st, path: path}
	g.dev, g.ino = inode(st)
	g.look(st)
	g.under = g.mtime
	return g, nil
}

// look takes note of size and time, and says whether they changed.
func (g *followed) look(st fs.FileInfo) bool {
	changed := g.size != st.Size() || !g.mtime.Equal(st.ModTime())
	g.size, g.mtime = st.Size(), st.ModTime()
	return changed
}

func (g *followed) close() {
	if g.f != nil {
		g.f.Close()
		g.f = nil
	}
}

// become makes g read what o opened.
func (g *followed) become(o *followed) {
	g.close()
	g.f, g.st, g.dev, g.ino, g.path = o.f, o.st, o.dev, o.ino, o.path
	g.size, g.mtime, g.clean, g.gone = o.size, o.mtime, 0, 0
}

// begins says whether f's first bytes are those of g; with none known it cannot
// say no.
func (g *followed) begins(f *os.File) bool {
	if g.headLen == 0 {
		return true
	}
	var buf [headSize]byte
	have := buf[:g.headLen]
	if n, _ := f.ReadAt(have, 0); n < len(have) {
		return false
	}
	if g.headSum != "" {
		if sumOf(have) != g.headSum {
			return false
		}
		g.head, g.headSum = bytes.Clone(have), ""
	}
	return bytes.Equal(g.head, have)
}

// is says whether the open file o is this one.
func (g *followed) is(o *followed) bool {
	return g.dev == o.dev && g.ino == o.ino && (g.headLen > 0 || g.f != nil) && g.was(o)
}

// isCopied says whether the open file o, a rotated part by its name, is a copy of
// this one: it was written to no earlier, and has all that was read of it.
func (g *followed) isCopied(o *followed) bool {
	return o.size >= g.read && !o.mtime.Before(g.mtime) && g.begins(o.f)
}

// intact says whether the file still is what it was when it was opened: not cut
// to zero since, even if it has grown again.
func (g *followed) intact() bool {
	st, err := g.f.Stat()
	return err == nil && st.Size() >= g.read && g.begins(g.f)
}

// learn adds to the head what was read from the file at byte pos.
func (g *followed) learn(pos int64, data []byte) {
	if int64(len(g.head)) == pos && pos < headSize && g.headSum == "" {
		g.head = append(g.head, data[:min(len(data), headSize-int(pos))]...)
		g.headLen = len(g.head)
	}
}

func (g *followed) sum() string {
	if g.headSum != "" || g.headLen == 0 {
		return g.headSum
	}
	return sumOf(g.head)
}

func sumOf(head []byte) string {
	sum := sha256.Sum256(head)
	return hex.EncodeToString(sum[:])
}

// readAt reads what there is at pos, up to len(buf) bytes; fewer at the end.
func (g *followed) readAt(buf []byte, pos int64) (int, error) {
	n, err := g.f.ReadAt(buf, pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read %s: %w", g.path, errors.Unwrap(err))
	}
	return n, nil
}
