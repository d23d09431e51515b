package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
	"github.com/targetside/auditor/store/storetest"
)

// clickhouseAt is how to reach a server of a test.
func clickhouseAt(s *clickhousetest.Server) store.ClickHouse {
	return store.ClickHouse{Addr: []string{s.Addr}, Database: s.Database, User: clickhousetest.User, HTTP: true, Compression: "lz4", Connections: 4}
}

// openClickHouse opens a store in an empty database.
func openClickHouse(t testing.TB, s *clickhousetest.Server) store.Store {
	t.Helper()
	if err := store.MigrateClickHouse(t.Context(), clickhouseAt(s), nil); err != nil {
		t.Fatal(err)
	}
	c, err := store.OpenClickHouse(t.Context(), clickhouseAt(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	store.TrustClocks(c)
	return c
}

func TestClickHouse(t *testing.T) {
	clickhousetest.Start(t) // keeps the engine open from one test to the next
	storetest.Run(t, func(t *testing.T) store.Store { return openClickHouse(t, clickhousetest.Start(t)) })
}

// seen is everything that a store returns of ticks and what is made of them, and of
// what was counted.
func seen(t *testing.T, s store.Store) []string {
	t.Helper()
	var out []string
	for _, resolution := range []store.Resolution{store.Tick, store.TenSeconds, store.Minute, store.Hour} {
		rows, err := s.Rows(t.Context(), store.Query{Resolution: resolution, From: 0, To: 2 * benchBase, Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			out = append(out, fmt.Sprintf("%d s at %d of %s %s %s late %d: r%d v%d open %t %x",
				resolution, r.At, r.Scope, r.Route, r.Name, r.LateBlock, r.Rules, r.Version, r.Open, r.Counts.Append(nil)))
		}
	}
	counted, err := s.Counted(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	closed, err := s.Closed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return append(out, fmt.Sprint(counted, closed))
}

func same(t *testing.T, what string, got, want store.Store) {
	t.Helper()
	if g, w := seen(t, got), seen(t, want); !slices.Equal(g, w) {
		t.Errorf("%s: there is\n%s\nwant\n%s", what, strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
}

// randomWrite is one of some series, some of them late, that closes ticks now and
// then.
func randomWrite(r *rand.Rand, at int64, rules uint32) *store.Write {
	w := &store.Write{Scope: "s", Rules: rules, Closed: at - 3, Counted: []store.Range{{Partition: "p", From: at - benchBase, To: at - benchBase + 1 + r.Int64N(3)}}}
	for i := range 1 + r.IntN(4) {
		x := tick(at-r.Int64N(4), fmt.Sprint(r.IntN(3)))
		x.Version, x.Rules = uint64(1+r.IntN(100)), rules
		if i > 2 {
			x.LateBlock = r.Int64N(3)
			x.At -= r.Int64N(100)
		}
		if !slices.ContainsFunc(w.Rows, func(o store.Row) bool { return o.At == x.At && o.Name == x.Name && o.LateBlock == x.LateBlock }) {
			w.Rows = append(w.Rows, x)
		}
	}
	return w
}

// Whatever answer is lost and whatever statement fails, a write that is made again
// until it is acknowledged is there once, and one that is not acknowledged is there
// whole or not at all.
func TestClickHouseAfterFailures(t *testing.T) {
	server := clickhousetest.Start(t)
	s, want := openClickHouse(t, server), store.NewMemory()
	r := rand.New(rand.NewPCG(1, 91))
	failed := 0
	for at := int64(benchBase); at < benchBase+40; at++ {
		w := randomWrite(r, at, 1)
		if r.IntN(2) == 0 {
			server.Fail(clickhousetest.Fault{Of: []string{"INSERT INTO facts", "FROM facts", ""}[r.IntN(3)], Done: r.IntN(2) == 0})
		}
		before := seen(t, want)
		if err := want.Write(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		for tries := 0; s.Write(t.Context(), w) != nil; tries++ {
			failed++
			if tries == 5 {
				t.Fatal("it goes on failing")
			}
			if g := seen(t, s); at%7 == 0 && !slices.Equal(g, before) && !slices.Equal(g, seen(t, want)) {
				t.Fatalf("a write that failed is there in part:\n%s", strings.Join(g, "\n"))
			}
		}
	}
	if failed < 8 {
		t.Errorf("%d writes failed", failed)
	}
	same(t, "after failures", s, want)
}

// Two processes write one scope, the second under the same rules or newer ones, and
// one comes in the middle of the other's write: before it stores anything, or between
// storing and looking whether it may acknowledge.
func TestClickHouseOfTwoOwners(t *testing.T) {
	for _, rules := range []uint32{1, 2} {
		for _, moment := range []string{"INSERT INTO facts", "kind IN ('claim') AND"} {
			server := clickhousetest.Start(t)
			a, b, want := openClickHouse(t, server), openClickHouse(t, server), store.NewMemory()
			r := rand.New(rand.NewPCG(uint64(rules), 92))
			write := func(s store.Store, w *store.Write) {
				t.Helper()
				if err := s.Write(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			for at := int64(benchBase); at < benchBase+15; at++ {
				w := randomWrite(r, at, 1)
				write(want, w)
				write(a, w)
			}
			same(t, "of one owner", b, want)
			for at := int64(benchBase + 15); at < benchBase+22; at++ {
				old, next := randomWrite(r, at, 1), randomWrite(r, at, rules)
				ran := false
				server.Before(moment, func() { ran = true; write(b, next) })
				write(a, old)
				if !ran {
					t.Fatal("the other did not come in between")
				}
				// The first was there before the second came, or not, and is made again.
				if moment != "INSERT INTO facts" {
					write(want, old)
				}
				write(want, next)
				write(want, old)
			}
			// Where one came in the middle, rows of both may be seen until it is closed.
			last := &store.Write{Scope: "s", Rules: rules, Closed: benchBase + 120}
			write(b, last)
			write(want, last)
			same(t, fmt.Sprintf("under rules %d, in the middle of %q", rules, moment), a, want)
		}
	}
}

// A write is one part of one table, and so visible as a whole.
func TestClickHouseWritesOnePart(t *testing.T) {
	server := clickhousetest.Start(t)
	s := openClickHouse(t, server)
	if err := s.Write(t.Context(), &store.Write{Scope: "s", Rules: 1, Closed: 1}); err != nil { // it claims the scope
		t.Fatal(err)
	}
	server.Exec(t, "SYSTEM STOP MERGES "+server.Database+".facts")
	parts := func() (n int) {
		_, _ = fmt.Sscan(server.Query(t, "SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 'facts' AND active")[0], &n)
		return n
	}
	before := parts()
	tick := wide(benchBase, 500)
	var rows []store.Row
	for i := range int64(10) {
		rows = append(rows, shifted(slices.Clone(tick), benchBase+i)...)
	}
	w := &store.Write{Scope: "s", Rules: 1, Rows: rows, Closed: benchBase + 3600, Counted: []store.Range{{Partition: "p", From: 0, To: 9}}}
	if err := s.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if after := parts(); before == 0 || after != before+1 {
		t.Errorf("a write of %d rows with all roll-ups makes %d parts of %d", len(rows), after, before)
	}
	server.Exec(t, "SYSTEM START MERGES "+server.Database+".facts")
}

// A process that holds a scope reads nothing before it writes: an insert, and a look
// whether it still holds it, are all. What happened meanwhile it learns by that look.
func TestClickHouseWritesWithoutReading(t *testing.T) {
	server := clickhousetest.Start(t)
	a, b, want := openClickHouse(t, server), openClickHouse(t, server), store.NewMemory()
	var statements []string
	server.Judge(func(text string) (clickhousetest.Fault, bool) {
		statements = append(statements, text)
		return clickhousetest.Fault{}, false
	})
	at := int64(benchBase)
	write := func(s store.Store) int {
		t.Helper()
		statements = nil
		w := &store.Write{Scope: "s", Rules: 1, Rows: []store.Row{tick(at, "web")}, Closed: at - 60}
		if err := errors.Join(s.Write(t.Context(), w), want.Write(t.Context(), w)); err != nil {
			t.Fatal(err)
		}
		at++
		return len(statements)
	}
	if n := write(a); n < 5 {
		t.Errorf("the first write has %d statements: %q", n, statements)
	}
	for range 3 {
		if n := write(a); n != 2 || !strings.HasPrefix(statements[0], "INSERT INTO facts") {
			t.Errorf("the next has %d statements: %q", n, statements)
		}
	}
	write(b)
	if n := write(a); n < 7 {
		t.Errorf("after another came in between a write has %d statements: %q", n, statements)
	}
	if n := write(a); n != 2 {
		t.Errorf("the next after that has %d: %q", n, statements)
	}
	// After an error it is not known what is there.
	server.Fail(clickhousetest.Fault{Of: "INSERT INTO facts", Done: true})
	if err := a.Write(t.Context(), &store.Write{Scope: "s", Rules: 1, Rows: []store.Row{tick(at, "api")}}); err == nil {
		t.Fatal("the answer was not lost")
	}
	if n := write(a); n < 3 {
		t.Errorf("after a lost answer a write has %d statements: %q", n, statements)
	}
	again := &store.Write{Scope: "s", Rules: 1, Rows: []store.Row{tick(at-1, "api")}, Closed: at + 120}
	if err := errors.Join(a.Write(t.Context(), again), want.Write(t.Context(), again)); err != nil {
		t.Fatal(err)
	}
	same(t, "without reading", a, want)
}

func TestClickHouseErrorsAreNamed(t *testing.T) {
	server := clickhousetest.Start(t)
	s := openClickHouse(t, server)
	w := tickWrite(benchBase, 3)
	check := func(what string, want error, remedy string, err error) {
		t.Helper()
		if !errors.Is(err, want) || !strings.Contains(err.Error(), remedy) || !strings.Contains(err.Error(), server.Database) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for code, want := range map[int]error{
		164: store.ErrReadOnly, 242: store.ErrReadOnly, 243: store.ErrFull, 16: store.ErrSchema, 60: store.ErrSchema, 81: store.ErrNoDatabase, 516: store.ErrPassword,
		159: store.ErrSlow, 252: store.ErrSlow, 319: store.ErrSlow, 225: store.ErrUnreachable, 285: store.ErrUnreachable, 286: store.ErrUnreachable, 115: store.ErrTooOld,
	} {
		server.Fail(clickhousetest.Fault{Of: "INSERT INTO facts", Code: code, Message: "no"})
		check(fmt.Sprint("code ", code), want, "", s.Write(t.Context(), w))
		server.Fail(clickhousetest.Fault{Of: "INSERT INTO checks", Code: code, Message: "no"})
		check(fmt.Sprint("a check with code ", code), want, "", s.Check(t.Context()))
	}
	for _, text := range []string{"Cannot write to file /data/0.bin, errno: 28, strerror: No space left on device", "std::exception: filesystem error: in create_directories: No space left on device"} {
		server.Fail(clickhousetest.Fault{Of: "INSERT INTO facts", Code: 1001, Message: text})
		check(text, store.ErrFull, "make room", s.Write(t.Context(), w))
	}
	held := make(chan struct{})
	server.Before("INSERT INTO checks", func() { <-held })
	late, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	check("no answer in time", store.ErrSlow, "system.processes", s.Check(late))
	close(held)
	up := server.Down()
	check("down", store.ErrUnreachable, "store.clickhouse.addr", s.Write(t.Context(), w))
	check("down", store.ErrUnreachable, "store.clickhouse.addr", s.Check(t.Context()))
	wrong := clickhouseAt(server)
	wrong.Password = "hunter2"
	_, err := store.OpenClickHouse(t.Context(), wrong)
	check("opening what is down", store.ErrUnreachable, "store.clickhouse.addr", err)
	up()
	if err := errors.Join(s.Write(t.Context(), w), s.Check(t.Context())); err != nil {
		t.Errorf("it is up again: %v", err)
	}
	server.SetPassword("right")
	_, err = store.OpenClickHouse(t.Context(), wrong)
	check("a wrong password", store.ErrPassword, "password_file", err)
	server.SetPassword("")
	nowhere := clickhouseAt(server)
	nowhere.Database = server.Database + "_not"
	_, err = store.OpenClickHouse(t.Context(), nowhere)
	check("an unknown database", store.ErrNoDatabase, "auditor migrate up", err)
}

func TestClickHouseMigrations(t *testing.T) {
	server := clickhousetest.Start(t)
	at := clickhouseAt(server)
	at.Database += "_made"
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE IF EXISTS "+at.Database+" SYNC") })
	done := func() (n int) {
		t.Helper()
		steps, err := store.ClickHouseSteps(t.Context(), at)
		if err != nil || len(steps) < 3 {
			t.Fatalf("%d steps, %v", len(steps), err)
		}
		for _, s := range steps {
			if s.Done {
				n++
			}
		}
		return n
	}
	if n := done(); n != 0 {
		t.Errorf("%d steps were run where there is no database", n)
	}
	var began []string
	migrate := func() error {
		began = nil
		return store.MigrateClickHouse(t.Context(), at, func(step string) { began = append(began, step) })
	}
	if err := migrate(); err != nil || len(began) != done() || began[0] != "001_migrations.sql" {
		t.Fatalf("%q, %v", began, err)
	}
	if err := migrate(); err != nil || began != nil {
		t.Errorf("a second time it runs %q, %v", began, err)
	}
	// One that ended in the middle is run whole.
	exec := func(text string) { server.Exec(t, strings.ReplaceAll(text, "DB.", at.Database+".")) }
	exec("DELETE FROM DB.migrations WHERE number > 1")
	if _, err := store.OpenClickHouse(t.Context(), at); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "002_facts.sql") || !strings.Contains(err.Error(), "auditor migrate up") {
		t.Errorf("a database that lacks steps gives %v", err)
	}
	// Another run comes between this one's word that it runs and its look for others.
	server.Before("HAVING max(ended)", func() { exec("INSERT INTO DB.migration_runs (token, ended) VALUES ('other', 0)") })
	if err := migrate(); !errors.Is(err, store.ErrMigrating) || began != nil || done() != 1 {
		t.Errorf("beside another run it runs %q, %v", began, err)
	}
	exec("INSERT INTO DB.migration_runs (token, ended, at) VALUES ('other', 1, now64(3)), ('killed', 0, now64(3) - INTERVAL 11 MINUTE)")
	if err := migrate(); err != nil || len(began) != done()-1 {
		t.Errorf("after the other has ended it runs %q, %v", began, err)
	}
	s, err := store.OpenClickHouse(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	for what, change := range map[string]struct{ made, undone []string }{
		"a later version's step": {
			[]string{"INSERT INTO DB.migrations (number, name) VALUES (99, '099_later.sql')"},
			[]string{"DELETE FROM DB.migrations WHERE number = 99"},
		},
		"another type": {
			[]string{"ALTER TABLE DB.facts MODIFY COLUMN rules UInt64"},
			[]string{"ALTER TABLE DB.facts MODIFY COLUMN rules UInt32"},
		},
		"a lost column": {
			[]string{"ALTER TABLE DB.facts DROP COLUMN peers"},
			[]string{"ALTER TABLE DB.facts ADD COLUMN peers Array(LowCardinality(String))"},
		},
		"a lost column of shares": {
			[]string{"ALTER TABLE DB.shares DROP COLUMN state"},
			[]string{"ALTER TABLE DB.shares ADD COLUMN state String AFTER seq"},
		},
		"another type of takings": {
			[]string{"ALTER TABLE DB.takings MODIFY COLUMN token LowCardinality(String)"},
			[]string{"ALTER TABLE DB.takings MODIFY COLUMN token String"},
		},
		"a table that is gone": {
			[]string{"RENAME TABLE DB.takings TO DB.aside"},
			[]string{"RENAME TABLE DB.aside TO DB.takings"},
		},
		"a table that replaces nothing": {
			[]string{"RENAME TABLE DB.shares TO DB.aside", "CREATE TABLE DB.shares AS DB.aside ENGINE = MergeTree ORDER BY (fleet, member, kind, name, at)"},
			[]string{"DROP TABLE DB.shares", "RENAME TABLE DB.aside TO DB.shares"},
		},
		"a table with partitions": {
			[]string{"RENAME TABLE DB.facts TO DB.aside",
				"CREATE TABLE DB.facts AS DB.aside ENGINE = ReplacingMergeTree(ver, deleted) PARTITION BY kind PRIMARY KEY (kind, at, scope) ORDER BY (kind, at, scope, family, dependency, route, name, wide, late, key_hash, lot, last)"},
			[]string{"DROP TABLE DB.facts", "RENAME TABLE DB.aside TO DB.facts"},
		},
	} {
		for _, text := range change.made {
			exec(text)
		}
		if _, err := store.OpenClickHouse(t.Context(), at); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), at.Database) {
			t.Errorf("%s gives %v", what, err)
		}
		for _, text := range change.undone {
			exec(text)
		}
	}
	if _, err = store.OpenClickHouse(t.Context(), at); err != nil {
		t.Errorf("put back, it gives %v", err)
	}
}

// What has expired is deleted an hour later, and so are claims that nobody holds.
func TestClickHouseDeletes(t *testing.T) {
	server := clickhousetest.Start(t)
	a, b := openClickHouse(t, server), openClickHouse(t, server)
	for at := int64(benchBase); at < benchBase+3600; at += 300 {
		if err := a.Write(t.Context(), tickWrite(at, 2)); err != nil {
			t.Fatal(err)
		}
		a, b = b, a
	}
	if err := a.Write(t.Context(), &store.Write{Scope: "s", Rules: 1, Closed: benchBase + 7200}); err != nil {
		t.Fatal(err)
	}
	count := func(of string) string {
		return server.Query(t, "SELECT count(), uniqExact(at) FROM facts WHERE "+of)[0]
	}
	expire := func(after int64) {
		t.Helper()
		if err := a.Expire(t.Context(), time.Unix(benchBase+after, 0), map[store.Resolution]time.Duration{store.Tick: 2 * time.Hour, store.TenSeconds: 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	claims := count("kind = 'claim'")
	expire(3*3600 - 10)
	if n := count("kind = 'tick'"); n != "24\t12" || claims == "1\t1" || count("kind = 'claim'") != "1\t1" {
		t.Errorf("there are %s ticks, and %s claims of %s", n, count("kind = 'claim'"), claims)
	}
	rows, err := a.Rows(t.Context(), store.Query{Resolution: store.Tick, From: benchBase, To: benchBase + 3600, Limit: 100})
	if err != nil || len(rows) != 0 {
		t.Errorf("%d rows that have expired are returned, %v", len(rows), err)
	}
	expire(3*3600 + 1700) // it has just deleted
	if n := count("kind = 'tick'"); n != "24\t12" {
		t.Errorf("there are %s ticks half an hour later", n)
	}
	expire(4*3600 + 600)
	if n, longer := count("kind = 'tick'"), count("kind = 'ten_seconds'"); n != "0\t0" || longer != "24\t12" {
		t.Errorf("there are %s ticks and %s of ten seconds an hour later", n, longer)
	}
}

// A daemon whose clock is fast does not let rows expire that all others still need.
func TestClickHouseExpiresByItsOwnClock(t *testing.T) {
	server := clickhousetest.Start(t)
	openClickHouse(t, server)
	s, err := store.OpenClickHouse(t.Context(), clickhouseAt(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now := time.Now()
	at := now.Add(-2*time.Hour).Unix() / 60 * 60
	if err := errors.Join(s.Write(t.Context(), tickWrite(at, 2)), s.Write(t.Context(), &store.Write{Scope: "s", Rules: 1, Closed: at + 120})); err != nil {
		t.Fatal(err)
	}
	left := func(keep time.Duration, now time.Time) int {
		t.Helper()
		if err := s.Expire(t.Context(), now, map[store.Resolution]time.Duration{store.Tick: keep, store.TenSeconds: keep}); err != nil {
			t.Fatal(err)
		}
		rows, err := s.Rows(t.Context(), store.Query{Resolution: store.Tick, From: at - 60, To: at + 60, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	if n := left(3*time.Hour, now.AddDate(1, 0, 0)); n != 2 {
		t.Errorf("by a clock that is a year fast %d rows are left of 2", n)
	}
	if n := left(time.Hour, now.AddDate(-1, 0, 0)); n != 2 {
		t.Errorf("by a clock that is slow %d rows are left of 2", n)
	}
	if n := left(time.Hour, now); n != 0 {
		t.Errorf("%d rows are left that have expired", n)
	}
}

// The views say what the program itself reads, also where two scopes and late records
// are, and where older rules left rows in the database that newer ones replaced.
func TestClickHouseViews(t *testing.T) {
	server := clickhousetest.Start(t)
	s := openClickHouse(t, server)
	write := func(scope string, rules uint32, closed int64, rows ...store.Row) {
		t.Helper()
		for i := range rows {
			rows[i].Scope, rows[i].Rules = scope, rules
		}
		if err := s.Write(t.Context(), &store.Write{Scope: scope, Rules: rules, Closed: closed, Rows: rows}); err != nil {
			t.Fatal(err)
		}
	}
	for _, scope := range []string{"a", "b"} {
		for at := int64(benchBase); at < benchBase+130; at += 5 {
			rows := shifted(wide(benchBase, 2), at)
			rows[1].LateBlock = 7
			write(scope, 1, at, rows...)
		}
		write(scope, 1, benchBase+125)
	}
	// A process that does not know of new rules leaves a row behind.
	write("a", 2, benchBase+60, shifted(wide(benchBase, 1), benchBase+61)...)
	write("a", 2, benchBase+125)
	server.Exec(t, fmt.Sprintf("INSERT INTO facts (kind, at, scope, dependency, route, name, late, rules, arrivals, major, minor) VALUES ('tick', %d, 'a', 'seats', 'GET /gone', 'x', -1, 1, 99, 1, 2)", benchBase+70))

	for resolution, name := range map[store.Resolution]string{store.Tick: "tick", store.TenSeconds: "ten_seconds", store.Minute: "minute"} {
		var want []string
		sums := map[string][4]uint64{}
		for family, called := range []string{"originator", "peer"} {
			rows, err := s.Rows(t.Context(), store.Query{Family: store.Family(family), Resolution: resolution, From: benchBase, To: benchBase + 120, Dependency: "seats", Limit: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				n := fmt.Sprintf("%d\t%s\t%s\t%s", r.At, r.Route, called, r.Name)
				x, c := sums[n], r.Counts.Totals()
				sums[n] = [4]uint64{x[0] + c.Arrivals, x[1] + c.Verified, x[2] + c.Unattributable.Total, x[3] + c.Originals}
			}
		}
		for n, x := range sums {
			want = append(want, fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d", n, x[0], x[1], x[2], x[3], x[1]-x[3]))
		}
		slices.Sort(want)
		got := server.Query(t, fmt.Sprintf("SELECT toUnixTimestamp(time), route, family, name, arrivals, verified, unattributable, originals, repeats "+
			"FROM figures(resolution = '%s', from = %d, to = %d, dependency = 'seats')", name, benchBase, benchBase+120))
		slices.Sort(got)
		if len(got) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: there is\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if got := server.Query(t, "SELECT scope, closed FROM scopes ORDER BY scope"); !slices.Equal(got, []string{fmt.Sprintf("a\t%d", benchBase+125), fmt.Sprintf("b\t%d", benchBase+125)}) {
		t.Errorf("closed are %q", got)
	}
	at := func(seconds int64) time.Time { return time.Unix(benchBase+seconds, 500) }
	q := store.Question{KeyHash: [16]byte{1, 2}, Lot: 1 << 31, Scope: "a", Dependency: "seats", Route: "GET /0", Originator: "web", Peers: []string{"p"}, First: at(1), Last: at(9), Arrivals: 3}
	part := q
	part.Arrivals, part.First = 2, at(5)
	for _, x := range []store.Question{q, part} {
		if err := s.Write(t.Context(), &store.Write{Scope: "a", Rules: 2, Questions: []store.Question{x}}); err != nil {
			t.Fatal(err)
		}
	}
	got := server.Query(t, fmt.Sprintf("SELECT key_hash, scope, route, originator, peers, arrivals, toUnixTimestamp64Nano(last_arrival) FROM questions(from = %d, to = %d, dependency = 'seats')", benchBase, benchBase+10))
	if want := []string{fmt.Sprintf("0102%028d\ta\tGET /0\tweb\t['p']\t3\t%d", 0, at(9).UnixNano())}; !slices.Equal(got, want) {
		t.Errorf("questions are %q, want %q", got, want)
	}
}

// A process dies while what it writes is on its way. Another has taken the scope over
// and made what the late row belongs to when it arrives. The other reads the same
// records, and then all is as if the first had never been.
func TestClickHouseOwnerThatDiesWhileItWrites(t *testing.T) {
	server := clickhousetest.Start(t)
	a, b, want := openClickHouse(t, server), openClickHouse(t, server), store.NewMemory()
	write := func(stores []store.Store, w *store.Write) {
		t.Helper()
		for _, s := range stores {
			if err := s.Write(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
	}
	late := func(name string, block int64, version uint64) *store.Write {
		r := tick(benchBase+3, name)
		r.LateBlock, r.Version = block, version
		return &store.Write{Scope: "s", Rules: 1, Rows: []store.Row{r}}
	}
	write([]store.Store{a, want}, &store.Write{Scope: "s", Rules: 1, Rows: []store.Row{tick(benchBase+3, "web")}, Closed: benchBase + 7200})
	ctx, die := context.WithCancel(t.Context())
	server.Before("INSERT INTO facts", func() {
		write([]store.Store{b, want}, late("x", 8, 5)) // it makes the roll-ups of the bucket
		die()
	})
	if err := a.Write(ctx, late("x", 7, 9)); err == nil {
		t.Fatal("the dead acknowledge")
	}
	until(t, func() bool {
		return server.Query(t, "SELECT count() FROM facts WHERE kind = 'tick' AND late = 7")[0] == "1"
	})
	for range 2 {
		write([]store.Store{b, want}, late("x", 7, 9))
	}
	same(t, "when it came again", b, want)
	// Of what is there already, less is less.
	write([]store.Store{b, want}, late("x", 7, 4))
	write([]store.Store{a, want}, late("x", 7, 4))
	same(t, "when less came", a, want)
}

// What a process that does not know of newer rules yet makes of its rows, where those
// have closed all of it, nobody sees, and nothing is made of it.
func TestClickHouseRollUpsOfOlderRules(t *testing.T) {
	server := clickhousetest.Start(t)
	s, want := openClickHouse(t, server), store.NewMemory()
	write := func(w *store.Write) {
		t.Helper()
		for i := range w.Rows {
			w.Rows[i].Rules = w.Rules
		}
		if err := errors.Join(s.Write(t.Context(), w), want.Write(t.Context(), w)); err != nil {
			t.Fatal(err)
		}
	}
	write(&store.Write{Scope: "s", Rules: 1, Rows: []store.Row{tick(benchBase+1, "a"), tick(benchBase+65, "a")}, Closed: benchBase + 66})
	write(&store.Write{Scope: "s", Rules: 2, Rows: []store.Row{tick(benchBase+75, "a"), tick(benchBase+130, "a")}, Closed: benchBase + 70})
	write(&store.Write{Scope: "s", Rules: 2, Closed: benchBase + 200})
	same(t, "before", s, want)
	ghosts := func(kind string) {
		server.ExecIn(t, server.Database, fmt.Sprintf("INSERT INTO facts SELECT * REPLACE ('ghost' AS name, 1 AS rules, 4711 AS series) FROM facts FINAL WHERE kind = '%s' AND at >= %d", kind, benchBase+70))
	}
	ghosts("tick")
	ghosts("ten_seconds")
	ghosts("minute")
	if n := server.Query(t, "SELECT count() FROM facts FINAL WHERE name = 'ghost'")[0]; n != "5" { // two seconds, two of ten, and the minute that is newer rules' alone
		t.Fatalf("there are %s rows of older rules", n)
	}
	same(t, "beside rows of older rules", s, want)
	write(&store.Write{Scope: "s", Rules: 2, Closed: benchBase + 7200})
	same(t, "when hours are made", s, want)
}

// The worst questions are right where more are equal than are asked for, and where the
// parts of one that it had before are not merged yet.
func TestClickHouseWorstQuestionsAmongEquals(t *testing.T) {
	server := clickhousetest.Start(t)
	s := openClickHouse(t, server)
	server.ExecIn(t, server.Database, "SYSTEM STOP MERGES facts")
	insert := func(n int, key, arrivals string) {
		server.ExecIn(t, server.Database, fmt.Sprintf(`INSERT INTO facts (kind, at, scope, dependency, route, key_hash, lot, last, arrivals, first, minor)
SELECT 'question', %d, 's', 'seats', 'GET /', reinterpretAsFixedString(toUInt128(%s)), 2147483648, %d, %s AS n, %d, n FROM numbers(%d)`,
			benchBase, key, int64(benchBase)*1e9+7, arrivals, int64(benchBase)*1e9, n))
	}
	insert(200, "255 - number", "9")
	for part := range 40 { // each in a part of its own
		insert(1, "1000", fmt.Sprint(10+part))
	}
	q := store.QuestionQuery{From: time.Unix(benchBase, 0), To: time.Unix(benchBase+1, 0), Limit: 4, Among: 201}
	got, err := s.WorstQuestions(t.Context(), q)
	if err != nil || len(got) != 4 || got[0].Arrivals != 49 || got[0].KeyHash[1] != 3 || got[1].KeyHash[0] != 56 || got[2].KeyHash[0] != 57 || got[3].KeyHash[0] != 58 || got[3].Arrivals != 9 {
		t.Errorf("the worst are %+v, %v", got, err)
	}
	q.Among = 200
	if _, err := s.WorstQuestions(t.Context(), q); !errors.Is(err, store.ErrTooMany) {
		t.Errorf("of 201 questions, when 200 may be looked at: %v", err)
	}
	server.ExecIn(t, server.Database, "SYSTEM START MERGES facts")
}

// until waits for something that is under way.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it does not come")
}
