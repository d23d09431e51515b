package accesslog

// logfmt is name=value pairs with blanks between. A value is bare, "quoted" with
// \" and the other escapes of JSON and of nginx inside, or a [bracketed] list. A
// word without "=" is a remark and no field. Names are those of the JSON formats. A line
// with more than maxOdd odd tokens is none.
func (p *Parser) tokenizeLogfmt(line []byte) error {
	pairs, odd := 0, 0
	for s := skipBlanks(line); len(s) > 0; {
		t, rest, state := nextToken(s, true)
		if t.odd(state) {
			if odd++; odd > maxOdd {
				return RejectSyntax
			}
		}
		switch {
		case state == tokenCut:
			return RejectCut
		case state == tokenBroken:
			// Whoever wrote the value may have written the names after it.
			p.quoteInHeader()
			_, rest = cutBlank(s)
		case len(t.name) != 0:
			p.pair(t, true)
			pairs++
		}
		s = rest
	}
	if pairs == 0 {
		return RejectSyntax
	}
	return nil
}
