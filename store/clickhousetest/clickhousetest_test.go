package clickhousetest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/targetside/auditor/store/clickhousetest"
)

func connect(t *testing.T, s *clickhousetest.Server, method clickhouse.CompressionMethod, password string) clickhouse.Conn {
	t.Helper()
	c, err := clickhouse.Open(&clickhouse.Options{
		Protocol: clickhouse.HTTP, Addr: []string{s.Addr}, Compression: &clickhouse.Compression{Method: method},
		Auth: clickhouse.Auth{Database: s.Database, Username: clickhousetest.User, Password: password},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The client writes and reads through the server what the engine itself has, in
// every compression that the store uses.
func TestTheClientSeesTheEngine(t *testing.T) {
	s := clickhousetest.Start(t)
	for _, method := range []clickhouse.CompressionMethod{clickhouse.CompressionNone, clickhouse.CompressionLZ4, clickhouse.CompressionZSTD} {
		c := connect(t, s, method, "")
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		const table = "CREATE OR REPLACE TABLE t (n UInt32, s LowCardinality(String), b String, l Array(String)) ENGINE = MergeTree ORDER BY n"
		if err := c.Exec(t.Context(), table); err != nil {
			t.Fatal(err)
		}
		batch, err := c.PrepareBatch(t.Context(), "INSERT INTO t (n, s, b, l)")
		if err != nil {
			t.Fatal(err)
		}
		const rows = 100_000
		for i := range uint32(rows) {
			if err := batch.Append(i, fmt.Sprint("name ", i%7), "\x00\xff'\n"+fmt.Sprint(i), []string{"a", fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := batch.Send(); err != nil {
			t.Fatal(err)
		}
		got := s.Query(t, "SELECT count(), sum(n), uniqExact(s), sum(length(b)), sum(length(l)) FROM t")
		want := s.Query(t, "SELECT 100000, 4999950000, 7, (SELECT sum(4 + length(toString(number))) FROM numbers(100000)), 200000")
		if !slices.Equal(got, want) {
			t.Errorf("the engine has %q, want %q", got, want)
		}
		// One batch is one block, and so one part: it is there as a whole or not at all.
		if parts := s.Query(t, "SELECT count(), sum(rows) FROM system.parts WHERE database = currentDatabase() AND table = 't' AND active"); parts[0] != "1\t100000" {
			t.Errorf("the batch is in parts %q", parts)
		}
		read, err := c.Query(t.Context(), "SELECT n, s, b, l FROM t WHERE n >= {from:UInt32} ORDER BY n", clickhouse.Named("from", "99990"))
		if err != nil {
			t.Fatal(err)
		}
		i := uint32(99990)
		for ; read.Next(); i++ {
			var n uint32
			var name, b string
			var l []string
			if err := read.Scan(&n, &name, &b, &l); err != nil {
				t.Fatal(err)
			}
			if n != i || name != fmt.Sprint("name ", i%7) || b != "\x00\xff'\n"+fmt.Sprint(i) || len(l) != 2 || l[1] != fmt.Sprint(i) {
				t.Errorf("row %d is %d, %q, %q, %q", i, n, name, b, l)
			}
		}
		if err := read.Close(); err != nil || read.Err() != nil || i != rows {
			t.Errorf("read up to %d, %v, %v", i, err, read.Err())
		}
	}
}

func TestServersHaveDatabasesOfTheirOwn(t *testing.T) {
	a, b := clickhousetest.Start(t), clickhousetest.Start(t)
	a.Exec(t, "CREATE TABLE t (n UInt8) ENGINE = MergeTree ORDER BY n")
	if tables := b.Query(t, "SHOW TABLES"); len(tables) > 0 || len(a.Query(t, "SHOW TABLES")) != 1 {
		t.Errorf("the other has %q", tables)
	}
	if a.Database == b.Database || a.Addr == b.Addr {
		t.Errorf("two servers are %s %s and %s %s", a.Addr, a.Database, b.Addr, b.Database)
	}
}

// code is that of ClickHouse's exception, 0 if an error is none.
func code(err error) int32 {
	var e *clickhouse.Exception
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestErrorsAreTheEngines(t *testing.T) {
	s := clickhousetest.Start(t)
	c := connect(t, s, clickhouse.CompressionLZ4, "")
	if err := c.Exec(t.Context(), "SELECT * FROM nowhere"); code(err) != 60 {
		t.Errorf("a missing table gives %v", err)
	}
	s.SetPassword("right")
	if err := c.Ping(t.Context()); code(err) != 516 {
		t.Errorf("a missing password gives %v", err)
	}
	if err := connect(t, s, clickhouse.CompressionLZ4, "right").Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFaults(t *testing.T) {
	s := clickhousetest.Start(t)
	c := connect(t, s, clickhouse.CompressionNone, "")
	s.Exec(t, "CREATE TABLE t (n UInt8) ENGINE = MergeTree ORDER BY n")
	count := func() string { return s.Query(t, "SELECT count() FROM t")[0] }
	s.Fail(clickhousetest.Fault{Of: "INSERT", Code: 243, Message: "no space"}, clickhousetest.Fault{Of: "INSERT", Done: true}, clickhousetest.Fault{Of: "INSERT"})
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("a fault of inserts strikes another statement: %v", err)
	}
	for i, want := range []string{"0", "1", "1", "2"} {
		err := c.Exec(t.Context(), "INSERT INTO t VALUES (1)")
		if n := count(); n != want || (err == nil) != (i == 3) || i == 0 && code(err) != 243 {
			t.Errorf("insert %d: %v, and there are %s rows, want %s", i, err, n, want)
		}
	}
	judged := 0
	s.Judge(func(statement string) (clickhousetest.Fault, bool) {
		if !strings.HasPrefix(statement, "INSERT") {
			return clickhousetest.Fault{}, false
		}
		judged++
		return clickhousetest.Fault{Done: true}, judged < 3
	})
	for i, want := range []string{"3", "4", "5"} {
		if err := c.Exec(t.Context(), "INSERT INTO t VALUES (1)"); (err == nil) != (i == 2) || count() != want || judged != i+1 {
			t.Errorf("judged insert %d: %v, and there are %s rows, want %s", i, err, count(), want)
		}
	}
	s.Judge(nil)
	up := s.Down()
	if err := c.Ping(t.Context()); err == nil {
		t.Error("it answers while it is down")
	}
	up()
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("it is up again: %v", err)
	}
	ran := 0
	s.Before("VALUES (2)", func() { ran++ })
	for _, n := range []string{"1", "2", "2"} {
		if err := c.Exec(t.Context(), "INSERT INTO t VALUES ("+n+")"); err != nil {
			t.Error(err)
		}
	}
	if ran != 1 {
		t.Errorf("what is to come before one statement came %d times", ran)
	}
}

// A setting is that of one query, and the database too.
func TestSettingsEndWithTheirQuery(t *testing.T) {
	s := clickhousetest.Start(t)
	c := connect(t, s, clickhouse.CompressionNone, "")
	var limited, not, database string
	ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_result_rows": 7}))
	const ask = "SELECT toString(getSetting('max_result_rows')), currentDatabase()"
	if err := c.QueryRow(ctx, ask).Scan(&limited, &database); err != nil {
		t.Fatal(err)
	}
	if err := c.QueryRow(t.Context(), ask).Scan(&not, &database); err != nil || limited != "7" || not == "7" || database != s.Database {
		t.Errorf("with a setting %q, without %q, in %q, %v", limited, not, database, err)
	}
	if out := s.Query(t, "SELECT currentDatabase()"); !strings.HasPrefix(out[0], "test_") {
		t.Errorf("the server asks in %q", out)
	}
}
