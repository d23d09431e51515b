package aggregate

// filed is an arrival in an open tick, in 24 bytes. The tick is that of the
// buffer it lies in. Everything that a question's state can need of it is here.
type filed struct {
	start uint32 // nanoseconds into the tick
	dur   uint32 // packed duration
	owner uint32 // the question, or dims and reason of an unattributable arrival
	text  uint32 // hash of the record
	flags Flags  // with Outcome, Departure and Kind in the high bits
	retry uint16 // packed Retry-After
	peer  uint8
	num   uint8 // attempt number
}

// AttemptsLeft has no room of its own in filed: it lies in the low byte of
// flags' spare bits, see packFlags.
const (
	outcomeShift   = 16
	departureShift = 19
	kindShift      = 22
	leftShift      = 24

	factsMask = 1<<outcomeShift - 1
)

func packFlags(f Flags, a *Arrival) Flags {
	return f&factsMask | Flags(a.Outcome)<<outcomeShift | Flags(a.Departure)<<departureShift |
		Flags(a.Kind)<<kindShift | Flags(a.AttemptsLeft)<<leftShift
}

func (f Flags) outcome() Outcome     { return Outcome(f >> outcomeShift & 7) }
func (f Flags) departure() Departure { return Departure(f >> departureShift & 7) }
func (f Flags) kind() Kind           { return Kind(f >> kindShift & 3) }
func (f Flags) left() uint8          { return uint8(f >> leftShift) }

// failed says that the caller had cause to ask again.
func (f Flags) failed() bool {
	return f.outcome() != OutcomeSuccess || f.departure() != StillThere
}

// A packed duration is 30 bits of a unit named by the two high bits. The unit is
// the finest that holds the value without loss: microseconds where the value is
// whole in them, nanoseconds below a second, and otherwise microseconds or, past
// 17 minutes, milliseconds.
const (
	unitNano  = 0 << 30
	unitMicro = 1 << 30
	unitMilli = 2 << 30
	unitMask  = 3 << 30

	noDuration = uint32(3) << 30 // or-ed with what is known all the same
)

// What an unknown duration goes with, see Untimed.
const (
	unjudged  = 1 << 0
	startTold = 1 << 1
	endTold   = 1 << 2
)

// tells says that a packed duration is known, or goes with what is asked for.
func tells(d uint32, what uint32) bool { return d&unitMask != noDuration || d&what != 0 }

func packDuration(ns int64) uint32 {
	const room = 1<<30 - 1
	switch {
	case ns < 0:
		return noDuration | uint32(-1-ns)&(unjudged|startTold|endTold)
	case ns%1e3 == 0 && ns/1e3 <= room:
		return unitMicro | uint32(ns/1e3)
	case ns <= room:
		return unitNano | uint32(ns)
	case ns/1e3 <= room:
		return unitMicro | uint32((ns+500)/1e3)
	case ns/1e6 <= room:
		return unitMilli | uint32(ns/1e6)
	}
	return unitMilli | room
}

// unpackDuration returns nanoseconds, 0 for an unknown duration.
func unpackDuration(d uint32) int64 {
	v := int64(d &^ unitMask)
	switch d & unitMask {
	case unitNano:
		return v
	case unitMicro:
		return v * 1e3
	case unitMilli:
		return v * 1e6
	}
	return 0
}

// PackRetry keeps of a Retry-After, in nanoseconds, what a ledger needs: 0 for
// none (negative), otherwise one more than the value in hundredths of a second, up
// to almost 11 minutes. Servers ask for whole seconds, or for a date, which is
// whole seconds too.
func PackRetry(ns int64) uint16 {
	if ns < 0 {
		return 0
	}
	return uint16(min(ns/1e7, 65534)) + 1
}

// UnpackRetry is what PackRetry kept, in nanoseconds, -1 for none.
func UnpackRetry(r uint16) int64 {
	if r == 0 {
		return -1
	}
	return (int64(r) - 1) * 1e7
}
