package main

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/targetside/auditor/lab"
)

// rigShares are what is compared: they do not depend on how fast the machine is.
type rigShares struct{ dead, perQuestion float64 }

func (s rigShares) String() string {
	return fmt.Sprintf("%.1f %% for nobody and %.2f arrivals per question", 100*s.dead, s.perQuestion)
}

// modelled plays the same in the model, whose service is such that it has the ceiling
// that was measured.
func modelled(t *testing.T, ceiling, rate float64, attempts int) rigShares {
	t.Helper()
	f, err := lab.Parse("rig.yaml", fmt.Appendf(nil, `
name: rig
lasts: %v
drain: 2s
network: 100us
clients: {callers: {route: things, rate: %f}}
layers: {client: {attempts: %d, timeout: %v}}
targets: {store: {slots: %d, queue: %d, service: %dns}}
routes: {things: {path: /things/, through: [client], target: store}}
`, rigLasts, rate, attempts, rigTimeout, rigSlots, rigQueue, int(rigSlots/ceiling*1e9)))
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Arm("")
	if err != nil {
		t.Fatal(err)
	}
	truth, err := lab.Run(t.Context(), &a, lab.Output{})
	if err != nil {
		t.Fatal(err)
	}
	return rigShares{float64(truth.Total.Dead()) / float64(truth.Total.Responses.Answers), truth.PerQuestion()}
}

// watchedRig is a rig whose log a daemon follows.
type watchedRig struct {
	*rig
	t      *testing.T
	daemon *running
	later  int
}

func newWatchedRig(t *testing.T) *watchedRig {
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	g := newRig(t, log)
	return &watchedRig{rig: g, t: t, daemon: startDaemon(t, writeIn(t, filepath.Join(dir, "auditor.yaml"), fmt.Sprintf(`dependency: store
sources: [{file: {paths: [%q]}, format: json}]
keys: {accept: [{field: question_key}], horizon: 30s}
time: {lateness: 5s}
store: {sqlite: rows.db}
api: {listen: "127.0.0.1:0"}
`, log)))}
}

// counted waits until the daemon has nothing more to learn of a stretch, and wants every
// count of its API to be the server's own, however busy the machine was.
func (g *watchedRig) counted(what string, s *rigStretch) rigShares {
	g.t.Helper()
	ask := "/api/v1/series?" + url.Values{
		"measure": {"arrivals,attributable,originals,questions,load_factor,amplification,responses.total,responses.answers,responses.refused,responses.disconnected,responses.undelivered_answer,responses.expired,responses.dead_share"},
		"from":    {s.from.UTC().Format(time.RFC3339)}, "to": {s.to.UTC().Format(time.RFC3339)}, "step": {"1s"},
	}.Encode()
	var total any
	until(g.t, "the daemon has all of "+what, func() bool {
		g.later++ // what comes later makes that final
		g.attempt(fmt.Sprint("later-", g.later), 0)
		answer := g.daemon.get(ask)
		complete, _ := time.Parse(time.RFC3339, fmt.Sprint(answer["complete_until"]))
		total = answer["total"]
		return !complete.Before(s.to)
	})
	answers := s.arrived - s.refused
	for name, want := range map[string]int{
		"arrivals": s.arrived, "attributable": s.arrived, "originals": len(s.questions), "questions": len(s.questions),
		"responses.total": s.arrived, "responses.answers": answers, "responses.refused": s.refused,
		"responses.disconnected": s.gone, "responses.undelivered_answer": s.gone, "responses.expired": 0,
	} {
		if got := dig(total, name); got != float64(want) {
			g.t.Errorf("%s: the daemon says that %s is %v, and the server counted %d", what, name, got, want)
		}
	}
	dead, _ := dig(total, "responses.dead_share").(float64)
	per, _ := dig(total, "amplification").(float64)
	if load, _ := dig(total, "load_factor").(float64); load != per || per == 0 {
		g.t.Errorf("%s: the daemon says %v of a whole stretch", what, total)
	}
	return rigShares{dead, per}
}

// hindered says why a stretch shows nothing of the model: the machine was too busy to
// ask in time, to carry what was asked, or to serve at the ceiling that was measured, in
// a part of it, so that the model itself would say something else by a twentieth. Empty
// if it was not. Nothing of it is the daemon's.
func (s *rigStretch) hindered(t *testing.T, rate float64, attempts int, model rigShares) string {
	t.Helper()
	if float64(s.late) > 0.02*float64(s.asked) {
		return fmt.Sprintf("%d questions of %d were asked more than %v late", s.late, s.asked, rigLate)
	}
	if float64(s.arrived) < 0.98*float64(s.sent) { // their callers left before they were connected
		return fmt.Sprintf("%d requests arrived of %d", s.arrived, s.sent)
	}
	for i, w := range s.slots {
		if w.served == 0 {
			return fmt.Sprintf("nothing that came in part %d of %d was served", i+1, rigParts)
		}
		if other := modelled(t, w.ceiling(), rate, attempts); !near(other, model, 0.05) {
			return fmt.Sprintf("the ceiling was %.0f/s in part %d of %d, where the model says %v, and not %v", w.ceiling(), i+1, rigParts, other, model)
		}
	}
	return ""
}

// rigAgain is how often a stretch is tried again: with all of them the rig lasts about
// five minutes.
const rigAgain = 12

// TestRig holds the model against real sockets: first the rig's own ceiling c is
// measured, then 0.8 c, 1.2 c and 1.5 c are offered, and a daemon follows the server's
// log meanwhile. Every count of its API is the server's own, and the shares are within a
// tenth of the model's. A stretch in which the machine could not offer what it meant is
// no measurement: that is said, and the ceiling and the stretch are measured again,
// rigAgain times in all. A share that differs in a stretch that is one is a failure at
// once. AUDITOR_RIG runs it, for it wants the machine for itself: make test-rig.
func TestRig(t *testing.T) {
	if os.Getenv("AUDITOR_RIG") == "" {
		t.Skip("AUDITOR_RIG is not set: see make test-rig")
	}
	g := newWatchedRig(t)
	type measured struct {
		what    string
		stretch *rigStretch
		model   *rigShares // nil: it is only counted
	}
	var all []measured
	again := 0
	ceiling := func() float64 {
		s := g.during(t, g.saturate)
		all = append(all, measured{"the ceiling", s, nil})
		c := s.work().ceiling()
		t.Logf("ceiling %.0f/s, where slots and service alone make %.0f/s", c, rigSlots/rigService.Seconds())
		return c
	}
	c := ceiling()
	for _, arm := range []struct {
		load     float64
		attempts int
	}{{0.8, 3}, {1.2, 1}, {1.2, 3}, {1.5, 3}} {
		what := fmt.Sprintf("%.1f c, %d attempts", arm.load, arm.attempts)
		for {
			rate := arm.load * c
			s := g.during(t, func(s *rigStretch) { g.offer(s, rate, arm.attempts) })
			if s.arrived > s.sent || len(s.questions) > s.asked {
				t.Fatalf("%s: %d arrivals of %d questions, and %d were sent of %d", what, s.arrived, len(s.questions), s.sent, s.asked)
			}
			model := modelled(t, c, rate, arm.attempts)
			why := s.hindered(t, rate, arm.attempts, model)
			if why == "" {
				all = append(all, measured{what, s, &model})
				t.Logf("%s: measured; %d questions of %d were late, the latest %v, %d requests arrived of %d, the slots could serve %.0f/s", what, s.late, s.asked, s.behind.Round(time.Millisecond), s.arrived, s.sent, s.work().ceiling())
				break
			}
			all = append(all, measured{what, s, nil})
			t.Logf("%s: the machine is too busy: %s", what, why)
			if again++; again > rigAgain {
				t.Errorf("%s: the machine was too busy %d times: stop what else it does, and run this again", what, again)
				break
			}
			c = ceiling()
		}
		if t.Failed() {
			break
		}
	}
	for _, m := range all {
		real := g.counted(m.what, m.stretch)
		if m.model == nil {
			continue
		}
		t.Logf("%s: the daemon says %v, and the model %v", m.what, real, *m.model)
		if !near(real, *m.model, 0.1) {
			t.Errorf("%s: that is not within a tenth", m.what)
		}
	}
}

// near is within that part of the model's shares; of nothing, within two of a hundred.
func near(real, model rigShares, part float64) bool {
	off := func(real, model float64) bool { return math.Abs(real-model) > max(part*model, 0.02) }
	return !off(real.dead, model.dead) && !off(real.perQuestion, model.perQuestion)
}
