package accesslog

import "bytes"

// envoyTries makes the tries of an Envoy record, which gives their number and
// the last one's upstream. It reads what envoyDeparture has found.
//
// The record's status is the last try's where an upstream made it, and its
// duration that of a try that was the only one. What the earlier tries answered
// and how long each took it does not say.
//
// Nor does it say whether the earlier ones reached an upstream. A retry mostly
// follows an answer, so they count as sent, unless the last could not connect and
// no flag tells of anything else: an upstream that refuses connections refuses
// the tries before, too.
func (p *Parser) envoyTries(e *Entry) {
	r := &p.raw
	n := min(count(r.val(fTryCount)), maxTries)
	if n == Unknown {
		return
	}
	last := Try{Addr: r.val(fUpstreamHost), Time: Unknown}
	viaUpstream := hasPrefix(r.val(fDetails), "via_upstream")
	unconnected := !viaUpstream && onlyUnconnected(r.val(fFlags))
	switch {
	case unconnected:
	case r.shows(fUpstreamLocal):
		last.Sent = len(r.val(fUpstreamLocal)) != 0
	default:
		last.Sent = len(last.Addr) != 0
	}
	if viaUpstream || last.Sent && e.Work == WorkYes {
		last.Status = e.Status
	}
	if n == 1 && last.Sent {
		last.Time = e.Duration
	}
	p.tries = p.noTries()
	for range n - 1 {
		p.tries = append(p.tries, Try{Time: Unknown, Sent: !unconnected})
	}
	if n > 0 {
		p.tries = append(p.tries, last)
	}
	if n > 1 {
		e.Notes |= NoteManyTries | NoteLowConfidence
	}
	e.Tries = p.tries
}

// onlyUnconnected says that a list of flags tells of a connection that could not
// be made, and of nothing else but that the retries were used up.
func onlyUnconnected(list []byte) bool {
	some := false
	for len(list) > 0 {
		var token []byte
		token, list, _ = bytes.Cut(list, []byte(","))
		switch string(bytes.TrimSpace(token)) {
		case "UF", "UpstreamConnectionFailure":
			some = true
		case "", "URX", "UpstreamRetryLimitExceeded":
		default:
			return false
		}
	}
	return some
}
