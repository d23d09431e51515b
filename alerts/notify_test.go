package alerts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
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

type postedAlert struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
}

func decode(t *testing.T, body string) (out []postedAlert) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// An Alertmanager is told at once, and again before what it was told last is over, for
// as long as it fires; then that it is over.
func TestAlertmanagerIsToldAgain(t *testing.T) {
	inWorld(t, Sinks{Alertmanagers: []Endpoint{endpoint("http://am:9093/base/")}}, func(n *Notifier, w *world) {
		begun := time.Now()
		a := firing(begun)
		n.Tell([]Alert{a}, []Alert{a})
		synctest.Wait()
		if got := w.got(); len(got) != 1 || got[0].to != "http://am:9093/base/api/v2/alerts" || got[0].header.Get("Content-Type") != "application/json" {
			t.Fatalf("%+v", got)
		}
		for range 600 { // ten minutes
			time.Sleep(time.Second)
			n.Tell([]Alert{a}, nil)
		}
		synctest.Wait()
		got := w.got()
		if len(got) < 20 || len(got) > 22 {
			t.Errorf("told %d times in ten minutes", len(got))
		}
		for i, x := range got {
			list := decode(t, x.body)
			want := map[string]string{"alertname": RetryBudgetLow, "dependency": "seats", "severity": warning}
			if len(list) != 1 || !reflect.DeepEqual(list[0].Labels, want) || !list[0].StartsAt.Equal(begun) || list[0].Annotations["runbook_url"] != runbooks+"RetryBudgetLow.md" {
				t.Fatalf("%+v", list)
			}
			ends := list[0].EndsAt
			if i+1 < len(got) && !ends.After(got[i+1].at.Add(time.Minute)) || ends.Sub(x.at) >= 5*time.Minute {
				t.Errorf("told at %v that it ends at %v", x.at, ends)
			}
		}
		over := time.Now()
		a = resolved(a, over)
		n.Tell([]Alert{a}, []Alert{a})
		synctest.Wait()
		got = w.got()
		if list := decode(t, got[len(got)-1].body); !list[0].EndsAt.Equal(over) {
			t.Errorf("%+v", list)
		}
		// And when it is forgotten nothing more is said.
		n.Tell(nil, nil)
		synctest.Wait()
		before := len(w.got())
		time.Sleep(time.Hour)
		if after := len(w.got()); after != before {
			t.Errorf("told %d times of nothing", after-before)
		}
	})
}

// What an Alertmanager is told never begins after it ends or after now, whatever log
// time says.
func TestPostedTimesAreInOrder(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	ahead := firing(now.Add(5 * time.Second))
	for _, a := range []Alert{ahead, resolved(ahead, now), resolved(firing(now.Add(2*time.Second)), now.Add(time.Second))} {
		x := decode(t, string(posted([]Alert{a}, now.Add(time.Second))))[0]
		if x.StartsAt.After(now.Add(time.Second)) || x.EndsAt.Before(x.StartsAt) {
			t.Errorf("%+v", x)
		}
	}
}

// A peer that is away is asked no more often than one that is there, and hears all when
// it is back.
func TestAlertmanagerThatIsAway(t *testing.T) {
	inWorld(t, Sinks{Alertmanagers: []Endpoint{endpoint("http://away"), endpoint("http://there")}}, func(n *Notifier, w *world) {
		w.answer = func(r *http.Request) (int, http.Header, error) {
			if r.URL.Host == "away" {
				return 0, nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return 200, nil, nil
		}
		a := firing(time.Now())
		b := a
		b.Name = DeadAnswers
		n.Tell([]Alert{a}, []Alert{a})
		count := func(host string) (n int) {
			for _, x := range w.got() {
				if strings.Contains(x.to, host) {
					n++
				}
			}
			return n
		}
		for i := range 3600 {
			time.Sleep(time.Second)
			if i%10 == 0 { // much happens meanwhile
				n.Tell([]Alert{a, b}, []Alert{b})
			}
		}
		synctest.Wait()
		if away, there := count("away"), count("there"); away > 3600/15+10 || there < 300 {
			t.Errorf("in an hour the one that is away was asked %d times, the other %d times", away, there)
		}
		sent := n.Sent()
		if sent[1].Sink != "alertmanagers[0]" || sent[1].Failed < 100 || sent[1].Taken > 0 || sent[1].Error != "connection refused" || sent[2].Failed > 0 || sent[2].Error != "" {
			t.Errorf("%+v", sent)
		}
		w.mu.Lock()
		w.answer = nil
		w.mu.Unlock()
		time.Sleep(31 * time.Second)
		var last asked
		for _, x := range w.got() {
			if strings.Contains(x.to, "away") {
				last = x
			}
		}
		if list := decode(t, last.body); len(list) != 2 || n.Sent()[1].Taken == 0 {
			t.Errorf("it hears %v", list)
		}
	})
}

// A peer that was away for as long as an alert stood is told of the next one at once:
// there is nothing any more that it has not heard of.
func TestAlertmanagerThatWasAway(t *testing.T) {
	inWorld(t, Sinks{Alertmanagers: []Endpoint{endpoint("http://am")}}, func(n *Notifier, w *world) {
		w.answer = func(*http.Request) (int, http.Header, error) { return 503, nil, nil }
		n.Tell([]Alert{firing(time.Now())}, []Alert{firing(time.Now())})
		time.Sleep(10 * time.Second)
		n.Tell(nil, nil)
		time.Sleep(tellEvery + time.Second) // the last of its pauses is over
		w.mu.Lock()
		w.answer, w.asked = nil, nil
		w.mu.Unlock()
		next := firing(time.Now())
		n.Tell([]Alert{next}, []Alert{next})
		synctest.Wait()
		if got := w.got(); len(got) != 1 {
			t.Errorf("told %d times", len(got))
		}
	})
}

// A webhook is told once of each change, in order, signed.
func TestWebhook(t *testing.T) {
	inWorld(t, Sinks{Webhooks: []Webhook{{endpoint("http://hook/x"), "a secret of ours"}, {Endpoint: endpoint("http://bare")}}}, func(n *Notifier, w *world) {
		begun := time.Now()
		a := firing(begun)
		over := resolved(a, begun.Add(time.Minute))
		for range 10 {
			n.Tell([]Alert{a}, nil)
		}
		n.Tell([]Alert{a}, []Alert{a})
		n.Tell([]Alert{over}, []Alert{over})
		time.Sleep(time.Hour)
		var notices []Notice
		ids := map[string]bool{}
		for _, x := range w.got() {
			signed := x.header.Get(SignatureHeader)
			if strings.Contains(x.to, "bare") {
				if signed != "" {
					t.Error("signed without a secret")
				}
				continue
			}
			if stamp := x.header.Get(TimestampHeader); signed != Sign([]byte("a secret of ours"), stamp, []byte(x.body)) || stamp != fmt.Sprint(x.at.Unix()) {
				t.Errorf("signed %q at %q", signed, stamp)
			}
			var notice Notice
			if err := json.Unmarshal([]byte(x.body), &notice); err != nil {
				t.Fatal(err)
			}
			if notice.ID != x.header.Get(NoticeHeader) {
				t.Errorf("%q and %q", notice.ID, x.header.Get(NoticeHeader))
			}
			ids[notice.ID] = true
			notices = append(notices, notice)
		}
		if len(notices) != 2 || len(ids) != 2 || notices[0].Status != Firing || notices[0].EndsAt != nil || notices[1].Status != Resolved || !notices[1].EndsAt.Equal(over.Ended) {
			t.Fatalf("%+v", notices)
		}
		want := Notice{
			Schema: WebhookSchema, ID: notices[0].ID, Status: Firing, Labels: map[string]string{"alertname": RetryBudgetLow, "dependency": "seats", "severity": warning},
			Annotations: map[string]string{"summary": a.Summary, "description": a.Description, "runbook_url": a.Runbook()}, StartsAt: notices[0].StartsAt,
		}
		if !reflect.DeepEqual(notices[0], want) {
			t.Errorf("%+v", notices[0])
		}
	})
}

// The vector by which receivers can be written.
func TestSignature(t *testing.T) {
	// printf '1764493200.{}' | openssl dgst -sha256 -hmac 'a secret of ours'
	if got := Sign([]byte("a secret of ours"), "1764493200", []byte("{}")); got != "v1=058f2d3235c64c58905d374d41271a417724df250372ddf420d15d1cb48d8bd0" {
		t.Error(got)
	}
}

// What can pass is tried again, with the same notice; what the receiver has said of
// the request itself is not.
func TestWebhookRetries(t *testing.T) {
	for name, c := range map[string]struct {
		statuses             []int // then 200; 0: no connection
		header               http.Header
		tries                int
		taken, failed, drops uint64
		least                time.Duration // until the last try
	}{
		"taken":              {nil, nil, 1, 1, 0, 0, 0},
		"trouble that ends":  {[]int{500, 0, 502}, nil, 4, 1, 3, 0, 3 * time.Second},
		"too many":           {[]int{429}, http.Header{"Retry-After": {"40"}}, 2, 1, 1, 0, 40 * time.Second},
		"too slow a request": {[]int{408}, nil, 2, 1, 1, 0, 0},
		"not found":          {[]int{404, 404}, nil, 1, 0, 1, 1, 0},
		"not allowed":        {[]int{401, 401}, nil, 1, 0, 1, 1, 0},
		"moved":              {[]int{301, 301}, http.Header{"Location": {"http://elsewhere/"}}, 1, 0, 1, 1, 0},
		"moved for now":      {[]int{307, 307}, http.Header{"Location": {"http://elsewhere/"}}, 1, 0, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Sinks{Webhooks: []Webhook{{Endpoint: endpoint("http://hook/")}}}, func(n *Notifier, w *world) {
				i := 0
				w.answer = func(*http.Request) (int, http.Header, error) {
					if i++; i > len(c.statuses) {
						return 204, nil, nil
					}
					if c.statuses[i-1] == 0 {
						return 0, nil, errors.New("connection reset")
					}
					return c.statuses[i-1], c.header, nil
				}
				begun := time.Now()
				a := firing(begun)
				n.Tell([]Alert{a}, []Alert{a})
				time.Sleep(time.Hour)
				got := w.got()
				s := n.Sent()[1]
				if len(got) != c.tries || s.Taken != c.taken || s.Failed != c.failed || s.Dropped != c.drops {
					t.Fatalf("%d tries, %+v", len(got), s)
				}
				for _, x := range got {
					if x.to != "http://hook/" || x.body != got[0].body || x.header.Get(NoticeHeader) != got[0].header.Get(NoticeHeader) {
						t.Errorf("%+v", x)
					}
				}
				if took := got[len(got)-1].at.Sub(begun); took < c.least/2 || c.header != nil && took < c.least {
					t.Errorf("the last try was after %v", took)
				}
			})
		})
	}
}

// A receiver that is away is not stormed, however much there is to tell, and nothing is
// told when it is too old to be of use.
func TestWebhooksKeepABudget(t *testing.T) {
	inWorld(t, Sinks{Webhooks: []Webhook{{Endpoint: endpoint("http://hook/")}}}, func(n *Notifier, w *world) {
		w.answer = func(*http.Request) (int, http.Header, error) { return 503, nil, nil }
		begun := time.Now()
		for i := range 60 {
			a := firing(begun)
			a.Labels = map[string]string{"dependency": fmt.Sprint(i)}
			n.Tell([]Alert{a}, []Alert{a})
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Hour)
		tries, seen := w.got(), map[string]bool{}
		for _, x := range tries {
			seen[x.header.Get(NoticeHeader)] = true
		}
		// In two hours: ten at once and one a minute, beside the first of each.
		if retries := len(tries) - len(seen); retries > 10+120 {
			t.Errorf("%d retries", retries)
		}
		if s := n.Sent()[1]; s.Dropped != 60 || s.Taken != 0 {
			t.Errorf("%+v", s)
		}
		w.mu.Lock()
		w.answer = nil
		w.mu.Unlock()
		a := firing(time.Now())
		n.Tell([]Alert{a}, []Alert{a})
		time.Sleep(time.Minute)
		if s := n.Sent()[1]; s.Taken != 1 || s.Error != "" {
			t.Errorf("back, it hears nothing: %+v", s)
		}
	})
}

func TestAllowance(t *testing.T) {
	now := time.Now()
	a := newAllowance(now)
	take := func() (n int) {
		for n < 100 && a.take(now) == 0 {
			n++
		}
		return n
	}
	if n := take(); n != 10 {
		t.Errorf("%d at once", n)
	}
	if wait := a.take(now); wait.Round(time.Second) != time.Minute {
		t.Errorf("then a wait of %v", wait)
	}
	for range 10 {
		a.delivered()
	}
	if n := take(); n != 2 {
		t.Errorf("%d after ten deliveries", n)
	}
	now = now.Add(3*time.Minute + time.Second)
	if n := take(); n != 3 {
		t.Errorf("%d after three minutes", n)
	}
	now = now.Add(24 * time.Hour)
	if n := take(); n != 10 {
		t.Errorf("%d after a day", n)
	}
}

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

// A peer that repeats what it was asked makes nobody else do so: of what goes wrong only
// its cause is told.
func TestCausesAreOurs(t *testing.T) {
	echo := func(answer string) string { // {} is the request's path
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err == nil {
					io.Copy(io.Discard, r.Body)
					io.WriteString(c, strings.ReplaceAll(answer, "{}", r.URL.Path))
				}
				c.Close()
			}
		}()
		return "http://" + l.Addr().String()
	}
	dead := httptest.NewServer(nil)
	dead.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	strange := httptest.NewUnstartedServer(nil)
	strange.Config.ErrorLog = log.New(io.Discard, "", 0)
	strange.StartTLS()
	defer strange.Close()
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	client := NewNotifier(slog.New(slog.DiscardHandler)).client
	for _, c := range []struct {
		at   string
		want error
	}{
		{echo("HTTP/1.1 {} no\r\n\r\n"), errBroken},
		{echo("{} 200 OK\r\n\r\n"), errBroken},
		{echo("HTTP/1.1 200 OK\r\n{}\r\n\r\n"), errBroken},
		{echo("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n"), errBroken},
		{echo("HTTP/1.1 200 OK\r\nTransfer-Encoding: {}\r\n\r\n"), errBroken},
		{echo(""), errReset},
		{dead.URL, errRefused},
		{strange.URL, errUntrusted},
		{strings.Replace(plain.URL, "http", "https", 1), errPlain},
	} {
		err := post(t.Context(), client, c.at+"/hunter2", nil, []byte("{}"))
		if err != c.want {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := post(ctx, client, hangs.URL, nil, nil); err != errTimeout {
		t.Error(err)
	}
	if err := post(t.Context(), client, echo("HTTP/1.1 404 {}\r\nContent-Length: 0\r\n\r\n")+"/hunter2", nil, nil); err == nil || err.Error() != "it answers 404 Not Found" {
		t.Error(err)
	}
	for err, want := range map[error]error{
		&net.DNSError{Err: "hunter2", IsNotFound: true}:                                    errNoHost,
		&net.DNSError{Err: "hunter2", IsTimeout: true}:                                     errTimeout,
		&net.DNSError{Err: "hunter2"}:                                                      errLookup,
		&net.OpError{Op: "remote error", Err: errors.New("tls: hunter2")}:                  errTLS,
		&net.OpError{Op: "dial", Err: errors.New("hunter2")}:                               errConnect,
		&url.Error{Op: "Post", URL: "hunter2", Err: &net.OpError{Op: "read", Err: io.EOF}}: errReset,
		errors.New("hunter2"):                                                              errBroken,
	} {
		if got := failed(err); got != want {
			t.Errorf("%v: %v", want, got)
		}
	}
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
