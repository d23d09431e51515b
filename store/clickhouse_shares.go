package store

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// shareColumns are the columns of shares that are inserted; written is the server's.
var shareColumns = []ch.ColumnNameAndType{
	{Name: "fleet", Type: "LowCardinality(String)"}, {Name: "member", Type: "LowCardinality(String)"}, {Name: "kind", Type: "UInt8"},
	{Name: "name", Type: "LowCardinality(String)"}, {Name: "at", Type: "Int64"}, {Name: "seq", Type: "UInt64"}, {Name: "state", Type: "String"},
}

// Exchange implements Sharer: one insert and one query. Times are the server's. What is
// not new is left out before rows replace one another, so that it need not be read. What
// has come from a time that the server's clock has still to reach, as it was set back, is
// read again until then: what is told meanwhile is older.
func (c *clickhouse) Exchange(ctx context.Context, fleet, member string, seq uint64, told []Share, since Since) ([]Share, Since, error) {
	if err := c.ready(ctx); err != nil {
		return nil, since, c.explain("write to", err)
	}
	if len(told) > 0 {
		if err := c.tell(ctx, fleet, member, seq, told); err != nil {
			return nil, since, c.explain("write to", err)
		}
	}
	from := fmt.Sprintf("now64(3) - INTERVAL %d SECOND", SharesFor/time.Second)
	if !since.at.IsZero() {
		from = fmt.Sprintf("fromUnixTimestamp64Milli(%d)", since.at.Add(-sharesAgain).UnixMilli())
	}
	var out []Share
	var next Since
	var s Share
	var text string
	var at time.Time
	err := c.query(ctx, "SELECT member, kind, name, at, state, least(written, now64(3)) FROM shares FINAL PREWHERE fleet = "+literal(fleet)+" AND written > "+from+
		" ORDER BY member, kind, name, at", []any{&s.Member, &s.Kind, &s.Name, &s.At, &text, &at}, func() error {
		s.State = []byte(text)
		out = append(out, s)
		if at.After(next.at) {
			next.at = at
		}
		return nil
	})
	if err != nil {
		return nil, since, c.explain("read", err)
	}
	return out, later(next, since), nil
}

func (c *clickhouse) tell(ctx context.Context, fleet, member string, seq uint64, told []Share) error {
	n := len(told)
	fleets, members, names := make([]string, n), make([]string, n), make([]string, n)
	kinds, seqs, at, states := make([]uint8, n), make([]uint64, n), make([]int64, n), make([][]byte, n)
	for i := range told {
		x := &told[i]
		fleets[i], members[i], kinds[i], names[i], at[i], seqs[i], states[i] = fleet, member, x.Kind, x.Name, x.At, seq, x.State
	}
	return c.insertBlock(ctx, "INSERT INTO shares (fleet, member, kind, name, at, seq, state)", shareColumns, []any{fleets, members, kinds, names, at, seqs, states})
}
