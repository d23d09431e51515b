package drill

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a network of two ends, without sockets, so that time can be virtual.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dependency answers after 5 ms, always.
func dependency(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	time.Sleep(5 * time.Millisecond)
	fmt.Fprintln(w, "ok")
}

// caller is a layer that retries, in one of the ways that are found in life.
type caller struct {
	client   *http.Client
	attempts int
	timeout  time.Duration
	backoff  time.Duration
	bucket   *bucket       // nil: a count alone
	waits    time.Duration // for the bucket; 0: it fails fast
	rekeys   bool
	breaks   bool // asks for nothing while most fails

	mu         sync.Mutex
	asked, bad int // attempts, of late
}

// bucket grants repeats for a share of the calls: each call pays in, each repeat takes
// one. Who waits is served in order.
type bucket struct {
	share   float64
	mu      sync.Mutex
	holds   float64
	waiting []chan struct{}
}

func (b *bucket) pay() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds = min(b.holds+b.share, 20)
	for b.holds >= 1 && len(b.waiting) > 0 {
		b.holds--
		close(b.waiting[0])
		b.waiting = b.waiting[1:]
	}
}

// take takes one, and waits for it if it is to.
func (b *bucket) take(most time.Duration) bool {
	b.mu.Lock()
	if b.holds >= 1 && len(b.waiting) == 0 {
		b.holds--
		b.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	if most > 0 {
		b.waiting = append(b.waiting, turn)
	}
	b.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-time.After(most):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, turn); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		return false
	}
	return most > 0 // its turn came just now
}

// ask asks one question.
func (c *caller) ask(method, path, key string) {
	if c.broken() {
		return
	}
	if c.bucket != nil {
		c.bucket.pay()
	}
	for n := 1; ; n++ {
		sent := key
		if c.rekeys {
			sent = fmt.Sprintf("%s-%d", key, n)
		}
		ok := c.attempt(method, path, sent, n)
		c.note(ok)
		if ok || n == c.attempts {
			return
		}
		time.Sleep(c.backoff)
		if c.bucket != nil && !c.bucket.take(c.waits) {
			return
		}
	}
}

func (c *caller) note(ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked++; !ok {
		c.bad++
	}
	if c.asked == 50 { // what is older says nothing of now
		c.asked, c.bad = 25, c.bad/2
	}
}

func (c *caller) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.breaks && c.asked >= 25 && c.bad*2 > c.asked
	if open {
		c.asked++ // and closes again in time
	}
	return open
}

func (c *caller) attempt(method, path, key string, n int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, method, "http://drill"+path, nil)
	if key != "" {
		req.Header.Set("Question-Key", key)
	}
	req.Header.Set("X-Envoy-Attempt-Count", fmt.Sprint(n))
	res, err := c.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil && res.StatusCode < 500
}

// rig is a drill in virtual time: callers of two routes, the proxy and a dependency.
type rig struct {
	plan    Plan
	callers []*caller // of the faulted route first, and the other after it
	rate    int       // questions a second on each route
	unkeyed bool
	behind  http.HandlerFunc // nil: dependency
	ends    time.Duration    // interrupted then; 0: not
}

var quiet = Plan{
	Upstream: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, Dependency: "store", Key: "Question-Key",
	Fault: Fault{Kind: Error, Status: 503}, Route: Route{"GET", "/seats/"}, Control: Route{"GET", "/prices/"}, ControlShare: 0.05,
	Steps: []float64{0.05, 0.25, 0.5, 1}, Step: 20 * time.Second, Hold: 10 * time.Second, Seed: 1,
}

// play plays a whole drill, and returns what it answers and its records.
func (g *rig) play(t *testing.T) (report *Report, lines []string) {
	t.Helper()
	if err := g.plan.Validate(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		behind, front := newPipes(), newPipes()
		handler := g.behind
		if handler == nil {
			handler = dependency
		}
		upstream := &http.Server{Handler: handler}
		go upstream.Serve(behind)
		transport := &http.Transport{DialContext: behind.dial, DisableCompression: true}
		var mu sync.Mutex
		proxy := New(g.plan, transport, func(line []byte) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, string(line))
		})
		server := &http.Server{Handler: proxy}
		go server.Serve(front)
		// Go's client itself repeats what a connection that was used before is reset under,
		// which would be one attempt more than the caller knows of.
		own := &http.Transport{DialContext: front.dial, MaxIdleConnsPerHost: 100, DisableKeepAlives: g.plan.Fault.Kind == Reset}
		for _, c := range g.callers {
			c.client = &http.Client{Transport: own}
		}
		proxy.Begin()
		var working sync.WaitGroup
		gap := time.Second / time.Duration(g.rate)
		lasts := g.plan.Lasts()
		if g.ends > 0 {
			lasts = g.ends - time.Second
		}
		for n := range int(lasts / gap) {
			for i, path := range []string{"/seats/", "/prices/"} {
				c := g.callers[min(i, len(g.callers)-1)]
				key := fmt.Sprintf("k%d", n)
				if g.unkeyed {
					key = ""
				}
				working.Go(func() { c.ask("GET", path+fmt.Sprint(n%7), key) })
			}
			time.Sleep(gap)
		}
		working.Wait()
		time.Sleep(time.Second) // to the end of the last step
		own.CloseIdleConnections()
		synctest.Wait()
		report = proxy.Report()
		server.Close()
		transport.CloseIdleConnections()
		upstream.Close()
		synctest.Wait()
	})
	return report, lines
}
