package drill

import (
	"slices"
	"sync"
	"time"
)

// Of which route an arrival is.
const (
	ofOther = iota
	ofRoute
	ofControl
	parts
)

// arrival is one request.
type arrival struct {
	start, end time.Time
	step, of   int
	chosen     bool // for the fault
	passed     bool // to the dependency
	byItself   bool // it failed, and by no fault of ours
	reset      bool
	failed     bool // whoever sent it had cause to try again
	status     int
	bytes      int64
	gone       string // how the caller left; "": it did not
	try        *try
}

// identity is that of a question, as the auditor has it, with the method for the route.
type identity struct{ key, method, path string }

// question is one thing that somebody wants.
type question struct {
	of    int
	last  time.Time // start of its latest arrival
	tries []*try
}

// try is an arrival of a question.
type try struct {
	step       int
	start, end time.Time
	failed     bool
}

// horizon is the silence after which a question is forgotten: the auditor's default.
const horizon = 2 * time.Minute

// mostJudged bounds the memory: more arrivals are recorded, and no longer judged.
const mostJudged = 2_000_000

// book keeps what is needed to judge. Figures are made at the end, when it is known
// what came after what.
type book struct {
	mu       sync.Mutex
	live     map[identity]*question
	asked    []*question
	judged   int
	unjudged int
	closed   bool             // what comes now is of no drill
	counts   [][parts]counted // by step
}

// counted needs no key.
type counted struct{ arrivals, unkeyed, chosen, passed, byItself, failed, left int }

func newBook(steps int) *book {
	return &book{live: map[identity]*question{}, counts: make([][parts]counted, steps)}
}

// begin notes an arrival; nil: it has no key, or there are too many.
func (b *book) begin(id identity, a *arrival) *try {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	c := &b.counts[a.step][a.of]
	c.arrivals++
	switch {
	case id.key == "":
		c.unkeyed++
		return nil
	case b.judged == mostJudged:
		b.unjudged++
		return nil
	}
	b.judged++
	q := b.live[id]
	if q == nil || a.start.Sub(q.last) > horizon {
		q = &question{of: a.of}
		b.live[id], b.asked = q, append(b.asked, q)
	}
	q.last = a.start
	t := &try{step: a.step, start: a.start}
	q.tries = append(q.tries, t)
	return t
}

func (b *book) end(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	c := &b.counts[a.step][a.of]
	if a.chosen {
		c.chosen++
	}
	if a.passed {
		c.passed++
	}
	if a.byItself {
		c.byItself++
	}
	if a.failed {
		c.failed++
	}
	if a.gone != "" {
		c.left++
	}
	if a.try != nil {
		a.try.end, a.try.failed = a.end, a.failed
	}
}

// Figures are those of a route in a step. A question, a repeat and a failure belong to
// the step in which they arrived.
type Figures struct {
	Arrivals   int `json:"arrivals"`
	WithoutKey int `json:"without_key"` // of them; questions, repeats and what is made of them leave these out
	Chosen     int `json:"chosen"`      // for the fault
	Passed     int `json:"passed"`      // to the dependency
	// ByItself is how many of the passed failed by no fault of the drill: the dependency
	// failed, or the way to it, or a caller that was not slowed left.
	ByItself     int `json:"failed_by_itself"`
	Failed       int `json:"failed"` // 5xx, 429, reset, cut off, or the caller left
	Disconnected int `json:"disconnected"`
	Questions    int `json:"questions"`
	Repeats      int `json:"repeats"`

	QuestionsPerSecond float64 `json:"questions_per_second"`
	RepeatsPerSecond   float64 `json:"repeats_per_second"`
	// RepeatsPerQuestion is null where nothing was asked. IfCounted is what it would be
	// if every call made as many attempts as they come to: p + p² + …, of the share p that
	// failed.
	RepeatsPerQuestion *float64 `json:"repeats_per_question"`
	IfCounted          *float64 `json:"if_counted"`

	// Could is failures that a repeat could follow: not of the last attempt that callers
	// make. Followed is how many one did follow, then or later.
	Could    int `json:"could_be_repeated"`
	Followed int `json:"followed"`
	// Delay is from the end of a failure to its repeat, in seconds; null if there is none.
	DelayP50 *float64 `json:"delay_p50_seconds"`
	DelayP90 *float64 `json:"delay_p90_seconds"`

	first time.Time // end of the first that could be followed, and was not
}

// attempts is how many arrivals questions of a route come to: the most that at least
// one in a hundred of those with a failure had, so that a few who ask in another way
// do not speak for all.
func (b *book) attempts(of int) int {
	var with []int // questions with a failure, by arrivals
	for _, q := range b.asked {
		if q.of != of || !slices.ContainsFunc(q.tries, func(t *try) bool { return t.failed }) {
			continue
		}
		with = append(with, len(q.tries))
	}
	if len(with) == 0 {
		return 0
	}
	slices.Sort(with)
	return with[len(with)-1-len(with)/100]
}

// judge makes the figures of a route, by step, and says how many attempts its callers
// make at most. seconds is how long each step was.
func (b *book) judge(of int, seconds []float64) (figures []Figures, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	figures = make([]Figures, len(b.counts))
	delays := make([][]float64, len(figures))
	failed := make([]int, len(figures)) // with a key
	for i := range figures {
		c := &b.counts[i][of]
		figures[i] = Figures{Arrivals: c.arrivals, WithoutKey: c.unkeyed, Chosen: c.chosen, Passed: c.passed, ByItself: c.byItself, Failed: c.failed, Disconnected: c.left}
	}
	most = b.attempts(of)
	for _, q := range b.asked {
		if q.of != of {
			continue
		}
		for i, t := range q.tries {
			f := &figures[t.step]
			if i == 0 {
				f.Questions++
			} else {
				f.Repeats++
			}
			if !t.failed {
				continue
			}
			failed[t.step]++
			switch {
			case i+1 < len(q.tries) && i+1 < most:
				f.Could++
				f.Followed++
				delays[t.step] = append(delays[t.step], max(q.tries[i+1].start.Sub(t.end).Seconds(), 0))
			case i+1 < most:
				if f.Could++; f.first.IsZero() || t.end.Before(f.first) {
					f.first = t.end
				}
			}
		}
	}
	for i := range figures {
		f := &figures[i]
		if seconds[i] > 0 {
			f.QuestionsPerSecond, f.RepeatsPerSecond = float64(f.Questions)/seconds[i], float64(f.Repeats)/seconds[i]
		}
		if f.Questions > 0 {
			r := float64(f.Repeats) / float64(f.Questions)
			f.RepeatsPerQuestion = &r
			p := float64(failed[i]) / float64(f.Questions+f.Repeats)
			n, power := 0.0, 1.0
			for range most - 1 {
				power *= p
				n += power
			}
			f.IfCounted = &n
		}
		f.DelayP50, f.DelayP90 = quantile(delays[i], 0.5), quantile(delays[i], 0.9)
	}
	return figures, most
}

// quantile is the nearest rank; nil of nothing.
func quantile(of []float64, q float64) *float64 {
	if len(of) == 0 {
		return nil
	}
	slices.Sort(of)
	return &of[min(int(q*float64(len(of))), len(of)-1)]
}
