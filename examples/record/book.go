package main

import (
	"sync"
	"time"
)

// dependencies are the two targets: nginx before the application, and an
// inbound Envoy before the application.
var dependencies = []string{"seats", "prices"}

// question is one thing that one caller wants, whatever it or a layer below
// makes of the key.
type question struct {
	index  int
	dep    string
	phase  string
	kind   string
	method string
	path   string
	peer   string // source address at the target
	// fails is how many tries at the application go wrong before one succeeds;
	// how they go wrong depends on the phase.
	fails int
}

// minted is what the caller knows of a key that it sent.
type minted struct {
	class      string // verified, or the reason why it cannot be attributed
	originator string
}

// identity of a question at a target; the route is part of the path here.
type identity struct{ key, path string }

// arrival is one request at the application.
type arrival struct {
	dep, record          string // record: the target's id of its own request, nginx only
	question             int    // index; -1 for health checks
	key, path            string
	requestID, attempt   string
	timeoutRetry         string
	start, end           time.Time
	status, retryAfter   int // status the application sent, 0 if it was left first
	cut                  string
	method, rawQuery, ua string
}

// Kinds of cut: the application saw its own caller (the target) go.
const (
	cutBefore = "before_headers"
	cutDuring = "after_headers"
)

// outcome of one attempt, as the caller itself saw it.
type outcome string

const (
	answered   outcome = "answered"
	leftBefore outcome = "left_before_response"
	leftDuring outcome = "left_during_response"
	broken     outcome = "broken" // an error that the caller did not cause
)

// book is where callers and application write down what they did.
type book struct {
	mu        sync.Mutex
	questions []*question
	keys      map[string]minted
	arrivals  []*arrival
	tries     map[int]int                          // by question
	attempts  map[string]map[string]map[string]int // dependency, way (direct, edge), outcome
	probes    map[string]int
	direct    map[string]map[identity]*sending // by dependency: what went straight to the target
}

// sending counts the requests of one key that a caller sent itself.
type sending struct {
	question *question
	count    int
}

func newBook() *book {
	return &book{keys: map[string]minted{}, tries: map[int]int{}, attempts: map[string]map[string]map[string]int{}, probes: map[string]int{},
		direct: map[string]map[identity]*sending{"seats": {}, "prices": {}}}
}

func (b *book) ask(q *question) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q.index = len(b.questions)
	b.questions = append(b.questions, q)
}

func (b *book) mint(key string, m minted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys[key] = m
}

// send notes a request to the target under its key, where there is one.
func (b *book) send(way string, id identity, q *question) {
	if way != "direct" || id.key == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.direct[q.dep][id] == nil {
		b.direct[q.dep][id] = &sending{question: q}
	}
	b.direct[q.dep][id].count++
}

func (b *book) attempt(dep, way string, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attempts[dep] == nil {
		b.attempts[dep] = map[string]map[string]int{"direct": {}, "edge": {}}
	}
	b.attempts[dep][way]["sent"]++
	b.attempts[dep][way][string(o)]++
}

// arrive notes an arrival and says which try at the application it is.
func (b *book) arrive(a *arrival) (q *question, try int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrivals = append(b.arrivals, a)
	if a.question < 0 || a.question >= len(b.questions) {
		return nil, 0
	}
	b.tries[a.question]++
	return b.questions[a.question], b.tries[a.question]
}
