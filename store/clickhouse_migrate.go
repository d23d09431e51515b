package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/targetside/auditor/migrations"
)

// ErrMigrating is the error of a change of schema while another is under way.
var ErrMigrating = errors.New("is being migrated by another process")

// MigrationStep is one step of a schema.
type MigrationStep struct {
	Name       string // such as "002_facts.sql"
	Statements []string
	Done       bool
}

// ClickHouseSteps returns the steps that make the schema of this program, and which
// of them were run. It changes nothing. The error is ErrSchema where steps were run
// that this program does not know.
func ClickHouseSteps(ctx context.Context, at ClickHouse) ([]MigrationStep, error) {
	c, err := connectClickHouse(at, at.Database)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	steps, err := c.steps(ctx)
	if meaning(err) == ErrNoDatabase {
		steps, err = c.ownSteps(0)
	}
	return steps, c.explain("read", err)
}

// MigrateClickHouse makes the database, if there is none, and brings its schema to that
// of this program. Every step may be run again: one that ended in the middle is run
// whole the next time. Of several that try at once one runs; the others' error is
// ErrMigrating. began, if not nil, is told each step that is begun.
func MigrateClickHouse(ctx context.Context, at ClickHouse, began func(step string)) error {
	c, err := connectClickHouse(at, at.Database)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	err = c.conn.Ping(ctx)
	if meaning(err) == ErrNoDatabase {
		err = createDatabase(ctx, at)
	}
	if err != nil {
		return c.explain("migrate", err)
	}
	return c.explain("migrate", c.migrate(ctx, began))
}

func createDatabase(ctx context.Context, at ClickHouse) error {
	c, err := connectClickHouse(at, "default")
	if err != nil {
		return err
	}
	defer c.conn.Close()
	text := "CREATE DATABASE IF NOT EXISTS " + identifier(at.Database)
	if at.Cluster != "" {
		text += " ON CLUSTER " + identifier(at.Cluster)
	}
	return c.conn.Exec(ctx, text)
}

// identifier is a name in SQL.
func identifier(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

// ownSteps are the steps of this program, of which the first some were run.
func (c *clickhouse) ownSteps(done int) ([]MigrationStep, error) {
	steps, err := migrations.ClickHouse(c.at.Cluster)
	var out []MigrationStep
	for i, s := range steps {
		out = append(out, MigrationStep{Name: s.Name, Statements: s.Statements, Done: i < done})
	}
	return out, err
}

// steps reads which steps were run.
func (c *clickhouse) steps(ctx context.Context) ([]MigrationStep, error) {
	var there uint64
	err := c.one(ctx, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'migrations'", &there)
	if err != nil {
		return nil, err
	}
	var done []string
	if there > 0 {
		var name string
		err := c.query(ctx, "SELECT name FROM migrations FINAL ORDER BY number, name", []any{&name}, func() error {
			done = append(done, name)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out, err := c.ownSteps(len(done))
	if err != nil {
		return nil, err
	}
	for i, name := range done {
		if i >= len(out) || out[i].Name != name {
			return nil, fmt.Errorf("%w: step %d of it is %q; use the version of auditor that made it or a later one, or name another database (store.clickhouse.database)",
				ErrSchema, i+1, name)
		}
	}
	return out, nil
}

func (c *clickhouse) migrate(ctx context.Context, began func(string)) error {
	// The first step makes the tables that runs are known by; whoever runs it does the
	// same.
	steps, err := c.steps(ctx)
	if err != nil {
		return err
	}
	for _, text := range steps[0].Statements {
		if err := c.conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", steps[0].Name, err)
		}
	}
	if err := c.beginRun(ctx); err != nil {
		return err
	}
	err = c.runSteps(ctx, began)
	// The end is said also when ctx is done: until then nobody else may run.
	return errors.Join(err, c.sayRun(context.WithoutCancel(ctx), 1))
}

// staleRun is after how long a run that says nothing is taken for dead: far more than
// a statement takes that makes a table.
const staleRun = "INTERVAL 10 MINUTE"

func (c *clickhouse) sayRun(ctx context.Context, ended int) error {
	return c.insertSelect(ctx, fmt.Sprintf("INSERT INTO migration_runs (token, ended) SELECT %s, %d", literal(c.token), ended))
}

// beginRun makes sure that no other run is under way. All say that they run before
// they look for others, so that of two at least one sees the other and gives way.
func (c *clickhouse) beginRun(ctx context.Context) error {
	if err := c.sayRun(ctx, 0); err != nil {
		return err
	}
	var others uint64
	err := c.one(ctx, "SELECT count() FROM (SELECT token FROM migration_runs GROUP BY token HAVING max(ended) = 0 AND max(at) > now64(3) - "+staleRun+
		") WHERE token <> "+literal(c.token), &others)
	if err == nil && others > 0 {
		err = fmt.Errorf("%w: wait until it has ended, or for 10 minutes if it was killed", ErrMigrating)
	}
	if err != nil {
		return errors.Join(err, c.sayRun(context.WithoutCancel(ctx), 1))
	}
	return nil
}

func (c *clickhouse) runSteps(ctx context.Context, began func(string)) error {
	steps, err := c.steps(ctx)
	if err != nil {
		return err
	}
	for i, s := range steps {
		if s.Done {
			continue
		}
		if began != nil {
			began(s.Name)
		}
		for _, text := range s.Statements {
			if err := c.sayRun(ctx, 0); err != nil {
				return err
			}
			if err := c.conn.Exec(ctx, text); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		}
		if err := c.insertSelect(ctx, fmt.Sprintf("INSERT INTO migrations (number, name) SELECT %d, %s", i+1, literal(s.Name))); err != nil {
			return err
		}
	}
	return nil
}
