package accesslog

import (
	"bytes"
)

// maxCandidates bounds how many places of a broken line are tried as the start
// of a whole record.
const maxCandidates = 32

// maxPrefix is the longest text before a record that is passed over.
const maxPrefix = 512

// jsonRecord reads the JSON record at the start of text.
//
// JSON is read as loggers write it: \xHH and octal escapes, bare dashes, nothing
// between colon and comma, bare lists, raw control bytes and bytes that are no
// UTF-8 are all understood. What is not forgiven is structure: a record that is
// cut off or runs into the next one gives no value at all.
func (p *Parser) jsonRecord(text []byte, depth int, before Notes, e *Entry) (rest []byte, err error) {
	start := 0
	if len(text) == 0 || text[0] != '{' {
		start = bytes.IndexByte(text, '{')
		if start < 0 || start > maxPrefix {
			return nil, RejectSyntax
		}
		if bytes.IndexByte(text[:start], '"') >= 0 {
			e.Damaged++ // the end of a record whose beginning is lost
			before |= NoteResynchronised
		} else {
			before |= NotePrefixSkipped
		}
	}
	end, err := p.tokenizeJSON(text, start, before)
	if err != nil {
		start, end, err = p.resync(text, start, before, err, e)
	}
	if err != nil {
		e.Notes |= p.raw.notes
		return nil, err
	}
	body, rest := text[start:end], after(text[end:])
	if p.format.other != nil && p.format.other(p) {
		return rest, RejectOther
	}
	if inner, ok := p.wrapped(); ok {
		outer := rest
		stderr := string(p.raw.val(fWrapStream)) == "stderr"
		rest, err = p.inner(inner, depth, before, e)
		switch {
		case len(rest) == 0:
			rest = outer
		case len(outer) != 0:
			rest = p.keep(append(append(p.grow(len(rest)+len(outer)), rest...), outer...))
		}
		return rest, p.other(stderr, err)
	}
	return rest, p.interpret(body, e)
}

// after cuts what may stand between two records of one line.
func after(b []byte) []byte {
	for len(b) > 0 {
		switch b[0] {
		case ' ', '\t', '\r', '\n', ',', ']', 0:
			b = b[1:]
		default:
			return b
		}
	}
	return nil
}

// resync finds the first whole record after a broken one: an object that decodes
// to the end of the line, or to another record, and has a stamp. first is what
// was wrong with the broken one.
func (p *Parser) resync(text []byte, start int, before Notes, first error, e *Entry) (int, int, error) {
	// Records of one log begin alike: that tells a record from an object inside one.
	head := text[start:min(start+2, len(text))]
	if i := bytes.IndexByte(text[start:], ':'); i > 0 {
		head = text[start : start+i]
	}
	mark, broken, notes := len(p.scratch), 1, p.raw.notes
	at := start
	for range maxCandidates {
		i := bytes.Index(text[at+1:], []byte(`{"`))
		if i < 0 {
			break
		}
		at += 1 + i
		p.scratch = p.scratch[:mark]
		end, err := p.tokenizeJSON(text, at, before|NoteResynchronised)
		if err == nil && (len(after(text[end:])) == 0 || after(text[end:])[0] == '{') && p.hasStamp() {
			e.Damaged += broken
			if p.format.vendor == vendorEnvoy && !p.bare {
				p.raw.suspect = true // perhaps a header that looks like a record
			}
			return at, end, nil
		}
		if bytes.HasPrefix(text[at:], head) {
			broken++
		}
	}
	p.scratch = p.scratch[:mark]
	if p.format.vendor == vendorEnvoy && first == RejectSyntax {
		// Typed by hand in the shape of JSON: a quote in a header is not escaped.
		p.lenient = true
		end, err := p.tokenizeJSON(text, start, before|NoteQuoteInHeader)
		p.lenient = false
		if err == nil && len(after(text[end:])) == 0 {
			p.raw.suspect = true
			return start, end, nil
		}
	}
	p.raw.notes = notes
	return 0, 0, first
}

func (p *Parser) hasStamp() bool { return p.raw.has(fTime) || p.raw.has(fStart) || p.raw.has(fEnd) }

// showsRequest says that the record is about a request and not about something
// else that a program logs.
func (p *Parser) showsRequest() bool {
	const evidence = 1<<fMethod | 1<<fPath | 1<<fStatus | 1<<fGRPCStatus | 1<<fDuration | 1<<fRequest
	return p.raw.have[0]&evidence != 0 || p.raw.has(fGRPCMethod)
}

// wrapped gives the line that the object carries, when the object is not itself
// a record.
func (p *Parser) wrapped() ([]byte, bool) {
	if p.showsRequest() {
		return nil, false
	}
	return p.wrappedLine()
}

// wrappedLine is the line that an envelope carries.
func (p *Parser) wrappedLine() ([]byte, bool) {
	for _, f := range [...]field{fWrapLog, fMessage, fWrapMsg} {
		if v := p.raw.val(f); len(v) != 0 {
			return v, true
		}
	}
	return nil, false
}

// wrapping is an envelope of JSON around a line that is none.
type wrapping struct {
	inner, behind []byte // the line, and what follows the envelope
	stderr        bool
}

// unwrap is wrapped for formats that are not JSON.
func (p *Parser) unwrap(text []byte) (w wrapping, ok bool) {
	root := p.root
	p.root = p.wraps
	end, err := p.tokenizeJSON(text, 0, 0)
	p.root = root
	if err != nil {
		return w, false
	}
	w.inner, ok = p.wrappedLine()
	w.behind, w.stderr = after(text[end:]), string(p.raw.val(fWrapStream)) == "stderr"
	return w, ok
}

// tokenizeJSON fills p.raw from the object that starts at text[i] and gives the
// place after it.
func (p *Parser) tokenizeJSON(text []byte, i int, before Notes) (int, error) {
	p.raw.reset(p.format.vendor)
	p.raw.notes = before
	p.bare = false
	if p.lenient || p.unmarked {
		p.marks.clear()
	} else {
		p.marks.set(text)
	}
	return p.object(text, i+1, p.root)
}

// object reads the members from b[i] on to the closing brace.
func (p *Parser) object(b []byte, i int, n *node) (int, error) {
	prev, k := &n.first, &p.marks
	done := false
	for {
		if i < len(b) && b[i] > ' ' {
			if prev, i, done = p.run(b, i, prev); done {
				return i, nil
			}
		}
		if i < len(b) && b[i] <= ' ' {
			i = blanks(b, i)
		}
		m := prev.next[0]
		if m != nil && m.at(b, i) {
			i += m.size
		} else {
			if i >= len(b) {
				return i, RejectCut
			}
			if b[i] == '}' { // empty, or a comma too many
				return i + 1, nil
			}
			var err error
			if m, i, err = p.name(b, i, n, prev); err != nil {
				return i, err
			}
		}
		prev = m
		if i < len(b) && b[i] <= ' ' {
			i = blanks(b, i)
		}
		if i >= len(b) {
			return i, RejectCut
		}

		// The next quote ends a string, or begins the name after what is none.
		near := k.near(i + 1)
		j := i + 1 + near
		var v []byte
		var err error
		switch c := b[i]; {
		case c == '"':
			if near < 64 && !k.escapes {
				v, i = b[i+1:j], j+1
			} else if v, i, err = p.text(b, i+1, len(m.targets) != 0); err != nil {
				return i, err
			}
			if len(v) == 1 && v[0] == '-' {
				v = nil
			}
		case c == '{':
			if m.child != nil {
				i, err = p.object(b, i+1, m.child)
			} else {
				i, err = skip(b, i)
			}
			if err != nil {
				return i, err
			}
			goto separator
		case c == '[':
			if v, i, err = p.array(b, i, m); err != nil {
				return i, err
			}
		default:
			p.bare = true
			if near < 64 && j-1 > i && b[j-1] == ',' && isNumber(b[i:j-1]) {
				v, i = b[i:j-1], j-1
			} else if n := isWord(b, i); n != 0 {
				v, i = b[i:i+n], i+n
			} else if v, i, err = p.bareValue(b, i); err != nil {
				return i, err
			}
		}
		if t := m.one; t != nil && v != nil {
			p.raw.set(t, v)
		} else {
			for _, t := range m.targets {
				if v == nil {
					p.raw.setNull(t)
				} else {
					p.raw.set(t, v)
				}
			}
		}

	separator:
		if i < len(b) && b[i] <= ' ' {
			i = blanks(b, i)
		}
		switch {
		case i >= len(b):
			return i, RejectCut
		case b[i] == ',':
			i++
		case b[i] == '}':
			return i + 1, nil
		default:
			return i, RejectSyntax
		}
	}
}

// isNumber says that v is digits and points alone.
func isNumber(v []byte) bool {
	for _, c := range v {
		if c-'0' > 9 && c != '.' {
			return false
		}
	}
	return true
}

// isWord is the length of true or false at b[i], 0 if neither is there.
func isWord(b []byte, i int) int {
	switch {
	case b[i] == 'f' && len(b)-i > 5 && string(b[i:i+5]) == "false" && (b[i+5] == ',' || b[i+5] == '}'):
		return 5
	case b[i] == 't' && len(b)-i > 4 && string(b[i:i+4]) == "true" && (b[i+4] == ',' || b[i+4] == '}'):
		return 4
	}
	return 0
}

// name reads a member's name and colon, and learns that it follows prev.
func (p *Parser) name(b []byte, i int, n *node, prev *member) (*member, int, error) {
	if m := prev.next[1]; m != nil && m.at(b, i) {
		return m, i + m.size, nil
	}
	if b[i] != '"' {
		return nil, i, RejectSyntax
	}
	i++
	j := bytes.IndexByte(b[i:], '"')
	if j < 0 {
		return nil, len(b), RejectCut
	}
	name := b[i : i+j]
	i += j + 1
	if p.marks.escapes && bytes.IndexByte(name, '\\') >= 0 {
		var err error
		if name, i, err = p.text(b, i-j-1, true); err != nil {
			return nil, i, err
		}
	}
	i = blanks(b, i)
	switch {
	case i >= len(b):
		return nil, i, RejectCut
	case b[i] != ':':
		return nil, i, RejectSyntax
	}
	m := n.lookup(name)
	if m.quoted != "" && prev != &n.ignored {
		prev.next[0], prev.next[1] = m, prev.next[0]
	}
	return m, i + 1, nil
}

// blanks is the first place from i on that is no white space.
func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// array gives what an array of strings or bare values holds, and the place after
// it: loggers put repeated headers in arrays, and several are joined as a proxy
// joins them, so that two different keys do not pass for one. One that holds something
// else, or more than are joined, is not known.
func (p *Parser) array(b []byte, i int, m *member) ([]byte, int, error) {
	if i+1 < len(b) && b[i+1] == '"' { // mostly there is one string
		if v, end, err := p.text(b, i+2, len(m.targets) != 0); err == nil && end < len(b) && b[end] == ']' {
			return undashed(v), end + 1, nil
		}
	}
	end, err := skip(b, i)
	if err != nil || len(m.targets) == 0 {
		return nil, end, err
	}
	var all []byte
	for n := range maxJoined {
		i = blanks(b, i+1)
		var v []byte
		switch c := b[i]; {
		case c == '"':
			if v, i, err = p.text(b, i+1, true); err != nil {
				return nil, end, err
			}
		case c == '{', c == '[', c == 'n':
			return nil, end, nil
		case c == ']': // empty, or a comma too many
			return undashed(all), end, nil
		default:
			j := i
			for i < end-1 && b[i] != ',' && b[i] > ' ' {
				i++
			}
			v = b[j:i]
		}
		if n == 0 {
			all = v
		} else {
			all = p.join(all, v)
		}
		if i = blanks(b, i); i >= end-1 || b[i] != ',' {
			return undashed(all), end, nil
		}
	}
	return nil, end, nil
}

// undashed is v, nil where that is a lone dash, which stands for no value.
func undashed(v []byte) []byte {
	if isDash(v) {
		return nil
	}
	return v
}

// maxJoined bounds how many values of one header are joined.
const maxJoined = 16

// join puts two values of one header together, as a proxy does.
func (p *Parser) join(a, b []byte) []byte {
	return p.keep(append(append(append(p.grow(len(a)+len(b)+2), a...), ", "...), b...))
}

// skip passes over the object or array at b[i]. What lies inside is looked at
// only to tell a whole value from one that another record was glued into.
func skip(b []byte, i int) (int, error) {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, nil
			}
		case '"':
			for i++; ; i++ {
				j := bytes.IndexByte(b[i:], '"')
				if j < 0 {
					return len(b), RejectCut
				}
				i += j
				back := i
				for b[back-1] == '\\' {
					back--
				}
				if (i-back)%2 == 0 {
					break
				}
			}
			k := blanks(b, i+1)
			if k < len(b) && b[k] != ':' && b[k] != ',' && b[k] != '}' && b[k] != ']' {
				return k, RejectSyntax
			}
		}
		i++
	}
	return len(b), RejectCut
}

// bareValue reads a value without quotes: a number, a word, nginx's dash or
// nothing, or a list that nginx printed where a number was meant. nil is null.
func (p *Parser) bareValue(b []byte, i int) ([]byte, int, error) {
	start := i
	for ; ; i++ {
		if i >= len(b) {
			return nil, i, RejectCut
		}
		c := b[i]
		if c == '}' || c == ']' {
			break
		}
		if c == ',' {
			j := blanks(b, i+1)
			if j >= len(b) {
				return nil, j, RejectCut
			}
			if b[j] == '"' || b[j] == '}' {
				break
			}
			continue
		}
		if c == '"' || c == '{' || c == '[' || c == '\\' || c < ' ' && c != '\t' {
			return nil, i, RejectSyntax
		}
	}
	v := bytes.TrimRight(b[start:i], " \t")
	switch string(v) {
	case "":
		p.raw.notes |= NoteEmptyValue
		return b[start:start:start], i, nil
	case "-":
		p.raw.notes |= NoteBareDash
		return nil, i, nil
	case "null", "NaN", "nan", "undefined", "None", "nil":
		return nil, i, nil
	}
	return v, i, nil
}
