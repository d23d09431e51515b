package accesslog

import "bytes"

// nginxColumns are the columns of both of nginx's lines, behind them those of ingress-nginx
// alone; the constants below are their places.
var nginxColumns = []string{
	"remote_addr", "remote_user", "msec", "time_local", "request", "status", "body_bytes_sent", "http_referer", "http_user_agent",
	"request_length", "request_time", "proxy_upstream_name", "proxy_alternative_upstream_name",
	"upstream_addr", "upstream_response_length", "upstream_response_time", "upstream_status", "req_id",
}

const (
	nginxRemoteAddr = iota
	nginxRemoteUser
	nginxMsec
	nginxTimeLocal
	nginxRequest
	nginxStatus
	nginxBodyBytesSent
	nginxReferer
	nginxUserAgent
	nginxRequestLength
	nginxRequestTime
	nginxProxyUpstreamName
	nginxProxyAlternativeUpstreamName
	nginxUpstreamAddr
	nginxUpstreamResponseLength
	nginxUpstreamResponseTime
	nginxUpstreamStatus
	nginxReqID
)

// nginx-combined is
//
//	addr - user [time_local] "request" status body_bytes "referer" "user agent"
//
// and its columns have the names of nginx's variables. Behind it stands whatever
// the operator appended: values of their own, which Config names
// "$1", "$2", … in order, and name=value pairs, which do not count in that order.
// A value is bare, "quoted" or [bracketed]; a bare or bracketed one may be a list
// of tries with blanks in it. The part before the stamp may be missing, so may
// everything between the request and the first pair. The stamp may be
// [$time_local|$msec]; the finer one wins.
//
// nginx escapes quotes unless it was told not to. Where a raw one breaks a
// header open, the user agent reaches to the line's last quote, only pairs after
// that are read, and no key is taken.
func (p *Parser) tokenizeNginxCombined(line []byte) error {
	rest, err := p.nginxHead(line)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return RejectCut
	}
	if !isDigit(rest[0]) {
		_, err := p.appended(rest, true)
		return err
	}
	if rest, err = p.nginxResult(rest); err != nil || len(rest) == 0 {
		return err // the common format has no more
	}
	if rest[0] != '"' {
		_, err := p.appended(rest, true)
		return err
	}
	agent, n, rest, err := p.nginxHeaders(rest)
	if err != nil {
		return err
	}
	broken := n < 0
	if broken {
		_, err = p.appendedPairs(rest, true)
	} else {
		broken, err = p.appended(rest, true)
	}
	if err != nil {
		return err
	}
	if broken {
		p.quoteInHeader()
		n = bytes.LastIndexByte(agent, '"')
	}
	if n >= 0 {
		p.putColumn(nginxUserAgent, p.unescaped(agent[:n]))
	}
	return nil
}

// nginxHead reads the address, the user, the stamp and the request, and returns
// what follows.
func (p *Parser) nginxHead(line []byte) (rest []byte, err error) {
	// Everything before the request is escaped but for blanks and brackets, and
	// the caller writes the user's name: the request's quote is the anchor.
	q := firstQuote(line)
	if q < 0 {
		if bytes.IndexByte(line, '[') >= 0 {
			return nil, RejectCut
		}
		return nil, RejectSyntax
	}
	head := line[:q]
	open := bytes.LastIndexByte(head, '[')
	if open < 0 || !bytes.HasSuffix(head, []byte("] ")) {
		return nil, RejectSyntax
	}
	stamp, who := head[open+1:len(head)-2], head[:open]
	if len(who) != 0 {
		if who[len(who)-1] != ' ' {
			return nil, RejectSyntax
		}
		if behindHost(who) {
			return nil, RejectSyntax
		}
		addr, user := cutBlank(who)
		p.runs = p.runs || oddHead(addr, user)
		p.putColumn(nginxRemoteAddr, addr)
		if bytes.HasPrefix(user, []byte("- ")) {
			p.putColumn(nginxRemoteUser, bytes.TrimRight(user[2:], " "))
		}
	}
	if i := bytes.IndexByte(stamp, '|'); i >= 0 {
		p.putColumn(nginxMsec, stamp[i+1:])
		stamp = stamp[:i]
	}
	p.putColumn(nginxTimeLocal, stamp)

	n, clean := closingQuote(line[q+1:], true)
	if n < 0 {
		return nil, RejectCut
	}
	if !clean {
		p.quoteInHeader()
	}
	p.putColumn(nginxRequest, p.unescaped(line[q+1:q+1+n]))
	return skipBlanks(line[q+n+2:]), nil
}

// behindHost says that the part before the stamp begins with a virtual host, as
// Apache's vhost_combined does (host:port client - user): with the client's
// address in the second place, or with its name there and the dash of nginx in
// the third. The first would be taken for the peer, and is none.
func behindHost(who []byte) bool {
	first, rest := cutBlank(who)
	second, rest := cutBlank(rest)
	if len(first) == 0 || len(second) == 0 || isDash(first) || isDash(second) || first[len(first)-1] == ',' || isIP(first) || bytes.HasPrefix(first, []byte("unix:")) {
		return false
	}
	third, _ := cutBlank(rest)
	return isDash(third) || isIP(second)
}

// isIP says that b has the shape of an address without a port.
func isIP(b []byte) bool {
	dots, colons, letters := 0, 0, 0
	for _, c := range b {
		switch {
		case c == '.':
			dots++
		case c == ':':
			colons++
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			letters++
		case !isDigit(c):
			return false
		}
	}
	return colons > 1 || colons == 0 && letters == 0 && dots == 3
}

// nginxResult reads the status and the body's byte count.
func (p *Parser) nginxResult(s []byte) (rest []byte, err error) {
	status, rest := cutBlank(s)
	size, rest := cutBlank(rest)
	switch {
	case len(status) != 3 || !allDigits(status):
		return nil, RejectSyntax
	case len(size) == 0:
		return nil, RejectCut
	case !allDigits(size) && !isDash(size):
		return nil, RejectSyntax
	}
	p.putColumn(nginxStatus, status)
	p.putColumn(nginxBodyBytesSent, size)
	return rest, nil
}

// nginxHeaders reads the referer and finds the user agent: agent is the line from
// the agent's first byte on, n how much of it is the agent, and rest what
// follows. n is negative where the quotes are broken; rest is then what stands
// behind the last one, and agent is nil where not even its beginning is sure.
func (p *Parser) nginxHeaders(s []byte) (agent []byte, n int, rest []byte, err error) {
	end := bytes.LastIndexByte(s, '"')
	afterAll := skipBlanks(s[end+1:])
	referer, rest, state := nextToken(s, true)
	switch {
	case state == tokenBroken:
		return nil, -1, afterAll, nil
	case state == tokenCut, len(rest) == 0:
		return nil, 0, nil, RejectCut
	case rest[0] != '"':
		return nil, -1, afterAll, nil
	}
	agent = rest[1:]
	ua, rest, state := nextToken(rest, true)
	switch state {
	case tokenCut:
		return nil, 0, nil, RejectCut
	case tokenBroken:
		return agent, -1, afterAll, nil
	}
	p.putColumn(nginxReferer, p.unescaped(referer.value))
	return agent, len(ua.value), rest, nil
}

func (p *Parser) quoteInHeader() {
	p.note(NoteQuoteInHeader)
	p.suspectKey()
}

// positionNames are the names of appended values without one.
var positionNames = [...][]byte{
	[]byte("$1"), []byte("$2"), []byte("$3"), []byte("$4"), []byte("$5"), []byte("$6"), []byte("$7"), []byte("$8"),
	[]byte("$9"), []byte("$10"), []byte("$11"), []byte("$12"), []byte("$13"), []byte("$14"), []byte("$15"), []byte("$16"),
}

// appended reads what the operator added at the end of a format. Of a part whose
// quotes are broken only the pairs after the last quote are read.
func (p *Parser) appended(s []byte, escapes bool) (broken bool, err error) {
	for n, odd := 0, 0; len(s) > 0; {
		t, rest, state := nextToken(s, escapes)
		if t.odd(state) {
			if odd++; odd > maxOdd {
				return false, RejectSyntax
			}
		}
		switch {
		case state == tokenCut:
			return false, RejectCut
		case state == tokenBroken:
			p.quoteInHeader()
			return p.appendedPairs(skipBlanks(s[bytes.LastIndexByte(s, '"')+1:]), escapes)
		case len(t.name) != 0:
			p.pair(t, escapes)
		default:
			if t.kind == tokenBracketed && len(t.value) > 6 && t.value[2] == '/' && t.value[6] == '/' {
				p.runs = true // a stamp
			}
			if n < len(positionNames) {
				p.putName(positionNames[n], p.tokenText(t, escapes))
			}
			n++
		}
		s = rest
	}
	if p.raw.duplicate {
		// A pair that comes twice may stand in a header that was not escaped.
		p.suspectKey()
	}
	return false, nil
}

// appendedPairs reads the pairs of a tail in which positions mean nothing.
func (p *Parser) appendedPairs(s []byte, escapes bool) (broken bool, err error) {
	for odd := 0; len(s) > 0; {
		t, rest, state := nextToken(s, escapes)
		if state != tokenWhole {
			return true, RejectCut
		}
		if t.odd(state) {
			if odd++; odd > maxOdd {
				return true, RejectSyntax
			}
		}
		if len(t.name) != 0 {
			p.pair(t, escapes)
		}
		s = rest
	}
	return true, nil
}

// pair puts one name=value. Two short names mean different things by their
// values: ua is a user agent or a list of addresses, url a path or a list of
// lengths.
func (p *Parser) pair(t token, escapes bool) {
	name := t.name
	switch {
	case string(name) == "ua" && (isAddressList(t.value) || t.kind == tokenBracketed):
		name = upstreamAddrName
	case string(name) == "url" && (isLengthList(t.value) || t.kind == tokenBracketed):
		name = upstreamLengthName
	}
	p.putName(name, p.tokenText(t, escapes))
}

var upstreamAddrName, upstreamLengthName = []byte("upstream_addr"), []byte("upstream_response_length")

// tokenText is the value that a token stands for.
func (p *Parser) tokenText(t token, escapes bool) []byte {
	if t.kind != tokenQuoted || !escapes {
		return t.value
	}
	return p.unescaped(t.value)
}

// isAddressList says that every entry of a list is host:port or unix:path, but
// for dashes beside them.
func isAddressList(list []byte) bool {
	some := false
	for {
		entry, rest, j := cutTry(list)
		switch {
		case isAddress(entry):
			some = true
		case !isDash(entry):
			return false
		}
		if j == jointEnd {
			return some
		}
		list = rest
	}
}

func isAddress(b []byte) bool {
	if bytes.HasPrefix(b, []byte("unix:")) {
		return true
	}
	i := bytes.LastIndexByte(b, ':')
	if i <= 0 || len(b)-i-1 > 5 || !allDigits(b[i+1:]) {
		return false
	}
	for _, c := range b[:i] {
		switch c {
		case ' ', '/', '"', '=':
			return false
		}
	}
	return true
}

// isLengthList says that every entry of a list is a number or a dash.
func isLengthList(list []byte) bool {
	for {
		entry, rest, j := cutTry(list)
		if !isDash(entry) && !allDigits(entry) {
			return false
		}
		if j == jointEnd {
			return true
		}
		list = rest
	}
}
