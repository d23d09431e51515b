package lab

import (
	"math"
	"time"
)

// failure says why an attempt did not succeed.
type failure uint8

const (
	byNothing failure = iota // it did
	byTimeout
	byError
	byRefusal
	byLeaving // it was not to be waited for
)

// wait is the time from the n-th attempt's failure to the next attempt.
func (m *model) wait(b *Backoff, n int) int64 {
	if b.Base == 0 {
		return 0
	}
	d := float64(b.Base)
	if b.Factor > 0 {
		d *= math.Pow(b.Factor, float64(n-1))
	}
	if b.Max > 0 {
		d = min(d, float64(b.Max))
	}
	d = min(d, float64(time.Hour))
	switch b.Jitter {
	case "full":
		return m.between(int64(d) + 1)
	case "equal":
		return int64(d/2) + m.between(int64(d/2)+1)
	}
	return int64(d)
}

// budget bounds the repeats of a layer. It is told of every attempt, and asked
// before every repeat.
type budget interface {
	began(now int64, repeat bool)
	ended(now int64, repeat bool, by failure)
	allows(now int64, by failure) bool
}

// newBudget makes a budget; what it counts in calls or repeats is scaled.
func newBudget(b *Budget, scale float64) budget {
	switch b.Model {
	case "ratio":
		return &ratio{share: b.Ratio, floor: b.Floor / scale * b.Window.Seconds(), part: int64(b.Window) / ratioParts}
	case "concurrency":
		return &concurrency{share: b.Ratio, least: b.Min / scale}
	case "rate":
		return &ratio{floor: b.Rate / scale, part: int64(b.Window) / ratioParts}
	}
	return &tokens{most: b.Tokens / scale, left: b.Tokens / scale, cost: b.Cost, timeout: b.TimeoutCost, gain: b.Gain, reserve: b.Reserve * b.Tokens / scale}
}

// ratioParts is how many parts of a window go out of it one by one.
const ratioParts = 20

// ratio allows repeats up to a share of the calls in a window, and a number besides.
type ratio struct {
	share, floor   float64
	part           int64 // ns
	at             int64 // number of the newest part
	calls, repeats [ratioParts]float64
	sumCalls       float64
	sumRepeats     float64
}

func (b *ratio) slide(now int64) int {
	n := now / b.part
	for ; b.at < n; b.at++ {
		if n-b.at > ratioParts {
			b.at = n - ratioParts - 1
		}
		i := (b.at + 1) % ratioParts
		b.sumCalls -= b.calls[i]
		b.sumRepeats -= b.repeats[i]
		b.calls[i], b.repeats[i] = 0, 0
	}
	return int(n % ratioParts)
}

func (b *ratio) began(now int64, repeat bool) {
	i := b.slide(now)
	if repeat {
		b.repeats[i]++
		b.sumRepeats++
	} else {
		b.calls[i]++
		b.sumCalls++
	}
}

func (b *ratio) ended(int64, bool, failure) {}

func (b *ratio) allows(now int64, _ failure) bool {
	b.slide(now)
	return b.sumRepeats+1 <= b.share*b.sumCalls+b.floor
}

// concurrency allows repeats under way up to a share of all attempts under way.
type concurrency struct {
	share, least float64
	all, repeats float64
}

func (b *concurrency) began(_ int64, repeat bool) {
	b.all++
	if repeat {
		b.repeats++
	}
}

func (b *concurrency) ended(_ int64, repeat bool, _ failure) {
	b.all--
	if repeat {
		b.repeats--
	}
}

func (b *concurrency) allows(int64, failure) bool {
	return b.repeats < max(b.least, b.share*b.all)
}

// tokens allows repeats while enough is left of what failures, or repeats, cost. With
// a reserve, failures cost (gRPC); without, repeats do (AWS).
type tokens struct {
	most, left    float64
	cost, timeout float64
	gain, reserve float64
}

func (b *tokens) began(int64, bool) {}

func (b *tokens) ended(_ int64, _ bool, by failure) {
	switch {
	case by == byNothing:
		b.left = min(b.left+b.gain, b.most)
	case b.reserve > 0 && by != byLeaving:
		b.left = max(b.left-b.price(by), 0)
	}
}

func (b *tokens) price(by failure) float64 {
	if by == byTimeout && b.timeout > 0 {
		return b.timeout
	}
	return b.cost
}

func (b *tokens) allows(_ int64, by failure) bool {
	if b.reserve > 0 {
		return b.left > b.reserve
	}
	if b.left < b.price(by) {
		return false
	}
	b.left -= b.price(by)
	return true
}
