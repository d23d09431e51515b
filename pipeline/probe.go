package pipeline

import (
	"sync"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// A scope is one ledger, and takes for granted that it sees every arrival of its
// questions. Of partitions that are said to be keyed by question and are not, each
// would see a part, and repeats would be missing without a sign of it: 3 would read
// 1.09. So the questions that are drawn, one in 256, are compared over the scopes of
// this instance. One that arrives in two within a horizon gives it away; so do two
// that are stored, for scopes of several instances (see package store).
//
// A question is of one scope however often its partition goes from one instance to
// another or is read again: a scope goes by the name of its partition. One key that
// asks two dependencies, or on two routes, is two questions.

// probe compares. What it remembers is bounded: two generations of sightings, of
// which the older is dropped when the younger is full.
type probe struct {
	horizon int64
	now     func() time.Time

	mu         sync.Mutex
	young, old map[aggregate.ID]sighting
	split      map[string]time.Time // by dependency, when it was last seen
}

// sighting is where a question arrived last.
type sighting struct {
	scope string
	start int64
}

// probeSize is how many questions a generation has: with 180,000 new ones a second,
// what was drawn of the last half minute and more.
const probeSize = 1 << 14

// splitHolds is how long a dependency is said to be split after it was last seen to
// be: a short silence of its traffic is no sign that it is well.
const splitHolds = 10 * time.Minute

func newProbe(horizon time.Duration, now func() time.Time) *probe {
	return &probe{horizon: int64(horizon), now: now, young: map[aggregate.ID]sighting{}, old: map[aggregate.ID]sighting{}, split: map[string]time.Time{}}
}

// saw takes what a scope saw of questions that are drawn. It returns the dependencies
// that are found to be split, and were not known to be.
func (p *probe) saw(scope string, list []aggregate.Sighting, dependency func(route uint16) string) (fresh []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range list {
		x := &list[i]
		was, known := p.young[x.Question]
		if !known {
			was, known = p.old[x.Question]
		}
		gap := x.Start - was.start
		if known && was.scope != scope && -p.horizon <= gap && gap <= p.horizon {
			name := dependency(x.Route)
			if !p.holds(name) {
				fresh = append(fresh, name)
			}
			p.split[name] = p.now()
		}
		if len(p.young) >= probeSize {
			p.old, p.young = p.young, make(map[aggregate.ID]sighting, probeSize)
		}
		p.young[x.Question] = sighting{scope, x.Start}
	}
	return fresh
}

// compare gives what was seen of drawn questions to the probe.
func (s *scope) compare(list []aggregate.Sighting) {
	n := s.live.names()
	dependency := func(route uint16) string { name, _ := n.Route(route); return name }
	for _, name := range s.live.probe.saw(s.name, list, dependency) {
		s.log.Warn("one question came in two scopes: repeats are missing, and amplification reads low; "+
			"say keyed: false of topics that are not keyed by question key", "dependency", name)
	}
}

// holds says that a dependency was seen to be split not long ago.
func (p *probe) holds(dependency string) bool {
	at, ok := p.split[dependency]
	return ok && p.now().Sub(at) < splitHolds
}

// splits lists the dependencies that are split.
func (p *probe) splits() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]bool{}
	for name := range p.split {
		if p.holds(name) {
			out[name] = true
		}
	}
	return out
}

// forget drops what a scope saw that is no more: under another configuration its
// partitions may belong to another.
func (p *probe) forget(scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range []map[aggregate.ID]sighting{p.young, p.old} {
		for id, x := range m {
			if x.scope == scope {
				delete(m, id)
			}
		}
	}
}
