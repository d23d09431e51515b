package accesslog

import "bytes"

// envoyColumns are the columns of both lines; the constants below are their places.
var envoyColumns = []string{
	"start_time", "request", "response_code", "response_flags", "response_code_details",
	"connection_termination_details", "upstream_transport_failure_reason", "bytes_received", "bytes_sent", "duration",
	"upstream_service_time", "x_forwarded_for", "user_agent", "request_id", "authority",
	"upstream_host", "upstream_cluster", "upstream_local_address", "downstream_local_address", "downstream_remote_address",
	"requested_server_name", "route_name",
}

const (
	envoyStartTime = iota
	envoyRequest
	envoyResponseCode
	envoyResponseFlags
	envoyResponseCodeDetails
	envoyConnectionTerminationDetails
	envoyUpstreamTransportFailureReason
	envoyBytesReceived
	envoyBytesSent
	envoyDuration
	envoyUpstreamServiceTime
	envoyXForwardedFor
	envoyUserAgent
	envoyRequestId
	envoyAuthority
	envoyUpstreamHost
	envoyUpstreamCluster
	envoyUpstreamLocalAddress
	envoyDownstreamLocalAddress
	envoyDownstreamRemoteAddress
	envoyRequestedServerName
	envoyRouteName
)

// Envoy's default text line is
//
//	[start] "METHOD path protocol" code flags received sent duration service "xff" "agent" "id" "authority" "host"
//
// and Istio's has three values more between flags and received: details,
// termination, "transport failure". Only the format's name tells the two apart.
//
// The columns have the names of the members in Istio's JSON.
//
// Nothing in it is escaped, and the caller writes the path, X-Forwarded-For, the
// user agent and its request id. So the head is read from the left and, where a
// quote in a header has changed the number of values, the last three from the
// right; the user agent is what lies between, and no key is taken.
//
// Behind the host may stand what an operator appended, as in nginx-combined:
// "$1", "$2", … without a name, and name=value pairs. The largest "$n" that
// Config names says how many quoted values the line ends with.
//
// A value that omit_empty_values left out would shift those behind it: such a
// line is refused.
func (p *Parser) tokenizeEnvoyText(line []byte) error {
	q := bytes.IndexByte(line, '"')
	if q < 2 || line[q-1] != ' ' {
		return RejectSyntax
	}
	stamp := line[:q-1]
	if stamp[0] == '[' && stamp[len(stamp)-1] == ']' {
		stamp = stamp[1 : len(stamp)-1]
	}
	p.putColumn(envoyStartTime, stamp)

	s, err := p.envoyRequest(line[q+1:])
	if err != nil {
		return err
	}
	if s, err = p.envoyNumbers(s); err != nil {
		return err
	}
	values, rest, state := envoyValues(s)
	switch {
	case state == tokenCut:
		return RejectCut
	case state == tokenWhole && p.plainTail(values[4], rest):
		p.envoyHeaders(&values)
		_, err := p.appended(p.istioTail(rest), false)
		return err
	}
	p.quoteInHeader()
	return p.envoyFromRight(s)
}

// envoyRequest reads the request, which ends at the first quote that the status
// and the flags follow.
func (p *Parser) envoyRequest(s []byte) (rest []byte, err error) {
	for i := 0; ; {
		q := bytes.IndexByte(s[i:], '"')
		if q < 0 {
			if i == 0 {
				return nil, RejectCut
			}
			return nil, RejectSyntax
		}
		q += i
		i = q + 1
		after := s[i:]
		if len(after) == 0 {
			if bytes.IndexByte(s[:q], ' ') < 0 {
				return nil, RejectSyntax // no request
			}
			return nil, RejectCut
		}
		if after[0] != ' ' || !isCount(after[1:1+blank(after[1:], 0)]) {
			continue
		}
		if bytes.IndexByte(s[:q], '"') >= 0 {
			p.quoteInHeader()
		}
		p.putColumn(envoyRequest, s[:q])
		return after[1:], nil
	}
}

// isCount says that b is a number or its absence.
func isCount(b []byte) bool { return allDigits(b) || isDash(b) }

// envoyNumbers reads the unquoted columns, of which none may be missing.
func (p *Parser) envoyNumbers(s []byte) (rest []byte, err error) {
	status, s, ok1 := cutColumn(s)
	flags, s, ok2 := cutColumn(s)
	if !ok1 || !ok2 {
		return nil, RejectCut
	}
	p.putColumn(envoyResponseCode, status)
	p.putColumn(envoyResponseFlags, flags)
	if p.format.name == "istio-text" {
		if s, err = p.istioDetails(s); err != nil {
			return nil, err
		}
	}
	var columns [4][]byte // received, sent, duration, service time
	for i := range columns {
		var ok bool
		if columns[i], s, ok = cutColumn(s); !ok {
			return nil, RejectCut
		}
		if !isCount(columns[i]) {
			return nil, RejectSyntax
		}
	}
	p.putColumn(envoyBytesReceived, columns[0])
	p.putColumn(envoyBytesSent, columns[1])
	p.putColumn(envoyDuration, columns[2])
	p.putColumn(envoyUpstreamServiceTime, columns[3])
	return s, nil
}

// cutColumn splits s at its first blank. A column that is empty or the last is
// not whole.
func cutColumn(s []byte) (column, rest []byte, ok bool) {
	n := bytes.IndexByte(s, ' ')
	if n < 0 || n+1 == len(s) {
		return nil, nil, false
	}
	return s[:n], s[n+1:], true
}

// istioDetails reads the details, the termination and the transport failure. The
// first two are not quoted, and the details may hold blanks.
func (p *Parser) istioDetails(s []byte) (rest []byte, err error) {
	q := bytes.IndexByte(s, '"')
	if q < 0 {
		return nil, RejectCut
	}
	words := bytes.TrimRight(s[:q], " ")
	i := bytes.LastIndexByte(words, ' ')
	if i <= 0 {
		return nil, RejectSyntax
	}
	p.putColumn(envoyResponseCodeDetails, words[:i])
	p.putColumn(envoyConnectionTerminationDetails, words[i+1:])
	failure, rest, state := nextToken(s[q:], false)
	switch {
	case state == tokenBroken:
		return nil, RejectSyntax
	case state == tokenCut || len(rest) == 0:
		return nil, RejectCut
	}
	p.putColumn(envoyUpstreamTransportFailureReason, failure.value)
	return rest, nil
}

// envoyValues reads the five quoted values. The state is broken where one of
// them is not quoted as it should be.
func envoyValues(s []byte) (values [5][]byte, rest []byte, state tokenState) {
	for i := range values {
		if len(s) == 0 {
			return values, nil, tokenCut
		}
		if n := bytes.IndexByte(s[1:], '"'); s[0] == '"' && n >= 0 && (n+2 == len(s) || s[n+2] == ' ') {
			values[i], s = s[1:1+n], skipBlanks(s[n+2:])
			continue
		}
		var t token
		if t, s, state = nextToken(s, false); state != tokenWhole {
			return values, nil, state
		}
		if t.kind != tokenQuoted || len(t.name) != 0 {
			return values, nil, tokenBroken
		}
		values[i] = t.value
	}
	return values, s, tokenWhole
}

// plainTail says that host and what follows it are the upstream host and what an
// operator appended, and not the end of a line in which a quote in a header made
// more values of one.
func (p *Parser) plainTail(host, s []byte) bool {
	if bytes.IndexByte(s, '"') < 0 {
		return true
	}
	unnamed, lastQuoted, address, dash := 0, 0, false, false
	for len(s) > 0 {
		t, rest, state := nextToken(s, false)
		if state == tokenBroken {
			return false
		}
		if s = rest; state != tokenWhole || len(t.name) != 0 {
			continue // appended finds what is cut off
		}
		unnamed++
		if t.kind == tokenQuoted {
			lastQuoted = unnamed
			address = address || isAddress(t.value)
			dash = dash || isDash(t.value)
		}
	}
	if lastQuoted == 0 {
		return true
	}
	// The real host is an address or a dash, and the last value but for those
	// that were appended.
	if n := p.positions(); n > 0 {
		return unnamed == n || lastQuoted <= n && (isAddress(host) || isDash(host)) && !address
	}
	return isAddress(host) && !address && !dash
}

// positions is the number of appended values that the configuration names.
func (p *Parser) positions() int {
	for n := len(positionNames); n > 0; n-- {
		if p.root.exact[string(positionNames[n-1])] != nil {
			return n
		}
	}
	return 0
}

func (p *Parser) envoyHeaders(v *[5][]byte) {
	p.putColumn(envoyXForwardedFor, v[0])
	p.putColumn(envoyUserAgent, v[1])
	p.putColumn(envoyRequestId, v[2])
	p.putColumn(envoyAuthority, v[3])
	p.putColumn(envoyUpstreamHost, v[4])
}

// istioTail reads the unquoted columns behind Istio's upstream host.
func (p *Parser) istioTail(s []byte) (rest []byte) {
	if p.format.name != "istio-text" {
		return s
	}
	for i := envoyUpstreamCluster; i <= envoyRouteName; i++ {
		if len(s) == 0 || s[0] == '"' {
			break
		}
		var v []byte
		v, s = cutBlank(s)
		p.putColumn(i, v)
	}
	return s
}

// envoyFromRight reads the values of a line in which one of them holds quotes.
// Where it is not sure which is the host, nothing but the head is read.
func (p *Parser) envoyFromRight(s []byte) error {
	end := bytes.LastIndexByte(s, '"')
	if end <= 0 || s[0] != '"' {
		return RejectSyntax
	}
	var v [5][]byte
	p.istioTail(skipBlanks(s[end+1:]))
	s = s[1:end]
	host, left, ok := cutLastValue(s)
	for ok && !isAddress(host) && p.positions() > 0 {
		host, left, ok = cutLastValue(left)
	}
	if !ok {
		return nil
	}
	v[4] = host
	if v[3], left, ok = cutLastValue(left); !ok {
		return nil
	}
	if v[2], left, ok = cutLastValue(left); !ok {
		return nil
	}
	i := bytes.Index(left, valueJoint)
	if i < 0 {
		return nil
	}
	v[0], v[1] = left[:i], left[i+len(valueJoint):]
	p.envoyHeaders(&v)
	return nil
}

var valueJoint = []byte(`" "`)

// cutLastValue splits the last quoted value off s.
func cutLastValue(s []byte) (value, left []byte, ok bool) {
	i := bytes.LastIndex(s, valueJoint)
	if i < 0 {
		return nil, nil, false
	}
	return s[i+len(valueJoint):], s[:i], true
}
