package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/targetside/auditor/keys"
	"github.com/targetside/auditor/store"
)

// bench is a daemon with a configuration that changes: a file, and lines that are
// pushed.
type bench struct {
	t       *testing.T
	dir     string
	config  string
	push    string // address
	running *running
	begun   time.Time
	n       atomic.Int64 // lines written
}

const benchConfig = `dependency: seats
sources:
  - {file: {paths: [access.log]}, format: json}
  - {http: {listen: %q, spool: spool}, format: json}
routes: {templates: ["GET /seats/{id}"]}
keys: {accept: [qk1, {field: my_id}], horizon: 3s, originators: originators.yaml}
time: {lateness: 1s, idle: 2s}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: t.TempDir(), begun: time.Now()}
	free := listenAnywhere(t)
	b.push = free.Addr().String()
	free.Close()
	b.config = fmt.Sprintf(benchConfig, b.push)
	b.write("auditor.yaml", b.config)
	b.write("originators.yaml", "")
	b.write("access.log", "")
	return b
}

func listenAnywhere(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ready is the answer of /readyz, whatever its status.
func (r *running) ready() (answer map[string]any) {
	r.t.Helper()
	res, err := http.Get("http://" + r.d.listener.Addr().String() + "/readyz")
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		r.t.Fatal(err)
	}
	return answer
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) start(with ...func(*daemon)) {
	b.t.Helper()
	b.running = startDaemon(b.t, b.path("auditor.yaml"), with...)
}

// record is a line of now.
func (b *bench) record(path, more string) string {
	n := b.n.Add(1)
	return fmt.Sprintf(`{"time":%q,"method":"GET","path":%q,"status":200,"duration_ms":1,"peer":"10.0.0.1:%d"%s}`+"\n",
		time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), path, n, more)
}

// log appends a line to the file.
func (b *bench) log(line string) {
	f, err := os.OpenFile(b.path("access.log"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		b.t.Error(err)
	}
}

// pushed sends a line by HTTP.
func (b *bench) pushed(line string) {
	res, err := http.Post("http://"+b.push+"/ingest", "application/x-ndjson", strings.NewReader(line))
	if err != nil {
		b.t.Error(err)
		return
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		b.t.Errorf("a push is answered with %s", res.Status)
	}
}

// reload asks for a reload and returns the answer.
func (b *bench) reload() (status int, answer map[string]any) {
	b.t.Helper()
	res, err := http.Post("http://"+b.running.d.listener.Addr().String()+"/-/reload", "", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		b.t.Fatalf("%v: %s", err, body)
	}
	return res.StatusCode, answer
}

// change writes a configuration and reloads it, and wants that to work.
func (b *bench) change(old, with string) map[string]any {
	b.t.Helper()
	if !strings.Contains(b.config, old) {
		b.t.Fatalf("the configuration has no %q", old)
	}
	b.config = strings.Replace(b.config, old, with, 1)
	b.write("auditor.yaml", b.config)
	status, answer := b.reload()
	if status != 200 {
		b.t.Fatalf("the reload is answered with %d %v", status, answer)
	}
	return answer
}

// stored adds up the arrivals of final seconds by route, up to a moment.
func (b *bench) stored(step string, to time.Time) map[string]float64 {
	b.t.Helper()
	s := b.running.get(fmt.Sprintf("/api/v1/series?measure=arrivals&by=route&limit=100&from=%s&to=%s&step=%s",
		b.begun.Add(-10*time.Second).UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), step))
	sum := map[string]float64{}
	for i := 0; dig(s, "series", i) != nil; i++ {
		for j := 0; dig(s, "series", i, "points", j) != nil; j++ {
			if dig(s, "series", i, "points", j, "provisional") != false {
				continue
			}
			v, _ := dig(s, "series", i, "points", j, "values", "arrivals").(float64)
			sum[dig(s, "series", i, "name").(string)] += v
		}
	}
	return sum
}

// metric adds up the samples of a metric whose labels match.
func (b *bench) metric(name, labels string) (sum float64) {
	b.t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{(.*)\})? (\S+)$`).FindAllStringSubmatch(b.running.get("/metrics")["text"].(string), -1) {
		if ok, _ := regexp.MatchString(labels, m[1]); ok {
			v, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				b.t.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}

func all(m map[string]float64) (sum float64) {
	for route, n := range m {
		if !strings.Contains(route, "/flush") {
			sum += n
		}
	}
	return sum
}

// While records come by a file and by HTTP the way of reading changes again and again:
// every arrival is counted once, in the counters too, which never go down; what was
// final stays; no push is refused.
func TestReloadUnderLoad(t *testing.T) {
	b := newBench(t)
	hangup := make(chan os.Signal, 1)
	b.start(func(d *daemon) { d.hangup = hangup })
	var load sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for _, send := range []func(string){b.log, b.pushed} {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				send(b.record(fmt.Sprintf("/seats/%d", i%7), fmt.Sprintf(`,"my_id":"k%d"`, i/3)))
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	until(t, "seconds are stored", func() bool { return all(b.stored("1s", time.Now())) > 100 })
	closed, err := time.Parse(time.RFC3339, dig(b.running.get("/api/v1/series"), "complete_until").(string))
	if err != nil {
		t.Fatal(err)
	}
	before := b.stored("1s", closed)
	highest, name := 0.0, "id"
	for i := range 3 {
		next := fmt.Sprint("seat", i)
		answer := b.change("{"+name+"}", "{"+next+"}")
		if fmt.Sprint(answer["changed"]) != "[routes.templates]" || answer["recounts"] != true {
			t.Errorf("the reload is answered with %v", answer)
		}
		name = next
		until(t, "new rows have the new name", func() bool {
			is := b.metric("auditor_arrivals_total", "seats")
			if is < highest && is != 0 { // between two dependencies' pictures there may be none
				t.Errorf("the counters fell from %v to %v", highest, is)
			}
			highest = max(highest, is)
			return b.stored("1s", time.Now())["GET /seats/{"+next+"}"] > 20
		})
	}
	b.write("auditor.yaml", strings.Replace(b.config, "{"+name+"}", "{last}", 1))
	hangup <- os.Interrupt // whatever it is
	until(t, "a signal reloads, too", func() bool { return b.stored("1s", time.Now())["GET /seats/{last}"] > 20 })
	stop()
	load.Wait()
	sent := float64(b.n.Load())
	flushed := 0.0
	flush := func() {
		b.log(b.record("/flush", ""))
		b.pushed(b.record("/flush", ""))
		flushed += 2
	}
	until(t, "all is stored", func() bool { flush(); return all(b.stored("1s", time.Now())) >= sent })
	if got := all(b.stored("1s", time.Now().Add(time.Minute))); got != sent {
		t.Errorf("%v arrivals are stored, want %v", got, sent)
	}
	until(t, "the counters have all", func() bool { flush(); return b.metric("auditor_arrivals_total", `route="GET /seats`) >= sent })
	if got := b.metric("auditor_arrivals_total", `route="GET /seats`); got != sent {
		t.Errorf("the counters have %v arrivals, want %v", got, sent)
	}
	until(t, "all lines are counted", func() bool { return b.metric("auditor_records_total", "counted") >= sent+flushed })
	if got := b.metric("auditor_records_total", "counted"); got != sent+flushed {
		t.Errorf("%v lines are counted, want %v", got, sent+flushed)
	}
	for route, n := range before {
		if got := b.stored("1s", closed)[route]; got != n {
			t.Errorf("up to %v there were %v arrivals of %s, and now %v", closed, n, route, got)
		}
	}
	until(t, "ten seconds are made of the same", func() bool { flush(); return all(b.stored("10s", time.Now())) == sent })
}

// What is wrong changes nothing, and is said.
func TestReloadRefuses(t *testing.T) {
	b := newBench(t)
	b.start()
	b.pushed(b.record("/seats/1", `,"my_id":"a"`))
	until(t, "an arrival is live", func() bool {
		return dig(b.running.get("/api/v1/summary"), "dependencies", 0, "windows", 1, "arrivals") == 1.0
	})
	was := b.running.d.setup.Load()
	for name, c := range map[string]struct{ old, with, says string }{
		"a value":             {"horizon: 3s", "horizon: 3", `auditor.yaml:6: keys.horizon: `},
		"an unknown key":      {"lateness: 1s", "latenes: 1s", `auditor.yaml:7: time.latenes: `},
		"a file":              {"originators.yaml", "nothing.yaml", `nothing.yaml: no such file`},
		"the store":           {"rows.db", "other.db", `auditor.yaml:8: store.sqlite: cannot change while the daemon runs`},
		"the address":         {`api: {listen: "127.0.0.1:0"}`, `api: {listen: "127.0.0.1:1"}`, `auditor.yaml:9: api.listen: cannot change`},
		"a spool in use":      {"spool: spool}", "spool: spool, spool_max: 2GiB}", `auditor.yaml:4: sources[1].http: the settings of a listener or spool that is in use`},
		"a spool of another":  {"  - {http: {", "  - {syslog: {", `auditor.yaml:4: sources[1].syslog: the settings of a listener or spool that is in use`},
		"OTLP of a listener":  {"spool: spool}, format: json", "spool: spool}, format: otlp-json", `auditor.yaml:4: sources[1].http: the settings of a listener or spool that is in use`},
		"a pattern":           {"spool: spool}, format: json", "spool: spool}, format: json, pattern: x", `auditor.yaml:4: sources[1].pattern: format json has no pattern`},
		"a salt":              {"horizon: 3s", "horizon: 3s, salt_file: none", `keys.salt_file`},
		"an address in use":   {"  - {http", "  - {http: {listen: " + strconv.Quote(b.running.d.listener.Addr().String()) + ", spool: new}, format: json}\n  - {http", `sources[1].http.listen`},
		"a value and a store": {"sqlite: rows.db", "sqlite: other.db, retention: {1s: 0s}", `store.retention`},
	} {
		if !strings.Contains(b.config, c.old) {
			t.Fatalf("the configuration has no %q", c.old)
		}
		b.write("auditor.yaml", strings.Replace(b.config, c.old, c.with, 1))
		status, answer := b.reload()
		if detail, _ := answer["detail"].(string); status != 422 || !strings.Contains(detail, c.says) {
			t.Errorf("%s: %d %v, want 422 and %q", name, status, answer, c.says)
		}
		if b.running.d.setup.Load() != was {
			t.Errorf("%s: something has changed", name)
		}
		until(t, "the metric says so", func() bool { return b.metric("auditor_config_last_reload_successful", "") == 0 })
	}
	b.write("auditor.yaml", b.config+"# nothing else\n")
	begun := float64(time.Now().Unix())
	if status, answer := b.reload(); status != 200 || fmt.Sprint(answer["changed"]) != "[]" || answer["recounts"] != false {
		t.Errorf("the same again: %d %v", status, answer)
	}
	if b.running.d.setup.Load().live != was.live {
		t.Error("the same again is counted anew")
	}
	until(t, "the metrics say so", func() bool {
		return b.metric("auditor_config_last_reload_successful", "") == 1 && b.metric("auditor_config_last_reload_success_timestamp_seconds", "") >= begun
	})
	b.pushed(b.record("/seats/1", `,"my_id":"a"`))
	until(t, "arrivals still are", func() bool {
		return dig(b.running.get("/api/v1/summary"), "dependencies", 0, "windows", 1, "arrivals") == 2.0
	})
}

// Budgets, the policy, tokens and retention are in force at once; counting goes on.
func TestReloadAtOnce(t *testing.T) {
	b := newBench(t)
	b.start()
	was := b.running.d.setup.Load()
	answer := b.change("store: {sqlite: rows.db}", "store: {sqlite: rows.db, retention: {1s: 3h}}\nbudget: {ratio: 0.7}\ndeclared: {chosen: 1.5}")
	if answer["recounts"] != false || fmt.Sprint(answer["changed"]) != "[budget.ratio declared.chosen store.retention]" {
		t.Errorf("answered is %v", answer)
	}
	until(t, "the budget is another", func() bool {
		return dig(b.running.get("/api/v1/budgets"), "granted", 0, "ratio") == 0.7 && dig(b.running.get("/api/v1/policy"), "declared", "chosen") == 1.5
	})
	if b.running.d.setup.Load().live != was.live {
		t.Error("counting has begun anew")
	}
	b.change(`api: {listen: "127.0.0.1:0"}`, `api: {listen: "127.0.0.1:0", tokens: ["a token of the test"]}`)
	if status, _ := b.reload(); status != 401 {
		t.Errorf("without the new token: %d", status)
	}
}

// A key whose originator becomes known is verified from then on, and one whose secret
// is replaced is not.
func TestReloadOriginators(t *testing.T) {
	b := newBench(t)
	b.start()
	ask := func(secret string) {
		t.Helper()
		minter := keys.Minter{Originator: "web", KID: "a", Secret: []byte(secret)}
		key, err := minter.Mint(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		b.pushed(b.record("/seats/1", fmt.Sprintf(`,"question_key":%q`, key)))
	}
	window := func(field ...any) any {
		return dig(b.running.get("/api/v1/summary"), append([]any{"dependencies", 0, "windows", 1}, field...)...)
	}
	ask(secretA)
	until(t, "the originator is unknown", func() bool { return window("unattributable", "unknown_originator") == 1.0 })
	b.write("originators.yaml", fmt.Sprintf("originators: [{id: web, keys: [{kid: a, secret: %q}]}]\n", secretA))
	if status, answer := b.reload(); status != 200 || fmt.Sprint(answer["changed"]) != "[keys.originators]" {
		t.Fatalf("%d %v", status, answer)
	}
	ask(secretA)
	until(t, "a key is verified", func() bool { v, _ := window("verified").(float64); return v >= 1 })
	b.write("originators.yaml", fmt.Sprintf("originators: [{id: web, keys: [{kid: a, secret: %q}]}]\n", secretB))
	if status, answer := b.reload(); status != 200 || fmt.Sprint(answer["changed"]) != "[keys.originators]" {
		t.Fatalf("%d %v", status, answer)
	}
	ask(secretA)
	ask(secretB)
	until(t, "the old secret forges, the new one does not", func() bool {
		forged, _ := window("unattributable", "forged").(float64)
		verified, _ := window("verified").(float64)
		return forged >= 1 && verified >= 1
	})
}

// Sources start and stop; the others run on.
func TestReloadSources(t *testing.T) {
	b := newBench(t)
	b.write("second.log", b.record("/seats/2", ""))
	b.start()
	pushes := b.running.d.setup.Load().sources[1]
	b.pushed(b.record("/seats/1", ""))
	b.change("  - {file", "  - {file: {paths: [second.log]}, format: json}\n  - {file")
	if now := b.running.d.setup.Load().sources; len(now) != 3 || now[2] != pushes {
		t.Error("the source that was there does not run on")
	}
	counted := func(i int) any { return dig(b.running.get("/api/v1/sources"), "sources", i, "counted") }
	until(t, "the second file is read", func() bool {
		s := b.running.get("/api/v1/sources")
		for i := 0; dig(s, "sources", i) != nil; i++ {
			if name, _ := dig(s, "sources", i, "source").(string); strings.HasSuffix(name, "second.log") && counted(i) == 1.0 {
				return true
			}
		}
		return false
	})
	b.change("  - {file: {paths: [second.log]}, format: json}\n", "")
	if now := b.running.d.setup.Load().sources; len(now) != 2 || now[1] != pushes {
		t.Error("the source that was there does not run on")
	}
	b.pushed(b.record("/seats/1", ""))
}

// brittle is a store that can be taken away.
type brittle struct {
	store.Store
	away atomic.Bool
}

func (s *brittle) Write(ctx context.Context, w *store.Write) error {
	if s.away.Load() {
		return errors.New("the store of this test is away")
	}
	return s.Store.Write(ctx, w)
}

// While the store is away the configuration stays what it is, and nothing is lost; nor
// is it when the daemon ends in the midst of a change.
func TestReloadWithoutAStore(t *testing.T) {
	b := newBench(t)
	s := &brittle{}
	broken := func(d *daemon) { s.Store, d.rows.store, d.patience = d.store, s, time.Second }
	b.start(broken)
	sent := 0.0
	send := func(n int) {
		for i := range n {
			b.pushed(b.record(fmt.Sprint("/seats/", i), ""))
			sent++
			time.Sleep(time.Millisecond)
		}
	}
	stored := func() float64 { b.pushed(b.record("/flush", "")); return all(b.stored("1s", time.Now())) }
	send(100)
	until(t, "rows are stored", func() bool { return stored() == sent })
	s.away.Store(true)
	send(100)
	was := b.running.d.setup.Load()
	b.write("auditor.yaml", strings.Replace(b.config, "{id}", "{seat}", 1))
	// Until a second is final there is nothing that could not be stored.
	until(t, "there is something to store", func() bool { stored(); return b.running.d.setup.Load().live.Picture().StoreErr != nil })
	status, answer := b.reload()
	if detail, _ := answer["detail"].(string); status != 503 || !strings.Contains(detail, "the store of this test is away") || b.running.d.setup.Load() != was {
		t.Errorf("%d %v", status, answer)
	}
	send(100)
	s.away.Store(false)
	until(t, "all is stored", func() bool { return stored() >= sent })
	if got := stored(); got != sent {
		t.Errorf("%v arrivals are stored, want %v", got, sent)
	}

	s.away.Store(true)
	send(100)
	until(t, "there is something to store", func() bool { stored(); return b.running.d.setup.Load().live.Picture().StoreErr != nil })
	b.running.d.patience = time.Hour
	done := make(chan error, 1)
	go func() { _, err := b.running.d.reload(t.Context()); done <- err }()
	until(t, "the change is under way", b.running.d.gate.isShut)
	ended := make(chan struct{})
	go func() { defer close(ended); b.running.stop() }()
	if err := <-done; err == nil {
		t.Error("a change that was cut short succeeded")
	}
	s.away.Store(false)
	<-ended
	b.start(broken)
	until(t, "all is stored", func() bool { return stored() >= sent })
	if got := stored(); got != sent {
		t.Errorf("%v arrivals are stored, want %v", got, sent)
	}
}

func TestReadinessNamesWhatFailed(t *testing.T) {
	b := newBench(t)
	b.start()
	b.pushed(b.record("/seats/1", ""))
	x := b.running.d.setup.Load()
	x.sources[1].fail(errors.New("nobody can push"))
	until(t, "/readyz and /api/v1/sources say so", func() bool {
		r := fmt.Sprint(b.running.get("/api/v1/sources"))
		reasons := fmt.Sprint(b.running.ready()["reasons"])
		return strings.Contains(r, "nobody can push") && strings.Contains(reasons, "nobody can push") && b.metric("auditor_source_up", regexp.QuoteMeta(b.push)) == 0 &&
			b.running.ready()["state"] != "failed"
	})
	x.sources[0].fail(errors.New("no file"))
	until(t, "no source is left", func() bool { a := b.running.ready(); return a["state"] == "failed" && a["ready"] == false })
	x.sources[0].fail(nil)
	x.sources[1].fail(nil)
	until(t, "all is well", func() bool { return b.running.ready()["state"] != "failed" })
}
