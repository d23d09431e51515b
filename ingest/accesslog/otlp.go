package accesslog

import "bytes"

// otlp-json is what an OpenTelemetry collector writes to Kafka or to a file: one
// request of the protocol a line, which holds resources, those hold scopes, and
// those hold spans or log records. Each SERVER span of an HTTP or gRPC request is a
// record, and so is each log record that is about one; of the rest of such a line
// nothing is. A record's text is that of its span, so a span that is shipped twice,
// in other company, is still the same.
//
// The resource's attributes are read with each of its records, those of the record
// first: service.name may name the dependency. Members may stand in any order, and have
// the names of the protocol's JSON form or those of its definition (resource_spans).
//
// A record that cannot be read is refused by itself, and those behind it are read; so is
// each record of a resource whose attributes cannot be. Where a line breaks off and runs
// into another, reading goes on with that.
var otlpNames = []alias{
	{fStart, 0, "startTimeUnixNano"}, {fEnd, 0, "endTimeUnixNano"}, {fTime, 0, "timeUnixNano"},
	{fArrivalID, 0, "spanId"}, {fMintedID, 0, "traceId"},
	{fMethod, 0, "http.request.method http.method"},
	{fPath, 0, "url.path http.target url.full http.url"},
	{fPeer, 0, "network.peer.address net.sock.peer.addr net.peer.ip client.address"},
	{fGRPCService, 0, "rpc.service"}, {fGRPCMethod, 0, "rpc.method"},
	{fGRPCStatus, 0, "rpc.grpc.status_code rpc.response.status_code rpc.status_code"},
	{fErrorType, 0, "error.type"},
}

// The members of a record that are looked at by name, in otlpColumns.
const (
	otlpStart = iota
	otlpEnd
	otlpTime
	otlpSpanID
	otlpTraceID
)

var otlpColumns = []string{"startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "spanId", "traceId"}

// otlpLevel is how deep in the request a place lies.
type otlpLevel uint8

const (
	otlpRequest   otlpLevel = iota // among the members of the request
	otlpResources                  // among the resources
	otlpResource                   // among the members of one
	otlpScopes
	otlpScope
	otlpRecords
)

// otlpState is where Parse goes on within one line.
type otlpState struct {
	rest     []byte // as Parse returned it
	before   Notes  // on the line
	level    otlpLevel
	seen     bool // it is a request of the protocol
	logs     bool // whose records are log records
	binary   bool // in the binary form
	resource []otlpAttribute
	refused  error     // what is wrong with the resource's attributes, and so with its records
	anew     []byte    // what Parse left over is another line
	bounded  bool      // it is known where the line ends that runs into another, if it does:
	tail     int       // so many bytes before the end of what is left are that other
	memory   [2][]byte // unescaped values of this resource and of the one before
	now      int       // index of this one's
	copied   []byte    // a line that came out of an envelope
	first    member    // its next is the likely first attribute
	prev     *member   // in the binary form, of the latest attribute
	keeps    bool      // attributes are the resource's
	parent   []byte    // parentSpanId of the record
	depth    int       // of lists in lists
	whole    member    // stands for a log record's body

	// In the binary form: where the scope and the resource end, and where the next
	// record begins.
	scopeEnd, resourceEnd, at int
}

// otlpAttribute is an attribute of the resource that somebody asked for.
type otlpAttribute struct {
	of    *target
	value []byte // nil is null
}

// otlpGoesOn says that line is what Parse left over of the line before.
func (p *Parser) otlpGoesOn(line []byte) bool {
	o := &p.otlp
	return len(o.rest) != 0 && len(line) == len(o.rest) && &line[0] == &o.rest[0]
}

// otlpBatch begins a line, in whichever of the two forms it is: a listener takes both.
func (p *Parser) otlpBatch(text []byte, depth int, before Notes, e *Entry) (rest []byte, err error) {
	o := &p.otlp
	if len(text) == len(RejectTooLong) && string(text) == string(RejectTooLong) {
		return nil, RejectTooLong // in place of a record that was sent, and was too large to be kept
	}
	if o.binary = len(text) == 0 || text[0] != '{'; o.binary {
		if o.rest, o.anew = nil, nil; len(text) != 0 && o.decode(text) {
			return p.protoBatch(before, e)
		}
		at := otlpHead(text)
		switch {
		case at < 0:
			return nil, RejectSyntax
		case at > maxPrefix || bytes.IndexByte(text[:at], '"') >= 0: // the end of one whose beginning is lost
			o.anew = text[at:]
			return o.anew, RejectSyntax
		}
		text, before, o.binary = text[at:], before|NotePrefixSkipped, false
	}
	anew := len(o.anew) != 0 && len(o.anew) == len(text) && &o.anew[0] == &text[0]
	if anew {
		before |= NoteResynchronised
	}
	o.rest, o.anew, o.level, o.seen, o.resource, o.refused, o.bounded, o.tail = nil, nil, otlpRequest, false, o.resource[:0], nil, false, 0
	if anew {
		o.bound(text, 1) // where one line is broken there may be many
	}
	i, found, err := p.otlpSeek(o.own(text), 1)
	switch {
	case err != nil:
		return p.otlpAnew(text, 1), err
	case found:
		return p.otlpRecord(text, i, before, e)
	case o.seen: // a request without a record, or of metrics
		return after(text[i:]), RejectOther
	}
	w, ok := p.unwrap(o.own(text))
	if !ok {
		return p.otlpAnew(text, 1), RejectSyntax
	}
	// The scratch memory that an unwrapped line lies in is another's two records on.
	o.copied = append(o.copied[:0], w.inner...)
	w.inner = o.copied
	return p.unwrapped(w, depth, before, e)
}

// bound finds where in text, at or behind text[i], another line begins that this one ran
// into. Once per line, so that a line of many broken ones costs no more than it is long.
func (o *otlpState) bound(text []byte, i int) {
	if o.bounded {
		return
	}
	o.bounded = true
	if at := otlpHead(text[i:]); at >= 0 {
		o.tail = len(text) - i - at
	}
}

// own is the part of text that is of this line, as far as that is known.
func (o *otlpState) own(text []byte) []byte { return text[:len(text)-o.tail] }

// otlpNext reads the next record of a line that was begun.
func (p *Parser) otlpNext(text []byte, e *Entry) (rest []byte, err error) {
	if p.otlp.binary {
		return p.protoNext(text, e)
	}
	p.otlp.rest = nil
	return p.otlpRecord(text, 0, p.otlp.before, e)
}

// otlpRecord reads the record at text[i] and finds the next one. Where the line is
// broken behind it, Damaged says so.
func (p *Parser) otlpRecord(text []byte, i int, before Notes, e *Entry) (rest []byte, err error) {
	o := &p.otlp
	p.otlpReset(before)
	end, kind, err := i, 0, error(RejectSyntax) // null, or a value that is no record
	if text[i] == '{' {
		end, kind, err = p.otlpMembers(o.own(text), i+1)
	}
	if err != nil {
		o.bound(text, i+1)
		var known bool
		if end, known = otlpBehind(o.own(text), i); !known {
			return p.otlpAnew(text, i+1), err
		}
	} else {
		err = o.refused
	}
	p.otlpOfResource()
	body := text[i:end]
	next, found, bad := p.otlpSeek(o.own(text), end)
	switch {
	case bad != nil:
		rest = p.otlpAnew(text, end)
	case found:
		rest = text[next:]
		o.rest = rest
	default:
		rest = after(text[next:])
	}
	if err != nil {
		return rest, err
	}
	return p.otlpFinish(body, kind, rest, bad, e)
}

// otlpBehind is the place behind the record at b[i], which cannot be read; known is
// whether its brackets tell: behind it the list goes on or ends.
func otlpBehind(b []byte, i int) (end int, known bool) {
	end, err := otlpSkip(b, i)
	if err != nil {
		if b[i] != '{' && b[i] != '[' {
			return 0, false
		}
		if end = brackets(b, i); end < 0 {
			return 0, false
		}
	}
	if otlpHead(b[i:end]) >= 0 {
		return 0, false
	}
	next := blanks(b, end)
	if next < len(b) && b[next] == ',' {
		next = blanks(b, next+1)
		return end, next < len(b) && b[next] != ',' && b[next] != ']' && b[next] != '"'
	}
	return end, next < len(b) && b[next] == ']'
}

// brackets is the place behind the bracket that matches the one at b[i], whatever stands
// between but in strings, or -1.
func brackets(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return i + 1
			}
		case '"':
			end, _ := closing(b, i+1, false)
			if end < 0 {
				return -1
			}
			i = end
		}
	}
	return -1
}

// otlpAnew is the part of a broken line that is another line, at or behind b[i]: one that
// the broken one ran into. It is nil where there is none.
func (p *Parser) otlpAnew(b []byte, i int) []byte {
	o := &p.otlp
	if o.bound(b, i); o.tail == 0 {
		return nil
	}
	o.anew = b[len(b)-o.tail:]
	return o.anew
}

// otlpRequestHead is how a request begins.
const otlpRequestHead = `{"resource`

// otlpHead is where a request begins in b, or -1. In strings its quotes are escaped.
func otlpHead(b []byte) int {
	for from := 0; ; {
		at := bytes.Index(b[from:], []byte(otlpRequestHead))
		if at < 0 {
			return -1
		}
		at += from
		from = at + len(otlpRequestHead)
		if name, _, ok := bytes.Cut(b[at+2:min(at+24, len(b))], []byte(`"`)); ok && (otlpRequestMember(name) || otlpMetrics(name)) {
			return at
		}
	}
}

// otlpRequestMember says that a member of that name of a request holds what is read.
func otlpRequestMember(name []byte) bool {
	switch string(name) {
	case "resourceSpans", "resource_spans", "resourceLogs", "resource_logs":
		return true
	}
	return false
}

// otlpMetrics says that a member of that name of a request holds metrics.
func otlpMetrics(name []byte) bool {
	return string(name) == "resourceMetrics" || string(name) == "resource_metrics"
}

// otlpReset makes ready for the next record.
func (p *Parser) otlpReset(before Notes) {
	p.raw.reset(vendorAny)
	p.raw.notes, p.otlp.before = before, before
	p.marks.clear()
}

// otlpOfResource gives the record what its resource says and it does not.
func (p *Parser) otlpOfResource() {
	r := &p.raw
	for i := range p.otlp.resource {
		a := &p.otlp.resource[i]
		if r.has(a.of.f) && r.cells[a.of.f].by == a.of {
			continue
		}
		if a.value == nil {
			r.setNull(a.of)
		} else {
			r.set(a.of, a.value)
		}
	}
}

// otlpFinish makes the entry of a record that was read; bad is what is wrong with
// the line behind it.
func (p *Parser) otlpFinish(body []byte, kind int, rest []byte, bad error, e *Entry) ([]byte, error) {
	switch {
	case p.otlp.logs && p.otlpRequestShown(), kind == otlpServer && p.otlpRequestShown():
	case bad != nil:
		return rest, bad
	default:
		return rest, RejectOther
	}
	if bad != nil {
		e.Damaged++
	}
	p.otlpDerived()
	return rest, p.interpret(body, e)
}

// otlpServer is the kind of a span on the side that serves.
const otlpServer = 2

// otlpRequestShown says that the record is about a request.
func (p *Parser) otlpRequestShown() bool {
	const signs = 1<<fMethod | 1<<fPath | 1<<fStatus | 1<<fGRPCStatus | 1<<fRequest | 1<<fFlags | 1<<fGRPCMethod
	return p.raw.have[0]&signs != 0
}

// otlpSeek goes from text[i] to the next record, or behind the request. Whatever
// stands between is read for the resource's attributes alone.
func (p *Parser) otlpSeek(text []byte, i int) (at int, found bool, err error) {
	o := &p.otlp
	from := o.now
	for {
		for i < len(text) && (text[i] <= ' ' || text[i] == ',') {
			i++
		}
		if i >= len(text) {
			return i, false, RejectCut
		}
		switch c := text[i]; {
		case c == '}' && o.level == otlpRequest:
			return i + 1, false, nil
		case c == '}' && (o.level == otlpResource || o.level == otlpScope),
			c == ']' && (o.level == otlpResources || o.level == otlpScopes || o.level == otlpRecords):
			o.level--
			i++
		case o.level == otlpRecords:
			if begins(text[i:], otlpRequestHead) && otlpHead(text[i:]) == 0 {
				return i, false, RejectSyntax // the line broke off, and this is another
			}
			return i, true, nil
		case c == '{' && o.level == otlpResources:
			o.level++
			i++
			o.now = 1 - from
			o.refused = p.otlpEnter(text, i)
		case c == '{' && o.level == otlpScopes:
			o.level++
			i++
		case c == '"':
			name, j, err := p.otlpName(text, i)
			if err != nil {
				return j, false, err
			}
			if o.level != otlpRequest && otlpRequestMember(name) {
				return i, false, RejectSyntax // the line broke off, and this is another
			}
			if i = j; i < len(text) && text[i] == '[' && o.opens(name) {
				i++
				continue
			}
			if o.level == otlpRequest && i < len(text) && text[i] == 'n' { // null: a list of nothing
				o.seen = o.seen || otlpRequestMember(name) || otlpMetrics(name)
			}
			if i, err = otlpSkip(text, i); err != nil {
				return i, false, err
			}
		case c == 'n' && (o.level == otlpResources || o.level == otlpScopes):
			if i, err = otlpSkip(text, i); err != nil { // null, in which nothing is
				return i, false, err
			}
		default:
			return i, false, RejectSyntax
		}
	}
}

// opens goes one level down where the member of that name holds what is looked for.
func (o *otlpState) opens(name []byte) bool {
	n := string(name)
	switch o.level {
	case otlpRequest:
		o.seen = o.seen || otlpMetrics(name)
		if !otlpRequestMember(name) {
			return false
		}
		o.seen, o.logs = true, n == "resourceLogs" || n == "resource_logs"
	case otlpResource:
		switch n {
		case "scopeSpans", "scopeLogs", "scope_spans", "scope_logs", "instrumentationLibrarySpans", "instrumentationLibraryLogs":
		default:
			return false
		}
	case otlpScope:
		if n != "spans" && n != "logRecords" && n != "log_records" {
			return false
		}
	default:
		return false
	}
	o.level++
	return true
}

// otlpEnter finds the attributes of the resource whose members begin at text[i];
// mostly they come first.
func (p *Parser) otlpEnter(text []byte, i int) error {
	o := &p.otlp
	o.resource, o.memory[o.now] = o.resource[:0], o.memory[o.now][:0]
	for {
		i = blanks(text, i)
		if i >= len(text) || text[i] != '"' {
			return nil // whoever goes on from here says what is wrong
		}
		name, j, err := p.otlpName(text, i)
		if err != nil {
			return err
		}
		if string(name) == "resource" {
			return p.otlpAttributesOf(text, j)
		}
		if i, err = otlpSkip(text, j); err != nil {
			return err
		}
		if i = blanks(text, i); i >= len(text) || text[i] != ',' {
			return nil
		}
		i++
	}
}

// otlpAttributesOf reads the resource at text[i].
func (p *Parser) otlpAttributesOf(text []byte, i int) error {
	if i >= len(text) || text[i] != '{' {
		return nil
	}
	for i++; ; i++ {
		i = blanks(text, i)
		if i >= len(text) || text[i] != '"' {
			return nil
		}
		name, j, err := p.otlpName(text, i)
		if err != nil {
			return err
		}
		if string(name) == "attributes" {
			p.otlp.keeps = true
			_, err := p.otlpAttributes(text, j, p.root)
			p.otlp.keeps = false
			return err
		}
		if i, err = otlpSkip(text, j); err != nil {
			return err
		}
		if i = blanks(text, i); i >= len(text) || text[i] != ',' {
			return nil
		}
	}
}
