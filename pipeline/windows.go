package pipeline

import (
	"math"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
)

// windows are what a scope tells live: sums by second of log time, which the
// windows of a picture are added up from. Beats of a second may come as long as
// its records do.
type windows struct {
	head    int64 // the newest second with a record, or what the wall clock makes of it
	newest  int64 // the newest second with a record
	keep    int64 // seconds
	delay   delay
	seconds map[int64]*liveSecond
	sources map[int]*SourceCounts
	begun   int64              // the first second that ever was
	touched map[int64]struct{} // seconds that others are to be told of; see Tell
}

// liveSecond is one second. Originators and peers are of a dependency, for which
// the first of its routes stands.
type liveSecond struct {
	routes             []*aggregate.Sums
	originators, peers sumsBy
}

// sumsBy is sums by a dependency's first route, and then by originator or peer.
type sumsBy [][]*aggregate.Sums

// WindowLengths are the windows of a picture.
var WindowLengths = [...]time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

const longestWindow = int64(300)

// keepSeconds is how many seconds windows need.
func (l *Live) keepSeconds() int64 { return keepSeconds(&l.cfg.Budget) }

func keepSeconds(m *budget.Model) int64 { return max(longestWindow, int64(m.RiseSeconds())) }

// budgetSeconds is how many of them budgets look at: all of them for what a bucket
// holds.
func budgetSeconds(all *budget.Model, routes map[string]*budget.Model) int {
	holds := all.Holds()
	for _, m := range routes {
		holds = holds || m.Holds()
	}
	if holds {
		return int(keepSeconds(all))
	}
	return all.RiseSeconds()
}

func newWindows(keep, lateness int64) *windows {
	return &windows{head: noTick, newest: noTick, keep: keep, delay: newDelay(lateness), seconds: map[int64]*liveSecond{}, sources: map[int]*SourceCounts{},
		begun: math.MaxInt64, touched: map[int64]struct{}{}}
}

// sumsAt is the element of a list, made if it is not there.
func sumsAt(list *[]*aggregate.Sums, i int) *aggregate.Sums {
	for i >= len(*list) {
		*list = append(*list, nil)
	}
	if (*list)[i] == nil {
		(*list)[i] = new(aggregate.Sums)
	}
	return (*list)[i]
}

func (g *sumsBy) at(dep, i int) *aggregate.Sums {
	for dep >= len(*g) {
		*g = append(*g, nil)
	}
	return sumsAt(&(*g)[dep], i)
}

// add takes beats; homes are, by route, the first of its dependency. What is older
// than what is kept is in no picture any more. now is the wall clock's second: a
// clock that is fast does not move the windows of everybody.
func (w *windows) add(beats []aggregate.Beat, homes []uint16, now int64) {
	var at int64
	var sec *liveSecond
	newest := int64(noTick)
	for i := range beats {
		b := &beats[i]
		newest = max(newest, b.Second)
		if ahead := min(b.Second, now+1); ahead > w.head {
			w.head = ahead
		} else if b.Second <= w.head-w.keep {
			continue
		}
		if sec == nil || at != b.Second {
			if at, sec = b.Second, w.seconds[b.Second]; sec == nil {
				sec = new(liveSecond)
				w.seconds[at] = sec
			}
			w.begun = min(w.begun, at)
			w.touched[at] = struct{}{}
		}
		route := int(b.Dims.Route)
		home := int(homes[route])
		sumsAt(&sec.routes, route).Add(b)
		sec.originators.at(home, int(b.Dims.Originator)).Add(b)
		sec.peers.at(home, int(b.Dims.Peer)).Add(b)
	}
	if len(beats) > 0 {
		w.newest = max(w.newest, min(newest, now+1))
		w.delay.came(newest, now)
	}
}

// slide forgets what no window reaches. While records come no more, windows slide
// on with the wall clock, as far behind it as records are when they come: what is
// always written or shipped late would else never be in a window.
func (w *windows) slide(to int64) {
	if w.head != noTick {
		w.head = max(w.head, to-w.delay.seconds())
	}
	for at := range w.seconds {
		if at <= w.head-w.keep {
			delete(w.seconds, at)
			delete(w.touched, at)
		}
	}
}

// sum adds up the last seconds.
func (w *windows) sum(seconds int64) *liveSecond {
	out := new(liveSecond)
	for at := w.head - seconds + 1; at <= w.head; at++ {
		sec := w.seconds[at]
		if sec == nil {
			continue
		}
		mergeSums(&out.routes, sec.routes)
		out.originators.merge(sec.originators)
		out.peers.merge(sec.peers)
	}
	return out
}

func (g *sumsBy) merge(o sumsBy) {
	for dep, list := range o {
		if len(list) > 0 {
			for dep >= len(*g) {
				*g = append(*g, nil)
			}
			mergeSums(&(*g)[dep], list)
		}
	}
}

func mergeSums(into *[]*aggregate.Sums, list []*aggregate.Sums) {
	for i, s := range list {
		if s != nil {
			sumsAt(into, i).Merge(s)
		}
	}
}

// SourceCounts are what became of the records of a source. They only ever rise.
type SourceCounts struct {
	Lines                uint64 // a line that holds several records counts once for each
	Ignored, Quarantined map[string]uint64
	Gap, Empty           uint64 // records that are gone, and that had no value; neither is a line
}

func newSourceCounts() *SourceCounts {
	return &SourceCounts{Ignored: map[string]uint64{}, Quarantined: map[string]uint64{}}
}

func (c *SourceCounts) add(o *SourceCounts) {
	c.Lines, c.Gap, c.Empty = c.Lines+o.Lines, c.Gap+o.Gap, c.Empty+o.Empty
	for k, n := range o.Ignored {
		c.Ignored[k] += n
	}
	for k, n := range o.Quarantined {
		c.Quarantined[k] += n
	}
}

func (w *windows) source(i int) *SourceCounts {
	if w.sources[i] == nil {
		w.sources[i] = newSourceCounts()
	}
	return w.sources[i]
}

// first is the first second that is known.
func (w *windows) first() int64 {
	first := w.head
	for at := range w.seconds {
		first = min(first, at)
	}
	return first
}

func (w *windows) read(source int, b *batch) {
	w.source(source).add(&SourceCounts{Lines: uint64(b.records), Ignored: b.ignored, Quarantined: b.quarantined})
}

func (w *windows) lost(source int, gap, empty int64) {
	w.source(source).add(&SourceCounts{Gap: uint64(gap), Empty: uint64(empty)})
}
