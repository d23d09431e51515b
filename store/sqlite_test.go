package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/store"
)

func openFile(t *testing.T, path string) store.Store {
	t.Helper()
	s, err := store.OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// refused opens a file that cannot be a store, and wants these words in the error.
func refused(t *testing.T, path string, words ...string) error {
	t.Helper()
	s, err := store.OpenSQLite(t.Context(), path)
	if err == nil {
		_ = s.Close()
		t.Fatalf("%s was opened", path)
	}
	for _, w := range append(words, path) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
	return err
}

func tick(at int64, name string) store.Row {
	return store.Row{
		At: at, Scope: "s", LateBlock: store.OnTime, Dependency: "seats", Route: "GET /", Name: name, Rules: 1, Version: 1,
		Counts: new(aggregate.Counts),
	}
}

// tickWrite is a tick of some rows, with its offsets.
func tickWrite(at int64, rows int) *store.Write {
	w := &store.Write{Scope: "s", Rules: 1, Closed: at + 1, Counted: []store.Range{{Partition: "p", From: at, To: at + 1}}}
	for i := range rows {
		w.Rows = append(w.Rows, tick(at, fmt.Sprint(i)))
	}
	return w
}

func TestSQLiteBelongsToOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?#%20\u00e5.db") // all of it is the name
	s := openFile(t, path)
	if err := refused(t, path, "stop the other"); !errors.Is(err, store.ErrInUse) {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenSQLite(t.Context(), link); !errors.Is(err, store.ErrInUse) {
		t.Errorf("by another name it opens: %v", err)
	}
	if err := s.Write(t.Context(), tickWrite(100, 3)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openFile(t, path)
	if closed, err := s.Closed(t.Context()); err != nil || closed["s"] != 101 {
		t.Errorf("reopened it is closed to %v, %v", closed, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestSQLiteRefusesForeignFiles(t *testing.T) {
	dir := t.TempDir()
	refused(t, filepath.Join(dir, "none", "a.db"), "does not exist: create")
	refused(t, dir, "not a file")

	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, text, "not a SQLite database")

	for name, statement := range map[string]string{
		"newer":   "INSERT INTO migrations VALUES (99, '099_later.sql')",
		"unknown": "UPDATE migrations SET name = '001_other.sql' WHERE number = 1",
		"foreign": "DROP TABLE migrations",
		"other":   "ALTER TABLE migrations RENAME COLUMN number TO version",
	} {
		path := filepath.Join(dir, name+".db")
		s := openFile(t, path)
		if err := store.Exec(t.Context(), s, statement); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := refused(t, path, "store.sqlite"); !errors.Is(err, store.ErrSchema) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSQLiteDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openFile(t, path)
	for at := range int64(50) {
		if err := s.Write(t.Context(), tickWrite(100+at, 50)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); err == nil || len(b) < 40_000 {
		t.Fatalf("closing leaves a file of %d bytes and its log", len(b))
	}
	for i := 8192; i < len(b); i++ {
		b[i] = 0xa5
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	// Damage in a page of rows is seen when it is read, in one of the schema at once.
	if err := refused(t, path, "damaged", ".recover"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("of damage it is no error: %v", err)
	}
}

// A full disk is a limit on the file's pages here; SQLite says the same of both.
func TestSQLiteFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openFile(t, path)
	if err := s.Write(t.Context(), tickWrite(100, 10)); err != nil {
		t.Fatal(err)
	}
	if err := store.Pragma(t.Context(), s, "max_page_count = 40"); err != nil {
		t.Fatal(err)
	}
	err := s.Write(t.Context(), tickWrite(101, 20_000))
	if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(err.Error(), path) {
		t.Fatalf("a full disk gives %v", err)
	}
	rows, err := s.Rows(t.Context(), store.Query{Resolution: store.Tick, From: 100, To: 102, Limit: 1 << 20})
	if err != nil || len(rows) != 10 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	// There is room again: the next write is made on a connection without limit.
	if err := s.Write(t.Context(), tickWrite(101, 20_000)); err != nil {
		t.Error(err)
	}
}

const crashing = "STORE_TEST_CRASH"

// TestMain lets the binary be the process that is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv(crashing); path != "" {
		writeForever(path)
	}
	os.Exit(m.Run())
}

// writeForever writes ticks and prints each once it is acknowledged.
func writeForever(path string) {
	s, err := store.OpenSQLite(context.Background(), path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	closed, _ := s.Closed(context.Background())
	for at := max(closed["s"], 1000); ; at++ {
		if err := s.Write(context.Background(), tickWrite(at, 20)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(at)
	}
}

func TestSQLiteSurvivesKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	last := int64(999)
	for round := range 3 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), crashing+"="+path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
				t.Fatalf("the writer says %s", lines.Text())
			}
			if n == 25+7*round {
				_ = child.Process.Kill()
			}
		}
		_ = child.Wait()

		s := openFile(t, path)
		rows, err := s.Rows(t.Context(), store.Query{Resolution: store.Tick, From: 1000, To: 1 << 30, Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		counted, err := s.Counted(t.Context(), "p")
		if err != nil || len(counted) != 1 || counted[0].From != 1000 || counted[0].To <= last {
			t.Fatalf("counted %v, %v, though %d was acknowledged", counted, err, last)
		}
		if want := int(counted[0].To-1000) * 20; len(rows) != want {
			t.Fatalf("%d rows, want %d: a write is there in part", len(rows), want)
		}
		rolled, err := s.Rows(t.Context(), store.Query{Resolution: store.TenSeconds, From: 1000, To: 1 << 30 / 10 * 10, Limit: 1 << 20})
		if want := int(counted[0].To-1000) / 10 * 20; err != nil || len(rolled) != want {
			t.Fatalf("%d roll-ups, %v; want %d", len(rolled), err, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
