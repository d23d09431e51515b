package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// budgetAlerts is how the names of the alerts begin that are about retry budgets.
const budgetAlerts = "RetryBudget"

// AlertAnswer says whether the auditor raised a budget alert before the budget ran out.
type AlertAnswer struct {
	Answer
	Alert    string     `json:"alert,omitempty"` // the first that fired
	RaisedAt *time.Time `json:"raised_at"`
	RanOutAt *time.Time `json:"ran_out_at"`
}

// Alerts asks an auditor, each second, which budget alerts fire for the dependency.
type Alerts struct {
	url, dependency string
	client          Doer
	seen            alertsSeen
}

// Doer makes requests, with whatever lets them in.
type Doer func(*http.Request) (*http.Response, error)

// alertsSeen is what was heard.
type alertsSeen struct {
	answers   int
	evaluates bool
	before    map[string]bool // fired already at the first answer
	first     string
	at        time.Time
	err       error // of the last question that got no answer
}

// WatchAlerts prepares to ask the auditor at a URL, such as http://127.0.0.1:9464.
func WatchAlerts(url, dependency string, client Doer) *Alerts {
	return &Alerts{url: strings.TrimSuffix(url, "/") + "/api/v1/alerts", dependency: dependency, client: client}
}

// Run asks until ctx ends.
func (a *Alerts) Run(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		if err := a.ask(ctx); ctx.Err() == nil {
			a.seen.err = err
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// alertsAnswer is what is read of /api/v1/alerts.
type alertsAnswer struct {
	Evaluated bool
	Alerts    []struct {
		Alert  string
		State  string
		Labels struct{ Dependency string }
	}
}

func (a *Alerts) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return err
	}
	res, err := a.client(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", res.Status)
	}
	var now alertsAnswer
	if err := json.Unmarshal(body, &now); err != nil {
		return err
	}
	s := &a.seen
	s.answers++
	s.evaluates = s.evaluates || now.Evaluated
	initial := s.before == nil
	if initial {
		s.before = map[string]bool{}
	}
	for _, x := range now.Alerts {
		switch {
		case !strings.HasPrefix(x.Alert, budgetAlerts) || x.State != "firing" || x.Labels.Dependency != a.dependency:
		case initial:
			s.before[x.Alert] = true
		case s.at.IsZero() && !s.before[x.Alert]:
			s.first, s.at = x.Alert, time.Now()
		}
	}
	return nil
}

// Answer compares with what a drill saw, after Run has ended.
func (a *Alerts) Answer(r *Report) AlertAnswer {
	s, ranOut, itself := &a.seen, r.RanOut(), r.byItself(routeOf)
	var out AlertAnswer
	if !s.at.IsZero() {
		at := s.at.UTC()
		out.Alert, out.RaisedAt = s.first, &at
	}
	if !ranOut.IsZero() {
		out.RanOutAt = &ranOut
	}
	lead := ranOut.Sub(s.at).Seconds()
	switch {
	case s.answers == 0:
		out.Answer = unclear("the auditor could not be asked: %v", s.err)
	case !s.evaluates:
		out.Answer = Answer{Kind: Off, Says: "that auditor evaluates no alerts"}
	case itself != "":
		out.Answer = unclear("%s", itself)
	case len(s.before) > 0:
		out.Answer = unclear("budget alerts fired already before the drill")
	case ranOut.IsZero() && s.at.IsZero():
		out.Answer = Answer{Kind: Never, Says: "nothing ran out, and no budget alert was raised"}
	case ranOut.IsZero():
		out.Answer = Answer{Kind: Never, Says: s.first + " was raised, and nothing ran out at the callers: the auditor's budget is smaller than theirs, or theirs has no end"}
	case s.at.IsZero():
		out.Answer = Answer{Kind: NoAlert, Says: "no budget alert was raised in the whole drill"}
	case lead >= 0:
		out.Answer = Answer{Kind: Before, Is: &lead, Says: fmt.Sprintf("%s was raised %.0f s before it ran out", s.first, lead)}
	default:
		lead = -lead
		out.Answer = Answer{Kind: After, Is: &lead, Says: fmt.Sprintf("%s was raised %.0f s after it had run out", s.first, lead)}
	}
	return out
}
