package ingest

import "bytes"

// syslogText is what a message says, without the header that the sender's syslog put
// before it. Read are the headers of RFC 5424, of RFC 3164 with or without a host, and
// what is written in their place: a stamp of RFC 3339, a year behind the seconds, the
// priority alone, or nothing at all. The text begins behind the tag's colon; where
// there is no tag, behind the stamp. Its own blanks at either end are not kept.
func syslogText(m []byte) []byte {
	m = bytes.Trim(m, " \t\r\n\x00")
	rest, ok := syslogPriority(m)
	if !ok {
		return m
	}
	if bytes.HasPrefix(rest, []byte("1 ")) {
		if text, ok := syslog5424(rest[2:]); ok {
			return text
		}
	}
	return syslog3164(rest)
}

// syslogPriority takes off <0> to <191>.
func syslogPriority(m []byte) (rest []byte, ok bool) {
	if len(m) < 3 || m[0] != '<' {
		return nil, false
	}
	n := 0
	for i, c := range m[1:min(len(m), 5)] {
		switch {
		case c >= '0' && c <= '9' && i < 3:
			n = 10*n + int(c-'0')
		case c == '>' && i > 0 && n <= 191:
			return m[i+2:], true
		default:
			return nil, false
		}
	}
	return nil, false
}

// syslog5424 reads TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA [MSG], and
// gives MSG.
func syslog5424(s []byte) (text []byte, ok bool) {
	for i := range 5 {
		word, rest, more := bytes.Cut(s, []byte(" "))
		if !more || len(word) == 0 || i == 0 && !isStamp3339(word) && string(word) != "-" {
			return nil, false
		}
		s = rest
	}
	switch {
	case len(s) > 0 && s[0] == '-':
		s = s[1:]
	case len(s) > 0 && s[0] == '[':
		if s, ok = syslogElements(s); !ok {
			return nil, false
		}
	default:
		return nil, false
	}
	if len(s) > 0 && s[0] != ' ' {
		return nil, false
	}
	s = bytes.TrimLeft(s, " ")
	return bytes.TrimPrefix(s, []byte("\xEF\xBB\xBF")), true
}

// syslogElements passes over structured data: [id name="value" …][…], where \ escapes.
func syslogElements(s []byte) (rest []byte, ok bool) {
	for len(s) > 0 && s[0] == '[' {
		quoted, i := false, 1
		for ; i < len(s) && (quoted || s[i] != ']'); i++ {
			switch {
			case quoted && s[i] == '\\':
				i++
			case s[i] == '"':
				quoted = !quoted
			}
		}
		if i >= len(s) {
			return nil, false
		}
		s = s[i+1:]
	}
	return s, true
}

// syslog3164 reads TIMESTAMP [HOSTNAME] [TAG[PID]:] and gives what follows.
func syslog3164(s []byte) []byte {
	s, stamped := syslogStamp(s)
	if !stamped {
		return s // the priority alone
	}
	first, rest := syslogWord(s)
	if isTag(first) {
		return rest
	}
	if second, behind := syslogWord(rest); isHost(first) && isTag(second) {
		return behind
	}
	return s
}

// syslogStamp takes off "Mar  3 10:15:42 ", with a year behind or not, or a stamp of
// RFC 3339.
func syslogStamp(s []byte) (rest []byte, ok bool) {
	const layout = "Jan _2 15:04:05"
	if len(s) > len(layout) && s[len(layout)] == ' ' && s[3] == ' ' && s[6] == ' ' && s[9] == ':' && s[12] == ':' && isMonth(s[:3]) {
		s = s[len(layout)+1:]
		if len(s) > 4 && s[4] == ' ' && isDecimal(s[:4]) {
			s = s[5:]
		}
		return bytes.TrimLeft(s, " "), true
	}
	word, rest := syslogWord(s)
	if isStamp3339(word) {
		return rest, true
	}
	return s, false
}

// syslogWord is the first word of s, and what stands behind the blanks after it.
func syslogWord(s []byte) (word, rest []byte) {
	word, rest, _ = bytes.Cut(s, []byte(" "))
	return word, bytes.TrimLeft(rest, " ")
}

func isMonth(b []byte) bool {
	return bytes.Contains([]byte("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"), b)
}

func isDecimal(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// isStamp3339 says that b has the shape of 2026-03-03T10:15:42….
func isStamp3339(b []byte) bool {
	const layout = "2006-01-02T15:04:05"
	if len(b) < len(layout) {
		return false
	}
	for i, c := range []byte(layout) {
		if isDigit := c >= '0' && c <= '9'; isDigit && !isDecimal(b[i:i+1]) || !isDigit && b[i] != c {
			return false
		}
	}
	return true
}

// isTag says that b is the name of a program, perhaps with its process, and a colon.
// What a record begins with is none: a quote, a brace or a bracket is in it.
func isTag(b []byte) bool {
	name, ok := bytes.CutSuffix(b, []byte(":"))
	if !ok || len(name) == 0 {
		return false
	}
	if i := bytes.IndexByte(name, '['); i > 0 {
		if name[len(name)-1] != ']' {
			return false
		}
		name = name[:i]
	}
	return len(name) <= 48 && isName(name, "_-./@()")
}

func isHost(b []byte) bool { return isName(b, "_-.:[]%") }

func isName(b []byte, also string) bool {
	for _, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || bytes.IndexByte([]byte(also), c) >= 0) {
			return false
		}
	}
	return len(b) > 0
}

// appendSyslog appends what a message says as a line. A line feed in it is a blank: one
// message is one record.
func appendSyslog(lines, message []byte) []byte {
	text := syslogText(message)
	if len(text) == 0 {
		return lines
	}
	at := len(lines)
	lines = append(lines, text...)
	for i := at; i < len(lines); i++ {
		if lines[i] == '\n' {
			lines[i] = ' '
		}
	}
	return append(lines, '\n')
}
