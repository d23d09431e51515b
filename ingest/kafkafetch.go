package ingest

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
)

// fetchConn asks one broker for the records of one partition. kafka-go connects
// and logs in; this request and its answer are encoded here, because nothing in
// kafka-go v0.4.51 reads them as we need it: all of its ways to fetch hand out the
// records of transactions that were aborted, also under ReadCommitted (a shipper's
// second try would be an arrival), Conn.ReadBatchWith hands out the marks of
// transactions, too, and none tells where the log begins. It costs a third of the
// time per record, besides.
type fetchConn struct {
	conn       net.Conn
	address    string
	topic      string
	partition  int32
	version    int16
	patience   time.Duration // for an answer, beside maxWait
	correlator int32
	throttled  time.Duration // for how long the broker lets the next question lie
	out, in    []byte
}

// The Fetch request of Kafka's protocol. Versions 5 (Kafka 1.0) to 10 (2.1) tell
// the start of the log; brokers answer batches in zstd from 10 on only. Kafka 4
// speaks 4 to 18. https://kafka.apache.org/protocol#The_Messages_Fetch
const (
	fetchKey        = 1
	fetchVersionMin = 5
	fetchVersionMax = 10
)

// kafkaClientID is the name that quotas and the broker's logs know us by.
const kafkaClientID = "auditor"

// largestAnswer bounds the memory that an answer can take: the largest request
// that a broker accepts by default (socket.request.max.bytes, 100 MiB), so the
// largest batch that there can be.
const largestAnswer = 128 << 20

// fetched is the answer to a fetch; its records lie in the connection's memory
// until the next one.
type fetched struct {
	code    kafka.Error // 0 when there was no error
	end     int64       // high watermark: the offset behind the last record
	stable  int64       // behind the last record that transactions let us see
	start   int64       // the offset where the log begins; -1 when it is not told
	aborted []abortedTransaction
	records []byte // whole and perhaps one cut batch
}

// abortedTransaction says which records of a producer were taken back: those from
// first up to its next mark.
type abortedTransaction struct{ producer, first int64 }

func (l *kafkaLink) openFetch(ctx context.Context, address, topic string, partition int) (*fetchConn, error) {
	conn, version, err := l.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	if version < fetchVersionMin {
		conn.Close()
		return nil, fmt.Errorf("broker %s: %w: it is older than Kafka 1.0", address, ErrKafkaUnreadable)
	}
	return &fetchConn{
		conn: conn, address: address, topic: topic, partition: int32(partition),
		version: int16(min(version, fetchVersionMax)), patience: l.request,
	}, nil
}

func (c *fetchConn) close() { c.conn.Close() }

// fetch asks for about size bytes of records from an offset on. It waits for the
// first of them for as long as maxWait, and gives up when ctx ends.
func (c *fetchConn) fetch(ctx context.Context, offset int64, size int, maxWait time.Duration) (*fetched, error) {
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer stop()
	c.conn.SetDeadline(time.Now().Add(maxWait + c.patience + c.throttled))
	c.correlator++
	if _, err := c.conn.Write(c.request(offset, size, maxWait)); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 4 || n > largestAnswer {
		return nil, fmt.Errorf("broker %s: %w: an answer of %d bytes", c.address, ErrKafkaUnreadable, n)
	}
	if id := int32(binary.BigEndian.Uint32(head[4:])); id != c.correlator {
		return nil, fmt.Errorf("broker %s: %w: the answer to another question", c.address, ErrKafkaUnreadable)
	}
	n -= 4
	if cap(c.in) < n || cap(c.in) > 4*max(n, size) { // the memory of a huge record is not kept
		c.in = make([]byte, max(n, size+1024))
	}
	c.in = c.in[:n]
	if _, err := io.ReadFull(c.conn, c.in); err != nil {
		return nil, err
	}
	f, err := c.answer(wire{b: c.in})
	if err != nil {
		return nil, fmt.Errorf("broker %s: %w: %w", c.address, ErrKafkaUnreadable, err)
	}
	return f, nil
}

func (c *fetchConn) request(offset int64, size int, maxWait time.Duration) []byte {
	be, v := binary.BigEndian, c.version
	str := func(b []byte, s string) []byte {
		return append(be.AppendUint16(b, uint16(len(s))), s...)
	}
	none := ^uint32(0)
	b := append(c.out[:0], 0, 0, 0, 0)
	b = be.AppendUint16(b, fetchKey)
	b = be.AppendUint16(b, uint16(v))
	b = be.AppendUint32(b, uint32(c.correlator))
	b = str(b, kafkaClientID)
	b = be.AppendUint32(b, none) // replica: we are none
	b = be.AppendUint32(b, uint32(maxWait.Milliseconds()))
	b = be.AppendUint32(b, 1) // at least one byte
	b = be.AppendUint32(b, uint32(size))
	b = append(b, 1) // only what transactions have committed
	if v >= 7 {      // no session
		b = be.AppendUint32(b, 0)
		b = be.AppendUint32(b, none)
	}
	b = be.AppendUint32(b, 1)
	b = str(b, c.topic)
	b = be.AppendUint32(b, 1)
	b = be.AppendUint32(b, uint32(c.partition))
	if v >= 9 { // the leader's epoch is not known
		b = be.AppendUint32(b, none)
	}
	b = be.AppendUint64(b, uint64(offset))
	b = be.AppendUint64(b, ^uint64(0)) // the start of our log: we have none
	b = be.AppendUint32(b, uint32(size))
	if v >= 7 { // nothing to forget
		b = be.AppendUint32(b, 0)
	}
	be.PutUint32(b, uint32(len(b)-4))
	c.out = b
	return b
}

func (c *fetchConn) answer(w wire) (*fetched, error) {
	f := &fetched{}
	c.throttled = time.Duration(max(0, w.i32())) * time.Millisecond
	if c.version >= 7 {
		f.code = kafka.Error(w.i16())
		w.i32() // session
	}
	if w.i32() != 1 {
		if f.code != 0 && w.err == nil {
			return f, nil
		}
		return nil, errors.Join(errors.New("it is not about one topic"), w.err)
	}
	topic := w.str()
	if w.i32() != 1 {
		return nil, errors.Join(errors.New("it is not about one partition"), w.err)
	}
	partition := w.i32()
	if code := kafka.Error(w.i16()); code != 0 {
		f.code = code
	}
	f.end, f.stable, f.start = w.i64(), w.i64(), w.i64()
	for range max(0, w.i32()) {
		f.aborted = append(f.aborted, abortedTransaction{w.i64(), w.i64()})
		if w.err != nil {
			break
		}
	}
	slices.SortFunc(f.aborted, func(a, b abortedTransaction) int { return cmp.Compare(a.first, b.first) })
	f.records = w.bytes()
	switch {
	case w.err != nil:
		return nil, w.err
	case topic != c.topic || partition != c.partition:
		return nil, fmt.Errorf("it is about %s/%d", topic, partition)
	}
	if f.stable < 0 {
		f.stable = f.end
	}
	return f, nil
}

// wire reads numbers as Kafka writes them. After the first that is cut short all
// are 0, and err says so.
type wire struct {
	b   []byte
	err error
}

func (w *wire) take(n int) []byte {
	if n < 0 || n > len(w.b) {
		w.b, w.err = nil, io.ErrUnexpectedEOF
		return nil
	}
	b := w.b[:n]
	w.b = w.b[n:]
	return b
}

func (w *wire) i16() int16 {
	if b := w.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (w *wire) i32() int32 {
	if b := w.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (w *wire) i64() int64 {
	if b := w.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (w *wire) str() string { return string(w.take(int(w.i16()))) }

// bytes reads a run of bytes after its length; null is none.
func (w *wire) bytes() []byte {
	n := w.i32()
	if n <= 0 {
		return nil
	}
	return w.take(int(n))
}
