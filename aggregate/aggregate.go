// Package aggregate turns attributed arrivals into exact counts: it keeps the
// ledger of questions, closes ticks, and computes every measure of a report.
//
// It promises that what it counts depends on the set of arrivals alone, never
// on the order in which they come, as long as each comes before its tick is
// closed. Two steps give that promise. Add only files an arrival under its tick
// (the second of its start). Close sorts what a tick holds by start, drops what
// the shipper sent twice, and steps every arrival through the state of its
// question; ticks are closed in order, so each question sees its arrivals in
// the order of their starts.
//
// The package is pure: no clock, no goroutine, no lock, no input or output.
// Time is what the arrivals carry. A Ledger belongs to one goroutine; ledgers
// over disjoint sets of keys add up (see Summary). Package pipeline decides
// which arrival goes to which ledger, when a tick may be closed, and which
// arrival is late; package keys decides what an arrival may be attributed to.
package aggregate

import "github.com/targetside/auditor/keys"

// second is one tick in nanoseconds.
const second = int64(1e9)

// ID is the identity of a question: (dependency, route, key, discriminator),
// hashed. Key covers dependency and key alone, so that the questions of one key
// can be told to be its fan-out; the two words together are 128 bits over the
// whole identity.
type ID struct{ Key, Rest uint64 }

// Outcome is what the answer was, as far as its status shows.
type Outcome uint8

// The outcomes. A retry may be caused by any but OutcomeSuccess.
const (
	OutcomeNone     Outcome = iota // no status: nothing was answered, or nothing is known
	OutcomeSuccess                 // 200…399 and, where present, grpc_status 0
	OutcomeOverload                // 429, 503 and their gRPC equivalents
	OutcomeError                   // any other 5xx and its gRPC equivalents
	OutcomeOther                   // 1xx, 4xx
)

// Departure is what the record says of the caller's leaving.
type Departure uint8

// The kinds of departure; StillThere only means that none was recorded.
const (
	StillThere Departure = iota
	BeforeResponse
	UndeliveredAnswer
	DuringResponse
	UnknownPoint
	numDepartures
)

// Kind tells the record of a finished request from a logger's interim records.
type Kind uint8

// One arrival may have a record of each kind; the last kind wins.
const (
	KindStart Kind = iota
	KindPeriodic
	KindEnd
)

// Flags are single facts of one arrival.
type Flags uint32

// The facts. Those without a comment are defined with the measure they feed.
const (
	Refused       Flags = 1 << iota // turned away by status or by the logger itself
	Visible                         // the record could have shown a departure
	Expired                         // answered past the caller's deadline
	Stale                           // arrived past the question's deadline
	Reopening                       // a verified key minted more than one horizon before the start
	NonIdempotent                   // the method may not be repeated safely (RFC 9110, 9.2.2)
	OriginScope                     // the attempt number is the originator's, not the adjacent hop's
	TrustedHop                      // the source vouches for hop numbers
	RetryShown                      // the record has a place for Retry-After
	Decidable                       // equal text proves a shipper's duplicate
	Head                            // first arrival of its record (an in-front record holds several)
	Paired                          // the records of one request share the high bits of Text, see PairShift
	InFront                         // from a logger before the dependency

	clamped // start moved up to the tick it is counted in
	unattributable
	late // came after its tick; see Ledger.Add
)

// PairShift is where the low 32 bits of a Paired arrival's Text are parted. Above
// it they identify the request, by an id that its records share and that a retry
// may share too; below it, the record. So two records of a finished request with
// one id and one start are two arrivals, unless they are copies.
const PairShift = 12

// Arrival is one request at the dependency, as the ledger takes it.
type Arrival struct {
	// Start and Log are Unix nanoseconds: when the request began, and when its
	// record was written.
	Start, Log int64
	// Duration is the time in system in nanoseconds, negative if unknown: see Untimed.
	Duration int64
	// RetryAfter is what the answer asked for, in nanoseconds from its end,
	// negative if it did not ask.
	RetryAfter int64
	// Question is set for attributable arrivals.
	Question ID
	// Text is a hash of the record's text and its source; see Paired.
	Text uint64

	// Route names (dependency, route), Originator and Peer their names, all in
	// the numbering of the caller.
	Route, Originator uint16
	Peer              uint8

	Class     keys.Class
	Reason    keys.Reason // why it is unattributable
	Outcome   Outcome
	Departure Departure
	Kind      Kind
	// Attempt is the 1-based number that the arrival carried, 0 if none.
	Attempt uint8
	// AttemptsLeft is the carried budget, NoBudget if none.
	AttemptsLeft uint8
	Flags        Flags
	Lot          Lot // with Config.Live
}

// Untimed is the Duration of an arrival whose time in system is not known. Start and Log
// are then one stamp, or a guess. start and end say whether Start, and Start as the end,
// is known all the same; deadline that the arrival had a deadline of which nobody knows
// whether it ended before. A Duration of -1 is that of nothing known, and no deadline.
func Untimed(start, end, deadline bool) int64 {
	return -1 - int64(bit(deadline)*unjudged|bit(start)*startTold|bit(end)*endTold)
}

// NoBudget is the AttemptsLeft of an arrival that carries none. Carried values
// above 254 are taken as 254.
const NoBudget = 255

// Config fixes what a ledger counts by.
type Config struct {
	// Horizon is the silence after which a question is forgotten, in
	// nanoseconds, counted from its latest arrival. At most MaxHorizon.
	Horizon int64
	// Lateness is how long a tick stays open, in nanoseconds.
	Lateness int64
	// Views are what rows are wanted.
	Views []View
	// EndAtLast books what is known of a question only at its end (arrivals per
	// question, fan-out) in the tick of its last arrival, as a report wants it,
	// instead of the tick in which it is forgotten.
	EndAtLast bool
	// Live makes the ledger tell of arrivals before their ticks are closed, in
	// beats; Output.Seconds, which a report is made of, then stays empty.
	Live bool
	// Fared makes Output.Seconds tell what became of arrivals and how long they took,
	// which budgets are read from that count other things than repeats.
	Fared bool
	// MaxLive is above how many questions only a part of them is followed, see
	// sampler; 0 is any number. Not with EndAtLast or Worst.
	MaxLive int
	// Worst is how many of the questions with the most arrivals are kept.
	Worst int
	// KeyHash gives the hash under which a key may be shown; needed with Worst. With
	// Live, questions that come back are shown under it.
	KeyHash func(key []byte) [16]byte
	// Episodes is from how many arrivals on a question that is over is handed out,
	// with Live and KeyHash; 0: never. One that is drawn is in any case.
	Episodes uint32
}

// shows says that single questions are shown.
func (c *Config) shows() bool { return c.Live && c.KeyHash != nil }

// MaxHorizon is the longest horizon, in nanoseconds: look-back times are kept in
// 40 bits of microseconds.
const MaxHorizon = 24 * 3600 * second

// margin is how much of the lateness is left for the shipper once the request
// itself has used its part: see Ledger.Add. Ten seconds, or half of a lateness
// that is too short for that.
func (c *Config) margin() int64 { return min(10*second, c.Lateness/2) }

// View asks for rows of one family: one row per Every and per combination of
// the named dimensions.
type View struct {
	ByRoute, ByOriginator, ByPeer bool
	// Every is the length of a row in ticks; 0 is one row for everything.
	Every int64
}

// Dims name a row. Dimensions that its view does not ask for are 0.
type Dims struct {
	Route, Originator uint16
	Peer              uint8
}

// tickOf is the tick of a time in Unix nanoseconds, also before 1970.
func tickOf(ns int64) int64 { return floorDiv(ns, second) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
