package lab

import (
	"math"
	"slices"
	"strings"
	"time"
)

func (l *Layer) defaults() {
	l.Workers, l.Attempts = Unbounded, 1
	l.Key, l.AttemptBudget = "forward", "drop"
}

func (t *Target) defaults() {
	t.Slots, t.Queue = Unbounded, Unbounded
	t.Logs = "answers"
}

func (c *Client) defaults() { c.Key, c.Spacing = "qk1", "even" }

func (r *Route) defaults() { r.Method, r.Items = "GET", 1000 }

func (b *Budget) defaults() {
	b.Per, b.Window = "target", 10*time.Second
}

// What a layer repeats after; all of them if it does not say.
const (
	onTimeout = "timeout"
	onError   = "error"   // 5xx but 503, and connections that broke
	onRefused = "refused" // 429 and 503
)

// validate reports what is wrong with values that could be read, each by its path,
// and reads when the scenario begins.
func (s *Scenario) validate(fault func(path, format string, args ...any)) {
	choice := func(path, got string, of ...string) {
		if !slices.Contains(of, got) {
			fault(path, "%q is unknown: %s", got, strings.Join(of, ", "))
		}
	}
	share := func(path string, v float64) {
		if v > 1 {
			fault(path, "%v is no share: 0 to 1", v)
		}
	}
	// With less than one of something the model is of something else.
	enough := func(path string, n float64) {
		if n > 0 && n/s.Scale < 1 {
			fault(path, "%v at a scale of %v is less than one: take a smaller scale", n, s.Scale)
		}
	}
	if s.Name == "" {
		fault("name", "is missing")
	} else if !plainName(s.Name) {
		fault("name", "%q: want letters, digits and ._-, at most 64, for folders are named by it", s.Name)
	}
	if s.Lasts <= 0 {
		fault("lasts", "is missing: how long questions are asked")
	} else if s.Horizon() > mostTime {
		fault("lasts", "%v, and %v until all is over, is too long: want %v together at most", s.Lasts, s.Drain, mostTime-time.Minute)
	}
	if s.Scale < 1 {
		fault("scale", "%v is below 1: one in the model stands for that many", s.Scale)
		return
	}
	s.begins = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	if s.Begins != "" {
		t, err := time.Parse(time.RFC3339, s.Begins)
		if err != nil {
			fault("begins", "%q is no moment as RFC 3339 has it: 2026-03-01T10:00:00Z", s.Begins)
		} else if t.Year() < 1980 || t.Year() > 2200 {
			fault("begins", "%q is not in the years from 1980 to 2200, of which a lab can be", s.Begins)
		}
		s.begins = t.UTC().Truncate(time.Second)
	}
	for _, p := range s.Phases {
		if p.To <= p.From || p.To > s.Lasts+s.Drain {
			fault("phases/"+p.Name, "from %v to %v is no part of %v", p.From, p.To, s.Lasts+s.Drain)
		}
		if p.From%time.Second != 0 || p.To%time.Second != 0 {
			fault("phases/"+p.Name, "from %v to %v: whole seconds are wanted", p.From, p.To)
		}
	}
	if len(s.Clients) == 0 {
		fault("clients", "are missing: nobody asks anything")
	}
	for _, c := range s.Clients {
		at := "clients/" + c.Name + "/"
		if i := slices.IndexFunc(s.Routes, func(r Route) bool { return r.Name == c.Route }); i < 0 {
			fault(at+"route", "no route is named %q", c.Route)
		} else if items := s.Routes[i].Items; c.Calls > items {
			fault(at+"calls", "%d of %d items: an item that is asked for twice under one key is a repeat", c.Calls, items)
		}
		choice(at+"key", c.Key, "qk1", "x-request-id", "none")
		choice(at+"spacing", c.Spacing, "even", "random")
		share(at+"refresh/chance", c.Refresh.Chance)
		if (c.Rate > 0) == (c.People > 0) {
			fault(at+"rate", "exactly one of rate and people is wanted")
		}
		enough(at+"people", c.People)
		if c.People > 0 && c.Think < time.Millisecond {
			fault(at+"think", "%v is no time to think: people need 1ms at least", c.Think)
		}
		if c.Rate/s.Scale > 1e7 {
			fault(at+"rate", "%v a second in the model is more than it plays: take a larger scale", c.Rate/s.Scale)
		}
		if !validName(c.originator()) {
			fault(at+"originator", "%q is not 1 to 32 of a-z, 0-9 and -", c.originator())
		}
		for i := range s.Clients {
			if o := &s.Clients[i]; o.originator() == c.originator() && o.Deadline != c.Deadline {
				fault(at+"deadline", "%v, and %s has another, %v: an originator has one", c.Deadline, o.Name, o.Deadline)
			}
		}
		if c.AttemptBudget > 1000 {
			fault(at+"attempt_budget", "%d is more than any request survives", c.AttemptBudget)
		}
	}
	for _, l := range s.Layers {
		at := "layers/" + l.Name + "/"
		enough(at+"workers", float64(l.Workers))
		enough(at+"queue", float64(l.Queue))
		if l.Workers == 0 {
			fault(at+"workers", "0 serve nobody: leave it out if there is no limit")
		}
		share(at+"route_share", l.RouteShare)
		if l.RouteShare > 0 && l.Workers == Unbounded {
			fault(at+"route_share", "a share of unbounded workers is no bound: give workers")
		}
		if l.Attempts < 1 || l.Attempts > 100 {
			fault(at+"attempts", "%d is not 1 to 100", l.Attempts)
		}
		for _, on := range l.RetryOn {
			choice(at+"retry_on", on, onTimeout, onError, onRefused)
		}
		if l.Backoff.Jitter != "" {
			choice(at+"backoff/jitter", l.Backoff.Jitter, "none", "full", "equal")
		}
		if l.Backoff.Factor != 0 && l.Backoff.Factor < 1 {
			fault(at+"backoff/factor", "%v makes waits shorter: 1 or more", l.Backoff.Factor)
		}
		choice(at+"key", l.Key, "forward", "drop", "remint")
		choice(at+"attempt_budget", l.AttemptBudget, "decrement", "forward", "drop")
		enough(at+"memory/calls", l.Memory.Calls)
		if b := l.Budget; b != nil {
			at += "budget/"
			choice(at+"model", b.Model, "ratio", "concurrency", "rate", "tokens")
			choice(at+"per", b.Per, "target", "layer")
			if b.Window <= 0 {
				fault(at+"window", "is no time")
			}
			if b.Model == "tokens" && b.Tokens <= 0 {
				fault(at+"tokens", "is missing")
			}
			share(at+"reserve", b.Reserve)
		}
	}
	for _, t := range s.Targets {
		at := "targets/" + t.Name + "/"
		enough(at+"slots", float64(t.Slots))
		enough(at+"queue", float64(t.Queue))
		if t.Slots == 0 {
			fault(at+"slots", "0 answer nobody: leave it out if there is no limit")
		}
		share(at+"jitter", t.Jitter)
		share(at+"errors", t.Errors)
		share(at+"slow/share", t.Slow.Share)
		choice(at+"logs", t.Logs, "answers", "departures")
		if t.Refusal.RetryAfter%time.Second != 0 {
			fault(at+"refusal/retry_after", "%v is no whole number of seconds, as the header has it", t.Refusal.RetryAfter)
		}
		if t.Refusal.Costs > 0 && t.Slots == Unbounded {
			fault(at+"refusal/costs", "unbounded slots refuse nobody: give slots")
		}
		for _, c := range t.Changes {
			if c.Errors != nil {
				share(at+"changes", *c.Errors)
			}
			if c.Slots != nil {
				enough(at+"changes", float64(*c.Slots))
			}
		}
		enough(at+"memory/calls", t.Memory.Calls)
	}
	if len(s.Routes) > math.MaxInt8 || len(s.Layers) > math.MaxInt8 || len(s.Targets) > math.MaxInt8 {
		fault("routes", "more than %d of a kind", math.MaxInt8)
	}
	for _, r := range s.Routes {
		at := "routes/" + strings.ReplaceAll(r.Name, "/", "∕") + "/"
		choice(at+"method", r.Method, "GET", "POST", "PUT", "PATCH", "DELETE")
		if !strings.HasPrefix(r.Path, "/") || !strings.HasSuffix(r.Path, "/") || strings.ContainsAny(r.Path, "\"\\ {}?") {
			fault(at+"path", "%q is no prefix for items: want one like /seats/", r.Path)
		}
		if r.Items < 1 {
			fault(at+"items", "there must be one to ask for")
		}
		for j, name := range r.Through {
			if !slices.ContainsFunc(s.Layers, func(l Layer) bool { return l.Name == name }) {
				fault(at+"through", "no layer is named %q", name)
			}
			if slices.Contains(r.Through[:j], name) {
				fault(at+"through", "%s comes twice", name)
			}
		}
		if len(r.Through) == 0 || len(r.Through) > 16 {
			fault(at+"through", "1 to 16 layers are wanted: the first of them is the callers' own")
		}
		if !slices.ContainsFunc(s.Targets, func(t Target) bool { return t.Name == r.Target }) {
			fault(at+"target", "no target is named %q", r.Target)
		}
	}
}

func (c *Client) originator() string {
	if c.Originator != "" {
		return c.Originator
	}
	return c.Name
}

// validName is the rule of originators' ids.
func validName(name string) bool {
	return name != "" && len(name) <= 32 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// mostTime is how long a scenario may take, with a minute besides: the auditor's
// longest horizon, in which all that one question does has to lie.
const mostTime = 24 * time.Hour
