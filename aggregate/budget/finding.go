package budget

import (
	"fmt"
	"math/big"
	"strings"
)

// Finding is a contradiction or a risk in a policy.
type Finding struct {
	Code FindingCode `json:"code"`
	Text string      `json:"text"` // for people
}

// FindingCode names a kind of finding.
type FindingCode string

// What a plan finds.
const (
	// NotChosen: the worst case is another than the one that was chosen.
	NotChosen FindingCode = "not_chosen"
	// SeveralOwners: more than one layer retries, so their attempts multiply.
	SeveralOwners FindingCode = "several_owners"
	// BeyondDeadline: all tries together take longer than the caller waits.
	BeyondDeadline FindingCode = "beyond_deadline"
	// LeavesFirst: a layer gives a try up while one below goes on with it.
	LeavesFirst FindingCode = "leaves_first"
	// AboveCapacity: the worst case is more than the dependency can serve.
	AboveCapacity FindingCode = "above_capacity"
	// DemandAboveCapacity: it cannot serve the questions themselves.
	DemandAboveCapacity FindingCode = "demand_above_capacity"
	// ChosenAboveAffordable: nor what was chosen.
	ChosenAboveAffordable FindingCode = "chosen_above_affordable"
	// AnswersTooLate: a full queue is answered after its callers have left.
	AnswersTooLate FindingCode = "answers_too_late"
	// IgnoresRetryAfter: a layer retries whatever it is asked.
	IgnoresRetryAfter FindingCode = "ignores_retry_after"
	// NoBudgetNeeded: failures are fast and one hop deep.
	NoBudgetNeeded FindingCode = "no_budget_needed"
)

func (r *reckoning) say(code FindingCode, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{code, fmt.Sprintf(format, args...)})
}

func yes(b *bool) bool { return b != nil && *b }

func (r *reckoning) find() {
	r.findProduct()
	r.findWaits()
	r.findLoad()
	if yes(r.AnswersTooLate) {
		r.say(AnswersTooLate, "a full queue is answered after %s, and its callers leave after %s: work for nobody, with retries or without", inSeconds(r.answer), inSeconds(r.timeout))
	}
	var deaf []string
	for i := range r.Policy.Layers {
		if l := &r.Policy.Layers[i]; l.owner() && !l.HonoursRetryAfter {
			deaf = append(deaf, l.Name)
		}
	}
	if len(deaf) > 0 {
		r.say(IgnoresRetryAfter, "not declared to honour Retry-After: %s; the dependency cannot ask for time", strings.Join(deaf, ", "))
	}
	r.findFast()
}

func (r *reckoning) findProduct() {
	if r.product == nil {
		return
	}
	if !*r.AsChosen {
		chosen := decimal(r.Policy.Chosen)
		if r.product.Cmp(chosen) > 0 {
			r.say(NotChosen, "a question can cost %s arrivals, where %s was chosen", digits(r.product), digits(chosen))
		} else {
			r.say(NotChosen, "%s was chosen, where the layers stop at %s: one of the two is not meant", digits(chosen), digits(r.product))
		}
	}
	if n := len(r.Owners); n > 1 {
		var factors []string
		for i := range r.Policy.Layers {
			factors = append(factors, digits(r.Policy.Layers[i].factor()))
		}
		r.say(SeveralOwners, "%d layers retry (%s), each what the others have retried: %s = %s", n, strings.Join(r.Owners, ", "), strings.Join(factors, " × "), digits(r.product))
	}
}

func (r *reckoning) findWaits() {
	if yes(r.Plan.BeyondDeadline) {
		r.say(BeyondDeadline, "all tries take up to %s, and the caller leaves after %s: what is tried later is work for nobody", inSeconds(r.wait), inSeconds(r.deadline))
	}
	for i := 0; i+1 < len(r.waits); i++ {
		outer, inner := &r.Policy.Layers[i], r.waits[i+1]
		if outer.Timeout > 0 && inner != nil && inner.Cmp(seconds(outer.Timeout)) > 0 {
			r.say(LeavesFirst, "%s gives a try up after %s, and %s goes on with it for up to %s", outer.Name, inSeconds(seconds(outer.Timeout)), r.Policy.Layers[i+1].Name, inSeconds(inner))
		}
	}
}

func (r *reckoning) findLoad() {
	switch one := big.NewRat(1, 1); {
	case r.affordable != nil && r.affordable.Cmp(one) < 0:
		r.say(DemandAboveCapacity, "%s questions a second are more than the %s arrivals that can be served", digits(r.offered), digits(r.capacity))
	case r.affordable != nil && decimal(r.Policy.Chosen).Cmp(r.affordable) > 0:
		r.say(ChosenAboveAffordable, "%s was chosen, where capacity affords %s", digits(decimal(r.Policy.Chosen)), digits(r.affordable))
	}
	if yes(r.Plan.AboveCapacity) {
		r.say(AboveCapacity, "%s arrivals a second in the worst case, where %s can be served", digits(r.worst), digits(r.capacity))
	}
}

// findFast says when a budget would guard against nothing. Whoever fails before it
// times out holds nothing for long, and with one layer there is nothing to multiply;
// what is left is the load of its worst case. Where tries may go on after the caller
// has left, that is work for nobody, and a budget would guard against it.
func (r *reckoning) findFast() {
	if len(r.Policy.Layers) != 1 || r.Policy.Layers[0].tries() < 2 {
		return
	}
	if yes(r.Plan.BeyondDeadline) {
		return
	}
	if late, over := r.Plan.AnswersTooLate, r.Plan.AboveCapacity; late == nil || *late || over == nil || *over {
		return
	}
	r.NoBudgetNeeded = true
	r.say(NoBudgetNeeded, "no budget needed: failures are fast (%s) and one hop deep, and the worst case can be served", inSeconds(r.answer))
}

// digits prints a number of 0 or more with as many decimals as it has, at most three,
// or as many as show two of its digits: what is more than nothing must not read as 0.
func digits(r *big.Rat) string {
	places := 3
	for least := big.NewRat(1, 100); r.Sign() > 0 && r.Cmp(least) < 0; places++ {
		least.Mul(least, big.NewRat(1, 10))
	}
	s := r.FloatString(places)
	s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	whole, decimals, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if decimals != "" {
		whole += "." + decimals
	}
	return whole
}

// inSeconds prints a time of less than a second in milliseconds.
func inSeconds(r *big.Rat) string {
	if r.Cmp(big.NewRat(1, 1)) < 0 {
		return digits(new(big.Rat).Mul(r, big.NewRat(1000, 1))) + " ms"
	}
	return digits(r) + " s"
}
