package pipeline

import (
	"time"

	"github.com/targetside/auditor/aggregate"
)

// closedTicks are the latest closed ticks of a scope, by dependency, for which the
// first of its routes stands. Live windows tell of an arrival at once, but not how
// many distinct questions there are, nor what a question did before; windows of closed
// ticks do, and nothing in them changes any more but by late records.
type closedTicks struct {
	from  int64 // the first tick that is whole
	ticks map[int64]map[uint16]*aggregate.ClosedSums

	touched map[int64]struct{} // ticks that others are to be told of; see Tell
}

// keptClosed is how many closed ticks are kept: the longest window, and as much again
// for scopes that are behind.
const keptClosed = 2 * longestWindow

func newClosedTicks() *closedTicks {
	return &closedTicks{from: noTick, ticks: map[int64]map[uint16]*aggregate.ClosedSums{}, touched: map[int64]struct{}{}}
}

// begin notes the first tick of which all is counted here, once there is one.
func (c *closedTicks) begin(rows []aggregate.Row, emitFrom int64) {
	if c.from != noTick {
		return
	}
	for _, r := range rows {
		if r.From >= emitFrom && (c.from == noTick || r.From < c.from) {
			c.from = r.From
		}
	}
}

// begun is the first tick of which all is counted here; closed, if there is none.
func (c *closedTicks) begun(closed int64) int64 {
	if c.from == noTick {
		return closed
	}
	return c.from
}

// at is the sums of a tick, to be added to.
func (c *closedTicks) at(tick int64, home uint16) *aggregate.ClosedSums {
	c.touched[tick] = struct{}{}
	m := c.ticks[tick]
	if m == nil {
		m = map[uint16]*aggregate.ClosedSums{}
		c.ticks[tick] = m
	}
	if m[home] == nil {
		m[home] = new(aggregate.ClosedSums)
	}
	return m[home]
}

// forget drops ticks that no window reaches; those before closed are closed.
func (c *closedTicks) forget(closed int64) {
	for tick := range c.ticks {
		if tick < closed-keptClosed {
			delete(c.ticks, tick)
			delete(c.touched, tick)
		}
	}
	if c.from != noTick {
		c.from = max(c.from, closed-keptClosed)
	}
}

// sum adds up the ticks from one up to another, not included, by dependency.
func (c *closedTicks) sum(from, to int64) map[uint16]*aggregate.RangeSums {
	out := map[uint16]*aggregate.RangeSums{}
	for tick := from; tick < to; tick++ {
		for home, s := range c.ticks[tick] {
			if out[home] == nil {
				out[home] = new(aggregate.RangeSums)
			}
			out[home].Add(s, tick-from)
		}
	}
	return out
}

// ClosedWindow is the figures of the latest closed ticks, From up to To, not
// included, by start time.
type ClosedWindow struct {
	Length   time.Duration
	From, To int64
	Total    aggregate.Totals
	// Questions are distinct, and Verified those of them with a verified key.
	Questions, Verified uint64
	Hops                aggregate.Hops // of what the adjacent hop's numbers tell
}

// closedWindows are the windows of every dependency that end with what is closed in
// every scope. A window of which a scope does not know all ticks is shorter.
func (l *Live) closedWindows(closed int64) map[string][]ClosedWindow {
	out := map[string][]ClosedWindow{}
	if closed == noTick {
		return out
	}
	n, scopes := l.names(), l.all()
	for _, length := range WindowLengths {
		from := closed - int64(length/time.Second)
		for _, s := range scopes {
			s.mu.Lock()
			if s.counts() {
				from = max(from, s.recent.begun(closed))
			}
			s.mu.Unlock()
		}
		if from >= closed {
			continue
		}
		sums := map[string]*aggregate.RangeSums{}
		for _, s := range scopes {
			s.mu.Lock()
			if s.counts() {
				for home, x := range s.recent.sum(from, closed) {
					name, _ := n.Route(home)
					if sums[name] == nil {
						sums[name] = new(aggregate.RangeSums)
					}
					sums[name].Merge(x)
				}
			}
			s.mu.Unlock()
		}
		for name, x := range sums {
			w := ClosedWindow{Length: length, From: from, To: closed, Total: x.Totals(), Hops: x.Hops()}
			w.Questions, w.Verified = x.Questions()
			out[name] = append(out[name], w)
		}
	}
	return out
}

// counts says that some partition of the scope is this instance's.
func (s *scope) counts() bool {
	for _, p := range s.parts {
		if p.assigned {
			return true
		}
	}
	return false
}
