package lab

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// dependencyFields name the log's field that is the target's name.
var dependencyFields = map[string]string{
	"otlp-json": "service.name", "otlp-proto": "service.name", "envoy-als": "upstream_cluster", "caddy-json": "request.host", "traefik-json": "ServiceName",
	"traefik-clf": "RouterName", "apache": "%v", "iis": "s-sitename", "haproxy": "backend", "alb": "domain_name", "linkerd-json": "host",
}

// patterns are those of the formats that have one.
var patterns = map[string]string{"pattern": linePattern, "apache": apacheFormat, "iis": iisColumns}

const (
	envoyFields = "{dependency: dependency, question_key: question_key, x_request_id: request_id, attempt: x_envoy_attempt_count, attempts_left: attempts_left, retry_after: retry_after, peer: downstream_direct_remote_address}"
	nginxFields = "{dependency: dependency, question_key: key, x_request_id: x_request_id, duration: rt, attempt: attempt, attempts_left: attempts_left, retry_after: retry_after, arrival_id: request_id}"
	otlpFields  = "{attempts_left: http.request.header.attempts-left, peer: client.address}"
)

// logFields are the source's fields, where the names in the log are not enough.
var logFields = map[string]string{
	"nginx-json":     "{dependency: dependency, question_key: http_question_key, x_request_id: http_x_request_id, attempt: http_x_envoy_attempt_count, attempts_left: http_attempts_left, retry_after: sent_http_retry_after, arrival_id: request_id, peer: remote_addr}",
	"nginx-combined": nginxFields,
	"ingress-nginx":  "{dependency: dependency, question_key: key, x_request_id: x_request_id, attempt: attempt, attempts_left: attempts_left, retry_after: retry_after, arrival_id: request_id}",
	"envoy-json":     envoyFields,
	"istio-json":     envoyFields,
	"envoy-text":     "{x_request_id: request_id}",
	"istio-text":     "{x_request_id: request_id}",
	"otlp-json":      otlpFields,
	"otlp-proto":     otlpFields,
	"envoy-als":      "{x_request_id: request_id, attempts_left: request_headers.attempts-left, peer: downstream_direct_remote_address}",
	"caddy-json":     "{duration_ms: duration, attempts_left: request.headers.Attempts-Left}",
	"traefik-json":   "{attempts_left: request_Attempts-Left}",
	"apache":         "{arrival_id: UNIQUE_ID, question_key: Question-Key, x_request_id: X-Request-Id, attempt: X-Envoy-Attempt-Count, attempts_left: Attempts-Left, retry_after: Retry-After}",
	"iis":            "{question_key: Question-Key, x_request_id: X-Request-Id, attempt: X-Envoy-Attempt-Count, attempts_left: Attempts-Left, retry_after: Retry-After}",
}

// Config is an auditor.yaml for the log of a scenario in a format, beside which
// Originators lies as originators.yaml.
func (s *Scenario) Config(format, log string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# For the log of scenario %s.\n", s.Name)
	name := cmp.Or(dependencyFields[format], "dependency")
	fmt.Fprintf(&b, "dependency: {field: %q}\n", name)
	fmt.Fprintf(&b, "sources:\n  - file: {paths: [%q], follow: false}\n    format: %s\n    attempt_trusted: true\n", log, format)
	if pattern := patterns[format]; pattern != "" {
		fmt.Fprintf(&b, "    pattern: '%s'\n", pattern)
	}
	fields := logFields[format]
	if fields != "" {
		fmt.Fprintf(&b, "    fields: %s\n", fields)
	}
	var templates, peers []string
	for i := range s.Routes {
		if t := fmt.Sprintf("%q", s.Routes[i].template()); !slices.Contains(templates, t) {
			templates = append(templates, t)
		}
	}
	for i := range s.Layers {
		peers = append(peers, fmt.Sprintf("%q: %q", address(i), s.Layers[i].Name))
	}
	accept := "qk1"
	if slices.ContainsFunc(s.Clients, func(c Client) bool { return c.Key == "x-request-id" }) {
		accept += ", x-request-id"
	}
	fmt.Fprintf(&b, "routes: {templates: [%s], max: 500}\n", strings.Join(templates, ", "))
	fmt.Fprintf(&b, "peers: {map: {%s}}\n", strings.Join(peers, ", "))
	fmt.Fprintf(&b, "keys: {accept: [%s], originators: originators.yaml, horizon: %v}\n", accept, s.Horizon())
	return b.Bytes()
}

// Originators is the originators.yaml of a scenario. Its secrets are public.
func (s *Scenario) Originators() []byte {
	var b bytes.Buffer
	b.WriteString("# Who may author questions in the log beside. The secrets are public, and protect nothing.\noriginators:\n")
	done := map[string]bool{}
	for i := range s.Clients {
		c := &s.Clients[i]
		id := c.originator()
		if done[id] {
			continue
		}
		done[id] = true
		deadline := ""
		if c.Deadline > 0 {
			deadline = fmt.Sprintf("deadline: %v, ", c.Deadline)
		}
		fmt.Fprintf(&b, "  - {id: %s, %skeys: [{kid: %s, secret: %q}]}\n", id, deadline, kid, secretOf(id))
	}
	return b.Bytes()
}
