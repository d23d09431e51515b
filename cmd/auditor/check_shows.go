package main

import (
	"slices"

	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
)

// never warns of a source that can yield no key or no departure, however its log is
// configured, and of one that shows few departures unless it logs more. A field of the log that the configuration names is believed.
func (c *checker) never(s *config.Source, at string) {
	v, ok := accesslog.Shows(s.Format)
	if !ok {
		return
	}
	if v.Key.Sight == accesslog.SightNever && !c.namesKey(s) {
		c.warn("%s.format: no record of %s can have a key, so every arrival would be unattributable: %s", at, s.Format, v.Key.How)
	}
	if v.Stamp.Sight == accesslog.SightNever && s.Fields["time"] == "" {
		c.coarse(at+".format", s.Format, v.Stamp)
	}
	switch {
	case s.Fields["client_gone"] != "", s.Fields["departure"] != "", s.Fields["request_completion"] != "":
	case v.Departure.Sight == accesslog.SightNever:
		c.warn("%s.format: no record of %s can show that the caller had left: %s", at, s.Format, v.Departure.How)
	case slices.Contains(fewDepartures, s.Format):
		c.warn("%s.format: the default line of %s shows a departure only in part, so an ordinary one proves nothing: %s", at, s.Format, v.Departure.How)
	}
}

// noTimes is what a log without durations does to a budget of times.
const noTimes = ", so nothing of a budget of model concurrency can be read: what is in flight is not known"

// timed says that a budget is spent in time in system.
func (c *checker) timed() bool {
	own, routes := c.budgets()
	for _, m := range routes {
		if m.Timed() {
			return true
		}
	}
	return own.Timed()
}

// coarse remarks that the stamps of a source are whole seconds.
func (c *checker) coarse(at, what string, v accesslog.View) {
	c.remark("%s: the stamps of %s are whole seconds: which of a question's arrivals came first within one, what a repeat followed and who came back too early is known no better than that%s", at, what, howTo(v))
}

// fewDepartures are the formats whose records, as they come, show so few departures
// that it is to be warned of.
var fewDepartures = []string{"nginx-combined", "ingress-nginx", "haproxy", "alb", "traefik-json", "traefik-clf"}

// namesKey says that the configuration names a field of the log for a key that is
// accepted.
func (c *checker) namesKey(s *config.Source) bool {
	return slices.ContainsFunc(c.Keys.Accept, func(a config.Accept) bool {
		return a.Field != "" || s.Fields[keys.Accept{Scheme: a.Scheme}.FieldName()] != ""
	})
}

// howTo says what to log to make something show, with a blank before it.
func howTo(v accesslog.View) string {
	if v.How == "" || v.Sight == accesslog.SightAlways {
		return ""
	}
	return " (" + v.How + ")"
}

// loggedTries says what to log to make the tries of a proxy show.
func loggedTries(format string) string {
	switch format {
	case "nginx-json", "nginx-combined", "logfmt", "pattern":
		return "log nginx's $upstream_addr, $upstream_status and $upstream_response_time"
	case "envoy-json", "envoy-text", "istio-json", "istio-text", "otlp-json", "otlp-proto":
		return "log Envoy's %UPSTREAM_REQUEST_ATTEMPT_COUNT% as upstream_request_attempt_count, and %UPSTREAM_HOST%"
	}
	return "the format has no place for them: read the log of what stands behind"
}
