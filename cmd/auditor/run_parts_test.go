package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A record that a container's runtime has parted is one, also where the daemon is
// restarted between its parts.
func TestDaemonJoinsLinesOfContainers(t *testing.T) {
	dir := t.TempDir()
	log, config := filepath.Join(dir, "container.log"), filepath.Join(dir, "auditor.yaml")
	text := fmt.Sprintf(`sources: [{file: {paths: [%q]}, format: json}]
keys: {accept: [{field: my_id}]}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, log)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(tag, part string) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fmt.Fprintf(f, "%s stdout %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), tag, part)
	}
	half := func() string {
		return fmt.Sprintf(`{"time":%q,"method":"GET","path":"/seats/1","status":200,`, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	const other = `"duration_ms":1,"my_id":"a"}`
	counts := func(r *running, lines, counted float64) {
		t.Helper()
		until(t, fmt.Sprintf("%v of %v lines are counted, and none is refused", counted, lines), func() bool {
			s := dig(r.get("/api/v1/sources"), "sources", 0)
			quarantined, _ := dig(s, "quarantined").(map[string]any)
			return dig(s, "counted") == counted && len(quarantined) == 0 && dig(s, "partitions", 0, "lag_records") == 0.0
		})
	}
	write("P", half())
	r := startDaemon(t, config)
	counts(r, 1, 0)
	write("F", other)
	counts(r, 2, 1)
	write("P", half())
	counts(r, 3, 1)
	r.stop()
	write("P", `"x":1,`)
	write("F", other)
	r = startDaemon(t, config)
	counts(r, 5, 2)
	r.stop()
}
