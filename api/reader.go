package api

import (
	"context"
	"errors"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/alerts"
)

// Reader is all that the API asks of the daemon. Its methods are called from many
// goroutines at once.
type Reader interface {
	// Snapshot returns the newest picture of what is live. It never blocks and
	// never returns nil. Neither side changes a snapshot that was handed out; a
	// new one is a new pointer, about once a second.
	Snapshot() *Snapshot

	// Range returns measures of stored rows, those of all instances. Errors that
	// callers tell apart: ErrTooMany, ErrUnavailable, the context's.
	Range(ctx context.Context, q RangeQuery) (*Range, error)

	// Questions returns what is known of the question key with this hash, live
	// and stored, the latest first, at most limit; none is no error. The errors
	// are those of Range.
	Questions(ctx context.Context, keyHash [16]byte, limit int) ([]Question, error)

	// WorstQuestions returns the stored questions with the most arrivals of those that
	// came last in a range, the most first. The errors are those of Range.
	WorstQuestions(ctx context.Context, q WorstQuery) ([]Question, error)

	// HashKey returns the hash under which a key with this text is kept. The text
	// is neither kept nor logged.
	HashKey(text string) [16]byte
}

// The errors of a Reader that the API answers in words of its own. Any other is
// an error of the daemon: it is logged, and the client learns nothing of it.
var (
	// ErrTooMany is the error of a query that takes more rows than can be read.
	ErrTooMany = errors.New("more rows than can be read at once")
	// ErrUnavailable is the error of a store that cannot be reached now.
	ErrUnavailable = errors.New("the store cannot be reached")
)

// State is what an instance can do. Standby, warming and ready are ready for
// requests.
type State string

// The states, in the order of a usual life.
const (
	Starting         State = "starting"          // nothing is read yet
	Rebuilding       State = "rebuilding"        // re-reads what the ledger has to know; figures are not of now
	Standby          State = "standby"           // another instance counts; only stored figures
	Warming          State = "warming"           // counts, but questions from before the start are unknown: repeats are missing
	Ready            State = "ready"             // counts
	StoreUnavailable State = "store_unavailable" // counts, but cannot store
	Stalled          State = "stalled"           // counts, but seconds have not been stored for long, though records come
	Failed           State = "failed"            // no source can be read
)

// Snapshot is what one instance knows at one moment. Live figures are of this
// instance's scopes, open ticks included.
type Snapshot struct {
	At    time.Time // wall clock
	State State
	// Reasons say why the instance is in a state other than ready, and what of it is
	// not well though it is, in words for people: "access-logs/3 has no owner". No
	// keys, no tokens.
	Reasons []string
	Reload  Reload

	Build         Build
	Dependencies  []Dependency // by name; those of standby scopes left out
	Configured    string       // the one dependency that the configuration names; empty where records name theirs
	Sources       []Source     // by name
	Together      Together     // of the sources that say so
	Granted       []Grant      // the retry budget of every dependency (its Route is empty), and those of single routes
	Policy        *budget.Plan // nil: none is declared
	LiveQuestions int64        // questions that are remembered, of all dependencies
	// QuestionsLeftOut counts questions that are over and were too many to be stored.
	QuestionsLeftOut uint64
	StoreWrites      Distribution // seconds that writes to the store took, failed ones too; buckets as StoreWriteBounds

	// Part says that other instances count a part of the questions: what is live is of the
	// rest.
	Part bool
	// Fleet is the sum of what all of these count; nil, if there are none or it cannot be
	// had.
	Fleet *Fleet

	// Evaluated says that what alerts are about is judged, here or, of a fleet, by the
	// instance that tells sinks; a standby alone does not. Share says that they are of this
	// instance's part of the questions alone.
	Evaluated, Share bool
	Alerts           []alerts.Alert // what is worse first
	Past             []alerts.Alert // those that are resolved, the latest first: all since PastFrom
	PastFrom         time.Time
	Notified         []alerts.Sent
	// StoreErrors counts what the store answered with an error, by kind; all kinds that
	// there are, from the start on.
	StoreErrors map[string]uint64
}

// Fleet is what the instances that share out the questions count together.
type Fleet struct {
	Members int // that are well
	Scopes  int // that one of them counts as far as now
	// Missing are the others: of these the sum has what was told last.
	Missing []string
	// Warming says that in some of them questions from before the first record are not
	// known, so that repeats are missing.
	Warming bool
	// Telling says that it is this instance that tells sinks of alerts.
	Telling      bool
	Dependencies []FleetDependency // by name
}

// FleetDependency is a dependency of a fleet.
type FleetDependency struct {
	Name       string
	ScopeSplit bool
	// Budgets are read from the sum; their peaks are since this process began to hear the
	// others.
	Budgets []Budget
}

// Build says what program this is.
type Build struct{ Version, Revision, GoVersion string }

// Dependency is what is live of one dependency.
type Dependency struct {
	Name string
	// Warming says that questions from before the instance's first record are
	// unknown, so that repeats are missing.
	Warming bool
	// CompleteUntil is the first tick that is not closed in every scope here:
	// what started before it is final. Zero: no tick is closed.
	CompleteUntil time.Time
	// ReadShare is records read / (read + quarantined + lost offsets); null if
	// there was no record.
	ReadShare aggregate.Figure
	// SampleBits k says that one question in 2^k is followed. Sums of questions
	// are weighted already.
	SampleBits int
	// ScopeSplit says that one question was seen in two scopes: amplification
	// reads low.
	ScopeSplit bool

	// Windows are of log time and end with the newest second: 10 s, 1 min and
	// 5 min. A window that cannot be filled yet is here all the same: its From
	// says how far it reaches.
	Windows []Window
	// ClosedWindows are of start time and end with CompleteUntil; of these the
	// distinct questions are known, and History.
	ClosedWindows []Window
	// Budgets are the newest readings, of the dependency (Route is empty) and of
	// routes that have a budget of their own.
	Budgets []Budget
	// Verdict is that on the window of the dependency's own budget.
	Verdict budget.Verdict
	// Worst are the questions under way that came back and have the most arrivals,
	// the most first, at most 100.
	Worst []Question
	// Closed counts closed ticks since the process began. Nothing in it ever goes
	// down, nor does a route vanish from it; routes that are configured are in it
	// from the start, and more than the limit are "other".
	Closed Counters
}

// Window is the live figures of a stretch of log time.
type Window struct {
	Length   time.Duration // 10 s, 1 min or 5 min
	From, To time.Time     // To − From is Length once the log is that long
	Total    Sums
	// Parts that had no arrival are left out. Routes is by name of the route,
	// Originators with "claimed:" and the scheme for claimed keys and "" for what
	// could not be attributed, Peers by workload.
	Routes, Originators, Peers []Part
}

// Part is one route, originator or peer of a dependency.
type Part struct {
	Name string
	Sums
}

// Sums are counts that add. docs/definitions.md gives the meaning of each field;
// it has the same name there.
type Sums struct {
	aggregate.Totals
	// Questions is D, distinct questions with an arrival in the window, and
	// QuestionsVerified Dv, those with a verified key. 0 where there are
	// attributable arrivals means that D is not known: then there is no
	// amplification, only a load factor. Ignored in Counters.
	Questions, QuestionsVerified uint64
	// History says that what takes a question's earlier arrivals is known: what
	// repeats came after, Retry-After, carried budgets. Live windows have it only
	// where the daemon has looked that up. Ignored in Counters.
	History bool
}

// Counters only ever rise.
type Counters struct {
	Total  Sums
	Routes []Part
	// PerQuestion is arrivals per question, of questions that are over.
	PerQuestion Distribution
}

// Distribution is a histogram whose counts only ever rise.
type Distribution struct {
	// Buckets are in order of Upper, none cumulative; a value of N counts in the
	// first bucket with N ≤ Upper.
	Buckets []Bucket
	Count   uint64  // of all values, those above the last bucket included
	Sum     float64 // of all values
}

// Bucket counts values above the Upper of the bucket before it.
type Bucket struct {
	Upper float64
	N     uint64
}

// StoreWriteBounds are the Uppers of Snapshot.StoreWrites, in seconds.
var StoreWriteBounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// Grant is a retry budget as configured.
type Grant struct {
	Route string
	budget.Model
}

// Budget is the newest reading of one retry budget of a dependency.
type Budget struct {
	Route    string // as in its Grant
	Model    string
	From, To time.Time // the window, in log time

	// Allowance, Spent and Consumed as defined; null if there is no reading.
	Allowance, Spent, Consumed aggregate.Figure
	// ConsumedHigh takes every unattributable arrival for a repeat.
	ConsumedHigh aggregate.Figure
	State        budget.State // empty if there is no reading
	// ExhaustsIn is seconds until consumed is 1 at the present slope; null when it
	// does not rise or is there already.
	ExhaustsIn aggregate.Figure
	// PeakConsumed and ExhaustedAt are since the process began; zero: never.
	PeakConsumed aggregate.Figure
	ExhaustedAt  time.Time
}

// Source is where records come from. Its counts only ever rise.
type Source struct {
	Name string // from the configuration, bounded: a topic or the first path
	Kind string // kafka, file, http, syslog, als
	// State is reading, idle, standby, rebuilding, full, failed or ended; Error
	// says why, with no record in it.
	State, Error string
	Dependency   string // empty: by record
	Partitions   []Partition

	// Records by outcome: Counted became arrivals, Ignored are none (health checks
	// and so on), Quarantined could not be read, by reason.
	Counted, Ignored, Duplicates uint64
	Quarantined                  map[string]uint64
	Undecidable                  uint64  // of Counted, equal records that may be copies
	Late                         uint64  // arrivals after their tick was closed
	Together                     bool    // counted with other sources: what of Duplicates, Undecidable and Late is its own is not known
	GapRecords                   uint64  // offsets that were never read
	GapInBytes                   bool    // those are bytes, as of files and spools: of how many records is not known
	Restarts                     uint64  // how often the source as a whole was begun anew after it had failed
	Intake                       *Intake // nil: nobody sends, it is read
}

// Together is what was found among the records of several sources that are counted
// together, which are those whose Together is set: of which of them it was cannot be told.
type Together struct{ Duplicates, Undecidable, Late uint64 }

// Intake is what became of the messages, a push being one, that were sent to a source.
// Its counts only ever rise, but for Connections.
type Intake struct {
	// Kept are durable. Refused are pushes whose sender was told to send them again, for
	// want of room or because nothing could be kept. Dropped found no room, Truncated
	// came cut short or were too long: both are lost. Waits is how often reading stopped
	// for want of room.
	Kept, Refused, Dropped, Truncated, Waits uint64
	Connections                              int64 // open now, or pushes under way
}

// Partition is a part of a source with an order of its own.
type Partition struct {
	Name  string
	State string // as a source's
	// Next is the offset to be read next, Committed the one that a restart reads
	// from; Lag is the records between Next and the end, below 0 if not known.
	Next, Committed, Lag int64
	// LagSeconds is how far log time is behind; null if not known.
	LagSeconds aggregate.Figure
	Watermark  time.Time // zero: no record yet
	Gaps       []Gap     // the newest first, at most 100
}

// Gap is offsets that should have been read and were not: From up to To, not
// included.
type Gap struct{ From, To int64 }

// By names what a range is split by.
type By string

// The splits of a range. Of the whole, there is one series for each dependency.
const (
	ByDependency By = "dependency"
	ByRoute      By = "route"
	ByOriginator By = "originator"
	ByPeer       By = "peer"
)

// RangeQuery asks for the measures of stretches of start time.
type RangeQuery struct {
	By By
	// Empty is all. Originator and Peer are never both set, nor one of them with
	// the other's By. "-" as Originator is what could not be attributed.
	Dependency, Route, Originator, Peer string
	// From up to To, not included, both multiples of Resolution in Unix time.
	From, To time.Time
	// Step is the length of a point, a multiple of Resolution that divides the
	// range; 0 is one point for the whole range. Resolution is 1 s, 10 s, 1 min or
	// 1 h: the coarsest rows that will do.
	Step, Resolution time.Duration
	// MaxSeries bounds the series: those with the most arrivals stay, and the
	// rest is left out and counted in Range.LeftOut.
	MaxSeries int
}

// WorstQuery asks for the questions that came last from From up to To, not included.
type WorstQuery struct {
	From, To                      time.Time
	Dependency, Route, Originator string // empty is all
	Limit                         int
}

// Range is the answer to a RangeQuery.
type Range struct {
	Series  []Series
	LeftOut int
	// Total is the measure of everything that the query let through, over the
	// whole range, split by nothing.
	Total aggregate.Measure
	// CompleteUntil is the first tick that is not closed in every scope of every
	// instance that the answer is of; zero: none is.
	CompleteUntil time.Time
	// Warming says that a part of the range was counted while warming.
	Warming    bool
	SampleBits int // the most of any row
	// ScopeSplitIn are the dependencies, by name, of which one question was seen in
	// two scopes in the range; nil if there is none.
	ScopeSplitIn []string
}

// Series is the points of one dependency, or of one part of it.
type Series struct {
	Dependency, Name string  // Name is empty by dependency
	Points           []Point // in order; stretches without arrivals are left out
}

// Point is the measure of the arrivals that started from At up to
// At + Step, not included.
type Point struct {
	At      time.Time
	Measure aggregate.Measure
	// Open says that some of it is not at rest: only plain sums are known.
	Open bool
}

// Question is one question, under the hash of its key.
type Question struct {
	KeyHash     [16]byte
	Dependency  string
	Route       string
	Originator  string
	Peers       []string
	First, Last time.Time // starts of the episode's first and last arrival
	Arrivals    uint32
	Live        bool // not over yet
}
