package accesslog

import (
	"bytes"
	"unicode/utf8"
)

// text reads the string whose first byte is b[i], after the quote, and gives the
// place after the closing quote. Escapes are removed if the value is wanted.
func (p *Parser) text(b []byte, i int, wanted bool) ([]byte, int, error) {
	// The next quote is the end, unless a backslash stands before it.
	if !p.lenient {
		end := p.marks.end(b, i)
		if end < 0 {
			return nil, len(b), RejectCut
		}
		if !p.marks.escaped(i, end) {
			return b[i:end], end + 1, nil
		}
	}
	end, escaped := closing(b, i, p.lenient)
	if end < 0 {
		return nil, len(b), RejectCut
	}
	if !wanted || !escaped {
		return b[i:end], end + 1, nil
	}
	return p.unescape(b[i:end]), end + 1, nil
}

// closing is the place of the quote that ends the string starting at b[i], -1 if
// there is none. With lenient, quotes inside are told by what follows them.
func closing(b []byte, i int, lenient bool) (end int, escaped bool) {
	start := i
	for {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return -1, escaped
		}
		i += j
		if lenient && !endsValue(b, i+1) {
			i++
			continue
		}
		back := i
		for back > start && b[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i, escaped || bytes.IndexByte(b[start:i], '\\') >= 0
		}
		escaped = true
		i++
	}
}

// endsValue says that a quote just before b[i] ends a value, as far as what
// follows can tell.
func endsValue(b []byte, i int) bool {
	i = blanks(b, i)
	if i >= len(b) {
		return false
	}
	switch b[i] {
	case '}', ']', ':':
		return true
	case ',':
		i = blanks(b, i+1)
		return i < len(b) && b[i] == '"'
	}
	return false
}

// unescape removes JSON's escapes, and the hexadecimal and octal ones that
// loggers write into JSON, which become the bytes they stand for. An escape that
// means nothing stays as it is.
func (p *Parser) unescape(s []byte) []byte {
	out := p.grow(len(s) + utf8.UTFMax)
	for {
		j := bytes.IndexByte(s, '\\')
		if j < 0 || j+1 >= len(s) {
			return p.keep(append(out, s...))
		}
		out = append(out, s[:j]...)
		s = s[j:]
		n := 2
		switch c := s[1]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, size := unicodeEscape(s)
			if size == 0 {
				out = append(out, s[:2]...)
				p.raw.notes |= NoteEscapeRepaired
				break
			}
			if r == utf8.RuneError {
				p.raw.notes |= NoteInvalidUTF8
			}
			out, n = utf8.AppendRune(out, r), size
		case 'x':
			p.raw.notes |= NoteEscapeRepaired
			v, ok := hexValue(s[2:], 2)
			if !ok {
				out = append(out, s[:2]...)
				break
			}
			out, n = append(out, byte(v)), 4
		default:
			p.raw.notes |= NoteEscapeRepaired
			if len(s) >= 4 && isOctal(s[1]) && s[1] <= '3' && isOctal(s[2]) && isOctal(s[3]) {
				out, n = append(out, (s[1]-'0')<<6|(s[2]-'0')<<3|(s[3]-'0')), 4
				break
			}
			out = append(out, s[:2]...)
		}
		s = s[n:]
	}
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

// unicodeEscape reads \uXXXX, or a pair of them; size is 0 if it is none.
func unicodeEscape(s []byte) (r rune, size int) {
	v, ok := hexValue(s[2:], 4)
	if !ok {
		return 0, 0
	}
	switch {
	case v < 0xD800 || v > 0xDFFF:
		return rune(v), 6
	case v < 0xDC00 && len(s) >= 12 && s[6] == '\\' && s[7] == 'u':
		if low, ok := hexValue(s[8:], 4); ok && low >= 0xDC00 && low <= 0xDFFF {
			return rune((v-0xD800)<<10|(low-0xDC00)) + 0x10000, 12
		}
	}
	return utf8.RuneError, 6
}

// hexValue reads exactly n hexadecimal digits.
func hexValue(s []byte, n int) (v int, ok bool) {
	if len(s) < n {
		return 0, false
	}
	for _, c := range s[:n] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | int(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// invalidUTF8 says that b holds bytes that are no UTF-8.
func invalidUTF8(b []byte) bool { return !utf8.Valid(b) }
