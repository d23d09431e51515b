package ingest

import "encoding/binary"

// wireField is one field of a protobuf message: its number, how it is encoded, and its
// value where that has a length.
type wireField struct {
	number int
	wire   int
	value  []byte // of wireLength
	all    []byte // with its tag
}

const wireLength = 2

// wireNext is the field that b begins with, and what follows it; ok is false where
// there is none, because b ends before it does or is no message.
func wireNext(b []byte) (f wireField, rest []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return f, nil, false
	}
	f.number, f.wire = int(tag>>3), int(tag&7)
	size := uint64(0)
	switch f.wire {
	case 0:
		_, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return f, nil, false
		}
		size = uint64(m)
	case 1:
		size = 8
	case wireLength:
		length, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return f, nil, false
		}
		n, size = n+m, length
	case 5:
		size = 4
	default:
		return f, nil, false
	}
	if size > uint64(len(b)-n) {
		return f, nil, false
	}
	end := n + int(size)
	if f.all = b[:end]; f.wire == wireLength {
		f.value = b[n:end]
	}
	return f, b[end:], true
}

// wireBegun says that b is the beginning of a field that is cut off, and gives its number
// and what is there of its value, if it got that far and has a length.
func wireBegun(b []byte) (number int, value []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n == 0 {
		return 0, nil, true
	}
	if n < 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return 0, nil, false
	}
	number, b = int(tag>>3), b[n:]
	switch tag & 7 {
	case 0:
		_, m := binary.Uvarint(b)
		return number, nil, m == 0
	case 1:
		return number, nil, len(b) < 8
	case 5:
		return number, nil, len(b) < 4
	case wireLength:
		size, m := binary.Uvarint(b)
		if m <= 0 {
			return 0, nil, m == 0
		}
		return number, b[m:], size > uint64(len(b)-m)
	}
	return 0, nil, false
}

// appendWire appends a field that has a length.
func appendWire(b []byte, number int, value []byte) []byte {
	b = binary.AppendUvarint(b, uint64(number)<<3|wireLength)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}
