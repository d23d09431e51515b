//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Two daemons read one topic of a real broker in one group and share nothing else.
// They are killed in turn while records come; afterwards the rows at rest, those of
// both together, are the truth of the producer, count for count.
func TestKafkaThroughCrashes(t *testing.T) {
	kafkaBroker(t)
	seed := setting(t, "AUDITOR_KAFKA_SEED", time.Now().UnixNano()&0xffffff)
	t.Logf("AUDITOR_KAFKA_SEED=%d", seed)
	bin := binary(t)
	t.Run("both", func(t *testing.T) { // the binary stays until both are through
		t.Run("un-keyed", func(t *testing.T) { t.Parallel(); crashes(t, bin, uint64(seed), unkeyed) })
		t.Run("keyed", func(t *testing.T) { t.Parallel(); crashes(t, bin, uint64(seed)+1, keyed) })
		t.Run("exchange", func(t *testing.T) { t.Parallel(); crashes(t, bin, uint64(seed)+2, exchanged) })
	})
}

// setting reads a whole number from the environment.
func setting(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// How a topic is read: by one instance, by partition, or through an exchange.
const (
	unkeyed   = "unkeyed"
	keyed     = "keyed"
	exchanged = "exchanged"
)

const (
	crashParts    = 4
	exchangeParts = 3
)

func crashes(t *testing.T, bin string, seed uint64, how string) {
	c := newCrashing(t, bin, seed, how, ownStore, 20_000)
	c.through()
	if t.Failed() {
		return
	}
	for _, d := range c.fleet {
		d.stop()
	}
	u, truth := newUnion(t), &c.producer.traffic.truth
	for _, d := range c.fleet {
		u.addFile(d.database(), truth.firstTick, truth.lastTick+1)
		t.Logf("%s wrote %d rows that stayed", d.name, u.writes[d.database()])
	}
	u.newest()
	t.Logf("%d rows, %d of them in both stores, %d of those in two versions", len(u.rows), u.same, u.newer)
	c.equals(u)
}

// crashing is a topic and two daemons in one group that read it.
type crashing struct {
	t        *testing.T
	how      string
	parts    int // with those of the exchange
	r        *rand.Rand
	producer *kafkaProducer
	fleet    []*process
	calm     func() // called when nobody is killed any more
}

// newCrashing prepares what crashes. store is that of each daemon, in the words of the
// configuration; rate is how many requests come each second, unless
// AUDITOR_KAFKA_RATE says otherwise.
func newCrashing(t *testing.T, bin string, seed uint64, how, store string, rate int64) *crashing {
	topic := kafkaTopic(t, kafkaClient(t), how, crashParts)
	c := &crashing{t: t, how: how, parts: crashParts, r: rand.New(rand.NewPCG(seed, 5)), producer: newKafkaProducer(t, seed, topic, how == keyed), calm: func() {}}
	if how == exchanged {
		kafkaTopicNamed(t, kafkaClient(t), exchangeOf(topic), exchangeParts)
		c.parts += exchangeParts
	}
	c.producer.rate = int(setting(t, "AUDITOR_KAFKA_RATE", rate))
	c.fleet = []*process{newProcessOn(t, bin, "one", topic, how, store), newProcessOn(t, bin, "two", topic, how, store)}
	return c
}

// through lets records come and kills the daemons in turn, until all has been read and
// counted.
func (c *crashing) through() {
	t, p, r, fleet := c.t, c.producer, c.r, c.fleet
	producing := make(chan struct{})
	go func() { defer close(producing); p.run() }()
	for _, d := range fleet {
		d.start()
	}
	somewhere := func(below time.Duration) time.Duration { return time.Duration(r.Int64N(int64(below))) }
	moved := int64(0)
	for round := range int(setting(t, "AUDITOR_KAFKA_ROUNDS", 10)) {
		if round%3 == 0 { // on a slow machine kills may come faster than positions move
			moved = advanced(fleet, moved)
		}
		time.Sleep(time.Second + somewhere(9*time.Second))
		d := fleet[round%2]
		if round%3 == 2 { // longer than the group waits: it goes on as one that was given up
			other := fleet[1-round%2]
			length := 2*time.Second + somewhere(4*time.Second)
			t.Logf("round %d: %s hangs for %v", round+1, other.name, length)
			other.hang(length)
			time.Sleep(somewhere(3 * time.Second))
		}
		s, _ := d.counts()
		d.kill()
		pause := somewhere(2 * time.Second)
		t.Logf("round %d: killed %s (%s), which had counted %d%s; it comes back after %v", round+1, d.name, s.State, s.Counted, offsets(&s), pause)
		time.Sleep(pause)
		d.start()
	}
	time.Sleep(2 * time.Second)
	p.stop.Store(true)
	<-producing
	c.calm()
	if t.Failed() {
		return
	}
	truth := &p.traffic.truth
	t.Logf("%d records, %d of them copies: %d arrivals of %d questions in %d s", truth.sent, truth.copies, truth.arrivals, truth.originals, truth.lastTick-truth.firstTick+1)
	p.settle(fleet, c.parts)
}

// equals holds the rows against the truth, and looks whether all ticks are closed.
func (c *crashing) equals(u *union) {
	t, truth := c.t, &c.producer.traffic.truth
	t.Helper()
	scopes := map[string]int{unkeyed: 1, keyed: crashParts, exchanged: exchangeParts}[c.how]
	if len(u.closed) != scopes {
		t.Errorf("%d scopes were counted, want %d", len(u.closed), scopes)
	}
	for scope, at := range u.closed {
		if at <= truth.lastTick {
			t.Errorf("scope %s is closed up to %d, the last tick is %d", scope, at, truth.lastTick)
		}
	}
	u.equals(truth)
}

// advanced waits until the positions of a daemon add up to more than they did, though
// not for long, and returns the sum.
func advanced(fleet []*process, was int64) int64 {
	for end := time.Now().Add(25 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for _, d := range fleet {
			sum := int64(0)
			s, _ := d.counts()
			for _, p := range s.Partitions {
				sum += max(0, p.Committed)
			}
			if sum > was {
				return sum
			}
		}
	}
	return was
}

func offsets(s *shown) (text string) {
	for _, p := range s.Partitions {
		text += fmt.Sprintf(", %s %d/%d %s", p.Name[len(p.Name)-2:], p.Committed, p.Next, p.State)
	}
	return text
}

// kafkaProducer sends traffic to a topic.
type kafkaProducer struct {
	t       *testing.T
	topic   string
	rate    int // requests a second
	traffic *kafkaTraffic
	clients []*kgo.Client // one for each codec
	stop    atomic.Bool
	failed  atomic.Pointer[error]
	sent    int64 // ms
}

func newKafkaProducer(t *testing.T, seed uint64, topic string, keyed bool) *kafkaProducer {
	p := &kafkaProducer{t: t, topic: topic, traffic: newKafkaTraffic(seed, keyed, crashParts)}
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		p.clients = append(p.clients, kafkaClient(t, kgo.ProducerBatchCompression(codec)))
	}
	return p
}

// run sends until it is stopped, and then what is still on its way.
func (p *kafkaProducer) run() {
	begun := time.Now()
	p.sent = begun.UnixMilli()
	// One partition rests now and then, for longer than makes it idle.
	p.traffic.rest = func(part int32) bool {
		second := int(time.Since(begun).Seconds()) % 25
		return part == 3 && second >= 12 && second < 18
	}
	at, used, made := 0, time.Now(), 0
	for !p.stop.Load() {
		now := time.Now()
		want := int(now.Sub(begun).Seconds() * float64(p.rate))
		want = min(want, made+p.rate) // after a stall
		for ; made < want; made++ {
			p.traffic.request(time.Now())
		}
		p.deliver(p.clients[at], now.UnixMilli())
		if time.Since(used) > 3*time.Second { // the next codec
			p.flush(p.clients[at])
			at, used = (at+1)%len(p.clients), time.Now()
		}
		if p.failed.Load() != nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	p.deliver(p.clients[at], time.Now().UnixMilli()+2*shipperDelay)
	p.flush(p.clients[at])
	if err := p.failed.Load(); err != nil {
		p.t.Errorf("produce: %v", *err)
	}
}

func (p *kafkaProducer) deliver(cl *kgo.Client, to int64) {
	for ; p.sent <= to; p.sent++ {
		p.traffic.deliver(p.sent, func(part int32, key, line []byte) {
			p.produce(cl, part, key, line)
		})
	}
}

func (p *kafkaProducer) produce(cl *kgo.Client, part int32, key, line []byte) {
	cl.Produce(context.Background(), &kgo.Record{Topic: p.topic, Partition: part, Key: key, Value: line}, func(_ *kgo.Record, err error) {
		if err != nil {
			p.failed.Store(&err)
		}
	})
}

func (p *kafkaProducer) flush(cl *kgo.Client) {
	if err := cl.Flush(context.Background()); err != nil {
		p.failed.Store(&err)
	}
}

// settle pushes the watermarks on, by records that are no arrivals, until some
// daemon has read each partition to where all ticks of the truth are closed.
func (p *kafkaProducer) settle(fleet []*process, parts int) {
	p.t.Helper()
	last := time.Unix(p.traffic.truth.lastTick, 0).Add(kafkaLateness + 2*time.Second)
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		line := fmt.Sprintf(`{"time":%q,"method":"GET","path":"/healthz","status":200,"duration_ms":0}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
		for part := range int32(crashParts) {
			p.produce(p.clients[0], part, nil, []byte(line))
		}
		p.flush(p.clients[0])
		through := map[string]bool{}
		text := ""
		for _, d := range fleet {
			for _, s := range d.sources() {
				text += fmt.Sprintf("\n%s: %s %s%s", d.name, s.Name, s.State, offsets(&s))
				for _, x := range s.Partitions {
					if x.Watermark.After(last) {
						through[x.Name] = true
					}
				}
			}
		}
		if len(through) == parts {
			break
		}
		if time.Now().After(end) {
			p.t.Errorf("not within 90 s: the topic is read to its end%s", text)
			return
		}
	}
	time.Sleep(5 * time.Second) // partitions have come to rest, ticks are closed and stored
}
