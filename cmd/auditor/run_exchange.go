package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/pipeline"
)

// An exchange is read as a source of its own, behind those of the configuration, by a
// group of its own: the same instances, but any of them may have any part of it.

// kindExchange is the kind of source that an exchange is.
const kindExchange = "exchange"

// handedOver is an exchange, and the sources that send to it.
type handedOver struct {
	topic   string
	sources []int
}

// exchanges lists those of a configuration.
func exchanges(c *config.Config) (out []handedOver) {
	byName := map[string]int{}
	for i := range c.Sources {
		k := c.Sources[i].Kafka
		if k == nil || k.Exchange == nil {
			continue
		}
		name := strings.Join(append(slices.Sorted(slices.Values(k.Brokers)), k.Exchange.Topic), "\n")
		j, known := byName[name]
		if !known {
			j = len(out)
			byName[name] = j
			out = append(out, handedOver{topic: k.Exchange.Topic})
		}
		out[j].sources = append(out[j].sources, i)
	}
	return out
}

// newSources are the sources of a configuration, and behind them its exchanges; none
// of them is open yet.
func (d *daemon) newSources(l *loaded) (out []*source) {
	for i := range l.Sources {
		out = append(out, d.newSource(l, i))
	}
	for n, x := range exchanges(l.Config) {
		number, first := len(l.Sources)+n, x.sources[0]
		for _, i := range x.sources {
			out[i].sends = true
		}
		own := l.identity(first)
		k := *own.Kafka
		k.Topics, k.Group = []string{x.topic}, k.Group+"-exchange"
		own.Source = config.Source{Kafka: &k}
		s := &source{name: x.topic, kind: kindExchange, identity: own, log: d.log}
		s.open = func() (reads, *ingest.DeadLetter, error) {
			c, err := kafkaConfig(number, &k, d.log)
			if err != nil {
				return nil, nil, fmt.Errorf("sources[%d]: %w", first, err)
			}
			c.Start, c.StartAt, c.Whole = ingest.KafkaFirst, time.Time{}, true
			r, err := ingest.NewKafka(c)
			return r, nil, err
		}
		out = append(out, s)
	}
	return out
}

// connect tells the counting of the exchanges.
func connect(live *pipeline.LiveConfig, l *loaded, sources []*source) {
	for n, x := range exchanges(l.Config) {
		number := len(l.Sources) + n
		live.Sources = append(live.Sources, pipeline.Source{Name: x.topic})
		live.Keyed, live.Parts, live.DeadLetters = append(live.Keyed, true), append(live.Parts, false), append(live.DeadLetters, nil)
		if n == 0 {
			live.Outlets, live.Exchanged = make([]pipeline.Outlet, len(sources)), make([][]string, len(sources))
		}
		for _, i := range x.sources {
			live.Outlets[i] = &outlet{source: sources[i], topic: x.topic}
			for _, topic := range l.Sources[i].Kafka.Topics {
				live.Exchanged[number] = append(live.Exchanged[number], pipeline.TopicName(topic))
			}
		}
	}
}

// outlet writes to an exchange over whatever connection its source has at the time.
type outlet struct {
	source *source
	topic  string

	mu     sync.Mutex
	of     *ingest.Kafka
	writer *ingest.KafkaWriter
}

func (o *outlet) now() *ingest.KafkaWriter {
	r, _, _ := o.source.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if k := r.(*ingest.Kafka); k != o.of {
		o.of, o.writer = k, k.Writer(o.topic)
	}
	return o.writer
}

// Topic implements pipeline.Outlet.
func (o *outlet) Topic() string { return o.topic }

// Partitions implements pipeline.Outlet.
func (o *outlet) Partitions(ctx context.Context, topic string) (int, error) {
	return o.now().Partitions(ctx, topic)
}

// Write implements pipeline.Outlet.
func (o *outlet) Write(ctx context.Context, partition int, records [][]byte) error {
	return o.now().Write(ctx, partition, records)
}
