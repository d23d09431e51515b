package ingest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// problem is an answer to a push that was not taken: a problem document of RFC
// 9457, whose detail names what to do.
type problem struct {
	status int
	detail string
	header http.Header // further fields, if any
	after  time.Duration
}

func (p *problem) Error() string { return p.detail }

func problemf(status int, format string, a ...any) *problem {
	return &problem{status: status, detail: fmt.Sprintf(format, a...)}
}

func (p *problem) retryAfter(d time.Duration) *problem {
	p.after = d
	return p
}

// head writes all but the body.
func (p *problem) head(w http.ResponseWriter, contentType string) {
	for k, v := range p.header {
		w.Header()[k] = v
	}
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((p.after+time.Second-1)/time.Second)))
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(p.status)
}

func (p *problem) write(w http.ResponseWriter) {
	p.head(w, "application/problem+json")
	json.NewEncoder(w).Encode(struct { // who is gone is not told
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(p.status), p.status, p.detail})
}
