package accesslog

// nginxDeparture reads from an nginx record whether the caller left, what it got
// and whether the dependency did the work. It sets Gone, Delivered, Work,
// Departure, Visible and Local from Status, StatusRaw, BytesSent and Tries.
//
// completion is $request_completion, which is "OK" or empty; haveCompletion says
// that the record has that field at all. BytesSent is what was sent altogether,
// or the body alone where the record has no more (NoteBodyBytesOnly); bodyBytes
// is $body_bytes_sent, or Unknown.
//
// The status alone decides nothing: nginx gives its own 499 only while nothing
// has been sent, and passes on an upstream's 499 as it came. An answer that was
// cut off keeps the status it began with. An empty completion does not name the
// side that broke off: an upstream that died in mid-body ends the same way.
// Without that field only a 499 shows, so an ordinary record is not Visible.
func nginxDeparture(e *Entry, completion []byte, haveCompletion bool, bodyBytes int64) {
	complete := len(completion) != 0 && !isDash(completion)
	incomplete := haveCompletion && !complete
	upstream := lastUpstream(e.Tries)
	sent := e.BytesSent
	if bodyBytes != Unknown {
		sent = bodyBytes // HTTP/2 counts header frames of an answer that never came
	}

	e.Gone, e.Delivered, e.Departure = GoneNoRecord, DeliveredUnknown, NotRecorded
	e.Work = nginxWork(e.Tries)
	if complete {
		e.Delivered = DeliveredAll
	}
	switch {
	case e.Status == 499:
		nginx499(e, upstream, complete, incomplete, sent)
	case e.Status == 444:
		// nginx itself hung up on the caller.
		e.Gone, e.Delivered = GoneNo, DeliveredNone
	case e.Status == 408 && upstream != 408:
		// The caller was too slow with its request and nginx gave up on it.
		e.Gone = GoneNo
	case e.Status == 400 && incomplete && upstream <= 0 && e.BytesSent <= 0 && sent <= 0:
		// Cut off in the request line or in the body: no request to answer.
		e.Gone, e.Delivered, e.Work, e.Departure = GoneYes, DeliveredNone, WorkNo, BeforeResponse
	case e.zeroStatus() && !complete && sent == 0:
		// 000: no status was ever set.
		e.Gone, e.Delivered, e.Departure = GoneLikely, DeliveredNone, BeforeResponse
	case incomplete:
		nginxCut(e, upstream, sent)
	}

	e.Visible = haveCompletion || e.Gone >= GoneLikely
	// nginx refused or failed on its own. Its own successes (files, cache hits)
	// are answers like any other.
	e.Local = e.Gone < GoneLikely && e.Work == WorkNo && e.Status >= 400
}

// nginx499 tells a departure from a 499 that somebody behind nginx made and
// nginx passed on.
func nginx499(e *Entry, upstream int, complete, incomplete bool, sent int64) {
	some := e.BytesSent > 0 || sent > 0
	switch {
	case complete:
		e.Gone = GoneNo
		relayed499(e, upstream)
	case incomplete && some:
		nginxCut(e, upstream, sent)
	case upstream == 499 && !incomplete && (e.BytesSent != 0 || e.Notes&NoteBodyBytesOnly != 0):
		e.Gone = GoneNo
		relayed499(e, upstream)
		if !some {
			// An empty answer of the upstream's, or a departure just then.
			e.Notes |= NoteLowConfidence
		}
	case some && !incomplete:
		// nginx's own 499 has sent nothing, so this is another's: not recorded.
		e.Notes |= NoteLowConfidence
	default:
		e.Gone, e.Delivered = GoneYes, DeliveredNone
		switch {
		case upstream > 0:
			e.Work, e.Departure = WorkYes, UndeliveredAnswer
		default:
			if e.Work == WorkYes {
				e.Work = WorkUnknown // an earlier try was answered, not the last
			}
			e.Departure = BeforeResponse
		}
	}
}

// relayed499 leaves open who set a 499 that came from upstream, and after what.
func relayed499(e *Entry, upstream int) {
	if upstream == 499 {
		e.Work = WorkUnknown
	}
}

// nginxCut is an answer that began, with whatever status, and did not finish.
func nginxCut(e *Entry, upstream int, sent int64) {
	e.Gone = GoneYes
	if upstream > 0 || e.Tries == nil {
		e.Work = WorkYes // a status other than 499 is somebody's answer
	}
	switch {
	case sent > 0:
		e.Delivered, e.Departure = DeliveredPartial, DuringResponse
	case sent < 0:
		e.Departure = UnknownPoint
	case e.Work == WorkYes:
		e.Delivered, e.Departure = DeliveredNone, UndeliveredAnswer
	default:
		e.Delivered, e.Departure = DeliveredNone, BeforeResponse
	}
}

// lastUpstream is the status of the last try: 0 when it got none or there was no
// try, Unknown when the record does not list tries.
func lastUpstream(tries []Try) int {
	switch {
	case tries == nil:
		return Unknown
	case len(tries) == 0:
		return 0
	}
	return tries[len(tries)-1].Status
}

// nginxWork reads the work from the tries of a finished request. A 502 or 504 in
// the list is as often nginx's word for a try without an answer as an upstream's
// own, so it leaves the work open.
func nginxWork(tries []Try) Work {
	if tries == nil {
		return WorkUnknown
	}
	work := WorkNo
	for i := range tries {
		switch t := &tries[i]; {
		case t.Status > 0 && t.Status != 502 && t.Status != 504:
			return WorkYes
		case t.Sent:
			work = WorkUnknown
		}
	}
	return work
}
