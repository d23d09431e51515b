package pipeline

import (
	"bytes"
	"slices"

	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
)

// A container's runtime parts long lines, and a followed file holds the parts in
// order, those of stdout and stderr mixed. A line that was put together is where its
// last part is: so lines stay in order of offset, and whether one comes before or
// after something depends on nothing but the partition. A restart must not begin
// within one, or its end would pass for a line: see trail.release. What is held of
// lines whose end has not come is the partition's, and moves with what it has read.

// joins is what a batch does to the lines of its partition that are in parts.
type joins struct {
	joiner *accesslog.Joiner // after the batch
	ended  []span            // lines of several parts
	cut    int               // lines whose end is gone
	long   int               // lines that were too long to be held
}

// span is where the first and the last part of a line begin.
type span struct{ first, last int64 }

// join puts the lines of a batch together. It changes nothing: take does, once the
// batch has its place. There are no joins where no line is in parts.
func (p *livePart) join(b *ingest.Batch) (ingest.Block, *joins) {
	waiting := len(p.trail.open) > 0
	if !waiting && !hasParts(b.Data) {
		return b.Block, nil
	}
	j := &joins{joiner: new(accesslog.Joiner)}
	switch {
	case waiting && b.Gap > 0:
		j.cut = len(p.trail.open)
	case waiting:
		j.joiner = p.joiner.Clone()
	}
	p.joined, p.joinedRefs = p.joined[:0], p.joinedRefs[:0]
	dropped, number := j.joiner.Dropped(), 0
	for line := range bytes.Lines(b.Data) {
		ref := b.Refs[number]
		number++
		line = bytes.TrimSuffix(line, []byte("\n"))
		full, from, parts, ok := j.joiner.LineAt(line, accesslog.Place{Offset: ref.Offset})
		long := j.joiner.Dropped() > dropped
		if parts > 1 && (ok || long) {
			j.ended = append(j.ended, span{from.Offset, ref.Offset})
		}
		if long {
			j.long++
			dropped++
		}
		if ok {
			p.joined = append(append(p.joined, full...), '\n')
			p.joinedRefs = append(p.joinedRefs, ref)
		}
	}
	block := b.Block
	block.Data, block.Refs = p.joined, p.joinedRefs
	return block, j
}

func hasParts(data []byte) bool {
	for line := range bytes.Lines(data) {
		if accesslog.IsPart(line) {
			return true
		}
	}
	return false
}

// take goes on behind a batch with joins.
func (p *livePart) take(j *joins) {
	p.joiner = j.joiner
	p.trail.ended = append(p.trail.ended, j.ended...)
	p.trail.open = p.trail.open[:0]
	for _, at := range j.joiner.Pending() {
		p.trail.open = append(p.trail.open, at.Offset)
	}
}

// counts are the lines that became no record.
func (j *joins) counts() *SourceCounts {
	c := newSourceCounts()
	c.Lines = uint64(j.cut + j.long)
	if j.cut > 0 {
		c.Quarantined[string(accesslog.RejectCut)] = uint64(j.cut)
	}
	if j.long > 0 {
		c.Quarantined[string(accesslog.RejectTooLong)] = uint64(j.long)
	}
	return c
}

// within says that a reading from there on would begin within a line.
func (r *trail) within(offset int64) bool {
	return slices.ContainsFunc(r.ended, func(s span) bool { return s.first < offset && offset <= s.last }) ||
		slices.ContainsFunc(r.open, func(first int64) bool { return first < offset })
}

// forget drops the lines that end before an offset.
func (r *trail) forget(offset int64) {
	r.ended = slices.DeleteFunc(r.ended, func(s span) bool { return s.last < offset })
}
