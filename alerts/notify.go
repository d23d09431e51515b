package alerts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Sinks say who is told. Every URL may hold a secret, so only Shown is ever written
// anywhere.
type Sinks struct {
	// Alertmanagers are all peers of one cluster, each of which is told.
	Alertmanagers []Endpoint
	Webhooks      []Webhook
}

// Endpoint is a URL, and what of it may be shown.
type Endpoint struct{ URL, Shown string }

// Webhook is a URL that gets each change.
type Webhook struct {
	Endpoint
	// Secret signs what is sent; empty: it is not signed.
	Secret string
}

// Sent counts what became of notifications to one sink since the process began:
// requests to Alertmanagers, changes to all others.
type Sent struct {
	// Sink is alertmanagers[N] or webhooks[N], as in the configuration, or log.
	Sink string
	// Taken were, Failed is tries that were not, and Dropped was given up or found no
	// room.
	Taken, Failed, Dropped uint64
	// Error is why the latest try failed; empty where it did not.
	Error string
}

// Notifier tells sinks, each by itself.
type Notifier struct {
	log    *slog.Logger
	client *http.Client

	mu      sync.Mutex
	want    []*runner          // what the configuration has
	counts  map[sinkID]*counts // of all that there were
	current []Alert            // the newest
	wake    chan struct{}
}

// NewNotifier returns a notifier that tells only the log. It is inert until Run.
func NewNotifier(log *slog.Logger) *Notifier {
	n := &Notifier{
		log: log.With("component", "alerts"), wake: make(chan struct{}, 1), counts: map[sinkID]*counts{},
		// A redirect is not followed: a signed text is for whoever was named.
		client: &http.Client{Transport: transport(), Timeout: sendTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	n.Configure(Sinks{})
	return n
}

// sendTimeout is how long one sink may take for one request.
const sendTimeout = 10 * time.Second

// counts are those of one sink, and what it is called, which changes with its place.
type counts struct {
	name, shown            atomic.Pointer[string]
	taken, failed, dropped atomic.Uint64
	err                    atomic.Pointer[string]
}

// logger says whose sink it is that something is logged of.
func (c *counts) logger(log *slog.Logger) *slog.Logger {
	return log.With("sink", *c.name.Load(), "at", *c.shown.Load())
}

func (c *counts) ended(err error) {
	text := ""
	if err != nil {
		c.failed.Add(1)
		text = err.Error()
	} else {
		c.taken.Add(1)
	}
	c.err.Store(&text)
}

// sink is one that is told. tell does not wait, and is not called by two at once;
// now are all that it should know of, changed what is new among it.
type sink interface {
	run(ctx context.Context)
	tell(now, changed []Alert)
}

// runner is a sink of the configuration.
type runner struct {
	sink
	counts *counts
	id     sinkID
}

// sinkID is equal for a sink that may go on: it is the sink itself, wherever in the
// configuration it stands. It holds no secret, as it outlives the sink.
type sinkID struct {
	sum [sha256.Size]byte
	nth int // of those that are alike
}

func idOf(kind string, of any) sinkID {
	return sinkID{sum: sha256.Sum256(fmt.Appendf(nil, "%s %#v", kind, of))}
}

// Configure changes who is told. A sink that was there goes on with what it has still
// to tell; one that is not any more tells nothing more.
func (n *Notifier) Configure(s Sinks) {
	n.mu.Lock()
	defer n.mu.Unlock()
	had := n.want
	n.want = nil
	add := func(id sinkID, name, shown string, begin func(*counts) sink) {
		for slices.ContainsFunc(n.want, func(r *runner) bool { return r.id == id }) {
			id.nth++
		}
		c := n.counts[id]
		if c == nil {
			c = new(counts)
			n.counts[id] = c
		}
		c.name.Store(&name)
		c.shown.Store(&shown)
		if i := slices.IndexFunc(had, func(r *runner) bool { return r.id == id }); i >= 0 {
			n.want = append(n.want, had[i])
			return
		}
		n.want = append(n.want, &runner{sink: begin(c), counts: c, id: id})
	}
	add(idOf("log", nil), "log", "", func(c *counts) sink { return newLogSink(n.log, c) })
	for i, e := range s.Alertmanagers {
		add(idOf("alertmanager", e), indexed("alertmanagers", i), e.Shown, func(c *counts) sink { return newAlertmanager(e, n.client, n.log, c, n.current) })
	}
	for i, w := range s.Webhooks {
		add(idOf("webhook", w), indexed("webhooks", i), w.Shown, func(c *counts) sink { return newWebhook(w, n.client, n.log, c, n.current) })
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Run tells until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	running := map[*runner]func(){} // each with what stops it, and waits for that
	for {
		n.mu.Lock()
		want := slices.Clone(n.want)
		n.mu.Unlock()
		for _, r := range want {
			if running[r] == nil {
				own, cancel := context.WithCancel(ctx)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					r.run(own)
				}()
				running[r] = func() { cancel(); <-ended }
			}
		}
		for r, stop := range running {
			if !slices.Contains(want, r) {
				stop()
				delete(running, r)
			}
		}
		select {
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			return
		case <-n.wake:
		}
	}
}

// Tell hands on what is new and what there is. It does not wait.
func (n *Notifier) Tell(now, changed []Alert) {
	told := slices.DeleteFunc(slices.Clone(now), func(a Alert) bool { return !a.Told })
	n.mu.Lock()
	defer n.mu.Unlock()
	n.current = told
	for _, r := range n.want {
		r.tell(told, changed)
	}
}

// Sent counts what became of notifications, by sink of the configuration. Counts are
// those of the sink, wherever in the configuration it stands; one that comes back counts
// on.
func (n *Notifier) Sent() []Sent {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]Sent, 0, len(n.want))
	for _, r := range n.want {
		c := r.counts
		s := Sent{Sink: *c.name.Load(), Taken: c.taken.Load(), Failed: c.failed.Load(), Dropped: c.dropped.Load()}
		if err := c.err.Load(); err != nil {
			s.Error = *err
		}
		out = append(out, s)
	}
	return out
}

// logSink writes each change into the log, which may be slow as well.
type logSink struct {
	log     *slog.Logger
	counts  *counts
	changes chan Alert
}

// mostWaiting is how many changes wait for one sink.
const mostWaiting = 1000

func newLogSink(log *slog.Logger, c *counts) *logSink {
	return &logSink{log, c, make(chan Alert, mostWaiting)}
}

func (s *logSink) tell(_, changed []Alert) {
	for _, c := range changed {
		select {
		case s.changes <- c:
		default:
			s.counts.dropped.Add(1)
		}
	}
}

func (s *logSink) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-s.changes:
			args := []any{"alert", c.Name}
			for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
				args = append(args, k, c.Labels[k])
			}
			// What is wrong is the dependency, and not the daemon whose log this is.
			if c.State == Resolved {
				s.log.Info("an alert is resolved", args...)
			} else {
				s.log.Info("an alert fires: "+c.Summary, append(args, "since", c.Since, "runbook", c.Runbook())...)
			}
			s.counts.ended(nil)
		}
	}
}
