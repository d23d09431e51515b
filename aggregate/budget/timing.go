package budget

// Timing is how far the shares of the time in system can be said of some arrivals. A
// record may have no duration, and then nothing is known of how long it was in flight:
// taken as 0, it would make a log without durations one without repeats in flight.
type Timing uint8

const (
	// TimesKnown: of next to all arrivals.
	TimesKnown Timing = iota
	// TimesLow: of too few repeats, so that their part is more than it reads.
	TimesLow
	// TimesUnknown: of no repeat at all, or of too few of the others. Without the times
	// of the others a part of all reads too high, and without those of repeats too low.
	TimesUnknown
)

// Timing is the timing of arrivals with these counts. floor is the share of a kind of
// arrivals that has to have times.
func (c *Counts) Timing(floor float64) Timing {
	// Of sampled questions repeats are an estimate, which may pass what it is of.
	repeats := min(c.Repeats, c.Arrivals)
	untimed := min(c.UntimedRepeats, repeats)
	others, untimedOthers := c.Arrivals-repeats, c.Untimed-min(untimed, c.Untimed)
	switch {
	case c.Untimed == 0:
		return TimesKnown
	case c.Untimed >= c.Arrivals, repeats > 0 && untimed == repeats, few(others, untimedOthers, floor):
		return TimesUnknown
	case few(repeats, untimed, floor):
		return TimesLow
	}
	return TimesKnown
}

// few says that fewer of n than the floor asks for have times.
func few(n, untimed uint64, floor float64) bool {
	return untimed > 0 && float64(n-min(untimed, n)) < floor*float64(n)
}

// Timed says that what is spent is time in system.
func (m *Model) Timed() bool {
	_, ok := m.Grant.(Concurrency)
	return ok
}

// timing is what the reading of a window with these counts knows of times.
func (m *Model) timing(c *Counts) Timing {
	if !m.Timed() {
		return TimesKnown
	}
	return c.Timing(m.CoverageFloor)
}

// timedUnattributable says that enough is known of the times of unattributable arrivals.
// All of the untimed that are no repeats may be among them.
func (m *Model) timedUnattributable(c *Counts) bool {
	return !m.Timed() || !few(c.Unattributable, min(c.Untimed-min(c.UntimedRepeats, c.Untimed), c.Unattributable), m.CoverageFloor)
}
