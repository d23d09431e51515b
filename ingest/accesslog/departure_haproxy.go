package accesslog

// haproxyDeparture reads from a record of HAProxy's whether the caller left, what
// it got and whether the dependency did the work.
//
// The termination state decides: its first letter says who ended the session (C
// the caller, c the caller's silence), its second in which phase. The status that
// HAProxy makes up for a caller that has gone (-1, 400, 503) is none.
//
// An ordinary state proves little. Without option abortonclose a caller that
// closed before the answer leaves one, so such a record is Visible only if it
// says that the option is on, by the pair abortonclose=on behind the request.
func (p *Parser) haproxyDeparture(e *Entry) {
	h := &p.haproxy
	p.tries = h.tries(p.noTries(), e)
	e.Tries = p.tries
	who, phase := h.status[0], h.status[1]
	e.Work = h.work(phase)
	switch {
	case (who == 'C' || who == 'c') && phase != '-':
		e.Gone = GoneYes
		if who == 'c' {
			e.Gone = GoneLikely // it was silent for too long
		}
		h.left(e, phase)
	case who == '-':
		e.Delivered = DeliveredAll
		if h.asap {
			e.Delivered = DeliveredUnknown
		}
	default:
		e.Gone = GoneNo // the server, HAProxy or its operator ended it
	}
	e.Visible = e.Gone >= GoneLikely || h.watched && !h.asap
	e.Local = e.Gone < GoneLikely && e.Work == WorkNo && e.Status >= 400
}

// left places a departure by the phase in which it was.
func (h *haproxyState) left(e *Entry, phase byte) {
	switch {
	case phase == 'D' && h.answer >= 0:
		e.Departure = DuringResponse
		// What the kernel took at the end may have reached nobody.
		if h.body > 0 && e.BytesSent > 0 {
			e.Delivered = DeliveredPartial
		}
		return
	case phase == 'L':
		e.Delivered, e.Departure = DeliveredAll, UnknownPoint
		return
	}
	e.Delivered, e.Departure = DeliveredNone, BeforeResponse
	if e.Status == 400 || e.Status == 503 {
		e.Status = 0
	}
}

// work says whether a server was asked: which phase was reached tells, and the
// time until its answer began.
func (h *haproxyState) work(phase byte) Work {
	switch {
	case h.noServer():
		return WorkNo
	case h.answer >= 0:
		return WorkYes
	case phase == 'R', phase == 'Q', phase == 'C', phase == 'T':
		return WorkNo
	}
	return WorkUnknown
}

// noServer says that no server was chosen.
func (h *haproxyState) noServer() bool {
	n := len(h.server) - 1
	return h.server[n] == '>' // <NOSRV>, <STATS>
}

// tries appends the tries of a record, which gives their number and the server of
// the last. A retry is of a connection that failed, unless retry-on says more,
// and the line does not say which: so only the last try counts as sent, and a
// dependency behind such a proxy is better counted there.
func (h *haproxyState) tries(dst []Try, e *Entry) []Try {
	if h.noServer() {
		return dst
	}
	for range h.retries {
		t := Try{Time: Unknown}
		if !h.moved {
			t.Addr = h.server
		}
		dst = append(dst, t)
	}
	last := Try{Addr: h.server, Time: Unknown, Sent: h.connected}
	if h.answer >= 0 {
		last.Status, last.Time = e.Status, h.answer*1e6
	}
	if h.retries > 0 {
		e.Notes |= NoteManyTries | NoteLowConfidence
		if h.moved {
			e.Notes |= NoteRedispatched
		}
	}
	return append(dst, last)
}
