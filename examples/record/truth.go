package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// truth is truth.json. examples/README.md says what each figure means and where
// it may differ from the log.
type truth struct {
	Schema       string                 `json:"schema"`
	Recorded     time.Time              `json:"recorded"`
	Servers      map[string]string      `json:"servers"`
	Phases       []span                 `json:"phases"`
	Logs         map[string]logTruth    `json:"logs"`
	Dependencies map[string]*dependency `json:"dependencies"`
}

// logTruth says which target wrote the log and by which key it can be counted.
type logTruth struct {
	Dependency string `json:"dependency"`
	Key        string `json:"key"` // question_key, x_request_id
}

type dependency struct {
	// Arrivals are the requests at the target without health checks: those that
	// the application saw and those that the target never passed on to it.
	Arrivals       int            `json:"arrivals"`
	Unforwarded    counts         `json:"unforwarded"`
	HealthChecks   int            `json:"health_checks"`
	Tries          int            `json:"tries"`
	SentToTarget   sent           `json:"sent_to_target"`
	Verified       int            `json:"verified"`
	Unattributable map[string]int `json:"unattributable"`
	Questions      int            `json:"questions"`
	Repeats        int            `json:"repeats"`
	Histogram      map[string]int `json:"arrivals_per_question"`
	// AskedQuestions is what the callers wanted, whatever keys were sent.
	AskedQuestions int                       `json:"asked_questions"`
	Originators    map[string]counts         `json:"originators"`
	ByRequestID    counts                    `json:"by_x_request_id"`
	Phases         map[string]counts         `json:"phases"` // asked questions and their arrivals
	Kinds          map[string]counts         `json:"kinds"`  // the same by kind of caller
	Attempts       map[string]int            `json:"attempts"`
	TimeoutRetries int                       `json:"timeout_retries"`
	RetryAfter     retryAfter                `json:"retry_after"`
	Statuses       map[string]int            `json:"statuses"` // as the application sent them; 0: it was left before
	RepeatAfter    map[string]int            `json:"repeat_after"`
	Hops           hops                      `json:"hops"`
	Peers          map[string]int            `json:"peers"` // arrivals by source address
	InFront        inFront                   `json:"in_front"`
	Departures     departures                `json:"departures"`
	Callers        map[string]map[string]int `json:"callers"`
	Edge           map[string]int            `json:"edge"`
	OddAgents      int                       `json:"odd_agent_arrivals"`
	List           []keyTruth                `json:"question_list"`
	Others         []keyTruth                `json:"unattributable_list"`
	Cut            map[string]string         `json:"cut_records,omitempty"`
	TriesPerRecord map[string]int            `json:"tries_per_record"`
}

type counts struct {
	Arrivals  int `json:"arrivals"`
	Questions int `json:"questions"`
}

// sent is what was sent to the target, counted by those who sent it.
type sent struct {
	Direct int `json:"direct"`
	Edge   int `json:"edge"`
}

type retryAfter struct {
	Asked    int `json:"asked"`
	Returned int `json:"returned"`
	Early    int `json:"early"`
}

// hops are the parts of the hop ratios: verified arrivals only.
type hops struct {
	WithAttempt int `json:"with_attempt"`
	AttemptOne  int `json:"attempt_one"`
	Questions   int `json:"questions_with_attempt_one"`
}

// inFront counts what the application itself received: each of the target's own
// tries is an arrival there.
type inFront struct {
	Arrivals  int `json:"arrivals"`
	Verified  int `json:"verified"`
	Questions int `json:"questions"`
}

// departures in two views. The first three are what happened at the target; the
// others are what the application saw, whose connection the target then closed.
type departures struct {
	BeforeResponse    int `json:"before_response"`
	UndeliveredAnswer int `json:"undelivered_answer"`
	DuringResponse    int `json:"during_response"`

	BeforeHeaders int `json:"before_headers"`
	// AfterHeaders by first path segment: whether the target had passed the
	// headers on depends on the route (nginx buffers /reports, not /stream).
	AfterHeaders map[string]int `json:"after_headers"`
}

type keyTruth struct {
	KeySHA256  string   `json:"key_sha256"` // first 16 hex digits of SHA-256 of the key text
	Class      string   `json:"class"`
	Originator string   `json:"originator"`
	Method     string   `json:"method"`
	Path       string   `json:"path"`
	Arrivals   int      `json:"arrivals"`
	Attempts   []string `json:"attempts"` // x-envoy-attempt-count of each arrival, "" where absent
}

func writeTruth(path string, b *book, phases []span, edge map[string]map[string]int, bins binaries) error {
	t := truth{
		Schema: "auditor.example-truth/1", Recorded: time.Now().UTC().Truncate(time.Second), Phases: phases,
		Servers: map[string]string{"nginx": bins.nginxVersion, "envoy": bins.envoyVersion, "go": runtime.Version()},
		Logs: map[string]logTruth{
			"nginx-json.log": {"seats", "question_key"}, "nginx-combined.log": {"seats", "question_key"},
			"envoy-json.log": {"prices", "question_key"}, "envoy-text.log": {"prices", "x_request_id"},
		},
		Dependencies: map[string]*dependency{},
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, dep := range dependencies {
		d := b.audit(dep)
		d.Edge = edge[dep]
		d.SentToTarget = sent{b.attempts[dep]["direct"]["sent"], edge[dep]["upstream_rq_total"]}
		t.Dependencies[dep] = d
		fmt.Printf("%s: %d arrivals (%d sent), %d verified, %d questions\n", dep, d.Arrivals,
			d.SentToTarget.Direct+d.SentToTarget.Edge, d.Verified, d.Questions)
	}
	text, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// records merges the tries that the target made for one of its own requests.
// The last try stands for the record: its answer is the one passed on.
func (b *book) records(dep string) (records []*arrival, tries []int) {
	at := map[string]int{}
	for _, a := range b.arrivals {
		if a.dep != dep || a.question < 0 {
			continue
		}
		if i, seen := at[a.record]; seen && a.record != "" {
			last := *a
			last.start = records[i].start
			records[i] = &last
			tries[i]++
			continue
		}
		at[a.record] = len(records)
		records, tries = append(records, a), append(tries, 1)
	}
	return records, tries
}

func (b *book) audit(dep string) *dependency {
	d := &dependency{
		Unattributable: map[string]int{}, Histogram: map[string]int{}, Originators: map[string]counts{},
		Phases: map[string]counts{}, Kinds: map[string]counts{}, Attempts: map[string]int{}, Callers: b.attempts[dep],
		HealthChecks: b.probes[dep], Cut: map[string]string{}, TriesPerRecord: map[string]int{},
		RepeatAfter: map[string]int{}, Statuses: map[string]int{}, Peers: map[string]int{},
		Departures: departures{AfterHeaders: map[string]int{}},
	}
	byKey, byID, order := map[identity][]*arrival{}, map[identity]int{}, []identity{}
	asked, phaseAsked, kindAsked := map[int]bool{}, map[string]map[int]bool{}, map[string]map[int]bool{}
	records, tries := b.records(dep)
	for _, a := range b.unforwarded(dep, records) {
		records, tries = append(records, a), append(tries, 0)
		d.Unforwarded.Arrivals++
	}
	d.Unforwarded.Questions = d.Unforwarded.Arrivals // each was sent once
	for i, a := range records {
		q := b.questions[a.question]
		d.Arrivals++
		d.Peers[q.peer]++
		d.Statuses[strconv.Itoa(a.status)]++
		d.Tries += tries[i]
		d.TriesPerRecord[strconv.Itoa(tries[i])]++
		d.Attempts[a.attempt]++
		if a.timeoutRetry == "true" {
			d.TimeoutRetries++
		}
		if q.kind == "odd agent" {
			d.OddAgents++
		}
		asked[a.question] = true
		tally(d.Phases, phaseAsked, q.phase, a.question)
		tally(d.Kinds, kindAsked, q.kind, a.question)
		if tries[i] > 0 && a.requestID != "" {
			byID[identity{a.requestID, a.path}]++
		}
		switch a.cut {
		case cutBefore:
			d.Departures.BeforeHeaders++
		case cutDuring:
			d.Departures.AfterHeaders[firstSegment(a.path)]++
		}
		if a.cut != "" && a.record != "" {
			d.Cut[a.record] = a.cut
		}
		if a.key == "" {
			d.Unattributable["absent"]++
			continue
		}
		id := identity{a.key, a.path}
		if byKey[id] == nil {
			order = append(order, id)
		}
		byKey[id] = append(byKey[id], a)
	}
	for _, id := range order {
		as, m := byKey[id], b.keys[id.key]
		k := keyTruth{KeySHA256: shortHash(id.key), Class: m.class, Originator: m.originator, Method: as[0].method, Path: id.path, Arrivals: len(as)}
		for _, a := range as {
			k.Attempts = append(k.Attempts, a.attempt)
		}
		if m.class != "verified" {
			d.Unattributable[m.class] += len(as)
			d.Others = append(d.Others, k)
			continue
		}
		d.List = append(d.List, k)
		d.Verified += len(as)
		d.Questions++
		d.Histogram[strconv.Itoa(len(as))]++
		o := d.Originators[m.originator]
		d.Originators[m.originator] = counts{o.Arrivals + len(as), o.Questions + 1}
		d.RetryAfter.add(as)
		d.Hops.add(as)
		for _, a := range as[:len(as)-1] {
			d.RepeatAfter[a.came()]++
		}
	}
	d.InFront = b.inFront(dep)
	// An answer that was under way at the application and whose caller saw no
	// byte of it was held by the target.
	after := 0
	for _, n := range d.Departures.AfterHeaders {
		after += n
	}
	d.Departures.BeforeResponse = d.Departures.BeforeHeaders + d.Unforwarded.Arrivals
	d.Departures.DuringResponse = d.Callers["direct"][string(leftDuring)] + d.Callers["edge"][string(leftDuring)]
	d.Departures.UndeliveredAnswer = after - d.Departures.DuringResponse
	d.Repeats = d.Verified - d.Questions
	d.AskedQuestions = len(asked)
	for _, n := range byID {
		d.ByRequestID.Arrivals += n
		d.ByRequestID.Questions++
	}
	return d
}

// unforwarded are the requests that callers sent straight to the target, under a
// key of their own, and that the application never saw.
func (b *book) unforwarded(dep string, records []*arrival) (missing []*arrival) {
	seen := map[identity]int{}
	for _, a := range records {
		seen[identity{a.key, a.path}]++
	}
	for id, s := range b.direct[dep] {
		for range s.count - seen[id] {
			missing = append(missing, &arrival{dep: dep, question: s.question.index, key: id.key, path: id.path, method: s.question.method})
		}
	}
	slices.SortFunc(missing, func(x, y *arrival) int { return x.question - y.question })
	return missing
}

// inFront counts every try at the application.
func (b *book) inFront(dep string) (n inFront) {
	seen := map[identity]bool{}
	for _, a := range b.arrivals {
		if a.dep != dep || a.question < 0 {
			continue
		}
		n.Arrivals++
		if b.keys[a.key].class == "verified" {
			n.Verified++
			seen[identity{a.key, a.path}] = true
		}
	}
	n.Questions = len(seen)
	return n
}

func (h *hops) add(as []*arrival) {
	first := false
	for _, a := range as {
		if a.attempt != "" {
			h.WithAttempt++
		}
		if a.attempt == "1" {
			h.AttemptOne++
			first = true
		}
	}
	if first {
		h.Questions++
	}
}

// came says what an arrival got, in the words of repeat_after.
func (a *arrival) came() string {
	switch {
	case a.cut != "":
		return "gone"
	case a.status == 503:
		return "429_503"
	case a.status >= 500:
		return "5xx"
	}
	return "success"
}

// add compares each answer that carried Retry-After with the question's next
// arrival.
func (r *retryAfter) add(as []*arrival) {
	slices.SortFunc(as, func(x, y *arrival) int { return x.start.Compare(y.start) })
	for i, a := range as {
		if a.retryAfter == 0 {
			continue
		}
		r.Asked++
		if i+1 == len(as) {
			continue
		}
		r.Returned++
		if as[i+1].start.Before(a.end.Add(time.Duration(a.retryAfter) * time.Second)) {
			r.Early++
		}
	}
}

func tally(into map[string]counts, seen map[string]map[int]bool, name string, question int) {
	c := into[name]
	c.Arrivals++
	if seen[name] == nil {
		seen[name] = map[int]bool{}
	}
	if !seen[name][question] {
		seen[name][question] = true
		c.Questions++
	}
	into[name] = c
}

func firstSegment(path string) string {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			return path[1:i]
		}
	}
	return path
}

func shortHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}
