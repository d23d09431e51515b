// Package store keeps rows at rest: the counts of each tick, their roll-ups, what
// was read, and where sources without a broker stopped.
//
// Promises:
//   - Rows replace and never add. A row is named by its resolution, time,
//     dimensions, scope and late block; of two rows with one name the one with
//     the higher rules, and then the higher version, stays, whichever came last.
//     So a write may be repeated, a crashed owner's may come late, and a rebuilt
//     row may be written again: nothing is counted twice.
//   - A write is all there or not at all. An error does not say which: whoever
//     gets one writes the same again.
//   - Of each scope and tick only the highest rules are ever returned: a row that
//     the newer rules no longer have is gone. See Write.Rules.
//   - Ranges are exact: roll-ups carry what distinct counts need.
//   - A roll-up is made of all that belongs to it or not at all. A row that would
//     ask for making one of a part, because the rest has expired, is dropped: one
//     on time once the ticks of its ten seconds have expired, a late one once the
//     rows of ten seconds of its minute have.
//
// A SQLite file belongs to one process. A ClickHouse database is shared by many, each
// of which writes scopes of its own, and the promises hold as well. Where two write one
// scope at the same moment by different rules, say because one does not know yet that
// it has lost it, they hold once the ticks that were open then are closed;
// docs/clickhouse.md says what may be seen before.
//
// The rows are those of the aggregate package; what a key or a record is, the
// store does not know. Key texts come as hashes.
package store

import (
	"context"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// Resolution is the length of a row in seconds.
type Resolution int64

// The resolutions. Ticks are written; the others are made of them.
const (
	Tick       Resolution = 1
	TenSeconds Resolution = 10
	Minute     Resolution = 60
	Hour       Resolution = 3600
)

// Family says what the rows of one kind have besides dependency and route.
type Family uint8

// The families of rows.
const (
	ByOriginator Family = iota
	ByPeer
)

// Row is one row. A row of a whole dependency (Wide) holds what belongs to none
// of its routes; its Route is empty.
type Row struct {
	Family     Family
	At         int64 // Unix seconds, a multiple of its resolution
	Scope      string
	LateBlock  int64 // of late records: their partition's block of offsets; OnTime for all others
	Dependency string
	Route      string
	Name       string // of the originator or the peer
	Wide       bool
	// Rules are those that the scope's records were read by, Version how many of
	// its records the row may depend on.
	Rules   uint32
	Version uint64
	// Open says that the tick was not closed when the row was written; a row is
	// returned as open only while it still is not.
	Open bool
	// Counts is not kept by a store. Writing may tidy it, so nobody else may use
	// it meanwhile.
	Counts *aggregate.Counts
}

// OnTime is the LateBlock of rows that are not of late records.
const OnTime = -1

// Range is a run of records of one partition: offsets From up to To, not
// included.
type Range struct {
	Partition string
	From, To  int64
}

// Write is what one scope found, to be stored together.
type Write struct {
	Scope string
	// Rules are those of all its rows. Rules start at the first Closed that is
	// written under them, or at the earliest row on time if that is before it;
	// what lies before stays as older rules left it. From there on the rows of
	// older rules are deleted, late ones too, of each tick that is closed under
	// the new ones or gets its first row on time under them. A late block is
	// deleted as a whole, in all its ticks, when its first row under newer rules
	// comes. What is deleted stays out if it comes again. A roll-up stays as older
	// rules made it until the newer ones have closed its bucket.
	Rules uint32
	Rows  []Row // of ticks
	// Closed is the tick before which all ticks of the scope are closed: no row
	// of them will come any more but those of late blocks. Roll-ups of buckets
	// that end at or before it are there after the write, though hours of many
	// series may be put together of their minutes whenever they are read, until some
	// more writes have made them; a late row makes those that it falls in anew. It never goes back under the same rules; 0 says
	// nothing. Under new rules the first one must be the tick from which on rows
	// are written, even if the ledger was fed with earlier ones: what is closed
	// after that and has no rows is empty.
	Closed    int64
	Counted   []Range
	Questions []Question
	// Note is what the writer wants to know of the scope when it begins again. It is
	// kept with the rows or what is closed, or not at all, in place of the one before,
	// which nil leaves; and not if higher rules are known.
	Note []byte
	// Horizon is the silence after which a question is over. With it, questions that
	// are drawn are compared over scopes; see Store.Splits.
	Horizon time.Duration
}

// Query asks for the rows of a family from From up to To, not included, both
// multiples of Resolution. An empty Dependency, Route or Name asks for all.
type Query struct {
	Family     Family
	Resolution Resolution
	From, To   int64
	Dependency string
	Route      string
	Name       string
	// Limit bounds the rows returned; more is ErrTooMany.
	Limit int
}

// Store keeps what daemons write. Its methods may be called from any goroutine.
type Store interface {
	Write(ctx context.Context, w *Write) error
	// Rows returns rows in order of At, and of one At by all else that names
	// them: those of all scopes and late blocks, for whoever asks to merge. A
	// roll-up has the highest rules and the sum of the versions of its ticks; its
	// late rows are merged in, and its LateBlock is OnTime.
	Rows(ctx context.Context, q Query) ([]Row, error)
	// Questions returns what is known of a key, the latest first, at most limit.
	Questions(ctx context.Context, keyHash [16]byte, limit int) ([]Question, error)
	// WorstQuestions returns those with the most arrivals, the most first; of equals
	// the one first that came last earlier.
	WorstQuestions(ctx context.Context, q QuestionQuery) ([]Question, error)
	// Splits returns the dependencies, by name, of which one question was stored in
	// two scopes, having come last in one of the minutes of a range of Unix seconds.
	Splits(ctx context.Context, from, to int64) ([]string, error)
	// Counted returns what was counted of a partition, as few ranges as can be,
	// in order.
	Counted(ctx context.Context, partition string) ([]Range, error)
	// Note returns a scope's latest note, nil if there is none.
	Note(ctx context.Context, scope string) ([]byte, error)
	// Closed returns, by scope, the tick before which all is final.
	Closed(ctx context.Context) (map[string]int64, error)
	// NextRules takes the next version of rules for a scope; it starts at 1, and
	// is above all that rows were written under.
	NextRules(ctx context.Context, scope string) (uint32, error)
	// Load and Save keep the states of sources; see ingest.Positions.
	Load(ctx context.Context, name string) ([]byte, error)
	Save(ctx context.Context, name string, state []byte) error
	// Expire deletes what is older than its retention; what has none stays.
	// Questions and splits, and late rows of ticks, have that of TenSeconds: a late
	// row may come for as long, and the roll-ups that it falls in are then made anew of all
	// late ticks of theirs. Rows of buckets that are not closed stay until they are,
	// or are older than rows of hours.
	Expire(ctx context.Context, now time.Time, retention map[Resolution]time.Duration) error
	// Check says whether the store can be written to. It finds out by writing.
	Check(ctx context.Context) error
	Close() error
}
