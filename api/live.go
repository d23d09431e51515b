package api

import (
	"net/http"
	"time"

	"github.com/targetside/auditor/aggregate"
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
			ScopeSplit: d.ScopeSplit, Windows: []windowAnswer{}, ClosedWindows: []windowAnswer{}, Budgets: []budgetAnswer{},
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
			x.Budgets = append(x.Budgets, newBudget(d, &d.Budgets[i]))
		}
		a.Dependencies = append(a.Dependencies, x)
	}
	return a
}

func (w *Window) answer() windowAnswer {
	return windowAnswer{shortDuration(w.Length), instant(w.From), instant(w.To), w.Total.figures(w.span())}
}

// budgetsAnswer is the newest readings of the retry budgets.
type budgetsAnswer struct {
	Meta
	Granted []grantAnswer  `json:"granted"`
	Budgets []budgetAnswer `json:"budgets"`
}

type grantAnswer struct {
	Route          string  `json:"route"` // "" for every dependency
	Model          string  `json:"model"`
	Ratio          float64 `json:"ratio"`
	FloorPerSecond float64 `json:"floor_per_second"`
	Clients        int     `json:"clients"`
	WindowSeconds  float64 `json:"window_seconds"`
	Low            float64 `json:"low"`
	CoverageFloor  float64 `json:"coverage_floor"`
	MinArrivals    int     `json:"min_arrivals"`
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

func newBudget(d *Dependency, b *Budget) budgetAnswer {
	a := budgetAnswer{
		Dependency: d.Name, Route: b.Route, Model: b.Model, From: instant(b.From), To: instant(b.To),
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
		list = append(list, grantAnswer{g.Route, g.Model, g.Ratio, g.FloorPerSecond, g.Clients, g.Window.Seconds(), g.Low, g.CoverageFloor, g.MinArrivals})
	}
	return list
}

func (s *Server) budgets(_ *http.Request, snap *Snapshot, p *params) (any, error) {
	deps := pick(snap, p)
	a := budgetsAnswer{Meta: liveMeta(snap, deps), Granted: newGrants(snap), Budgets: []budgetAnswer{}}
	for _, d := range deps {
		for i := range d.Budgets {
			a.Budgets = append(a.Budgets, newBudget(d, &d.Budgets[i]))
		}
	}
	return a, p.err()
}

// alertsAnswer is the alerts that are pending or firing. Evaluated is false where
// nobody evaluates them: an empty list says nothing then.
type alertsAnswer struct {
	Meta
	Evaluated bool     `json:"evaluated"`
	Alerts    []string `json:"alerts"`
}

func (s *Server) alerts(_ *http.Request, snap *Snapshot, p *params) (any, error) {
	return alertsAnswer{Meta: liveMeta(snap, pick(snap, p)), Alerts: []string{}}, p.err()
}

// policyAnswer is the declared policy beside what is measured.
type policyAnswer struct {
	Meta
	Granted  []grantAnswer    `json:"granted"`
	Declared *declaredAnswer  `json:"declared"`
	Measured []measuredAnswer `json:"measured"`
}

type declaredAnswer struct {
	Chosen            float64          `json:"chosen"`
	DeadlineSeconds   *float64         `json:"deadline_seconds"`
	CapacityPerSecond *float64         `json:"capacity_per_second"`
	OfferedPerSecond  *float64         `json:"offered_per_second"`
	Queue             *int             `json:"queue"`
	DrainPerSecond    *float64         `json:"drain_per_second"`
	ServiceSeconds    *float64         `json:"service_seconds"`
	Layers            []layerAnswer    `json:"layers"`
	WorstCase         aggregate.Figure `json:"worst_case"`
	Affordable        aggregate.Figure `json:"affordable"`
	Findings          []string         `json:"findings"`
}

type layerAnswer struct {
	Name              string   `json:"name"`
	Attempts          *int     `json:"attempts"`
	Retries           *int     `json:"retries"`
	Budget            *float64 `json:"budget"`
	TimeoutSeconds    *float64 `json:"timeout_seconds"`
	BackoffSeconds    float64  `json:"backoff_seconds"`
	HonoursRetryAfter bool     `json:"honours_retry_after"`
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

func given[T int | float64](v T) *T {
	if v == 0 {
		return nil
	}
	return &v
}

func newDeclared(p *Policy) *declaredAnswer {
	if p == nil {
		return nil
	}
	a := &declaredAnswer{
		Chosen: p.Chosen, DeadlineSeconds: given(p.Deadline.Seconds()), CapacityPerSecond: given(p.CapacityPerSecond),
		OfferedPerSecond: given(p.OfferedPerSecond), Queue: given(p.Queue), DrainPerSecond: given(p.DrainPerSecond),
		ServiceSeconds: given(p.Service.Seconds()), Layers: []layerAnswer{}, WorstCase: p.WorstCase, Affordable: p.Affordable,
		Findings: append([]string{}, p.Findings...),
	}
	for _, l := range p.Layers {
		a.Layers = append(a.Layers, layerAnswer{l.Name, l.Attempts, l.Retries, l.Budget, given(l.Timeout.Seconds()), l.Backoff.Seconds(), l.HonoursRetryAfter})
	}
	return a
}

// above compares two figures; nil where it cannot be said. Nothing is above what
// is unbounded.
func above(a, b aggregate.Figure) *bool {
	x, ok := a.Value()
	y, ok2 := b.Value()
	if !ok || !ok2 && !b.Unbounded() {
		return nil
	}
	yes := ok2 && x > y
	return &yes
}

// policyWindow is long enough for a factor to be no accident of one wave.
const policyWindow = 5 * time.Minute

func (s *Server) policy(_ *http.Request, snap *Snapshot, p *params) (any, error) {
	deps := pick(snap, p)
	a := policyAnswer{Meta: liveMeta(snap, deps), Granted: newGrants(snap), Declared: newDeclared(snap.Policy), Measured: []measuredAnswer{}}
	for _, d := range deps {
		w := d.window(policyWindow)
		if w == nil {
			continue
		}
		f := w.Total.figures(w.span())
		m := measuredAnswer{Dependency: d.Name, Window: shortDuration(w.Length), Coverage: f.Coverage, LoadFactor: f.LoadFactor, ArrivalsRate: f.ArrivalsRate}
		if x := snap.Policy; x != nil {
			m.AboveChosen = above(f.LoadFactor, declared(x.Chosen))
			m.AboveWorstCase = above(f.LoadFactor, x.WorstCase)
			m.AboveAffordable = above(f.LoadFactor, x.Affordable)
			m.AboveCapacity = above(f.ArrivalsRate, declared(x.CapacityPerSecond))
			m.OriginalsOffered = above(f.OriginalsRate, declared(x.OfferedPerSecond))
		}
		a.Measured = append(a.Measured, m)
	}
	return a, p.err()
}

// declared is a number of the policy; null for 0, which is not declared.
func declared(v float64) aggregate.Figure {
	if v == 0 {
		return aggregate.Figure{}
	}
	return aggregate.Number(v)
}
