package api

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/targetside/auditor/alerts"
)

// questionBounds are the bounds of auditor_arrivals_per_question: exact where
// honest stacks are, then the products of small numbers, then powers of two.
var questionBounds = []float64{1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 18, 27, 32, 64, 128, 256, 512, 1024}

// snapshot turns a snapshot into samples. Sums that the snapshot has at 0 are
// samples of 0, so that what is known counts from 0.
func (x *scrape) snapshot(s *Snapshot) {
	x.put(x.build, 1, alerts.SafeLabel(s.Build.Version), alerts.SafeLabel(s.Build.Revision), alerts.SafeLabel(s.Build.GoVersion))
	if at := s.Reload.At; !at.IsZero() {
		good := 1.0
		if s.Reload.Failed {
			good = 0
		}
		x.put(x.reloadGood, good)
		x.put(x.reloadAt, float64(at.UnixMilli())/1e3)
	}
	x.histogram(x.storeWrite, &s.StoreWrites, StoreWriteBounds)
	for _, kind := range slices.Sorted(maps.Keys(s.StoreErrors)) {
		x.count(x.storeErrors, s.StoreErrors[kind], kind)
	}
	names := map[string]bool{}
	questions := map[string]*Distribution{} // arrivals of each, by dependency
	for i := range s.Dependencies {
		d := &s.Dependencies[i]
		name := x.admit("dependency", d.Name, mostDependencies)
		folded := name == other && d.Name != other
		if !folded && names[name] {
			continue
		}
		x.closed(name, d, folded)
		if questions[name] == nil {
			questions[name] = new(Distribution)
		}
		questions[name].merge(&d.Closed.PerQuestion)
		if folded {
			continue // gauges cannot be added up
		}
		names[name] = true
		x.gauges(name, d)
		if s.Policy != nil && s.Policy.WorstCase != nil {
			x.put(x.declaredWorst, *s.Policy.WorstCase, name)
		}
	}
	for _, name := range sortedNames(questions) {
		x.histogram(x.perQuestion, questions[name], questionBounds, name)
	}
	x.put(x.live, float64(s.LiveQuestions))
	x.count(x.leftOut, s.QuestionsLeftOut)
	x.alertStates(s)
	for i := range s.Sources {
		src := &s.Sources[i]
		x.source(x.admit("source", src.Name, mostSources), src)
	}
	if len(s.together()) > 0 {
		t := &s.Together
		x.found(togetherName, t.Duplicates, t.Late)
	}
}

// closed exports the counters of a dependency; those of several that are folded into
// one add, and are not told apart by route.
func (x *scrape) closed(dep string, d *Dependency, folded bool) {
	t := &d.Closed.Total
	t.Unattributable.Each(func(reason string, n uint64) { x.count(x.unattributable, n, dep, reason) })
	x.count(x.retryAsked, t.RetryAsked, dep)
	if t.Arrivals > 0 || slices.ContainsFunc(d.Windows, func(w Window) bool { return w.Total.timed() }) {
		x.known(x.retryEarly, t.Retries().Early, dep)
	}
	x.count(x.stale, t.StaleArrivals, dep)
	x.count(x.violations, t.Overspent, dep, "overspent")
	x.count(x.violations, t.NotDecremented, dep, "not_decremented")
	x.count(x.violations, t.Increased, dep, "increased")
	counted := map[string]bool{}
	for i := range d.Closed.Routes {
		r := &d.Closed.Routes[i]
		name := other
		if !folded {
			name = x.admit("route of "+dep, r.Name, mostRoutes)
		}
		counted[name] = true
		x.route(dep, name, &r.Sums)
		x.times(dep, name, &r.Sums)
	}
	if folded {
		return
	}
	// A route is live a lateness before its first tick closes: its counters stand
	// at 0 until then, or their first value would be no increase. What rests on times
	// does not where the log gives none.
	for i := range d.Windows {
		for j := range d.Windows[i].Routes {
			r := &d.Windows[i].Routes[j]
			name := x.admit("route of "+dep, r.Name, mostRoutes)
			if counted[name] {
				continue
			}
			x.route(dep, name, &Sums{})
			if r.timed() {
				x.times(dep, name, &Sums{})
			}
		}
	}
}

// merge adds another distribution.
func (d *Distribution) merge(o *Distribution) {
	all := slices.Concat(d.Buckets, o.Buckets)
	slices.SortStableFunc(all, func(a, b Bucket) int { return cmp.Compare(a.Upper, b.Upper) })
	d.Buckets, d.Count, d.Sum = all, d.Count+o.Count, d.Sum+o.Sum
}

func (x *scrape) route(dep, route string, s *Sums) {
	x.count(x.arrivals, s.Verified, dep, route, "verified")
	x.count(x.arrivals, s.Claimed, dep, route, "claimed")
	x.count(x.arrivals, s.Unattributable.Total, dep, route, "unattributable")
	x.count(x.originals, s.Originals, dep, route)
	x.count(x.repeats, s.Repeats, dep, route)

	// The outcomes are disjoint and add up to the arrivals.
	x.count(x.responses, less(s.Answers, s.DeadAnswers), dep, route, "answered")
	x.count(x.responses, s.DeadAnswers, dep, route, "dead")
	x.count(x.responses, s.Refused, dep, route, "refused")
	x.count(x.responses, less(s.Arrivals, s.Answers+s.Refused), dep, route, "abandoned")

	// Beside them: a success may also be a refusal, as a proxy's own redirect is.
	x.count(x.good, s.Good, dep, route)
	x.count(x.unjudged, s.Unjudged, dep, route)

	x.count(x.deadAnswers, s.UndeliveredAnswer, dep, route, "undelivered_answer")
	x.count(x.deadAnswers, s.DuringResponse, dep, route, "during_response")
	x.count(x.deadAnswers, s.UnknownPoint, dep, route, "unknown_point")
}

// timed says that the time of some arrivals is known, or that there are none.
func (s *Sums) timed() bool {
	_, ok := s.BusyTime().Value()
	return ok
}

// times exports what rests on times in system.
func (x *scrape) times(dep, route string, s *Sums) {
	x.known(x.deadAnswers, s.Past(), dep, route, "expired")
	x.time(x.deadSeconds, s.DeadTime(), dep, route)
	x.time(x.busySeconds, s.BusyTime(), dep, route)
	x.time(x.repeatSeconds, s.RepeatTime(), dep, route)
}

// gauges exports the gauges of a dependency.
func (x *scrape) gauges(dep string, d *Dependency) {
	x.put(x.sampling, math.Ldexp(1, -max(0, d.SampleBits)), dep)
	split := 0.0
	if d.ScopeSplit {
		split = 1
	}
	x.put(x.split, split, dep)
	x.ratio(x.readShare, d.ReadShare, dep)
	for i := range d.Windows {
		w := &d.Windows[i]
		if w.Length != 10*time.Second && w.Length != time.Minute && w.Length != 5*time.Minute {
			continue
		}
		name := shortDuration(w.Length)
		x.ratio(x.loadFactor, w.Total.loadFactor(), dep, name)
		if w.Length == metaWindow {
			f := w.Total.figures(w.span())
			if w.Total.Arrivals > 0 {
				all := float64(w.Total.Arrivals)
				x.put(x.coverage, float64(w.Total.Verified)/all, dep, "verified")
				x.put(x.coverage, float64(w.Total.Claimed)/all, dep, "claimed")
			}
			x.ratio(x.visibility, f.Responses.Visibility, dep)
		}
	}
	for i := range d.ClosedWindows {
		w := &d.ClosedWindows[i]
		name, b := shortDuration(w.Length), w.Total.bounds()
		x.ratio(x.amplification, b.measured, dep, name, "measured")
		x.ratio(x.amplification, b.low, dep, name, "low")
		x.ratio(x.amplification, b.high, dep, name, "high")
		x.ratio(x.amplification, b.strictLow, dep, name, "strict_low")
		x.ratio(x.amplification, b.strictHigh, dep, name, "strict_high")
	}
	for i := range d.Budgets {
		b := &d.Budgets[i]
		if b.Route != "" {
			continue // the API has those of routes
		}
		model := x.admit("model", b.Model, mostReasons)
		x.ratio(x.consumed, b.Consumed, dep, model, "low")
		x.ratio(x.consumed, b.ConsumedHigh, dep, model, "high")
		x.ratio(x.exhaustsIn, b.ExhaustsIn, dep, model)
	}
}

// togetherName is the label source of what cannot be told of one source.
const togetherName = "all that are counted together"

// found exports what the ledger found among the records of a source, or of several.
func (x *scrape) found(name string, duplicates, late uint64) {
	x.count(x.records, duplicates, name, "duplicate")
	x.count(x.duplicates, duplicates, name)
	x.count(x.late, late, name)
}

// source exports what a source read.
func (x *scrape) source(name string, s *Source) {
	x.count(x.records, s.Counted, name, "counted")
	x.count(x.records, s.Ignored, name, "ignored")
	var quarantined uint64
	for _, reason := range sortedNames(s.Quarantined) {
		n := s.Quarantined[reason]
		quarantined += n
		x.count(x.quarantined, n, name, x.admit("reason", reason, mostReasons))
	}
	x.count(x.records, quarantined, name, "quarantined")
	if !s.Together {
		x.found(name, s.Duplicates, s.Late)
	}
	x.count(x.gaps, s.GapRecords, name)
	up := 1.0
	if s.State == "failed" {
		up = 0
	}
	x.put(x.sourceUp, up, name)
	x.count(x.sourceRestarts, s.Restarts, name)
	if n := s.Intake; n != nil {
		x.count(x.intake, n.Kept, name, "kept")
		x.count(x.intake, n.Refused, name, "refused")
		x.count(x.intake, n.Dropped, name, "dropped")
		x.count(x.intake, n.Truncated, name, "truncated")
		x.count(x.intakeWaits, n.Waits, name)
		x.put(x.intakeConnections, float64(n.Connections), name)
	}
	b := s.behind()
	x.ratio(x.lag, b.seconds, name)
	if !b.watermark.IsZero() {
		x.put(x.watermark, float64(b.watermark.UnixMilli())/1e3, name)
	}
}
