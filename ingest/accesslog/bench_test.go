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
			s = fmt.Sprintf(`{"time":"2026-03-03T10:15:%02d.%03dZ","dependency":"inventory","route":"GET /seats/{id}","method":"GET","path":"/v1/seats/%d?show=7","authority":"inventory.internal","status":%d,"duration_ms":%d.%d,"bytes_sent":%d,"peer":"10.0.3.%d","user_agent":"seat-client/2.%d","question_key":"qk1.web.a.mjq3k2zz.AAAAAAAAAAAA%04d.BBBBBBBBBBBBBBBBBBBBBB","attempt":%d,"client_gone":false}`,
				sec, ms, i, []int{200, 200, 503}[i%3], i%300, i%10, i*37%90000, i%200, i%9, i%10000, 1+i%3)
		case "nginx-json":
			s = fmt.Sprintf(`{"msec":"1772532%03d.%03d","remote_addr":"10.0.3.%d","request":"GET /v1/seats/%d HTTP/1.1","status":"%d","bytes_sent":"%d","body_bytes_sent":"%d","request_time":"0.%03d","request_completion":"OK","upstream_addr":"10.0.4.1:80, 10.0.4.2:80","upstream_status":"502, 200","upstream_response_time":"0.001, 0.0%02d","http_user_agent":"seat-client/2.%d","http_question_key":"qk1.web.a.mjq3k2zz.AAAAAAAAAAAA%04d.BBBBBBBBBBBBBBBBBBBBBB","request_id":"5f1d0c9a77e34b6c8f0b1a2d3c4e%04d"}`,
				sec, ms, i%200, i, 200, 100+i%90000, i%90000, i%300, i%99, i%9, i%10000, i%10000)
		case "envoy-json":
			s = fmt.Sprintf(`{"start_time":"2026-03-03T10:15:%02d.%03dZ","method":"POST","path":"/svc.Rank/Get%d","protocol":"HTTP/2","response_code":%d,"response_flags":"-","response_code_details":"via_upstream","bytes_received":12,"bytes_sent":%d,"duration":%d,"upstream_service_time":"11","request_id":"22222222-3333-4444-8555-66666666%04d","authority":"rank.internal","upstream_host":"10.0.3.21:9000","upstream_cluster":"inbound|9000||","question_key":"qk1.web.a.mjq3k2zz.AAAAAAAAAAAA%04d.BBBBBBBBBBBBBBBBBBBBBB"}`,
				sec, ms, i, 200, i*37%90000, i%500, i%10000, i%10000)
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
