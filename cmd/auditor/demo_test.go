package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/targetside/auditor/keys"
)

// stormyDemo storms nearly at once, and its people are impatient.
var stormyDemo = demoShape{
	questionsPerSecond: 24, pricesPerSecond: 16, deadline: 2000,
	firstStorm: 500, stormEvery: 60_000, stormLasts: 30_000,
}

// What the API says about seconds that are final is what the generator knows, count
// for count, and nothing is left behind.
func TestDemoTellsTheTruth(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var out, faults bytes.Buffer
	p := &program{stdout: &out, stderr: &faults, now: time.Now, getenv: os.LookupEnv}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := demoOptions{listen: taken.Addr().String(), seed: 7, shape: stormyDemo, temp: t.TempDir(), every: time.Second}
	d, err := newDemo(ctx, p, o)
	if err != nil {
		t.Fatal(err)
	}
	addresses := append(d.broker.cluster.ListenAddrs(), d.daemon.listener.Addr().String())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()

	// A line of its own, about the whole from its beginning.
	whole := newDemoWatch(io.Discard, d.url(), d.traffic)
	from, to := whole.until, int64(0)
	var says map[string]demoCounts
	until(t, "eight seconds are final", func() bool {
		if says, to, err = whole.final(ctx, time.Now().Unix()+1); err != nil {
			t.Log(err) // it does not listen yet
		}
		return to >= from+8
	})
	if late := time.Now().Unix() - to; late > 15 {
		t.Errorf("what is final ends %d s ago", late)
	}
	anyStep(t, whole)
	truth := map[string]demoCounts{}
	for _, dep := range demoDependencies {
		truth[dep.name] = d.traffic.truth.sum(dep.name, from, to)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	for name, want := range truth {
		got := says[name]
		got.Questions = want.Questions
		if got != want {
			t.Errorf("%s: the auditor says\n%+v\nand it was\n%+v", name, got, want)
		}
	}
	seats, prices := truth["seats"], truth["prices"]
	if seats.Arrivals < 3*seats.Questions {
		t.Errorf("that was no storm: %+v", seats)
	}
	if prices.Arrivals > 2*prices.Questions {
		t.Errorf("the healthy dependency is not: %+v", prices)
	}
	for i, n := range seats.all() {
		if *n == 0 {
			t.Errorf("nothing was compared: count %d of the seats is 0", i)
		}
	}
	text := out.String()
	for _, want := range []string{taken.Addr().String() + " is taken", "/api/v1/summary", " = ", "agree, count for count"} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if faults.Len() > 0 {
		t.Errorf("on standard error: %s", &faults)
	}

	left, err := os.ReadDir(o.temp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	for _, address := range addresses {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			t.Errorf("%s still listens", address)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// anyStep wants the same of a range whatever its step is: rows of minutes and hours
// are made when these are over, and what is newer is counted all the same.
func anyStep(t *testing.T, w *demoWatch) {
	t.Helper()
	from := time.Now().Truncate(time.Hour).Add(-time.Hour)
	ask := func(step string) (total map[string]any, complete, first string) {
		var a struct {
			CompleteUntil string `json:"complete_until"`
			Total         map[string]any
			Series        []struct{ Points []struct{ At string } }
		}
		if err := w.get(t.Context(), "/api/v1/series?"+url.Values{
			"dependency": {"seats"}, "measure": {"arrivals,originals,questions,amplification,amplification_low,amplification_high,hops.above"}, "step": {step}, "limit": {"1"},
			"from": {from.UTC().Format(time.RFC3339)}, "to": {from.Add(3 * time.Hour).UTC().Format(time.RFC3339)},
		}.Encode(), &a); err != nil {
			t.Error(err)
		}
		for _, s := range a.Series {
			first = s.Points[0].At
		}
		return a.Total, a.CompleteUntil, first
	}
	until(t, "answers are of one moment", func() bool {
		fine, before, _ := ask("10s")
		minutes, _, _ := ask("1m")
		hours, after, first := ask("1h")
		if before != after {
			return false
		}
		if fmt.Sprint(fine) != fmt.Sprint(minutes) || fmt.Sprint(fine) != fmt.Sprint(hours) || first == "" {
			t.Errorf("of steps of 10 s, 1 min and 1 h the answers are\n%v\n%v\n%v", fine, minutes, hours)
		}
		return true
	})
}

// A line on which the auditor and the callers differ says so, and fails the demo.
func TestDemoShowsADifference(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"state": "ready", "complete_until": "2026-11-30T12:00:03Z", "total": {"arrivals": 1, "originals": 1}}`)
	}))
	defer api.Close()
	for _, really := range []int{1, 2} {
		traffic := &demoTraffic{begun: begun, truth: newDemoTruth()}
		for i := range really {
			for _, dep := range demoDependencies {
				q := &demoQuestion{dep: dep, peer: demoPeers[0]}
				traffic.truth.book(begun.Unix()+2, &demoFate{question: q, first: i == 0, demoArrival: demoArrival{status: 404}})
			}
		}
		var out bytes.Buffer
		w := newDemoWatch(&out, api.URL, traffic)
		if err := w.line(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := w.conclude()
		if differs := strings.Contains(out.String(), "1 ≠ 2") && strings.Contains(out.String(), "DIFFERS"); differs != (really == 2) || differs != (err != nil) {
			t.Errorf("of %d arrivals one was found: %v\n%s", really, err, &out)
		}
	}
}

// played is the traffic of a seed, as it would be logged, without stamps and keys.
func played(t *testing.T, seed uint64, step time.Duration) string {
	t.Helper()
	minter := keys.Minter{Originator: "web", KID: "a", Secret: bytes.Repeat([]byte("s"), 32)}
	begun := time.Date(2026, 11, 30, 12, 0, 0, int(step), time.UTC)
	traffic := newDemoTraffic(stormyDemo, seed, begun, minter, minter)
	var out strings.Builder
	for at := step; at <= 20*time.Second; at += step {
		lines, err := traffic.until(begun.Truncate(time.Millisecond).Add(at))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			_, rest, _ := bytes.Cut(line, []byte(`"duration_ms"`))
			if key := bytes.Index(rest, []byte(`"question_key":"`)); key >= 0 {
				rest = append(rest[:key:key], rest[key+bytes.IndexByte(rest[key:], ','):]...)
			}
			fmt.Fprintf(&out, "%s\n", rest)
		}
	}
	return out.String()
}

// The same seed is the same traffic, however fast it is played; another is another.
func TestDemoIsPlayedBySeed(t *testing.T) {
	t.Parallel()
	one := played(t, 1, 100*time.Millisecond)
	if lines := strings.Count(one, "\n"); lines < 1000 {
		t.Fatalf("%d records", lines)
	}
	if played(t, 1, 4*time.Second) != one {
		t.Error("played at another speed, the seed is another traffic")
	}
	if played(t, 2, 100*time.Millisecond) == one {
		t.Error("the seed changes nothing")
	}
}

// At most three layers of three attempts multiply, and some questions do take all.
func TestDemoMultipliesUpTo27(t *testing.T) {
	t.Parallel()
	minter := keys.Minter{Originator: "web", KID: "a", Secret: bytes.Repeat([]byte("s"), 32)}
	traffic := newDemoTraffic(ordinaryDemo, 1, time.Now(), minter, minter)
	lines, err := traffic.until(time.Now().Add(80 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	most, of := 0, map[string]int{}
	for _, line := range lines {
		_, key, ok := bytes.Cut(line, []byte(`"question_key":"`))
		if !ok || !bytes.Contains(line, []byte(`"dependency":"seats"`)) {
			continue
		}
		key, _, _ = bytes.Cut(key, []byte(`"`))
		of[string(key)]++
		most = max(most, of[string(key)])
	}
	if most != 27 {
		t.Errorf("the worst question takes %d arrivals", most)
	}
}
