package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// fact is a row of the table facts. Of rows with one sorting key the one stays whose
// (major, minor) is highest, whichever came last:
//
//	kind      named by                            (major, minor)
//	tick      time, series, late block            rules, version + 1; dropped: the lowest rules that it is not of, 0
//	longer    time, series, on time or late       claim, number of the write
//	question  its name                            0, arrivals
//	counted   partition, first offset             0, next offset
//	split     dependency, minute                  0, 0
//	scope     scope                               claim, number of the write
//	gone      scope, level                        0, tick
//	claim     scope, claim, process               0, 0
//
// So a tick is replaced by what depends on more records, and nobody else's: it needs
// no knowledge of what was there before. Whatever is made of other rows is replaced
// by who made it later under a later claim. claim is that under which a row was
// written.
type fact struct {
	kind                        kind
	at                          int64
	scope                       string
	family                      uint8
	dependency, route, name     string
	wide                        bool
	late                        int64
	keyHash                     string // 16 bytes, or none
	lot                         uint32
	last                        int64
	series                      int64
	rules                       uint32
	version                     uint64
	open                        bool
	arrivals, verified, claimed uint64
	unattributable, originals   uint64
	counts                      []byte
	originator                  string
	first                       int64
	peers                       []string
	claim, major, minor         uint64
	deleted                     bool
}

// kind says what a fact is.
type kind int8

// The kinds, by the numbers of the column's enumeration.
const (
	kindScope    kind = 1
	kindGone     kind = 2
	kindClaim    kind = 3
	kindCounted  kind = 4
	kindSplit    kind = 5
	kindQuestion kind = 6
	kindTick     kind = 10 // and those of the other levels after it
)

// levelKind is the kind of rows of a level.
func levelKind(level int) kind { return kindTick + kind(level) }

// factColumns are the columns that are inserted, in the order of columns.all. Their
// types are those that the server must have.
var factColumns = []ch.ColumnNameAndType{
	{Name: "kind", Type: "Enum8('scope' = 1, 'gone' = 2, 'claim' = 3, 'counted' = 4, 'split' = 5, 'question' = 6, 'tick' = 10, 'ten_seconds' = 11, 'minute' = 12, 'hour' = 13)"},
	{Name: "at", Type: "Int64"}, {Name: "scope", Type: "LowCardinality(String)"}, {Name: "family", Type: "UInt8"},
	{Name: "dependency", Type: "LowCardinality(String)"}, {Name: "route", Type: "LowCardinality(String)"}, {Name: "name", Type: "LowCardinality(String)"},
	{Name: "wide", Type: "Bool"}, {Name: "late", Type: "Int64"}, {Name: "key_hash", Type: "FixedString(16)"}, {Name: "lot", Type: "UInt32"},
	{Name: "last", Type: "Int64"}, {Name: "series", Type: "Int64"}, {Name: "rules", Type: "UInt32"}, {Name: "version", Type: "UInt64"},
	{Name: "open", Type: "Bool"}, {Name: "arrivals", Type: "UInt64"}, {Name: "verified", Type: "UInt64"}, {Name: "claimed", Type: "UInt64"},
	{Name: "unattributable", Type: "UInt64"}, {Name: "originals", Type: "UInt64"}, {Name: "counts", Type: "String"},
	{Name: "originator", Type: "LowCardinality(String)"}, {Name: "first", Type: "Int64"}, {Name: "peers", Type: "Array(LowCardinality(String))"},
	{Name: "claim", Type: "UInt64"}, {Name: "major", Type: "UInt64"}, {Name: "minor", Type: "UInt64"}, {Name: "deleted", Type: "UInt8"},
}

// columns are facts by column, as a block has them. What it is filled with must not
// change until it is sent.
type columns struct {
	kind                                           []int8
	at, late, last, series, first                  []int64
	scope, dependency, route, name                 []string
	keyHash, originator                            []string
	counts                                         [][]byte
	family                                         []uint8
	wide, open                                     []bool
	lot, rules                                     []uint32
	version, arrivals, verified, claimed           []uint64
	unattributable, originals, claim, major, minor []uint64
	peers                                          [][]string
	deleted                                        []uint8
}

// newColumns has room for some facts.
func newColumns(n int) *columns {
	b := new(columns)
	for _, c := range []*[]int64{&b.at, &b.late, &b.last, &b.series, &b.first} {
		*c = make([]int64, 0, n)
	}
	for _, c := range []*[]string{&b.scope, &b.dependency, &b.route, &b.name, &b.keyHash, &b.originator} {
		*c = make([]string, 0, n)
	}
	for _, c := range []*[]uint64{&b.version, &b.arrivals, &b.verified, &b.claimed, &b.unattributable, &b.originals, &b.claim, &b.major, &b.minor} {
		*c = make([]uint64, 0, n)
	}
	b.kind, b.counts, b.peers = make([]int8, 0, n), make([][]byte, 0, n), make([][]string, 0, n)
	b.wide, b.open, b.lot, b.rules = make([]bool, 0, n), make([]bool, 0, n), make([]uint32, 0, n), make([]uint32, 0, n)
	b.family, b.deleted = make([]uint8, 0, n), make([]uint8, 0, n)
	return b
}

func (b *columns) add(f *fact) {
	b.kind, b.at, b.scope = append(b.kind, int8(f.kind)), append(b.at, f.at), append(b.scope, f.scope)
	b.family, b.wide, b.late = append(b.family, f.family), append(b.wide, f.wide), append(b.late, f.late)
	b.dependency, b.route, b.name = append(b.dependency, f.dependency), append(b.route, f.route), append(b.name, f.name)
	b.keyHash, b.lot, b.last = append(b.keyHash, f.keyHash), append(b.lot, f.lot), append(b.last, f.last)
	b.series, b.rules, b.version = append(b.series, f.series), append(b.rules, f.rules), append(b.version, f.version)
	b.open, b.counts = append(b.open, f.open), append(b.counts, f.counts)
	b.arrivals, b.verified, b.claimed = append(b.arrivals, f.arrivals), append(b.verified, f.verified), append(b.claimed, f.claimed)
	b.unattributable, b.originals = append(b.unattributable, f.unattributable), append(b.originals, f.originals)
	b.originator, b.first, b.peers = append(b.originator, f.originator), append(b.first, f.first), append(b.peers, f.peers)
	b.claim, b.major, b.minor = append(b.claim, f.claim), append(b.major, f.major), append(b.minor, f.minor)
	deleted := uint8(0)
	if f.deleted {
		deleted = 1
	}
	b.deleted = append(b.deleted, deleted)
}

func (b *columns) all() []any {
	return []any{
		b.kind, b.at, b.scope, b.family, b.dependency, b.route, b.name, b.wide, b.late, b.keyHash, b.lot, b.last, b.series, b.rules, b.version,
		b.open, b.arrivals, b.verified, b.claimed, b.unattributable, b.originals, b.counts, b.originator, b.first, b.peers, b.claim, b.major, b.minor, b.deleted,
	}
}

var insertFacts = func() string {
	names := make([]string, len(factColumns))
	for i, c := range factColumns {
		names[i] = c.Name
	}
	return "INSERT INTO facts (" + strings.Join(names, ", ") + ")"
}()

// insert stores facts as one block: all of them or none. After an error they may be
// stored or not.
func (c *clickhouse) insert(ctx context.Context, facts []fact) (err error) {
	b := newColumns(len(facts))
	for i := range facts {
		b.add(&facts[i])
	}
	return c.insertColumns(ctx, b)
}

func (c *clickhouse) insertColumns(ctx context.Context, b *columns) (err error) {
	return c.insertBlock(ctx, insertFacts, factColumns, b.all())
}

func (c *clickhouse) insertBlock(ctx context.Context, text string, of []ch.ColumnNameAndType, values []any) error {
	return c.inserting(ctx, text, func() error { return c.sendBlock(ctx, text, of, values) })
}

func (c *clickhouse) sendBlock(ctx context.Context, text string, of []ch.ColumnNameAndType, values []any) (err error) {
	batch, err := c.conn.PrepareBatch(ch.Context(ctx, ch.WithColumnNamesAndTypes(of)), text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, batch.Close()) }()
	for i, v := range values {
		if err := batch.Column(i).Append(v); err != nil {
			return fmt.Errorf("column %s: %w", of[i].Name, err)
		}
	}
	return batch.Send()
}

// query reports every row of a query. into are where its columns are put, each time
// anew.
func (c *clickhouse) query(ctx context.Context, text string, into []any, each func() error) error {
	// What is refused has no rows.
	return unlessRefused(ctx, func() error { return c.queryOnce(ctx, text, into, each) })
}

func (c *clickhouse) queryOnce(ctx context.Context, text string, into []any, each func() error) (err error) {
	rows, err := c.conn.Query(ctx, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// one puts the row of a query that has one at most into variables.
func (c *clickhouse) one(ctx context.Context, text string, into ...any) error {
	return c.query(ctx, text, into, func() error { return nil })
}

// literal is a text in SQL, whatever bytes are in it.
func literal(s string) string {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b > '~' || b == '\'' || b == '\\' {
			return "unhex('" + hex.EncodeToString([]byte(s)) + "')"
		}
	}
	return "'" + s + "'"
}

func literals[T any](list []T, f func(T) string) string {
	var b strings.Builder
	for i, x := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(f(x))
	}
	return b.String()
}
