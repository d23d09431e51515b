package budget

import (
	"math"
	"slices"
)

// A budget's consumption goes up and down with every wave of retries, and a slope
// through its last readings says half of the time that it will be exhausted. It is
// said to rise where the window spent more than it had some seconds ago, by more
// than it goes up and down otherwise. A steep rise shows within a few seconds; one
// that is slow takes more of them, in the last of which it must not fall.
const (
	steepSeconds, slowSeconds = 5, 20
	// Noise is taken between blocks of seconds, since waves of retries are longer
	// than one, of the last minute or two.
	blockSeconds = 5
	maxBlocks    = 20
	// riseSigmas is how many standard deviations are not by chance. There are looks
	// at every second, of which next to none may be wrong.
	riseSigmas = 4
	// riseWindows is how many windows ahead a slope of some seconds still says
	// something about.
	riseWindows = 60
)

// RiseSeconds is how many seconds ExhaustsIn looks at. It can do with fewer.
func (m *Model) RiseSeconds() int { return m.Window + maxBlocks*blockSeconds }

// ExhaustsIn is in how many seconds the budget is exhausted at the present slope; ok
// is false where it is exhausted, its consumption does not rise, it is spent in times that
// are not known, or that is too far ahead to be said. seconds are the newest ones, from
// the oldest on; the last may be incomplete. b is the bucket at their end.
func (m *Model) ExhaustsIn(seconds []Counts, b Bucket) (in float64, ok bool) {
	if len(seconds) < m.Window+slowSeconds {
		return 0, false
	}
	for back := 0; m.Timed() && back <= slowSeconds; back++ { // times that become known are no rise
		window := sumOf(seconds[len(seconds)-m.Window-back : len(seconds)-back])
		if m.timing(&window) != TimesKnown {
			return 0, false
		}
	}
	now := m.consumed(seconds[len(seconds)-m.Window:])
	beyond := now
	if m.Holds() {
		now, beyond = consumed(b.Spent, m.allowance(Counts{}, 1)), 0
	}
	noise := m.noise(seconds, beyond)
	slope, sigmas := m.rise(seconds, now, noise, steepSeconds)
	if sigmas < riseSigmas && sigmas > -1 {
		slope, sigmas = m.rise(seconds, now, noise, slowSeconds)
	}
	if !(sigmas >= riseSigmas) { // nor is NaN
		return 0, false
	}
	in = (1 - now) / slope
	if !(in > 0 && in <= float64(riseWindows*m.Window)) {
		return 0, false
	}
	return in, true
}

// rise is by how much more is consumed each second than so many seconds ago, and
// how many standard deviations that is.
func (m *Model) rise(seconds []Counts, now, noise float64, span int) (slope, sigmas float64) {
	if m.Holds() { // what was spent since is what is spent more
		came := sumOf(seconds[len(seconds)-span:])
		spent := m.spent(came, span)
		sigma := math.Sqrt(max(m.variance(came, span), noise*noise*float64(span)/blockSeconds))
		return spent / float64(span) / m.allowance(came, span), spent / sigma
	}
	then := seconds[len(seconds)-span-m.Window : len(seconds)-span]
	rise := now - m.consumed(then)
	// The seconds that are in one of the two windows alone.
	differ := min(span, m.Window)
	came, went := seconds[len(seconds)-differ:], then[:differ]
	single := m.variance(sumOf(came), m.Window) + m.variance(sumOf(went), m.Window)
	sigma := math.Sqrt(max(single, noise*noise*float64(differ)/blockSeconds))
	allowance := m.allowance(sumOf(seconds[len(seconds)-m.Window:]), m.Window)
	return rise / float64(span), rise * allowance / sigma
}

// noise is the standard deviation of the difference between two blocks of seconds in
// what they spend beyond their share of what is consumed. It is the median one, and
// counted from the median difference: a rise is neither noise while it is short nor
// when it is long.
func (m *Model) noise(seconds []Counts, consumed float64) float64 {
	var differences []float64
	last := math.NaN()
	for n := 0; n < maxBlocks && len(seconds) >= blockSeconds; n++ {
		var block Counts
		seconds, block = seconds[:len(seconds)-blockSeconds], sumOf(seconds[len(seconds)-blockSeconds:])
		// Of a mean over a window, a block is a part.
		beyond := m.part(m.spent(block, blockSeconds) - consumed*m.allowance(block, blockSeconds))
		if n > 0 {
			differences = append(differences, last-beyond)
		}
		last = beyond
	}
	middle := median(differences)
	for i := range differences {
		differences[i] = math.Abs(differences[i] - middle)
	}
	return 1.4826 * median(differences) // of a normal distribution
}

// part is what a block of seconds adds to the window's figure, where that is a mean.
func (m *Model) part(v float64) float64 {
	if _, mean := m.Grant.(Concurrency); mean {
		return v * blockSeconds / float64(m.Window)
	}
	return v
}

func median(list []float64) float64 {
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// consumed is the share that some seconds consume of what they allow.
func (m *Model) consumed(seconds []Counts) float64 {
	sum := sumOf(seconds)
	return m.spent(sum, len(seconds)) / m.allowance(sum, len(seconds))
}

func sumOf(seconds []Counts) (sum Counts) {
	for _, c := range seconds {
		sum.Add(c)
	}
	return sum
}
