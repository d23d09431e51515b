package lab

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Config is an auditor.yaml for the log of a scenario in a format, beside which
// Originators lies as originators.yaml.
func (s *Scenario) Config(format, log string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# For the log of scenario %s.\n", s.Name)
	f := formatNamed(format)
	fmt.Fprintf(&b, "dependency: {field: %q}\n", cmp.Or(f.dependency, "dependency"))
	fmt.Fprintf(&b, "sources:\n  - file: {paths: [%q], follow: false}\n    format: %s\n    attempt_trusted: true\n", log, format)
	if f.pattern != "" {
		fmt.Fprintf(&b, "    pattern: '%s'\n", f.pattern)
	}
	if f.fields != "" {
		fmt.Fprintf(&b, "    fields: {%s}\n", f.fields)
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
