package budget

// Concurrency is Envoy's retry budget (CircuitBreakers.Thresholds.RetryBudget):
// repeats in flight may be a share of all that is in flight, but at least some. Its
// authors' defaults are 20 % (budget_percent) and 3 (min_retry_concurrency). Each
// proxy has a budget of its own, for each of its clusters.
//
// A log has no moment of which it knows all that is in flight: a record comes when
// its request has ended. What it does have is the time in system of what ended, and
// that, for each second of the window, is the mean number in flight (Little's law),
// as long as about as much begins as ends. Where time in system changes, the number
// trails it by that time. Counting the intervals that are known at each moment
// instead would leave out what is still running, which are mostly the long ones:
// the share of repeats that time out would read low just when it matters.
type Concurrency struct {
	Share   float64 // of repeats among all in flight
	Min     float64 // in flight that are allowed in any case, per proxy
	Proxies int     // what the minimum is multiplied by
}

// DefaultConcurrency is that of one Envoy.
func DefaultConcurrency() Concurrency { return Concurrency{Share: 0.2, Min: 3, Proxies: 1} }

// Name is "concurrency".
func (Concurrency) Name() string { return "concurrency" }

// inFlight is how many are in flight in the mean of some seconds that have so many
// nanoseconds in system.
func inFlight(busy int64, seconds int) float64 { return float64(busy) / 1e9 / float64(seconds) }

func (g Concurrency) allowance(c Counts, seconds int) float64 {
	return max(g.Share*inFlight(c.Busy, seconds), g.Min*float64(g.Proxies))
}

func (Concurrency) spent(c Counts, seconds int) float64 { return inFlight(c.RepeatBusy, seconds) }

func (Concurrency) high(c Counts, seconds int) float64 {
	return inFlight(c.RepeatBusy+c.UnattributableBusy, seconds)
}

// variance takes times in system as exponential, whose mean square is twice the
// square of the mean.
func (Concurrency) variance(c Counts, seconds int) float64 {
	if c.Repeats == 0 {
		return 0
	}
	sum := inFlight(c.RepeatBusy, seconds)
	return 2 * sum * sum / float64(c.Repeats)
}

func (Concurrency) bucket() float64 { return 0 }
