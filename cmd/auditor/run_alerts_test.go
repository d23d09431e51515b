package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/targetside/auditor/alerts"
	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/pipeline"
	"github.com/targetside/auditor/store"
)

// wall is a clock that can be put forward.
type wall struct{ ahead atomic.Int64 }

func (w *wall) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// people write a log: so many who ask once a second, and so many of those again.
type people struct {
	t                  *testing.T
	path               string
	originals, repeats map[int64]int // by second
	n, lines           int
	last               time.Time
	due                [2]float64
}

func (p *people) write(at time.Time, originals, repeats int) {
	f, err := os.OpenFile(p.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	line := func(id int) {
		p.lines++
		fmt.Fprintf(f, `{"time":%q,"method":"GET","path":"/seats","status":200,"duration_ms":0,"my_id":"q%d","peer":"10.0.0.1:%d"}`+"\n",
			at.UTC().Format("2006-01-02T15:04:05.000Z"), id, p.lines%60000)
	}
	for range originals {
		p.n++
		line(p.n)
	}
	for i := range repeats {
		line(p.n - i%originals)
	}
	p.originals[at.Unix()] += originals
	p.repeats[at.Unix()] += repeats
}

// goOn writes what is due by now, of so many originals and repeats a second.
func (p *people) goOn(now time.Time, originals, repeats float64) {
	seconds := now.Sub(p.last).Seconds()
	p.last = now
	p.due[0], p.due[1] = p.due[0]+seconds*originals, p.due[1]+seconds*repeats
	if o, r := int(p.due[0]), int(p.due[1]); o > 0 {
		p.due[0], p.due[1] = p.due[0]-float64(o), p.due[1]-float64(r)
		p.write(now, o, r)
	}
}

// crossed is the end of the first ten seconds whose repeats were half of a fifth of
// the originals.
func (p *people) crossed(from, to int64) int64 {
	for end := from; end <= to; end++ {
		o, r := 0, 0
		for at := end - 10; at < end; at++ {
			o, r = o+p.originals[at], r+p.repeats[at]
		}
		if r >= 10 && 10*r >= o {
			return end
		}
	}
	return 0
}

// listener is a server that keeps what it is told.
type listener struct {
	*httptest.Server
	mu   sync.Mutex
	told []map[string]any
	head []http.Header
	body [][]byte
}

func listen(t *testing.T) *listener {
	l := new(listener)
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		var list []map[string]any
		if json.Unmarshal(body, &list) != nil {
			var one map[string]any
			if err := json.Unmarshal(body, &one); err != nil {
				t.Error(err)
			}
			list = append(list, one)
		}
		l.told, l.head, l.body = append(l.told, list...), append(l.head, r.Header), append(l.body, body)
	}))
	t.Cleanup(l.Close)
	return l
}

// of is what it was told of an alert, in order.
func (l *listener) of(name string) (out []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.told {
		if dig(m, "labels", "alertname") == name {
			out = append(out, m)
		}
	}
	return out
}

// A storm in a log fires RetryBudgetLow within two seconds of log time after half of
// the budget is spent, goes on through a restart without being told of again or
// resolved, and is resolved when it is over.
func TestDaemonTellsOfAStorm(t *testing.T) {
	dir := t.TempDir()
	log, config := filepath.Join(dir, "access.log"), filepath.Join(dir, "auditor.yaml")
	manager, hook := listen(t), listen(t)
	text := fmt.Sprintf(`dependency: seats
sources: [{file: {paths: [%q]}, format: json}]
keys: {accept: [{field: my_id}], horizon: 3s}
time: {lateness: 1s, idle: 2s}
budget: {coverage_floor: 0, coverage_expected: 0, visibility_floor: 0}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
alerts:
  alertmanagers: [%q]
  webhooks: [{url: %q, secret: "sixteen bytes or more"}]
`, log, manager.URL, hook.URL+"/hidden")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	clock := new(wall)
	p := &people{t: t, path: log, originals: map[int64]int{}, repeats: map[int64]int{}}
	begun := clock.now()
	for back := 15; back > 0; back-- {
		p.write(begun.Add(-time.Duration(back)*time.Second), 20, 0)
	}
	p.last = begun
	quiet, storm := func() { p.goOn(clock.now(), 20, 0) }, func() { p.goOn(clock.now(), 20, 8) }
	find := func(r *running, name string) any {
		a := r.get("/api/v1/alerts")
		for i := 0; dig(a, "alerts", i) != nil; i++ {
			if dig(a, "alerts", i, "alert") == name {
				return dig(a, "alerts", i)
			}
		}
		return nil
	}
	state := func(r *running, name string) any { return dig(find(r, name), "state") }

	r := startDaemonAt(t, config, clock.now)
	until(t, "alerts are evaluated", func() bool { quiet(); return dig(r.get("/api/v1/alerts"), "evaluated") == true })
	if a := find(r, alerts.RetryBudgetLow); a != nil {
		t.Fatalf("before the storm: %v", a)
	}
	until(t, "it fires", func() bool { storm(); return state(r, alerts.RetryBudgetLow) == "firing" })
	fired, err := time.Parse(time.RFC3339, dig(find(r, alerts.RetryBudgetLow), "fired_at").(string))
	if err != nil {
		t.Fatal(err)
	}
	if at := p.crossed(begun.Unix(), clock.now().Unix()+1); at == 0 || fired.Unix() > at+2 {
		t.Errorf("half was spent at %d, and it fired at %d", at, fired.Unix())
	}
	until(t, "both are told", func() bool {
		return len(manager.of(alerts.RetryBudgetLow)) > 0 && len(hook.of(alerts.RetryBudgetLow)) > 0
	})
	if dig(r.get("/api/v1/alerts"), "sinks", 1, "sink") != "alertmanagers[0]" {
		t.Errorf("%v", r.get("/api/v1/alerts"))
	}

	// A restart, while the storm goes on and nobody reads what is written.
	r.stop()
	storm()
	r = startDaemonAt(t, config, clock.now)
	until(t, "it fires on", func() bool { storm(); return state(r, alerts.RetryBudgetLow) == "firing" })
	until(t, "figures are of now again", func() bool { storm(); return dig(r.get("/api/v1/alerts"), "evaluated") == true })
	// The storm is over, and two minutes go by.
	pass := func(d time.Duration) {
		for range int(d / time.Second) {
			clock.ahead.Add(int64(time.Second))
			quiet()
		}
		newest := clock.now().Truncate(time.Second)
		until(t, "what was written is judged", func() bool {
			quiet()
			to, err := time.Parse(time.RFC3339, fmt.Sprint(dig(r.get("/api/v1/budgets"), "budgets", 0, "to")))
			return err == nil && to.After(newest)
		})
	}
	pass(15 * time.Second)
	if s := state(r, alerts.RetryBudgetLow); s != "firing" {
		t.Errorf("resolved at once: %v", s)
	}
	pass(70 * time.Second)
	until(t, "it is resolved", func() bool { quiet(); return state(r, alerts.RetryBudgetLow) == "resolved" })
	past, _ := dig(r.get("/api/v1/alerts"), "past").([]any)
	if !slices.ContainsFunc(past, func(a any) bool { return dig(a, "alert") == alerts.RetryBudgetLow && dig(a, "state") == "resolved" }) {
		t.Errorf("what is remembered is %v", past)
	}
	until(t, "the hook is told", func() bool { return len(hook.of(alerts.RetryBudgetLow)) == 2 })
	ends := func(m map[string]any) bool { // by the clock of Alertmanagers
		at, err := time.Parse(time.RFC3339Nano, m["endsAt"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return at.Before(time.Now().Add(2 * time.Minute))
	}
	until(t, "the Alertmanager is told", func() bool { list := manager.of(alerts.RetryBudgetLow); return ends(list[len(list)-1]) })
	r.stop()

	for _, name := range []string{alerts.RetryBudgetLow, alerts.RetryBudgetExhausted} {
		var statuses []any
		for _, m := range hook.of(name) {
			statuses = append(statuses, m["status"])
		}
		if len(statuses) > 0 && !slices.Equal(statuses, []any{"firing", "resolved"}) {
			t.Errorf("%s: the hook was told %v", name, statuses)
		}
		over := false
		for i, m := range manager.of(name) {
			if over && !ends(m) {
				t.Errorf("%s: it fires again after it was resolved: %d of %v", name, i, manager.of(name))
			}
			over = ends(m)
			if fmt.Sprint(m["labels"]) != fmt.Sprint(manager.of(name)[0]["labels"]) {
				t.Errorf("%s: labels %v", name, m["labels"])
			}
		}
	}
	hook.mu.Lock()
	defer hook.mu.Unlock()
	for i, h := range hook.head {
		if want := alerts.Sign([]byte("sixteen bytes or more"), h.Get(alerts.TimestampHeader), hook.body[i]); h.Get(alerts.SignatureHeader) != want {
			t.Errorf("signed %q, want %q", h.Get(alerts.SignatureHeader), want)
		}
	}
}

// Two daemons that see the same tell it with the same labels. Who is told changes with
// the configuration, at once: an Alertmanager that is new hears what fires already.
func TestDaemonsTellTheSame(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	manager := listen(t)
	write := func(name, told string) string {
		config := filepath.Join(dir, name+".yaml")
		text := fmt.Sprintf(`dependency: seats
sources: [{file: {paths: [%q]}, format: json}]
keys: {accept: [{field: my_id}], horizon: 3s}
time: {lateness: 1s, idle: 2s}
budget: {coverage_floor: 0, coverage_expected: 0, visibility_floor: 0, low: 0.4}
store: {sqlite: %s.db}
api: {listen: "127.0.0.1:0"}
alerts: {alertmanagers: [%s]}
`, log, name, told)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return config
	}
	clock := new(wall)
	p := &people{t: t, path: log, originals: map[int64]int{}, repeats: map[int64]int{}, last: clock.now()}
	for back := 15; back > 0; back-- {
		p.write(clock.now().Add(-time.Duration(back)*time.Second), 20, 0)
	}
	a := startDaemon(t, write("a", fmt.Sprintf("%q", manager.URL)))
	b := startDaemon(t, write("b", ""))
	fires := func(r *running) bool {
		text := r.get("/metrics")["text"].(string)
		return strings.Contains(text, `auditor_alerts{alert="RetryBudgetExhausted",state="firing"} 1`)
	}
	until(t, "both see a storm", func() bool { p.goOn(clock.now(), 20, 20); return fires(a) && fires(b) })
	until(t, "it is told", func() bool { return len(manager.of(alerts.RetryBudgetExhausted)) > 0 })
	a.stop()
	before := len(manager.of(alerts.RetryBudgetExhausted))

	write("b", fmt.Sprintf("%q", manager.URL))
	res, err := http.Post("http://"+b.d.listener.Addr().String()+"/-/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.Contains(string(body), `"changed":["alerts.alertmanagers"],"recounts":false`) {
		t.Fatalf("%s: %s", res.Status, body)
	}
	until(t, "the other tells it, too", func() bool { return len(manager.of(alerts.RetryBudgetExhausted)) > before })
	want := map[string]any{"alertname": "RetryBudgetExhausted", "dependency": "seats", "model": "ratio", "severity": "critical"}
	for _, m := range manager.of(alerts.RetryBudgetExhausted) {
		if !reflect.DeepEqual(m["labels"], any(want)) {
			t.Errorf("labels %v", m["labels"])
		}
	}

	// What cannot be taken leaves everybody told who was.
	write("b", `"http://elsewhere"], webhooks: [{url: "http://hook", secret: short}`)
	res, err = http.Post("http://"+b.d.listener.Addr().String()+"/-/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ = io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(body), "its secret has 5 bytes") || strings.Contains(string(body), "short") {
		t.Errorf("%s: %s", res.Status, body)
	}
	if sinks := dig(b.get("/api/v1/alerts"), "sinks", 2); sinks != nil {
		t.Errorf("told is %v", sinks)
	}
}

// idleConfig is the configuration of a daemon whose log is not there, with further
// sections. Its rows are beside it, in rows.db.
func idleConfig(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	return writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf("dependency: seats\nsources: [{file: {paths: [%q]}}]\nstore: {sqlite: rows.db}\napi: {listen: \"127.0.0.1:0\"}\n%s",
		filepath.Join(dir, "access.log"), more))
}

// keptFiring is the state that is kept of one alert that was told, and seen to fire then.
func keptFiring(name string, seen time.Time) []byte {
	return fmt.Appendf(nil, `{"version":2,"alerts":[{"name":%q,"labels":{"dependency":"seats"},"state":"firing","told":true,"seen":%q}]}`, name, seen.Format(time.RFC3339))
}

// A standby knows of nothing that fires. When it takes over it goes on with what the
// other one kept last, and not with what it read when it began.
func TestTakingOverGoesOnWithWhatFires(t *testing.T) {
	d := startDaemon(t, idleConfig(t, "")).d
	keep := func(name string) {
		if err := d.store.Save(t.Context(), "alerts", keptFiring(name, time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	a := newAlerting(d)
	go a.keep(t.Context())
	knows := func() (names []string) {
		for _, x := range a.evaluator.Alerts() {
			names = append(names, x.Name)
		}
		return names
	}
	step := func(standby bool) {
		a.restore("alerts", standby, time.Now())
		a.evaluator.Step(&alerts.Input{Now: time.Now(), Standby: standby, Unknown: true})
	}
	keep(alerts.DeadAnswers)
	until(t, "what was kept is restored", func() bool { step(false); return a.restored })
	if !slices.Equal(knows(), []string{alerts.DeadAnswers}) {
		t.Fatalf("it knows %v", knows())
	}
	step(true)
	if a.restored || knows() != nil {
		t.Fatalf("on standby it knows %v", knows())
	}
	keep(alerts.CoverageTooLow) // the other one
	step(true)
	until(t, "it is restored anew", func() bool { step(false); return a.restored })
	if !slices.Equal(knows(), []string{alerts.CoverageTooLow}) {
		t.Errorf("it knows %v", knows())
	}
}

// What fired too long ago is over, which is told once; nothing of it is left to be told
// by the next start.
func TestWhatFiredLongAgoIsOver(t *testing.T) {
	hook := listen(t)
	config := idleConfig(t, fmt.Sprintf("alerts: {webhooks: [{url: %q}]}\n", hook.URL))
	rows, err := store.OpenSQLite(t.Context(), filepath.Join(filepath.Dir(config), "rows.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Save(t.Context(), "alerts", keptFiring(alerts.DeadAnswers, time.Now().Add(-time.Hour))); err != nil {
		t.Fatal(err)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	r := startDaemon(t, config)
	until(t, "it is resolved", func() bool { return len(hook.of(alerts.DeadAnswers)) > 0 })
	until(t, "that is kept", func() bool {
		kept, err := r.d.store.Load(t.Context(), "alerts")
		return err == nil && !strings.Contains(string(kept), "firing")
	})
	if status := hook.of(alerts.DeadAnswers)[0]["status"]; status != "resolved" {
		t.Errorf("told %v", status)
	}
}

// The name under which what fires is kept says who goes on with it, and nothing of what
// else is read.
func TestNameOfKeptAlerts(t *testing.T) {
	file, other := config.Source{File: &config.File{Paths: []string{"a"}}}, config.Source{File: &config.File{Paths: []string{"b"}}}
	group := func(name string, keyed bool, topics ...string) config.Source {
		return config.Source{Kafka: &config.Kafka{Group: name, Topics: topics, Keyed: keyed}}
	}
	name := func(shared bool, dependency string, sources ...config.Source) string {
		l := &loaded{Config: &config.Config{Dependency: config.Dependency{Name: dependency}, Sources: sources}}
		if shared {
			l.Store.ClickHouse = new(config.ClickHouse)
		}
		return l.alertsName()
	}
	for _, c := range []struct {
		what string
		a, b string
		same bool
	}{
		{"a store of its own", name(false, "seats", file), name(false, "prices", other, group("g", true)), true},
		{"another file", name(true, "seats", file), name(true, "seats", other, file), true},
		{"another topic", name(true, "seats", group("g", false, "t")), name(true, "seats", group("g", false, "u"), file, group("g", false, "t")), true},
		{"another group", name(true, "seats", group("g", false)), name(true, "seats", group("h", false)), false},
		{"another dependency", name(true, "seats", file), name(true, "prices", file), false},
		{"a share, and the whole", name(true, "seats", group("g", true)), name(true, "seats", group("g", false)), false},
		{"a log of one host", name(true, "seats", file), name(true, "seats", group("g", false)), false},
	} {
		if (c.a == c.b) != c.same {
			t.Errorf("%s: %s and %s", c.what, c.a, c.b)
		}
	}
}

// When that name changes all is kept under the new one at once, and nothing is left under
// the old.
func TestAlertsAreKeptUnderTheNewName(t *testing.T) {
	d := startDaemon(t, idleConfig(t, "")).d
	a := newAlerting(d)
	go a.keep(t.Context())
	was := d.setup.Load()
	of := func(dependency string) *setup {
		l, c := *was.loaded, *was.loaded.Config
		c.Store.ClickHouse, c.Dependency.Name = new(config.ClickHouse), dependency
		l.Config = &c
		return &setup{loaded: &l, live: was.live, sources: was.sources, hash: was.hash}
	}
	judge := func(x *setup) { a.judge(x, &pipeline.Picture{At: time.Now()}, new(api.Snapshot)) }
	before, after := of("seats"), of("places")
	if err := d.store.Save(t.Context(), before.loaded.alertsName(), keptFiring(alerts.DeadAnswers, time.Now())); err != nil {
		t.Fatal(err)
	}
	until(t, "it is restored", func() bool { judge(before); return a.restored })
	holds := func(x *setup) bool {
		kept, err := d.store.Load(t.Context(), x.loaded.alertsName())
		return err == nil && strings.Contains(string(kept), alerts.DeadAnswers)
	}
	judge(after)
	until(t, "it is kept under the new name, and not under the old", func() bool { return holds(after) && !holds(before) })
}

// What was lost once is no news for ever.
func TestLostRecordsAreForgotten(t *testing.T) {
	var l lostRecords
	sources := []*source{{kind: "file"}}
	at := time.Unix(1e9, 0)
	look := func(lines, bad uint64) (read, lost uint64) {
		at = at.Add(time.Second)
		return l.lately(at, &pipeline.Picture{Sources: []pipeline.SourceCounts{{Lines: lines, Quarantined: map[string]uint64{"syntax": bad}}}}, sources)
	}
	look(100, 0)
	if read, lost := look(300, 50); read != 150 || lost != 50 {
		t.Errorf("%d and %d", read, lost)
	}
	for range 320 {
		look(300, 50)
	}
	if read, lost := look(400, 50); read != 100 || lost != 0 {
		t.Errorf("five minutes later %d and %d", read, lost)
	}
	if read, lost := look(10, 0); read != 0 || lost != 0 {
		t.Errorf("of other sources %d and %d", read, lost)
	}
}
