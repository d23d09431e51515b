package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
)

// exchangeBlock is how many offsets of an exchange partition make a block: a parcel
// has the arrivals of some hundred records.
const exchangeBlock = 1 << 8

// sentKeyHash is the hash of a key that came as such.
func sentKeyHash(key []byte) (h [16]byte) {
	copy(h[:], key)
	return h
}

// noDecoder is the number of what makes batches and is no decoder.
const noDecoder = -1

// receiver is a partition of the exchange while it is assigned. What it counts, and
// where it would begin again, is its scope's business, as of every keyed partition.
type receiver struct {
	session
	topics []string // of the sources, as their partitions are named
	reader parcelReader
}

// Consume implements ingest.Session.
func (r *receiver) Consume(ctx context.Context, b *ingest.Batch) error {
	if b.Done != nil {
		defer b.Done()
	}
	if err := r.scope.room(ctx); err != nil {
		return err
	}
	for _, piece := range r.scope.cut(r.part, b) {
		var out *batch
		if len(piece.Data) > 0 {
			var err error
			if out, err = r.unpack(piece); err != nil {
				return err
			}
		}
		if err := r.scope.advance(r.part, piece, out, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// unpack makes a batch of arrivals of one of parcels.
func (r *receiver) unpack(b *ingest.Batch) (*batch, error) {
	mark, was, err := r.scope.ready(r.part)
	if err != nil {
		return nil, err
	}
	u := &unpacking{receiver: r, history: was, batch: r.live.shared.batch(len(b.Data), noDecoder), routes: map[routeName]uint16{}, peers: map[string]uint16{}}
	u.table, u.maxLog = r.part.table.clone(), mark
	rest := b.Data
	for i, ref := range b.Refs {
		err := u.parcel(rest[:b.Sizes[i]], ref.Offset)
		rest = rest[b.Sizes[i]:]
		switch {
		case errors.Is(err, errNoParcel), errors.Is(err, errParcelDamaged):
			r.scope.log.Error("a record of the exchange is passed over", "partition", r.part.Name, "offset", ref.Offset, "error", err)
			u.records++
			u.quarantine(rejectParcel, 1, ref)
		case err != nil:
			return nil, fmt.Errorf("%s, offset %d: %w", r.part.Name, ref.Offset, err)
		}
	}
	return u.batch, nil
}

// rejectParcel quarantines a record of the exchange's topic that is no parcel.
const rejectParcel = accesslog.Reject("parcel")

// unpacking is the making of one batch. Its maxLog is the watermark so far.
type unpacking struct {
	*receiver
	*batch
	history
	routes map[routeName]uint16 // numbers in the batch
	peers  map[string]uint16
}

// parcel adds the arrivals of a parcel that were not seen before. Of one that is not in
// order it adds nothing.
func (u *unpacking) parcel(b []byte, offset int64) error {
	x, in := u.live.exchange, &u.reader
	if err := in.open(b, x.print); err != nil {
		return err
	}
	if u.table.of == 0 {
		u.table.of = in.of
	}
	if u.table.of != in.of {
		return exchangeError("there are parcels for %d partitions of the exchange and for %d: arrivals of one question would be counted apart; name another kafka.exchange.topic and kafka.group", u.table.of, in.of)
	}
	topic, number, _ := splitPartition(in.source)
	next := u.table.next(topic, number)
	shard := &u.shards[0]
	was := part{shard.items, shard.keys, shard.late}
	lines, resent := uint64(0), uint64(0)
	for {
		ok, err := in.next()
		if err != nil {
			*shard = was
			return err
		}
		if !ok {
			break
		}
		if lines++; in.at.before(next) {
			resent++
			continue
		}
		if err := u.arrival(offset); err != nil {
			return err
		}
	}
	u.records += int64(lines)
	if resent > 0 {
		u.ignored["resent"] += resent
	}
	return u.heard(topic, number)
}

// arrival adds the arrival at hand.
func (u *unpacking) arrival(offset int64) error {
	x, in, a := u.live.exchange, &u.reader, &u.reader.arrival
	a.Route = u.route(in.routes[in.route])
	peer := u.peer(in.peers[in.peer])
	if a.Class != keys.Unattributable {
		name := in.originators[in.originator]
		number, known := x.originators[name]
		if !known {
			return exchangeError("an instance knows the originator %q and this one does not: give all the same configuration", name)
		}
		a.Originator = number
	}
	marks := len(u.trace.marks)
	late := u.trace.add(x.receiving, a, offset, u.maxLog)
	if len(u.trace.marks) > marks {
		u.trace.marks[marks].table = u.table.clone()
	}
	if in.late { // as it was where it comes from, by whatever configuration
		late = true
	} else if !u.none() {
		var counted bool
		if late, counted = x.receiving.judge(&u.history, a, offset, u.maxLog, late); counted {
			return nil
		}
	}
	shard := &u.shards[0]
	if late {
		shard.late = append(shard.late, lateItem{*a, peer, offset / x.receiving.offsetBlock})
	} else {
		shard.add(a, peer, u.maxLog, in.keyHash)
	}
	return nil
}

// heard takes note of what the parcel says of its source partition.
func (u *unpacking) heard(topic string, number int) error {
	h := &u.reader.parcelHead
	o, fresh := u.table.origin(topic, number)
	switch {
	case fresh && len(u.table.origins) > maxOrigins:
		return exchangeError("more than %d source partitions send to it: what is known of them would not fit into a position", maxOrigins)
	case fresh:
	case o.next.before(h.from): // it was there, and is no more
		u.missing += max(1, (h.from.offset-o.next.offset)/int64(h.of))
		u.scope.log.Error("arrivals are missing in the exchange", "partition", u.part.Name, "source", h.source, "from", o.next.offset, "to", h.from.offset)
	case h.to.before(o.next) && h.mark > o.mark:
		u.scope.log.Error("a source partition begins again, with newer records: they are taken for records that were counted; if its topic was made anew, name another kafka.exchange.topic and kafka.group",
			"partition", u.part.Name, "source", h.source, "at", h.to.offset, "counted", o.next.offset)
	}
	o.heard(h)
	u.maxLog = max(u.maxLog, u.table.watermark(u.topics))
	return nil
}

// route numbers a route in the batch.
func (u *unpacking) route(n routeName) uint16 {
	i, known := u.routes[n]
	if !known {
		if len(u.batch.routes) >= maxLocal {
			n.route = otherName
			if i, known = u.routes[n]; known {
				return i
			}
		}
		i = uint16(len(u.batch.routes))
		u.routes[n] = i
		u.batch.routes = append(u.batch.routes, n)
	}
	return i
}

// peer numbers a peer in the batch.
func (u *unpacking) peer(name string) uint16 {
	i, known := u.peers[name]
	if !known {
		if len(u.batch.peers) >= maxLocal {
			name = otherName
			if i, known = u.peers[name]; known {
				return i
			}
		}
		i = uint16(len(u.batch.peers))
		u.peers[name] = i
		u.batch.peers = append(u.batch.peers, name)
	}
	return i
}
