package pipeline

import (
	"fmt"
	"math"
	"time"

	"github.com/targetside/auditor/ingest"
)

// errMoved is what a session of a scope that begins anew is told.
var errMoved = fmt.Errorf("%w: another instance has counted on meanwhile, or the configuration changes", ingest.ErrAnew)

// assign takes a partition in and says where to begin. ok is false if the scope
// cannot go on from there: another instance has counted since this one did, and
// the ledger lacks what it read.
func (s *scope) assign(p ingest.Partition, at ingest.Position, was left, known bool) (part *livePart, from int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = s.live.cfg.Clock().Add(settle)
	delete(s.expected, p.Name)
	if part = s.parts[p.Name]; part != nil {
		if at.Offset > part.next || known && (was.EmitFrom > s.stored || part.contradicts(&was)) {
			return nil, 0, false
		}
		part.assigned, part.atEnd = true, time.Time{}
		s.back(part)
		part.settle(&was)
		part.decided = nil
		if known {
			part.learn(&was)
		}
		return part, part.next, true
	}
	part = &livePart{Partition: p, assigned: true, unsettled: true, next: at.Offset, mark: was.Mark, trail: newTrail(), left: at, base: markAt{at.Offset, was.Mark, was.table}, table: was.table, todo: was.Raised, done: was.Done, history: history{was.Old, was.Away}, final: noTick, recorded: noTick}
	counted := known && !was.Cold
	if counted {
		part.final, part.recorded = was.EmitFrom, was.EmitFrom
		part.counted = math.MaxInt64 // which is not known, but that they are
		part.heed(settled{was.EmitFrom, was.Lateness}, s.live.cfg.Lateness)
	}
	s.advanceTo(s.before.Closed) // these rows stand, whoever comes again or does not
	config, rules, changes := was.Config, was.Rules, counted
	if s.before.Rules != 0 && s.before.Rules >= rules { // it was away when others went on
		config, rules, changes = s.before.Config, s.before.Rules, true
	}
	if changes && config != s.live.cfg.Reading {
		s.renew(s.rules)
	}
	s.recall(part, &was)
	if !s.anew {
		s.rules = max(s.rules, rules)
	} else if rules >= s.rules {
		s.renew(rules)
	}
	if counted {
		s.warm = max(s.warm, was.Warm)
		s.advanceTo(was.EmitFrom)
	} else {
		s.cold = true
	}
	s.parts[p.Name] = part
	if was.Mark != noTick {
		s.midst = was.Mark/1e9 + int64(s.live.cfg.Lateness/time.Second)
	}
	return part, at.Offset, true
}

// reads says whether another source than the partition's reads it now.
func (s *scope) reads(p ingest.Partition) (source int, yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := s.parts[p.Name]
	if part == nil {
		return 0, false
	}
	return part.Source, part.assigned && part.Source != p.Source
}

// advanceTo notes that rows of ticks before one were stored by an earlier run.
func (s *scope) advanceTo(tick int64) {
	s.emitFrom, s.stored = max(s.emitFrom, tick), max(s.stored, tick)
}

func (s *scope) unassign(p *livePart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.assigned, p.seen = false, s.closing
	s.hold = s.live.cfg.Clock().Add(settle)
}

// abandoned says that the scope has had no partition for so long that nothing of
// what it knows would be asked for any more.
func (s *scope) abandoned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.assigned {
			return false
		}
	}
	return s.live.cfg.Clock().Sub(s.hold) > 2*s.live.cfg.Horizon+s.live.cfg.Lateness
}

// ready gives the watermark by which the partition's next records are read, and what
// is settled of it.
func (s *scope) ready(p *livePart) (mark int64, was history, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.decided != nil {
		return 0, history{}, errDecided
	}
	p.raise()
	if p.unsettled {
		s.missed(p)
	}
	return p.mark, p.history, nil
}

// committed is told which position of a partition a restart would be told.
func (s *scope) committed(p *livePart, at ingest.Position) {
	l, known, err := parseLeft(at.Metadata)
	if !known || err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.settle(&l)
	if l.Config == s.live.cfg.Reading {
		p.rules = l.Rules
	}
}
