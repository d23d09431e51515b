package alerts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Evaluator keeps the state of every alert. It may be used by one goroutine at a time.
type Evaluator struct {
	episodes map[string]*episode
	now      time.Time // of the latest Step
	over     []Alert   // told, and found to be stale when they were restored: to be resolved
	// What was last given to be kept, when, and that it is to be kept anew all the same.
	standing string
	saved    time.Time
	unsaved  bool
}

// NewEvaluator returns an evaluator that knows of no alert.
func NewEvaluator() *Evaluator { return &Evaluator{episodes: map[string]*episode{}} }

// Step looks at what is known and returns what somebody is to be told: alerts that have
// come to be Firing or Resolved, what is worse first.
func (e *Evaluator) Step(in *Input) (changed []Alert) {
	if in.Standby {
		clear(e.episodes)
		e.over = nil
		return nil
	}
	e.now = in.Now
	ended := Resolved
	if in.Share {
		ended = ""
	}
	if !in.Share { // else others may know that it fires on
		changed = append(changed, e.over...)
	}
	e.over = nil
	var over []*episode
	step := func(key string, v verdict, at time.Time, seen bool) {
		x := e.episodes[key]
		if seen {
			x.seen = in.Now
		}
		was := x.State
		if !x.step(v, at, in.Now, ended) {
			delete(e.episodes, key)
		} else if was == Firing && x.State == Resolved {
			over = append(over, x)
		}
	}
	held, looked := in.held(), map[string]bool{}
	for _, o := range observe(in) {
		key := keyOf(o.name, o.labels)
		looked[key] = true
		x := e.episodes[key]
		if x == nil {
			if o.verdict != yes {
				continue
			}
			x = &episode{Alert: Alert{Name: o.name, Labels: o.labels}, timing: timings[o.name]}
			x.begin(o.at, in.Now)
			e.episodes[key] = x
		}
		x.say(&o)
		step(key, bounded(o.verdict, held && o.labels["dependency"] != ""), o.at, true)
	}
	// Of a dependency without traffic, and of what is not configured any more, there
	// was nothing to look at.
	for _, key := range slices.Sorted(maps.Keys(e.episodes)) {
		if !looked[key] {
			step(key, bounded(no, held || in.Warming || in.Unknown), in.Now, !in.Unknown)
		}
	}
	e.inhibit()
	for key, x := range e.episodes {
		switch {
		case x.State == Firing && !x.Told && !x.Inhibited && x.holds: // what does not hold any more is no news
			x.Told = true
			changed = append(changed, x.Alert)
		case x.State == Resolved && !x.Told:
			delete(e.episodes, key) // nobody heard of it
		}
	}
	for _, x := range over {
		if x.Told {
			changed = append(changed, x.Alert)
		}
	}
	slices.SortStableFunc(changed, compare)
	return changed
}

// inhibit finds what says nothing more beside what else fires.
func (e *Evaluator) inhibit() {
	inhibited := map[string]bool{}
	for _, x := range e.episodes {
		if x.State == Firing {
			for _, key := range x.inhibits() {
				inhibited[key] = true
			}
		}
	}
	for key, x := range e.episodes {
		x.Inhibited = inhibited[key] && x.State != Resolved
	}
}

// say takes over what is told. What an alert was last told of stays when it does not
// show any more.
func (e *episode) say(o *observation) {
	if o.verdict == yes || e.Summary == "" {
		e.Value, e.Summary, e.Description = o.value, o.summary, o.description
	}
}

// Alerts are all that are pending, firing or were resolved lately, in order of name
// and labels, what is worse first.
func (e *Evaluator) Alerts() []Alert {
	out := make([]Alert, 0, len(e.episodes))
	for _, x := range e.episodes {
		out = append(out, x.Alert)
	}
	slices.SortFunc(out, compare)
	return out
}

func compare(a, b Alert) int {
	return cmp.Or(cmp.Compare(a.Labels["severity"], b.Labels["severity"]), cmp.Compare(slices.Index(Names, a.Name), slices.Index(Names, b.Name)), cmp.Compare(a.key(), b.key()))
}

// saved is what of an alert outlives a restart.
type saved struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	State       State             `json:"state"`
	Told        bool              `json:"told"`
	Summary     string            `json:"summary"`
	Description string            `json:"description"`
	Since       time.Time         `json:"since"`
	Fired       time.Time         `json:"fired"`
	Ended       time.Time         `json:"ended,omitzero"`
	// Seen is when it was last known to stand as it does, by the wall clock.
	Seen time.Time `json:"seen"`
}

// kept is the whole of it.
type kept struct {
	Version int     `json:"version"`
	Alerts  []saved `json:"alerts"`
}

const keptVersion = 2

const (
	// keepEvery is how often what fires is kept anew while nothing changes, so that it
	// shows how old it is.
	keepEvery = 30 * time.Second
	// staleAfter is when what fired says nothing any more of what does: an Alertmanager
	// has let it end by itself, and a restart or a takeover has long been over.
	staleAfter = tellFor + 2*time.Minute
)

// State is what outlives a restart: alerts that fire or were resolved lately.
func (e *Evaluator) State() []byte {
	k := kept{Version: keptVersion, Alerts: []saved{}}
	for _, a := range e.Alerts() {
		if a.State != Pending {
			k.Alerts = append(k.Alerts, saved{a.Name, a.Labels, a.State, a.Told, a.Summary, a.Description, a.Since, a.Fired, a.Ended, e.episodes[a.key()].seen})
		}
	}
	text, err := json.Marshal(k)
	if err != nil {
		panic(err) // of texts and times alone
	}
	return text
}

// Unsaved returns the State if it is another one than when it was last asked for, in
// more than words, or if something of it fires and it was asked for keepEvery ago.
func (e *Evaluator) Unsaved() ([]byte, bool) {
	var b strings.Builder
	fires := false
	for _, a := range e.Alerts() {
		if a.State != Pending {
			fmt.Fprintln(&b, a.key(), a.State, a.Told)
			fires = fires || a.State == Firing
		}
	}
	if b.String() == e.standing && !e.unsaved && !(fires && e.now.Sub(e.saved) >= keepEvery) {
		return nil, false
	}
	e.standing, e.saved, e.unsaved = b.String(), e.now, false
	return e.State(), true
}

// Restore takes over what an earlier evaluator's State was. What this one has looked
// at itself stays. What fired, and was last seen staleAfter before now, is over: if it
// was told, the next Step says that it is resolved, as of when it was seen. Of a state
// that it cannot read it takes nothing.
func (e *Evaluator) Restore(state []byte, now time.Time) error {
	var k kept
	if err := json.Unmarshal(state, &k); err != nil {
		return fmt.Errorf("the state of alerts: %w", err)
	}
	if k.Version != keptVersion {
		return fmt.Errorf("the state of alerts: version %d is not known, only %d", k.Version, keptVersion)
	}
	for i := range k.Alerts {
		s := &k.Alerts[i]
		t, known := timings[s.Name]
		if !known || s.State != Firing && s.State != Resolved {
			continue
		}
		a := Alert{Name: s.Name, Labels: s.Labels, State: s.State, Told: s.Told, Value: math.NaN(), Summary: s.Summary, Description: s.Description, Since: s.Since, Fired: s.Fired, Ended: s.Ended}
		key := a.key()
		if x := e.episodes[key]; x != nil && x.State != Pending {
			continue
		}
		if a.State == Firing && now.Sub(s.Seen) >= staleAfter {
			if a.Told {
				a.State, a.Ended = Resolved, s.Seen
				e.over = append(e.over, a)
			}
			continue
		}
		e.episodes[key] = &episode{Alert: a, timing: t, seen: s.Seen}
	}
	e.unsaved = true
	return nil
}
