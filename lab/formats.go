package lab

import (
	"slices"
	"strconv"
)

// format is one in which a log can be written, and what a configuration says to read it.
type format struct {
	name       string
	line       func(b []byte, r *record) []byte
	dependency string // field of the log that is the target's name; empty: dependency
	fields     string // of the source, where the names in the log are not enough
	pattern    string // of the source, where it has one
}

const (
	nginxNames = "dependency: dependency, question_key: key, x_request_id: x_request_id, attempt: attempt, attempts_left: attempts_left, retry_after: retry_after, arrival_id: request_id"
	envoyNames = "dependency: dependency, question_key: question_key, x_request_id: request_id, attempt: x_envoy_attempt_count, attempts_left: attempts_left, retry_after: retry_after, peer: downstream_direct_remote_address"
	otlpNames  = "attempts_left: http.request.header.attempts-left, peer: client.address"
)

var formats = []format{
	{name: "json", line: jsonLine},
	{name: "nginx-json", line: nginxLine,
		fields: "dependency: dependency, question_key: http_question_key, x_request_id: http_x_request_id, attempt: http_x_envoy_attempt_count, attempts_left: http_attempts_left, retry_after: sent_http_retry_after, arrival_id: request_id, peer: remote_addr"},
	{name: "envoy-json", line: envoyLine, fields: envoyNames},
	{name: "istio-json", line: istioLine, fields: envoyNames},
	{name: "nginx-combined", line: combinedLine, fields: nginxNames + ", duration: rt"},
	{name: "logfmt", line: logfmtLine},
	{name: "otlp-json", line: otlpLine, dependency: "service.name", fields: otlpNames},
	{name: "pattern", line: patternLine, pattern: linePattern},
	{name: "envoy-text", line: envoyTextLine, fields: "x_request_id: request_id"},
	{name: "istio-text", line: istioTextLine, fields: "x_request_id: request_id"},
	{name: "ingress-nginx", line: ingressLine, fields: nginxNames},
	{name: "otlp-proto", line: otlpProtoLine, dependency: "service.name", fields: otlpNames},
	{name: "envoy-als", line: alsLine, dependency: "upstream_cluster",
		fields: "x_request_id: request_id, attempts_left: request_headers.attempts-left, peer: downstream_direct_remote_address"},
	{name: "caddy-json", line: caddyLine, dependency: "request.host", fields: "duration_ms: duration, attempts_left: request.headers.Attempts-Left"},
	{name: "traefik-json", line: traefikLine, dependency: "ServiceName", fields: "attempts_left: request_Attempts-Left"},
	{name: "haproxy", line: haproxyLine, dependency: "backend"},
	{name: "apache", line: apacheLine, dependency: "%v", pattern: apacheFormat,
		fields: "arrival_id: UNIQUE_ID, question_key: Question-Key, x_request_id: X-Request-Id, attempt: X-Envoy-Attempt-Count, attempts_left: Attempts-Left, retry_after: Retry-After"},
	{name: "iis", line: iisLine, dependency: "s-sitename", pattern: iisColumns,
		fields: "question_key: Question-Key, x_request_id: X-Request-Id, attempt: X-Envoy-Attempt-Count, attempts_left: Attempts-Left, retry_after: Retry-After"},
	{name: "alb", line: albLine, dependency: "domain_name"},
	{name: "traefik-clf", line: traefikCLFLine, dependency: "RouterName"},
	{name: "linkerd-json", line: linkerdLine, dependency: "host"},
}

// formatNamed is the zero value if there is none of that name.
func formatNamed(name string) format {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if i < 0 {
		return format{}
	}
	return formats[i]
}

// Formats are those in which a log can be written. Without says what one lacks.
func Formats() []string {
	var names []string
	for i := range formats {
		names = append(names, formats[i].name)
	}
	return names
}

// departures are their names.
var departures = [...]string{stays: "-", undelivered: "undelivered_answer", during: "during_response", before: "before_response"}

// logfmtLine writes the canonical fields as pairs.
func logfmtLine(b []byte, r *record) []byte {
	b = append(b, "time="...)
	b = rfc3339(b, r.start)
	b = number(b, " time_is=start duration_ms=", r.end-r.start)
	b = append(b, " dependency="...)
	b = append(b, r.route.Target...)
	b = append(b, " method="...)
	b = append(b, r.route.Method...)
	b = append(b, ` path="`...)
	b = r.path(b)
	b = number(b, `" status=`, r.code())
	b = number(b, " bytes_sent=", int64(r.bytes))
	b = append(b, " peer="...)
	b = append(b, r.peer...)
	if r.keyText != nil {
		b = append(append(b, " question_key="...), r.keyText...)
	}
	if r.requestID != nil {
		b = append(append(b, " x_request_id="...), r.requestID...)
	}
	b = number(b, " attempt=", int64(r.attempt))
	if r.leftText != nil {
		b = append(append(b, " attempts_left="...), r.leftText...)
	}
	b = orDash(append(b, " retry_after="...), r.waitText)
	b = append(b, " client_gone="...)
	b = strconv.AppendBool(b, r.departure != stays)
	if r.departure != stays {
		b = append(append(b, " departure="...), departures[r.departure]...)
	}
	return number(b, " arrival_id=", int64(r.n))
}

// combinedLine writes nginx's combined with pairs appended to it: what nginxLine says,
// in the same words.
func combinedLine(b []byte, r *record) []byte {
	completion, header := r.sentByNginx()
	b = nginxText(b, r)
	b = append(b, ` "-" "lab" msec=`...)
	b = seconds(b, r.end)
	b = append(b, " rt="...)
	b = seconds(b, r.end-r.start)
	b = text(b, ` request_completion="`, completion)
	b = numberOrDash(append(b, ` upstream_status="`...), int64(r.status), r.departure != before)
	return nginxPairs(append(b, '"'), r, header)
}

// orDash is what nginx writes of a header that there was none of.
func orDash(b, v []byte) []byte {
	if v == nil {
		return append(b, '-')
	}
	return append(b, v...)
}

// otlpLine writes a server span as OpenTelemetry's instrumentations do that capture
// headers, in an export request of its own. That a caller has left is an attribute of
// the application's, for which the conventions have no word.
func otlpLine(b []byte, r *record) []byte {
	b = text(b, `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"`, r.route.Target)
	b = append(b, `}}]},"scopeSpans":[{"spans":[{"traceId":"`...)
	b = hex32(b, ^r.n)
	b = append(b, `","spanId":"`...)
	from := len(b)
	b = hex32(b, r.n)[:from+16]
	b = number(b, `","kind":2,"startTimeUnixNano":"`, r.start*1e6)
	b = number(b, `","endTimeUnixNano":"`, r.end*1e6)
	b = text(b, `","attributes":[{"key":"http.request.method","value":{"stringValue":"`, r.route.Method)
	b = append(b, `}},{"key":"url.path","value":{"stringValue":"`...)
	b = r.path(b)
	b = number(b, `"}},{"key":"http.response.status_code","value":{"intValue":"`, r.code())
	b = number(b, `"}},{"key":"http.response.body.size","value":{"intValue":"`, int64(r.bytes))
	b = text(b, `"}},{"key":"client.address","value":{"stringValue":"`, r.peer)
	header := func(name string, value []byte) {
		if value == nil {
			return
		}
		b = append(b, `}},{"key":"http.`...)
		b = append(b, name...)
		b = append(b, `","value":{"arrayValue":{"values":[{"stringValue":"`...)
		b = append(append(b, value...), `"}]}`...)
	}
	var digits [20]byte
	header("request.header.question-key", r.keyText)
	header("request.header.x-request-id", r.requestID)
	header("request.header.x-envoy-attempt-count", strconv.AppendInt(digits[:0], int64(r.attempt), 10))
	header("request.header.attempts-left", r.leftText)
	header("response.header.retry-after", r.waitText)
	b = append(b, `}},{"key":"client_gone","value":{"boolValue":`...)
	b = strconv.AppendBool(b, r.departure != stays)
	if r.departure != stays {
		b = text(b, `}},{"key":"departure","value":{"stringValue":"`, departures[r.departure])
	}
	return append(b, `}}]}]}]}]}`...)
}

// linePattern reads what patternLine writes: a line of nobody's format.
const linePattern = `(?P<time>\S+) (?P<duration_ms>\d+) (?P<dependency>\S+) (?P<peer>\S+) (?P<method>\S+) (?P<path>\S+) (?P<status>\d+) (?P<bytes_sent>\d+) (?P<client_gone>\S+) (?P<departure>\S+) (?P<attempt>\d+) (?P<attempts_left>\S+) (?P<retry_after>\S+) (?P<question_key>\S+) (?P<x_request_id>\S+) (?P<arrival_id>\d+)`

// patternLine writes a text line, whose columns an expression names.
func patternLine(b []byte, r *record) []byte {
	b = rfc3339(b, r.start)
	b = number(b, " ", r.end-r.start)
	for _, word := range []string{r.route.Target, r.peer, r.route.Method} {
		b = append(append(b, ' '), word...)
	}
	b = r.path(append(b, ' '))
	b = number(b, " ", r.code())
	b = number(b, " ", int64(r.bytes))
	b = strconv.AppendBool(append(b, ' '), r.departure != stays)
	b = append(append(b, ' '), departures[r.departure]...)
	b = number(b, " ", int64(r.attempt))
	b = orDash(append(b, ' '), r.leftText)
	b = orDash(append(b, ' '), r.waitText)
	b = orDash(append(b, ' '), r.keyText)
	b = orDash(append(b, ' '), r.requestID)
	return number(b, " ", int64(r.n))
}

func numberOrDash(b []byte, n int64, is bool) []byte {
	if !is {
		return append(b, '-')
	}
	return strconv.AppendInt(b, n, 10)
}
