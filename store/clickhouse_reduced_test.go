package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Reduction is something that the store's statements have and Debian's server of 2018
// does not know, and what stands for it there. All else of a statement goes to that
// server as it is.
type Reduction struct {
	What string
	from *regexp.Regexp
	to   string
	// taken says that the server takes the statement as it was, and answers wrongly.
	taken bool
}

// Reductions are all that there are, in the order in which they are made.
var Reductions = []Reduction{
	{"the bodies of views", regexp.MustCompile(`(?s)^(CREATE VIEW .* AS)\nSELECT .*`), "$1\nSELECT scope, at FROM DATABASE.facts", false},
	{"codecs", regexp.MustCompile(` +CODEC\((?:\w+(?:\(\d+\))?(?:, )?)+\)`), "", false},
	{"LowCardinality", regexp.MustCompile(`LowCardinality\(String\)`), "String", false},
	{"Bool", regexp.MustCompile(`\bBool\b`), "UInt8", false},
	{"UInt128", regexp.MustCompile(`UInt128( +MATERIALIZED) bitShiftLeft\(toUInt128\(major\), 64\) \+ minor`), "UInt64$1 bitShiftLeft(major, 40) + minor", false},
	{"skipping indexes", regexp.MustCompile(`,(\n *INDEX .*)+`), "", false},
	{"DateTime64", regexp.MustCompile(`DateTime64\(3\)`), "DateTime", false},
	{"now64", regexp.MustCompile(`now64\(3\)`), "now()", false},
	{"rows that expire by themselves", regexp.MustCompile(`(?s)\nTTL .*`), "", false},
	{"times of numbers", regexp.MustCompile(`fromUnixTimestamp64Milli\((\d+)\d{3}\)`), "toDateTime($1)", false},
	{"deleted rows, in the engine", regexp.MustCompile(`ReplacingMergeTree\(ver, deleted\)`), "ReplacingMergeTree(ver)", false},
	{"deleted rows, in reading", regexp.MustCompile(`^(SELECT .* FROM) facts FINAL PREWHERE (.+) WHERE (originator = .+)( ORDER BY .*)`), "$1 (SELECT * FROM facts FINAL WHERE deleted = 0) AS facts WHERE ($2) AND ($3)$4", true},
	{"deleted rows, in reading", regexp.MustCompile(`^(SELECT (?:at|DISTINCT) ?,? ?series.* FROM) facts FINAL PREWHERE (.+) WHERE (.+)( ORDER BY .*)`), "$1 (SELECT * FROM facts FINAL WHERE deleted = 0) AS facts WHERE ($2) AND ($3)$4", true},
	{"deleted rows, in reading", regexp.MustCompile(`FROM facts FINAL PREWHERE`), "FROM (SELECT * FROM facts FINAL WHERE deleted = 0) AS facts WHERE", true},
	{"lightweight deletes", regexp.MustCompile(`^DELETE FROM facts WHERE`), "ALTER TABLE facts DELETE WHERE", false},
	{"default paths of replicas, with arguments", regexp.MustCompile(`(?s)^(CREATE TABLE IF NOT EXISTS )(\w+)(.*ENGINE = Replicated\w+)\(`), "$1$2$3('/clickhouse/tables/{shard}/DATABASE/$2', '{replica}', ", false},
	{"default paths of replicas", regexp.MustCompile(`(?s)^(CREATE TABLE IF NOT EXISTS )(\w+)(.*ENGINE = Replicated\w+)\n`), "$1$2$3('/clickhouse/tables/{shard}/DATABASE/$2', '{replica}')\n", false},
}

// Reduced is the store's way to a cluster of Debian's servers: the store itself, whose
// statements are reduced on their way.
type Reduced struct {
	Store
	c *clickhouse

	mu   sync.Mutex
	used map[string]string // statements, as they were, by what was reduced in them
}

// OpenReduced opens the store without a look at its schema, which is reduced too. A
// write waits for some replicas.
func OpenReduced(at ClickHouse, quorum int) (*Reduced, error) {
	o, err := at.options(at.Database)
	if err != nil {
		return nil, err
	}
	o.Settings = maps.Clone(o.Settings)
	for _, unknown := range []string{"async_insert", "insert_quorum_parallel"} {
		delete(o.Settings, unknown)
	}
	o.Settings["insert_quorum"] = quorum // for "auto"
	c, err := dialClickHouse(at, o)
	if err != nil {
		return nil, err
	}
	r := &Reduced{Store: c, c: c, used: map[string]string{}}
	c.conn = &reducing{c.conn, r}
	return r, nil
}

// Migrate does what MigrateClickHouse does to a database that is there.
func (r *Reduced) Migrate(ctx context.Context, began func(string)) error {
	return r.c.explain("migrate", r.c.migrate(ctx, began))
}

// Exchange implements Sharer.
func (r *Reduced) Exchange(ctx context.Context, fleet, member string, seq uint64, told []Share, since Since) ([]Share, Since, error) {
	return r.c.Exchange(ctx, fleet, member, seq, told, since)
}

// Exec runs a statement, reduced.
func (r *Reduced) Exec(ctx context.Context, text string) error { return r.c.conn.Exec(ctx, text) }

func (r *Reduced) reduce(text string) string {
	out := text
	for i := range Reductions {
		if next := Reductions[i].in(out); next != out {
			out = next
			r.mu.Lock()
			r.used[Reductions[i].What] = text
			r.mu.Unlock()
		}
	}
	return r.named(out)
}

func (x *Reduction) in(text string) string { return x.from.ReplaceAllString(text, x.to) }

func (r *Reduced) named(text string) string {
	return strings.ReplaceAll(text, "DATABASE", r.c.at.Database)
}

// Needed returns an error unless all that Reductions are of was in some statement, and
// the server refuses that statement if all but one are made.
func (r *Reduced) Needed(ctx context.Context) error {
	var errs []error
	for _, x := range Reductions {
		text, made := r.used[x.What]
		if !made {
			errs = append(errs, fmt.Errorf("%s: no statement has it", x.What))
			continue
		}
		for _, other := range Reductions {
			if other.What != x.What {
				text = other.in(text)
			}
		}
		// The table is there, and would not be looked at.
		text = strings.Replace(r.named(text), "IF NOT EXISTS ", "IF NOT EXISTS another_", 1)
		err := r.c.conn.(*reducing).Conn.Exec(ctx, text)
		if taken := err == nil; taken != x.taken {
			errs = append(errs, fmt.Errorf("%s: that it is taken is %t: %s: %w", x.What, taken, text, err))
		}
	}
	return errors.Join(errs...)
}

// reducing is a client whose statements are reduced.
type reducing struct {
	ch.Conn
	of *Reduced
}

func (c *reducing) Exec(ctx context.Context, text string, args ...any) error {
	return c.Conn.Exec(ctx, c.of.reduce(text), args...)
}

func (c *reducing) Query(ctx context.Context, text string, args ...any) (driver.Rows, error) {
	return c.Conn.Query(ctx, c.of.reduce(text), args...)
}

func (c *reducing) PrepareBatch(ctx context.Context, text string, options ...driver.PrepareBatchOption) (driver.Batch, error) {
	var of []ch.ColumnNameAndType
	columns := factColumns
	if strings.HasPrefix(text, "INSERT INTO shares") {
		columns = shareColumns
	}
	for _, x := range columns {
		of = append(of, ch.ColumnNameAndType{Name: x.Name, Type: c.of.reduce(x.Type)})
	}
	b, err := c.Conn.PrepareBatch(ch.Context(ctx, ch.WithColumnNamesAndTypes(of)), text, options...)
	return reducedBatch{b}, err
}

// reducedBatch takes values of Bool into columns of UInt8.
type reducedBatch struct{ driver.Batch }

func (b reducedBatch) Column(i int) driver.BatchColumn { return reducedColumn{b.Batch.Column(i)} }

type reducedColumn struct{ driver.BatchColumn }

func (c reducedColumn) Append(values any) error {
	flags, ok := values.([]bool)
	if !ok {
		return c.BatchColumn.Append(values)
	}
	numbers := make([]uint8, len(flags))
	for i, set := range flags {
		if set {
			numbers[i] = 1
		}
	}
	return c.BatchColumn.Append(numbers)
}

// What stands for something has to leave all else as it is.
func TestReductions(t *testing.T) {
	c := &Reduced{c: &clickhouse{at: ClickHouse{Database: "d"}}, used: map[string]string{}}
	for text, want := range map[string]string{
		"CREATE TABLE IF NOT EXISTS t ON CLUSTER `c` (\n  a Int64   CODEC(Delta, ZSTD(1)),\n  b LowCardinality(String) CODEC(ZSTD(1))\n)\nENGINE = ReplicatedReplacingMergeTree(ver, deleted)\nORDER BY a": "CREATE TABLE IF NOT EXISTS t ON CLUSTER `c` (\n  a Int64,\n  b String\n)\nENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/d/t', '{replica}', ver)\nORDER BY a",
		"CREATE TABLE IF NOT EXISTS t ON CLUSTER `c` (\n  a Bool\n)\nENGINE = ReplicatedMergeTree\nORDER BY a":                                                                                             "CREATE TABLE IF NOT EXISTS t ON CLUSTER `c` (\n  a UInt8\n)\nENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/d/t', '{replica}')\nORDER BY a",
		"SELECT max(rules) FROM takings WHERE scope = 'a'": "SELECT max(rules) FROM takings WHERE scope = 'a'",
	} {
		if got := c.reduce(text); got != want {
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", text, got, want)
		}
	}
}
