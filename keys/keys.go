// Package keys turns the key fields of one access-log record into a judgement of who authored the question: verified,
// claimed, or unattributable with exactly one reason.
//
// What it promises:
//
//   - The first accepted scheme whose field holds something decides. A bad key never falls through to the next scheme: a
//     forged signed key beside a plausible trace id is forged, not claimed.
//   - Reasons are tested in the order of the Reason constants, and the first that holds is given.
//   - Verified means that the tag was recomputed, or the signature checked, over exactly this text by this ring. One key
//     has exactly one text: paddings, leading zeros and stray trailing bits are malformed, so nothing counts twice.
//   - The tag is checked once per key and checker, the time tests at every arrival.
//   - No secret appears in an error, in a printed value or in an Attribution.
//
// For Go callers it also mints keys at the question boundary (Minter) and forwards what a context carries (Transport).
//
// It does not count arrivals, does not know routes or discriminators, and never answers Late: package aggregate and the
// pipeline do. It knows nothing of log formats: a caller that reads a line whose quoting cannot be trusted says so.
package keys

import "time"

// Class says what is known of the author of an arrival's key.
type Class uint8

const (
	Unattributable Class = iota // never counted as a question, not even as a question of one
	Claimed                     // an accepted scheme that cannot prove its author
	Verified                    // the key proves who authored it
)

// String returns the word used in reports.
func (c Class) String() string {
	switch c {
	case Claimed:
		return "claimed"
	case Verified:
		return "verified"
	}
	return "unattributable"
}

// Reason says why an arrival is unattributable. The constants stand in the order in which the reasons are tested.
type Reason uint8

const (
	None              Reason = iota // the arrival is attributable
	Absent                          // no accepted field holds anything
	Malformed                       // the deciding field does not hold one whole key of its scheme
	UnknownOriginator               // nobody here knows this originator or kid
	Forged                          // the tag does not match: somebody re-minted the key
	Expired                         // minted longer ago than the lifetime
	NotYetValid                     // minted ahead of the start by more than the skew
	Unsigned                        // a claimed key where verified ones are required
	Unchecked                       // over the verification limit
	Late                            // the record came after its tick had closed; set by the pipeline, never by Attribute
)

// NumReasons is the number of Reason values, None included: the size of an array indexed by Reason.
const NumReasons = int(Late) + 1

var reasonNames = [NumReasons]string{"", "absent", "malformed", "unknown_originator", "forged", "expired", "not_yet_valid",
	"unsigned", "unchecked", "late"}

// String returns the word used in reports and metrics; "" for None.
func (r Reason) String() string {
	if int(r) < NumReasons {
		return reasonNames[r]
	}
	return "unknown"
}

// Attribution is what one arrival's key fields say.
type Attribution struct {
	Class  Class
	Reason Reason // None exactly when Class is not Unattributable

	// Scheme and SchemeIndex name the entry of Config.Accept that decided: the scheme's name, or the field's for a named
	// field. "" and -1 when no accepted field holds anything. A question_key whose prefix is not accepted stands under the
	// first accepted scheme that reads that field.
	Scheme      string
	SchemeIndex int

	// Originator and OriginatorIndex (into Config.Originators) name the author only where the tag proved it: for Verified,
	// and for Expired and NotYetValid unless the tag went unchecked. Otherwise "" and -1. Minted (Unix milliseconds, from
	// the key) and Deadline (the originator's) are set under the same condition, otherwise 0.
	Originator      string
	OriginatorIndex int
	Minted          int64
	Deadline        time.Duration

	// Key is the identity text after syntax is removed; nil when unattributable. It aliases the value passed in or the
	// checker's scratch, and is valid until the next call of Attribute. Two schemes may yield the same text and mean two
	// keys: whoever hashes it hashes SchemeIndex or Scheme with it.
	Key []byte
	// Hash is 128 bits over the whole of Key, under seeds that are secret and the
	// ring's own; zero when unattributable.
	Hash [2]uint64
}
