package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A daemon that follows an IIS log reads each record by the #Fields line before it, also
// when it begins in the middle of the file, behind that line.
func TestDaemonFollowsColumns(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "u_ex.log")
	config := writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf(`dependency: shop
sources: [{file: {paths: [%q]}, format: iis, pattern: "date time cs-method cs-uri-stem my_id sc-status time-taken"}]
keys: {accept: [{field: my_id}]}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, log))
	add := func(lines ...string) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, line := range lines {
			if line[0] != '#' {
				line = time.Now().UTC().Format("2006-01-02 15:04:05 ") + line
			}
			fmt.Fprintf(f, "%s\r\n", line)
		}
	}
	is := func(r *running, arrivals, repeats float64) {
		t.Helper()
		until(t, fmt.Sprintf("%v arrivals with %v repeats are shown", arrivals, repeats), func() bool {
			windows, _ := dig(r.get("/api/v1/summary"), "dependencies", 0, "windows").([]any)
			return len(windows) > 0 && dig(windows[len(windows)-1], "arrivals") == arrivals && dig(windows[len(windows)-1], "repeats") == repeats
		})
	}
	add("#Fields: date time cs-method cs-uri-stem my_id sc-status time-taken", "GET /a k-1 200 1", "GET /a k-2 200 1",
		"#Fields: date time cs-method my_id cs-uri-stem sc-status time-taken", "GET k-1 /a 200 1", "GET k-2 /a 200 1", "GET k-3 /a 200 1")
	r := startDaemon(t, config)
	is(r, 5, 2)
	add("GET k-3 /a 200 1")
	is(r, 6, 3)
	r.stop()
	add("GET k-1 /a 200 1", "#Fields: date time cs-method cs-uri-stem my_id sc-status time-taken", "GET /a k-1 200 1")
	r = startDaemon(t, config)
	is(r, 8, 5)
	if got := dig(r.get("/api/v1/sources"), "sources", 0, "quarantined"); fmt.Sprint(got) != "map[]" {
		t.Errorf("quarantined: %v", got)
	}
}
