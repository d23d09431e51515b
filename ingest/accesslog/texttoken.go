package accesslog

import "bytes"

// A token is one value of a text line, with or without a name.
type token struct {
	name, value []byte // value without its quotes or brackets, escapes still in
	kind        tokenKind
}

type tokenKind uint8

const (
	tokenBare tokenKind = iota
	tokenQuoted
	tokenBracketed
)

// maxOdd bounds the tokens of a line that are broken, or begin with a bracket that nothing
// matches: to find that out, each may have to be followed to the end of the line.
const maxOdd = 32

// odd says that a token is one of those.
func (t *token) odd(state tokenState) bool {
	return state == tokenBroken || t.kind == tokenBare && len(t.value) != 0 && t.value[0] == '['
}

type tokenState uint8

const (
	tokenWhole  tokenState = iota
	tokenBroken            // a raw quote stands where none can
	tokenCut               // the line ends in a quoted value
)

// nextToken reads the token at the start of s, which is not blank, and returns
// what follows it without the blanks between.
//
// A quoted value ends at a quote that is not escaped, where the format escapes at
// all, and is followed by a blank or the end; any other raw quote breaks it. A bare value is a list where a
// joint of nginx's (", " or " : ") leads on to another entry. A bracketed value
// ends at the bracket that matches; where text follows that bracket, as in
// [::1]:80, the value is bare.
func nextToken(s []byte, escapes bool) (t token, rest []byte, state tokenState) {
	if n := nameEnd(s); n > 0 {
		t.name, s = s[:n:n], s[n+1:]
	}
	if len(s) == 0 {
		t.value = s
		return t, nil, tokenWhole
	}
	switch s[0] {
	case ' ':
		t.value = s[:0]
		return t, skipBlanks(s), tokenWhole
	case '"':
		n, clean := closingQuote(s[1:], escapes)
		switch {
		case n < 0 && clean:
			return t, nil, tokenCut
		case !clean:
			return t, nil, tokenBroken
		}
		t.value, t.kind = s[1:1+n], tokenQuoted
		return t, skipBlanks(s[n+2:]), tokenWhole
	case '[':
		if n := closingBracket(s); n > 0 {
			t.value, t.kind = s[1:n], tokenBracketed
			return t, skipBlanks(s[n+1:]), tokenWhole
		}
	}
	n := listEnd(s)
	if bytes.IndexByte(s[:n], '"') >= 0 {
		return t, nil, tokenBroken
	}
	t.value = s[:n]
	return t, skipBlanks(s[n:]), tokenWhole
}

// nameEnd is the place of the "=" after a name at the start of s, or 0. Base64
// may end in "=", so a name is followed by one only.
func nameEnd(s []byte) int {
	for i, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '$', c == '@':
		case c >= '0' && c <= '9', c == '.', c == '-', c == '/', c == '>', c == ':':
			if i == 0 {
				return 0
			}
		case c == '=':
			if i+1 < len(s) && s[i+1] == '=' {
				return 0
			}
			return i
		default:
			return 0
		}
	}
	return 0
}

// firstQuote is the place of the first quote that is not escaped, or -1.
func firstQuote(s []byte) int {
	for i := quoteOrBackslash(s, 0); i < len(s); i = quoteOrBackslash(s, i+2) {
		if s[i] == '"' {
			return i
		}
	}
	return -1
}

// closingQuote is the place of the quote that ends the value at the start of s,
// or -1. It is not clean when raw quotes stand before it in the value.
func closingQuote(s []byte, escapes bool) (n int, clean bool) {
	clean = true
	for i := 0; ; {
		q := bytes.IndexByte(s[i:], '"')
		if q < 0 {
			return -1, clean
		}
		q += i
		slashes := 0
		for escapes && q-slashes > 0 && s[q-slashes-1] == '\\' {
			slashes++
		}
		i = q + 1
		switch {
		case slashes&1 == 1: // escaped
		case i == len(s) || s[i] == ' ':
			return q, clean
		default:
			clean = false
		}
	}
}

// closingBracket is the place of the bracket that matches the one s begins with,
// or 0 when there is none or text follows it.
func closingBracket(s []byte) int {
	depth := 0
	for i, c := range s {
		switch c {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				if i+1 == len(s) || s[i+1] == ' ' {
					return i
				}
				return 0
			}
		case '"':
			return 0
		}
	}
	return 0
}

// listEnd is the length of the bare value at the start of s, blanks inside a
// list of tries included. A joint with nothing behind it ends its list.
func listEnd(s []byte) int {
	n := blank(s, 0)
	for n < len(s) {
		next := n + 1
		if s[n-1] != ',' {
			if next >= len(s) || s[next] != ':' || next+1 < len(s) && s[next+1] != ' ' {
				return n
			}
			if next += 2; next >= len(s) || s[next] == ' ' {
				return n + 2
			}
		}
		end := blank(s, next)
		if end == next || bytes.IndexByte(s[next:end], '=') >= 0 {
			return n
		}
		n = end
	}
	return n
}

// blank is the place of the first blank of s from i on, or its length.
func blank(s []byte, i int) int {
	if j := bytes.IndexByte(s[i:], ' '); j >= 0 {
		return i + j
	}
	return len(s)
}

// cutBlank splits s at its first blank and drops the blanks there.
func cutBlank(s []byte) (word, rest []byte) {
	n := blank(s, 0)
	return s[:n], skipBlanks(s[n:])
}

func skipBlanks(s []byte) []byte {
	for len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	return s
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func allDigits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return len(b) != 0
}

// unescaped undoes the escaping of a quoted value. \xHH is nginx's own way in a
// text line and needs no remark there.
func (p *Parser) unescaped(v []byte) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v
	}
	before := p.raw.notes
	v = p.unescape(v)
	p.raw.notes = p.raw.notes&^NoteEscapeRepaired | before
	return v
}
