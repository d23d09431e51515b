package accesslog

import (
	"fmt"
	"testing"
)

// benchLines makes n lines of one format that differ as a log's do.
func benchLines(format string, n int) [][]byte {
	lines := make([][]byte, n)
	for i := range lines {
		sec, ms := 10+i/1000%50, i%1000
		var s string
		switch format {
		case "json":
			s = fmt.Sprintf(`{"time":"2026-03-03T10:15:%02d.%03dZ","time_is":"end","dependency":"inventory","route":"GET /v1/flights/{id}","method":"%s","path":"/v1/flights/%d","authority":"inventory.internal","status":%d,"duration_ms":%d,"bytes_sent":%d,"peer":"mobile-api","user_agent":"node-fetch/3.%d.2 mapi","question_key":"qk1.%s.c.mm8y7bzp.oPeukepV-f-S%04d.ARxznTdtBiEWCQRiQ3AuCw","attempt":%d,"attempt_scope":"hop","client_gone":false,"arrival_id":"00010000%08d"}`,
				sec, ms, []string{"GET", "POST", "GET", "DELETE"}[i%4], i*i%9000000, []int{200, 200, 503}[i%3], i*7%300, i*37%90000, i%30, []string{"web", "partner", "ios"}[i%3], i%10000, 1+i%3, i)
		case "nginx-json":
			addr, status, took := "10.0.4.1:8080", "200", fmt.Sprintf("0.%03d", i*7%300)
			if i%10 == 0 {
				addr, status, took = "10.0.4.1:8080, 10.0.4.2:8080", "502, 200", "0.001, "+took
			}
			s = fmt.Sprintf(`{"msec":"1772532%03d.%03d","remote_addr":"10.0.3.%d","request":"GET /v1/seats/%d HTTP/1.1","status":"%d","bytes_sent":"%d","body_bytes_sent":"%d","request_time":"0.%03d","request_completion":"OK","upstream_addr":"%s","upstream_status":"%s","upstream_response_time":"%s","http_user_agent":"seat-client/2.%d","http_question_key":"qk1.web.a.mjq3k2zz.AAAAAAAAAAAA%04d.BBBBBBBBBBBBBBBBBBBBBB","request_id":"5f1d0c9a77e34b6c8f0b1a2d3c4e%04d"}`,
				sec, ms, i%200, i*i%9000000, 200, 300+i*37%90000, i*37%90000, 1+i*7%300, addr, status, took, i%30, i%10000, i%10000)
		case "envoy-json":
			s = fmt.Sprintf(`{"authority":"rank.internal","bytes_received":%d,"bytes_sent":%d,"connection_termination_details":null,"downstream_local_address":"10.0.3.21:9000","downstream_remote_address":"10.0.9.%d:%d","duration":%d,"method":"POST","path":"/svc.Rank/Get%d","protocol":"HTTP/2","question_key":"qk1.web.a.mjq3k2zz.AAAAAAAAAAAA%04d.BBBBBBBBBBBBBBBBBBBBBB","request_id":"22222222-3333-4444-8555-66666666%04d","requested_server_name":"outbound_.9000_._.rank.internal","response_code":%d,"response_code_details":"via_upstream","response_flags":"-","route_name":"default","start_time":"2026-03-03T10:15:%02d.%03dZ","upstream_cluster":"inbound|9000||","upstream_host":"10.0.3.21:9000","upstream_local_address":"127.0.0.6:%d","upstream_service_time":"%d","upstream_transport_failure_reason":null,"user_agent":"grpc-go/1.%d","x_forwarded_for":null}`,
				i*13%3000, i*37%90000, i%200, 30000+i, i*7%500, i*i%90000, i%10000, i%10000, []int{200, 200, 503}[i%3], sec, ms, 40000+i, i*7%500, i%70)
		}
		lines[i] = []byte(s)
	}
	return lines
}

func BenchmarkParse(b *testing.B) {
	for _, format := range []string{"json", "nginx-json", "envoy-json"} {
		b.Run(format, func(b *testing.B) {
			lines := benchLines(format, 1000)
			p, err := New(Config{Format: format, Keys: []string{"question_key"}})
			if err != nil {
				b.Fatal(err)
			}
			var e Entry
			total := 0
			for _, l := range lines {
				total += len(l)
				if _, err := p.Parse(l, &e); err != nil {
					b.Fatalf("parse: %v", err)
				}
			}
			b.SetBytes(int64(total / len(lines)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := p.Parse(lines[i], &e); err != nil {
					b.Fatal(err)
				}
				if i++; i == len(lines) {
					i = 0
				}
			}
		})
	}
}

// benchmarkLine reads one line again and again, all of its records.
func benchmarkLine(b *testing.B, c Config, line string) {
	c.Keys = []string{"question_key"}
	p, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	var e Entry
	records, text := 0, []byte(line)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		for rest := text; len(rest) > 0; {
			if rest, err = p.Parse(rest, &e); err != nil && err != RejectOther {
				b.Fatal(err)
			}
			records++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
}

// doesNotAllocate reads one line again and again, and gives the key of its last
// record.
func doesNotAllocate(t *testing.T, c Config, line string) (key string) {
	t.Helper()
	c.Keys, c.Extra = []string{"question_key"}, []string{"path"}
	p := mustNew(t, c)
	var e Entry
	text := []byte(line)
	if n := testing.AllocsPerRun(100, func() {
		for rest := text; len(rest) > 0; {
			var err error
			if rest, err = p.Parse(rest, &e); err != nil && err != RejectOther {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%s: %v allocations a line, want none", c.Format, n)
	}
	return string(e.Keys[0])
}
