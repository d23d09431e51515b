package accesslog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// throughputOf is a format and what throughput is measured over: lines of 1000 records, all of
// one kind and, where a mark of vary stands in the line, each another. Where a line holds
// many records there are 40 on each, as Envoy and a collector send them.
type throughputOf struct {
	config Config
	line   func(i int) string                     // of record i
	many   func(t testing.TB, from, n int) string // in place of it, of n records
	keyed  bool                                   // each record has another key
}

const throughputBatch = 40

// vary makes of a line with these marks in it the line of record i.
func vary(line string) func(int) string {
	return func(i int) string {
		return strings.NewReplacer(
			"{key}", fmt.Sprintf("qk1.web.a.mjq3k2zz.AAAAAAAAAAAA%04d.BBBBBBBBBBBBBBBBBBBBBB", i),
			"{id}", fmt.Sprint(i*i%9000000), "{status}", []string{"200", "200", "503"}[i%3], "{bytes}", fmt.Sprint(i*37%90000),
			"{ms}", fmt.Sprintf("%03d", i%1000), "{sec}", fmt.Sprintf("%02d", 10+i/1000%50), "{took}", fmt.Sprint(1+i*7%300), "{took3}", fmt.Sprintf("%03d", 1+i*7%300),
			"{agent}", fmt.Sprintf("seat-client/2.%d", i%30), "{port}", fmt.Sprint(30000+i), "{peer}", fmt.Sprintf("10.0.3.%d", i%200),
			"{hex4}", fmt.Sprintf("%04x", i), "{method}", []string{"GET", "POST", "GET", "DELETE"}[i%4], "{attempt}", fmt.Sprint(1+i%3),
		).Replace(line)
	}
}

// throughputSpan is a span as instrumented servers make it.
const throughputSpan = `{"traceId":"5b8efff798038103d269b633813f{hex4}","spanId":"00f067aa0ba9{hex4}","parentSpanId":"eee19b7ec3c1{hex4}","flags":257,"name":"{method} /v1/seats/{id}","kind":2,` +
	`"startTimeUnixNano":"17725329{sec}{ms}000000","endTimeUnixNano":"17725329{sec}{ms}368000","attributes":[` +
	`{"key":"http.request.method","value":{"stringValue":"{method}"}},{"key":"url.path","value":{"stringValue":"/v1/seats/{id}"}},` +
	`{"key":"url.scheme","value":{"stringValue":"http"}},{"key":"server.address","value":{"stringValue":"seats"}},{"key":"server.port","value":{"intValue":"8080"}},` +
	`{"key":"network.peer.address","value":{"stringValue":"{peer}"}},{"key":"network.peer.port","value":{"intValue":"{port}"}},` +
	`{"key":"user_agent.original","value":{"stringValue":"{agent}"}},{"key":"http.route","value":{"stringValue":"/v1/seats/{id}"}},` +
	`{"key":"http.request.header.question-key","value":{"arrayValue":{"values":[{"stringValue":"{key}"}]}}},` +
	`{"key":"http.request.header.x-envoy-attempt-count","value":{"arrayValue":{"values":[{"stringValue":"{attempt}"}]}}},` +
	`{"key":"http.response.status_code","value":{"intValue":"{status}"}}],"status":{}}`

func throughputOTLP(_ testing.TB, from, n int) string {
	spans := make([]string, n)
	for i := range spans {
		spans[i] = vary(throughputSpan)(from + i)
	}
	return `{"resourceSpans":[` + fmt.Sprintf(otlpResourceHead, "seats") + strings.Join(spans, ",") + "]}]}]}"
}

func throughputs(t testing.TB) []throughputOf {
	var all []throughputOf
	add := func(c Config, line string) {
		all = append(all, throughputOf{config: c, line: vary(line), keyed: strings.Contains(line, "{key}")})
	}
	for _, format := range []string{"json", "nginx-json", "envoy-json"} {
		lines := benchLines(format, 1000)
		all = append(all, throughputOf{config: Config{Format: format}, line: func(i int) string { return string(lines[i]) }, keyed: true})
	}
	add(Config{Format: "logfmt"}, `time=2026-03-03T10:15:{sec}.{ms}Z method={method} path=/v1/seats/{id} status={status} bytes_sent={bytes} duration_ms={took} peer={peer} user_agent="{agent}" attempt={attempt} question_key={key}`)
	add(Config{Format: "nginx-combined"}, `{peer} - - [03/Mar/2026:10:15:{sec} +0000] "{method} /v1/seats/{id} HTTP/1.1" {status} {bytes} "-" "{agent}" rt=0.{took3} ua="10.0.4.1:8080" us="{status}" urt="0.{took3}" comp="OK" key="{key}"`)
	add(Config{Format: "ingress-nginx"}, `{peer} - - [03/Mar/2026:10:15:{sec} +0000] "{method} /v1/seats/{id} HTTP/1.1" {status} {bytes} "-" "{agent}" 204 0.{took3} [shop-seats-80] [] 10.0.4.1:8080 {bytes} 0.{took3} {status} 5f1d0c9a77e34b6c8f0b1a2d3c4e{hex4}`)
	add(Config{Format: "envoy-text"}, `[2026-03-03T10:15:{sec}.{ms}Z] "{method} /v1/seats/{id} HTTP/1.1" {status} - 0 {bytes} {took} {took} "-" "{agent}" "33333333-4444-4555-8666-77777777{hex4}" "seats.internal" "10.0.3.21:9000" key="{key}"`)
	add(Config{Format: "istio-text"}, `[2026-03-03T10:15:{sec}.{ms}Z] "{method} /v1/seats/{id} HTTP/1.1" {status} - via_upstream - "-" 0 {bytes} {took} {took} "-" "{agent}" "33333333-4444-4555-8666-77777777{hex4}" "seats.internal" "10.0.3.21:9000" inbound|9000|| 10.0.3.1:{port} 10.0.3.21:9000 10.0.3.9:{port} - default`)
	for _, s := range serverLines {
		add(s.config, s.line)
	}
	served := servedLines(t)
	for _, format := range []string{"caddy-json", "traefik-json", "linkerd-json", "alb"} {
		add(Config{Format: format}, served[format])
	}
	return append(all,
		throughputOf{config: Config{Format: "otlp-json"}, keyed: true, many: throughputOTLP},
		throughputOf{config: Config{Format: "otlp-proto"}, keyed: true, many: func(t testing.TB, from, n int) string { return protoOf(t, throughputOTLP(t, from, n)) }},
		throughputOf{config: Config{Format: "envoy-als"}, keyed: true, many: func(t testing.TB, from, n int) string {
			entries := make([]protoMessage, n)
			for i := range entries {
				values := map[string]any{}
				text := vary(`{"start_ms":1772532942{ms}.5,"duration":{took}.25,"method":"{method}","path":"/v1/seats/{id}","authority":"seats.internal","response_code":{status},"response_flags":"-",` +
					`"response_code_details":"via_upstream","bytes_sent":{bytes},"user_agent":"{agent}","request_id":"6f9619ff-8b86-4011-b42d-00c04fc9{hex4}","upstream_host":"10.0.0.1:80",` +
					`"upstream_local_address":"10.0.0.9:41","upstream_cluster":"seats","upstream_request_attempt_count":1,"downstream_remote_address":"{peer}","route_name":"default",` +
					`"request_headers.question-key":"{key}","request_headers.x-envoy-attempt-count":"{attempt}"}`)(from + i)
				if err := json.Unmarshal([]byte(text), &values); err != nil {
					t.Fatal(err)
				}
				entries[i] = alsEntryOf(values)
			}
			return alsLineOf(entries...)
		}})
}

// throughputReader reads the records of a format again and again.
type throughputReader struct {
	p     *Parser
	lines [][]byte
	bytes float64 // of a record, on average
	at    int
}

func newThroughputReader(t testing.TB, f throughputOf) *throughputReader {
	c := f.config
	c.Keys = []string{"question_key"}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &throughputReader{p: p}
	const records = 1000
	total := 0
	for i := 0; i < records; i++ {
		var line string
		if f.many != nil {
			line = f.many(t, i, throughputBatch)
			i += throughputBatch - 1
		} else {
			line = f.line(i)
		}
		r.lines = append(r.lines, []byte(line))
		total += len(line)
	}
	if n := r.read(t, records); n != records {
		t.Fatalf("%s: %d records, want %d", c.Format, n, records)
	}
	r.bytes = float64(total) / records
	return r
}

// read reads lines until it has so many records, or a few more.
func (r *throughputReader) read(t testing.TB, records int) (n int) {
	var e Entry
	for n < records {
		for rest := r.lines[r.at]; len(rest) > 0; n++ {
			var err error
			if rest, err = r.p.Parse(rest, &e); err != nil {
				t.Fatalf("%s: %v: %.200s", r.p.cfg.Format, err, r.lines[r.at])
			}
		}
		if r.at++; r.at == len(r.lines) {
			r.at = 0
		}
	}
	return n
}

// BenchmarkThroughput compares every format with json, by the records and by the bytes that
// are read in a second: of-json-records and of-json-bytes. The two are read in turn, 400
// records of each, so that whatever else the machine does slows both; the ratio is the
// median of all turns. It fails for a format that reads less than a third of json's records.
// A record has fewer bytes in a text format, and not less to read: bytes are told, and not
// judged.
func BenchmarkThroughput(b *testing.B) {
	const slice = 400
	all := throughputs(b)
	if len(all) != len(formats)-1 { // istio-json is envoy-json
		b.Fatalf("%d formats are measured, of %d", len(all), len(formats))
	}
	like := newThroughputReader(b, all[0])
	for _, f := range all {
		b.Run(f.config.Format, func(b *testing.B) {
			r := newThroughputReader(b, f)
			var ratios, took []float64
			for b.Loop() {
				began := time.Now()
				like.read(b, slice)
				between := time.Now()
				n := r.read(b, slice)
				one, other := float64(between.Sub(began))/slice, float64(time.Since(between))/float64(n)
				ratios, took = append(ratios, one/other), append(took, other)
			}
			ratio := median(ratios)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(took), "ns/record")
			b.ReportMetric(1e3*r.bytes/median(took), "MB/s")
			b.ReportMetric(ratio, "of-json-records")
			b.ReportMetric(ratio*r.bytes/like.bytes, "of-json-bytes")
			if len(ratios) >= 100 && ratio < 1.0/3 {
				b.Errorf("%s: %.2f of json's records a second, want a third", f.config.Format, ratio)
			}
		})
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// What throughput is measured over is read whole: each record has a path, a status and times,
// and its own key wherever the key is varied.
func TestThroughputRecords(t *testing.T) {
	for _, f := range throughputs(t) {
		r := newThroughputReader(t, f)
		keys, records := map[string]bool{}, 0
		for _, line := range r.lines {
			var e Entry
			for rest := line; len(rest) > 0; records++ {
				var err error
				if rest, err = r.p.Parse(rest, &e); err != nil {
					t.Fatalf("%s: %v", f.config.Format, err)
				}
				if len(e.Path) == 0 || e.Status == 0 || !e.HasTime {
					t.Fatalf("%s: %+v", f.config.Format, e)
				}
				keys[string(e.Keys[0])] = true
			}
		}
		if f.keyed && len(keys) != records {
			t.Errorf("%s: %d keys in %d records", f.config.Format, len(keys), records)
		}
	}
}
