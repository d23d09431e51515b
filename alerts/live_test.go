package alerts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/targetside/auditor/dashboards/livetest"
	"github.com/targetside/auditor/keys"
)

// Two daemons that see the same are one to a real Alertmanager: for each episode somebody
// is called once, and once when it is over, though one of the two is stopped in its
// midst and started again, and both are killed before it is over.
func TestTwoDaemonsTellARealAlertmanagerOnce(t *testing.T) {
	livetest.Find(t, "prometheus-alertmanager", "prometheus-alertmanager", "alertmanager")
	program := livetest.Auditor(t)
	called := livetest.NewCalled(t)
	const every = 5 * time.Second // the two do not resolve in the same moment
	alertmanager := livetest.Alertmanager(t, called, every, "")

	// Somebody asks fifty questions a second: in a storm three times each, and has left
	// before the answer is there.
	const secret = "0123456789abcdef0123456789abcdef"
	var storm atomic.Bool
	shared := t.TempDir()
	log, err := os.Create(filepath.Join(shared, "access.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shared, "originators.yaml"), fmt.Appendf(nil, "originators: [{id: web, keys: [{kid: a, secret: %s}]}]\n", secret), 0o600); err != nil {
		t.Fatal(err)
	}
	web := keys.Minter{Originator: "web", KID: "a", Secret: []byte(secret)}
	wave := func(now time.Time) error {
		var b strings.Builder
		for q := range 5 {
			at := now.Add(time.Duration(q-50) * time.Millisecond)
			key, err := web.Mint(at)
			if err != nil {
				return err
			}
			tries, gone, bytes := 1, false, 500
			if storm.Load() {
				tries, gone, bytes = 3, true, 0
			}
			for try := range tries {
				fmt.Fprintf(&b, `{"time":%q,"duration_ms":5,"method":"GET","path":"/seats/%d","peer":"bff","status":200,"bytes_sent":%d,"client_gone":%t,"question_key":%q}`+"\n",
					at.Add(time.Duration(10*try)*time.Millisecond).UTC().Format("2006-01-02T15:04:05.000Z"), q, bytes, gone, key)
			}
		}
		_, err := log.WriteString(b.String())
		return err
	}
	t.Cleanup(func() { log.Close() })
	livetest.Traffic(t, wave)

	configs := [2]string{}
	for i := range configs {
		configs[i] = filepath.Join(t.TempDir(), "auditor.yaml")
		if err := os.WriteFile(configs[i], fmt.Appendf(nil, `dependency: seats
sources: [{file: {paths: [%q]}, format: json}]
time: {lateness: 5s, idle: 2s}
keys: {originators: %q, horizon: 3s}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
alerts: {alertmanagers: [%q]}
`, log.Name(), filepath.Join(shared, "originators.yaml"), alertmanager), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	daemons := [2]*livetest.Process{livetest.Run(t, program, configs[0]), livetest.Run(t, program, configs[1])}

	const (
		exhausted = "RetryBudgetExhausted dependency=seats model=ratio severity=critical"
		dead      = "DeadAnswers dependency=seats severity=critical"
	)
	began := time.Now()
	say := func(what string) { t.Logf("%3.0f s: %s", time.Since(began).Seconds(), what) }
	// knows waits until a daemon says that both fire, and has told so.
	knows := func(d *livetest.Process) {
		t.Helper()
		livetest.Until(t, 60*time.Second, func() string {
			states, told, err := standing(d.Said)
			if err != nil {
				return err.Error()
			}
			if states[exhausted] != "firing" || states[dead] != "firing" || told == 0 {
				return fmt.Sprintf("it says %v, and has told %d times", states, told)
			}
			return ""
		})
	}
	// wrong says of what somebody was called for beyond what is wanted: of both alerts,
	// and perhaps of others of the budget.
	wrong := func(want []string) string {
		for name, got := range called.Calls() {
			if name != dead && !strings.HasPrefix(name, "RetryBudget") || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
				return fmt.Sprintf("somebody is called for %s: %q", name, got)
			}
		}
		return ""
	}
	// calls waits until somebody was called for both alerts so often, and never more.
	calls := func(most time.Duration, want ...string) {
		t.Helper()
		livetest.Until(t, most, func() string {
			if s := wrong(want); s != "" {
				t.Fatal(s)
			}
			all := called.Calls()
			if !slices.Equal(all[exhausted], want) || !slices.Equal(all[dead], want) {
				return fmt.Sprintf("called for %v", all)
			}
			return ""
		})
	}

	for _, d := range daemons {
		livetest.Until(t, 60*time.Second, func() string { return unread(d.Said) })
	}
	say("both have a reading of the budget")
	storm.Store(true)
	for _, d := range daemons {
		knows(d)
	}
	calls(30*time.Second, "firing")
	say("both tell of a storm, and somebody was called once")

	all, err := livetest.Standings(alertmanager)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, a := range all {
		name := livetest.Name(a.Labels)
		if seen[name] {
			t.Errorf("%s stands twice", name)
		}
		if seen[name] = true; a.Annotations["runbook_url"] == "" || a.Annotations["summary"] == "" {
			t.Errorf("%s says %v", name, a.Annotations)
		}
	}
	if !seen[exhausted] || !seen[dead] {
		t.Errorf("there stand %v", seen)
	}

	daemons[0].Stop()
	livetest.While(t, every+2*time.Second, func() string { return wrong([]string{"firing"}) })
	daemons[0] = livetest.Run(t, program, configs[0])
	knows(daemons[0])
	say("one was stopped and started, and tells of it")

	// What they resolve now they know from before.
	storm.Store(false)
	for i, d := range daemons {
		d.Kill()
		daemons[i] = livetest.Run(t, program, configs[i])
	}
	say("the storm is over, and both were killed and started")
	calls(150*time.Second, "firing", "resolved")
	livetest.Until(t, 60*time.Second, func() string {
		if all, err := livetest.Standings(alertmanager); err != nil || len(all) > 0 {
			return fmt.Sprintf("there stand %v (%v)", all, err)
		}
		return ""
	})
	calls(time.Second, "firing", "resolved")
	say("somebody was told once that it is over")
}

// standing is what a daemon says of its alerts, and how often it has told its
// Alertmanager.
func standing(address string) (states map[string]string, told int, err error) {
	var answer struct {
		Alerts []struct {
			Alert, State string
			Labels       map[string]string
		}
		Sinks []struct {
			Sink  string
			Taken int
		}
	}
	if err := ask("http://"+address+"/api/v1/alerts", &answer); err != nil {
		return nil, 0, err
	}
	states = map[string]string{}
	for _, a := range answer.Alerts {
		a.Labels["alertname"] = a.Alert
		states[livetest.Name(a.Labels)] = a.State
	}
	for _, s := range answer.Sinks {
		if strings.HasPrefix(s.Sink, "alertmanagers") {
			told += s.Taken
		}
	}
	return states, told, nil
}

// unread says that a daemon has no reading of the budget yet.
func unread(address string) string {
	var answer struct {
		Budgets []struct{ State string }
	}
	if err := ask("http://"+address+"/api/v1/budgets", &answer); err != nil {
		return err.Error()
	}
	if len(answer.Budgets) == 0 || answer.Budgets[0].State != "ok" {
		return fmt.Sprintf("budgets: %+v", answer.Budgets)
	}
	return ""
}

func ask(url string, into any) error {
	client := http.Client{Timeout: 10 * time.Second}
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(into)
}
