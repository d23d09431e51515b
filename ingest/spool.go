package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// SpoolConfig says where lines are kept until they are counted.
type SpoolConfig struct {
	// Dir is the directory, made if it is not there. One process at a time uses it.
	Dir string
	// Max is the largest size of all segments, in bytes. Default 1 GiB. It is exceeded,
	// slowly, while nothing that is in the spool is let go before newer lines come.
	Max int64
	// SegmentSize is about the size of one segment, the unit in which room is given
	// back. Default an eighth of Max, 64 MiB at most.
	SegmentSize int64
	// Logger is told of trouble, never of contents. Default: nobody.
	Logger *slog.Logger
}

// Spool keeps lines on the disk in the order in which they came, until they are
// released. What Append answered for is there after a crash.
type Spool struct {
	cfg  SpoolConfig
	log  *slog.Logger
	disk spoolDisk
	lock *os.File

	woken   chan struct{}
	kick    chan struct{}
	stopped chan struct{} // closed when the committer has ended
	syncs   atomic.Int64  // of segments

	mu      sync.Mutex
	segs    []*segment // in order; the last is written to while active is open
	active  spoolFile
	sealed  bool  // the next write begins a new segment
	end     int64 // behind the last durable byte
	claimed int64 // bytes of writes that are under way
	pending []*spoolWrite
	closed  bool
	trouble error // why nothing can be kept; nil when something can
	kept    Position
	failing bool  // the last position could not be kept; of the reader
	seen    int64 // offset to be read next
	lack    fullness

	reader spoolReader
}

type spoolWrite struct {
	entries [][]byte
	size    int64 // with frame headers
	done    chan error
}

var (
	errSpoolFull   = errors.New("the spool is full")
	errSpoolClosed = errors.New("the spool is closed")
	errLineTooLong = errors.New("a line is too long")
	errTooLarge    = errors.New("larger than the spool")
)

// entrySize is about how much goes into one entry; a longer line makes one alone.
const entrySize = 64 << 10

// OpenSpool opens a spool, or makes one. It fails while another process has it.
func OpenSpool(cfg SpoolConfig) (*Spool, error) { return openSpool(cfg, realDisk()) }

func openSpool(cfg SpoolConfig, disk spoolDisk) (_ *Spool, err error) {
	if cfg.Dir == "" {
		return nil, errors.New("spool: no directory")
	}
	if cfg.Max <= 0 {
		cfg.Max = 1 << 30
	}
	if cfg.SegmentSize <= 0 {
		cfg.SegmentSize = min(cfg.Max/8, 64<<20)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Spool{
		cfg: cfg, log: cfg.Logger.With("spool", cfg.Dir), disk: disk,
		woken: make(chan struct{}, 1), kick: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	s.reader.s = s
	defer func() {
		if err != nil {
			err = fmt.Errorf("spool %s: %w", cfg.Dir, err)
			if s.lock != nil {
				s.lock.Close()
			}
		}
	}()
	if s.lock, err = takeDir(cfg.Dir); err != nil {
		return nil, err
	}
	if err := s.recover(); err != nil {
		return nil, err
	}
	go s.commits()
	return s, nil
}

// takeDir makes the directory if it is not there, and takes it for this process alone
// for as long as what it returns is open.
func takeDir(dir string) (lock *os.File, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, errors.Unwrap(err)
	}
	if lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, errors.Unwrap(err)
	}
	if err := lockFile(lock); err != nil {
		lock.Close()
		return nil, errors.New("another process has it open; give each its own directory")
	}
	return lock, nil
}

// recover finds out what the segments hold, and cuts off what was being written
// when the process before ended.
func (s *Spool) recover() error {
	var damaged bool
	var err error
	if s.segs, err = segments(s.cfg.Dir); err != nil {
		return err
	}
	if s.kept, damaged, err = loadPosition(s.cfg.Dir); err != nil {
		return err
	}
	if damaged {
		s.log.Error("the position is damaged; all that is still in the spool is read again")
	}
	for _, seg := range s.segs {
		if err := s.inspect(seg, seg == s.segs[len(s.segs)-1]); err != nil {
			return err
		}
	}
	if n := len(s.segs); n > 0 {
		s.end = s.segs[n-1].end
		if damaged || s.kept == (Position{}) {
			s.kept.Offset = s.segs[0].base
		}
	}
	if len(s.segs) == 0 && s.kept == (Position{}) {
		s.kept.Offset = firstOffset(s.disk.now())
	}
	if s.end < s.kept.Offset { // segments are gone; offsets never go back
		s.end, s.sealed = s.kept.Offset, true
	}
	s.drop()
	s.seen = s.kept.Offset
	return s.disk.syncDir(s.cfg.Dir)
}

// inspect looks at a segment's header, and in the last at every frame.
func (s *Spool) inspect(seg *segment, last bool) error {
	f, err := os.Open(seg.path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, segmentHeader)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	version, ok := headerVersion(head[:n], seg.base)
	if ok && version != segmentVersion {
		return fmt.Errorf("%s is of version %d, and this program knows version %d; %w", filepath.Base(seg.path), version, segmentVersion, ErrFinal)
	}
	if !last {
		return nil
	}
	if seg.end < seg.base+segmentHeader { // it was being made
		s.sealed = true
		seg.end = seg.base
		s.segs = s.segs[:len(s.segs)-1]
		s.end = seg.base
		if n := len(s.segs); n == 0 && s.kept.Offset < seg.base {
			s.kept.Offset = seg.base
		}
		return os.Remove(seg.path)
	}
	at := seg.base + segmentHeader
	sr := spoolReader{s: s}
	for at < seg.end {
		entry, err := sr.frameAt(f, seg, at)
		if err == nil {
			at += int64(frameHeader + len(entry))
			continue
		}
		if !errors.Is(err, errFrame) {
			return err
		}
		next, err := nextFrame(f, seg.base, at+1, seg.end)
		if err != nil {
			return err
		}
		if next < 0 {
			break
		}
		s.sealed = true // damaged in the middle: the reader says so; nothing is written behind it
		at = next
	}
	if at < seg.end {
		s.log.Warn("what was being written when the process ended is cut off; none of it had been acknowledged", "bytes", seg.end-at)
	}
	seg.end = at
	if !ok {
		s.sealed = true
	}
	s.active, err = s.disk.reopen(seg.path, at-seg.base) // durable from here on
	if err == nil && s.sealed {
		err = s.active.Close()
		s.active = nil
	} else if err == nil {
		seg.file, err = os.Stat(seg.path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(seg.path), err)
	}
	return nil
}

// split cuts lines into entries at the ends of lines.
func split(lines []byte) (entries [][]byte, size int64, err error) {
	for len(lines) > 0 {
		n := len(lines)
		if n > entrySize {
			if n = bytes.LastIndexByte(lines[:entrySize], '\n') + 1; n == 0 {
				if n = bytes.IndexByte(lines, '\n') + 1; n == 0 {
					n = len(lines)
				}
			}
		}
		if n > maxEntry {
			return nil, 0, errLineTooLong
		}
		entries = append(entries, lines[:n])
		size += int64(frameHeader + n)
		lines = lines[n:]
	}
	return entries, size, nil
}

// Append keeps lines, each with its newline. When it returns nil they are durable;
// when it returns an error nothing was promised. It shares the disk's flush with
// all that are called meanwhile. The lines must not change until it returns,
// which it does not do before because of ctx once the write is under way.
func (s *Spool) Append(ctx context.Context, lines []byte) error {
	entries, size, err := split(lines)
	if err != nil || size == 0 {
		return err
	}
	w := &spoolWrite{entries: entries, size: size, done: make(chan error, 1)}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if err := s.admit(size); err != nil {
		s.mu.Unlock()
		return err
	}
	s.claimed += size + segmentHeader
	s.pending = append(s.pending, w)
	select {
	case s.kick <- struct{}{}:
	default:
	}
	s.mu.Unlock()
	return <-w.done
}

// admit says whether there is room for a write.
func (s *Spool) admit(size int64) error {
	switch {
	case s.closed:
		return errSpoolClosed
	case size > s.cfg.Max-2*segmentHeader:
		return errTooLarge
	case s.used()+s.claimed+size > s.cfg.Max-segmentHeader:
		if n := len(s.segs); n > 0 && s.kept.Offset >= s.segs[n-1].end && s.claimed == 0 {
			s.sealed = true // all is released, and only a segment that is not written to can go
			s.drop()
			if s.used()+size <= s.cfg.Max-segmentHeader {
				return nil
			}
		}
		now := time.Now()
		s.lack.lacking(now)
		over := s.used() + size - s.cfg.Max
		if s.seen >= s.end && s.claimed == 0 && s.lack.overdraw(now, size, over, s.cfg.Max) {
			return nil
		}
		return errSpoolFull
	}
	return nil
}

func (s *Spool) used() (n int64) {
	for _, seg := range s.segs {
		n += seg.end - seg.base
	}
	return n
}

// commits writes what is pending, group by group, until the spool is closed. While
// nothing can be kept it looks again and again whether something can.
func (s *Spool) commits() {
	defer close(s.stopped)
	var again <-chan time.Time
	for {
		select {
		case _, more := <-s.kick:
			if !more {
				if s.active != nil {
					s.active.Close()
				}
				return
			}
			s.commitPending()
		case <-again:
			_, err := s.segment()
			s.note(err)
		}
		again = nil
		if s.failed() != nil {
			again = time.After(releaseEvery)
		}
	}
}

func (s *Spool) commitPending() {
	s.mu.Lock()
	group := s.pending
	s.pending = nil
	s.mu.Unlock()
	for len(group) > 0 {
		n, err := s.commit(group)
		if errors.Is(err, errDisplaced) { // into another segment
			n, err = s.commit(group)
		}
		s.note(err)
		s.mu.Lock()
		for _, w := range group[:n] {
			s.claimed -= w.size + segmentHeader
		}
		s.mu.Unlock()
		for _, w := range group[:n] {
			w.done <- err
		}
		group = group[n:]
	}
}

func (s *Spool) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
}

// failed is why nothing can be kept; nil when something can.
func (s *Spool) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// commit makes the first n writes of a group durable in one segment. On an error
// the segment ends before them.
func (s *Spool) commit(group []*spoolWrite) (n int, err error) {
	seg, err := s.segment()
	if err != nil {
		return len(group), err
	}
	at := seg.end
	var buf []byte
	for n < len(group) && (n == 0 || at-seg.base < s.cfg.SegmentSize) {
		for _, entry := range group[n].entries {
			buf = appendFrame(buf, at, entry)
			at += int64(frameHeader + len(entry))
		}
		n++
	}
	_, err = s.active.Write(buf)
	if err == nil {
		s.syncs.Add(1)
		err = s.active.Sync()
	}
	if err == nil {
		err = seg.present()
	}
	if err != nil {
		// After a failed sync nobody knows what is on the disk: nothing goes there any more.
		cut := s.active.Truncate(seg.end - seg.base)
		s.active.Close()
		s.active = nil
		s.log.Warn("nothing could be kept; it is tried again", "err", err, "cut", cut)
		return n, err
	}
	s.mu.Lock()
	seg.end, s.end = at, at
	s.mu.Unlock()
	s.poke()
	return n, nil
}

// segment is the one to write to; it begins a new one when the last is large
// enough or cannot be written to.
func (s *Spool) segment() (*segment, error) {
	s.mu.Lock()
	sealed := s.sealed
	var last *segment
	if n := len(s.segs); n > 0 {
		last = s.segs[n-1]
	}
	base := s.end
	s.mu.Unlock()
	if s.active != nil && last != nil && !sealed && last.end-last.base < s.cfg.SegmentSize {
		return last, nil
	}
	if s.active != nil {
		s.active.Close()
		s.active = nil
	}
	if last != nil && last.base == base {
		base++ // a segment's name is its own for ever
	}
	seg := &segment{path: segmentPath(s.cfg.Dir, base), base: base, end: base + segmentHeader}
	f, err := s.disk.create(seg.path)
	if errors.Is(err, os.ErrNotExist) {
		if err = s.remake(); err == nil {
			f, err = s.disk.create(seg.path)
		}
	}
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(appendHeader(nil, base)); err == nil {
		if err = f.Sync(); err == nil {
			err = s.disk.syncDir(s.cfg.Dir)
		}
	}
	if err == nil {
		seg.file, err = os.Stat(seg.path)
	}
	if err != nil {
		f.Close()
		os.Remove(seg.path)
		return nil, err
	}
	s.mu.Lock()
	s.segs = append(s.segs, seg)
	s.active, s.sealed, s.end = f, false, seg.end
	s.mu.Unlock()
	return seg, nil
}

// remake makes the directory anew that somebody deleted or moved. Offsets go on from
// where they were.
func (s *Spool) remake() error {
	lock, err := takeDir(s.cfg.Dir)
	if err != nil {
		return err
	}
	s.log.Error("the directory was gone and is made anew; what it held and was not read yet is lost")
	s.lock.Close()
	s.lock = lock
	return nil
}

// Close refuses what comes and waits for what is under way.
func (s *Spool) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.kick) // whoever is pending has kicked before
	s.mu.Unlock()
	<-s.stopped
	s.reader.close()
	return s.lock.Close()
}

func (s *Spool) poke() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}
