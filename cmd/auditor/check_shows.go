package main

import (
	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
)

// never warns of a source that can yield no key or no departure, however its log is
// configured. A field of the log that the configuration names is believed.
func (c *checker) never(s *config.Source, at string) {
	v, ok := accesslog.Shows(s.Format)
	if !ok {
		return
	}
	named := func(fields ...string) bool {
		for _, f := range fields {
			if s.Fields[f] != "" {
				return true
			}
		}
		return false
	}
	key := v.Key.Sight != accesslog.SightNever
	for _, a := range c.Keys.Accept {
		key = key || a.Field != "" || named(keys.Accept{Scheme: a.Scheme}.FieldName())
	}
	if !key {
		c.warn("%s.format: no record of %s can have a key, so every arrival would be unattributable: %s", at, s.Format, v.Key.How)
	}
	departure := named("client_gone", "departure")
	switch {
	case departure:
	case v.Departure.Sight == accesslog.SightNever:
		c.warn("%s.format: no record of %s can show that the caller had left: %s", at, s.Format, v.Departure.How)
	case s.Format == "alb" || s.Format == "traefik-json" || s.Format == "traefik-clf":
		c.warn("%s.format: %s shows a departure by one status only: %s", at, s.Format, v.Departure.How)
	}
}

// howTo says what to log to make something show, with a blank before it.
func howTo(v accesslog.View) string {
	if v.How == "" || v.Sight == accesslog.SightAlways {
		return ""
	}
	return " (" + v.How + ")"
}
