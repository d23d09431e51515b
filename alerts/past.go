package alerts

import (
	"slices"
	"time"
)

const (
	// pastFor is for how long an alert that was resolved is remembered, and mostPast how
	// many are at most.
	pastFor  = 24 * time.Hour
	mostPast = 200
)

// Past remembers what fired once, was told and is resolved, for who looks later at the time
// in which it did. It knows what one process has seen. It may be used by one goroutine at
// a time; what it returns is not changed any more.
type Past struct {
	from time.Time
	over []Alert // the latest to be resolved first
}

// NewPast begins to remember.
func NewPast(now time.Time) *Past { return &Past{from: now} }

// Take remembers those of all alerts at a moment that are resolved.
func (p *Past) Take(current []Alert, now time.Time) {
	for i := range current {
		a := &current[i]
		if a.State != Resolved || slices.ContainsFunc(p.over, func(o Alert) bool { return o.Since.Equal(a.Since) && o.key() == a.key() }) {
			continue
		}
		at, _ := slices.BinarySearchFunc(p.over, a.Ended, func(o Alert, ended time.Time) int { return ended.Compare(o.Ended) })
		p.over = slices.Insert(slices.Clone(p.over), at, *a)
		if p.from.After(a.Ended) { // it was resolved before, and is told of by who knew of it
			p.from = a.Ended
		}
	}
	keep := len(p.over)
	for keep > 0 && (keep > mostPast || now.Sub(p.over[keep-1].Ended) >= pastFor) {
		keep--
	}
	if keep < len(p.over) {
		p.from = later(p.from, p.over[keep].Ended)
		p.over = slices.Clone(p.over[:keep])
	}
	p.from = later(p.from, now.Add(-pastFor))
}

// Alerts are those that are remembered, the latest to be resolved first.
func (p *Past) Alerts() []Alert { return p.over }

// From is since when all that was resolved is among them.
func (p *Past) From() time.Time { return p.from }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
