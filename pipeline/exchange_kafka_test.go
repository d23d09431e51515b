package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/targetside/auditor/ingest"
)

// line is the network of one daemon: it may be cut, and it may hang, so that what is
// on its way comes later.
type line struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	cut   bool
	open  chan struct{} // closed while nothing hangs
	conns []*lineConn
}

type lineConn struct {
	net.Conn
	line   *line
	closed chan struct{}
	once   sync.Once
}

func newLine(dial func(ctx context.Context, network, address string) (net.Conn, error)) *line {
	l := &line{dial: dial, open: make(chan struct{})}
	close(l.open)
	return l
}

func (l *line) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errors.New("network is unreachable")
	}
	conn, err := l.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &lineConn{Conn: conn, line: l, closed: make(chan struct{})}
	l.conns = append(l.conns, c)
	return c, nil
}

// hang keeps everything from passing until the answer is called.
func (l *line) hang() (goOn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := make(chan struct{})
	l.open = open
	return func() { close(open) }
}

func (l *line) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, c := range l.conns {
		c.Close()
	}
}

// pass waits while the line hangs.
func (c *lineConn) pass() error {
	c.line.mu.Lock()
	open := c.line.open
	c.line.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}

func (c *lineConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if hung := c.pass(); hung != nil {
		return 0, hung
	}
	return n, err
}

func (c *lineConn) Write(b []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *lineConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// kafkaDaemon is a daemon that reads from a broker.
type kafkaDaemon struct {
	exchangeDaemon
	t       *testing.T
	network func(ctx context.Context, network, address string) (net.Conn, error)
	brokers []string
	line    *line
	reading context.CancelFunc
	sources sync.WaitGroup
}

func (d *kafkaDaemon) start() {
	d.line = newLine(d.network)
	config := func(source int, group, topic string) ingest.KafkaConfig {
		return ingest.KafkaConfig{Source: source, Brokers: d.brokers, Topics: []string{topic}, Group: group, Keyed: true, Dial: d.line.DialContext}
	}
	logs, err := ingest.NewKafka(config(0, "auditor", "access-logs"))
	if err != nil {
		d.t.Fatal(err)
	}
	whole := config(1, "auditor-exchange", exchangeTopic)
	whole.Whole = true
	exchange, err := ingest.NewKafka(whole)
	if err != nil {
		d.t.Fatal(err)
	}
	d.cfg.Outlets = []Outlet{logs.Writer(exchangeTopic), nil}
	d.live = NewLive(d.cfg)
	counting, stop := context.WithCancel(context.Background())
	reading, stopReading := context.WithCancel(context.Background())
	d.stop, d.reading, d.ended = stop, stopReading, make(chan struct{})
	go func() { d.live.Run(counting); close(d.ended) }()
	for _, k := range []*ingest.Kafka{logs, exchange} {
		d.sources.Go(func() {
			if err := k.Run(reading, d.live); err != nil {
				d.t.Error(err)
			}
		})
	}
}

// end stops the daemon as it should be stopped.
func (d *kafkaDaemon) end() {
	d.reading()
	d.sources.Wait()
	d.stop()
	<-d.ended
}

// kill ends it: nothing that it still does reaches anybody.
func (d *kafkaDaemon) kill() {
	d.store.mu.Lock()
	d.store.fail = func() (bool, bool) { return true, false }
	d.store.mu.Unlock()
	d.line.sever()
	d.end()
	d.store.mu.Lock()
	d.store.fail = nil
	d.store.mu.Unlock()
}

// Two daemons in one group read an un-keyed topic of a broker. They are killed, their
// network hangs and what was on its way comes late; the rows of both are those of one
// ledger.
func TestTheExchangeOverKafka(t *testing.T) {
	for seed := uint64(1); seed <= max(1, uint64(*schedules)/25); seed++ {
		if *schedule != 0 {
			seed = *schedule
		}
		t.Run(fmt.Sprint("schedule=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { overKafka(t, seed) })
		})
		if *schedule != 0 {
			break
		}
	}
}

func overKafka(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 45))
	const parts, exchangeParts = 3, 2
	logs, end := deal(r, storm(1500), parts)
	one := &fleet{t: t, logs: logs, committed: make([]ingest.Position, parts), store: newRowStore()}
	one.cfg = liveConfig(t, one.store)
	one.start()
	time.Sleep(3 * time.Second)
	for i := range logs {
		one.feed(i, len(logs[i].lines))
	}
	time.Sleep(5 * time.Second)
	one.kill()

	var network kfake.VirtualNetwork
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(network.Listen),
		kfake.SeedTopics(parts, "access-logs"), kfake.SeedTopics(exchangeParts, exchangeTopic))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.Dialer(network.DialContext), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()

	begun := time.Now()
	f := &exchangeFleet{t: t}
	var daemons []*kafkaDaemon
	for range 2 {
		d := &kafkaDaemon{t: t, network: network.DialContext, brokers: c.ListenAddrs()}
		d.store = newRowStore()
		d.cfg = liveConfig(t, d.store)
		d.cfg.Sources, d.cfg.Keyed = append(d.cfg.Sources, Source{}), []bool{false, true}
		d.cfg.Exchanged = [][]string{nil, {sourceTopic}}
		d.cfg.exchangeBlock = 4
		d.cfg.Clock = func() time.Time { return noon.Add(time.Since(begun)) }
		daemons = append(daemons, d)
		f.daemons = append(f.daemons, &d.exchangeDaemon)
		d.start()
	}

	// All partitions grow, faster than they were written.
	written := make([]int, parts)
	write := func(share float64) {
		var records []*kgo.Record
		for i := range logs {
			for to := min(len(logs[i].lines)-1, int(share*float64(len(logs[i].lines)))); written[i] < to; written[i]++ {
				records = append(records, &kgo.Record{Topic: "access-logs", Partition: int32(i), Value: []byte(logs[i].lines[written[i]])})
			}
		}
		if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	const length = 4 * time.Minute
	quiet := begun.Add(30 * time.Second) // until then positions are committed
	for time.Since(begun) < length {
		write(float64(time.Since(begun)) / float64(length))
		pause := time.Duration(r.Int64N(int64(5 * time.Second)))
		time.Sleep(pause)
		if time.Now().Before(quiet) {
			continue
		}
		d := daemons[r.IntN(2)]
		switch r.IntN(6) {
		case 0:
			d.kill()
			time.Sleep(time.Duration(r.Int64N(int64(20 * time.Second))))
			d.start()
			quiet = time.Now().Add(time.Duration(r.Int64N(int64(30 * time.Second))))
		case 1, 2: // for longer than the group waits, or not
			goOn := d.line.hang()
			for range 2 + r.IntN(20) {
				time.Sleep(3 * time.Second)
				write(float64(time.Since(begun)) / float64(length))
			}
			goOn()
			quiet = time.Now().Add(time.Duration(r.Int64N(int64(15 * time.Second))))
		}
	}
	write(1)
	time.Sleep(90 * time.Second)
	for i := range logs {
		last := logs[i].lines[len(logs[i].lines)-1]
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "access-logs", Partition: int32(i), Value: []byte(last)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Minute)
	for i, d := range daemons {
		resent := d.live.Picture().Sources[1].Ignored["resent"]
		t.Logf("daemon %d has %d rows, and was sent %d arrivals again", i, len(d.store.rows), resent)
		d.end()
	}
	same(t, fmt.Sprintf("schedule %d, rows of all scopes", seed), f.sum(f.union(), end), f.sum(one.store.rows, end))
}
