package accesslog

import "bytes"

// A line that is cut off, as by a full disk or a killed logger, has no line feed, and the
// next record follows in it. What begins a record is its stamp in the form of $time_local,
// with a request behind it, and before it the peer and the user. nginx escapes the quotes
// in all that callers send, so within a record this cannot stand.
//
// Where the peer begins is not always sure: in 10:15192.0.2.1 the cut may lie anywhere
// among the digits. Such a record is read without its peer.

// runsIn is where the last record of a line begins into which others ran that were cut
// off, and how many those are: 0 where the line is one record, or none.
func runsIn(b []byte) (at, broken int) {
	const longest = 64 // of a stamp
	heads, end := 0, 0 // end is that of the latest head
	for from := 0; ; {
		j := bytes.Index(b[from:], []byte(`] "`))
		if j < 0 {
			return at, broken
		}
		j += from
		from = j + 3
		near := max(end, j-longest)
		open := bytes.LastIndexByte(b[near:j], '[') + near
		if open < near || !isNginxStamp(b[open:j+1]) || heads > 0 && !isRequest(b[from:]) {
			continue
		}
		if start, glued := startOf(b[end:open]); heads > 0 || glued {
			at, broken = end+start, broken+1
		}
		heads, end = heads+1, from
	}
}

// startOf is where in what stands before a stamp its record begins: at the peer, if that
// is sure, or behind all of it. glued says that another record began before that.
func startOf(b []byte) (start int, glued bool) {
	if start = len(b); start == 0 {
		return 0, false
	}
	number, sure := start, false // where the peer's digits begin
	if k := bytes.LastIndex(bytes.TrimSuffix(b, []byte(" ")), []byte(" - ")); k > 0 {
		if number = backOver(b[:k], "0123456789."); bytes.Count(b[number:k], []byte(".")) < 3 {
			number = backOver(b[:k], "0123456789abcdefABCDEF:.")
		}
		if sure = isAddress4Or6(b[number:k]) && (number < 2 || b[number-2] != ','); sure {
			start = number
		} else if bytes.Count(b[number:k], []byte(".")) < 3 {
			number = len(b)
		}
	}
	if x := bytes.IndexByte(b, '['); x >= 0 {
		n := x + stampPrefix(b[x:])
		if n < len(b) && b[n] == '|' {
			n += len(b[n:]) - len(bytes.TrimLeft(b[n:], "|0123456789."))
		}
		if number > x && n >= number || n == len(b) && b[n-1] != ' ' {
			return start, true // cut within its stamp
		}
	}
	if number == 0 {
		return start, !sure // cut within its peer
	}
	first, rest := b[:blank(b, 0)], b[blank(b, 0):]
	return start, sure && isAddress4Or6(first) && bytes.HasPrefix(rest, []byte(" -"))
}

// isAddress4Or6 says that b is an address without a port.
func isAddress4Or6(b []byte) bool {
	group := 0
	for _, c := range b {
		if group++; c == ':' {
			group = 0
		}
		if group > 4 && bytes.IndexByte(b, ':') >= 0 {
			return false
		}
	}
	return isIP(b) && !oddAddr(b)
}

// backOver is where the run of these characters begins that ends b.
func backOver(b []byte, set string) int {
	return len(bytes.TrimRight(b, set))
}

// stampPrefix is how much of b is the beginning of a stamp in brackets.
func stampPrefix(b []byte) int {
	const form = "[00/aaa/0000:00:00:00 +0000] "
	for i := range form {
		if i >= len(b) {
			return i
		}
		is := b[i] == form[i]
		switch form[i] {
		case '0':
			is = isDigit(b[i])
		case 'a':
			is = b[i]|0x20 >= 'a' && b[i]|0x20 <= 'z'
		case '+':
			is = b[i] == '+' || b[i] == '-'
		}
		if !is {
			return i
		}
	}
	return len(form)
}

// isNginxStamp says that b is [$time_local], or [$time_local|$msec].
func isNginxStamp(b []byte) bool {
	const zone = len("[03/Mar/2026:10:15:42 +0000")
	switch n := stampPrefix(b); {
	case n == zone+1:
		return len(b) == n
	case n == zone && b[n] == '|':
		return backOver(b[:len(b)-1], "0123456789.") == n+1
	}
	return false
}

// isRequest says that b begins like what nginx logs between the quotes of a request.
func isRequest(b []byte) bool {
	n := 0
	for n < len(b) && b[n] >= 'A' && b[n] <= 'Z' {
		n++
	}
	return n >= 3 && n < len(b) && b[n] == ' ' || bytes.HasPrefix(b, []byte(`-"`))
}

// oddHead says that a peer and what stands between it and the stamp are not as in nearly
// all lines.
func oddHead(addr, user []byte) bool {
	if len(user) != 4 || string(user) != "- - " {
		if len(user) < 4 || user[0] != '-' || user[1] != ' ' || bytes.IndexByte(user, '[') >= 0 || bytes.Contains(user[1:], []byte(" - ")) {
			return true
		}
	}
	return oddAddr(addr)
}

// oddAddr says that addr has the letters of an IPv4 address, and is none.
func oddAddr(addr []byte) bool {
	dots, octet, digits := 0, 0, 0
	for _, c := range addr {
		if c == '.' {
			dots, octet, digits = dots+1, 0, 0
			continue
		}
		if c-'0' > 9 {
			return false
		}
		if octet, digits = octet*10+int(c-'0'), digits+1; octet > 255 || digits > 1 && octet < 10 {
			return true
		}
	}
	return dots > 3
}
