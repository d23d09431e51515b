package accesslog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func mustNew(t testing.TB, c Config) *Parser {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatalf("new parser: %v", err)
	}
	return p
}

// summary prints what a test looks at, so that a table can state it in one line.
func summary(e *Entry) string {
	var b strings.Builder
	if e.HasTime {
		const layout = "15:04:05.000000"
		fmt.Fprintf(&b, "%s..%s ±%dms ", time.Unix(0, e.Start).UTC().Format(layout),
			time.Unix(0, e.End).UTC().Format(layout), e.Uncertainty/1e6)
	}
	fmt.Fprintf(&b, "%s %s %d %s b=%d", e.Method, e.Path, e.Status, e.StatusRaw, e.BytesSent)
	for _, k := range e.Keys {
		if k == nil {
			b.WriteString(" key=nil")
		} else {
			fmt.Fprintf(&b, " key=<%s>", k)
		}
	}
	fmt.Fprintf(&b, " %v/%v/%v/%v", e.Gone, e.Delivered, e.Work, e.Departure)
	if e.Visible {
		b.WriteString(" visible")
	}
	if e.Damaged != 0 {
		fmt.Fprintf(&b, " damaged=%d", e.Damaged)
	}
	if n := e.Notes.Strings(); n != nil {
		fmt.Fprintf(&b, " %v", n)
	}
	return b.String()
}

func TestParseJSON(t *testing.T) {
	tests := []struct{ name, format, line, want string }{
		{"canonical", "json",
			`{"time":"2026-03-03T10:15:42.118Z","method":"GET","path":"/a","status":200,"duration_ms":12.5,"bytes_sent":7,"question_key":"k","client_gone":true}`,
			`10:15:42.118000..10:15:42.130500 ±1ms GET /a 200 200 b=7 key=<k> yes/partial/yes/during_response visible`},
		{"end stamp", "json",
			`{"time":"2026-03-03T10:15:42Z","time_is":"end","path":"/a","status":200,"duration_s":2}`,
			`10:15:40.000000..10:15:42.000000 ±1000ms  /a 200 200 b=-1 key=nil no_record/unknown/unknown/not_recorded`},
		{"gone before status", "json",
			`{"time":1772532942118,"status":0,"bytes_sent":0,"client_gone":true,"path":"/"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms  / 0 0 b=0 key=nil yes/none/unknown/before_response visible`},
		{"gone with an answer", "json",
			`{"time":1772532942.118,"status":503,"bytes_sent":0,"client_gone":"1","path":"/"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms  / 503 503 b=0 key=nil yes/none/yes/undelivered_answer visible`},
		{"gone somewhere", "json",
			`{"time":1772532942.118,"status":200,"client_gone":true,"path":"/"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms  / 200 200 b=-1 key=nil yes/unknown/unknown/unknown_point visible`},
		{"departure named", "json",
			`{"time":1772532942.118,"status":200,"departure":"undelivered_answer","path":"/"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms  / 200 200 b=-1 key=nil yes/none/yes/undelivered_answer visible`},
		{"499 alone decides nothing", "json",
			`{"time":1772532942.118,"status":499,"bytes_sent":0,"path":"/"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms  / 499 499 b=0 key=nil no_record/unknown/unknown/not_recorded`},
		{"not gone", "json",
			`{"time":1772532942.118,"status":200,"client_gone":false,"path":"/"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms  / 200 200 b=-1 key=nil no/unknown/unknown/not_recorded visible`},
		{"blanks, nested, arrays", "json",
			` { "time" : "2026-03-03 10:15:42,5+01:00" , "http" : { "request" : { "method" : "PUT" } } , "status" : "204", "request":{"headers":{"Question-Key":["qq","r"]},"x":[{"a":"}"}]}, "url":"https://h/x?y=1" } `,
			`09:15:42.500000..09:15:42.500000 ±100ms PUT /x?y=1 204 204 b=-1 key=<qq, r> no_record/unknown/unknown/not_recorded`},
		{"C05", "nginx-json",
			`{"t":"2026-03-03T10:15:42+00:00","ua":"Agent \x22beta\x22 caf\xC3\xA9","key":"\x228e03978e-40d5\x22","st":200,"rt":0.012}`,
			`10:15:41.988000..10:15:42.000000 ±1000ms   200 200 b=-1 key=<"8e03978e-40d5"> no_record/unknown/unknown/not_recorded [x_escape_repaired]`},
		{"C06 dash", "nginx-json",
			`{"t":"2026-03-03T10:15:43+00:00","uri":"/health","st":200,"urt":-,"key":""}`,
			`10:15:43.000000..10:15:43.000000 ±1000ms  /health 200 200 b=-1 key=<> no_record/unknown/no/not_recorded [bare_dash_to_null]`},
		{"C06 prefix", "nginx-json",
			`escape=json{"t":"2026-03-03T10:15:44+00:00","uri":"/ask","st":200,"urt":,"key":"q-19"}`,
			`10:15:44.000000..10:15:44.000000 ±1000ms  /ask 200 200 b=-1 key=<q-19> no_record/unknown/unknown/not_recorded [empty_value_to_null prefix_skipped]`},
		{"bare list", "nginx-json",
			`{"msec":1772532942.118,"request":"GET /x HTTP/1.1","status":200,"urt":0.001, 0.002,"us":"502, 200"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms GET /x 200 200 b=-1 key=nil no_record/unknown/yes/not_recorded [several_upstream_tries]`},
		{"nginx 499", "nginx-json",
			`{"time_local":"03/Mar/2026:10:15:42 +0100","msec":"1772532942.118","request_time":"0.205","status":"499","bytes_sent":"0","request_completion":"","upstream_status":"-","upstream_addr":"127.0.0.1:9101","http_question_key":"k"}`,
			`10:15:41.913000..10:15:42.118000 ±1ms   499 499 b=0 key=<k> yes/none/unknown/before_response visible`},
		{"C09 typed", "istio-json",
			`{"start_time":"2026-03-03T10:15:42.118Z","method":"POST","path":"/svc.Rank/Get","protocol":"HTTP/2","response_code":0,"response_flags":"DR","response_code_details":"http2.remote_reset","bytes_received":12,"bytes_sent":0,"duration":501,"upstream_service_time":null,"request_id":"22222222-3333-4444-8555-666666666666","authority":"rank.internal","upstream_host":"10.0.3.21:9000","upstream_cluster":"inbound|9000||"}`,
			`10:15:42.118000..10:15:42.619000 ±1ms POST /svc.Rank/Get 0 0 b=0 key=nil yes/none/unknown/before_response visible`},
		{"C09 strings", "envoy-json",
			`{"start_time":"2026-03-03T10:15:42.118Z","method":"POST","path":"/svc.Rank/Get","protocol":"HTTP/2","response_code":"0","response_flags":"DR","bytes_received":"12","bytes_sent":"0","duration":"501","upstream_service_time":"-","request_id":"22222222-3333-4444-8555-666666666666","authority":"rank.internal","upstream_host":"10.0.3.21:9000","upstream_cluster":"inbound|9000||"}`,
			`10:15:42.118000..10:15:42.619000 ±1ms POST /svc.Rank/Get 0 0 b=0 key=nil yes/none/unknown/before_response visible`},
		{"C25", "json", "\xEF\xBB\xBF" + `{"t":"2026-03-03T10:15:42.118Z","key":"q-25","st":200}`,
			`10:15:42.118000..10:15:42.118000 ±1ms   200 200 b=-1 key=<q-25> no_record/unknown/unknown/not_recorded [bom_removed]`},
		{"C27", "json",
			`{"t":"2026-03-03T10:15:42.118Z","key":"q-27","pa{"t":"2026-03-03T10:15:42.119Z","key":"q-28","st":200}`,
			`10:15:42.119000..10:15:42.119000 ±1ms   200 200 b=-1 key=<q-28> no_record/unknown/unknown/not_recorded damaged=1 [resynchronised]`},
		{"C28", "json",
			`{"level":"info","msg":"{\"t\":\"2026-03-03T10:15:42.118Z\",\"key\":\"q-\\\"29\\\"\",\"st\":499}"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms   499 499 b=-1 key=<q-"29"> no_record/unknown/unknown/not_recorded [unwrapped]`},
		{"C29 late", "json",
			`{"level":"info","msg":"finished call","protocol":"grpc","grpc.component":"server","grpc.service":"rank.Rank","grpc.method":"Get","grpc.method_type":"unary","peer.address":"192.0.2.70:3001","grpc.start_time":"2026-03-03T10:15:42Z","grpc.request.deadline":"2026-03-03T10:15:43Z","grpc.code":"OK","grpc.time_ms":"1600.5"}`,
			`10:15:42.000000..10:15:43.600500 ±1000ms  /rank.Rank/Get 0  b=-1 key=nil likely/unknown/yes/undelivered_answer visible [low_confidence departure_inferred_from_deadline]`},
		{"C29 late, and told", "json",
			`{"msg":"finished call","grpc.service":"rank.Rank","grpc.method":"Get","grpc.start_time":"2026-03-03T10:15:42Z","grpc.request.deadline":"2026-03-03T10:15:43Z","grpc.code":"OK","grpc.time_ms":"3600.5","client_gone":false}`,
			`10:15:42.000000..10:15:45.600500 ±1000ms  /rank.Rank/Get 0  b=-1 key=nil no/unknown/yes/not_recorded visible`},
		{"C29 cancelled", "json",
			`{"level":"info","msg":"finished call","protocol":"grpc","grpc.component":"server","grpc.service":"rank.Rank","grpc.method":"Get","grpc.method_type":"unary","peer.address":"192.0.2.70:3001","grpc.start_time":"2026-03-03T10:15:44Z","grpc.request.deadline":"2026-03-03T10:15:45Z","grpc.code":"Canceled","grpc.time_ms":"400"}`,
			`10:15:44.000000..10:15:44.400000 ±1000ms  /rank.Rank/Get 0  b=-1 key=nil likely/unknown/unknown/unknown_point visible`},
		{"L20", "json",
			`{"bytes":10,"ctx":"canceled","dur_ms":600,"panic":"\u003cnil\u003e","proto":"HTTP/1.1","status":200,"uri":"/slow?ms=600\u0026case=fin","write_err":""}`,
			` /slow?ms=600&case=fin 200 200 b=10 key=nil likely/unknown/yes/unknown_point visible`},
		{"L22", "json",
			`{"bytes":0,"ctx":"canceled","dur_ms":601,"panic":"\u003cnil\u003e","proto":"HTTP/2.0","status":200,"uri":"/slow?ms=600\u0026size=2000000\u0026case=h2big","write_err":"client disconnected"}`,
			` /slow?ms=600&size=2000000&case=h2big 200 200 b=0 key=nil yes/none/yes/undelivered_answer visible`},
		{"docker", "json",
			`{"log":"{\"t\":\"2026-03-03T10:15:42.118Z\",\"key\":\"q-7731\",\"st\":200}\n","stream":"stdout","time":"2026-03-03T10:15:43.000000001Z"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms   200 200 b=-1 key=<q-7731> no_record/unknown/unknown/not_recorded [unwrapped]`},
		{"cri", "json",
			`2026-03-03T10:15:44.000000001Z stdout F {"t":"2026-03-03T10:15:43.900Z","key":"q-80","st":200}`,
			`10:15:43.900000..10:15:43.900000 ±1ms   200 200 b=-1 key=<q-80> no_record/unknown/unknown/not_recorded [unwrapped]`},
		{"filebeat around docker", "json",
			`{"@timestamp":"2026-03-03T10:15:50Z","host":{"name":"n1"},"log":{"offset":1},"message":"{\"log\":\"{\\\"t\\\":\\\"2026-03-03T10:15:43.900Z\\\",\\\"key\\\":\\\"q\\\",\\\"st\\\":200}\\n\",\"stream\":\"stdout\",\"time\":\"2026-03-03T10:15:44Z\"}"}`,
			`10:15:43.900000..10:15:43.900000 ±1ms   200 200 b=-1 key=<q> no_record/unknown/unknown/not_recorded [unwrapped]`},
		{"text in docker", "logfmt",
			`{"log":"t=2026-03-03T10:15:42+00:00 req=\"GET /item/9 HTTP/1.1\" st=200 bytes=812 rt=0.041 comp=\"OK\" ua=\"10.0.4.1:80, 10.0.4.2:80 : 10.0.5.1:80\" us=\"502, 502 : 200\" urt=\"0.002, 0.003 : 0.036\"\n","stream":"stdout","time":"2026-03-03T10:15:43.000000001Z"}`,
			`10:15:41.959000..10:15:42.000000 ±1000ms GET /item/9 200 200 b=812 key=nil no_record/all_handed_over/yes/not_recorded visible [unwrapped several_upstream_tries]`},
		{"member twice", "json",
			`{"t":"2026-03-03T10:15:42.118Z","key":"a","key":"b","st":200}`,
			`10:15:42.118000..10:15:42.118000 ±1ms   200 200 b=-1 key=<a> no_record/unknown/unknown/not_recorded [duplicate_member]`},
		{"canonical before alias", "json",
			`{"t":"2026-03-03T10:15:42.118Z","key":"a","question_key":"b","st":200}`,
			`10:15:42.118000..10:15:42.118000 ±1ms   200 200 b=-1 key=<b> no_record/unknown/unknown/not_recorded`},
		{"bytes that are no text", "json",
			"{\"t\":\"2026-03-03T10:15:42.118Z\",\"key\":\"a\xff\xfe\",\"st\":200}",
			"10:15:42.118000..10:15:42.118000 ±1ms   200 200 b=-1 key=<a\xff\xfe> no_record/unknown/unknown/not_recorded [invalid_utf8]"},
		{"bad duration", "json", `{"t":"2026-03-03T10:15:42.118Z","duration_ms":-3,"st":200}`,
			`10:15:42.118000..10:15:42.118000 ±1ms   200 200 b=-1 key=nil no_record/unknown/unknown/not_recorded [bad_duration]`},
		{"hand-typed quote", "envoy-json",
			`{"start_time":"2026-03-03T10:15:42.118Z","response_code":"200","user_agent":"a"b","question_key":"k","response_flags":"-"}`,
			`10:15:42.118000..10:15:42.118000 ±1ms   200 200 b=-1 key=<k> no_record/unknown/yes/not_recorded visible [quote_in_header]`},
		{"NULs before", "json", "\x00\x00" + `{"t":"2026-03-03T10:15:42.118Z","st":200}`,
			`10:15:42.118000..10:15:42.118000 ±1ms   200 200 b=-1 key=nil no_record/unknown/unknown/not_recorded [leading_nul_removed]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustNew(t, Config{Format: tt.format, Keys: []string{"question_key"}})
			for range 2 { // cold and warm
				var e Entry
				rest, err := p.Parse([]byte(tt.line), &e)
				if err != nil || len(rest) != 0 {
					t.Fatalf("rest %q, error %v", rest, err)
				}
				if got := summary(&e); got != tt.want {
					t.Errorf("\n got %s\nwant %s", got, tt.want)
				}
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	const head = `{"t":"2026-03-03T10:15:42.118Z","key":"q","st":200`
	tests := []struct {
		name, format, line string
		want               error
	}{
		{"empty", "json", "", RejectSyntax},
		{"text", "json", "hello world", RejectSyntax},
		{"brace in text", "json", "warn {x}", RejectSyntax},
		{"cut in string", "json", head[:30], RejectCut},
		{"cut in number", "json", head, RejectCut},
		{"cut after comma", "json", head + ",", RejectCut},
		{"cut in name", "json", head + `,"pa`, RejectCut},
		{"cut in object", "json", head + `,"a":{"t":"x"`, RejectCut},
		{"tail of a record", "json", `31","st":200}`, RejectSyntax},
		{"binary", "json", "\x16\x03\x01\x02", RejectBinary},
		{"no stamp", "json", `{"key":"k"}`, RejectNoTime},
		{"no request", "json", `{"time":"2026-03-03T10:15:42Z","level":"info","event":"gc"}`, RejectSyntax},
		{"app log", "json", `{"time":"2026-03-03T10:15:42Z","level":"info","msg":"listening"}`, RejectSyntax},
		{"bad stamp", "json", `{"time":"2026-02-30T10:15:42Z","status":200}`, RejectBadTime},
		{"year 1900", "json", `{"time":"1900-02-20T10:15:42Z","status":200}`, RejectBadTime},
		{"epoch zero", "json", `{"time":0,"status":200}`, RejectBadTime},
		{"stderr of a container", "json", `2026-03-03T10:15:44.000000002Z stderr F warn: slow`, RejectOther},
		{"stderr of a docker container", "json", `{"log":"warn: slow\n","stream":"stderr","time":"2026-03-03T10:15:44Z"}`, RejectOther},
		{"stderr, text format", "envoy-text", `{"log":"warn: slow\n","stream":"stderr","time":"2026-03-03T10:15:44Z"}`, RejectOther},
		{"stdout, no record", "json", `2026-03-03T10:15:44.000000002Z stdout F warn: slow`, RejectSyntax},
		{"part nobody joined", "json", `2026-03-03T10:15:44Z stdout P {"t":"2026-03-03T10:15:43.900Z","key":"q-8`, RejectCut},
		{"too deep", "json", strings.Repeat(`2026-03-03T10:15:44Z stdout F `, 6) + head + "}", RejectSyntax},
		{"unclosed braces", "json", strings.Repeat(`{"a":`, 10000), RejectCut},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustNew(t, Config{Format: tt.format, Keys: []string{"question_key"}})
			var e Entry
			if _, err := p.Parse([]byte(tt.line), &e); err != tt.want {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// A line with several records gives each of them once, wherever it was wrapped.
func TestParseRest(t *testing.T) {
	const a = `{"t":"2026-03-03T10:15:42.118Z","key":"a","st":200}`
	const b = `{"t":"2026-03-03T10:15:43.118Z","key":"b","st":200}`
	wrap := func(s string) string {
		return `{"log":"` + strings.ReplaceAll(s, `"`, `\"`) + `","stream":"stdout","time":"2026-03-03T10:15:44Z"}`
	}
	tests := []struct{ name, line, want string }{
		{"glued", a + b, "a b"},
		{"three", a + b + a, "a b a"},
		{"blank between", a + " " + b, "a b"},
		{"comma", a + ",", "a"},
		{"array", "[" + a + "," + b + "]", "a b"},
		{"garbage after", a + `","st":200}`, "a !syntax"},
		{"inside an envelope", wrap(a + b), "a b"},
		{"envelopes glued", wrap(a) + wrap(b), "a b"},
		{"both", wrap(a+b) + wrap(b+a), "a b b a"},
		{"cut, then two", a[:30] + b + a, "b a"},
		{"cut inside a value, by an object", a[:40] + `{"x":1}` + b, "b"},
		{"cut before a value", `{"t":"2026-03-03T10:15:42.118Z","key":` + b, "b"},
		{"two cut ones", a[:30] + a[:20] + b, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustNew(t, Config{Format: "json", Keys: []string{"question_key"}})
			var got []string
			rest := []byte(tt.line)
			for n := 0; n == 0 || len(rest) != 0 && n < 10; n++ {
				var e Entry
				var err error
				if rest, err = p.Parse(rest, &e); err != nil {
					got = append(got, "!"+err.Error())
					continue
				}
				got = append(got, string(e.Keys[0]))
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got %s, want %s", s, tt.want)
			}
		})
	}
}

func TestDamagedCount(t *testing.T) {
	const a = `{"t":"2026-03-03T10:15:42.118Z","key":"a","st":200}`
	p := mustNew(t, Config{Format: "json"})
	for line, want := range map[string]int{a: 0, a[:30] + a: 1, a[:30] + a[:20] + a: 2, `x":1}` + a: 1} {
		var e Entry
		if _, err := p.Parse([]byte(line), &e); err != nil || e.Damaged != want {
			t.Errorf("%s: damaged %d, error %v, want %d", line, e.Damaged, err, want)
		}
	}
}

func TestNewErrors(t *testing.T) {
	tests := []struct {
		c    Config
		want string
	}{
		{Config{Format: "nginx_json"}, `did you mean "nginx-json"`},
		{Config{Format: "json", Fields: map[string]string{"quesion_key": "k"}}, `unknown field "quesion_key", did you mean "question_key"`},
		{Config{Format: "json", Fields: map[string]string{"status": ""}}, `map field "status"`},
	}
	for _, tt := range tests {
		if _, err := New(tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

func TestConfiguredFields(t *testing.T) {
	p := mustNew(t, Config{
		Format: "json",
		Fields: map[string]string{"question_key": "request.headers.Idempotency-Key", "duration": "took_s", "deadline": "http_grpc_timeout",
			"peer": "who", "time": "end_time"},
		Keys:  []string{"question_key", "my_id", "x-request-id", "X-Tenant"},
		Extra: []string{"shop", "status"},
		Trace: true,
	})
	line := `{"end_time":"2026-03-03T10:15:42Z","time":"1999","request":{"headers":{"Idempotency-Key":["i-1"],"X-Tenant":["t"]}},"took_s":1.5,"took_ms":3,` +
		`"http_grpc_timeout":"1500m","who":"w","my_id":"m","http_x_request_id":"x","shop":"s","status":"200"}`
	for range 2 {
		var e Entry
		if _, err := p.Parse([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %s %s %s|%s %s|%s|%d|%d", e.Keys[0], e.Keys[1], e.Keys[2], e.Keys[3], e.Extra[0], e.Extra[1], e.Peer, e.Duration, e.Deadline-e.Start)
		if want := "i-1 m x t|s 200|w|1500000000|1500000000"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for k, v := range map[string]string{"question_key": "request.headers.Idempotency-Key", "duration": "took_s", "x_request_id": "http_x_request_id", "time": "end_time", "my_id": "my_id"} {
			if e.Sources[k] != v {
				t.Errorf("source of %s: got %q, want %q", k, e.Sources[k], v)
			}
		}
	}
}

// A record's members may come in any order and go missing; the guess of what
// follows must never change what is read.
func TestMemberOrder(t *testing.T) {
	members := []string{`"t":"2026-03-03T10:15:42.118Z"`, `"key":"k"`, `"st":200`, `"uri":"/a"`, `"method":"GET"`, `"other":{"st":500}`, `"x":[1,{"st":1}]`}
	p := mustNew(t, Config{Format: "json", Keys: []string{"question_key"}})
	for turn := range 200 {
		var line []string
		for i := range members {
			line = append(line, members[(i*(1+turn%6)+turn)%len(members)])
		}
		seen := map[string]bool{}
		line = append(line, members...)
		var unique []string
		for _, m := range line {
			if !seen[m] {
				seen[m] = true
				unique = append(unique, m)
			}
		}
		var e Entry
		if _, err := p.Parse([]byte("{"+strings.Join(unique, ",")+"}"), &e); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s %s %d", e.Keys[0], e.Path, e.Method, e.Status); got != "k /a GET 200" {
			t.Fatalf("turn %d: got %s", turn, got)
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	for _, format := range []string{"json", "nginx-json", "envoy-json"} {
		p := mustNew(t, Config{Format: format, Keys: []string{"question_key"}, Extra: []string{"path"}})
		lines := benchLines(format, 50)
		var e Entry
		run := func() {
			for _, l := range lines {
				if _, err := p.Parse(l, &e); err != nil {
					t.Fatal(err)
				}
			}
		}
		run()
		run()
		if n := testing.AllocsPerRun(5, run); n != 0 {
			t.Errorf("%s: %v allocations", format, n)
		}
	}
}

func TestJoiner(t *testing.T) {
	lines := []string{
		`{"log":"{\"t\":\"2026-03-03T10:15:42.118Z\",\"key\":\"q-77","stream":"stdout","time":"2026-03-03T10:15:43.000000001Z"}`,
		`{"log":"31\",\"st\":200}\n","stream":"stdout","time":"2026-03-03T10:15:43.000000001Z"}`,
		`2026-03-03T10:15:44.000000001Z stdout P {"t":"2026-03-03T10:15:43.900Z","key":"q-8`,
		`2026-03-03T10:15:44.000000002Z stderr F warn: slow`,
		`no line of a container`,
		`2026-03-03T10:15:44.000000003Z stdout F 0","st":200}`,
		`plain line`,
		`2026-03-03T10:15:44.000000003Z stderr P {"t":"2026-`,
	}
	var j Joiner
	if !j.Needed([]byte(strings.Join(lines, "\n"))) || j.Needed([]byte("{\"t\":1}\n1.2.3.4 - - x\n")) {
		t.Error("needed is wrong")
	}
	p := mustNew(t, Config{Format: "json", Keys: []string{"question_key"}})
	var got, where []string
	for i, l := range lines {
		full, from, parts, ok := j.LineAt([]byte(l), Place{Line: int64(i + 1)})
		if !ok {
			continue
		}
		where = append(where, fmt.Sprintf("%d of %d", from.Line, parts))
		var e Entry
		if _, err := p.Parse(full, &e); err != nil {
			got = append(got, "!"+err.Error())
			continue
		}
		got = append(got, fmt.Sprintf("%s %d", e.Keys[0], e.Status))
	}
	if s := strings.Join(got, ", "); s != "q-7731 200, !other_stream, !syntax, q-80 200, !syntax" {
		t.Errorf("got %s", s)
	}
	if s := strings.Join(where, ", "); s != "1 of 2, 4 of 1, 5 of 1, 3 of 2, 7 of 1" {
		t.Errorf("the lines begin at %s", s)
	}
	if p := j.Pending(); len(p) != 1 || p[0].Line != 8 {
		t.Errorf("pending %v, want line 8", p)
	}
}

func TestJoinerIsBounded(t *testing.T) {
	var j Joiner
	part := []byte("2026-03-03T10:15:44Z stdout P " + strings.Repeat("x", 16<<10))
	for range MaxLine/(16<<10) + 10 {
		if _, ok := j.Line(part); ok {
			t.Fatal("a part was complete")
		}
	}
	if _, ok := j.Line([]byte("2026-03-03T10:15:44Z stdout F end")); ok || j.Dropped() != 1 || len(j.Pending()) != 0 {
		t.Errorf("complete %v, dropped %d, pending %d", ok, j.Dropped(), len(j.Pending()))
	}
	if cap(j.streams[0].buf) > 2*MaxLine {
		t.Errorf("holds %d bytes", cap(j.streams[0].buf))
	}
}

func TestDetect(t *testing.T) {
	tests := []struct{ name, sample, want string }{
		{"json", string(benchLines("json", 1)[0]) + "\n", "json"},
		{"json, any names", `{"t":"2026-03-03T10:15:42.118Z","key":"q-25","st":200}` + "\n", "json"},
		{"nginx", string(benchLines("nginx-json", 1)[0]), "nginx-json"},
		{"nginx by its escapes", `{"t":"2026-03-03T10:15:42+00:00","ua":"Agent \x22beta\x22","st":200,"rt":0.012}`, "nginx-json"},
		{"envoy", `{"start_time":"2026-03-03T10:15:42.118Z","method":"GET","path":"/a","response_code":200,"response_flags":"-","upstream_cluster":"rank"}`, "envoy-json"},
		{"istio", string(benchLines("envoy-json", 1)[0]), "istio-json"},
		{"istio in cri", "2026-03-03T10:15:44Z stdout F " + string(benchLines("envoy-json", 1)[0]) + "\n2026-03-03T10:15:44Z stderr F [info] up\n2026-03-03T10:15:44Z stderr F [info] up\n", "istio-json"},
		{"envoy text", `[2026-03-03T10:15:42.118Z] "GET /export HTTP/1.1" 200 DC 0 734003 2150 12 "-" "dl/1" "11111111-2222-4333-8444-555555555555" "files.internal" "10.0.3.31:9000"` + "\n", "envoy-text"},
		{"ingress", `192.0.2.41 - - [03/Mar/2026:10:15:42 +0000] "GET /v1/quote?id=7 HTTP/1.1" 499 0 "-" "quoter/2.1" 318 12.480 [shop-quote-80] [] 10.0.3.11:8080, 10.0.3.12:8080, 10.0.3.13:8080 0, 0, 0 5.000, 5.001, 2.479 504, 504, - 5f1d0c9a77e34b6c8f0b1a2d3c4e5f60`, "ingress-nginx"},
		{"combined", `192.0.2.41 - - [03/Mar/2026:10:15:42 +0000] "GET /v1/quote?id=7 HTTP/1.1" 200 0 "-" "quoter/2.1"`, "nginx-combined"},
		{"haproxy", "<134>Mar  3 10:15:42 lb1 haproxy[811]: " + haproxyLine(), "haproxy"},
		{"traefik", traefikLine, "traefik-clf"},
		{"iis", iisHead + "\n" + iisLine + "\n", "iis"},
		{"iis with other columns", "#Fields: date time cs-method cs-uri-stem sc-status time-taken\n2026-03-03 10:15:42 GET /a 200 41\n", "iis"},
		{"haproxy with pairs", haproxyLine() + ` abortonclose=on question_key="q-1" time="2026-03-03T10:15:42Z" status=200`, "haproxy"},
		{"logfmt", `t=2026-03-03T10:15:42+00:00 req="GET /item/9 HTTP/1.1" st=200 bytes=812 rt=0.041`, "logfmt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := Detect([]byte(tt.sample)); got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	for sample, want := range map[string]string{"\xFF\xFEx\x00": "UTF-16", "x\x00y\x00": "UTF-16", "": "no line", "hello\nworld\n": "tried json"} {
		if _, err := Detect([]byte(sample)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", sample, err, want)
		}
	}
}

// A virtual host before the client's address is no peer: such lines are nobody's
// that Detect knows, and it says what to set.
func TestVirtualHostInFront(t *testing.T) {
	const rest = ` - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 257`
	for _, head := range []string{"example.com:80 192.0.2.1", "example.com:443 2001:db8::1", "192.0.2.9:80 192.0.2.1", "example.com:80 client.example.net", "example.com 192.0.2.1", "example.com:80 192.0.2.1 joe", "example.com:80 2001:db8::1 joe"} {
		for _, tail := range []string{` "-" "curl/8"`, ``, ` "-" "curl/8" 318 12.480 [shop-quote-80] [] 10.0.3.11:8080 0 5.000 504 5f1d0c9a77e34b6c8f0b1a2d3c4e5f60`} {
			line := head + rest + tail
			for _, format := range []string{"nginx-combined", "ingress-nginx"} {
				var e Entry
				if _, err := mustNew(t, Config{Format: format}).Parse([]byte(line), &e); err != RejectSyntax {
					t.Errorf("%s took %s: %v, peer %q", format, line, err, e.Peer)
				}
			}
			if got, err := Detect([]byte(line + "\n" + line + "\n")); err == nil {
				t.Errorf("%s: detected as %s", line, got)
			} else if tail == ` "-" "curl/8"` && head[:11] == "example.com" && head[11] == ':' && !strings.Contains(err.Error(), "pattern: vhost_combined") {
				t.Errorf("%s: %v does not say what to set", line, err)
			}
		}
	}
	for _, head := range []string{"192.0.2.1 - -", "2001:db8::1 - a b", "unix: - -", "192.0.2.1, 198.51.100.7 - -", "192.0.2.1 example.com - -", "client.example.net - -", "client.example.net", "- - -", " a - -", "- 192.0.2.1 - -"} {
		var e Entry
		if _, err := mustNew(t, Config{Format: "nginx-combined"}).Parse([]byte(head+rest[len(" - -"):]), &e); err != nil {
			t.Errorf("%s: %v", head, err)
		}
		doesNotAllocate(t, Config{Format: "nginx-combined"}, head+rest[len(" - -"):])
	}
}

// A clone goes on by itself.
func TestJoinerClone(t *testing.T) {
	var j Joiner
	if len(j.Pending())+len(j.Clone().Pending()) > 0 {
		t.Error("the zero joiner waits")
	}
	j.Line([]byte("2026-03-03T10:15:44Z stdout P a"))
	c := j.Clone()
	if len(j.Pending()) == 0 || len(c.Pending()) == 0 {
		t.Error("what was begun is not waited for")
	}
	for range 2 {
		if full, ok := j.Clone().Line([]byte("2026-03-03T10:15:44Z stdout F b")); !ok || string(full) != "2026-03-03T10:15:44Z stdout F ab" {
			t.Errorf("joined to %q", full)
		}
	}
	if c.Line([]byte("2026-03-03T10:15:44Z stdout P c")); len(j.Pending()) != 1 {
		t.Error("a clone took something along")
	}
	if full, ok := j.Line([]byte("2026-03-03T10:15:44Z stdout F d")); !ok || string(full) != "2026-03-03T10:15:44Z stdout F ad" {
		t.Errorf("joined to %q", full)
	}
}

// Only where a line is a part does a joiner that waits for nothing begin to wait.
func TestIsPart(t *testing.T) {
	for _, line := range []string{
		"", "x", "{", `{"a":1}`, `{"log":"a\n","stream":"stdout"}`, `{"log":"a","stream":"stdout"}`, `{"log":"a\\n","stream":"stderr"}`,
		`{"log":"a"}`, "2026-03-03T10:15:44Z stdout F a", "2026-03-03T10:15:44Z stdout P a", "2026-03-03T10:15:44Z stderr P:x a",
		"2026-03-03T10:15:44Z other P a", "10.0.0.1 - - [03/Mar/2026] stdout P a",
	} {
		var j Joiner
		if _, ok := j.Line([]byte(line)); ok == IsPart([]byte(line)) {
			t.Errorf("%q is a part: %v", line, !ok)
		}
	}
}
