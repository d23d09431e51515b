package accesslog

import (
	"bytes"
	"math"
)

// interpret turns the raw values of one record into e. It is the only place that
// gives them a meaning; the vendor's conventions decide where formats differ.
func (p *Parser) interpret(text []byte, e *Entry) error {
	r := &p.raw
	damaged := e.Damaged
	*e = Entry{}
	e.Text, e.Damaged = text, damaged
	e.Duration, e.GRPCStatus, e.BytesSent = Unknown, Unknown, Unknown
	e.AttemptsLeft, e.RetryAfter = Unknown, Unknown
	if r.vendor == vendorAny && !p.format.json && p.format.depart == nil &&
		(r.shows(fCompletion) || r.shows(fUpstreamStatus) || r.shows(fUpstreamTime)) {
		r.vendor = vendorNginx
	}
	if p.format.json && !p.isRequest() {
		e.Notes = r.notes
		return RejectSyntax
	}
	if err := p.times(e); err != nil {
		e.Notes = r.notes
		return err
	}

	e.Dependency, e.Route = r.val(fDependency), r.val(fRoute)
	e.Method, e.Path = r.val(fMethod), r.val(fPath)
	e.Authority, e.UserAgent, e.Peer = r.val(fAuthority), r.val(fUserAgent), r.val(fPeer)
	if r.vendor == vendorNginx {
		p.addressUnderUA(e)
	}
	if r.have[0]&(1<<fMethod|1<<fPath) != 1<<fMethod|1<<fPath {
		p.requestLine(e)
	}
	if len(e.Path) > 0 && e.Path[0] != '/' {
		e.Path = originForm(e.Path)
	}
	p.results(e)

	e.ArrivalID, e.RequestID = r.val(fArrivalID), r.val(fRequestID)
	if len(e.RequestID) == 0 && r.has(fMintedID) {
		e.RequestID = r.val(fMintedID)
		if r.vendor == vendorNginx {
			r.notes |= NoteRequestIDMaybeMade
		}
	}
	if len(e.RequestID) == 0 {
		e.RequestID = e.ArrivalID
	}

	const carried = 1<<fAttempt | 1<<fEnvoyAttempt | 1<<fAmzRequest | 1<<fGoogClient | 1<<fGRPCPrevious |
		1<<fRetryAttempt | 1<<fStainlessRetry | 1<<fAttemptsLeft | 1<<fDeadline | 1<<fGRPCTimeout |
		1<<fEnvoyTimeout | 1<<fFinagleDeadline | 1<<fRetryAfter | 1<<fMSClientRequestID
	if (r.have[0]|r.null[0])&carried != 0 {
		p.metadata(e)
	}
	p.departure(e)
	p.chosen(e)
	if p.cfg.Trace {
		p.trace(e)
	}
	return nil
}

// shows says that the record has a place for f, even with nothing in it.
func (r *raw) shows(f field) bool { return r.has(f) || r.isNull(f) }

// isRequest tells an access record from whatever else a program logs as JSON: a
// stamp alone is no arrival.
func (p *Parser) isRequest() bool {
	const signs = 1<<fMethod | 1<<fPath | 1<<fStatus | 1<<fGRPCStatus | 1<<fDuration | 1<<fRequest |
		1<<fRoute | 1<<fDependency | 1<<fBytesSent | 1<<fBodyBytes | 1<<fQuestionKey | 1<<fIdempotencyKey |
		1<<fTraceparent | 1<<fAmzInvocation | 1<<fGCCLInvocation | 1<<fMSClientRequestID | 1<<fRequestID |
		1<<fAttempt | 1<<fClientGone | 1<<fDeparture | 1<<fArrivalID | 1<<fFlags | 1<<fCompletion |
		1<<fRecordKind | 1<<fGRPCMethod
	r := &p.raw
	if r.have[0]&signs != 0 {
		return true
	}
	return r.have[0]&p.keyMask[0] != 0 || r.have[1]&p.keyMask[1] != 0
}

// times finds start, end and duration.
func (p *Parser) times(e *Entry) error {
	r := &p.raw
	if r.has(fDuration) {
		c := &r.cells[fDuration]
		if d, ok := span(c.b, p.durationUnit(c.by.unit)); ok {
			e.Duration = d
		} else if len(c.b) != 0 {
			r.notes |= NoteBadDuration
		}
	}

	at, isEnd := fTime, p.format.stampEnd || r.vendor == vendorNginx
	configured := r.has(fTime) && r.cells[fTime].by.rank == 0
	switch {
	case configured && len(r.cells[fTime].b) != 0:
	case len(r.val(fStart)) != 0:
		at, isEnd = fStart, false
	case len(r.val(fEnd)) != 0:
		at, isEnd = fEnd, true
	}
	if at == fTime && r.has(fTimeIs) {
		switch string(r.val(fTimeIs)) {
		case "start":
			isEnd = false
		case "end":
			isEnd = true
		}
	}
	v := r.val(at)
	if len(v) == 0 {
		if !p.showsRequest() {
			return RejectNoTime
		}
		return nil
	}
	ns, uncertainty, ok := p.stamp(v)
	if !ok {
		return RejectBadTime
	}
	e.HasTime, e.StampIsEnd, e.Uncertainty = true, isEnd, uncertainty
	e.Start, e.End = ns, ns
	if (e.Duration == Unknown || p.format.spanned && uncertainty <= 1e6) && at == fStart && len(r.val(fEnd)) != 0 {
		if end, fine, ok := p.stamp(r.val(fEnd)); ok && end >= ns {
			if fine > 1e6 && e.Duration != Unknown {
				end = ns + e.Duration
			}
			e.Duration = end - ns
		} else {
			r.notes |= NoteBadDuration
		}
	}
	switch {
	case e.Duration == Unknown:
	case isEnd:
		e.Start -= e.Duration
	case e.Duration > math.MaxInt64-ns: // centuries ahead: later than whatever it is held to
		e.End = math.MaxInt64
	default:
		e.End += e.Duration
	}
	return nil
}

func (p *Parser) durationUnit(u unit) unit {
	switch {
	case u != unitDefault:
		return u
	case p.raw.vendor == vendorNginx:
		return unitSeconds
	}
	return p.format.duration
}

// addressUnderUA moves an upstream list that a log calls ua, which others call
// the user agent.
func (p *Parser) addressUnderUA(e *Entry) {
	r := &p.raw
	if r.shows(fUpstreamAddr) || len(e.UserAgent) == 0 || r.cells[fUserAgent].by.name != "ua" {
		return
	}
	v := e.UserAgent
	if i := bytes.IndexAny(v, ", "); i >= 0 {
		v = v[:i]
	}
	i := bytes.LastIndexByte(v, ':')
	if i < 0 {
		return
	}
	if _, ok := digits(v[i+1:]); !ok && !bytes.HasPrefix(v, []byte("unix:")) {
		return
	}
	p.put(fUpstreamAddr, e.UserAgent)
	r.have[0] &^= 1 << fUserAgent
	e.UserAgent = nil
}

// requestLine fills method and path from a request line or from gRPC's names.
func (p *Parser) requestLine(e *Entry) {
	r := &p.raw
	if v := r.val(fRequest); len(v) != 0 {
		i := bytes.IndexByte(v, ' ')
		if i <= 0 {
			return // what was read before the caller gave up
		}
		if e.Method == nil {
			e.Method = v[:i]
		}
		for v = v[i:]; len(v) > 0 && v[0] == ' '; {
			v = v[1:]
		}
		if j := len(v) - len(" HTTP/1.1"); j >= 0 && string(v[j:j+6]) == " HTTP/" {
			v = v[:j]
		} else if j := bytes.LastIndex(v, []byte(" HTTP/")); j >= 0 {
			v = v[:j]
		}
		if e.Path == nil && len(v) != 0 {
			e.Path = v
		}
		return
	}
	s, m := r.val(fGRPCService), r.val(fGRPCMethod)
	if e.Path == nil && len(m) != 0 && len(s) != 0 {
		room := append(p.grow(len(s)+len(m)+2), '/')
		e.Path = p.keep(append(append(append(room, s...), '/'), m...))
	}
}

// originForm cuts scheme and host off a path that was logged with them.
func originForm(path []byte) []byte {
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(path) > len(scheme) && string(path[:len(scheme)]) == scheme {
			rest := path[len(scheme):]
			if i := bytes.IndexByte(rest, '/'); i >= 0 {
				return rest[i:]
			}
		}
	}
	return path
}

// results reads what came of the request.
func (p *Parser) results(e *Entry) {
	r := &p.raw
	if r.has(fStatus) {
		e.StatusRaw = r.cells[fStatus].b
		if n := count(e.StatusRaw); n >= 100 && n <= 999 {
			e.Status = int(n)
		}
	} else if r.isNull(fStatus) {
		e.StatusRaw = dash
	}
	if r.has(fGRPCStatus) {
		e.GRPCStatus = grpcCode(r.cells[fGRPCStatus].b)
	}
	if r.has(fBytesSent) {
		e.BytesSent = count(r.cells[fBytesSent].b)
	}
	if e.BytesSent == Unknown && r.has(fBodyBytes) {
		if e.BytesSent = count(r.cells[fBodyBytes].b); e.BytesSent != Unknown {
			r.notes |= NoteBodyBytesOnly
		}
	}
}

var dash = []byte("-")

// zeroStatus says that the record shows 0 or 000 for its status: a logger's word
// for no answer. What cannot be read, and what no status can be, is not that.
func (e *Entry) zeroStatus() bool {
	return e.Status == 0 && len(e.StatusRaw) != 0 && count(e.StatusRaw) == 0
}

// count reads a number of bytes or of something else that is not negative.
func count(b []byte) int64 {
	if len(b) == 1 && b[0]-'0' <= 9 {
		return int64(b[0] - '0')
	}
	if n, ok := small(b); ok {
		return n
	}
	if len(b) == 0 {
		return Unknown
	}
	var n int64
	for i, c := range b {
		if c-'0' > 9 {
			if c == '.' && i > 0 && len(bytes.Trim(b[i+1:], "0")) == 0 {
				return n // a float that means a whole number
			}
			return Unknown
		}
		if n = n*10 + int64(c-'0'); i >= 18 {
			return Unknown
		}
	}
	return n
}

// gRPC's codes by number, without separators, in lower case; "cancelled" is how
// the others write Go's "canceled".
var grpcCodes = [...]string{"ok", "canceled", "unknown", "invalidargument", "deadlineexceeded", "notfound",
	"alreadyexists", "permissiondenied", "resourceexhausted", "failedprecondition", "aborted", "outofrange",
	"unimplemented", "internal", "unavailable", "dataloss", "unauthenticated"}

func grpcCode(b []byte) int {
	if n, ok := digits(b); ok && len(b) < 6 {
		return n
	}
	var buf [24]byte
	word := buf[:0]
	for _, c := range b {
		if c == '_' || c == ' ' {
			continue
		}
		if len(word) == len(buf) {
			return Unknown
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		word = append(word, c)
	}
	for n, name := range grpcCodes {
		if string(word) == name {
			return n
		}
	}
	if string(word) == "cancelled" {
		return 1
	}
	return Unknown
}

// departure applies the vendor's rules, then what the record says in the
// canonical words.
func (p *Parser) departure(e *Entry) {
	r := &p.raw
	switch {
	case p.format.depart != nil:
		e.Notes = r.notes
		p.format.depart(p, e)
	case r.vendor == vendorNginx:
		body := int64(Unknown)
		if r.has(fBodyBytes) {
			body = count(r.cells[fBodyBytes].b)
		}
		tries, n := splitTries(p.tries[:0], r.list(fUpstreamAddr), r.list(fUpstreamStatus), r.list(fUpstreamTime))
		if cap(tries) > cap(p.tries) {
			p.tries = tries
		}
		e.Tries = tries
		e.Notes = r.notes | n
		nginxDeparture(e, r.val(fCompletion), r.shows(fCompletion), body)
	case r.vendor == vendorEnvoy:
		e.Notes = r.notes
		envoyDeparture(e, r.val(fFlags), r.val(fDetails), r.shows(fFlags))
		p.envoyTries(e)
	default:
		e.Notes = r.notes
		goDeparture(e, r)
	}
	if r.has(fClientGone) || r.has(fDeparture) {
		toldDeparture(e, r.val(fClientGone), r.val(fDeparture), r.has(fClientGone))
	}
	if r.have[0]&(1<<fUpstreamCluster|1<<fGRPCMethod|1<<fRecordKind) != 0 {
		p.kind(e)
	}
}

// list gives an upstream list in the form that splitTries reads.
func (r *raw) list(f field) []byte {
	v := r.val(f)
	switch {
	case r.isNull(f) && !r.has(f):
		return dash
	case len(v) == 0 && r.has(f) && f != fUpstreamTime:
		// escape=json writes nothing for nobody asked. An empty time does not say
		// so much: unquoted, it may be any number that is missing.
		return dash
	}
	return v
}

// maxTries bounds the tries of a record that only gives their number.
const maxTries = 64

// noTries is an empty list with room: without room an Entry would not say that
// there were none.
func (p *Parser) noTries() []Try {
	if p.tries == nil {
		p.tries = make([]Try, 0, 4)
	}
	return p.tries[:0]
}

// outbound says that a cluster is one to which a sidecar sends what its own
// application asks of others: a service of the mesh, or in Istio's names one that
// the mesh does not know or forbids.
func outbound(cluster []byte) bool {
	switch string(cluster) {
	case "PassthroughCluster", "BlackHoleCluster":
		return true
	}
	return bytes.HasPrefix(cluster, []byte("outbound|"))
}

// kind tells finished requests from a logger's other records.
func (p *Parser) kind(e *Entry) {
	r := &p.raw
	e.Outbound = outbound(r.val(fUpstreamCluster))
	if r.has(fGRPCMethod) && !r.has(fGRPCStatus) {
		if string(r.val(fWrapMsg)) == "started call" || string(r.val(fMessage)) == "started call" {
			e.Kind = KindStart
		}
	}
	switch v := r.val(fRecordKind); {
	case len(v) == 0, string(v) == "NotSet":
		return
	case bytes.HasSuffix(v, []byte("DownstreamEnd")):
	case bytes.HasSuffix(v, []byte("DownstreamStart")):
		e.Kind = KindStart
	default:
		e.Kind = KindPeriodic // also what an upstream side adds
	}
	if e.StreamID = r.val(fStreamID); len(e.StreamID) == 0 {
		e.StreamID = e.RequestID
	}
}

// chosen delivers what the configuration asked for.
func (p *Parser) chosen(e *Entry) {
	r := &p.raw
	e.Keys, e.Extra = p.keyBuf, p.extraBuf
	for i, f := range p.keys {
		v := r.val(f)
		if !p.marks.ascii && len(v) != 0 && invalidUTF8(v) {
			e.Notes |= NoteInvalidUTF8
		}
		p.keyBuf[i] = v
	}
	for i, f := range p.extra {
		p.extraBuf[i] = r.val(f)
	}
	// A format that escapes cannot be made to say a name twice; Envoy's may not
	// escape, and then the first of two is the caller's choice.
	e.KeySuspect = r.suspect || r.duplicate && (r.vendor == vendorEnvoy || p.keyTwice(e))
}

// keyTwice says that the key that decides, the first that is there, stands there twice, with
// two values: in whatever format, nobody knows which of them it is.
func (p *Parser) keyTwice(e *Entry) bool {
	for i, f := range p.keys {
		if len(e.Keys[i]) != 0 {
			return p.raw.twice[f>>6]&(1<<(f&63)) != 0
		}
	}
	return false
}

// trace names the log field of every canonical one.
func (p *Parser) trace(e *Entry) {
	e.Sources = map[string]string{}
	for f := range fieldCount {
		if p.raw.has(f) && (f < fMessage || f > fWrapStream) {
			e.Sources[fieldNames[f]] = p.raw.cells[f].by.name
		}
	}
	for _, fields := range [...][]field{p.keys, p.extra} {
		for _, f := range fields {
			if f >= fieldCount && p.raw.has(f) {
				e.Sources[p.positional[f].name] = p.raw.cells[f].by.name
			}
		}
	}
}
