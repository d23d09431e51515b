package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// TestClickHouseScripts runs the real program beside a real engine.
func TestClickHouseScripts(t *testing.T) {
	s := clickhousetest.Start(t)
	s.SetPassword("right")
	database := s.Database + "_scripts"
	t.Cleanup(func() { s.Exec(t, "DROP DATABASE IF EXISTS "+database+" SYNC") })
	testscript.Run(t, testscript.Params{
		Dir: "testdata/clickhouse", RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(e *testscript.Env) error {
			e.Setenv("CLICKHOUSE", s.Addr)
			e.Setenv("DATABASE", database)
			return nil
		},
	})
}

// Two daemons read one log, one into SQLite and one into ClickHouse, which does not
// answer for a while, and whose answers are lost now and then. Both have the same.
func TestDaemonOnClickHouseCountsWhatOneOnSQLiteDoes(t *testing.T) {
	server := clickhousetest.Start(t)
	at := store.ClickHouse{Addr: []string{server.Addr}, Database: server.Database, User: clickhousetest.User, HTTP: true}
	if err := store.MigrateClickHouse(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Five minutes of questions, each asked up to five times.
	begun := time.Now().Add(-6*time.Minute).Unix() / 60 * 60
	var records []string
	for i := range 900 {
		for try := range 1 + i%5 {
			start := time.Unix(begun, 0).Add(time.Duration(i) * 333 * time.Millisecond).Add(time.Duration(try) * 2 * time.Second)
			records = append(records, fmt.Sprintf(`{"time":%q,"method":"GET","path":"/seats/%d","status":%d,"duration_ms":%d,"peer":"peer-%d","traceparent":"00-%032x-00f067aa0ba902b7-01"}`,
				start.UTC().Format("2006-01-02T15:04:05.000Z"), i, 200+300*(i%2), i%90, i%3, i+1))
		}
	}
	slices.Sort(records) // by time
	log := write("access.log", strings.Join(records, "\n")+"\n")
	salt := write("salt", strings.Repeat("0123456789abcdef", 2))
	config := func(kept string) string {
		return fmt.Sprintf(`dependency: seats
sources: [{file: {paths: [%q]}, format: json}]
routes: {templates: ["GET /seats/{id}"]}
time: {lateness: 5s, idle: 1s}
keys: {accept: [traceparent], salt_file: %q}
store: %s
api: {listen: "127.0.0.1:0"}
`, log, salt, kept)
	}
	sqlite := startDaemon(t, write("sqlite.yaml", config("{sqlite: rows.db, questions: all}")))
	up := func() {}
	// The first answers to a daemon that starts are lost.
	server.Fail(clickhousetest.Fault{}, clickhousetest.Fault{})
	clickhouse := startDaemon(t, write("clickhouse.yaml", config(fmt.Sprintf("{clickhouse: {addr: [%q], database: %s, protocol: http}, questions: all}", server.Addr, server.Database))),
		func(*daemon) { up = server.Down() })
	until(t, "the daemon says that its store is away", func() bool {
		return clickhouse.d.watch.failed() != nil
	})
	up()
	for range 5 {
		server.Fail(clickhousetest.Fault{Of: "INSERT INTO facts", Done: true}, clickhousetest.Fault{Of: "INSERT INTO facts"})
	}
	to := begun + 5*60
	end := to/60*60 + 60
	more, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	closed := func(d *daemon) bool {
		fmt.Fprintf(more, `{"time":%q,"method":"GET","path":"/seats/1","status":200,"duration_ms":1}`+"\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
		at, err := d.store.Closed(t.Context())
		return err == nil && at["all"] >= end
	}
	until(t, "both have closed it", func() bool { return closed(sqlite.d) && closed(clickhouse.d) })

	kept := func(s store.Store) (out []string, arrivals uint64) {
		for _, r := range []store.Resolution{store.Tick, store.TenSeconds, store.Minute} {
			for _, family := range []store.Family{store.ByOriginator, store.ByPeer} {
				rows, err := s.Rows(t.Context(), store.Query{Family: family, Resolution: r, From: begun - 60, To: to / 60 * 60, Limit: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range rows {
					out = append(out, fmt.Sprintf("%d s at %d, %d: %s %q %q %d %t %x", r, x.At-begun, family, x.Route, x.Name, x.Scope, x.LateBlock, x.Open, x.Counts.Append(nil)))
					if r == store.Minute && family == store.ByPeer {
						arrivals += x.Counts.Totals().Arrivals
					}
				}
			}
		}
		worst, err := s.WorstQuestions(t.Context(), store.QuestionQuery{From: time.Unix(begun, 0), To: time.Unix(to-180, 0), Limit: 1 << 20, Among: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if len(worst) < 100 {
			t.Errorf("%d questions are kept", len(worst))
		}
		for _, q := range worst {
			out = append(out, fmt.Sprintf("%+v", q))
		}
		return out, arrivals
	}
	want, all := kept(sqlite.d.store)
	got, sum := kept(clickhouse.d.store)
	if all < 2000 || sum != all {
		t.Errorf("ClickHouse has %d arrivals, SQLite %d", sum, all)
	}
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("the first that differs is in ClickHouse\n%s\nin SQLite\n%s", got[i], want[i])
			}
		}
		t.Fatalf("there are %d rows in ClickHouse and %d in SQLite", len(got), len(want))
	}
	clickhouse.stop()
	sqlite.stop()
}
