package store

import (
	"context"
	"errors"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// In a cluster an insert is acknowledged when most replicas have it, and of inserts into
// one table ClickHouse lets one at a time wait for that: it refuses the others, of all
// processes and before it stores anything of them. A replica that has not all of what
// was acknowledged refuses to be read. Both pass within moments unless a replica is
// missing, so what is refused is asked for again.

// The errors that say so, by ClickHouse's src/Common/ErrorCodes.cpp.
const (
	unsatisfiedQuorum  = 286 // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	replicaNotInQuorum = 289 // REPLICA_IS_NOT_IN_QUORUM
)

const (
	// quorumWait is for how long what is refused is asked for again.
	quorumWait = 15 * time.Second
	// quorumTimeout is for how long the server waits for replicas to take an insert. It is
	// less than the client waits for an answer, which then says what is wrong.
	quorumTimeout = 30 * time.Second
)

// refused says whether a statement was refused by one of these errors: nothing of it was
// done.
func refused(err error) bool {
	var e *ch.Exception
	return errors.As(err, &e) && (e.Code == unsatisfiedQuorum || e.Code == replicaNotInQuorum)
}

// unlessRefused does something until it is not refused, or was for too long. Whoever's
// time is over in the midst of it hears why that did not suffice.
func unlessRefused(ctx context.Context, do func() error) error {
	end := time.Now().Add(quorumWait)
	var before error
	for try := 0; ; try++ {
		err := do()
		switch {
		case err != nil && !refused(err) && ctx.Err() != nil:
			return errors.Join(before, err)
		case !refused(err) || time.Now().After(end):
			return err
		}
		if give := giveWay(ctx, try); give != nil {
			return errors.Join(err, give)
		}
		before = err
	}
}

// inserting does an insert until it is not refused. In a cluster inserts of this process
// into one table wait for one another: they would refuse each other.
func (c *clickhouse) inserting(ctx context.Context, text string, do func() error) error {
	if c.at.Cluster == "" {
		return do()
	}
	table, _, _ := strings.Cut(strings.TrimPrefix(text, "INSERT INTO "), " ")
	give, err := c.turnOf(ctx, "insert into "+table)
	if err != nil {
		return err
	}
	defer give()
	return unlessRefused(ctx, do)
}

// insertSelect runs an insert of what a query returns.
func (c *clickhouse) insertSelect(ctx context.Context, text string) error {
	return c.inserting(ctx, text, func() error { return c.conn.Exec(ctx, text) })
}
