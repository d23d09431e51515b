package store

import (
	"context"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	blocks "github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

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
