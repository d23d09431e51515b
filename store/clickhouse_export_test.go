package store

import (
	"context"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	blocks "github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// Link is the store's way to a server that does not know its settings nor its tables.
type Link struct{ c *clickhouse }

// NewLink connects as OpenClickHouse does, but for the settings of queries.
func NewLink(at ClickHouse) (*Link, error) {
	o, err := at.options(at.Database)
	if err != nil {
		return nil, err
	}
	o.Settings = nil
	c, err := dialClickHouse(at, o)
	return &Link{c}, err
}

// Ping, Exec, Insert, One and Close do what the store does, with its errors. Insert
// sends columns of these types as one block.
func (l *Link) Ping(ctx context.Context) error { return l.c.explain("open", l.c.conn.Ping(ctx)) }

func (l *Link) Exec(ctx context.Context, text string) error {
	return l.c.explain("write to", l.c.conn.Exec(ctx, text))
}

func (l *Link) Insert(ctx context.Context, table string, types [][2]string, values ...any) error {
	var of []ch.ColumnNameAndType
	var names []string
	for _, t := range types {
		of, names = append(of, ch.ColumnNameAndType{Name: t[0], Type: t[1]}), append(names, t[0])
	}
	return l.c.explain("write to", l.c.insertBlock(ctx, "INSERT INTO "+table+" ("+strings.Join(names, ", ")+")", of, values))
}

func (l *Link) One(ctx context.Context, text string, into ...any) error {
	return l.c.explain("read", l.c.one(ctx, text, into...))
}

func (l *Link) Close() error { return l.c.Close() }

// Encoding turns rows into a native block: as the store does, by column, or as a plain
// batch does, row by row. Both return the block's size.
type Encoding struct {
	t     *clickhouseTables
	facts []fact
}

// NewEncoding takes the rows of a write.
func NewEncoding(w *Write) *Encoding {
	t := new(clickhouse).tables(context.Background(), &scopeTurn{series: map[int64]series{}}, w, newState(), 1)
	e := &Encoding{t: t}
	for i := range w.Rows {
		r := &w.Rows[i]
		id, _ := t.series(seriesOf(r))
		k := key{r.At, id, r.LateBlock}
		_, _ = t.put(0, k, &value{rules: r.Rules, version: r.Version, plain: r.Counts.Totals(), counts: r.Counts.Append(nil)}, true)
		var f fact
		t.rowFact(&f, 0, k, t.changed[0][k.at][k])
		e.facts = append(e.facts, f)
	}
	return e
}

func emptyBlock() *blocks.Block {
	b := &blocks.Block{ServerContext: new(column.ServerContext)}
	for _, c := range factColumns {
		if err := b.AddColumn(c.Name, column.Type(c.Type)); err != nil {
			panic(err)
		}
	}
	return b
}

func encodedSize(b *blocks.Block) int {
	var out proto.Buffer
	if err := b.Encode(&out, 0); err != nil {
		panic(err)
	}
	return len(out.Buf)
}

// ByColumn is the store's way.
func (e *Encoding) ByColumn() int {
	facts, err := e.t.facts()
	if err != nil {
		panic(err)
	}
	b := emptyBlock()
	for i, values := range facts.all() {
		if _, err := b.Columns[i].Append(values); err != nil {
			panic(err)
		}
	}
	return encodedSize(b)
}

// ByRow is that of a batch that is filled row by row.
func (e *Encoding) ByRow() int {
	b := emptyBlock()
	for i := range e.facts {
		f := &e.facts[i]
		err := b.Append(int8(f.kind), f.at, f.scope, f.family, f.dependency, f.route, f.name, f.wide, f.late, f.keyHash, f.lot, f.last, f.series,
			f.rules, f.version, f.open, f.arrivals, f.verified, f.claimed, f.unattributable, f.originals, string(f.counts), f.originator, f.first,
			f.peers, f.claim, f.major, f.minor, uint8(0))
		if err != nil {
			panic(err)
		}
	}
	return encodedSize(b)
}

// TrustClocks lets rows expire by the times that a test gives, whatever the server's is.
func TrustClocks(s Store) { s.(*clickhouse).clock = nil }

// UnlessRefused does something until a cluster does not refuse it.
var UnlessRefused = unlessRefused
