package pipeline

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/targetside/auditor/aggregate"
)

// A daemon may be killed at any moment. What it does not need to read again is
// decided here: the position of a partition is the first offset of any record
// whose tick is E − 2H or later, where E is the scope's oldest tick that is not
// stored and H the horizon. Records of ticks before E only teach the ledger who
// has asked already; the rows of E and later are made anew from all that they
// depend on. Were the position E itself, each restart would take every live
// question for an original.
//
// Positions are whole blocks of offsets: late arrivals are counted in rows by
// block, and a block that is read again is read from its beginning.

// offsetBlock is how many offsets make a block.
const offsetBlock = 1 << 16

// trace is what a batch tells of the offsets of its records.
type trace struct {
	ticks []tickOffset // the first record of each tick
	marks []markAt     // the watermark at the blocks that begin in the batch
	block int64        // of the latest record, plus one
}

type tickOffset struct{ tick, offset int64 }

// markAt is the watermark just before the first record at or behind an offset.
type markAt struct {
	Offset int64 `json:"o"`
	Mark   int64 `json:"m"`
	table  *table
}

func (t trace) empty() trace { return trace{ticks: t.ticks[:0], marks: t.marks[:0]} }

// add notes an arrival, and says whether it is late.
func (t *trace) add(s *shared, a *aggregate.Arrival, offset, mark int64) (late bool) {
	cfg := &s.ledger
	if block := offset / s.offsetBlock; block+1 != t.block {
		t.block = block + 1
		t.marks = append(t.marks, markAt{Offset: block * s.offsetBlock, Mark: mark})
	}
	tick := cfg.Tick(a)
	i := len(t.ticks) - 1
	for i >= 0 && t.ticks[i].tick != tick {
		i--
	}
	if i < 0 {
		t.ticks = append(t.ticks, tickOffset{tick, offset})
	}
	return cfg.Late(tick, mark)
}

// trail is where in a partition the ticks begin that may be needed again.
type trail struct {
	first map[int64]int64 // by tick, the first offset of a record of it
	marks []markAt        // in order of offset
	ended []span          // lines in parts, see joinlive.go
	open  []int64         // and where those begin whose end has not come
}

func newTrail() trail { return trail{first: map[int64]int64{}} }

func (r *trail) add(t *trace) {
	for _, x := range t.ticks {
		if at, ok := r.first[x.tick]; !ok || x.offset < at {
			r.first[x.tick] = x.offset
		}
	}
	for _, m := range t.marks {
		if n := len(r.marks); n == 0 || r.marks[n-1].Offset < m.Offset {
			r.marks = append(r.marks, m)
		}
	}
}

// since is the first offset of any record of a tick or later, at most next.
func (r *trail) since(tick, next int64) int64 {
	for at, offset := range r.first {
		if at >= tick {
			next = min(next, offset)
		}
	}
	return next
}

// release forgets ticks before from and returns where reading would have to begin
// for the others, and what is known there: at most next, where reading stands, at the
// beginning of a block, and not within a line in parts.
func (r *trail) release(from int64, next markAt, block int64) markAt {
	offset := next.Offset
	for tick, at := range r.first {
		if tick < from {
			delete(r.first, tick)
		} else {
			offset = min(offset, at)
		}
	}
	offset = offset / block * block
	for r.within(offset) {
		offset -= block
	}
	r.forget(offset)
	at := markAt{offset, next.Mark, next.table}
	i, _ := slices.BinarySearchFunc(r.marks, offset, func(m markAt, o int64) int { return int(m.Offset - o) })
	if i < len(r.marks) { // of the block, or of the next that has a record
		at.Mark, at.table = r.marks[i].Mark, r.marks[i].table
	}
	r.marks = slices.Delete(r.marks, 0, i)
	return at
}

// left is what a position's metadata says.
type left struct {
	Version  int       `json:"v"`
	EmitFrom int64     `json:"emit"` // E: rows of ticks before it are stored
	Mark     int64     `json:"mark"` // the watermark just before the offset, Unix ns
	Rules    uint32    `json:"rules"`
	Raised   []markAt  `json:"idle,omitempty"` // at these offsets the watermark was raised, the partition being idle
	Warm     int64     `json:"warm,omitempty"` // the first tick that is not warming
	Cold     bool      `json:"cold,omitempty"` // nothing is stored yet: only Raised was to be kept
	Done     int64     `json:"done,omitempty"` // records below it are counted: read again, they only teach the ledger
	Alone    bool      `json:"one,omitempty"`  // it is a scope of its own
	Config   string    `json:"cfg,omitempty"`  // Config.Reading of who left it
	Lateness int64     `json:"late,omitempty"` // by which ticks before EmitFrom were closed
	Old      []settled `json:"old,omitempty"`  // by which others were closed earlier, while their records may still come
	Away     []absence `json:"away,omitempty"` // which ticks were closed without it, while its records may still come
	Table    string    `json:"from,omitempty"` // of a partition of the exchange: what was seen of the source partitions, see table.go
	table    *table
}

const leftVersion = 1

// maxRaised is how many raises fit a position's metadata (ingest.MaxMetadata), each
// with at most 50 bytes.
const maxRaised = 64

func (l *left) String() string {
	l.Version, l.Table = leftVersion, l.table.text(max(0, ms(l.Mark)))
	b, _ := json.Marshal(l) // of numbers and texts
	return string(b)
}

// parseLeft reads metadata. Of a partition that was never left it knows nothing.
func parseLeft(metadata string) (l left, known bool, err error) {
	if metadata == "" {
		return left{EmitFrom: math.MinInt64, Mark: math.MinInt64, table: &table{}}, false, nil
	}
	if err := json.Unmarshal([]byte(metadata), &l); err != nil || l.Version != leftVersion {
		return left{}, false, fmt.Errorf("the position's metadata is not this program's (%d bytes); if the group belongs to another program, set another kafka.group", len(metadata))
	}
	if l.table, err = parseTable(l.Table, max(0, ms(l.Mark))); err != nil {
		return left{}, false, err
	}
	return l, true, nil
}
