package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// loggerIDs are fields in which loggers put an id that they mint for each request or
// connection: as a question's key every arrival would be a question of its own. The
// names are in lower case, with "_" for "-".
var loggerIDs = []struct {
	formats string // how the names of the formats begin that have such fields; "": all
	names   []string
}{
	{"", []string{"arrival_id", "request_id", "req_id", "unique_id", "log_id", "requestcount", "connection_id", "tid"}},
	{"nginx-", []string{"connection"}},
	{"alb", []string{"trace_id", "conn_trace_id"}}, // a Root for each request that brings none
	{"caddy-", []string{"uuid", "http.request.uuid"}},
	{"envoy-", []string{"stream_id"}},
	{"istio-", []string{"stream_id"}},
	{"otlp-", []string{"traceid", "spanid"}}, // a span without a parent began its trace itself
}

// mintedBy says that the logger of a format most likely mints a field.
func mintedBy(format, name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	mesh := strings.HasPrefix(format, "envoy-") || strings.HasPrefix(format, "istio-")
	if name == "request_id" && mesh {
		return false // the x-request-id header
	}
	for _, l := range loggerIDs {
		if (format == "auto" || strings.HasPrefix(format, l.formats)) && slices.Contains(l.names, name) {
			return true
		}
	}
	return false
}

// Warnings returns what is accepted and most likely not meant, in the order of
// the keys.
func (c *Config) Warnings() []string {
	var out []string
	warn := func(path, format string, args ...any) {
		text := path + ": " + fmt.Sprintf(format, args...)
		if line := lineOf(c.written, path); line > 0 {
			text = fmt.Sprintf("%s:%d: %s", c.file, line, text)
		}
		out = append(out, text)
	}
	if len(c.Sources) == 0 {
		warn("sources", "none: the daemon has nothing to read, a replay needs files as arguments")
	}
	for i := range c.Sources {
		s, at := &c.Sources[i], index("sources", i)
		if s.Kafka != nil && s.Kafka.SASL != nil && s.Kafka.SASL.Mechanism == "plain" && s.Kafka.TLS == nil {
			warn(at+".kafka.sasl", "plain without tls sends the password in the clear")
		}
		if s.HTTP != nil && !loopback(s.HTTP.Listen) && s.HTTP.Insecure {
			warn(at+".http.insecure", "whoever reaches %s can add arrivals", clip(s.HTTP.Listen))
		}
		if s.Syslog != nil && !loopback(s.Syslog.Listen) && s.Syslog.Insecure {
			warn(at+".syslog.insecure", "whoever reaches %s can add arrivals", clip(s.Syslog.Listen))
		}
		if s.Syslog != nil && s.Syslog.Protocol == "udp" {
			warn(at+".syslog.protocol", "udp loses records under load, most where a storm makes them many, and nobody counts those lost on the way: send by tcp where the logger can")
		}
		if s.ALS != nil && !loopback(s.ALS.Listen) && s.ALS.Insecure {
			warn(at+".als.insecure", "whoever reaches %s can add arrivals", clip(s.ALS.Listen))
		}
	}
	if n := len(c.Routes.Templates); n > c.Routes.Max {
		warn("routes.max", "%d templates for %d routes: the rest would be counted as other", n, c.Routes.Max)
	}
	if c.Time.Lateness < 10*time.Second {
		warn("time.lateness", "%s: records that a shipper delays longer are late and unattributable; 10s is the least that is safe", formatDuration(c.Time.Lateness))
	}
	// A request that takes long is counted so late that only this much is left of
	// the lateness for its record to come.
	if left := min(10*time.Second, c.Time.Lateness/2); c.Time.MaxFuture >= left {
		warn("time.max_future", "%s: one clock that is fast by as much makes others' records late, as those of long requests have %s to come; 5s is safe with a lateness of 20s or more",
			formatDuration(c.Time.MaxFuture), formatDuration(left))
	}
	c.warnKeys(warn)
	c.warnBudget(warn)
	if c.Store.ClickHouse != nil && c.Keys.SaltFile == "" {
		warn("keys.salt_file", "none with a shared store: each instance would hash the same key differently")
	}
	c.warnAlerts(warn)
	if !loopback(c.API.Listen) && c.API.Insecure {
		warn("api.insecure", "whoever reaches %s reads every figure", clip(c.API.Listen))
	}
	return out
}

// promptly is how soon after its end a record has to come so that a budget's alert
// leads.
const promptly = time.Second

// warnAlerts says what keeps alerts from being in time, or true.
func (c *Config) warnAlerts(warn func(path, format string, args ...any)) {
	for i := range c.Sources {
		if s := &c.Sources[i]; s.Flush > promptly {
			warn(index("sources", i)+".flush", "records come up to %s after they were written, and so does every alert: a retry storm may be over by then; have the logger flush each second",
				formatDuration(s.Flush))
		}
	}
	if len(c.Alerts.Alertmanagers)+len(c.Alerts.Webhooks) == 0 {
		return
	}
	for i := range c.Alerts.Webhooks {
		if w := &c.Alerts.Webhooks[i]; w.Secret == (Secret{}) && w.SecretFile == "" {
			warn(index("alerts.webhooks", i), "no secret: what it gets is not signed, and its receiver cannot tell who sent it")
		}
	}
	for i := range c.Sources {
		k := c.Sources[i].Kafka
		if k == nil || !k.Divided() || c.Store.ClickHouse != nil { // where they tell each other what they count
			continue
		}
		at, word := index("sources", i)+".kafka.keyed", "keyed"
		if k.Exchange != nil {
			at, word = index("sources", i)+".kafka.exchange", "exchanged"
		}
		if b := &c.Budget; b.Model == "rate" || b.Model == "tokens" || b.FloorPerSecond > 0 {
			warn(at, "the topic is %s: each of several instances sees its share, and compares it with the whole of what budget allows in numbers: it reads low; with store.clickhouse they judge the sum, and with the model ratio and no floor a share reads like the whole", word)
		}
	}
}

func (c *Config) warnKeys(warn func(path, format string, args ...any)) {
	accepts := func(scheme string) bool { return slices.Contains(c.Keys.Accept, Accept{Scheme: scheme}) }
	for i, a := range c.Keys.Accept {
		if a.Scheme == "qk1" || a.Scheme == "qk2" {
			continue // a logger's id never passes for a signed key
		}
		if name := c.loggersID(a); name != "" {
			warn(index("keys.accept", i), "field %s is most likely minted by the logger for each request (nginx $request_id, HAProxy %%ID, Envoy %%STREAM_ID%%, a trace that was begun there): every retry would be a new question", clip(name))
		}
	}
	if (accepts("qk1") || accepts("qk2")) && c.Keys.Originators == "" {
		warn("keys.originators", "none while qk1 or qk2 is accepted: every signed key is of an unknown originator")
	}
	if c.Keys.Lifetime < c.Keys.Horizon {
		warn("keys.lifetime", "%s is below the horizon of %s: keys expire while their question is live", formatDuration(c.Keys.Lifetime), formatDuration(c.Keys.Horizon))
	}
	if n := c.Keys.VerifyPerSecond; accepts("qk2") && n > 10_000 {
		warn("keys.verify_per_second", "%d signatures a second of 70 µs keep %.1f cores busy", n, float64(n)*70e-6)
	}
	if c.Keys.Raw {
		warn("keys.raw", "keys are stored as they are: whoever reads the store can trace them")
	}
}

// loggersID is the field of a log in which a claimed key would be the logger's own id;
// "": in none.
func (c *Config) loggersID(a Accept) string {
	field := a.Field
	if field == "" {
		field = strings.ReplaceAll(a.Scheme, "-", "_")
	}
	if len(c.Sources) == 0 && a.Field != "" && mintedBy("auto", field) {
		return field
	}
	for i := range c.Sources {
		s := &c.Sources[i]
		name := s.Fields[field]
		if name == "" {
			name = a.Field
		}
		if mintedBy(s.Format, name) {
			return name
		}
	}
	return ""
}
