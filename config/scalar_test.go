package config

import (
	"encoding/json"
	"testing"
	"time"
)

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestDurations(t *testing.T) {
	for _, tc := range []struct {
		text  string
		want  time.Duration
		shown string // "" where it is refused
	}{
		{"0", 0, "0s"},
		{"0s", 0, "0s"},
		{"10s", 10 * time.Second, "10s"},
		{"60s", time.Minute, "1m"},
		{"90m", 90 * time.Minute, "1h30m"},
		{"1h0m5s", time.Hour + 5*time.Second, "1h0m5s"},
		{"20m", 20 * time.Minute, "20m"},
		{"10h", 10 * time.Hour, "10h"},
		{"1.5s", 1500 * time.Millisecond, "1.5s"},
		{"500ms", 500 * time.Millisecond, "500ms"},
		{"14d", 14 * day, "14d"},
		{"1d12h", 36 * time.Hour, "1d12h"},
		{"36h", 36 * time.Hour, "1d12h"},
		{"400d", 400 * day, "400d"},
		{"106751d", 106751 * day, "106751d"},
		{"106752d", 0, ""},
		{"106751d24h", 0, ""},
		{"999999d", 0, ""},
		{"10", 0, ""},
		{"1.5", 0, ""},
		{"-10s", 0, ""},
		{"1d-1h", 0, ""},
		{"+1s", 0, ""},
		{"1d+1s", 0, ""},
		{"1.5d", 0, ""},
		{"d", 0, ""},
		{"1w", 0, ""},
		{"10 s", 0, ""},
		{"10S", 0, ""},
		{"", 0, ""},
		{"s", 0, ""},
		{"99999999999h", 0, ""},
	} {
		got, err := parseDuration(tc.text)
		if (err == nil) != (tc.shown != "") || got != tc.want {
			t.Errorf("%q: %s, %v", tc.text, got, err)
			continue
		}
		if err != nil {
			continue
		}
		if shown := formatDuration(got); shown != tc.shown {
			t.Errorf("%q is shown as %s, want %s", tc.text, shown, tc.shown)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Size
		ok   bool
	}{
		{"0B", 0, true},
		{"512B", 512, true},
		{"64KiB", 64 << 10, true},
		{"64 MiB", 64 << 20, true},
		{"1GiB", 1 << 30, true},
		{"8589934591GiB", 8589934591 << 30, true},
		{"8589934592GiB", 0, false},
		{"1GB", 0, false},
		{"1kB", 0, false},
		{"1G", 0, false},
		{"1gib", 0, false},
		{"1TiB", 0, false},
		{"1", 0, false},
		{"-1B", 0, false},
		{"1.5GiB", 0, false},
		{"GiB", 0, false},
		{"", 0, false},
	} {
		got, err := parseSize(tc.text)
		if (err == nil) != tc.ok || got != tc.want {
			t.Errorf("%q: %d, %v", tc.text, got, err)
		}
		if again, err := parseSize(got.String()); err != nil || again != got {
			t.Errorf("%q is shown as %s", tc.text, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct {
		text   string
		number float64
		ok     bool
		count  bool
	}{
		{"0", 0, true, true},
		{"500", 500, true, true},
		{"8_000_000", 8e6, true, true},
		{"0.2", 0.2, true, false},
		{".5", 0.5, true, false},
		{"1e6", 1e6, true, false},
		{"0500", 0, false, false},
		{"0x10", 0, false, false},
		{"-1", 0, false, false},
		{"+1", 0, false, false},
		{"1_", 0, false, false},
		{"1e999", 0, false, false},
		{"nan", 0, false, false},
		{".inf", 0, false, false},
		{"20%", 0, false, false},
		{"5k", 0, false, false},
		{"1,5", 0, false, false},
		{"", 0, false, false},
		{"e5", 0, false, false},
	} {
		if got, ok := parseNumber(tc.text); ok != tc.ok || ok && got != tc.number {
			t.Errorf("number %q: %v, %v", tc.text, got, ok)
		}
		if got, ok := parseCount(tc.text); ok != tc.count || ok && float64(got) != tc.number {
			t.Errorf("count %q: %v, %v", tc.text, got, ok)
		}
	}
}

func TestExpand(t *testing.T) {
	getenv := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "1", "EMPTY": "", "NESTED": "${A} $$"}[name]
		return v, ok
	}
	for _, tc := range []struct{ text, want, err string }{
		{"plain", "plain", ""},
		{"${A}", "1", ""},
		{"x${A}y${A}", "x1y1", ""},
		{"${EMPTY}", "", ""},
		{"$A", "$A", ""},
		{"a$", "a$", ""},
		{"$$", "$", ""},
		{"$${A}", "${A}", ""},
		{"$$$", "$$", ""},
		{"$$${A}", "$1", ""},
		{"${NESTED}", "${A} $$", ""},
		{"${B}", "", "environment variable B is not set"},
		{"${a b}", "", "no variable name inside ${}: want letters, digits and _, or $${ for the characters themselves"},
		{"${}", "", "no variable name inside ${}: want letters, digits and _, or $${ for the characters themselves"},
		{"${A", "", "${ without }: want ${NAME}, or $${ for the characters themselves"},
	} {
		got, _, err := expand(tc.text, getenv)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tc.want || text != tc.err {
			t.Errorf("%q: %q, %v", tc.text, got, err)
		}
	}
}

func TestNearest(t *testing.T) {
	for _, tc := range []struct {
		key, want string
		edits     int
	}{
		{"lateness", "lateness", 0},
		{"latenes", "lateness", 1},
		{"latneess", "lateness", 1},
		{"idel", "idle", 1},
		{"max-future", "max_future", 1},
		{"", "idle", 4},
	} {
		got, n := nearest(tc.key, []string{"lateness", "idle", "max_future", "skew"})
		if got != tc.want || n != tc.edits {
			t.Errorf("%q: %q, %d", tc.key, got, n)
		}
	}
}
