package pipeline

import "math"

// delay is how old records are when they come: how long proxies and shippers keep
// them. It is that of the newest ones, and the least of some seconds, for a file that is
// written every so often has some that are old and one that is not.
type delay struct {
	most          int64 // more is no delay, but an old log
	least, before int64 // of this span and of the one before
	until         int64 // the end of this span
}

// delaySpan is for how long the least delay is looked for, in seconds, once and again.
// Proxies write at least every ten seconds unless they are told otherwise.
const delaySpan = 10

func newDelay(most int64) delay {
	return delay{most: most, least: math.MaxInt64, before: math.MaxInt64, until: noTick}
}

// came notes that records are here now, the newest of a second.
func (d *delay) came(newest, now int64) {
	if now >= d.until {
		d.before, d.least, d.until = d.least, math.MaxInt64, now+delaySpan
	}
	d.least = min(d.least, max(0, now-newest))
}

// seconds is the delay. Nothing comes of which it could be known: it is as it was.
func (d *delay) seconds() int64 {
	if s := min(d.least, d.before); s <= d.most {
		return s
	}
	return 0
}
