package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/store"
)

// A question is told of while it goes on and, once it is over, from the store; among
// the worst it is in the live list and then in that of the range.
func TestDaemonTellsOfQuestions(t *testing.T) {
	dir := t.TempDir()
	log, config := filepath.Join(dir, "access.log"), filepath.Join(dir, "auditor.yaml")
	text := fmt.Sprintf(`dependency: seats
sources: [{file: {paths: [%q]}, format: json}]
keys: {accept: [{field: my_id}], horizon: 3s}
time: {lateness: 1s, idle: 2s}
store: {sqlite: rows.db, questions: repeated}
api: {listen: "127.0.0.1:0"}
`, log)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	write := func(key string) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n++
		fmt.Fprintf(f, `{"time":%q,"method":"GET","path":"/seats/7","status":503,"duration_ms":%d,"my_id":%q,"peer":"10.0.0.%d:1"}`+"\n",
			time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), n, key, n%2)
	}
	r := startDaemon(t, config)
	for range 3 {
		write("one/question")
	}
	hash := ""
	live := func() bool {
		q := r.get("/api/v1/top?by=question")
		hash, _ = dig(q, "questions", 0, "key_hash").(string)
		return dig(q, "questions", 0, "arrivals") == 3.0 && dig(q, "questions", 0, "live") == true && dig(q, "questions", 1) == nil
	}
	until(t, "the question is live", live)
	for _, key := range []string{"one%2Fquestion", hash} {
		q := r.get("/api/v1/questions/" + key)
		if dig(q, "questions", 0, "arrivals") != 3.0 || dig(q, "questions", 0, "live") != true || q["key_hash"] != hash ||
			fmt.Sprint(dig(q, "questions", 0, "peers")) != "[10.0.0.0 10.0.0.1]" || dig(q, "questions", 0, "route") != "GET /seats/{id}" {
			t.Errorf("%s: %v", key, q)
		}
	}
	until(t, "the question is over and stored", func() bool {
		write(fmt.Sprint("later ", n)) // the watermark moves on
		q := r.get("/api/v1/questions/" + hash)
		return dig(q, "questions", 0, "arrivals") == 3.0 && dig(q, "questions", 0, "live") == false && dig(q, "questions", 1) == nil
	})
	until(t, "it is not under way any more, and among the worst of the range", func() bool {
		write(fmt.Sprint("later ", n))
		live := r.get("/api/v1/top?by=question")
		q := r.get("/api/v1/top?by=question&from=-5m&route=GET%20/seats/{id}")
		return dig(live, "questions", 0) == nil && dig(q, "questions", 0, "key_hash") == hash && dig(q, "questions", 0, "arrivals") == 3.0 && dig(q, "questions", 1) == nil
	})
}

// What the store knows to be split is said of the dependencies here, and of a range by
// the time in which it was.
func TestSplitsOfTheStoreAreSaid(t *testing.T) {
	rows := store.NewMemory()
	now := time.Unix(1_796_000_000, 0)
	r := &reader{d: &daemon{store: rows}}
	r.snapshot.Store(&api.Snapshot{At: now, Dependencies: []api.Dependency{
		{Name: "seats", ScopeSplit: true, Windows: []api.Window{{To: now.Add(-time.Hour)}}}, {Name: "orders"},
	}})
	if at := r.newest(); !at.Equal(now.Add(-time.Hour)) {
		t.Errorf("the newest second is %v", at)
	}
	q := store.Question{KeyHash: [16]byte{1}, Lot: 1, Dependency: "orders", Arrivals: 2, First: now.Add(-65 * time.Minute), Last: now.Add(-64 * time.Minute)}
	for _, scope := range []string{"a/0", "a/1"} {
		q.Scope, q.Last = scope, q.Last.Add(time.Second)
		if err := rows.Write(t.Context(), &store.Write{Scope: scope, Questions: []store.Question{q}, Horizon: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.d.store = &anyStore{rows}
	var log strings.Builder
	for range 2 {
		r.watchSplits(ctx, slog.New(slog.NewTextHandler(&log, nil)))
	}
	if n := strings.Count(log.String(), "orders: one question came in two scopes"); n != 1 || strings.Contains(log.String(), "seats") {
		t.Errorf("logged is\n%s", log.String())
	}
	if !r.splits.has("orders") || r.splits.has("seats") {
		t.Error("the store's split of orders is not known, or one of seats is")
	}
	for _, x := range []struct {
		from, to   time.Duration // before now
		dependency string
		want       []string
	}{
		{66 * time.Minute, 0, "", []string{"orders", "seats"}},
		{66 * time.Minute, 0, "orders", []string{"orders"}},
		{66 * time.Minute, 0, "other", nil},
		{5 * time.Hour, 2 * time.Hour, "", nil},
	} {
		got, err := r.splitIn(t.Context(), &api.RangeQuery{From: now.Add(-x.from), To: now.Add(-x.to), Dependency: x.dependency})
		if err != nil || !slices.Equal(got, x.want) {
			t.Errorf("from %v to %v ago, of %q: %q, %v; want %q", x.from, x.to, x.dependency, got, err, x.want)
		}
	}
}

// anyStore answers whatever the context says.
type anyStore struct{ store.Store }

func (s *anyStore) Splits(_ context.Context, from, to int64) ([]string, error) {
	return s.Store.Splits(context.Background(), from, to)
}

// A topic that is said to be keyed and is not: whoever asks is told, of a daemon that
// would else show half the repeats.
func TestATopicThatIsNotKeyedIsFoundOut(t *testing.T) {
	broker, err := newDemoBroker()
	if err != nil {
		t.Fatal(err)
	}
	defer broker.close()
	for _, keyed := range []bool{true, false} {
		config := filepath.Join(t.TempDir(), "auditor.yaml")
		text := fmt.Sprintf(`dependency: seats
sources: [{kafka: {brokers: [%q], topics: [%s], group: "keyed %v", keyed: %v}, format: json}]
keys: {accept: [{field: my_id}]}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, broker.cluster.ListenAddrs()[0], demoTopic, keyed, keyed)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var lines [][]byte
		now := time.Now().UTC()
		for q := range 4000 {
			for try := range 3 {
				lines = append(lines, fmt.Appendf(nil, `{"time":%q,"method":"GET","path":"/seats/7","status":503,"duration_ms":1,"my_id":"%v %d"}`,
					now.Add(time.Duration(q*3+try-12000)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), keyed, q))
			}
		}
		if err := broker.write(t.Context(), lines); err != nil {
			t.Fatal(err)
		}
		r := startDaemon(t, config)
		loadFactor := func(s map[string]any) float64 {
			f, _ := dig(s, "dependencies", 0, "windows", 1, "load_factor").(float64)
			return f
		}
		if !keyed {
			until(t, "all is counted", func() bool { return loadFactor(r.get("/api/v1/summary")) == 3 })
		} else {
			until(t, "it is found out", func() bool {
				s := r.get("/api/v1/summary")
				return s["scope_split"] == true && fmt.Sprint(s["scope_split_in"]) == "[seats]" && loadFactor(s) < 3
			})
		}
		ready, metrics := fmt.Sprint(r.get("/readyz")["reasons"]), r.get("/metrics")["text"].(string)
		gauge := `auditor_scope_split{dependency="seats"} 0`
		if keyed {
			gauge = `auditor_scope_split{dependency="seats"} 1`
		}
		if strings.Contains(ready, "seats: one question came in two scopes") != keyed || !strings.Contains(metrics, gauge) {
			t.Errorf("keyed: %v: %s", keyed, ready)
		}
		r.stop()
	}
}
