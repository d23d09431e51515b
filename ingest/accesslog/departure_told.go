package accesslog

import "bytes"

// toldDeparture reads the canonical fields client_gone and departure, of which a
// record has one at least; flagged says that it has the former.
//
// client_gone is a boolean or the logger's own flag, where an empty one means no.
// With it, bytes sent make it during_response; none, under a status other than 0
// and 499, undelivered_answer; status 0 or 499, and one that the record shows as none,
// before_response; and without bytes_sent it is unknown_point. So it is with no bytes under a
// status that cannot be read, or none in the record: whether there was an answer to be
// delivered is what it does not say. departure names the kind itself and wins; where
// it names none (empty, none, no_record, not_recorded) it says nothing.
//
// A word of either that is not known here leaves the record as it was without
// the field, with a note: that nobody left is only what a known word says.
func toldDeparture(e *Entry, gone, departure []byte, flagged bool) {
	known := true
	switch string(bytes.TrimSpace(departure)) {
	case "before_response":
		e.tell(GoneYes, DeliveredNone, WorkUnknown, BeforeResponse)
		return
	case "undelivered_answer":
		e.tell(GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer)
		return
	case "during_response":
		e.tell(GoneYes, DeliveredPartial, WorkYes, DuringResponse)
		return
	case "unknown_point":
		e.tell(GoneYes, DeliveredUnknown, WorkUnknown, UnknownPoint)
		return
	case "", "none", "no_record", "not_recorded":
		known = flagged // which it does not contradict
	default:
		known = false
	}
	left, ok := false, false
	if flagged {
		left, ok = flag(gone)
		known = known && ok
	}
	if !known {
		e.Notes |= NoteDepartureUnread
	}
	switch {
	case !ok, !left && !known:
	case !left:
		e.Visible = true
		e.Notes &^= NoteDeadlineInferred
		e.Gone, e.Departure = GoneNo, NotRecorded
	case e.BytesSent > 0:
		e.tell(GoneYes, DeliveredPartial, WorkYes, DuringResponse)
	case e.Status == 499, e.zeroStatus(), e.Status == 0 && isDash(e.StatusRaw):
		e.tell(GoneYes, DeliveredNone, WorkUnknown, BeforeResponse)
	case e.BytesSent == 0 && e.Status != 0:
		e.tell(GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer)
	default:
		e.tell(GoneYes, DeliveredUnknown, WorkUnknown, UnknownPoint)
	}
}

// tell is depart for what the record itself says.
func (e *Entry) tell(g Gone, d Delivered, w Work, k Departure) {
	e.Visible = true
	e.Notes &^= NoteDeadlineInferred
	e.depart(g, d, w, k)
}

// flag reads a boolean in the ways in which loggers and people write one. Case
// does not matter; ok is false for any other word.
func flag(b []byte) (yes, ok bool) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return false, true
	}
	if b[0]-'0' <= 9 {
		n := count(b)
		return n == 1, n == 0 || n == 1
	}
	var buf [5]byte
	if len(b) > len(buf) {
		return false, false
	}
	for i, c := range b {
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	switch string(buf[:len(b)]) {
	case "y", "yes", "t", "true", "on":
		return true, true
	case "n", "no", "f", "false", "off":
		return false, true
	}
	return false, false
}

func (e *Entry) depart(g Gone, d Delivered, w Work, k Departure) {
	e.Gone, e.Delivered, e.Work, e.Departure = g, d, w, k
}

// truth says that the text of an error is one: it is neither empty nor a word for
// none.
func truth(b []byte) bool {
	switch string(b) {
	case "", "-", "0", "false", "False", "FALSE", "no", "No", "f", "n", "none", "nil", "<nil>", "null", "ok", "OK":
		return false
	}
	return true
}

// goDeparture reads what Go's servers can show: the request's context at the
// end, an error of the last write, and go-grpc-middleware's code.
//
// A cancelled context is also what a half-closed caller leaves behind, so it is
// likely, no more. Without one of these fields the record shows no departure; a
// status of 499 alone decides nothing.
func goDeparture(e *Entry, r *raw) {
	if r.has(fContext) || r.has(fWriteError) {
		e.Visible = true
		switch {
		case truth(r.val(fWriteError)) && e.BytesSent > 0:
			e.depart(GoneYes, DeliveredPartial, WorkYes, DuringResponse)
		case truth(r.val(fWriteError)) && e.BytesSent == 0:
			e.depart(GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer)
		case truth(r.val(fWriteError)):
			e.depart(GoneYes, DeliveredUnknown, WorkYes, UnknownPoint)
		case isCancelled(r.val(fContext)):
			e.depart(GoneLikely, DeliveredUnknown, WorkYes, UnknownPoint)
		}
		return
	}
	if !r.has(fGRPCMethod) || !r.has(fGRPCStatus) {
		return
	}
	switch {
	case e.GRPCStatus == 1:
		e.depart(GoneLikely, DeliveredUnknown, WorkUnknown, UnknownPoint)
		e.Visible = true
	case e.GRPCStatus == 0 && e.HasTime && e.Deadline != 0 && e.End > e.Deadline:
		e.depart(GoneLikely, DeliveredUnknown, WorkYes, UndeliveredAnswer)
		e.Visible = true
		e.Notes |= NoteDeadlineInferred
		if e.End-e.Deadline < e.Uncertainty {
			e.Notes |= NoteLowConfidence
		}
	}
}

func isCancelled(b []byte) bool {
	switch string(b) {
	case "canceled", "cancelled", "context canceled", "context cancelled", "Canceled", "CANCELLED":
		return true
	}
	return false
}
