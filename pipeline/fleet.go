package pipeline

import (
	"math"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// Fleet adds up what the instances that share out scopes tell of them, into the live
// figures of their dependencies: by the same arithmetic, and of the same seconds, as one
// instance would that counts everything.
//
// A second of a scope counts once, however many tell of it: while a partition changes
// hands two do, and one that has lost it without knowing goes on for a while. Each tells
// of records of that partition alone, so who has read further knows more. What the one
// before told stays until the next has read as far, so that a budget goes on where the one
// stopped, also after a crash; then it counts no more.
//
// Who has another configuration may not tell of a route by itself that has a budget here:
// the budget of that route has no reading then, rather than one of a part of it.
//
// It may be used by one goroutine at a time.
type Fleet struct {
	scopes map[string]*toldScope
	routes map[string][]string // that are told of by themselves, by who tells
	gauges map[routeName]*gauge
}

// toldScope is what is known of a scope.
type toldScope struct {
	seconds, ticks map[int64]*toldRow
	states         map[string]ScopeState // by who told
}

// NewFleet returns a fleet of which nothing was heard.
func NewFleet() *Fleet {
	return &Fleet{scopes: map[string]*toldScope{}, routes: map[string][]string{}, gauges: map[routeName]*gauge{}}
}

func (f *Fleet) scope(name string) *toldScope {
	if f.scopes[name] == nil {
		f.scopes[name] = &toldScope{seconds: map[int64]*toldRow{}, ticks: map[int64]*toldRow{}, states: map[string]ScopeState{}}
	}
	return f.scopes[name]
}

// Hear takes what a member tells. Hearing it again changes nothing. The error is one of
// what cannot be read: then that member's scopes are not known.
func (f *Fleet) Hear(member string, t *Told) error {
	row, err := readTold(member, t)
	if err != nil {
		return err
	}
	s := f.scope(t.Scope)
	rows := s.seconds
	if t.Kind == ToldTick {
		rows = s.ticks
	}
	was := rows[t.At]
	if was == nil {
		rows[t.At] = row
		return nil
	}
	if !slices.Contains(was.tellers, member) {
		was.tellers = append(was.tellers, member)
	}
	if row.tellers = was.tellers; row.over(was) {
		rows[t.At] = row
	}
	return nil
}

// HearStates takes how a member's scopes stand, and of which routes it tells by themselves.
func (f *Fleet) HearStates(member string, states []ScopeState, routes []string) {
	f.routes[member] = routes
	for _, x := range states {
		f.scope(x.Scope).states[member] = x
	}
}

// Forget drops how the scopes of a member stood that has been gone for longer than windows
// reach.
func (f *Fleet) Forget(member string) {
	delete(f.routes, member)
	for _, s := range f.scopes {
		delete(s.states, member)
	}
}

// FleetPicture is what a fleet knows at one moment.
type FleetPicture struct {
	// Dependencies have windows without parts, and neither verdicts nor what is counted
	// since the start of a process. Peaks of budgets are of pictures in which nothing was
	// missing.
	Dependencies []LiveDependency
	// Missing are the scopes of which the figures lack something, in order: that nobody
	// counts at present, or not as far as now. What was told of them last is in the
	// figures.
	Missing []string
	Scopes  int  // that are counted as far as now
	Warming bool // in some of these repeats are missing
}

// nearSeconds is how far behind the newest second of a fleet a scope may be that the
// others wait for, so that windows are of the same seconds everywhere: members tell once
// a second, not at the same moment. One that is further behind is taken as far as it is,
// as an instance takes those of its scopes that lag.
const nearSeconds = 3

// Picture takes a picture: present are the states of the scopes that members count now,
// of all members that are well; expected the scopes that there are. Budgets keep the
// readings of pictures. bits is the most by which any member samples.
func (f *Fleet) Picture(present []ScopeState, expected []string, bits int, all budget.Model, routes map[string]*budget.Model) *FleetPicture {
	p := new(FleetPicture)
	now, warming, counted := map[string]bool{}, map[string]bool{}, map[string][]ScopeState{}
	names := slices.Clone(expected)
	for _, x := range present {
		names = append(names, x.Scope)
		counted[x.Scope] = append(counted[x.Scope], x)
		if !x.Rebuilding {
			// Of two that count it one may know what the other does not.
			warming[x.Scope] = x.Warming && (warming[x.Scope] || !now[x.Scope])
			now[x.Scope] = true
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	a := newFleetSum(f, names, now, counted, &all, routes)
	for _, name := range names {
		switch {
		case now[name]:
			p.Scopes++
			p.Warming = p.Warming || warming[name]
		default:
			p.Missing = append(p.Missing, name)
		}
	}
	a.lacks = len(p.Missing) > 0
	a.align()
	a.live(f.routes)
	closed, own := a.closed(), map[string]*fleetSeconds{}
	parts := map[string]map[string]*fleetSeconds{}
	for _, x := range a.told {
		if x.route == "" {
			own[x.dependency] = x
			continue
		}
		if parts[x.dependency] == nil {
			parts[x.dependency] = map[string]*fleetSeconds{}
		}
		parts[x.dependency][x.route] = x
	}
	for _, name := range sortedKeys(own) {
		p.Dependencies = append(p.Dependencies, a.dependency(f, own[name], parts[name], bits, closed[name]))
	}
	return p
}

// fleetSum is a picture in the making.
type fleetSum struct {
	all    *budget.Model
	routes map[string]*budget.Model
	keep   int64
	length int // of the seconds that budgets look at
	scopes []*fleetScope
	told   map[string]*fleetSeconds // by name as it is told
	end    int64                    // of windows
	first  int64                    // the first second that is known
	lacks  bool                     // some of it is missing
	apart  map[string]int64         // how far back of a route nobody knows what is its part of a second; 1 is the newest
}

// fleetScope is a scope of it.
type fleetScope struct {
	*toldScope
	counted      []ScopeState // by those who count it
	now          bool         // one of them as far as now
	near         bool         // and not far behind the others
	head         int64        // its newest second
	from, closed int64        // the closed ticks that are known without a gap
}

// fleetSeconds are the seconds of a dependency or route, from the newest back.
type fleetSeconds struct {
	routeName
	seconds []aggregate.Sums
}

func newFleetSum(f *Fleet, names []string, now map[string]bool, counted map[string][]ScopeState, all *budget.Model, routes map[string]*budget.Model) *fleetSum {
	a := &fleetSum{all: all, routes: routes, keep: keepSeconds(all), length: budgetSeconds(all, routes), told: map[string]*fleetSeconds{}, end: noTick, first: math.MaxInt64, apart: map[string]int64{}}
	for name, s := range f.scopes {
		if !slices.Contains(names, name) && s.forget(s.head(), a.keep) {
			delete(f.scopes, name)
		}
	}
	for _, name := range names {
		s := f.scopes[name]
		if s == nil {
			continue
		}
		x := &fleetScope{toldScope: s, now: now[name], counted: counted[name], head: s.head()}
		head := s.newest(x.head)
		for _, c := range x.counted {
			head = max(head, c.Head)
		}
		if x.now {
			x.head = head
		}
		s.forget(head, a.keep)
		x.from, x.closed = s.span()
		if x.head != noTick {
			a.scopes = append(a.scopes, x)
		}
	}
	return a
}

// newest is the newest second, up to one, of which something is told. Of a scope that is
// counted nothing else of those who counted it before says how far it is: without records
// that goes by the clock, and one of them may have been fast.
func (s *toldScope) newest(to int64) int64 {
	newest := int64(noTick)
	for at := range s.seconds {
		if at <= to {
			newest = max(newest, at)
		}
	}
	return newest
}

// head is the newest second that is known.
func (s *toldScope) head() int64 {
	head := int64(noTick)
	for _, x := range s.states {
		head = max(head, x.Head)
	}
	return head
}

// span is the closed ticks of which every one is known: those of the member that has
// closed the most, and of those before it as far as they meet.
func (s *toldScope) span() (from, closed int64) {
	closed = noTick
	for _, x := range s.states {
		closed = max(closed, x.Closed)
	}
	from = closed
	for again := true; again; {
		again = false
		for _, x := range s.states {
			if x.From < from && x.Closed >= from && x.From != noTick {
				from, again = x.From, true
			}
		}
	}
	return from, closed
}

// forget drops what no window reaches that ends with a second, and says whether nothing is
// left.
func (s *toldScope) forget(head, keep int64) (empty bool) {
	_, closed := s.span()
	for at := range s.seconds {
		if at < head-keep-nearSeconds {
			delete(s.seconds, at)
		}
	}
	for at := range s.ticks {
		if at < closed-keptClosed {
			delete(s.ticks, at)
		}
	}
	for member, x := range s.states {
		if x.Head < head-keep && x.Closed < closed-keptClosed {
			delete(s.states, member)
		}
	}
	return len(s.seconds)+len(s.ticks)+len(s.states) == 0
}

// align finds the end of the windows, and which scopes are near it: the first second
// that not all of these have told of. Of a scope that nobody counts any more nothing is
// taken that is older than every window.
func (a *fleetSum) align() {
	newest, counted := int64(noTick), int64(noTick)
	for _, s := range a.scopes {
		newest = max(newest, s.head+1)
		if s.now {
			counted = max(counted, s.head+1)
		}
	}
	if counted != noTick {
		newest = counted
	}
	a.end = newest
	for _, s := range a.scopes {
		if s.near = s.now && s.head+1 >= newest-nearSeconds; s.near {
			a.end = min(a.end, s.head+1)
		}
	}
	a.scopes = slices.DeleteFunc(a.scopes, func(s *fleetScope) bool { return !s.now && s.head < a.end-longestWindow })
}

// live adds up the seconds of log time. Those of a scope that is behind end with its own
// newest.
func (a *fleetSum) live(routes map[string][]string) {
	lacks := map[string][]string{} // routes that have a budget, by who does not tell of them
	for _, s := range a.scopes {
		end := min(s.head+1, a.end)
		for at, row := range s.seconds {
			back := end - at // 1 is the newest second
			if back < 1 || back > a.keep || s.gone(at, row) {
				continue
			}
			a.first = min(a.first, a.end-back)
			if _, some := lacks[row.member]; !some {
				lacks[row.member] = slices.DeleteFunc(sortedKeys(a.routes), func(r string) bool { return slices.Contains(routes[row.member], r) })
			}
			for _, route := range lacks[row.member] {
				if was := a.apart[route]; was == 0 || back < was {
					a.apart[route] = back
				}
			}
			for rest := row.entries; len(rest) > 0; { // it was read before
				k, after, _ := splitName(rest)
				x := a.told[string(k)]
				if x == nil {
					name, _, _ := readName(k)
					x = &fleetSeconds{name, make([]aggregate.Sums, a.keep)}
					a.told[string(k)] = x
				}
				rest, _ = x.seconds[back-1].AddTold(after)
			}
		}
	}
}

// gone says that what was told of a second is no more: somebody who counts the scope has
// read as far, from before it on, and tells nothing of that second. So there is nothing
// left in it: a record may take the place of an earlier one in another second.
func (s *fleetScope) gone(at int64, row *toldRow) bool {
	for member, x := range s.states {
		if slices.Contains(s.counted, x) && x.Rules >= row.rules && x.Read >= row.read && x.First < at && !slices.Contains(row.tellers, member) {
			return true
		}
	}
	return false
}

// closed adds up the closed ticks. The range is the same in all scopes that are near, and
// as long in those that are behind, up to where they are closed. Of one that is near and
// has closed less nothing came: an idle partition closes none.
func (a *fleetSum) closed() map[string][]ClosedWindow {
	end := int64(noTick)
	for _, s := range a.scopes {
		end = max(end, s.closed)
	}
	newest := end
	for _, s := range a.scopes {
		if s.near && s.closed >= newest-nearSeconds {
			end = min(end, s.closed)
		}
	}
	out := map[string][]ClosedWindow{}
	if end == noTick {
		return out
	}
	ends := make([]int64, len(a.scopes))
	for i, s := range a.scopes {
		if ends[i] = min(s.closed, end); s.near {
			ends[i] = end
		}
	}
	for _, length := range WindowLengths {
		n := int64(length / time.Second)
		for i, s := range a.scopes {
			if s.closed != noTick {
				n = min(n, ends[i]-s.from)
			}
		}
		if n <= 0 {
			continue
		}
		sums := map[string]*aggregate.RangeSums{}
		for i, s := range a.scopes {
			if s.closed == noTick {
				continue
			}
			for at := ends[i] - n; at < ends[i]; at++ {
				if row := s.ticks[at]; row != nil {
					row.ticks(func(dependency string, x *aggregate.ClosedSums) {
						if sums[dependency] == nil {
							sums[dependency] = new(aggregate.RangeSums)
						}
						sums[dependency].Add(x, at-(ends[i]-n))
					})
				}
			}
		}
		for name, x := range sums {
			w := ClosedWindow{Length: length, From: end - n, To: end, Total: x.Totals(), Hops: x.Hops()}
			w.Questions, w.Verified = x.Questions()
			out[name] = append(out[name], w)
		}
	}
	return out
}

// dependency is what is live of one dependency: its own seconds, and those of its routes
// that have a budget.
func (a *fleetSum) dependency(f *Fleet, own *fleetSeconds, routes map[string]*fleetSeconds, bits int, closed []ClosedWindow) LiveDependency {
	d := LiveDependency{Name: own.dependency, ClosedWindows: closed}
	for _, length := range WindowLengths {
		n := int64(length / time.Second)
		d.Windows = append(d.Windows, LiveWindow{Length: length, From: max(a.first, a.end-n), To: a.end, Total: own.last(n).Totals()})
	}
	read := func(x *fleetSeconds, m *budget.Model) {
		g := f.gauge(x.routeName, m)
		if a.lacks { // what may not be so is no peak
			g = &gauge{*m, g.peak, g.exhausted}
		}
		b := g.read(x.last(int64(a.all.Window)), bits, x.counts(a.length), a.first, a.end)
		b.Route = x.route
		d.Budgets = append(d.Budgets, b)
	}
	read(own, a.all)
	for _, route := range sortedKeys(a.routes) {
		x, m := routes[route], a.routes[route]
		if back := a.apart[route]; back > 0 && back <= int64(a.length) {
			d.Budgets = append(d.Budgets, LiveBudget{Route: route, From: a.end - int64(m.Window), To: a.end, Model: m.Name(), Part: true})
		} else if x != nil && x.last(int64(a.all.Window)).Totals().Arrivals > 0 {
			read(x, m)
		}
	}
	return d
}

// last adds up the last seconds.
func (x *fleetSeconds) last(n int64) *aggregate.Sums {
	sum := new(aggregate.Sums)
	for i := range x.seconds[:min(n, int64(len(x.seconds)))] {
		sum.Merge(&x.seconds[i])
	}
	return sum
}

// counts are what budgets are read from of the last seconds, the newest last.
func (x *fleetSeconds) counts(n int) []budget.Counts {
	out := make([]budget.Counts, n)
	for i := range x.seconds[:min(n, len(x.seconds))] {
		out[n-1-i] = x.seconds[i].Budget()
	}
	return out
}

// gauge is that of a budget; see Live.gauge.
func (f *Fleet) gauge(k routeName, m *budget.Model) *gauge {
	if f.gauges[k] == nil || f.gauges[k].model != *m {
		f.gauges[k] = &gauge{model: *m}
	}
	return f.gauges[k]
}
