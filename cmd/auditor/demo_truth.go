package main

import "sync"

// demoTruth is what the generator itself knows of its traffic, by second of start.
// It knows who asked what, and so needs no key.
type demoTruth struct {
	mu    sync.Mutex
	ticks map[demoTick]*demoCounts
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

// demoFate is what became of an arrival.
type demoFate struct {
	demoArrival
	question        *demoQuestion
	first           bool // of its question
	stale, expired  bool
	returned, early bool // after a Retry-After
}

func newDemoTruth() *demoTruth { return &demoTruth{ticks: map[demoTick]*demoCounts{}} }

// book counts an arrival whose record is being written.
func (t *demoTruth) book(tick int64, f *demoFate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := demoTick{f.question.dep.name, tick}
	c := t.ticks[at]
	if c == nil {
		c = new(demoCounts)
		t.ticks[at] = c
	}
	c.Arrivals++
	count(&c.Questions, f.first)
	switch f.question.peer.key {
	case remintsKey:
		c.Forged++
	case dropsKey:
		c.Absent++
	default:
		count(&c.Originals, f.first)
		count(&c.Repeats, !f.first)
		count(&c.Expired, f.expired)
		count(&c.Stale, f.stale)
		count(&c.Returned, f.returned)
		count(&c.Early, f.early)
	}
	count(&c.Success, f.status == 200)
	count(&c.Refused, f.status == 503)
	count(&c.Asked, f.retryAfter > 0)
	switch {
	case !f.gone:
	case f.status == 499:
		c.Before++
	case f.bytes == 0:
		c.Undelivered++
	default:
		c.During++
	}
}

func count(n *uint64, if_ bool) {
	if if_ {
		*n++
	}
}

// sum counts the arrivals at a dependency that began in seconds from up to to, not
// included. Those whose record is still to be written are missing.
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
