package accesslog

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// An alias is a usual name of a field in logs that nobody configured. Names are
// compared without regard to case, with "-" as "_"; dots reach into objects or
// stand in a flat name. Of the names of one field the earlier wins.
type alias struct {
	f     field
	unit  unit
	names string // separated by blanks
}

// anyNames are understood in every format whose fields have names: the canonical
// ones first.
var anyNames = []alias{
	{fTime, 0, "time"}, {fTimeIs, 0, "time_is"},
	{fDependency, 0, "dependency"}, {fRoute, 0, "route"}, {fMethod, 0, "method"},
	{fPath, 0, "path"}, {fAuthority, 0, "authority"}, {fStatus, 0, "status"},
	{fGRPCStatus, 0, "grpc_status"},
	{fDuration, unitMillis, "duration_ms"}, {fDuration, unitSeconds, "duration_s"},
	{fDuration, unitMicros, "duration_us"}, {fDuration, unitNanos, "duration_ns"},
	{fDuration, unitDefault, "duration"},
	{fBytesSent, 0, "bytes_sent"}, {fPeer, 0, "peer"}, {fUserAgent, 0, "user_agent"},
	{fAttempt, 0, "attempt"}, {fAttemptScope, 0, "attempt_scope"},
	{fAttemptsLeft, 0, "attempts_left"},
	{fDeadline, unitMillis, "deadline deadline_ms"}, {fDeadline, unitSeconds, "deadline_s"},
	{fRetryAfter, unitSeconds, "retry_after retry_after_s"},
	{fRetryAfter, unitMillis, "retry_after_ms"},
	{fClientGone, 0, "client_gone"}, {fDeparture, 0, "departure"},
	{fArrivalID, 0, "arrival_id"},

	{fStart, 0, "start_time grpc.start_time time_start"},
	{fEnd, 0, "end_time time_end"},
	{fRequest, 0, "request_line request"},
	{fMethod, 0, "request_method http_method http.request.method http.method request.method req.method"},
	{fPath, 0, "request_uri uri url.path http.target request.uri request.path req.url url"},
	{fAuthority, 0, "http_host host http.host server.address request.host"},
	{fStatus, 0, "status_code http.response.status_code http.status_code response.status res.statusCode st"},
	{fGRPCStatus, 0, "grpc_status_number grpc.code grpc_code rpc.grpc.status_code rpc.response.status_code"},
	{fDuration, unitMillis, "dur_ms elapsed_ms latency_ms took_ms grpc.time_ms responseTime"},
	{fDuration, unitSeconds, "request_time duration_seconds latency_s rt"},
	{fBytesSent, 0, "bytes bs response_size http.response.body.size"},
	{fPeer, 0, "remote_addr client_ip remote_ip peer.address client.address network.peer.address"},
	{fUserAgent, 0, "http_user_agent user_agent.original useragent http.user_agent"},
	{fEnvoyTimeout, unitMillis, "connect_timeout_ms http_connect_timeout_ms"},
	{fDeadline, unitMillis, "grpc.request.deadline"},
	{fGRPCService, 0, "grpc.service"}, {fGRPCMethod, 0, "grpc.method"},
}

// headerNames are request headers; logs spell them in many ways, for all of
// which headerSpellings stands.
var headerNames = []alias{
	{fQuestionKey, 0, "question_key"},
	{fTraceparent, 0, "traceparent"},
	{fIdempotencyKey, 0, "idempotency_key"},
	{fRequestID, 0, "x_request_id"},
	{fAmzInvocation, 0, "amz_sdk_invocation_id"},
	{fGCCLInvocation, 0, "gccl_invocation_id"},
	{fMSClientRequestID, 0, "x_ms_client_request_id"},
	{fUserAgent, 0, "user_agent"},
	{fEnvoyAttempt, 0, "x_envoy_attempt_count"},
	{fAmzRequest, 0, "amz_sdk_request"},
	{fGoogClient, 0, "x_goog_api_client"},
	{fGRPCPrevious, 0, "grpc_previous_rpc_attempts"},
	{fRetryAttempt, 0, "x_retry_attempt"},
	{fStainlessRetry, 0, "x_stainless_retry_count"},
	{fGRPCTimeout, 0, "grpc_timeout"},
	{fEnvoyTimeout, unitMillis, "x_envoy_expected_rq_timeout_ms"},
	{fFinagleDeadline, 0, "finagle_ctx_com.twitter.finagle.deadline l5d_ctx_deadline"},
}

// responseHeaderNames are headers of the answer.
var responseHeaderNames = []alias{
	{fRetryAfter, unitSeconds, "retry_after"},
}

// jsonNames are what the services' own loggers write.
var jsonNames = []alias{
	{fTime, 0, "timestamp t ts @timestamp"},
	{fEnd, 0, "grpc.end_time"},
	{fUserAgent, 0, "ua"},
	{fQuestionKey, 0, "key"},
	{fMintedID, 0, "request_id"},
	{fContext, 0, "ctx"},
	{fWriteError, 0, "write_err write_error"},
	{fBytesSent, 0, "size"},
	{fBodyBytes, 0, "body_bytes_sent"},
}

// nginxNames are nginx's variables and the usual short names for them; of the
// stamps the finest wins.
var nginxNames = []alias{
	{fTime, 0, "msec time_iso8601 iso8601 time_local time timestamp t ts @timestamp"},
	{fArrivalID, 0, "request_id"},
	{fMintedID, 0, "req_id"},
	{fUserAgent, 0, "ua"},
	{fQuestionKey, 0, "key"},
}

// nginxShared are the variables that logs of the named kind carry, whoever
// wrote them.
var nginxShared = []alias{
	{fDuration, unitSeconds, "request_time rt"},
	{fBodyBytes, 0, "body_bytes_sent bbs"},
	{fCompletion, 0, "request_completion completion comp"},
	{fUpstreamAddr, 0, "upstream_addr upstream"},
	{fUpstreamStatus, 0, "upstream_status us"},
	{fUpstreamTime, 0, "upstream_response_time urt"},
	{fRequest, 0, "req"},
	{fIdempotencyKey, 0, "idem"},
}

// envoyNames are Istio's member names and the operators' own names.
var envoyNames = []alias{
	{fStart, 0, "start_time timestamp"},
	{fTime, 0, "t ts @timestamp"},
	{fStatus, 0, "response_code"},
	{fFlags, 0, "response_flags response_flags_long flags"},
	{fDetails, 0, "response_code_details"},
	{fTermination, 0, "connection_termination_details"},
	{fRequestID, 0, "request_id"},
	{fPath, 0, "x_envoy_original_path"},
	{fPeer, 0, "downstream_peer_uri_san downstream_remote_address downstream_direct_remote_address"},
	{fUpstreamHost, 0, "upstream_host"},
	{fUpstreamLocal, 0, "upstream_local_address"},
	{fUpstreamCluster, 0, "upstream_cluster upstream_cluster_raw"},
	{fTryCount, 0, "upstream_request_attempt_count"},
	{fRecordKind, 0, "access_log_type log_type"},
	{fStreamID, 0, "stream_id"},
	{fQuestionKey, 0, "key"},
}

// wrapNames are the members in which shippers and containers carry a line.
var wrapNames = []alias{
	{fWrapLog, 0, "log"}, {fMessage, 0, "message"}, {fWrapMsg, 0, "msg"}, {fWrapStream, 0, "stream"},
}

// headerSpellings lists how logs name the request header with the normal name h.
func headerSpellings(h string) []string {
	return []string{h, "http_" + h, "req_" + h, "request_header_" + h, "header_" + h,
		"headers." + h, "request.headers." + h, "req.headers." + h, "request_headers." + h,
		"http.request.header." + h, "http.request.headers." + h}
}

// responseSpellings is headerSpellings for a header of the answer.
func responseSpellings(h string) []string {
	return []string{h, "sent_http_" + h, "upstream_http_" + h, "resp_" + h, "response_header_" + h,
		"resp_headers." + h, "response.headers." + h, "res.headers." + h, "response_headers." + h,
		"http.response.header." + h, "http.response.headers." + h}
}

// normal is the form in which usual names are compared.
func normal(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// A node is one level of names: the line's own, or those inside an object that
// somebody wants something of.
type node struct {
	exact   map[string]*member // configured names, as they are
	usual   map[string]*member // normal form
	seen    map[string]*member // every name that came by, bounded
	first   member             // its next are the likely first members
	ignored member             // stands for names past the bound of seen
	recent  [64]*member        // of seen, by the look of their names: the map takes five times as long
	buf     []byte
}

// A member is one name at one level: who wants its value, and which names
// followed it in the records before. Loggers write their members in one order,
// so the guess spares the look-up.
type member struct {
	quoted  string // `"name":`
	size    int    // of quoted
	next    [2]*member
	one     *target // the target, where there is one and no more
	targets []*target
	child   *node

	// What run compares with quoted: need bytes are read, of which the words are
	// the first and the last eight, past 16 bytes also the second and the last
	// but one, and past 32 the third from either end. mask are the bits of the
	// outer ones that count.
	need  int
	words [6]uint64
	mask  uint64
	tail  int // where the last eight bytes begin
}

// longName is the longest `"name":` that is compared by words.
const longName = 48

// learn prepares m to be recognised.
func (m *member) learn(name []byte) {
	if bytes.IndexByte(name, '\\') >= 0 || bytes.IndexByte(name, '"') >= 0 {
		return
	}
	m.quoted = `"` + string(name) + `":`
	m.size = len(m.quoted)
	m.tail, m.mask = max(m.size-8, 0), ^uint64(0)
	if m.size < 8 {
		m.mask = 1<<(8*m.size) - 1
	}
	if m.need = max(m.size+1, 8); m.size > longName {
		m.need = 1 << 30 // not by run
	}
	q := append([]byte(m.quoted), make([]byte, 8)...)
	at := [6]int{0, m.tail}
	if m.size > 16 {
		at[2], at[3] = 8, m.tail-8
	}
	if m.size > 32 {
		at[4], at[5] = 16, m.tail-16
	}
	for i := range at {
		m.words[i] = binary.LittleEndian.Uint64(q[at[i]:])
	}
}

// at says that b[i:] begins with the member's name and colon.
func (m *member) at(b []byte, i int) bool {
	return len(b)-i > m.size && string(b[i:i+m.size]) == m.quoted
}

// maxSeen bounds the names that a level remembers; maxName their length.
const (
	maxSeen = 512
	maxName = 256
)

func newNode() *node {
	return &node{exact: map[string]*member{}, usual: map[string]*member{}, seen: map[string]*member{}}
}

// add binds a name, dotted or not, to a target: in the flat form and, for every
// split at a dot, inside objects.
func (n *node) add(name string, t *target, exact bool) {
	table := n.usual
	if exact {
		table = n.exact
	} else {
		name = normal(name)
	}
	m := table[name]
	if m == nil {
		m = &member{}
		table[name] = m
	}
	m.bind(t)
	for i := 1; i < len(name)-1; i++ {
		if name[i] != '.' {
			continue
		}
		o := table[name[:i]]
		if o == nil {
			o = &member{}
			table[name[:i]] = o
		}
		if o.child == nil {
			o.child = newNode()
		}
		o.child.add(name[i+1:], t, exact)
	}
}

// bind keeps one target per field, the best.
func (m *member) bind(t *target) {
	for i, o := range m.targets {
		if o.f == t.f {
			if t.rank < o.rank {
				m.targets[i] = t
				if m.one != nil {
					m.one = t
				}
			}
			return
		}
	}
	m.targets = append(m.targets, t)
	m.one = nil
	if len(m.targets) == 1 {
		m.one = t
	}
}

// lookup finds the member of a name as logged, and learns it.
func (n *node) lookup(name []byte) *member {
	if len(name) == 0 {
		return n.find(name)
	}
	recent := &n.recent[(len(name)*7+int(name[0])*3+int(name[len(name)-1])+int(name[len(name)/2])*5)%len(n.recent)]
	if m := *recent; m != nil && len(name) == m.size-3 && string(name) == m.quoted[1:m.size-2] {
		return m
	}
	m := n.find(name)
	if m.quoted != "" {
		*recent = m
	}
	return m
}

// find is lookup for a name that did not come by just now.
func (n *node) find(name []byte) *member {
	if m := n.seen[string(name)]; m != nil {
		return m
	}
	if len(name) > maxName {
		return &n.ignored
	}
	x := n.exact[string(name)]
	n.buf = append(n.buf[:0], name...)
	for i, c := range n.buf {
		switch {
		case c >= 'A' && c <= 'Z':
			n.buf[i] = c + 'a' - 'A'
		case c == '-':
			n.buf[i] = '_'
		}
	}
	u := n.usual[string(n.buf)]
	if len(n.seen) >= maxSeen && x == nil && u == nil {
		return &n.ignored
	}
	m := &member{}
	for _, o := range []*member{x, u} {
		if o == nil {
			continue
		}
		for _, t := range o.targets {
			m.bind(t)
		}
		m.child = mergeNodes(m.child, o.child)
	}
	if len(n.seen) >= maxSeen {
		return m
	}
	m.learn(name)
	n.seen[string(name)] = m
	return m
}

// mergeNodes joins what a configured and a usual name lead to.
func mergeNodes(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	n := newNode()
	for _, o := range []*node{a, b} {
		for name, m := range o.exact {
			n.exact[name] = mergeMembers(n.exact[name], m)
		}
		for name, m := range o.usual {
			n.usual[name] = mergeMembers(n.usual[name], m)
		}
	}
	return n
}

func mergeMembers(a, b *member) *member {
	m := &member{}
	for _, o := range []*member{a, b} {
		if o == nil {
			continue
		}
		for _, t := range o.targets {
			m.bind(t)
		}
		m.child = mergeNodes(m.child, o.child)
	}
	return m
}
