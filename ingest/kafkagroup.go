package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

// Run reads until ctx ends, as a member of the group, and hands what it reads to
// h. Whatever is wrong with the cluster is tried again; see Err and Partitions.
// When it returns every session is closed, what they released is committed, and
// the group knows that this member is gone.
func (k *Kafka) Run(ctx context.Context, h Handler) error {
	k.running.Store(true)
	defer k.running.Store(false)
	defer k.standby.Store(false)
	defer k.link.pool.CloseIdleConnections()
	defer k.closeWriters()
	for ctx.Err() == nil {
		topics, err := k.awaitTopics(ctx)
		if err != nil {
			break
		}
		if err := k.runGroup(ctx, h, topics); err != nil {
			return err
		}
	}
	return nil
}

// awaitTopics waits until at least one topic is there.
func (k *Kafka) awaitTopics(ctx context.Context) (topology, error) {
	pause := k.cfg.pause()
	for {
		topics, err := k.link.topology(ctx, k.cfg.Topics)
		if err == nil {
			err = topics.err()
			if len(topics.partitions) > 0 {
				k.troubled(err)
				return topics, nil
			}
		}
		if ctx.Err() != nil {
			return topics, ctx.Err()
		}
		k.troubled(err)
		if !pause.wait(ctx) {
			return topics, ctx.Err()
		}
	}
}

// err is what is wrong with the topics that are missing.
func (t topology) err() error {
	errs := make([]error, 0, len(t.missing))
	for _, topic := range slices.Sorted(maps.Keys(t.missing)) {
		errs = append(errs, t.missing[topic])
	}
	return errors.Join(errs...)
}

// runGroup is a member of the group until ctx ends or topics come or go.
//
// A topic that is not there is left out: kafka-go assigns no partition of any
// topic while one of them is unknown.
func (k *Kafka) runGroup(ctx context.Context, h Handler, topics topology) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var conns connSet
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: k.cfg.Group, Brokers: k.cfg.Brokers,
		Topics:         slices.Sorted(maps.Keys(topics.partitions)),
		Dialer:         k.link.dialer(&conns),
		GroupBalancers: k.balancers,
		// Topics are watched in watch: kafka-go does so on the connection of the
		// heartbeats, and takes a topic that is deleted for one without partitions.
		WatchPartitionChanges: false,
		HeartbeatInterval:     k.cfg.tune.heartbeat,
		SessionTimeout:        k.cfg.SessionTimeout,
		RebalanceTimeout:      k.cfg.SessionTimeout,
		JoinGroupBackoff:      4 * k.cfg.tune.retryMin,
	})
	if err != nil {
		return fmt.Errorf("kafka group %s: %w; %w", k.cfg.Group, err, ErrFinal)
	}
	var settling atomic.Bool
	defer k.leave(group, &conns, &settling)
	for {
		gen, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, kafka.RebalanceInProgress):
			continue
		case err != nil:
			k.troubled(k.link.named("group "+k.cfg.Group, err))
			continue
		}
		k.troubled(topics.err())
		settling.Store(true)
		gen.Start(func(over context.Context) {
			defer settling.Store(false)
			if k.generation(over, gen, h, topics) {
				cancel()
			}
		})
	}
}

// leave ends the membership. kafka-go waits for a rebalance that is under way, up
// to the session timeout; we do so for a while only. A generation that settles
// what it read is waited for.
func (k *Kafka) leave(group *kafka.ConsumerGroup, conns *connSet, settling *atomic.Bool) {
	left := make(chan struct{})
	go func() {
		defer close(left)
		group.Close()
	}()
	patience := time.NewTicker(k.cfg.tune.leaveAfter)
	defer patience.Stop()
	for {
		select {
		case <-left:
			return
		case <-patience.C:
			if !settling.Load() {
				conns.hangUp()
			}
		}
	}
}

// generation reads the partitions that were assigned, until over ends. It returns
// true if topics came or went.
func (k *Kafka) generation(over context.Context, gen *kafka.Generation, h Handler, topics topology) (changed bool) {
	if over.Err() != nil { // it ended before it began
		return false
	}
	ctx, cancel := context.WithCancel(over)
	defer cancel()
	assigned := map[string][]int{}
	count := 0
	for topic, list := range gen.Assignments {
		for _, a := range list {
			assigned[topic] = append(assigned[topic], a.ID)
			count++
		}
	}
	whole := []string{}
	for _, topic := range slices.Sorted(maps.Keys(topics.partitions)) {
		for id := range topics.partitions[topic] {
			whole = append(whole, partitionName(topic, id))
		}
	}
	k.whole.Store(&whole)
	k.standby.Store(count == 0)
	k.shared.Store(count < len(whole))
	if k.holder != nil && count > 0 {
		k.holder.holds(gen.ID)
	}
	k.log.Info("generation of the group begins", "generation", gen.ID, "member", gen.MemberID, "partitions", count)
	defer func() { k.log.Info("generation of the group ended", "generation", gen.ID) }()

	var wg sync.WaitGroup
	gone := make(chan struct{}, 1)
	wg.Go(func() {
		if k.watch(ctx, topics) {
			gone <- struct{}{}
		}
	})
	var mine []*kafkaPartition
	if count > 0 {
		left, err := k.awaitCommitted(ctx, assigned)
		if err == nil {
			k.troubled(topics.err())
			for tp, pos := range left {
				p := k.partition(tp.topic, tp.partition)
				p.assign(pos)
				mine = append(mine, p)
				wg.Go(func() { p.run(ctx, h, pos) })
			}
		}
	}
	as := membership{gen.ID, gen.MemberID}
	tick := time.NewTicker(k.cfg.tune.commitEvery)
	defer tick.Stop()
	for reading := true; reading; {
		select {
		case <-ctx.Done():
			reading = false
		case <-gone:
			reading, changed = false, true
		case <-tick.C:
			k.commit(as, mine)
		}
	}
	cancel()
	wg.Wait()
	k.commit(as, mine)
	return changed
}

// awaitCommitted reads the positions with their metadata: a generation of kafka-go
// knows the offsets only.
func (k *Kafka) awaitCommitted(ctx context.Context, assigned map[string][]int) (map[topicPartition]Position, error) {
	pause := k.cfg.pause()
	for {
		left, err := k.link.committed(ctx, assigned)
		if err == nil || ctx.Err() != nil {
			return left, err
		}
		k.troubled(err)
		if !pause.wait(ctx) {
			return nil, ctx.Err()
		}
	}
}

// watch returns true when topics or their partitions come or go, false when ctx
// ends.
func (k *Kafka) watch(ctx context.Context, known topology) bool {
	tick := time.NewTicker(k.cfg.tune.watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			now, err := k.link.topology(ctx, k.cfg.Topics)
			if err == nil && !maps.Equal(now.partitions, known.partitions) {
				k.log.Info("topics or partitions came or went", "before", known.partitions, "now", now.partitions)
				return true
			}
		}
	}
}

// commit keeps the positions that have changed. What is refused stays to be
// committed: if this member was given up, by whoever reads the partition now.
func (k *Kafka) commit(as membership, partitions []*kafkaPartition) {
	k.committing.Lock()
	defer k.committing.Unlock()
	positions := map[topicPartition]Position{}
	for _, p := range partitions {
		if pos, ok := p.uncommitted(); ok {
			positions[topicPartition{p.topic, p.id}] = pos
		}
	}
	if len(positions) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.cfg.SessionTimeout/6)
	defer cancel()
	refused := k.link.commit(ctx, as, positions)
	for tp, pos := range positions {
		k.partition(tp.topic, tp.partition).committed(pos, refused[tp])
	}
	for _, err := range refused {
		k.log.Warn("positions were not kept", "partitions", len(refused), "generation", as.generation, "error", err)
		break
	}
}

// Check says what keeps the source from being read, as far as that shows without
// joining the group: brokers, TLS, login, topics, rights, and whether the leaders
// of partitions can be reached under the names that the cluster gives them.
func (k *Kafka) Check(ctx context.Context) error {
	if !k.running.Load() {
		defer k.link.pool.CloseIdleConnections()
	}
	topics, err := k.link.topology(ctx, k.cfg.Topics)
	if err != nil {
		return err
	}
	errs := []error{topics.err()}
	all := map[string][]int{}
	for _, topic := range slices.Sorted(maps.Keys(topics.partitions)) {
		all[topic] = []int{0}
		if err := k.checkLeader(ctx, topic); err != nil {
			errs = append(errs, err)
		}
	}
	if len(all) > 0 {
		if _, err := k.link.committed(ctx, all); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (k *Kafka) checkLeader(ctx context.Context, topic string) error {
	p := newKafkaPartition(k, topic, 0)
	first, _, err := k.link.edges(ctx, topic, 0)
	if err != nil {
		return p.named(err)
	}
	conn, err := p.open(ctx)
	if err != nil {
		return p.named(err)
	}
	defer conn.close()
	f, err := conn.fetch(ctx, first, 1, 0)
	if err == nil && f.code != 0 && f.code != kafka.OffsetOutOfRange {
		err = f.code
	}
	return p.named(err)
}
