package accesslog

// toldDeparture reads the canonical fields client_gone and departure.
//
// client_gone is a boolean or the logger's own flag, where an empty one and the
// usual words for no mean no. With it, bytes sent make it during_response; none,
// under a status other than 0 and 499, undelivered_answer; status 0 or 499,
// before_response; and without bytes_sent it is unknown_point. departure names
// the kind itself and wins.
func toldDeparture(e *Entry, gone, departure []byte) {
	e.Visible = true
	e.Notes &^= NoteDeadlineInferred
	switch string(departure) {
	case "before_response":
		e.depart(GoneYes, DeliveredNone, WorkUnknown, BeforeResponse)
		return
	case "undelivered_answer":
		e.depart(GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer)
		return
	case "during_response":
		e.depart(GoneYes, DeliveredPartial, WorkYes, DuringResponse)
		return
	case "unknown_point":
		e.depart(GoneYes, DeliveredUnknown, WorkUnknown, UnknownPoint)
		return
	}
	if !truth(gone) {
		e.Gone, e.Departure = GoneNo, NotRecorded
		return
	}
	switch {
	case e.BytesSent > 0:
		e.depart(GoneYes, DeliveredPartial, WorkYes, DuringResponse)
	case e.Status == 499, e.Status == 0 && (len(e.StatusRaw) != 0 || e.BytesSent == 0):
		e.depart(GoneYes, DeliveredNone, WorkUnknown, BeforeResponse)
	case e.BytesSent == 0:
		e.depart(GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer)
	default:
		e.depart(GoneYes, DeliveredUnknown, WorkUnknown, UnknownPoint)
	}
}

func (e *Entry) depart(g Gone, d Delivered, w Work, k Departure) {
	e.Gone, e.Delivered, e.Work, e.Departure = g, d, w, k
}

// truth reads a flag.
func truth(b []byte) bool {
	if string(b) == "false" {
		return false
	}
	switch string(b) {
	case "", "-", "0", "False", "FALSE", "no", "No", "f", "n", "none", "nil", "<nil>", "null", "ok", "OK":
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
