package accesslog

import (
	"encoding/base64"
	"math"
	"strconv"
)

// envoy-als is what Envoy sends to a gRPC Access Log Service: each line is one
// StreamAccessLogsMessage (envoy.service.accesslog.v3) in base64, as the als source
// writes them, with the identifier of its stream. Each HTTP entry in it is a record,
// whose text is the entry, so an entry that is there twice is the same in other company;
// entries of TCP connections are none. An entry that cannot be read is refused by itself,
// and so is what is left of the entries from a field on that is none; where the
// identifier cannot be read each entry is refused.
//
// The columns have the names that Envoy's JSON gives the same values, and the headers
// that the logger was told to add are named by request_headers, response_headers and
// response_trailers. A flag, a byte count or a status that is not set is one that Envoy
// says it does not have: no flags are "-", no bytes 0, no status 0.
var alsColumns = []string{
	alsStartTime: "start_time", alsDuration: "duration_ns", alsMethod: "method", alsPath: "path", alsAuthority: "authority",
	alsUserAgent: "user_agent", alsRequestID: "request_id", alsCode: "response_code", alsDetails: "response_code_details",
	alsFlags: "response_flags", alsBytesSent: "bytes_sent", alsTermination: "connection_termination_details",
	alsUpstreamHost: "upstream_host", alsUpstreamLocal: "upstream_local_address", alsUpstreamCluster: "upstream_cluster",
	alsRouteName: "route_name", alsAttempts: "upstream_request_attempt_count", alsType: "access_log_type", alsStream: "stream_id",
	alsRemote: "downstream_remote_address", alsDirect: "downstream_direct_remote_address", alsSAN: "downstream_peer_uri_san",
	alsGRPCStatus: "grpc_status", alsLogName: "log_name", alsNodeID: "node_id", alsNodeCluster: "node_cluster",
	alsRequestHeaders: "request_headers", alsResponseHeaders: "response_headers", alsTrailers: "response_trailers", alsTags: "custom_tags",
}

const (
	alsStartTime = iota
	alsDuration
	alsMethod
	alsPath
	alsAuthority
	alsUserAgent
	alsRequestID
	alsCode
	alsDetails
	alsFlags
	alsBytesSent
	alsTermination
	alsUpstreamHost
	alsUpstreamLocal
	alsUpstreamCluster
	alsRouteName
	alsAttempts
	alsType
	alsStream
	alsRemote
	alsDirect
	alsSAN
	alsGRPCStatus
	alsLogName
	alsNodeID
	alsNodeCluster
	alsRequestHeaders
	alsResponseHeaders
	alsTrailers
	alsTags
)

// alsState is what a parser knows of the line that it reads.
type alsState struct {
	end                          int   // of the HTTP entries, in the line
	refused                      error // what is wrong with the identifier, and so with all entries
	logName, nodeID, nodeCluster []byte
}

// alsBatch begins a line.
func (p *Parser) alsBatch(text []byte, depth int, before Notes, e *Entry) (rest []byte, err error) {
	o := &p.otlp
	o.rest, p.als = nil, alsState{}
	if !o.decode(text) {
		if len(text) != 0 && text[0] == '{' {
			if w, ok := p.unwrap(text); ok {
				return p.unwrapped(w, depth, before, e)
			}
		}
		return nil, RejectSyntax
	}
	o.before = before
	p.als.refused = p.alsIdentify(o.copied)
	return p.alsFrom(0, e)
}

// alsIdentify reads the identifier of a message, wherever it stands there.
func (p *Parser) alsIdentify(b []byte) error {
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return nil // whoever comes there says so
		}
		if f.number == 1 && f.wire == wireBytes {
			if err := p.alsIdentifier(f.bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode takes the bytes that a line of base64 stands for.
func (o *otlpState) decode(text []byte) bool {
	n := base64.StdEncoding.DecodedLen(len(text))
	if cap(o.copied) < n {
		o.copied = make([]byte, 0, n+n/4)
	}
	n, err := decodeBase64(o.copied[:n], text)
	o.copied = o.copied[:max(n, 0)]
	return err == nil
}

// alsNext reads the next record of a line that was begun.
func (p *Parser) alsNext(text []byte, e *Entry) (rest []byte, err error) {
	p.otlp.rest = nil
	return p.alsFrom(len(p.otlp.copied)-len(text), e)
}

// alsFrom reads the first record at or behind a place of the line, and finds out
// whether another follows.
func (p *Parser) alsFrom(i int, e *Entry) (rest []byte, err error) {
	o := &p.otlp
	var f protoField
	i, found := p.alsSeek(i, &f)
	if !found {
		return nil, RejectOther
	}
	body := f.bytes
	p.raw.reset(vendorEnvoy)
	p.raw.notes = o.before
	p.marks.clear()
	switch {
	case f.number == 0:
		err = RejectCut
	case p.als.refused != nil:
		err = p.als.refused
	default:
		err = p.alsEntry(body)
	}
	if _, found = p.alsSeek(i, &f); found {
		rest = o.copied[o.at:]
		o.rest = rest
	}
	if err != nil {
		return rest, err
	}
	return rest, p.interpret(body, e)
}

// alsSeek goes from a place of the line to the next HTTP entry, whose field begins at
// p.otlp.at and ends at next. What is no field stands for an entry that cannot be read, of
// number 0: it reaches to the end of the entries, or of the line.
func (p *Parser) alsSeek(i int, f *protoField) (next int, found bool) {
	b := p.otlp.copied
	for i < len(b) {
		end := len(b)
		if i < p.als.end {
			end = p.als.end
		}
		if next = f.read(b[:end], i); next <= 0 {
			p.otlp.at, f.number = i, 0
			return end, true
		}
		switch {
		case f.wire != wireBytes:
		case i < p.als.end:
			if f.number == 1 {
				p.otlp.at = i
				return next, true
			}
		case f.number == 2:
			p.als.end, next = next, f.start
		}
		i = next
	}
	return i, false
}

// alsIdentifier reads who sends the stream, and what the log is called there.
func (p *Parser) alsIdentifier(b []byte) error {
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		switch {
		case f.wire != wireBytes:
		case f.number == 1:
			node := f.bytes
			for i, next := 0, 0; i < len(node); i = next {
				if next = f.read(node, i); next <= 0 {
					return RejectCut
				}
				switch {
				case f.wire != wireBytes:
				case f.number == 1:
					p.als.nodeID = f.bytes
				case f.number == 2:
					p.als.nodeCluster = f.bytes
				}
			}
		case f.number == 2:
			p.als.logName = f.bytes
		}
	}
	return nil
}

// alsEntry reads an HTTPAccessLogEntry (envoy.data.accesslog.v3).
func (p *Parser) alsEntry(b []byte) (err error) {
	p.alsPut(alsLogName, p.als.logName)
	p.alsPut(alsNodeID, p.als.nodeID)
	p.alsPut(alsNodeCluster, p.als.nodeCluster)
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		switch {
		case f.wire != wireBytes:
		case f.number == 1:
			err = p.alsCommon(f.bytes)
		case f.number == 3:
			err = p.alsRequest(f.bytes)
		case f.number == 4:
			err = p.alsResponse(f.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alsPut takes text, which is absent where it is empty.
func (p *Parser) alsPut(column int, v []byte) {
	if len(v) != 0 {
		p.putColumn(column, v)
	}
}

func (p *Parser) alsNumber(column int, n int64) {
	if n >= 0 {
		p.putColumn(column, p.numberOf(uint64(n)))
		return
	}
	p.putColumn(column, p.keep(strconv.AppendInt(p.grow(20), n, 10)))
}

func (p *Parser) alsWord(column int, word string) {
	p.putColumn(column, p.keep(append(p.grow(len(word)), word...)))
}

// alsCommon reads AccessLogCommon.
func (p *Parser) alsCommon(b []byte) error {
	var f protoField
	kind, intermediate := uint64(0), false
	duration, untilSent := int64(Unknown), int64(Unknown)
	flags := dash
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		var err error
		switch {
		case f.wire == wireVarint && f.number == 24:
			p.alsNumber(alsAttempts, int64(min(f.value, math.MaxInt64)))
		case f.wire == wireVarint && f.number == 27:
			intermediate = f.value != 0
		case f.wire == wireVarint && f.number == 33:
			kind = f.value
		case f.wire != wireBytes:
		case f.number == 2:
			err = p.alsAddress(f.bytes, alsRemote, false)
		case f.number == 4:
			err = p.alsTLS(f.bytes)
		case f.number == 5:
			var ns int64
			if ns, err = protoNanos(f.bytes); err == nil {
				p.alsNumber(alsStartTime, ns)
			}
		case f.number == 12:
			untilSent, err = protoNanos(f.bytes)
		case f.number == 13:
			err = p.alsAddress(f.bytes, alsUpstreamHost, true)
		case f.number == 14:
			err = p.alsAddress(f.bytes, alsUpstreamLocal, true)
		case f.number == 15:
			p.alsPut(alsUpstreamCluster, f.bytes)
		case f.number == 16:
			flags, err = p.alsFlagsOf(f.bytes)
		case f.number == 19:
			p.alsPut(alsRouteName, f.bytes)
		case f.number == 20:
			err = p.alsAddress(f.bytes, alsDirect, false)
		case f.number == 22:
			err = p.alsMap(f.bytes, alsTags)
		case f.number == 23:
			duration, err = protoNanos(f.bytes)
		case f.number == 25:
			p.alsPut(alsTermination, f.bytes)
		case f.number == 26:
			p.alsPut(alsStream, f.bytes)
		}
		if err != nil {
			return err
		}
	}
	if duration == Unknown {
		duration = untilSent
	}
	if duration != Unknown {
		p.alsNumber(alsDuration, duration)
	}
	p.putColumn(alsFlags, flags)
	switch {
	case kind != 0 && kind < uint64(len(alsKinds)):
		p.alsWord(alsType, alsKinds[kind])
	case intermediate:
		p.alsWord(alsType, alsKinds[5])
	}
	return nil
}

// alsKinds are the values of AccessLogType.
var alsKinds = [...]string{
	1: "TcpUpstreamConnected", 2: "TcpPeriodic", 3: "TcpConnectionEnd", 4: "DownstreamStart", 5: "DownstreamPeriodic", 6: "DownstreamEnd",
	7: "UpstreamPoolReady", 8: "UpstreamPeriodic", 9: "UpstreamEnd", 10: "DownstreamTunnelSuccessfullyEstablished",
	11: "UdpTunnelUpstreamConnected", 12: "UdpPeriodic", 13: "UdpSessionEnd", 14: "TcpConnectionStart",
}

// alsFlagNames are the fields of ResponseFlags, as %RESPONSE_FLAGS% names them.
var alsFlagNames = [...]string{
	1: "LH", 2: "UH", 3: "UT", 4: "LR", 5: "UR", 6: "UF", 7: "UC", 8: "UO", 9: "NR", 10: "DI", 11: "FI", 12: "RL", 13: "UAEX", 14: "RLSE",
	15: "DC", 16: "URX", 17: "SI", 18: "IH", 19: "DPE", 20: "UMSDR", 21: "RFCF", 22: "NFCF", 23: "DT", 24: "UPE", 25: "NC", 26: "OM", 27: "DF", 28: "DR",
}

// alsFlagsOf is the list of the flags that are set. One that is not known here is
// named by its number: it is a flag all the same.
func (p *Parser) alsFlagsOf(b []byte) ([]byte, error) {
	const most = 64
	list := p.grow(most)
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return nil, RejectCut
		}
		set := f.wire == wireVarint && f.value != 0 || f.wire == wireBytes && f.number == 13
		if !set || len(list) > most-12 {
			continue
		}
		if len(list) > 0 {
			list = append(list, ',')
		}
		if f.number < len(alsFlagNames) {
			list = append(list, alsFlagNames[f.number]...)
		} else {
			list = strconv.AppendInt(list, int64(f.number), 10)
		}
	}
	if len(list) == 0 {
		return dash, nil
	}
	return p.keep(list), nil
}

// alsTLS takes the caller's name from its certificate.
func (p *Parser) alsTLS(b []byte) error {
	var f protoField
	named := false
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		if f.number != 5 || f.wire != wireBytes {
			continue
		}
		peer := f.bytes
		for i, next := 0, 0; i < len(peer); i = next {
			if next = f.read(peer, i); next <= 0 {
				return RejectCut
			}
			if f.number != 1 || f.wire != wireBytes {
				continue
			}
			name := f.bytes
			if next := f.read(name, 0); len(name) > 0 && next <= 0 {
				return RejectCut
			} else if len(name) > 0 && f.number == 1 && f.wire == wireBytes && !named {
				p.alsPut(alsSAN, f.bytes)
				named = true
			}
		}
	}
	return nil
}

// alsAddress reads an address of the network, or the path of a socket.
func (p *Parser) alsAddress(b []byte, column int, withPort bool) error {
	host, port, is := alsSocket(b)
	if !is {
		var err error
		if host, port, err = alsAnyAddress(b); err != nil {
			return err
		}
	}
	if withPort && port != 0 && len(host) != 0 {
		digits := p.numberOf(port)
		v := append(append(p.grow(len(host)+21), host...), ':')
		host = p.keep(append(v, digits...))
	}
	p.alsPut(column, host)
	return nil
}

// alsSocket reads what nearly all addresses are: {1: {2: host, 3: port}} and no more, with
// lengths of one byte and a port of up to three.
func alsSocket(b []byte) (host []byte, port uint64, is bool) {
	socket, is := protoOnly(b, 1)
	if !is || len(socket) < 2 || socket[0] != 2<<3|wireBytes || socket[1] >= 0x80 || 2+int(socket[1]) > len(socket) {
		return nil, 0, false
	}
	end := 2 + int(socket[1])
	host = socket[2:end:end]
	switch rest := socket[end:]; {
	case len(rest) == 0:
		return host, 0, true
	case len(rest) == 2 && rest[0] == 3<<3 && rest[1] < 0x80:
		return host, uint64(rest[1]), true
	case len(rest) == 3 && rest[0] == 3<<3 && rest[1] >= 0x80 && rest[2] < 0x80:
		return host, uint64(rest[1]&0x7f) | uint64(rest[2])<<7, true
	case len(rest) == 4 && rest[0] == 3<<3 && rest[1] >= 0x80 && rest[2] >= 0x80 && rest[3] < 0x80:
		return host, uint64(rest[1]&0x7f) | uint64(rest[2]&0x7f)<<7 | uint64(rest[3])<<14, true
	}
	return nil, 0, false
}

func alsAnyAddress(b []byte) (host []byte, port uint64, err error) {
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return nil, 0, RejectCut
		}
		if f.wire != wireBytes || f.number > 2 {
			continue
		}
		path, inner := f.number == 2, f.bytes
		for i, next := 0, 0; i < len(inner); i = next {
			if next = f.read(inner, i); next <= 0 {
				return nil, 0, RejectCut
			}
			switch {
			case f.wire == wireBytes && (f.number == 1 && path || f.number == 2 && !path):
				host = f.bytes
			case f.wire == wireVarint && f.number == 3 && !path:
				port = f.value
			}
		}
	}
	return host, port, nil
}

// protoNanos reads a Timestamp or a Duration.
func protoNanos(b []byte) (ns int64, err error) {
	var f protoField
	var seconds, nanos int64
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return 0, RejectCut
		}
		switch {
		case f.wire != wireVarint:
		case f.number == 1:
			seconds = int64(f.value)
		case f.number == 2:
			nanos = int64(f.value)
		}
	}
	const most = math.MaxInt64/1_000_000_000 - 1
	if seconds < -most || seconds > most || nanos <= -1e9 || nanos >= 1e9 {
		return 0, RejectBadTime
	}
	return seconds*1e9 + nanos, nil
}

// alsMethods are the values of RequestMethod.
var alsMethods = [...]string{1: "GET", 2: "HEAD", 3: "POST", 4: "PUT", 5: "DELETE", 6: "CONNECT", 7: "OPTIONS", 8: "TRACE", 9: "PATCH"}

// alsRequest reads HTTPRequestProperties. The path is the one that the caller asked
// for, where a route has changed it.
func (p *Parser) alsRequest(b []byte) error {
	var f protoField
	var path, original []byte
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		switch {
		case f.wire == wireVarint && f.number == 1 && f.value != 0 && f.value < uint64(len(alsMethods)):
			p.alsWord(alsMethod, alsMethods[f.value])
		case f.wire != wireBytes:
		case f.number == 3:
			p.alsPut(alsAuthority, f.bytes)
		case f.number == 5:
			path = f.bytes
		case f.number == 6:
			p.alsPut(alsUserAgent, f.bytes)
		case f.number == 9:
			p.alsPut(alsRequestID, f.bytes)
		case f.number == 10:
			original = f.bytes
		case f.number == 13:
			if err := p.alsMap(f.bytes, alsRequestHeaders); err != nil {
				return err
			}
		}
	}
	if len(original) != 0 {
		path = original
	}
	p.alsPut(alsPath, path)
	return nil
}

// alsResponse reads HTTPResponseProperties.
func (p *Parser) alsResponse(b []byte) (err error) {
	var f protoField
	code, sent := uint64(0), uint64(0)
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		switch {
		case f.wire == wireVarint && f.number == 3:
			sent = f.value
		case f.wire != wireBytes:
		case f.number == 1:
			if next := f.read(f.bytes, 0); next > 0 && f.number == 1 && f.wire == wireVarint {
				code = f.value
			}
		case f.number == 4:
			err = p.alsMap(f.bytes, alsResponseHeaders)
		case f.number == 5:
			err = p.alsMap(f.bytes, alsTrailers)
		case f.number == 6:
			p.alsPut(alsDetails, f.bytes)
		}
		if err != nil {
			return err
		}
	}
	p.alsNumber(alsCode, int64(min(code, math.MaxInt64)))
	p.alsNumber(alsBytesSent, int64(min(sent, math.MaxInt64)))
	return nil
}

// alsMap reads one name and value of headers or tags. What gRPC says of a call stands in
// its trailers, or where there is no body in its headers.
func (p *Parser) alsMap(b []byte, of int) error {
	var f protoField
	var name, value []byte
	i := 0
	if len(b) > 2 && b[0] == 1<<3|wireBytes && b[1] < 0x80 && 2+int(b[1]) <= len(b) { // as nearly all are
		name, i = b[2:2+b[1]:2+b[1]], 2+int(b[1])
		if v, is := protoOnly(b[i:], 2); is {
			value, i = v, len(b)
		}
	}
	for next := 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		switch {
		case f.wire != wireBytes:
		case f.number == 1:
			name = f.bytes
		case f.number == 2:
			value = f.bytes
		}
	}
	if value == nil {
		value = []byte{} // there, and empty
	}
	if (of == alsTrailers || of == alsResponseHeaders) && string(name) == "grpc-status" {
		p.putColumn(alsGRPCStatus, value)
	}
	if n := p.columns[of].child; n != nil {
		if m := n.lookup(name); len(m.targets) != 0 {
			p.putMember(m, value)
		}
	}
	return nil
}
