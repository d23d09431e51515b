package ingest

import (
	"context"
	"errors"
	"time"
)

// Partition is one ordered stream of a source: a topic's partition, a followed
// file, a spool. It is the unit in which positions are kept and a watermark moves.
type Partition struct {
	Source int    // the index of its source in the configuration
	Name   string // unique in the process and the same after a restart, such as "kafka access-logs/3"
}

// Position says up to where a partition is done with: nothing below Offset is
// needed again, not even after a crash. Metadata is the handler's own, kept with
// the offset and given back to it; it is empty where none was left.
type Position struct {
	Offset   int64
	Metadata string
}

// ErrAnew is what a session ends with whose partition is to be begun anew at once:
// nothing is wrong with it.
var ErrAnew = errors.New("the partition is begun anew")

// MaxMetadata is how many bytes of metadata a position may have: Kafka's brokers
// refuse more than 4,096 by default (offset.metadata.max.bytes).
const MaxMetadata = 4000

// Batch is a run of records of one partition, in order of offset. Every line of
// its block has a Ref with the offset of its record, and its number in there: a
// record may hold several lines. Where a source hands out records whole, they stand
// one after the other, and Sizes has the length of each.
type Batch struct {
	Block
	Sizes []int
	// Next is the offset behind the batch: that of its last record plus one, or
	// more where the log has holes.
	Next int64
	// AtEnd says that there was nothing more to read when the batch was made. A
	// source says so again every second while that lasts, with an empty batch.
	AtEnd bool
	// Asked, of a batch at the end, is when the source asked and was told so; zero is
	// just now.
	Asked time.Time
	// Gap is how many records just before the batch are gone for good, by
	// retention or deletion; Empty how many had no value and have no line.
	Gap, Empty int64
	// Done, unless nil, takes the memory of the batch back. Whoever consumed the
	// batch calls it once.
	Done func()
}

// ErrFinal is in what Run returns, and what opens a source, when to try again is of no
// use: it takes another configuration, or another version of the program.
var ErrFinal = errors.New("it is not tried again")

// Handler takes what sources read. Its methods are called from several
// goroutines, those of one partition one at a time.
type Handler interface {
	// Assigned is told that this process reads the partition from now on, and
	// where it was left; an offset that was never left is where the
	// configuration says to begin, without metadata. The answer is where reading
	// begins: there or before, or behind it when what lies between is still in
	// memory.
	Assigned(ctx context.Context, p Partition, left Position) (Session, Position, error)
}

// Session is one partition while it is assigned.
type Session interface {
	// Consume takes a batch over. It blocks while there is no room, which is what
	// holds the source back. An error stops this partition only: the source
	// starts it anew, through Assigned, after a pause.
	Consume(ctx context.Context, b *Batch) error
	// Released is the position below which nothing is needed again. The source
	// asks every second, and when the session ends, and commits what it is told.
	Released() Position
	// Close ends the session: what can be settled before ctx is done will be. The
	// source then asks for Released a last time.
	Close(ctx context.Context) error
	// Committed tells that a position which Released gave is kept: a restart would
	// be told it.
	Committed(at Position)
}

// NewerAwaiter is a Session that may hold Released where it is until newer records of
// its partition come.
type NewerAwaiter interface {
	// AwaitsNewer says that nothing else lets Released move on: not time, nor other
	// partitions that are read, nor what is still to be done with the records that the
	// session has. A source that has no room for newer ones then makes some. It is asked
	// after Released, each second.
	AwaitsNewer() bool
}

// Positions keeps the positions of sources that have no broker to keep them.
// State is the source's own; Load returns nil for a name that was never saved.
type Positions interface {
	Load(ctx context.Context, name string) (state []byte, err error)
	Save(ctx context.Context, name string, state []byte) error
}
