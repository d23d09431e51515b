package pipeline

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
)

// outgoing is what a decoder needs whose arrivals are sent.
type outgoing struct {
	writers     []*parcelWriter // by partition of the exchange
	originators []string        // by number
	mac         hash.Hash
	sum         []byte
	keyHash     [16]byte // of the key at hand, as keys are shown
}

// hash is what the identity of a question is made of.
func (o *outgoing) hash(key []byte) (h [2]uint64) {
	o.mac.Reset()
	o.mac.Write(key)
	o.sum = o.mac.Sum(o.sum[:0])
	copy(o.keyHash[:], o.sum)
	return [2]uint64{binary.LittleEndian.Uint64(o.keyHash[:]), binary.LittleEndian.Uint64(o.keyHash[8:])}
}

// hand gives an arrival to its partition of the exchange.
func (o *outgoing) hand(d *decoder, partition uint64) {
	ledger := &d.shared.ledger
	o.writers[partition].add(d, ledger.Late(ledger.Tick(&d.arrival), max(d.mark, d.before)))
}

// newDecoders makes the decoders of an exchange's senders.
func (x *exchange) newDecoders(c *LiveConfig, of *shared, n int) {
	shared := *of
	shared.hasher = hasher{maphash.MakeSeed(), &x.key}
	shared.shardCount, shared.spare = 0, make(chan *batch)
	known := &names{ring: c.Keys, claimedAt: shared.claimedAt}
	originators := make([]string, int(shared.claimedAt)+len(c.Keys.Accepted()))
	x.originators = map[string]uint16{}
	for i := range originators {
		originators[i] = known.Originator(uint16(i))
		x.originators[originators[i]] = uint16(i)
	}
	x.decoders = make(chan *decoder, n)
	for i := range n {
		own := shared
		d := newDecoder(i, &own, &c.Config)
		d.live, d.parsers = true, make([]*accesslog.Parser, len(c.Sources))
		d.exchange = &outgoing{originators: originators, mac: x.newKeyHash()}
		x.decoders <- d
	}
}

// linger is how long arrivals may wait for others to be sent with: each write is a
// request for each partition of the exchange.
const linger = 100 * time.Millisecond

// sender is a source partition while it is assigned. It has no memory that another
// process would need: all that it knows is in the exchange when it is released.
type sender struct {
	live     *Live
	exchange *exchange
	out      Outlet
	part     *sentPart
	of       int // partitions of the exchange
	siblings int // partitions of the source's topic
	writers  []*parcelWriter
	read     int64        // everything below is with the writers, or sent
	mark     int64        // watermark there
	counts   SourceCounts // of what is with the writers
	wrote    time.Time    // when what they had was last sent
	told     time.Time    // when every partition was last told
	atEnd    time.Time    // since when it is at its end and nothing came; zero: there is more
	failed   error        // nothing is sent any more
}

// send begins a session of a source partition.
func (l *Live) send(ctx context.Context, p ingest.Partition, left ingest.Position) (ingest.Session, ingest.Position, error) {
	x, out := l.exchange, l.cfg.Outlets[p.Source]
	s := &sender{live: l, exchange: x, out: out}
	was, err := parseSent(left)
	if err != nil {
		return nil, left, err
	}
	name, _, isOne := splitPartition(p.Name)
	topic, isOurs := strings.CutPrefix(name, partitionPrefix)
	if !isOne || !isOurs {
		return nil, left, exchangeError("%s is no partition of a topic", p.Name)
	}
	if s.of, err = out.Partitions(ctx, out.Topic()); err != nil {
		return nil, left, err
	}
	if s.siblings, err = out.Partitions(ctx, topic); err != nil {
		return nil, left, err
	}
	if was.Exchange != "" && was.Exchange != out.Topic() {
		return nil, left, exchangeError("kafka.exchange.topic is %s, and was %s where kafka.group has left %s; what is in that one would not be counted: name it again, or another kafka.group", out.Topic(), was.Exchange, p.Name)
	}
	if was.Of != 0 && was.Of != s.of {
		return nil, left, exchangeError("topic %s has %d partitions, and had %d when %s was last read: the arrivals of one question would be counted apart; name another kafka.exchange.topic and kafka.group", out.Topic(), s.of, was.Of, p.Name)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	part := x.parts[p.Name]
	switch {
	case part == nil:
		part = &sentPart{Partition: p, next: left.Offset, mark: was.Mark, sent: max(left.Offset, was.Sent)}
		x.parts[p.Name] = part
	case part.assigned && part.Source != p.Source:
		return nil, left, exchangeError("%s is read by sources[%d] already: take it out of one", p.Name, part.Source)
	case left.Offset > part.next: // another instance has read on
		part.next, part.mark, part.sent = left.Offset, was.Mark, max(left.Offset, was.Sent, part.sent)
	}
	part.Source, part.assigned, part.idle = p.Source, true, false
	s.part, s.read, s.mark, s.counts = part, part.next, part.mark, *newSourceCounts()
	s.begin()
	return s, ingest.Position{Offset: part.next, Metadata: left.Metadata}, nil
}

// begin makes the writers, whose parcels go on behind all that was sent.
func (s *sender) begin() {
	for range s.of {
		s.writers = append(s.writers, newParcelWriter(s.part.sent, cmp.Or(s.live.cfg.parcelSize, parcelSize)))
	}
}

func parseSent(left ingest.Position) (was sentState, err error) {
	if left.Metadata == "" {
		return sentState{Mark: noTick}, nil
	}
	if err := json.Unmarshal([]byte(left.Metadata), &was); err != nil || was.Version != sentVersion {
		return was, exchangeError("kafka.group was used without kafka.exchange, or by another program: name another one")
	}
	return was, nil
}

// Consume implements ingest.Session.
func (s *sender) Consume(ctx context.Context, b *ingest.Batch) (err error) {
	if b.Done != nil {
		defer b.Done()
	}
	if s.failed != nil {
		return s.failed
	}
	defer func() { s.failed = err }()
	s.counts.add(&SourceCounts{Gap: uint64(b.Gap) + s.known(b), Empty: uint64(b.Empty)})
	if len(b.Data) > 0 {
		out, err := s.decode(ctx, b)
		if err != nil {
			return err
		}
		s.mark = max(s.mark, out.maxLog)
		s.counts.add(&SourceCounts{Lines: uint64(out.records), Ignored: out.ignored, Quarantined: out.quarantined})
	}
	s.read = b.Next
	idle, due := s.idle(b), time.Since(s.told) >= time.Second
	if some := s.waiting(); some > 0 && some < parcelSize && !due {
		if wait := s.live.cfg.linger - time.Since(s.wrote); wait > 0 && !b.AtEnd {
			return nil // there is more
		} else if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
	if s.wrote = time.Now(); due {
		s.told = s.wrote
	}
	return s.write(ctx, idle, due)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waiting is how many bytes are with the writers.
func (s *sender) waiting() (n int) {
	for _, w := range s.writers {
		n += len(w.body)
	}
	return n
}

// known is how many records of a batch receivers would take for others that they have
// seen, because the log was cut and goes on with them in the place of those. They are
// not sent.
func (s *sender) known(b *ingest.Batch) (n uint64) {
	last := int64(-1)
	for _, r := range b.Refs {
		if r.Offset < s.part.sent && r.Offset != last {
			last = r.Offset
			n++
		}
	}
	return n
}

// decode leaves the arrivals of a batch with the writers.
func (s *sender) decode(ctx context.Context, b *ingest.Batch) (*batch, error) {
	d, err := s.live.take(ctx, s.exchange.decoders, s.part.Partition, b.Data)
	if err != nil {
		return nil, err
	}
	defer func() { s.exchange.decoders <- d }()
	d.mark, d.shards, d.exchange.writers = s.mark, s.of, s.writers
	return d.decode(s.part.Source, b.Block), nil
}

// idle is when the partition was found at its end, with nothing having come for as
// long as makes it idle, in ms; 0 if it was not.
func (s *sender) idle(b *ingest.Batch) int64 {
	if !b.AtEnd {
		s.atEnd = time.Time{}
		return 0
	}
	looked := s.live.cfg.Clock()
	if !b.Asked.IsZero() {
		looked = looked.Add(-time.Since(b.Asked))
	}
	if s.atEnd.IsZero() || b.Next > b.Offset {
		s.atEnd = looked
	}
	if looked.Sub(s.atEnd) < s.live.cfg.Idle {
		return 0
	}
	return looked.UnixMilli()
}

// write sends what is with the writers, to every partition of the exchange if that is
// due, and waits until it is acknowledged.
func (s *sender) write(ctx context.Context, idle int64, due bool) error {
	head := parcelHead{of: s.of, source: s.part.Name, siblings: s.siblings, mark: ms(s.mark), idle: idle}
	to := max(s.read, s.part.sent)
	errs := make([]error, s.of)
	var writes sync.WaitGroup
	for i, w := range s.writers {
		if due || !w.empty() {
			parcels := w.take(head, s.exchange.print, to, ms(s.part.mark))
			writes.Go(func() { errs[i] = s.out.Write(ctx, i, parcels) })
		}
	}
	writes.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.exchange.mu.Lock()
	defer s.exchange.mu.Unlock()
	s.exchange.count(s.part.Source, &s.counts)
	s.counts = *newSourceCounts()
	s.part.next, s.part.mark, s.part.sent, s.part.idle = s.read, s.mark, to, idle != 0
	return nil
}

// Released implements ingest.Session.
func (s *sender) Released() ingest.Position {
	p := s.part
	state := sentState{Version: sentVersion, Exchange: s.out.Topic(), Of: s.of, Mark: p.mark}
	if p.sent != p.next {
		state.Sent = p.sent
	}
	meta, _ := json.Marshal(state) // of numbers and a name
	return ingest.Position{Offset: p.next, Metadata: string(meta)}
}

// Committed implements ingest.Session.
func (s *sender) Committed(ingest.Position) {}

// Close implements ingest.Session.
func (s *sender) Close(context.Context) error {
	s.exchange.mu.Lock()
	defer s.exchange.mu.Unlock()
	s.part.assigned = false
	return nil
}
