package main

import (
	"container/heap"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/targetside/auditor/keys"
)

// The layers between a person at "web" and a dependency, the outermost first: web
// itself, a gateway, and the adjacent peer. Each makes up to demoAttempts attempts
// of what the layer below it takes for one call.
const (
	demoLayers   = 3
	demoAttempts = 3
)

// demoPeer is an adjacent caller.
type demoPeer struct {
	name    string
	share   float64
	timeout int64 // ms; it leaves a call that takes longer
	polite  bool  // waits as long as Retry-After says
	key     demoKey
}

// demoKey is what a peer does with the question's key.
type demoKey uint8

const (
	forwardsKey demoKey = iota
	remintsKey          // a new one for each attempt, which it cannot sign for web
	dropsKey
)

var demoPeers = []*demoPeer{
	{name: "bff", share: 0.54, timeout: 400, polite: true},
	{name: "mobile-api", share: 0.38, timeout: 250},
	{name: "partner-gw", share: 0.05, timeout: 400, polite: true, key: remintsKey},
	{name: "nightly", share: 0.03, timeout: 400, key: dropsKey},
}

// demoDependency is a target whose access log is audited.
type demoDependency struct {
	name   string
	routes []demoRoute
	storms bool
}

type demoRoute struct {
	method, path string
	share        float64
}

var (
	demoSeats = &demoDependency{name: "seats", storms: true, routes: []demoRoute{
		{"GET", "/seats/", 0.75}, {"POST", "/holds/", 0.25}}}
	demoPrices = &demoDependency{name: "prices", routes: []demoRoute{
		{"GET", "/prices/", 0.6}, {"GET", "/fares/", 0.4}}}
	demoDependencies = []*demoDependency{demoSeats, demoPrices}
)

// demoShape is how much is asked, and when the seats turn slow. Times are in
// milliseconds since the beginning, as everywhere in here.
type demoShape struct {
	questionsPerSecond float64 // by people at web; each asks for seats and for prices
	pricesPerSecond    float64 // and these for prices alone
	firstStorm         int64
	stormEvery         int64
	stormLasts         int64
	// deadline is how long the people wait. No layer passes it on, so they all go
	// on asking for nobody.
	deadline int64
}

var ordinaryDemo = demoShape{
	questionsPerSecond: 24, pricesPerSecond: 16, deadline: 8000,
	firstStorm: 10_000, stormEvery: 90_000, stormLasts: 30_000,
}

// storm says whether the seats are slow.
func (s *demoShape) storm(at int64) bool {
	return at >= s.firstStorm && (at-s.firstStorm)%s.stormEvery < s.stormLasts
}

// demoTraffic plays callers and dependencies, one event after the other. Given a
// seed it plays the same at any speed: only the stamps and the texts of keys differ.
type demoTraffic struct {
	shape   demoShape
	begun   time.Time // whole milliseconds
	chance  *rand.Rand
	web     keys.Minter
	partner keys.Minter // signs as web, with a secret of its own
	events  demoEvents
	order   uint64
	truth   *demoTruth
	out     [][]byte
	failed  error
}

// newDemoTraffic begins with nothing asked.
func newDemoTraffic(shape demoShape, seed uint64, begun time.Time, web, partner keys.Minter) *demoTraffic {
	t := &demoTraffic{
		shape: shape, begun: begun.Truncate(time.Millisecond), chance: rand.New(rand.NewPCG(seed, 0)),
		web: web, partner: partner, truth: newDemoTruth(),
	}
	t.later(t.gap(shape.questionsPerSecond), func(at int64) { t.asked(at, shape.questionsPerSecond, demoSeats, demoPrices) })
	t.later(t.gap(shape.pricesPerSecond), func(at int64) { t.asked(at, shape.pricesPerSecond, demoPrices) })
	return t
}

// until plays on up to a moment and returns the records written before it, in the
// order in which they were.
func (t *demoTraffic) until(now time.Time) ([][]byte, error) {
	end := now.Sub(t.begun).Milliseconds()
	for len(t.events) > 0 && t.events[0].at < end && t.failed == nil {
		e := heap.Pop(&t.events).(demoEvent)
		e.do(e.at)
	}
	out := t.out
	t.out = nil
	return out, t.failed
}

func (t *demoTraffic) later(at int64, do func(at int64)) {
	t.order++
	heap.Push(&t.events, demoEvent{at, t.order, do})
}

// gap is the time to the next question of many people who know nothing of each other.
func (t *demoTraffic) gap(perSecond float64) int64 {
	return int64(math.Ceil(t.chance.ExpFloat64() / perSecond * 1000))
}

// between is a chance from low up to high, not included.
func (t *demoTraffic) between(low, high int64) int64 { return low + t.chance.Int64N(high-low) }

// asked begins a question at each dependency, under one key, and thinks of the next.
func (t *demoTraffic) asked(at int64, perSecond float64, of ...*demoDependency) {
	key, err := t.web.Mint(t.time(at))
	if err != nil {
		t.failed = err
		return
	}
	for _, dep := range of {
		q := &demoQuestion{dep: dep, key: key, minted: at}
		for x, i := t.chance.Float64(), 0; q.peer == nil; i++ {
			if x -= demoPeers[i].share; x < 0 || i == len(demoPeers)-1 {
				q.peer = demoPeers[i]
			}
		}
		for x, i := t.chance.Float64(), 0; q.route == nil; i++ {
			if x -= dep.routes[i].share; x < 0 || i == len(dep.routes)-1 {
				q.route = &dep.routes[i]
			}
		}
		q.path = q.route.path + strconv.FormatInt(t.between(1, 400), 10)
		t.later(at+t.between(1, 10), func(at int64) { t.attempt(q, at) })
	}
	t.later(at+t.gap(perSecond), func(at int64) { t.asked(at, perSecond, of...) })
}

func (t *demoTraffic) time(at int64) time.Time {
	return t.begun.Add(time.Duration(at) * time.Millisecond)
}

// demoQuestion is one thing somebody wants from a dependency.
type demoQuestion struct {
	dep      *demoDependency
	route    *demoRoute
	path     string
	peer     *demoPeer
	key      string
	minted   int64
	tries    [demoLayers]int // already made, of the call that each layer is in
	arrivals int
	before   demoArrival // the one before
}

// demoArrival is one request at a dependency, as the dependency sees it.
type demoArrival struct {
	start, end int64
	status     int
	bytes      int64
	gone       bool
	retryAfter int64 // ms; 0: did not ask to wait
}

// attempt is one request: what the dependency does with it, what its log says, and
// what the callers make of that.
func (t *demoTraffic) attempt(q *demoQuestion, at int64) {
	a, known := t.answer(q, at)
	key := q.key
	switch q.peer.key {
	case remintsKey:
		forged, err := t.partner.Mint(t.time(at))
		if err != nil {
			t.failed = err
			return
		}
		key = forged
	case dropsKey:
		key = ""
	}
	hop := q.tries[demoLayers-1] + 1
	q.arrivals++
	fate := demoFate{
		question: q, demoArrival: a, first: q.arrivals == 1, stale: at > q.minted+t.shape.deadline,
		expired:  a.end > q.minted+t.shape.deadline && !a.gone,
		returned: q.arrivals > 1 && q.before.retryAfter > 0 && q.before.end <= at,
		early:    q.arrivals > 1 && q.before.retryAfter > 0 && q.before.end <= at && at < q.before.end+q.before.retryAfter,
	}
	q.before = a
	id := strconv.FormatUint(t.chance.Uint64(), 16)
	t.later(a.end, func(int64) {
		t.truth.book(t.time(a.start).Unix(), &fate)
		t.write(q, &a, key, hop, id)
	})
	if a.status == 200 && !a.gone {
		return
	}
	t.again(q, &a, known)
}

// answer decides what becomes of a request. known is when its caller knows.
func (t *demoTraffic) answer(q *demoQuestion, at int64) (a demoArrival, known int64) {
	a = demoArrival{start: at, status: 200, bytes: t.between(300, 4000)}
	slow := q.dep.storms && t.shape.storm(at)
	switch x := t.chance.Float64(); {
	case slow && x < 0.55: // the work takes too long
		a.end = at + t.between(450, 1500)
	case slow && x < 0.82: // the queue is full
		a.end, a.status, a.bytes, a.retryAfter = at+t.between(1, 5), 503, 20, 1000
	case slow && x < 0.92 || !slow && x < 0.01:
		a.end, a.status, a.bytes = at+t.between(20, 200), 500, 60
	default:
		a.end = at + t.between(4, 60)
	}
	left := at + q.peer.timeout
	if a.end <= left {
		return a, a.end
	}
	a.gone = true
	switch x := t.chance.Float64(); {
	case x < 0.4: // seen at once, and nothing was written
		a.end, a.status, a.bytes = left, 499, 0
	case x < 0.8: // seen when the answer was there
		a.bytes = 0
	default: // seen while it was written
	}
	return a, left
}

// again sends the next attempt, by the innermost layer that has one left.
func (t *demoTraffic) again(q *demoQuestion, a *demoArrival, known int64) {
	wait := t.between(20, 80)
	if a.retryAfter > 0 && q.peer.polite {
		wait += a.retryAfter
	}
	for layer := demoLayers - 1; layer >= 0; layer-- {
		if q.tries[layer]++; q.tries[layer] < demoAttempts {
			t.later(known+wait, func(at int64) { t.attempt(q, at) })
			return
		}
		// It gives up; the layer above waits in its own way, and was told of no
		// Retry-After.
		q.tries[layer] = 0
		wait = t.between(50, 150) << (demoLayers - 1 - layer)
	}
}

// demoRecord is a line of the access log, in format json.
type demoRecord struct {
	Time       string `json:"time"` // when the request began
	Duration   int64  `json:"duration_ms"`
	Dependency string `json:"dependency"`
	Method     string `json:"method"`
	Path       string `json:"path"`
	Status     int    `json:"status"`
	Bytes      int64  `json:"bytes_sent"`
	Peer       string `json:"peer"`
	Key        string `json:"question_key,omitempty"`
	Attempt    int    `json:"attempt"`
	RetryAfter int64  `json:"retry_after,omitempty"`
	Gone       bool   `json:"client_gone"`
	ID         string `json:"arrival_id"`
}

func (t *demoTraffic) write(q *demoQuestion, a *demoArrival, key string, hop int, id string) {
	line, err := json.Marshal(demoRecord{
		Time: t.time(a.start).UTC().Format("2006-01-02T15:04:05.000Z"), Duration: a.end - a.start,
		Dependency: q.dep.name, Method: q.route.method, Path: q.path, Status: a.status, Bytes: a.bytes,
		Peer: q.peer.name, Key: key, Attempt: hop, RetryAfter: a.retryAfter / 1000, Gone: a.gone, ID: id,
	})
	if err != nil {
		t.failed = err
		return
	}
	t.out = append(t.out, line)
}

// demoEvent is something that happens at a moment; of several at one moment, what
// was thought of first does.
type demoEvent struct {
	at    int64
	order uint64
	do    func(at int64)
}

// demoEvents is a heap of what is going to happen.
type demoEvents []demoEvent

func (h demoEvents) Len() int      { return len(h) }
func (h demoEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h demoEvents) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h *demoEvents) Push(x any) { *h = append(*h, x.(demoEvent)) }
func (h *demoEvents) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}
