// Package budget holds the retry budgets that a dependency can grant, and says
// how much of one is spent; and the policy that was declared, and what follows.
//
// A budget is read over a window that slides by one second of log time: the time
// at which records were written, because that is the time in which a running
// system sees them. What a reading is made of adds up over the records of a second,
// so it is the same in whatever order they come, and over parts of the traffic. A
// reading speaks only where it can: a window that reaches before the first tick, or
// with too few arrivals, has no state.
//
// The package is pure: it has no clock, reads no files and knows no keys.
package budget

import "math"

// Model is a retry budget and how it is read.
type Model struct {
	Grant                 // what is allowed
	Window        int     // seconds
	Low           float64 // consumed from which the budget is low
	CoverageFloor float64 // share of verified arrivals below which it is blind
	MinArrivals   int     // arrivals below which a window has no state
}

// DefaultModel is a grant read over ten seconds, and over a minute where its authors
// count by the minute.
func DefaultModel(g Grant) Model {
	m := Model{Grant: g, Window: 10, Low: 0.5, CoverageFloor: 0.85, MinArrivals: 20}
	if _, minute := g.(Rate); minute {
		m.Window = 60
	}
	return m
}

// Grant is what a budget allows: a Ratio, a Concurrency, a Rate or Tokens.
type Grant interface {
	// Name is the name of the model in configurations and answers.
	Name() string
	// allowance is what so many seconds with these counts allow, and spent what they
	// spend of it, which may be less than nothing where it is given back. high is
	// spent, had every unattributable arrival been a repeat.
	allowance(c Counts, seconds int) float64
	spent(c Counts, seconds int) float64
	high(c Counts, seconds int) float64
	// variance is that of spent, if whatever spends or gives back came by itself.
	variance(c Counts, seconds int) float64
	// bucket is how much can be spent before it is given back; 0 where what was spent
	// is forgotten with its window.
	bucket() float64
}

// State is what a budget's reading amounts to.
type State string

// Blind says that too few arrivals are verified, or that of too few repeats the time is
// known where time is what is spent, for the others to be believed: what is spent is a
// lower bound. Untimed says why there is no reading: see Timing.
const (
	OK        State = "ok"
	Low       State = "low"
	Exhausted State = "exhausted"
	Blind     State = "blind"
	Untimed   State = "untimed"
)

// Counts are the records of some seconds of log time.
type Counts struct {
	Arrivals, Verified, Originals, Repeats, Unattributable uint64
	// Success got 200 to 399 (and grpc_status 0) in time; Failed got 429 or 5xx, or
	// its caller was not there for the answer; Gone are those of Failed whose caller
	// was not. Arrivals that are neither, such as a 404, are in none of these.
	Success, Failed, Gone uint64
	// Nanoseconds in system: of all, of repeats, of unattributable arrivals.
	Busy, RepeatBusy, UnattributableBusy int64
	// Arrivals whose time in system is not known, which add nothing to Busy, and those of
	// them that are repeats.
	Untimed, UntimedRepeats uint64
}

// Add adds o.
func (c *Counts) Add(o Counts) {
	c.Arrivals += o.Arrivals
	c.Verified += o.Verified
	c.Originals += o.Originals
	c.Repeats += o.Repeats
	c.Unattributable += o.Unattributable
	c.Success += o.Success
	c.Failed += o.Failed
	c.Gone += o.Gone
	c.Busy += o.Busy
	c.RepeatBusy += o.RepeatBusy
	c.UnattributableBusy += o.UnattributableBusy
	c.Untimed += o.Untimed
	c.UntimedRepeats += o.UntimedRepeats
}

func (c *Counts) sub(o Counts) {
	c.Arrivals -= o.Arrivals
	c.Verified -= o.Verified
	c.Originals -= o.Originals
	c.Repeats -= o.Repeats
	c.Unattributable -= o.Unattributable
	c.Success -= o.Success
	c.Failed -= o.Failed
	c.Gone -= o.Gone
	c.Busy -= o.Busy
	c.RepeatBusy -= o.RepeatBusy
	c.UnattributableBusy -= o.UnattributableBusy
	c.Untimed -= o.Untimed
	c.UntimedRepeats -= o.UntimedRepeats
}

// Bucket is what is spent of a grant that keeps count of it from second to second.
// The zero bucket is a full one: nothing is spent.
type Bucket struct{ Spent, High float64 }

// Holds says that what is spent is held in a bucket, and does not leave with the
// window.
func (m *Model) Holds() bool { return m.bucket() > 0 }

// Repeats says that nothing but the number of repeats is spent.
func (m *Model) Repeats() bool {
	switch m.Grant.(type) {
	case Ratio, Rate:
		return true
	}
	return false
}

// Fill is the bucket after a second with these counts. A second counts as a whole:
// what it spends and gives back is set off before the bucket can overflow or run
// empty, so that the order of its records does not matter.
func (m *Model) Fill(b Bucket, second Counts) Bucket {
	if size := m.bucket(); size > 0 {
		b.Spent = min(max(b.Spent+m.spent(second, 1), 0), size)
		b.High = min(max(b.High+m.high(second, 1), 0), size)
	}
	return b
}

// Reading is one window's budget. Consumed is spent / allowance: 0 where nothing
// is spent of nothing, and NaN where something is. High is consumed, had every
// unattributable arrival been a repeat, and NaN where that cannot be said.
type Reading struct {
	Allowance, Spent, Consumed, High float64
	State                            State
}

// Read gives the reading of a full window with these counts, and the bucket at its
// end; ok is false where there are too few arrivals for one, or the times of too few are
// known, in which case the State is Untimed and nothing else.
func (m *Model) Read(c Counts, b Bucket) (r Reading, ok bool) {
	if c.Arrivals < uint64(m.MinArrivals) {
		return Reading{}, false
	}
	timing := m.timing(&c)
	if timing == TimesUnknown {
		return Reading{State: Untimed}, false
	}
	r.Allowance, r.Spent = m.allowance(c, m.Window), m.spent(c, m.Window)
	high := m.high(c, m.Window)
	if m.Holds() {
		r.Spent, high = b.Spent, b.High
	}
	r.Consumed, r.High = consumed(r.Spent, r.Allowance), consumed(high, r.Allowance)
	if timing != TimesKnown || !m.timedUnattributable(&c) {
		r.High = math.NaN()
	}
	switch {
	case timing == TimesLow, float64(c.Verified) < m.CoverageFloor*float64(c.Arrivals):
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

func consumed(spent, allowance float64) float64 {
	switch {
	case allowance > 0:
		return spent / allowance
	case spent > 0:
		return math.NaN()
	}
	return 0
}
