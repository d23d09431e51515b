package store_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

var update = flag.Bool("update", false, "write golden files anew")

// goldenWrites is an hour of two scopes and two dependencies: late records, a
// second count of seconds under newer rules, seconds that are open, questions, one of
// them drawn and in both scopes.
func goldenWrites() []*store.Write {
	at := func(seconds int64) time.Time { return time.Unix(benchBase+seconds, 250_000_000).UTC() }
	question := func(scope, route string, first, last int64, key byte, arrivals uint32) store.Question {
		return store.Question{
			KeyHash: [16]byte{key, 0xff, '\''}, Lot: 1 << 31, Scope: scope, Dependency: "seats", Route: route, Originator: "web",
			Peers: []string{"10.0.0.1", "it's"}, First: at(first), Last: at(last), Arrivals: arrivals,
		}
	}
	var out []*store.Write
	for i := int64(0); i < 1800; i += 90 {
		for _, scope := range []string{"kafka seats/0", "all"} {
			w := &store.Write{Scope: scope, Rules: 1, Closed: benchBase + i - 60, Horizon: 2 * time.Minute}
			w.Counted = []store.Range{{Partition: scope, From: 100 * i, To: 100*i + 8900}}
			rows := shifted(wide(benchBase, 2), benchBase+i)
			for n := range rows {
				r := &rows[n]
				r.Scope, r.Version = scope, uint64(100+i)
				if scope == "all" && n%3 == 0 {
					r.Dependency = "prices"
				}
				if i%450 == 0 && n%4 == 1 {
					r.LateBlock, r.At = 65536*(i/450), r.At-200
				}
				w.Rows = append(w.Rows, *r)
			}
			w.Questions = append(w.Questions, question(scope, "GET /seats/{id}", max(0, i-170), max(0, i-150), byte(i/90), uint32(2+i%7)))
			if scope == "all" {
				w.Questions[0].Arrivals += 10
			}
			out = append(out, w)
		}
	}
	split := func(scope string, last int64) *store.Write {
		q := question(scope, "GET /", 700, last, 200, 3)
		q.Lot = 5
		return &store.Write{Scope: scope, Rules: 1, Horizon: 2 * time.Minute, Questions: []store.Question{q}}
	}
	// New rules from the twentieth minute on find fewer routes.
	newer := &store.Write{Scope: "all", Rules: 2, Closed: benchBase + 1200}
	for i := int64(1200); i < 1700; i += 90 {
		rows := shifted(wide(benchBase, 1), benchBase+i)
		for n := range rows {
			rows[n].Scope, rows[n].Rules, rows[n].Version = "all", 2, uint64(7+i)
		}
		newer.Rows = append(newer.Rows, rows...)
	}
	return append(out, split("all", 705), split("kafka seats/0", 760), newer,
		&store.Write{Scope: "all", Rules: 2, Closed: benchBase + 3700}, &store.Write{Scope: "kafka seats/0", Rules: 1, Closed: benchBase + 1720})
}

// golden is what every query of a store answers, in words.
func golden(t *testing.T, s store.Store) string {
	t.Helper()
	var out strings.Builder
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	queries := []store.Query{{Resolution: store.Tick, From: benchBase + 1170, To: benchBase + 1270}, {Resolution: store.TenSeconds, From: benchBase + 100, To: benchBase + 300}}
	for _, family := range []store.Family{store.ByOriginator, store.ByPeer} {
		queries = append(queries,
			store.Query{Family: family, Resolution: store.Minute, From: benchBase, To: benchBase + 1860},
			store.Query{Family: family, Resolution: store.Hour, From: benchBase, To: benchBase + 3600},
			store.Query{Family: family, Resolution: store.TenSeconds, From: benchBase, To: benchBase + 1800, Dependency: "prices", Route: "GET /1"})
	}
	queries = append(queries, store.Query{Resolution: store.Minute, From: benchBase, To: benchBase + 1800, Dependency: "seats", Name: "3 1"},
		store.Query{Resolution: store.Tick, From: benchBase - 300, To: benchBase + 1800, Route: "GET /1", Name: "2 0"})
	for _, q := range queries {
		q.Limit = 1 << 20
		rows, err := s.Rows(t.Context(), q)
		must(err)
		fmt.Fprintf(&out, "\nrows of %d s by %s from %d to %d, dependency %q, route %q, name %q: %d\n", q.Resolution,
			[]string{"originator", "peer"}[q.Family], q.From-benchBase, q.To-benchBase, q.Dependency, q.Route, q.Name, len(rows))
		for _, r := range rows {
			c := r.Counts.Totals()
			counted := r.Counts.Append(nil)[3:] // without how many counters there are: more come with time
			fmt.Fprintf(&out, "%+5d %s %s %s %q late %d rules %d version %d open %t: %d arrivals, %d originals, %d repeats, %.8x\n", r.At-benchBase, r.Scope, r.Dependency,
				r.Route, r.Name, r.LateBlock, r.Rules, r.Version, r.Open, c.Arrivals, c.Originals, c.Repeats, sha256.Sum256(counted))
		}
	}
	tell := func(what string, list []store.Question) {
		fmt.Fprintf(&out, "\n%s: %d\n", what, len(list))
		for _, q := range list {
			fmt.Fprintf(&out, "%x lot %d of %s %s %s by %s through %q from %s to %s: %d arrivals\n", q.KeyHash, q.Lot, q.Scope, q.Dependency, q.Route, q.Originator, q.Peers,
				q.First.Format(time.RFC3339Nano), q.Last.Format(time.RFC3339Nano), q.Arrivals)
		}
	}
	for _, q := range []store.QuestionQuery{{Limit: 12}, {Limit: 5, Dependency: "seats", Route: "GET /"}, {Limit: 3, Originator: "web"}, {Limit: 3, Originator: "nobody"}} {
		q.From, q.To, q.Among = time.Unix(benchBase+300, 0), time.Unix(benchBase+1500, 0), 1000
		list, err := s.WorstQuestions(t.Context(), q)
		must(err)
		tell(fmt.Sprintf("worst questions, at most %d, of %q %q %q", q.Limit, q.Dependency, q.Route, q.Originator), list)
	}
	for _, key := range []byte{5, 200} {
		list, err := s.Questions(t.Context(), [16]byte{key, 0xff, '\''}, 10)
		must(err)
		tell(fmt.Sprint("questions of key ", key), list)
	}
	for _, from := range []int64{benchBase, benchBase + 1200} {
		splits, err := s.Splits(t.Context(), from, from+1200)
		must(err)
		fmt.Fprintf(&out, "\nsplits from %d on: %q\n", from-benchBase, splits)
	}
	for _, partition := range []string{"all", "nowhere"} {
		counted, err := s.Counted(t.Context(), partition)
		must(err)
		fmt.Fprintf(&out, "counted of %s: %v\n", partition, counted)
	}
	closed, err := s.Closed(t.Context())
	must(err)
	for _, scope := range []string{"all", "kafka seats/0"} {
		fmt.Fprintf(&out, "closed of %s: %d\n", scope, closed[scope]-benchBase)
	}
	state, err := s.Load(t.Context(), "file")
	must(err)
	fmt.Fprintf(&out, "state: %q\n", state)
	return out.String()
}

func fill(t *testing.T, s store.Store) {
	t.Helper()
	for _, w := range goldenWrites() {
		if err := s.Write(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []string{"first", "second\x00'"} {
		if err := s.Save(t.Context(), "file", []byte(state)); err != nil {
			t.Fatal(err)
		}
	}
}

// isGolden holds a text against a file, which -update writes anew.
func isGolden(t *testing.T, what, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	isRecorded(t, what, file, got)
}

// isRecorded holds a text against a file.
func isRecorded(t *testing.T, what, file, got string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s: line %d of %s is\n%s\nnot\n%s", what, i+1, file, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Errorf("%s: there are %d lines, in %s %d", what, len(g), file, len(w))
	}
}

// Every store answers every query with the very text of a file.
func TestGoldenResults(t *testing.T) {
	const file = "testdata/golden.txt"
	memory := store.NewMemory()
	fill(t, memory)
	isGolden(t, "in memory", file, golden(t, memory))
	sqlite := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	fill(t, sqlite)
	isGolden(t, "SQLite", file, golden(t, sqlite))
	clickhouse := openClickHouse(t, clickhousetest.Start(t))
	fill(t, clickhouse)
	isGolden(t, "ClickHouse", file, golden(t, clickhouse))
}

// viewQueries ask the views of ClickHouse for everything that they show.
func viewQueries() []string {
	var out []string
	for _, of := range []struct {
		resolution string
		to         int64
	}{{"tick", 300}, {"ten_seconds", 300}, {"minute", 1860}, {"hour", 3600}} {
		for _, dependency := range []string{"seats", "prices"} {
			out = append(out, fmt.Sprintf("SELECT * FROM figures(resolution = '%s', from = %d, to = %d, dependency = '%s') ORDER BY ALL",
				of.resolution, benchBase, benchBase+of.to, dependency))
		}
	}
	return append(out, fmt.Sprintf("SELECT * FROM questions(from = %d, to = %d, dependency = 'seats') ORDER BY ALL", benchBase, benchBase+3600), "SELECT * FROM scopes ORDER BY ALL",
		fmt.Sprintf("SELECT * FROM measures(resolution = 'minute', from = %d, to = %d) ORDER BY ALL", benchBase, benchBase+180),
		"SELECT * FROM counted ORDER BY ALL", "SELECT * FROM splits ORDER BY ALL", "SELECT number, name FROM steps WHERE number < 3 ORDER BY ALL",
		"SELECT what, rows > 0, oldest, newest FROM kept ORDER BY ALL")
}

func views(t *testing.T, s *clickhousetest.Server) string {
	t.Helper()
	var out strings.Builder
	for _, q := range viewQueries() {
		rows := s.Query(t, q)
		fmt.Fprintf(&out, "%s\n%s\n\n", q, strings.Join(rows, "\n"))
		if len(rows) == 0 {
			t.Errorf("%s returns nothing", q)
		}
	}
	return out.String()
}

func TestGoldenViews(t *testing.T) {
	server := clickhousetest.Start(t)
	fill(t, openClickHouse(t, server))
	isGolden(t, "views", "testdata/clickhouse/views.txt", views(t, server))
}
