package pipeline

import (
	"bytes"

	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
)

// joined puts the lines of a container's log together again that its runtime
// split. It is nil for a file that has none.
type joined struct {
	joiner *accesslog.Joiner
	line   int64 // physical lines so far
	extra  int64 // of them, not blank and no line of a block
}

// join returns the block with its split lines in one piece.
func (j *joined) join(b ingest.Block) ingest.Block {
	if j == nil {
		return b
	}
	out := ingest.Block{Partition: b.Partition, Offset: b.Offset, Refs: []ingest.Ref{}}
	offset := b.Offset
	for rest := b.Data; len(rest) > 0; {
		line, n := rest, len(rest)
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line, n = rest[:i], i+1
		}
		rest = rest[n:]
		j.line++
		if len(bytes.TrimSpace(line)) > 0 {
			j.extra++
			full, from, _, ok := j.joiner.LineAt(line, accesslog.Place{Line: j.line, Offset: offset})
			if ok {
				j.extra--
				out.Data = append(append(out.Data, full...), '\n')
				out.Refs = append(out.Refs, ingest.Ref(from))
			}
		}
		offset += int64(n)
	}
	return out
}
