package aggregate

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate/budget"
)

// Names gives the names behind the numbers in Dims.
type Names interface {
	Route(uint16) (dependency, route string)
	Originator(uint16) string
	Peer(uint8) string
	// Undiscriminated says that a route's questions are told apart by key alone.
	Undiscriminated(route uint16) bool
}

// The views that a Summary reads, in the order in which ledgers must be given
// them.
const (
	viewOriginators = iota
	viewPeers
	viewWindows

	windowUnit = 10 // seconds; longer windows are put together from these
	longWindow = 60
	longLog    = 600 // seconds from which windows are long
)

// SummaryViews are the views whose rows a Summary takes.
func SummaryViews() []View {
	return []View{
		{ByRoute: true, ByOriginator: true},
		{ByRoute: true, ByPeer: true},
		{Every: windowUnit},
	}
}

// Summary adds up what the ledgers of disjoint shards found, and forms a report.
// Seconds must be given in order; rows may come in any.
type Summary struct {
	names  Names
	model  *budget.Model
	models map[string]*budget.Model // of routes that have one of their own

	total   slot
	routes  []*routeSlot
	deps    map[string]*depSlot
	touched []*slot
	second  int64
	ends    []reading

	byOriginator map[Dims]*Counts
	byPeer       map[Dims]*Counts
	wide         map[wideKey]*Counts
	windows      map[int64]*Counts // by start / windowUnit
}

type wideKey struct {
	dependency string
	originator uint16
}

// slot counts the second at hand for one measure's budget.
type slot struct {
	model   *budget.Model // nil for the common one
	at      int64
	written secondly
	tracker *budget.Tracker
}

type routeSlot struct {
	slot
	dep *depSlot
}

type depSlot struct {
	slot
	name        string
	originators []*slot // by number
	peers       []*slot
}

// reading is one budget reading of the total.
type reading struct {
	end int64
	r   budget.Reading
}

// NewSummary returns an empty summary. Routes named in models have that budget;
// everything else has model.
func NewSummary(names Names, model *budget.Model, models map[string]*budget.Model) *Summary {
	s := &Summary{
		names: names, model: model, models: models, deps: map[string]*depSlot{}, second: math.MinInt64,
		byOriginator: map[Dims]*Counts{}, byPeer: map[Dims]*Counts{}, wide: map[wideKey]*Counts{}, windows: map[int64]*Counts{},
	}
	s.total.at = math.MinInt64
	return s
}

// AddSecond takes what was written in one second, the parts of all shards
// together; from is the first tick of the log.
func (s *Summary) AddSecond(from int64, parts ...Second) {
	for _, p := range parts {
		s.second = p.At
		for i, e := range p.Events {
			busy := int64(0)
			if i < len(p.Times) {
				busy = p.Times[i]
			}
			s.addEvent(from, e, busy)
		}
	}
	for _, x := range s.touched {
		x.tracker.Feed(s.second, x.written.counts())
	}
	s.touched = s.touched[:0]
}

func (s *Summary) addEvent(from int64, e Event, busy int64) {
	d := e.Dims()
	r := s.route(d.Route)
	dep := r.dep
	orig, peer := numbered(&dep.originators, int(d.Originator)), numbered(&dep.peers, int(d.Peer))
	for _, x := range [...]*slot{&s.total, &dep.slot, &r.slot, orig, peer} {
		if x.at != s.second {
			if x.tracker == nil {
				x.tracker = budget.NewTracker(cmp.Or(x.model, s.model), from)
				if x == &s.total {
					x.tracker.Each = func(end int64, r budget.Reading) { s.ends = append(s.ends, reading{end, r}) }
				}
			}
			x.at = s.second
			s.touched = append(s.touched, x)
		}
		x.written.add(e, busy)
	}
}

// numbered returns the slot with a number, made if there is none.
func numbered(list *[]*slot, i int) *slot {
	if i < len(*list) && (*list)[i] != nil {
		return (*list)[i]
	}
	for i >= len(*list) {
		*list = append(*list, nil)
	}
	(*list)[i] = &slot{at: math.MinInt64}
	return (*list)[i]
}

func (s *Summary) route(id uint16) *routeSlot {
	if int(id) < len(s.routes) && s.routes[id] != nil {
		return s.routes[id]
	}
	for int(id) >= len(s.routes) {
		s.routes = append(s.routes, nil)
	}
	name, route := s.names.Route(id)
	dep := s.deps[name]
	if dep == nil {
		dep = &depSlot{name: name}
		dep.at = math.MinInt64
		s.deps[name] = dep
	}
	s.routes[id] = &routeSlot{dep: dep}
	s.routes[id].at, s.routes[id].model = math.MinInt64, s.models[route]
	return s.routes[id]
}

// AddRows takes rows that a ledger of SummaryViews found final.
func (s *Summary) AddRows(rows []Row) {
	for _, r := range rows {
		switch {
		case r.View == viewWindows && r.Wide:
			at := r.From / windowUnit
			into(s.windows, at).FanOut.Merge(&r.Counts.FanOut)
		case r.View == viewWindows:
			merge(s.windows, floorDiv(r.From, windowUnit), r.Counts)
		case r.Wide:
			merge(s.wide, wideKey{s.route(r.Dims.Route).dep.name, r.Dims.Originator}, r.Counts)
		case r.View == viewOriginators:
			merge(s.byOriginator, r.Dims, r.Counts)
		default:
			merge(s.byPeer, r.Dims, r.Counts)
		}
	}
}

func into[K comparable](m map[K]*Counts, k K) *Counts {
	c := m[k]
	if c == nil {
		c = new(Counts)
		m[k] = c
	}
	return c
}

// merge adds counts into a map, or takes them over where there are none yet.
func merge[K comparable](m map[K]*Counts, k K, c *Counts) {
	if m[k] == nil {
		m[k] = c
		return
	}
	m[k].Merge(c)
}

// Report forms the report. stats are those of the ledgers, worst their lists;
// the caller has filled input but for what stats knows.
func (s *Summary) Report(input Input, stats Stats, worst []Worst, places int) *Report {
	r := &Report{Schema: Schema, Input: input, Dependencies: []Dependency{}, Worst: []WorstQuestion{}, Windows: []Window{}}
	in := &r.Input
	in.Duplicates, in.Undecidable, in.Late, in.Clamped = stats.Duplicates, stats.Undecidable, stats.Late, stats.Clamped
	if stats.Interim > 0 {
		in.Ignored["interim"] += stats.Interim
	}
	from, to := int64(0), int64(0)
	if stats.First <= stats.Last {
		from, to = stats.First, stats.Last+1
		r.From, r.To = rfc3339(from), rfc3339(to)
		s.slide(stats.LastLog + 1)
	}
	var bad uint64
	for _, n := range in.Quarantined {
		bad += n
	}
	for _, c := range s.byOriginator {
		in.Arrivals += c.n[nArrivals]
	}
	read := in.Arrivals + in.Duplicates
	for _, n := range in.Ignored {
		read += n
	}
	sc := scope{seconds: to - from, readShare: Share(read, read+bad)}
	total := new(Counts)
	for _, name := range sortedKeys(s.deps) {
		d, c := s.dependency(s.deps[name], sc)
		r.Dependencies = append(r.Dependencies, d)
		total.Merge(c)
	}
	r.Total = s.measure(total, sc, &s.total)
	span := total.Spans.seconds(0.99)
	r.Windows = append(r.Windows, s.windowsOf(from, to, sc, span)...)
	for _, w := range WorstOf(places, worst) {
		r.Worst = append(r.Worst, s.worst(w))
	}
	return r
}

func (s *Summary) slide(to int64) {
	for _, x := range s.slots() {
		if x.tracker != nil {
			x.tracker.Slide(to)
		}
	}
}

func (s *Summary) slots() []*slot {
	out := []*slot{&s.total}
	for _, r := range s.routes {
		if r != nil {
			out = append(out, &r.slot)
		}
	}
	for _, d := range s.deps {
		out = append(out, &d.slot)
		for _, x := range append(slices.Clone(d.originators), d.peers...) {
			if x != nil {
				out = append(out, x)
			}
		}
	}
	return out
}

func (s *Summary) measure(c *Counts, sc scope, x *slot) Measure {
	if p := c.Spans.seconds(0.99); p != nil {
		sc.span = *p
	}
	m := c.measure(sc)
	m.Budget = Budget{Model: s.model.Name()}
	if x != nil && x.model != nil {
		m.Budget.Model = x.model.Name()
	}
	if x == nil || x.tracker == nil {
		return m
	}
	t := x.tracker
	if peak, ok := t.Peak.Reading(); ok {
		m.Budget = peakBudget(m.Budget.Model, peak)
		if t.Exhausted {
			at := rfc3339(t.ExhaustedAt)
			m.Budget.ExhaustedAt = &at
		}
	}
	return m
}

func peakBudget(model string, r budget.Reading) Budget {
	state := r.State
	return Budget{
		Model: model, Allowance: Number(r.Allowance), Spent: Number(r.Spent), Consumed: Number(r.Consumed),
		State: &state, PeakConsumed: Number(r.Consumed),
	}
}

// dependency forms the measures of a dependency and of its parts, and returns the
// counts of the whole of it too.
func (s *Summary) dependency(dep *depSlot, sc scope) (Dependency, *Counts) {
	d := Dependency{Name: dep.name, Routes: []RouteMeasure{}, Originators: []OriginatorMeasure{}, Peers: []PeerMeasure{}}
	all := new(Counts)
	routes, originators, peers := map[uint16]*Counts{}, map[uint16]*Counts{}, map[uint8]*Counts{}
	for dims, c := range s.byOriginator {
		if s.route(dims.Route).dep == dep {
			into(routes, dims.Route).Merge(c)
			into(originators, dims.Originator).Merge(c)
		}
	}
	for dims, c := range s.byPeer {
		if s.route(dims.Route).dep == dep {
			into(peers, dims.Peer).Merge(c)
		}
	}
	for _, c := range routes {
		all.Merge(c)
	}
	all.FanOut = Histogram{}
	for o, c := range originators {
		c.FanOut = Histogram{}
		if w := s.wide[wideKey{dep.name, o}]; w != nil {
			c.FanOut.Merge(&w.FanOut)
			all.FanOut.Merge(&w.FanOut)
		}
	}
	d.Measure = s.measure(all, sc, &dep.slot)
	for id, c := range routes {
		_, name := s.names.Route(id)
		m := s.measure(c, sc, &s.route(id).slot)
		m.Undiscriminated = s.names.Undiscriminated(id)
		d.Routes = append(d.Routes, RouteMeasure{name, m})
	}
	for id, c := range originators {
		d.Originators = append(d.Originators, OriginatorMeasure{s.names.Originator(id), s.measure(c, sc, numbered(&dep.originators, int(id)))})
	}
	ofPeer := sc
	ofPeer.byPeer = true
	for id, c := range peers {
		d.Peers = append(d.Peers, PeerMeasure{s.names.Peer(id), s.measure(c, ofPeer, numbered(&dep.peers, int(id)))})
	}
	slices.SortFunc(d.Routes, func(a, b RouteMeasure) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Originators, func(a, b OriginatorMeasure) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Peers, func(a, b PeerMeasure) int { return cmp.Compare(a.Name, b.Name) })
	return d, all
}

// windowsOf puts windows together. They begin at whole minutes, or at whole ten
// seconds in a short log, cut to the report's range; those without an arrival
// are left out.
func (s *Summary) windowsOf(from, to int64, sc scope, span *float64) []Window {
	length := int64(longWindow)
	if to-from < longLog {
		length = windowUnit
	}
	sums := map[int64]*Counts{}
	for _, at := range sortedKeys(s.windows) {
		c := s.windows[at]
		begin := floorDiv(at*windowUnit, length) * length
		c.Settle(at - begin/windowUnit)
		merge(sums, begin, c)
	}
	peaks, first := map[int64]*budget.Peak{}, map[int64]int64{}
	for _, x := range s.ends {
		begin := floorDiv(x.end-1, length) * length
		if peaks[begin] == nil {
			peaks[begin] = new(budget.Peak)
		}
		peaks[begin].Add(x.r)
		if _, ok := first[begin]; !ok && x.r.Consumed >= 1 {
			first[begin] = x.end
		}
	}
	if span != nil {
		sc.span = *span
	}
	var out []Window
	for _, begin := range sortedKeys(sums) {
		c := sums[begin]
		if c.n[nArrivals] == 0 && c.PerQuestion.N() == 0 {
			continue
		}
		a, b := max(begin, from), min(begin+length, to)
		sc.seconds = b - a
		w := Window{rfc3339(a), rfc3339(b), c.measure(sc)}
		w.Budget = Budget{Model: s.model.Name()}
		if p := peaks[begin]; p != nil {
			if peak, ok := p.Reading(); ok {
				w.Budget = peakBudget(w.Budget.Model, peak)
			}
			if at, ok := first[begin]; ok {
				t := rfc3339(at)
				w.Budget.ExhaustedAt = &t
			}
		}
		out = append(out, w)
	}
	return out
}

func (s *Summary) worst(w Worst) WorstQuestion {
	dep, route := s.names.Route(w.Dims.Route)
	q := WorstQuestion{
		KeyHash: hex.EncodeToString(w.KeyHash[:]), Dependency: dep, Route: route,
		Originator: s.names.Originator(w.Dims.Originator), Arrivals: w.Arrivals,
		First: stampText(w.First), Last: stampText(w.Last), Peers: []string{},
	}
	for _, p := range w.Peers {
		q.Peers = append(q.Peers, s.names.Peer(p))
	}
	slices.Sort(q.Peers)
	return q
}

func rfc3339(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

func stampText(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
