package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What was read is in a series at once, as provisional points that say only what is
// known of open seconds; and as those come to rest nothing is missing for a moment,
// nor there twice.
func TestSeriesReachIntoOpenSeconds(t *testing.T) {
	dir := t.TempDir()
	log, config := filepath.Join(dir, "access.log"), filepath.Join(dir, "auditor.yaml")
	text := fmt.Sprintf(`dependency: seats
sources: [{file: {paths: [%q]}, format: json}]
keys: {accept: [{field: my_id}], horizon: 6s}
time: {lateness: 2s, idle: 1s}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, log)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0.0
	write := func() {
		for try := range 3 {
			fmt.Fprintf(f, `{"time":%q,"method":"GET","path":"/seats/1","status":503,"duration_ms":1,"my_id":"q%v","peer":"10.0.0.1:%d"}`+"\n",
				time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), n, try)
		}
		n += 3
	}
	r := startDaemon(t, config)
	from := time.Now().Add(-5 * time.Second).UTC().Format(time.RFC3339)
	look := func(by string) (arrivals float64, last any) {
		s := r.get("/api/v1/series?measure=arrivals,load_factor,amplification&step=1s&by=" + by + "&from=" + from + "&to=" + time.Now().Add(5*time.Second).UTC().Format(time.RFC3339))
		for i := 0; dig(s, "series", 0, "points", i) != nil; i++ {
			last = dig(s, "series", 0, "points", i)
			arrivals += dig(last, "values", "arrivals").(float64)
		}
		return arrivals, last
	}
	write()
	until(t, "three arrivals are in a series", func() bool { got, _ := look("peer"); return got == 3 })
	_, last := look("route")
	if dig(last, "provisional") != true || dig(last, "values", "load_factor") != 3.0 || dig(last, "values", "amplification") != nil {
		t.Errorf("an open point is %v", last)
	}
	seen, closed := 3.0, false
	for begun := time.Now(); !closed || time.Since(begun) < 6*time.Second; {
		write()
		before := n
		for _, by := range []string{"dependency", "peer"} {
			got, _ := look(by)
			if got < seen && by == "dependency" || got > before {
				t.Fatalf("%v arrivals by %s, of %v that were written and %v that were there before", got, by, before, seen)
			}
			if by == "dependency" {
				seen = got
			}
		}
		s := r.get("/api/v1/series?measure=amplification&step=1s&from=" + from)
		for i := 0; dig(s, "series", 0, "points", i) != nil; i++ {
			closed = closed || dig(s, "series", 0, "points", i, "provisional") == false
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatal("nothing has come to rest within 30 s")
		}
	}
}
