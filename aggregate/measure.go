package aggregate

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/keys"
)

// Figure is a ratio as a report prints it: a number, null where there is nothing
// to divide, or "unbounded" where a bound has no upper end.
type Figure struct {
	value float64
	kind  figureKind
}

type figureKind uint8

const (
	noFigure figureKind = iota
	number
	unbounded
)

// Value returns the number, if the figure is one.
func (f Figure) Value() (float64, bool) { return f.value, f.kind == number }

// Unbounded says that the figure is a bound without an upper end.
func (f Figure) Unbounded() bool { return f.kind == unbounded }

// MarshalJSON prints a number, null or "unbounded".
func (f Figure) MarshalJSON() ([]byte, error) {
	switch f.kind {
	case number:
		return json.Marshal(f.value)
	case unbounded:
		return []byte(`"unbounded"`), nil
	}
	return []byte("null"), nil
}

// Number is v as a figure; null if v is not a number or has no end.
func Number(v float64) Figure {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Figure{}
	}
	return Figure{v, number}
}

// Share is a / b, and null for b = 0.
func Share(a, b uint64) Figure {
	if b == 0 {
		return Figure{}
	}
	return Figure{float64(a) / float64(b), number}
}

// Bound is a / b, "unbounded" for b = 0, and null if both are 0.
func Bound(a, b uint64) Figure {
	if b == 0 && a > 0 {
		return Figure{kind: unbounded}
	}
	return Share(a, b)
}

// Measure is what is known of some arrivals: of everything, of a dependency, a
// route, an originator, a peer, or a window of time. docs/definitions.md gives
// the meaning of each field.
type Measure struct {
	Arrivals       uint64         `json:"arrivals"`
	Attributable   uint64         `json:"attributable"`
	Verified       uint64         `json:"verified"`
	Claimed        uint64         `json:"claimed"`
	Unattributable Unattributable `json:"unattributable"`
	Coverage       Figure         `json:"coverage"`
	ReadShare      Figure         `json:"read_share"`

	Questions             uint64 `json:"questions"`
	Originals             uint64 `json:"originals"`
	Repeats               uint64 `json:"repeats"`
	OrphanAttempts        uint64 `json:"orphan_attempts"`
	Reopened              uint64 `json:"reopened"`
	LoadFactor            Figure `json:"load_factor"`
	Amplification         Figure `json:"amplification"`
	WindowShort           bool   `json:"window_short"`
	AmplificationLow      Figure `json:"amplification_low"`
	AmplificationHigh     Figure `json:"amplification_high"`
	StrictLow             Figure `json:"strict_low"`
	StrictHigh            Figure `json:"strict_high"`
	AmplificationIfFailed Figure `json:"amplification_if_failed"`

	PerQuestion PerQuestion `json:"per_question"`
	FanOut      FanOut      `json:"fan_out"`
	Hops        Hops        `json:"hops"`
	RepeatAfter RepeatAfter `json:"repeat_after"`

	AttemptBudget   AttemptBudget `json:"attempt_budget"`
	RetryGap        RetryGap      `json:"retry_gap"`
	RetryAfter      *RetryAfter   `json:"retry_after"`
	StaleArrivals   uint64        `json:"stale_arrivals"`
	Answered        uint64        `json:"questions_answered"`
	DoubleSuccess   uint64        `json:"double_success"`
	Responses       Responses     `json:"responses"`
	Budget          Budget        `json:"budget"`
	Undiscriminated bool          `json:"undiscriminated,omitempty"`
	// Variance is that of Originals, which is 0 if every question was followed.
	Variance uint64 `json:"-"`
}

// Unattributable counts arrivals by the reason for which they could not be
// attributed to a question.
type Unattributable struct {
	Total   uint64
	Reasons [keys.NumReasons]uint64
}

// Each reports every reason and its count, zeros included, in the order in which
// reasons are tested.
func (u Unattributable) Each(f func(reason string, n uint64)) {
	for r := keys.None + 1; int(r) < keys.NumReasons; r++ {
		f(r.String(), u.Reasons[r])
	}
}

// MarshalJSON prints the total and the reasons that occurred.
func (u Unattributable) MarshalJSON() ([]byte, error) {
	out := append([]byte(`{"total":`), strconv.FormatUint(u.Total, 10)...)
	for r, n := range u.Reasons {
		if n > 0 {
			out = append(out, `,"`+keys.Reason(r).String()+`":`...)
			out = strconv.AppendUint(out, n, 10)
		}
	}
	return append(out, '}'), nil
}

// PerQuestion is the distribution of arrivals per question. Quantiles are by
// nearest rank; above 32 a bucket of the histogram answers with its upper bound,
// which is also its name; max is exact.
type PerQuestion struct {
	P50       *uint64           `json:"p50"`
	P90       *uint64           `json:"p90"`
	P99       *uint64           `json:"p99"`
	Max       *uint64           `json:"max"`
	Histogram map[string]uint64 `json:"histogram"`
}

// FanOut is the distribution of distinct questions per key.
type FanOut struct {
	P50 *uint64 `json:"p50"`
	Max *uint64 `json:"max"`
}

// Hops says where arrivals multiply, from the attempt numbers they carried.
type Hops struct {
	Adjacent Figure  `json:"adjacent"`
	Above    Figure  `json:"above"`
	Origin   Figure  `json:"origin"`
	Between  Figure  `json:"between"`
	Logger   Figure  `json:"logger"`
	SamePeer Figure  `json:"same_peer"`
	Reason   *string `json:"reason"`
}

// RepeatAfter counts repeats by what the previous arrival of their question got.
type RepeatAfter struct {
	Gone     uint64 `json:"gone"`
	Error    uint64 `json:"5xx"`
	Overload uint64 `json:"429_503"`
	Success  uint64 `json:"success"`
	InFlight uint64 `json:"in_flight"`
}

// AttemptBudget counts violations of budgets that arrivals carried.
type AttemptBudget struct {
	Overspent      uint64 `json:"overspent"`
	NotDecremented uint64 `json:"not_decremented"`
	Increased      uint64 `json:"increased"`
}

// RetryGap is the distribution of seconds between successive arrivals.
type RetryGap struct {
	P50 *float64 `json:"p50"`
	P90 *float64 `json:"p90"`
	P99 *float64 `json:"p99"`
}

// RetryAfter counts answers that asked for patience, and who came back early.
type RetryAfter struct {
	Asked    uint64  `json:"asked"`
	Returned *uint64 `json:"returned"` // nil if not known, as Early
	Early    *uint64 `json:"early"`
}

// Responses says what became of the answers.
type Responses struct {
	Total             uint64  `json:"total"`
	Answers           uint64  `json:"answers"`
	Refused           uint64  `json:"refused"`
	Success           uint64  `json:"success"`
	Disconnected      uint64  `json:"disconnected"`
	UndeliveredAnswer uint64  `json:"undelivered_answer"`
	DuringResponse    uint64  `json:"during_response"`
	BeforeResponse    uint64  `json:"before_response"`
	UnknownPoint      uint64  `json:"unknown_point"`
	Visibility        Figure  `json:"visibility"`
	Expired           *uint64 `json:"expired"` // nil if not known
	Unjudged          uint64  `json:"unjudged"`
	DeadShare         Figure  `json:"dead_share"`
	AbandonedShare    Figure  `json:"abandoned_share"`
	DeadSeconds       Figure  `json:"dead_seconds"`
	BusySeconds       Figure  `json:"busy_seconds"`
	RepeatSeconds     Figure  `json:"repeat_seconds"`
	Untimed           uint64  `json:"untimed"`
	Goodput           Figure  `json:"goodput_per_second"`
}

// Budget is the retry budget's reading in the window that spent most of it.
type Budget struct {
	Model        string        `json:"model"`
	Allowance    Figure        `json:"allowance"`
	Spent        Figure        `json:"spent"`
	Consumed     Figure        `json:"consumed"`
	State        *budget.State `json:"state"`
	PeakConsumed Figure        `json:"peak_consumed"`
	ExhaustedAt  *string       `json:"exhausted_at"`
}

// scope is what a measure needs to know besides its counts.
type scope struct {
	byPeer    bool    // of a peer; fan-out is of keys, not of peers
	seconds   int64   // length of the range
	span      float64 // p99 of last − first of the questions, in seconds
	readShare Figure
}

// measure forms the ratios of some counts.
func (c *Counts) measure(s scope) Measure {
	var u Unattributable
	for r := range u.Reasons {
		n := c.n[int(nUnattributable)+r]
		u.Reasons[r] = n
		u.Total += n
	}
	a := c.n[nVerified] + c.n[nClaimed]
	all := a + u.Total
	d, claimed := c.distinct(theQuestions)
	originals := c.n[nOriginals]
	if c.n[nVariance] > 0 { // estimates may pass what they are of
		d, originals = min(d, a), min(originals, a)
		claimed = min(claimed, d, c.n[nClaimed])
	}
	failed, _ := c.distinct(withFailedFirst)
	m := Measure{
		Arrivals: c.n[nArrivals], Attributable: a, Verified: c.n[nVerified], Claimed: c.n[nClaimed],
		Unattributable: u, Coverage: Share(a, all), ReadShare: s.readShare,
		Questions: d, Originals: originals, Repeats: a - originals,
		OrphanAttempts: c.n[nOrphanAttempts], Reopened: c.n[nReopened],
		LoadFactor: Share(a, originals), Amplification: Share(a, d),
		WindowShort:           float64(s.seconds) < s.span,
		AmplificationLow:      Bound(all, d+u.Total),
		AmplificationHigh:     Bound(all, less(d, c.n[nReopened])),
		StrictLow:             Bound(all, d-claimed+u.Total+c.n[nClaimed]),
		StrictHigh:            Bound(all, less(d-claimed, c.n[nReopened])),
		AmplificationIfFailed: Share(c.n[nFailedArrivals], failed),
		Hops:                  c.hops(a),
		RepeatAfter:           RepeatAfter{c.n[nAfterGone], c.n[nAfterError], c.n[nAfterOverload], c.n[nAfterSuccess], c.n[nAfterFlight]},
		AttemptBudget:         AttemptBudget{c.n[nOverspent], c.n[nNotDecremented], c.n[nIncreased]},
		Variance:              c.n[nVariance],
		StaleArrivals:         c.n[nStale], Answered: c.n[nAnswered], DoubleSuccess: c.n[nDoubleSuccess],
		Responses: c.responses(s.seconds),
	}
	h := &c.PerQuestion
	m.PerQuestion = PerQuestion{h.count(0.5), h.count(0.9), h.count(0.99), h.largest(), map[string]uint64{}}
	h.each(func(at uint32, n uint64) { m.PerQuestion.Histogram[strconv.FormatUint(countUpper(at), 10)] += n })
	if !s.byPeer && c.n[nVariance] == 0 {
		fans := c.fanOut()
		m.FanOut = FanOut{fans.count(0.5), fans.largest()}
	}
	m.RetryGap = RetryGap{c.Gaps.seconds(0.5), c.Gaps.seconds(0.9), c.Gaps.seconds(0.99)}
	if c.n[nRetryShown]+c.n[nRetryReturned] > 0 {
		t := c.Totals()
		m.RetryAfter = t.Retries()
	}
	return m
}

// Measure forms the measure of counts over a range of so many seconds. readShare is
// the share of records that could be read; byPeer is for the counts of a peer. Of
// budgets it says nothing: those are read in log time.
func (c *Counts) Measure(seconds int64, readShare Figure, byPeer bool) Measure {
	s := scope{seconds: seconds, readShare: readShare, byPeer: byPeer}
	if p := c.Spans.seconds(0.99); p != nil {
		s.span = *p
	}
	c.tally.empty(&c.n)
	m := c.measure(s)
	return m
}

// FanOutOf replaces the fan-out by route with that of whole dependencies, which
// rows of their own have.
func (c *Counts) FanOutOf(wide ...*Counts) {
	c.FanOut = Histogram{}
	for _, w := range wide {
		c.FanOut.Merge(&w.FanOut)
	}
}

func less(a, b uint64) uint64 { return a - min(a, b) }

// The reasons for which hop figures are missing.
const (
	noNumbers      = "no_attempt_numbers"
	oneOrRewritten = "one_attempt_or_rewritten"
)

func (c *Counts) hops(attributable uint64) Hops {
	repeats := less(attributable, c.n[nOriginals])
	numbers, _ := c.distinct(originNumbers)
	numbered, _ := c.distinct(withOriginNumber)
	ones, _ := c.distinct(withHopOne)
	h := hopsOf(&c.n, repeats, ones)
	h.Origin = Share(numbers, numbered)
	h.Between = Share(c.n[nOriginNumbered], numbers)
	h.Logger = Share(c.n[nFrontArrivals], c.n[nFrontRecords])
	h.SamePeer = Share(c.n[nSamePeer], repeats)
	return h
}

// hopsOf is what the numbers of the adjacent hop tell; ones are the questions with an
// arrival of number 1.
func hopsOf(n *[numCounters]uint64, repeats, ones uint64) (h Hops) {
	reason := ""
	switch {
	case n[nHopNumbered] == 0:
		reason = noNumbers
	case repeats > 0 && n[nHopNumbered] == n[nHopOnes] && n[nHopTrusted] < n[nHopNumbered]:
		// Either the neighbour makes one attempt, or a proxy between it and the
		// log wrote the number anew: the two look alike.
		reason = oneOrRewritten
	default:
		h.Adjacent = Share(n[nHopNumbered], n[nHopOnes])
		h.Above = Share(n[nHopOnesKnown], ones)
		return h
	}
	h.Reason = &reason
	return h
}

func (c *Counts) responses(seconds int64) Responses {
	dep := func(d Departure) uint64 { return c.n[int(nDepartures)+int(d)] }
	dead := dep(UndeliveredAnswer) + dep(DuringResponse) + dep(UnknownPoint)
	t := c.Totals()
	r := Responses{
		Total: c.n[nArrivals], Answers: c.n[nAnswers], Refused: c.n[nRefused], Success: c.n[nSuccess],
		Disconnected: dead + dep(BeforeResponse), UndeliveredAnswer: dep(UndeliveredAnswer),
		DuringResponse: dep(DuringResponse), BeforeResponse: dep(BeforeResponse), UnknownPoint: dep(UnknownPoint),
		Visibility: Share(c.n[nVisible], c.n[nArrivals]), Expired: t.Past(), Unjudged: t.Unjudged,
		DeadShare: t.DeadShare(), AbandonedShare: Share(dep(BeforeResponse), c.n[nArrivals]),
	}
	r.DeadSeconds, r.BusySeconds, r.RepeatSeconds, r.Untimed = t.DeadTime(), t.BusyTime(), t.RepeatTime(), t.Untimed
	if seconds > 0 {
		r.Goodput = Number(float64(c.n[nGood]) / float64(seconds))
	}
	return r
}

func (h *Histogram) count(q float64) *uint64 {
	if h.N() == 0 {
		return nil
	}
	v := countUpper(h.rank(q))
	return &v
}

func (h *Histogram) largest() *uint64 {
	if h.N() == 0 {
		return nil
	}
	v := uint64(h.max)
	return &v
}

func (h *Histogram) seconds(q float64) *float64 {
	if h.N() == 0 {
		return nil
	}
	v := gapUpper(h.rank(q))
	return &v
}
