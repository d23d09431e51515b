package accesslog

import "bytes"

// Traefik's common format is
//
//	client - user [start] "METHOD path protocol" status size "referer" "agent" count "router" "server URL" NNNms
//
// Nothing in it is escaped. A path holds no blank, so the request ends at the
// first quote that a status and a size follow; the four last values are read from
// the right, and the user agent is what lies between, with the referer where quotes
// make that unclear. There is no header in it but those two, and so no key.
func (p *Parser) tokenizeTraefikCLF(line []byte) error {
	open := bytes.IndexByte(line, '[')
	if open < 2 || line[open-1] != ' ' {
		return RejectSyntax
	}
	who, rest := line[:open-1], line[open+1:]
	client, user := cutBlank(who)
	if !bytes.HasPrefix(user, []byte("- ")) {
		return RejectSyntax
	}
	stamp, rest, ok := bytes.Cut(rest, []byte(`] "`))
	if !ok {
		return RejectCut
	}
	var request, status, size []byte
	for at := 0; ; {
		n := bytes.Index(rest[at:], []byte(`" `))
		if n < 0 {
			return RejectCut
		}
		at += n + 2
		var after []byte
		status, after = cutBlank(rest[at:])
		size, after = cutBlank(after)
		if (allDigits(status) || isDash(status)) && (allDigits(size) || isDash(size)) {
			request, rest = rest[:at-2], after
			break
		}
	}

	// From the right. A router's name is the operator's, and so is the URL.
	n := bytes.LastIndexByte(rest, ' ')
	took, isMillis := bytes.CutSuffix(rest[n+1:], []byte("ms"))
	if n < 0 || !isMillis || !allDigits(took) {
		return RejectCut
	}
	server, rest, ok := lastQuoted(rest[:n])
	if !ok {
		return RejectSyntax
	}
	router, rest, ok := lastQuoted(rest)
	if !ok {
		return RejectSyntax
	}
	n = bytes.LastIndexByte(rest, ' ')
	if n < 0 || !allDigits(rest[n+1:]) && !isDash(rest[n+1:]) {
		return RejectSyntax
	}
	headers := rest[:n]
	if len(headers) < 2 || headers[len(headers)-1] != '"' {
		return RejectSyntax
	}
	_, agent, ok := bytes.Cut(headers[:len(headers)-1], []byte(`" "`))
	if !ok {
		return RejectSyntax
	}
	if bytes.IndexByte(agent, '"') >= 0 {
		p.quoteInHeader()
	}

	p.putColumn(traefikClient, client)
	p.putColumn(traefikStart, stamp)
	p.putColumn(traefikRequest, request)
	p.putColumn(traefikStatus, status)
	p.putColumn(traefikSize, size)
	p.putColumn(traefikAgent, agent)
	p.putColumn(traefikRouter, router)
	p.putColumn(traefikServer, server)
	p.putColumn(traefikTook, took)
	p.traefikAlone = isDash(server)
	return nil
}

// The columns, by the names that Traefik's JSON gives them.
const (
	traefikClient = iota
	traefikStart
	traefikRequest
	traefikStatus
	traefikSize
	traefikAgent
	traefikRouter
	traefikServer
	traefikTook
)

var traefikCLFColumns = []string{"ClientHost", "Start", "Request", "DownstreamStatus", "DownstreamContentSize",
	"request_User-Agent", "RouterName", "ServiceURL", "Duration"}

var traefikCLFNames = []alias{
	{fPeer, 0, "ClientHost"}, {fStart, 0, "Start"}, {fStatus, 0, "DownstreamStatus"}, {fBytesSent, 0, "DownstreamContentSize"},
	{fDuration, unitMillis, "Duration"}, {fUserAgent, 0, "request_User-Agent"},
}

// lastQuoted splits the quoted value off the end of s. A dash may stand for it.
func lastQuoted(s []byte) (value, rest []byte, ok bool) {
	if n := len(s) - 2; n >= 0 && string(s[n:]) == " -" {
		return s[n+1:], s[:n], true
	}
	if len(s) < 3 || s[len(s)-1] != '"' {
		return nil, nil, false
	}
	n := bytes.LastIndexByte(s[:len(s)-1], '"')
	if n < 1 || s[n-1] != ' ' {
		return nil, nil, false
	}
	return s[n+1 : len(s)-1], s[:n-1], true
}

// traefikCLFDeparture reads what such a line shows: a 499 with the 21 bytes that
// Traefik writes to a caller that has gone, which it has been seen to do where
// the caller got its answer. An answer that was cut off keeps its status and has
// no mark, so no other record is Visible.
func (p *Parser) traefikCLFDeparture(e *Entry) {
	switch {
	case p.traefikAlone:
		e.Work = WorkNo
	case e.Status == 0, e.Status == 499, e.Status == 502, e.Status == 504:
		// Traefik's own words for no answer, as often as not.
	default:
		e.Work = WorkYes
	}
	if e.Status == 499 {
		e.Notes |= NoteLowConfidence
		if e.BytesSent == int64(traefikGone) || e.BytesSent == Unknown {
			e.depart(GoneYes, DeliveredNone, WorkUnknown, BeforeResponse)
		}
	}
	e.Visible = e.Gone >= GoneLikely
	e.Local = e.Gone < GoneLikely && e.Work == WorkNo && e.Status >= 400
}
