package ingest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

// KafkaConfig says what to read from Kafka and how. Brokers, Topics and Group
// are needed; the zero value of everything else is a good default.
type KafkaConfig struct {
	// Source is the index that its partitions carry.
	Source int
	// Brokers are host:port. One that answers is enough to find the others.
	Brokers []string
	// Topics are read as one consumer group, which no other reader uses.
	Topics []string
	Group  string
	// Start is where a partition begins that was never read: KafkaFirst, KafkaLast
	// or, if StartAt is set, at the first record of that time or later.
	Start   KafkaStart
	StartAt time.Time
	// Keyed shares the partitions out among the members of the group. Without it
	// one member reads all of them and the others stand by.
	Keyed bool
	// Whole says that records are not lines: a batch has each as it is, with its size.
	Whole bool
	// Binary says that records are no text: each becomes one line, in base64.
	Binary bool

	// TLS is used unless nil. Without a ServerName the broker's host is expected.
	TLS *tls.Config
	// SASL is the login, nil for none.
	SASL *KafkaSASL
	// Dial opens connections in place of a net.Dialer; it knows nothing of TLS.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Log takes what happens to the group and to connections; never contents of
	// records, never secrets. Default: nowhere.
	Log *slog.Logger

	// MaxWait is how long a broker holds a request back while there is nothing to
	// read. Default 500 ms: it is also how late the end of a partition is seen.
	MaxWait time.Duration
	// SessionTimeout is how long after a member's last sign of life the others
	// take its partitions over. Default 30 s. When a generation of the group ends
	// there is a third of it to settle what was read, and a sixth to commit.
	SessionTimeout time.Duration
	// StallAfter is how long a partition that has records to read may give none.
	// Default 30 s; its connection is then made anew.
	StallAfter time.Duration
	// FetchBytes is how much one request asks for, per partition. Default 1 MiB:
	// 16 MiB were read a tenth faster and took 16 times the memory. A larger record
	// is read all the same.
	FetchBytes int
	// BatchBytes is about how large a Batch becomes. Default 256 KiB.
	BatchBytes int

	tune kafkaTune
}

// KafkaStart is where a partition begins that was never read.
type KafkaStart int

// The ends of a log.
const (
	KafkaFirst KafkaStart = iota
	KafkaLast
)

// KafkaSASL is a login.
type KafkaSASL struct {
	Mechanism string // plain, scram-sha-256 or scram-sha-512
	Username  string
	Password  string
}

// kafkaTune holds what no user sets, and tests do.
type kafkaTune struct {
	commitEvery time.Duration // how often positions are asked for and committed
	endEvery    time.Duration // how often the end of a partition is told
	watchEvery  time.Duration // how often topics are looked at for changes
	heartbeat   time.Duration // at most a third of the session timeout
	metadataTTL time.Duration // how old the known leaders may be
	request     time.Duration // how long an answer may take, beside MaxWait
	retryMin    time.Duration // the first pause after trouble, and the longest
	retryMax    time.Duration
	leaveAfter  time.Duration // how long a rebalance under way may hold up the end
}

func (c *KafkaConfig) setDefaults() {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.MaxWait = cmp.Or(c.MaxWait, 500*time.Millisecond)
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 30*time.Second)
	c.StallAfter = cmp.Or(c.StallAfter, 30*time.Second)
	c.FetchBytes = cmp.Or(c.FetchBytes, 1<<20)
	c.BatchBytes = cmp.Or(c.BatchBytes, 256<<10)
	t := &c.tune
	t.commitEvery = cmp.Or(t.commitEvery, time.Second)
	t.endEvery = cmp.Or(t.endEvery, time.Second)
	t.watchEvery = cmp.Or(t.watchEvery, 5*time.Second)
	t.heartbeat = cmp.Or(t.heartbeat, min(3*time.Second, c.SessionTimeout/3))
	t.metadataTTL = cmp.Or(t.metadataTTL, 3*time.Second)
	t.request = cmp.Or(t.request, 10*time.Second)
	t.retryMin = cmp.Or(t.retryMin, 250*time.Millisecond)
	t.retryMax = cmp.Or(t.retryMax, 30*time.Second)
	t.leaveAfter = cmp.Or(t.leaveAfter, 3*time.Second)
}

func (c *KafkaConfig) check() error {
	switch {
	case len(c.Brokers) == 0:
		return errors.New("kafka: no broker is named")
	case len(c.Topics) == 0:
		return errors.New("kafka: no topic is named")
	case c.Group == "":
		return errors.New("kafka: no consumer group is named")
	case c.Start != KafkaFirst && c.Start != KafkaLast:
		return fmt.Errorf("kafka: no such start: %d", c.Start)
	}
	for _, b := range c.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			return fmt.Errorf("kafka: broker %q is not host:port", b)
		}
	}
	for i, topic := range c.Topics {
		if topic == "" {
			return errors.New("kafka: a topic without a name")
		}
		if slices.Contains(c.Topics[:i], topic) {
			return fmt.Errorf("kafka: topic %s is named twice", topic)
		}
	}
	return nil
}

// Kafka is a set of topics, read as one consumer group.
type Kafka struct {
	cfg       KafkaConfig
	log       *slog.Logger
	link      *kafkaLink
	balancers []kafka.GroupBalancer
	holder    *holderBalancer // nil if keyed

	running atomic.Bool
	standby atomic.Bool
	shared  atomic.Bool
	whole   atomic.Pointer[[]string]

	committing sync.Mutex // held while a commit is under way; taken before a partition's lock

	mu         sync.Mutex
	partitions map[topicPartition]*kafkaPartition
	writers    []*KafkaWriter
	trouble    error // of the group as a whole
}

type topicPartition struct {
	topic     string
	partition int
}

// NewKafka prepares a source; it connects to nothing yet.
func NewKafka(cfg KafkaConfig) (*Kafka, error) {
	cfg.setDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	link, err := newKafkaLink(&cfg)
	if err != nil {
		return nil, err
	}
	k := &Kafka{
		cfg: cfg, link: link,
		log:        cfg.Log.With("source", "kafka", "group", cfg.Group),
		partitions: map[topicPartition]*kafkaPartition{},
	}
	if cfg.Keyed {
		k.balancers = []kafka.GroupBalancer{kafka.RangeGroupBalancer{}, kafka.RoundRobinGroupBalancer{}}
	} else {
		k.holder = &holderBalancer{}
		k.balancers = []kafka.GroupBalancer{k.holder}
	}
	return k, nil
}

// Partitions tells how every partition stands that this process has read, in
// order of topic and number.
func (k *Kafka) Partitions() []PartitionState {
	k.mu.Lock()
	all := make([]*kafkaPartition, 0, len(k.partitions))
	for _, p := range k.partitions {
		all = append(all, p)
	}
	k.mu.Unlock()
	slices.SortFunc(all, func(a, b *kafkaPartition) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), a.id-b.id)
	})
	states := make([]PartitionState, len(all))
	for i, p := range all {
		states[i] = p.snapshot()
	}
	return states
}

// Standby says that this process is a member of the group and another one reads.
func (k *Kafka) Standby() bool { return k.standby.Load() }

// Shared says that other members of the group read partitions of the topics, or that
// nobody does: this process sees a part of them.
func (k *Kafka) Shared() bool { return k.shared.Load() }

// Whole are the names of all partitions of the topics, whoever reads them, as the group
// knew them when its generation began; nil before the first did.
func (k *Kafka) Whole() []string {
	if names := k.whole.Load(); names != nil {
		return *names
	}
	return nil
}

// Err is what keeps the source as a whole from being read now: no broker, no
// such topic, a login refused. It is nil when nothing does; trouble of a single
// partition stands in its state. All of it is tried again, for ever.
func (k *Kafka) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.trouble
}

// troubled remembers and logs what is wrong, once per kind of trouble.
func (k *Kafka) troubled(err error) {
	k.mu.Lock()
	was := k.trouble
	k.trouble = err
	k.mu.Unlock()
	switch {
	case err == nil && was != nil:
		k.log.Info("reading again")
	case err != nil && (was == nil || was.Error() != err.Error()):
		k.log.Error("cannot read; trying again", "error", err)
	}
}

// partition is the one object for a partition, whoever reads it in between.
func (k *Kafka) partition(topic string, id int) *kafkaPartition {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := topicPartition{topic, id}
	p := k.partitions[key]
	if p == nil {
		p = newKafkaPartition(k, topic, id)
		k.partitions[key] = p
	}
	return p
}
