package lab

import "strconv"

// Counts is what is true of some arrivals, in the words and with the names of the
// auditor's report, counted from what happened, not from the log. Of fan-out and of the
// delays between arrivals it says nothing.
type Counts struct {
	Arrivals       uint64            `json:"arrivals"`
	Attributable   uint64            `json:"attributable"`
	Verified       uint64            `json:"verified"`
	Claimed        uint64            `json:"claimed"`
	Unattributable map[string]uint64 `json:"unattributable"`

	Questions      uint64 `json:"questions"`
	Originals      uint64 `json:"originals"`
	Repeats        uint64 `json:"repeats"`
	OrphanAttempts uint64 `json:"orphan_attempts"`

	PerQuestion   PerQuestion   `json:"per_question"`
	Hops          Hops          `json:"hops"`
	RepeatAfter   RepeatAfter   `json:"repeat_after"`
	AttemptBudget AttemptBudget `json:"attempt_budget"`
	RetryAfter    RetryAfter    `json:"retry_after"`

	Stale         uint64    `json:"stale_arrivals"`
	Answered      uint64    `json:"questions_answered"`
	DoubleSuccess uint64    `json:"double_success"`
	Responses     Responses `json:"responses"`

	// Arrivals whose attempt number is 1, those of them that are attributable, and
	// the questions among those.
	first, firstAttributable, firstQuestions uint64
	exact                                    map[uint64]uint64
}

// PerQuestion is the distribution of arrivals per question.
type PerQuestion struct {
	P50       *uint64           `json:"p50"`
	P90       *uint64           `json:"p90"`
	P99       *uint64           `json:"p99"`
	Max       *uint64           `json:"max"`
	Histogram map[string]uint64 `json:"histogram"`
}

// Hops is how many tries the adjacent layer makes of a call, and how many calls of a
// question those above make. Nil where there is nothing to divide.
type Hops struct {
	Adjacent *float64 `json:"adjacent"`
	Above    *float64 `json:"above"`
}

// RepeatAfter counts repeats by what the arrival before got.
type RepeatAfter struct {
	Gone     uint64 `json:"gone"`
	Error    uint64 `json:"5xx"`
	Overload uint64 `json:"429_503"`
	Success  uint64 `json:"success"`
	InFlight uint64 `json:"in_flight"`
}

// AttemptBudget counts what was done against budgets that requests carried.
type AttemptBudget struct {
	Overspent      uint64 `json:"overspent"`
	NotDecremented uint64 `json:"not_decremented"`
	Increased      uint64 `json:"increased"`
}

// RetryAfter counts answers that asked to wait, and those who came back.
type RetryAfter struct {
	Asked    uint64 `json:"asked"`
	Returned uint64 `json:"returned"`
	Early    uint64 `json:"early"`
}

// Responses is what became of the answers.
type Responses struct {
	Total        uint64  `json:"total"`
	Answers      uint64  `json:"answers"`
	Refused      uint64  `json:"refused"`
	Success      uint64  `json:"success"`
	Disconnected uint64  `json:"disconnected"`
	Undelivered  uint64  `json:"undelivered_answer"`
	During       uint64  `json:"during_response"`
	Before       uint64  `json:"before_response"`
	Unplaced     uint64  `json:"unknown_point,omitempty"`
	Expired      uint64  `json:"expired"`
	DeadSeconds  float64 `json:"dead_seconds"`
	BusySeconds  float64 `json:"busy_seconds"`
	// Visibility is the share of records that would have shown a departure had there
	// been one: 1, unless the log's format lacks something.
	Visibility *float64 `json:"visibility"`

	mute uint64 // records that would not have
}

// Dead are the answers that were for nobody, as a log shows it.
func (c *Counts) Dead() uint64 {
	return c.Responses.Undelivered + c.Responses.During + c.Responses.Expired
}

func newCounts() *Counts {
	return &Counts{Unattributable: map[string]uint64{"total": 0}, exact: map[uint64]uint64{}}
}

// add adds what is true of other arrivals of other questions.
func (c *Counts) add(o *Counts) {
	c.Arrivals += o.Arrivals
	c.Attributable += o.Attributable
	c.Verified += o.Verified
	c.Claimed += o.Claimed
	for k, n := range o.Unattributable {
		c.Unattributable[k] += n
	}
	c.Questions += o.Questions
	c.Originals += o.Originals
	c.Repeats += o.Repeats
	c.OrphanAttempts += o.OrphanAttempts
	c.RepeatAfter.Gone += o.RepeatAfter.Gone
	c.RepeatAfter.Error += o.RepeatAfter.Error
	c.RepeatAfter.Overload += o.RepeatAfter.Overload
	c.RepeatAfter.Success += o.RepeatAfter.Success
	c.RepeatAfter.InFlight += o.RepeatAfter.InFlight
	c.AttemptBudget.Overspent += o.AttemptBudget.Overspent
	c.AttemptBudget.NotDecremented += o.AttemptBudget.NotDecremented
	c.AttemptBudget.Increased += o.AttemptBudget.Increased
	c.RetryAfter.Asked += o.RetryAfter.Asked
	c.RetryAfter.Returned += o.RetryAfter.Returned
	c.RetryAfter.Early += o.RetryAfter.Early
	c.Stale += o.Stale
	c.Answered += o.Answered
	c.DoubleSuccess += o.DoubleSuccess
	a, b := &c.Responses, &o.Responses
	a.Total += b.Total
	a.Answers += b.Answers
	a.Refused += b.Refused
	a.Success += b.Success
	a.Disconnected += b.Disconnected
	a.Undelivered += b.Undelivered
	a.During += b.During
	a.Before += b.Before
	a.Unplaced += b.Unplaced
	a.mute += b.mute
	a.Expired += b.Expired
	a.DeadSeconds += b.DeadSeconds
	a.BusySeconds += b.BusySeconds
	c.first += o.first
	c.firstAttributable += o.firstAttributable
	c.firstQuestions += o.firstQuestions
	for k, n := range o.exact {
		c.exact[k] += n
	}
}

// complete derives what is derived.
func (c *Counts) complete() {
	p := &c.PerQuestion
	p.Histogram = map[string]uint64{}
	buckets := map[uint64]uint64{}
	var total, most uint64
	for k, n := range c.exact {
		p.Histogram[strconv.FormatUint(bucket(k), 10)] += n
		buckets[bucket(k)] += n
		total += n
		most = max(most, k)
	}
	if total > 0 {
		p.Max = &most
		p.P50, p.P90, p.P99 = quantile(buckets, total, 50, most), quantile(buckets, total, 90, most), quantile(buckets, total, 99, most)
	}
	if r := &c.Responses; r.Total > 0 {
		x := float64(r.Total-r.mute) / float64(r.Total)
		r.Visibility = &x
	}
	if c.first > 0 {
		x := float64(c.Arrivals) / float64(c.first)
		c.Hops.Adjacent = &x
	}
	if c.firstQuestions > 0 {
		x := float64(c.firstAttributable) / float64(c.firstQuestions)
		c.Hops.Above = &x
	}
}

// quantile is the nearest rank's bucket, at most the largest value.
func quantile(buckets map[uint64]uint64, total, percent, most uint64) *uint64 {
	rank := (total*percent + 99) / 100
	b, sum := uint64(1), buckets[1]
	for sum < rank {
		b = nextBucket(b)
		sum += buckets[b]
	}
	return new(min(b, most))
}

// bucket names the bucket of a number of arrivals: up to 32 itself, then the next
// power of two.
func bucket(k uint64) uint64 {
	if k <= 32 {
		return k
	}
	b := uint64(64)
	for b < k {
		b *= 2
	}
	return b
}

func nextBucket(b uint64) uint64 {
	if b < 32 {
		return b + 1
	}
	return 2 * b
}
