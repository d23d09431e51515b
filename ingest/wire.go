package ingest

import "encoding/binary"

// wireField is one field of a protobuf message: its number, how it is encoded, and its
// value where that has a length.
type wireField struct {
	number int
	wire   int
	value  []byte // of wireLength
	all    []byte // with its tag
	cut    bool   // it is the beginning of a field, and number, wire and value as far as they got
}

const wireLength = 2

// wireNext is the field that b begins with, and what follows it; ok is false where
// there is none, because b ends before it does, of which the field is cut, or is no message.
func wireNext(b []byte) (f wireField, rest []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		f.cut = n == 0
		return f, nil, false
	}
	f.number, f.wire = int(tag>>3), int(tag&7)
	size := uint64(0)
	switch f.wire {
	case 0, wireLength:
		value, m := binary.Uvarint(b[n:])
		if m <= 0 {
			f.cut = m == 0
			return f, nil, false
		}
		if f.wire == 0 {
			size = uint64(m)
		} else {
			n, size = n+m, value
		}
	case 1:
		size = 8
	case 5:
		size = 4
	default:
		return f, nil, false
	}
	f.cut = size > uint64(len(b)-n)
	end := n + int(min(size, uint64(len(b)-n)))
	if f.all = b[:end]; f.wire == wireLength {
		f.value = b[n:end]
	}
	return f, b[end:], !f.cut
}

// appendWire appends a field that has a length.
func appendWire(b []byte, number int, value []byte) []byte {
	b = binary.AppendUvarint(b, uint64(number)<<3|wireLength)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}
