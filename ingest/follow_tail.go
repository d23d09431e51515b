package ingest

import (
	"bytes"
	"log/slog"
	"sync"
	"time"
)

// tail reads a path on, through the files that it led to one after the other.
//
// Its offsets count the bytes of those files as one stream, in the order in which
// they were read: a stretch is a part of one file in it. A file that was left and
// still grows, because its writer has not noticed the rotation, gets a further one.
type tail struct {
	path      string
	name      string // of the partition
	patterns  []string
	literal   bool // named itself, not found by a glob
	declares  string
	positions Positions
	log       *slog.Logger
	tuning    tuning
	woken     chan struct{}
	saver     *saver
	pool      sync.Pool // *lineBatch

	mu        sync.Mutex
	loaded    bool
	err       error             // why the path cannot be read at the moment
	seen      *followed         // the file that the path led to when last looked at
	files     []*followed       // all that are known, oldest first
	queue     []*followed       // to be read when the current one is at its end
	awaited   int               // files of the saved state that are needed and not here yet
	runs      []stretch         // from the one that holds the released position on
	here      int               // the run that holds offset
	offset    int64             // to be read next
	goneSince time.Time         // since when nothing lies under the path; zero if something does
	goneSaid  bool              // that the file is gone was logged
	looked    time.Time         // when awaited files were last looked for
	gap       int64             // lost since the last batch
	given     Position          // the last that was released
	saved     Position          // what of that is kept
	warned    map[string]string // compressed and unreadable paths that were told of
}

// stretch is a part of a file in the stream.
type stretch struct {
	file *followed
	from int64 // its first byte in the file
	base int64 // and in the stream
	end  int64 // in the stream; open while it is the last
}

const growing = -1 // the end of a run that still grows

// stop is where what was read of the run ends in the stream.
func (r *stretch) stop() int64 {
	if r.end != growing {
		return r.end
	}
	return r.base + r.file.read - r.from + r.file.gone
}

func newTail(path string, patterns []string, positions Positions, log *slog.Logger, tuning tuning) *tail {
	name := "file " + path
	t := &tail{
		path: path, name: name, patterns: patterns, positions: positions,
		log: log.With("path", path), tuning: tuning,
		woken: make(chan struct{}, 1), warned: map[string]string{},
	}
	t.pool.New = func() any { return &lineBatch{} }
	return t
}

func (t *tail) wake() <-chan struct{} { return t.woken }

func (t *tail) poke() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

func (t *tail) left() Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.given
}

// present says whether the path led to a file yet, or did in an earlier run, and that
// what is to be read on from there is here.
func (t *tail) present() (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.awaited > 0 {
		return false, t.err
	}
	return len(t.files) > 0 || t.given != Position{}, t.err
}

func (t *tail) at() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.offset
}

// unread is the bytes between the offset and the end of all that is known of.
func (t *tail) unread() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.loaded || t.err != nil {
		return -1
	}
	var n int64
	if len(t.runs) > 0 {
		last := t.runs[len(t.runs)-1]
		n = last.base + max(last.file.size-last.from, 0) - t.offset
	}
	for _, g := range t.queue {
		n += max(g.size-g.read, 0)
	}
	return max(n, 0)
}

// settled says whether all that was read is also released, and nothing waits.
func (t *tail) settled() bool {
	if t.unread() != 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.given.Offset >= t.offset
}

// current is the file that is read now, when the offset has come to it.
func (t *tail) current() *followed {
	if len(t.runs) == 0 {
		return nil
	}
	return t.runs[len(t.runs)-1].file
}

// seek makes the first line that begins at or behind offset the next one.
func (t *tail) seek(offset int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.files {
		g.clean = 0
	}
	t.gap = max(t.gap, 0)
	if len(t.runs) == 0 {
		t.offset = max(t.offset, offset)
		return nil
	}
	if first := t.runs[0].base; offset < first {
		t.log.Debug("reading begins later than asked for: what lies before is not known any more", "asked", offset, "begins", first)
		offset = first
	}
	t.here = len(t.runs) - 1
	for t.runs[t.here].base > offset {
		t.here--
	}
	r := &t.runs[t.here]
	stop := r.stop()
	if offset >= stop {
		if offset > stop && r.end == growing {
			t.log.Warn("reading begins before where it was asked to: nothing was read there yet", "asked", offset, "begins", stop)
		}
		t.offset = stop
		return nil
	}
	at, err := r.file.lineFrom(r.from+offset-r.base, r.from, r.from+stop-r.base)
	t.offset = r.base + at - r.from
	return err
}

// lineFrom is the first byte at or behind pos at which a line begins; one does at
// first and at limit.
func (g *followed) lineFrom(pos, first, limit int64) (int64, error) {
	if pos <= first || g.f == nil {
		return pos, nil
	}
	buf := make([]byte, 64<<10)
	for at := pos - 1; at < limit; {
		n, err := g.readAt(buf[:min(int64(len(buf)), limit-at)], at)
		if err != nil {
			return pos, err
		}
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		if n == 0 {
			break
		}
		at += int64(n)
	}
	return limit, nil
}

// next is the next batch, nil at the end.
func (t *tail) next() (*Batch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if len(t.runs) == 0 {
			if len(t.queue) == 0 {
				return t.atEnd()
			}
			t.advance()
			continue
		}
		r := &t.runs[t.here]
		if r.end != growing && t.offset >= r.end {
			t.here++
			t.lose(t.runs[t.here].base - t.offset)
			t.offset = t.runs[t.here].base
			continue
		}
		if r.file.f != nil {
			b, err := t.read(r)
			if b != nil || err != nil {
				return b, err
			}
			if r.file.f != nil && !r.file.intact() {
				t.cut(r.file)
				continue
			}
		}
		if stop := r.stop(); r.end != growing || r.file.f == nil && t.offset < stop {
			t.lose(stop - t.offset) // the file is not what it was
			t.offset = stop
			continue
		}
		if g := t.straggler(); g != nil {
			if cur := t.current(); cur.f != nil {
				t.queue = append([]*followed{cur}, t.queue...)
			}
			t.queue = append([]*followed{g}, t.queue...)
		}
		if len(t.queue) == 0 {
			return t.atEnd()
		}
		t.advance()
	}
}

// atEnd hands out what is known to be lost, if there is anything; else nil.
func (t *tail) atEnd() (*Batch, error) {
	if t.gap == 0 {
		return nil, t.err
	}
	b := &Batch{Block: Block{Offset: t.offset}, Next: t.offset, Gap: t.gap, AtEnd: t.err == nil}
	t.gap = 0
	return b, nil
}

// lose takes note of bytes that are gone.
func (t *tail) lose(n int64) {
	if n > 0 {
		t.gap += n
		t.log.Warn("bytes of the log that are to be read, or read once more, are gone", "bytes", n, "offset", t.offset)
	}
}

// advance leaves the current file, whose end is reached, for the next in the queue.
func (t *tail) advance() {
	g := t.queue[0]
	t.queue = t.queue[1:]
	if n := len(t.runs); n > 0 {
		r := &t.runs[n-1]
		r.end = t.offset - r.file.gone
		r.file.quiet = time.Now()
		if r.end == r.base { // nothing was read from it
			t.runs = t.runs[:n-1]
		}
	}
	t.runs = append(t.runs, stretch{file: g, from: g.read, base: t.offset, end: growing})
	t.here = len(t.runs) - 1
	g.clean = 0
}

// straggler is a file that was left and has more lines, or whose last line will
// never be finished.
func (t *tail) straggler() *followed {
	cur := t.current()
	for _, g := range t.files {
		if g == cur || g.f == nil || t.queued(g) {
			continue
		}
		st, err := g.f.Stat()
		if err != nil || st.Size() < g.read {
			continue
		}
		if st.Size() != g.size {
			g.quiet = time.Now()
		}
		g.look(st)
		if g.final = time.Since(g.quiet) >= t.tuning.linger; g.final && g.size > g.read {
			return g
		}
		if g.size > max(g.read, g.clean) && g.hasLine(t.tuning.chunk) && g.intact() {
			return g
		}
	}
	return nil
}

func (t *tail) queued(g *followed) bool {
	for _, q := range t.queue {
		if q == g {
			return true
		}
	}
	return false
}

// cut deals with a file that was cut to zero under the reader: what was not read
// yet is read from its copy, or lost.
func (t *tail) cut(g *followed) {
	unread := g.size - g.read
	g.close()
	if c := t.copyOf(g); c != nil {
		t.log.Info("the file was copied and cut to zero; its copy is read to the end", "copy", c.path)
		t.lose(g.size - c.size)
		g.become(c)
		return
	}
	g.lost, g.read = true, max(g.read, g.size)
	t.log.Warn("the file was cut to zero; what was written to it after it was last read is lost", "known", max(unread, 0))
}
