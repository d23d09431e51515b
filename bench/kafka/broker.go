package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/targetside/auditor/ingest"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic      = "access-logs"
	partitions = 4
)

// broker serves the lines of a file, dealt to partitions in turn, until standard
// input ends. It prints its address and the number of records when it has them.
func broker(log string) error {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic))
	if err != nil {
		return err
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerBatchMaxBytes(1<<20))
	if err != nil {
		return err
	}
	defer cl.Close()
	f, err := os.Open(log)
	if err != nil {
		return err
	}
	defer f.Close()
	n := 0
	var once sync.Once
	var failed error
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		r := &kgo.Record{Partition: int32(n % partitions), Value: slices.Clone(lines.Bytes())}
		cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	fmt.Println(c.ListenAddrs()[0], n)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// dropper is a handler that counts what it drops.
type dropper struct {
	mu   sync.Mutex
	left int64
	done context.CancelFunc
}

func (d *dropper) Assigned(_ context.Context, _ ingest.Partition, at ingest.Position) (ingest.Session, ingest.Position, error) {
	return &dropped{d, at}, at, nil
}

type dropped struct {
	*dropper
	at ingest.Position
}

func (s *dropped) Consume(_ context.Context, b *ingest.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left -= int64(len(b.Refs))
	s.at.Offset = b.Next
	if b.Done != nil {
		b.Done()
	}
	if s.left <= 0 {
		s.done()
	}
	return nil
}

func (s *dropped) Released() ingest.Position   { return s.at }
func (s *dropped) Committed(ingest.Position)   {}
func (s *dropped) Close(context.Context) error { return nil }

// drop reads as many records as there are and ends.
func drop(addr string, n int64) error {
	k, err := ingest.NewKafka(ingest.KafkaConfig{Brokers: []string{addr}, Topics: []string{topic}, Group: "drop"})
	if err != nil {
		return err
	}
	ctx, done := context.WithCancel(context.Background())
	defer done()
	return k.Run(ctx, &dropper{left: n, done: done})
}
