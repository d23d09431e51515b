package store

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// ClickHouse says where a ClickHouse database is, and how to reach it.
type ClickHouse struct {
	// Addr are host:port; the first that answers is used.
	Addr     []string
	Database string
	User     string
	Password string
	// TLS, if not nil, is how connections are encrypted.
	TLS *tls.Config
	// HTTP speaks ClickHouse's HTTP protocol instead of its native one.
	HTTP bool
	// Compression of what goes over the network: "lz4", "zstd" or "none".
	Compression string
	// Connections is how many are open at most.
	Connections int
	// Cluster is the name of the cluster whose servers have replicas of the tables;
	// empty: there is one server.
	Cluster string
}

// The times that a server may take: to accept a connection, and to answer.
const (
	clickhouseDial = 5 * time.Second
	clickhouseRead = 2 * time.Minute
)

// clickhouse is a store in a ClickHouse database, which many processes share.
//
// ClickHouse has no transactions. It makes one block of rows visible as a whole, in
// one table without partitions; so a write is one block of one table, facts, and a
// read is one query of it. What replaces what is said by the rows themselves: see
// clickhouse_facts.go. What a write depends on it reads first, and that nobody else
// writes the scope meanwhile it makes sure of by a claim: see clickhouse_claims.go.
type clickhouse struct {
	at    ClickHouse
	conn  ch.Conn
	token string                                   // of this process, in claims
	clock func(context.Context) (time.Time, error) // of the server; nil: those of processes are right

	mu     sync.Mutex
	closed bool
	scopes map[string]*scopeTurn
	turns  map[string]chan struct{} // of other things that are done one at a time

	expired atomic.Int64 // how often this process told what has expired
	deleted time.Time    // when rows were deleted last; of who has the turn to expire some
}

// scopeTurn is what is known of a scope by the process; whoever holds its turn may
// use it.
type scopeTurn struct {
	turn   chan struct{}
	seq    uint64           // of the claim's writes
	series map[int64]series // by number

	// What is known after the latest write: nothing after one that failed.
	kept    *state
	claim   int64     // under which that is so
	read    time.Time // when it was last read from the database
	held    time.Time // when the claim was last seen to hold
	expired int64     // how often the process had told by then what has expired
}

// OpenClickHouse opens the store in a ClickHouse database whose schema is that of
// this program; MigrateClickHouse makes it so. An error says what to do; it is
// ErrUnreachable, ErrPassword, ErrNoDatabase or ErrSchema where those say what is
// wrong.
func OpenClickHouse(ctx context.Context, at ClickHouse) (Store, error) {
	c, err := connectClickHouse(at, at.Database)
	if err != nil {
		return nil, err
	}
	if err := c.checkSchema(ctx); err != nil {
		_ = c.conn.Close()
		return nil, c.explain("open", err)
	}
	c.clock = c.now
	return c, nil
}

// connectClickHouse connects to nothing yet.
func connectClickHouse(at ClickHouse, database string) (*clickhouse, error) {
	o, err := at.options(database)
	if err != nil {
		return nil, err
	}
	return dialClickHouse(at, o)
}

// options are those of the client.
func (at *ClickHouse) options(database string) (*ch.Options, error) {
	methods := map[string]ch.CompressionMethod{"": ch.CompressionLZ4, "lz4": ch.CompressionLZ4, "zstd": ch.CompressionZSTD, "none": ch.CompressionNone}
	method, ok := methods[at.Compression]
	if !ok {
		return nil, fmt.Errorf("store: compression %q is not known: want lz4, zstd or none", at.Compression)
	}
	o := &ch.Options{
		Protocol: ch.Native, TLS: at.TLS, Addr: at.Addr, Auth: ch.Auth{Database: database, Username: at.User, Password: at.Password},
		Compression: &ch.Compression{Method: method}, DialTimeout: clickhouseDial, ReadTimeout: clickhouseRead,
		MaxOpenConns: max(at.Connections, 1), MaxIdleConns: max(at.Connections, 1), ConnOpenStrategy: ch.ConnOpenInOrder,
		Settings: at.settings(),
	}
	if at.HTTP {
		o.Protocol = ch.HTTP
	}
	return o, nil
}

func dialClickHouse(at ClickHouse, o *ch.Options) (*clickhouse, error) {
	conn, err := ch.Open(o)
	if err != nil {
		return nil, fmt.Errorf("store: open ClickHouse at %v: %w", at.Addr, err)
	}
	return &clickhouse{at: at, conn: conn, token: rand.Text(), scopes: map[string]*scopeTurn{}, turns: map[string]chan struct{}{}}, nil
}

// settings are those of every query. An insert is acknowledged when it is stored, and
// stored though an equal one was before: what came in between may have replaced that.
// A text that is asked for may be longer than queries are by default, and a block
// larger. In a cluster an insert is acknowledged by most replicas, and whoever reads
// sees all that was.
func (at *ClickHouse) settings() ch.Settings {
	s := ch.Settings{"async_insert": 0, "insert_deduplicate": 0, "max_query_size": 16 << 20, "max_insert_block_size": 1 << 24}
	if at.Cluster != "" {
		maps.Copy(s, ch.Settings{
			"insert_quorum": "auto", "insert_quorum_parallel": 0, "insert_quorum_timeout": int(quorumTimeout.Milliseconds()), "select_sequential_consistency": 1,
		})
	}
	return s
}

// Close implements Store.
func (c *clickhouse) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.conn.Close()
}

// ready returns an error if the store is closed or ctx done.
func (c *clickhouse) ready(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	return ctx.Err()
}

// scope waits for the turn to write a scope, and returns the way to give it back.
func (c *clickhouse) scope(ctx context.Context, name string) (*scopeTurn, func(), error) {
	c.mu.Lock()
	x := c.scopes[name]
	if x == nil {
		x = &scopeTurn{turn: make(chan struct{}, 1), series: map[int64]series{}}
		c.scopes[name] = x
	}
	c.mu.Unlock()
	give, err := c.wait(ctx, x.turn)
	return x, give, err
}

// turnOf waits for the turn to do a thing that this process does once at a time.
func (c *clickhouse) turnOf(ctx context.Context, what string) (func(), error) {
	c.mu.Lock()
	turn := c.turns[what]
	if turn == nil {
		turn = make(chan struct{}, 1)
		c.turns[what] = turn
	}
	c.mu.Unlock()
	return c.wait(ctx, turn)
}

func (c *clickhouse) wait(ctx context.Context, turn chan struct{}) (func(), error) {
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := c.ready(ctx); err != nil {
		<-turn
		return nil, err
	}
	return func() { <-turn }, nil
}
