package drill

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// recordLine is a record in the auditor's own format, json.
type recordLine struct {
	Time       string  `json:"time"` // when the request began
	TimeIs     string  `json:"time_is"`
	Duration   float64 `json:"duration_ms"`
	Dependency string  `json:"dependency"`
	Method     string  `json:"method"`
	Path       string  `json:"path"` // without its query, which is nobody's business here
	Authority  string  `json:"authority,omitempty"`
	Status     int     `json:"status"` // 0: the connection was reset before any
	Bytes      int64   `json:"bytes_sent"`
	Peer       string  `json:"peer"`
	UserAgent  string  `json:"user_agent,omitempty"`
	Key        string  `json:"question_key,omitempty"`
	RequestID  string  `json:"x_request_id,omitempty"`
	Attempt    int     `json:"attempt,omitempty"`
	RetryAfter *int    `json:"retry_after"` // null: the answer did not say
	Gone       bool    `json:"client_gone"`
	Departure  string  `json:"departure,omitempty"`
	ID         string  `json:"arrival_id"`
	Fault      string  `json:"fault,omitempty"` // that was injected
}

// Departures, by the auditor's names.
const (
	beforeResponse    = "before_response"
	undeliveredAnswer = "undelivered_answer"
	duringResponse    = "during_response"
)

// joined are all values of a header as one, as proxies join them.
func joined(h http.Header, name string) string { return strings.Join(h.Values(name), ", ") }

// oneKey is the key that a header holds, as the auditor takes it: a value that is
// repeated counts once, and of two different values none does.
func oneKey(text string) string {
	key, from, quoted, escaped := "", 0, false, false
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text), text[i] == ',' && !quoted:
			part := strings.TrimSpace(text[from:i])
			if n := len(part); n > 1 && part[0] == '"' && part[n-1] == '"' {
				part = part[1 : n-1]
			}
			if from > 0 && part != key {
				return ""
			}
			key, from = part, i+1
		case escaped:
			escaped = false
		case text[i] == '\\':
			escaped = quoted
		case text[i] == '"':
			quoted = !quoted
		}
	}
	return key
}

func (p *Proxy) line(r *http.Request, e *exchange) []byte {
	l := recordLine{
		Time: e.start.UTC().Format("2006-01-02T15:04:05.000000Z"), TimeIs: "start", Duration: float64(e.end.Sub(e.start).Microseconds()) / 1000,
		Dependency: p.plan.Dependency, Method: r.Method, Path: r.URL.EscapedPath(), Authority: r.Host, Status: e.status, Bytes: e.bytes,
		Peer: r.RemoteAddr, UserAgent: r.UserAgent(), Key: joined(r.Header, p.plan.Key), RequestID: joined(r.Header, "X-Request-Id"),
		Gone: e.gone != "", Departure: e.gone, ID: p.run + "-" + strconv.FormatUint(p.number.Add(1), 10),
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		l.Peer = host
	}
	if n, err := strconv.Atoi(r.Header.Get("X-Envoy-Attempt-Count")); err == nil && n > 0 {
		l.Attempt = n
	}
	if n, err := strconv.Atoi(e.w.Header().Get("Retry-After")); err == nil && e.w.status > 0 {
		l.RetryAfter = &n
	}
	if e.chosen && (p.plan.Fault.Kind != Limit || e.w.Header().Get(injectedHeader) != "") {
		l.Fault = p.plan.Fault.Kind
	}
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}
