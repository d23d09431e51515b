package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// inTime bounds every wait of these tests; none of them takes nearly as long.
const inTime = 20 * time.Second

// eventually waits until what it is asked for is so.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(inTime)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond) // a poll, bounded by the deadline
	}
}

// cluster is a Kafka of one broker on the loopback, with topics of n partitions.
func cluster(t testing.TB, n int32, topics []string, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	opts = append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.SeedTopics(n, topics...),
		kfake.GroupMinSessionTimeout(100 * time.Millisecond),
	}, opts...)
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// producer writes to the partition that a record names.
func producer(t testing.TB, c *kfake.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	opts = append([]kgo.Opt{
		kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0),
	}, opts...)
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func record(topic string, partition int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
}

// produce writes values, in one batch, to a partition.
func produce(t testing.TB, cl *kgo.Client, topic string, partition int32, values ...string) {
	t.Helper()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, record(topic, partition, v))
	}
	ctx, cancel := context.WithTimeout(t.Context(), inTime)
	defer cancel()
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// numbered are n values, each of which says which one it is.
func numbered(from, n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("line %d", from+i)
	}
	return values
}

// quick is a configuration that waits for nothing long.
func quick(c *kfake.Cluster, topics ...string) KafkaConfig {
	return KafkaConfig{
		Brokers: c.ListenAddrs(), Topics: topics, Group: "auditor", Keyed: true,
		MaxWait: 50 * time.Millisecond, SessionTimeout: 6 * time.Second,
		tune: kafkaTune{
			commitEvery: 10 * time.Millisecond, endEvery: 20 * time.Millisecond, watchEvery: 30 * time.Millisecond,
			heartbeat: 50 * time.Millisecond, metadataTTL: 50 * time.Millisecond, request: 3 * time.Second,
			retryMin: 5 * time.Millisecond, retryMax: 50 * time.Millisecond, leaveAfter: 100 * time.Millisecond,
		},
	}
}

// kafkaRecorder is a handler that remembers what it was told, and holds the source to
// what it promises of every batch.
type kafkaRecorder struct {
	t testing.TB

	mu       sync.Mutex
	parts    map[string]*recorded
	assigned func(p Partition, left Position) (Position, error) // answer; default: left
	consume  func(p Partition, b *Batch) error                  // before it is recorded
	anywhere bool                                               // reading may begin elsewhere than was answered
}

type recorded struct {
	r         *kafkaRecorder
	p         Partition
	busy      bool // a method is at work
	open      bool
	left      []Position // of every session
	lines     []string
	refs      []Ref
	next      int64
	gap       int64
	empty     int64
	ends      int // batches that said AtEnd
	sessions  int
	closed    int
	metadata  func(next int64) string
	released  *Position // in place of next
	kept      Position  // what Committed told
	afterLast bool      // Released was asked after Close
}

func newKafkaRecorder(t testing.TB) *kafkaRecorder {
	return &kafkaRecorder{t: t, parts: map[string]*recorded{}}
}

func (r *kafkaRecorder) part(name string) *recorded {
	p := r.parts[name]
	if p == nil {
		p = &recorded{r: r, metadata: func(next int64) string { return fmt.Sprintf("up to %d", next) }}
		r.parts[name] = p
	}
	return p
}

// look calls f while nothing changes.
func (r *kafkaRecorder) look(name string, f func(p *recorded)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.part(name))
}

// has says whether a partition has n lines.
func (r *kafkaRecorder) has(name string, n int) func() bool {
	return func() (is bool) {
		r.look(name, func(p *recorded) { is = len(p.lines) >= n })
		return
	}
}

func (r *kafkaRecorder) lines(name string) (lines []string) {
	r.look(name, func(p *recorded) { lines = slices.Clone(p.lines) })
	return
}

func (r *kafkaRecorder) Assigned(_ context.Context, who Partition, left Position) (Session, Position, error) {
	from := left
	if r.assigned != nil {
		var err error
		if from, err = r.assigned(who, left); err != nil {
			return nil, Position{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.part(who.Name)
	if p.open {
		r.t.Errorf("%s: assigned while a session is open", who.Name)
	}
	p.p, p.open, p.next = who, true, from.Offset
	p.sessions++
	p.left = append(p.left, left)
	return p, from, nil
}

func (p *recorded) enter() func() {
	p.r.mu.Lock()
	if p.busy {
		p.r.t.Errorf("%s: two calls at a time", p.p.Name)
	}
	p.busy = true
	p.r.mu.Unlock()
	return func() {
		p.r.mu.Lock()
		p.busy = false
		p.r.mu.Unlock()
	}
}

func (p *recorded) Consume(_ context.Context, b *Batch) error {
	defer p.enter()()
	if p.r.consume != nil {
		if err := p.r.consume(p.p, b); err != nil {
			return err
		}
	}
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	data := string(b.Data)
	lines := strings.SplitAfter(data, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) != len(b.Refs) {
		p.r.t.Errorf("%s: %d lines and %d refs", p.p.Name, len(lines), len(b.Refs))
	}
	if !p.open {
		p.r.t.Errorf("%s: a batch without a session", p.p.Name)
	}
	at := p.next + b.Gap
	if p.r.anywhere {
		at = 0
	}
	for i, ref := range b.Refs {
		if ref.Offset < at || ref.Offset >= b.Next {
			p.r.t.Errorf("%s: a record at %d in a batch from %d to %d", p.p.Name, ref.Offset, at, b.Next)
		}
		at = ref.Offset
		if !strings.HasSuffix(lines[i], "\n") {
			p.r.t.Errorf("%s: line %q has no end", p.p.Name, lines[i])
		}
	}
	if b.Next < p.next && !p.r.anywhere {
		p.r.t.Errorf("%s: Next went from %d to %d", p.p.Name, p.next, b.Next)
	}
	for _, l := range lines {
		p.lines = append(p.lines, strings.TrimSuffix(l, "\n"))
	}
	p.refs = append(p.refs, b.Refs...)
	p.next = b.Next
	p.gap += b.Gap
	p.empty += b.Empty
	if b.AtEnd {
		p.ends++
	}
	if b.Done != nil {
		for i := range b.Data { // whoever looks at it later sees that it should not
			b.Data[i] = '#'
		}
		b.Done()
	}
	return nil
}

func (p *recorded) Committed(at Position) {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.kept = at
}

func (p *recorded) Released() Position {
	defer p.enter()()
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if !p.open {
		p.afterLast = true
	}
	if p.released != nil {
		return *p.released
	}
	return Position{Offset: p.next, Metadata: p.metadata(p.next)}
}

func (p *recorded) Close(context.Context) error {
	defer p.enter()()
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.open = false
	p.closed++
	return nil
}

// running is a source at work.
type running struct {
	*Kafka
	stop func()
}

// start runs a source until stop is called or the test ends.
func start(t testing.TB, cfg KafkaConfig, h Handler) *running {
	t.Helper()
	k, err := NewKafka(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx, h) }()
	var once sync.Once
	r := &running{k, func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Run: %v", err)
				}
			case <-time.After(inTime):
				t.Errorf("Run does not end")
			}
		})
	}}
	t.Cleanup(r.stop)
	return r
}

func (r *running) state(name string) PartitionState {
	for _, s := range r.Partitions() {
		if s.Partition.Name == name {
			return s
		}
	}
	return PartitionState{}
}

// commitOf is what a group has committed; ok is false if it has nothing.
func commitOf(c *kfake.Cluster, topic string, partition int32) (kfake.GroupCommit, bool) {
	info := c.GroupInfo("auditor")
	if info == nil {
		return kfake.GroupCommit{}, false
	}
	commit, ok := info.Commits[topic][partition]
	return commit, ok
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestKafkaReadsWhatWasWritten(t *testing.T) {
	c := cluster(t, 2, []string{"a", "b"})
	cl := producer(t, c)
	produce(t, cl, "a", 0, numbered(0, 100)...)
	produce(t, cl, "a", 1, numbered(100, 50)...)
	produce(t, cl, "b", 1, "one\ntwo\nthree\n", "four\n", "five\n\nseven", "\n")
	r := newKafkaRecorder(t)
	k := start(t, quick(c, "a", "b"), r)
	eventually(t, "all lines are read", func() bool {
		return r.has("kafka a/0", 100)() && r.has("kafka a/1", 50)() && r.has("kafka b/1", 8)()
	})
	equal(t, "a/0", r.lines("kafka a/0"), numbered(0, 100))
	equal(t, "a/1", r.lines("kafka a/1"), numbered(100, 50))
	equal(t, "b/1", r.lines("kafka b/1"), []string{"one", "two", "three", "four", "five", "", "seven", ""})
	r.look("kafka b/1", func(p *recorded) {
		equal(t, "refs", p.refs, []Ref{{1, 0}, {2, 0}, {3, 0}, {1, 1}, {1, 2}, {2, 2}, {3, 2}, {1, 3}})
	})

	// What comes later is read inTime, and the end is told again and again.
	produce(t, cl, "b", 0, "late")
	eventually(t, "a later record is read", r.has("kafka b/0", 1))
	for _, name := range []string{"kafka a/0", "kafka a/1", "kafka b/0", "kafka b/1"} {
		ends := 0
		r.look(name, func(p *recorded) { ends = p.ends })
		eventually(t, name+" tells that it is at its end", func() (is bool) {
			r.look(name, func(p *recorded) { is = p.ends >= ends+2 })
			return
		})
	}
	s := k.state("kafka a/0")
	s.Progress = time.Time{}
	equal(t, "state", s, PartitionState{
		Partition: Partition{Name: "kafka a/0"}, Assigned: true, Next: 100, End: 100, Committed: s.Committed,
		Records: 100, Bytes: 690,
	})
	if s.Lag() != 0 || k.Standby() || k.Err() != nil {
		t.Errorf("lag %d, standby %v, error %v", s.Lag(), k.Standby(), k.Err())
	}

	k.stop()
	commit, _ := commitOf(c, "a", 0)
	equal(t, "commit", Position{commit.Offset, commit.Metadata}, Position{100, "up to 100"})
	r.look("kafka a/0", func(p *recorded) {
		if p.open || p.closed != 1 || !p.afterLast {
			t.Errorf("open %v, closed %d times, asked after that: %v", p.open, p.closed, p.afterLast)
		}
	})
	if k.state("kafka a/0").Assigned {
		t.Error("still assigned")
	}
}

func TestKafkaEndOfAnEmptyPartition(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	r := newKafkaRecorder(t)
	start(t, quick(c, "a"), r)
	eventually(t, "the end is told", func() (is bool) {
		r.look("kafka a/0", func(p *recorded) { is = p.ends >= 2 })
		return
	})
}

func TestKafkaTombstonesAreCounted(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	tombstone := &kgo.Record{Topic: "a", Key: []byte("k"), Value: nil}
	first, last := record("a", 0, "first"), record("a", 0, "last")
	records := []*kgo.Record{tombstone, first, record("a", 0, ""), tombstone, last, {Topic: "a", Key: []byte("end")}}
	for _, rec := range records {
		copied := *rec
		if err := cl.ProduceSync(t.Context(), &copied).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	r := newKafkaRecorder(t)
	k := start(t, quick(c, "a"), r)
	eventually(t, "all is read", func() bool { return k.state("kafka a/0").Next == 6 })
	r.look("kafka a/0", func(p *recorded) {
		equal(t, "lines", p.lines, []string{"first", "last"})
		equal(t, "refs", p.refs, []Ref{{1, 1}, {1, 4}})
		equal(t, "empty", p.empty, 4)
		equal(t, "gap", p.gap, 0)
	})
	equal(t, "state", k.state("kafka a/0").Empty, 4)
}

func TestKafkaCodecs(t *testing.T) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	c := cluster(t, 1, []string{"none", "gzip", "snappy", "lz4", "zstd"})
	r := newKafkaRecorder(t)
	// Every reader begins inside a batch: the records before that are not for it.
	r.assigned = func(p Partition, _ Position) (Position, error) { return Position{Offset: 137}, nil }
	for topic, codec := range codecs {
		cl := producer(t, c, kgo.ProducerBatchCompression(codec))
		for i := range 3 {
			produce(t, cl, topic, 0, numbered(i*1000, 1000)...)
		}
	}
	start(t, quick(c, "none", "gzip", "snappy", "lz4", "zstd"), r)
	for topic := range codecs {
		name := "kafka " + topic + "/0"
		eventually(t, topic+" is read", r.has(name, 2863))
		equal(t, topic, r.lines(name), numbered(137, 2863))
		r.look(name, func(p *recorded) {
			equal(t, topic+" first ref", p.refs[0], Ref{1, 137})
			equal(t, topic+" gap", p.gap, 0)
		})
	}
}

func TestKafkaBigRecords(t *testing.T) {
	c := cluster(t, 1, []string{"a"}, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "20000000"}))
	cl := producer(t, c, kgo.ProducerBatchMaxBytes(16<<20))
	big := strings.Repeat("x", 10<<20)
	produce(t, cl, "a", 0, "before")
	produce(t, cl, "a", 0, big)
	produce(t, cl, "a", 0, "after")
	cfg := quick(c, "a")
	cfg.FetchBytes = 64 << 10
	r := newKafkaRecorder(t)
	start(t, cfg, r)
	eventually(t, "all is read", r.has("kafka a/0", 3))
	if got := r.lines("kafka a/0"); got[0] != "before" || got[1] != big || got[2] != "after" {
		t.Errorf("lines of %d, %d, %d bytes", len(got[0]), len(got[1]), len(got[2]))
	}
}

func TestKafkaStart(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	base := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for i, v := range numbered(0, 10) {
		rec := record("a", 0, v)
		rec.Timestamp = base.Add(time.Duration(i) * time.Minute)
		if err := cl.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		start KafkaStart
		at    time.Time
		want  int64
	}{
		"first":  {KafkaFirst, time.Time{}, 0},
		"last":   {KafkaLast, time.Time{}, 10},
		"time":   {KafkaFirst, base.Add(3*time.Minute - time.Second), 3},
		"future": {KafkaFirst, base.Add(2 * time.Hour), 10},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := quick(c, "a")
			cfg.Group, cfg.Start, cfg.StartAt = "start-"+name, test.start, test.at
			r := newKafkaRecorder(t)
			k := start(t, cfg, r)
			eventually(t, "it begins", func() bool { return k.state("kafka a/0").Next == 10 })
			r.look("kafka a/0", func(p *recorded) { equal(t, "left", p.left, []Position{{Offset: test.want}}) })
		})
	}
}

func TestKafkaConfigIsChecked(t *testing.T) {
	good := KafkaConfig{Brokers: []string{"127.0.0.1:1"}, Topics: []string{"a"}, Group: "g"}
	for want, change := range map[string]func(c *KafkaConfig){
		"no broker is named":         func(c *KafkaConfig) { c.Brokers = nil },
		"is not host:port":           func(c *KafkaConfig) { c.Brokers = []string{"kafka"} },
		"no topic is named":          func(c *KafkaConfig) { c.Topics = nil },
		"a topic without a name":     func(c *KafkaConfig) { c.Topics = []string{""} },
		"topic a is named twice":     func(c *KafkaConfig) { c.Topics = []string{"a", "a"} },
		"no consumer group is named": func(c *KafkaConfig) { c.Group = "" },
		"no such start":              func(c *KafkaConfig) { c.Start = 7 },
		"is none of plain":           func(c *KafkaConfig) { c.SASL = &KafkaSASL{Mechanism: "md5"} },
	} {
		cfg := good
		change(&cfg)
		if _, err := NewKafka(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one that says %q", err, want)
		}
	}
	if _, err := NewKafka(good); err != nil {
		t.Error(err)
	}
}
