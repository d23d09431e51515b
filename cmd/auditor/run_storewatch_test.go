package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/store"
)

// A database that is deleted under a daemon is said within seconds, also where
// nothing comes that would be written. Put back, it goes on, and what came meanwhile
// is counted.
func TestDaemonSaysThatItsStoreIsGone(t *testing.T) {
	dir := t.TempDir()
	log, config, rows := filepath.Join(dir, "access.log"), filepath.Join(dir, "auditor.yaml"), filepath.Join(dir, "rows.db")
	text := fmt.Sprintf(`dependency: seats
sources: [{file: {paths: [%q]}, format: json}]
time: {lateness: 1s, idle: 2s}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, log)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	write := func() {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n++
		fmt.Fprintf(f, `{"time":%q,"method":"GET","path":"/seats","status":200,"duration_ms":1}`+"\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	begun := time.Now().Unix()
	r := startDaemon(t, config)
	until(t, "ticks are stored", func() bool {
		write()
		closed, err := r.d.store.Closed(t.Context())
		return err == nil && closed["all"] > begun
	})
	ready := func() (int, string) {
		res, err := http.Get("http://" + r.d.listener.Addr().String() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var answer struct {
			State   api.State
			Reasons []string
		}
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(answer.State) + ": " + strings.Join(answer.Reasons, "; ")
	}
	if err := os.Rename(rows, rows+".aside"); err != nil {
		t.Fatal(err)
	}
	until(t, "it is said, though nothing comes", func() bool {
		status, reasons := ready()
		return status == http.StatusServiceUnavailable && strings.Contains(reasons, rows) && strings.Contains(reasons, "was deleted")
	})
	until(t, "it is counted", func() bool { // the API shows a picture of a moment ago
		text := r.get("/metrics")["text"].(string)
		return strings.Contains(text, "\nauditor_store_errors_total{kind=\"gone\"} ") && !strings.Contains(text, "{kind=\"gone\"} 0\n") &&
			strings.Contains(text, "\nauditor_store_errors_total{kind=\"full\"} 0\n")
	})
	for range 20 {
		write()
	}
	if _, err := os.Stat(rows); err == nil {
		t.Error("there is a new file")
	}
	if err := os.Rename(rows+".aside", rows); err != nil {
		t.Fatal(err)
	}
	until(t, "it is ready again", func() bool { status, _ := ready(); return status == http.StatusOK })
	all := n
	stored := func() (sum int) {
		rows, err := r.d.store.Rows(t.Context(), store.Query{Resolution: store.Tick, From: begun - 10, To: begun + 1000, Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range rows {
			sum += int(x.Counts.Totals().Arrivals)
		}
		return sum
	}
	until(t, "all of it is stored", func() bool { write(); return stored() >= all })
	r.stop()
}
