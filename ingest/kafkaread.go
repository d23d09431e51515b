package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// A damaged batch or a log that ends too early may be a passing state of the
// broker: it is asked this often, with growing pauses, before that is believed.
const (
	damagedTries   = 3
	truncatedTries = 3
)

// partitionRead is the reading of one partition during one session.
type partitionRead struct {
	p       *kafkaPartition
	session Session
	conn    *fetchConn // nil while there is none
	records recordReader
	batch   batcher
	pause   *pause
	size    int // of the next request

	progress time.Time // when there last was nothing to complain about
	asked    time.Time // when the session was last asked what is released
	told     time.Time // when the end was last told

	damaged   batchError // the last, and how often
	damages   int
	truncated int
}

// consumeError is an error of the session, as against one of the source.
type consumeError struct{ err error }

func (e *consumeError) Error() string { return e.err.Error() }
func (e *consumeError) Unwrap() error { return e.err }

// read reads from an offset on. It returns nil when ctx ends, and an error when
// the session failed or must begin elsewhere; other trouble it tries again.
func (p *kafkaPartition) read(ctx context.Context, s Session, from int64) error {
	r := &partitionRead{
		p: p, session: s, pause: p.k.cfg.pause(), size: p.k.cfg.FetchBytes,
		progress: time.Now(), asked: time.Now(),
	}
	r.batch = batcher{next: from, size: p.k.cfg.BatchBytes, whole: p.k.cfg.Whole, binary: p.k.cfg.Binary, take: func(b *Batch) error { return r.consume(ctx, b) }}
	p.update(func(s *PartitionState) { s.Next = from })
	defer r.hangUp()
	for ctx.Err() == nil {
		r.ask()
		err := r.step(ctx)
		var session *consumeError
		var truncated *truncatedError
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			continue
		case errors.As(err, &session):
			return fmt.Errorf("%s/%d: %w", p.topic, p.id, session.err)
		case errors.As(err, &truncated):
			return fmt.Errorf("%s/%d: %w", p.topic, p.id, err)
		}
		r.hangUp()
		p.troubled(p.named(err))
		if !r.pause.wait(ctx) {
			return nil
		}
	}
	return nil
}

func (r *partitionRead) hangUp() {
	if r.conn != nil {
		r.conn.close()
		r.conn = nil
	}
}

// ask asks the session for what is released, if it is time.
func (r *partitionRead) ask() {
	if time.Since(r.asked) >= r.p.k.cfg.tune.commitEvery {
		r.asked = time.Now()
		r.p.ask(r.session)
	}
}

func (r *partitionRead) consume(ctx context.Context, b *Batch) error {
	next := b.Next // the session gives b back, and another partition may take it
	if err := r.session.Consume(ctx, b); err != nil {
		return &consumeError{err}
	}
	told := r.batch.told
	r.batch.told = tally{}
	r.p.update(func(s *PartitionState) {
		s.Next = next
		s.Records += told.records
		s.Bytes += told.bytes
		s.Empty += told.empty
		s.Hidden += told.hidden
		s.Gap += told.gap
		if told.records > 0 {
			s.Progress = time.Now()
		}
	})
	r.ask()
	return nil
}

// step asks the broker once and hands over what it gives.
func (r *partitionRead) step(ctx context.Context) error {
	cfg := &r.p.k.cfg
	if r.conn == nil {
		conn, err := r.p.open(ctx)
		if err != nil {
			return err
		}
		r.conn = conn
	}
	r.batch.asked = time.Now()
	f, err := r.conn.fetch(ctx, r.batch.next, r.size, cfg.MaxWait)
	if isTimeout(err) {
		r.p.update(func(s *PartitionState) { s.Stalls++ })
		return fmt.Errorf("broker %s: %w: no answer within %v", r.conn.address, ErrKafkaStalled, cfg.MaxWait+cfg.tune.request)
	}
	if err != nil {
		return err
	}
	switch f.code {
	case 0:
	case kafka.OffsetOutOfRange:
		return r.outOfRange(ctx)
	default:
		return f.code
	}
	r.truncated = 0
	r.size = cfg.FetchBytes
	r.p.update(func(s *PartitionState) { s.End = f.end })
	before := r.batch.next
	if f.start > before { // retention took them between the question and the answer
		if err := r.batch.jump(f.start); err != nil {
			return err
		}
	}
	cut, err := r.records.read(f, r.batch.next, &r.batch)
	if err != nil {
		return r.unreadable(err)
	}
	atEnd := r.batch.next >= f.end
	if r.batch.next > before {
		r.damages = 0
		r.pause.reset()
	}
	if atEnd && (r.batch.next > before || time.Since(r.told) >= cfg.tune.endEvery) {
		r.told = time.Now()
		err = r.batch.flush(true)
	} else {
		err = r.batch.flush(false)
	}
	if err != nil {
		return err
	}
	if r.batch.next > before || f.stable <= r.batch.next {
		r.progress = time.Now()
		r.p.troubled(nil)
		return nil
	}
	if cut > r.size { // of the kinds of broker that cut off the first batch, too
		r.size = cut
		return nil
	}
	if time.Since(r.progress) >= cfg.StallAfter {
		r.progress = time.Now()
		r.p.update(func(s *PartitionState) { s.Stalls++ })
		return fmt.Errorf("broker %s: %w for %v, from offset %d to %d", r.conn.address, ErrKafkaStalled, cfg.StallAfter, r.batch.next, f.stable)
	}
	return nil
}

// outOfRange finds out on which side of the log the next offset lies. Before its
// start, records are gone, and how many is known. Behind its end, nobody knows
// what was in between: reading goes on at the end, with a new session, rather
// than at the start, where all that is still there would be counted again.
func (r *partitionRead) outOfRange(ctx context.Context) error {
	first, end, err := r.p.k.link.edges(ctx, r.p.topic, r.p.id)
	if err != nil {
		return err
	}
	next := r.batch.next
	r.p.update(func(s *PartitionState) { s.End = end })
	switch {
	case next < first:
		r.p.k.log.Error("records were deleted before they were read", "topic", r.p.topic, "partition", r.p.id, "records", first-next, "from", next, "to", first)
		if err := r.batch.jump(first); err != nil {
			return err
		}
		return r.batch.flush(false)
	case next > end:
		// A replica that has just begun to lead may not know its end yet.
		if r.truncated++; r.truncated >= truncatedTries {
			return &truncatedError{next, end}
		}
		return fmt.Errorf("%w: it ends at %d, %d is to be read next", ErrKafkaTruncated, end, next)
	}
	return kafka.OffsetOutOfRange // it was, and is no more: ask again
}

// unreadable hands over what came before a damaged batch. If that is damaged
// every time, it is passed over as a gap: one batch must not blind us for ever.
func (r *partitionRead) unreadable(err error) error {
	var damaged *batchError
	if !errors.As(err, &damaged) {
		return err
	}
	if err := r.batch.flush(false); err != nil {
		return err
	}
	if damaged.at != r.damaged.at {
		r.damages = 0
	}
	r.damaged = *damaged
	if r.damages++; r.damages < damagedTries || damaged.next <= r.batch.next {
		return err
	}
	r.p.k.log.Error("a damaged part of the log is passed over", "topic", r.p.topic, "partition", r.p.id, "from", r.batch.next, "to", damaged.next, "error", damaged.err)
	r.damages = 0
	if err := r.batch.jump(damaged.next); err != nil {
		return err
	}
	return r.batch.flush(false)
}
