package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/targetside/auditor/aggregate"
)

// check returns an error for a write that no store can keep: one that its maker
// got wrong.
func (w *Write) check() error {
	if w.Closed > maxTick {
		return fmt.Errorf("store: closed tick %d is no time in seconds", w.Closed)
	}
	if w.Note != nil && len(w.Rows) == 0 && w.Closed <= 0 {
		return errors.New("store: a note has come with neither rows nor closed ticks")
	}
	for i := range w.Rows {
		if err := w.Rows[i].check(w); err != nil {
			return fmt.Errorf("store: row %d of the write: %w", i, err)
		}
	}
	for _, r := range w.Counted {
		if r.From < 0 || r.To < r.From {
			return fmt.Errorf("store: counted offsets %d to %d of %s are no range", r.From, r.To, r.Partition)
		}
	}
	for i := range w.Questions {
		if err := w.Questions[i].check(w); err != nil {
			return err
		}
	}
	return nil
}

// maxTick is beyond every time that is one: 1<<40 seconds are 34,000 years.
const maxTick = 1 << 40

func (r *Row) check(w *Write) error {
	switch {
	case r.Scope != w.Scope:
		return fmt.Errorf("it is of scope %q, the write of %q", r.Scope, w.Scope)
	case r.Rules != w.Rules:
		return fmt.Errorf("it has rules %d, the write %d", r.Rules, w.Rules)
	case r.Family > ByPeer:
		return fmt.Errorf("family %d is not known", r.Family)
	case r.Wide && r.Route != "":
		return fmt.Errorf("it is of a whole dependency and has route %q", r.Route)
	case r.LateBlock < OnTime:
		return fmt.Errorf("late block %d is neither one nor OnTime", r.LateBlock)
	case r.At < -maxTick || r.At > maxTick:
		return fmt.Errorf("tick %d is no time in seconds", r.At)
	case r.Version > math.MaxInt64:
		return fmt.Errorf("version %d does not fit 63 bits", r.Version)
	case r.Counts == nil:
		return fmt.Errorf("it has no counts")
	}
	return nil
}

// writing is one write under way.
type writing struct {
	t      tables
	w      *Write
	s      *state
	era    *era
	lower  int64 // rows of lower rules may be in ticks before it
	higher bool  // there are higher rules

	replaced map[int64]bool   // ticks rid of rows of lower rules
	blocks   map[int64]bool   // late blocks, likewise
	highest  map[int64]uint32 // tickRules and blockRules, remembered
	inBlock  map[int64]uint32

	touched [levels]map[key]bool // rows whose finer ones changed
	top     int64                // the scope had no rows of ticks from here on
	fresh   map[key]*Row         // the write's rows of those
	buf     []byte
}

// apply stores a write. It decides for every store what replaces what: t only has
// to do as it is told, and to forget all of it when there is an error.
func apply(t tables, w *Write) error {
	p := &writing{
		t: t, w: w, lower: never, replaced: map[int64]bool{}, blocks: map[int64]bool{},
		highest: map[int64]uint32{}, inBlock: map[int64]uint32{}, fresh: map[key]*Row{},
	}
	if len(w.Rows) > 0 || w.Closed > 0 {
		if err := p.rows(); err != nil {
			return err
		}
	}
	for _, r := range w.Counted {
		if r.From == r.To {
			continue
		}
		if err := t.count(r); err != nil {
			return err
		}
	}
	for i := range w.Questions {
		if err := p.question(&w.Questions[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *writing) rows() error {
	var err error
	if p.s, err = p.t.state(p.w.Scope); err != nil {
		return err
	}
	before := p.s.inForce()
	p.top = p.s.top()
	p.era = p.s.era(p.w.Rules)
	p.lower = p.s.topBelow(p.w.Rules)
	p.higher = p.s.eras[len(p.s.eras)-1] != p.era
	if p.w.Note != nil && !p.higher {
		p.s.note = bytes.Clone(p.w.Note)
	}
	if err := p.close(); err != nil {
		return err
	}
	for i := range p.w.Rows {
		if err := p.row(&p.w.Rows[i]); err != nil {
			return err
		}
	}
	if now := p.s.inForce(); now != nil && now != before {
		// What lower rules had made from here on is made anew. Of an hour that they
		// had made in part there is nothing until then.
		if p.s.hourSeries > 0 {
			hour := floor(p.s.hours, int64(Hour))
			if err := p.t.clear(hourLevel, p.w.Scope, hour, hour+int64(Hour)); err != nil {
				return err
			}
			p.s.hourSeries = 0
		}
		p.s.unmade(now.starts)
	}
	if err := p.rollUp(); err != nil {
		return err
	}
	return p.t.setState(p.w.Scope, p.s)
}

// close moves the bounds of the era, and deletes what lower rules left within.
func (p *writing) close() error {
	e := p.era
	was := *e
	if p.w.Closed > 0 {
		if e.closed == never {
			e.starts = min(e.starts, p.w.Closed)
		}
		e.closed = max(e.closed, p.w.Closed)
	}
	for i := range p.w.Rows {
		if r := &p.w.Rows[i]; r.LateBlock == OnTime && p.s.accepts(r.At, false) {
			e.starts = min(e.starts, r.At)
		}
	}
	if e.closed == never {
		return nil
	}
	to := min(e.closed, p.lower)
	if was.closed == never {
		return p.drop(e.starts, to)
	}
	if err := p.drop(e.starts, min(was.starts, to)); err != nil {
		return err
	}
	return p.drop(max(was.closed, e.starts), to)
}

// drop deletes what lower rules left in some ticks, late rows too: those that
// are still late come again with their blocks.
func (p *writing) drop(from, to int64) error {
	if from >= to {
		return nil
	}
	return p.t.dropTicks(p.w.Scope, from, to, p.w.Rules, p.touch)
}

// touch notes that a tick changed.
func (p *writing) touch(k key) {
	if p.s.accepts(k.at, k.late != OnTime) {
		p.touchAbove(0, k)
	}
}

func (p *writing) touchAbove(level int, k key) {
	if level++; level < levels {
		if p.touched[level] == nil {
			p.touched[level] = map[key]bool{}
		}
		p.touched[level][key{floor(k.at, resolutions[level]), k.series, k.part()}] = true
	}
}

// row stores one row, unless it has expired or higher rules stand against it.
func (p *writing) row(r *Row) error {
	late := r.LateBlock != OnTime
	if !p.s.accepts(r.At, late) {
		return nil
	}
	if p.higher {
		switch out, err := p.superseded(r.At, r.LateBlock); {
		case err != nil:
			return err
		case out:
			return p.withdraw(r)
		}
	}
	if !late && r.At < p.lower && !p.replaced[r.At] {
		p.replaced[r.At] = true
		if err := p.drop(r.At, r.At+1); err != nil {
			return err
		}
	}
	if late && p.lower != never && !p.blocks[r.LateBlock] {
		p.blocks[r.LateBlock] = true
		if err := p.t.dropBlock(r.Scope, r.LateBlock, r.Rules, p.touch); err != nil {
			return err
		}
	}
	id, err := p.t.series(seriesOf(r))
	if err != nil {
		return err
	}
	p.buf = r.Counts.Append(p.buf[:0])
	k := key{r.At, id, r.LateBlock}
	changed, err := p.t.put(0, k, &value{rules: r.Rules, version: r.Version, open: r.Open, plain: r.Counts.Totals(), counts: p.buf}, false)
	if err != nil {
		return err
	}
	if changed {
		p.touch(k)
		if k.at >= p.top {
			p.fresh[k] = r
		}
	}
	p.era.top = max(p.era.top, r.At+1)
	return nil
}

// withdrawer is what tables are besides whose writes may be stored after one that they
// did not know of, and are then made again.
type withdrawer interface {
	// withdraw deletes a row that higher rules stand against, if an earlier try of the
	// same write has stored it, and says whether it did.
	withdraw(k key) (bool, error)
}

func (p *writing) withdraw(r *Row) error {
	t, may := p.t.(withdrawer)
	if !may {
		return nil
	}
	id, err := p.t.series(seriesOf(r))
	if err != nil {
		return err
	}
	k := key{r.At, id, r.LateBlock}
	if gone, err := t.withdraw(k); !gone || err != nil {
		return err
	}
	p.touch(k)
	return nil
}

// superseded says that the scope's tick, or the late block, was written under
// higher rules.
func (p *writing) superseded(at, block int64) (bool, error) {
	for _, e := range p.s.eras {
		if e.rules > p.w.Rules && e.covers(at) {
			return true, nil
		}
	}
	in, known := p.highest[at]
	if !known {
		var err error
		if in, err = p.t.tickRules(p.w.Scope, at); err != nil {
			return false, err
		}
		p.highest[at] = in
	}
	if in > p.w.Rules || block == OnTime {
		return in > p.w.Rules, nil
	}
	if in, known = p.inBlock[block]; !known {
		var err error
		if in, err = p.t.blockRules(p.w.Scope, block); err != nil {
			return false, err
		}
		p.inBlock[block] = in
	}
	return in > p.w.Rules, nil
}

// sum adds up rows for one of a coarser level.
type sum struct {
	counts *aggregate.Counts
	value
}

// add adds a row at rest, at a time in seconds, of a level, for the next.
func (s *sum) add(level int, at int64, v *value) error {
	c, err := aggregate.DecodeCounts(v.counts)
	if err == nil {
		s.merge(level, at, v.rules, v.version, c)
	}
	return err
}

func (s *sum) merge(level int, at int64, rules uint32, version uint64, c *aggregate.Counts) {
	if s.counts == nil {
		s.counts = new(aggregate.Counts)
	}
	own, coarser := resolutions[level], resolutions[level+1]
	s.counts.MergeFiner(c, at/own, coarser/own)
	s.rules = max(s.rules, rules)
	s.version += version
}
