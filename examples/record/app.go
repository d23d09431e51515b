package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// app is the application behind both targets. How it treats a request depends
// on the question's own phase and try, never on the clock, so that each
// recording has the same structure.
type app struct {
	book     *book
	servers  []*http.Server
	inFlight atomic.Int64
}

func newApp(b *book) *app { return &app{book: b} }

func (a *app) listen(dep string) (port int, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("start application: %w", err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.inFlight.Add(1)
		defer a.inFlight.Add(-1)
		a.serve(dep, w, r)
	})}
	a.servers = append(a.servers, srv)
	go srv.Serve(l)
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (a *app) close() {
	for _, s := range a.servers {
		s.Close()
	}
}

// drain waits until no request is being served.
func (a *app) drain(limit time.Duration) error {
	for end := time.Now().Add(limit); a.inFlight.Load() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("drain application: requests still running")
		}
	}
	return nil
}

func (a *app) serve(dep string, w http.ResponseWriter, r *http.Request) {
	// The body is read whole first: only then does the server notice that the
	// connection went away.
	_, brokenOff := io.Copy(io.Discard, r.Body)
	index, err := strconv.Atoi(r.Header.Get("X-Example-Question"))
	if err != nil {
		index = -1
	}
	in := &arrival{
		dep: dep, record: r.Header.Get("X-Example-Record"), question: index,
		key: r.Header.Get("Question-Key"), path: r.URL.Path, method: r.Method, rawQuery: r.URL.RawQuery, ua: r.UserAgent(),
		requestID: r.Header.Get("X-Request-Id"), attempt: r.Header.Get("X-Envoy-Attempt-Count"),
		timeoutRetry: r.Header.Get("X-Envoy-Is-Timeout-Retry"), start: time.Now(),
	}
	q, try := a.book.arrive(in)
	status, retryAfter, cut := 0, 0, cutBefore
	if brokenOff == nil {
		status, retryAfter, cut = answer(r.Context(), w, r.URL.Path, q, try)
	}
	a.book.mu.Lock()
	in.end, in.status, in.retryAfter, in.cut = time.Now(), status, retryAfter, cut
	a.book.mu.Unlock()
}

// answer serves one try and reports what was sent, or how far it had come when
// its reader was gone.
func answer(ctx context.Context, w http.ResponseWriter, path string, q *question, try int) (status, retryAfter int, cut string) {
	switch {
	case q == nil: // health check
	case firstSegment(path) == "reports", firstSegment(path) == "stream", firstSegment(path) == "exports":
		// Headers at once, then eight pieces over 800 ms. Where nginx buffers,
		// a known length makes it hold back even the headers (exports), and
		// pieces of unknown length do not (reports).
		if firstSegment(path) == "exports" {
			w.Header().Set("Content-Length", "800")
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusOK)
		for range 8 {
			fmt.Fprintf(w, "%99s\n", "piece of an answer")
			w.(http.Flusher).Flush()
			if !pause(ctx, 100*time.Millisecond) {
				return http.StatusOK, 0, cutDuring
			}
		}
		return http.StatusOK, 0, ""
	case firstSegment(path) == "late":
		if !pause(ctx, 700*time.Millisecond) {
			return 0, 0, cutBefore
		}
	case q.phase == "slow" && try <= q.fails:
		// Three times as long as the edge waits for one try.
		if !pause(ctx, 900*time.Millisecond) {
			return 0, 0, cutBefore
		}
	case q.phase == "refusing" && try <= q.fails:
		retryAfter = 1 + q.index%2
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		http.Error(w, "too busy", http.StatusServiceUnavailable)
		return http.StatusServiceUnavailable, retryAfter, ""
	default:
		if !pause(ctx, time.Duration(5+q.index%20)*time.Millisecond) {
			return 0, 0, cutBefore
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintln(w, `{"ok":true}`)
	return http.StatusOK, 0, ""
}

// pause reports whether the reader was still there at its end.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}
