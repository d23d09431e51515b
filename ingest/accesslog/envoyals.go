package accesslog

import "encoding/base64"

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
	entry                        alsEntryState
}

// alsBatch begins a line.
func (p *Parser) alsBatch(text []byte, depth int, before Notes, e *Entry) (rest []byte, err error) {
	o := &p.otlp
	o.rest, p.als.end, p.als.refused = nil, 0, nil
	p.als.logName, p.als.nodeID, p.als.nodeCluster = nil, nil, nil
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
