package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A partition may not be read while others of its scope are: its source has failed, or
// comes later. Ticks are closed without it then, and what it has of them is late, once
// it is read. For that to hold over a restart too, a note is stored with the rows. It
// says of every partition up to which offset it was read, and before which tick all was
// closed by then: records before that offset are in the rows of these ticks, and nothing
// else of the partition is in any row on time. A scope that has one partition has no
// need of it.

// atRest is a scope's note.
type atRest struct {
	Closed int64               `json:"closed"` // ticks before are closed
	Rules  uint32              `json:"rules"`
	Config string              `json:"cfg"` // Config.Reading of who left it
	Parts  map[string]readUpTo `json:"parts"`

	unknown bool // what it says
}

// readUpTo is what the note says of a partition.
type readUpTo struct {
	Next     int64     `json:"next"`           // records before it are counted
	Closed   int64     `json:"closed"`         // ticks before are stored with what is on time of these
	Lateness int64     `json:"late,omitempty"` // by which the last of these were closed
	Old      []settled `json:"old,omitempty"`  // and by which others earlier ones
	Away     []absence `json:"away,omitempty"` // but for those that are late by these
}

// forgotten is after how many ticks nothing is said any more of a partition that is not
// read: a day.
const forgotten = 24 * 3600

// noted says whether the scope keeps a note, and knows what it says.
func (s *scope) noted() bool { return !s.alone() && !s.before.unknown }

// alone says that the scope is that of one partition, of which its position says all.
func (s *scope) alone() bool { return s.name != everything }

// note is what is kept with a write that closes ticks up to closed, and up to where it
// says so of which partition.
func (s *scope) note(closed int64) (text []byte, of map[*livePart]int64) {
	if closed == noTick || !s.noted() {
		return nil, nil
	}
	x, of := s.atRest(closed)
	text, _ = json.Marshal(x) // of numbers and names
	return text, of
}

// atRest is what there is to say once ticks before closed are stored, and up to where
// it says so of which partition.
func (s *scope) atRest(closed int64) (x *atRest, of map[*livePart]int64) {
	s.final = max(s.final, closed)
	x = &atRest{Closed: s.final, Rules: max(s.rules, s.above), Config: s.live.cfg.Reading, Parts: map[string]readUpTo{}}
	for name, p := range s.before.Parts {
		if p.Closed >= s.final-forgotten {
			x.Parts[name] = p
		}
	}
	of = map[*livePart]int64{}
	for name, p := range s.parts { // what was read of those that have left is in the ledger, too
		if p.unsettled {
			continue // nothing was, since it came
		}
		r := s.readUpTo(p, closed)
		x.Parts[name], of[p] = r, r.Closed
	}
	return x, of
}

// readUpTo is what there is to say of a partition once ticks before closed are stored.
func (s *scope) readUpTo(p *livePart, closed int64) readUpTo {
	r := readUpTo{max(p.through(), p.counted), max(closed, p.final), int64(s.live.cfg.Lateness), p.old, p.away}
	if n := p.through(); n < p.counted && p.final < closed { // not all is read again of what was
		r.Away = append(slices.Clone(p.away), absence{From: n, First: max(0, p.final), Tick: closed})
	}
	return r
}

// through is the offset before which every shard is through with what was read.
func (p *livePart) through() int64 {
	if len(p.sent) > 0 {
		return p.sent[0]
	}
	return p.next
}

// noteWithin is how long the store may take to say what it knows: live figures go on
// while it is away.
const noteWithin = 5 * time.Second

// recollect asks the store for a scope's note, which has no rules and nothing closed if there is none.
func (l *Live) recollect(ctx context.Context, scope string) (*atRest, error) {
	ctx, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	x := &atRest{Closed: noTick}
	text, err := l.cfg.Writer.Note(ctx, scope)
	if err == nil && text != nil {
		err = json.Unmarshal(text, x)
	}
	if err != nil {
		return &atRest{Closed: noTick, unknown: true}, fmt.Errorf("the store does not say up to where the partitions were counted: %w", err)
	}
	return x, nil
}

// errAnew is what keeps a scope from storing rows that was begun without its note.
var errAnew = errors.New("the store says now up to where the partitions were counted: they are read again by that")

// informed makes sure that the note is known before anything is stored. If there is one
// that the scope has begun without, it begins anew.
func (s *scope) informed(ctx context.Context) error {
	s.mu.Lock()
	unknown := s.before.unknown
	s.mu.Unlock()
	if !unknown {
		return nil
	}
	x, err := s.live.recollect(ctx, s.name)
	if err != nil {
		return err
	}
	if x.Rules != 0 {
		s.live.restart(s)
		return errAnew
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = x
	return nil
}

// absence says which ticks were closed without a partition: those from First up to
// Tick, not included, as far as its records from an offset on are concerned.
type absence struct {
	From  int64 `json:"f,omitempty"`
	First int64 `json:"a,omitempty"` // 0: from the first on
	Tick  int64 `json:"t"`
}

// has says whether an arrival lies there: then it is late.
func (x *absence) has(offset, tick int64) bool {
	return offset >= x.From && tick < x.Tick && (x.First == 0 || tick >= x.First)
}

// How many absences are kept. More than that within one lateness, and records of the
// oldest are not known to be late.
const (
	maxAbsences  = 64 // in a note
	keptAbsences = 2  // in a position, for who has another store
)

// absent notes that ticks up to closed were closed without the partition, of which
// records before offset next, and of ticks before with, are counted already.
func (p *livePart) absent(closed, with, next int64) {
	if next > 0 || with == noTick {
		p.miss(absence{From: next, Tick: closed})
	}
	if with != noTick && with < closed {
		p.miss(absence{First: with, Tick: closed})
	}
}

// miss notes an absence. Decoders may still read what was noted before.
func (p *livePart) miss(x absence) {
	if !slices.Contains(p.away, x) {
		p.away = append(slices.Clone(p.away), x)
		p.away = p.away[max(0, len(p.away)-maxAbsences):]
	}
}

// missed settles, when the first records of a partition come, which ticks were closed
// without it. The scope is locked.
func (s *scope) missed(p *livePart) {
	p.unsettled = false
	if s.emitFrom == noTick { // all is read by new rules, from the beginning
		if s.closing != noTick {
			p.absent(s.closing, noTick, 0)
		}
		return
	}
	closed, with := s.closing, p.final
	part, noted := s.before.Parts[p.Name]
	if noted && part.Closed >= p.final {
		with, p.counted = part.Closed, part.Next
		p.history = history{union(p.old, part.Old), union(p.away, part.Away)}
		p.heed(settled{part.Closed, part.Lateness}, s.live.cfg.Lateness)
	}
	if noted || s.past != nil || with == noTick { // else who stored it did not say
		closed = max(closed, s.before.Closed)
	}
	p.final, p.recorded, s.final = with, with, max(s.final, s.emitFrom)
	if closed != noTick {
		p.absent(closed, with, p.counted)
	}
}

// back settles that a partition comes back to a scope which closed ticks meanwhile.
func (s *scope) back(p *livePart) {
	if p.unsettled || s.closing <= p.seen {
		return
	}
	if p.counted <= p.next {
		p.absent(s.closing, noTick, p.next)
		return
	}
	p.absent(s.closing, noTick, p.counted)
	if p.final < s.closing {
		p.miss(absence{From: p.next, First: max(0, p.final), Tick: s.closing})
	}
}
