// Package lab plays retry storms: people who ask, layers that try again, and a
// target that turns slow, in virtual time. It writes the access log that the target
// would have written, and beside it the truth, counted from what happened.
//
// What it promises:
//
//   - The same scenario, seed and format give the same bytes, of log and truth, on
//     every machine and in every run.
//   - Nothing is counted from the log, and nothing here is shared with what reads
//     logs: the writers of formats, the keys and the budgets are its own, so that an
//     auditor that agrees with it agrees with something else than itself.
//   - Stamps are cut to the millisecond, as logs cut them, and truth speaks of what
//     is left: an order that no log can show is not held against its reader.
//
// What it leaves out: bytes on a wire, connections and their reuse, processors that
// slow down under load unless a scenario says so. Time passes in calls, queues and
// waits alone.
//
// It judges nothing and audits nothing; cmd/auditor replays the log, and compares.
package lab

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Truth is what happened in a run.
type Truth struct {
	Schema   string  `json:"schema"`
	Scenario string  `json:"scenario"`
	Arm      string  `json:"arm"`
	Seed     uint64  `json:"seed"`
	Scale    float64 `json:"scale"`
	// Lost are arrivals that left no record: their target ran out of memory, or the
	// end came first.
	Lost    uint64        `json:"lost"`
	Asked   uint64        `json:"asked"`   // questions, whatever keys layers made of them
	Reached uint64        `json:"reached"` // of them, those with an arrival in the log
	Total   *Counts       `json:"total"`
	Targets []Part        `json:"targets"`
	Routes  []RouteSeries `json:"series"`
	Phases  []PhaseTruth  `json:"phases"`
	Workers []LayerSeries `json:"workers"`
	// Shown is what the log can show of it; nil if it was written in a format that has a
	// place for all, or not at all.
	Shown *Shown `json:"shown,omitempty"`
}

// PerQuestion is arrivals per question, as nobody can know it who sees keys only.
func (t *Truth) PerQuestion() float64 {
	if t.Reached == 0 {
		return 0
	}
	return float64(t.Total.Arrivals) / float64(t.Reached)
}

// Schema names the shape of a Truth.
const Schema = "auditor.lab.truth/1"

// Part is what is true of a target, of one of its routes, or of what came by a peer.
type Part struct {
	Name string `json:"name"`
	*Counts
	Routes []Part `json:"routes,omitempty"`
	Peers  []Part `json:"peers,omitempty"`
}

// RouteSeries is a route, second by second.
type RouteSeries struct {
	Route   string   `json:"route"`
	Target  string   `json:"target"`
	Seconds []Second `json:"seconds"`
}

// LayerSeries is who held a layer's workers at the end of each second.
type LayerSeries struct {
	Layer   string           `json:"layer"`
	Workers int              `json:"workers"` // in the model; 0: no limit
	Busy    map[string][]int `json:"busy"`    // by route
}

// PhaseTruth sums a phase. Rates are at full size.
type PhaseTruth struct {
	Phase  string                `json:"phase"`
	From   float64               `json:"from"` // seconds
	To     float64               `json:"to"`
	Routes map[string]PhaseRoute `json:"routes"`
}

// PhaseRoute is a route in a phase.
type PhaseRoute struct {
	Second              // sums; Oldest is the largest
	Asking      float64 `json:"asking_per_second"`
	Load        float64 `json:"load_per_second"` // arrivals
	PerQuestion float64 `json:"per_question"`    // arrivals in the phase / questions asked in it
	Success     float64 `json:"success"`         // share of those asked that were answered in time
	UsefulRate  float64 `json:"useful_per_second"`
}

// Output is what a run writes besides its truth; what is nil is not written.
type Output struct {
	Format string    // of the log
	Log    io.Writer // of the targets
	Events io.Writer // one JSON object for each question: its key, its attempts, its outcome
	Live   Live
}

// Run plays an arm.
func Run(ctx context.Context, a *Arm, o Output) (*Truth, error) {
	log, err := newLogbook(o)
	if err != nil {
		return nil, err
	}
	m := newModel(&a.Scenario, log)
	m.live = o.Live
	if err := m.play(ctx.Err); err != nil {
		return nil, fmt.Errorf("run %s: %w", a.Name, err)
	}
	return m.truth(a), nil
}

// truth puts together what the book holds.
func (m *model) truth(a *Arm) *Truth {
	t := &Truth{Schema: Schema, Scenario: a.Scenario.Name, Arm: a.Name, Seed: m.s.Seed, Scale: m.s.Scale,
		Lost: m.book.lost, Asked: m.asked, Reached: m.book.reached, Shown: m.view()}
	t.Total, t.Targets = m.parts(m.book.counts)
	for i := range m.routes {
		t.Routes = append(t.Routes, RouteSeries{m.routes[i].Name, m.routes[i].Target, m.book.series[i]})
	}
	for i := range m.layers {
		l := LayerSeries{Layer: m.layers[i].Name, Busy: map[string][]int{}}
		if m.layers[i].Workers != Unbounded {
			l.Workers = m.layers[i].workers
		}
		for _, at := range m.book.busy[i] {
			for j, n := range at {
				l.Busy[m.routes[j].Name] = append(l.Busy[m.routes[j].Name], n)
			}
		}
		t.Workers = append(t.Workers, l)
	}
	phases := m.s.Phases
	if len(phases) == 0 {
		phases = []Phase{{Name: "all", To: m.s.Lasts}}
	}
	for _, p := range phases {
		t.Phases = append(t.Phases, m.phase(p))
	}
	return t
}

// parts puts together counts by route.
func (m *model) parts(counts []*Counts) (total *Counts, targets []Part) {
	total = newCounts()
	for i := range m.targets {
		p := Part{Name: m.targets[i].Name, Counts: newCounts()}
		peers := map[string]*Counts{}
		for j := range m.routes {
			r := &m.routes[j]
			c := counts[j]
			if r.target != i || c.Arrivals == 0 {
				continue
			}
			p.add(c)
			peer := m.s.Layers[r.through[len(r.through)-1]].Name
			if peers[peer] == nil {
				peers[peer] = newCounts()
			}
			peers[peer].add(c)
			p.route(r.template(), c)
		}
		for j := range p.Routes {
			p.Routes[j].complete()
		}
		for _, name := range slices.Sorted(maps.Keys(peers)) {
			peers[name].complete()
			p.Peers = append(p.Peers, Part{Name: name, Counts: peers[name]})
		}
		if p.Arrivals == 0 {
			continue
		}
		total.add(p.Counts)
		p.complete()
		targets = append(targets, p)
	}
	total.complete()
	return total, targets
}

// route adds what is true of a route. Those of one template are one to whoever reads a
// log.
func (p *Part) route(template string, c *Counts) {
	i := slices.IndexFunc(p.Routes, func(r Part) bool { return r.Name == template })
	if i < 0 {
		i = len(p.Routes)
		p.Routes = append(p.Routes, Part{Name: template, Counts: newCounts()})
	}
	p.Routes[i].add(c)
}

// template is the route as the auditor's configuration names it.
func (r *Route) template() string { return r.Method + " " + r.Path + "{id}" }

func (m *model) phase(p Phase) PhaseTruth {
	out := PhaseTruth{Phase: p.Name, From: p.From.Seconds(), To: p.To.Seconds(), Routes: map[string]PhaseRoute{}}
	for i := range m.routes {
		var r PhaseRoute
		s := m.book.series[i]
		for k := int(p.From / time.Second); k < int(p.To/time.Second) && k < len(s); k++ {
			r.add(&s[k])
		}
		per := m.s.Scale / (p.To - p.From).Seconds()
		r.Asking, r.Load, r.UsefulRate = float64(r.Asked)*per, float64(r.Arrivals)*per, float64(r.Useful)*per
		if r.Asked > 0 {
			r.PerQuestion, r.Success = float64(r.Arrivals)/float64(r.Asked), float64(r.Answered)/float64(r.Asked)
		}
		out.Routes[m.routes[i].Name] = r
	}
	return out
}

func (s *Second) add(o *Second) {
	s.Asked += o.Asked
	s.Answered += o.Answered
	s.Late += o.Late
	s.Degraded += o.Degraded
	s.Failed += o.Failed
	s.Left += o.Left
	s.Arrivals += o.Arrivals
	s.Completed += o.Completed
	s.ForNobody += o.ForNobody
	s.Useful += o.Useful
	s.Again += o.Again
	s.Refused += o.Refused
	s.Denied += o.Denied
	s.Oldest = max(s.Oldest, o.Oldest)
	s.Waited = max(s.Waited, o.Waited)
}
