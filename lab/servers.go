package lab

import (
	"slices"
	"strconv"
	"time"
)

// length is the Content-Length of an answer, and sent how much of it was handed on.
func (r *record) length() int64 {
	if r.departure == during {
		return int64(2 * r.bytes)
	}
	if r.departure == undelivered {
		return 100 + int64(r.n%900)
	}
	return int64(r.bytes)
}

// members are quoted values in a list of a JSON object, those that are there.
type members struct {
	b     []byte
	open  string // before a name
	shut  string // between name and value
	end   string // after a value
	first bool
}

func (m *members) put(name string, v []byte) {
	if v == nil {
		return
	}
	if !m.first {
		m.b = append(m.b, ',')
	}
	m.first = false
	m.b = append(m.b, m.open...)
	m.b = append(m.b, name...)
	m.b = append(m.b, m.shut...)
	m.b = append(m.b, v...)
	m.b = append(m.b, m.end...)
}

func (m *members) number(name string, v int64, is bool) {
	var digits [20]byte
	if is {
		m.put(name, strconv.AppendInt(digits[:0], v, 10))
	}
}

// request puts the headers of the request that are looked at.
func (m *members) request(r *record) {
	m.put("Question-Key", r.keyText)
	m.put("X-Request-Id", r.requestID)
	m.number("X-Envoy-Attempt-Count", int64(r.attempt), true)
	m.put("Attempts-Left", r.leftText)
}

// caddyLine writes what Caddy does, with duration_format ms, of answers that it makes
// itself, whose length is always announced: 499 before the answer, and later less sent
// than was announced. (A duration of 0 s is how it writes one that broke off.)
func caddyLine(b []byte, r *record) []byte {
	b = append(b, `{"level":"info","ts":`...)
	b = seconds(b, r.end)
	b = text(b, `,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"`, r.peer)
	b = number(b, `,"remote_port":"`, r.port())
	b = text(b, `","client_ip":"`, r.peer)
	b = text(b, `,"proto":"HTTP/1.1","method":"`, r.route.Method)
	b = text(b, `,"host":"`, r.route.Target)
	b = append(b, `,"uri":"`...)
	b = r.path(b)
	m := members{b: append(b, `","headers":{`...), open: `"`, shut: `":["`, end: `"]`, first: true}
	m.request(r)
	b = number(m.b, `}},"bytes_read":0,"user_id":"","duration":`, r.end-r.start)
	b = number(b, `,"size":`, int64(r.bytes))
	b = number(b, `,"status":`, r.code())
	m = members{b: append(b, `,"resp_headers":{`...), open: `"`, shut: `":["`, end: `"]`, first: true}
	m.put("Server", []byte("Caddy"))
	m.number("Content-Length", r.length(), r.departure != before)
	m.put("Retry-After", r.waitText)
	return append(m.b, `}}`...)
}

// traefikLine writes what Traefik does by the accessLog of docs/formats.md: to who left
// before the answer its own 21 bytes, and later less than the Content-Length.
func traefikLine(b []byte, r *record) []byte {
	size, origin := int64(r.bytes), int64(r.status)
	if r.departure == before {
		size, origin = 21, 499
	}
	b = append(b, `{"ClientAddr":"`...)
	b = append(b, r.peer...)
	b = number(b, ":", r.port())
	b = text(b, `","ClientHost":"`, r.peer)
	b = number(b, `,"DownstreamContentSize":`, size)
	b = number(b, `,"DownstreamStatus":`, r.code())
	b = number(b, `,"Duration":`, (r.end-r.start)*1e6)
	b = number(b, `,"OriginContentSize":`, size)
	b = number(b, `,"OriginDuration":`, (r.end-r.start)*1e6)
	b = number(b, `,"OriginStatus":`, origin)
	b = number(b, `,"Overhead":0,"RequestCount":`, int64(r.n))
	b = text(b, `,"RequestMethod":"`, r.route.Method)
	b = append(b, `,"RequestPath":"`...)
	b = r.path(b)
	b = text(b, `","RequestProtocol":"HTTP/1.1","RetryAttempts":0,"RouterName":"lab@file","ServiceAddr":"10.77.1.1:8080","ServiceName":"`, r.route.Target)
	b = append(b, `,"StartUTC":"`...)
	b = rfc3339(b, r.start)
	m := members{b: append(b, `",`...), open: `"request_`, shut: `":"`, end: `"`, first: true}
	m.request(r)
	m.open = `"downstream_`
	m.number("Content-Length", r.length(), r.departure != before)
	m.put("Content-Type", []byte("text/plain"))
	m.put("Retry-After", r.waitText)
	b = append(m.b, `,"level":"info","msg":"","time":"`...)
	b = rfc3339(b, r.end-r.end%1000)
	return append(b, `"}`...)
}

// traefikCLFLine writes Traefik's common format.
func traefikCLFLine(b []byte, r *record) []byte {
	b = append(b, r.peer...)
	b = time.UnixMilli(r.start).UTC().AppendFormat(append(b, " - - ["...), "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	b = append(b, r.route.Method...)
	b = r.path(append(b, ' '))
	b = number(b, ` HTTP/1.1" `, r.code())
	size := int64(r.bytes)
	if r.departure == before {
		size = 21
	}
	b = number(b, " ", size)
	b = number(b, ` "-" "lab" `, int64(r.n))
	b = text(b, ` "`, r.route.Target)
	b = number(b, ` "http://10.77.1.1:8080" `, r.end-r.start)
	return append(b, "ms"...)
}

// apacheFormat is the LogFormat of docs/formats.md, with the virtual host before it and
// two more headers.
const apacheFormat = `%v %{c}a %{begin:msec}t %{end:msec}t \"%m\" \"%U%q\" %H %>s %B %O %X unique_id=\"%{UNIQUE_ID}e\" question_key=\"%{Question-Key}i\" request_id=\"%{X-Request-Id}i\" attempt=\"%{X-Envoy-Attempt-Count}i\" attempts_left=\"%{Attempts-Left}i\" retry_after=\"%{Retry-After}o\"`

// apacheLine writes what httpd does by it, of callers who reset their connections when
// they leave: X, and 502 where the application had not answered.
func apacheLine(b []byte, r *record) []byte {
	status, state, sent := int64(r.status), " X", int64(0)
	switch r.departure {
	case before:
		status = 502
	case during:
		sent = int64(r.bytes)
	case stays:
		state, sent = " +", int64(r.bytes+180)
	}
	b = append(b, r.route.Target...)
	b = append(append(b, ' '), r.peer...)
	b = number(b, " ", r.start)
	b = number(b, " ", r.end)
	b = text(b, ` "`, r.route.Method)
	b = append(b, ` "`...)
	b = r.path(b)
	b = number(b, `" HTTP/1.1 `, status)
	b = number(b, " ", r.length())
	b = number(b, " ", sent)
	b = append(b, state...)
	b = append(b, ` unique_id="`...)
	b = hex32(b, r.n)
	b = append(b, `" question_key="`...)
	b = orDash(b, r.keyText)
	b = append(b, `" request_id="`...)
	b = orDash(b, r.requestID)
	b = number(b, `" attempt="`, int64(r.attempt))
	b = orDash(append(b, `" attempts_left="`...), r.leftText)
	b = orDash(append(b, `" retry_after="`...), r.waitText)
	return append(b, '"')
}

// iisColumns are those that the site logs, headers as custom fields among them.
const iisColumns = "date time s-sitename cs-method cs-uri-stem cs-uri-query c-ip sc-status sc-substatus sc-win32-status sc-bytes time-taken Question-Key X-Request-Id X-Envoy-Attempt-Count Attempts-Left Retry-After"

// iisLine writes them: to the second, and 64 whenever a caller left.
func iisLine(b []byte, r *record) []byte {
	status, broke := int64(r.status), " 0 0 "
	if r.departure != stays {
		broke = " 0 64 "
	}
	if r.departure == before {
		status = 500
	}
	b = time.UnixMilli(r.end).UTC().AppendFormat(b, "2006-01-02 15:04:05 ")
	b = append(b, r.route.Target...)
	b = append(append(b, ' '), r.route.Method...)
	b = r.path(append(b, ' '))
	b = append(b, " - "...)
	b = append(b, r.peer...)
	b = number(b, " ", status)
	b = append(b, broke...)
	b = strconv.AppendInt(b, int64(r.bytes), 10)
	b = number(b, " ", r.end-r.start)
	b = orDash(append(b, ' '), r.keyText)
	b = orDash(append(b, ' '), r.requestID)
	b = number(b, " ", int64(r.attempt))
	b = orDash(append(b, ' '), r.leftText)
	return orDash(append(b, ' '), r.waitText)
}

// albLine writes what a load balancer of AWS's does: 460 where the caller left before
// anything of the answer, with the target's status once there was one.
func albLine(b []byte, r *record) []byte {
	status, took := int64(r.status), r.end-r.start
	if r.departure == before || r.departure == undelivered {
		status = 460
	}
	b = rfc3339(append(b, "https "...), r.end)
	b = append(b[:len(b)-1], "000Z app/lab/50dc6c495c0c9188 "...)
	b = append(b, r.peer...)
	b = number(b, ":", r.port())
	b = append(b, " 10.77.1.1:8080 0.000 "...)
	if r.departure == before {
		b = append(b, "-1 -1"...)
	} else {
		b = append(seconds(b, took), " 0.000"...)
	}
	b = number(b, " ", status)
	b = numberOrDash(append(b, ' '), int64(r.status), r.departure != before)
	b = number(b, " 412 ", int64(r.bytes))
	b = append(b, ` "`...)
	b = append(b, r.route.Method...)
	b = r.path(append(b, " https://target.lab:443"...))
	b = append(b, ` HTTP/1.1" "lab" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/lab/6d0ecf831eec9f09 "Root=1-`...)
	root := len(b)
	b = slices.Insert(hex32(b, r.n), root+8, '-')
	b = text(b, `" "`, r.route.Target)
	b = append(b, ` "session-reused" 0 `...)
	b = rfc3339(b, r.start)
	b = append(b[:len(b)-1], `000Z "forward" "-" "-" "10.77.1.1:8080" "`...)
	b = numberOrDash(b, int64(r.status), r.departure != before)
	b = append(b, `" "-" "-" TID_`...)
	return hex32(b, r.n^1<<40)
}

// linkerdLine writes what Linkerd's proxy does: no status where there was none.
func linkerdLine(b []byte, r *record) []byte {
	b = append(b, `{"client.addr":"`...)
	b = append(b, r.peer...)
	b = number(b, ":", r.port())
	b = text(b, `","client.id":"-","host":"`, r.route.Target)
	b = text(b, `,"method":"`, r.route.Method)
	b = number(b, `,"processing_ns":"`, 40_000)
	b = append(b, `","request_bytes":"0","response_bytes":"`...)
	b = strconv.AppendInt(b, int64(r.bytes), 10)
	b = append(b, '"')
	if r.departure != before {
		b = number(b, `,"status":`, int64(r.status))
	} else {
		b = append(b, `,"status":null`...)
	}
	b = append(b, `,"timestamp":"`...)
	b = rfc3339(b, r.start)
	b = append(b[:len(b)-1], `000000Z","total_ns":"`...)
	b = strconv.AppendInt(b, (r.end-r.start)*1e6, 10)
	b = append(b, `","trace_id":"","uri":"http://target.lab`...)
	b = r.path(b)
	return append(b, `","user_agent":"lab","version":"HTTP/1.1"}`...)
}
