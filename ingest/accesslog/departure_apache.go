package accesslog

import "bytes"

// apacheDeparture reads from a record of httpd's whether the caller left, what it
// got and whether the work was done: %X is X where the connection broke before
// the answer was complete, and %O what went over the wire until then. %B and %b
// count what was handed to httpd's filters, and by themselves prove nothing.
//
// By HTTP/2 an answer that the caller has read to its end is X too, now and then.
// What is sent counts the headers, so an answer of which less was sent than httpd
// had was cut off, and of any other nothing is claimed. A record that says neither
// the protocol nor %B is not sure.
//
// Any other %X proves nothing either: httpd does not look for callers that close
// while it waits, and what it writes to one is taken by the kernel. So no
// ordinary record is Visible, and there is no setting that would change it.
func (p *Parser) apacheDeparture(e *Entry) {
	r, protocol := &p.raw, byte(0)
	switch e.Status {
	case 0, 400, 408, 413, 414, 431, 502, 503, 504:
		// httpd's own words for a request that it could not read or pass on, or
		// those of what stands behind it.
	default:
		e.Work = WorkYes
	}
	if string(r.val(fTermination)) == "X" {
		protocol = p.apacheProtocol()
	}
	// A "-" is what %X is for a connection that is closed after the answer.
	switch state := r.val(fTermination); {
	case len(state) == 0 && !r.isNull(fTermination):
	case string(state) != "X":
		e.Delivered = DeliveredAll
	case !r.has(fBytesSent):
		e.Gone, e.Departure = GoneYes, UnknownPoint
	case e.BytesSent > 0 && (protocol == '1' || r.has(fBodyBytes) && e.BytesSent < count(r.val(fBodyBytes))):
		e.Gone, e.Delivered, e.Departure = GoneYes, DeliveredPartial, DuringResponse
	case e.BytesSent > 0:
		e.Notes |= NoteLowConfidence
		if protocol == 0 && !r.has(fBodyBytes) {
			e.Gone, e.Departure = GoneLikely, UnknownPoint
		}
	case e.Work == WorkYes:
		e.Gone, e.Delivered, e.Departure = GoneYes, DeliveredNone, UndeliveredAnswer
	default:
		e.Gone, e.Delivered, e.Departure = GoneYes, DeliveredNone, BeforeResponse
	}
	e.Visible = e.Gone >= GoneLikely
}

// apacheProtocol is the major version of HTTP that the record says, or 0.
func (p *Parser) apacheProtocol() byte {
	v := p.raw.val(fRequest)
	if len(v) == 0 {
		v = p.protocol
	}
	if i := bytes.LastIndex(v, []byte("HTTP/")); i >= 0 && len(v) > i+5 {
		return v[i+5]
	}
	return 0
}
