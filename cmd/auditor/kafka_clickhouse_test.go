//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// Two daemons read one topic of a real broker and share one ClickHouse, whose engine
// runs in the process of the test and lives on. They are killed in turn while records
// come, and hang for longer than their group waits; answers of the server are lost,
// after the statement was carried out or before, and for some seconds it does not
// answer at all. Afterwards what is at rest is the truth of the producer, count for
// count, and each daemon gives the figures of both.
func TestKafkaThroughCrashesOnClickHouse(t *testing.T) {
	kafkaBroker(t)
	clickhousetest.Start(t) // keeps the engine open from one to the other
	seed := setting(t, "AUDITOR_KAFKA_SEED", time.Now().UnixNano()&0xffffff)
	t.Logf("AUDITOR_KAFKA_SEED=%d", seed)
	bin := binary(t)
	// One after the other: the engine takes a processor of its own.
	t.Run("un-keyed", func(t *testing.T) { crashesOnClickHouse(t, bin, uint64(seed), unkeyed) })
	t.Run("keyed", func(t *testing.T) { crashesOnClickHouse(t, bin, uint64(seed)+1, keyed) })
}

func crashesOnClickHouse(t *testing.T, bin string, seed uint64, how string) {
	server := clickhousetest.Start(t)
	at := store.ClickHouse{Addr: []string{server.Addr}, Database: server.Database, User: clickhousetest.User, HTTP: true}
	if err := store.MigrateClickHouse(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	shared := fmt.Sprintf("{clickhouse: {addr: [%q], database: %s, protocol: http}}", server.Addr, server.Database)
	// The engine of the tests takes one statement at a time.
	c := newCrashing(t, bin, seed, how, shared, 2_000)
	c.calm = loseAnswers(t, server, seed)
	c.through()
	if t.Failed() {
		return
	}
	truth := &c.producer.traffic.truth
	for _, d := range c.fleet {
		tellsOfAll(t, d, truth)
		d.stop()
	}
	s, err := store.OpenClickHouse(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	u := newUnion(t)
	u.add(server.Database, s, truth.firstTick, truth.lastTick+1)
	t.Logf("%d rows are at rest, written under claims %v", len(u.rows), server.Query(t, "SELECT scope, max(last) FROM facts WHERE kind = 'claim' GROUP BY scope ORDER BY scope"))
	c.equals(u)
}

// loseAnswers lets answers of a server be lost, one in thirty that a write waits for, and now
// and then all of them for a while, until quiet is called.
func loseAnswers(t *testing.T, server *clickhousetest.Server, seed uint64) (quiet func()) {
	r := rand.New(rand.NewPCG(seed, 7))
	lost, away := 0, 0
	server.Judge(func(statement string) (f clickhousetest.Fault, faulty bool) {
		if strings.Contains(statement, "INSERT INTO facts") || strings.Contains(statement, "FROM facts") {
			// Half of them are carried out all the same.
			f.Done, faulty = r.IntN(2) == 0, r.IntN(30) == 0
		}
		if faulty {
			lost++
		}
		return f, faulty
	})
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r := rand.New(rand.NewPCG(seed, 8))
		for {
			select {
			case <-end:
				return
			case <-time.After(10*time.Second + time.Duration(r.Int64N(int64(20*time.Second)))):
			}
			up := server.Down()
			time.Sleep(time.Duration(r.Int64N(int64(4 * time.Second))))
			up()
			away++
		}
	}()
	return func() {
		close(end)
		<-ended
		server.Judge(nil)
		t.Logf("%d answers were lost, and the server was away %d times", lost, away)
		if lost == 0 {
			t.Error("that is too little trouble")
		}
	}
}

// tellsOfAll asks a daemon for the figures of the whole time, which are those of all
// that both have counted.
func tellsOfAll(t *testing.T, d *process, truth *kafkaTruth) {
	t.Helper()
	var answer struct {
		Complete time.Time `json:"complete_until"`
		Total    struct {
			Arrivals  uint64 `json:"arrivals"`
			Originals uint64 `json:"originals"`
			Repeats   uint64 `json:"repeats"`
			Questions uint64 `json:"questions"`
		} `json:"total"`
	}
	stamp := func(tick int64) string { return time.Unix(tick, 0).UTC().Format(time.RFC3339) }
	// Whole seconds: rows of seconds are kept for longer than this takes.
	ask := fmt.Sprintf("/api/v1/series?measure=arrivals,originals,repeats,questions&from=%s&to=%s&step=%ds",
		stamp(truth.firstTick), stamp(truth.lastTick+1), truth.lastTick+1-truth.firstTick)
	if err := d.ask(ask, 20*time.Second, &answer); err != nil {
		t.Errorf("%s: %v", d.name, err)
		return
	}
	got := [4]uint64{answer.Total.Arrivals, answer.Total.Originals, answer.Total.Repeats, answer.Total.Questions}
	if want := [4]uint64{truth.arrivals, truth.originals, truth.repeats, truth.originals}; got != want || answer.Complete.Unix() <= truth.lastTick {
		t.Errorf("%s says %d arrivals, originals, repeats and questions up to %v, want %d beyond %s", d.name, got, answer.Complete, want, stamp(truth.lastTick))
	}
}
