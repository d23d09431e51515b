package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/alerts"
)

// fake is a Reader whose figures are known. It keeps what it was asked.
type fake struct {
	mu        sync.Mutex
	snap      *Snapshot
	asked     []RangeQuery
	worst     []WorstQuery
	answer    *Range
	questions map[[16]byte][]Question
	err       error
	panics    bool
}

func (f *fake) Snapshot() *Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snap
}

func (f *fake) set(s *Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snap = s
}

func (f *fake) Range(ctx context.Context, q RangeQuery) (*Range, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("secret record")
	}
	f.asked = append(f.asked, q)
	return f.answer, f.err
}

func (f *fake) Questions(_ context.Context, hash [16]byte, limit int) ([]Question, error) {
	return f.questions[hash], f.err
}

func (f *fake) WorstQuestions(_ context.Context, q WorstQuery) ([]Question, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.worst = append(f.worst, q)
	return f.snap.Dependencies[0].Worst[1:], f.err
}

func (f *fake) HashKey(text string) [16]byte {
	sum := sha256.Sum256([]byte("salt" + text))
	return [16]byte(sum[:16])
}

// The moment of the snapshot.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// stormSums are a minute of a storm: of 1000 arrivals 900 are attributable (800
// verified), of 300 questions, each asked three times.
func stormSums() Sums {
	s := Sums{
		Questions: 300, QuestionsVerified: 270, History: true,
	}
	s.Totals = aggregate.Totals{
		Arrivals: 1000, Verified: 800, Claimed: 100, Originals: 300, Variance: 300, Repeats: 600, Reopened: 20,
		Answers: 700, DeadAnswers: 140, Visible: 950, Success: 500, Good: 450, Refused: 200, Expired: 40,
		UndeliveredAnswer: 60, DuringResponse: 30, BeforeResponse: 100, UnknownPoint: 10,
		RetryAsked: 150, RetryReturned: 90, RetryEarly: 45, StaleArrivals: 12, Overspent: 7, NotDecremented: 5, Increased: 1,
		AfterGone: 200, AfterError: 100, AfterOverload: 250, AfterSuccess: 20, AfterInFlight: 30,
		DeadSeconds: 120.5, BusySeconds: 400.25, RepeatSeconds: 240,
	}
	s.Unattributable.Total = 100
	s.Unattributable.Reasons[1], s.Unattributable.Reasons[4] = 70, 30 // absent, forged
	return s
}

func part(name string, arrivals, originals, repeats uint64, seconds float64) Part {
	return Part{name, Sums{Totals: aggregate.Totals{Arrivals: arrivals, Verified: originals + repeats, Originals: originals, Repeats: repeats, RepeatSeconds: seconds}}}
}

func stormSnapshot() *Snapshot {
	w := func(length time.Duration) Window {
		return Window{Length: length, From: noon.Add(-length), To: noon, Total: stormSums(),
			Routes:      []Part{part("GET /seats/{id}", 700, 200, 500, 200), part("POST /orders", 200, 100, 100, 40)},
			Originators: []Part{part("web", 900, 300, 600, 240), {Name: "", Sums: Sums{Totals: aggregate.Totals{Arrivals: 100}}}},
			Peers:       []Part{part("bff", 500, 50, 450, 10), part("batch", 400, 250, 150, 230)},
		}
	}
	attempts, none, share := 2, 0, 0.2
	policy := budget.Policy{
		Chosen: 1.2, Deadline: 20 * time.Second, CapacityPerSecond: 200, OfferedPerSecond: 100, Queue: 100, DrainPerSecond: 50, Service: 20 * time.Millisecond,
		Layers: []budget.Layer{
			{Name: "sdk", Budget: &share, Timeout: 2 * time.Second, Backoff: time.Second / 2, HonoursRetryAfter: true},
			{Name: "gateway", Attempts: &attempts}, {Name: "mesh", Retries: &none},
		},
	}
	return &Snapshot{
		At: noon, State: Ready, Reload: Reload{At: noon.Add(-time.Hour)}, Build: Build{"1.2.3", "abcdef", "go1.26"},
		Granted: []Grant{
			{"", budget.DefaultModel(budget.Ratio{Ratio: 0.2, FloorPerSecond: 5, Clients: 1})},
			{"POST /orders", budget.Model{Grant: budget.Ratio{Ratio: 0.1, FloorPerSecond: 0.1, Clients: 2}, Window: 10}},
			{"GET /a", budget.Model{Grant: budget.DefaultConcurrency(), Window: 10}},
			{"GET /b", budget.Model{Grant: budget.DefaultRate(), Window: 10}},
			{"GET /c", budget.Model{Grant: budget.AWSTokens(), Window: 10}},
		},
		Policy:        policy.Plan(),
		LiveQuestions: 4321,
		Part:          true,
		Fleet: &Fleet{
			Members: 2, Scopes: 3, Missing: []string{"kafka access/3"}, Telling: true,
			Dependencies: []FleetDependency{
				{Name: "inventory", Budgets: []Budget{{Model: "ratio", From: noon.Add(-10 * time.Second), To: noon, Allowance: aggregate.Number(130), Spent: aggregate.Number(910), Consumed: aggregate.Number(7), ConsumedHigh: aggregate.Number(8), State: budget.Exhausted}}},
				{Name: "elsewhere", Budgets: []Budget{{Model: "ratio"}}},
			},
		},
		Dependencies: []Dependency{{
			Name: "inventory", CompleteUntil: noon.Add(-time.Minute), ReadShare: aggregate.Share(99, 100), SampleBits: 1,
			Windows: []Window{w(10 * time.Second), w(time.Minute), w(5 * time.Minute)},
			ClosedWindows: []Window{
				{Length: 10 * time.Second, From: noon.Add(-70 * time.Second), To: noon.Add(-time.Minute), Total: stormSums()},
				{Length: time.Minute, From: noon.Add(-2 * time.Minute), To: noon.Add(-time.Minute), Total: stormSums()},
				{Length: 5 * time.Minute, From: noon.Add(-6 * time.Minute), To: noon.Add(-time.Minute), Total: stormSums()},
			},
			Verdict: budget.Verdict{Kind: budget.Storm, LoadFactor: 3, Usual: 1.25, Storm: 2.4, Demand: math.NaN(), ReAsk: true},
			Budgets: []Budget{
				{Model: "ratio", From: noon.Add(-10 * time.Second), To: noon, Allowance: aggregate.Number(60), Spent: aggregate.Number(600),
					Consumed: aggregate.Number(10), ConsumedHigh: aggregate.Number(11.5), State: budget.Exhausted, PeakConsumed: aggregate.Number(12), ExhaustedAt: noon.Add(-time.Minute)},
				{Route: "POST /orders", Model: "ratio", From: noon.Add(-10 * time.Second), To: noon, ExhaustsIn: aggregate.Number(30)},
			},
			Worst: []Question{
				{KeyHash: [16]byte{1}, Dependency: "inventory", Route: "GET /seats/{id}", Originator: "web", Peers: []string{"bff"}, First: noon.Add(-time.Minute), Last: noon, Arrivals: 27, Live: true},
				{KeyHash: [16]byte{2}, Dependency: "inventory", Route: "POST /orders", Originator: "web", Peers: []string{"batch"}, First: noon.Add(-time.Hour), Last: noon.Add(-time.Hour), Arrivals: 9},
			},
			Closed: Counters{
				Total: stormSums(), Routes: []Part{{"GET /seats/{id}", stormSums()}},
				PerQuestion: Distribution{[]Bucket{{1, 100}, {3, 180}, {27, 15}, {64, 5}}, 300, 1300},
			},
		}},
		Sources: []Source{{
			Name: "access-logs", Kind: "kafka", State: "reading", Dependency: "inventory", Counted: 1000, Ignored: 20, Duplicates: 3, Undecidable: 2,
			Quarantined: map[string]uint64{"syntax": 4, "no_time": 1}, Late: 6, GapRecords: 11,
			Partitions: []Partition{
				{Name: "0", State: "reading", Next: 100, Committed: 60, Lag: 5, LagSeconds: aggregate.Number(1.5), Watermark: noon.Add(-2 * time.Second), Gaps: []Gap{{10, 21}}},
				{Name: "1", State: "idle", Next: 7, Committed: 7, Lag: -1, Watermark: noon.Add(-time.Second)},
			},
		}, {
			Name: "127.0.0.1:5514", Kind: "syslog", State: "idle", Together: true, Duplicates: 77, Undecidable: 77, Late: 77, GapRecords: 170, GapInBytes: true, Intake: &Intake{Kept: 500, Refused: 5, Dropped: 3, Truncated: 2, Waits: 1, Connections: 4},
		}},
		Together:  Together{Duplicates: 8, Undecidable: 9, Late: 10},
		Evaluated: true,
		Alerts: []alerts.Alert{
			{Name: alerts.RetryBudgetExhausted, Labels: map[string]string{"dependency": "inventory", "model": "ratio", "severity": "critical"}, State: alerts.Firing, Told: true,
				Value: 10, Summary: "inventory: the retry budget is spent (1000 %)", Description: "More repeats arrive than are allowed.",
				Since: noon.Add(-time.Minute), Fired: noon.Add(-time.Minute)},
			{Name: alerts.RetryBudgetLow, Labels: map[string]string{"dependency": "inventory", "model": "ratio", "severity": "warning"}, State: alerts.Firing, Inhibited: true,
				Value: 10, Summary: "inventory: 1000 % of the retry budget is spent", Since: noon.Add(-time.Minute), Fired: noon.Add(-59 * time.Second)},
			{Name: alerts.DeadAnswers, Labels: map[string]string{"dependency": "orders", "severity": "critical"}, State: alerts.Resolved, Told: true,
				Value: math.Inf(1), Since: noon.Add(-time.Hour), Fired: noon.Add(-time.Hour), Ended: noon.Add(-time.Minute)},
			{Name: alerts.AuditorBlind, Labels: map[string]string{"source": "access-logs", "reason": "lag", "severity": "warning"}, State: alerts.Pending, Value: 40, Since: noon.Add(-time.Second)},
		},
		Past: []alerts.Alert{{
			Name: alerts.DeadAnswers, Labels: map[string]string{"dependency": "orders", "severity": "critical"}, State: alerts.Resolved, Told: true,
			Value: 0.4, Since: noon.Add(-2 * time.Hour), Fired: noon.Add(-2 * time.Hour), Ended: noon.Add(-time.Hour),
		}, {
			Name: alerts.DeadAnswers, Labels: map[string]string{"dependency": "inventory", "severity": "critical"}, State: alerts.Resolved, Told: true,
			Value: 0.4, Since: noon.Add(-3 * time.Hour), Fired: noon.Add(-3 * time.Hour), Ended: noon.Add(-2 * time.Hour),
		}},
		PastFrom:    noon.Add(-24 * time.Hour),
		Notified:    []alerts.Sent{{Sink: "alertmanagers[0]", Taken: 12}, {Sink: "webhooks[0]", Taken: 1, Failed: 3, Dropped: 1, Error: "it answers 404 Not Found"}},
		StoreWrites: Distribution{[]Bucket{{0.005, 10}, {0.1, 2}}, 13, 20.5},
		StoreErrors: map[string]uint64{"full": 7, "other": 0},
	}
}

func stormRange() *Range {
	m := aggregate.Measure{Arrivals: 100, Attributable: 90, Verified: 80, Claimed: 10, Coverage: aggregate.Share(90, 100),
		Originals: 30, Repeats: 60, Questions: 30, LoadFactor: aggregate.Share(90, 30), Amplification: aggregate.Share(90, 30)}
	m.Unattributable.Total, m.Unattributable.Reasons[1] = 10, 10
	m.Responses.DeadShare = aggregate.Share(1, 4)
	m.Responses.RepeatSeconds = aggregate.Number(12.5)
	quiet := aggregate.Measure{}
	return &Range{
		Total: m, CompleteUntil: noon.Add(-time.Minute), LeftOut: 2,
		Series: []Series{{Dependency: "inventory", Name: "bff", Points: []Point{{noon.Add(-10 * time.Minute), m, false}, {noon.Add(-time.Minute), quiet, true}}}},
	}
}

func newFake() *fake {
	f := &fake{snap: stormSnapshot(), answer: stormRange(), questions: map[[16]byte][]Question{}}
	f.questions[f.HashKey("qk1.web.a.secret/1")] = f.snap.Dependencies[0].Worst[:1]
	return f
}

func newServer(t testing.TB, r Reader, o Options) *Server {
	t.Helper()
	s, err := New(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask asks a handler without a network.
func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return serve(h, r)
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// object decodes a JSON object.
func object(t testing.TB, body io.Reader) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.NewDecoder(body).Decode(&v); err != nil {
		t.Fatalf("no JSON object: %v", err)
	}
	return v
}
