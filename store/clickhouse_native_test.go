package store_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// What the engine of the other tests cannot show is tried on Debian's server, through
// the store's own connections: TLS, passwords, other addresses, servers that hang or are
// killed. It is too old for the tables of the store.

// debianAt is how to reach a server of a test, in the clear.
func debianAt(d *clickhousetest.Debian) store.ClickHouse {
	return store.ClickHouse{
		Addr: []string{d.Addr}, Database: "default", User: clickhousetest.DebianUser, Password: clickhousetest.DebianPassword, Connections: 2,
	}
}

func link(t testing.TB, at store.ClickHouse) *store.Link {
	t.Helper()
	l, err := store.NewLink(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// wants looks whether an error is a named one that says where and what to do, and says
// nothing of a password.
func wants(t *testing.T, what string, err, want error, at store.ClickHouse, remedy string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), at.Addr[0]) || !strings.Contains(err.Error(), remedy) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%s gives %v, want that it %v", what, err, want)
	}
}

// A block goes there and comes back byte for byte, in every compression, in the clear
// and encrypted.
func TestNativeBlocks(t *testing.T) {
	d := clickhousetest.StartDebian(t)
	encrypted := debianAt(d)
	encrypted.Addr, encrypted.TLS = []string{d.TLSAddr}, &tls.Config{RootCAs: d.CA}
	for what, at := range map[string]store.ClickHouse{"in the clear": debianAt(d), "encrypted": encrypted} {
		for _, compression := range []string{"none", "lz4", "zstd"} {
			at.Compression = compression
			l := link(t, at)
			if err := l.Exec(t.Context(), "DROP TABLE IF EXISTS t"); err != nil {
				t.Fatalf("%s, %s: %v", what, compression, err)
			}
			err := l.Exec(t.Context(), `CREATE TABLE t (kind Enum8('tick' = 10, 'minute' = 12), at Int64, hash FixedString(16), counts String, peers Array(String), version UInt64)
ENGINE = ReplacingMergeTree(version) ORDER BY (kind, at, hash)`)
			if err != nil {
				t.Fatal(err)
			}
			const n = 50_000
			kind, at, hash, counts, peers, version := make([]int8, n), make([]int64, n), make([]string, n), make([][]byte, n), make([][]string, n), make([]uint64, n)
			for i := range n {
				kind[i], at[i], hash[i] = int8(10+2*(i%2)), int64(i)-7, fmt.Sprintf("\x00\xff%014d", i)
				counts[i], peers[i], version[i] = []byte(fmt.Sprintf("\x00'\n\\%d", i)), []string{"a", fmt.Sprint(i)}, 1<<40+uint64(i)
			}
			err = l.Insert(t.Context(), "t", [][2]string{{"kind", "Enum8('tick' = 10, 'minute' = 12)"}, {"at", "Int64"}, {"hash", "FixedString(16)"}, {"counts", "String"},
				{"peers", "Array(String)"}, {"version", "UInt64"}}, kind, at, hash, counts, peers, version)
			if err != nil {
				t.Fatalf("%s, %s: %v", what, compression, err)
			}
			var rows, sum uint64
			if err := l.One(t.Context(), "SELECT count(), sum(version) FROM t FINAL", &rows, &sum); err != nil || rows != n || sum != n<<40+n*(n-1)/2 {
				t.Errorf("%s, %s: %d rows that add up to %d, %v", what, compression, rows, sum, err)
			}
			var gotHash, gotCounts string
			var gotPeers []string
			err = l.One(t.Context(), "SELECT hash, counts, peers FROM t WHERE kind = 'minute' AND at = 41994", &gotHash, &gotCounts, &gotPeers)
			if err != nil || gotHash != hash[42001] || gotCounts != string(counts[42001]) || !slices.Equal(gotPeers, peers[42001]) {
				t.Errorf("%s, %s: a row is %q, %q, %q, %v", what, compression, gotHash, gotCounts, gotPeers, err)
			}
		}
	}
}

func TestNativeErrorsAreNamed(t *testing.T) {
	d := clickhousetest.StartDebian(t)
	at := debianAt(d)
	ping := func(what string, change func(*store.ClickHouse), want error, remedy string) {
		t.Helper()
		at := at
		change(&at)
		wants(t, what, link(t, at).Ping(t.Context()), want, at, remedy)
	}
	ping("a wrong password", func(at *store.ClickHouse) { at.Password = "hunter2" }, store.ErrPassword, "password_file")
	ping("an unknown user", func(at *store.ClickHouse) { at.User = "nobody" }, store.ErrPassword, "username")
	ping("an unknown database", func(at *store.ClickHouse) { at.Database = "nowhere" }, store.ErrNoDatabase, "auditor migrate up")
	ping("TLS to a port without", func(at *store.ClickHouse) { at.TLS = &tls.Config{RootCAs: d.CA} }, store.ErrUnreachable, "tls")
	ping("a port with TLS without it", func(at *store.ClickHouse) { at.Addr = []string{d.TLSAddr} }, store.ErrUnreachable, "tls")
	ping("an authority that is not trusted", func(at *store.ClickHouse) { at.Addr, at.TLS = []string{d.TLSAddr}, &tls.Config{} }, store.ErrUnreachable, "tls")
	ping("a certificate of another name", func(at *store.ClickHouse) {
		at.Addr, at.TLS = []string{d.TLSAddr}, &tls.Config{RootCAs: d.CA, ServerName: "ch.example"}
	}, store.ErrUnreachable, "tls")
	// The store itself asks for what a server of this age lacks, and says so.
	_, err := store.OpenClickHouse(t.Context(), at)
	wants(t, "opening", err, store.ErrTooOld, at, "23.10")
	wants(t, "migrating", store.MigrateClickHouse(t.Context(), at, nil), store.ErrTooOld, at, "23.10")

	l := link(t, at)
	if err := l.Exec(t.Context(), "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n"); err != nil {
		t.Fatal(err)
	}
	reader := at
	reader.User, reader.Password = clickhousetest.DebianReader, ""
	r := link(t, reader)
	insert := func(l *store.Link) error {
		return l.Insert(t.Context(), "t", [][2]string{{"n", "UInt64"}}, []uint64{1})
	}
	wants(t, "an insert by who may only read", insert(r), store.ErrReadOnly, at, "right to read, insert and delete")
	wants(t, "a table that is not there", l.Insert(t.Context(), "nowhere", [][2]string{{"n", "UInt64"}}, []uint64{1}), store.ErrSchema, at, "migrate status")
	wants(t, "a column that is not there", l.Insert(t.Context(), "t", [][2]string{{"m", "UInt64"}}, []uint64{1}), store.ErrSchema, at, "migrate status")

	goOn, err := d.Hang()
	if err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var n uint64
	wants(t, "a server that hangs", l.One(within, "SELECT count() FROM t", &n), store.ErrSlow, at, "system.processes")
	goOn()
	if err := errors.Join(insert(l), l.One(t.Context(), "SELECT count() FROM t", &n)); err != nil || n != 1 {
		t.Errorf("when it goes on, there are %d rows, %v", n, err)
	}
	d.Kill()
	wants(t, "a server that was killed", insert(l), store.ErrUnreachable, at, "check that it runs")
}

// The first address that answers is used; when it is gone, the next.
func TestNativeFailover(t *testing.T) {
	first, second := clickhousetest.StartDebian(t), clickhousetest.StartDebian(t)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := nobody.Addr().String()
	_ = nobody.Close()
	for i, d := range []*clickhousetest.Debian{first, second} {
		l := link(t, debianAt(d))
		if err := errors.Join(l.Exec(t.Context(), "CREATE TABLE who (n UInt8) ENGINE = Memory"), l.Exec(t.Context(), fmt.Sprintf("INSERT INTO who SELECT %d", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	at := debianAt(first)
	at.Addr = []string{gone, first.Addr, second.Addr}
	l := link(t, at)
	who := func() (n uint8, err error) {
		err = l.One(t.Context(), "SELECT n FROM who", &n)
		return n, err
	}
	for range 3 {
		if n, err := who(); err != nil || n != 1 {
			t.Errorf("server %d answers, %v", n, err)
		}
	}
	first.Kill()
	// Who was connected to it learns that by an error; what fails is done again.
	for tries := 0; ; tries++ {
		_, err := who()
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrUnreachable) || tries == 3 {
			t.Fatalf("try %d after the first server has gone: %v", tries+1, err)
		}
	}
	if n, err := who(); err != nil || n != 2 {
		t.Errorf("after that server %d answers, %v", n, err)
	}
	second.Kill()
	for range 3 {
		_, err = who()
	}
	wants(t, "no server", err, store.ErrUnreachable, at, "check that it runs")
}

// As many queries run at once as the configuration allows connections, and no more.
// When a connection is given back, the client may open the next before that is at rest;
// what is too many it closes.
func TestNativePool(t *testing.T) {
	d := clickhousetest.StartDebian(t)
	at := debianAt(d)
	at.Connections = 3
	l := link(t, at)
	at.Connections = 1
	watch := link(t, at)
	state := func() (open, running int64) {
		t.Helper()
		err := watch.One(t.Context(), "SELECT (SELECT value FROM system.metrics WHERE metric = 'TCPConnection'), "+
			"(SELECT toInt64(count()) FROM system.processes WHERE query LIKE 'SELECT sleep%')", &open, &running)
		if err != nil {
			t.Fatal(err)
		}
		return open, running
	}
	until(t, func() bool { open, _ := state(); return open == 1 }) // those that looked whether it runs are gone
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			var n uint8
			if err := l.One(context.WithoutCancel(t.Context()), "SELECT sleep(0.3)", &n); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	most := int64(0)
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		default:
		}
		_, running := state()
		most = max(most, running)
	}
	if most != 3 {
		t.Errorf("at most %d queries ran at once, with 3 connections", most)
	}
	until(t, func() bool { open, _ := state(); return open <= 4 })
}
