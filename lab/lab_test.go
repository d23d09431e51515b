package lab

import (
	"bytes"
	"container/heap"
	"crypto/sha256"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/keys"
)

// written parses a scenario of a test.
func written(t testing.TB, text string) *File {
	t.Helper()
	f, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const small = `
name: small
seed: 7
lasts: 20s
drain: 10s
network: 1ms
clients:
  a: {route: x, rate: 200, spacing: random, deadline: 2s}
  b: {route: y, people: 50, think: 100ms, key: x-request-id}
  c: {route: y, rate: 20, key: none}
layers:
  app: {attempts: 2, timeout: 300ms, backoff: {base: 20ms, factor: 2, jitter: full}, honours_retry_after: true}
  mesh: {attempts: 3, timeout: 80ms, workers: 100, queue: 20, key: remint, cancels: true}
  bff: {attempts: 2, timeout: 90ms, budget: {model: tokens, tokens: 10, cost: 1, gain: 0.1, reserve: 0.5}}
targets:
  t: {slots: 6, queue: 30, service: 20ms, jitter: 0.3, errors: 0.02, sending: 3ms, slow: {share: 0.02, takes: 200ms}, refusal: {retry_after: 1s, costs: 1ms}, logs: departures}
  u: {slots: 20, queue: 100, service: 5ms, cancels: true}
routes:
  x: {path: /x/, through: [app, bff], target: t}
  y: {method: POST, path: /y/, through: [app, mesh], target: u}
`

// The same seed gives the same bytes, another seed others.
func TestSameSeedSameBytes(t *testing.T) {
	play := func(seed uint64, format string) (log, truth [sha256.Size]byte) {
		a, err := written(t, small).Arm("")
		if err != nil {
			t.Fatal(err)
		}
		a.Seed, a.Lasts = seed, 5*time.Second
		var b bytes.Buffer
		tr, err := Run(t.Context(), &a, Output{Format: format, Log: &b})
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b.Bytes(), []byte("\n")); n != int(tr.Total.Arrivals) || n < 1000 {
			t.Errorf("%s: %d lines, and %d arrivals are true", format, n, tr.Total.Arrivals)
		}
		text, err := json.Marshal(tr)
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(b.Bytes()), sha256.Sum256(text)
	}
	for _, format := range Formats() {
		l1, t1 := play(7, format)
		l2, t2 := play(7, format)
		if l1 != l2 || t1 != t2 {
			t.Errorf("%s: two runs with one seed differ", format)
		}
		if l3, t3 := play(8, format); l3 == l1 || t3 == t1 {
			t.Errorf("%s: another seed changes nothing", format)
		}
	}
}

// Without a log the truth is the same.
func TestTruthNeedsNoLog(t *testing.T) {
	a, _ := written(t, small).Arm("")
	with, err := Run(t.Context(), &a, Output{Format: "json", Log: io.Discard, Events: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	without, err := Run(t.Context(), &a, Output{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(with, without) {
		t.Error("the truth depends on whether a log is written")
	}
}

// Nothing is lost: everything asked has an outcome, or is still open at the end.
func TestEverythingAskedComesToSomething(t *testing.T) {
	a, _ := written(t, small).Arm("")
	r, err := Run(t.Context(), &a, Output{})
	if err != nil {
		t.Fatal(err)
	}
	var asked, came uint64
	for _, s := range r.Routes {
		for _, x := range s.Seconds {
			asked += x.Asked
			came += x.Answered + x.Late + x.Degraded + x.Failed + x.Left
		}
	}
	if asked != r.Asked || came != asked {
		t.Errorf("%d asked, of which the series knows %d, and %d came to something", r.Asked, asked, came)
	}
	if r.Lost != 0 {
		t.Errorf("%d arrivals have no record after all is over", r.Lost)
	}
	c := r.Total
	if c.Attributable+c.Unattributable["total"] != c.Arrivals || c.Originals+c.Repeats != c.Attributable || c.Responses.Total != c.Arrivals {
		t.Errorf("the parts do not add up: %+v", c)
	}
	for what, n := range map[string]uint64{"early": c.RetryAfter.Returned, "refused": c.Responses.Refused, "before": c.Responses.Before,
		"during": c.Responses.During, "claimed": c.Claimed, "absent": c.Unattributable["absent"], "repeats": c.Repeats} {
		if n == 0 {
			t.Errorf("no %s in this scenario: it shows nothing of it", what)
		}
	}
}

// The keys are those of package keys, and a layer's own are not.
func TestKeysAreKeys(t *testing.T) {
	ring, err := keys.NewRing(keys.Config{Originators: []keys.Originator{{ID: "web", Keys: []keys.Key{{KID: kid, Secret: []byte(secretOf("web"))}}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSigner("web", 3)
	now := time.Date(2026, 3, 1, 10, 0, 0, 5e6, time.UTC)
	seen := map[string]bool{}
	for n := range uint64(1000) {
		good := string(s.qk1(nil, n, now.UnixMilli(), false))
		if e := ring.Verify(good, now); e.Class != keys.Verified || !e.Minted.Equal(now) {
			t.Fatalf("key %d: %v, %v, minted %v", n, e.Class, e.Detail, e.Minted)
		}
		if e := ring.Verify(string(s.qk1(nil, n, now.UnixMilli(), true)), now); e.Reason != keys.Forged {
			t.Fatalf("forged key %d: %v", n, e.Reason)
		}
		if seen[good] {
			t.Fatalf("key %d is there twice", n)
		}
		seen[good] = true
	}
}

// The agenda gives events by time, then by when they were thought of.
func TestAgenda(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var a agenda
	var model sorted
	now := int64(0)
	for i := range 20_000 {
		if r.IntN(3) > 0 || len(model) == 0 {
			at := [...]int64{50, 50e6, 5e9}[r.IntN(3)]
			at = r.Int64N(at)
			if r.IntN(2) == 0 { // ahead of what comes next, as most events are
				at = now + [...]int64{0, 3, 2e6, 4e8}[r.IntN(4)]
			}
			a.add(at, kind(r.IntN(1<<kindBits)), int32(i), uint32(i))
			heap.Push(&model, [2]int64{at, int64(i)})
			continue
		}
		want := heap.Pop(&model).([2]int64)
		if _, ok := a.next(want[0] - 1); ok {
			t.Fatalf("an event before %d, where there is none", want[0])
		}
		got, ok := a.next(want[0])
		if !ok || got.at != want[0] || int64(got.who) != want[1] || int64(got.gen) != want[1] {
			t.Fatalf("got %d at %d, want %d at %d", got.who, got.at, want[1], want[0])
		}
		now = got.at
	}
}

type sorted [][2]int64

func (s sorted) Len() int { return len(s) }
func (s sorted) Less(i, j int) bool {
	return s[i][0] < s[j][0] || s[i][0] == s[j][0] && s[i][1] < s[j][1]
}
func (s sorted) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *sorted) Push(x any)   { *s = append(*s, x.([2]int64)) }
func (s *sorted) Pop() any {
	x := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return x
}

// A single server whose calls come at random is the M/M/1 or M/D/1 queue, of which
// the mean time in system is known (Pollaczek and Khinchine).
func TestQueueIsAQueue(t *testing.T) {
	const service, load = 10e-3, 0.7
	f := written(t, `
name: queue
lasts: 2000s
drain: 10s
clients: {c: {route: r, rate: 70, spacing: random}}
layers: {l: {}}
targets: {t: {slots: 1, service: 10ms}}
routes: {r: {path: /r/, through: [l], target: t}}
`)
	c := played(t, f, "").Total
	mean := c.Responses.BusySeconds / float64(c.Arrivals)
	// Cutting both stamps to the millisecond changes no mean.
	about(t, "mean time in an M/D/1 queue", mean, service*(1+load/(2*(1-load))), 0.02)
}

// Closed-loop people never have more calls under way than there are of them.
func TestClosedLoop(t *testing.T) {
	f := written(t, `
name: closed
lasts: 100s
drain: 10s
clients: {c: {route: r, people: 30, think: 1s}}
layers: {l: {}}
targets: {t: {slots: 30, queue: 0, service: 500ms}}
routes: {r: {path: /r/, through: [l], target: t}}
`)
	c := played(t, f, "").Total
	if c.Responses.Refused != 0 {
		t.Errorf("30 people had more than 30 calls under way: %d were refused", c.Responses.Refused)
	}
	// Each takes 1 s to think and 0.5 s to be answered: 30 / 1.5 s.
	about(t, "questions a second", float64(c.Questions)/100, 20, 0.02)
}

// Backoff grows, is bounded, and jitter spreads it.
func TestBackoff(t *testing.T) {
	m := &model{chance: rand.New(rand.NewPCG(1, 1))}
	b := Backoff{Base: 100 * time.Millisecond, Factor: 2, Max: 500 * time.Millisecond}
	for n, want := range []time.Duration{100, 200, 400, 500, 500} {
		if got := m.wait(&b, n+1); got != int64(want*time.Millisecond) {
			t.Errorf("wait %d: %v, want %v", n+1, time.Duration(got), want*time.Millisecond)
		}
	}
	for jitter, low := range map[string]float64{"full": 0, "equal": 0.5} {
		b.Jitter = jitter
		least, most, sum := math.Inf(1), 0.0, 0.0
		for range 10_000 {
			x := float64(m.wait(&b, 1)) / 1e8
			least, most, sum = min(least, x), max(most, x), sum+x
		}
		if least < low || least > low+0.01 || most > 1 || most < 0.99 || math.Abs(sum/1e4-(1+low)/2) > 0.02 {
			t.Errorf("%s: from %.3f to %.3f, mean %.3f", jitter, least, most, sum/1e4)
		}
	}
}

// Every budget holds a flood of failures to what its authors promise.
func TestBudgets(t *testing.T) {
	second := int64(time.Second)
	flood := func(b budget, seconds int) (repeats float64) { // 1,000 calls a second, all fail, each wants 2 repeats
		for i := range seconds * 1000 {
			now := int64(i) * second / 1000
			b.began(now, false)
			b.ended(now, false, byTimeout)
			for range 2 {
				if !b.takes(now, byTimeout) {
					break
				}
				b.began(now, true)
				b.ended(now, true, byTimeout)
				repeats++
			}
		}
		return repeats
	}
	ratio := flood(newBudget(&Budget{Model: "ratio", Ratio: 0.2, Window: 10 * time.Second}, 1), 60)
	about(t, "ratio 0.2 of 60,000 calls", ratio, 12_000, 0.01)
	floor := flood(newBudget(&Budget{Model: "ratio", Floor: 10, Window: 10 * time.Second}, 1), 60)
	about(t, "floor of 10 a second for 60 s, and the window's once", floor, 600, 0.2)
	rate := flood(newBudget(&Budget{Model: "rate", Rate: 100, Window: time.Minute}, 1), 120)
	about(t, "100 a minute", rate, 200, 0.01)
	tokens := flood(newBudget(&Budget{Model: "tokens", Tokens: 10, Cost: 1, Gain: 0.1, Reserve: 0.5}, 1), 60)
	atMost(t, "10 tokens, of which half are a reserve", tokens, 4)
	aws := flood(newBudget(&Budget{Model: "tokens", Tokens: 500, Cost: 5, TimeoutCost: 10, Gain: 1}, 1), 60)
	about(t, "500 tokens, 10 for a repeat after a timeout", aws, 50, 0)

	b := newBudget(&Budget{Model: "concurrency", Ratio: 0.2, Min: 3}, 1)
	for range 100 {
		b.began(0, false)
	}
	n := 0
	for b.takes(0, byError) {
		b.began(0, true)
		n++
	}
	if n != 25 { // 25 of 125
		t.Errorf("concurrency: %d repeats beside 100 calls, want 25: a fifth of all", n)
	}

	// What waits for its time is spent: 100 failures, then 100 repeats.
	late := newBudget(&Budget{Model: "ratio", Ratio: 0.2, Window: 10 * time.Second}, 1)
	granted := 0
	for range 100 {
		late.began(0, false)
	}
	for range 100 {
		if late.takes(second, byError) {
			granted++
		}
	}
	if granted != 20 {
		t.Errorf("ratio: %d of 100 are granted before one is made, want 20", granted)
	}

	// A window holds nothing of what was long before.
	w := newBudget(&Budget{Model: "ratio", Ratio: 0.2, Window: 10 * time.Second}, 1)
	for range 100 {
		w.began(0, false)
	}
	if !w.takes(9*second, byError) || w.takes(600*second, byError) {
		t.Error("ratio: calls count for ten seconds, and no longer")
	}
}

func BenchmarkArrivals(b *testing.B) {
	f := scenario(b, "on-sale")
	a, err := f.Arm("all-slow")
	if err != nil {
		b.Fatal(err)
	}
	for _, format := range Formats() {
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			var n uint64
			for b.Loop() {
				r, err := Run(b.Context(), &a, Output{Format: format, Log: io.Discard})
				if err != nil {
					b.Fatal(err)
				}
				n += r.Total.Arrivals
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/arrival")
		})
	}
}

// BenchmarkTenMillion plays ten million arrivals and writes their log to nowhere, on one
// processor, and wants that in under a minute.
func BenchmarkTenMillion(b *testing.B) {
	a, err := scenario(b, "on-sale").Arm("all-slow")
	if err != nil {
		b.Fatal(err)
	}
	a.Scale = 14.4
	for b.Loop() {
		begun := time.Now()
		r, err := Run(b.Context(), &a, Output{Format: "json", Log: io.Discard})
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(begun)
		b.ReportMetric(float64(r.Total.Arrivals), "arrivals")
		if r.Total.Arrivals < 10_000_000 || took > time.Minute {
			b.Errorf("%d arrivals in %v, want ten million in a minute", r.Total.Arrivals, took)
		}
	}
}

func TestFaultsNameTheirLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "test.yaml: is empty"},
		{"- a\n", "test.yaml:1: is no mapping"},
		{"name: x\nlasts: 1s\nclients: {a: {route: r, rate: 1}}\nlayers: {l: {attemps: 2}}\ntargets: {t: {}}\nroutes: {r: {path: /r/, through: [l], target: t}}\n", "test.yaml:4: attemps is unknown: attempts?"},
		{"name: x\nlasts: 1s\nlasts: 2s\n", "test.yaml:3: lasts is here twice"},
		{"name: x\nlasts: soon\n", `test.yaml:2: lasts "soon" is no time`},
		{"name: &a x\nsays: *a\n", "test.yaml:2: aliases are not read"},
		{"name: x\n---\nname: y\n", "a second document"},
		{strings.Replace(small, "through: [app, bff]", "through: [app, nobody]", 1), `no layer is named "nobody"`},
		{strings.Replace(small, "seed: 7", "scale: 0.5", 1), "test.yaml:3: scale: 0.5 is below 1"},
		{strings.Replace(small, "seed: 7", "scale: 1000", 1), "less than one: take a smaller scale"},
		{strings.Replace(small, "rate: 200", "rate: 200, people: 3", 1), "test.yaml:8: clients.a.rate: exactly one of rate and people"},
		{strings.Replace(small, "model: tokens", "model: tokenz", 1), `"tokenz" is unknown: ratio, concurrency, rate, tokens`},
		{small + "arms:\n  one: {says: no, set: {layers: {app: {attempts: 0}}}}\n", "layers.app.attempts: 0 is not 1 to 100"},
		{small + "phases: {p: {from: 0s, to: 1500ms}}\n", "phases.p: from 0s to 1.5s: whole seconds are wanted"},
		{small + "arms:\n  one: {sets: {}}\n", "sets is unknown: an arm has says and set"},
	} {
		_, err := Parse("test.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q…: %v, want %s", c.text, err, c.want)
		}
	}
}

// An arm is the scenario with what it sets, and changes no other.
func TestArmsAreMerged(t *testing.T) {
	f := written(t, small+"arms:\n  plain: {}\n  other: {says: s, set: {seed: 9, layers: {app: {attempts: 5}}}}\n")
	plain, _ := f.Arm("plain")
	other, _ := f.Arm("other")
	if !reflect.DeepEqual(plain.Scenario, f.Scenario) {
		t.Error("an arm that sets nothing is not the scenario")
	}
	if other.Seed != 9 || other.Layers[0].Attempts != 5 || other.Layers[0].Timeout != 300*time.Millisecond || len(other.Layers) != 3 {
		t.Errorf("other: seed %d, %+v", other.Seed, other.Layers[0])
	}
	for _, yes := range []string{"true", "True", "TRUE"} { // all that YAML takes for it
		a, err := written(t, strings.Replace(small, "cancels: true", "cancels: "+yes, 1)).Arm("")
		if err != nil || !a.Layers[1].Cancels {
			t.Errorf("cancels: %s is read as false (%v)", yes, err)
		}
	}
	if _, err := f.Arm("none"); err == nil || !strings.Contains(err.Error(), "plain, other") {
		t.Errorf("an arm that there is not: %v", err)
	}
}

// A target that runs out of memory drops all, logs none of it, and comes back.
func TestMemory(t *testing.T) {
	f := written(t, `
name: memory
lasts: 20s
drain: 10s
clients: {c: {route: r, rate: 100}}
layers: {l: {}}
targets: {t: {slots: 1, service: 5ms, memory: {calls: 50, restart: 2s}, changes: {slow: {at: 5s, lasts: 3s, service: 1s}}}}
routes: {r: {path: /r/, through: [l], target: t}}
`)
	r := played(t, f, "")
	atLeast(t, "arrivals without a record", float64(r.Lost), 200)
	if r.Lost+r.Total.Arrivals != r.Asked {
		t.Errorf("%d without a record and %d with one, of %d", r.Lost, r.Total.Arrivals, r.Asked)
	}
	last := r.Routes[0].Seconds[18]
	if last.Answered != last.Asked || last.Asked == 0 {
		t.Errorf("second 18: %d of %d answered, want all", last.Answered, last.Asked)
	}
}

// Moments are written as the standard library writes them.
func TestStamps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 10_000 {
		ms := r.Int64N(7_000_000_000_000)
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := string(rfc3339(nil, ms)); got != want {
			t.Fatalf("%d: %s, want %s", ms, got, want)
		}
	}
}

// A layer that runs out of memory drops what it holds; its callers see it at once,
// and it is back after its restart with all its workers.
func TestLayerMemory(t *testing.T) {
	f := written(t, `
name: memory
lasts: 20s
drain: 10s
network: 1ms
clients: {c: {route: r, rate: 100}}
layers: {app: {attempts: 2, timeout: 5s}, l: {workers: 20, queue: unbounded, timeout: 4s, budget: {model: concurrency, ratio: 0.2}, memory: {calls: 50, restart: 2s}}}
targets: {t: {service: 5ms, changes: {slow: {at: 5s, lasts: 3s, service: 1s}}}}
routes: {r: {path: /r/, through: [app, l], target: t}}
`)
	r := played(t, f, "")
	s := r.Routes[0].Seconds
	var failed uint64
	for i := 5; i < 10; i++ {
		failed += s[i].Failed
	}
	atLeast(t, "failed while it is slow", float64(failed), 100)
	for i := 12; i < 20; i++ {
		if s[i].Answered != s[i].Asked || s[i].Asked != 100 {
			t.Errorf("second %d: %d of %d answered, want all of 100", i, s[i].Answered, s[i].Asked)
		}
	}
	if last := r.Workers[1].Busy["r"]; last[len(last)-1] != 0 {
		t.Errorf("%d workers are taken after all is over", last[len(last)-1])
	}
}
