package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	streamEvery    = time.Second
	heartbeatEvery = 5 * time.Second
	// streamWrite is how long a client may take to accept one event. One that
	// takes longer is dropped: it would only ever fall further behind.
	streamWrite = 5 * time.Second
)

// stream sends a summary each second, as server-sent events named summary, and a
// comment where there is nothing new. A client that comes back gets the newest
// one: there is nothing to catch up with.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	p := parseParams(r.URL.RawQuery)
	snap := s.reader.Snapshot()
	dependency := p.values["dependency"]
	pick(snap, p)
	if err := p.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	if r.Method == http.MethodHead {
		return
	}
	select {
	case <-s.closing:
		writeProblem(w, problem(http.StatusServiceUnavailable, "shutting down"))
		return
	default:
	}
	select {
	case s.streams <- struct{}{}:
		s.metrics.streams.Inc()
		defer func() { s.metrics.streams.Dec(); <-s.streams }()
	default:
		writeProblem(w, problem(http.StatusServiceUnavailable, fmt.Sprintf("all %d streams are taken", cap(s.streams))))
		return
	}

	control := http.NewResponseController(w)
	send := func(event []byte) bool {
		control.SetWriteDeadline(time.Now().Add(streamWrite))
		if _, err := w.Write(event); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	if !send([]byte("retry: 2000\n\n")) {
		return
	}
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	var last *Snapshot
	sent := time.Now()
	for {
		if snap := s.reader.Snapshot(); snap != last {
			event, err := s.rendered.summary(snap, dependency)
			if err != nil {
				s.log.Error("stream ended", "error", err)
				return
			}
			if !send(event) {
				return
			}
			last, sent = snap, time.Now()
		} else if time.Since(sent) >= heartbeatEvery {
			if !send([]byte(": heartbeat\n\n")) {
				return
			}
			sent = time.Now()
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

// rendered keeps the newest events, so that a hundred clients cost one rendering.
type rendered struct {
	mu     sync.Mutex
	snap   *Snapshot
	events map[string][]byte // by dependency, all of them under ""
}

// summary is the event of a snapshot. Nobody changes what it returns.
func (x *rendered) summary(snap *Snapshot, dependency string) ([]byte, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.snap != snap {
		x.snap, x.events = snap, map[string][]byte{}
	}
	if event := x.events[dependency]; event != nil {
		return event, nil
	}
	body, err := json.Marshal(newSummary(snap, snap.named(dependency)))
	if err != nil {
		return nil, fmt.Errorf("print the summary: %w", err)
	}
	event := fmt.Appendf(nil, "event: summary\nid: %d\ndata: %s\n\n", snap.At.UnixMilli(), body)
	x.events[dependency] = event
	return event, nil
}
