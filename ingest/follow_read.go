package ingest

import (
	"bytes"
	"fmt"
	"io"
	"math"
)

// lineBatch is a batch with its memory, which goes round.
type lineBatch struct {
	batch Batch
	data  []byte
	refs  []Ref
}

// room makes data hold size bytes.
func (l *lineBatch) room(size int) []byte {
	if cap(l.data) < size {
		l.data = make([]byte, size)
	}
	return l.data[:size]
}

// read is the next batch of a run whose file is open; nil if there is no whole
// line, or if the file is not what it was.
func (t *tail) read(r *stretch) (*Batch, error) {
	g := r.file
	l := t.pool.Get().(*lineBatch)
	data, err := t.readLines(r, l)
	if len(data) == 0 || err != nil {
		t.pool.Put(l)
		return nil, err
	}
	pos := r.from + t.offset - r.base
	declared := ""
	if t.declares != "" {
		if declared, err = g.declaredBefore(pos, t.declares, t.tuning.chunk); err != nil {
			t.pool.Put(l)
			return nil, err
		}
		g.declared, g.declaredAt = Declared(data, t.declares, declared), pos+int64(len(data))
	}
	g.learn(pos, data)
	g.read = max(g.read, pos+int64(len(data)))
	g.size = max(g.size, g.read)
	g.clean = 0

	l.refs = l.refs[:0]
	for at := 0; at < len(data); {
		l.refs = append(l.refs, Ref{Line: 1, Offset: t.offset + int64(at)})
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	l.batch = Batch{
		Block: Block{Data: data, Offset: t.offset, Refs: l.refs, Declares: t.declares, Declared: declared},
		Next:  t.offset + int64(len(data)), Gap: t.gap,
		Done: func() { t.giveBack(l) },
	}
	t.offset, t.gap = l.batch.Next, 0
	return &l.batch, nil
}

// declaredBefore is what the last line before byte pos that begins with prefix says. Where
// that was not read just before, the file is read again from its beginning.
func (g *followed) declaredBefore(pos int64, prefix string, chunk int) (string, error) {
	if g.declaredAt == pos {
		return g.declared, nil
	}
	found, buf, kept, within := "", make([]byte, max(chunk, 1<<10)), 0, false
	for at := int64(0); at < pos; {
		n, err := g.readAt(buf[kept:min(int64(len(buf)), int64(kept)+pos-at)], at)
		if err != nil {
			return "", err
		}
		if n == 0 {
			break // it was cut
		}
		at += int64(n)
		whole := bytes.LastIndexByte(buf[:kept+n], '\n') + 1
		lines := buf[:whole]
		if within {
			lines = lines[bytes.IndexByte(lines, '\n')+1:]
		}
		found = Declared(lines, prefix, found)
		if kept, within = copy(buf, buf[whole:kept+n]), within && whole == 0; kept == len(buf) {
			kept, within = 0, true // of a line that is longer than any that declares
		}
	}
	return found, nil
}

// Declared is what the last of the lines that begin with prefix says behind it, and
// before if none does, or if the prefix is empty: then no line declares anything.
func Declared(lines []byte, prefix, before string) string {
	if prefix == "" {
		return before
	}
	at := bytes.LastIndex(lines, []byte("\n"+prefix)) + 1
	if at == 0 && !bytes.HasPrefix(lines, []byte(prefix)) {
		return before
	}
	line, _, _ := bytes.Cut(lines[at:], []byte("\n"))
	return string(bytes.TrimSpace(line[len(prefix):]))
}

// giveBack keeps memory for the next batch, but not that of one huge line.
func (t *tail) giveBack(l *lineBatch) {
	l.batch = Batch{}
	if cap(l.data) > 4*t.tuning.chunk {
		l.data = nil
	}
	t.pool.Put(l)
}

// readLines reads whole lines at the offset into l, and passes over lines that
// are too long.
func (t *tail) readLines(r *stretch, l *lineBatch) ([]byte, error) {
	g := r.file
	limit := int64(math.MaxInt64)
	if r.end != growing {
		limit = r.from + r.end - r.base
	}
	for {
		pos := r.from + t.offset - r.base
		search := max(pos, g.clean)
		if search == pos {
			buf := l.room(int(min(int64(t.tuning.chunk), limit-pos)))
			n, err := g.readAt(buf, pos)
			if err != nil {
				return nil, err
			}
			if pos == 0 && compressedHead(buf[:n]) != "" {
				t.refuse(g, compressedHead(buf[:n]))
				return nil, nil
			}
			end := bytes.LastIndexByte(buf[:n], '\n') + 1
			if pos+int64(n) == limit {
				end = n // what lines were cut at before
			}
			if end > 0 || n == 0 {
				if !g.intact() {
					return nil, nil
				}
				return buf[:end], nil
			}
			search = pos + int64(n)
		}
		end, err := g.lineEnd(search, limit, l, t.tuning.chunk)
		if err != nil {
			return nil, err
		}
		if end < 0 { // there is no end of line yet
			if r.end == growing && g.clean-pos > t.tuning.maxLine && len(t.queue) == 0 && !g.final {
				return nil, fmt.Errorf("read %s: no end of line within %d bytes from byte %d on; this is not a log of lines", g.path, t.tuning.maxLine, pos)
			}
			if !g.final {
				return nil, nil
			}
			end = g.clean
		}
		if !g.intact() || end == pos {
			return nil, nil
		}
		if end-pos > t.tuning.maxLine {
			t.log.Warn("a line is too long and passed over", "bytes", end-pos, "longest", t.tuning.maxLine, "byte", pos)
			t.lose(end - pos)
			t.offset += end - pos
			g.read, g.clean = max(g.read, end), 0
			continue
		}
		buf := l.room(int(end - pos))
		if n, err := g.readAt(buf, pos); err != nil || n < len(buf) {
			return nil, err // cut to zero meanwhile
		}
		return buf, nil
	}
}

// lineEnd looks for the end of a line from byte at on, before limit: the byte
// behind it, or -1, with clean saying how far there is none.
func (g *followed) lineEnd(at, limit int64, l *lineBatch, chunk int) (int64, error) {
	for at < limit {
		buf := l.room(int(min(int64(chunk), limit-at)))
		n, err := g.readAt(buf, at)
		if err != nil {
			return -1, err
		}
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		at += int64(n)
		if n < len(buf) {
			g.clean = at
			return -1, nil
		}
	}
	return limit, nil
}

// hasLine says whether there is a whole line behind what was read.
func (g *followed) hasLine(chunk int) bool {
	end, err := g.lineEnd(max(g.read, g.clean), g.size, &lineBatch{}, chunk)
	if err != nil || end < 0 {
		return false
	}
	var last [1]byte
	_, err = g.f.ReadAt(last[:], end-1)
	if last[0] != '\n' {
		g.clean = end
	}
	return (err == nil || err == io.EOF) && last[0] == '\n'
}

// refuse lets go of a file that cannot be followed.
func (t *tail) refuse(g *followed, why string) {
	t.err = fmt.Errorf("read %s: %s", g.path, why)
	t.warn(g.path, why)
	g.close()
	g.refused = true
}

// warn says once, as long as it lasts, why something is not read.
func (t *tail) warn(path, why string) {
	if t.warned[path] != why {
		t.warned[path] = why
		t.log.Warn("not read", "file", path, "why", why)
	}
}
