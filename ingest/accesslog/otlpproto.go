package accesslog

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// otlp-proto is what otlp-json is, in the protocol's binary form: each line is one
// request in base64. A Kafka source writes its records so.
//
// A request, a resource and a scope have the same fields whether they lead to spans
// or to log records; the wire types of a record's own fields tell the two apart.
// Fields may stand in any order. What cannot be read is refused by itself: a record, each
// record of a resource whose attributes cannot be read, and of a scope or a resource what
// is left of it from a field on that is none.

// protoField is one field of a message.
type protoField struct {
	number int
	wire   uint8
	value  uint64 // of a varint or a fixed number
	bytes  []byte // of what has a length
	start  int    // where those begin
}

const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// read reads the field at b[i] and gives the place behind it, which is not positive
// where there is none.
func (f *protoField) read(b []byte, i int) (next int) {
	// Most fields have a tag and a length of one byte each.
	if uint(i)+1 < uint(len(b)) && b[i]&0x87 == wireBytes && b[i] >= 8 && b[i+1] < 0x80 {
		start := i + 2
		if next = start + int(b[i+1]); next > len(b) {
			return -1
		}
		f.number, f.wire, f.start = int(b[i]>>3), wireBytes, start
		f.bytes = b[start:next:next]
		return next
	}
	return f.readAny(b, i)
}

func (f *protoField) readAny(b []byte, i int) (next int) {
	if uint(i)+2 < uint(len(b)) && b[i]&0x87 == 0x80|wireBytes && b[i+1]-1 < 0x7f && b[i+2] < 0x80 { // numbers from 16 on
		start := i + 3
		if next = start + int(b[i+2]); next > len(b) {
			return -1
		}
		f.number, f.wire, f.start = int(b[i]>>3&15)|int(b[i+1])<<4, wireBytes, start
		f.bytes = b[start:next:next]
		return next
	}
	if uint(i)+2 < uint(len(b)) && b[i]&0x87 == wireVarint && b[i] >= 8 {
		if f.number, f.wire = int(b[i]>>3), wireVarint; b[i+1] < 0x80 {
			f.value = uint64(b[i+1])
			return i + 2
		}
		if b[i+2] < 0x80 {
			f.value = uint64(b[i+1]&0x7f) | uint64(b[i+2])<<7
			return i + 3
		}
	}
	var tag uint64
	if tag, i = protoVarint(b, i); tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return -1
	}
	f.number, f.wire = int(tag>>3), uint8(tag&7)
	switch f.wire {
	case wireBytes:
		size, i := protoVarint(b, i)
		if i < 0 || size > uint64(len(b)-i) {
			return -1
		}
		f.start, next = i, i+int(size)
		f.bytes = b[i:next:next]
		return next
	case wireVarint:
		f.value, next = protoVarint(b, i)
		return next
	case wire64:
		if next = i + 8; next <= len(b) {
			f.value = binary.LittleEndian.Uint64(b[i:])
			return next
		}
	case wire32:
		if next = i + 4; next <= len(b) {
			return next
		}
	}
	return -1
}

// protoVarint reads the number at b[i] and gives the place behind it, -1 if there is
// none.
func protoVarint(b []byte, i int) (v uint64, next int) {
	if uint(i) >= uint(len(b)) {
		return 0, -1
	}
	if b[i] < 0x80 {
		return uint64(b[i]), i + 1
	}
	if rest := b[i:]; len(rest) >= 8 { // seven bits of each byte, up to the first below 0x80
		x := binary.LittleEndian.Uint64(rest)
		if ends := ^x & highs; ends != 0 {
			size := bits.TrailingZeros64(ends) + 1
			x &= 1<<size - 1 // 1<<64 is 0
			x &^= highs
			x = x&0x007f007f007f007f | x&0x7f007f007f007f00>>1
			x = x&0x00003fff00003fff | x&0x3fff00003fff0000>>2
			return x&0x0fffffff | x&0x0fffffff00000000>>4, i + size/8
		}
	}
	v, n := binary.Uvarint(b[i:])
	if n <= 0 {
		return 0, -1
	}
	return v, i + n
}

// protoBatch begins a line that was decoded.
func (p *Parser) protoBatch(before Notes, e *Entry) (rest []byte, err error) {
	o := &p.otlp
	o.resource, o.refused, o.resourceEnd, o.scopeEnd = o.resource[:0], nil, 0, 0
	var f protoField
	i, found := p.protoSeek(o.copied, 0, &f)
	if !found {
		return nil, RejectOther
	}
	return p.protoRecord(o.copied, &f, i, before, e)
}

// protoNext reads the next record of a line that was begun.
func (p *Parser) protoNext(text []byte, e *Entry) (rest []byte, err error) {
	o := &p.otlp
	o.rest = nil
	at := len(o.copied) - len(text)
	var f protoField
	end := o.protoEnd(at)
	next := f.read(o.copied[:end], at)
	if next <= 0 {
		f.number, next = 0, end
	}
	return p.protoRecord(o.copied, &f, next, o.before, e)
}

// protoRecord reads the record that f holds, and finds the next one from b[i] on.
func (p *Parser) protoRecord(b []byte, f *protoField, i int, before Notes, e *Entry) (rest []byte, err error) {
	p.otlpReset(before)
	body, kind, err := f.bytes, 0, error(RejectCut)
	if f.number != 0 {
		if kind, err = p.protoMembers(body); err == nil {
			err = p.otlp.refused
		}
	}
	p.otlpOfResource()
	if _, found := p.protoSeek(b, i, f); found {
		rest = b[p.otlp.at:]
		p.otlp.rest = rest
	}
	if err != nil {
		return rest, err
	}
	return p.otlpFinish(body, kind, rest, nil, e)
}

// protoEnd is where the innermost message ends that a place of the line lies in.
func (o *otlpState) protoEnd(i int) int {
	switch {
	case i < o.scopeEnd:
		return o.scopeEnd
	case i < o.resourceEnd:
		return o.resourceEnd
	}
	return len(o.copied)
}

// protoSeek goes from b[i] to the next record, whose field begins at p.otlp.at and
// ends at next. What is no field stands for a record that cannot be read, of number 0: it
// reaches to the end of the message that it lies in.
func (p *Parser) protoSeek(b []byte, i int, f *protoField) (next int, found bool) {
	o := &p.otlp
	from := o.now
	for i < len(b) {
		end := o.protoEnd(i)
		if next = f.read(b[:end], i); next <= 0 {
			o.at, f.number = i, 0
			return end, true
		}
		switch {
		case f.wire != wireBytes:
		case i < o.scopeEnd:
			if f.number == 2 {
				o.at = i
				return next, true
			}
		case i < o.resourceEnd:
			if f.number == 2 {
				o.scopeEnd, next = next, f.start
			}
		case f.number == 1:
			o.now = 1 - from
			start := f.start
			o.refused = p.protoResource(f.bytes)
			o.resourceEnd, next = next, start
		}
		i = next
	}
	return i, false
}

// protoResource finds the attributes of the resource that b holds, which may be in several
// parts. What is no field ends the search, as it ends the records of b: where none came
// before, it would be theirs and behind it, so theirs are not known.
func (p *Parser) protoResource(b []byte) error {
	o := &p.otlp
	o.resource, o.memory[o.now] = o.resource[:0], o.memory[o.now][:0]
	var f protoField
	found := false
	for i := 0; i < len(b); {
		next := f.read(b, i)
		switch {
		case next <= 0 && found:
			return nil
		case next <= 0:
			return RejectCut
		}
		if f.number == 1 && f.wire == wireBytes {
			found, o.keeps = true, true
			err := p.protoList(f.bytes, 1, p.root)
			if o.keeps = false; err != nil {
				return err
			}
		}
		i = next
	}
	return nil
}

// protoIsLog says that the record b is a log record and no span: f is its first field,
// and next the place behind that. The two have a few fields of one number and wire type,
// of which none but the ninth is in all that is read: a span's attribute, and the 16 bytes
// of a log record's trace id.
func protoIsLog(b []byte, f protoField, next int) bool {
	named := false
	for {
		switch f.number {
		case 1, 2:
			return f.wire != wireBytes
		case 4, 13, 14, 15, 16:
			return false
		case 6, 10, 12:
			return f.wire == wireBytes
		case 7:
			return f.wire == wireVarint
		case 8:
			return f.wire == wire32
		case 9:
			named = named || len(f.bytes) != 16
		case 11:
			return f.wire == wire64
		}
		if next >= len(b) {
			break
		}
		if next = f.read(b, next); next <= 0 {
			break // whoever reads it says so
		}
	}
	return !named
}

// protoMembers reads the fields of a span or a log record, and gives a span's kind.
func (p *Parser) protoMembers(b []byte) (kind int, err error) {
	o := &p.otlp
	o.parent, o.prev = nil, &o.first
	var f protoField
	for i := 0; i < len(b); {
		next := f.read(b, i)
		if next <= 0 {
			return 0, RejectCut
		}
		if i == 0 {
			o.logs = (f.number != 1 || f.wire != wireBytes) && protoIsLog(b, f, next)
		}
		i = next
		switch {
		case o.logs:
			err = p.protoLog(&f)
		case f.number == 6 && f.wire == wireVarint:
			kind = int(min(f.value, 16))
		default:
			err = p.protoSpan(&f)
		}
		if err != nil {
			return 0, err
		}
	}
	return kind, nil
}

func (p *Parser) protoSpan(f *protoField) error {
	switch {
	case f.wire == wireBytes:
		switch f.number {
		case 1:
			p.putColumn(otlpTraceID, p.hexOf(f.bytes))
		case 2:
			p.putColumn(otlpSpanID, p.hexOf(f.bytes))
		case 4:
			p.otlp.parent = p.hexOf(f.bytes)
		case 9:
			return p.protoAttribute(f.bytes, p.root)
		}
	case f.wire == wire64 && f.number == 7:
		p.protoTime(otlpStart, f.value)
	case f.wire == wire64 && f.number == 8:
		p.protoTime(otlpEnd, f.value)
	}
	return nil
}

func (p *Parser) protoLog(f *protoField) error {
	switch {
	case f.wire == wire64 && f.number == 1:
		p.protoTime(otlpTime, f.value)
	case f.wire != wireBytes:
	case f.number == 5:
		v, is, err := p.protoAny(f.bytes, &p.otlp.whole)
		if err != nil || !is || len(v) == 0 || v[0] != '{' {
			return err
		}
		_, err = p.object(v, 1, p.root)
		return err
	case f.number == 6:
		return p.protoAttribute(f.bytes, p.root)
	case f.number == 9:
		p.putColumn(otlpTraceID, p.hexOf(f.bytes))
	}
	return nil
}

// protoTime takes nanoseconds, of which 0 are none.
func (p *Parser) protoTime(column int, ns uint64) {
	if ns != 0 {
		p.putColumn(column, p.numberOf(ns))
	}
}

// numberOf is the text of a number. Most statuses, counts and attempts are below 1000.
func (p *Parser) numberOf(n uint64) []byte {
	const most = 20
	v := p.grow(most)[:most]
	i := most
	for ; n >= 1000; n /= 1000 {
		i -= 3
		copy(v[i:i+3], threeDigits[n%1000][:])
	}
	d := &threeDigits[n]
	switch {
	case n >= 100:
		i -= 3
		copy(v[i:i+3], d[:])
	case n >= 10:
		i -= 2
		copy(v[i:i+2], d[1:])
	default:
		i--
		v[i] = d[2]
	}
	p.scratch = p.scratch[:len(p.scratch)+most]
	return v[i:most:most]
}

var threeDigits = func() (t [1000][3]byte) {
	for n := range t {
		t[n] = [3]byte{'0' + byte(n/100), '0' + byte(n/10%10), '0' + byte(n%10)}
	}
	return t
}()

func (p *Parser) hexOf(id []byte) []byte {
	if len(id) > 16 {
		return nil
	}
	v := p.grow(32)[:2*len(id)]
	for i := 0; i < len(id); i++ {
		binary.LittleEndian.PutUint16(v[2*i:], hexPairs[id[i]])
	}
	return p.keep(v)
}

// hexPairs are the two digits of each byte.
var hexPairs = func() (t [256]uint16) {
	const digits = "0123456789abcdef"
	for c := range t {
		t[c] = uint16(digits[c>>4]) | uint16(digits[c&15])<<8
	}
	return t
}()

// protoList reads the attributes that a message holds in its fields of one number.
func (p *Parser) protoList(b []byte, number int, n *node) error {
	var f protoField
	for i := 0; i < len(b); {
		next := f.read(b, i)
		if next <= 0 {
			return RejectCut
		}
		if f.number == number && f.wire == wireBytes {
			if err := p.protoAttribute(f.bytes, n); err != nil {
				return err
			}
		}
		i = next
	}
	return nil
}

// otlpMember finds who wants the attribute of that key, which mostly follows the one
// before as it did in other records.
func (p *Parser) otlpMember(key []byte, n *node) *member {
	prev := p.otlp.prev
	if n != p.root || prev == nil {
		return n.lookup(key)
	}
	m := prev.next[0]
	if m == nil || len(key) != m.size-3 || string(key) != m.quoted[1:m.size-2] {
		if m = n.lookup(key); m.quoted == "" {
			return m
		}
		prev.next[0], prev.next[1] = m, prev.next[0]
	}
	p.otlp.prev = m
	return m
}

// protoAttribute reads a key and a value.
func (p *Parser) protoAttribute(b []byte, n *node) error {
	var m *member
	var f protoField
	i := 0
	// Nearly all are a key and a text, or a list of one text, each with a length of one
	// byte: {1: key, 2: {1: text}} and {1: key, 2: {5: {1: {1: text}}}}.
	if len(b) > 2 && b[0] == 1<<3|wireBytes && b[1] < 0x80 && 2+int(b[1]) <= len(b) {
		i = 2 + int(b[1])
		m = p.otlpMember(b[2:i:i], n)
		if v, is := protoOnly(b[i:], 2); is {
			if len(m.targets) == 0 && m.child == nil {
				return nil
			}
			if list, is := protoOnly(v, 5); is {
				if list, is = protoOnly(list, 1); is {
					v = list
				}
			}
			if text, is := protoOnly(v, 1); is {
				p.otlpPut(m, text)
				return nil
			}
			if len(v) == 3 && v[0] == 3<<3|wireVarint && v[1] >= 0x80 && v[2] < 0x80 { // {3: a number of up to 14 bits}
				p.otlpPut(m, p.numberOf(uint64(v[1]&0x7f)|uint64(v[2])<<7))
				return nil
			}
		}
	}
	var value []byte
	for i < len(b) {
		next := f.read(b, i)
		if next <= 0 {
			return RejectCut
		}
		i = next
		switch {
		case f.wire != wireBytes:
		case f.number == 1 && m == nil:
			m = p.otlpMember(f.bytes, n)
		case f.number == 2:
			value = f.bytes
		}
	}
	if m == nil || len(m.targets) == 0 && m.child == nil {
		return nil
	}
	v, is, err := p.protoAny(value, m)
	if err == nil && is {
		p.otlpPut(m, v)
	}
	return err
}

// protoOnly is what the only field of b holds, if that is of this number, and shorter
// than 128 bytes.
func protoOnly(b []byte, number byte) (v []byte, is bool) {
	if len(b) < 2 || b[0] != number<<3|wireBytes || b[1] >= 0x80 || 2+int(b[1]) != len(b) {
		return nil, false
	}
	return b[2:len(b):len(b)], true
}

// protoAny reads a value, as otlpAny does: of several kinds the last counts, and a field
// that is none of them takes nothing away.
func (p *Parser) protoAny(b []byte, m *member) (v []byte, is bool, err error) {
	var f protoField
	for i := 0; i < len(b); {
		next := f.read(b, i)
		if next <= 0 {
			return nil, false, RejectCut
		}
		i = next
		switch {
		case f.number == 1 && f.wire == wireBytes:
			v, is = f.bytes, true
		case f.number == 2 && f.wire == wireVarint:
			v, is = p.keep(strconv.AppendBool(p.grow(5), f.value != 0)), true
		case f.number == 3 && f.wire == wireVarint:
			if is = true; f.value>>63 == 0 {
				v = p.numberOf(f.value)
			} else {
				v = p.keep(strconv.AppendInt(p.grow(20), int64(f.value), 10))
			}
		case f.number == 4 && f.wire == wire64:
			v, is = p.keep(strconv.AppendFloat(p.grow(32), math.Float64frombits(f.value), 'f', -1, 64)), true
		case f.number == 5 && f.wire == wireBytes:
			v, err = p.protoArray(f.bytes)
			is = true
		case f.number == 6 && f.wire == wireBytes:
			if v, is = nil, false; m != nil && m.child != nil && p.otlp.depth < maxDepth {
				p.otlp.depth++
				err = p.protoList(f.bytes, 1, m.child)
				p.otlp.depth--
			}
		case f.number == 7 && f.wire == wireBytes: // bytes
			v, is = nil, false
		}
		if err != nil {
			return nil, false, err
		}
	}
	return v, is, nil
}

// protoArray joins the values of a list. One that holds more than are joined is not known.
func (p *Parser) protoArray(b []byte) (all []byte, err error) {
	var f protoField
	for i, n := 0, 0; i < len(b); {
		next := f.read(b, i)
		if next <= 0 {
			return nil, RejectCut
		}
		i = next
		if f.number != 1 || f.wire != wireBytes {
			continue
		}
		if p.otlp.depth >= maxDepth || n == maxJoined {
			return nil, nil
		}
		p.otlp.depth++
		v, _, err := p.protoAny(f.bytes, nil)
		p.otlp.depth--
		if err != nil {
			return nil, err
		}
		if n == 0 {
			all = v
		} else {
			all = p.join(all, v)
		}
		n++
	}
	return all, nil
}
