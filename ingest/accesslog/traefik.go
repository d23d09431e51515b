package accesslog

import "bytes"

// traefikNames are the members of Traefik's JSON access log. Headers stand in
// members of their own (request_NAME, downstream_NAME, origin_NAME), once the
// configuration keeps them. ServiceURL was an object in releases before v3.
var traefikNames = []alias{
	{fStart, 0, "StartUTC StartLocal"},
	{fTime, 0, "time"}, // of the line: the end, in whole seconds
	{fLogger, 0, "level"},
	{fMethod, 0, "RequestMethod"}, {fPath, 0, "RequestPath"}, {fAuthority, 0, "RequestHost RequestAddr"},
	{fStatus, 0, "DownstreamStatus"},
	{fDuration, unitNanos, "Duration"},
	{fBytesSent, 0, "DownstreamContentSize"},
	{fPeer, 0, "TLSClientSubject ClientHost ClientAddr"},
	{fOriginAddr, 0, "ServiceAddr ServiceURL ServiceURL.Host"},
	{fOriginStatus, 0, "OriginStatus"}, {fOriginTime, 0, "OriginDuration"}, {fOriginSize, 0, "OriginContentSize"},
	{fOverhead, 0, "Overhead"}, {fRetries, 0, "RetryAttempts"},
	{fContentLength, 0, "downstream_content_length origin_content_length"},
	{fRetryAfter, unitSeconds, "downstream_retry_after origin_retry_after"},
	{fAnswerHeader, 0, "downstream_date downstream_content_type"},
}

// traefikOther tells Traefik's own messages, which go to the same place.
func (p *Parser) traefikOther() bool {
	r := &p.raw
	if !r.has(fLogger) || p.showsRequest() {
		return false
	}
	msg := r.val(fMessage)
	if msg == nil {
		msg = r.val(fWrapMsg)
	}
	return len(msg) != 0 && msg[0] != '{'
}

// traefikGone is the body that Traefik writes to a caller that has gone.
const traefikGone = len("Client Closed Request")

// traefikDeparture reads what a Traefik record shows.
//
// Its only word for a departure is 499, which it also puts down as the origin's
// status, with 21 bytes that reached nobody. Such a 499 has been seen where the
// caller got a 200, hence the low confidence; one with another body came from
// the origin or an error page, and decides nothing. An answer that was cut off
// keeps its status and shows only against its Content-Length, and not who cut it.
//
// Traefik counts its retries and says nothing of what came of them. Mostly they
// are tries that reached no origin, so only the last one counts as sent.
func (p *Parser) traefikDeparture(e *Entry) {
	r := &p.raw
	e.RetryAfterShown = e.RetryAfterShown || r.has(fAnswerHeader)
	origin := count(r.val(fOriginStatus))
	own := e.Status == 499 && p.traefikBody()
	alone := origin == 0 || origin == Unknown && r.has(fOverhead) && bytes.Equal(r.val(fOverhead), r.val(fDuration))
	switch {
	case alone:
		e.Work = WorkNo
	case origin == 499, origin == 502, origin == 504: // as often Traefik's word for no answer
	case origin >= 100:
		e.Work = WorkYes
	}
	p.traefikTries(e, int(origin), own)
	switch {
	case own:
		e.depart(GoneYes, DeliveredNone, WorkUnknown, BeforeResponse)
		e.Notes |= NoteLowConfidence
	case e.Status == 499:
		e.Notes |= NoteLowConfidence
	default:
		p.announced(e)
	}
	e.Visible = e.Visible || e.Gone >= GoneLikely
	e.Local = e.Work == WorkNo && e.Status >= 400
}

// traefikBody says that the body of a 499 is Traefik's own text, or that the
// record does not show the body's size.
func (p *Parser) traefikBody() bool {
	r := &p.raw
	down, origin := count(r.val(fBytesSent)), count(r.val(fOriginSize))
	return down == int64(traefikGone) || origin == int64(traefikGone) || down == Unknown && origin == Unknown
}

func (p *Parser) traefikTries(e *Entry, origin int, own bool) {
	r := &p.raw
	if e.Work == WorkNo {
		e.Tries = p.noTries()
		return
	}
	addr := r.val(fOriginAddr)
	if i := bytes.Index(addr, []byte("://")); i >= 0 {
		if addr = addr[i+3:]; bytes.IndexByte(addr, '/') >= 0 {
			addr = addr[:bytes.IndexByte(addr, '/')]
		}
	}
	retries := count(r.val(fRetries))
	if retries == Unknown && len(addr) == 0 && origin < 100 {
		return // the record says nothing of what was tried
	}
	p.tries = p.noTries()
	for range min(max(retries, 0), maxTries-1) {
		p.tries = append(p.tries, Try{Time: Unknown})
	}
	last := Try{Addr: addr, Time: Unknown, Sent: true}
	if origin >= 100 && !own {
		last.Status = origin
	}
	if retries <= 0 {
		if d, ok := span(r.val(fOriginTime), unitNanos); ok {
			last.Time = d
		}
	} else {
		e.Notes |= NoteManyTries | NoteLowConfidence
	}
	p.tries = append(p.tries, last)
	e.Tries = p.tries
}
