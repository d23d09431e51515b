package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestChanges(t *testing.T) {
	const base = `
sources:
  - kafka: {brokers: ["a:1"], topics: [x], sasl: {username: u, password: "one"}, tls: {ca_file: ca.pem}}
  - file: {paths: [access.log]}
routes: {templates: ["/a/{id}"]}
api: {tokens: ["${TOKEN}"], listen: "127.0.0.1:1"}
budget: {routes: {"GET /a": {ratio: 0.1}}}
keys: {salt_file: salt}
`
	parse := func(text, token string) *Config {
		t.Helper()
		c, err := Parse("/etc/auditor.yaml", []byte(text), func(string) (string, bool) { return token, true })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, c := range []struct {
		from, to, token string
		want            []string
	}{
		{"", "", "t", nil},
		{"{id}", "{nr}", "t", []string{"routes.templates"}},
		{`"one"`, `"two"`, "t", []string{"sources[0].kafka.sasl.password"}},
		{"", "", "other", []string{"api.tokens[0]"}},
		{"  - file: {paths: [access.log]}\n", "", "t", []string{"sources"}},
		{"paths: [access.log]}", "paths: [access.log]}\n    format: json", "t", []string{"sources[1].format"}},
		{"ratio: 0.1", "ratio: 0.3", "t", []string{"budget.routes"}},
		{"127.0.0.1:1", "127.0.0.1:2", "t", []string{"api.listen"}},
		{"keys:", "responses: {refused: [429, 503]}\nignore: {paths: []}\nkeys:", "t", nil},
	} {
		got := parse(strings.Replace(base, c.from, c.to, 1), c.token).Changes(parse(base, "t"))
		if !slices.Equal(got, c.want) {
			t.Errorf("%q for %q changes %q, want %q", c.to, c.from, got, c.want)
		}
	}
	if got, want := fmt.Sprint(parse(base, "t").Files()), "map[keys.salt_file:/etc/salt sources[0].kafka.tls.ca_file:/etc/ca.pem]"; got != want {
		t.Errorf("files are %s, want %s", got, want)
	}
	if got, want := parse(base, "t").Refuse("api.listen", "takes a %s", "restart").Error(), "/etc/auditor.yaml:6: api.listen: takes a restart"; got != want {
		t.Errorf("refused is %q, want %q", got, want)
	}
}
