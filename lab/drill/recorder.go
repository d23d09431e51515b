package drill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// mostWaiting is how many bytes of records wait for an auditor that does not take them.
const mostWaiting = 64 << 20

// Recorder hands records on: into a writer, to an auditor's POST /ingest, or both.
type Recorder struct {
	w      io.Writer
	url    string
	client Doer

	mu       sync.Mutex
	waiting  bytes.Buffer // to be pushed
	lines    int          // in waiting
	written  int
	pushed   int
	lost     int
	writeErr error
	pushErr  error
}

// NewRecorder writes into w, if it is not nil, and pushes to url, if it is not empty.
func NewRecorder(w io.Writer, url string, client Doer) *Recorder {
	return &Recorder{w: w, url: url, client: client}
}

// Add takes a record, and never waits for an auditor.
func (r *Recorder) Add(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w != nil && r.writeErr == nil {
		if _, r.writeErr = r.w.Write(append(line, '\n')); r.writeErr == nil {
			r.written++
		}
	}
	switch {
	case r.url == "":
	case r.waiting.Len()+len(line) >= mostWaiting:
		r.lost++
	default:
		r.waiting.Write(line)
		r.waiting.WriteByte('\n')
		r.lines++
	}
}

const (
	pushEvery = 500 * time.Millisecond
	pushLast  = 10 * time.Second // for what is left at the end
)

// Run pushes until ctx ends, and then what is left. Nothing is added any more when ctx
// ends.
func (r *Recorder) Run(ctx context.Context) {
	if r.url == "" {
		return
	}
	t := time.NewTicker(pushEvery)
	defer t.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-t.C:
			r.push(ctx)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), pushLast)
	defer cancel()
	r.push(last)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost += r.lines
	r.lines = 0
}

// mostPushed is how many bytes go with one push: less than an auditor takes.
const mostPushed = 4 << 20

// push hands over what waits, and goes on until it is taken or ctx ends.
func (r *Recorder) push(ctx context.Context) {
	for {
		r.mu.Lock()
		body := r.waiting.Bytes()
		if len(body) > mostPushed {
			body = body[:bytes.LastIndexByte(body[:mostPushed], '\n')+1]
		}
		body = bytes.Clone(body)
		r.mu.Unlock()
		if len(body) == 0 {
			return
		}
		again, err := r.send(ctx, body)
		n := bytes.Count(body, []byte{'\n'})
		r.mu.Lock()
		if err != nil {
			r.pushErr = err
		}
		if again == 0 {
			r.waiting.Next(len(body))
			r.lines -= n
			if err == nil {
				r.pushed += n
			} else {
				r.lost += n
			}
		}
		r.mu.Unlock()
		if again == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// send makes one push. again is after what time it is worth another; 0: it was taken,
// or never will be.
func (r *Recorder) send(ctx context.Context, body []byte) (again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	res, err := r.client(req)
	if err != nil {
		return time.Second, err
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	switch {
	case res.StatusCode/100 == 2:
		return 0, nil
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		again = time.Second
		if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
			again = time.Duration(n) * time.Second
		}
		return again, errors.New(res.Status)
	}
	return 0, errors.New(res.Status)
}

// Handed is what became of the records.
type Handed struct {
	Written int `json:"written"`
	Pushed  int `json:"pushed"`
	Lost    int `json:"lost"` // not pushed: the auditor did not take them
}

// Handed is final after Run has ended. The error says why records were lost.
func (r *Recorder) Handed() (Handed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := Handed{r.written, r.pushed, r.lost}
	var errs []error
	if r.writeErr != nil {
		errs = append(errs, fmt.Errorf("write records: %w", r.writeErr))
	}
	if r.lost > 0 {
		errs = append(errs, fmt.Errorf("push records: %d were not taken: %w", r.lost, r.pushErr))
	}
	return h, errors.Join(errs...)
}
