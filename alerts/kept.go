package alerts

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// saved is what of an alert outlives a restart.
type saved struct {
	written
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
			k.Alerts = append(k.Alerts, saved{write(&a), e.episodes[a.key()].seen})
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
	for _, key := range slices.Sorted(maps.Keys(e.episodes)) {
		if x := e.episodes[key]; x.State != Pending {
			fmt.Fprintln(&b, key, x.State, x.Told)
			fires = fires || x.State == Firing
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
		a := s.alert()
		a.Value = math.NaN() // until it is seen again
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
