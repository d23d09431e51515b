package budget

import (
	"math/big"
	"strconv"
	"time"
)

// Policy is a retry policy as it was drawn: who may try how often, and what the
// dependency can bear. Of everything but Chosen, 0 is not declared.
type Policy struct {
	// Chosen is the arrivals per question that are tolerated, 1 or more. It is said of
	// a question's worst case, or of the mean where a layer has a budget.
	Chosen float64
	// Deadline is how long the outermost caller waits.
	Deadline time.Duration
	// CapacityPerSecond is the arrivals that the dependency can serve, and
	// OfferedPerSecond the questions of the busy hour.
	CapacityPerSecond, OfferedPerSecond float64
	// Queue is how many arrivals may wait at the dependency, DrainPerSecond how
	// many of them are taken out each second, and Service how long one then takes.
	Queue          int
	DrainPerSecond float64
	Service        time.Duration
	// Layers are the callers from the outermost to the adjacent one.
	Layers []Layer
}

// Layer is one party that may try again. Exactly one of Attempts (tries per call,
// the first included), Retries (after the first) and Budget is set.
type Layer struct {
	Name              string
	Attempts, Retries *int
	// Budget is the share of retries, below 1, of what Base says.
	Budget *float64
	Base   Base // empty: Originals
	// Timeout is how long one try may take, 0: as long as what is below it takes.
	Timeout time.Duration
	// Backoff is the wait before each retry; the longest, if it grows.
	Backoff           time.Duration
	HonoursRetryAfter bool
}

// Base is what a layer's budget is a share of.
type Base string

// With a share b of Originals 1 + b requests pass for each (Linkerd, Finagle,
// GEP-3388). With one of All requests, the retries among them, 1 / (1 − b) do:
// Envoy's budget_percent is of active and pending requests together
// (envoy.config.cluster.v3.CircuitBreakers.Thresholds.RetryBudget).
const (
	Originals Base = "originals"
	All       Base = "all"
)

// decimal is the number that a float's shortest digits say: 0.2 is a fifth. Figures
// are reckoned with these, so that (1.2)³ is 1.728 to the digit.
func decimal(v float64) *big.Rat {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
	if !ok { // infinite or NaN, which no configuration lets through
		return new(big.Rat)
	}
	return r
}

// factor is how many calls of the layer below one call of this layer makes at most:
// for one question, or in the mean where it has a budget.
func (l *Layer) factor() *big.Rat {
	one := big.NewRat(1, 1)
	switch {
	case l.Attempts != nil:
		return big.NewRat(int64(*l.Attempts), 1)
	case l.Retries != nil:
		return big.NewRat(int64(*l.Retries)+1, 1)
	case l.Budget == nil:
		return one
	case l.Base == All:
		return new(big.Rat).Quo(one, new(big.Rat).Sub(one, decimal(*l.Budget)))
	}
	return new(big.Rat).Add(one, decimal(*l.Budget))
}

// tries is how often a layer tries for one call; 0 is not known, as a budget bounds
// traffic and not one call.
func (l *Layer) tries() int64 {
	switch {
	case l.Attempts != nil:
		return int64(*l.Attempts)
	case l.Retries != nil:
		return int64(*l.Retries) + 1
	case l.Budget == nil || *l.Budget == 0:
		return 1
	}
	return 0
}

// owner says that the layer retries at all.
func (l *Layer) owner() bool { return l.tries() != 1 }

// wait is how long one call of the layer takes at most, where a call of the layer
// below takes inner; nil is not known.
func (l *Layer) wait(inner *big.Rat) *big.Rat {
	try := inner
	if own := seconds(l.Timeout); l.Timeout > 0 && (inner == nil || own.Cmp(inner) < 0) {
		try = own
	}
	n := l.tries()
	if try == nil || n == 0 {
		return nil
	}
	pauses := new(big.Rat).Mul(big.NewRat(n-1, 1), seconds(l.Backoff))
	return pauses.Add(pauses, new(big.Rat).Mul(big.NewRat(n, 1), try))
}

func seconds(d time.Duration) *big.Rat { return big.NewRat(int64(d), int64(time.Second)) }
