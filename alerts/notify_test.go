package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asked is a request as a server got it.
type asked struct {
	at     time.Time
	to     string
	header http.Header
	body   string
}

// world answers every request, in virtual time.
type world struct {
	mu     sync.Mutex
	asked  []asked
	answer func(r *http.Request) (status int, header http.Header, err error) // nil: 200
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.asked = append(w.asked, asked{time.Now(), r.URL.String(), r.Header, string(body)})
	answer := w.answer
	w.mu.Unlock()
	status, header := 200, http.Header(nil)
	if answer != nil {
		if status, header, err = answer(r); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: r}, nil
}

func (w *world) got() []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// inWorld runs a notifier in virtual time.
func inWorld(t *testing.T, sinks Sinks, f func(n *Notifier, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := new(world)
		n := NewNotifier(slog.New(slog.DiscardHandler))
		n.client.Transport = w
		n.Configure(sinks)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); n.Run(ctx) }()
		synctest.Wait()
		f(n, w)
		cancel()
		<-ended
	})
}

func firing(at time.Time) Alert {
	return Alert{
		Name: RetryBudgetLow, Labels: map[string]string{"dependency": "seats", "severity": warning}, State: Firing, Told: true,
		Summary: "seats: much is spent", Description: "Why.", Since: at, Fired: at,
	}
}

func resolved(a Alert, at time.Time) Alert {
	a.State, a.Ended = Resolved, at
	return a
}

func endpoint(u string) Endpoint { return Endpoint{URL: u, Shown: "shown"} }

// A sink that never answers, one that is dead and one whose log is stuck hold up
// neither whoever tells them nor each other.
func TestDeadSinksHoldUpNobody(t *testing.T) {
	stuck := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	defer hangs.Close()
	defer close(stuck)
	dead := httptest.NewServer(nil)
	dead.Close()
	heard := map[string]chan struct{}{"/api/v2/alerts": make(chan struct{}, 1), "/hook": make(chan struct{}, 1)}
	alive := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case heard[r.URL.Path] <- struct{}{}:
		default: // it was heard before, and is not asked for again
		}
	}))
	defer alive.Close()

	n := NewNotifier(slog.New(slog.NewTextHandler(stuckWriter(stuck), nil)))
	sinks := Sinks{}
	for _, s := range []*httptest.Server{hangs, dead, alive} {
		sinks.Alertmanagers = append(sinks.Alertmanagers, endpoint(s.URL))
		sinks.Webhooks = append(sinks.Webhooks, Webhook{Endpoint: endpoint(s.URL + "/hook")})
	}
	n.Configure(sinks)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); n.Run(ctx) }()
	a := firing(time.Now())
	begun := time.Now()
	for range 3000 { // more than wait for anybody
		n.Tell([]Alert{a}, []Alert{a})
	}
	if took := time.Since(begun); took >= sendTimeout { // as one that waits for a sink takes
		t.Errorf("telling took %v", took)
	}
	for path, was := range heard {
		select {
		case <-was:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s is not heard", path)
		}
	}
	if dropped := n.Sent()[0].Dropped; dropped < 1000 {
		t.Errorf("of the log %d were dropped", dropped)
	}
	stuck <- struct{}{} // the log goes on, or the notifier could not end
	cancel()
	logged := make(chan struct{})
	go func() { // whatever else is logged meanwhile
		defer close(logged)
		for {
			select {
			case stuck <- struct{}{}:
			case <-ended:
				return
			}
		}
	}()
	<-ended
	<-logged
}

// stuckWriter takes a line whenever somebody lets it.
type stuckWriter chan struct{}

func (s stuckWriter) Write(b []byte) (int, error) { <-s; return len(b), nil }

// Nothing of a URL but what may be shown is in a log, an error or a count, whatever
// goes wrong.
func TestSecretsStayHidden(t *testing.T) {
	var log strings.Builder
	var mu sync.Mutex
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/hunter2")
		w.WriteHeader(http.StatusFound)
	}))
	defer refuses.Close()
	dead := httptest.NewServer(nil)
	dead.Close()
	n := NewNotifier(slog.New(slog.NewTextHandler(locked{&log, &mu}, &slog.HandlerOptions{Level: slog.LevelDebug})))
	var sinks Sinks
	for _, s := range []string{refuses.URL, dead.URL, "http://nobody.invalid"} {
		u, err := url.Parse(s + "/hunter2?hunter2#hunter2")
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("me", "hunter2")
		e := Endpoint{URL: u.String(), Shown: "shown"}
		sinks.Alertmanagers, sinks.Webhooks = append(sinks.Alertmanagers, e), append(sinks.Webhooks, Webhook{e, "hunter2"})
	}
	n.Configure(sinks)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); n.Run(ctx) }()
	a := firing(time.Now())
	n.Tell([]Alert{a}, []Alert{a})
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if !slices.ContainsFunc(n.Sent()[1:], func(s Sent) bool { return s.Failed == 0 }) {
			break
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("not all have failed: %+v", n.Sent())
		}
	}
	cancel()
	<-ended
	mu.Lock()
	defer mu.Unlock()
	if text := fmt.Sprintf("%s%+v", log.String(), n.Sent()); strings.Contains(text, "hunter2") || !strings.Contains(text, "redirects are not followed") || !strings.Contains(text, "at=shown") {
		t.Error(text)
	}
}

type locked struct {
	to *strings.Builder
	mu *sync.Mutex
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

// A webhook is itself wherever it stands: one that is put before it neither drops what
// waits nor takes its counts; and who came after an alert fired does not hear that it is
// over, unless it is told again.
func TestConfigureKeepsWhoStays(t *testing.T) {
	first, second := Webhook{Endpoint: endpoint("http://first/")}, Webhook{Endpoint: endpoint("http://second/")}
	inWorld(t, Sinks{Webhooks: []Webhook{first, first}}, func(n *Notifier, w *world) {
		w.answer = func(*http.Request) (int, http.Header, error) { return 500, nil, nil }
		begun := time.Now()
		a := firing(begun)
		n.Tell([]Alert{a}, []Alert{a})
		synctest.Wait()
		n.Configure(Sinks{Webhooks: []Webhook{second, first, first}})
		synctest.Wait()
		for i, want := range []Sent{{Sink: "webhooks[0]"}, {Sink: "webhooks[1]", Failed: 1, Error: "it answers 500 Internal Server Error"}, {Sink: "webhooks[2]", Failed: 1, Error: "it answers 500 Internal Server Error"}} {
			if s := n.Sent()[i+1]; s != want {
				t.Errorf("%+v, want %+v", s, want)
			}
		}
		w.mu.Lock()
		w.answer, w.asked = nil, nil
		w.mu.Unlock()
		time.Sleep(time.Minute)
		over := resolved(a, time.Now())
		n.Tell([]Alert{over}, []Alert{over})
		time.Sleep(time.Minute)
		again := firing(time.Now())
		n.Tell([]Alert{again}, []Alert{again})
		over = resolved(again, time.Now())
		n.Tell([]Alert{over}, []Alert{over})
		time.Sleep(time.Minute)
		heard := map[string][]State{}
		for _, x := range w.got() {
			var notice Notice
			if err := json.Unmarshal([]byte(x.body), &notice); err != nil {
				t.Fatal(err)
			}
			heard[x.to] = append(heard[x.to], notice.Status)
		}
		if got := heard["http://second/"]; !slices.Equal(got, []State{Firing, Resolved}) {
			t.Errorf("the second heard %v", got)
		}
		if got := heard["http://first/"]; len(got) != 8 {
			t.Errorf("the first, twice, heard %v", got)
		}
		if s := n.Sent()[2]; s.Taken != 4 || s.Dropped != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Another configuration tells others; a sink that stays goes on with what it has to
// tell, and its counts never fall.
func TestConfigure(t *testing.T) {
	first, second := Webhook{Endpoint: endpoint("http://first/")}, Webhook{Endpoint: endpoint("http://second/")}
	inWorld(t, Sinks{Webhooks: []Webhook{first, second}}, func(n *Notifier, w *world) {
		w.answer = func(*http.Request) (int, http.Header, error) { return 500, nil, nil }
		a := firing(time.Now())
		n.Tell([]Alert{a}, []Alert{a})
		synctest.Wait()
		n.Configure(Sinks{Webhooks: []Webhook{first}, Alertmanagers: []Endpoint{endpoint("http://am")}})
		synctest.Wait()
		w.mu.Lock()
		w.answer, w.asked = nil, nil
		w.mu.Unlock()
		time.Sleep(20 * time.Second)
		var hosts []string
		for _, x := range w.got() {
			u, err := url.Parse(x.to)
			if err != nil {
				t.Fatal(err)
			}
			hosts = append(hosts, u.Host)
		}
		slices.Sort(hosts)
		// The Alertmanager hears what fires though that is no news.
		if !slices.Equal(hosts, []string{"am", "first"}) {
			t.Errorf("told: %v", hosts)
		}
		counted := map[string]Sent{}
		for _, s := range n.Sent() {
			counted[s.Sink] = s
		}
		if s, is := counted["webhooks[1]"]; is {
			t.Errorf("it is there no more: %+v", s)
		}
		if s := counted["webhooks[0]"]; s.Failed != 1 || s.Taken != 1 {
			t.Errorf("%+v", s)
		}
		n.Configure(Sinks{Webhooks: []Webhook{first, second}})
		if s := n.Sent()[2]; s.Sink != "webhooks[1]" || s.Failed != 1 || s.Dropped != 1 {
			t.Errorf("back again: %+v", s)
		}
	})
}
