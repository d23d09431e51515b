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

// budget bounds the repeats of a layer. It is told of every attempt, and asked before
// every repeat. What it grants is spent from then on, also while the repeat waits for
// its time: else all that fail during a backoff would be granted the same allowance.
type budget interface {
	began(now int64, repeat bool)
	ended(now int64, repeat bool, by failure)
	takes(now int64, by failure) bool
	returned() // a repeat that was granted, and will not be made
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
	if i := b.slide(now); !repeat {
		b.calls[i]++
		b.sumCalls++
	}
}

func (b *ratio) ended(int64, bool, failure) {}

func (b *ratio) takes(now int64, _ failure) bool {
	i := b.slide(now)
	if b.sumRepeats+1 > b.share*b.sumCalls+b.floor {
		return false
	}
	b.repeats[i]++
	b.sumRepeats++
	return true
}

func (b *ratio) returned() {} // Linkerd and Finagle give nothing back

// concurrency allows repeats under way, or waiting for it, up to a share of all
// attempts under way.
type concurrency struct {
	share, least float64
	all, repeats float64
}

func (b *concurrency) began(int64, bool) {
	b.all++
}

func (b *concurrency) ended(_ int64, repeat bool, _ failure) {
	b.all--
	if repeat {
		b.repeats--
	}
}

func (b *concurrency) takes(int64, failure) bool {
	if b.repeats >= max(b.least, b.share*b.all) {
		return false
	}
	b.repeats++
	return true
}

func (b *concurrency) returned() { b.repeats-- }

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

func (b *tokens) returned() {} // what was paid is paid

func (b *tokens) takes(_ int64, by failure) bool {
	if b.reserve > 0 {
		return b.left > b.reserve
	}
	if b.left < b.price(by) {
		return false
	}
	b.left -= b.price(by)
	return true
}
