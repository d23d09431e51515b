package api

import (
	"math"
	"net/http"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// summaryAnswer is what is live, dependency by dependency.
type summaryAnswer struct {
	Meta
	LiveQuestions int64              `json:"live_questions"`
	Dependencies  []dependencyAnswer `json:"dependencies"`
}

type dependencyAnswer struct {
	Dependency    string           `json:"dependency"`
	Warming       bool             `json:"warming"`
	CompleteUntil instant          `json:"complete_until"`
	ReadShare     aggregate.Figure `json:"read_share"`
	Sampling      *Sampling        `json:"sampling"`
	ScopeSplit    bool             `json:"scope_split"`
	Windows       []windowAnswer   `json:"windows"`
	ClosedWindows []windowAnswer   `json:"closed_windows"`
	Budgets       []budgetAnswer   `json:"budgets"`
	Verdict       *verdictAnswer   `json:"verdict"`
}

// verdictAnswer has null for what cannot be said.
type verdictAnswer struct {
	Kind          *string          `json:"kind"`
	LoadFactor    aggregate.Figure `json:"load_factor"`
	Usual         aggregate.Figure `json:"usual_load_factor"`
	Storm         aggregate.Figure `json:"storm"`
	Demand        aggregate.Figure `json:"demand"`
	ReAsk         bool             `json:"re_ask"`
	HiddenRepeats bool             `json:"hidden_repeats_suspected"`
	Blind         bool             `json:"blind"`
}

// newVerdict is nil where there is none, not even that it is blind.
func newVerdict(v *budget.Verdict) *verdictAnswer {
	if v.Kind == "" && !v.Blind {
		return nil
	}
	a := &verdictAnswer{
		Usual: aggregate.Number(v.Usual), Demand: aggregate.Number(v.Demand),
		ReAsk: v.ReAsk, HiddenRepeats: v.HiddenRepeats, Blind: v.Blind,
	}
	if v.Kind != "" {
		kind := string(v.Kind)
		a.Kind, a.LoadFactor, a.Storm = &kind, aggregate.Number(v.LoadFactor), number(v.Storm)
	}
	return a
}

// number is a figure that may be without bound.
func number(v float64) aggregate.Figure {
	if math.IsInf(v, 1) {
		return aggregate.Bound(1, 0)
	}
	return aggregate.Number(v)
}

type windowAnswer struct {
	Window string  `json:"window"`
	From   instant `json:"from"`
	To     instant `json:"to"`
	figures
}

func (s *Server) summary(_ *http.Request, snap *Snapshot, p *params) (any, error) {
	deps := pick(snap, p)
	return newSummary(snap, deps), p.err()
}

func newSummary(snap *Snapshot, deps []*Dependency) summaryAnswer {
	a := summaryAnswer{Meta: liveMeta(snap, deps), LiveQuestions: snap.LiveQuestions, Dependencies: []dependencyAnswer{}}
	for _, d := range deps {
		x := dependencyAnswer{
			Dependency: d.Name, Warming: d.Warming || snap.State == Warming, CompleteUntil: instant(d.CompleteUntil), ReadShare: d.ReadShare,
			ScopeSplit: d.ScopeSplit, Verdict: newVerdict(&d.Verdict), Windows: []windowAnswer{}, ClosedWindows: []windowAnswer{}, Budgets: []budgetAnswer{},
		}
		for i := range d.Windows {
			w := &d.Windows[i]
			if w.Length == metaWindow {
				x.Sampling = sampling(d.SampleBits, w.Total.Variance)
			}
			x.Windows = append(x.Windows, w.answer())
		}
		for i := range d.ClosedWindows {
			x.ClosedWindows = append(x.ClosedWindows, d.ClosedWindows[i].answer())
		}
		for i := range d.Budgets {
			x.Budgets = append(x.Budgets, newBudget(d.Name, &d.Budgets[i]))
		}
		a.Dependencies = append(a.Dependencies, x)
	}
	return a
}

func (w *Window) answer() windowAnswer {
	return windowAnswer{shortDuration(w.Length), instant(w.From), instant(w.To), w.Total.figures(w.span())}
}

// budgetsAnswer is the newest readings of the retry budgets. Those of the fleet are of
// all questions, null where there is none or its sum cannot be had.
type budgetsAnswer struct {
	Meta
	Granted []grantAnswer  `json:"granted"`
	Budgets []budgetAnswer `json:"budgets"`
	Fleet   *fleetAnswer   `json:"fleet"`
}

type fleetAnswer struct {
	Members    int            `json:"members"`
	Partitions int            `json:"partitions"`
	Missing    []string       `json:"missing"`
	Warming    bool           `json:"warming"`
	ScopeSplit bool           `json:"scope_split"`
	Telling    bool           `json:"telling"`
	Budgets    []budgetAnswer `json:"budgets"`
}

// newFleet is the fleet's sum of a dependency, or of all for an empty name.
func newFleet(f *Fleet, dependency string) *fleetAnswer {
	if f == nil {
		return nil
	}
	a := &fleetAnswer{Members: f.Members, Partitions: f.Scopes, Missing: append([]string{}, f.Missing...), Warming: f.Warming, Telling: f.Telling, Budgets: []budgetAnswer{}}
	for i := range f.Dependencies {
		d := &f.Dependencies[i]
		if dependency != "" && d.Name != dependency {
			continue
		}
		a.ScopeSplit = a.ScopeSplit || d.ScopeSplit
		for j := range d.Budgets {
			a.Budgets = append(a.Budgets, newBudget(d.Name, &d.Budgets[j]))
		}
	}
	return a
}

// grantAnswer has null for what its model does not know.
type grantAnswer struct {
	Route          string        `json:"route"` // "" for every dependency
	Model          string        `json:"model"`
	Ratio          *float64      `json:"ratio"`
	FloorPerSecond *float64      `json:"floor_per_second"`
	MinConcurrent  *float64      `json:"min_concurrent"`
	PerMinute      *float64      `json:"per_minute"`
	Tokens         *tokensAnswer `json:"tokens"`
	Clients        int           `json:"clients"`
	WindowSeconds  float64       `json:"window_seconds"`
	Low            float64       `json:"low"`
	CoverageFloor  float64       `json:"coverage_floor"`
	MinArrivals    int           `json:"min_arrivals"`
}

type tokensAnswer struct {
	Max        float64 `json:"max"`
	Reserve    float64 `json:"reserve"`
	PerFailure float64 `json:"per_failure"`
	PerRepeat  float64 `json:"per_repeat"`
	PerTimeout float64 `json:"per_timeout"`
	PerSuccess float64 `json:"per_success"`
}

type budgetAnswer struct {
	Dependency   string           `json:"dependency"`
	Route        string           `json:"route"` // "" for the dependency's own
	Model        string           `json:"model"`
	From         instant          `json:"from"`
	To           instant          `json:"to"`
	Allowance    aggregate.Figure `json:"allowance"`
	Spent        aggregate.Figure `json:"spent"`
	Consumed     aggregate.Figure `json:"consumed"`
	ConsumedHigh aggregate.Figure `json:"consumed_high"`
	State        *string          `json:"state"`
	ExhaustsIn   aggregate.Figure `json:"exhausts_in_seconds"`
	PeakConsumed aggregate.Figure `json:"peak_consumed"`
	ExhaustedAt  instant          `json:"exhausted_at"`
}

func newBudget(dependency string, b *Budget) budgetAnswer {
	a := budgetAnswer{
		Dependency: dependency, Route: b.Route, Model: b.Model, From: instant(b.From), To: instant(b.To),
		Allowance: b.Allowance, Spent: b.Spent, Consumed: b.Consumed, ConsumedHigh: b.ConsumedHigh,
		ExhaustsIn: b.ExhaustsIn, PeakConsumed: b.PeakConsumed, ExhaustedAt: instant(b.ExhaustedAt),
	}
	if b.State != "" {
		state := string(b.State)
		a.State = &state
	}
	return a
}

func newGrants(snap *Snapshot) []grantAnswer {
	list := []grantAnswer{}
	for _, g := range snap.Granted {
		a := grantAnswer{Route: g.Route, Model: g.Name(), WindowSeconds: float64(g.Window), Low: g.Low, CoverageFloor: g.CoverageFloor, MinArrivals: g.MinArrivals}
		switch x := g.Grant.(type) {
		case budget.Ratio:
			a.Ratio, a.FloorPerSecond, a.Clients = &x.Ratio, &x.FloorPerSecond, x.Clients
		case budget.Concurrency:
			a.Ratio, a.MinConcurrent, a.Clients = &x.Share, &x.Min, x.Proxies
		case budget.Rate:
			a.PerMinute, a.Clients = &x.PerMinute, x.Processes
		case budget.Tokens:
			a.Tokens, a.Clients = &tokensAnswer{x.Size, x.Reserve, x.PerFailure, x.PerRepeat, x.PerTimeout, x.PerSuccess}, x.Clients
		}
		list = append(list, a)
	}
	return list
}

func (s *Server) budgets(_ *http.Request, snap *Snapshot, p *params) (any, error) {
	deps := pickAny(snap, p)
	a := budgetsAnswer{Meta: liveMeta(snap, deps), Granted: newGrants(snap), Budgets: []budgetAnswer{}, Fleet: newFleet(snap.Fleet, p.values["dependency"])}
	for _, d := range deps {
		for i := range d.Budgets {
			a.Budgets = append(a.Budgets, newBudget(d.Name, &d.Budgets[i]))
		}
	}
	return a, p.err()
}

// policyAnswer is the declared policy beside what is measured.
type policyAnswer struct {
	Meta
	Granted  []grantAnswer    `json:"granted"`
	Declared *budget.Plan     `json:"declared"` // with what follows from it
	Measured []measuredAnswer `json:"measured"`
}

// measuredAnswer compares a live window. The comparisons are null where a side of
// them is.
type measuredAnswer struct {
	Dependency       string           `json:"dependency"`
	Window           string           `json:"window"`
	Coverage         aggregate.Figure `json:"coverage"`
	LoadFactor       aggregate.Figure `json:"load_factor"`
	ArrivalsRate     aggregate.Figure `json:"arrivals_per_second"`
	AboveChosen      *bool            `json:"above_chosen"`
	AboveWorstCase   *bool            `json:"above_worst_case"`
	AboveAffordable  *bool            `json:"above_affordable"`
	AboveCapacity    *bool            `json:"above_capacity"`
	OriginalsOffered *bool            `json:"originals_above_offered"`
}

// above says that a figure is more than what is declared; nil where one is not known.
func above(a aggregate.Figure, declared *float64) *bool {
	x, ok := a.Value()
	if !ok || declared == nil {
		return nil
	}
	yes := x > *declared
	return &yes
}

// policyWindow is long enough for a factor to be no accident of one wave.
const policyWindow = 5 * time.Minute

func (s *Server) policy(_ *http.Request, snap *Snapshot, p *params) (any, error) {
	deps := pick(snap, p)
	a := policyAnswer{Meta: liveMeta(snap, deps), Granted: newGrants(snap), Declared: snap.Policy, Measured: []measuredAnswer{}}
	for _, d := range deps {
		w := d.window(policyWindow)
		if w == nil {
			continue
		}
		f := w.Total.figures(w.span())
		m := measuredAnswer{Dependency: d.Name, Window: shortDuration(w.Length), Coverage: f.Coverage, LoadFactor: f.LoadFactor, ArrivalsRate: f.ArrivalsRate}
		if x := snap.Policy; x != nil {
			m.AboveChosen = above(f.LoadFactor, &x.Chosen)
			m.AboveWorstCase = above(f.LoadFactor, x.WorstCase)
			m.AboveAffordable = above(f.LoadFactor, x.Affordable)
			m.AboveCapacity = above(f.ArrivalsRate, x.CapacityPerSecond)
			m.OriginalsOffered = above(f.OriginalsRate, x.OfferedPerSecond)
		}
		a.Measured = append(a.Measured, m)
	}
	return a, p.err()
}
