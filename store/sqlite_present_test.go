package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/targetside/auditor/store"
)

// A file that is not in its place any more is noticed at the next call, whatever
// that is, and so is a write-ahead log. Moved back, all goes on as if nothing had
// been.
func TestSQLiteFileGone(t *testing.T) {
	put := func(from, to string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		take   func(path, aside string) error
		word   string
		reads  bool // reading sees it, too
		undone bool // and it can be taken back
	}{
		"deleted": {func(path, _ string) error { return os.Remove(path) }, "was deleted", true, false},
		"deleted with all that is beside it": {func(path, _ string) error {
			return errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm"))
		}, "was deleted", true, false},
		"moved":     {os.Rename, "was deleted or moved", true, true},
		"its place": {func(path, aside string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old") }, "was deleted or moved", true, false},
		"replaced by a copy": {func(path, aside string) error {
			put(path, aside+".copy")
			return errors.Join(os.Rename(path, aside), os.Rename(aside+".copy", path))
		}, "another file", true, true},
		"replaced by something else": {func(path, aside string) error {
			return errors.Join(os.Rename(path, aside), os.WriteFile(path, nil, 0o644))
		}, "another file", true, true},
		"the log deleted": {func(path, _ string) error { return os.Remove(path + "-wal") }, "-wal was deleted", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "rows")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path, aside := filepath.Join(dir, "a.db"), filepath.Join(dir, "aside")
			s := openFile(t, path)
			if err := s.Write(t.Context(), tickWrite(100, 3)); err != nil {
				t.Fatal(err)
			}
			if err := test.take(path, aside); err != nil {
				t.Fatal(err)
			}
			gone := func(doing string, err error) {
				t.Helper()
				if !errors.Is(err, store.ErrGone) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.word) ||
					!strings.Contains(err.Error(), "restart") {
					t.Errorf("%s: %v", doing, err)
				}
			}
			for range 2 {
				gone("check", s.Check(t.Context()))
				gone("write", s.Write(t.Context(), tickWrite(101, 3)))
				gone("save", s.Save(t.Context(), "a", []byte("b")))
				_, err := s.NextRules(t.Context(), "s")
				gone("rules", err)
				if test.reads {
					_, err := s.Rows(t.Context(), store.Query{Resolution: store.Tick, From: 0, To: 1000, Limit: 10})
					gone("rows", err)
					_, err = s.Load(t.Context(), "a")
					gone("load", err)
				}
			}
			if !test.undone {
				return
			}
			if err := os.Rename(aside, path); errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if err := s.Write(t.Context(), tickWrite(101, 3)); err != nil {
				t.Errorf("put back: %v", err)
			}
			rows, err := s.Rows(t.Context(), store.Query{Resolution: store.Tick, From: 0, To: 1000, Limit: 10})
			if err != nil || len(rows) != 6 {
				t.Errorf("put back: %d rows, %v", len(rows), err)
			}
		})
	}
}

// What had been written before its log was deleted is in the file once the store
// is closed.
func TestSQLiteLogDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openFile(t, path)
	if err := s.Write(t.Context(), tickWrite(100, 3)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), tickWrite(101, 3)); !errors.Is(err, store.ErrGone) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openFile(t, path)
	rows, err := s.Rows(t.Context(), store.Query{Resolution: store.Tick, From: 0, To: 1000, Limit: 10})
	if err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
