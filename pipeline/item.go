package pipeline

import (
	"slices"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/keys"
)

// part is what one shard gets of a batch.
type part struct {
	items []item
	keys  []byte // the texts of the items' keys, one after the other
	late  []lateItem
}

// lateItem is a late arrival on its way; there are few.
type lateItem struct {
	arrival aggregate.Arrival // but for its peer
	peer    uint16            // in the decoder's numbering
	block   int64             // of offsets
}

// item is an arrival on its way to its shard, in as few bytes as it takes: it is
// written by one core and read by another, and there are millions.
type item struct {
	start, log, duration int64
	before               int64 // largest log time of earlier records of the block
	question             aggregate.ID
	text                 uint32
	flags                aggregate.Flags
	lot                  aggregate.Lot
	route, peer          uint16 // in the decoder's numbering
	originator           uint16
	retry                uint16 // see aggregate.PackRetry
	attempt, left        uint8
	class                keys.Class
	reason               keys.Reason
	outcome              aggregate.Outcome
	departure            aggregate.Departure
	kind                 aggregate.Kind
	keyLen               uint8 // no key is longer than 255 bytes
}

// grow makes room for so many items and bytes of keys, and some more.
func (p *part) grow(items, keys int) {
	p.items, p.keys = slices.Grow(p.items, items+items/16), slices.Grow(p.keys, keys+keys/16)
}

// add appends an arrival. Its Peer is in the decoder's numbering.
func (p *part) add(a *aggregate.Arrival, peer uint16, before int64, key []byte) {
	if len(p.items) == cap(p.items) {
		p.items = slices.Grow(p.items, 1)
	}
	p.items = p.items[:len(p.items)+1]
	it := &p.items[len(p.items)-1]
	it.start, it.log, it.duration, it.before = a.Start, a.Log, a.Duration, before
	it.question = a.Question
	it.text, it.flags, it.lot = uint32(a.Text), a.Flags, a.Lot
	it.route, it.peer, it.originator, it.retry = a.Route, peer, a.Originator, aggregate.PackRetry(a.RetryAfter)
	it.attempt, it.left = a.Attempt, a.AttemptsLeft
	it.class, it.reason = a.Class, a.Reason
	it.outcome, it.departure, it.kind = a.Outcome, a.Departure, a.Kind
	it.keyLen = uint8(len(key))
	p.keys = append(p.keys, key...)
}

// arrival is the item as the ledger takes it.
func (it *item) arrival(a *aggregate.Arrival, routes []uint16, peers []uint8) {
	a.Start, a.Log, a.Duration, a.RetryAfter = it.start, it.log, it.duration, aggregate.UnpackRetry(it.retry)
	a.Question = it.question
	a.Text, a.Flags, a.Lot = uint64(it.text), it.flags, it.lot
	a.Route, a.Peer, a.Originator = routes[it.route], peers[it.peer], it.originator
	a.Attempt, a.AttemptsLeft = it.attempt, it.left
	a.Class, a.Reason = it.class, it.reason
	a.Outcome, a.Departure, a.Kind = it.outcome, it.departure, it.kind
}
