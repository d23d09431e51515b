package ingest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/segmentio/kafka-go"
)

// kafkaPartition is one partition of a topic. One goroutine reads it and makes
// every call of its session.
type kafkaPartition struct {
	k     *Kafka
	topic string
	id    int

	mu       sync.Mutex
	state    PartitionState
	released Position // what the session last said, offset -1 for nothing yet
	kept     Position // what the broker has of that
	unsure   bool     // whether it has that or what was committed since
	current  Session  // that is under way, nil for none
}

// partitionName names a partition among all that are read.
func partitionName(topic string, id int) string { return fmt.Sprintf("kafka %s/%d", topic, id) }

func newKafkaPartition(k *Kafka, topic string, id int) *kafkaPartition {
	return &kafkaPartition{k: k, topic: topic, id: id, state: PartitionState{
		Partition: Partition{Source: k.cfg.Source, Name: partitionName(topic, id)},
		Next:      -1, End: -1, Committed: -1,
	}}
}

func (p *kafkaPartition) snapshot() PartitionState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *kafkaPartition) update(f func(s *PartitionState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.state)
}

// assign notes where the group left the partition.
func (p *kafkaPartition) assign(left Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Assigned, p.state.Committed = true, left.Offset
	p.kept, p.released, p.unsure = left, Position{Offset: -1}, false
}

// resume is where a new session begins: where a restart would begin at this moment.
// What earlier sessions released and was not committed never will be: the new
// session decides anew, and must not find its decisions overruled by old ones after
// a crash. A commit that is under way is waited for.
func (p *kafkaPartition) resume(ctx context.Context, left Position) (Position, error) {
	p.k.committing.Lock()
	defer p.k.committing.Unlock()
	p.mu.Lock()
	p.released = Position{Offset: -1}
	unsure := p.unsure
	p.mu.Unlock()
	if unsure {
		has, err := p.k.link.committed(ctx, map[string][]int{p.topic: {p.id}})
		if err != nil {
			return left, err
		}
		p.assign(has[topicPartition{p.topic, p.id}])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept.Offset >= 0 {
		left = p.kept
	}
	return left, nil
}

func (p *kafkaPartition) uncommitted() (Position, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.released, p.released.Offset >= 0 && p.released != p.kept
}

func (p *kafkaPartition) committed(pos Position, err error) {
	p.mu.Lock()
	if err != nil {
		p.state.Refused++
		p.unsure = p.unsure || !isCode(err)
		p.mu.Unlock()
		return
	}
	p.kept, p.state.Committed, p.unsure = pos, pos.Offset, false
	s := p.current
	p.mu.Unlock()
	if s != nil {
		s.Committed(pos)
	}
}

func (p *kafkaPartition) begun(s Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = s
}

func (p *kafkaPartition) named(err error) error {
	return p.k.link.named(fmt.Sprintf("%s/%d", p.topic, p.id), err)
}

// troubled remembers and logs what keeps the partition from being read, once per
// kind of trouble; nil when nothing does any more.
func (p *kafkaPartition) troubled(err error) {
	var was error
	p.update(func(s *PartitionState) { was, s.Err = s.Err, err })
	switch {
	case err == nil && was != nil:
		p.k.log.Info("partition is read again", "topic", p.topic, "partition", p.id)
	case err != nil && (was == nil || was.Error() != err.Error()):
		p.k.log.Warn("partition cannot be read; trying again", "topic", p.topic, "partition", p.id, "error", err)
	}
}

// truncatedError is ErrKafkaTruncated with the place to go on at.
type truncatedError struct{ next, end int64 }

func (e *truncatedError) Error() string {
	return fmt.Sprintf("%v: it ends at %d, %d was to be read next; the topic was made anew, or a replica without its newest records leads", ErrKafkaTruncated, e.end, e.next)
}

func (e *truncatedError) Unwrap() error { return ErrKafkaTruncated }

// run reads from where the group left the partition until ctx ends. When its
// session fails it begins a new one after a pause; other partitions do not notice.
func (p *kafkaPartition) run(ctx context.Context, h Handler, left Position) {
	defer p.update(func(s *PartitionState) { s.Assigned = false })
	pause := p.k.cfg.pause()
	limit := int64(-1) // the end of a log that was found to be too short
	for {
		before := p.snapshot().Records
		next, err := p.session(ctx, h, left, limit)
		if ctx.Err() != nil {
			return
		}
		left, limit = next, -1
		if errors.Is(err, ErrKafkaTruncated) {
			limit = left.Offset
		}
		p.troubled(err)
		p.update(func(s *PartitionState) { s.Restarts++ })
		if p.snapshot().Records > before || errors.Is(err, ErrAnew) {
			pause.reset()
		}
		if !pause.wait(ctx) {
			return
		}
	}
}

// session reads until something goes wrong that a new session may put right. It
// returns where that one begins. With a limit, no handler's memory of what was
// once there makes it begin behind that.
func (p *kafkaPartition) session(ctx context.Context, h Handler, left Position, limit int64) (Position, error) {
	if limit < 0 {
		var err error
		if left, err = p.resume(ctx, left); err != nil {
			return left, err
		}
	}
	if left.Offset < 0 {
		start, err := p.start(ctx)
		if err != nil {
			return left, p.named(err)
		}
		left.Offset = start
	}
	session, from, err := h.Assigned(ctx, p.snapshot().Partition, left)
	if err != nil {
		return left, fmt.Errorf("%s/%d: %w", p.topic, p.id, err)
	}
	p.begun(session)
	defer p.begun(nil)
	if from.Offset < 0 || limit >= 0 && from.Offset > limit {
		from = left
	}
	err = p.read(ctx, session, from.Offset)
	var truncated *truncatedError
	if errors.As(err, &truncated) {
		p.update(func(s *PartitionState) { s.Truncations++ })
		err = errors.Join(err, p.end(session))
		session.Released() // of a log that is no more
		left = Position{Offset: truncated.end}
		p.mu.Lock()
		p.released = left
		p.mu.Unlock()
		return left, err
	}
	if closing := p.end(session); closing != nil && ctx.Err() == nil {
		err = errors.Join(err, closing)
	}
	p.ask(session)
	return left, err
}

// end gives a session a third of the session timeout to settle: the heartbeats
// have ended by then, and positions are still to be committed.
func (p *kafkaPartition) end(s Session) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.k.cfg.SessionTimeout/3)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		p.k.log.Error("not all that was read could be settled; it will be read again", "topic", p.topic, "partition", p.id, "error", err)
		return fmt.Errorf("%s/%d: closing: %w", p.topic, p.id, err)
	}
	return nil
}

// ask takes note of what may be committed.
func (p *kafkaPartition) ask(s Session) {
	pos := s.Released()
	if len(pos.Metadata) > MaxMetadata {
		p.k.log.Error("a position was not kept: its metadata is too long", "topic", p.topic, "partition", p.id, "bytes", len(pos.Metadata), "limit", MaxMetadata)
		p.update(func(s *PartitionState) { s.Refused++ })
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = pos
}

// start is where the configuration says that a partition begins.
func (p *kafkaPartition) start(ctx context.Context) (int64, error) {
	if !p.k.cfg.StartAt.IsZero() {
		return p.k.link.since(ctx, p.topic, p.id, p.k.cfg.StartAt)
	}
	first, end, err := p.k.link.edges(ctx, p.topic, p.id)
	if p.k.cfg.Start == KafkaLast {
		return end, err
	}
	return first, err
}

// open connects to the partition's leader.
func (p *kafkaPartition) open(ctx context.Context) (*fetchConn, error) {
	address, err := p.k.link.leader(ctx, p.topic, p.id)
	if err != nil {
		return nil, err
	}
	return p.k.link.openFetch(ctx, address, p.topic, p.id)
}

// isTimeout tells an answer that did not come in time from one that went wrong.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() && !isCode(err)
}

// isCode says that err is a broker's answer, some of which call themselves
// timeouts.
func isCode(err error) bool {
	var code kafka.Error
	return errors.As(err, &code)
}
