package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// neededTable is what the store needs of a table: of what is there otherwise, by hand say, it
// must not be asked, as rows would replace one another in another way, or not at all.
type neededTable struct {
	name, order string
	replacing   bool
	columns     []ch.ColumnNameAndType
}

// factsOrder is the sorting key of facts.
const factsOrder = "kind, at, scope, family, dependency, route, name, wide, late, key_hash, lot, last"

// needed are all that the store reads and writes. Views are for others.
var needed = [...]neededTable{
	{"facts", factsOrder, true, factColumns},
	{"shares", "fleet, member, kind, name, at", true, slices.Concat(shareColumns, []ch.ColumnNameAndType{{Name: "written", Type: "DateTime64(3)"}})},
	{"positions", "name", true, []ch.ColumnNameAndType{{Name: "name", Type: "String"}, {Name: "state", Type: "String"}, {Name: "turn", Type: "UInt64"}}},
	{"takings", "scope, rules", false, []ch.ColumnNameAndType{{Name: "scope", Type: "String"}, {Name: "rules", Type: "UInt32"}, {Name: "token", Type: "String"}}},
	{"checks", "id", true, []ch.ColumnNameAndType{{Name: "id", Type: "UInt8"}, {Name: "at", Type: "DateTime64(3)"}}},
}

// checkSchema returns an error unless the schema is that of this program: by the steps
// that were run, and by what is there.
func (c *clickhouse) checkSchema(ctx context.Context) error {
	steps, err := c.steps(ctx)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if !s.Done {
			return fmt.Errorf("%w: step %s of it was not run", ErrSchema, s.Name)
		}
	}
	types := map[[2]string]string{}
	var of, name, text string
	err = c.query(ctx, "SELECT table, name, type FROM system.columns WHERE database = currentDatabase()", []any{&of, &name, &text}, func() error {
		types[[2]string{of, name}] = text
		return nil
	})
	if err != nil {
		return err
	}
	made := map[string][3]string{}
	var engine, order, partition string
	err = c.query(ctx, "SELECT name, engine, sorting_key, partition_key FROM system.tables WHERE database = currentDatabase()", []any{&name, &engine, &order, &partition}, func() error {
		made[name] = [3]string{engine, order, partition}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range needed {
		if err := t.check(types, made); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if the table is another one, by the types of columns and by
// engine, order and partitions.
func (t *neededTable) check(types map[[2]string]string, made map[string][3]string) error {
	is, there := made[t.name]
	if !there {
		return fmt.Errorf("%w: table %s is not there: somebody dropped it by hand; put it back from a copy, or make a new database (store.clickhouse.database)", ErrSchema, t.name)
	}
	for _, column := range t.columns {
		if got := types[[2]string{t.name, column.Name}]; got != column.Type {
			return fmt.Errorf("%w: column %s of table %s is %q, not %s: somebody changed it by hand", ErrSchema, column.Name, t.name, got, column.Type)
		}
	}
	engine := "MergeTree"
	if t.replacing {
		engine = "ReplacingMergeTree"
	}
	if !strings.HasSuffix(is[0], engine) || !t.replacing && strings.HasSuffix(is[0], "ReplacingMergeTree") || is[1] != t.order || is[2] != "" {
		return fmt.Errorf("%w: table %s is a %s with order %q and partitions %q: somebody made it by hand", ErrSchema, t.name, is[0], is[1], is[2])
	}
	return nil
}
