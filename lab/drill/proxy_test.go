package drill

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stand is a proxy on loopback before a dependency, and what it recorded.
type stand struct {
	t       *testing.T
	address string
	proxy   *Proxy
	passed  chan struct{} // an answer of the dependency is at the proxy
	mu      sync.Mutex
	lines   []recordLine
}

func newStand(t *testing.T, dependency http.HandlerFunc, change func(*Plan)) *stand {
	t.Helper()
	s := &stand{t: t, passed: make(chan struct{}, 100)}
	upstream := httptest.NewServer(dependency)
	t.Cleanup(upstream.Close)
	p := quiet
	p.Upstream, _ = url.Parse(upstream.URL)
	p.Steps, p.Hold, p.Step = []float64{1}, time.Second, time.Hour
	if change != nil {
		change(&p)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	transport := Transport(&p)
	t.Cleanup(transport.CloseIdleConnections)
	s.proxy = New(p, passes{transport, s.passed}, func(line []byte) {
		var l recordLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lines = append(s.lines, l)
	})
	front := httptest.NewServer(s.proxy)
	t.Cleanup(front.Close)
	s.address = strings.TrimPrefix(front.URL, "http://")
	return s
}

// passes says when there is an answer.
type passes struct {
	http.RoundTripper
	passed chan struct{}
}

func (p passes) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := p.RoundTripper.RoundTrip(r)
	if err == nil {
		p.passed <- struct{}{}
	}
	return res, err
}

// fault begins the drill, past its hold.
func (s *stand) fault() *stand {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	s.proxy.begun = time.Now().Add(-s.proxy.plan.Hold)
	return s
}

// open sends a request and gives the connection.
func (s *stand) open(text string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		s.t.Fatal(err)
	}
	return c
}

func get(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: store.example\r\nQuestion-Key: k\r\n\r\n"
}

// recorded waits for the n-th record.
func (s *stand) recorded(n int) recordLine {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		if len(s.lines) >= n {
			defer s.mu.Unlock()
			return s.lines[n-1]
		}
		s.mu.Unlock()
	}
	s.t.Fatalf("there is no record %d", n)
	return recordLine{}
}

// TestPassesAsItCame: what no fault is meant for is not changed, in either direction.
func TestPassesAsItCame(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // would break everything
	var got string
	s := newStand(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %s %s %s %s ua=%q fwd=%q enc=%q", r.Method, r.RequestURI, r.Host, body, r.Header.Get("Question-Key"), r.Header["User-Agent"], r.Header["X-Forwarded-For"], r.Header["Accept-Encoding"])
		w.Header().Set("Retry-After", "7")
		w.Header().Set("X-Own", "yes")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, "later")
	}, nil).fault()
	c := s.open("PATCH /seats/a%2Fb?x=1;y=%zz HTTP/1.1\r\nHost: store.example\r\nQuestion-Key: k\r\nX-Forwarded-For: 10.1.2.3\r\nContent-Length: 4\r\n\r\nbody")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	if want := `PATCH /seats/a%2Fb?x=1;y=%zz store.example body k ua=[] fwd=["10.1.2.3"] enc=[]`; got != want {
		t.Errorf("the dependency saw\n%s, want\n%s", got, want)
	}
	if res.StatusCode != 429 || res.Header.Get("X-Own") != "yes" || res.Header.Get("Retry-After") != "7" || string(body) != "later" || res.Header.Get(injectedHeader) != "" {
		t.Errorf("the caller got %d %v %q", res.StatusCode, res.Header, body)
	}
	l := s.recorded(1)
	if l.Status != 429 || l.Path != "/seats/a%2Fb" || l.Method != "PATCH" || l.Bytes != 5 || l.Gone || l.Fault != "" || l.RetryAfter == nil || *l.RetryAfter != 7 ||
		l.Key != "k" || l.Peer != "127.0.0.1" || l.Dependency != "store" || l.Authority != "store.example" || l.ID == "" {
		t.Errorf("the record is %+v", l)
	}
}

// TestDepartures: how a caller left is what the socket showed.
func TestDepartures(t *testing.T) {
	reached, more := make(chan struct{}, 1), make(chan struct{})
	defer close(more)
	s := newStand(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangs":
			reached <- struct{}{}
			<-r.Context().Done()
		case "/streams":
			fmt.Fprint(w, "some")
			w.(http.Flusher).Flush()
			reached <- struct{}{}
			<-r.Context().Done()
		case "/dies":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "some")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/announced":
			w.Header().Set("Content-Length", "4")
			fmt.Fprint(w, "some")
		case "/seats/slow":
			fmt.Fprint(w, "ok")
		}
	}, func(p *Plan) { p.Fault = Fault{Kind: Latency, Latency: time.Minute} }).fault()
	want := func(n int, what string, departure string, status int, bytes int64, failed bool) {
		t.Helper()
		l := s.recorded(n)
		if l.Departure != departure || l.Gone != (departure != "") || l.Status != status || l.Bytes != bytes {
			t.Errorf("%s: the record is %+v", what, l)
		}
		s.proxy.book.mu.Lock()
		defer s.proxy.book.mu.Unlock()
		if f := s.proxy.book.asked[n-1].tries[0]; f.failed != failed {
			t.Errorf("%s failed: %v", what, f.failed)
		}
	}
	c := s.open(get("/hangs"))
	<-reached
	c.Close()
	want(1, "who leaves before an answer", beforeResponse, 499, 0, true)

	c = s.open(get("/streams"))
	<-reached
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
	want(2, "who leaves in the middle", duringResponse, 200, 4, true)

	<-s.passed // the answer before
	c = s.open(get("/seats/slow"))
	<-s.passed
	c.Close()
	want(3, "who leaves an answer that is held back", undeliveredAnswer, 200, 0, true)

	c = s.open(get("/dies"))
	io.ReadAll(c)
	want(4, "an answer that the dependency cuts off", "", 200, 4, true)

	c = s.open(get("/announced"))
	if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	} else if body, err := io.ReadAll(res.Body); err != nil || string(body) != "some" {
		t.Fatal(string(body), err)
	}
	c.Close() // at once, with all that was announced
	want(5, "who has the whole answer and leaves", "", 200, 4, false)

	c = s.open("POST /holds HTTP/1.1\r\nHost: x\r\nQuestion-Key: k\r\nContent-Length: 10\r\n\r\nhalf")
	c.Close()
	want(6, "who leaves in the middle of its own body", beforeResponse, 499, 0, true)
}

// TestFaults: what is injected is what the plan says, marked as such, and only there.
func TestFaults(t *testing.T) {
	var reached atomic.Int64
	answers := func(w http.ResponseWriter, r *http.Request) { reached.Add(1); fmt.Fprint(w, "ok") }
	fault := func(f Fault) func(*Plan) { return func(p *Plan) { p.Fault = f } }

	s := newStand(t, answers, fault(Fault{Kind: Error, Status: 502, RetryAfter: 3 * time.Second}))
	asked := 0
	ask := func(path string) *http.Response {
		t.Helper()
		res, err := http.ReadResponse(bufio.NewReader(s.open(get(path))), nil)
		if err != nil {
			t.Fatal(err)
		}
		asked++
		s.recorded(asked) // a moment after the answer
		return res
	}
	if res := ask("/seats/1"); res.StatusCode != 200 {
		t.Errorf("before the drill begins: %d", res.StatusCode)
	}
	s.fault()
	if res := ask("/seats/1"); res.StatusCode != 502 || res.Header.Get("Retry-After") != "3" || res.Header.Get(injectedHeader) != "error" {
		t.Errorf("an injected error is %d %v", res.StatusCode, res.Header)
	}
	if l := s.recorded(2); l.Fault != Error || l.Status != 502 || l.RetryAfter == nil || *l.RetryAfter != 3 {
		t.Errorf("its record is %+v", l)
	}
	if res := ask("/other/1"); res.StatusCode != 200 {
		t.Errorf("another route: %d", res.StatusCode)
	}
	if n := reached.Load(); n != 2 {
		t.Errorf("%d requests reached the dependency, want 2", n)
	}

	s = newStand(t, answers, fault(Fault{Kind: Reset})).fault()
	if res, err := http.ReadResponse(bufio.NewReader(s.open(get("/seats/1"))), nil); err == nil {
		t.Errorf("a reset answers %d", res.StatusCode)
	}
	if l := s.recorded(1); l.Fault != Reset || l.Status != 0 || l.Gone {
		t.Errorf("its record is %+v", l)
	}

	s, asked = newStand(t, answers, fault(Fault{Kind: Latency, Latency: 50 * time.Millisecond})).fault(), 0
	if res := ask("/seats/1"); res.StatusCode != 200 {
		t.Errorf("a slow answer is %d", res.StatusCode)
	}
	if l := s.recorded(1); l.Duration < 50 || l.Fault != Latency {
		t.Errorf("its record is %+v", l)
	}
}

// TestUpgrade: a connection that becomes something else passes, and is no departure.
func TestUpgrade(t *testing.T) {
	s := newStand(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, line)
		rw.Flush()
	}, nil).fault()
	c := s.open("GET /talk HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\nQuestion-Key: k\r\n\r\n")
	in := bufio.NewReader(c)
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 101 {
		t.Fatal(res, err)
	}
	fmt.Fprintln(c, "hello")
	if line, err := in.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("it says %q, %v", line, err)
	}
	c.Close()
	if l := s.recorded(1); l.Status != 101 || l.Gone {
		t.Errorf("the record is %+v", l)
	}
}

// TestLimit: as many as the limit says are at the dependency, and the rest is refused.
func TestLimit(t *testing.T) {
	arrived, leave := make(chan struct{}, 10), make(chan struct{})
	s := newStand(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-leave
	}, func(p *Plan) { p.Fault = Fault{Kind: Limit, Limit: 2} }).fault()
	held := []net.Conn{s.open(get("/seats/1")), s.open(get("/seats/2"))}
	<-arrived
	<-arrived
	res, err := http.ReadResponse(bufio.NewReader(s.open(get("/seats/3"))), nil)
	if err != nil || res.StatusCode != 503 {
		t.Errorf("over the limit: %v %v", res, err)
	}
	if l := s.recorded(1); l.Fault != Limit || l.Status != 503 {
		t.Errorf("its record is %+v", l)
	}
	close(leave)
	for _, c := range held {
		if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != 200 {
			t.Errorf("within the limit: %v %v", res, err)
		}
	}
	if l := s.recorded(3); l.Fault != "" {
		t.Errorf("what was let through is recorded as a fault: %+v", l)
	}
	if res, err := http.ReadResponse(bufio.NewReader(s.open(get("/seats/4"))), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("after they are gone: %v %v", res, err)
	}
}

// TestRefuses: nothing is faulted that may be somebody's production.
func TestRefuses(t *testing.T) {
	for upstream, c := range map[string]struct {
		allowed string
		refused bool
	}{
		"http://127.0.0.1:8080":         {},
		"http://[::1]:8080":             {},
		"http://localhost":              {},
		"https://staging.example:8443":  {allowed: "staging.example:8443"},
		"http://staging.example":        {allowed: "staging.example:80"},
		"https://staging.example":       {allowed: "staging.example:8443", refused: true},
		"http://production.example":     {refused: true},
		"http://127.0.0.1.example:80":   {refused: true},
		"http://10.0.0.1:80":            {refused: true},
		"http://0.0.0.0:80":             {refused: true},
		"ftp://127.0.0.1":               {refused: true},
		"http://127.0.0.1/below":        {refused: true},
		"http://somebody@127.0.0.1:808": {refused: true},
	} {
		p := quiet
		p.Upstream, _ = url.Parse(upstream)
		p.Allowed = c.allowed
		if err := p.Validate(); (err != nil) != c.refused {
			t.Errorf("%s, allowed %q: %v", upstream, c.allowed, err)
		}
	}
	// A name that turns out to be elsewhere is not followed.
	p := quiet
	p.Upstream, _ = url.Parse("http://localhost:80")
	_, err := Transport(&p).DialContext(t.Context(), "tcp", "192.0.2.1:80")
	if err == nil || !strings.Contains(err.Error(), "not loopback") {
		t.Errorf("what resolves to 192.0.2.1: %v", err)
	}
}

// TestPlans: what cannot be meant is said.
func TestPlans(t *testing.T) {
	for text, want := range map[string]string{
		"error": "error=503", "error=429": "error=429", "latency=1s": "latency=1s", "reset": "reset", "limit=3": "limit=3",
		"error=200": "", "error=x": "", "latency": "", "latency=-1s": "", "reset=1": "", "limit=0": "", "loss=1": "", "": "",
	} {
		if f, err := ParseFault(text); (err == nil) != (want != "") || err == nil && f.String() != want {
			t.Errorf("fault %q is %v, %v", text, f, err)
		}
	}
	for text, ok := range map[string]bool{"/": true, "GET /x": true, "/x": true, "x": false, "get /x": false, "GET": false, " /x": false, "/x?y": false, "GET  /x": false} {
		if r, err := ParseRoute(text); (err == nil) != ok || ok && r.String() != text {
			t.Errorf("route %q is %v, %v", text, r, err)
		}
	}
	p := quiet
	p.Steps, p.ControlShare, p.Key, p.Step = []float64{0, 1.5}, 0, "", 0
	err := p.Validate()
	for _, want := range []string{"steps: 0 %", "steps: 150 %", "control share", "key", "step and hold"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %s: %v", want, err)
		}
	}
	at := func(since time.Duration) int { return quiet.at(since) }
	for since, want := range map[time.Duration]int{0: 0, 9 * time.Second: 0, 10 * time.Second: 1, 30 * time.Second: 2, 89 * time.Second: 4, 90 * time.Second: 5, time.Hour: 5} {
		if got := at(since); got != want {
			t.Errorf("after %v it is step %d, want %d", since, got, want)
		}
	}
}

// TestKeys: of a header that came several times the record has all, and two different
// keys are none.
func TestKeys(t *testing.T) {
	s := newStand(t, func(w http.ResponseWriter, r *http.Request) {}, nil)
	for i, c := range []struct {
		headers []string
		record  string
		key     string
	}{
		{[]string{"a"}, "a", "a"},
		{[]string{"a", "b"}, "a, b", ""},
		{[]string{"a", "a"}, "a, a", "a"},
		{[]string{"a, a", `"a"`}, `a, a, "a"`, "a"},
		{[]string{"a,b"}, "a,b", ""},
		{[]string{`"a,b"`}, `"a,b"`, "a,b"},
		{[]string{`"a\",b"`}, `"a\",b"`, `a\",b`},
		{[]string{"", "a"}, ", a", ""},
		{nil, "", ""},
	} {
		text := "GET /other HTTP/1.1\r\nHost: x\r\n"
		for _, v := range c.headers {
			text += "Question-Key: " + v + "\r\nX-Request-Id: " + v + "\r\n"
		}
		io.ReadAll(s.open(text + "Connection: close\r\n\r\n"))
		if l := s.recorded(i + 1); l.Key != c.record || l.RequestID != c.record {
			t.Errorf("%q: the record has %q and %q", c.headers, l.Key, l.RequestID)
		}
		s.proxy.book.mu.Lock()
		if unkeyed := s.proxy.book.counts[0][ofOther].unkeyed; c.key != "" && s.proxy.book.live[identity{c.key, "GET", "/other"}] == nil || c.key == "" && unkeyed == 0 {
			t.Errorf("%q is not the key %q", c.headers, c.key)
		}
		s.proxy.book.counts[0][ofOther].unkeyed = 0
		s.proxy.book.mu.Unlock()
	}
}

// TestControlBeside: a control that the faulted route takes whole would stay empty.
func TestControlBeside(t *testing.T) {
	for _, c := range []struct {
		route, control string
		refused        bool
	}{
		{"GET /seats/", "GET /seats/", true}, {"GET /seats/", "GET /seats/a", true}, {"/", "GET /prices/", true}, {"/seats/", "/seats/", true},
		{"/s", "/seats/", true}, {"GET /seats/", "/seats/", false}, {"GET /seats/", "POST /seats/", false}, {"GET /seats/", "GET /", false}, {"GET /seats/", "GET /seat", false},
	} {
		p := quiet
		var errs [2]error
		p.Route, errs[0] = ParseRoute(c.route)
		p.Control, errs[1] = ParseRoute(c.control)
		if err := p.Validate(); (err != nil) != c.refused || errs[0] != nil || errs[1] != nil || err != nil && !strings.Contains(err.Error(), "control: ") {
			t.Errorf("%s beside %s: %v", c.control, c.route, err)
		}
	}
}

// TestListensElsewhere: a drill does not pass on to itself.
func TestListensElsewhere(t *testing.T) {
	for _, c := range []struct {
		upstream, listen string
		refused          bool
	}{
		{"http://127.0.0.1:8080", "127.0.0.1:8080", true}, {"http://127.0.0.1:8080", "0.0.0.0:8080", true}, {"http://127.0.0.1:8080", "[::]:8080", true},
		{"http://localhost:8080", "127.0.0.1:8080", true}, {"http://127.0.0.1", "127.0.0.1:80", true}, {"https://[::1]", "[::1]:443", true},
		{"http://0.0.0.0:8080", "127.0.0.1:8080", true},
		{"http://127.0.0.1:8080", "127.0.0.1:8081", false}, {"http://127.0.0.1:8080", "127.0.0.2:8080", false}, {"http://192.0.2.1:8080", "0.0.0.0:8080", false},
		{"https://127.0.0.1", "127.0.0.1:80", false},
	} {
		p := quiet
		p.Upstream, _ = url.Parse(c.upstream)
		at, err := net.ResolveTCPAddr("tcp", c.listen)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.ValidateListen(t.Context(), at); (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "the drill itself listens") {
			t.Errorf("%s from %s: %v", c.upstream, c.listen, err)
		}
	}
}
