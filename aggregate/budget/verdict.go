package budget

import (
	"math"
	"slices"
)

// Verdict says what a window of traffic is, compared with the ten minutes before it.
type Verdict struct {
	// Kind is empty where nothing can be said: before the first full window, with too
	// few arrivals, or with none that could be attributed.
	Kind Kind
	// LoadFactor is attributable arrivals per original, and Usual what it is compared
	// with: what was chosen, or its median over the last 600 seconds without a storm, if
	// that is more. Storm is one by the other. Without an original both are +Inf.
	LoadFactor, Usual, Storm float64
	// Demand is originals by their median over the last ten minutes; NaN where that is
	// 0 or not known yet.
	Demand float64
	// ReAsk says that originals rise while fewer are answered: people who press refresh
	// ask new questions.
	ReAsk bool
	// HiddenRepeats says that what cannot be attributed rises while originals are flat,
	// and by so much that it alone would make a usual load factor a storm's, if it were
	// repeats.
	HiddenRepeats bool
	// Blind says that too few arrivals are verified, or too few records able to show
	// a departure, for the rest to be believed.
	Blind bool
}

// Kind is what a window is.
type Kind string

// A storm is more arrivals for each question, demand more questions.
const (
	Quiet  Kind = "quiet"
	Storm  Kind = "storm"
	Demand Kind = "demand"
	Both   Kind = "both"
)

// StormAbove is how many times the usual load factor is called a storm.
const StormAbove = 1.2

// What is called demand, and a change, in either direction.
const (
	demandAbove, changed = 1.5, 1.2
	// historySeconds are what medians are taken of, and leastSeconds how many a median
	// needs: before, demand is not known, and what is chosen is all that a load factor
	// is compared with.
	historySeconds, leastSeconds = 600, 60
)

// Rules are what verdicts go by besides.
type Rules struct {
	Chosen                         float64 // tolerated load factor
	CoverageFloor, VisibilityFloor float64
	MinArrivals                    int
}

// Watch keeps what verdicts are compared with. It is told each second of log time
// once or several times, and keeps what it was told last.
type Watch struct {
	at                           int64
	pending                      *second
	originals, success, unknowns []float64 // of the last seconds, the newest last
	factors                      []float64 // of those without a storm
}

// second is what a second adds to the past.
type second struct {
	originals, success, unknowns float64
	factor                       float64 // NaN: none, or a storm's
}

// Judge gives the verdict on the full window that ends before second to. visible is
// how many of its records are able to show a departure.
func (w *Watch) Judge(r *Rules, to int64, c Counts, visible uint64) Verdict {
	if w.pending != nil && to > w.at {
		w.keep()
	}
	v := Verdict{LoadFactor: math.NaN(), Usual: r.Chosen, Storm: math.NaN(), Demand: math.NaN()}
	if c.Arrivals == 0 || c.Arrivals < uint64(r.MinArrivals) {
		w.pending = nil
		return v
	}
	v.Blind = float64(c.Verified) < r.CoverageFloor*float64(c.Arrivals) || float64(visible) < r.VisibilityFloor*float64(c.Arrivals)
	w.at, w.pending = to, &second{float64(c.Originals), float64(c.Success), float64(c.Unattributable), math.NaN()}
	if c.Originals+c.Repeats == 0 {
		return v
	}
	if usual, ok := middle(w.factors); ok {
		v.Usual = max(v.Usual, usual)
	}
	v.LoadFactor = float64(c.Originals+c.Repeats) / float64(c.Originals)
	v.Storm = v.LoadFactor / v.Usual
	originals, known := middle(w.originals)
	if known && originals > 0 {
		v.Demand = float64(c.Originals) / originals
	}
	switch storm, demand := v.Storm > StormAbove, v.Demand > demandAbove; {
	case storm && demand:
		v.Kind = Both
	case storm:
		v.Kind = Storm
	case demand:
		v.Kind = Demand
	default:
		v.Kind = Quiet
	}
	if v.Storm <= StormAbove {
		w.pending.factor = v.LoadFactor
	}
	if success, ok := middle(w.success); ok {
		v.ReAsk = v.Demand > changed && float64(c.Success)*changed < success
	}
	if unknowns, ok := middle(w.unknowns); ok {
		more := float64(c.Unattributable) - unknowns
		flat := v.Demand <= changed && v.Demand*changed >= 1
		v.HiddenRepeats = flat && float64(c.Unattributable) > changed*unknowns && more > (StormAbove-1)*v.Usual*float64(c.Originals)
	}
	return v
}

// keep makes what the latest second was told last a part of the past.
func (w *Watch) keep() {
	push := func(list *[]float64, v float64) {
		*list = append(*list, v)
		if len(*list) > historySeconds {
			*list = slices.Delete(*list, 0, len(*list)-historySeconds)
		}
	}
	p := w.pending
	push(&w.originals, p.originals)
	push(&w.success, p.success)
	push(&w.unknowns, p.unknowns)
	if !math.IsNaN(p.factor) {
		push(&w.factors, p.factor)
	}
	w.pending = nil
}

// middle is the median of enough seconds.
func middle(list []float64) (float64, bool) {
	if len(list) < leastSeconds {
		return 0, false
	}
	return median(slices.Clone(list)), true
}
