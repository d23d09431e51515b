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
