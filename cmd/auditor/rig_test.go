package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/targetside/auditor/lab"
)

// The rig is scenario work-for-nobody on real sockets, at half its size and half its
// speed, so that a stall of the machine is small beside every time in it: ten slots of
// 40 ms, a queue of 50, callers who wait 200 ms. Time passes in timers: what a request
// costs the processor is little beside that.
const (
	rigSlots   = 10
	rigQueue   = 50
	rigService = 40 * time.Millisecond
	rigTimeout = 200 * time.Millisecond
	rigLasts   = 6 * time.Second
)

// rigServer answers when a slot has worked on a request, whether its caller is still
// there or not, and logs what became of it.
type rigServer struct {
	slots chan struct{}

	mu      sync.Mutex
	waiting int
	log     io.Writer
	arrived int
}

func (s *rigServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	status := http.StatusOK
	if s.admit() {
		time.Sleep(rigService)
		<-s.slots
	} else {
		status = http.StatusServiceUnavailable
	}
	gone := r.Context().Err() != nil
	line := map[string]any{
		"time": begun.UTC().Format("2006-01-02T15:04:05.000000Z"), "time_is": "start", "duration_ms": float64(time.Since(begun).Microseconds()) / 1000,
		"method": r.Method, "path": r.URL.Path, "status": status, "bytes_sent": 2, "question_key": r.Header.Get("Question-Key"), "client_gone": gone,
	}
	if gone {
		line["bytes_sent"], line["departure"] = 0, "undelivered_answer"
	} else {
		w.WriteHeader(status)
		io.WriteString(w, "ok")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived++
	line["arrival_id"] = fmt.Sprint(s.arrived)
	json.NewEncoder(s.log).Encode(line)
}

// admit waits for a slot, if there is room to wait.
func (s *rigServer) admit() bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
	}
	s.mu.Lock()
	if s.waiting == rigQueue {
		s.mu.Unlock()
		return false
	}
	s.waiting++
	s.mu.Unlock()
	s.slots <- struct{}{} // in order of arrival
	s.mu.Lock()
	s.waiting--
	s.mu.Unlock()
	return true
}

// rig is a server on loopback and its callers.
type rig struct {
	*rigServer
	server *httptest.Server
	client *http.Client
	out    *os.File
}

func newRig(t *testing.T, log string) *rig {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{rigServer: &rigServer{slots: make(chan struct{}, rigSlots), log: out}, out: out}
	g.server = httptest.NewServer(g.rigServer)
	dialer := &net.Dialer{}
	g.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0) // who leaves leaves no port behind
		}
		return c, err
	}}}
	return g
}

// close waits for what is still worked on.
func (g *rig) close() {
	g.client.CloseIdleConnections()
	g.server.Close()
	g.out.Close()
}

// attempt is one request; a timeout of 0 waits for ever.
func (g *rig) attempt(key string, timeout time.Duration) bool {
	ctx := context.Background()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.server.URL+"/things/1", nil)
	if err != nil {
		return false
	}
	req.Header.Set("Question-Key", key)
	res, err := g.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil && res.StatusCode == http.StatusOK
}

// ceiling is how many a second are answered when there is always one to work on, and
// never a full queue.
func (g *rig) ceiling() float64 {
	const lasts = 2 * time.Second
	end := time.Now().Add(lasts)
	var done int
	var mu sync.Mutex
	var asking sync.WaitGroup
	begun := time.Now()
	for i := range 2 * rigSlots {
		asking.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				if g.attempt(fmt.Sprint(i, "-", n), 0) {
					mu.Lock()
					done++
					mu.Unlock()
				}
			}
		})
	}
	asking.Wait()
	return float64(done) / time.Since(begun).Seconds()
}

// offer asks at a rate, evenly spaced, and returns how many questions that were and
// how many requests were sent.
func (g *rig) offer(rate float64, attempts int) (questions, sent int) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	begun := time.Now()
	for ; ; questions++ {
		at := begun.Add(time.Duration(float64(questions) / rate * 1e9))
		if at.Sub(begun) >= rigLasts {
			break
		}
		time.Sleep(time.Until(at))
		key := fmt.Sprint("question-", questions)
		asking.Go(func() {
			for n := range attempts {
				mu.Lock()
				sent++
				mu.Unlock()
				if g.attempt(key, rigTimeout) || n+1 == attempts {
					return
				}
			}
		})
	}
	asking.Wait()
	return questions, sent
}

// rigShares are what is compared: they do not depend on how fast the machine is.
type rigShares struct{ dead, perQuestion float64 }

// modelled plays the same in the model, whose service is such that it has the ceiling
// that was measured.
func modelled(t *testing.T, ceiling, rate float64, attempts int) rigShares {
	t.Helper()
	f, err := lab.Parse("rig.yaml", fmt.Appendf(nil, `
name: rig
lasts: %v
drain: 2s
network: 100us
clients: {callers: {route: things, rate: %f}}
layers: {client: {attempts: %d, timeout: %v}}
targets: {store: {slots: %d, queue: %d, service: %dns}}
routes: {things: {path: /things/, through: [client], target: store}}
`, rigLasts, rate, attempts, rigTimeout, rigSlots, rigQueue, int(rigSlots/ceiling*1e9)))
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Arm("")
	if err != nil {
		t.Fatal(err)
	}
	truth, err := lab.Run(t.Context(), &a, lab.Output{})
	if err != nil {
		t.Fatal(err)
	}
	return rigShares{float64(truth.Total.Dead()) / float64(truth.Total.Responses.Answers), truth.PerQuestion()}
}

// rigged is what an arm of the rig shows in its log, and what its callers know.
func rigged(t *testing.T, rate float64, attempts int) rigShares {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	g := newRig(t, log)
	questions, sent := g.offer(rate, attempts)
	g.close()
	config := writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf("dependency: store\nsources: [{file: {paths: [%q]}, format: json}]\nkeys: {accept: [{field: question_key}]}\n", log))
	report, err := auditLab(t.Context(), labProgram(), config)
	if err != nil {
		t.Fatal(err)
	}
	m := &report.Total
	// A request whose caller left before it was connected has not arrived.
	if int(m.Originals) > questions || int(m.Arrivals) > sent || float64(m.Arrivals) < 0.98*float64(sent) {
		t.Errorf("the audit knows %d arrivals of %d questions; %d were sent of %d", m.Arrivals, m.Originals, sent, questions)
	}
	per, _ := m.Amplification.Value()
	dead, _ := m.Responses.DeadShare.Value()
	return rigShares{dead, per}
}

// TestRig holds the model against real sockets: first the rig's own ceiling c is
// measured, then 0.8 c, 1.2 c and 1.5 c are offered, and the shares that the audit of
// its log gives are within a tenth of the model's. A machine that stalls is given
// another chance, twice, and every measurement is printed. AUDITOR_RIG runs it, for it
// wants the machine for itself: make test-rig.
func TestRig(t *testing.T) {
	if os.Getenv("AUDITOR_RIG") == "" {
		t.Skip("AUDITOR_RIG is not set: see make test-rig")
	}
	for try := 1; ; try++ {
		wrong := measureRig(t)
		if len(wrong) == 0 {
			return
		}
		for _, w := range wrong {
			t.Logf("try %d: %s", try, w)
		}
		if try == 3 {
			t.Fatal("three measurements are not what the model says")
		}
	}
}

func measureRig(t *testing.T) (wrong []string) {
	t.Helper()
	g := newRig(t, filepath.Join(t.TempDir(), "ceiling.log"))
	c := g.ceiling()
	g.close()
	t.Logf("ceiling %.0f/s, where slots and service alone make %.0f/s", c, rigSlots/rigService.Seconds())
	for _, arm := range []struct {
		load     float64
		attempts int
	}{{0.8, 3}, {1.2, 1}, {1.2, 3}, {1.5, 3}} {
		real, model := rigged(t, arm.load*c, arm.attempts), modelled(t, c, arm.load*c, arm.attempts)
		t.Logf("%.1f c, %d attempts: %.1f %% for nobody (model %.1f %%), %.2f arrivals per question (model %.2f)", arm.load, arm.attempts, 100*real.dead, 100*model.dead, real.perQuestion, model.perQuestion)
		if !near(real.dead, model.dead) || !near(real.perQuestion, model.perQuestion) {
			wrong = append(wrong, fmt.Sprintf("at %.1f c with %d attempts the audit says %+v, and the model %+v", arm.load, arm.attempts, real, model))
		}
	}
	return wrong
}

// near is within a tenth; of nothing, within two of a hundred.
func near(real, model float64) bool {
	return math.Abs(real-model) <= max(0.1*model, 0.02)
}
