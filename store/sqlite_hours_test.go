package store_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/targetside/auditor/store"
)

// An hour of many series is made in parts, a write each, and is whole for whoever
// reads it from its closing on: also after a restart in between, and when a late row
// falls into what is made already and into what is not.
func TestSQLiteMakesHoursInParts(t *testing.T) {
	const hour, series = 1_795_000_000 / 3600 * 3600, 250
	path := filepath.Join(t.TempDir(), "a.db")
	s := openFile(t, path)
	write := func(w *store.Write) {
		t.Helper()
		w.Scope, w.Rules = "s", 1
		if err := s.Write(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	made := func() int {
		n, err := store.Count(t.Context(), s, "SELECT count(*) FROM hours WHERE late < 0")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	want := func(at int, versions map[string]uint64) {
		t.Helper()
		rows, err := s.Rows(t.Context(), store.Query{Resolution: store.Hour, From: hour, To: hour + 7200, Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != series {
			t.Fatalf("with %d rows made there are %d, want %d", made(), len(rows), series)
		}
		for _, r := range rows {
			if v := max(60, versions[r.Name]); r.Version != v || r.At != hour {
				t.Fatalf("with %d rows made, that of %s at %d is made of %d minutes, want %d", made(), r.Name, r.At-hour, r.Version, v)
			}
		}
	}
	for minute := range int64(60) {
		w := &store.Write{Closed: hour + minute*60 + 1}
		for i := range series {
			w.Rows = append(w.Rows, tick(hour+minute*60, fmt.Sprintf("%03d", i)))
		}
		write(w)
	}
	parts, last := 0, 0
	late := map[string]uint64{}
	for closed := int64(hour + 3600); ; closed++ {
		write(&store.Write{Closed: closed})
		n := made()
		want(n, late)
		if n-last > 10_000/60+64 {
			t.Errorf("one write made %d hours", n-last)
		}
		if parts++; n == series && n == last {
			break
		}
		last = n
		if parts == 1 {
			if n == series || n == 0 {
				t.Fatalf("the first write made %d of %d hours", n, series)
			}
			w := &store.Write{}
			for _, name := range []string{"000", "249"} {
				r := tick(hour+125, name)
				r.LateBlock = 7
				w.Rows = append(w.Rows, r)
				late[name] = 61
			}
			write(w)
			want(n, late)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openFile(t, path)
			want(n, late)
		}
	}
	if parts < 3 {
		t.Errorf("all is made in %d writes", parts)
	}
}

// A file of before hours were made in parts has them all.
func TestSQLiteHoursOfAnOlderFile(t *testing.T) {
	const hour = 1_795_000_000 / 3600 * 3600
	path := filepath.Join(t.TempDir(), "a.db")
	s := openFile(t, path)
	for _, w := range []*store.Write{
		{Scope: "s", Rules: 1, Closed: hour + 4000, Rows: []store.Row{tick(hour, "a"), tick(hour+3700, "a")}},
		{Scope: "not closed", Rules: 1},
	} {
		if err := s.Write(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		"ALTER TABLE scopes DROP COLUMN note", "ALTER TABLE scopes DROP COLUMN hours", "ALTER TABLE scopes DROP COLUMN hour_series", "DELETE FROM migrations WHERE number >= 3",
	} {
		if err := store.Exec(t.Context(), s, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openFile(t, path)
	for i, closed := range []int64{hour + 4001, hour + 7200} {
		if err := s.Write(t.Context(), &store.Write{Scope: "s", Rules: 1, Closed: closed}); err != nil {
			t.Fatal(err)
		}
		rows, err := s.Rows(t.Context(), store.Query{Resolution: store.Hour, From: hour, To: hour + 7200, Limit: 10})
		if err != nil || len(rows) != i+1 {
			t.Errorf("%d hours, %v", len(rows), err)
		}
	}
}
