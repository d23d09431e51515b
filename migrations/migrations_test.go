package migrations

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestSplitting(t *testing.T) {
	got := split("-- what it is;\nCREATE TABLE a (\n  b INTEGER -- of c\n);\n\nINSERT INTO a VALUES (1);\nSELECT 1")
	want := []string{"CREATE TABLE a (\n  b INTEGER -- of c\n)", "INSERT INTO a VALUES (1)", "SELECT 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStepsAreNumberedWithoutGaps(t *testing.T) {
	if s, err := SQLite(); err != nil || len(s) == 0 {
		t.Fatalf("%d steps, %v", len(s), err)
	}
	gap := fstest.MapFS{"x/001_a.sql": {}, "x/003_b.sql": {}}
	if _, err := steps(gap, "x"); err == nil || !strings.Contains(err.Error(), "step 2") {
		t.Errorf("a gap gives %v", err)
	}
}

func TestClickHouseOfOneServerAndOfACluster(t *testing.T) {
	one, err := ClickHouse("")
	many, err2 := ClickHouse("the `one`")
	if err != nil || err2 != nil || len(one) == 0 || len(one) != len(many) {
		t.Fatalf("%d and %d steps, %v, %v", len(one), len(many), err, err2)
	}
	tables := 0
	for i := range one {
		for j, text := range one[i].Statements {
			if strings.ContainsAny(text, "`") || strings.Contains(text, "CLUSTER") || strings.Contains(text, "Replicated") || strings.Contains(text, "{cluster}") {
				t.Errorf("on one server: %s", text)
			}
			on := many[i].Statements[j]
			if !strings.Contains(on, " ON CLUSTER `the \\`one\\`` ") {
				t.Errorf("on a cluster: %s", on)
			}
			if strings.HasPrefix(text, "CREATE TABLE") {
				tables++
				if !strings.Contains(on, "ENGINE = Replicated") {
					t.Errorf("not replicated: %s", on)
				}
			}
		}
	}
	if tables < 4 {
		t.Errorf("%d tables", tables)
	}
}
