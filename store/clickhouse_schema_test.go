package store_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/targetside/auditor/migrations"
	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

var record = flag.Bool("record", false, "record the present schema of ClickHouse and what is in it, if that was not done")

// Schemas that were released are recorded under testdata/clickhouse, each in a folder
// that is named for its number of steps:
//
//	steps.sql     the statements of the steps, each step behind its name
//	TABLE.tsv     what a program of that time wrote with them: goldenWrites as they were
//	results.txt   what it answered
//
// They are never changed. A program with more steps is held to bring each of them to
// its own schema and to answer the same.
const recordedSchemas = "testdata/clickhouse"

// recordedTables are what a schema's rows are in.
var recordedTables = []string{"facts", "positions", "takings"}

func schemaFolder(steps int) string {
	return filepath.Join(recordedSchemas, fmt.Sprintf("schema-%03d", steps))
}

// stepText is the statements of steps as they are recorded.
func stepText(steps []migrations.Step) string {
	var out strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&out, "-- %s\n%s;\n\n", s.Name, strings.Join(s.Statements, ";\n\n"))
	}
	return out.String()
}

// recordSchema writes down the present schema and its rows.
func recordSchema(t *testing.T, steps []migrations.Step) {
	t.Helper()
	server := clickhousetest.Start(t)
	s := openClickHouse(t, server)
	fill(t, s)
	dir := schemaFolder(len(steps))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"steps.sql": stepText(steps), "results.txt": golden(t, s)}
	for _, table := range recordedTables {
		rows := server.Query(t, "SELECT * FROM "+table+" ORDER BY ALL FORMAT TabSeparatedWithNames")
		files[table+".tsv"] = strings.Join(rows, "\n") + "\n"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// made makes a database of the first steps of a recorded schema, as a program of that
// time would have left it, and returns how to reach it.
func made(t *testing.T, server *clickhousetest.Server, name string, steps []migrations.Step) store.ClickHouse {
	t.Helper()
	at := clickhouseAt(server)
	at.Database += name
	server.Exec(t, "CREATE DATABASE "+at.Database)
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE IF EXISTS "+at.Database+" SYNC") })
	for i, s := range steps {
		for _, text := range s.Statements {
			server.ExecIn(t, at.Database, text)
		}
		server.ExecIn(t, at.Database, fmt.Sprintf("INSERT INTO migrations (number, name) VALUES (%d, '%s')", i+1, s.Name))
	}
	return at
}

// readSteps reads recorded steps.
func readSteps(t *testing.T, dir string) (out []migrations.Step) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "steps.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		s := migrations.Step{Name: name}
		for _, statement := range strings.Split(strings.TrimSpace(rest), ";\n") {
			s.Statements = append(s.Statements, strings.TrimSuffix(strings.TrimSpace(statement), ";"))
		}
		out = append(out, s)
	}
	return out
}

// shape is what tables and views of a database are like.
func shape(t *testing.T, server *clickhousetest.Server, database string) string {
	t.Helper()
	rows := server.Query(t, "SELECT name, engine, create_table_query FROM system.tables WHERE database = '"+database+"' ORDER BY name")
	return strings.ReplaceAll(strings.Join(rows, "\n"), database, "DB")
}

// Whatever was released is brought to the schema of this program, as far as each of its
// steps, and what was written then is answered as it was.
func TestClickHouseRecordedSchemas(t *testing.T) {
	steps, err := migrations.ClickHouse("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(schemaFolder(len(steps))); err != nil {
		if !*record {
			t.Fatalf("the schema of %d steps is not recorded: when it is to be released, go test ./store -run RecordedSchemas -record", len(steps))
		}
		recordSchema(t, steps)
	}
	server := clickhousetest.Start(t)
	openClickHouse(t, server)
	want := shape(t, server, server.Database)
	folders, err := filepath.Glob(filepath.Join(recordedSchemas, "schema-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range folders {
		was := readSteps(t, dir)
		if n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "schema-")); n != len(was) || n > len(steps) {
			t.Fatalf("%s has %d steps, the program %d", dir, len(was), len(steps))
		}
		if got, want := stepText(was), stepText(steps[:len(was)]); got != want {
			t.Errorf("steps that were released are changed: there is\n%s\nreleased was\n%s", want, got)
		}
		for n := range was {
			at := made(t, server, fmt.Sprintf("_%d_of_%d", n, len(was)), was[:n])
			if err := store.MigrateClickHouse(t.Context(), at, nil); err != nil {
				t.Fatalf("%s, from step %d: %v", dir, n, err)
			}
			if got := shape(t, server, at.Database); got != want {
				t.Errorf("%s, from step %d there is\n%s\nwant\n%s", dir, n, got, want)
			}
		}
		recorded(t, server, dir, was)
	}
}

// recorded holds a program's answers to what was recorded with a schema.
func recorded(t *testing.T, server *clickhousetest.Server, dir string, was []migrations.Step) {
	t.Helper()
	at := made(t, server, fmt.Sprintf("_all_%d", len(was)), was)
	for _, table := range recordedTables {
		path, err := filepath.Abs(filepath.Join(dir, table+".tsv"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names, rows, _ := strings.Cut(string(text), "\n")
		if strings.TrimSpace(rows) == "" {
			continue
		}
		server.ExecIn(t, at.Database, fmt.Sprintf("INSERT INTO %s (%s) FROM INFILE '%s' FORMAT TabSeparatedWithNames", table, strings.ReplaceAll(names, "\t", ", "), path))
	}
	if err := store.MigrateClickHouse(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	s, err := store.OpenClickHouse(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	isRecorded(t, "what was answered", filepath.Join(dir, "results.txt"), golden(t, s))
	// And it goes on from there.
	closed, err := s.Closed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range slices.Sorted(maps.Keys(closed)) {
		rules, err := s.NextRules(t.Context(), scope)
		if err != nil || rules < 2 {
			t.Fatalf("the next rules of %s are %d, %v", scope, rules, err)
		}
		next := tick(closed[scope]+5, "web")
		next.Scope, next.Rules = scope, rules
		w := &store.Write{Scope: scope, Rules: rules, Rows: []store.Row{next}, Closed: closed[scope] + 600}
		if err := s.Write(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		rows, err := s.Rows(t.Context(), store.Query{Resolution: store.Minute, From: closed[scope] / 60 * 60, To: closed[scope]/60*60 + 600, Name: "web", Limit: 100})
		if err != nil || !slices.ContainsFunc(rows, func(r store.Row) bool { return r.Scope == scope && r.Rules == rules }) {
			t.Errorf("what is written then is %v, %v", rows, err)
		}
	}
}
