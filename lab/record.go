package lab

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// departure is what a record says of the caller.
type departure uint8

const (
	stays departure = iota
	undelivered
	during
	before
	unplaced // nobody knows when; no fact is, only what a format leaves of one
)

// fact is one arrival as a log can show it: to the millisecond.
type fact struct {
	start, end int64 // Unix ms
	key        uint64
	status     int16
	carried    int16
	retryAfter int32
	attempt    uint8
	departure  departure
}

// record is a fact with what else stands in a line.
type record struct {
	fact
	route *Route
	peer  string // address
	item  int32
	bytes int
	// What headers say; nil: there is none.
	keyText, requestID, leftText, waitText []byte

	n uint64 // numbers the line
}

// logbook writes the log.
type logbook struct {
	w     io.Writer
	e     io.Writer // of events
	last  []byte    // event
	line  func(b []byte, r *record) []byte
	sight sight // of the format
	buf   []byte
	r     record // that is written
	left  [8]byte
	wait  [16]byte // room for texts of it
	n     uint64
	err   error
}

func newLogbook(o Output) (*logbook, error) {
	line := formatNamed(o.Format).line
	if line == nil && o.Log != nil {
		return nil, fmt.Errorf("format %q is not written here: %v", o.Format, Formats())
	}
	l := &logbook{w: o.Log, e: o.Events, line: line}
	if o.Log != nil {
		l.sight = sights[o.Format]
	}
	return l, nil
}

// event writes what whoever asked would note of a question when all is over: how
// many requests were made of it, and what came of it.
func (l *logbook) event(m *model, q *question) {
	if l.e == nil || l.err != nil {
		return
	}
	b := append(l.last[:0], `{"time":"`...)
	b = rfc3339(b, m.s.begins.UnixMilli()+q.asked/1e6)
	b = append(b, `","key":`...)
	b = quotedOrNull(b, m.keyOf(q))
	b = text(b, `,"route":"`, m.routes[m.clients[q.client].route].template())
	b = number(b, `,"attempts":`, int64(q.sent))
	b = text(b, `,"outcome":"`, q.result.String())
	b = append(b, "}\n"...)
	l.last = b
	_, l.err = l.e.Write(b)
}

// keyOf is the text of a question's own key, nil if it has none.
func (m *model) keyOf(q *question) []byte {
	if len(q.text) > 0 {
		return q.text
	}
	s := m.book.signers[q.client]
	switch m.clients[q.client].Key {
	case "qk1":
		q.text = s.qk1(q.text, q.key, m.s.begins.UnixMilli()+q.minted/1e6, false)
	case "x-request-id":
		q.text = s.uuid(q.text, q.key)
	default:
		return nil
	}
	return q.text
}

func (l *logbook) write(r *record) {
	if l.w == nil {
		return
	}
	l.n++
	r.n = l.n
	l.buf = append(l.line(l.buf, r), '\n')
	if len(l.buf) > 1<<16 {
		l.flush()
	}
}

func (l *logbook) flush() error {
	if l.w != nil && l.err == nil && len(l.buf) > 0 {
		_, l.err = l.w.Write(l.buf)
	}
	l.buf = l.buf[:0]
	return l.err
}

// record notes an arrival that is over, and writes its line.
func (m *model) record(c *call, d departure) {
	q := &m.questions[c.question]
	cl := &m.clients[q.client]
	rt := &m.routes[cl.route]
	begins := m.s.begins.UnixMilli()
	f := fact{start: begins + c.start/1e6, end: begins + m.now/1e6, key: c.key, status: c.status, carried: c.carried,
		retryAfter: c.retryIn, attempt: c.attempt, departure: d}
	if d == before {
		f.status, f.retryAfter = 0, 0
	}
	q.facts = append(q.facts, f)
	m.book.recorded(m, cl.route, &f)
	if m.log.w == nil {
		return
	}
	r := &m.log.r
	*r = record{fact: f, route: rt.Route, peer: rt.peer, item: q.item}
	if d != before && d != undelivered {
		r.bytes = 100 + int(q.id%900)
		if d == during {
			r.bytes /= 2
		}
	}
	s := m.book.signers[q.client]
	switch {
	case cl.Key == "none" || c.key == keyDropped:
	case cl.Key == "x-request-id" && c.key == 0:
		r.requestID = m.keyOf(q)
	case cl.Key == "x-request-id":
		r.requestID = s.uuid(m.book.text[:0], c.key|1<<63)
	case c.key == 0:
		r.keyText = m.keyOf(q)
	default:
		r.keyText = s.qk1(m.book.text[:0], c.key|1<<63, f.start, true)
	}
	if f.carried >= 0 {
		r.leftText = strconv.AppendInt(m.log.left[:0], int64(f.carried), 10)
	}
	if f.retryAfter > 0 {
		r.waitText = strconv.AppendInt(m.log.wait[:0], int64(f.retryAfter), 10)
	}
	m.log.write(r)
}

// address is that of a layer, as the target sees it.
func address(layer int) string { return "10.77.0." + strconv.Itoa(layer+1) }

// rfc3339 appends a moment in ms.
func rfc3339(b []byte, ms int64) []byte {
	day, of := ms/86_400_000, ms%86_400_000
	y, m, d := time.UnixMilli(day * 86_400_000).UTC().Date()
	b = digits(b, y, 4)
	b = digits(append(b, '-'), int(m), 2)
	b = digits(append(b, '-'), d, 2)
	b = digits(append(b, 'T'), int(of/3_600_000), 2)
	b = digits(append(b, ':'), int(of/60_000%60), 2)
	b = digits(append(b, ':'), int(of/1000%60), 2)
	b = digits(append(b, '.'), int(of%1000), 3)
	return append(b, 'Z')
}

// digits appends the last n digits of a number.
func digits(b []byte, v, n int) []byte {
	b = append(b, "0000"[:n]...)
	for i := len(b) - 1; n > 0; i, n = i-1, n-1 {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return b
}

// code is the status as most loggers write it: 499 of a caller that left before any.
func (r *record) code() int64 {
	if r.departure == before {
		return 499
	}
	return int64(r.status)
}

// port is the caller's: requests at one moment have connections of their own.
func (r *record) port() int64 { return 32768 + int64(r.n%28000) }

// path appends the request's path.
func (r *record) path(b []byte) []byte {
	b = append(b, r.route.Path...)
	return strconv.AppendInt(b, int64(r.item), 10)
}

// text appends a member whose value is a string without anything to escape.
func text(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, value...)
	return append(b, '"')
}

func number(b []byte, name string, v int64) []byte {
	b = append(b, name...)
	return strconv.AppendInt(b, v, 10)
}

// jsonLine writes the canonical fields, as a service's own logger would.
func jsonLine(b []byte, r *record) []byte {
	b = append(b, `{"time":"`...)
	b = rfc3339(b, r.start)
	b = number(b, `","time_is":"start","duration_ms":`, r.end-r.start)
	b = text(b, `,"dependency":"`, r.route.Target)
	b = text(b, `,"method":"`, r.route.Method)
	b = append(b, `,"path":"`...)
	b = r.path(b)
	b = number(b, `","status":`, r.code())
	b = number(b, `,"bytes_sent":`, int64(r.bytes))
	b = text(b, `,"peer":"`, r.peer)
	if r.keyText != nil {
		b = append(b, `,"question_key":"`...)
		b = append(append(b, r.keyText...), '"')
	}
	if r.requestID != nil {
		b = append(b, `,"x_request_id":"`...)
		b = append(append(b, r.requestID...), '"')
	}
	b = number(b, `,"attempt":`, int64(r.attempt))
	if r.leftText != nil {
		b = append(append(b, `,"attempts_left":`...), r.leftText...)
	}
	b = append(b, `,"retry_after":`...)
	if r.waitText != nil {
		b = append(b, r.waitText...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"client_gone":`...)
	b = strconv.AppendBool(b, r.departure != stays)
	if r.departure != stays {
		b = text(b, `,"departure":"`, departures[r.departure])
	}
	b = number(b, `,"arrival_id":"`, int64(r.n))
	return append(b, `"}`...)
}

// nginxLine writes what nginx does by the log_format of docs/formats.md, with what it
// was seen to write of callers that left: 499 and no upstream status before the
// response; the upstream's status, no completion and no body where the answer was
// there (a location that goes on without its caller, as a cache does); part of the
// body in between.
func nginxLine(b []byte, r *record) []byte {
	b = append(b, `{"msec":"`...)
	b = seconds(b, r.end)
	b = append(b, `","request_time":"`...)
	b = seconds(b, r.end-r.start)
	b = text(b, `","remote_addr":"`, r.peer)
	b = text(b, `,"dependency":"`, r.route.Target)
	b = text(b, `,"request_method":"`, r.route.Method)
	b = append(b, `,"request_uri":"`...)
	b = r.path(b)
	completion, header := r.sentByNginx()
	b = number(b, `","status":"`, r.code())
	b = number(b, `","bytes_sent":"`, int64(r.bytes+header))
	b = number(b, `","body_bytes_sent":"`, int64(r.bytes))
	b = text(b, `","request_completion":"`, completion)
	b = append(b, `,"upstream_addr":"127.0.0.1:9000","upstream_status":"`...)
	if r.departure == before {
		b = append(b, '-')
	} else {
		b = strconv.AppendInt(b, int64(r.status), 10)
	}
	b = append(b, `","upstream_response_time":"`...)
	b = seconds(b, r.end-r.start)
	b = append(b, `","http_question_key":"`...)
	b = append(b, r.keyText...)
	b = append(b, `","http_x_request_id":"`...)
	b = append(b, r.requestID...)
	b = number(b, `","http_x_envoy_attempt_count":"`, int64(r.attempt))
	b = append(append(b, `","http_attempts_left":"`...), r.leftText...)
	b = append(append(b, `","sent_http_retry_after":"`...), r.waitText...)
	b = append(b, `","request_id":"`...)
	b = hex32(b, r.n)
	return append(b, `","http_user_agent":"lab"}`...)
}

// sentByNginx is its request_completion, and how many bytes of a header it sent.
func (r *record) sentByNginx() (completion string, header int) {
	switch r.departure {
	case stays:
		return "OK", 180
	case during:
		return "", 180
	}
	return "", 0
}

// envoyLine writes what Envoy does by the json_format of docs/formats.md, on the
// inbound side: code 0 with DC before the response, the code with DC after it was
// there.
func envoyLine(b []byte, r *record) []byte { return envoyMembers(b, r, r.route.Target) }

// istioLine writes what a sidecar does by the same format, on the target's side.
func istioLine(b []byte, r *record) []byte { return envoyMembers(b, r, "inbound|8080||") }

// envoyMembers writes a line of Envoy's.
func envoyMembers(b []byte, r *record, cluster string) []byte {
	b = append(b, `{"start_time":"`...)
	b = rfc3339(b, r.start)
	b = text(b, `","method":"`, r.route.Method)
	b = append(b, `,"path":"`...)
	b = r.path(b)
	flags, details := r.saidByEnvoy()
	b = number(b, `","response_code":`, int64(r.status))
	b = text(b, `,"response_flags":"`, flags)
	b = text(b, `,"response_code_details":"`, details)
	b = number(b, `,"bytes_sent":`, int64(r.bytes))
	b = number(b, `,"duration":`, r.end-r.start)
	b = text(b, `,"upstream_request_attempt_count":1,"upstream_cluster":"`, cluster)
	b = text(b, `,"dependency":"`, r.route.Target)
	b = number(b, `,"upstream_local_address":"127.0.0.1:`, r.port())
	b = text(b, `","downstream_direct_remote_address":"`, r.peer)
	b = append(b, `,"question_key":`...)
	b = quotedOrNull(b, r.keyText)
	b = append(b, `,"request_id":`...)
	b = quotedOrNull(b, r.requestID)
	b = number(b, `,"x_envoy_attempt_count":"`, int64(r.attempt))
	b = quotedOrNull(append(b, `","attempts_left":`...), r.leftText)
	b = quotedOrNull(append(b, `,"retry_after":`...), r.waitText)
	return append(b, `,"user_agent":"lab","access_log_type":"DownstreamEnd"}`...)
}

// saidByEnvoy are its response flags, and the details of its response code.
func (r *record) saidByEnvoy() (flags, details string) {
	switch r.departure {
	case stays:
		return "-", "via_upstream"
	case before:
		return "DC", "downstream_remote_disconnect"
	}
	return "DC", "via_upstream"
}

func quotedOrNull(b, v []byte) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	b = append(b, '"')
	return append(append(b, v...), '"')
}

// decimal is a number in digits.
func decimal(v int64) []byte { return strconv.AppendInt(nil, v, 10) }

// seconds appends ms as seconds with three decimals.
func seconds(b []byte, ms int64) []byte {
	b = strconv.AppendInt(b, ms/1000, 10)
	b = append(b, '.')
	return append(b, byte('0'+ms/100%10), byte('0'+ms/10%10), byte('0'+ms%10))
}

// hex32 appends a number as nginx writes its request ids.
func hex32(b []byte, n uint64) []byte {
	for _, x := range [...]uint64{mix(n), mix(^n)} {
		at := len(b)
		b = strconv.AppendUint(b, x, 16)
		if short := 16 - (len(b) - at); short > 0 {
			b = slices.Insert(b, at, []byte("0000000000000000")[:short]...)
		}
	}
	return b
}
