package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// phase is a stretch of the recording. In "slow" and "refusing" the first tries
// of most questions go wrong at the application.
type phase struct {
	name      string
	questions int // at each target
	every     time.Duration
}

var plan = []phase{
	{"calm", 78, 110 * time.Millisecond},
	{"slow", 130, 120 * time.Millisecond},
	{"refusing", 130, 120 * time.Millisecond},
	{"recovered", 78, 110 * time.Millisecond},
}

// fails has 7 entries and kinds 26, so that they do not move in step.
var fails = []int{2, 6, 3, 0, 6, 1, 4}

// kind is a way to call. Every way but "edge" goes straight to the target.
type kind struct {
	name    string
	way     string // edge, direct
	source  string // own address on the loopback network
	agent   string
	key     string // what is sent as Question-Key
	attempt int    // attempts that the caller itself makes
	timeout time.Duration
	backoff time.Duration
	polite  bool // waits as long as Retry-After says
	// leave is when the caller goes: before the response has begun, or after
	// its first bytes if reading is set.
	leave   time.Duration
	reading bool
	upload  bool   // leaves in the middle of its own request body
	path    string // "" is the ordinary mix
}

var (
	plain  = kind{name: "plain", way: "edge", source: "127.0.0.31", agent: "web-ui/1.4", key: "web", attempt: 1}
	sdk    = kind{name: "sdk", way: "edge", source: "127.0.0.32", agent: "seat-sdk/2.1", key: "web", attempt: 2, backoff: 200 * time.Millisecond}
	bff    = kind{name: "bff", way: "direct", source: "127.0.0.21", agent: "bff/3.0", key: "web", attempt: 3, timeout: 400 * time.Millisecond, backoff: 100 * time.Millisecond, polite: true}
	hasty  = kind{name: "hasty", way: "direct", source: "127.0.0.22", agent: "batch/0.3", key: "web", attempt: 3, timeout: 400 * time.Millisecond, backoff: 100 * time.Millisecond}
	nokey  = kind{name: "nokey", way: "edge", source: "127.0.0.33", agent: "curl/8.4.0", attempt: 1}
	legacy = kind{name: "legacy", way: "direct", source: "127.0.0.23", agent: "legacy-gw/0.9", key: "legacy", attempt: 3, timeout: 400 * time.Millisecond, backoff: 100 * time.Millisecond}
	forger = kind{name: "forger", way: "edge", source: "127.0.0.34", agent: "reminter/1.0", key: "forged", attempt: 1}
)

var kinds = []kind{
	plain, sdk, bff, plain, nokey, sdk,
	legacy, hasty, plain, forger, sdk,
	{name: "leaves early, over the edge", way: "edge", source: "127.0.0.35", agent: "phone/7", key: "web", attempt: 1, leave: 250 * time.Millisecond, path: "late"},
	{name: "leaves early", way: "direct", source: "127.0.0.24", agent: "phone/7", key: "web", attempt: 1, leave: 250 * time.Millisecond, path: "late"},
	plain, sdk,
	{name: "leaves before the end of a report", way: "direct", source: "127.0.0.24", agent: "phone/7", key: "web", attempt: 1, leave: 350 * time.Millisecond, reading: true, path: "reports"},
	{name: "leaves before the end of an export", way: "direct", source: "127.0.0.24", agent: "phone/7", key: "web", attempt: 1, leave: 350 * time.Millisecond, path: "exports"},
	{name: "breaks off its upload", way: "direct", source: "127.0.0.24", agent: "phone/7", key: "web", attempt: 1, leave: 150 * time.Millisecond, upload: true, path: "holds"},
	{name: "leaves a stream", way: "direct", source: "127.0.0.24", agent: "phone/7", key: "web", attempt: 1, leave: 350 * time.Millisecond, reading: true, path: "stream"},
	{name: "leaves a stream, over the edge", way: "edge", source: "127.0.0.35", agent: "phone/7", key: "web", attempt: 1, leave: 350 * time.Millisecond, reading: true, path: "stream"},
	{name: "reads a stream", way: "direct", source: "127.0.0.24", agent: "phone/7", key: "web", attempt: 1, path: "stream"},
	plain, bff,
	{name: "empty key", way: "direct", source: "127.0.0.25", agent: "misfit/1", key: "empty", attempt: 1},
	{name: "misfit", way: "direct", source: "127.0.0.25", agent: "misfit/1", key: "misfit", attempt: 1},
	{name: "odd agent", way: "direct", source: "127.0.0.26", agent: `odd "quoted" agent \x`, key: "web", attempt: 1},
}

// misfits take turns; each is a reason why a key does not attribute.
var misfits = []string{"malformed", "unknown_originator", "expired", "not_yet_valid", "forged"}

type callers struct {
	book    *book
	secrets map[string]string
	ports   ports
	misfit  map[string]int
}

// span is when the questions of a phase began and when the last was over.
type span struct {
	Name string    `json:"name"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

func (c *callers) run(ctx context.Context) ([]span, error) {
	c.misfit = map[string]int{}
	var spans []span
	for _, p := range plan {
		fmt.Println("phase", p.name)
		var wg sync.WaitGroup
		s := span{Name: p.name, From: time.Now().UTC()}
		for i := range p.questions {
			for _, dep := range dependencies {
				k := kinds[i%len(kinds)]
				q := &question{dep: dep, phase: p.name, kind: k.name, fails: fails[i%len(fails)]}
				q.method, q.path = operation(k, i)
				if q.peer = k.source; k.way == "edge" {
					q.peer = "127.0.0.10"
				}
				c.book.ask(q)
				key := c.keyFor(k, dep, q.index)
				wg.Go(func() { c.call(ctx, k, q, key) })
			}
			if err := sleep(ctx, p.every); err != nil {
				return nil, err
			}
		}
		wg.Wait()
		s.To = time.Now().UTC()
		spans = append(spans, s)
		if err := sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	return spans, nil
}

// operation gives a question its one method and path. Several questions share a
// path, as they do in life.
func operation(k kind, i int) (method, path string) {
	id := strconv.Itoa(100 + i%37)
	switch {
	case k.upload:
		return http.MethodPost, "/" + k.path + "/" + id
	case k.path != "":
		return http.MethodGet, "/" + k.path + "/" + id
	case i%6 == 5:
		return http.MethodPost, "/holds/" + id
	case i%4 == 3:
		return http.MethodGet, "/quotes/" + id
	}
	return http.MethodGet, "/seats/" + id
}

// keyFor returns what mints the key of each attempt. All but the legacy layer
// author one key for the question and send it with every attempt.
func (c *callers) keyFor(k kind, dep string, index int) func() (key string, send bool) {
	make := func(class, secret, originator, kid string, age time.Duration) string {
		key := mintKey(secret, originator, kid, time.Now().Add(-age))
		if class == "malformed" {
			key = key[:len(key)-5]
		}
		c.book.mint(key, minted{class, originator})
		return key
	}
	one := func(key string) func() (string, bool) { return func() (string, bool) { return key, true } }
	switch k.key {
	case "":
		return func() (string, bool) { return "", false }
	case "empty":
		return one("")
	case "legacy":
		return func() (string, bool) { return make("verified", c.secrets["legacy/a"], "legacy", "a", 0), true }
	case "forged":
		return one(make("forged", "another secret, not the originator's", "web", "a", 0))
	case "misfit":
		class := misfits[c.misfit[dep]%len(misfits)]
		c.misfit[dep]++
		switch class {
		case "unknown_originator":
			return one(make(class, c.secrets["web/a"], "mobile", "a", 0))
		case "expired":
			return one(make(class, c.secrets["web/a"], "web", "a", 25*time.Hour))
		case "not_yet_valid":
			return one(make(class, c.secrets["web/a"], "web", "a", -10*time.Minute))
		case "forged":
			// A true signature of web under a kid that holds another secret.
			return one(make(class, c.secrets["web/a"], "web", "b", 0))
		}
		return one(make(class, c.secrets["web/a"], "web", "a", 0))
	}
	kid := "a"
	if index%7 == 0 {
		kid = "b"
	}
	return one(make("verified", c.secrets["web/"+kid], "web", kid, 0))
}

// call asks one question, with the caller's own retries.
func (c *callers) call(ctx context.Context, k kind, q *question, key func() (string, bool)) {
	requestID := newUUID(time.Now())
	for n := 1; n <= k.attempt; n++ {
		text, send := key()
		if k.key == "legacy" {
			requestID = newUUID(time.Now())
		}
		h := http.Header{"User-Agent": {k.agent}, "X-Example-Question": {strconv.Itoa(q.index)}}
		if send {
			h.Set("Question-Key", text)
		}
		if k.key != "" && k.key != "empty" {
			h.Set("X-Request-Id", requestID)
		}
		path := q.path
		if k.name == "sdk" && n > 1 {
			path += "?attempt=" + strconv.Itoa(n) // a query is no part of the identity
		}
		c.book.send(k.way, identity{text, q.path}, q)
		o, status, retryAfter := c.try(ctx, k, q, path, h)
		c.book.attempt(q.dep, k.way, o)
		if o == broken {
			fmt.Println("broken attempt:", q.dep, q.phase, k.name)
		}
		if o == answered && status < 500 || k.leave > 0 {
			return
		}
		wait := k.backoff
		if k.polite && retryAfter > 0 {
			wait += retryAfter
		}
		if sleep(ctx, wait) != nil {
			return
		}
	}
}

// try sends one request on its own connection: a client that reuses
// connections may send a request twice without saying so.
func (c *callers) try(ctx context.Context, k kind, q *question, path string, h http.Header) (outcome, int, time.Duration) {
	var body io.Reader
	if q.method == http.MethodPost {
		body = strings.NewReader(`{"hold":true}`)
	}
	limit := 10 * time.Second
	if k.timeout > 0 {
		limit = k.timeout
	}
	if k.leave > 0 {
		limit = k.leave
	}
	if k.upload {
		return c.breakOff(k, q, path, h), 0, 0
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := c.do(ctx, k.way, k.source, q.dep, q.method, path, h, body)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return leftBefore, 0, 0
		}
		return broken, 0, 0
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return leftDuring, resp.StatusCode, 0
	default:
		return broken, resp.StatusCode, 0
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return answered, resp.StatusCode, time.Duration(seconds) * time.Second
}

// breakOff sends the headers and a part of the body that they announce.
func (c *callers) breakOff(k kind, q *question, path string, h http.Header) outcome {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(k.source)}}
	conn, err := d.Dial("tcp", "127.0.0.1:"+strconv.Itoa(c.target(q.dep)))
	if err != nil {
		return broken
	}
	defer conn.Close()
	var text strings.Builder
	fmt.Fprintf(&text, "POST %s HTTP/1.1\r\nHost: %s.example\r\nContent-Length: 100\r\n", path, q.dep)
	h.Write(&text)
	text.WriteString("\r\n{\"hold\":")
	if _, err := io.WriteString(conn, text.String()); err != nil {
		return broken
	}
	conn.SetReadDeadline(time.Now().Add(k.leave))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return broken // an answer to half a request
	}
	return leftBefore
}

func (c *callers) target(dep string) int {
	return map[string]int{"seats": c.ports.Nginx, "prices": c.ports.Inbound}[dep]
}

func (c *callers) do(ctx context.Context, way, source, dep, method, path string, h http.Header, body io.Reader) (*http.Response, error) {
	port := c.ports.Edge
	if way != "edge" {
		port = c.target(dep)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:"+strconv.Itoa(port)+path, body)
	if err != nil {
		return nil, err
	}
	req.Header, req.Host = h, dep+".example"
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	t := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: d.DialContext}
	return t.RoundTrip(req)
}

// probe asks for the health of a target each second, as an orchestrator does.
func (c *callers) probe(ctx context.Context, dep string) {
	for sleep(ctx, time.Second) == nil {
		resp, err := c.do(context.WithoutCancel(ctx), "direct", "127.0.0.5", dep, http.MethodGet, "/healthz",
			http.Header{"User-Agent": {"kube-probe/1.29"}}, nil)
		if err != nil {
			fmt.Println("broken probe:", dep)
			continue
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		c.book.mu.Lock()
		c.book.probes[dep]++
		c.book.mu.Unlock()
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
