package lab

import (
	"math"
	"time"
)

// Scenario is who asks, through whom, and what answers. Rates, people, workers,
// slots and queues are given at full size; Scale says how many of them one in the
// model stands for.
type Scenario struct {
	Name   string `yaml:"name"`
	Says   string `yaml:"says"` // one sentence
	Seed   uint64 `yaml:"seed"`
	Begins string `yaml:"begins"` // RFC 3339; what the log's stamps count from
	// Lasts is how long questions are asked, Drain how long what is under way then
	// is followed. A request that is not over by then leaves no record.
	Lasts   time.Duration `yaml:"lasts"`
	Drain   time.Duration `yaml:"drain"`
	Scale   float64       `yaml:"scale"`
	Network time.Duration `yaml:"network"` // from one node to the next, one way
	Phases  []Phase       `yaml:"phases,named"`
	Clients []Client      `yaml:"clients,named"`
	Layers  []Layer       `yaml:"layers,named"`
	Targets []Target      `yaml:"targets,named"`
	Routes  []Route       `yaml:"routes,named"`

	begins time.Time
}

// Phase is a stretch of the scenario that is reported by itself: what was asked,
// and what arrived, from From up to To, not included.
type Phase struct {
	Name string
	From time.Duration `yaml:"from"`
	To   time.Duration `yaml:"to"`
}

// Client is people who ask questions of one route. Open-loop people (Rate) ask
// however long answers take; closed-loop people (People) ask, wait, think, and ask
// again.
type Client struct {
	Name       string
	Route      string        `yaml:"route"`
	Originator string        `yaml:"originator"` // the author of their keys; default: the client's name
	Key        string        `yaml:"key"`        // qk1 (default), x-request-id, or none
	Rate       float64       `yaml:"rate"`       // questions per second
	Spacing    string        `yaml:"spacing"`    // even (default) or random: people who know nothing of each other
	People     float64       `yaml:"people"`
	Think      time.Duration `yaml:"think"`
	From       time.Duration `yaml:"from"` // when they begin
	Until      time.Duration `yaml:"until"`
	// Deadline is how long an answer is of use to them, counted from when they
	// asked. It stands in originators.yaml, and is sent along only if Sends says so.
	Deadline time.Duration `yaml:"deadline"`
	Sends    bool          `yaml:"sends_deadline"`
	Refresh  Refresh       `yaml:"refresh"`
	// Calls is how many items one question asks for, one after the other, under one
	// key, as a language model calls a tool. 0 is 1.
	Calls int `yaml:"calls"`
	// AttemptBudget is how many attempts a question's requests carry leave for. 0:
	// they carry none.
	AttemptBudget int `yaml:"attempt_budget"`
}

// Refresh is what people do who wait too long or see an error: they leave, and
// some ask again. To the dependency that is a new question.
type Refresh struct {
	Patience time.Duration `yaml:"patience"` // 0: they wait for whatever comes
	Chance   float64       `yaml:"chance"`   // that somebody asks again
	Pause    time.Duration `yaml:"pause"`
	Most     int           `yaml:"most"` // times that one person does
}

// Layer is a hop between people and target: it calls what is next on the route, and
// may do so several times for one call that it serves.
type Layer struct {
	Name string
	// Workers is how many calls are served at a time, each with all its attempts and
	// the waits between them: retries are charged to inbound concurrency. Queue is
	// how many more may wait; beyond, 503.
	Workers Limit `yaml:"workers"`
	Queue   Limit `yaml:"queue"`
	// RouteShare bounds the part of the workers that calls of one route hold; beyond,
	// 503 for that route alone. 0: no bound.
	RouteShare float64 `yaml:"route_share"`
	// Cancels says that a call whose caller has left is stopped, and with it what it
	// has called.
	Cancels bool `yaml:"cancels"`
	// Deadlines says that a deadline that a call carries is obeyed, and passed on
	// with each attempt, no later than the attempt's own timeout.
	Deadlines bool          `yaml:"deadlines"`
	Attempts  int           `yaml:"attempts"`
	Timeout   time.Duration `yaml:"timeout"` // of each attempt; 0: none
	RetryOn   []string      `yaml:"retry_on"`
	Backoff   Backoff       `yaml:"backoff"`
	Honours   bool          `yaml:"honours_retry_after"`
	// Fallback says that a call that is given up gets a degraded answer instead of an
	// error.
	Fallback bool    `yaml:"fallback"`
	Budget   *Budget `yaml:"budget"`
	Key      string  `yaml:"key"` // forward (default), drop, or remint: a key of its own for each attempt
	// AttemptBudget says what becomes of one that a call carries: decrement (obeyed
	// and counted down), forward (neither), or drop (default).
	AttemptBudget string `yaml:"attempt_budget"`
	Memory        Memory `yaml:"memory"`
}

// Backoff is how long a layer waits before attempt n+1: Base × Factor^(n−1), at
// most Max. Jitter none waits that long, full any time up to it, equal at least
// half of it.
type Backoff struct {
	Base   time.Duration `yaml:"base"`
	Factor float64       `yaml:"factor"`
	Max    time.Duration `yaml:"max"`
	Jitter string        `yaml:"jitter"`
}

// Budget bounds a layer's repeats. Model says how; each reads fields of its own.
type Budget struct {
	// ratio: repeats ≤ Ratio × calls + Floor a second, over Window (Linkerd, Finagle).
	// concurrency: repeats under way ≤ Ratio × all attempts under way, at least Min
	// (Envoy). rate: at most Rate repeats in Window (SRE book). tokens: a bucket of
	// Tokens; a failure costs Cost, one by timeout TimeoutCost, a success gives Gain;
	// a repeat is allowed while more than Reserve × Tokens are left (gRPC: Reserve
	// 0.5; AWS: Reserve 0, and only repeats cost).
	Model       string        `yaml:"model"`
	Per         string        `yaml:"per"` // target (default): one for each; or layer: one for all
	Ratio       float64       `yaml:"ratio"`
	Floor       float64       `yaml:"floor"`
	Window      time.Duration `yaml:"window"`
	Min         float64       `yaml:"min"`
	Rate        float64       `yaml:"rate"`
	Tokens      float64       `yaml:"tokens"`
	Cost        float64       `yaml:"cost"`
	TimeoutCost float64       `yaml:"timeout_cost"`
	Gain        float64       `yaml:"gain"`
	Reserve     float64       `yaml:"reserve"`
}

// Target is a dependency, whose access log is written.
type Target struct {
	Name    string
	Slots   Limit         `yaml:"slots"` // calls that are worked on at a time
	Queue   Limit         `yaml:"queue"` // that wait; beyond, 503
	Service time.Duration `yaml:"service"`
	Jitter  float64       `yaml:"jitter"` // service takes Service × (1 ± Jitter), evenly
	Slow    Slow          `yaml:"slow"`
	Errors  float64       `yaml:"errors"` // share of answers that are 500
	Sending time.Duration `yaml:"sending"`
	Refusal Refusal       `yaml:"refusal"`
	// Cancels says that a call whose caller has left is dropped, from the queue and
	// from its slot. Deadlines says that one past the deadline it carries is not
	// begun (504).
	Cancels   bool `yaml:"cancels"`
	Deadlines bool `yaml:"deadlines"`
	// Idempotent says that a request whose key was served before gets what was
	// answered then, and nothing is done again.
	Idempotent bool     `yaml:"idempotent"`
	Logs       string   `yaml:"logs"` // answers (default): a departure is seen when the answer is there; departures: at once
	Changes    []Change `yaml:"changes,named"`
	Memory     Memory   `yaml:"memory"`
}

// Slow is a share of calls that take longer.
type Slow struct {
	Share float64       `yaml:"share"`
	Takes time.Duration `yaml:"takes"`
}

// Refusal is what a full target does: 503 at once, or, with Costs, once a slot was
// free to say so, for as long.
type Refusal struct {
	Costs      time.Duration `yaml:"costs"`
	RetryAfter time.Duration `yaml:"retry_after"` // whole seconds; 0: says nothing
}

// Change replaces, from At on and for Lasts (0: for good), what it names.
type Change struct {
	Name    string
	At      time.Duration  `yaml:"at"`
	Lasts   time.Duration  `yaml:"lasts"`
	Slots   *Limit         `yaml:"slots"`
	Service *time.Duration `yaml:"service"`
	Errors  *float64       `yaml:"errors"`
	Slow    *Slow          `yaml:"slow"`
}

// Memory bounds the calls that a node holds, waiting or served. With one more it
// drops them all, unanswered, and refuses connections until it is back.
type Memory struct {
	Calls   float64       `yaml:"calls"` // 0: no bound
	Restart time.Duration `yaml:"restart"`
}

// scaled is how many calls the node holds in the model.
func (m Memory) scaled(scale float64) int {
	if m.Calls == 0 {
		return math.MaxInt
	}
	return int(m.Calls / scale)
}

// Route is an operation and the way to it.
type Route struct {
	Name    string
	Method  string   `yaml:"method"`
	Path    string   `yaml:"path"` // a prefix; the item asked for follows
	Items   int      `yaml:"items"`
	Through []string `yaml:"through"` // layers, the outermost first
	Target  string   `yaml:"target"`
}

// Limit is a number of calls; the zero value is none at all. Unbounded is written
// "unbounded".
type Limit float64

// Unbounded is no limit.
const Unbounded Limit = -1

// scaled is the limit in the model.
func (l Limit) scaled(scale float64) int {
	if l == Unbounded {
		return math.MaxInt
	}
	return int(float64(l)/scale + 0.5)
}
