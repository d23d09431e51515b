package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// KafkaWriter appends records to a topic of a source's cluster, for handlers that pass
// on what they are given. It knows no retries: whoever writes decides what to do about
// a record of which nobody knows whether it was kept.
type KafkaWriter struct {
	topic  string
	source *kafkaLink
	link   *kafkaLink
}

// writeBytes is about how much goes out in one request. A broker takes 1 MiB by default
// (message.max.bytes).
const writeBytes = 600 << 10

// Writer prepares a writer to a topic; the topic must exist. It works until the source
// has ended.
func (k *Kafka) Writer(topic string) *KafkaWriter {
	link := *k.link
	link.pool = &kafka.Transport{
		ClientID: kafkaClientID, Dial: link.dial, SASL: link.login, DialTimeout: link.request,
		MetadataTTL: k.cfg.tune.metadataTTL, MetadataTopics: []string{topic},
	}
	link.client = &kafka.Client{Addr: kafka.TCP(link.brokers...), Transport: link.pool, Timeout: link.request}
	w := &KafkaWriter{topic: topic, source: k.link, link: &link}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writers = append(k.writers, w)
	return w
}

func (k *Kafka) closeWriters() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.writers {
		w.link.pool.CloseIdleConnections()
	}
}

// Topic is where it writes to.
func (w *KafkaWriter) Topic() string { return w.topic }

// Partitions is how many partitions its topic has, or one of the source's topics.
func (w *KafkaWriter) Partitions(ctx context.Context, topic string) (int, error) {
	link := w.source
	if topic == w.topic {
		link = w.link
	}
	t, err := link.topology(ctx, []string{topic})
	if err == nil && t.partitions[topic] == 0 {
		err = t.err()
	}
	return t.partitions[topic], err
}

// Write appends records to a partition, in order, and returns when all replicas that
// are in sync have them. After an error some of them may be there, or come to be there
// later; when ctx ends that is so as well.
func (w *KafkaWriter) Write(ctx context.Context, partition int, records [][]byte) error {
	for len(records) > 0 {
		n, size := 0, 0
		var some []kafka.Record
		for n < len(records) && (n == 0 || size+len(records[n]) <= writeBytes) {
			some = append(some, kafka.Record{Value: kafka.NewBytes(records[n])})
			size += len(records[n])
			n++
		}
		records = records[n:]
		if err := w.produce(ctx, partition, some); err != nil {
			return w.named(partition, err)
		}
	}
	return nil
}

func (w *KafkaWriter) produce(ctx context.Context, partition int, records []kafka.Record) error {
	ctx, cancel := context.WithTimeout(ctx, w.link.request)
	defer cancel()
	res, err := w.link.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: w.topic, Partition: partition, RequiredAcks: kafka.RequireAll, Compression: kafka.Lz4,
		Records: kafka.NewRecordReader(records...),
	})
	if err != nil {
		return w.link.unreached(ctx, err)
	}
	return res.Error
}

func (w *KafkaWriter) named(partition int, err error) error {
	doing := fmt.Sprintf("write to %s/%d", w.topic, partition)
	if errors.Is(err, kafka.TopicAuthorizationFailed) {
		return fmt.Errorf("%s: %w: user %q needs Write and Describe on the topic", doing, ErrKafkaForbidden, w.link.user)
	}
	return w.link.named(doing, err)
}
