package accesslog

import "bytes"

// How a format is added
//
//  1. Write a tokenizer, func (p *Parser) tokenizeX(line []byte) error, in a
//     file of its own. It splits one record and hands every value to p.putName
//     (the log names its fields), p.putColumn (the position names them) or p.put
//     (the position decides), with only the log's own escaping removed; see
//     Parser.grow for room to unescape in. It returns a Reject, and it interprets
//     nothing.
//  2. Write down the names that the format gives its fields, beside it.
//  3. Add one line to the table formats, in parser.go, and one to views, in shows.go.
//  4. Where the logger shows departures in its own way, write a function that
//     reads them from the raw values and name it as the format's depart.
//
// Nothing else changes: times, durations, attempts, deadlines and keys are read
// in one place, interpret.go, from the raw values.

// A field is what a raw value of a record is about. Fields up to fieldCount are
// fixed; those above are log fields that Config.Keys or Config.Extra name.
type field uint8

const (
	fTime  field = iota // the stamp; its meaning is the format's, or fTimeIs
	fStart              // a stamp that the log calls the start
	fEnd                // a stamp that the log calls the end
	fTimeIs
	fDependency
	fRoute
	fMethod
	fPath
	fAuthority
	fStatus
	fGRPCStatus
	fDuration // the target's unit applies
	fBytesSent
	fPeer
	fUserAgent
	fQuestionKey
	fTraceparent
	fIdempotencyKey
	fRequestID // x_request_id
	fAmzInvocation
	fGCCLInvocation
	fMSClientRequestID
	fAttempt
	fAttemptScope
	fAttemptsLeft
	fDeadline
	fRetryAfter
	fClientGone
	fDeparture
	fArrivalID

	// What loggers have besides.
	fRequest // "GET /x HTTP/1.1"
	fEnvoyAttempt
	fAmzRequest
	fGoogClient
	fGRPCPrevious
	fRetryAttempt
	fStainlessRetry
	fGRPCTimeout
	fEnvoyTimeout
	fFinagleDeadline
	fMintedID // an id that a proxy may have made: shown, never counted by

	// nginx
	fCompletion
	fBodyBytes
	fUpstreamAddr
	fUpstreamStatus
	fUpstreamTime

	// Envoy
	fFlags
	fDetails
	fTermination
	fUpstreamHost
	fUpstreamLocal
	fUpstreamCluster
	fTryCount
	fRecordKind
	fStreamID

	// Go servers
	fContext
	fWriteError
	fGRPCService
	fGRPCMethod
	fMessage // also a shipper's wrapper

	// shippers' wrappers
	fWrapLog
	fWrapMsg
	fWrapStream

	// what a server says of what stands behind it, and of its answer
	fLogger
	fVia
	fContentLength
	fAnswerHeader // of those that every answer has: the record shows headers
	fOriginAddr
	fOriginStatus
	fOriginTime
	fOriginSize
	fOverhead
	fRetries
	fWait       // before it was asked
	fAnswerTime // after it answered
	fOriginList
	fOriginStatusList
	fErrorType

	fieldCount
)

// maxFields bounds the fixed fields and the configured ones together.
const maxFields = 128

// fieldNames are the canonical names; the fields without one have the name
// under which Entry.Sources lists them.
var fieldNames = [fieldCount]string{
	fTime: "time", fStart: "start_time", fEnd: "end_time", fTimeIs: "time_is",
	fDependency: "dependency", fRoute: "route", fMethod: "method", fPath: "path",
	fAuthority: "authority", fStatus: "status", fGRPCStatus: "grpc_status",
	fDuration: "duration", fBytesSent: "bytes_sent", fPeer: "peer",
	fUserAgent: "user_agent", fQuestionKey: "question_key",
	fTraceparent: "traceparent", fIdempotencyKey: "idempotency_key",
	fRequestID: "x_request_id", fAmzInvocation: "amz_sdk_invocation_id",
	fGCCLInvocation:    "gccl_invocation_id",
	fMSClientRequestID: "x_ms_client_request_id",
	fAttempt:           "attempt", fAttemptScope: "attempt_scope",
	fAttemptsLeft: "attempts_left", fDeadline: "deadline",
	fRetryAfter: "retry_after", fClientGone: "client_gone",
	fDeparture: "departure", fArrivalID: "arrival_id",

	fRequest: "request", fEnvoyAttempt: "x_envoy_attempt_count",
	fAmzRequest: "amz_sdk_request", fGoogClient: "x_goog_api_client",
	fGRPCPrevious: "grpc_previous_rpc_attempts", fRetryAttempt: "x_retry_attempt",
	fStainlessRetry: "x_stainless_retry_count", fGRPCTimeout: "grpc_timeout",
	fEnvoyTimeout:    "x_envoy_expected_rq_timeout_ms",
	fFinagleDeadline: "finagle_deadline", fMintedID: "request_id",

	fCompletion: "request_completion", fBodyBytes: "body_bytes_sent",
	fUpstreamAddr: "upstream_addr", fUpstreamStatus: "upstream_status",
	fUpstreamTime: "upstream_response_time",

	fFlags: "response_flags", fDetails: "response_code_details",
	fTermination:  "connection_termination_details",
	fUpstreamHost: "upstream_host", fUpstreamLocal: "upstream_local_address",
	fUpstreamCluster: "upstream_cluster",
	fTryCount:        "upstream_request_attempt_count",
	fRecordKind:      "access_log_type", fStreamID: "stream_id",

	fContext: "ctx", fWriteError: "write_err", fGRPCService: "grpc.service",
	fGRPCMethod: "grpc.method", fMessage: "message",
	fWrapLog: "log", fWrapMsg: "msg", fWrapStream: "stream",

	fLogger: "logger", fVia: "via", fContentLength: "content_length", fAnswerHeader: "answer_header",
	fOriginAddr: "origin_addr", fOriginStatus: "origin_status", fOriginTime: "origin_duration",
	fOriginSize: "origin_bytes", fOverhead: "overhead", fRetries: "retries",
	fWait: "wait", fAnswerTime: "answer_duration", fOriginList: "origin_list", fOriginStatusList: "origin_status_list",
	fErrorType: "error_type",
}

// A unit is what a bare number means in a duration, deadline or wait.
type unit uint8

const (
	unitDefault unit = iota // the format's
	unitSeconds
	unitMillis
	unitMicros
	unitNanos
)

var unitNanoseconds = [...]int64{1e6, 1e9, 1e6, 1e3, 1}

// A target is where the value of a log field goes. Of several targets of one
// field the smallest rank wins: a configured name before the canonical one, that
// before the usual spellings.
type target struct {
	name string // in the log
	f    field
	rank uint8
	unit unit
}

// raw holds the values of one record as the log has them. A field is in one of
// three states: absent (no bit), empty (bit, no bytes), value. null says that
// the record has the place but shows nothing in it ("-", JSON null): absent, yet
// known to be so. Bits are reset per record, cells never.
type raw struct {
	have, null [maxFields / 64]uint64
	cells      [maxFields]cell
	notes      Notes
	suspect    bool // quoting was broken: see Entry.KeySuspect
	duplicate  bool // a field came twice under one name
	vendor     vendor
	twice      [maxFields / 64]uint64 // with duplicate: fields that did, with different values
}

type cell struct {
	b  []byte
	by *target
}

func (r *raw) reset(v vendor) {
	r.have, r.null = [maxFields / 64]uint64{}, [maxFields / 64]uint64{}
	r.notes, r.suspect = 0, false
	if r.duplicate {
		r.duplicate, r.twice = false, [maxFields / 64]uint64{}
	}
	r.vendor = v
}

// has says that the record holds f, if only as an empty value.
func (r *raw) has(f field) bool { return r.have[f>>6]&(1<<(f&63)) != 0 }

// isNull says that the record has a place for f and shows nothing in it.
func (r *raw) isNull(f field) bool { return r.null[f>>6]&(1<<(f&63)) != 0 }

// val is the value of f, nil if absent.
func (r *raw) val(f field) []byte {
	if !r.has(f) {
		return nil
	}
	return r.cells[f].b
}

// set takes v for the field of t, unless a better or the same name gave it
// already.
func (r *raw) set(t *target, v []byte) {
	w, bit := t.f>>6, uint64(1)<<(t.f&63)
	c := &r.cells[t.f]
	if r.have[w]&bit != 0 && !r.wins(t, c, v) {
		return
	}
	r.have[w] |= bit
	c.b, c.by = v, t
}

func (r *raw) wins(t *target, c *cell, v []byte) bool {
	if c.by.name == t.name {
		r.notes |= NoteDuplicateMember
		r.duplicate = true
		if !bytes.Equal(c.b, v) {
			r.twice[t.f>>6] |= 1 << (t.f & 63)
		}
		return false
	}
	return t.rank < c.by.rank
}

func (r *raw) setNull(t *target) {
	r.null[t.f>>6] |= 1 << (t.f & 63)
}

// put is for tokenizers of formats where the position names the field. A lone
// dash is no value.
func (p *Parser) put(f field, v []byte) {
	t := &p.positional[f]
	if len(v) == 1 && v[0] == '-' {
		p.raw.setNull(t)
		return
	}
	p.raw.set(t, v)
}

// putName is for tokenizers of formats whose fields are named in the line; a
// name that nobody asked for is dropped. A lone dash is no value.
func (p *Parser) putName(name, v []byte) {
	p.putMember(p.root.lookup(name), v)
}

// putMember is putName for who has looked the name up before.
func (p *Parser) putMember(m *member, v []byte) {
	dash := len(v) == 1 && v[0] == '-'
	if m.one != nil && !dash {
		p.raw.set(m.one, v)
		return
	}
	for _, t := range m.targets {
		if dash {
			p.raw.setNull(t)
		} else {
			p.raw.set(t, v)
		}
	}
}

// putColumn is putName for a column, whose name was looked up once.
func (p *Parser) putColumn(i int, v []byte) {
	p.putMember(p.columns[i], v)
}

// note adds a remark on the record being read.
func (p *Parser) note(n Notes) { p.raw.notes |= n }

// suspectKey refuses the record's key: see Entry.KeySuspect.
func (p *Parser) suspectKey() { p.raw.suspect = true }

// grow gives room for up to n bytes of unescaped value; keep returns the room
// that was not used. Values in it live as long as the Entry.
func (p *Parser) grow(n int) []byte {
	if cap(p.scratch)-len(p.scratch) < n {
		p.scratch = make([]byte, 0, max(2*cap(p.scratch), n, 4096))
	}
	return p.scratch[len(p.scratch):len(p.scratch):cap(p.scratch)]
}

// keep says that v, appended to what grow gave, is a value of the record. One that
// became longer than what was asked of grow may have memory of its own.
func (p *Parser) keep(v []byte) []byte {
	if n := len(p.scratch) + len(v); n <= cap(p.scratch) {
		p.scratch = p.scratch[:n]
	}
	return v[:len(v):len(v)]
}
