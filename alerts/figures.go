package alerts

import (
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// Rules are what a site has chosen, named as in its configuration.
type Rules struct {
	Low                                              float64
	CoverageFloor, CoverageExpected, VisibilityFloor float64
	MinArrivals                                      int
	// Declared is the declared policy; nil: none.
	Declared *budget.Plan
}

// Input is what is known at one moment.
type Input struct {
	Now   time.Time // wall clock
	Rules Rules
	// Standby says that another instance judges: this one forgets its alerts and says
	// nothing.
	Standby bool
	// Unknown says that the figures of dependencies are not of now, or none are there
	// yet: nothing that is about them changes.
	Unknown bool
	// Warming says that questions from before the first record are not known: repeats
	// are missing.
	Warming bool
	// Share says that others see a part of the questions of these dependencies.
	Share bool
	// Missing are the scopes of which the figures lack something: nobody counts them now,
	// or not as far as now. What does not show may be in these.
	Missing      []string
	Dependencies []Figures
	Sources      []Source
	// Read and Lost are records of the last minutes that could be read and could not,
	// or were gone.
	Read, Lost uint64
	// Store says that what is counted cannot be stored, or is not.
	Store bool
}

// Figures are what is known of one dependency.
type Figures struct {
	Dependency string
	// At is the end of the newest second of its log time, and Known how much of it
	// before is known, which live windows may reach.
	At    time.Time
	Known time.Duration
	// Ten and Minute are the live windows of that length.
	Ten, Minute aggregate.Totals
	// Closed is the longest window of closed ticks, and what is known of those alone;
	// nil: none is closed.
	Closed     *Closed
	SampleBits int // questions are sampled if above 0
	ScopeSplit bool
	Budgets    []Budget
}

// Closed is a window of closed ticks, by start time.
type Closed struct {
	Span time.Duration
	aggregate.Totals
	Questions uint64 // distinct
	Hops      aggregate.Hops
}

// Budget is one retry budget's reading.
type Budget struct {
	Route   string // empty: the dependency's own
	Model   string
	Window  time.Duration
	Repeats bool // Spent is a number of repeats
	Timed   bool // Spent is time in system
	Some    bool // there is a reading; without one State may say why
	Part    bool // there is none, since only a part is known of what it is of
	budget.Reading
	ExhaustsIn float64 // seconds at the present slope; 0: that cannot be said
}

// Source is where records come from.
type Source struct {
	Name   string
	Failed bool
	// Behind says that there are records still to be read, and Lag how old the oldest
	// of them is at least.
	Behind bool
	Lag    time.Duration
}
