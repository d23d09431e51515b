package accesslog

import (
	"math"
	"strconv"
)

// alsEntryState gathers what an entry of envoy-als says. A message may come in several
// parts, which say together what it says, and of a value that comes twice the later
// counts: so a part that has no status is not taken for an answer without one.
type alsEntryState struct {
	have     uint64 // the columns that were taken
	common   bool   // these messages are there
	response bool

	duration, untilSent int64
	kind                uint64
	intermediate        bool
	flags               uint64
	code, sent          uint64
	path, original      []byte
	grpc                []byte
	trailed             bool // gRPC's status is the trailers'
}

// alsPut takes text, which is absent where it is empty.
func (p *Parser) alsPut(column int, v []byte) {
	a := &p.als.entry
	if a.have&(1<<column) != 0 {
		p.alsTakeBack(column)
	}
	if len(v) != 0 {
		a.have |= 1 << column
		p.putColumn(column, v)
	}
}

// alsTakeBack takes back what a column said before.
func (p *Parser) alsTakeBack(column int) {
	r := &p.raw
	for _, t := range p.columns[column].targets {
		if r.isNull(t.f) || r.has(t.f) && r.cells[t.f].by == t {
			r.have[t.f>>6] &^= 1 << (t.f & 63)
			r.null[t.f>>6] &^= 1 << (t.f & 63)
		}
	}
}

// alsEntry reads an HTTPAccessLogEntry (envoy.data.accesslog.v3).
func (p *Parser) alsEntry(b []byte) (err error) {
	a := &p.als.entry
	*a = alsEntryState{duration: Unknown, untilSent: Unknown}
	p.alsPut(alsLogName, p.als.logName)
	p.alsPut(alsNodeID, p.als.nodeID)
	p.alsPut(alsNodeCluster, p.als.nodeCluster)
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		switch {
		case f.wire != wireBytes:
		case f.number == 1:
			err = p.alsCommon(f.bytes)
		case f.number == 3:
			err = p.alsRequest(f.bytes)
		case f.number == 4:
			err = p.alsResponse(f.bytes)
		}
		if err != nil {
			return err
		}
	}
	p.alsGathered()
	return nil
}

// alsGathered takes for the record what its entry says.
func (p *Parser) alsGathered() {
	a := &p.als.entry
	if a.duration == Unknown {
		a.duration = a.untilSent
	}
	if a.duration != Unknown {
		p.alsPut(alsDuration, p.alsNumber(a.duration))
	}
	if len(a.original) != 0 {
		a.path = a.original // what the caller asked for, where a route has changed it
	}
	p.alsPut(alsPath, a.path)
	if a.common {
		p.alsPut(alsFlags, p.alsFlagList(a.flags))
	}
	switch {
	case a.kind != 0 && a.kind < uint64(len(alsKinds)):
		p.alsPut(alsType, p.alsWord(alsKinds[a.kind]))
	case a.kind != 0:
		p.alsPut(alsType, p.numberOf(a.kind)) // of a later release: nothing says that it ends a request
	case a.intermediate:
		p.alsPut(alsType, p.alsWord(alsKinds[5]))
	}
	if a.response {
		p.alsPut(alsCode, p.alsNumber(int64(min(a.code, math.MaxInt64))))
		p.alsPut(alsBytesSent, p.alsNumber(int64(min(a.sent, math.MaxInt64))))
	}
	if a.grpc != nil {
		p.putColumn(alsGRPCStatus, a.grpc)
	}
}

func (p *Parser) alsNumber(n int64) []byte {
	if n >= 0 {
		return p.numberOf(uint64(n))
	}
	return p.keep(strconv.AppendInt(p.grow(20), n, 10))
}

func (p *Parser) alsWord(word string) []byte {
	return p.keep(append(p.grow(len(word)), word...))
}

// alsCommon reads AccessLogCommon.
func (p *Parser) alsCommon(b []byte) error {
	a := &p.als.entry
	a.common = true
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		var err error
		switch {
		case f.wire == wireVarint && f.number == 24:
			p.alsPut(alsAttempts, p.alsNumber(int64(min(f.value, math.MaxInt64))))
		case f.wire == wireVarint && f.number == 27:
			a.intermediate = f.value != 0
		case f.wire == wireVarint && f.number == 33:
			a.kind = f.value
		case f.wire != wireBytes:
		case f.number == 2:
			err = p.alsAddress(f.bytes, alsRemote, false)
		case f.number == 4:
			err = p.alsTLS(f.bytes)
		case f.number == 5:
			var ns int64
			if ns, err = protoNanos(f.bytes); err == nil {
				p.alsPut(alsStartTime, p.alsNumber(ns))
			}
		case f.number == 12:
			a.untilSent, err = protoNanos(f.bytes)
		case f.number == 13:
			err = p.alsAddress(f.bytes, alsUpstreamHost, true)
		case f.number == 14:
			err = p.alsAddress(f.bytes, alsUpstreamLocal, true)
		case f.number == 15:
			p.alsPut(alsUpstreamCluster, f.bytes)
		case f.number == 16:
			a.flags, err = alsFlagsOf(a.flags, f.bytes)
		case f.number == 19:
			p.alsPut(alsRouteName, f.bytes)
		case f.number == 20:
			err = p.alsAddress(f.bytes, alsDirect, false)
		case f.number == 22:
			err = p.alsMap(f.bytes, alsTags)
		case f.number == 23:
			a.duration, err = protoNanos(f.bytes)
		case f.number == 25:
			p.alsPut(alsTermination, f.bytes)
		case f.number == 26:
			p.alsPut(alsStream, f.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alsKinds are the values of AccessLogType.
var alsKinds = [...]string{
	1: "TcpUpstreamConnected", 2: "TcpPeriodic", 3: "TcpConnectionEnd", 4: "DownstreamStart", 5: "DownstreamPeriodic", 6: "DownstreamEnd",
	7: "UpstreamPoolReady", 8: "UpstreamPeriodic", 9: "UpstreamEnd", 10: "DownstreamTunnelSuccessfullyEstablished",
	11: "UdpTunnelUpstreamConnected", 12: "UdpPeriodic", 13: "UdpSessionEnd", 14: "TcpConnectionStart",
}

// alsFlagNames are the fields of ResponseFlags, as %RESPONSE_FLAGS% names them.
var alsFlagNames = [...]string{
	0: "unknown", 1: "LH", 2: "UH", 3: "UT", 4: "LR", 5: "UR", 6: "UF", 7: "UC", 8: "UO", 9: "NR", 10: "DI", 11: "FI", 12: "RL", 13: "UAEX", 14: "RLSE",
	15: "DC", 16: "URX", 17: "SI", 18: "IH", 19: "DPE", 20: "UMSDR", 21: "RFCF", 22: "NFCF", 23: "DT", 24: "UPE", 25: "NC", 26: "OM", 27: "DF", 28: "DR",
}

// alsFlagsOf adds the flags that a message of them sets, and takes away those that it says
// are not. One that is not known here is a flag all the same, of number 0.
func alsFlagsOf(set uint64, b []byte) (uint64, error) {
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return 0, RejectCut
		}
		n := f.number
		if n >= len(alsFlagNames) {
			n = 0
		}
		switch {
		case f.wire == wireVarint && f.value != 0 && n != alsUnauthorized, f.wire == wireBytes && n == alsUnauthorized:
			set |= 1 << n
		case f.wire == wireVarint && n != 0:
			set &^= 1 << n
		}
	}
	return set, nil
}

// alsUnauthorized is the flag that is a message, with a reason in it.
const alsUnauthorized = 13

// alsFlagList is the list of the flags that are set.
func (p *Parser) alsFlagList(set uint64) []byte {
	if set == 0 {
		return dash
	}
	list := p.grow(6 * len(alsFlagNames))
	for n, name := range alsFlagNames {
		if set&(1<<n) == 0 {
			continue
		}
		if len(list) != 0 {
			list = append(list, ',')
		}
		list = append(list, name...)
	}
	return p.keep(list)
}

// alsTLS takes the caller's name from its certificate.
func (p *Parser) alsTLS(b []byte) error {
	var f protoField
	named := false
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		if f.number != 5 || f.wire != wireBytes {
			continue
		}
		peer := f.bytes
		for i, next := 0, 0; i < len(peer); i = next {
			if next = f.read(peer, i); next <= 0 {
				return RejectCut
			}
			if f.number != 1 || f.wire != wireBytes {
				continue
			}
			name := f.bytes
			if next := f.read(name, 0); len(name) > 0 && next <= 0 {
				return RejectCut
			} else if len(name) > 0 && f.number == 1 && f.wire == wireBytes && !named {
				p.alsPut(alsSAN, f.bytes)
				named = true
			}
		}
	}
	return nil
}

// alsAddress reads an address of the network, or the path of a socket.
func (p *Parser) alsAddress(b []byte, column int, withPort bool) error {
	host, port, is := alsSocket(b)
	if !is {
		var err error
		if host, port, err = alsAnyAddress(b); err != nil {
			return err
		}
	}
	if withPort && port != 0 && len(host) != 0 {
		digits := p.numberOf(port)
		v := append(append(p.grow(len(host)+21), host...), ':')
		host = p.keep(append(v, digits...))
	}
	p.alsPut(column, host)
	return nil
}

// alsSocket reads what nearly all addresses are: {1: {2: host, 3: port}} and no more, with
// lengths of one byte and a port of up to three.
func alsSocket(b []byte) (host []byte, port uint64, is bool) {
	socket, is := protoOnly(b, 1)
	if !is || len(socket) < 2 || socket[0] != 2<<3|wireBytes || socket[1] >= 0x80 || 2+int(socket[1]) > len(socket) {
		return nil, 0, false
	}
	end := 2 + int(socket[1])
	host = socket[2:end:end]
	switch rest := socket[end:]; {
	case len(rest) == 0:
		return host, 0, true
	case len(rest) == 2 && rest[0] == 3<<3 && rest[1] < 0x80:
		return host, uint64(rest[1]), true
	case len(rest) == 3 && rest[0] == 3<<3 && rest[1] >= 0x80 && rest[2] < 0x80:
		return host, uint64(rest[1]&0x7f) | uint64(rest[2])<<7, true
	case len(rest) == 4 && rest[0] == 3<<3 && rest[1] >= 0x80 && rest[2] >= 0x80 && rest[3] < 0x80:
		return host, uint64(rest[1]&0x7f) | uint64(rest[2]&0x7f)<<7 | uint64(rest[3])<<14, true
	}
	return nil, 0, false
}

func alsAnyAddress(b []byte) (host []byte, port uint64, err error) {
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return nil, 0, RejectCut
		}
		if f.wire != wireBytes || f.number > 2 {
			continue
		}
		path, inner := f.number == 2, f.bytes
		for i, next := 0, 0; i < len(inner); i = next {
			if next = f.read(inner, i); next <= 0 {
				return nil, 0, RejectCut
			}
			switch {
			case f.wire == wireBytes && (f.number == 1 && path || f.number == 2 && !path):
				host = f.bytes
			case f.wire == wireVarint && f.number == 3 && !path:
				port = f.value
			}
		}
	}
	return host, port, nil
}

// protoNanos reads a Timestamp or a Duration.
func protoNanos(b []byte) (ns int64, err error) {
	var f protoField
	var seconds, nanos int64
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return 0, RejectCut
		}
		switch {
		case f.wire != wireVarint:
		case f.number == 1:
			seconds = int64(f.value)
		case f.number == 2:
			nanos = int64(f.value)
		}
	}
	const most = math.MaxInt64/1_000_000_000 - 1
	if seconds < -most || seconds > most || nanos <= -1e9 || nanos >= 1e9 {
		return 0, RejectBadTime
	}
	return seconds*1e9 + nanos, nil
}

// alsMethods are the values of RequestMethod.
var alsMethods = [...]string{1: "GET", 2: "HEAD", 3: "POST", 4: "PUT", 5: "DELETE", 6: "CONNECT", 7: "OPTIONS", 8: "TRACE", 9: "PATCH"}

// alsRequest reads HTTPRequestProperties.
func (p *Parser) alsRequest(b []byte) error {
	a := &p.als.entry
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		switch {
		case f.wire == wireVarint && f.number == 1:
			var method []byte
			if f.value < uint64(len(alsMethods)) {
				method = p.alsWord(alsMethods[f.value])
			}
			p.alsPut(alsMethod, method)
		case f.wire != wireBytes:
		case f.number == 3:
			p.alsPut(alsAuthority, f.bytes)
		case f.number == 5:
			a.path = f.bytes
		case f.number == 6:
			p.alsPut(alsUserAgent, f.bytes)
		case f.number == 9:
			p.alsPut(alsRequestID, f.bytes)
		case f.number == 10:
			a.original = f.bytes
		case f.number == 13:
			if err := p.alsMap(f.bytes, alsRequestHeaders); err != nil {
				return err
			}
		}
	}
	return nil
}

// alsResponse reads HTTPResponseProperties.
func (p *Parser) alsResponse(b []byte) (err error) {
	a := &p.als.entry
	a.response = true
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		switch {
		case f.wire == wireVarint && f.number == 3:
			a.sent = f.value
		case f.wire != wireBytes:
		case f.number == 1:
			a.code, err = alsCodeOf(a.code, f.bytes)
		case f.number == 4:
			err = p.alsMap(f.bytes, alsResponseHeaders)
		case f.number == 5:
			err = p.alsMap(f.bytes, alsTrailers)
		case f.number == 6:
			p.alsPut(alsDetails, f.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alsCodeOf reads the UInt32Value that holds a status, where code is what was read before.
// One that cannot be read is not one that is not there: that would be a caller who left.
func alsCodeOf(code uint64, b []byte) (uint64, error) {
	var f protoField
	for i, next := 0, 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return 0, RejectCut
		}
		switch {
		case f.number != 1:
		case f.wire != wireVarint:
			return 0, RejectSyntax
		default:
			code = f.value
		}
	}
	return code, nil
}

// alsMap reads one name and value of headers or tags. What gRPC says of a call stands in
// its trailers, or where there is no body in its headers.
func (p *Parser) alsMap(b []byte, of int) error {
	var f protoField
	var name, value []byte
	i := 0
	if len(b) > 2 && b[0] == 1<<3|wireBytes && b[1] < 0x80 && 2+int(b[1]) <= len(b) { // as nearly all are
		name, i = b[2:2+b[1]:2+b[1]], 2+int(b[1])
		if v, is := protoOnly(b[i:], 2); is {
			value, i = v, len(b)
		}
	}
	for next := 0; i < len(b); i = next {
		if next = f.read(b, i); next <= 0 {
			return RejectCut
		}
		switch {
		case f.wire != wireBytes:
		case f.number == 1:
			name = f.bytes
		case f.number == 2:
			value = f.bytes
		}
	}
	if value == nil {
		value = []byte{} // there, and empty
	}
	if a := &p.als.entry; (of == alsTrailers || of == alsResponseHeaders && !a.trailed) && string(name) == "grpc-status" {
		a.grpc = value
		a.trailed = of == alsTrailers
	}
	if n := p.columns[of].child; n != nil {
		if m := n.lookup(name); len(m.targets) != 0 {
			p.putMember(m, value)
		}
	}
	return nil
}
