package accesslog

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// alsEntryOf makes the entry that Envoy sends where its JSON log would say what values
// say, by the numbers of envoy.data.accesslog.v3.
func alsEntryOf(values map[string]any) protoMessage {
	var common, request, response, entry protoMessage
	text := func(m *protoMessage, number int, name string) {
		if v, ok := values[name].(string); ok {
			m.bytes(number, []byte(v))
		}
	}
	span := func(ms float64) (m protoMessage) {
		us := uint64(math.Round(ms * 1000))
		if s := us / 1e6; s != 0 {
			m.varint(1, s)
		}
		if ns := us % 1e6 * 1000; ns != 0 {
			m.varint(2, ns)
		}
		return m
	}
	address := func(m *protoMessage, number int, name string) {
		v, ok := values[name].(string)
		if !ok {
			return
		}
		host, port, _ := strings.Cut(v, ":")
		var socket, all protoMessage
		socket.bytes(2, []byte(host))
		if port != "" {
			var n uint64
			fmt.Sscan(port, &n)
			socket.varint(3, n)
		}
		all.bytes(1, socket)
		m.bytes(number, all)
	}
	headers := func(m *protoMessage, number int, prefix string) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if header, ok := strings.CutPrefix(name, prefix); ok {
				var pair protoMessage
				pair.bytes(1, []byte(header))
				if v := values[name].(string); v != "" {
					pair.bytes(2, []byte(v))
				}
				m.bytes(number, pair)
			}
		}
	}
	address(&common, 2, "downstream_remote_address")
	if uri, ok := values["downstream_peer_uri_san"].(string); ok {
		var name, peer, tls protoMessage
		name.bytes(1, []byte(uri))
		peer.bytes(1, name)
		tls.varint(1, 4)
		tls.bytes(5, peer)
		common.bytes(4, tls)
	}
	if at, ok := values["start_ms"].(float64); ok {
		common.bytes(5, span(at))
	}
	common.bytes(6, span(1))
	if ms, ok := values["sent_ms"].(float64); ok {
		common.bytes(12, span(ms))
	}
	address(&common, 13, "upstream_host")
	address(&common, 14, "upstream_local_address")
	text(&common, 15, "upstream_cluster")
	if list, ok := values["response_flags"].(string); ok && list != "-" {
		var flags protoMessage
		for _, flag := range strings.Split(list, ",") {
			switch n := slices.Index(alsFlagNames[:], flag); {
			case flag == "UAEX":
				flags.bytes(n, []byte{8, 1})
			case n > 0:
				flags.varint(n, 1)
			default:
				flags.varint(99, 1) // one that comes with a later release
			}
		}
		flags.varint(1, 0)
		common.bytes(16, flags)
	}
	common.bytes(17, []byte("\x0a\x03\x0a\x01a")) // metadata
	text(&common, 19, "route_name")
	headers(&common, 22, "custom_tags.")
	if ms, ok := values["duration"].(float64); ok {
		common.bytes(23, span(ms))
	}
	if n, ok := values["upstream_request_attempt_count"].(float64); ok && n > 0 {
		common.varint(24, uint64(n))
	}
	text(&common, 25, "connection_termination_details")
	text(&common, 26, "stream_id")
	if values["intermediate"] == true {
		common.varint(27, 1)
	}
	if kind, ok := values["access_log_type"].(string); ok && values["intermediate"] != true {
		common.varint(33, uint64(slices.Index(alsKinds[:], kind)))
	}
	if method, ok := values["method"].(string); ok {
		request.varint(1, uint64(slices.Index(alsMethods[:], method)))
	}
	text(&request, 3, "authority")
	text(&request, 5, "path")
	text(&request, 6, "user_agent")
	text(&request, 9, "request_id")
	text(&request, 10, "original_path")
	request.varint(11, 300)
	headers(&request, 13, "request_headers.")
	if code, ok := values["response_code"].(float64); ok && code != 0 {
		var wrapped protoMessage
		wrapped.varint(1, uint64(code))
		response.bytes(1, wrapped)
	}
	response.varint(2, 120)
	if n, ok := values["bytes_sent"].(float64); ok && n != 0 {
		response.varint(3, uint64(n))
	}
	headers(&response, 4, "response_headers.")
	headers(&response, 5, "response_trailers.")
	text(&response, 6, "response_code_details")
	entry.bytes(1, common)
	entry.varint(2, 2)
	entry.bytes(3, request)
	entry.bytes(4, response)
	return entry
}

// alsLineOf is a line with these entries.
func alsLineOf(entries ...protoMessage) string {
	var node, identifier, logs, m protoMessage
	node.bytes(1, []byte("edge-1"))
	node.bytes(2, []byte("edge"))
	identifier.bytes(1, node)
	identifier.bytes(2, []byte("seats"))
	for _, e := range entries {
		logs.bytes(1, e)
	}
	m.bytes(1, identifier)
	m.bytes(2, logs)
	return base64.StdEncoding.EncodeToString(m)
}

const alsRecord = `{"start_ms":1772532942118.5,"start_time":"2026-03-03T10:15:42.118500000Z","duration":250.25,"method":"GET","path":"/v1/seats/7?x=1",` +
	`"authority":"seats.internal","response_code":200,"response_flags":"-","response_code_details":"via_upstream","bytes_sent":812,"user_agent":"seats/2",` +
	`"request_id":"6f9619ff-8b86-4011-b42d-00c04fc964ff","upstream_host":"10.0.0.1:80","upstream_local_address":"10.0.0.9:41","upstream_cluster":"seats",` +
	`"upstream_request_attempt_count":2,"downstream_remote_address":"192.0.2.1","route_name":"default","request_headers.question-key":"q-\"1\"",` +
	`"request_headers.x-envoy-attempt-count":"2","request_headers.grpc-timeout":"300m","response_headers.retry-after":"3","custom_tags.zone":"a"}`

func alsValues(t testing.TB, more ...string) map[string]any {
	t.Helper()
	values := map[string]any{}
	for _, text := range append([]string{alsRecord}, more...) {
		if err := json.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range values {
		if v == nil {
			delete(values, name)
		}
	}
	return values
}

// An entry of the service says what a line of Envoy's JSON log would have said.
func TestEnvoyALS(t *testing.T) {
	c := Config{
		Keys:  []string{"question_key", "traceparent", "x_request_id"},
		Extra: []string{"custom_tags.zone", "route_name"}, Fields: map[string]string{"dependency": "upstream_cluster"},
	}
	show := func(p *Parser, line string) string {
		var e Entry
		rest, err := p.Parse([]byte(line), &e)
		if err != nil || len(rest) != 0 {
			t.Fatalf("%v, and %d bytes are left", err, len(rest))
		}
		e.Text = nil
		return fmt.Sprintf("%q %q %q %+v", e.Keys, e.Extra, e.StatusRaw, e)
	}
	for _, more := range []string{
		`{}`,
		`{"response_code":0,"response_flags":"DC","bytes_sent":0,"response_code_details":null}`,
		`{"response_code":0,"response_flags":"DR","bytes_sent":0}`,
		`{"response_code":0,"bytes_sent":0,"response_code_details":null}`,
		`{"response_flags":"DC","bytes_sent":9}`,
		`{"response_flags":"DC","bytes_sent":0}`,
		`{"response_code":504,"response_flags":"UT,URX","response_code_details":"response_timeout","bytes_sent":24}`,
		`{"response_code":503,"response_flags":"UH","response_code_details":"no_healthy_upstream","upstream_host":null,"upstream_local_address":null,"upstream_request_attempt_count":null}`,
		`{"response_code":403,"response_flags":"UAEX","response_code_details":"ext_authz_denied"}`,
		`{"response_code":408,"response_flags":"SI"}`,
		`{"response_code":400,"response_flags":"DPE"}`,
		`{"response_flags":"DT"}`, `{"response_flags":"NEW"}`,
		`{"access_log_type":"DownstreamStart","stream_id":"s-1","response_code":0,"bytes_sent":0,"duration":null}`,
		`{"access_log_type":"DownstreamEnd","stream_id":"s-1"}`,
		`{"access_log_type":"DownstreamPeriodic","intermediate":true}`,
		`{"access_log_type":"UpstreamEnd"}`,
		`{"upstream_cluster":"outbound|80||seats"}`,
		`{"downstream_peer_uri_san":"spiffe://shop/bff"}`,
		`{"duration":0}`, `{"duration":0.001}`,
		`{"request_headers.question-key":""}`, `{"request_headers.question-key":null}`,
		`{"request_headers.question-key":"-"}`,
		`{"response_headers.retry-after":null}`,
		`{"grpc_status":"4","response_trailers.grpc-status":"4"}`, `{"grpc_status":"0","response_headers.grpc-status":"0"}`,
		`{"method":"PATCH","user_agent":null,"authority":null,"custom_tags.zone":null}`,
	} {
		values := alsValues(t, more)
		want := maps.Clone(values)
		delete(want, "response_trailers.grpc-status")
		delete(want, "response_headers.grpc-status")
		for _, gone := range []string{"start_ms", "intermediate"} {
			delete(want, gone)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		c.Format = "envoy-json"
		js := mustNew(t, c)
		c.Format = "envoy-als"
		als := mustNew(t, c)
		for range 2 { // cold and warm
			if got, want := show(als, alsLineOf(alsEntryOf(values))), show(js, string(text)); got != want {
				t.Errorf("%s:\n als %s\njson %s", more, got, want)
			}
		}
	}
}

// What only the service has: several entries in a line, who sent them, a path before
// it was rewritten, a duration that is only known until the last byte.
func TestEnvoyALSLine(t *testing.T) {
	p := mustNew(t, Config{Format: "envoy-als", Keys: []string{"question_key"}, Extra: []string{"node_cluster", "node_id"}, Fields: map[string]string{"dependency": "log_name"}})
	show := func(e *Entry) string {
		return fmt.Sprintf("%s %s %s %s %s %d", e.Keys[0], e.Dependency, e.Extra[0], e.Extra[1], e.Path, e.Duration)
	}
	first := alsEntryOf(alsValues(t, `{"original_path":"/old/7"}`))
	second := alsEntryOf(alsValues(t, `{"request_headers.question-key":"q-2","duration":null,"sent_ms":7}`))
	want := []string{`q-"1" seats edge edge-1 /old/7 250250000`, `q-2 seats edge edge-1 /v1/seats/7?x=1 7000000`}
	line := alsLineOf(first, second)
	for range 2 {
		wantAll(t, readOTLP(t, p, line, show), want...)
		wantAll(t, readOTLP(t, p, `{"message":"`+line+`"}`, show), want...)
		wantAll(t, readOTLP(t, p, "2026-03-03T10:15:44Z stdout F "+line, show), want...)
	}
	var e, o Entry
	if _, err := p.Parse([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	alone := string(e.Text)
	if _, err := mustNew(t, Config{Format: "envoy-als"}).Parse([]byte(alsLineOf(first)), &o); err != nil || alone != string(o.Text) {
		t.Errorf("the same entry in other company is another: %v", err)
	}

	var tcp, m protoMessage
	tcp.bytes(1, nil)
	m.bytes(3, tcp)
	for text, want := range map[string]Reject{
		base64.StdEncoding.EncodeToString(m): RejectOther, "": RejectSyntax, "hello": RejectSyntax, "====": RejectSyntax, `{"a":1}`: RejectSyntax,
		alsLineOf(protoMessage("\x0a\x7f")): RejectCut,
	} {
		if _, err := p.Parse([]byte(text), &e); err != want {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	whole, _ := base64.StdEncoding.DecodeString(line)
	for n := 1; n < len(whole); n++ {
		for _, got := range readOTLP(t, p, base64.StdEncoding.EncodeToString(whole[:n]), show) {
			if !strings.HasPrefix(got, "!") && got != want[0] && got != want[0]+" damaged" {
				t.Errorf("cut at %d of %d: %s", n, len(whole), got)
			}
		}
	}
	times := alsEntryOf(alsValues(t, `{"start_ms":null}`))
	bad := binary.AppendUvarint([]byte("\x08"), 1<<63-1)
	var common protoMessage
	common.bytes(5, bad)
	var entry protoMessage
	entry.bytes(1, common)
	if _, err := p.Parse([]byte(alsLineOf(times)), &e); err != nil || e.HasTime {
		t.Errorf("without a start: %v, time %v", err, e.HasTime)
	}
	if _, err := p.Parse([]byte(alsLineOf(entry)), &e); err != RejectBadTime {
		t.Errorf("with a start that is no time: %v", err)
	}
}

// FuzzALS holds the reader of entries to what holds for every record, whatever bytes it
// is given; FuzzParse comes to base64 by chance alone.
func FuzzALS(f *testing.F) {
	for _, more := range []string{`{}`, `{"response_flags":"DC,UAEX","downstream_peer_uri_san":"spiffe://a"}`, `{"access_log_type":"DownstreamStart","stream_id":"s"}`} {
		whole, err := base64.StdEncoding.DecodeString(alsLineOf(alsEntryOf(alsValues(f, more)), alsEntryOf(alsValues(f))))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
		f.Add(whole[:len(whole)/2])
	}
	p := mustNew(f, Config{Format: "envoy-als", Keys: []string{"question_key"}, Extra: []string{"custom_tags.zone"}})
	f.Fuzz(func(t *testing.T, message []byte) {
		p.otlp.copied = make([]byte, 0, 2*len(message)+1024)
		fuzzLine(t, p, []byte(base64.StdEncoding.EncodeToString(message)))
	})
}
