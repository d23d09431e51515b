package pipeline

import (
	"time"

	"github.com/targetside/auditor/aggregate"
)

// windows are what a scope tells live: sums by second of log time, which the
// windows of a picture are added up from. Beats of a second may come as long as
// its records do.
type windows struct {
	head    int64 // the newest second with a record
	seconds map[int64]map[partKey]*aggregate.Sums
	sources map[int]*SourceCounts
}

// partKey is a route, or an originator or peer of the dependency of a route. In
// these id is the smallest number of a route of that dependency.
type partKey struct {
	kind   uint8
	id, of uint16
}

const (
	ofRoute uint8 = iota
	ofOriginator
	ofPeer
)

// WindowLengths are the windows of a picture.
var WindowLengths = [...]time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

const longestWindow = int64(300)

func newWindows() *windows {
	return &windows{head: noTick, seconds: map[int64]map[partKey]*aggregate.Sums{}, sources: map[int]*SourceCounts{}}
}

// add takes beats; homes are, by route, the first of its dependency. What is older
// older than the longest window is in no picture any more.
func (w *windows) add(beats []aggregate.Beat, homes []uint16) {
	for i := range beats {
		b := &beats[i]
		if b.Second > w.head {
			w.head = b.Second
		} else if b.Second <= w.head-longestWindow {
			continue
		}
		parts := w.seconds[b.Second]
		if parts == nil {
			parts = map[partKey]*aggregate.Sums{}
			w.seconds[b.Second] = parts
		}
		dep := homes[b.Dims.Route]
		for _, k := range [...]partKey{{ofRoute, b.Dims.Route, 0}, {ofOriginator, b.Dims.Originator, dep}, {ofPeer, uint16(b.Dims.Peer), dep}} {
			s := parts[k]
			if s == nil {
				s = new(aggregate.Sums)
				parts[k] = s
			}
			s.Add(b)
		}
	}
}

// slide forgets what no window reaches. While records come no more, windows slide
// on with the wall clock.
func (w *windows) slide(to int64) {
	if w.head != noTick {
		w.head = max(w.head, to)
	}
	for at := range w.seconds {
		if at <= w.head-longestWindow {
			delete(w.seconds, at)
		}
	}
}

// sum adds up the last seconds by part.
func (w *windows) sum(seconds int64) map[partKey]*aggregate.Sums {
	out := map[partKey]*aggregate.Sums{}
	for at := w.head - seconds + 1; at <= w.head; at++ {
		for k, s := range w.seconds[at] {
			if out[k] == nil {
				out[k] = new(aggregate.Sums)
			}
			out[k].Merge(s)
		}
	}
	return out
}

// SourceCounts are what became of the records of a source. They only ever rise.
type SourceCounts struct {
	Lines, Bytes         uint64
	Ignored, Quarantined map[string]uint64
	Gap, Empty           uint64
}

func newSourceCounts() *SourceCounts {
	return &SourceCounts{Ignored: map[string]uint64{}, Quarantined: map[string]uint64{}}
}

func (c *SourceCounts) add(o *SourceCounts) {
	c.Lines, c.Bytes, c.Gap, c.Empty = c.Lines+o.Lines, c.Bytes+o.Bytes, c.Gap+o.Gap, c.Empty+o.Empty
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
	w.source(source).add(&SourceCounts{Lines: uint64(b.lines), Bytes: uint64(b.bytes), Ignored: b.ignored, Quarantined: b.quarantined})
}

func (w *windows) lost(source int, gap, empty int64) {
	w.source(source).add(&SourceCounts{Gap: uint64(gap), Empty: uint64(empty)})
}
