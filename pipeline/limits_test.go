package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/targetside/auditor/ingest/accesslog"
)

// What lies beyond a limit is "other": counted in full, and no question of it is
// taken for another.
func TestMoreRoutesThanNames(t *testing.T) {
	cfg := testConfig(t)
	cfg.Routes = Routes{Max: 500}
	var b strings.Builder
	for i := range 800 {
		for try := range 2 {
			b.WriteString(strings.Replace(rec(i*20+try, `,"my_id":"k"`), "/seats/7", fmt.Sprintf("/r%dx", i), 1))
		}
	}
	b.WriteString(strings.Replace(rec(20_000, `,"my_id":"k"`), "/seats/7", "/r3x", 1))
	a := everyCut(t, cfg, b.String())
	if got, want := countsOf(a), (counts{lines: 1601, arrivals: 1601, questions: 800, repeats: 801}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n := len(a.Report.Dependencies[0].Routes); n != 501 {
		t.Errorf("%d routes, want 500 and other", n)
	}
	if r := routeOf(t, a, "seats", "other"); r.Arrivals != 600 || r.Questions != 300 || r.Undiscriminated {
		t.Errorf("other: %d arrivals of %d questions, undiscriminated %v; want 600 of 300, false", r.Arrivals, r.Questions, r.Undiscriminated)
	}
	if r := routeOf(t, a, "seats", "GET /r3x"); r.Arrivals != 3 || r.Questions != 1 {
		t.Errorf("a route that came early: %d arrivals of %d questions, want 3 of 1", r.Arrivals, r.Questions)
	}
}

func TestMorePeersThanNames(t *testing.T) {
	cfg := testConfig(t)
	cfg.Peers = Peers{Map: map[string]string{"2001:db8::/32": "bff"}, Max: 200}
	var b strings.Builder
	for i := range 300 {
		b.WriteString(rec(i*10, `,"my_id":"k%d","peer":"192.0.2.%d:%d"`, i, i%250, 1000+i))
		b.WriteString(rec(i*10+1, `,"my_id":"k%d","peer":"p%d"`, i, i))
		b.WriteString(rec(i*10+2, `,"my_id":"k%d","peer":"[2001:db8::%x]:80"`, i, i))
	}
	text := b.String()
	a := everyCut(t, cfg, text)
	if got, want := countsOf(a), (counts{lines: 900, arrivals: 900, questions: 300, repeats: 600}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	peers := map[string]uint64{}
	sum := uint64(0)
	for _, p := range a.Report.Dependencies[0].Peers {
		peers[p.Name] = p.Arrivals
		sum += p.Arrivals
	}
	if len(peers) != 201 || sum != 900 || peers["bff"] != 300 || peers["192.0.2.0"] != 2 || peers["other"] == 0 {
		t.Errorf("%d peers with %d arrivals, bff %d, 192.0.2.0 %d, other %d; want 201, 900, 300, 2 and some", len(peers), sum, peers["bff"], peers["192.0.2.0"], peers["other"])
	}

	// Which names are beyond the limit does not depend on the order of arguments.
	half := len(text) / 2
	half += strings.IndexByte(text[half:], '\n') + 1
	one, two := text[:half], strings.ReplaceAll(text[half:], `"p`, `"q`)
	want := namedReport(t, cfg, "one", one, "two", two)
	same(t, "files the other way round", namedReport(t, cfg, "two", two, "one", one), want)
}

// A dependency's name may be what a caller wrote into a header.
func TestHostileDependencyNames(t *testing.T) {
	cfg := testConfig(t)
	cfg.Sources[0] = Source{DependencyField: "authority", Parser: accesslog.Config{Format: "json"}}
	cfg.Worst = 0
	var b strings.Builder
	const n = 1200
	for i := range n {
		b.WriteString(rec(i*10, `,"my_id":"k","authority":"d%d"`, i))
	}
	for i := range n {
		b.WriteString(rec(n*10+i*10, `,"my_id":"k","authority":"d%d"`, n-1-i))
	}
	b.WriteString(rec(n*20, `,"my_id":"k","authority":"%s"`, strings.Repeat("x", 100_000)))
	b.WriteString(rec(n*20, `,"my_id":"k","authority":"\u0000\ud800\"<b>"`))
	b.WriteString(rec(n*20, `,"my_id":"k","authority":"other"`))
	cfg.Parallel = 1
	a := audit(t, cfg, b.String())
	cfg.Parallel, cfg.block = 3, 20_000
	same(t, "in parallel", reportOf(t, audit(t, cfg, b.String())), reportOf(t, a))
	if got, want := countsOf(a), (counts{lines: 2*n + 3, arrivals: 2*n + 3, questions: n + 3, repeats: n}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(a.Report.Dependencies) != 1001 {
		t.Errorf("%d dependencies, want 1000 and other", len(a.Report.Dependencies))
	}
	if r := routeOf(t, a, "other", "other"); r.Arrivals != 403 || r.Questions != 203 {
		t.Errorf("other: %d arrivals of %d questions, want 403 of 203", r.Arrivals, r.Questions)
	}
	if r := routeOf(t, a, "d999", "GET /seats/{id}"); r.Arrivals != 2 || r.Questions != 1 {
		t.Errorf("d999: %d arrivals of %d questions, want 2 of 1", r.Arrivals, r.Questions)
	}
}

// The list of worst questions is one list, whatever is tied.
func TestWorstQuestionsTied(t *testing.T) {
	var lines []string
	for i := range 3000 {
		for range 2 {
			lines = append(lines, fmt.Sprintf(`{"time":"2026-03-03T12:00:00Z","method":"GET","path":"/x","status":503,"my_id":"k%d","n":%d}`+"\n", i, len(lines)))
		}
	}
	cfg := testConfig(t)
	want := everyCut(t, cfg, strings.Join(lines, "")).Report.Worst
	slices.Reverse(lines)
	got := audit(t, cfg, strings.Join(lines, "")).Report.Worst
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("backwards the worst are others:\n%v\nwant\n%v", got, want)
	}
}
