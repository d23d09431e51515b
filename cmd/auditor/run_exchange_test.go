package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Two daemons share an un-keyed topic: each reads some of its partitions and counts
// some of the questions, and together they know all.
func TestDaemonsShareATopic(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "access-logs"), kfake.SeedTopics(2, "exchange"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()

	var daemons []*running
	var dir string
	for range 2 {
		dir = t.TempDir()
		config := fmt.Sprintf(`dependency: seats
sources: [{kafka: {brokers: [%q], topics: [access-logs], exchange: {topic: exchange}}, format: json}]
keys: {accept: [{field: my_id}], salt_file: salt}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, c.ListenAddrs()[0])
		for name, text := range map[string]string{"auditor.yaml": config, "salt": "the salt of both daemons"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		daemons = append(daemons, startDaemon(t, filepath.Join(dir, "auditor.yaml")))
	}
	// change replaces a text in the configuration of the last daemon, which reads it anew.
	change := func(old, now string) error {
		file := filepath.Join(dir, "auditor.yaml")
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.Replace(string(text), old, now, 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = daemons[1].d.reload(t.Context())
		return err
	}
	source := func(r *running, name string) any {
		answer := r.get("/api/v1/sources")
		for i := 0; dig(answer, "sources", i) != nil; i++ {
			if s := dig(answer, "sources", i); dig(s, "source") == name {
				return s
			}
		}
		return nil
	}
	assigned := func(r *running, name string) (n int) {
		for _, s := range r.d.setup.Load().sources {
			if reads, _, _ := s.now(); s.name == name {
				for _, p := range reads.Partitions() {
					if p.Assigned {
						n++
					}
				}
			}
		}
		return n
	}
	until(t, "each has its part", func() bool {
		for _, r := range daemons {
			if assigned(r, "access-logs") != 2 || assigned(r, "exchange") != 1 {
				return false
			}
		}
		return true
	})

	const questions, tries = 40, 3
	for try := range tries {
		var records []*kgo.Record
		for q := range questions {
			line := fmt.Sprintf(`{"time":%q,"method":"GET","path":"/seats/%d","status":503,"duration_ms":1,"my_id":"q%d","peer":"10.0.0.1:%d"}`,
				time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), q, q, try)
			records = append(records, &kgo.Record{Topic: "access-logs", Partition: int32((q + try) % 4), Value: []byte(line)})
		}
		records = append(records, &kgo.Record{Topic: "access-logs", Value: []byte("no record")})
		if err := cl.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	together := func(of func(r *running) any) (sum float64) {
		for _, r := range daemons {
			v, _ := of(r).(float64)
			sum += v
		}
		return sum
	}
	live := func(name string) func(r *running) any {
		return func(r *running) any { return dig(r.get("/api/v1/summary"), "dependencies", 0, "windows", 1, name) }
	}
	until(t, "all arrivals are live, each question in one daemon", func() bool {
		return together(live("arrivals")) == questions*tries && together(live("originals")) == questions
	})
	for i, r := range daemons {
		if v, _ := live("arrivals")(r).(float64); v == 0 {
			t.Errorf("daemon %d counts nothing", i)
		}
		if state := dig(r.get("/api/v1/summary"), "state"); state != "warming" {
			t.Errorf("daemon %d is %v", i, state)
		}
	}
	for name, want := range map[string]float64{"access-logs": questions * tries, "exchange": questions * tries} {
		if got := together(func(r *running) any { return dig(source(r, name), "counted") }); got != want {
			t.Errorf("%s has counted %v, want %v", name, got, want)
		}
	}
	if got := together(func(r *running) any { return dig(source(r, "access-logs"), "quarantined", "syntax") }); got != tries {
		t.Errorf("%v records are quarantined, want %d", got, tries)
	}
	for _, r := range daemons {
		if kind := dig(source(r, "exchange"), "kind"); kind != "exchange" {
			t.Errorf("the exchange is of kind %v", kind)
		}
		text := r.get("/metrics")["text"].(string)
		if !strings.Contains(text, `auditor_records_total{outcome="counted",source="exchange"}`) {
			t.Error("/metrics does not show the exchange")
		}
		if share, _ := dig(r.get("/api/v1/summary"), "dependencies", 0, "read_share").(float64); share <= 0.5 || share > 1 {
			t.Errorf("read_share is %v", share)
		}
	}

	// What all instances have to do alike one of them cannot change by itself.
	if err := change("field: my_id", "field: other_id"); err == nil || !strings.Contains(err.Error(), "keys.accept") || !strings.Contains(err.Error(), "exchange") {
		t.Errorf("another key is taken: %v", err)
	}
	if err := change("field: other_id", "field: my_id"); err != nil {
		t.Error(err)
	}
	if err := change("dependency:", "budget: {ratio: 0.3}\ndependency:"); err != nil {
		t.Error(err)
	}
}
