package api

import (
	"net/http"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/alerts"
)

// alertsAnswer is the alerts that are pending, fire or were resolved lately. Evaluated
// is false where nobody evaluates them: an empty list says nothing then. Share says that
// they are of a part of the questions. Past are all that were resolved since PastFrom.
type alertsAnswer struct {
	Meta
	Evaluated bool          `json:"evaluated"`
	Share     bool          `json:"share"`
	Alerts    []alertAnswer `json:"alerts"`
	Past      []alertAnswer `json:"past"`
	PastFrom  instant       `json:"past_from"`
	Sinks     []sinkAnswer  `json:"sinks"`
}

type alertAnswer struct {
	Alert       string            `json:"alert"`
	Labels      map[string]string `json:"labels"`
	State       alerts.State      `json:"state"`
	Inhibited   bool              `json:"inhibited"`
	Told        bool              `json:"told"`
	Value       aggregate.Figure  `json:"value"`
	Summary     string            `json:"summary"`
	Description string            `json:"description"`
	RunbookURL  string            `json:"runbook_url"`
	Since       instant           `json:"since"`
	FiredAt     instant           `json:"fired_at"`
	ResolvedAt  instant           `json:"resolved_at"`
}

// sinkAnswer is what became of notifications to one sink.
type sinkAnswer struct {
	Sink    string  `json:"sink"`
	Taken   uint64  `json:"taken"`
	Failed  uint64  `json:"failed"`
	Dropped uint64  `json:"dropped"`
	Error   *string `json:"error"`
}

// alerts answers with those of the dependency that is asked for, and those that are of
// none.
func (s *Server) alerts(_ *http.Request, snap *Snapshot, p *params) (any, error) {
	name := p.values["dependency"]
	a := alertsAnswer{
		Meta: liveMeta(snap, pickAny(snap, p)), Evaluated: snap.Evaluated, Share: snap.Share,
		Alerts: answerAlerts(snap.Alerts, name), Past: answerAlerts(snap.Past, name), PastFrom: instant(snap.PastFrom), Sinks: []sinkAnswer{},
	}
	for _, n := range snap.Notified {
		x := sinkAnswer{Sink: n.Sink, Taken: n.Taken, Failed: n.Failed, Dropped: n.Dropped}
		if n.Error != "" {
			x.Error = &n.Error
		}
		a.Sinks = append(a.Sinks, x)
	}
	return a, p.err()
}

// answerAlerts are those of a dependency, and those that are of none.
func answerAlerts(all []alerts.Alert, dependency string) []alertAnswer {
	out := []alertAnswer{}
	for i := range all {
		x := &all[i]
		if of := x.Labels["dependency"]; dependency != "" && of != "" && of != alerts.SafeLabel(dependency) {
			continue
		}
		out = append(out, alertAnswer{
			Alert: x.Name, Labels: x.Labels, State: x.State, Inhibited: x.Inhibited, Told: x.Told, Value: number(x.Value),
			Summary: x.Summary, Description: x.Description, RunbookURL: x.Runbook(),
			Since: instant(x.Since), FiredAt: instant(x.Fired), ResolvedAt: instant(x.Ended),
		})
	}
	return out
}

// alertStates exports how many there are of each, and what became of notifications.
func (x *scrape) alertStates(s *Snapshot) {
	if s.Evaluated {
		n := map[[2]string]float64{}
		for i := range s.Alerts {
			n[[2]string{s.Alerts[i].Name, string(s.Alerts[i].State)}]++
		}
		for _, name := range alerts.Names {
			for _, state := range []alerts.State{alerts.Pending, alerts.Firing} {
				x.put(x.alertsOf, n[[2]string{name, string(state)}], name, string(state))
			}
		}
	}
	for _, n := range s.Notified {
		name := x.admit("sink", n.Sink, mostSources)
		x.count(x.notifications, n.Taken, name, "taken")
		x.count(x.notifications, n.Failed, name, "failed")
		x.count(x.notifications, n.Dropped, name, "dropped")
	}
}
