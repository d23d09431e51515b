package accesslog

// linkerdNames are the members of the Linkerd 2 proxy's JSON access log, whose
// numbers are strings and whose missing values are empty. The proxy takes the
// stamp when the request arrives.
//
// total_ns ends at the answer's headers and not at its last byte. response_bytes
// is the Content-Length that was announced and not what was sent, so it is no
// bytes_sent. trace_id is one of three headers (x-b3-traceid, x-request-id,
// x-amzn-trace-id), and the record does not say which: it is shown as the request
// id and is no key.
var linkerdNames = []alias{
	{fStart, 0, "timestamp"},
	{fDuration, unitNanos, "total_ns"},
	{fPeer, 0, "client.id client.addr"},
	{fMintedID, 0, "trace_id"},
}

// linkerdDeparture makes no claim: the proxy has no word for a departure. A record
// without a status is of a request that got none, from the application or because
// it was given up, which the record does not tell apart.
func (p *Parser) linkerdDeparture(e *Entry) {
	if e.Status < 100 {
		e.Notes |= NoteLowConfidence
	}
}
