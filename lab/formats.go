package lab

import "strconv"

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
