package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/ingest"
)

type readsSoFar struct{ records, bytes int64 }

func (readsSoFar) Run(context.Context, ingest.Handler) error { return nil }

func (r readsSoFar) Partitions() []ingest.PartitionState {
	return []ingest.PartitionState{{Records: r.records, Bytes: r.bytes}, {Records: r.records, Bytes: r.bytes}}
}

// Bytes that are lost are as many records as they hold on average, which does not change
// when other records come.
func TestLostBytesAreNotRecords(t *testing.T) {
	s := &source{kind: "file", reads: readsSoFar{}}
	for _, c := range []struct {
		read      readsSoFar
		gap, want uint64
	}{
		{readsSoFar{}, 0, 0}, {readsSoFar{}, 1000, 1},
		{readsSoFar{10, 1000}, 1000, 10}, {readsSoFar{20, 100_000}, 1000, 10},
		{readsSoFar{20, 4000}, 1001, 11}, {readsSoFar{20, 4000}, 2001, 16}, {readsSoFar{20, 4000}, 200, 1},
	} {
		s.reads = c.read
		if got := s.lost(c.gap); got != c.want {
			t.Errorf("%d bytes lost where %+v are read are %d records, want %d", c.gap, c.read, got, c.want)
		}
	}
	if s.kind = "kafka"; s.lost(77) != 77 {
		t.Errorf("77 records lost are %d", s.lost(77))
	}
}

// A followed file that is gone has failed, and says so, whether the daemon saw it go or
// not; what is lost of it is bytes, and no number of records.
func TestDaemonSaysThatAFileIsGone(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	config := writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf(`dependency: seats
sources: [{file: {paths: [%q]}, format: json}]
keys: {accept: [{field: my_id}], horizon: 3s}
time: {lateness: 1s, idle: 2s}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, log))
	write := func(n int, more string) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for i := range n {
			fmt.Fprintf(f, `{"time":%q,"method":"GET","path":"/seats/1","status":200,"duration_ms":1,"my_id":"k%d"}`+"\n", time.Now().UTC().Format(time.RFC3339Nano), i)
		}
		fmt.Fprint(f, more)
	}
	var r *running
	shown := func() (s map[string]any) {
		s, _ = dig(r.get("/api/v1/sources"), "sources", 0).(map[string]any) // none at first
		return s
	}
	reads := func(counted float64) {
		t.Helper()
		until(t, fmt.Sprintf("%v lines are counted and the source is well", counted), func() bool {
			s := shown()
			return s["counted"] == counted && s["state"] != "failed"
		})
	}
	gone := func(why string) {
		t.Helper()
		until(t, "the source has failed: "+why, func() bool {
			s := shown()
			return s["state"] == "failed" && strings.Contains(s["error"].(string), why) &&
				strings.Contains(fmt.Sprint(r.ready()["reasons"]), why)
		})
	}
	write(33, "")
	r = startDaemon(t, config)
	reads(33)
	away := filepath.Join(t.TempDir(), "away")
	if err := os.Rename(log, away); err != nil {
		t.Fatal(err)
	}
	gone("no such file any more")
	r.stop()
	r = startDaemon(t, config)
	gone("no such file, and what was read of it")
	if s := shown(); s["gap_bytes"] != 0.0 || s["gap_records"] != nil {
		t.Errorf("of a file that is away: %v", s)
	}
	if err := os.Rename(away, log); err != nil {
		t.Fatal(err)
	}
	write(7, "half a line")
	reads(40)
	until(t, "the half line is seen", func() bool { return dig(shown(), "partitions", 0, "lag_records") == 11.0 })
	if err := os.Truncate(log, 0); err != nil {
		t.Fatal(err)
	}
	write(1, "")
	until(t, "what was cut is lost", func() bool { return shown()["gap_bytes"] == 11.0 && shown()["counted"] == 41.0 })
	if s := shown(); s["gap_records"] != nil {
		t.Errorf("of 11 bytes that are lost: %v", s)
	}
	if share := dig(r.get("/api/v1/summary"), "dependencies", 0, "read_share"); share != 41.0/42 {
		t.Errorf("read_share is %v with 41 records read and less than one lost", share)
	}
	r.stop()
}
