package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

	"github.com/targetside/auditor/lab"
)

// stormy lets the sale begin nearly at once, and be over soon: the storm goes on. Answers
// are there in time, and take too long to be sent: some are cut off.
func stormy(a *lab.Arm) {
	for i := range a.Targets {
		a.Targets[i].Queue = 40
		a.Targets[i].Sending *= 5
		for j := range a.Targets[i].Changes {
			a.Targets[i].Changes[j].At, a.Targets[i].Changes[j].Lasts = 500*time.Millisecond, 3*time.Second
		}
	}
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
	o := demoOptions{listen: taken.Addr().String(), seed: 7, change: stormy, temp: t.TempDir(), every: time.Second}
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
		if says, to, err = whole.final(ctx, d.traffic.truth.known()); err != nil {
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
		truth[dep] = d.traffic.truth.sum(dep, from, to)
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
		// The seats work on when a caller leaves, so nobody leaves before an answer.
		if name := append([]string{"questions"}, demoMeasures...)[i]; *n == 0 && name != "responses.before_response" {
			t.Errorf("nothing was compared: of %s the seats have none", name)
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
		traffic, err := newDemoTraffic(1, begun)
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range demoDependencies {
			traffic.truth.Settled(1, dep, map[int64]*lab.Counts{begun.Unix() + 2: {Arrivals: uint64(really), Originals: 1, Repeats: uint64(really) - 1}})
		}
		traffic.truth.reached(begun.Unix() + 5)
		var out bytes.Buffer
		w := newDemoWatch(&out, api.URL, traffic)
		if err := w.line(t.Context()); err != nil {
			t.Fatal(err)
		}
		err = w.conclude()
		if differs := strings.Contains(out.String(), "1 ≠ 2") && strings.Contains(out.String(), "DIFFERS"); differs != (really == 2) || differs != (err != nil) {
			t.Errorf("of %d arrivals one was found: %v\n%s", really, err, &out)
		}
	}
}

// playedDemo is the traffic of a seed up to a moment, as it would be logged.
func playedDemo(t *testing.T, seed uint64, until time.Duration) (lines [][]byte) {
	t.Helper()
	begun := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	traffic, err := newDemoTraffic(seed, begun)
	if err != nil {
		t.Fatal(err)
	}
	over := errors.New("over")
	before := begun
	err = traffic.play(t.Context(), func(more [][]byte) error {
		for _, line := range more {
			if !json.Valid(line) {
				t.Fatalf("a line is %q", line)
			}
		}
		lines = append(lines, more...)
		return nil
	}, func(_ context.Context, at time.Time) error {
		if at.Before(before) || at.Sub(before) > 2*time.Second {
			t.Errorf("after %v it waits for %v", before, at)
		}
		if before = at; at.Sub(begun) > until {
			return over
		}
		return nil
	})
	if !errors.Is(err, over) {
		t.Fatal(err)
	}
	return lines
}

// The same seed is the same traffic; another is another.
func TestDemoIsPlayedBySeed(t *testing.T) {
	t.Parallel()
	one := bytes.Join(playedDemo(t, 1, 20*time.Second), nil)
	if !bytes.Equal(bytes.Join(playedDemo(t, 1, 20*time.Second), nil), one) {
		t.Error("the same seed is not the same traffic")
	}
	if bytes.Equal(bytes.Join(playedDemo(t, 2, 20*time.Second), nil), one) {
		t.Error("the seed changes nothing")
	}
}

// What the demo shows: 1.03 becomes 27 and stays there when its cause is over; the next
// turn heals itself; the turn after that is the first again, with other keys.
func TestDemoTellsTheStory(t *testing.T) {
	t.Parallel()
	lines := playedDemo(t, 1, 130*time.Second)
	begun := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	arrivals, questions, answered, seen := map[int]int{}, map[int]int{}, map[int]int{}, map[string]int{}
	for _, line := range lines {
		var r struct {
			Time                  time.Time
			Dependency, Departure string
			Peer                  string
			Key                   string `json:"question_key"`
			Status                int
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Dependency != demoSeats || r.Peer != "10.77.0.3" && r.Peer != "10.77.0.4" { // who forwards keys
			continue
		}
		at := int(r.Time.Sub(begun) / time.Second)
		arrivals[at]++
		if seen[r.Key]++; seen[r.Key] == 1 {
			questions[at]++
		}
		if r.Status == 200 && r.Departure == "" {
			answered[at]++
		}
	}
	span := func(of map[int]int, from, to int) (sum int) {
		for at := from; at < to; at++ {
			sum += of[at]
		}
		return sum
	}
	load := func(from, to int) float64 {
		return float64(span(arrivals, from, to)) / float64(span(questions, from, to))
	}
	const turn = 48
	for _, x := range []struct {
		what        string
		from, to    int
		least, most float64 // arrivals per question
		answered    bool
	}{
		{"one in a hundred takes too long", 1, 10, 1.005, 1.06, true},
		{"one in 25", 12, 22, 1.08, 1.25, true},
		{"all do", 24, 31, 26, 28, false},
		{"the seats are well again", 36, 44, 20, 30, false},
		{"the next turn", turn + 1, turn + 10, 1, 1.06, true},
		{"all take too long, with the mechanisms", turn + 24, turn + 31, 1, 1.73, false},
		{"and are well again", turn + 36, turn + 44, 1, 1.06, true},
		{"the first turn again", 2*turn + 24, 2*turn + 31, 26, 28, false},
	} {
		got, ok := load(x.from, x.to), float64(span(answered, x.from, x.to))/float64(span(questions, x.from, x.to))
		if got < x.least || got > x.most || x.answered != (ok > 0.9) || !x.answered && ok > 0.05 {
			t.Errorf("%s: %.3f arrivals per question, %.0f %% answered", x.what, got, 100*ok)
		}
	}
	// Half of a budget of a fifth, in ten seconds, is low: some seconds before anybody is
	// left without an answer.
	low := 10
	for low < 40 && load(low-10, low) < 1.1 {
		low++
	}
	collapse := 0
	for collapse < 40 && answered[collapse]+answered[collapse+1] > 0 {
		collapse++
	}
	if low > collapse-2 || collapse != 22 && collapse != 23 {
		t.Errorf("the budget is low after %d s, and nobody is answered after %d s", low, collapse)
	}
	most := 0
	for _, n := range seen {
		most = max(most, n)
	}
	if most != 27 {
		t.Errorf("the worst question takes %d arrivals", most)
	}
}
