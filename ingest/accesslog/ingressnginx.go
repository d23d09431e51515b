package accesslog

import "bytes"

// ingress-nginx's default line begins like nginx-combined and goes on with
//
//	request_length request_time [proxy_upstream_name] [alternative] addr length time status req_id
//
// The four lists of tries are not quoted although they hold blanks, so a column
// is a whole list. $req_id is the caller's x-request-id where it sent one: it is
// shown, and tells nothing about which arrival this is. What an operator
// appended is read as in nginx-combined.
func (p *Parser) tokenizeIngressNginx(line []byte) error {
	rest, err := p.nginxHead(line)
	if err != nil {
		return err
	}
	if rest, err = p.nginxResult(rest); err != nil {
		return err
	}
	if len(rest) == 0 {
		return RejectCut
	}
	agent, n, rest, err := p.nginxHeaders(rest)
	if err != nil {
		return err
	}
	if n < 0 || !isIngressTail(rest) {
		// No column after the user agent is quoted.
		p.quoteInHeader()
		if n = bytes.LastIndexByte(agent, '"'); n >= 0 {
			rest = skipBlanks(agent[n+1:])
		}
	}
	if n >= 0 {
		p.putColumn(nginxUserAgent, p.unescaped(agent[:n]))
	}
	return p.ingressTail(rest)
}

// isIngressTail says that s can be what follows the user agent.
func isIngressTail(s []byte) bool { return len(s) == 0 || isDigit(s[0]) || s[0] == '-' }

func (p *Parser) ingressTail(s []byte) error {
	length, s := cutBlank(s)
	took, s := cutBlank(s)
	if len(took) == 0 || len(s) == 0 {
		return RejectCut
	}
	if !allDigits(length) && !isDash(length) {
		return RejectSyntax
	}
	if _, ok := tryTime(took); !ok && !isDash(took) {
		return RejectSyntax
	}
	p.putColumn(nginxRequestLength, length)
	p.putColumn(nginxRequestTime, took)

	for i := range 2 {
		if len(s) == 0 {
			return RejectCut
		}
		n := 0
		if s[0] == '[' {
			n = closingBracket(s)
		}
		if n == 0 {
			if i == 1 {
				break // releases before the alternative
			}
			if s[0] == '[' && bytes.IndexByte(s, ']') < 0 {
				return RejectCut
			}
			return RejectSyntax
		}
		p.putColumn(nginxProxyUpstreamName+i, s[1:n])
		s = skipBlanks(s[n+1:])
	}
	for i := nginxUpstreamAddr; i <= nginxUpstreamStatus; i++ {
		if len(s) == 0 {
			return RejectCut
		}
		n := listEnd(s)
		p.runs = p.runs || s[0] == '[' // a stamp
		p.putColumn(i, s[:n])
		s = skipBlanks(s[n:])
	}
	id, s := cutBlank(s)
	if len(id) == 0 {
		return RejectCut
	}
	p.runs = p.runs || id[0] == '['
	p.putColumn(nginxReqID, id)
	_, err := p.appended(s, true)
	return err
}
