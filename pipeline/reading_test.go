package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest/accesslog"
)

// counts is what most tests look at.
type counts struct {
	lines, arrivals, late, clamped   uint64
	ignored, quarantined             string
	questions, repeats, unattributed uint64
}

func countsOf(a *Audit) counts {
	r := a.Report
	return counts{
		r.Input.Lines, r.Input.Arrivals, r.Input.Late, r.Input.Clamped,
		tally(r.Input.Ignored), tally(r.Input.Quarantined),
		uint64(r.Total.Questions), uint64(r.Total.Repeats), r.Total.Arrivals - r.Total.Attributable,
	}
}

func tally(m map[string]uint64) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] > 0 {
			out = append(out, fmt.Sprintf("%s:%d", k, m[k]))
		}
	}
	return strings.Join(out, " ")
}

// everyCut audits texts under all the ways in which work can be cut, wants one
// outcome, and returns it.
func everyCut(t *testing.T, cfg Config, texts ...string) *Audit {
	t.Helper()
	var first *Audit
	size := 0
	for _, x := range texts {
		size += len(x)
	}
	for _, p := range []int{1, 3} {
		for _, block := range []int{1, 300, 0} {
			cfg.Parallel, cfg.block = p, block*(1+size>>17) // few enough blocks
			a := audit(t, cfg, texts...)
			if first == nil {
				first = a
				continue
			}
			same(t, fmt.Sprintf("%d in parallel, blocks of %d", p, block), reportOf(t, a), reportOf(t, first))
			if places(a) != places(first) {
				t.Errorf("%d in parallel, blocks of %d: quarantined %s, want %s", p, block, places(a), places(first))
			}
		}
	}
	return first
}

func TestWhatBecomesOfALine(t *testing.T) {
	const id = `,"my_id":"k%d"`
	second := func(n int) string { return rec(n*1000, `,"my_id":"k%d"`, n) }
	for _, c := range []struct {
		name string
		cfg  func(*Config)
		text string
		want counts
	}{
		{name: "question and repeat", text: rec(0, id, 1) + rec(500, id, 1) + rec(900, id, 2), want: counts{lines: 3, arrivals: 3, questions: 2, repeats: 1}},
		{name: "horizon", text: rec(0, id, 1) + rec(120_000, id, 1) + rec(240_001, id, 1), want: counts{lines: 3, arrivals: 3, questions: 2, repeats: 1}},
		{name: "blank lines", text: "\n \r\n" + rec(0, id, 1) + "\t\n", want: counts{lines: 1, arrivals: 1, questions: 1}},
		{name: "crlf", text: strings.ReplaceAll(rec(0, id, 1)+rec(1, id, 1), "\n", "\r\n"), want: counts{lines: 2, arrivals: 2, questions: 1, repeats: 1}},
		{
			// A record 130 s behind the latest before it is late by 10 s.
			name: "late", text: rec(0, id, 1) + rec(130_000, id, 2) + rec(0, id, 1) + rec(11_000, id, 3),
			want: counts{lines: 4, arrivals: 4, late: 1, questions: 3, unattributed: 1},
		},
		{
			// Tick 0 + 120 s is not above a watermark of exactly 120 s: late.
			name: "at the edge of lateness", text: rec(120_000, id, 2) + rec(999, id, 1) + rec(1000, id, 3),
			want: counts{lines: 3, arrivals: 3, late: 1, questions: 2, unattributed: 1},
		},
		{
			name: "the watermark is of earlier records", text: rec(0, id, 1) + rec(500_000, id, 2),
			want: counts{lines: 2, arrivals: 2, questions: 2},
		},
		{
			// 115 s is more than the lateness less its margin: counted 110 s before
			// its log time, and never late however many hang.
			name: "clamped", text: second(100) + strings.Replace(rec(0, id, 1), `"duration_ms":0`, `"duration_ms":115000`, 1) + second(115),
			want: counts{lines: 3, arrivals: 3, clamped: 1, questions: 3},
		},
		{
			name: "future moves nothing", text: second(0) + rec(25*3600*1000, id, 9) + second(1) + rec(1500, id, 1),
			want: counts{lines: 4, arrivals: 3, quarantined: "future:1", questions: 2, repeats: 1},
		},
		{
			name: "at most max_future", text: rec(24*3600*1000+60_000, id, 1) + rec(24*3600*1000+60_001, id, 1),
			want: counts{lines: 2, arrivals: 1, quarantined: "future:1", questions: 1},
		},
		{
			name: "far past", text: `{"time":"1970-01-01T00:00:01Z","path":"/a","my_id":"k"}` + "\n" + `{"time":"0001-01-01T00:00:01Z","path":"/a","my_id":"k"}` + "\n" + second(1) +
				`{"time":"1980-01-01T00:00:01Z","path":"/a","my_id":"k"}` + "\n" + second(2),
			want: counts{lines: 5, arrivals: 3, late: 1, quarantined: "bad_time:2", questions: 2, unattributed: 1},
		},
		{
			name: "no time", text: second(1) + `{"method":"GET","path":"/a","status":200,"my_id":"k"}` + "\n" + `{"time":"","path":"/a","status":200}` + "\n",
			want: counts{lines: 3, arrivals: 1, quarantined: "no_time:2", questions: 1},
		},
		{
			name: "bad time", text: second(1) + `{"time":"tomorrow","path":"/a","status":200}` + "\n",
			want: counts{lines: 2, arrivals: 1, quarantined: "bad_time:1", questions: 1},
		},
		{
			name: "no record", text: second(1) + "no record\n{\"time\":\"2026-\n\x01\x02\x03\n" + second(2),
			want: counts{lines: 5, arrivals: 2, quarantined: "binary:1 cut_short:1 syntax:1", questions: 2},
		},
		{
			name: "damaged", text: second(1) + `{"time":"2026-03-03T12:00:02Z","path":"/a","sta` + second(3),
			want: counts{lines: 2, arrivals: 2, quarantined: "damaged:1", questions: 2},
		},
		{
			name: "too long", text: second(1) + `{"time":"2026-03-03T12:00:02Z","path":"/` + strings.Repeat("a", accesslog.MaxLine) + "\"}\n" + second(2),
			want: counts{lines: 3, arrivals: 2, quarantined: "too_long:1", questions: 2},
		},
		{
			name: "a key of 1 MiB", text: second(1) + rec(2000, `,"my_id":"%s"`, strings.Repeat("k", 1<<20)) + rec(2500, `,"question_key":"qk1.%s"`, strings.Repeat("k", 1<<20)) + second(3),
			want: counts{lines: 4, arrivals: 4, questions: 2, unattributed: 2},
		},
		{
			name: "ignored", cfg: func(c *Config) {
				c.Ignore = Ignore{Paths: []string{"/healthz"}, UserAgents: []string{"kube-probe"}, Peers: []string{"batch"}}
			},
			text: strings.Replace(rec(0, id, 1), "/seats/7", "/healthz?full", 1) +
				strings.Replace(rec(0, id, 1), "/seats/7", "/healthz/x", 1) +
				rec(1000, `,"user_agent":"kube-probe/1.29"`) + rec(1000, `,"user_agent":"kube-probe"`) + rec(1000, `,"user_agent":"kube-probes/1"`) +
				rec(2000, `,"peer":"10.2.0.9:4711"`) + rec(2000, `,"peer":"10.2.0.8:4711"`),
			want: counts{lines: 7, arrivals: 3, ignored: "path:1 peer:1 user_agent:2", questions: 1, unattributed: 2},
		},
		{
			name: "an ignored record still is of its time", cfg: func(c *Config) { c.Ignore.Paths = []string{"/healthz"} },
			text: rec(0, id, 1) + strings.Replace(rec(200_000, ""), "/seats/7", "/healthz", 1) + rec(0, id, 2),
			want: counts{lines: 3, arrivals: 2, late: 1, ignored: "path:1", questions: 1, unattributed: 1},
		},
		{
			name: "a shipper's copies", text: rec(0, id, 1) + rec(0, id, 1) + rec(0, id, 2),
			want: counts{lines: 3, arrivals: 2, questions: 2},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t)
			if c.cfg != nil {
				c.cfg(&cfg)
			}
			a := everyCut(t, cfg, c.text)
			if got := countsOf(a); got != c.want {
				t.Errorf("counted %+v\nwant    %+v", got, c.want)
			}
			n := uint64(0)
			for _, x := range a.Report.Input.Quarantined {
				n += x
			}
			if uint64(len(a.Quarantined)) != n {
				t.Errorf("located %v, want all %d", a.Quarantined, n)
			}
			if a.Report.Input.Bytes != uint64(len(c.text)) {
				t.Errorf("%d bytes, want %d", a.Report.Input.Bytes, len(c.text))
			}
		})
	}
}

// A file whose first record is from the future must not close the present.
func TestFutureAtTheBeginning(t *testing.T) {
	const id = `,"my_id":"k%d"`
	cfg := testConfig(t)
	for name, first := range map[string]string{
		"future":   rec(48*3600*1000, id, 9),
		"no time":  `{"path":"/a","status":200}` + "\n",
		"no line":  "nonsense\n",
		"far past": `{"time":"1980-01-01T00:00:01Z","path":"/a"}` + "\n",
	} {
		var rest, other strings.Builder
		for i := range 50 {
			rest.WriteString(rec(i*4000, id, i/2))
			other.WriteString(rec(i*4000+700, id, i/2))
		}
		a := everyCut(t, cfg, first+rest.String(), other.String())
		if got := countsOf(a); got.late != 0 || got.questions != 25 || got.repeats != 75 {
			t.Errorf("%s first: %+v, want nothing late, 25 questions, 75 repeats", name, got)
		}
	}
}

// Statuses and durations that mean nothing are no outcome and no time.
func TestStatusAndDurationThatAreNone(t *testing.T) {
	stamp := func(n int, more string) string {
		return fmt.Sprintf(`{"time":"2026-03-03T12:00:%02dZ","method":"GET","path":"/a/%d"%s}`+"\n", n, n, more)
	}
	text := stamp(0, `,"status":200,"duration_ms":100`) +
		stamp(1, `,"status":0,"duration_ms":-1`) +
		stamp(2, `,"status":"000","duration_ms":"NaN"`) +
		stamp(3, `,"status":-1,"duration_ms":"Inf"`) +
		stamp(4, `,"status":99999,"duration_ms":"-"`) +
		stamp(5, `,"status":1000,"duration_ms":1e300`) +
		stamp(6, ``)
	m := everyCut(t, testConfig(t), text).Report.Total
	if m.Arrivals != 7 || m.Responses.Success != 1 || m.Responses.Total != 7 || m.Responses.BusySeconds != aggregate.Number(0.1) {
		t.Errorf("arrivals %d, responses %+v; want 7 with one success and 0.1 busy seconds", m.Arrivals, m.Responses)
	}
}

// Two records of one second are ordered by what they say, whichever was read
// first and however names are hashed in this process.
func TestEqualStampsAreOrderedByContent(t *testing.T) {
	var a, b string
	for i := range 40 {
		one := fmt.Sprintf(`{"time":"2026-03-03T12:00:00Z","method":"GET","path":"/x","status":503,"peer":"p%d","my_id":"k%d","retry_after":1}`+"\n", i%3, i)
		two := fmt.Sprintf(`{"time":"2026-03-03T12:00:00Z","method":"GET","path":"/x","status":200,"peer":"p%d","my_id":"k%d"}`+"\n", (i+1)%3, i)
		a, b = a+one+two, b+two+one
	}
	cfg := testConfig(t)
	want := reportOf(t, everyCut(t, cfg, a))
	for range 5 {
		same(t, "the other way round", reportOf(t, audit(t, cfg, b)), want)
	}
}

func TestDependencyByField(t *testing.T) {
	cfg := testConfig(t)
	cfg.Sources[0] = Source{DependencyField: "upstream_cluster", Parser: accesslog.Config{Format: "json"}}
	const m = `,"my_id":"k","upstream_cluster":%q`
	a := everyCut(t, cfg, rec(0, m, "seats")+rec(1, m, "orders")+rec(2, m, "seats")+rec(3, `,"my_id":"k"`)+rec(4, m, ""))
	var got []string
	for _, d := range a.Report.Dependencies {
		got = append(got, fmt.Sprintf("%s %d/%d", d.Name, d.Arrivals, d.Questions))
	}
	if want := []string{"orders 1/1", "seats 2/1", "unknown 2/1"}; !slices.Equal(got, want) {
		t.Errorf("dependencies %q, want %q", got, want)
	}
}

func TestDiscriminator(t *testing.T) {
	post := func(ms int, key, seat string) string {
		return strings.Replace(rec(ms, `,"my_id":%q,"seat":%q`, key, seat), `"GET","path":"/seats/7"`, `"POST","path":"/book"`, 1)
	}
	text := post(0, "k", "1") + post(10, "k", "2") + post(20, "k", "1") + post(30, "m", "1") + rec(40, `,"my_id":"k"`) +
		strings.Replace(rec(50, `,"my_id":"k"`), "/seats/7", "/list?page=1", 1) + strings.Replace(rec(60, `,"my_id":"k"`), "/seats/7", "/list?page=2", 1)
	cfg := testConfig(t)
	a := everyCut(t, cfg, text)
	if r := routeOf(t, a, "seats", "POST /book"); r.Questions != 2 || !r.Undiscriminated {
		t.Errorf("by the path: %d questions, undiscriminated %v; want 2, true", r.Questions, r.Undiscriminated)
	}
	if r := routeOf(t, a, "seats", "GET /list"); r.Questions != 1 || !r.Undiscriminated {
		t.Errorf("a query is no part of the path: %d questions, undiscriminated %v", r.Questions, r.Undiscriminated)
	}
	if r := routeOf(t, a, "seats", "GET /seats/{id}"); r.Undiscriminated {
		t.Errorf("a template of which one id was seen is undiscriminated")
	}
	cfg.Discriminators = map[string]string{"POST /book": "seat"}
	if r := routeOf(t, everyCut(t, cfg, text), "seats", "POST /book"); r.Questions != 3 || r.Undiscriminated {
		t.Errorf("by the seat: %d questions, undiscriminated %v; want 3, false", r.Questions, r.Undiscriminated)
	}
}

// In front, what one record sent upstream is so many arrivals; at the target it is
// one.
func TestVantageInFront(t *testing.T) {
	line := func(sec int, key, addr, status, times string) string {
		return fmt.Sprintf(`{"msec":"%d.000","request_time":"3.000","request_method":"GET","request_uri":"/seats/7","status":"503","body_bytes_sent":"5","request_completion":"OK","upstream_addr":%q,"upstream_status":%q,"upstream_response_time":%q,"my_id":%q,"request_id":"%d"}`+"\n",
			noon.Unix()+int64(sec), addr, status, times, key, sec)
	}
	text := line(3, "a", "1.1.1.1:80, 1.1.1.2:80, 1.1.1.1:80", "504, 504, 200", "1.000, 1.000, 1.000") +
		line(4, "b", "1.1.1.1:80", "200", "3.000") +
		line(5, "c", "-", "-", "-") +
		line(6, "a", "1.1.1.1:80 : 1.1.1.3:80", "404 : 200", "0.500 : 0.500")
	cfg := testConfig(t)
	cfg.Sources[0].Parser.Format = "nginx-json"
	if got, want := countsOf(everyCut(t, cfg, text)), (counts{lines: 4, arrivals: 4, questions: 3, repeats: 1}); got != want {
		t.Errorf("at the target %+v, want %+v", got, want)
	}
	cfg.Sources[0].InFront = true
	a := everyCut(t, cfg, text)
	if got, want := countsOf(a), (counts{lines: 4, arrivals: 6, ignored: "not_forwarded:1", questions: 2, repeats: 4}); got != want {
		t.Errorf("in front %+v, want %+v", got, want)
	}
	if l := a.Report.Total.Hops.Logger; fmt.Sprint(jsonOf(t, l)) != "2" {
		t.Errorf("hops.logger is %s, want 6 tries in 3 records", jsonOf(t, l))
	}
}

// An Envoy in front gives the number of its tries and what became of the last: the
// time of a try that was alone is known, what is not known counts for nothing.
func TestEnvoyInFront(t *testing.T) {
	line := func(ms int, key string, n, code int, flags, local, more string) string {
		return fmt.Sprintf(`{"start_time":%q,"method":"GET","path":"/seats/7","response_code":%d,"response_flags":%q,"bytes_sent":1,"duration":1500,"upstream_host":"10.0.0.1:80","upstream_local_address":%s,"upstream_request_attempt_count":%d,"my_id":%q%s}`+"\n",
			noon.Add(time.Duration(ms)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), code, flags, local, n, key, more)
	}
	text := line(0, "a", 1, 200, "-", `"10.0.0.9:1"`, "") +
		line(100, "b", 3, 200, "-", `"10.0.0.9:1"`, "") +
		line(200, "c", 3, 503, "UF,URX", "null", "") +
		line(300, "d", 1, 503, "UC", `"10.0.0.9:1"`, "") +
		line(400, "e", 1, 200, "-", `"10.0.0.9:1"`, `,"grpc_status":"14"`) +
		line(5000, "a", 1, 500, "-", `"10.0.0.9:1"`, "")
	cfg := testConfig(t)
	cfg.Sources[0].Parser.Format = "envoy-json"
	cfg.Sources[0].InFront = true
	a := everyCut(t, cfg, text)
	if got, want := countsOf(a), (counts{lines: 6, arrivals: 7, ignored: "not_forwarded:1", questions: 4, repeats: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Answers are a's two, the last of b's three, and e's, which is no success. Of b's three
	// the times are not known.
	r := a.Report.Total.Responses
	if r.Untimed != 3 {
		t.Errorf("%d arrivals without a time, want 3", r.Untimed)
	}
	if r.Answers != 4 || r.Success != 2 || r.Refused != 0 || r.BusySeconds != aggregate.Number(6) || r.RepeatSeconds != aggregate.Number(1.5) {
		t.Errorf("%d answers, %d successes, %d refused, busy %v s, repeats %v s; want 4, 2, 0, 6, 1.5", r.Answers, r.Success, r.Refused, r.BusySeconds, r.RepeatSeconds)
	}

	// Where nothing but such tries is there, no time is known, and none is 0.
	a = everyCut(t, cfg, line(100, "b", 3, 200, "-", `"10.0.0.9:1"`, "")+line(5000, "b", 2, 200, "DC", `"10.0.0.9:1"`, ""))
	got := jsonOf(t, a.Report.Total.Responses)
	for _, want := range []string{`"busy_seconds":null`, `"repeat_seconds":null`, `"dead_seconds":null`, `"untimed":5`, `"disconnected":1`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Whether a try is late does not depend on where blocks begin.
func TestLateTriesInFront(t *testing.T) {
	rec := func(sec, took int, key, times string) string {
		n := strings.Count(times, ",")
		return fmt.Sprintf(`{"msec":"%d.000","request_time":"%d.000","request_method":"GET","request_uri":"/seats/7","status":"200","body_bytes_sent":"5","upstream_addr":%q,"upstream_status":%q,"upstream_response_time":%q,"my_id":%q}`+"\n",
			noon.Unix()+int64(sec), took, "1.1.1.1:80"+strings.Repeat(", 1.1.1.1:80", n), "504"+strings.Repeat(", 504", n), times, key)
	}
	cfg := testConfig(t)
	cfg.Sources[0].Parser.Format = "nginx-json"
	cfg.Sources[0].InFront = true
	// Tries at 0 s and 60 s, after one that was written at 150 s: tick 0 was closed
	// at 120 s, tick 60 will be at 180 s.
	a := everyCut(t, cfg, rec(10, 1, "a", "1.000")+rec(150, 1, "b", "1.000")+rec(90, 90, "c", "60.000, 30.000"))
	if got := countsOf(a); got.arrivals != 4 || got.late != 1 {
		t.Errorf("%+v; want 4 arrivals, one of them late", got)
	}
}

func TestEnvoyRecordsOfOneRequest(t *testing.T) {
	line := func(ms int, kind, key string, status, dur int, cluster string) string {
		return fmt.Sprintf(`{"start_time":%q,"access_log_type":%q,"stream_id":"s-%s","method":"GET","path":"/seats/7","response_code":%d,"response_flags":"-","bytes_sent":1,"duration":%d,"upstream_cluster":%q,"question_key":"-","my_id":%q}`+"\n",
			noon.Add(time.Duration(ms)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), kind, key, status, dur, cluster, key)
	}
	text := line(0, "DownstreamStart", "a", 0, 0, "inbound|80||") + line(0, "DownstreamPeriodic", "a", 0, 1000, "inbound|80||") +
		line(0, "DownstreamEnd", "a", 200, 2500, "inbound|80||") +
		line(100, "DownstreamEnd", "b", 200, 5, "outbound|80||seats") + line(200, "DownstreamStart", "c", 0, 0, "inbound|80||") +
		line(300, "DownstreamEnd", "a", 200, 5, "inbound|80||")
	cfg := testConfig(t)
	cfg.Sources[0].Parser.Format = "envoy-json"
	a := everyCut(t, cfg, text)
	want := counts{lines: 6, arrivals: 3, ignored: "interim:2 outbound:1", questions: 2, repeats: 1}
	if got := countsOf(a); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if a.Report.Total.Responses.Success != 2 || a.Report.Total.Responses.BusySeconds != aggregate.Number(2.505) {
		t.Errorf("responses %+v; want the end records' outcomes", a.Report.Total.Responses)
	}
}

// Lines that a container's runtime has split are one record each, and are located
// in the file as it is.
func TestSplitLines(t *testing.T) {
	whole := strings.TrimSuffix(rec(1000, `,"my_id":"k1","pad":"%s"`, strings.Repeat("p", 400)), "\n")
	bad := `{"time":"never","path":"/x","pad":"` + strings.Repeat("q", 300) + `"}`
	cri := func(stream, tag, s string) string {
		return "2026-03-03T12:00:01.5Z " + stream + " " + tag + " " + s + "\n"
	}
	docker := func(s string) string {
		return fmt.Sprintf(`{"log":%s,"stream":"stdout","time":"2026-03-03T12:00:01.5Z"}`+"\n", jsonOf(t, s))
	}
	for name, text := range map[string]string{
		"cri": cri("stdout", "P", whole[:100]) + cri("stdout", "P", whole[100:300]) + cri("stderr", "F", "a word of the runtime") + cri("stdout", "F", whole[300:]) +
			cri("stdout", "P", bad[:50]) + cri("stdout", "F", bad[50:]) + "\n" + cri("stdout", "F", whole) + cri("stdout", "P", whole[:50]),
		"docker": docker(whole[:100]) + docker(whole[100:300]) + "\n" + docker(whole[300:]+"\n") +
			docker(bad[:50]) + docker(bad[50:]+"\n") + "\n" + docker(whole+"\n") + docker(whole[:50]),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			a := everyCut(t, cfg, text)
			got := countsOf(a)
			if got.arrivals != 1 || a.Report.Input.Duplicates != 1 || got.quarantined != "bad_time:1 cut_short:1" {
				t.Errorf("%+v, %d duplicates; want 1 arrival, 1 copy, one bad and one cut", got, a.Report.Input.Duplicates)
			}
			if name == "cri" && got.ignored != "other_stream:1" {
				t.Errorf("ignored %q", got.ignored)
			}
			if len(a.Quarantined) == 0 {
				t.Fatal("nothing is located")
			}
			q := a.Quarantined[0]
			at := strings.Index(text, bad[:20])
			if name == "docker" {
				at = strings.Index(text, `{\"time\":\"never`)
			}
			at = strings.LastIndexByte(text[:at], '\n') + 1
			if q.Reason != "bad_time" || q.Line != 5 || q.Offset != int64(at) {
				t.Errorf("located %+v, want line 5 at byte %d", q, at)
			}
		})
	}
}

// Where quarantined lines are is told exactly, and of what they hold nothing.
func TestQuarantinedAreLocated(t *testing.T) {
	var b strings.Builder
	type place struct {
		line   int64
		offset int64
		reason string
	}
	var want []place
	line := int64(0)
	add := func(s, reason string) {
		line++
		if reason != "" {
			want = append(want, place{line, int64(b.Len()), reason})
		}
		b.WriteString(s + "\n")
	}
	for i := range 300 {
		switch {
		case i%100 == 50:
			add(`{"time":"SECRET","my_id":"SECRET"}`, "bad_time")
			add("", "")
			add("SECRET", "syntax")
			add(`{"my_id":"SECRET","path":"/SECRET"}`, "no_time")
		default:
			add(strings.TrimSuffix(rec(i*10, `,"my_id":"k"`), "\n"), "")
		}
	}
	add("SECRET", "") // the fourth of its reason is not located
	a := everyCut(t, testConfig(t), b.String())
	var got []place
	for _, q := range a.Quarantined {
		got = append(got, place{q.Line, q.Offset, q.Reason})
		if strings.Contains(fmt.Sprintf("%+v", q), "SECRET") || !strings.HasSuffix(q.Source, "0.log") {
			t.Errorf("located %+v", q)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("located %v\nwant    %v", got, want)
	}
	if got := tally(a.Report.Input.Quarantined); got != "bad_time:3 no_time:3 syntax:4" {
		t.Errorf("counted %s", got)
	}
}

// A file that was truncated while it was written begins with NULs.
func TestNULsAtTheBeginning(t *testing.T) {
	for _, n := range []int{1, 1000, 1 << 20} {
		a, err := replayTexts(t, testConfig(t), strings.Repeat("\x00", n)+rec(0, `,"my_id":"k"`)+rec(1, `,"my_id":"k"`))
		if err != nil {
			t.Errorf("%d NULs: %v", n, err)
			continue
		}
		if got := countsOf(a); got.arrivals != 2 || got.questions != 1 {
			t.Errorf("%d NULs: %+v", n, got)
		}
	}
}

func TestBlankAtTheBeginning(t *testing.T) {
	cfg := testConfig(t)
	cfg.Sources[0].Parser.Format = "auto"
	a, err := replayTexts(t, cfg, strings.Repeat("\n", 200_000)+rec(0, `,"my_id":"k"`))
	if err != nil {
		t.Fatal(err)
	}
	if got := countsOf(a); got.arrivals != 1 {
		t.Errorf("%+v", got)
	}
}

func places(a *Audit) string {
	var b strings.Builder
	for _, q := range a.Quarantined {
		fmt.Fprintf(&b, "%s:%d+%d:%s ", filepath.Base(q.Source), q.Line, q.Offset, q.Reason)
	}
	return b.String()
}

// A fault of the reader costs the line that it stumbles over, and no more; but a file that
// was cut short while it was read is none.
func TestAFaultOfTheReaderQuarantinesTheLine(t *testing.T) {
	var e accesslog.Entry
	broken := new(accesslog.Parser) // not made by its constructor
	if more, err := parse(broken, []byte(`{"time":"2026-03-03T10:15:42Z"}`), &e); more != nil || err != rejectFault {
		t.Errorf("%q, %v", more, err)
	}
}
