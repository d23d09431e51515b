package accesslog

import "bytes"

// caddyNames are the members of Caddy's JSON access log. Its request headers are
// arrays under request.headers, the answer's under resp_headers: the spellings of
// headers find them there. Of the two addresses the adjacent one is the peer, and
// a client certificate's name goes before both.
var caddyNames = []alias{
	{fTime, 0, "ts"},
	{fLogger, 0, "logger"},
	{fPeer, 0, "request.tls.client_common_name request.remote_ip request.client_ip"},
	{fBytesSent, 0, "size"},
	{fVia, 0, "resp_headers.via"},
	{fContentLength, 0, "resp_headers.content_length"},
	{fAnswerHeader, 0, "resp_headers.server resp_headers.date resp_headers.content_type"},
}

// caddyOther tells what else Caddy logs as JSON, mostly to the same place: that it
// serves, and why a request failed, with the request and a status. The second
// would count the request twice.
func (p *Parser) caddyOther() bool {
	r := &p.raw
	if r.has(fLogger) {
		return !bytes.HasPrefix(r.val(fLogger), []byte("http.log.access"))
	}
	msg := r.val(fWrapMsg)
	return len(msg) != 0 && p.showsRequest() && string(msg) != "handled request" && string(msg) != "NOP"
}

// caddyDeparture reads what a Caddy record shows, as measured on 2.10 and 2.11:
//
//   - A proxied request whose caller left before the answer has status 0 (to
//     2.10), which is also what a handler that writes nothing leaves, or 499 (from
//     2.11). A 499 that came from upstream has Caddy's Via header beside it. A
//     caller that only closed its sending side is logged as 499, too.
//   - A proxied answer that broke off keeps its status and has a duration of
//     exactly 0, whichever side broke it off: so the duration is not known, and
//     the departure is likely, no more.
//   - An answer shorter than its Content-Length broke off in the same way.
//   - A request that no site or handler took has status 0 and the message NOP: its
//     caller got an empty 200.
//
// An ordinary record therefore proves something only where the answer's length
// was announced.
func (p *Parser) caddyDeparture(e *Entry) {
	r := &p.raw
	e.RetryAfterShown = e.RetryAfterShown || r.has(fVia) || r.has(fContentLength) || r.has(fAnswerHeader)
	broken := p.caddyDuration(e)
	if e.Uncertainty > 1e6 && e.Uncertainty < 1e9 {
		e.Uncertainty = 1e6 // a float, whose last zeros are not printed
	}
	proxied := r.has(fVia)
	if proxied && e.Status >= 100 {
		e.Work = WorkYes
	}
	switch {
	case e.zeroStatus():
		if string(r.val(fWrapMsg)) == "NOP" {
			e.Work = WorkNo
			return
		}
		e.depart(GoneLikely, DeliveredNone, WorkUnknown, BeforeResponse)
	case e.Status == 499 && !proxied && e.BytesSent <= 0:
		e.depart(GoneYes, DeliveredNone, WorkUnknown, BeforeResponse)
	case e.Status == 499 && proxied:
		e.Gone, e.Visible = GoneNo, true
	case e.Status == 499:
		e.Notes |= NoteLowConfidence // a handler's own
	case broken && e.Status != 0:
		e.cutOff(r.has(fContentLength))
	default:
		p.announced(e)
	}
	e.Visible = e.Visible || e.Gone >= GoneLikely
}

// caddyDuration takes back a duration that is none, and says whether it is the 0
// of an answer that broke off.
func (p *Parser) caddyDuration(e *Entry) (broken bool) {
	r := &p.raw
	if !r.has(fDuration) || r.cells[fDuration].by.unit != unitDefault {
		return false
	}
	switch v := r.cells[fDuration].b; {
	case e.Duration == 0:
		broken = true
	case allDigits(v):
		r.notes |= NoteBadDuration // not in seconds, and not said in what
		e.Notes |= NoteBadDuration
	default:
		return false
	}
	if e.Duration = Unknown; !e.StampIsEnd {
		e.End = e.Start
		return broken
	}
	if e.Start = e.End; e.Deadline != 0 {
		e.Deadline = p.deadline(e) // it may be counted from the start
	}
	return broken
}

// announced compares the bytes sent with the Content-Length of the answer, where
// the record has both: then it shows whether the answer was whole.
func (p *Parser) announced(e *Entry) {
	length := count(p.raw.val(fContentLength))
	if length == Unknown || e.BytesSent == Unknown || e.Status < 200 {
		return
	}
	e.Visible = true
	switch {
	case string(e.Method) == "HEAD", e.Status == 204, e.Status == 304, e.BytesSent >= length:
		e.Delivered = DeliveredAll
	default:
		e.cutOff(true)
	}
}

// goBuffers is how much of an answer of announced length Go's server holds back
// before anything of it leaves.
const goBuffers = 6 << 10

// cutOff is an answer that began and did not finish, and the record does not name
// the side that broke it off. Its bytes are those that were handed to Go's server,
// which sends the first of them late where it knows how many will come.
func (e *Entry) cutOff(announced bool) {
	e.Notes |= NoteLowConfidence
	switch {
	case e.BytesSent == 0:
		e.depart(GoneLikely, DeliveredNone, WorkYes, UndeliveredAnswer)
	case e.BytesSent < 0 || announced && e.BytesSent <= goBuffers:
		e.depart(GoneLikely, DeliveredUnknown, WorkYes, DuringResponse)
	default:
		e.depart(GoneLikely, DeliveredPartial, WorkYes, DuringResponse)
	}
}
