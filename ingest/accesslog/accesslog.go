// Package accesslog turns one line of an access log into one Entry.
//
// A Parser reads records of one format; Detect names the format of a sample.
// What an Entry says is what the line says: where a format cannot show
// something (a key, a departure, an attempt number), the field stays at its
// "unknown" value and is never guessed. In particular a record that cannot show
// that the caller left is no proof of delivery; Visible tells the two apart.
//
// Entries alias the line they were read from and the parser's scratch memory,
// so they are valid until the next call of Parse. A warm parser allocates
// nothing per record.
//
// The package knows nothing of sources, keys' meaning, questions or windows:
// package ingest brings the bytes, package keys attributes, package pipeline
// joins them.
package accesslog

import "time"

// WholeSecond is the Uncertainty of a stamp of whole seconds.
const WholeSecond int64 = 1e9

// Unknown is the value of Duration, BytesSent, GRPCStatus, AttemptsLeft and
// RetryAfter in an Entry whose record does not say.
const Unknown = -1

// Entry is one access-log record. Byte slices are nil when the record lacks the
// field and empty when it has it without a value ("-" counts as absent).
type Entry struct {
	// Text is the record itself, after every envelope was taken off: what two
	// copies of one record have in common.
	Text []byte

	// Start and End are Unix nanoseconds. Where the record has one stamp, the
	// other is derived with Duration; where it has no duration either, both are
	// the stamp. HasTime is false when the record has no stamp at all.
	Start, End int64
	HasTime    bool
	// StampIsEnd says that the logged stamp was the end of the request and Start
	// is derived.
	StampIsEnd bool
	// Uncertainty is the resolution of the logged stamp in nanoseconds:
	// 1e9 for whole seconds, 1e6 for milliseconds, 0 for nanoseconds.
	Uncertainty int64
	// Duration is the time in system in nanoseconds, or Unknown (absent,
	// negative, NaN).
	Duration int64

	Dependency, Route, Method, Path, Authority, UserAgent, Peer []byte

	// Status is the HTTP status the record really shows, 0 if it has none (the
	// synthetic 0, 000, -1 that loggers write for "no response"). StatusRaw is
	// the text as logged.
	Status     int
	StatusRaw  []byte
	GRPCStatus int   // 0…16 and up; Unknown if absent
	BytesSent  int64 // as logged (body or wire, see docs); Unknown if absent

	// Keys holds the values of Config.Keys, in that order, in the record's own
	// syntax with only the log's escaping removed; nil where absent.
	Keys [][]byte
	// KeySuspect is set when the line's quoting was broken in a way that lets a
	// caller choose what stands where the key should be: no key may be taken.
	KeySuspect bool
	// Extra holds the values of Config.Extra, in that order.
	Extra [][]byte

	// RequestID is x-request-id or the logger's equivalent, for display.
	RequestID []byte
	// ArrivalID is an id that the logger itself minted for this one request
	// (nginx $request_id, the canonical arrival_id); nil if it has none.
	ArrivalID []byte

	// Attempt is the 1-based attempt number that this arrival carried, 0 if
	// none. Scope says who counts.
	Attempt      int
	AttemptScope Scope
	AttemptsLeft int
	// Deadline is the caller's deadline in Unix nanoseconds, 0 if the record has
	// none. Relative deadlines are counted from Start.
	Deadline int64
	// RetryAfter is what the response asked the caller to wait from End, in
	// nanoseconds; Unknown if it did not ask. RetryAfterShown says that the
	// record has a place for it.
	RetryAfter      int64
	RetryAfterShown bool

	Gone      Gone
	Delivered Delivered
	Work      Work
	Departure Departure
	// Visible says that this record would have shown a departure had there been
	// one. False means unknown, never "delivered".
	Visible bool
	// Local says that the logger answered itself and the dependency was not
	// asked (circuit open, rate limit, no route, overload).
	Local bool

	// Tries is what the logger itself sent upstream for this one record, in
	// order; empty if the format does not say.
	Tries []Try

	// Kind tells a finished request from a logger's start or progress record.
	Kind Kind
	// StreamID pairs the start, progress and end records of one request; only
	// set when the record says which kind it is.
	StreamID []byte
	// Outbound marks the caller's side of a mesh hop: the same request is in the
	// log of the target's side too.
	Outbound bool

	// Damaged counts records on this line that were broken and skipped before
	// this one was found.
	Damaged int
	Notes   Notes

	// Sources names the log field that gave each canonical field. Only filled
	// when Config.Trace is set.
	Sources map[string]string
}

// Try is one upstream attempt inside one record.
type Try struct {
	Addr   []byte
	Status int   // 0: none received
	Time   int64 // nanoseconds; Unknown if not measured
	Group  int   // 0, 1, …: internal redirects start a new group
	Sent   bool  // the request reached an upstream (a connection was made)
}

// Scope says which party counts the attempt number.
type Scope uint8

// An attempt number is of the adjacent hop (rewritten by each proxy) or of the
// originator's SDK (forwarded unchanged).
const (
	ScopeNone Scope = iota
	ScopeHop
	ScopeOrigin
)

// Kind is the kind of a record.
type Kind uint8

// KindEnd is a finished request and the kind of every logger that writes one
// record a request.
const (
	KindEnd Kind = iota
	KindStart
	KindPeriodic
)

// Gone is the evidence that the caller left early.
type Gone uint8

// See formats documentation for what each logger can show.
const (
	GoneNoRecord Gone = iota // the line says nothing
	GoneNo                   // the line shows that it was not a departure
	GoneLikely
	GoneYes
)

// Delivered is what reached the caller.
type Delivered uint8

// DeliveredAll means accepted by the kernel or codec; it never proves receipt.
const (
	DeliveredUnknown Delivered = iota
	DeliveredNone
	DeliveredPartial
	DeliveredAll
)

// Work says whether the dependency behind the logger did the work.
type Work uint8

// WorkNo means the record shows that the dependency was not asked.
const (
	WorkUnknown Work = iota
	WorkYes
	WorkNo
)

// Departure is the kind of departure that a record shows.
type Departure uint8

// NotRecorded is not evidence of delivery.
const (
	NotRecorded Departure = iota
	BeforeResponse
	UndeliveredAnswer
	DuringResponse
	UnknownPoint
)

func (g Gone) String() string { return [...]string{"no_record", "no", "likely", "yes"}[g] }

func (d Delivered) String() string {
	return [...]string{"unknown", "none", "partial", "all_handed_over"}[d]
}

func (w Work) String() string { return [...]string{"unknown", "yes", "no"}[w] }

func (d Departure) String() string {
	return [...]string{"not_recorded", "before_response", "undelivered_answer", "during_response", "unknown_point"}[d]
}

// Config says how a Parser reads.
type Config struct {
	// Format is one of Formats.
	Format string
	// Fields maps canonical names (time, status, question_key, …) to the log's
	// own field names. It adds to the names the format knows, and wins over them.
	Fields map[string]string
	// Keys are the canonical or log field names whose values Entry.Keys holds.
	Keys []string
	// Extra are the log field names whose values Entry.Extra holds.
	Extra []string
	// Pattern is the format string of a format that has one: Apache's LogFormat,
	// IIS's #Fields line, or the expression of format pattern. Empty is the format's
	// own.
	Pattern string
	// Zone is that of stamps that carry none; nil is UTC. A stamp in the hour that
	// a zone repeats in autumn is read as of the first, with an Uncertainty of as
	// much as the clock was set back.
	Zone *time.Location
	// AttemptScope overrides the format's own scope when not ScopeNone.
	AttemptScope Scope
	// Trace fills Entry.Sources, at the price of speed.
	Trace bool
}

// Reject is why a line is no record. It is an error and a reason to count by;
// it never holds any part of the line.
type Reject string

func (r Reject) Error() string { return string(r) }

// The reasons for which Parse refuses a line. Each is quarantined and counted
// under its own name.
const (
	RejectSyntax  = Reject("syntax")    // not of this format at all
	RejectCut     = Reject("cut_short") // the record ends in mid-field
	RejectBinary  = Reject("binary")    // control bytes, not text
	RejectNoTime  = Reject("no_time")   // no stamp
	RejectBadTime = Reject("bad_time")  // a stamp that is no time
	RejectTooLong = Reject("too_long")  // longer than MaxLine
	RejectDamaged = Reject("damaged")   // a broken record before a good one
	// RejectOther is no record and was never meant to be one: what a container
	// said on stderr, or what a server logs beside its access log. It is ignored,
	// not quarantined.
	RejectOther = Reject("other_stream")
)

// MaxLine is the longest line, in bytes, that is read as a record.
const MaxLine = 4 << 20
