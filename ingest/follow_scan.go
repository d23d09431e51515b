package ingest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// keptFiles is how many files are known by identity when nothing of them is
// needed any more: so that none is read twice under another name.
const keptFiles = 16

// scan looks at what the path leads to and takes files that came into the queue.
// It says whether there may be more to read.
func (t *tail) scan() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.loaded {
		return false
	}
	before := t.err
	more := t.look()
	return more || (before == nil) != (t.err == nil)
}

func (t *tail) look() bool {
	more := t.lookAtSeen()
	if t.awaited > 0 && time.Since(t.looked) >= globEvery {
		t.looked = time.Now()
		t.recover()
		more = more || t.awaited == 0
	}
	st, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t.away() || more
	}
	t.goneSince, t.goneSaid = time.Time{}, false
	if err != nil {
		t.err = openError(t.path, err)
		return more
	}
	if s := t.seen; s != nil && !s.lost && os.SameFile(st, s.st) && (s.f != nil || s.refused && st.Size() >= s.size) {
		s.under = s.mtime
		if !s.refused {
			t.err = nil
			more = t.giveUp() || more
		}
		return more
	}
	g, err := openFollowed(t.path)
	if t.err = err; err != nil {
		return more
	}
	t.arrive(g)
	return true
}

// away is what there is to do while nothing lies under the path: it was rotated
// away, or deleted, or is still to come.
func (t *tail) away() (more bool) {
	s := t.seen
	if s == nil {
		for _, e := range t.unseen(nil) {
			t.log.Info("an earlier part of the log is read before the path itself is there", "file", e.path)
			t.admit(e)
			t.seen = e
		}
		t.err = nil
		if t.seen == nil {
			t.err = openError(t.path, &fs.PathError{Err: fs.ErrNotExist})
		}
		return t.seen != nil
	}
	t.err = nil
	if t.goneSince.IsZero() {
		t.goneSince = time.Now()
	}
	if t.awaited > 0 {
		t.err = t.absent()
		return false
	}
	if err := t.notThere(); err != nil && !t.goneSaid {
		t.goneSaid = true
		t.log.Warn("the file is gone", "err", err)
	}
	if s.f == nil || s != t.current() || time.Since(t.goneSince) < t.tuning.linger || time.Since(s.quiet) < t.tuning.linger {
		return false
	}
	s.final = true // who wrote to it has had time to write the rest of its last line
	if s.read < s.size {
		return true
	}
	if st, err := s.f.Stat(); err == nil && unlinked(st) && t.given.Offset >= t.offset {
		s.close() // gives its room on the disk back
	}
	return false
}

// missing says that the file is gone. It is no error of reading, as err is: what is known of
// the log can be read to its end, for which nobody else has to wait.
func (t *tail) missing() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.notThere()
}

func (t *tail) notThere() error {
	if !t.loaded || !t.literal || t.goneSince.IsZero() || time.Since(t.goneSince) < missAfter {
		return nil
	}
	return fmt.Errorf("read %s: no such file any more, since %s; reading goes on when it is back or another is there", t.path, t.goneSince.UTC().Format(time.RFC3339))
}

// lookAtSeen looks whether the file that the path led to has grown or was cut.
func (t *tail) lookAtSeen() (more bool) {
	for _, g := range t.files {
		if g.f == nil {
			continue
		}
		if g != t.seen {
			more = more || t.looksGrown(g)
			continue
		}
		st, err := g.f.Stat()
		if err != nil || st.Size() == g.size && st.ModTime().Equal(g.mtime) {
			continue
		}
		more, g.quiet, g.final = true, time.Now(), false
		if !g.intact() {
			t.cut(g)
			continue
		}
		g.look(st)
	}
	return more
}

// looksGrown says whether a file that was left has grown or is to be given up.
func (t *tail) looksGrown(g *followed) bool {
	st, err := g.f.Stat()
	return err == nil && (st.Size() != g.size || g.size > g.read && time.Since(g.quiet) >= t.tuning.linger)
}

// arrive takes in the file that the path leads to now, after those that came and
// were rotated away since the path was last looked at.
func (t *tail) arrive(g *followed) {
	if why := compressed(g.f); why != "" {
		t.refuse(g, why)
		t.seen = g
		return
	}
	t.giveUp()
	if t.seen == nil {
		t.passOver(g)
	}
	earlier := t.unseen(g)
	for _, e := range earlier {
		t.log.Info("an earlier part of the log is read first", "file", e.path)
		t.admit(e)
	}
	if k := t.known(g); k != nil {
		if n := len(t.runs); k == t.current() && k.gone > 0 { // what was called lost is read now, behind that
			r := &t.runs[n-1]
			next := stretch{file: k, from: k.read, base: r.stop(), end: growing}
			r.end = next.base - k.gone
			t.runs = append(t.runs, next)
		}
		k.become(g)
		k.final, k.quiet, t.seen = false, time.Time{}, k
		if k != t.current() && !t.queued(k) {
			t.queue = append(t.queue, k)
		}
		return
	}
	if t.seen != nil {
		t.log.Info("the path leads to another file; the one before is read to its end first", "unread", max(t.seen.size-t.seen.read, 0))
	}
	t.admit(g)
	t.seen = g
}

func (t *tail) admit(g *followed) {
	t.files = append(t.files, g)
	t.queue = append(t.queue, g)
}

// known is the file that o is, if it was met before.
func (t *tail) known(o *followed) *followed {
	for i := len(t.files) - 1; i >= 0; i-- {
		if g := t.files[i]; !g.lost && !g.passed && g.is(o) {
			return g
		}
	}
	return nil
}

// unseen opens the files beside the path that are earlier parts of it and were
// not met, oldest first: those that came and went between two looks. At first,
// it is those that the patterns name.
func (t *tail) unseen(now *followed) (found []*followed) {
	last := t.seen
	if last != nil && (last.lost || last.refused) {
		return nil // there is nothing to say what is later than it
	}
	paths := t.beside()
	for _, p := range paths {
		if last == nil && !t.named(p) {
			continue
		}
		o, err := openFollowed(p)
		if err != nil {
			t.warn(p, err.Error())
			continue
		}
		if why := compressed(o.f); why != "" {
			if last == nil {
				t.warn(p, why)
			}
			o.close()
			continue
		}
		if now != nil && os.SameFile(o.st, now.st) || t.met(o) || last != nil && o.mtime.Before(last.under) {
			o.close()
			continue
		}
		found = append(found, o)
	}
	oldestFirst(found)
	return found
}

// passOver takes note of the earlier parts that are there before anything was read and
// are not to be read, to tell them from those that come later.
func (t *tail) passOver(now *followed) {
	var found []*followed
	for _, p := range t.beside() {
		if t.named(p) {
			continue
		}
		o, err := openFollowed(p)
		if err != nil {
			continue
		}
		head := make([]byte, headSize)
		n, _ := o.f.ReadAt(head, 0)
		if !os.SameFile(o.st, now.st) && compressedHead(head[:n]) == "" && n > 0 {
			o.learn(0, head[:n])
			o.read, o.passed = o.size, true
			found = append(found, o)
		}
		o.close()
	}
	oldestFirst(found)
	t.files = append(t.files, found...)
}

// met says whether a file, or what it is a copy of, was met before.
func (t *tail) met(o *followed) bool {
	for _, g := range t.files {
		if g.f != nil && os.SameFile(g.st, o.st) || g.is(o) || g.headLen >= copyHead && g.begins(o.f) {
			return true
		}
	}
	return false
}

// named says whether the patterns name p.
func (t *tail) named(p string) bool {
	for _, pattern := range t.patterns {
		if ok, _ := filepath.Match(filepath.Clean(pattern), p); ok || filepath.Clean(pattern) == p {
			return true
		}
	}
	return false
}

// beside lists rotated parts of the path, and of what it is a link to.
func (t *tail) beside() []string {
	paths := rotatedPaths(t.path)
	if real, err := filepath.EvalSymlinks(t.path); err == nil && real != filepath.Clean(t.path) {
		paths = append(paths, rotatedPaths(real)...)
	}
	return paths
}

// copyOf opens the copy that was made of a file before it was cut to zero. Of a
// file of which nothing was read, it is the oldest part that was not met.
func (t *tail) copyOf(g *followed) *followed {
	var found []*followed
	for _, p := range t.beside() {
		o, err := openFollowed(p)
		if err != nil {
			continue
		}
		if g.isCopied(o) && !t.taken(o, g) && (g.headLen > 0 || !t.met(o)) {
			found = append(found, o)
			continue
		}
		o.close()
	}
	if len(found) == 0 {
		return nil
	}
	oldestFirst(found)
	for _, o := range found[1:] {
		o.close()
	}
	return found[0]
}

// moved opens what lies under the path itself if it is g on another device, as a volume
// that was restored or mounted anew has it.
func (t *tail) moved(g *followed) *followed {
	if g.headLen < copyHead {
		return nil
	}
	o, err := openFollowed(t.path)
	if err != nil {
		return nil
	}
	if !g.isCopied(o) || t.taken(o, g) {
		o.close()
		return nil
	}
	return o
}

func oldestFirst(files []*followed) {
	sort.SliceStable(files, func(i, j int) bool {
		a, b := files[i], files[j]
		if !a.mtime.Equal(b.mtime) {
			return a.mtime.Before(b.mtime)
		}
		return rotationNumber(a.path) > rotationNumber(b.path)
	})
}

// taken says whether o is already another file that is known.
func (t *tail) taken(o, but *followed) bool {
	for _, g := range t.files {
		if g != but && g.f != nil && os.SameFile(g.st, o.st) {
			return true
		}
	}
	return false
}

// tidy lets go of runs that lie below the released offset, and of files that
// nothing is needed of.
func (t *tail) tidy() {
	for t.here > 0 && t.runs[0].end <= t.given.Offset {
		t.runs = t.runs[1:]
		t.here--
	}
	needed := map[*followed]bool{t.seen: true}
	for _, r := range t.runs {
		needed[r.file] = true
	}
	for _, q := range t.queue {
		needed[q] = true
	}
	idle := 0
	for i := len(t.files) - 1; i >= 0; i-- {
		g := t.files[i]
		if needed[g] {
			continue
		}
		if g.f != nil && time.Since(g.quiet) >= t.tuning.linger && g.size <= g.read {
			g.close()
		}
		if g.f == nil {
			if idle++; idle > keptFiles {
				t.files = append(t.files[:i:i], t.files[i+1:]...)
			}
		}
	}
}
