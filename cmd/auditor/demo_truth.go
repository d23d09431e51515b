package main

import (
	"sync"

	"github.com/targetside/auditor/lab"
)

// demoTruth is what the lab knows of its traffic, by second of start. It knows who
// asked what, and so needs no key.
type demoTruth struct {
	mu    sync.Mutex
	ticks map[demoTick]*demoCounts
	open  map[uint64]int64 // questions to which something may still happen, since when
	until int64            // what is played begins then, or later
}

type demoTick struct {
	dependency string
	at         int64 // Unix seconds
}

// demoCounts counts arrivals.
type demoCounts struct {
	Arrivals  uint64
	Questions uint64 // first arrivals, whatever key they bore

	// What an auditor can tell who trusts only web's keys.
	Originals, Repeats uint64
	Forged, Absent     uint64

	Undelivered, During, Before uint64 // callers gone: an answer for nobody, half of one, none
	Success, Refused, Expired   uint64
	Asked, Returned, Early      uint64 // Retry-After
	Stale                       uint64
}

func newDemoTruth() *demoTruth {
	return &demoTruth{ticks: map[demoTick]*demoCounts{}, open: map[uint64]int64{}}
}

// Opened is the beginning of a question.
func (t *demoTruth) Opened(question uint64, _ string, second int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[question] = second
}

// Settled counts the arrivals of a question.
func (t *demoTruth) Settled(question uint64, dependency string, truth map[int64]*lab.Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, question)
	first := int64(-1)
	for second, c := range truth {
		if first < 0 || second < first {
			first = second
		}
		r, a := &c.Responses, &c.RetryAfter
		t.at(dependency, second).add(&demoCounts{
			Arrivals: c.Arrivals, Originals: c.Originals, Repeats: c.Repeats,
			Forged: c.Unattributable["forged"], Absent: c.Unattributable["absent"],
			Undelivered: r.Undelivered, During: r.During, Before: r.Before,
			Success: r.Success, Refused: r.Refused, Expired: r.Expired,
			Asked: a.Asked, Returned: a.Returned, Early: a.Early, Stale: c.Stale,
		})
	}
	if first >= 0 {
		t.at(dependency, first).Questions++
	}
}

func (t *demoTruth) at(dependency string, second int64) *demoCounts {
	at := demoTick{dependency, second}
	if t.ticks[at] == nil {
		t.ticks[at] = new(demoCounts)
	}
	return t.ticks[at]
}

// reached says that all that is played from now on begins in a second or later.
func (t *demoTruth) reached(second int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = second
}

// known is the second before which everything is counted.
func (t *demoTruth) known() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.until
	for _, second := range t.open {
		known = min(known, second)
	}
	return known
}

// sum counts the arrivals at a dependency that began in seconds from up to to, not
// included, as far as they are known.
func (t *demoTruth) sum(dependency string, from, to int64) (sum demoCounts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, c := range t.ticks {
		if at.dependency == dependency && at.at >= from && at.at < to {
			sum.add(c)
		}
	}
	return sum
}

// forget drops what began before a second.
func (t *demoTruth) forget(before int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := range t.ticks {
		if at.at < before {
			delete(t.ticks, at)
		}
	}
}

func (c *demoCounts) add(o *demoCounts) {
	for i, n := range o.all() {
		*c.all()[i] += *n
	}
}

// all lists every count, in the order of demoMeasures after questions.
func (c *demoCounts) all() []*uint64 {
	return []*uint64{
		&c.Questions, &c.Arrivals, &c.Originals, &c.Repeats, &c.Forged, &c.Absent, &c.Undelivered, &c.During, &c.Before,
		&c.Success, &c.Refused, &c.Expired, &c.Asked, &c.Returned, &c.Early, &c.Stale,
	}
}

// demoMeasures are the names under which the API gives the counts of all but the
// first, which it cannot know.
var demoMeasures = []string{
	"arrivals", "originals", "repeats", "unattributable.forged", "unattributable.absent",
	"responses.undelivered_answer", "responses.during_response", "responses.before_response",
	"responses.success", "responses.refused", "responses.expired",
	"retry_after.asked", "retry_after.returned", "retry_after.early", "stale_arrivals",
}

// The dependencies of the scenario.
const (
	demoSeats  = "seats" // go on sale
	demoPrices = "prices"
)

var demoDependencies = []string{demoSeats, demoPrices}
