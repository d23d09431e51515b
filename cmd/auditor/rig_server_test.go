package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"
)

// The rig is scenario work-for-nobody on real sockets, at half its size and a quarter of
// its speed, so that a stall of the machine is small beside every time in it: ten slots
// of 80 ms, a queue of 50, callers who wait 400 ms. Time passes in timers: what a request
// costs the processor is little beside that.
const (
	rigSlots   = 10
	rigQueue   = 50
	rigService = 80 * time.Millisecond
	rigTimeout = 400 * time.Millisecond
	rigLasts   = 12 * time.Second
	rigParts   = 4 // in each of which the machine is watched
	rigLate    = rigTimeout / 4
)

// rigStretch is a time that begins and ends with a whole second and has no second in
// common with another, and what the server did in it, by its own count.
type rigStretch struct {
	from, to time.Time

	// Of the server, under its lock.
	arrived, refused, gone int
	questions              map[string]bool
	slots                  [rigParts]rigWork

	// Of its callers.
	asked, sent int
	late        int           // those of asked that were more than rigLate behind their time
	behind      time.Duration // how late the latest of them was
}

// rigWork is what the slots served, and how long they were held for it: from one request
// to the next, while any waits.
type rigWork struct {
	served int
	held   time.Duration
}

// ceiling is how many a second the slots could serve if they were never idle.
func (w rigWork) ceiling() float64 {
	return rigSlots * float64(w.served) / w.held.Seconds()
}

// part is which part of the time in which is asked a moment lies in.
func (s *rigStretch) part(at time.Time) int {
	return min(max(int(at.Sub(s.from)*rigParts/rigLasts), 0), rigParts-1)
}

// work is that of the whole stretch.
func (s *rigStretch) work() (all rigWork) {
	for _, w := range s.slots {
		all.served += w.served
		all.held += w.held
	}
	return all
}

// rigServer answers when a slot has worked on a request, whether its caller is still
// there or not, and logs what became of it.
type rigServer struct {
	slots chan time.Time // those that are free, and since when

	mu      sync.Mutex
	now     *rigStretch
	inside  int
	waiting int
	log     io.Writer
	lines   int
}

func (s *rigServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	s.mu.Lock()
	s.inside++
	counts := s.now // it began in this one, whenever it ends
	s.mu.Unlock()
	status := http.StatusOK
	since, admitted := s.admit(begun)
	var held time.Duration
	if admitted {
		time.Sleep(rigService)
		free := time.Now()
		held = free.Sub(since)
		s.slots <- free
	} else {
		status = http.StatusServiceUnavailable
	}
	gone := r.Context().Err() != nil
	key := r.Header.Get("Question-Key")
	line := map[string]any{
		"time": begun.UTC().Format("2006-01-02T15:04:05.000000Z"), "time_is": "start", "duration_ms": float64(time.Since(begun).Microseconds()) / 1000,
		"method": r.Method, "path": r.URL.Path, "status": status, "bytes_sent": 2, "question_key": key, "client_gone": gone,
	}
	if gone {
		line["bytes_sent"], line["departure"] = 0, "undelivered_answer"
	} else {
		w.WriteHeader(status)
		io.WriteString(w, "ok")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside--
	s.lines++
	line["arrival_id"] = fmt.Sprint(s.lines)
	json.NewEncoder(s.log).Encode(line)
	counts.arrived++
	counts.questions[key] = true
	if admitted {
		w := &counts.slots[counts.part(begun)]
		w.served++
		w.held += held
	} else {
		counts.refused++
	}
	if gone {
		counts.gone++
	}
}

// admit waits for a slot, if there is room to wait, and says since when it is held: who
// waited for it has it from the moment when it was free.
func (s *rigServer) admit(asked time.Time) (since time.Time, admitted bool) {
	select {
	case <-s.slots:
		return asked, true
	default:
	}
	s.mu.Lock()
	if s.waiting == rigQueue {
		s.mu.Unlock()
		return asked, false
	}
	s.waiting++
	s.mu.Unlock()
	free := <-s.slots // in order of arrival
	s.mu.Lock()
	s.waiting--
	s.mu.Unlock()
	if free.After(asked) {
		return free, true
	}
	return asked, true
}

// rig is a server on loopback and its callers.
type rig struct {
	*rigServer
	server *httptest.Server
	client *http.Client
}

// newRig starts a server that writes a log, until the test is over.
func newRig(t *testing.T, log string) *rig {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{rigServer: &rigServer{slots: make(chan time.Time, rigSlots), now: newStretch(), log: out}}
	for range rigSlots {
		g.slots <- time.Now()
	}
	g.server = httptest.NewServer(g.rigServer)
	dialer := &net.Dialer{}
	g.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0) // who leaves leaves no port behind
		}
		return c, err
	}}}
	t.Cleanup(func() {
		g.client.CloseIdleConnections()
		g.server.Close() // waits for what is still worked on
		out.Close()
	})
	return g
}

func newStretch() *rigStretch { return &rigStretch{questions: map[string]bool{}} }

// during asks in a stretch of its own, which is over when nothing is worked on any more.
func (g *rig) during(t *testing.T, ask func(*rigStretch)) *rigStretch {
	t.Helper()
	s := newStretch()
	s.from = nextSecond()
	g.mu.Lock()
	g.now = s
	g.mu.Unlock()
	ask(s)
	until(t, "the rig has worked off what it was asked", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.inside == 0
	})
	s.to = nextSecond()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = newStretch()
	return s
}

// nextSecond waits for a second of the wall's clock to begin.
func nextSecond() time.Time {
	next := time.Now().Truncate(time.Second).Add(time.Second)
	for time.Now().Before(next) {
		time.Sleep(time.Until(next))
	}
	return next
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

// saturate keeps every slot busy and never the queue full.
func (g *rig) saturate(s *rigStretch) {
	end := s.from.Add(3 * time.Second)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i := range 2 * rigSlots {
		asking.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				g.attempt(fmt.Sprintf("%v-ceiling-%d-%d", s.from.Unix(), i, n), 0)
				mu.Lock()
				s.asked++
				s.sent++
				mu.Unlock()
			}
		})
	}
	asking.Wait()
}

// offer asks at a rate, evenly spaced.
func (g *rig) offer(s *rigStretch, rate float64, attempts int) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for ; ; s.asked++ {
		at := s.from.Add(time.Duration(float64(s.asked) / rate * 1e9))
		if at.Sub(s.from) >= rigLasts {
			break
		}
		time.Sleep(time.Until(at))
		behind := time.Since(at)
		if s.behind = max(s.behind, behind); behind > rigLate {
			s.late++
		}
		key := fmt.Sprintf("%v-question-%d", s.from.Unix(), s.asked)
		asking.Go(func() {
			for n := range attempts {
				mu.Lock()
				s.sent++
				mu.Unlock()
				if g.attempt(key, rigTimeout) || n+1 == attempts {
					return
				}
			}
		})
	}
	asking.Wait()
}
