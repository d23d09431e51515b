// Package drill is a reverse proxy to stand in front of a staging dependency and make
// it fail on purpose, in steps, so that its callers show what bounds their repeats.
//
// What it promises:
//
//   - What no fault is meant for passes as it came: method, path, query, headers,
//     body and answer, and nothing is tried twice on anybody's behalf.
//   - A request is chosen for the fault by chance, each for itself. A caller that makes
//     n attempts then sends p + p² + … + pⁿ⁻¹ repeats a question at a share p.
//   - Every request is a record, with departures as the socket showed them. Judged is
//     what callers got, whether the fault or the dependency made it.
//   - Nothing is concluded from fewer failures than can show it, nor where more than a
//     little of what the dependency got failed by itself.
//
// It knows questions by a header that their originator minted. Whether that is proven
// is for the auditor to say, which is handed the records.
package drill

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Plan is what a drill does. It holds traffic as it is, faults the route step by step,
// and holds again, for repeats that are still to come.
type Plan struct {
	Upstream   *url.URL
	Allowed    string // host:port of an upstream that is not loopback; "": none
	Dependency string // its name in the records

	Key   string // the header that bears the question's key
	Fault Fault
	Route Route // that is faulted
	// Control is another route, which fails by ControlShare alone while the first does by
	// its steps: does it lose its repeats? The zero Route: there is none.
	Control      Route
	ControlShare float64

	Steps []float64 // shares of the route's requests, in order
	Step  time.Duration
	Hold  time.Duration // before and after the steps
	Seed  uint64        // of the choice
}

// Fault is what happens to a request that is chosen.
type Fault struct {
	Kind       string        // one of the kinds below
	Status     int           // of an error
	Latency    time.Duration // by which the dependency's answer is held back
	Limit      int           // of the chosen requests at the dependency at a time; more are refused with 503
	RetryAfter time.Duration // said with an error or a refusal, in whole seconds; 0: not
}

// The kinds of fault. Errors, resets and refusals do not reach the dependency; what is
// slow does, as with a dependency that is slow itself.
const (
	Error   = "error"
	Latency = "latency"
	Reset   = "reset"
	Limit   = "limit"
)

// ParseFault reads error=503, latency=400ms, reset or limit=20.
func ParseFault(s string) (f Fault, err error) {
	kind, value, has := strings.Cut(s, "=")
	f.Kind = kind
	switch kind {
	case Error:
		f.Status = http.StatusServiceUnavailable
		if has {
			f.Status, err = strconv.Atoi(value)
		}
		if err != nil || f.Status < 400 || f.Status > 599 {
			return f, fmt.Errorf("fault %q: want a status from 400 to 599, such as error=503", s)
		}
	case Latency:
		if f.Latency, err = time.ParseDuration(value); err != nil || f.Latency <= 0 {
			return f, fmt.Errorf("fault %q: want a time above 0, such as latency=400ms", s)
		}
	case Reset:
		if has {
			return f, fmt.Errorf("fault %q: a reset takes no value", s)
		}
	case Limit:
		if f.Limit, err = strconv.Atoi(value); err != nil || f.Limit < 1 {
			return f, fmt.Errorf("fault %q: want a whole number above 0, such as limit=20", s)
		}
	default:
		return f, fmt.Errorf("fault %q: want error=503, latency=400ms, reset or limit=20", s)
	}
	return f, nil
}

func (f Fault) String() string {
	switch f.Kind {
	case Error:
		return fmt.Sprintf("%s=%d", f.Kind, f.Status)
	case Latency:
		return fmt.Sprintf("%s=%v", f.Kind, f.Latency)
	case Limit:
		return fmt.Sprintf("%s=%d", f.Kind, f.Limit)
	}
	return f.Kind
}

// Route is a method, or any, and the beginning of a path.
type Route struct{ Method, Prefix string }

// ParseRoute reads "GET /seats/" or "/seats/".
func ParseRoute(s string) (Route, error) {
	method, prefix, both := strings.Cut(s, " ")
	if !both {
		method, prefix = "", s
	}
	if both && (method == "" || strings.ToUpper(method) != method) || !strings.HasPrefix(prefix, "/") || strings.ContainsAny(prefix, " ?") {
		return Route{}, fmt.Errorf("route %q: want a method, if one is meant, and the beginning of a path: GET /seats/", s)
	}
	return Route{method, prefix}, nil
}

func (r Route) matches(q *http.Request) bool {
	return r.Prefix != "" && (r.Method == "" || r.Method == q.Method) && strings.HasPrefix(q.URL.Path, r.Prefix)
}

// covers says that whatever the other matches is matched.
func (r Route) covers(other Route) bool {
	return r.Prefix != "" && (r.Method == "" || r.Method == other.Method) && strings.HasPrefix(other.Prefix, r.Prefix)
}

func (r Route) String() string { return strings.TrimSpace(r.Method + " " + r.Prefix) }

// Validate says what is wrong with a plan, all of it.
func (p *Plan) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if u := p.Upstream; u == nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil {
		fault("upstream: want scheme, host and port alone, such as http://127.0.0.1:8080")
	} else if !p.allowed() && !loopback(u.Hostname()) {
		fault("upstream: %s is not loopback: faults are for staging; if this is, allow %s", u.Hostname(), p.address())
	}
	if p.Key == "" || strings.ContainsAny(p.Key, " :\r\n") {
		fault("key: want the name of a header")
	}
	if p.Route.Prefix == "" {
		fault("route: want one to fault; / is all")
	}
	if p.Control.Prefix != "" && (p.ControlShare <= 0 || p.ControlShare > 1) {
		fault("control share: want more than 0 %% and at most 100 %%")
	}
	if p.Control.Prefix != "" && p.Route.covers(p.Control) {
		fault("control: %s is a part of %s, which is faulted: want a route beside it", p.Control, p.Route)
	}
	if len(p.Steps) == 0 || len(p.Steps) > 100 {
		fault("steps: want 1 to 100 of them")
	}
	for _, s := range p.Steps {
		if !(s > 0 && s <= 1) {
			fault("steps: %v %% is none: want more than 0 %% and at most 100 %%", 100*s)
		}
	}
	if p.Step < time.Second || p.Hold < time.Second || p.Step > 24*time.Hour || p.Hold > 24*time.Hour {
		fault("step and hold: want 1 s to a day each")
	}
	if p.Fault.RetryAfter%time.Second != 0 || p.Fault.RetryAfter < 0 || p.Fault.RetryAfter > 0 && p.Fault.Kind != Error && p.Fault.Kind != Limit {
		fault("retry after: want whole seconds, with an error or a limit")
	}
	return errors.Join(faults...)
}

// address is the upstream's host and port.
func (p *Plan) address() string {
	port := p.Upstream.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[p.Upstream.Scheme]
	}
	return net.JoinHostPort(p.Upstream.Hostname(), port)
}

func (p *Plan) allowed() bool { return p.Allowed != "" && p.Allowed == p.address() }

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ValidateListen refuses to listen where the upstream is: each request would come
// back and be passed on again, until no connection is left. A name is taken for all its
// addresses.
func (p *Plan) ValidateListen(ctx context.Context, at net.Addr) error {
	own, ok := at.(*net.TCPAddr)
	if _, port, _ := net.SplitHostPort(p.address()); !ok || port != strconv.Itoa(own.Port) {
		return nil
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, p.Upstream.Hostname())
	if err != nil {
		return fmt.Errorf("upstream: %w", err)
	}
	var here []net.Addr // where a listener without an address listens
	if own.IP.IsUnspecified() {
		if here, err = net.InterfaceAddrs(); err != nil {
			return fmt.Errorf("addresses of this host: %w", err)
		}
	}
	for _, f := range found {
		loops := f.IP.Equal(own.IP) || f.IP.IsUnspecified() || own.IP.IsUnspecified() && f.IP.IsLoopback()
		for _, a := range here {
			n, ok := a.(*net.IPNet)
			loops = loops || ok && n.IP.Equal(f.IP)
		}
		if loops {
			return fmt.Errorf("upstream: %s is where the drill itself listens (%s): every request would come back to it", p.address(), own)
		}
	}
	return nil
}

// Lasts is how long all steps take, with both holds.
func (p *Plan) Lasts() time.Duration { return 2*p.Hold + time.Duration(len(p.Steps))*p.Step }

// at is the step of a moment, counted from the beginning: 0 is the first hold, and
// len(Steps)+1 the last.
func (p *Plan) at(since time.Duration) int {
	if since < p.Hold {
		return 0
	}
	return min(1+int((since-p.Hold)/p.Step), len(p.Steps)+1)
}

// span is when a step begins and ends, counted from the beginning.
func (p *Plan) span(step int) (from, to time.Duration) {
	switch {
	case step == 0:
		return 0, p.Hold
	case step > len(p.Steps):
		return p.Lasts() - p.Hold, p.Lasts()
	}
	from = p.Hold + time.Duration(step-1)*p.Step
	return from, from + p.Step
}

// share is that of the faulted route's requests that are chosen in a step.
func (p *Plan) share(step int) float64 {
	if step == 0 || step > len(p.Steps) {
		return 0
	}
	return p.Steps[step-1]
}
