package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// spoolReader reads a spool from a position on; it is its stream.
type spoolReader struct {
	s      *Spool
	offset int64 // to be read next
	f      *os.File
	base   int64 // of the segment that f is
	buf    []byte
	held   []byte // buf[...] read from the segment, beginning at offset
	pool   sync.Pool
	gap    int64
}

const spoolChunk = 256 << 10

// load has nothing to do: opening the spool did it.
func (r *spoolReader) load(context.Context) error { return nil }

func (r *spoolReader) flush(context.Context) {}

func (r *spoolReader) present() (bool, error) { return true, nil }

func (r *spoolReader) wake() <-chan struct{} { return r.s.woken }

func (r *spoolReader) at() int64 { return r.offset }

func (r *spoolReader) left() Position {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.kept
}

func (r *spoolReader) unread() int64 {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return max(r.s.end-r.s.seen, 0)
}

// close gives the open segment back.
func (r *spoolReader) close() {
	if r.f != nil {
		r.f.Close()
		r.f = nil
	}
	r.held = nil
}

// moveTo makes offset the next to be read.
func (r *spoolReader) moveTo(offset int64) {
	r.offset = offset
	r.s.mu.Lock()
	r.s.seen = offset
	r.s.mu.Unlock()
}

// span is the segment that holds offset, or the first behind it; nil at the end.
func (r *spoolReader) span(offset int64) *segment {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for _, seg := range r.s.segs {
		if offset < seg.end {
			c := *seg
			return &c
		}
	}
	return nil
}

// seek walks to the first frame at or behind offset.
func (r *spoolReader) seek(offset int64) error {
	r.close()
	r.gap = 0
	left := r.left().Offset
	seg := r.span(offset)
	if seg == nil {
		r.s.mu.Lock()
		end := r.s.end
		r.s.mu.Unlock()
		r.moveTo(end)
		return nil
	}
	at := max(offset, seg.base)
	if at > offset && at > left { // what was not released is not there
		r.lose(at-max(offset, left), "segments are gone")
	}
	if at > seg.base {
		from := seg.base + segmentHeader
		if err := r.open(seg); errors.Is(err, os.ErrNotExist) {
			r.moveTo(at) // reading on finds that
			return nil
		} else if err != nil {
			return err
		}
		for from < at {
			entry, err := r.frameAt(r.f, seg, from)
			switch {
			case err == nil:
				from += int64(frameHeader + len(entry))
			case errors.Is(err, errFrame): // reading on finds the next sound one
				next, err := nextFrame(r.f, seg.base, from+1, seg.end)
				if err != nil {
					return err
				}
				if next < 0 || next > at {
					r.moveTo(at)
					return nil
				}
				from = next
			default:
				return err
			}
		}
		at = from
	}
	r.moveTo(at)
	return nil
}

func (r *spoolReader) open(seg *segment) error {
	if r.f != nil && r.base == seg.base {
		return nil
	}
	r.close()
	f, err := os.Open(seg.path)
	if err != nil {
		return err
	}
	r.f, r.base = f, seg.base
	return nil
}

// frameAt reads the frame at an offset of a segment; errFrame if there is no
// sound one before the segment's end.
func (r *spoolReader) frameAt(f io.ReaderAt, seg *segment, offset int64) ([]byte, error) {
	fill := func(size int) error {
		size = int(min(int64(size), seg.end-offset))
		if cap(r.buf) < size {
			r.buf = make([]byte, size)
		}
		n, err := f.ReadAt(r.buf[:size], offset-seg.base)
		r.held = r.buf[:n]
		if err != nil && err != io.EOF {
			return err
		}
		return nil
	}
	if len(r.held) < frameHeader {
		if err := fill(spoolChunk); err != nil {
			return nil, err
		}
	}
	if n, ok := frameLength(r.held); ok && len(r.held) < frameHeader+n {
		if err := fill(max(spoolChunk, frameHeader+n)); err != nil {
			return nil, err
		}
	}
	entry, err := frame(r.held, offset)
	if err != nil {
		r.held = nil
		return nil, errFrame
	}
	r.held = r.held[frameHeader+len(entry):]
	return entry, nil
}

func (r *spoolReader) lose(n int64, why string) {
	r.gap += n
	r.s.log.Error("bytes of the spool are lost", "bytes", n, "offset", r.offset, "why", why)
}

// next is the next batch, nil at the end.
func (r *spoolReader) next() (*Batch, error) {
	l, _ := r.pool.Get().(*lineBatch)
	if l == nil {
		l = &lineBatch{}
	}
	l.data, l.refs = l.data[:0], l.refs[:0]
	first := int64(-1)
	for len(l.data) < spoolChunk {
		seg := r.span(r.offset)
		if seg == nil {
			break
		}
		if len(l.data) > 0 && (r.gap > 0 || r.base != seg.base) {
			break // a gap lies just before its batch
		}
		if r.offset < seg.base {
			r.lose(seg.base-r.offset, "a segment is gone, or cut short")
			r.moveTo(seg.base)
		}
		if err := r.open(seg); errors.Is(err, os.ErrNotExist) {
			if len(l.data) > 0 {
				break
			}
			if from := max(r.offset, r.left().Offset); from < seg.end { // what was released is not missed
				r.lose(seg.end-from, "a segment is gone")
			}
			r.moveTo(seg.end)
			continue
		} else if err != nil {
			return nil, err
		}
		if r.offset < seg.base+segmentHeader {
			r.held = nil
			r.moveTo(min(seg.base+segmentHeader, seg.end))
			continue
		}
		entry, err := r.frameAt(r.f, seg, r.offset)
		if errors.Is(err, errFrame) {
			if len(l.data) > 0 {
				break
			}
			if err := r.pass(seg); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil && first >= 0 {
			break // the next call says it
		}
		if err != nil {
			return nil, err
		}
		if first < 0 {
			first = r.offset
		}
		l.add(entry, r.offset)
		r.moveTo(r.offset + int64(frameHeader+len(entry)))
	}
	if first < 0 && r.gap == 0 {
		r.pool.Put(l)
		return nil, nil
	}
	if first < 0 {
		first = r.offset
	}
	l.batch = Batch{
		Block: Block{Data: l.data, Offset: first, Refs: l.refs},
		Next:  r.offset, Gap: r.gap,
		Done: func() { r.giveBack(l) },
	}
	r.gap = 0
	return &l.batch, nil
}

func (r *spoolReader) giveBack(l *lineBatch) {
	l.batch = Batch{}
	if cap(l.data) > 4*spoolChunk {
		l.data = nil
	}
	r.pool.Put(l)
}

// add appends the lines of the entry at offset.
func (l *lineBatch) add(entry []byte, offset int64) {
	l.data = append(l.data, entry...)
	n := int64(0)
	for range bytes.Lines(entry) {
		n++
		l.refs = append(l.refs, Ref{Line: n, Offset: offset})
	}
	if entry[len(entry)-1] != '\n' {
		l.data = append(l.data, '\n')
	}
}

// pass goes over a damaged frame to the next sound one, or to the end of the
// segment.
func (r *spoolReader) pass(seg *segment) error {
	next, err := nextFrame(r.f, seg.base, r.offset+1, seg.end)
	if err != nil {
		return err
	}
	if next < 0 {
		next = seg.end
	}
	r.lose(next-r.offset, "a frame of "+seg.path+" is damaged")
	r.held = nil
	r.moveTo(next)
	return nil
}

// kept implements stream: a position is on the disk or is none.
func (r *spoolReader) kept() Position { return r.left() }

// release keeps the position and deletes the segments below it.
func (r *spoolReader) release(p Position) {
	s := r.s
	s.mu.Lock()
	same := p == s.kept
	s.mu.Unlock()
	if p.Offset < 0 || same && !s.failing {
		return
	}
	set := func() {
		s.mu.Lock()
		s.kept = p
		s.drop()
		s.mu.Unlock()
	}
	err := s.disk.replace(positionPath(s.cfg.Dir), encodePosition(p))
	if isFull(err) { // what is done with makes room for saying so
		set()
		err = s.disk.replace(positionPath(s.cfg.Dir), encodePosition(p))
	}
	if err != nil && !s.failing {
		s.log.Warn("the position cannot be kept; after a restart more is read again", "err", err)
	}
	s.failing = err != nil
	if err == nil {
		set()
	}
}

// drop deletes segments that are wholly released and not written to.
func (s *Spool) drop() {
	for len(s.segs) > 0 {
		seg := s.segs[0]
		last := len(s.segs) == 1
		if seg.end > s.kept.Offset || last && !s.sealed {
			return
		}
		if err := os.Remove(seg.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.Warn("a segment that is done with cannot be deleted", "err", err)
			return
		}
		s.segs = s.segs[1:]
	}
}
