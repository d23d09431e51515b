package alerts

import (
	"cmp"
	"slices"
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
	if in.Share { // others may know that it fires on
		ended = ""
	} else {
		changed = append(changed, e.over...)
	}
	e.over = nil
	step := func(key string, v verdict, at time.Time, seen bool) {
		x := e.episodes[key]
		if seen {
			x.seen = in.Now
		}
		was := x.State
		if !x.step(v, at, in.Now, ended) {
			delete(e.episodes, key)
		} else if was == Firing && x.State == Resolved && x.Told {
			changed = append(changed, x.Alert)
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
	for key := range e.episodes {
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
	if c := cmp.Or(cmp.Compare(a.Labels["severity"], b.Labels["severity"]), cmp.Compare(slices.Index(Names, a.Name), slices.Index(Names, b.Name))); c != 0 {
		return c
	}
	return cmp.Compare(a.key(), b.key())
}
