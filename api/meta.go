package api

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// Meta stands at the head of every answer: how far its figures can be believed.
type Meta struct {
	At    instant `json:"at"` // of the snapshot
	State State   `json:"state"`
	// Coverage is the share of arrivals that could be attributed, the next two its
	// parts; of a range over the range, of all else over the last minute.
	Coverage         aggregate.Figure `json:"coverage"`
	CoverageVerified aggregate.Figure `json:"coverage_verified"`
	CoverageClaimed  aggregate.Figure `json:"coverage_claimed"`
	// What started before CompleteUntil is final. Provisional says that the answer
	// reaches beyond it.
	CompleteUntil instant   `json:"complete_until"`
	Provisional   bool      `json:"provisional"`
	Warming       bool      `json:"warming"`
	Sampling      *Sampling `json:"sampling"` // null: every question is followed
	ScopeSplit    bool      `json:"scope_split"`
	ScopeSplitIn  []string  `json:"scope_split_in"` // dependencies; null if none is
	// Part says that the figures are of a part of the questions: those that this instance
	// counts, while others count the rest.
	Part bool `json:"part"`
}

// Sampling says what share of questions is followed. Sums are weighted already.
type Sampling struct {
	Bits  int     `json:"bits"`
	Share float64 `json:"share"`
	// StandardError is that of originals: of a range over the range, of all else over
	// the last minute.
	StandardError aggregate.Figure `json:"originals_standard_error"`
}

// sampling describes following one question in 2^bits, where originals have that
// variance.
func sampling(bits int, variance uint64) *Sampling {
	if bits <= 0 {
		return nil
	}
	return &Sampling{Bits: bits, Share: math.Ldexp(1, -bits), StandardError: aggregate.Number(math.Sqrt(float64(variance)))}
}

// windowLengths are those of live windows.
var windowLengths = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

// metaWindow is the live window that coverage is of.
const metaWindow = time.Minute

// liveMeta is the head of an answer about these dependencies as they are now.
func liveMeta(s *Snapshot, deps []*Dependency) Meta {
	m := Meta{At: instant(s.At), State: s.State, Warming: s.State == Warming, Part: s.Part}
	var sums Sums
	var newest, complete time.Time
	bits := 0
	for i, d := range deps {
		if w := d.window(metaWindow); w != nil {
			sums.addCoverage(&w.Total)
		}
		for j := range d.Windows {
			newest = later(newest, d.Windows[j].To)
		}
		if i == 0 || d.CompleteUntil.Before(complete) {
			complete = d.CompleteUntil
		}
		bits = max(bits, d.SampleBits)
		m.Warming = m.Warming || d.Warming
		if d.ScopeSplit {
			m.ScopeSplit, m.ScopeSplitIn = true, append(m.ScopeSplitIn, d.Name)
		}
	}
	m.Coverage = aggregate.Share(sums.attributable(), sums.Arrivals)
	m.CoverageVerified = aggregate.Share(sums.Verified, sums.Arrivals)
	m.CoverageClaimed = aggregate.Share(sums.Claimed, sums.Arrivals)
	m.CompleteUntil = instant(complete)
	m.Provisional = newest.After(complete)
	m.Sampling = sampling(bits, sums.Variance)
	return m
}

// rangeMeta is the head of an answer about stored rows that end at to.
func rangeMeta(s *Snapshot, r *Range, to time.Time) Meta {
	t := &r.Total
	return Meta{
		At: instant(s.At), State: s.State,
		Coverage:         t.Coverage,
		CoverageVerified: aggregate.Share(t.Verified, t.Arrivals),
		CoverageClaimed:  aggregate.Share(t.Claimed, t.Arrivals),
		CompleteUntil:    instant(r.CompleteUntil),
		Provisional:      to.After(r.CompleteUntil),
		Warming:          r.Warming,
		Sampling:         sampling(r.SampleBits, t.Variance),
		ScopeSplit:       len(r.ScopeSplitIn) > 0,
		ScopeSplitIn:     r.ScopeSplitIn,
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// window returns the live window of a length, nil if there is none.
func (d *Dependency) window(length time.Duration) *Window {
	for i := range d.Windows {
		if d.Windows[i].Length == length {
			return &d.Windows[i]
		}
	}
	return nil
}

// span is how much log time a window covers.
func (w *Window) span() time.Duration { return max(0, w.To.Sub(w.From)) }

// pick returns the dependency that a request names, or all if it names none. One
// that is not known is no fault of the parameter: it may be soon.
func pick(s *Snapshot, p *params) []*Dependency {
	name := p.name("dependency")
	deps := s.named(name)
	if name != "" && deps == nil {
		p.missing = problem(http.StatusNotFound, fmt.Sprintf("dependency %s is not known here: %s", clip(name), s.known()))
	}
	return deps
}

// pickAny is pick where the fleet may know a dependency that is not live here.
func pickAny(s *Snapshot, p *params) []*Dependency {
	deps := pick(s, p)
	if s.Fleet != nil && slices.ContainsFunc(s.Fleet.Dependencies, func(d FleetDependency) bool { return d.Name == p.values["dependency"] }) {
		p.missing = nil
	}
	return deps
}

// named returns the dependency with a name, or all that are live for an empty one.
// One that is configured is there before its first record, and nothing is known of
// it.
func (s *Snapshot) named(name string) (deps []*Dependency) {
	for i := range s.Dependencies {
		if d := &s.Dependencies[i]; name == "" || d.Name == name {
			deps = append(deps, d)
		}
	}
	if deps == nil && name != "" && name == s.Configured {
		d := &Dependency{Name: name}
		for _, length := range windowLengths {
			d.Windows = append(d.Windows, Window{Length: length})
		}
		deps = append(deps, d)
	}
	return deps
}

// known says which dependencies there are.
func (s *Snapshot) known() string {
	const most = 20
	var names []string
	for i := range s.Dependencies {
		names = append(names, s.Dependencies[i].Name)
	}
	if s.Configured != "" && !slices.Contains(names, s.Configured) {
		names = append(names, s.Configured)
	}
	slices.Sort(names)
	list := make([]string, min(len(names), most))
	for i := range list {
		list[i] = clip(names[i])
	}
	switch more := len(names) - len(list); {
	case len(names) == 0:
		return "no record has come yet"
	case more > 0:
		return fmt.Sprintf("there are %s and %d more", strings.Join(list, ", "), more)
	}
	return "there is " + strings.Join(list, ", ")
}
