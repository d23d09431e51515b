package accesslog

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// otlpMembers reads the members of the record that begin at b[i], and gives the
// place behind it and a span's kind.
func (p *Parser) otlpMembers(b []byte, i int) (end, kind int, err error) {
	o := &p.otlp
	o.parent = nil
	for {
		for i < len(b) && (b[i] <= ' ' || b[i] == ',') {
			i++
		}
		if i >= len(b) {
			return i, 0, RejectCut
		}
		if b[i] == '}' {
			return i + 1, kind, nil
		}
		var name, v []byte
		if name, i, err = p.otlpName(b, i); err != nil {
			return i, 0, err
		}
		switch string(name) {
		case "attributes":
			i, err = p.otlpAttributes(b, i, p.root)
		case "body":
			i, err = p.otlpBody(b, i)
		case "startTimeUnixNano", "start_time_unix_nano":
			i, err = p.otlpColumn(b, i, otlpStart)
		case "endTimeUnixNano", "end_time_unix_nano":
			i, err = p.otlpColumn(b, i, otlpEnd)
		case "timeUnixNano", "time_unix_nano":
			i, err = p.otlpColumn(b, i, otlpTime)
		case "traceId", "trace_id":
			i, err = p.otlpColumn(b, i, otlpTraceID)
		case "spanId", "span_id":
			if o.logs { // of the span in which something was logged
				i, err = otlpSkip(b, i)
			} else {
				i, err = p.otlpColumn(b, i, otlpSpanID)
			}
		case "parentSpanId", "parent_span_id":
			o.parent, i, err = p.otlpScalar(b, i, true)
		case "kind":
			if v, i, err = p.otlpScalar(b, i, true); string(v) == "2" || string(v) == "SPAN_KIND_SERVER" {
				kind = otlpServer
			}
		default:
			i, err = otlpSkip(b, i)
		}
		if err != nil {
			return i, 0, err
		}
	}
}

// otlpColumn takes the value at b[i] for a member of the record. A time of 0 is
// none.
func (p *Parser) otlpColumn(b []byte, i, column int) (int, error) {
	v, i, err := p.otlpScalar(b, i, true)
	if err == nil && len(v) != 0 && !(len(v) == 1 && v[0] == '0') {
		p.putColumn(column, v)
	}
	return i, err
}

// otlpBody reads a log record's body: a list of named values, or text that is a
// JSON object, gives fields like attributes do. Other text is not read.
func (p *Parser) otlpBody(b []byte, i int) (int, error) {
	v, _, i, err := p.otlpAny(b, i, &p.otlp.whole, true)
	if err != nil || len(v) == 0 || v[0] != '{' {
		return i, err
	}
	_, err = p.object(v, 1, p.root)
	return i, err
}

// otlpAttributes reads the list of attributes at b[i].
func (p *Parser) otlpAttributes(b []byte, i int, n *node) (int, error) {
	if i >= len(b) {
		return i, RejectCut
	}
	if b[i] != '[' {
		return otlpSkip(b, i)
	}
	prev := &p.otlp.first
	i++
	for {
		for i < len(b) && (b[i] <= ' ' || b[i] == ',') {
			i++
		}
		if i >= len(b) {
			return i, RejectCut
		}
		if b[i] == ']' {
			return i + 1, nil
		}
		if b[i] != '{' {
			return i, RejectSyntax
		}
		var err error
		if prev, i, err = p.otlpAttribute(b, i+1, n, prev); err != nil {
			return i, err
		}
	}
}

// How nearly every attribute begins, and how its value begins and ends: text, a number, or a
// header's one value.
const (
	otlpKeyHead    = `"key":"`
	otlpStringHead = `"value":{"stringValue":"`
	otlpIntHead    = `"value":{"intValue":"`
	otlpArrayHead  = `"value":{"arrayValue":{"values":[{"stringValue":"`
	otlpArrayTail  = `}]}}}`
)

// begins says that b begins with head.
func begins(b []byte, head string) bool { return len(b) >= len(head) && string(b[:len(head)]) == head }

// otlpAttribute reads the members of the attribute at b[i], which follows prev.
func (p *Parser) otlpAttribute(b []byte, i int, n *node, prev *member) (*member, int, error) {
	m := prev
	known, early := false, 0 // where a value stands that came before its key
	for {
		for i < len(b) && (b[i] <= ' ' || b[i] == ',') {
			i++
		}
		if i >= len(b) {
			return m, i, RejectCut
		}
		if b[i] == '}' {
			if known && early > 0 {
				v, is, _, err := p.otlpAny(b, early, m, len(m.targets) != 0)
				if err != nil {
					return m, i, err
				}
				if is {
					p.otlpPut(m, v)
				}
			}
			return m, i + 1, nil
		}
		if rest := b[i:]; !known && begins(rest, otlpKeyHead) {
			key := rest[len(otlpKeyHead):]
			if next := prev.next[0]; next != nil && len(key) >= next.size-2 && string(key[:next.size-2]) == next.quoted[1:next.size-1] {
				m, i, known = next, i+len(otlpKeyHead)+next.size-2, true
			} else if j := quoteOrBackslash(key, 0); j == len(key) {
				return m, len(b), RejectCut
			} else if key[j] == '"' {
				m, i, known = n.lookup(key[:j]), i+len(otlpKeyHead)+j+1, true
				if m.quoted != "" && n == p.root {
					prev.next[0], prev.next[1] = m, prev.next[0]
				}
			}
			if known {
				if i >= len(b) || b[i] != ',' {
					continue
				}
				head := 0
				switch value := b[i+1:]; {
				case begins(value, otlpStringHead):
					head = len(otlpStringHead)
				case begins(value, otlpIntHead):
					head = len(otlpIntHead)
				case begins(value, otlpArrayHead) && p.otlp.depth < maxDepth:
					v, j, err := p.otlpText(b, i+1+len(otlpArrayHead), len(m.targets) != 0)
					if err == nil && begins(b[j:], otlpArrayTail) { // else there are more
						p.otlpPut(m, v)
						return m, j + len(otlpArrayTail), nil
					}
				}
				if head != 0 {
					v, j, err := p.otlpText(b, i+1+head, len(m.targets) != 0)
					if err != nil {
						return m, j, err
					}
					if j < len(b) && b[j] == '}' { // else the value has more members
						p.otlpPut(m, v)
						if i = j + 1; i < len(b) && b[i] == '}' {
							return m, i + 1, nil
						}
					}
				}
				continue
			}
		}
		name, j, err := p.otlpName(b, i)
		if err != nil {
			return m, j, err
		}
		i = j
		switch {
		case string(name) == "key" && !known:
			var key []byte
			if key, i, err = p.otlpScalar(b, i, true); err == nil {
				m, known = n.lookup(key), true
			}
		case string(name) == "value" && known:
			var v []byte
			var is bool
			early = 0
			if v, is, i, err = p.otlpAny(b, i, m, len(m.targets) != 0); err == nil && is {
				p.otlpPut(m, v)
			}
		default:
			if string(name) == "value" {
				early = i
			}
			i, err = otlpSkip(b, i)
		}
		if err != nil {
			return m, i, err
		}
	}
}

// otlpPut takes v for who asked for it, now or with each record of the resource.
func (p *Parser) otlpPut(m *member, v []byte) {
	if isDash(v) {
		v = nil
	}
	if o := &p.otlp; o.keeps && v != nil && len(m.targets) != 0 {
		at := len(o.memory[o.now]) // it outlives the scratch memory
		o.memory[o.now] = append(o.memory[o.now], v...)
		v = o.memory[o.now][at:]
	}
	for _, t := range m.targets {
		switch o := &p.otlp; {
		case o.keeps:
			o.resource = append(o.resource, otlpAttribute{t, v})
		case v == nil:
			p.raw.setNull(t)
		default:
			p.raw.set(t, v)
		}
	}
}

// otlpAny reads a value of the protocol at b[i]: an object whose one member tells
// its kind. is says that it is one that stands for m itself; a list of named values
// goes to those who asked for something inside. Several values of a header are
// joined as proxies join them.
func (p *Parser) otlpAny(b []byte, i int, m *member, wanted bool) (v []byte, is bool, next int, err error) {
	if i >= len(b) {
		return nil, false, i, RejectCut
	}
	if b[i] != '{' {
		next, err = otlpSkip(b, i)
		return nil, false, next, err
	}
	i++
	for {
		for i < len(b) && (b[i] <= ' ' || b[i] == ',') {
			i++
		}
		if i >= len(b) {
			return nil, false, i, RejectCut
		}
		if b[i] == '}' {
			return v, is, i + 1, nil
		}
		var name []byte
		if name, i, err = p.otlpName(b, i); err != nil {
			return nil, false, i, err
		}
		switch string(name) {
		case "stringValue", "intValue", "boolValue", "doubleValue", "string_value", "int_value", "bool_value", "double_value":
			v, i, err = p.otlpScalar(b, i, wanted)
			is = true
		case "arrayValue", "array_value":
			v, i, err = p.otlpArray(b, i, m, wanted)
			is = wanted
		case "kvlistValue", "kvlist_value":
			i, err = p.otlpList(b, i, m)
		default:
			i, err = otlpSkip(b, i)
		}
		if err != nil {
			return nil, false, i, err
		}
	}
}

// otlpArray reads {"values":[…]} of values without a name. A list that holds something
// else, or more than are joined, is not known.
func (p *Parser) otlpArray(b []byte, i int, m *member, wanted bool) (all []byte, next int, err error) {
	end, err := otlpSkip(b, i)
	if err != nil || !wanted || p.otlp.depth >= maxDepth {
		return nil, end, err
	}
	b = b[:end]
	if i, err = p.otlpValues(b, i); err != nil || i < 0 {
		return nil, end, err
	}
	p.otlp.depth++
	defer func() { p.otlp.depth-- }()
	none := member{}
	for n := range maxJoined {
		if i = blanks(b, i+1); i >= end || b[i] != '{' {
			break
		}
		var v []byte
		if v, _, i, err = p.otlpAny(b, i, &none, true); err != nil {
			return nil, end, err
		}
		if n == 0 {
			all = v
		} else {
			all = p.join(all, v)
		}
		if i = blanks(b, i); i >= end || b[i] != ',' && b[i] != ']' {
			return nil, end, RejectSyntax
		}
		if b[i] == ']' {
			return all, end, nil
		}
	}
	return nil, end, nil
}

// otlpList reads {"values":[{"key":…,"value":…},…]}.
func (p *Parser) otlpList(b []byte, i int, m *member) (next int, err error) {
	end, err := otlpSkip(b, i)
	if err != nil || m.child == nil || p.otlp.depth >= maxDepth {
		return end, err
	}
	if i, err = p.otlpValues(b[:end], i); err != nil || i < 0 {
		return end, err
	}
	p.otlp.depth++
	_, err = p.otlpAttributes(b[:end], i, m.child)
	p.otlp.depth--
	return end, err
}

// otlpValues is where the list begins that is the member values of the object b[i:], -1 if
// it has none.
func (p *Parser) otlpValues(b []byte, i int) (at int, err error) {
	if b[i] != '{' {
		return -1, nil
	}
	for i++; ; {
		for i < len(b) && (b[i] <= ' ' || b[i] == ',') {
			i++
		}
		if i >= len(b) {
			return -1, RejectCut
		}
		if b[i] == '}' {
			return -1, nil
		}
		name, j, err := p.otlpName(b, i)
		switch {
		case err != nil:
			return -1, err
		case string(name) == "values" && j < len(b) && b[j] == '[':
			return j, nil
		}
		if i, err = otlpSkip(b, j); err != nil {
			return -1, err
		}
	}
}

// otlpName reads a member's name and colon.
func (p *Parser) otlpName(b []byte, i int) (name []byte, next int, err error) {
	if b[i] != '"' {
		return nil, i, RejectSyntax
	}
	if name, i, err = p.otlpText(b, i+1, true); err != nil {
		return nil, i, err
	}
	i = blanks(b, i)
	switch {
	case i >= len(b):
		return nil, i, RejectCut
	case b[i] != ':':
		return nil, i, RejectSyntax
	}
	return name, blanks(b, i+1), nil
}

// otlpScalar reads a string, or a value without quotes, which null is not.
func (p *Parser) otlpScalar(b []byte, i int, wanted bool) (v []byte, next int, err error) {
	if i >= len(b) {
		return nil, i, RejectCut
	}
	switch b[i] {
	case '"':
		return p.otlpText(b, i+1, wanted)
	case '{', '[':
		next, err = otlpSkip(b, i)
		return nil, next, err
	}
	next = otlpBare(b, i)
	if v = b[i:next]; string(v) == "null" {
		v = nil
	}
	if next == i {
		return nil, i, RejectSyntax
	}
	return v, next, nil
}

// otlpBare is the end of the value without quotes at b[i].
func otlpBare(b []byte, i int) int {
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] != '"' && b[i] != '{' && b[i] != '[' {
		i++
	}
	return i
}

// otlpText reads the string whose first byte is b[i], after the quote.
func (p *Parser) otlpText(b []byte, i int, wanted bool) (v []byte, next int, err error) {
	n := quoteOrBackslash(b, i)
	switch {
	case n == len(b):
		return nil, n, RejectCut
	case b[n] == '"':
		return b[i:n], n + 1, nil
	}
	end, _ := closing(b, i, false)
	if end < 0 {
		return nil, len(b), RejectCut
	}
	if v = b[i:end]; wanted {
		v = p.unescape(v)
	}
	return v, end + 1, nil
}

// quoteOrBackslash is the place of the first of the two from b[i] on, or the length of b.
func quoteOrBackslash(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if found := zeros(x^'"'*lows) | zeros(x^'\\'*lows); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// otlpSkip passes over the value at b[i].
func otlpSkip(b []byte, i int) (int, error) {
	if i >= len(b) {
		return i, RejectCut
	}
	switch b[i] {
	case '{', '[':
		return skip(b, i)
	case '"':
		end, _ := closing(b, i+1, false)
		if end < 0 {
			return len(b), RejectCut
		}
		return end + 1, nil
	}
	end := otlpBare(b, i)
	if end == i {
		return i, RejectSyntax
	}
	return end, nil
}

// otlpDerived adds what the protocol says in words of its own: gRPC's path, and the
// trace that the caller began or went on with. A span without a parent began its
// trace itself, and such an id is nobody's key.
func (p *Parser) otlpDerived() {
	r, o := &p.raw, &p.otlp
	if m := r.val(fGRPCMethod); !r.has(fPath) && !r.has(fGRPCService) && bytes.IndexByte(m, '/') > 0 {
		p.put(fPath, p.keep(append(append(p.grow(len(m)+1), '/'), m...)))
	}
	trace := r.val(fMintedID)
	const asked = 1 << fTraceparent
	if o.logs || len(o.parent) != 16 || len(trace) != 32 || r.has(fTraceparent) || p.keyMask[0]&asked == 0 && !p.cfg.Trace {
		return
	}
	room := append(append(p.grow(55), "00-"...), trace...)
	p.put(fTraceparent, p.keep(append(append(append(room, '-'), o.parent...), "-01"...)))
}

// otlpDeparture reads what a span or a log record shows. The conventions have no
// word for a departure: what there is are an error that is named after one, gRPC's
// Canceled, and what an application or a proxy says in the words of its own log.
func (p *Parser) otlpDeparture(e *Entry) {
	r := &p.raw
	if r.shows(fFlags) {
		e.Notes = r.notes
		envoyDeparture(e, r.val(fFlags), r.val(fDetails), true)
		p.envoyTries(e)
		return
	}
	goDeparture(e, r)
	kind := r.val(fErrorType)
	if i := bytes.LastIndexByte(kind, '.'); i >= 0 {
		kind = kind[i+1:]
	}
	switch string(kind) {
	case "WebSocketDisconnect", "ClientDisconnect", "ClientAbortException":
		if e.Gone < GoneLikely {
			e.depart(GoneLikely, DeliveredUnknown, WorkYes, UnknownPoint)
			e.Visible = true
		}
	}
}
