package accesslog

import "bytes"

// albColumns are the columns of a line of an AWS Application Load Balancer, in
// order, under the names of its manual. More have come over the years: a line may
// end behind the user agent, and whatever follows the last one here is passed
// over.
var albColumns = []string{"type", "time", "elb", "client", "target",
	"request_processing_time", "target_processing_time", "response_processing_time",
	"elb_status_code", "target_status_code", "received_bytes", "sent_bytes", "request", "user_agent",
	"ssl_cipher", "ssl_protocol", "target_group_arn", "trace_id", "domain_name", "chosen_cert_arn",
	"matched_rule_priority", "request_creation_time", "actions_executed", "redirect_url", "error_reason",
	"target_port_list", "target_status_code_list", "classification", "classification_reason", "conn_trace_id",
	"transformed_host", "transformed_uri", "request_transform_status"}

// The columns that are looked at one by one.
const (
	albClient    = 3
	albTimes     = 5 // and the two behind
	albStatus    = 8
	albRequest   = 12
	albUserAgent = 13
	albTrace     = 17
	albCreation  = 21
)

var albNames = []alias{
	{fEnd, 0, "time"}, {fStart, 0, "request_creation_time"},
	{fStatus, 0, "elb_status_code"}, {fBytesSent, 0, "sent_bytes"},
	{fOriginAddr, 0, "target"}, {fOriginStatus, 0, "target_status_code"},
	{fWait, unitSeconds, "request_processing_time"}, {fOriginTime, unitSeconds, "target_processing_time"},
	{fAnswerTime, unitSeconds, "response_processing_time"},
	{fOriginList, 0, "target_port_list"}, {fOriginStatusList, 0, "target_status_code_list"},
}

// tokenizeALB reads a line of a load balancer. The caller writes the request and
// the user agent, which are quoted; a raw quote in them is noted, and what stands
// behind such a user agent is not read.
func (p *Parser) tokenizeALB(line []byte) error {
	if bytes.HasPrefix(line, []byte("Enable AccessLog for ELB")) {
		return RejectOther // the file that is written when the log is switched on
	}
	for i := range albColumns {
		if len(line) == 0 {
			if i <= albUserAgent {
				return albCut(i)
			}
			break
		}
		var v []byte
		if line[0] == '"' {
			n, clean := bytes.IndexByte(line[1:], '"'), true
			if n < 0 {
				return albCut(i)
			}
			if n+2 < len(line) && line[n+2] != ' ' || n > 0 && line[n] == '\\' {
				if n, clean = closingQuote(line[1:], true); n < 0 {
					return albCut(i)
				}
			}
			v, line = line[1:1+n], line[n+2:]
			if i >= albRequest && i <= albUserAgent {
				v = p.unescaped(v)
			}
			if !clean {
				p.quoteInHeader()
				if i >= albUserAgent {
					p.putColumn(albUserAgent, v)
					break
				}
			}
		} else {
			n := blank(line, 0)
			v, line = line[:n], line[n:]
		}
		if i < albRequest && !albPlausible(i, v) {
			return RejectSyntax
		}
		if len(line) > 0 {
			line = line[1:] // the blank
		}
		switch i {
		case albClient:
			if n := bytes.LastIndexByte(v, ':'); n > 0 {
				v = v[:n] // IPv6 has no brackets here
			}
			p.put(fPeer, v)
		case albRequest:
			p.albRequest(v)
			continue // not as a request line, whose parts may be dashes here
		case albCreation:
			if len(v) > 0 && !isDash(v) && v[len(v)-1] != 'Z' {
				return RejectCut // stamps end with their zone
			}
		case albTrace:
			if root := part(v, ';', '=', "Root"); root != nil {
				p.put(fMintedID, root)
			}
		}
		p.putColumn(i, v)
	}
	return nil
}

// albCut is what a line is that ends before column i.
func albCut(i int) error {
	if i > albStatus {
		return RejectCut
	}
	return RejectSyntax
}

// albPlausible says that the value can stand in one of the columns that tell this
// format from others.
func albPlausible(i int, v []byte) bool {
	switch i {
	case 1:
		return len(v) >= 20 && v[4] == '-' && v[10] == 'T'
	case albTimes, albTimes + 1, albTimes + 2:
		return len(v) != 0 && (isDigit(v[0]) || v[0] == '-')
	case albStatus:
		return isCount(v)
	}
	return true
}

// albRequest reads "GET https://host:port/path HTTP/1.1", where each part may be
// a dash.
func (p *Parser) albRequest(v []byte) {
	method, v := cutBlank(bytes.TrimRight(v, " "))
	if n := bytes.LastIndexByte(v, ' '); n >= 0 {
		v = v[:n] // the version; a URL may hold blanks
	}
	p.put(fMethod, method)
	n := bytes.Index(v, []byte("://"))
	if n < 0 {
		p.put(fPath, v)
		return
	}
	v = v[n+3:]
	if n = bytes.IndexByte(v, '/'); n < 0 {
		n = len(v)
	}
	if !bytes.Equal(v[:n], []byte("-:-")) {
		p.put(fAuthority, v[:n])
	}
	if len(v) > n {
		p.put(fPath, v[n:])
	}
}

// albDeparture reads what a load balancer's record shows: 460, and nothing else,
// is a departure, so an ordinary record proves nothing. Which side ended a request
// that has 000 it does not say. A target that is known did perhaps work, even
// where its answer is not.
func (p *Parser) albDeparture(e *Entry) {
	r := &p.raw
	p.albTimes(e)
	target := count(r.val(fOriginStatus))
	p.albTries(e, int(max(target, 0)))
	asked := len(r.val(fOriginAddr)) != 0
	switch {
	case target >= 100:
		e.Work = WorkYes
	case !asked && r.shows(fOriginAddr):
		e.Work = WorkNo
	}
	switch {
	case e.Status == 460 && target == 460:
		e.Gone = GoneNo // the target's own
		e.Visible = true
	case e.Status != 460:
	case target < 100:
		e.depart(GoneYes, DeliveredNone, WorkUnknown, BeforeResponse)
	case e.BytesSent > 0:
		e.depart(GoneYes, DeliveredPartial, WorkYes, DuringResponse)
	default:
		e.depart(GoneYes, DeliveredNone, WorkYes, UndeliveredAnswer)
	}
	e.Visible = e.Visible || e.Gone >= GoneLikely
	e.Local = e.Work == WorkNo && e.Gone < GoneLikely && e.Status >= 400
}

// albTimes makes the request's times. The creation is logged to the millisecond,
// with zeros behind, so the end is not taken finer; without it the three processing
// times lead back from the end, if the request had all of them.
func (p *Parser) albTimes(e *Entry) {
	if !e.HasTime {
		return
	}
	e.Uncertainty = max(e.Uncertainty, 1e6)
	if !e.StampIsEnd {
		if e.Duration != Unknown {
			e.End = max(e.Start, e.End-e.End%1e6)
			e.Duration = e.End - e.Start
		}
		return
	}
	if e.Duration != Unknown {
		return // configured
	}
	sum := int64(0)
	for _, f := range [...]field{fWait, fOriginTime, fAnswerTime} {
		d, ok := span(p.raw.val(f), unitSeconds)
		if !ok {
			return
		}
		sum += d
	}
	e.Duration, e.Start = sum, e.End-sum
}

// albTries lists the targets: mostly one, and the lists at the end of the line
// where they hold more.
func (p *Parser) albTries(e *Entry, status int) {
	r := &p.raw
	addr := r.val(fOriginAddr)
	p.tries = p.noTries()
	addrs, statuses := r.val(fOriginList), r.val(fOriginStatusList)
	if bytes.IndexByte(addrs, ' ') > 0 {
		for len(addrs) > 0 && len(p.tries) < maxTries {
			t := Try{Time: Unknown, Sent: true}
			var s []byte
			t.Addr, addrs = cutBlank(addrs)
			s, statuses = cutBlank(statuses)
			if n := count(s); n >= 100 && n <= 999 {
				t.Status = int(n)
			}
			p.tries = append(p.tries, t)
		}
		e.Tries = p.tries
		e.Notes |= NoteManyTries
		return
	}
	if len(addr) != 0 {
		t := Try{Addr: addr, Status: status, Time: Unknown, Sent: true}
		if d, ok := span(r.val(fOriginTime), unitSeconds); ok {
			t.Time = d
		}
		p.tries = append(p.tries, t)
	}
	if r.shows(fOriginAddr) {
		e.Tries = p.tries
	}
}
