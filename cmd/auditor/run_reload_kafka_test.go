package main

import (
	"fmt"
	"testing"
	"time"
)

// A member of a consumer group stays that while what it reads is counted anew, and
// every record is counted once.
func TestReloadInAGroup(t *testing.T) {
	broker, err := newDemoBroker()
	if err != nil {
		t.Fatal(err)
	}
	defer broker.close()
	b := newBench(t)
	b.config = fmt.Sprintf(`dependency: seats
sources: [{kafka: {brokers: [%q], topics: [%s], group: %s}, format: json}]
routes: {templates: ["GET /seats/{id}"]}
keys: {accept: [{field: my_id}], horizon: 3s}
time: {lateness: 1s, idle: 2s}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, broker.cluster.ListenAddrs()[0], demoTopic, demoGroup)
	b.write("auditor.yaml", b.config)
	b.start()
	sent := 0.0
	send := func() {
		var lines [][]byte
		for i := range 20 {
			lines = append(lines, []byte(b.record(fmt.Sprint("/seats/", i%3), fmt.Sprintf(`,"my_id":"k%d"`, i/2))))
		}
		sent += 20
		if err := broker.write(t.Context(), lines); err != nil {
			t.Fatal(err)
		}
	}
	stored := func() float64 { send(); return all(b.stored("1s", time.Now())) }
	until(t, "seconds are stored", func() bool { return stored() > 200 })
	generation := broker.cluster.GroupInfo(demoGroup).Epoch
	b.change("{id}", "{seat}")
	until(t, "new rows have the new name", func() bool { send(); return b.stored("1s", time.Now())["GET /seats/{seat}"] > 100 })
	b.change("{seat}", "{place}")
	until(t, "new rows have the new name", func() bool { send(); return b.stored("1s", time.Now())["GET /seats/{place}"] > 100 })
	if now := broker.cluster.GroupInfo(demoGroup).Epoch; now != generation {
		t.Errorf("the group is in generation %d, and was in %d", now, generation)
	}
	want := sent
	until(t, "all is stored", func() bool {
		for range 4 {
			if err := broker.write(t.Context(), [][]byte{[]byte(b.record("/flush", ""))}); err != nil {
				t.Fatal(err)
			}
		}
		return all(b.stored("1s", time.Now())) >= want && b.metric("auditor_arrivals_total", `route="GET /seats`) >= want
	})
	if got, counted := all(b.stored("1s", time.Now())), b.metric("auditor_arrivals_total", `route="GET /seats`); got != want || counted != want {
		t.Errorf("%v arrivals are stored and %v in the counters, want %v", got, counted, want)
	}
}
