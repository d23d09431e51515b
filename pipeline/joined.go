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
	line   int64         // physical lines so far
	extra  int64         // of them, not blank and no line of a block
	begun  [4]ingest.Ref // by stream: where the line began of which parts are missing
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
			at, begun := ingest.Ref{Line: j.line, Offset: offset}, &j.begun[streamOf(line)]
			dropped := j.joiner.Dropped()
			full, ok := j.joiner.Line(line)
			if begun.Line > 0 && (!ok || len(full) != len(line)) {
				at = *begun
			}
			if *begun = at; ok || j.joiner.Dropped() > dropped {
				begun.Line = 0
			}
			if ok {
				j.extra--
				out.Data = append(append(out.Data, full...), '\n')
				out.Refs = append(out.Refs, at)
			}
		}
		offset += int64(n)
	}
	return out
}

// streamOf numbers the streams whose lines are split independently: standard
// output and error of CRI, and of Docker.
func streamOf(line []byte) (n int) {
	if line[0] == '{' {
		if bytes.Contains(line, []byte(`"stream":"stderr"`)) {
			return 3
		}
		return 2
	}
	if bytes.HasPrefix(line[bytes.IndexByte(line, ' ')+1:], []byte("stderr ")) {
		return 1
	}
	return 0
}
