package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// tailState is what is kept of a tail, as JSON. Names may be added within a
// version; whoever reads a version that it does not know must not go on.
type tailState struct {
	Version  int         `json:"version"`
	Offset   int64       `json:"offset"`   // released
	Metadata string      `json:"metadata"` // of the handler, with Offset
	Files    []fileState `json:"files"`    // that are known, oldest first
	Runs     []runState  `json:"runs"`     // from the one that holds Offset on
	Queue    []int       `json:"queue"`    // of Files, to be read after the last run's
}

const tailStateVersion = 1

type fileState struct {
	Path    string    `json:"path"` // where it was found; it may lie elsewhere by now
	Dev     uint64    `json:"dev"`
	Inode   uint64    `json:"inode"`
	Head    string    `json:"head"`     // hex SHA-256 of its first bytes
	HeadLen int       `json:"head_len"` // how many
	Read    int64     `json:"read"`     // bytes of it that were handed out
	Size    int64     `json:"size"`
	Mtime   time.Time `json:"mtime"`
	Lost    bool      `json:"lost,omitempty"`   // it was cut to zero, and no copy was found
	Passed  bool      `json:"passed,omitempty"` // an earlier part that the patterns do not name: not to be read
	Gone    int64     `json:"gone,omitempty"`   // bytes that were called lost when it was given up; it may come back
}

type runState struct {
	File int   `json:"file"` // index in Files
	From int64 `json:"from"` // byte of the file
	Base int64 `json:"base"` // its offset
	End  int64 `json:"end"`  // offset behind the run, -1 while it grows
}

// release takes note of a position and hands the state to the saver.
func (t *tail) release(p Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Offset >= 0 {
		t.given = p
	}
	t.tidy()
	if state, err := json.Marshal(t.state()); err == nil {
		t.saver.put(saving{state, t.given})
	}
}

// kept implements stream.
func (t *tail) kept() Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.saved
}

// keep notes what is kept.
func (t *tail) keep(p Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saved = p
}

func (t *tail) state() tailState {
	s := tailState{Version: tailStateVersion, Offset: t.given.Offset, Metadata: t.given.Metadata}
	index := map[*followed]int{}
	for _, g := range t.files {
		if g.refused {
			continue
		}
		index[g] = len(s.Files)
		s.Files = append(s.Files, fileState{
			Path: g.path, Dev: g.dev, Inode: g.ino, Head: g.sum(), HeadLen: g.headLen,
			Read: g.read, Size: g.size, Mtime: g.mtime, Lost: g.lost, Passed: g.passed, Gone: g.gone,
		})
	}
	for _, r := range t.runs {
		if i, ok := index[r.file]; ok {
			s.Runs = append(s.Runs, runState{File: i, From: r.from, Base: r.base, End: r.end})
		}
	}
	for _, g := range t.queue {
		if i, ok := index[g]; ok {
			s.Queue = append(s.Queue, i)
		}
	}
	return s
}

// flush waits for the saver.
func (t *tail) flush(ctx context.Context) {
	t.saver.close(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded = false
	for _, g := range t.files {
		g.close()
	}
}

// load reads the saved state and finds the files of which it tells.
func (t *tail) load(ctx context.Context) error {
	text, err := t.positions.Load(ctx, t.name)
	if err != nil {
		return fmt.Errorf("load the position of %s: %w", t.name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if text != nil {
		var s tailState
		if err := json.Unmarshal(text, &s); err != nil || s.check() != nil {
			return fmt.Errorf("the saved position of %s cannot be read; delete it to begin at the start of the file", t.name)
		}
		if s.Version != tailStateVersion {
			return fmt.Errorf("the saved position of %s is of version %d, and this program knows version %d", t.name, s.Version, tailStateVersion)
		}
		t.restore(s)
	}
	t.saver = newSaver(t.positions, t.name, t.log, text, t.keep)
	t.loaded = true
	return nil
}

// check says whether the parts of a state fit together.
func (s *tailState) check() error {
	if s.Version != tailStateVersion {
		return nil
	}
	end := int64(0)
	for i, r := range s.Runs {
		last := i == len(s.Runs)-1
		if r.File < 0 || r.File >= len(s.Files) || r.From < 0 || r.Base < end ||
			last != (r.End == growing) || !last && r.End < r.Base {
			return fmt.Errorf("run %d", i)
		}
		end = r.End
	}
	for _, q := range s.Queue {
		if q < 0 || q >= len(s.Files) {
			return fmt.Errorf("queue")
		}
	}
	for i, f := range s.Files {
		if f.HeadLen < 0 || f.HeadLen > headSize || f.Read < 0 || f.Gone < 0 {
			return fmt.Errorf("file %d", i)
		}
	}
	return nil
}

func (t *tail) restore(s tailState) {
	t.given = Position{Offset: s.Offset, Metadata: s.Metadata}
	t.saved = t.given
	t.offset = s.Offset
	for _, fs := range s.Files {
		t.files = append(t.files, &followed{
			path: fs.Path, dev: fs.Dev, ino: fs.Inode, headSum: fs.Head, headLen: fs.HeadLen,
			read: fs.Read, size: fs.Size, mtime: fs.Mtime, lost: fs.Lost,
			under: fs.Mtime, passed: fs.Passed, gone: fs.Gone, quiet: time.Now(),
		})
	}
	for _, r := range s.Runs {
		t.runs = append(t.runs, stretch{file: t.files[r.File], from: r.From, base: r.Base, end: r.End})
	}
	if len(t.runs) > 0 {
		t.here = len(t.runs) - 1
	}
	for _, q := range s.Queue {
		t.queue = append(t.queue, t.files[q])
	}
	t.recover()
}

// recover finds the files of a restored state, wherever they lie now. Those that are
// needed and not found are awaited: the folder may come later than the program.
func (t *tail) recover() {
	t.find(func(g *followed) bool { return g.headLen > 0 })
	t.forgetHeadless()
	t.find(func(g *followed) bool { return g.headLen == 0 && g.read == 0 })
	t.awaited = 0
	for _, g := range t.files {
		if g.f == nil && !g.lost && g.gone == 0 && t.needed(g) {
			t.awaited++
		}
	}
	if cur := t.current(); cur != nil {
		t.seen = cur
	}
	if n := len(t.queue); n > 0 {
		t.seen = t.queue[n-1]
	}
}

// giveUp calls lost what was not read of the files that are awaited, when something
// else lies where they were to come. They stay known by identity. It says whether
// there were any.
func (t *tail) giveUp() bool {
	if t.awaited == 0 {
		return false
	}
	if t.recover(); t.awaited == 0 { // they came together with what is here now
		return true
	}
	t.awaited = 0
	cur := t.current()
	if cur != nil && cur.f == nil && !cur.lost && cur.gone == 0 {
		r := &t.runs[len(t.runs)-1]
		cur.gone = max(cur.size-cur.read, 0)
		if r.stop() <= t.given.Offset {
			cur.gone++ // how much is lost is not known, that something is must be said
		}
		t.log.Warn("the file that was being read is neither here nor beside its path under another name; reading begins at the start of the file that is here now", "file", cur.path)
	}
	var queue []*followed
	for _, g := range t.queue {
		if g.f == nil {
			t.log.Warn("a file that was to be read is not to be found any more", "file", g.path)
			g.gone = max(g.size-g.read, 1)
			t.lose(g.gone)
			continue
		}
		queue = append(queue, g)
	}
	t.queue = queue
	return true
}

// absent is what to say while what was read lies nowhere.
func (t *tail) absent() error {
	return fmt.Errorf("read %s: no such file, and what was read of it before is not beside it under another name; reading goes on where it stopped when the file is back", t.path)
}

// forgetHeadless forgets files of which nothing was read, to find them again as
// those that came after the one before: without first bytes nothing tells whether
// they were copied and cut to zero meanwhile.
func (t *tail) forgetHeadless() {
	var before *followed // the last that is known well
	var files []*followed
	for _, g := range t.files {
		if g.headLen > 0 || g.lost || g.read > 0 || before == nil && t.needed(g) {
			if g.headLen > 0 && g.f != nil {
				before = g
			}
			files = append(files, g)
			continue
		}
		for i := range t.runs {
			if r := &t.runs[i]; r.file == g { // it is the last and empty
				r.file, r.from = before, before.read
			}
		}
		for i, q := range t.queue {
			if q == g {
				t.queue = append(t.queue[:i:i], t.queue[i+1:]...)
				break
			}
		}
	}
	t.files = files
}

// find opens the files of a restored state that are wanted, wherever they lie now.
func (t *tail) find(wanted func(*followed) bool) {
	type key struct{ dev, ino uint64 }
	want := map[key][]*followed{}
	var paths []string
	dirs := map[string]bool{}
	addDir := func(path string) { dirs[filepath.Dir(path)] = true }
	addDir(t.path)
	paths = append(paths, t.path)
	if real, err := filepath.EvalSymlinks(t.path); err == nil {
		addDir(real)
	}
	for _, g := range t.files {
		want[key{g.dev, g.ino}] = append(want[key{g.dev, g.ino}], g)
		if !g.lost {
			paths = append(paths, g.path)
			addDir(g.path)
		}
	}
	for dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	for _, p := range paths {
		st, err := os.Stat(p)
		if err != nil {
			continue
		}
		dev, ino := inode(st)
		for _, g := range want[key{dev, ino}] {
			if g.f != nil || g.lost || g.gone > 0 || !wanted(g) {
				continue
			}
			o, err := openFollowed(p)
			if err != nil {
				t.warn(p, err.Error())
				continue
			}
			if !g.was(o) {
				o.close()
				continue
			}
			g.become(o)
		}
	}
	for _, g := range t.files {
		if g.f != nil || g.lost || g.gone > 0 || !wanted(g) || !t.needed(g) {
			continue
		}
		o := t.copyOf(g)
		if o == nil {
			o = t.moved(g)
		}
		if o != nil {
			g.become(o)
		}
	}
}

// was says whether o is the file that was saved as g, its inode being the same.
func (g *followed) was(o *followed) bool {
	return o.size >= g.read && g.begins(o.f)
}

func (t *tail) needed(g *followed) bool {
	if t.queued(g) {
		return true
	}
	for _, r := range t.runs {
		if r.file == g {
			return true
		}
	}
	return false
}
