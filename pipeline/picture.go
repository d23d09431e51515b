package pipeline

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// Picture is what a daemon knows at one moment, of all of its scopes together.
type Picture struct {
	At           time.Time
	Dependencies []LiveDependency // by name
	Partitions   []LivePartition  // by name
	Sources      []SourceCounts   // by source
	// Stats are by source. Those of a scope that several sources feed cannot be told
	// apart; they are in Shared, and those sources in Together.
	Stats      []aggregate.Stats
	Shared     aggregate.Stats
	Together   []bool // by source
	Live       int    // questions remembered
	SampleBits int    // k: one question in 2^k is followed
	LeftOut    uint64 // questions that are over and were not stored, since the process began
	Scopes     int
	Rebuilding bool  // some rows are made anew, which are stored already
	Warming    bool  // what was asked before the first record is not known
	Closed     int64 // the first tick that is not closed in every scope; math.MinInt64: none is
	StoreErr   error // why the latest write failed
	// Stalled says of each scope whose ticks are not stored though records come what
	// they wait for.
	Stalled []string
}

// LivePartition is one partition of a scope.
type LivePartition struct {
	Source    int
	Name      string
	Idle      bool  // nothing has come for LiveConfig.Idle
	Watermark int64 // Unix nanoseconds; math.MinInt64: no record yet
}

// LiveDependency is what is live of one dependency.
type LiveDependency struct {
	Name    string
	Windows []LiveWindow // by WindowLengths
	// Budgets are the dependency's, with an empty Route, and those of routes that
	// have one of their own.
	Budgets []LiveBudget
	// Verdict is that on the budget's window.
	Verdict budget.Verdict
	// Closed counts the closed ticks that were stored first by this process.
	Closed        aggregate.Totals
	ClosedWindows []ClosedWindow // by WindowLengths
	ClosedRoutes  []LivePart
	PerQuestion   aggregate.Histogram // arrivals, of questions that are over
	Worst         []Question          // those under way that came back most often, at most WorstPlaces
	ScopeSplit    bool                // one question came in two scopes: repeats are missing
}

// LiveWindow is the live figures of the last seconds of log time, From up to To,
// not included.
type LiveWindow struct {
	Length                     time.Duration
	From, To                   int64
	Total                      aggregate.Totals
	Routes, Originators, Peers []LivePart // by name
}

// LivePart is one route, originator or peer.
type LivePart struct {
	Name string
	aggregate.Totals
}

// LiveBudget is the reading of a retry budget over its window.
type LiveBudget struct {
	Route    string
	From, To int64
	Model    string
	budget.Reading
	Some       bool    // there is a reading
	Part       bool    // there is none, since of some of its seconds only a part is known
	ExhaustsIn float64 // seconds at the present slope; 0: that cannot be said
	Peak       float64
	Exhausted  int64 // the first second with consumed ≥ 1; 0: never
}

// gauge remembers the readings of a budget.
type gauge struct {
	model     budget.Model
	peak      float64
	exhausted int64
}

// read takes the reading of a window that ends before second to; first is the
// first second with a record. seconds are the counts of each up to there. A bucket is
// taken to have been full before them: longer ago than live windows reach, it is not
// known.
func (g *gauge) read(sums *aggregate.Sums, bits int, seconds []budget.Counts, first, to int64) LiveBudget {
	m := &g.model
	b := LiveBudget{Model: m.Name(), From: to - int64(m.Window), To: to, Peak: g.peak, Exhausted: g.exhausted}
	if b.From < first {
		return b
	}
	if known := to - first; int64(len(seconds)) > known {
		seconds = seconds[int64(len(seconds))-known:]
	}
	var held budget.Bucket
	for i := range seconds {
		held = m.Fill(held, seconds[i])
	}
	if b.Reading, b.Some = m.Read(sums.Budget(), held); !b.Some || vague(sums.Totals(), bits) {
		b.Some = false
		return b
	}
	b.ExhaustsIn, _ = m.ExhaustsIn(seconds, held)
	if b.Consumed > g.peak {
		g.peak = b.Consumed
	}
	if g.exhausted == 0 && b.Consumed >= 1 {
		g.exhausted = to
	}
	b.Peak, b.Exhausted = g.peak, g.exhausted
	return b
}

// vague says that so few questions are followed that their number is not known to a
// tenth (standard error).
func vague(t aggregate.Totals, bits int) bool {
	o := float64(t.Originals)
	return bits > 0 && float64(t.Variance) >= o*o/100
}

// sheet adds up the parts of one dependency over one window.
type sheet struct {
	total                      aggregate.Sums
	routes, originators, peers map[string]*aggregate.Sums
	over                       aggregate.Histogram
	first, to                  int64
}

func newSheet() *sheet {
	return &sheet{routes: map[string]*aggregate.Sums{}, originators: map[string]*aggregate.Sums{}, peers: map[string]*aggregate.Sums{}, first: math.MaxInt64, to: noTick}
}

func sumInto(m map[string]*aggregate.Sums, name string, s *aggregate.Sums) {
	if m[name] == nil {
		m[name] = new(aggregate.Sums)
	}
	m[name].Merge(s)
}

// addSheets adds the last seconds of a scope's windows.
func addSheets(sheets map[string]*sheet, w *windows, seconds int64, n *names) {
	first := w.first()
	of := func(route int) (x *sheet, name string) {
		dep, name := n.Route(uint16(route))
		if x = sheets[dep]; x == nil {
			x = newSheet()
			sheets[dep] = x
		}
		x.first, x.to = min(x.first, first), max(x.to, w.head+1)
		return x, name
	}
	sum := w.sum(seconds)
	for route, s := range sum.routes {
		if s != nil {
			x, name := of(route)
			x.total.Merge(s)
			sumInto(x.routes, name, s)
		}
	}
	for home, list := range sum.originators {
		for i, s := range list {
			if s != nil {
				x, _ := of(home)
				sumInto(x.originators, n.Originator(uint16(i)), s)
			}
		}
	}
	for home, list := range sum.peers {
		for i, s := range list {
			if s != nil {
				x, _ := of(home)
				sumInto(x.peers, n.Peer(uint8(i)), s)
			}
		}
	}
}

func parts(m map[string]*aggregate.Sums) []LivePart {
	var out []LivePart
	for _, name := range sortedKeys(m) {
		out = append(out, LivePart{name, m[name].Totals()})
	}
	return out
}

// Picture takes a picture. Budgets keep the readings of pictures.
func (l *Live) Picture() *Picture {
	l.picturing.Lock()
	defer l.picturing.Unlock()
	n := l.names()
	p := &Picture{
		LeftOut: l.leftOut.Load(),
		At:      l.cfg.Clock(), Closed: math.MaxInt64, Sources: make([]SourceCounts, len(l.cfg.Sources)),
		Stats: make([]aggregate.Stats, len(l.cfg.Sources)), Together: make([]bool, len(l.cfg.Sources)),
	}
	for i := range p.Sources {
		p.Sources[i] = *newSourceCounts()
	}
	windows := make([]map[string]*sheet, len(WindowLengths))
	for i := range windows {
		windows[i] = map[string]*sheet{}
	}
	spent, seconds := map[string]*sheet{}, map[routeName][]budget.Counts{}
	totals := map[string]*sheet{}
	worst := map[string][]Question{}
	split := l.probe.splits()
	for _, s := range l.all() {
		s.mu.Lock()
		if !s.picture(p) {
			s.mu.Unlock()
			continue
		}
		for i, length := range WindowLengths {
			addSheets(windows[i], s.windows, int64(length/time.Second), n)
		}
		addSheets(spent, s.windows, int64(l.cfg.Budget.Window), n)
		l.addSeconds(seconds, s.windows, n)
		s.worstOf(worst, n)
		s.addTotals(totals, n)
		s.mu.Unlock()
	}
	if l.exchange != nil {
		l.exchange.picture(p)
	}
	if p.Closed == math.MaxInt64 {
		p.Closed = noTick
	}
	names := map[string]bool{}
	recent := l.closedWindows(p.Closed)
	for _, sheets := range append(windows, totals) {
		for name := range sheets {
			names[name] = true
		}
	}
	for name := range worst {
		names[name] = true
	}
	l.past.add(p, l.cfg.Sources, totals, names)
	for _, name := range sortedKeys(names) {
		d := LiveDependency{Name: name, ClosedWindows: recent[name], Worst: worstFirst(worst[name]), ScopeSplit: split[name]}
		for i, length := range WindowLengths {
			x := windows[i][name]
			if x == nil {
				continue
			}
			d.Windows = append(d.Windows, LiveWindow{
				Length: length, From: max(x.first, x.to-int64(length/time.Second)), To: x.to, Total: x.total.Totals(),
				Routes: parts(x.routes), Originators: parts(x.originators), Peers: parts(x.peers),
			})
		}
		if x := spent[name]; x != nil {
			d.Budgets = append(d.Budgets, l.gauge(name, "", &l.cfg.Budget).read(&x.total, p.SampleBits, seconds[routeName{name, ""}], x.first, x.to))
			d.Verdict = l.judge(name, x, p.SampleBits)
			for _, route := range sortedKeys(l.cfg.RouteBudgets) {
				if s := x.routes[route]; s != nil {
					b := l.gauge(name, route, l.cfg.RouteBudgets[route]).read(s, p.SampleBits, seconds[routeName{name, route}], x.first, x.to)
					b.Route = route
					d.Budgets = append(d.Budgets, b)
				}
			}
		}
		if x := totals[name]; x != nil {
			d.Closed, d.ClosedRoutes, d.PerQuestion = x.total.Totals(), parts(x.routes), x.over
		}
		p.Dependencies = append(p.Dependencies, d)
	}
	slices.SortFunc(p.Partitions, func(a, b LivePartition) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// addSeconds adds what budgets are read from of the last seconds of a scope's
// windows, each by itself.
func (l *Live) addSeconds(all map[routeName][]budget.Counts, w *windows, n *names) {
	length := budgetSeconds(&l.cfg.Budget, l.cfg.RouteBudgets)
	at := func(k routeName, i int) *budget.Counts {
		if all[k] == nil {
			all[k] = make([]budget.Counts, length)
		}
		return &all[k][i]
	}
	for i := range length {
		sec := w.seconds[w.head-int64(length-1-i)]
		if sec == nil {
			continue
		}
		for route, s := range sec.routes {
			if s == nil {
				continue
			}
			dep, name := n.Route(uint16(route))
			c := s.Budget()
			at(routeName{dep, ""}, i).Add(c)
			if l.cfg.RouteBudgets[name] != nil {
				at(routeName{dep, name}, i).Add(c)
			}
		}
	}
}

// addTotals adds the closed ticks of a scope, by dependency, with its lock.
func (s *scope) addTotals(totals map[string]*sheet, n *names) {
	for route, c := range s.totals {
		dep, name := n.Route(route)
		if totals[dep] == nil {
			totals[dep] = newSheet()
		}
		totals[dep].total.Merge(c)
		totals[dep].over.Merge(s.over[route])
		sumInto(totals[dep].routes, name, c)
	}
}

// judge gives the verdict on the window of a dependency's budget.
func (l *Live) judge(dependency string, x *sheet, bits int) budget.Verdict {
	if t := x.total.Totals(); x.to-int64(l.cfg.Budget.Window) >= x.first && !vague(t, bits) {
		if l.watches[dependency] == nil {
			l.watches[dependency] = new(budget.Watch)
		}
		return l.watches[dependency].Judge(&l.cfg.Rules, x.to, x.total.Budget(), t.Visible)
	}
	return budget.Verdict{}
}

// gauge is that of a budget. What was read of another is no peak of it.
func (l *Live) gauge(dependency, route string, m *budget.Model) *gauge {
	k := routeName{dependency, route}
	if l.gauges[k] == nil || l.gauges[k].model != *m {
		l.gauges[k] = &gauge{model: *m}
	}
	return l.gauges[k]
}

// picture adds what is known of a scope, with its lock. A scope without a partition
// is another instance's now: of that nothing is said.
func (s *scope) picture(p *Picture) bool {
	source, shared, some := s.feeders(false)
	for i, c := range s.windows.sources {
		p.Sources[i].add(c)
	}
	for _, x := range s.parts {
		p.Partitions = append(p.Partitions, LivePartition{
			Source: x.Source, Name: x.Name, Idle: x.idle(p.At, s.live.cfg.Idle), Watermark: x.mark,
		})
	}
	if !some {
		return false
	}
	p.Scopes++
	p.Closed = min(p.Closed, s.closed)
	p.Rebuilding = p.Rebuilding || s.closed < s.emitFrom
	p.Warming = p.Warming || s.warming()
	if s.storeErr != nil {
		p.StoreErr = s.storeErr
	}
	stats := &p.Stats[source]
	if shared {
		stats = &p.Shared
		for _, x := range s.parts {
			p.Together[x.Source] = true
		}
	}
	s.addStats(stats)
	for _, st := range s.stats {
		p.Live += st.Live
		p.SampleBits = max(p.SampleBits, int(st.Bits))
	}
	if why := s.stalled(p.At); why != "" {
		p.Stalled = append(p.Stalled, why)
	}
	return true
}

// feeders says of which source the partitions are, or that they are of several; of
// those that are not assigned, too, if all are asked for.
func (s *scope) feeders(all bool) (source int, shared, some bool) {
	for _, x := range s.parts {
		if x.assigned || all {
			shared = shared || some && source != x.Source
			source, some = x.Source, true
		}
	}
	return source, shared, some
}

// addStats adds the statistics of the ledgers, without what this process counted
// before.
func (s *scope) addStats(to *aggregate.Stats) {
	for i, st := range s.stats {
		*to = sumStats(*to, st, s.again[i])
	}
}
