package alerts

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"
)

// alertmanager tells one Alertmanager by its API v2 what fires, again and again: an
// alert that it is not told of ends there by itself, so that nothing fires for ever
// because a daemon has died. A peer that was away hears the whole at the next time.
type alertmanager struct {
	to     string
	client *http.Client
	log    *slog.Logger
	counts *counts
	newest chan []Alert // holds one: what it is to be told next
	fresh  chan struct{}
	length int // of what it was told last
}

const (
	// tellEvery is how often an Alertmanager is told, and tellFor how long that is
	// good for: well below its own resolve_timeout of 5 min, and longer than a daemon
	// takes to be started again.
	tellEvery = 30 * time.Second
	tellFor   = 3 * time.Minute
)

func newAlertmanager(e Endpoint, client *http.Client, log *slog.Logger, c *counts, current []Alert) *alertmanager {
	s := &alertmanager{
		to: strings.TrimRight(e.URL, "/") + "/api/v2/alerts", client: client, log: log, counts: c,
		newest: make(chan []Alert, 1), fresh: make(chan struct{}, 1),
	}
	s.newest <- current
	return s
}

func (s *alertmanager) tell(now, changed []Alert) {
	select {
	case <-s.newest:
	default:
	}
	s.newest <- now
	if len(changed) > 0 || len(now) != s.length { // as after a restart
		s.length = len(now)
		select {
		case s.fresh <- struct{}{}:
		default:
		}
	}
}

func (s *alertmanager) run(ctx context.Context) {
	var current []Alert
	failures := 0
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		case <-s.fresh:
			if failures > 0 { // it hears of it at the next try
				continue
			}
		}
		select {
		case current = <-s.newest:
		default:
		}
		pause := tellEvery
		if len(current) == 0 {
			failures = 0 // nothing is left that it has not heard of
		} else {
			err := post(ctx, s.client, s.to, nil, posted(current, time.Now()))
			if ctx.Err() != nil {
				return
			}
			s.counts.ended(err)
			switch {
			case err == nil && failures > 0:
				s.counts.logger(s.log).Info("an Alertmanager is told again")
				failures = 0
			case err != nil:
				if failures++; failures == 1 {
					s.counts.logger(s.log).Error("an Alertmanager was not told of alerts; it will be, once it can", "error", err)
				}
				pause = max(backoff(failures, tellEvery), min(waits(err), tellEvery))
			}
		}
		next.Reset(pause)
	}
}

// posted is what API v2 takes (api/v2/openapi.yaml of Alertmanager: postableAlerts).
func posted(current []Alert, now time.Time) []byte {
	type one struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		StartsAt    time.Time         `json:"startsAt"`
		EndsAt      time.Time         `json:"endsAt"`
	}
	list := make([]one, 0, len(current))
	for i := range current {
		a := &current[i]
		x := one{Labels: named(a), Annotations: annotations(a), StartsAt: a.Since, EndsAt: now.Add(tellFor)}
		if a.State == Resolved {
			x.EndsAt = a.Ended
		}
		if x.StartsAt.After(now) { // by the clock of another instance, that kept it
			x.StartsAt = now
		}
		if x.EndsAt.Before(x.StartsAt) {
			x.EndsAt = x.StartsAt
		}
		list = append(list, x)
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // of texts and times alone
	}
	return text
}

// named are the labels by which Alertmanagers and webhooks know an alert.
func named(a *Alert) map[string]string {
	labels := map[string]string{"alertname": a.Name}
	maps.Copy(labels, a.Labels)
	return labels
}

func annotations(a *Alert) map[string]string {
	return map[string]string{"summary": a.Summary, "description": a.Description, "runbook_url": a.Runbook()}
}
