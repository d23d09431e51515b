package lab

import (
	"strconv"
	"time"
)

// envoyTextLine writes Envoy's default text line with pairs appended to it: what
// envoyLine says, and the request's id where the default has it.
func envoyTextLine(b []byte, r *record) []byte {
	b = envoyTextHead(b, r, "")
	return envoyTextPairs(append(b, `"127.0.0.1:9000"`...), r)
}

// istioTextLine writes a sidecar's default text line, on the target's side, with the
// same pairs. Its caller's address has a port.
func istioTextLine(b []byte, r *record) []byte {
	_, details := r.saidByEnvoy()
	b = envoyTextHead(b, r, " "+details+` - "-"`)
	b = append(b, `"127.0.0.1:8080" inbound|8080|| 127.0.0.6:`...)
	b = strconv.AppendInt(b, r.port(), 10)
	b = append(b, " 10.77.1.1:8080 "...)
	b = append(b, r.peer...)
	b = number(b, ":", r.port())
	b = append(b, " outbound_.8080_._.lab default"...)
	return envoyTextPairs(b, r)
}

// envoyTextHead writes what both lines begin with, up to the upstream's host; details are
// Istio's alone.
func envoyTextHead(b []byte, r *record, details string) []byte {
	flags, _ := r.saidByEnvoy()
	b = rfc3339(append(b, '['), r.start)
	b = append(b, `] "`...)
	b = append(b, r.route.Method...)
	b = r.path(append(b, ' '))
	b = number(b, ` HTTP/1.1" `, int64(r.status))
	b = append(append(b, ' '), flags...)
	b = append(b, details...)
	b = number(b, " 0 ", int64(r.bytes))
	b = number(b, " ", r.end-r.start)
	b = numberOrDash(append(b, ' '), r.end-r.start, r.departure != before)
	b = append(b, ` "-" "lab" "`...)
	b = orDash(b, r.requestID)
	return append(b, `" "target.lab" `...)
}

func envoyTextPairs(b []byte, r *record) []byte {
	b = append(b, " dependency="...)
	b = append(b, r.route.Target...)
	b = number(b, " peer_port=", r.port())
	b = text(b, ` peer="`, r.peer)
	b = append(b, ` question_key="`...)
	b = orDash(b, r.keyText)
	b = number(b, `" x_envoy_attempt_count="`, int64(r.attempt))
	b = orDash(append(b, `" attempts_left="`...), r.leftText)
	b = orDash(append(b, `" retry_after="`...), r.waitText)
	return append(b, '"')
}

// nginxText writes what nginx's text lines begin with.
func nginxText(b []byte, r *record) []byte {
	b = append(b, r.peer...)
	b = append(b, " - - ["...)
	b = time.UnixMilli(r.end).UTC().AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	b = append(b, r.route.Method...)
	b = append(b, ' ')
	b = r.path(b)
	b = number(b, ` HTTP/1.1" `, r.code())
	return number(b, " ", int64(r.bytes))
}

// nginxPairs writes what an operator appends to such a line.
func nginxPairs(b []byte, r *record, header int) []byte {
	b = append(b, " dependency="...)
	b = append(b, r.route.Target...)
	b = number(b, " bytes_sent=", int64(r.bytes+header))
	b = append(b, ` key="`...)
	b = orDash(b, r.keyText)
	b = append(b, `" x_request_id="`...)
	b = orDash(b, r.requestID)
	b = number(b, `" attempt=`, int64(r.attempt))
	b = orDash(append(b, " attempts_left="...), r.leftText)
	b = orDash(append(b, " retry_after="...), r.waitText)
	b = append(b, " request_id="...)
	return hex32(b, r.n)
}

// ingressLine writes ingress-nginx's default line with pairs appended to it. Its last
// column is the caller's x-request-id, or else one that nginx makes.
func ingressLine(b []byte, r *record) []byte {
	completion, header := r.sentByNginx()
	b = nginxText(b, r)
	b = append(b, ` "-" "lab" 412 `...)
	b = seconds(b, r.end-r.start)
	b = append(b, ` [shop-target-80] [] 10.77.1.1:8080 `...)
	length := int64(0)
	if r.departure != before {
		length = r.length()
	}
	b = strconv.AppendInt(b, length, 10)
	b = seconds(append(b, ' '), r.end-r.start)
	b = numberOrDash(append(b, ' '), int64(r.status), r.departure != before)
	b = append(b, ' ')
	if r.requestID != nil {
		b = append(b, r.requestID...)
	} else {
		b = hex32(b, ^r.n)
	}
	b = append(b, " msec="...)
	b = seconds(b, r.end)
	b = text(b, ` request_completion="`, completion)
	return nginxPairs(b, r, header)
}

// haproxyLine writes the log-format of docs/formats.md, behind the prefix that a syslog
// daemon puts before it.
func haproxyLine(b []byte, r *record) []byte {
	b = time.UnixMilli(r.end).UTC().AppendFormat(b, "Jan _2 15:04:05")
	b = append(b, " lb haproxy[77]: "...)
	b = append(b, r.peer...)
	b = number(b, ":", r.port())
	b = time.UnixMilli(r.start).UTC().AppendFormat(append(b, " ["...), "02/Jan/2006:15:04:05.000")
	b = append(b, "] audited "...)
	b = append(b, r.route.Target...)
	state, status, answered := "----", int64(r.status), r.end-r.start
	switch r.departure {
	case before:
		state, status, answered = "CH--", 400, -1
	case undelivered, during:
		state = "CD--"
	}
	b = number(b, "/s1 0/0/0/", answered)
	b = number(b, "/", r.end-r.start)
	b = number(b, " ", status)
	sent := 0
	if r.departure == stays || r.bytes > 0 {
		sent = r.bytes + 180
	}
	b = number(b, " ", int64(sent))
	b = append(b, " - - "...)
	b = append(b, state...)
	b = append(b, ` 1/1/1/1/0 0/0 "`...)
	b = append(b, r.route.Method...)
	b = r.path(append(b, ' '))
	b = append(b, ` HTTP/1.1" abortonclose=on arrival_id=`...)
	b = hex32(b, r.n)
	b = append(b, ` question_key="`...)
	b = append(b, r.keyText...)
	b = append(b, `" x_request_id="`...)
	b = append(b, r.requestID...)
	b = number(b, `" x_envoy_attempt_count="`, int64(r.attempt))
	b = append(append(b, `" attempts_left="`...), r.leftText...)
	b = append(append(b, `" retry_after="`...), r.waitText...)
	return append(b, '"')
}
