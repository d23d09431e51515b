package lab

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// message builds one in the wire format of protocol buffers, of which every line of
// otlp-proto and envoy-als is one in base64.
type message struct{ b []byte }

func (m *message) tag(field int, wire uint64) {
	m.b = binary.AppendUvarint(m.b, uint64(field)<<3|wire)
}

func (m *message) varint(field int, v uint64) {
	m.tag(field, 0)
	m.b = binary.AppendUvarint(m.b, v)
}

func (m *message) fixed64(field int, v uint64) {
	m.tag(field, 1)
	m.b = binary.LittleEndian.AppendUint64(m.b, v)
}

func (m *message) bytes(field int, v []byte) {
	m.tag(field, 2)
	m.b = append(binary.AppendUvarint(m.b, uint64(len(v))), v...)
}

func (m *message) string(field int, v string) {
	m.tag(field, 2)
	m.b = append(binary.AppendUvarint(m.b, uint64(len(v))), v...)
}

// within writes a message inside.
func (m *message) within(field int, write func()) {
	m.tag(field, 2)
	from := len(m.b)
	write()
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(m.b)-from))
	m.b = slices.Insert(m.b, from, size[:n]...)
}

// line appends what was built.
func (m *message) line(b []byte) []byte { return base64.StdEncoding.AppendEncode(b, m.b) }

// otlpProtoLine writes what otlpLine says in the binary form: an
// ExportTraceServiceRequest (opentelemetry-proto, trace/v1).
func otlpProtoLine(b []byte, r *record) []byte {
	var m message
	var ids [32]byte
	attribute := func(name string, value func()) {
		m.within(9, func() {
			m.string(1, name)
			m.within(2, value)
		})
	}
	str := func(name, v string) { attribute(name, func() { m.string(1, v) }) }
	num := func(name string, v int64) { attribute(name, func() { m.varint(3, uint64(v)) }) }
	header := func(name string, v []byte) {
		if v != nil {
			attribute("http."+name, func() { m.within(5, func() { m.within(1, func() { m.bytes(1, v) }) }) })
		}
	}
	path := r.path(nil)
	m.within(1, func() { // ResourceSpans
		m.within(1, func() { // Resource
			m.within(1, func() {
				m.string(1, "service.name")
				m.within(2, func() { m.string(1, r.route.Target) })
			})
		})
		m.within(2, func() { // ScopeSpans
			m.within(2, func() { // Span
				binary.BigEndian.PutUint64(ids[:], mix(^r.n))
				binary.BigEndian.PutUint64(ids[8:], mix(r.n))
				m.bytes(1, ids[:16])
				binary.BigEndian.PutUint64(ids[:], mix(r.n))
				m.bytes(2, ids[:8])
				m.string(5, r.route.Method)
				m.varint(6, 2) // server
				m.fixed64(7, uint64(r.start*1e6))
				m.fixed64(8, uint64(r.end*1e6))
				str("http.request.method", r.route.Method)
				str("url.path", string(path))
				num("http.response.status_code", r.code())
				num("http.response.body.size", int64(r.bytes))
				str("client.address", r.peer)
				header("request.header.question-key", r.keyText)
				header("request.header.x-request-id", r.requestID)
				header("request.header.x-envoy-attempt-count", decimal(int64(r.attempt)))
				header("request.header.attempts-left", r.leftText)
				header("response.header.retry-after", r.waitText)
				attribute("client_gone", func() { m.varint(2, uint64(min(r.departure, 1))) })
				if r.departure != stays {
					str("departure", departures[r.departure])
				}
			})
		})
	})
	return m.line(b)
}

// alsMethods are the numbers of RequestMethod.
var alsMethods = map[string]uint64{"GET": 1, "POST": 3, "PUT": 4, "DELETE": 5, "PATCH": 9}

// alsLine writes what Envoy sends to an access log service: a StreamAccessLogsMessage
// (envoy/service/accesslog/v3/als.proto) with its identifier and one HTTPAccessLogEntry
// (envoy/data/accesslog/v3/accesslog.proto). Its stream's id is the request's, which
// attempts of one question have in common where they forward it.
func alsLine(b []byte, r *record) []byte {
	var m message
	moment := func(field int, ms int64) {
		m.within(field, func() {
			m.varint(1, uint64(ms/1000))
			m.varint(2, uint64(ms%1000*1e6))
		})
	}
	address := func(field int, host string, port uint64) {
		m.within(field, func() {
			m.within(1, func() {
				m.string(2, host)
				m.varint(3, port)
			})
		})
	}
	header := func(field int, name string, v []byte) {
		if v != nil {
			m.within(field, func() {
				m.string(1, name)
				m.bytes(2, v)
			})
		}
	}
	port := uint64(r.port())
	id := r.requestID
	if id == nil {
		id = hex32(nil, r.n)
	}
	common := func() {
		address(2, r.peer, port)
		moment(5, r.start)
		if r.departure != before {
			moment(9, r.end-r.start) // first upstream byte
		}
		address(13, "10.77.1.1", 8080)
		address(14, "127.0.0.1", port)
		m.string(15, r.route.Target)
		if r.departure != stays {
			m.within(16, func() { m.varint(15, 1) })
		}
		m.string(19, "default")
		address(20, r.peer, port)
		moment(23, r.end-r.start)
		m.varint(24, 1)
		m.bytes(26, id)
		m.varint(33, 6) // DownstreamEnd
	}
	request := func() {
		m.varint(1, alsMethods[r.route.Method])
		m.string(3, "target.lab")
		m.bytes(5, r.path(nil))
		m.string(6, "lab")
		if r.requestID != nil {
			m.bytes(9, r.requestID)
		}
		header(13, "question-key", r.keyText)
		header(13, "x-envoy-attempt-count", decimal(int64(r.attempt)))
		header(13, "attempts-left", r.leftText)
	}
	response := func() {
		if r.departure != before {
			m.within(1, func() { m.varint(1, uint64(r.status)) })
		}
		if r.bytes > 0 {
			m.varint(3, uint64(r.bytes))
		}
		header(4, "retry-after", r.waitText)
		_, details := r.saidByEnvoy()
		m.string(6, details)
	}
	m.within(1, func() { // Identifier
		m.within(1, func() { // Node
			m.string(1, "sidecar-7")
			m.string(2, r.route.Target)
		})
		m.string(2, "lab")
	})
	m.within(2, func() { // HTTPAccessLogEntries
		m.within(1, func() {
			m.within(1, common)
			m.varint(2, 2) // HTTP/1.1
			m.within(3, request)
			m.within(4, response)
		})
	})
	return m.line(b)
}
