package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/ingest"
)

// A configuration that reads or identifies records in another way is another Live,
// which goes on where the one before it stops. From E on, the oldest tick that is not
// stored, rows are those of the new rules, made of records that are read again; what
// lies before stays as the old rules left it.

// Handover stops l and makes next, which is new, go on where it stops. First all
// that is final is stored; if that is not done before ctx is, l goes on as before
// and nothing has changed. Meanwhile and afterwards sessions of l are told to begin
// anew; the caller sees to it that they are not assigned to l before it fails, nor
// to next before it succeeds. l still has to be ended.
func (l *Live) Handover(ctx context.Context, next *Live) error {
	if err := l.await(ctx); err != nil {
		return err
	}
	scopes := l.all()
	for _, s := range scopes {
		s.pause()
	}
	stored := make([]error, len(scopes))
	var writes sync.WaitGroup
	for i, s := range scopes {
		writes.Go(func() {
			if stored[i] = s.write(ctx); stored[i] == nil && !s.inForce() {
				stored[i] = errNotInForce
			}
		})
	}
	writes.Wait()
	if err := errors.Join(stored...); err != nil {
		for _, s := range scopes {
			if why := s.resume(); why != nil {
				err = why
			}
		}
		return fmt.Errorf("what is final could not be stored: %w", err)
	}
	next.inherit(l, scopes)
	return nil
}

var errNotInForce = errors.New("an earlier change is not in force yet: positions or rows could not be kept")

// await waits for an earlier change to be in force, in every partition that it was
// made for: what has not begun to be read again has nothing to hand over.
func (l *Live) await(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !l.inForce() {
		select {
		case <-ctx.Done():
			return errNotInForce
		case <-tick.C:
		}
	}
	return nil
}

// pause refuses what is read from now on, and waits for what was read before.
func (s *scope) pause() {
	var passed sync.WaitGroup
	s.sending.Lock()
	s.mu.Lock()
	s.paused = true
	s.changed.Broadcast()
	s.mu.Unlock()
	passed.Add(len(s.shards))
	s.send(&liveJob{to: noTick, passed: &passed})
	s.sending.Unlock()
	passed.Wait()
}

// resume reads on, and says why rows could not be stored.
func (s *scope) resume() error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = false
	return s.storeErr
}

// renew makes the scope take new rules, above those that were in force. They do away
// with what these stored of the ticks to come, late arrivals too.
func (s *scope) renew(above uint32) {
	s.anew, s.above, s.rules = true, max(s.above, above), 0
	for _, b := range s.late {
		b.stored = 0
	}
}

// begun says whether rows may be stored by the rules in force. New ones have to be in
// the position of every partition before: after a crash nobody would know of them,
// and of the rows that they have. Then the store is told from which tick on they hold.
func (s *scope) begun(ctx context.Context) (bool, error) {
	s.mu.Lock()
	if s.stored == noTick { // there is nothing of earlier ones
		s.since = s.rules
	}
	rules, from, kept := s.rules, s.stored, s.kept()
	ok := !s.anew || s.since == rules
	if ok || !kept {
		s.mu.Unlock()
		return ok, nil
	}
	note, _ := s.note(from) // says of partitions that are not here by which rules the others are read
	s.mu.Unlock()
	if err := s.live.cfg.Writer.Write(ctx, &Written{Scope: s.name, Rules: rules, Closed: from, Note: note}); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = rules
	return s.rules == rules, nil
}

// kept says that every partition's position has the rules in force, if it has any: that
// of one of which nothing was stored has none.
func (s *scope) kept() bool {
	for _, p := range s.parts {
		if p.assigned && p.recorded != noTick && p.rules != s.rules {
			return false
		}
	}
	return s.rules != 0
}

// backFor is how long a change waits for partitions of the one before: those that are
// there come at once. Of others what is known is handed on.
const backFor = 3 * time.Second

// inForce says that nothing of an earlier change is under way.
func (l *Live) inForce() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := l.cfg.Clock().Before(l.begun.Add(backFor))
	for name, was := range l.past.scopes {
		if waits && l.scopes[name] == nil && was.expected() {
			return false
		}
	}
	for _, s := range l.scopes {
		if !s.inForce() || waits && s.expects() {
			return false
		}
	}
	return true
}

// expected says that some partition of the scope is to come again.
func (p *pastScope) expected() bool {
	for _, x := range p.parts {
		if x.expected {
			return true
		}
	}
	return false
}

// expects says that some partition is still to come.
func (s *scope) expects() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.expected) > 0
}

// inForce says that nothing of an earlier change is under way in the scope.
func (s *scope) inForce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.anew || s.stored == noTick || s.rules != 0 && s.since == s.rules
}

// past is what a Live takes over from those before it.
type past struct {
	scopes  map[string]*pastScope
	totals  map[string]*sheet      // of closed ticks, by dependency
	sources map[string]*pastSource // by name
	shared  aggregate.Stats
}

// pastScope is a scope as the Live before left it.
type pastScope struct {
	rules  uint32
	stored int64 // rows of ticks before are stored
	warm   int64
	atRest *atRest // nil: nothing is stored
	parts  map[string]pastPart
}

type pastPart struct {
	told     int64 // records below it are in the counts of this process
	source   string
	expected bool // it is to be read by the next configuration, too
}

type pastSource struct {
	counts SourceCounts
	stats  aggregate.Stats
}

// inherit takes over what l knows; its scopes are paused.
func (next *Live) inherit(l *Live, scopes []*scope) {
	l.picturing.Lock()
	defer l.picturing.Unlock()
	next.leftOut.Store(l.leftOut.Load())
	next.past = past{scopes: map[string]*pastScope{}, totals: map[string]*sheet{}, sources: map[string]*pastSource{}, shared: l.past.shared}
	for name, x := range l.past.totals {
		next.past.total(name).merge(x)
	}
	for name, x := range l.past.sources {
		next.past.source(name).merge(x)
	}
	names := map[string]bool{}
	for _, s := range next.cfg.Sources {
		names[s.Name] = true
	}
	n := l.names()
	next.begun = l.cfg.Clock()
	for name, was := range l.past.scopes { // of those that never came, what was known stays so
		again := *was
		again.parts = maps.Clone(was.parts)
		next.past.scopes[name] = &again
	}
	for _, s := range scopes {
		s.mu.Lock()
		was := &pastScope{rules: max(s.rules, s.above), stored: s.stored, warm: s.warm, parts: map[string]pastPart{}}
		if s.stored != noTick {
			was.atRest, _ = s.atRest(s.stored)
		}
		for name, p := range s.parts {
			was.parts[name] = pastPart{told: max(p.next, p.told), source: l.cfg.Sources[p.Source].Name}
		}
		if s.past != nil {
			for name, x := range s.past.parts {
				if s.parts[name] == nil {
					was.parts[name] = x
				}
			}
		}
		next.past.scopes[s.name] = was
		totals := map[string]*sheet{}
		s.addTotals(totals, n)
		for name, x := range totals {
			next.past.total(name).merge(x)
		}
		for i, c := range s.windows.sources {
			next.past.source(l.cfg.Sources[i].Name).counts.add(c)
		}
		stats := &next.past.shared
		if source, shared, _ := s.feeders(true); !shared {
			stats = &next.past.source(l.cfg.Sources[source].Name).stats
		}
		s.addStats(stats)
		s.mu.Unlock()
	}
	for _, was := range next.past.scopes {
		for name, x := range was.parts {
			x.expected = names[x.source]
			was.parts[name] = x
		}
	}
	for k, g := range l.gauges {
		again := *g
		next.gauges[k] = &again
	}
}

func (p *past) total(dependency string) *sheet {
	if p.totals[dependency] == nil {
		p.totals[dependency] = newSheet()
	}
	return p.totals[dependency]
}

func (p *past) source(name string) *pastSource {
	if p.sources[name] == nil {
		p.sources[name] = &pastSource{counts: *newSourceCounts()}
	}
	return p.sources[name]
}

func (x *sheet) merge(o *sheet) {
	x.total.Merge(&o.total)
	x.over.Merge(&o.over)
	for name, s := range o.routes {
		sumInto(x.routes, name, s)
	}
}

func (x *pastSource) merge(o *pastSource) {
	x.counts.add(&o.counts)
	x.stats = sumStats(x.stats, o.stats, aggregate.Stats{})
}

// add adds to a picture what was counted before: of the dependencies that it shows,
// and of its sources.
func (p *past) add(to *Picture, sources []Source, totals map[string]*sheet, shown map[string]bool) {
	for name, x := range p.totals {
		if shown[name] {
			if totals[name] == nil {
				totals[name] = newSheet()
			}
			totals[name].merge(x)
		}
	}
	left := maps.Clone(p.sources) // of two with one name the first gets it
	for i := range sources {
		if x := left[sources[i].Name]; x != nil {
			to.Sources[i].add(&x.counts)
			to.Stats[i] = sumStats(to.Stats[i], x.stats, aggregate.Stats{})
			delete(left, sources[i].Name)
		}
	}
	to.Shared = sumStats(to.Shared, p.shared, aggregate.Stats{})
}

// sumStats is a + b − c of what pictures show of a ledger's statistics.
func sumStats(a, b, c aggregate.Stats) aggregate.Stats {
	a.Duplicates += b.Duplicates - c.Duplicates
	a.Undecidable += b.Undecidable - c.Undecidable
	a.Late += b.Late - c.Late
	return a
}

// inherit makes a new scope go on where the one of another configuration stopped.
func (s *scope) inherit(was *pastScope) {
	if was == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew(was.rules)
	s.emitFrom, s.stored, s.warm = was.stored, was.stored, was.warm
	if was.atRest != nil { // newer than what the store has said
		s.before = was.atRest
	}
	s.past, s.expected = was, map[string]bool{}
	s.expectedUntil = s.live.cfg.Clock().Add(expectFor)
	for name, p := range was.parts {
		if p.expected {
			s.expected[name] = true
		}
	}
}

// expectFor is how long a scope waits for partitions that it had before the
// configuration changed: until all are there no tick is closed, or what they have of
// it would be late.
const expectFor = 30 * time.Second

// recall tells a partition what of it is in the counts of this process, unless another
// instance has counted on since. was is where it was left.
func (s *scope) recall(p *livePart, was *left) {
	if s.past != nil && was.EmitFrom <= s.past.stored {
		p.told = s.past.parts[p.Name].told
	}
}

// union is what either has, a's first.
func union[T comparable](a, b []T) []T {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// cut parts a batch where something changes in its midst.
func (s *scope) cut(p *livePart, b *ingest.Batch) []*ingest.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.cut(b)
}

// SetBudgets changes the retry budgets and the rules of verdicts, of which counting
// does not depend. What verdicts are compared with stays, unless it is of another
// window.
func (l *Live) SetBudgets(all budget.Model, routes map[string]*budget.Model, rules budget.Rules) {
	l.picturing.Lock()
	defer l.picturing.Unlock()
	l.mu.Lock()
	if all.Window != l.cfg.Budget.Window {
		l.watches = map[string]*budget.Watch{}
	}
	l.cfg.Budget, l.cfg.RouteBudgets, l.cfg.Rules = all, routes, rules
	keep := l.keepSeconds()
	l.mu.Unlock()
	for _, s := range l.all() {
		s.mu.Lock()
		s.windows.keep = keep
		for at := range s.windows.seconds { // of routes that have a budget now others know nothing
			s.windows.touched[at] = struct{}{}
		}
		s.mu.Unlock()
	}
}
