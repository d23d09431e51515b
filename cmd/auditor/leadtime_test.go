package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/alerts"
	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/lab"
	"github.com/targetside/auditor/pipeline"
)

// trouble is when it comes, in every arm of lead-time.
const trouble = 90 * time.Second

// armLog is what the log of an arm's target comes to hold, and what is true of it.
type armLog struct {
	*lab.Arm
	begins time.Time
	text   []byte
	lines  []int           // where each line ends in text
	ends   []time.Duration // when each request ended, since begins
	truth  *lab.Truth
}

// newArmLog plays an arm.
func newArmLog(t *testing.T, arm lab.Arm) *armLog {
	t.Helper()
	var text bytes.Buffer
	truth, err := lab.Run(t.Context(), &arm, lab.Output{Format: "json", Log: &text})
	if err != nil {
		t.Fatal(err)
	}
	l := &armLog{Arm: &arm, text: text.Bytes(), truth: truth}
	at := 0
	for line := range bytes.Lines(l.text) {
		var r struct {
			Time     time.Time
			Duration int64 `json:"duration_ms"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if l.begins.IsZero() {
			l.begins = r.Time.Truncate(time.Minute)
		}
		at += len(line)
		l.lines = append(l.lines, at)
		l.ends = append(l.ends, r.Time.Sub(l.begins)+time.Duration(r.Duration)*time.Millisecond)
	}
	if !slices.IsSorted(l.ends) {
		t.Fatalf("%s: the log is not in the order in which requests end", arm.Name)
	}
	return l
}

// onset is the beginning of the first second with trouble in which fewer useful answers
// are made than 90 % of the median over the minute before.
func (l *armLog) onset() (time.Duration, bool) {
	useful := make([]uint64, l.Lasts/time.Second)
	for _, r := range l.truth.Routes {
		for i := range min(len(useful), len(r.Seconds)) {
			useful[i] += r.Seconds[i].Useful
		}
	}
	for s := int(trouble / time.Second); s < len(useful); s++ {
		before := slices.Sorted(slices.Values(useful[s-60 : s]))
		if float64(useful[s]) < 0.9*float64(before[29]+before[30])/2 {
			return time.Duration(s) * time.Second, true
		}
	}
	return 0, false
}

// A release says when a record can be read whose request has ended, of those that were
// not there before.
type release func(ended time.Duration) time.Duration

// heldFor is a shipper, or whatever else keeps each record for as long.
func heldFor(d time.Duration) release {
	return func(ended time.Duration) time.Duration { return ended + d }
}

// flushed is a proxy that writes what it has d after the first of it, as nginx does with
// access_log flush=d.
func flushed(d time.Duration) release {
	due := time.Duration(-1)
	return func(ended time.Duration) time.Duration {
		if ended > due {
			due = ended + d
		}
		return due
	}
}

// nowhere keeps no row.
type nowhere struct{}

func (nowhere) Write(context.Context, *pipeline.Written) error    { return nil }
func (nowhere) NextRules(context.Context, string) (uint32, error) { return 1, nil }
func (nowhere) Note(context.Context, string) ([]byte, error)      { return nil, nil }

// told says when somebody was first told of each alert by a daemon that follows the log,
// whose records are there when they are released.
func (l *armLog) told(t *testing.T, config string, when release) map[string]time.Duration {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"auditor.yaml": string(l.Config("json", "access.log")) + config, "originators.yaml": string(l.Originators())} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := map[string]time.Duration{}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		now := func() time.Time { return l.begins.Add(time.Since(begun)) }
		conf, err := load(labProgram(), filepath.Join(dir, "auditor.yaml"), false)
		if err != nil {
			t.Fatal(err)
		}
		c, err := conf.pipelineConfig(now())
		if err != nil {
			t.Fatal(err)
		}
		quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
		live := pipeline.NewLive(pipeline.LiveConfig{
			Config: c, Idle: conf.Time.Idle, Keyed: []bool{false}, Parts: []bool{true}, Writer: nowhere{}, Clock: now,
			Log: quiet, DeadLetters: []func([]byte, string, ingest.Partition, ingest.Ref){nil},
		})
		alerting := newAlerting(&daemon{log: quiet, watch: new(storeWatch), reader: new(reader)})
		x, snapshot := &setup{loaded: conf, live: live, sources: []*source{new(source)}}, &api.Snapshot{Policy: policy(&conf.Declared).Plan()}
		ctx, stop := context.WithCancel(t.Context())
		x.start(ctx)
		defer func() { stop(); <-x.ended }()
		session, _, err := live.Assigned(ctx, ingest.Partition{Name: "access.log"}, ingest.Position{})
		if err != nil {
			t.Fatal(err)
		}
		read, due := 0, time.Duration(0)
		if len(l.ends) > 0 {
			due = when(l.ends[0])
		}
		// A followed file is looked at five times a second, and alerts are judged twice,
		// at moments at which nothing else happens.
		time.Sleep(37 * time.Millisecond)
		for n := 0; ; n++ {
			since := time.Since(begun)
			if since >= l.Lasts {
				return
			}
			if n%2 == 0 {
				from := read
				for read < len(l.ends) && due <= since {
					if read++; read < len(l.ends) {
						due = when(l.ends[read])
					}
				}
				if from < read || n%10 == 0 {
					if err := session.Consume(ctx, l.batch(from, read)); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
			}
			if n%5 == 0 {
				for _, change := range alerting.evaluator.Step(alerting.input(x, live.Picture(), snapshot)) {
					if _, known := first[change.Name]; !known && change.State == alerts.Firing {
						first[change.Name] = time.Since(begun)
					}
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return first
}

// batch is some of the records, behind which there is nothing yet.
func (l *armLog) batch(from, to int) *ingest.Batch {
	b := &ingest.Batch{Next: int64(to), AtEnd: true}
	b.Offset = int64(from)
	if from == to {
		return b
	}
	begin := 0
	if from > 0 {
		begin = l.lines[from-1]
	}
	b.Data = l.text[begin:l.lines[to-1]]
	for at := from; at < to; at++ {
		b.Refs = append(b.Refs, ingest.Ref{Line: 1, Offset: int64(at)})
	}
	return b
}

// leadRows are the rows of the table.
var leadRows = []struct {
	arm, traffic string
	config       string // beside what the lab writes
}{
	{"slow-collapse", "slow collapse", ""},
	{"fast-collapse", "fast collapse", ""},
	{"error-burst", "error burst", ""},
	{"retry-free", "nobody tries again; the target's own log", ""},
	{"retry-free-at-a-proxy", "the same in a proxy's log", ""},
	{"re-keyed-signed", "slow collapse, signed keys made anew", ""},
	{"re-keyed-claimed", "slow collapse, claimed keys made anew", ""},
	{"re-keyed-claimed", "the same, claims being trusted", "budget: {coverage_expected: 0, coverage_floor: 0}\n"},
	{"growth", "honest growth, three times", ""},
	{"refresh", "people press refresh", ""},
	{"standstill", "standstill", ""},
}

// leadPolicy is what the layers of the arms may do at most.
const leadPolicy = "declared: {chosen: 1.2, deadline: 2s, layers: [{name: app, attempts: 3, timeout: 200ms}, {name: gateway, attempts: 3, timeout: 200ms}, {name: bff, attempts: 3, timeout: 200ms}]}\n"

// leadDelays are how long after its end each record is there.
var leadDelays = []time.Duration{0, time.Second, 10 * time.Second}

// retryDriven are the arms in which retries carry the target over what it can do.
var retryDriven = []string{"slow-collapse", "fast-collapse", "error-burst"}

func leadLog(t *testing.T, arm string) *armLog {
	t.Helper()
	f, err := labScenario("lead-time")
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Arm(arm)
	if err != nil {
		t.Fatal(err)
	}
	return newArmLog(t, a)
}

// TestLeadTime holds what is measured to what alerts are for, which is to come before
// the collapse and at no other time, and docs/operations/lead-time.md to what is measured.
func TestLeadTime(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "| traffic | records come after | goodput falls | %s |\n|---|---|---|%s\n", strings.Join(alerts.Names, " | "), strings.Repeat("---|", len(alerts.Names)))
	var l *armLog
	for _, row := range leadRows {
		if raced && row.arm != "fast-collapse" {
			continue // what is measured is one goroutine at a time
		}
		if l == nil || l.Name != row.arm {
			l = leadLog(t, row.arm)
			if slices.Contains(retryDriven, row.arm) && !raced {
				l.isRetryDriven(t)
				l.leadsWithinTwoSeconds(t)
			}
			if row.arm == "fast-collapse" {
				l.isFast(t)
			}
		}
		onset, falls := l.onset()
		for _, delay := range leadDelays {
			if raced && delay > 0 {
				continue
			}
			told := l.told(t, leadPolicy+row.config, heldFor(delay))
			for _, wrong := range broken(row.arm, delay, onset, falls, told) {
				t.Errorf("%s, records come after %v: %s: told %v, and goodput falls at %v", row.traffic, delay, wrong, told, onset)
			}
			begins := "never"
			if falls {
				begins = fmt.Sprintf("after %.0f s", (onset - trouble).Seconds())
			}
			fmt.Fprintf(&table, "| %s | %.0f s | %s |", row.traffic, delay.Seconds(), begins)
			for _, name := range alerts.Names {
				fmt.Fprintf(&table, " %s |", lead(told, name, onset, falls))
			}
			table.WriteString("\n")
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations", "lead-time.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("measured:\n%s", &table)
	if !raced && !strings.Contains(string(page), "\n\n"+table.String()+"\n") {
		t.Error("docs/operations/lead-time.md does not hold what is measured")
	}
}

// lead is how much before goodput falls somebody is told of an alert, or after.
func lead(told map[string]time.Duration, name string, onset time.Duration, falls bool) string {
	at, ok := told[name]
	switch {
	case !ok:
		return "-"
	case at < trouble:
		return "all along"
	case !falls:
		return fmt.Sprintf("%.1f s after trouble", (at - trouble).Seconds())
	case at < onset:
		return fmt.Sprintf("**%.1f s before**", (onset - at).Seconds())
	}
	return fmt.Sprintf("%.1f s after", (at - onset).Seconds())
}

// broken says which promises are, in what came of one arm.
func broken(arm string, delay, onset time.Duration, falls bool, told map[string]time.Duration) (out []string) {
	hold := func(ok bool, promise string) {
		if !ok {
			out = append(out, promise)
		}
	}
	is := func(name string) bool { _, ok := told[name]; return ok }
	budgets := is(alerts.RetryBudgetLow) || is(alerts.RetryBudgetExhaustsSoon) || is(alerts.RetryBudgetExhausted)
	hold(falls == (arm != "growth"), "goodput falls in every arm but that of growth")
	switch {
	case slices.Contains(retryDriven, arm):
		hold(is(alerts.RetryBudgetLow), "RetryBudgetLow fires")
		hold(delay > 2*time.Second || told[alerts.RetryBudgetLow] < onset, "RetryBudgetLow leads")
		hold(told[alerts.RetryBudgetLow] >= trouble, "RetryBudgetLow is silent before")
	case arm == "retry-free":
		hold(is(alerts.DeadAnswers) && told[alerts.DeadAnswers] >= trouble, "DeadAnswers fires")
		hold(!budgets, "the budget is silent")
	case arm == "re-keyed-signed":
		hold(is(alerts.CoverageTooLow) && told[alerts.CoverageTooLow] >= trouble, "CoverageTooLow fires")
	case arm == "growth":
		hold(len(told) == 0, "nothing fires")
	}
	return out
}

// leadsWithinTwoSeconds finds that RetryBudgetLow leads with records that come as late as
// that, and with a proxy that writes what it has every second.
func (l *armLog) leadsWithinTwoSeconds(t *testing.T) {
	t.Helper()
	onset, _ := l.onset()
	for how, when := range map[string]release{"held for two seconds": heldFor(2 * time.Second), "flushed each second": flushed(time.Second)} {
		if low, ok := l.told(t, leadPolicy, when)[alerts.RetryBudgetLow]; !ok || low >= onset {
			t.Errorf("%s, %s: RetryBudgetLow comes at %v (%v), and goodput falls at %v", l.Name, how, low, ok, onset)
		}
	}
}

// isRetryDriven finds that with one attempt each, three tenths of what is asked are
// answered all the time, and with all attempts nothing in the end.
func (l *armLog) isRetryDriven(t *testing.T) {
	t.Helper()
	single := *l.Arm
	single.Layers = slices.Clone(single.Layers)
	for i := range single.Layers {
		single.Layers[i].Attempts = 1
	}
	without, err := lab.Run(t.Context(), &single, lab.Output{})
	if err != nil {
		t.Fatal(err)
	}
	seconds := int(l.Lasts / time.Second)
	for s := int(trouble / time.Second); s < seconds; s++ {
		if x := without.Routes[0].Seconds[s]; 10*x.Useful < 3*x.Asked {
			t.Errorf("%s: without retries %d of %d are answered in second %d", l.Name, x.Useful, x.Asked, s)
		}
		if x := l.truth.Routes[0].Seconds[s]; s >= seconds-3 && x.Useful > 0 {
			t.Errorf("%s: %d of %d are answered in second %d", l.Name, x.Useful, x.Asked, s)
		}
	}
}

// isFast finds that it takes four seconds from the first call that times out to all.
func (l *armLog) isFast(t *testing.T) {
	t.Helper()
	first, last, at := time.Duration(0), time.Duration(0), 0
	for i, end := range l.lines {
		switch gone := bytes.Contains(l.text[at:end], []byte(`"client_gone":true`)); {
		case gone && first == 0:
			first = l.ends[i]
		case !gone && l.ends[i] < l.Lasts:
			last = l.ends[i]
		}
		at = end
	}
	if took := last - first; took < 3500*time.Millisecond || took > 4500*time.Millisecond || first < trouble {
		t.Errorf("%s: the first call times out at %v, and the last one that does not ends at %v", l.Name, first, last)
	}
}
