package ingest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// These tests run on a clock of their own, with the timing that users get.

// inBubble gives a test a cluster on a network in memory.
func inBubble(t *testing.T, f func(t *testing.T, c *kfake.Cluster, net *kfake.VirtualNetwork, cl *kgo.Client)) {
	synctest.Test(t, func(t *testing.T) {
		net := &kfake.VirtualNetwork{}
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(net.Listen), kfake.SeedTopics(2, "a"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		cl := producer(t, c, kgo.Dialer(net.DialContext))
		defer cl.Close()
		f(t, c, net, cl)
	})
}

// ordinary is a configuration as users have it.
func ordinary(c *kfake.Cluster, net *kfake.VirtualNetwork) KafkaConfig {
	return KafkaConfig{Brokers: c.ListenAddrs(), Topics: []string{"a"}, Group: "auditor", Dial: net.DialContext}
}

func TestKafkaEveryClockTick(t *testing.T) {
	inBubble(t, func(t *testing.T, c *kfake.Cluster, net *kfake.VirtualNetwork, cl *kgo.Client) {
		r := newKafkaRecorder(t)
		k := start(t, ordinary(c, net), r)
		time.Sleep(10 * time.Second)
		ends := func() (n int) {
			r.look("kafka a/0", func(p *recorded) { n = p.ends })
			return
		}
		before := ends()
		time.Sleep(time.Minute)
		// Once a second, at the end of a wait of 500 ms: never less often than that.
		if n := ends() - before; n < 40 || n > 60 {
			t.Errorf("the end was told %d times in a minute", n)
		}

		// What is written is seen at once, and committed within two seconds.
		produce(t, cl, "a", 0, "one")
		time.Sleep(20 * time.Millisecond)
		equal(t, "lines", r.lines("kafka a/0"), []string{"one"})
		time.Sleep(2 * time.Second)
		commit, _ := commitOf(c, "a", 0)
		equal(t, "commit", commit.Offset, 1)

		begun := time.Now()
		k.stop()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("stopping took %v", took)
		}
	})
}

// A process that dies says nothing; a standby reads on after the session timeout.
func TestKafkaStandbyAfterACrash(t *testing.T) {
	inBubble(t, func(t *testing.T, c *kfake.Cluster, vnet *kfake.VirtualNetwork, cl *kgo.Client) {
		cut := &cutter{dial: vnet.DialContext}
		cfg := ordinary(c, vnet)
		cfg.Dial = cut.DialContext
		first, second := newKafkaRecorder(t), newKafkaRecorder(t)
		k1 := start(t, cfg, first)
		time.Sleep(10 * time.Second)
		k2 := start(t, ordinary(c, vnet), second)
		time.Sleep(30 * time.Second)
		if k1.Standby() || !k2.Standby() {
			t.Fatalf("standby: %v, %v", k1.Standby(), k2.Standby())
		}
		produce(t, cl, "a", 0, numbered(0, 10)...)
		time.Sleep(5 * time.Second)
		cut.all() // from here on the first one reaches nobody
		produce(t, cl, "a", 0, numbered(10, 10)...)
		time.Sleep(75 * time.Second) // the session timeout, and that of the rebalance
		equal(t, "the second reads on", second.lines("kafka a/0"), numbered(10, 10))
		if k2.Standby() {
			t.Error("the second stands by")
		}
		if !errors.Is(k1.Err(), ErrKafkaNoBroker) {
			t.Errorf("error of the first is %v", k1.Err())
		}
		// It comes back, and the second stays the holder.
		cut.mend()
		time.Sleep(3 * time.Minute)
		if !k1.Standby() || k2.Standby() || k1.Err() != nil {
			t.Errorf("standby: %v, %v, error %v", k1.Standby(), k2.Standby(), k1.Err())
		}
		k1.stop()
		k2.stop()
	})
}

// cutter is a network that can be cut.
type cutter struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	gone  bool
	conns []net.Conn
}

func (c *cutter) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, errors.New("network is unreachable")
	}
	conn, err := c.dial(ctx, network, address)
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cutter) all() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, conn := range c.conns {
		conn.Close()
	}
}

func (c *cutter) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = false
}

// Pauses between tries grow, and a broken handler is not called all the time.
func TestKafkaPausesGrow(t *testing.T) {
	inBubble(t, func(t *testing.T, c *kfake.Cluster, net *kfake.VirtualNetwork, cl *kgo.Client) {
		produce(t, cl, "a", 0, "one")
		r := newKafkaRecorder(t)
		var tries []time.Time
		r.consume = func(p Partition, b *Batch) error {
			if len(b.Refs) > 0 {
				tries = append(tries, time.Now())
				return errors.New("broken")
			}
			return nil
		}
		k := start(t, ordinary(c, net), r)
		time.Sleep(10 * time.Minute)
		k.stop()
		if len(tries) < 20 || len(tries) > 50 {
			t.Errorf("%d tries in ten minutes", len(tries))
		}
		longest := time.Duration(0)
		for i := range len(tries) - 1 {
			longest = max(longest, tries[i+1].Sub(tries[i]))
		}
		if longest < 15*time.Second || longest > 32*time.Second {
			t.Errorf("the longest pause is %v", longest)
		}
	})
}
