package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
)

// noon is when the tests' logs begin.
var noon = time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)

const secret = "a secret of these tests, and of nothing else"

// testConfig reads json with claimed keys in my_id and signed ones, from one
// source at the target.
func testConfig(t testing.TB) Config {
	t.Helper()
	ring, err := keys.NewRing(keys.Config{
		Accept:      []keys.Accept{{Scheme: "qk1"}, {Scheme: "field", Field: "my_id"}},
		Originators: []keys.Originator{{ID: "web", Deadline: 20 * time.Second, Keys: []keys.Key{{KID: "a", Secret: []byte(secret)}}}},
		Lifetime:    24 * time.Hour, Skew: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Sources: []Source{{Dependency: "seats", Parser: accesslog.Config{Format: "json"}}},
		Keys:    ring,
		Routes:  Routes{Templates: []string{"GET /seats/{id}", "/orders/{id}/lines"}, Max: 500},
		Peers:   Peers{Map: map[string]string{"10.1.0.0/16": "bff", "10.2.0.9": "batch"}, Max: 200, CallerTimeout: map[string]time.Duration{"bff": 2 * time.Second}},
		Refused: []int{429, 503},
		Horizon: 2 * time.Minute, Lateness: 2 * time.Minute, MaxFuture: time.Minute,
		Now:    noon.Add(24 * time.Hour),
		Budget: budget.DefaultModel(budget.DefaultRatio()), Salt: []byte("salt of tests"), Worst: 20, Parallel: 2,
	}
}

// audit replays texts, each as a file of source 0.
func audit(t testing.TB, cfg Config, texts ...string) *Audit {
	t.Helper()
	a, err := replayTexts(t, cfg, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func replayTexts(t testing.TB, cfg Config, texts ...string) (*Audit, error) {
	t.Helper()
	dir := t.TempDir()
	var in []Input
	for i, text := range texts {
		name := filepath.Join(dir, fmt.Sprintf("%d.log", i))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		in = append(in, Input{File: name})
	}
	return Replay(context.Background(), cfg, in, nil, nil)
}

func reportOf(t testing.TB, a *Audit) string {
	t.Helper()
	b, err := json.MarshalIndent(a.Report, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// same wants two reports to be one, and shows where they part.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Errorf("%s: another report, from line %d on: %s, want %s\nafter %s", what, i+1, g[i], w[i], strings.Join(w[max(0, i-12):i], " "))
			return
		}
	}
	t.Errorf("%s: another report, of %d lines, want %d", what, len(g), len(w))
}

// logged is a line and when it was written.
type logged struct {
	at   int64 // ms since noon
	text string
}

// storm makes a log with a bit of everything: retries by several peers, forged,
// absent and malformed keys, departures, deadlines, budgets, hop and origin
// attempt numbers, fan-out, whole-second stamps, copies, requests that hang, blank
// lines and lines that are no records. Lines are in the order of their log times.
func storm(questions int) []logged {
	r := rand.New(rand.NewPCG(7, 9))
	minter := keys.Minter{Originator: "web", KID: "a", Secret: []byte(secret)}
	var out []logged
	for q := range questions {
		start := r.Int64N(600_000)
		var key string
		switch q % 5 {
		case 0, 1:
			k, err := minter.Mint(noon.Add(time.Duration(start-r.Int64N(3000)) * time.Millisecond))
			if err != nil {
				panic(err)
			}
			if q%35 == 0 {
				k = k[:len(k)-3] + "AAA"
			}
			key = fmt.Sprintf(`,"question_key":%q`, k)
		case 2, 3:
			key = fmt.Sprintf(`,"my_id":"id-%d"`, q)
		case 4:
			key = []string{"", `,"my_id":"-"`, `,"question_key":"qk1.web.zz.x.y.z"`, `,"my_id":"a, b"`}[q/5%4]
		}
		path := []string{"/seats/%d", "/orders/%d/lines", "/search", "/other/%d?x=1", "/deadbeef%d/x"}[r.IntN(5)]
		if strings.Contains(path, "%") {
			path = fmt.Sprintf(path, r.IntN(40))
		}
		method := []string{"GET", "GET", "POST"}[r.IntN(3)]
		for try := range 1 + r.IntN(6)*r.IntN(2) {
			at, dur := start, r.Int64N(900)
			if r.IntN(200) == 0 {
				dur = 100_000 + r.Int64N(60_000)
			}
			stamp := noon.Add(time.Duration(at) * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
			if q%7 == 0 {
				stamp = noon.Add(time.Duration(at/1000) * time.Second).Format(time.RFC3339)
				at = at / 1000 * 1000
			}
			status := []int{200, 200, 503, 504, 429, 404, 499}[r.IntN(7)]
			line := fmt.Sprintf(`{"time":%q,"method":%q,"path":%q,"status":%d,"duration_ms":%d,"peer":"10.%d.0.%d:4%d"%s`,
				stamp, method, path, status, dur, r.IntN(4), r.IntN(12), r.IntN(1000), key)
			if status == 499 {
				line += `,"client_gone":true,"bytes_sent":0`
			}
			if status == 429 {
				line += fmt.Sprintf(`,"retry_after":%d`, 1+r.IntN(3))
			}
			switch q % 4 {
			case 0:
				line += fmt.Sprintf(`,"attempt":%d,"attempt_scope":"hop"`, 1+try%3)
			case 1:
				line += fmt.Sprintf(`,"attempt":%d,"attempt_scope":"origin"`, 1+try/2)
			case 2:
				line += fmt.Sprintf(`,"attempts_left":%d,"deadline":500`, max(0, 2-try))
			}
			l := logged{at + dur, line + "}"}
			out = append(out, l)
			if r.IntN(40) == 0 {
				out = append(out, l) // a shipper's copy, or one that cannot be told
			}
			start += r.Int64N(4000)
			if r.IntN(20) == 0 {
				start += 125_000 // more than one horizon of silence
			}
		}
		if q%50 == 0 {
			out = append(out, logged{start, []string{"not a record", "", `{"time":"yesterday"}`, `{"status":200,"path":"/x"}`, `{"time":"2026-`}[q/50%5]})
		}
	}
	// Somebody asks again and again for longer than any count looks back, at first by
	// two peers and something else, too.
	for poller := range 3 {
		for i := range 25 + r.IntN(10) {
			at := int64(poller*60_000 + i*(9000+poller*2000))
			peer, path := 1, poller
			if i < 3 {
				peer, path = i%3, poller+i%2
			}
			out = append(out, logged{at + 5, fmt.Sprintf(`{"time":%q,"method":"GET","path":"/seats/%d","status":200,"duration_ms":5,"peer":"10.%d.0.1:4","my_id":"again-%d"}`,
				noon.Add(time.Duration(at)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), path, peer, poller)})
		}
	}
	slices.SortStableFunc(out, func(a, b logged) int { return int(a.at - b.at) })
	return out
}

func text(lines []logged) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.String()
}

// TestReportDoesNotDependOnHowTheWorkIsCut is the promise of the package.
func TestReportDoesNotDependOnHowTheWorkIsCut(t *testing.T) {
	lines := storm(1500)
	cfg := testConfig(t)
	cfg.Parallel = 1
	whole := audit(t, cfg, text(lines))
	want := reportOf(t, whole)
	if n := whole.Report.Total.Repeats; n < 500 {
		t.Fatalf("a storm with %d repeats", n)
	}
	check := func(name string, change func(*Config), texts ...string) {
		t.Helper()
		cfg := testConfig(t)
		change(&cfg)
		a := audit(t, cfg, texts...)
		same(t, name, reportOf(t, a), want)
	}
	for _, n := range []int{1, 2, 3, 8} {
		check(fmt.Sprintf("%d in parallel", n), func(c *Config) { c.Parallel = n }, text(lines))
		check(fmt.Sprintf("%d in parallel, small blocks", n), func(c *Config) { c.Parallel, c.block = n, 3000 }, text(lines))
	}
	for _, size := range []int{1, 100, 777, 1 << 14, 1 << 20} {
		check(fmt.Sprintf("blocks of %d", size), func(c *Config) { c.block = size }, text(lines))
	}
	cfg.block = 1000
	cut := audit(t, cfg, strings.TrimSuffix(text(lines), "\n"))
	cut.Report.Input.Bytes++
	same(t, "without the final newline", reportOf(t, cut), want)

	small := func(c *Config) { c.block = 4000 }
	r := rand.New(rand.NewPCG(3, 4))
	for _, at := range []int{0, 1, len(lines) - 1, r.IntN(len(lines)), r.IntN(len(lines)), r.IntN(len(lines))} {
		check(fmt.Sprintf("cut before line %d", at+1), small, text(lines[:at]), text(lines[at:]))
		check(fmt.Sprintf("cut before line %d, newest first", at+1), small, text(lines[at:]), text(lines[:at]))
	}
	var a, b, c []logged // overlapping in time
	for _, l := range lines {
		switch r.IntN(3) {
		case 0:
			a = append(a, l)
		case 1:
			b = append(b, l)
		default:
			c = append(c, l)
		}
	}
	for _, o := range [][]string{{text(a), text(b), text(c)}, {text(a), text(c), text(b)}, {text(b), text(a), text(c)}, {text(b), text(c), text(a)}, {text(c), text(a), text(b)}, {text(c), text(b), text(a)}} {
		check("overlapping files", small, o...)
	}

	// The shipper may delay a line by as much as the lateness leaves it.
	for range 3 {
		mixed := slices.Clone(lines)
		for i := range mixed {
			mixed[i].at += r.Int64N(9000)
		}
		slices.SortStableFunc(mixed, func(a, b logged) int { return int(a.at - b.at) })
		check("shuffled", small, text(mixed))
	}
}

// One file may lie days ahead of the other.
func TestFilesFarApart(t *testing.T) {
	lines := storm(200)
	later := strings.ReplaceAll(text(lines), "2026-03-03T", "2026-03-09T")
	cfg := testConfig(t)
	cfg.Now = noon.Add(30 * 24 * time.Hour)
	want := reportOf(t, audit(t, cfg, text(lines)+later))
	for _, block := range []int{500, 0} {
		cfg.block = block
		same(t, "older first", reportOf(t, audit(t, cfg, text(lines), later)), want)
		same(t, "newer first", reportOf(t, audit(t, cfg, later, text(lines))), want)
	}
}

func TestCompressedIsTheSame(t *testing.T) {
	lines := text(storm(200))
	cfg := testConfig(t)
	want := reportOf(t, audit(t, cfg, lines))
	name := filepath.Join(t.TempDir(), "a.gz")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	z.Write([]byte(lines))
	z.Close()
	f.Close()
	var last int64
	a, err := Replay(context.Background(), cfg, []Input{{File: name}}, nil, func(n int64) { last = n })
	if err != nil {
		t.Fatal(err)
	}
	same(t, "gzip", reportOf(t, a), want)
	if st, _ := os.Stat(name); last != st.Size() {
		t.Errorf("progress ends at %d of %d bytes", last, st.Size())
	}
	a, err = Replay(context.Background(), cfg, []Input{{File: "-"}}, strings.NewReader(lines), nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "standard input", reportOf(t, a), want)
}

// rec is a line of one arrival, n milliseconds after noon, and more members.
func rec(ms int, more string, args ...any) string {
	return fmt.Sprintf(`{"time":%q,"method":"GET","path":"/seats/7","status":200,"duration_ms":0%s}`+"\n",
		noon.Add(time.Duration(ms)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), fmt.Sprintf(more, args...))
}

// routeOf finds the measure of a route.
func routeOf(t *testing.T, a *Audit, dep, route string) aggregate.RouteMeasure {
	t.Helper()
	for _, d := range a.Report.Dependencies {
		for _, r := range d.Routes {
			if d.Name == dep && r.Name == route {
				return r
			}
		}
	}
	t.Fatalf("the report has no route %q of %q", route, dep)
	panic("unreachable")
}

// namedReport audits files under given names, in that order: name, text, ….
func namedReport(t *testing.T, cfg Config, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	var in []Input
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		if err := os.WriteFile(name, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
		in = append(in, Input{File: name})
	}
	a, err := Replay(context.Background(), cfg, in, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return reportOf(t, a)
}
