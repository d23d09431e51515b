package pipeline

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
)

// partLines wraps lines as a container's runtime does, some on stderr, and parts
// many of them; the parts of the two streams are mixed. The last line stays whole
// and last.
func partLines(r *rand.Rand, lines []string) (out []string) {
	type physical struct {
		at   int
		line string
	}
	var all []physical
	last := map[string]int{}
	for i, line := range lines[:len(lines)-1] {
		stream := []string{"stdout", "stdout", "stderr"}[r.IntN(3)]
		parts := 1
		if r.IntN(2) == 0 {
			parts += 1 + r.IntN(4)
		}
		for n := range parts {
			tag, text := "P", line[len(line)*n/parts:len(line)*(n+1)/parts]
			if n == parts-1 {
				tag = "F"
			}
			last[stream] = max(last[stream]+1, 10*i+r.IntN(40))
			all = append(all, physical{last[stream], "2026-03-03T12:00:00.000000000Z " + stream + " " + tag + " " + text})
		}
	}
	slices.SortStableFunc(all, func(a, b physical) int { return a.at - b.at })
	for _, p := range all {
		out = append(out, p.line)
	}
	return append(out, "2026-03-03T12:00:00.000000000Z stdout F "+lines[len(lines)-1])
}

// physical is a batch of lines, each ten offsets from the one before.
func physical(from int64, lines ...string) *ingest.Batch {
	b := &ingest.Batch{Next: from}
	b.Offset = from
	for _, l := range lines {
		b.Data = append(append(b.Data, l...), '\n')
		b.Refs = append(b.Refs, ingest.Ref{Line: 1, Offset: b.Next})
		b.Next += 10
	}
	return b
}

// What a batch does to lines in parts counts once the batch has its place: one that
// is refused, and comes again, does the same again.
func TestJoiningChangesNothingBeforeItsTime(t *testing.T) {
	out, err := "2026-03-03T12:00:00Z stdout ", "2026-03-03T12:00:00Z stderr "
	p := &livePart{trail: newTrail()}
	step := func(b *ingest.Batch, want string, offsets ...int64) {
		t.Helper()
		var j *joins
		for range 2 {
			var block ingest.Block
			block, j = p.join(b)
			var at []int64
			for _, r := range block.Refs {
				at = append(at, r.Offset)
			}
			if string(block.Data) != want || !slices.Equal(at, offsets) {
				t.Errorf("joined to %q at %v, want %q at %v", block.Data, at, want, offsets)
			}
		}
		if j != nil {
			p.take(j)
		}
	}
	step(physical(0, out+"F whole", "no container's"), out+"F whole\nno container's\n", 0, 10)
	if p.joiner != nil {
		t.Error("where no line is in parts, nothing is to be held")
	}
	step(physical(20, out+"P a", err+"P x", out+"P b"), "")
	step(physical(50, err+"F y", out+"P c"), err+"F xy\n", 50)
	step(physical(70, out+"F d", out+"F e"), out+"F abcd\n"+out+"F e\n", 70, 80)
	for offset, within := range map[int64]bool{20: false, 21: true, 30: true, 50: true, 70: true, 71: false, 80: false} {
		if p.trail.within(offset) != within {
			t.Errorf("within a line at %d: %v", offset, !within)
		}
	}
	// 20 to 70 and 30 to 50 are lines; the block that begins at 64 is within one.
	if at := p.trail.release(0, markAt{Offset: 90, Mark: 7}, 64); at.Offset != 0 {
		t.Errorf("released to %d", at.Offset)
	}
	if at := p.trail.release(0, markAt{Offset: 190, Mark: 7}, 64); at.Offset != 128 || len(p.trail.ended) != 0 {
		t.Errorf("released to %d, and %v are remembered", at.Offset, p.trail.ended)
	}

	// What is gone takes the parts with it that came before.
	step(physical(200, out+"P a", err+"P x"), "")
	if at := p.trail.release(0, markAt{Offset: 400, Mark: 7}, 64); at.Offset != 192 {
		t.Errorf("released to %d within a line that has not ended", at.Offset)
	}
	gap := physical(300, out+"F b", out+"P c")
	gap.Gap = 80
	if _, j := p.join(gap); j == nil || j.cut != 2 || j.counts().Quarantined["cut_short"] != 2 || j.counts().Lines != 2 {
		t.Errorf("behind a gap: %+v", j)
	}
	step(gap, out+"F b\n", 300)
	// A line that is too long is no record, and nor is its end.
	long := out + "P " + strings.Repeat("z", accesslog.MaxLine)
	if _, j := p.join(physical(320, long, out+"F d")); j == nil || j.long != 1 || j.counts().Quarantined["too_long"] != 1 || len(j.ended) != 1 || j.ended[0] != (span{310, 330}) {
		t.Errorf("a long line: %+v", j)
	}
	step(physical(320, long, out+"F d", out+"F e"), out+"F e\n", 340)
}
