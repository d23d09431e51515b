package ingest

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

// The queue of dead letters holds this many records and bytes; what comes while
// it is full is dropped and counted, for reading never waits for it.
const (
	deadQueue = 10_000
	deadBytes = 32 << 20
)

// deadRecord is the longest record that is kept whole: a broker refuses messages
// of more than 1 MiB by default (message.max.bytes). Of longer ones the beginning
// is kept, with the header truncated.
const deadRecord = 900 << 10

// deadBatch is how many records go out together.
const deadBatch = 500

// DeadLetter writes records that could not be read to a topic, as they were, with
// headers: reason, source (the partition's name), offset, line and, if only the
// beginning is there, truncated (the full length in bytes).
type DeadLetter struct {
	topic   string
	link    *kafkaLink
	failure func(error) // told of the first failure in a row

	queue  chan kafka.Message
	bytes  atomic.Int64 // of values in the queue
	stop   chan struct{}
	done   chan struct{}
	closed atomic.Bool

	written, dropped, failed atomic.Int64
}

// DeadLetters counts what became of records: written, dropped because the queue
// was full, and refused by the cluster.
type DeadLetters struct{ Written, Dropped, Failed int64 }

// DeadLetter opens a topic of the same cluster for records that cannot be read;
// the topic must exist. One serves all partitions; it is to be closed.
func (k *Kafka) DeadLetter(topic string) *DeadLetter {
	d := &DeadLetter{
		topic: topic, link: k.link,
		queue: make(chan kafka.Message, deadQueue),
		stop:  make(chan struct{}), done: make(chan struct{}),
		failure: func(err error) {
			k.log.Error("dead letters cannot be written; they are counted", "topic", topic, "error", err)
		},
	}
	go d.run(&k.cfg)
	return d
}

// Put takes a copy of a record and returns at once.
func (d *DeadLetter) Put(record []byte, reason string, from Partition, at Ref) {
	if d.closed.Load() || d.bytes.Load()+int64(len(record)) > deadBytes {
		d.dropped.Add(1)
		return
	}
	headers := []kafka.Header{
		{Key: "reason", Value: []byte(reason)},
		{Key: "source", Value: []byte(from.Name)},
		{Key: "offset", Value: strconv.AppendInt(nil, at.Offset, 10)},
		{Key: "line", Value: strconv.AppendInt(nil, at.Line, 10)},
	}
	if len(record) > deadRecord {
		headers = append(headers, kafka.Header{Key: "truncated", Value: strconv.AppendInt(nil, int64(len(record)), 10)})
		record = record[:deadRecord]
	}
	value := append(make([]byte, 0, len(record)), record...)
	d.bytes.Add(int64(len(value)))
	select {
	case d.queue <- kafka.Message{Value: value, Headers: headers}:
	default:
		d.bytes.Add(-int64(len(value)))
		d.dropped.Add(1)
	}
}

// Counts is what became of the records so far.
func (d *DeadLetter) Counts() DeadLetters {
	return DeadLetters{Written: d.written.Load(), Dropped: d.dropped.Load(), Failed: d.failed.Load()}
}

// Close writes what is queued until ctx ends. Records that come later are dropped.
func (d *DeadLetter) Close(ctx context.Context) error {
	if !d.closed.Swap(true) {
		close(d.stop)
	}
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("dead letters to topic %s: %d bytes were not written: %w", d.topic, d.bytes.Load(), ctx.Err())
	}
}

// run writes what is queued, many at a time.
func (d *DeadLetter) run(cfg *KafkaConfig) {
	defer close(d.done)
	pool := &kafka.Transport{
		ClientID: kafkaClientID, Dial: d.link.dial, SASL: d.link.login, DialTimeout: d.link.request,
		MetadataTTL: cfg.tune.metadataTTL, MetadataTopics: []string{d.topic},
	}
	defer pool.CloseIdleConnections()
	w := &kafka.Writer{
		Addr: kafka.TCP(d.link.brokers...), Topic: d.topic, Transport: pool, RequiredAcks: kafka.RequireAll,
		// All of a batch is there when it begins: nothing is gained by waiting.
		BatchSize: deadBatch, BatchBytes: 1 << 20, BatchTimeout: 10 * time.Millisecond,
		MaxAttempts: 3, WriteBackoffMax: time.Second, ReadTimeout: d.link.request, WriteTimeout: d.link.request,
	}
	defer w.Close()
	failing := false
	batch := make([]kafka.Message, 0, deadBatch)
	for stopped := false; ; {
		batch = batch[:0]
		if !stopped {
			select {
			case m := <-d.queue:
				batch = append(batch, m)
			case <-d.stop:
				stopped = true
			}
		}
	fill:
		for len(batch) < deadBatch {
			select {
			case m := <-d.queue:
				batch = append(batch, m)
			default:
				break fill
			}
		}
		if len(batch) > 0 {
			err := d.write(w, batch)
			if err != nil && !failing {
				d.failure(d.link.named("topic "+d.topic, err))
			}
			failing = err != nil
		} else if stopped {
			return
		}
	}
}

// write writes a batch, or as much of it as the cluster takes.
func (d *DeadLetter) write(w *kafka.Writer, batch []kafka.Message) (failure error) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*d.link.request)
	defer cancel()
	err := w.WriteMessages(ctx, batch...)
	each, _ := err.(kafka.WriteErrors)
	for i := range batch {
		d.bytes.Add(-int64(len(batch[i].Value)))
		if each != nil {
			err = each[i]
		}
		if err == nil {
			d.written.Add(1)
		} else {
			d.failed.Add(1)
			failure = err
		}
	}
	return failure
}
