// Package budget holds the retry budgets that a dependency can grant, and says
// how much of one is spent.
//
// A budget is read over a window that slides by one second of log time: the time
// at which records were written, because that is the time in which a running
// system sees them. A reading speaks only where it can: a window that reaches
// before the first tick, or with too few arrivals, has no state.
package budget

import "math"

// Ratio is the budget of Linkerd's ServiceProfile, Finagle's RetryBudget and the
// Gateway API's retry constraint (GEP-3388): repeats may be a share of originals,
// plus a floor. Their authors' defaults are a share of 0.2 over 10 seconds. The
// floor of 10 a second that Linkerd and Finagle add is per client, so at the
// target it is 0 unless the number of clients is declared.
type Ratio struct {
	Ratio          float64 // repeats allowed per original
	FloorPerSecond float64 // repeats allowed besides, per second and client
	Clients        int     // what the floor is multiplied by
	Window         int     // seconds
	Low            float64 // consumed from which the budget is low
	CoverageFloor  float64 // share of verified arrivals below which it is blind
	MinArrivals    int     // arrivals below which a window has no state
}

// DefaultRatio is a fifth of the originals over ten seconds, without a floor.
func DefaultRatio() Ratio {
	return Ratio{Ratio: 0.2, Clients: 1, Window: 10, Low: 0.5, CoverageFloor: 0.85, MinArrivals: 20}
}

// State is what a budget's reading amounts to.
type State string

// Blind says that too few arrivals are verified for the others to be believed.
const (
	OK        State = "ok"
	Low       State = "low"
	Exhausted State = "exhausted"
	Blind     State = "blind"
)

// Counts are the records of some seconds of log time.
type Counts struct{ Arrivals, Verified, Originals, Repeats uint64 }

// Add adds o.
func (c *Counts) Add(o Counts) {
	c.Arrivals += o.Arrivals
	c.Verified += o.Verified
	c.Originals += o.Originals
	c.Repeats += o.Repeats
}

func (c *Counts) sub(o Counts) {
	c.Arrivals -= o.Arrivals
	c.Verified -= o.Verified
	c.Originals -= o.Originals
	c.Repeats -= o.Repeats
}

// Reading is one window's budget. Consumed is spent / allowance: 0 where nothing
// is spent of nothing, and NaN where something is.
type Reading struct {
	Allowance, Spent, Consumed float64
	State                      State
}

// allowance is what so many seconds allow.
func (m *Ratio) allowance(c Counts, seconds int) float64 {
	return m.Ratio*float64(c.Originals) + m.FloorPerSecond*float64(seconds)*float64(m.Clients)
}

// Read gives the reading of a full window with these counts; ok is false where
// there are too few arrivals for one.
func (m *Ratio) Read(c Counts) (r Reading, ok bool) {
	if c.Arrivals < uint64(m.MinArrivals) {
		return Reading{}, false
	}
	r.Allowance = m.allowance(c, m.Window)
	r.Spent = float64(c.Repeats)
	switch {
	case r.Allowance > 0:
		r.Consumed = r.Spent / r.Allowance
	case r.Spent > 0:
		r.Consumed = math.NaN()
	}
	switch {
	case float64(c.Verified) < m.CoverageFloor*float64(c.Arrivals):
		r.State = Blind
	case r.Consumed >= 1 || math.IsNaN(r.Consumed):
		r.State = Exhausted
	case r.Consumed >= m.Low:
		r.State = Low
	default:
		r.State = OK
	}
	return r, true
}
