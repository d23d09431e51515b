package api

import (
	"encoding/json"
	"time"

	"github.com/targetside/auditor/aggregate"
)

// instant is a time as answers print it: RFC 3339 in UTC to the millisecond, and
// null where there is none.
type instant time.Time

func (t instant) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(time.Time(t).UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano))
}

// figures are the live measure of some sums.
type figures struct {
	Arrivals       uint64                   `json:"arrivals"`
	Attributable   uint64                   `json:"attributable"`
	Verified       uint64                   `json:"verified"`
	Claimed        uint64                   `json:"claimed"`
	Unattributable aggregate.Unattributable `json:"unattributable"`
	Coverage       aggregate.Figure         `json:"coverage"`

	Questions        aggregate.Figure `json:"questions"`
	Originals        uint64           `json:"originals"`
	Repeats          uint64           `json:"repeats"`
	Reopened         uint64           `json:"reopened"`
	LoadFactor       aggregate.Figure `json:"load_factor"`
	Amplification    aggregate.Figure `json:"amplification"`
	AmplificationLow aggregate.Figure `json:"amplification_low"`
	AmplifHigh       aggregate.Figure `json:"amplification_high"`
	StrictLow        aggregate.Figure `json:"strict_low"`
	StrictHigh       aggregate.Figure `json:"strict_high"`

	ArrivalsRate  aggregate.Figure `json:"arrivals_per_second"`
	OriginalsRate aggregate.Figure `json:"originals_per_second"`
	RepeatsRate   aggregate.Figure `json:"repeats_per_second"`
	AnswersRate   aggregate.Figure `json:"answers_per_second"`

	// null unless Sums.History.
	RepeatAfter   *aggregate.RepeatAfter   `json:"repeat_after"`
	AttemptBudget *aggregate.AttemptBudget `json:"attempt_budget"`
	RetryAfter    *aggregate.RetryAfter    `json:"retry_after"`

	StaleArrivals uint64              `json:"stale_arrivals"`
	Responses     aggregate.Responses `json:"responses"`
}

// bounds are the amplification of some sums, and how far it may be off.
type bounds struct {
	measured, low, high, strictLow, strictHigh aggregate.Figure
}

// bounds forms the amplification and its bounds. Where the distinct questions of
// attributable arrivals are not known, there are none.
func (s *Sums) bounds() (b bounds) {
	a, u, d := s.attributable(), s.Unattributable.Total, s.Questions
	if d == 0 && a > 0 {
		return b
	}
	return bounds{
		measured:   aggregate.Share(a, d),
		low:        aggregate.Bound(a+u, d+u),
		high:       aggregate.Bound(a+u, less(d, s.Reopened)),
		strictLow:  aggregate.Bound(a+u, s.QuestionsVerified+s.Claimed+u),
		strictHigh: aggregate.Bound(a+u, less(s.QuestionsVerified, s.Reopened)),
	}
}

func less(a, b uint64) uint64 { return a - min(a, b) }

func (s *Sums) attributable() uint64 { return s.Verified + s.Claimed }

// figures forms the measure of sums over a stretch of log time.
func (s *Sums) figures(length time.Duration) figures {
	b := s.bounds()
	questions := aggregate.Number(float64(s.Questions))
	if s.Questions == 0 && s.attributable() > 0 {
		questions = aggregate.Figure{}
	}
	gone := s.UndeliveredAnswer + s.DuringResponse + s.BeforeResponse + s.UnknownPoint
	f := figures{
		Arrivals: s.Arrivals, Attributable: s.attributable(), Verified: s.Verified, Claimed: s.Claimed,
		Unattributable: s.Unattributable, Coverage: aggregate.Share(s.attributable(), s.Arrivals),
		Questions: questions, Originals: s.Originals, Repeats: s.Repeats, Reopened: s.Reopened,
		LoadFactor:    s.loadFactor(),
		Amplification: b.measured, AmplificationLow: b.low, AmplifHigh: b.high, StrictLow: b.strictLow, StrictHigh: b.strictHigh,
		ArrivalsRate: rate(s.Arrivals, length), OriginalsRate: rate(s.Originals, length),
		RepeatsRate: rate(s.Repeats, length), AnswersRate: rate(s.Answers, length),
		StaleArrivals: s.StaleArrivals,
		Responses: aggregate.Responses{
			Total: s.Arrivals, Answers: s.Answers, Refused: s.Refused, Success: s.Success, Disconnected: gone,
			UndeliveredAnswer: s.UndeliveredAnswer, DuringResponse: s.DuringResponse, BeforeResponse: s.BeforeResponse, UnknownPoint: s.UnknownPoint,
			Visibility: aggregate.Share(s.Visible, s.Arrivals), Expired: s.Past(), Unjudged: s.Unjudged,
			DeadShare: s.DeadShare(), AbandonedShare: aggregate.Share(s.BeforeResponse, s.Arrivals),
			DeadSeconds: s.DeadTime(), BusySeconds: s.BusyTime(), RepeatSeconds: s.RepeatTime(), Untimed: s.Untimed,
			Goodput: rate(s.Good, length),
		},
	}
	if s.History {
		f.RepeatAfter = &aggregate.RepeatAfter{Gone: s.AfterGone, Error: s.AfterError, Overload: s.AfterOverload, Success: s.AfterSuccess, InFlight: s.AfterInFlight}
		f.AttemptBudget = &aggregate.AttemptBudget{Overspent: s.Overspent, NotDecremented: s.NotDecremented, Increased: s.Increased}
		f.RetryAfter = s.Retries()
	}
	return f
}

// loadFactor is A / O.
func (s *Sums) loadFactor() aggregate.Figure { return aggregate.Share(s.attributable(), s.Originals) }

// rate is n a second; null for no time.
func rate(n uint64, length time.Duration) aggregate.Figure {
	if length <= 0 {
		return aggregate.Figure{}
	}
	return aggregate.Number(float64(n) / length.Seconds())
}

// add adds what o counted to what coverage needs; see meta.
func (s *Sums) addCoverage(o *Sums) {
	s.Arrivals += o.Arrivals
	s.Verified += o.Verified
	s.Claimed += o.Claimed
	s.Variance += o.Variance
}
