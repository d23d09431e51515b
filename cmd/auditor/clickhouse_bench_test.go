package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// BenchmarkClickHouseStorage lets a daemon count a million records of half an hour, and
// says what they take at rest, merged and compressed: bytes for a million arrivals, by
// the length of rows, beside the raw lines in the same engine, in order of time and
// compressed by ZSTD. The log is bench/gen's.
func BenchmarkClickHouseStorage(b *testing.B) {
	const lines = 1_000_000
	dir := b.TempDir()
	if out, err := exec.Command("go", "run", "../../bench/gen", "-n", strconv.Itoa(lines), "-span", "30m", "-out", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	var truth struct {
		Arrivals uint64
		To       time.Time
	}
	text, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err == nil {
		err = json.Unmarshal(text, &truth)
	}
	if err != nil {
		b.Fatal(err)
	}
	log := filepath.Join(dir, "access.json.log")
	server := clickhousetest.Start(b)
	at := store.ClickHouse{Addr: []string{server.Addr}, Database: server.Database, User: clickhousetest.User, HTTP: true}
	if err := store.MigrateClickHouse(b.Context(), at, nil); err != nil {
		b.Fatal(err)
	}
	server.ExecIn(b, server.Database, "CREATE TABLE raw (at DateTime64(3) CODEC(Delta, ZSTD(1)), line String CODEC(ZSTD(1))) ENGINE = MergeTree ORDER BY at")
	server.ExecIn(b, server.Database, "CREATE TABLE lines (line String) ENGINE = Memory")
	server.ExecIn(b, server.Database, "INSERT INTO lines FROM INFILE '"+log+"' FORMAT LineAsString")
	server.ExecIn(b, server.Database, "INSERT INTO raw SELECT parseDateTime64BestEffort(JSONExtractString(line, 'time'), 3), line FROM lines")
	server.ExecIn(b, server.Database, "DROP TABLE lines SYNC")

	// What is two hours later closes all that was before.
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(f, `{"time":%q,"dependency":"search","method":"GET","path":"/","status":200,"duration_ms":1}`+"\n", truth.To.Add(2*time.Hour).Format(time.RFC3339))
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	config := filepath.Join(dir, "clickhouse.yaml")
	err = os.WriteFile(config, fmt.Appendf(nil, `dependency: {field: dependency}
sources: [{file: {paths: [%q]}, format: json}]
keys: {originators: originators.yaml, horizon: 2m, salt_file: salt}
store: {clickhouse: {addr: [%q], database: %s, protocol: http}, retention: {1s: 90000h, 10s: 90000h, 1m: 90000h, 1h: 90000h}}
api: {listen: "127.0.0.1:0"}
`, log, server.Addr, server.Database), 0o600)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "salt"), []byte("0123456789abcdef0123456789abcdef"), 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() { // once, as there is nothing left to read after that
		r := startDaemon(b, config)
		for end := time.Now().Add(10 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
			closed, err := r.d.store.Closed(b.Context())
			if err == nil && closed["all"] > truth.To.Unix()+3600 {
				break
			}
			if time.Now().After(end) {
				b.Fatalf("it is closed up to %d, %v", closed["all"], err)
			}
		}
		rows, err := r.d.store.Rows(b.Context(), store.Query{Resolution: store.Minute, From: truth.To.Unix() - 7200, To: truth.To.Unix() + 3600, Limit: 1 << 20})
		sum := uint64(0)
		for i := range rows {
			if !rows[i].Wide {
				sum += rows[i].Counts.Totals().Arrivals
			}
		}
		if err != nil || sum != truth.Arrivals {
			b.Fatalf("%d arrivals are at rest, %v, not %d", sum, err, truth.Arrivals)
		}
		r.stop()
	}
	b.ReportMetric(0, "ns/op")
	size := func(of, name, where string) {
		server.ExecIn(b, server.Database, "CREATE TABLE sized AS "+of)
		server.ExecIn(b, server.Database, "INSERT INTO sized SELECT * FROM "+of+" "+where)
		server.ExecIn(b, server.Database, "OPTIMIZE TABLE sized FINAL")
		out := server.Query(b, "SELECT sum(bytes_on_disk), sum(rows) FROM system.parts WHERE database = currentDatabase() AND table = 'sized' AND active")
		var bytes, n float64
		if _, err := fmt.Sscan(out[0], &bytes, &n); err != nil {
			b.Fatal(err)
		}
		server.ExecIn(b, server.Database, "DROP TABLE sized SYNC")
		million := float64(truth.Arrivals) / 1e6
		b.ReportMetric(bytes/million, name+"-B/M")
		b.Logf("%s: %.0f rows, %.1f bytes each", name, n, bytes/n)
	}
	size("facts", "all", "")
	for _, kind := range []string{"tick", "ten_seconds", "minute", "hour", "question"} {
		size("facts", kind, "FINAL WHERE kind = '"+kind+"'")
	}
	size("raw", "raw", "")
}
