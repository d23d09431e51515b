package accesslog

import "bytes"

// metadata reads what the request carried about its attempts and its deadline,
// and what the answer asked the caller to wait.
func (p *Parser) metadata(e *Entry) {
	r := &p.raw
	if r.has(fGoogClient) && !r.has(fGCCLInvocation) {
		if id := part(r.val(fGoogClient), ' ', '/', "gccl-invocation-id"); len(id) != 0 {
			p.put(fGCCLInvocation, id)
		}
	}
	const numbers = 1<<fAttempt | 1<<fEnvoyAttempt | 1<<fAmzRequest | 1<<fGoogClient | 1<<fGRPCPrevious |
		1<<fRetryAttempt | 1<<fStainlessRetry | 1<<fMSClientRequestID
	if r.have[0]&numbers != 0 {
		p.attempt(e)
	}
	if p.cfg.AttemptScope != ScopeNone && e.Attempt != 0 {
		e.AttemptScope = p.cfg.AttemptScope
	}
	if r.has(fAttemptsLeft) {
		if n := count(r.val(fAttemptsLeft)); n != Unknown && n < 1<<20 {
			e.AttemptsLeft = int(n)
		}
	}
	const deadlines = 1<<fDeadline | 1<<fGRPCTimeout | 1<<fEnvoyTimeout | 1<<fFinagleDeadline | 1<<fAmzRequest
	if e.HasTime && r.have[0]&deadlines != 0 {
		e.Deadline = p.deadline(e)
	}
	if r.shows(fRetryAfter) {
		e.RetryAfterShown = true
		e.RetryAfter = p.retryAfter(e)
	}
}

// attempt finds the attempt number and who counts it. A canonical attempt is of
// the adjacent hop unless attempt_scope or the configuration says otherwise;
// numbers that count retries are one less than the attempt.
func (p *Parser) attempt(e *Entry) {
	r := &p.raw
	if r.has(fAttempt) {
		s := ScopeHop
		switch string(r.val(fAttemptScope)) {
		case "origin", "originator":
			s = ScopeOrigin
		case "none", "unknown":
			s = ScopeNone
		}
		if e.attempt(r.val(fAttempt), 0, s) {
			return
		}
	}
	switch {
	case e.attempt(r.val(fEnvoyAttempt), 0, ScopeHop):
	case e.attempt(part(r.val(fAmzRequest), ';', '=', "attempt"), 0, ScopeOrigin):
	case e.attempt(part(r.val(fGoogClient), ' ', '/', "gccl-attempt-count"), 0, ScopeOrigin):
	case e.attempt(r.val(fGRPCPrevious), 1, ScopeOrigin):
	case e.attempt(r.val(fRetryAttempt), 1, ScopeOrigin):
	case e.attempt(r.val(fStainlessRetry), 1, ScopeOrigin):
	case e.attempt(compositeRetry(r.val(fMSClientRequestID)), 1, ScopeOrigin):
	}
}

// attempt takes a number, if it is one, of a scope that counts from 1-add.
func (e *Entry) attempt(b []byte, add int64, s Scope) bool {
	n := count(b)
	if n == Unknown || n+add < 1 || n > 1<<20 {
		return false
	}
	e.Attempt, e.AttemptScope = int(n+add), s
	return true
}

// compositeRetry finds the retry number that some storage clients put at the end
// of their request id, as in job:id:fs::stream:op:1_RT.
func compositeRetry(id []byte) []byte {
	if bytes.Count(id, []byte(":")) < 5 {
		return nil
	}
	id = id[bytes.LastIndexByte(id, ':')+1:]
	if i := bytes.IndexByte(id, '_'); i >= 0 {
		id = id[:i]
	}
	return id
}

// part finds the value of name in a list like "attempt=2; max=3", whose entries
// end with sep and join name and value with eq.
func part(list []byte, sep, eq byte, name string) []byte {
	for len(list) > 0 {
		entry := list
		if i := bytes.IndexByte(list, sep); i >= 0 {
			entry, list = list[:i], list[i+1:]
		} else {
			list = nil
		}
		entry = bytes.TrimSpace(entry)
		if len(entry) > len(name) && string(entry[:len(name)]) == name && entry[len(name)] == eq {
			return entry[len(name)+1:]
		}
	}
	return nil
}

// deadline is the caller's deadline in Unix nanoseconds, 0 if there is none. The
// canonical field comes first, then gRPC's, Envoy's, Finagle's and the AWS
// SDK's.
//
// In the canonical field a date is absolute and so is a number from 1e8 on,
// which is epoch time in the unit that its size shows. A smaller number is
// relative to the start, in the unit that the field's name ends with, else in
// milliseconds; so is a duration (1500ms, 2s, 1m30s) and gRPC's form, of up to
// eight digits and one of H M S m u n: "20m" is twenty milliseconds. A span of
// nothing is what loggers and proxies write for no deadline; only in gRPC's form does it say
// that no time was left.
func (p *Parser) deadline(e *Entry) int64 {
	r := &p.raw
	if v := r.val(fDeadline); len(v) != 0 {
		if ns, _, ok := p.stamp(v); ok {
			return ns
		}
		if d, ok := span(v, r.cells[fDeadline].by.unit); ok {
			if _, grpc := grpcTimeout(v); grpc || d > 0 {
				return after0(e.Start, d)
			}
		}
	}
	if v := r.val(fGRPCTimeout); len(v) != 0 {
		if d, ok := grpcTimeout(v); ok {
			return after0(e.Start, d)
		}
	}
	if v := r.val(fEnvoyTimeout); len(v) != 0 {
		if d, ok := span(v, unitMillis); ok && d > 0 {
			return after0(e.Start, d)
		}
	}
	if v := r.val(fFinagleDeadline); len(v) != 0 {
		// Two numbers, the stamp and the deadline.
		f := bytes.TrimSpace(v)
		if i := bytes.LastIndexAny(f, " ,;"); i >= 0 {
			f = f[i+1:]
		}
		if ns, _, ok := epoch(f); ok {
			return ns
		}
	}
	if v := part(r.val(fAmzRequest), ';', '=', "ttl"); len(v) != 0 {
		if ns, _, ok := p.stamp(v); ok {
			return ns
		}
	}
	return 0
}

// after0 is start + d, kept within what a Deadline can hold.
func after0(start, d int64) int64 {
	if d > 1<<62-start {
		return max(1<<62, start)
	}
	return start + d
}

// retryAfter reads the seconds to wait or the date to wait for.
func (p *Parser) retryAfter(e *Entry) int64 {
	v := bytes.TrimSpace(p.raw.val(fRetryAfter))
	if at, ok := httpDate(v); ok {
		if !e.HasTime {
			return Unknown
		}
		return max(at-e.End, 0)
	}
	if i := bytes.IndexByte(v, ','); i > 0 {
		v = v[:i] // the same header twice
	}
	if len(v) == 0 {
		return Unknown
	}
	u := unitSeconds
	if c := &p.raw.cells[fRetryAfter]; c.by.unit != unitDefault {
		u = c.by.unit
	}
	if d, ok := span(v, u); ok {
		return d
	}
	return Unknown
}
