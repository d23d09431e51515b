package ingest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// otlpSignal is what a path of OTLP/HTTP takes, with the names by which the JSON form
// calls its parts.
type otlpSignal struct {
	resources, scopes, records otlpName
	rejected                   string // of the answer
}

// otlpName is what the JSON form calls a member: by the first, and by the others, too, which
// are those of the protocol's definition and of its older releases.
type otlpName []string

var (
	otlpTraces = otlpSignal{otlpName{"resourceSpans", "resource_spans"}, otlpName{"scopeSpans", "scope_spans", "instrumentationLibrarySpans"},
		otlpName{"spans"}, "rejectedSpans"}
	otlpLogs = otlpSignal{otlpName{"resourceLogs", "resource_logs"}, otlpName{"scopeLogs", "scope_logs", "instrumentationLibraryLogs"},
		otlpName{"logRecords", "log_records"}, "rejectedLogRecords"}
	otlpMetrics = otlpName{"resourceMetrics", "resource_metrics"}
)

// of is the member of that name, nil where there is none or it is null.
func (n otlpName) of(object map[string]json.RawMessage) json.RawMessage {
	for _, name := range n {
		if v := object[name]; v != nil && string(v) != "null" {
			return v
		}
	}
	return nil
}

func isOTLP(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/") }

// otlp answers a request of OTLP/HTTP: 200 when its records are durable, with those
// counted that were too large to be kept; 429 and 503, which a client repeats; and other
// 4xx for what it must not send again.
func (p *Push) otlp(w http.ResponseWriter, r *http.Request, signal otlpSignal) {
	rejected, most, err := p.takeOTLP(r, signal)
	if err != nil {
		refuseOTLP(w, r, p.answer(w, err))
		return
	}
	what := fmt.Sprintf("%d records are larger than %d bytes, each with its resource and scope, and were not kept", rejected, most)
	var body []byte
	if otlpJSON(r) {
		answer := map[string]any{}
		if rejected > 0 {
			answer["partialSuccess"] = map[string]any{signal.rejected: strconv.FormatInt(rejected, 10), "errorMessage": what}
		}
		body, _ = json.Marshal(answer)
	} else if rejected > 0 {
		partial := binary.AppendUvarint([]byte{1 << 3}, uint64(rejected))
		body = appendWire(nil, 1, appendWire(partial, 2, []byte(what)))
	}
	w.Header().Set("Content-Type", otlpType(r))
	w.Write(body)
}

// tooLong is the line that is kept in place of a record that is too large: the formats of
// OTLP refuse it for that reason, so that it is quarantined and counted once, as durable as
// the records beside it.
const tooLong = "too_long\n"

// takeOTLP makes the records of a request durable, and of those that are too large that
// there were such; most is how many bytes one may have in the form of the request.
func (p *Push) takeOTLP(r *http.Request, signal otlpSignal) (rejected int64, most int, err error) {
	if err := p.postOnly(r); err != nil {
		return 0, 0, err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/json" && kind != "application/x-protobuf" {
		return 0, 0, problemf(http.StatusUnsupportedMediaType, "the content type is not one of OTLP/HTTP; send application/x-protobuf or application/json")
	}
	body, release, err := p.bodies.unpack(r)
	if err != nil {
		return 0, 0, err
	}
	defer release()
	var lines []byte
	if most = p.cfg.MaxLine; kind == "application/json" {
		lines, rejected, err = otlpJSONLines(body, signal, most)
	} else {
		most = (most - 1) / 4 * 3 // before base64
		lines, rejected, err = otlpProtoLines(body, most)
	}
	if err != nil {
		return 0, 0, problemf(http.StatusBadRequest, "the body is no request of OTLP: %v", err)
	}
	return rejected, most, p.append(r, lines)
}

func otlpJSON(r *http.Request) bool { return otlpType(r) == "application/json" }

// otlpType is the content type of an answer: the request's, if that is one of OTLP's.
func otlpType(r *http.Request) string {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/json" {
		return kind
	}
	return "application/x-protobuf"
}

// refuseOTLP writes a refusal as a google.rpc.Status, in the form of the request. A disk
// that is full is no reason to give the records up, which 507 would be to a client.
func refuseOTLP(w http.ResponseWriter, r *http.Request, refusal *problem) {
	p := *refusal
	if p.status == http.StatusInsufficientStorage {
		p.status = http.StatusServiceUnavailable
	}
	code := map[int]int{
		http.StatusUnauthorized: grpcUnauthenticated, http.StatusMethodNotAllowed: grpcUnimplemented,
		http.StatusTooManyRequests: grpcResourceExhausted, http.StatusRequestEntityTooLarge: grpcResourceExhausted,
		http.StatusServiceUnavailable: grpcUnavailable,
	}[p.status]
	if code == 0 {
		code = grpcInvalidArgument
	}
	var body []byte
	if otlpJSON(r) {
		body, _ = json.Marshal(struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}{code, p.detail})
	} else {
		body = appendWire(binary.AppendUvarint([]byte{1 << 3}, uint64(code)), 2, []byte(p.detail))
	}
	p.head(w, otlpType(r))
	w.Write(body)
}

// otlpProtoLines makes lines of a request: itself in base64, or where it has more than
// most bytes, its records in several, each with its resource and scope.
func otlpProtoLines(body []byte, most int) (lines []byte, rejected int64, err error) {
	if err := eachRecord(body, func(_, _, _ []byte) {}); err != nil {
		return nil, 0, err
	}
	add := func(message []byte) {
		lines = append(base64.StdEncoding.AppendEncode(lines, message), '\n')
	}
	if len(body) <= most {
		if len(body) > 0 {
			add(body)
		}
		return lines, 0, nil
	}
	var resource, scope, records []byte
	const tags = 4 * binary.MaxVarintLen32
	flush := func() {
		if len(records) > 0 {
			add(appendWire(nil, 1, append(bytes.Clone(resource), appendWire(nil, 2, append(bytes.Clone(scope), records...))...)))
		}
		records = records[:0]
	}
	eachRecord(body, func(r, s, record []byte) {
		if len(r)+len(s)+len(record)+tags > most {
			rejected++
			lines = append(lines, tooLong...)
			return
		}
		same := bytes.Equal(r, resource) && bytes.Equal(s, scope)
		if !same || len(r)+len(s)+len(records)+len(record)+tags > most {
			flush()
			resource, scope = r, s
		}
		records = append(records, record...)
	})
	flush()
	return lines, rejected, nil
}

var errNoMessage = errors.New("a message ends too early, or is none")

// eachRecord walks through the resources and scopes of a request to its records: do is
// given each with its tag, and what its resource and scope say besides.
func eachRecord(body []byte, do func(resource, scope, record []byte)) error {
	return eachOf(1, body, func(_ []byte, r wireField) error {
		return eachOf(2, r.value, func(resource []byte, s wireField) error {
			return eachOf(2, s.value, func(scope []byte, record wireField) error {
				for rest := record.value; len(rest) > 0; {
					var ok bool
					if _, rest, ok = wireNext(rest); !ok {
						return errNoMessage
					}
				}
				do(resource, scope, record.all)
				return nil
			})
		})
	})
}

// eachOf gives do the fields of that number, and beside each all the others.
func eachOf(number int, message []byte, do func(others []byte, of wireField) error) error {
	var others []byte
	var values []wireField
	for len(message) > 0 {
		f, rest, ok := wireNext(message)
		if !ok {
			return errNoMessage
		}
		if message = rest; f.number == number && f.wire == wireLength {
			values = append(values, f)
		} else {
			others = append(others, f.all...)
		}
	}
	for _, v := range values {
		if err := do(others, v); err != nil {
			return err
		}
	}
	return nil
}

// otlpJSONLines is otlpProtoLines for the JSON form. Whatever was on several lines is on
// one.
func otlpJSONLines(body []byte, signal otlpSignal, most int) (lines []byte, rejected int64, err error) {
	var request map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, 0, errors.New("it is no JSON object")
	}
	if err := otherSignal(request, signal); err != nil {
		return nil, 0, err
	}
	var resources []map[string]json.RawMessage
	if list := signal.resources.of(request); list == nil {
		return nil, 0, nil
	} else if err := json.Unmarshal(list, &resources); err != nil {
		return nil, 0, fmt.Errorf("%s is no list of objects", signal.resources[0])
	}
	whole := bytes.NewBuffer(nil)
	if err := json.Compact(whole, body); err != nil {
		return nil, 0, errors.New("it is no JSON object")
	}
	fits := whole.Len() < most
	for _, resource := range resources {
		var scopes []map[string]json.RawMessage
		if list := signal.scopes.of(resource); list == nil {
			continue
		} else if err := json.Unmarshal(list, &scopes); err != nil {
			return nil, 0, fmt.Errorf("%s is no list of objects", signal.scopes[0])
		}
		for _, scope := range scopes {
			var records []json.RawMessage
			if list := signal.records.of(scope); list == nil {
				continue
			} else if err := json.Unmarshal(list, &records); err != nil {
				return nil, 0, fmt.Errorf("%s is no list", signal.records[0])
			}
			if fits {
				continue
			}
			line := newOTLPLine(signal, resource["resource"], scope["scope"])
			for _, record := range records {
				line.add(record, most, &lines, &rejected)
			}
			lines = line.flush(lines)
		}
	}
	if fits && len(resources) > 0 {
		lines = append(whole.Bytes(), '\n')
	}
	return lines, rejected, nil
}

// otherSignal is an error where a request holds what belongs to another path.
func otherSignal(request map[string]json.RawMessage, signal otlpSignal) error {
	for _, other := range []struct {
		member otlpName
		advice string
	}{
		{otlpTraces.resources, "spans are sent to /v1/traces"}, {otlpLogs.resources, "log records are sent to /v1/logs"},
		{otlpMetrics, "metrics are not taken; let the exporter send traces or logs alone"},
	} {
		if other.member[0] != signal.resources[0] && other.member.of(request) != nil {
			return fmt.Errorf("%s has no place in a request of %s: %s", other.member[0], signal.resources[0], other.advice)
		}
	}
	return nil
}

// otlpLine is a line that is being made of records of one scope.
type otlpLine struct {
	head, tail string
	buf        bytes.Buffer
}

func newOTLPLine(signal otlpSignal, resource, scope json.RawMessage) *otlpLine {
	or := func(v json.RawMessage) string {
		var out bytes.Buffer
		if v == nil || json.Compact(&out, v) != nil {
			return "{}"
		}
		return out.String()
	}
	return &otlpLine{
		head: fmt.Sprintf(`{"%s":[{"resource":%s,"%s":[{"scope":%s,"%s":[`, signal.resources[0], or(resource), signal.scopes[0], or(scope), signal.records[0]),
		tail: "]}]}]}\n",
	}
}

func (l *otlpLine) add(record json.RawMessage, most int, lines *[]byte, rejected *int64) {
	var compact bytes.Buffer
	if json.Compact(&compact, record) != nil || len(l.head)+compact.Len()+len(l.tail) > most {
		*rejected++
		*lines = append(*lines, tooLong...)
		return
	}
	if l.buf.Len() > 0 && l.buf.Len()+1+compact.Len()+len(l.tail) > most {
		*lines = l.flush(*lines)
	}
	if l.buf.Len() == 0 {
		l.buf.WriteString(l.head)
	} else {
		l.buf.WriteByte(',')
	}
	l.buf.Write(compact.Bytes())
}

func (l *otlpLine) flush(lines []byte) []byte {
	if l.buf.Len() > 0 {
		lines = append(append(lines, l.buf.Bytes()...), l.tail...)
		l.buf.Reset()
	}
	return lines
}
