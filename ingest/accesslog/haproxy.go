package accesslog

import (
	"bytes"
	"strconv"
	"strings"
)

// HAProxy's HTTP line (option httplog) is
//
//	client:port [accepted] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes cookie cookie tsc a/f/b/s/retries q/q {captures} {captures} "request"
//
// behind whatever syslog put before it: the stamp in brackets and the word before
// it are found wherever they stand. option httpslog appends two columns, and an
// operator's log-format whatever it likes: they are read as in nginx-combined, so
// "$1" and name=value pairs have their places here too.
//
// The captured headers have the names "capture 0", "capture 1", … and "response
// capture 0", …, in the order of the frontend's capture lines. A group in braces
// is missing where the proxy captures nothing, and on a <BADREQ> line, so one
// group alone says nothing about whose it is: it is that of the request, or of
// the response, if the configuration names captures of only the one kind, and
// else nobody's. Where it names none, two groups are taken in order, and capture
// 0 is the question key.
//
// In captures and in the request #HH is a byte. A line that syslog cut in the
// request keeps what it has; its key is refused unless the path is whole.
func (p *Parser) tokenizeHAProxy(line []byte) error {
	open := haproxyStamp(line)
	if open < 0 {
		return RejectSyntax
	}
	before := bytes.TrimRight(line[:open], " ")
	client := before[bytes.LastIndexByte(before, ' ')+1:]
	p.unframed = line[len(before)-len(client):]
	if i := bytes.LastIndexByte(client, ':'); i > 0 && allDigits(client[i+1:]) {
		client = client[:i] // an IPv6 address has no brackets
	}
	p.putColumn(haClient, client)
	rest := line[open+1:]
	n := bytes.IndexByte(rest, ']')
	switch {
	case n < 0:
		return RejectCut
	case n == 0:
		return RejectSyntax
	}
	if stamp := rest[:n]; isDigit(stamp[len(stamp)-1]) && bytes.IndexByte(stamp, ' ') < 0 {
		p.note(NoteZoneNotLogged)
	}
	p.putColumn(haTime, rest[:n])
	if rest = rest[n+1:]; len(rest) == 0 {
		return RejectCut
	}

	var words [haWords][]byte
	i := 0
	for w := range words {
		for i < len(rest) && rest[i] == ' ' {
			i++
		}
		from := i
		for i < len(rest) && rest[i] != ' ' {
			i++
		}
		words[w] = rest[from:i]
	}
	if rest = skipBlanks(rest[i:]); len(rest) == 0 {
		return RejectCut
	}
	if err := p.haproxyWords(&words); err != nil {
		return err
	}
	rest, err := p.haproxyCaptures(rest)
	if err != nil {
		return err
	}
	return p.haproxyRequest(rest)
}

// The words between the stamp and the captures, then the columns made of them.
const (
	haFrontend = iota
	haBackendServer
	haTimers
	haStatus
	haBytes
	haCookie
	haSetCookie
	haState
	haCounts
	haQueues

	haClient
	haTime
	haBackend
	haServer
	haDuration
	haRetries
	haAuthority
	haRequest

	haWords = haClient
)

// haproxyColumns are the names of the columns, for fields and for explain.
var haproxyColumns = []string{
	haFrontend: "frontend", haBackendServer: "backend/server", haTimers: "timers", haStatus: "status_code",
	haBytes: "bytes_read", haCookie: "captured_request_cookie", haSetCookie: "captured_response_cookie",
	haState: "termination_state", haCounts: "counts", haQueues: "queues",
	haClient: "client_ip", haTime: "accept_date", haBackend: "backend", haServer: "server",
	haDuration: "ta", haRetries: "retries", haAuthority: "uri_authority", haRequest: "http_request",
}

var haproxyNames = []alias{
	{fTime, 0, "accept_date"}, {fPeer, 0, "client_ip"}, {fDuration, unitMillis, "ta"},
	{fStatus, 0, "status_code"}, {fBytesSent, 0, "bytes_read"}, {fTermination, 0, "termination_state"},
	{fAuthority, 0, "uri_authority"}, {fRequest, 0, "http_request"}, {fArrivalID, 0, "unique_id"},
}

// maxCaptures bounds the captured headers of a group.
const maxCaptures = 16

const requestCapture, responseCapture = "capture ", "response capture "

// haproxyState is what a parser knows of the format and of the record that it
// reads.
type haproxyState struct {
	captures [2][maxCaptures]*member // of the request, of the response
	single   int                     // whose one group alone is, or -1

	server    []byte // backend/server
	status    []byte // termination state, four letters
	answer    int64  // Tr in milliseconds, -1 if no answer began
	connected bool   // Tc is there
	body      int64  // from the answer's headers to the end, in milliseconds; -1 if not known
	retries   int
	moved     bool // a retry went to another server
	asap      bool // written before the end
	watched   bool // the line says that a caller's closing is looked for
}

// bindHAProxy finds who wants which capture, and which of them the configuration
// names.
func (p *Parser) bindHAProxy() error {
	h := &p.haproxy
	named := [2]bool{}
	for _, name := range p.configured() {
		named[0] = named[0] || strings.HasPrefix(name, requestCapture)
		named[1] = named[1] || strings.HasPrefix(name, responseCapture)
	}
	h.single = -1
	switch {
	case !named[0] && !named[1]:
		name := requestCapture + "0"
		p.root.add(name, &target{name: name, f: fQuestionKey, rank: 255}, false)
	case !named[1]:
		h.single = 0
	case !named[0]:
		h.single = 1
	}
	for i := range maxCaptures {
		for k, kind := range [...]string{requestCapture, responseCapture} {
			h.captures[k][i] = p.root.lookup([]byte(kind + strconv.Itoa(i)))
		}
	}
	return nil
}

// haproxyStamp is the place of the bracket that opens the stamp, or -1. What
// stands before it is syslog's, and nothing of the caller's.
func haproxyStamp(line []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(line[at:], '[')
		if i < 0 {
			return -1
		}
		i += at
		if at = i + 1; len(line) < i+13 {
			return -1
		}
		if line[i+3] == '/' && line[i+7] == '/' && line[i+12] == ':' && i > 1 && line[i-1] == ' ' {
			return i
		}
	}
}

// haproxyWords reads the columns that hold no blank.
func (p *Parser) haproxyWords(words *[haWords][]byte) error {
	h := &p.haproxy
	if !h.timers(words[haTimers]) || len(words[haState]) != 4 || !h.counts(words[haCounts]) {
		return RejectSyntax
	}
	h.server = words[haBackendServer]
	slash := bytes.IndexByte(h.server, '/')
	if slash < 0 {
		return RejectSyntax
	}
	h.status = words[haState]
	status, size := words[haStatus], words[haBytes]
	if !allDigits(status) && string(status) != "-1" {
		return RejectSyntax
	}
	if len(size) > 1 && size[0] == '+' {
		size, h.asap = size[1:], true
	}
	if !allDigits(size) {
		return RejectSyntax
	}
	took := words[haTimers]
	took = took[bytes.LastIndexByte(took, '/')+1:]
	if took[0] == '+' {
		took, h.asap = took[1:], true
	}
	frontend := words[haFrontend]
	if n := len(frontend) - 1; n > 0 && frontend[n] == '~' {
		frontend = frontend[:n] // by TLS
	}
	p.putColumn(haFrontend, frontend)
	p.putColumn(haBackend, h.server[:slash])
	p.putColumn(haServer, h.server[slash+1:])
	p.putColumn(haDuration, took)
	p.putColumn(haStatus, status)
	p.putColumn(haBytes, size)
	p.putColumn(haCookie, words[haCookie])
	p.putColumn(haSetCookie, words[haSetCookie])
	p.putColumn(haState, h.status)
	if h.asap {
		p.note(NoteLowerBounds)
	}
	return nil
}

// timers reads TR/Tw/Tc/Tr/Ta.
func (h *haproxyState) timers(b []byte) bool {
	var t [5]int64
	h.asap = false
	for i := range t {
		switch {
		case len(b) > 1 && b[0] == '-' && b[1] == '1':
			t[i], b = -1, b[2:]
		default:
			if len(b) != 0 && b[0] == '+' {
				b = b[1:]
			}
			n := 0
			for ; n < len(b) && n < 18 && isDigit(b[n]); n++ {
				t[i] = t[i]*10 + int64(b[n]-'0')
			}
			if n == 0 {
				return false
			}
			b = b[n:]
		}
		if i < len(t)-1 {
			if len(b) == 0 || b[0] != '/' {
				return false
			}
			b = b[1:]
		}
	}
	if len(b) != 0 {
		return false
	}
	h.connected, h.answer, h.body = t[2] >= 0, t[3], -1
	if t[3] >= 0 && t[4] >= 0 {
		h.body = t[4] - max(t[0], 0) - max(t[1], 0) - max(t[2], 0) - t[3]
	}
	return true
}

// counts reads actconn/feconn/beconn/srvconn/retries.
func (h *haproxyState) counts(b []byte) bool {
	slashes := 0
	for i, c := range b {
		if c != '/' {
			continue
		}
		if slashes++; slashes == 4 {
			b = b[i+1:]
			break
		}
	}
	if slashes < 4 {
		return false
	}
	if h.moved = len(b) != 0 && b[0] == '+'; h.moved {
		b = b[1:]
	}
	retries := count(b)
	h.retries = int(min(retries, maxTries-1))
	return retries != Unknown
}

// haproxyCaptures reads the groups in braces, and returns what follows them.
func (p *Parser) haproxyCaptures(s []byte) (rest []byte, err error) {
	var groups [2][]byte
	n := 0
	for len(s) != 0 && s[0] == '{' {
		end := bytes.IndexByte(s, '}')
		if end < 0 {
			return nil, RejectCut
		}
		if n == len(groups) {
			return nil, RejectSyntax
		}
		groups[n] = s[1:end]
		n++
		s = skipBlanks(s[end+1:])
	}
	h := &p.haproxy
	switch {
	case n == 2:
		p.haproxyGroup(&h.captures[0], groups[0])
		p.haproxyGroup(&h.captures[1], groups[1])
	case n == 1 && h.single >= 0:
		p.haproxyGroup(&h.captures[h.single], groups[0])
	case n == 1:
		p.note(NoteCaptureUnnamed)
	}
	return s, nil
}

// haproxyGroup puts the parts of a group. HAProxy writes nothing for a header
// that is not there, and nothing for an empty one.
func (p *Parser) haproxyGroup(to *[maxCaptures]*member, group []byte) {
	for _, m := range to {
		n := 0
		for n < len(group) && group[n] != '|' {
			n++
		}
		if part := group[:n]; len(m.targets) != 0 {
			if len(part) == 0 {
				part = dash
			}
			p.putMember(m, p.unhash(part))
		}
		if n == len(group) {
			return
		}
		group = group[n+1:]
	}
}

// haproxyRequest reads the quoted request and what was appended to the format.
func (p *Parser) haproxyRequest(s []byte) error {
	h := &p.haproxy
	h.watched = false
	if len(s) == 0 {
		return RejectCut
	}
	if s[0] != '"' {
		return RejectSyntax
	}
	request, rest := s[1:], []byte(nil)
	end := bytes.IndexByte(request, '"')
	if end < 0 {
		p.note(NoteLineTruncated)
		if bytes.IndexByte(request, '?') < 0 && !bytes.Contains(request, []byte(" HTTP/")) {
			p.suspectKey() // the path may be cut, and it is part of the question
		}
	} else {
		request, rest = request[:end], skipBlanks(request[end+1:])
	}
	request = p.unhash(request)
	p.putColumn(haRequest, request)
	if i := bytes.IndexByte(request, ' '); i > 0 && len(request) > i+1 && request[i+1] == 'h' {
		p.putColumn(haAuthority, authorityOf(request[i+1:]))
	}
	if len(rest) == 0 {
		return nil
	}
	h.watched = bytes.HasPrefix(rest, []byte("abortonclose=on")) // where no caller can have put it
	if _, err := p.appended(rest, true); err == RejectCut {
		p.note(NoteLineTruncated)
		p.suspectKey()
	}
	return nil
}

// authorityOf is the host of an absolute URI, as HTTP/2 requests are logged.
func authorityOf(uri []byte) []byte {
	_, rest, ok := bytes.Cut(uri, []byte("://"))
	if !ok {
		return nil
	}
	if i := bytes.IndexAny(rest, "/? "); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// unhash undoes HAProxy's #HH.
func (p *Parser) unhash(v []byte) []byte {
	if bytes.IndexByte(v, '#') < 0 {
		return v
	}
	out := p.grow(len(v))
	for i := 0; i < len(v); i++ {
		if v[i] == '#' {
			if b, ok := hexValue(v[i+1:], 2); ok {
				out = append(out, byte(b))
				i += 2
				continue
			}
		}
		out = append(out, v[i])
	}
	return p.keep(out)
}
