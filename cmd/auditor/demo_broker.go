package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	demoTopic      = "access-logs"
	demoGroup      = "auditor"
	demoPartitions = 4
)

// demoBroker speaks Kafka's protocol on a loopback port and keeps everything in
// memory.
type demoBroker struct {
	cluster *kfake.Cluster
	client  *kgo.Client
	written uint64
}

func newDemoBroker() (*demoBroker, error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(demoPartitions, demoTopic))
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic(demoTopic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	return &demoBroker{cluster: c, client: cl}, nil
}

func (b *demoBroker) close() {
	b.client.Close()
	b.cluster.Close()
}

// write spreads lines over the partitions, as loggers without a key do: the arrivals
// of one question come by all of them.
func (b *demoBroker) write(ctx context.Context, lines [][]byte) error {
	var records []*kgo.Record
	for _, line := range lines {
		records = append(records, &kgo.Record{Value: line, Partition: int32(b.written % demoPartitions)})
		b.written++
	}
	return b.client.ProduceSync(ctx, records...).FirstErr()
}

// trim drops what no restart of the daemon would read again, so that a demo that
// runs all day does not fill the memory.
func (b *demoBroker) trim() error {
	group := b.cluster.GroupInfo(demoGroup)
	if group == nil {
		return nil
	}
	for partition, commit := range group.Commits[demoTopic] {
		if info := b.cluster.PartitionInfo(demoTopic, partition); info == nil || commit.Offset <= info.LogStartOffset {
			continue
		}
		if err := b.cluster.DeleteRecords(demoTopic, partition, commit.Offset); err != nil {
			return fmt.Errorf("embedded broker: drop what was read: %w", err)
		}
	}
	return nil
}

// trimEvery is how often what was read is dropped.
const trimEvery = 10 * time.Second

// feed writes traffic as it happens, until ctx ends.
func (b *demoBroker) feed(ctx context.Context, t *demoTraffic) error {
	trimmed := time.Now()
	err := t.play(ctx, func(lines [][]byte) error {
		if time.Since(trimmed) > trimEvery {
			trimmed = time.Now()
			if err := b.trim(); err != nil {
				return err
			}
		}
		return b.write(ctx, lines)
	}, sleepUntil)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
