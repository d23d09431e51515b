package pipeline

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
)

// noTick is before every tick.
const noTick = math.MinInt64

// livePart is one partition of a scope. The scope's lock guards it.
type livePart struct {
	ingest.Partition
	assigned bool
	seen     int64   // what was closed when it was assigned last
	counted  int64   // records before are counted by an earlier run
	recorded int64   // ticks before are closed by what is at rest of the partition
	next     int64   // offset to be read next
	sent     []int64 // offsets of the batches that not every shard is through with
	mark     int64   // watermark
	trail    trail
	raised   []markAt          // where the watermark was raised, the partition being idle
	todo     []markAt          // of them, those of an earlier run that are still to come
	decided  *markAt           // a raise that is not committed yet
	atEnd    time.Time         // since when it is read to its end and nothing came; zero: there is more
	said     time.Time         // when its source last said that it is at its end
	left     ingest.Position   // as it was last told to be released
	base     markAt            // where that is, and the watermark there
	done     int64             // records below it were counted by an earlier run
	begun    bool              // records have come
	joiner   *accesslog.Joiner // holds what came of lines in parts; nil: nothing ever did
	warming  bool              // what the ledger had to read again is gone; until the next records
	history
	unsettled bool   // what it missed before it was assigned; until its first records come
	final     int64  // ticks before were stored with all that is on time of it when it was assigned
	rules     uint32 // in its position as it is kept
	told      int64  // records below it are in the counts of this process already
	table     *table // of a partition of the exchange

	joined     []byte // memory of join
	joinedRefs []ingest.Ref
}

// endFresh is how old a source's word may be that a partition is at its end; it says
// so every second. One that has fallen silent may have unread records.
const endFresh = 5 * time.Second

// idle says that nothing has come for as long as a partition may hold back others.
func (p *livePart) idle(now time.Time, after time.Duration) bool {
	return !p.atEnd.IsZero() && now.Sub(p.atEnd) >= after && now.Sub(p.said) <= endFresh
}

// errDecided is what a session is told when records come to a partition of which it
// was just decided that it is idle: what a restart would be told decides.
var errDecided = fmt.Errorf("%w: it was taken to be idle", ingest.ErrAnew)

// raise applies what an earlier run decided about an idle partition.
func (p *livePart) raise() {
	for len(p.todo) > 0 && p.todo[0].Offset <= p.next {
		p.raiseTo(p.todo[0])
		p.todo = p.todo[1:]
	}
}

func (p *livePart) raiseTo(m markAt) {
	p.mark = max(p.mark, m.Mark)
	if n := len(p.raised); n > 0 && p.raised[n-1].Offset == m.Offset {
		p.raised[n-1] = m
	} else {
		p.raised = append(p.raised, m)
	}
}

// settle takes note of what a restart would be told: whether the raise that was
// decided is part of that.
func (p *livePart) settle(l *left) {
	if p.decided != nil && slices.Contains(l.Raised, *p.decided) {
		p.raiseTo(*p.decided)
		p.decided = nil
	}
}

// lost is how many of the records that are gone just before a batch were not counted
// by anyone. If they are gone where an earlier run stopped, the ledger does not know
// what was asked before.
func (p *livePart) lost(b *ingest.Batch) int64 {
	if b.Gap == 0 {
		return 0
	}
	p.warming = p.warming || !p.begun
	return min(b.Gap, max(0, b.Offset-p.done))
}

// contradicts says that another instance has raised the watermark where this one has
// read on without: the two may have found different records late.
func (p *livePart) contradicts(l *left) bool {
	return slices.ContainsFunc(l.Raised, func(m markAt) bool {
		return m.Offset >= p.base.Offset && m.Offset < p.next && !slices.Contains(p.raised, m)
	})
}

// learn takes over what another instance has decided about what is still to be read.
func (p *livePart) learn(l *left) {
	p.todo = nil
	for _, m := range l.Raised {
		if m.Offset >= p.next && !slices.Contains(p.raised, m) {
			p.todo = append(p.todo, m)
		}
	}
}

// decisions are all raises that a restart has to be told.
func (p *livePart) decisions() []markAt {
	all := slices.Concat(p.raised, p.todo)
	if p.decided == nil {
		return all
	}
	if n := len(all); n > 0 && all[n-1].Offset == p.decided.Offset {
		all = all[:n-1]
	}
	return append(all, *p.decided)
}

// cuts are the offsets at which something changes: a watermark has to be raised, or
// what was counted before ends.
func (p *livePart) cuts() []int64 {
	out := []int64{p.told}
	for _, m := range p.todo {
		out = append(out, m.Offset)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// cut parts a batch where something changes in its midst.
func (p *livePart) cut(b *ingest.Batch) (out []*ingest.Batch) {
	for _, at := range p.cuts() {
		if b.Refs == nil || at <= b.Offset || at >= b.Next {
			continue
		}
		line := slices.IndexFunc(b.Refs, func(r ingest.Ref) bool { return r.Offset >= at })
		if line <= 0 {
			continue
		}
		head, rest := *b, *b
		size := 0
		if len(b.Sizes) > 0 { // whole records
			for _, n := range b.Sizes[:line] {
				size += n
			}
			head.Sizes, rest.Sizes = b.Sizes[:line], b.Sizes[line:]
		} else {
			for range line {
				size += slices.Index(b.Data[size:], '\n') + 1
			}
		}
		head.Data, head.Refs, head.Next, head.AtEnd = b.Data[:size], b.Refs[:line], at, false
		rest.Data, rest.Refs, rest.Offset, rest.Gap, rest.Empty = b.Data[size:], b.Refs[line:], at, 0, 0
		rest.Declared = ingest.Declared(head.Data, b.Declares, b.Declared)
		out, b = append(out, &head), &rest
	}
	return append(out, b)
}
