package budget

import "math/big"

// Plan is what follows from a Policy, worked out in whole and decimal numbers and
// rounded to a float only in the end. What is not declared, or does not follow, is
// nil.
type Plan struct {
	Chosen            float64  `json:"chosen"`
	DeadlineSeconds   *float64 `json:"deadline_seconds"`
	CapacityPerSecond *float64 `json:"capacity_per_second"`
	OfferedPerSecond  *float64 `json:"offered_per_second"`
	Queue             *int     `json:"queue"`
	DrainPerSecond    *float64 `json:"drain_per_second"`
	ServiceSeconds    *float64 `json:"service_seconds"`

	Layers []LayerPlan `json:"layers"`
	// WorstCase is the most arrivals that a question can cost: the product of the
	// layers' factors. AsChosen says that it is Chosen, to a thousandth.
	WorstCase *float64 `json:"worst_case"`
	AsChosen  *bool    `json:"as_chosen"`
	// Owners are the layers that retry.
	Owners []string `json:"owners"`
	// WaitSeconds is how long all tries take one after the other, and
	// BeyondDeadline says that it is longer than the deadline.
	WaitSeconds    *float64 `json:"wait_seconds"`
	BeyondDeadline *bool    `json:"beyond_deadline"`
	// WorstPerSecond is the load in the worst case, and Affordable capacity /
	// offered load.
	WorstPerSecond *float64 `json:"worst_per_second"`
	Affordable     *float64 `json:"affordable"`
	AboveCapacity  *bool    `json:"above_capacity"`
	// AnswerSeconds is when an arrival that found the queue full but for its own
	// place is answered: queue ÷ drain + service. CallerTimeoutSeconds is how long
	// anybody waits for that: the least of all layers' timeouts and the deadline, as
	// each bounds what is below it.
	AnswerSeconds        *float64 `json:"answer_seconds"`
	CallerTimeoutSeconds *float64 `json:"caller_timeout_seconds"`
	AnswersTooLate       *bool    `json:"answers_too_late"`
	// NoBudgetNeeded says that failures are fast and one hop deep: one layer, whose
	// tries are all answered before it or its caller leaves, and whose worst case the
	// dependency can serve.
	NoBudgetNeeded bool `json:"no_budget_needed"`

	Findings []Finding `json:"findings"`
}

// LayerPlan is one layer and what follows from it.
type LayerPlan struct {
	Name              string   `json:"name"`
	Attempts          *int     `json:"attempts"`
	Retries           *int     `json:"retries"`
	Budget            *float64 `json:"budget"`
	BudgetOf          *Base    `json:"budget_of"` // nil without a budget
	TimeoutSeconds    *float64 `json:"timeout_seconds"`
	BackoffSeconds    float64  `json:"backoff_seconds"`
	HonoursRetryAfter bool     `json:"honours_retry_after"`
	// Factor is the calls that one call of it makes below it, Arrivals how many of
	// those arrive at the dependency, and WaitSeconds how long it takes, at most.
	Factor      float64  `json:"factor"`
	Arrivals    float64  `json:"arrivals"`
	WaitSeconds *float64 `json:"wait_seconds"`
}

// reckoning is a plan in the making, in exact numbers.
type reckoning struct {
	*Policy
	*Plan
	product, wait, deadline    *big.Rat // wait may be nil
	offered, capacity, answer  *big.Rat // nil: not known
	timeout, worst, affordable *big.Rat
	waits                      []*big.Rat // by layer
}

// Plan works out what follows from the policy.
func (p *Policy) Plan() *Plan {
	r := &reckoning{Policy: p, Plan: &Plan{Layers: []LayerPlan{}, Owners: []string{}, Findings: []Finding{}}}
	r.declared()
	r.layers()
	r.load()
	r.queue()
	r.find()
	return r.Plan
}

func (r *reckoning) declared() {
	p, out := r.Policy, r.Plan
	out.Chosen = p.Chosen
	out.DeadlineSeconds = given(p.Deadline.Seconds())
	out.CapacityPerSecond, out.OfferedPerSecond = given(p.CapacityPerSecond), given(p.OfferedPerSecond)
	out.Queue, out.DrainPerSecond, out.ServiceSeconds = given(p.Queue), given(p.DrainPerSecond), given(p.Service.Seconds())
	if p.Deadline > 0 {
		r.deadline = seconds(p.Deadline)
	}
	if p.CapacityPerSecond > 0 {
		r.capacity = decimal(p.CapacityPerSecond)
	}
	if p.OfferedPerSecond > 0 {
		r.offered = decimal(p.OfferedPerSecond)
	}
}

// given is a declared number; nil for 0, which is none.
func given[T int | float64](v T) *T {
	if v == 0 {
		return nil
	}
	return &v
}

func (r *reckoning) layers() {
	list, out := r.Policy.Layers, r.Plan
	if len(list) == 0 {
		return
	}
	out.Layers = make([]LayerPlan, len(list))
	r.waits = make([]*big.Rat, len(list))
	r.product = big.NewRat(1, 1)
	for i := len(list) - 1; i >= 0; i-- {
		l := &list[i]
		r.product = new(big.Rat).Mul(r.product, l.factor())
		r.wait = l.wait(r.wait)
		r.waits[i] = r.wait
		x := LayerPlan{
			Name: l.Name, Attempts: l.Attempts, Retries: l.Retries, Budget: l.Budget,
			TimeoutSeconds: given(l.Timeout.Seconds()), BackoffSeconds: l.Backoff.Seconds(), HonoursRetryAfter: l.HonoursRetryAfter,
			Factor: *number(l.factor()), Arrivals: *number(r.product), WaitSeconds: number(r.wait),
		}
		if l.Budget != nil {
			base := Originals
			if l.Base != "" {
				base = l.Base
			}
			x.BudgetOf = &base
		}
		out.Layers[i] = x
	}
	for i := range list {
		if list[i].owner() {
			out.Owners = append(out.Owners, list[i].Name)
		}
	}
	out.WorstCase, out.WaitSeconds = number(r.product), number(r.wait)
	gap := new(big.Rat).Sub(r.product, decimal(r.Policy.Chosen))
	out.AsChosen = truth(gap.Abs(gap).Cmp(big.NewRat(1, 2000)) <= 0)
	out.BeyondDeadline = above(r.wait, r.deadline)
}

func (r *reckoning) load() {
	if r.offered != nil && r.product != nil {
		r.worst = new(big.Rat).Mul(r.offered, r.product)
	}
	if r.offered != nil && r.capacity != nil {
		r.affordable = new(big.Rat).Quo(r.capacity, r.offered)
	}
	r.Plan.WorstPerSecond, r.Plan.Affordable = number(r.worst), number(r.affordable)
	r.Plan.AboveCapacity = above(r.worst, r.capacity)
}

// queue compares when the last of the queue is answered with how long somebody waits
// for it: a layer without a timeout takes as long as what is below it, so whoever
// leaves first, in whichever layer, leaves nobody who needs the answer. That is the
// same with retries and without.
func (r *reckoning) queue() {
	p := r.Policy
	if p.Queue > 0 && p.DrainPerSecond > 0 {
		r.answer = new(big.Rat).Quo(big.NewRat(int64(p.Queue), 1), decimal(p.DrainPerSecond))
	}
	if p.Service > 0 && (r.answer != nil || p.Queue == 0) {
		if r.answer == nil {
			r.answer = new(big.Rat)
		}
		r.answer = new(big.Rat).Add(r.answer, seconds(p.Service))
	}
	r.timeout = r.deadline
	for i := range p.Layers {
		if own := seconds(p.Layers[i].Timeout); own.Sign() > 0 && (r.timeout == nil || own.Cmp(r.timeout) < 0) {
			r.timeout = own
		}
	}
	r.Plan.AnswerSeconds, r.Plan.CallerTimeoutSeconds = number(r.answer), number(r.timeout)
	r.Plan.AnswersTooLate = above(r.answer, r.timeout)
}

// number is the float nearest to a number; nil for nil.
func number(r *big.Rat) *float64 {
	if r == nil {
		return nil
	}
	v, _ := r.Float64()
	return &v
}

func truth(b bool) *bool { return &b }

// above says that a is more than b; nil where one is not known.
func above(a, b *big.Rat) *bool {
	if a == nil || b == nil {
		return nil
	}
	return truth(a.Cmp(b) > 0)
}
