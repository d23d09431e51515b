package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// What happened, and how three loggers write it down. Nothing here is taken from
// the program under test: keys are minted with crypto/hmac, lines are written by
// hand from the formats' documentation.

// wanted is a request as it happened at the target. Times are Unix milliseconds;
// -1 (or "") is "the request had none".
type wanted struct {
	start, dur    int64
	dep           string
	method, path  string // the path may carry a query
	route         string // what the path belongs to
	peer          string
	agent         string
	status, grpc  int
	bytes         int
	gone          string // kind of departure, "" is none that anybody noticed
	mute          bool   // the logger says nothing about departures here
	attempt, left int
	timeout       int64 // the deadline it carried, from its own start
	retryAfter    int   // seconds the response asked for
	key           string
	minted        minted
	claim         string // value of the claimed scheme's field
	healthcheck   bool
	local         bool   // the proxy turned it away itself
	item          string // what a discriminator may read
	untimed       bool   // the line has no duration
	timeEnd       bool   // the stamp is that of the end, where the format has a choice
}

// minted is the truth about a question key.
type minted struct {
	verdict    string // good, malformed, unknown_originator, forged
	originator string
	at         int64
}

// seen is what one line shows of a request, no more.
type seen struct {
	wanted
	line      string
	file, pos int
	garbage   bool // not a record of the format
}

func (s *seen) end() int64 { return s.start + s.dur }

const (
	goneUndelivered = "undelivered_answer"
	goneDuring      = "during_response"
	goneBefore      = "before_response"
	goneUnknown     = "unknown_point"
)

// mint writes a qk1 key as design and docs describe it.
func mintKey(r *rand.Rand, originator, kid, secret string, at int64) string {
	head := "qk1." + originator + "." + kid + "." + strconv.FormatInt(at, 36) + "." + randomText(r, 12)
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(head))
	return head + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil)[:16])
}

func randomText(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// formatWriter writes requests as one format; write returns what its line shows.
type formatWriter interface {
	source() string // the YAML of its source, without the paths
	write(r *rand.Rand, w wanted) seen
}

func jsonLine(fields map[string]any) string {
	b, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func stampOf(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// jsonLog writes the canonical fields.
type jsonLog struct{ s *scenario }

func (l jsonLog) source() string {
	return "    format: json\n    attempt_scope: " + l.s.scope + "\n"
}

func (l jsonLog) write(r *rand.Rand, w wanted) seen {
	f := map[string]any{"method": w.method, "path": w.path, "service": w.dep, "status": w.status, "peer": w.peer}
	if r.IntN(40) == 0 && w.dur < 5000 && w.timeEnd { // a logger that measures nothing: start and end are one
		w.start, w.dur, w.untimed = w.start+w.dur, 0, true
	} else {
		f["duration_ms"] = w.dur
	}
	stamp := w.start
	f["time_is"] = "start"
	if w.timeEnd {
		stamp, f["time_is"] = w.start+w.dur, "end"
	}
	if f["time"] = stampOf(stamp); r.IntN(2) == 0 {
		f["time"] = stamp
	}
	switch {
	case w.mute: // neither client_gone nor departure: such a record proves nothing
		w.gone = ""
		f["bytes_sent"] = w.bytes
	case w.gone == "":
		f["client_gone"], f["bytes_sent"] = false, w.bytes
	case r.IntN(3) == 0 && w.gone != goneBefore:
		f["departure"], f["bytes_sent"] = w.gone, w.bytes
	default:
		f["client_gone"] = true
		switch w.gone {
		case goneDuring:
			w.bytes = max(w.bytes, 1)
			f["bytes_sent"] = w.bytes
		case goneUndelivered:
			f["bytes_sent"] = 0
			if w.status == 0 || w.status == 499 {
				w.status = 200
				f["status"] = 200
			}
		case goneBefore:
			w.status = []int{0, 499}[r.IntN(2)]
			w.grpc = -1
			f["status"], f["bytes_sent"] = w.status, 0
		case goneUnknown:
			if w.status == 0 || w.status == 499 {
				w.status = 200
				f["status"] = 200
			}
		}
	}
	putNumber(f, "grpc_status", w.grpc)
	putNumber(f, "attempt", w.attempt)
	putNumber(f, "attempts_left", w.left)
	putNumber(f, "retry_after", w.retryAfter)
	if w.timeout >= 0 {
		if r.IntN(2) == 0 {
			f["grpc_timeout"] = fmt.Sprintf("%dm", w.timeout)
		} else {
			f["x_envoy_expected_rq_timeout_ms"] = w.timeout
		}
	}
	if w.key != "" || r.IntN(2) == 0 {
		f["question_key"] = w.key
	}
	if w.claim != "" {
		f[l.s.claimField] = w.claim
	}
	if w.agent != "" {
		f["user_agent"] = w.agent
	}
	if w.item != "" {
		f["item"] = w.item
	}
	return seen{wanted: w, line: jsonLine(f)}
}

func putNumber(f map[string]any, name string, v int) {
	if v >= 0 {
		f[name] = v
	}
}

// envoyLog writes Envoy's typed JSON: numbers are numbers, headers are strings,
// unset is null, no flags are "-".
type envoyLog struct{ s *scenario }

func (l envoyLog) source() string {
	f := `    format: envoy-json
    attempt_scope: hop
    attempt_trusted: ` + strconv.FormatBool(l.s.trusted) + `
    fields: {question_key: qk, attempt: x_attempt, attempts_left: x_left, retry_after: ra, grpc_timeout: x_timeout, peer: san, grpc_status: grpc`
	if l.s.claimField == "idempotency_key" {
		f += ", idempotency_key: idempotency_key"
	}
	return f + "}\n"
}

func (l envoyLog) write(r *rand.Rand, w wanted) seen {
	flags := "-"
	w.mute = false
	departed := []string{"DC", "DR"}[r.IntN(2)]
	switch w.gone {
	case goneBefore:
		w.status, w.bytes, w.grpc = 0, 0, -1
		switch r.IntN(6) {
		case 0: // Envoy before 1.30 logged HTTP/2 resets so
		case 1:
			w.status, flags = 100, "DC" // cancelled while it waited to send its body
		default:
			flags = departed
		}
	case goneUndelivered:
		flags, w.bytes = departed, 0
	case goneDuring:
		flags, w.bytes = departed, max(w.bytes, 1)
	case goneUnknown:
		w.gone = "" // the format cannot say it
	}
	if w.gone != goneBefore && (w.status == 0 || w.status == 499) {
		w.status = 200
	}
	if w.gone == "" {
		switch {
		case w.status == 503:
			flags = []string{"-", "UO", "UC", "UF,URX"}[r.IntN(4)]
		case w.status == 429:
			flags = []string{"-", "RL"}[r.IntN(2)]
			w.local = flags == "RL"
		}
	}
	text := func(v int) any {
		if v < 0 {
			return nil
		}
		return strconv.Itoa(v)
	}
	f := map[string]any{
		"start_time": stampOf(w.start), "duration": w.dur, "method": w.method, "path": w.path,
		"response_code": w.status, "response_flags": flags, "bytes_sent": w.bytes,
		"upstream_cluster": w.dep, "san": w.peer, "x_attempt": text(w.attempt), "x_left": text(w.left),
		"ra": text(w.retryAfter), "x_timeout": nil, "grpc": nil, "qk": nil, "user_agent": nil,
	}
	if w.timeout >= 0 {
		f["x_timeout"] = fmt.Sprintf("%dm", w.timeout)
	}
	if w.grpc >= 0 {
		f["grpc"] = w.grpc
	}
	if w.key != "" {
		f["qk"] = w.key
	}
	if w.claim != "" {
		f[l.s.claimField] = w.claim
	} else if l.s.claimField != "" {
		f[l.s.claimField] = nil
	}
	if w.agent != "" {
		f["user_agent"] = w.agent
	}
	if w.item != "" {
		f["item"] = w.item
	}
	return seen{wanted: w, line: jsonLine(f)}
}

// nginxLog writes nginx's JSON with escape=json: $msec is the end, what is missing
// is empty.
type nginxLog struct{ s *scenario }

func (l nginxLog) source() string {
	f := `    format: nginx-json
    attempt_scope: ` + l.s.scope + `
    fields: {question_key: http_question_key, attempt: http_x_attempt, attempts_left: http_x_left, retry_after: sent_http_retry_after, x_envoy_expected_rq_timeout_ms: http_x_timeout, peer: remote_addr`
	if l.s.claimField == "idempotency_key" {
		f += ", idempotency_key: http_idempotency_key"
	}
	return f + "}\n"
}

func (l nginxLog) write(r *rand.Rand, w wanted) seen {
	w.mute, w.grpc, w.dep = false, -1, l.s.dependency
	completion, upstream := "OK", ""
	switch w.gone {
	case goneBefore:
		completion, w.bytes = "", 0
		switch r.IntN(5) {
		case 0: // cut off while it was still sending its request
			w.status, upstream = 400, ""
		case 1: // the second try had no answer yet
			w.status, upstream = 499, "504, -"
		default:
			w.status, upstream = 499, "-"
		}
	case goneUndelivered:
		completion, w.bytes = "", 0
		if r.IntN(2) == 0 {
			w.status, upstream = 499, "200"
		} else {
			w.status, upstream = 200, "200"
		}
	case goneDuring:
		completion, w.bytes, w.status, upstream = "", max(w.bytes, 1), 200, "200"
	default:
		w.gone = ""
		switch {
		case w.status == 0:
			w.status = 200
		case w.status == 499 || r.IntN(100) == 0: // the upstream's own 499, relayed
			w.status = 499
		}
		upstream = strconv.Itoa(w.status)
		if r.IntN(10) == 0 {
			upstream = "502, " + upstream
		}
	}
	text := func(v int) any {
		if v < 0 {
			return ""
		}
		return strconv.Itoa(v)
	}
	addr := peerAddr[w.peer]
	f := map[string]any{
		"remote_addr": addr, "request_method": w.method, "request_uri": w.path, "status": w.status,
		"bytes_sent": w.bytes, "request_completion": completion, "upstream_status": upstream,
		"http_question_key": w.key, "http_x_attempt": text(w.attempt), "http_x_left": text(w.left),
		"sent_http_retry_after": text(w.retryAfter), "http_x_timeout": text(int(w.timeout)),
		"http_user_agent": w.agent, "item": w.item,
	}
	if l.s.claimField == "idempotency_key" {
		f["http_idempotency_key"] = w.claim
	} else if l.s.claimField != "" {
		f[l.s.claimField] = w.claim
	}
	b := jsonLine(f)
	// msec and request_time are numbers with three decimals
	end := w.start + w.dur
	b = strings.TrimSuffix(b, "}") + fmt.Sprintf(`,"msec":%d.%03d,"request_time":%d.%03d}`, end/1000, end%1000, w.dur/1000, w.dur%1000)
	return seen{wanted: w, line: b}
}

// peerAddr is where each workload calls from; the configuration maps it back.
var peerAddr = map[string]string{"bff": "10.0.0.1", "gateway": "10.0.0.2", "batch": "10.0.0.3", "mesh": "10.0.0.4"}
