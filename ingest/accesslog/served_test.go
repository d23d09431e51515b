package accesslog

import (
	"os"
	"strings"
	"testing"
)

// servedLines are one ordinary record of each format that is a proxy's own.
func servedLines(t testing.TB) map[string]string {
	caddy, err := os.ReadFile("testdata/servers/caddy-2.11.7.log")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(caddy), "\n")
	return map[string]string{
		"caddy-json": first,
		"traefik-json": `{"ClientAddr":"192.0.2.80:50022","ClientHost":"192.0.2.80","ClientPort":"50022","ClientUsername":"-","DownstreamContentSize":11,"DownstreamStatus":200,"Duration":2003000,` +
			`"OriginContentSize":11,"OriginDuration":2002500,"OriginStatus":200,"Overhead":500,"RequestAddr":"seats:80","RequestContentSize":0,"RequestCount":17,"RequestHost":"seats","RequestMethod":"GET",` +
			`"RequestPath":"/v1/seats/7","RequestPort":"80","RequestProtocol":"HTTP/1.1","RequestScheme":"http","RetryAttempts":0,"RouterName":"seats@file","ServiceAddr":"10.0.8.1:80","ServiceName":"seats@file",` +
			`"ServiceURL":"http://10.0.8.1:80","StartLocal":"2026-03-03T10:15:42.000000000Z","StartUTC":"2026-03-03T10:15:42.000000000Z","downstream_Content-Length":"11","entryPointName":"web","level":"info","msg":"",` +
			`"request_Question-Key":"qk1.web.a.mjq3k2zz.AAAAAAAAAAAA0000.BBBBBBBBBBBBBBBBBBBBBB","request_User-Agent":"a/1","time":"2026-03-03T10:15:42Z"}`,
		"linkerd-json": `{"client.addr":"10.1.2.3:4444","client.id":"web.shop.serviceaccount.identity","host":"seats","method":"GET","processing_ns":"40000","request_bytes":"","response_bytes":"11","status":200,` +
			`"timestamp":"2026-03-03T10:15:42.118273645Z","total_ns":"250000000","trace_id":"t-1","uri":"http://seats:80/v1/seats/7","user_agent":"a/1","version":"HTTP/2.0"}`,
		"alb":        albLine,
		"otlp-json":  otlpLine(),
		"otlp-proto": protoOf(t, otlpLine()),
		"envoy-als":  alsLineOf(alsEntryOf(alsValues(t)), alsEntryOf(alsValues(t))),
	}
}

// Whoever names no format gets the right one, and whoever shipped the lines in an
// envelope, too.
func TestDetectServed(t *testing.T) {
	for format, line := range servedLines(t) {
		if format == "envoy-als" {
			continue // its source names it, and nothing else writes such lines
		}
		sample := strings.Repeat(line+"\n", 3)
		if got, err := Detect([]byte(sample)); got != format {
			t.Errorf("%s: detected %q, %v", format, got, err)
		}
		sample = strings.ReplaceAll("2026-03-03T10:15:44Z stdout F "+sample, "\n2026", "\n2026-03-03T10:15:44Z stdout F 2026")
		if got, err := Detect([]byte(sample)); got != format {
			t.Errorf("%s in an envelope: detected %q, %v", format, got, err)
		}
	}
	// A server's first lines are often about itself.
	start := strings.Repeat(`{"level":"info","ts":1796022399.8,"logger":"http.log","msg":"server running"}`+"\n", 20)
	if got, err := Detect([]byte(start + servedLines(t)["caddy-json"] + "\n")); got != "caddy-json" {
		t.Errorf("detected %q, %v", got, err)
	}
}

func TestServedFormatsDoNotAllocate(t *testing.T) {
	for format, line := range servedLines(t) {
		doesNotAllocate(t, Config{Format: format}, line)
	}
}

func BenchmarkParseServed(b *testing.B) {
	for format, line := range servedLines(b) {
		b.Run(format, func(b *testing.B) { benchmarkLine(b, Config{Format: format}, line) })
	}
}

// A sidecar also logs what its own application asks of others, known to the mesh
// or not.
func TestIstioVantage(t *testing.T) {
	for cluster, want := range map[string]bool{
		"inbound|9000||": false, "InboundPassthroughCluster": false, "rank": false,
		"outbound|9000||rank.internal": true, "PassthroughCluster": true, "BlackHoleCluster": true,
	} {
		p := mustNew(t, Config{Format: "istio-json"})
		var e Entry
		line := `{"start_time":"2026-03-03T10:15:42.118Z","method":"GET","path":"/a","response_code":200,"response_flags":"-","upstream_cluster":"` + cluster + `"}`
		if _, err := p.Parse([]byte(line), &e); err != nil || e.Outbound != want {
			t.Errorf("%s: outbound %v, error %v", cluster, e.Outbound, err)
		}
		text := `[2026-03-03T10:15:42.118Z] "GET /a HTTP/1.1" 200 - via_upstream - "-" 0 5 3 2 "-" "agent/1" "id-1" "rank.internal" "10.0.3.21:9000" ` + cluster + ` 10.0.3.1:1 10.0.3.21:9000 10.0.3.9:2 - default`
		if _, err := mustNew(t, Config{Format: "istio-text"}).Parse([]byte(text), &e); err != nil || e.Outbound != want {
			t.Errorf("%s: outbound %v, error %v", cluster, e.Outbound, err)
		}
	}
}
