package pipeline

import (
	"context"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// Writer keeps rows at rest. Rows replace and never add: of two with one name the
// one with the higher rules, and then the higher version, stays. So a write may be
// repeated, and is, until it succeeds.
type Writer interface {
	Write(ctx context.Context, w *Written) error
	// NextRules takes a version for the way in which a scope is read; it starts
	// at 1 and rises.
	NextRules(ctx context.Context, scope string) (uint32, error)
	// Note returns a scope's latest note; nil if there is none.
	Note(ctx context.Context, scope string) ([]byte, error)
}

// Written is what a scope has to store.
type Written struct {
	Scope string
	Rules uint32
	Rows  []Row
	// Closed is the tick before which there will be no more rows but late ones.
	Closed  int64
	Counted []Range
	// Note is kept with the rows or not at all, in place of the one before; nil leaves
	// that.
	Note  []byte
	noted map[*livePart]int64 // before which ticks Note says that all is closed
	// Questions are over; Horizon is the silence after which one is.
	Questions []Question
	Horizon   time.Duration
}

// Row is one tick of a route and an originator or peer.
type Row struct {
	At         int64 // Unix seconds
	Dependency string
	Route      string // empty if Wide
	Name       string // of the originator or peer
	ByPeer     bool
	Wide       bool // of a whole dependency
	// Late is not 0 in rows of late arrivals: it names the partition and the block
	// of offsets that they came from.
	Late    int64
	Version uint64
	Counts  *aggregate.Counts
}

// Range is a run of offsets of one partition that were counted: From up to To,
// not included.
type Range struct {
	Partition string
	From, To  int64
}
