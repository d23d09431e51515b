package pipeline

import (
	"context"
	"hash/fnv"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
)

// What a scope gives to the writer, and how far it lets its partitions go: nothing is
// released that is not stored, nor what the ledger would have to read again.

// version is how many records the row of a tick may depend on.
func (s *scope) version(tick int64) (n uint64) {
	for at := tick - 2*s.horizon(); at <= tick; at++ {
		n += s.filed[at]
	}
	return n
}

// collect takes what there is to store. It returns nil if there is nothing.
func (s *scope) collect() *Written {
	s.mu.Lock()
	defer s.mu.Unlock()
	// What an earlier run has stored is final, though it is read again.
	w := &Written{Scope: s.name, Rules: s.rules, Horizon: s.live.cfg.Horizon, Closed: max(s.closed, s.emitFrom), Counted: s.counted}
	for at, rows := range s.rows {
		if at >= s.closed {
			continue
		}
		version := s.version(at)
		for k, c := range rows {
			r := s.row(at, k, c)
			r.Version = version
			w.Rows = append(w.Rows, r)
		}
	}
	for k, b := range s.late {
		if b.records == b.stored {
			continue
		}
		for row, c := range b.rows {
			r := s.row(row.tick, row.rowKey, c.Clone())
			r.Late, r.Version = k.name(), b.records
			w.Rows = append(w.Rows, r)
		}
	}
	if len(w.Rows) == 0 && w.Closed <= s.stored {
		return nil
	}
	w.Questions = s.ended(w.Closed)
	w.Note, w.noted = s.note(w.Closed)
	s.counted = nil
	return w
}

// done notes that a write has succeeded.
func (s *scope) done(w *Written) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.rows {
		if at < w.Closed {
			s.pending -= len(s.rows[at])
			delete(s.rows, at)
		}
	}
	s.episodes.drop(w.Closed)
	late := map[int64]uint64{}
	for i := range w.Rows {
		if r := &w.Rows[i]; r.Late != 0 {
			late[r.Late] = r.Version
		}
	}
	for k, b := range s.late {
		if n, ok := late[k.name()]; ok && w.Rules == s.rules {
			b.stored = n
		}
	}
	for p, closed := range w.noted {
		p.recorded = max(p.recorded, closed)
	}
	if w.Closed > s.stored {
		s.stored, s.moved = w.Closed, s.live.cfg.Clock()
	}
	s.open.forget(s.stored)
	for at := range s.filed {
		if at < s.stored-4*s.horizon() {
			delete(s.filed, at)
		}
	}
	s.changed.Broadcast()
}

func (k lateKey) name() int64 {
	h := fnv.New64a()
	h.Write([]byte(k.part))
	for i := range 8 {
		h.Write([]byte{byte(k.block >> (8 * i))})
	}
	return int64(h.Sum64()>>1) | 1
}

// row gives a row its names.
func (s *scope) row(at int64, k rowKey, c *aggregate.Counts) Row {
	n := s.live.names()
	dep, route := n.Route(k.dims.Route)
	r := Row{At: at, Dependency: dep, Route: route, ByPeer: k.byPeer, Wide: k.wide, Counts: c}
	if k.wide {
		r.Route = ""
	}
	if k.byPeer {
		r.Name = n.Peer(k.dims.Peer)
	} else {
		r.Name = n.Originator(k.dims.Originator)
	}
	return r
}

// write stores what is final, until that succeeds or ctx ends.
func (s *scope) write(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.writing }()
	err := s.informed(ctx)
	if err == nil {
		err = s.known(ctx)
	}
	if err != nil {
		s.failed(err)
		s.log.Warn("rows cannot be stored; trying again", "error", err)
		return err
	}
	if begun, err := s.begun(ctx); err != nil {
		s.failed(err)
		s.log.Warn("rows cannot be stored; trying again", "error", err)
		return err
	} else if !begun {
		return nil
	}
	w := s.collect()
	if w == nil {
		return nil
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := s.live.cfg.Writer.Write(ctx, w)
		s.failed(err)
		if err == nil {
			s.done(w)
			return nil
		}
		s.log.Warn("rows were not stored; trying again", "rows", len(w.Rows), "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// failed notes why the latest write failed, nil if it did not.
func (s *scope) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeErr = err
}

// known makes sure that the scope's rules have a version.
func (s *scope) known(ctx context.Context) error {
	s.mu.Lock()
	rules, above := s.rules, s.above
	s.mu.Unlock()
	if rules != 0 {
		return nil
	}
	rules, err := s.live.cfg.Writer.NextRules(ctx, s.name)
	if err != nil {
		return err
	}
	rules = max(rules, above+1) // the earlier ones may be of another instance's store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.above == above { // no partition came meanwhile of which others hold
		s.rules = max(s.rules, rules)
	}
	return nil
}

// room waits until rows may be added.
func (s *scope) room(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused {
		return errMoved
	}
	if s.waiting() < s.live.cfg.MaxPending {
		return nil
	}
	stop := context.AfterFunc(ctx, s.changed.Broadcast)
	defer stop()
	for s.waiting() >= s.live.cfg.MaxPending && ctx.Err() == nil && !s.paused {
		s.changed.Wait()
	}
	if s.paused {
		return errMoved
	}
	return ctx.Err()
}

// released is where a partition would have to be read from again.
func (s *scope) released(p *livePart) ingest.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[p.Name] != p || s.rules == 0 && s.anew {
		return p.left
	}
	emitFrom := s.stored
	if !s.alone() {
		emitFrom = min(emitFrom, p.recorded)
	}
	if emitFrom == noTick { // nothing but that the partition is idle, without which nothing might ever be
		if raised := p.decisions(); len(raised) > 0 {
			l := left{EmitFrom: noTick, Mark: p.base.Mark, Rules: s.rules, Raised: raised, Cold: true, Alone: s.alone(), Config: s.live.cfg.Reading}
			p.left = ingest.Position{Offset: p.base.Offset, Metadata: l.String()}
		}
		return p.left
	}
	next, block := p.through(), s.block
	for k, b := range s.late {
		if k.part == p.Name && b.records != b.stored {
			next = min(next, k.block*block)
		}
	}
	done := max(p.done, p.trail.since(s.stored, next))
	at := p.trail.release(s.stored-2*s.horizon(), markAt{next, p.mark, p.table}, block)
	if at.Offset <= p.base.Offset {
		at = p.base // it was left there, with all that is needed
	}
	p.base = at
	p.forget(at.Mark, s.live.cfg.Lateness)
	for k, b := range s.late {
		if k.part == p.Name && k.block < at.Offset/block && b.records == b.stored {
			delete(s.late, k)
		}
	}
	p.raised = slices.DeleteFunc(p.raised, func(m markAt) bool { return m.Offset < at.Offset })
	l := left{
		EmitFrom: emitFrom, Mark: at.Mark, Rules: s.rules, Raised: p.decisions(), Warm: s.warm, Done: done,
		Alone: s.alone(), Config: s.live.cfg.Reading, Lateness: int64(s.live.cfg.Lateness), Old: p.old, Away: p.away[max(0, len(p.away)-keptAbsences):], table: at.table,
	}
	p.left = ingest.Position{Offset: at.Offset, Metadata: l.String()}
	return p.left
}

// awaitsNewer says that a partition is let go no further before newer records of it
// come: every tick that may be closed is stored, and nobody else who is being read holds
// the next one open.
func (s *scope) awaitsNewer(p *livePart) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[p.Name] != p || s.paused || s.closing > s.stored {
		return false
	}
	for _, other := range s.parts {
		if other != p && other.assigned && other.atEnd.IsZero() && other.mark <= p.mark {
			return false
		}
	}
	return true
}
