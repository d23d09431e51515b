package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A partition without a committed position begins with the first record of the time
// that the configuration names, and after that with the position.
func TestDaemonStartsAtATime(t *testing.T) {
	b, err := newDemoBroker()
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	begun := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range 40 { // ten in each of four partitions, a minute apart
		at := begun.Add(time.Duration(i/demoPartitions) * time.Minute)
		line := fmt.Sprintf(`{"time":%q,"method":"GET","path":"/seats","status":200,"duration_ms":1}`, at.UTC().Format(time.RFC3339))
		r := &kgo.Record{Value: []byte(line), Partition: int32(i % demoPartitions), Timestamp: at}
		if err := b.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		start string
		want  float64
	}{
		"first": {"first", 40},
		"time":  {begun.Add(7*time.Minute - 10*time.Second).UTC().Format(time.RFC3339), 12},
		"zone":  {`"` + begun.Add(9*time.Minute).In(time.FixedZone("", 3600)).Format(time.RFC3339) + `"`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "auditor.yaml")
			text := fmt.Sprintf(`sources: [{kafka: {brokers: [%q], topics: [%s], group: %s, start: %s}, format: json}]
api: {listen: "127.0.0.1:0"}
`, b.cluster.ListenAddrs()[0], demoTopic, name, c.start)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := startDaemon(t, config)
			until(t, "all is read", func() bool {
				s := dig(r.get("/api/v1/sources"), "sources", 0)
				for i := range demoPartitions {
					if dig(s, "partitions", i, "next_offset") != 10.0 {
						return false
					}
				}
				return dig(s, "counted") == c.want
			})
			r.stop()
		})
	}
}
