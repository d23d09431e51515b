package ingest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// discard is a handler that looks at nothing.
type discard struct {
	records atomic.Int64
	until   int64
	all     chan struct{}
}

func (d *discard) Assigned(_ context.Context, _ Partition, left Position) (Session, Position, error) {
	return &discarded{d, left}, left, nil
}

type discarded struct {
	d    *discard
	next Position
}

func (s *discarded) Consume(_ context.Context, b *Batch) error {
	n := int64(len(b.Refs))
	s.next.Offset = b.Next
	if b.Done != nil {
		b.Done()
	}
	if total := s.d.records.Add(n); total >= s.d.until && total-n < s.d.until {
		close(s.d.all)
	}
	return nil
}

func (s *discarded) Released() Position          { return s.next }
func (s *discarded) Close(context.Context) error { return nil }
func (s *discarded) Committed(Position)          {}

// BenchmarkKafka consumes 1,000,000 records of 363 bytes from 4 partitions of a
// broker in the same process, whose own work is part of the time.
func BenchmarkKafka(b *testing.B) {
	const records, size = 1_000_000, 363
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		b.Run(name, func(b *testing.B) {
			c := cluster(b, 4, []string{"a"})
			cl := producer(b, c, kgo.ProducerBatchCompression(codec), kgo.MaxBufferedRecords(100_000))
			value := strings.Repeat(`{"status":200,"path":"/seats/17"}`, 11)[:size-10]
			for i := range records {
				r := record("a", int32(i%4), value+numbered(i, 1)[0])
				cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
					if err != nil {
						b.Error(err)
					}
				})
			}
			if err := cl.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
			cfg := KafkaConfig{Brokers: c.ListenAddrs(), Topics: []string{"a"}, Keyed: true}
			b.ResetTimer()
			for i := range b.N {
				cfg.Group = numbered(i, 1)[0]
				k, err := NewKafka(cfg)
				if err != nil {
					b.Fatal(err)
				}
				d := &discard{until: records, all: make(chan struct{})}
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error)
				go func() { done <- k.Run(ctx, d) }()
				<-d.all
				b.StopTimer()
				cancel()
				if err := <-done; err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
