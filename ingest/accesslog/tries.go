package accesslog

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// splitTries reads nginx's parallel upstream lists ($upstream_addr,
// $upstream_status, $upstream_response_time in seconds) into tries, which it
// appends to dst. Any of the three may be nil: the record has no such column.
//
// ", " starts the next try of a group and " : ", with its blanks, the next
// group; a bare colon belongs to an address. A joint at the very end is followed
// by no try: that group never got a peer. "-" is null, so a try may have no
// status or no time; it is never zero.
//
// The result is nil when the record does not say what was tried, and empty but
// not nil when it says that nothing was ("-"). Lists of different lengths or
// grouping cannot be paired, nor can a list that holds something else than its
// column: then the result is nil too, with NoteListsDisagree.
//
// Keep dst apart from the result: nil must not replace the scratch memory.
func splitTries(dst []Try, addr, status, times []byte) ([]Try, Notes) {
	if len(addr) == 0 && len(status) == 0 && len(times) == 0 {
		return nil, 0
	}
	if dst == nil {
		dst = make([]Try, 0, 4)
	}
	lists := [3][]byte{addr, status, times}
	have := [3]bool{len(addr) != 0, len(status) != 0, len(times) != 0}
	nothing := true
	for _, l := range lists {
		if len(l) != 0 && !isDash(l) {
			nothing = false
		}
	}
	if nothing {
		return dst[:0], 0
	}

	first, group := len(dst), 0
	for {
		t := Try{Time: Unknown, Group: group}
		joint, columns := jointEnd, 0
		for i, l := range lists {
			if !have[i] {
				continue
			}
			entry, rest, j := cutTry(l)
			if columns > 0 && j != joint {
				return nil, NoteListsDisagree
			}
			lists[i], joint = rest, j
			columns++
			if len(entry) == 0 || isDash(entry) {
				continue
			}
			ok := true
			switch i {
			case 0:
				t.Addr = entry
			case 1:
				t.Status, ok = tryStatus(entry)
			case 2:
				t.Time, ok = tryTime(entry)
			}
			if !ok {
				return nil, NoteListsDisagree
			}
		}
		t.Sent = trySent(&t, have[0], have[2])
		dst = append(dst, t)
		switch joint {
		case jointEnd:
			var n Notes
			if len(dst)-first > 1 {
				n = NoteManyTries
			}
			return dst, n
		case jointGroup:
			group++
		}
	}
}

// trySent says whether the line lets the request have reached an upstream. It is
// false where the line shows that nothing did: no peer was chosen (the name of
// the upstream block stands in the place of an address), nothing was measured,
// or the connection failed at once, which nginx writes as 502 in no time. A slow
// failure to connect looks like a slow answer, so it counts as sent.
func trySent(t *Try, haveAddr, haveTime bool) bool {
	if haveAddr && bytes.IndexByte(t.Addr, ':') < 0 {
		return false
	}
	if !haveTime {
		return true
	}
	if t.Time <= 0 && (t.Status == 0 || t.Status == 502) {
		return false
	}
	return true
}

type joint uint8

const (
	jointEnd   joint = iota // no more tries
	jointTry                // another try of the same group
	jointGroup              // a try of the next group
)

// cutTry splits the first entry off an upstream list.
func cutTry(list []byte) (entry, rest []byte, j joint) {
	for i := nextJoint(list, 0); i < len(list); i = nextJoint(list, i+1) {
		switch {
		case list[i] == ',':
			rest = list[i+1:]
			for len(rest) > 0 && rest[0] == ' ' {
				rest = rest[1:]
			}
			return list[:i], rest, jointTry
		case i+1 < len(list) && list[i+1] == ':':
			switch rest = list[i+2:]; {
			case len(rest) == 0 || len(rest) == 1 && rest[0] == ' ':
				return list[:i], nil, jointEnd
			case rest[0] == ' ':
				return list[:i], rest[1:], jointGroup
			}
		}
	}
	return list, nil, jointEnd
}

// nextJoint is the place of the first comma or blank from list[i] on, or the
// length of the list.
func nextJoint(list []byte, i int) int {
	for ; i+8 <= cap(list) && i < len(list); i += 8 {
		x := binary.LittleEndian.Uint64(list[i : i+8])
		if found := zeros(x^','*lows) | zeros(x^' '*lows); found != 0 {
			return min(i+bits.TrailingZeros64(found)/8, len(list))
		}
	}
	for i < len(list) && list[i] != ',' && list[i] != ' ' {
		i++
	}
	return min(i, len(list))
}

func isDash(b []byte) bool { return len(b) == 1 && b[0] == '-' }

func tryStatus(b []byte) (int, bool) {
	if len(b) > 3 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// tryTime reads seconds with up to nine decimals as nanoseconds. A negative time
// (a clock that was set back) is Unknown.
func tryTime(b []byte) (int64, bool) {
	if n, behind, ok := smallDecimal(b); ok {
		return n * spanScale[unitSeconds][behind], true
	}
	negative := b[0] == '-'
	if negative {
		b = b[1:]
	}
	var n int64
	digits, scale, point := 0, int64(1e9), false
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > 18 {
				return 0, false
			}
			if point {
				scale /= 10
				n += int64(c-'0') * scale
			} else {
				n = n*10 + int64(c-'0')*1e9
			}
			if n < 0 || n > 1e17 { // three years: no duration of a request
				return 0, false
			}
		case c == '.' && !point:
			point = true
		default:
			return 0, false
		}
	}
	if digits == 0 {
		return 0, false
	}
	if negative {
		return Unknown, true
	}
	return n, true
}
