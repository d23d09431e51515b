package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// injectedHeader tells a caller's engineers whose errors these are.
const injectedHeader = "X-Auditor-Drill"

// Proxy stands in front of the dependency. It serves from the beginning, and faults
// from Begin on.
type Proxy struct {
	plan    Plan
	forward *httputil.ReverseProxy
	book    *book
	record  func(line []byte)
	run     string // of arrival ids
	number  atomic.Uint64
	limited atomic.Int64 // chosen requests at the dependency

	mu     sync.Mutex
	chance *rand.Rand
	begun  time.Time
}

// New makes a proxy of a valid plan. It forwards through the transport, and hands
// each request that is over to record, as a line of JSON without its end; record is
// called by many at a time.
func New(p Plan, t http.RoundTripper, record func(line []byte)) *Proxy {
	x := &Proxy{plan: p, record: record, book: newBook(len(p.Steps) + 2),
		run: strconv.FormatUint(rand.Uint64(), 36), chance: rand.New(rand.NewPCG(p.Seed, 0))}
	x.forward = &httputil.ReverseProxy{
		Transport: t,
		// Not at once, which is a timer that is over when it begins: in a bubble of
		// testing/synctest the race detector may crash on these (Go 1.26).
		FlushInterval: time.Millisecond,
		ErrorLog:      log.New(io.Discard, "", 0), // what breaks is in the records
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = p.Upstream.Scheme, p.Upstream.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v := r.In.Header.Values(name); len(v) > 0 {
					r.Out.Header[name] = v
				}
			}
		},
		ModifyResponse: func(res *http.Response) error {
			e := exchangeOf(res.Request.Context())
			e.answered, e.length = res.StatusCode, res.ContentLength
			return e.holdBack(res.Request.Context())
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if e := exchangeOf(r.Context()); e.caller.Err() == nil && !e.brokenOff.Load() {
				http.Error(w, "auditor drill: the dependency did not answer", http.StatusBadGateway)
			}
		},
	}
	return x
}

// Transport reaches the plan's upstream and nothing else that is not loopback,
// whatever its name resolves to. Proxies of the environment are not asked.
func Transport(p *Plan) *http.Transport {
	d := net.Dialer{Timeout: 10 * time.Second}
	if !p.allowed() {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			if host, _, err := net.SplitHostPort(address); err != nil || !loopback(host) {
				return fmt.Errorf("%s is not loopback, and not allowed", address)
			}
			return nil
		}
	}
	return &http.Transport{DialContext: d.DialContext, DisableCompression: true, MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second}
}

// Begin begins the first hold now.
func (p *Proxy) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = time.Now()
}

// exchange is one request and what becomes of it.
type exchange struct {
	arrival
	caller    context.Context
	hold      time.Duration
	answered  int         // status of the dependency's answer; 0: none yet
	length    int64       // of its body; -1: not announced
	brokenOff atomic.Bool // the caller left in the middle of its own body
	w         *watched
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// choose says in which step a request arrives, of which route it is, and whether the
// fault is its own.
func (p *Proxy) choose(r *http.Request) (a arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.start = time.Now()
	if !p.begun.IsZero() {
		a.step = p.plan.at(a.start.Sub(p.begun))
	}
	share := 0.0
	switch {
	case p.plan.Route.matches(r):
		a.of, share = ofRoute, p.plan.share(a.step)
	case p.plan.Control.matches(r):
		if a.of = ofControl; p.plan.share(a.step) > 0 {
			share = p.plan.ControlShare
		}
	}
	a.chosen = share > 0 && p.chance.Float64() < share
	return a
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := &exchange{arrival: p.choose(r), caller: r.Context(), length: -1}
	e.w = &watched{ResponseWriter: w, ctx: e.caller}
	e.try = p.book.begin(identity{oneKey(joined(r.Header, p.plan.Key)), r.Method, r.URL.Path}, &e.arrival)
	whole := false
	defer func() {
		e.over(whole)
		p.book.end(&e.arrival)
		p.record(p.line(r, e))
	}()
	if e.passed = !e.chosen || p.faulted(e, r); !e.passed {
		whole = true
		return
	}
	if e.chosen && p.plan.Fault.Kind == Limit {
		defer p.limited.Add(-1)
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &upload{r.Body, e}
	}
	p.forward.ServeHTTP(e.w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)))
	whole = true
}

// faulted does to a chosen request what the fault is, and says whether it goes on to
// the dependency.
func (p *Proxy) faulted(e *exchange, r *http.Request) (goesOn bool) {
	f := &p.plan.Fault
	status := f.Status
	switch f.Kind {
	case Latency:
		e.hold = f.Latency
		return true
	case Reset:
		e.reset = true
		conn, _, err := http.NewResponseController(e.w.ResponseWriter).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0) // the caller sees a reset, not an end
		}
		conn.Close()
		return false
	case Limit:
		if p.limited.Add(1) <= int64(f.Limit) {
			return true
		}
		p.limited.Add(-1)
		status = http.StatusServiceUnavailable
	}
	e.w.Header().Set(injectedHeader, f.Kind)
	if f.RetryAfter > 0 {
		e.w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter/time.Second)))
	}
	e.answered = status
	http.Error(e.w, "auditor drill: injected", status)
	return false
}

var errLeft = errors.New("the caller left")

// holdBack keeps an answer of the dependency from its caller for a while.
func (e *exchange) holdBack(ctx context.Context) error {
	if e.hold == 0 {
		return nil
	}
	t := time.NewTimer(e.hold)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errLeft
	}
}

// over decides what the caller got. whole says that the handler came to its end.
func (e *exchange) over(whole bool) {
	e.end = time.Now()
	w := e.w
	e.status, e.bytes = w.status, w.bytes
	left := w.gone || e.brokenOff.Load() || e.caller.Err() != nil && (w.status == 0 || !whole && w.bytes != e.length)
	switch {
	case e.reset:
	case e.answered == http.StatusSwitchingProtocols: // whatever it became was taken off our hands
		e.status = e.answered
	case left && e.answered == 0:
		e.gone, e.status, e.bytes = beforeResponse, statusLeft, 0
	case left && w.bytes == 0:
		e.gone, e.status = undeliveredAnswer, e.answered
	case left:
		e.gone = duringResponse
	}
	e.failed = e.gone != "" || e.reset || !whole && w.bytes != e.length || e.status >= 500 || e.status == http.StatusTooManyRequests
	// Who leaves a slowed answer leaves the fault.
	e.byItself = e.failed && e.passed && (e.gone == "" || !e.chosen)
}

// statusLeft is what nginx and Envoy write of callers that left before an answer.
const statusLeft = 499

// watched notes what is written, and whether anybody was there. A caller that leaves
// after the last byte was taken off its hands leaves no trace, and has its answer.
type watched struct {
	http.ResponseWriter
	ctx    context.Context
	status int
	bytes  int64
	gone   bool
}

func (w *watched) WriteHeader(status int) {
	if status >= 200 && w.status == 0 {
		w.status = status
		w.gone = w.ctx.Err() != nil
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.ctx.Err() != nil {
		w.gone = true
		return 0, errLeft
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	if err != nil {
		w.gone = true
	}
	return n, err
}

func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// upload notes a caller that leaves in the middle of its own body.
type upload struct {
	io.ReadCloser
	e *exchange
}

func (u *upload) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		u.e.brokenOff.Store(true)
	}
	return n, err
}
