package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/pipeline"
)

// reader shows the API what the daemon knows.
type reader struct {
	d        *daemon
	snapshot atomic.Pointer[api.Snapshot]
	fixed    api.Snapshot // what does not change
	splits   splits
}

func newReader(d *daemon) *reader {
	v := thisBuild()
	r := &reader{d: d, fixed: api.Snapshot{Build: api.Build{Version: v.Version, Revision: v.Revision, GoVersion: v.Go}}}
	first := r.fixed
	first.At, first.State, first.Reasons = d.now(), api.Starting, []string{"nothing was read yet"}
	r.configured(&first, d.setup.Load())
	r.snapshot.Store(&first)
	return r
}

// configured adds what the configuration says.
func (r *reader) configured(s *api.Snapshot, x *setup) {
	s.Granted, s.Policy, s.Configured = x.loaded.grants(), policy(&x.loaded.Declared).Plan(), x.loaded.Dependency.Name
	s.Reload = *r.d.reloaded.Load()
}

// run takes pictures.
func (r *reader) run(ctx context.Context) {
	every(ctx, pipeline.PulseEvery, r.take)
}

// Snapshot implements api.Reader.
func (r *reader) Snapshot() *api.Snapshot { return r.snapshot.Load() }

// HashKey implements api.Reader.
func (r *reader) HashKey(text string) [16]byte { return r.d.setup.Load().hash([]byte(text)) }

func (r *reader) take() {
	x := r.d.setup.Load()
	p := x.live.Picture()
	s := r.fixed
	r.configured(&s, x)
	s.LiveQuestions, s.QuestionsLeftOut = int64(p.Live), p.LeftOut
	s.At, s.StoreWrites, s.StoreErrors = p.At, r.d.rows.distribution(), r.d.storeErrors()
	for i, src := range x.sources {
		shown := src.show(p, i)
		shown.Dependency = x.loaded.Dependency.Name
		s.Sources = append(s.Sources, shown)
	}
	s.State, s.Reasons = r.d.state(x, p, s.Sources)
	s.Together = api.Together{Duplicates: p.Shared.Duplicates, Undecidable: p.Shared.Undecidable, Late: p.Shared.Late}
	slices.SortFunc(s.Sources, func(a, b api.Source) int { return cmp.Compare(a.Name, b.Name) })
	s.Part = x.share() && !x.standby()
	share := readShare(p, x.sources)
	for i := range p.Dependencies {
		d := &p.Dependencies[i]
		split := d.ScopeSplit || r.splits.has(d.Name)
		if split {
			s.Reasons = append(s.Reasons, splitReason(d.Name))
		}
		s.Dependencies = append(s.Dependencies, api.Dependency{
			Name: d.Name, ScopeSplit: split, Worst: showLive(d.Worst), Warming: p.Warming, CompleteUntil: tickTime(p.Closed), ReadShare: share, SampleBits: p.SampleBits,
			Windows: showWindows(d.Windows), ClosedWindows: showClosed(d.ClosedWindows), Budgets: showBudgets(d.Budgets), Verdict: d.Verdict,
			Closed: api.Counters{Total: api.Sums{Totals: d.Closed}, Routes: showParts(d.ClosedRoutes), PerQuestion: showHistogram(&d.PerQuestion)},
		})
	}
	r.d.alerting.judge(x, p, &s)
	r.snapshot.Store(&s)
}

// state says what the instance can do, and what of it is not well.
func (d *daemon) state(x *setup, p *pipeline.Picture, sources []api.Source) (api.State, []string) {
	var unwell []string
	whole := 0
	for i := range sources {
		if s := &sources[i]; s.State == "full" { // what was taken is read, and more has to be sent
			unwell = append(unwell, s.Name+" is full: "+s.Error)
		} else if s.State == "failed" {
			unwell = append(unwell, s.Name+" has failed: "+s.Error)
			if !slices.ContainsFunc(s.Partitions, func(p api.Partition) bool { return p.State != "failed" }) {
				whole++
			}
		}
	}
	with := func(s api.State, reasons ...string) (api.State, []string) { return s, append(reasons, unwell...) }
	switch err := cmp.Or(p.StoreErr, d.watch.failed()); {
	case err != nil:
		return with(api.StoreUnavailable, err.Error())
	case whole == len(x.sources):
		return with(api.Failed)
	case x.standby():
		return with(api.Standby, "another instance reads the sources")
	case d.gate.isShut() || p.Scopes == 0 && x.changed:
		return with(api.Rebuilding, "the configuration changes")
	case p.Scopes == 0:
		return with(api.Starting, "no partition is assigned yet")
	case p.Rebuilding:
		return with(api.Rebuilding, "records are read again that the ledger has to know")
	case len(p.Stalled) > 0:
		return with(api.Stalled, p.Stalled...)
	case p.Warming:
		return with(api.Warming, fmt.Sprintf("questions asked before the first record are not known; that takes %v", 2*x.loaded.Keys.Horizon))
	}
	return with(api.Ready)
}

func tickTime(tick int64) time.Time {
	if tick == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(tick, 0).UTC()
}

// readShare is records read / (read + quarantined + lost). What comes by an exchange
// was read where it was sent.
func readShare(p *pipeline.Picture, sources []*source) aggregate.Figure {
	read, lost := readAndLost(p, sources)
	return aggregate.Share(read, read+lost)
}

func readAndLost(p *pipeline.Picture, sources []*source) (read, lost uint64) {
	for i := range p.Sources {
		c := &p.Sources[i]
		bad := sumOf(c.Quarantined)
		if sources[i].kind != kindExchange {
			read += c.Lines - min(bad, c.Lines)
		}
		lost += bad + sources[i].lost(c.Gap)
	}
	return read, lost
}

func sumOf(m map[string]uint64) (n uint64) {
	for _, x := range m {
		n += x
	}
	return n
}

func showWindows(in []pipeline.LiveWindow) (out []api.Window) {
	for i := range in {
		w := &in[i]
		out = append(out, api.Window{
			Length: w.Length, From: tickTime(w.From), To: tickTime(w.To), Total: api.Sums{Totals: w.Total},
			Routes: showParts(w.Routes), Originators: showParts(w.Originators), Peers: showParts(w.Peers),
		})
	}
	return out
}

func showClosed(in []pipeline.ClosedWindow) (out []api.Window) {
	for i := range in {
		w := &in[i]
		out = append(out, api.Window{
			Length: w.Length, From: tickTime(w.From), To: tickTime(w.To),
			Total: api.Sums{Totals: w.Total, Questions: w.Questions, QuestionsVerified: w.Verified, History: true},
		})
	}
	return out
}

func showParts(in []pipeline.LivePart) (out []api.Part) {
	for i := range in {
		out = append(out, api.Part{Name: in[i].Name, Sums: api.Sums{Totals: in[i].Totals}})
	}
	return out
}

// showHistogram is a histogram of counts.
func showHistogram(h *aggregate.Histogram) (out api.Distribution) {
	h.EachCount(func(upper, n uint64) {
		out.Buckets = append(out.Buckets, api.Bucket{Upper: float64(upper), N: n})
	})
	out.Count, out.Sum = h.N(), float64(h.Sum())
	return out
}

func showBudgets(in []pipeline.LiveBudget) (out []api.Budget) {
	for i := range in {
		out = append(out, showBudget(&in[i]))
	}
	return out
}

// showFleet is the sum of what the instances of the fleet count.
func showFleet(v *fleetView) *api.Fleet {
	out := &api.Fleet{Members: v.members, Scopes: v.FleetPicture.Scopes, Missing: v.Missing, Warming: v.Warming, Telling: v.mode == telling}
	for i := range v.Dependencies {
		d := &v.Dependencies[i]
		out.Dependencies = append(out.Dependencies, api.FleetDependency{Name: d.Name, ScopeSplit: d.ScopeSplit, Budgets: showBudgets(d.Budgets)})
	}
	return out
}

func showBudget(b *pipeline.LiveBudget) api.Budget {
	out := api.Budget{Route: b.Route, Model: b.Model, From: tickTime(b.From), To: tickTime(b.To)}
	if b.Some {
		out.Allowance, out.Spent, out.Consumed = aggregate.Number(b.Allowance), aggregate.Number(b.Spent), aggregate.Number(b.Consumed)
		out.ConsumedHigh, out.State = aggregate.Number(b.High), b.State
		if b.ExhaustsIn > 0 {
			out.ExhaustsIn = aggregate.Number(b.ExhaustsIn)
		}
	}
	if b.Peak > 0 {
		out.PeakConsumed = aggregate.Number(b.Peak)
	}
	if b.Exhausted != 0 {
		out.ExhaustedAt = tickTime(b.Exhausted)
	}
	return out
}

// grants are the retry budgets of the configuration.
func (l *loaded) grants() []api.Grant {
	all, routes := l.budgets()
	out := []api.Grant{{Model: all}}
	for route, m := range routes {
		out = append(out, api.Grant{Route: route, Model: *m})
	}
	slices.SortFunc(out, func(a, b api.Grant) int { return cmp.Compare(a.Route, b.Route) })
	return out
}
