package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// environment is what every fixture sees.
func environment(name string) (string, bool) {
	value, ok := map[string]string{
		"DEPENDENCY":   "inventory: {x: 1}",
		"MAX":          "400",
		"LATENESS":     "90s",
		"LOGS":         "/var/log",
		"FLAG":         "true",
		"WORD":         "many",
		"PASSWORD":     "hunter2",
		"HOSTILE":      "\"\nkeys: {raw: true}\n# *a &b [",
		"HOSTILE_LIST": "[a, b]",
		"INVALID":      "\xff",
		"SECRET":       strings.Repeat("s", 32),
		"SHORT":        "hunter2",
	}[name]
	return value, ok
}

func fixtures(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures %s: %v", pattern, err)
	}
	return paths
}

func TestWorking(t *testing.T) {
	for _, path := range fixtures(t, "working_*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, err := Load(path, environment)
			if err != nil {
				t.Fatal(err)
			}
			roundTrip(t, c)
		})
	}
}

// TestBusted compares whole errors: texts, lines, order and completeness.
func TestBusted(t *testing.T) {
	for _, path := range fixtures(t, "busted_*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(path)
			if strings.HasPrefix(name, "busted_originators") {
				_, err = parseOriginators(name, data, environment, fakeFiles)
			} else {
				_, err = Parse(name, data, environment)
			}
			if err == nil {
				t.Fatal("accepted")
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".golden", err.Error()+"\n")
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("the error holds the secret")
			}
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// roundTrip writes the effective configuration, loads it again from another
// directory and wants the same, but for the secrets.
func roundTrip(t *testing.T, c *Config) {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteEffective(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Parse("/elsewhere/effective.yaml", b.Bytes(), environment)
	if err != nil {
		t.Fatalf("effective configuration refused: %v\n%s", err, b.Bytes())
	}
	want, got := comparable(*c), comparable(*again)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("effective configuration differs:\n%+v\nwant:\n%+v\nfrom:\n%s", got, want, b.Bytes())
	}
}

// comparable drops positions and secrets, deep enough for DeepEqual.
func comparable(c Config) Config {
	c.file, c.written = "", nil
	for i, s := range c.Sources {
		if s.Kafka != nil && s.Kafka.SASL != nil && s.Kafka.SASL.Password != (Secret{}) {
			s.Kafka.SASL.Password = NewSecret([]byte("x"))
		}
		if s.HTTP != nil {
			for j := range s.HTTP.Tokens {
				s.HTTP.Tokens[j] = NewSecret([]byte("x"))
			}
		}
		if s.ALS != nil {
			for j := range s.ALS.Tokens {
				s.ALS.Tokens[j] = NewSecret([]byte("x"))
			}
		}
		c.Sources[i] = s
	}
	if c.Store.ClickHouse != nil && c.Store.ClickHouse.Password != (Secret{}) {
		c.Store.ClickHouse.Password = NewSecret([]byte("x"))
	}
	for i := range c.API.Tokens {
		c.API.Tokens[i] = NewSecret([]byte("x"))
	}
	for i, e := range c.Alerts.Alertmanagers {
		c.Alerts.Alertmanagers[i] = NewEndpoint(e.String())
	}
	for i, w := range c.Alerts.Webhooks {
		c.Alerts.Webhooks[i].URL = NewEndpoint(w.URL.String())
		if w.Secret != (Secret{}) {
			c.Alerts.Webhooks[i].Secret = NewSecret([]byte("x"))
		}
	}
	return c
}

func TestDefaults(t *testing.T) {
	want := Default()
	if err := want.Validate(); err != nil {
		t.Errorf("defaults are refused: %v", err)
	}
	if got, err := Load("", nil); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("no file: %+v, %v", got, err)
	}
	got, err := Parse("/etc/auditor.yaml", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want.Store.SQLite = "/etc/auditor.db"
	if !reflect.DeepEqual(comparable(*got), want) {
		t.Errorf("empty file: %+v", got)
	}
	if _, err := Load("testdata/absent.yaml", nil); err == nil || !strings.Contains(err.Error(), "absent.yaml") {
		t.Errorf("a named file that is absent: %v", err)
	}
	if _, err := Load("testdata", nil); err == nil {
		t.Error("a directory is accepted")
	}
}

// TestSample reads the documented sample and looks at every kind of value.
func TestSample(t *testing.T) {
	data, err := os.ReadFile("testdata/working_sample.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("/etc/auditor/auditor.yaml", data, environment)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ got, want any }{
		{c.Dependency, Dependency{Name: "inventory"}},
		{len(c.Sources), 3},
		{c.Sources[0].Kafka.Brokers, []string{"127.0.0.1:9092"}},
		{c.Sources[0].Kafka.Keyed, false},
		{c.Sources[0].Format, "envoy-json"},
		{c.Sources[1].File.Paths, []string{"/var/log/nginx/access.log*"}},
		{c.Sources[1].Fields["deadline"], "http_grpc_timeout"},
		{c.Sources[1].Vantage, "at_target"},
		{c.Sources[2].HTTP.Spool, "/etc/auditor/spool"},
		{c.Sources[2].HTTP.SpoolMax, Size(1 << 30)},
		{c.Routes.Templates, []string{"GET /seats/{id}"}},
		{c.Peers.CallerTimeout["bff"], 2 * time.Second},
		{c.Keys.Accept, []Accept{{Scheme: "qk1"}, {Scheme: "qk2"}, {Field: "my_id"}}},
		{c.Keys.Originators, "/etc/auditor/originators.yaml"},
		{c.Keys.SaltFile, ""},
		{c.Keys.Discriminator["POST /x"].Field, "body_id"},
		{c.Budget, Default().Budget},
		{c.Time, Default().Time},
		{c.Ledger, Default().Ledger},
		{c.Declared.Layers[0].Name, "gateway"},
		{*c.Declared.Layers[0].Attempts, 3},
		{c.Declared.Layers[0].Retries == nil && c.Declared.Layers[0].Budget == nil, true},
		{c.Store.Retention, Default().Store.Retention},
		{c.Store.SQLite, "/etc/auditor/auditor.db"},
		{c.API, Default().API},
	} {
		if !reflect.DeepEqual(tc.got, tc.want) {
			t.Errorf("got %+v, want %+v", tc.got, tc.want)
		}
	}
}

func TestExpansion(t *testing.T) {
	c, err := Load("testdata/working_env.yaml", environment)
	if err != nil {
		t.Fatal(err)
	}
	hostile, _ := environment("HOSTILE")
	if c.Dependency.Name != "inventory: {x: 1}" || c.Dependency.Field != "" {
		t.Errorf("dependency %+v: text became structure", c.Dependency)
	}
	if want := "%h $ " + hostile + " $remote_addr"; c.Sources[0].Pattern != want {
		t.Errorf("pattern %q, want %q", c.Sources[0].Pattern, want)
	}
	if c.Keys.Raw || c.Routes.Max != 400 || c.Time.Lateness != 90*time.Second || !c.API.Insecure {
		t.Errorf("got %+v", c)
	}
	if got := c.Sources[0].File.Paths[0]; got != "/var/log/access.log*" {
		t.Errorf("path %q", got)
	}
}

func TestRelativePaths(t *testing.T) {
	c, err := Parse("/etc/[x]/auditor.yaml", []byte("sources: [{file: {paths: ['logs/*.log', /a.log]}}]\nstore: {sqlite: ../a.db}\nkeys: {originators: o.yaml}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Sources[0].File.Paths, []string{`/etc/\[x]/logs/*.log`, "/a.log"}; !reflect.DeepEqual(got, want) {
		t.Errorf("globs %q, want %q", got, want)
	}
	if c.Store.SQLite != "/etc/a.db" || c.Keys.Originators != "/etc/[x]/o.yaml" {
		t.Errorf("paths %q, %q", c.Store.SQLite, c.Keys.Originators)
	}
}

// TestValidateInGo checks what a file could not even say.
func TestValidateInGo(t *testing.T) {
	c := Default()
	c.Time.Skew = -time.Second
	c.Budget.Ratio = -0.1
	c.Budget.FloorPerSecond = -1
	c.Sources = []Source{{}}
	err := c.Validate()
	for _, want := range []string{"time.skew: found -1s", "budget.ratio: found -0.1", "budget.floor_per_second: found -1", "sources[0]: found 0 of"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	// A loaded one still knows its lines.
	loaded, err := Parse("a.yaml", []byte("dependency: a\n\nkeys:\n  horizon: 3m\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	loaded.Declared.Deadline = 2 * time.Minute
	if err := loaded.Validate(); err == nil || !strings.HasPrefix(err.Error(), "a.yaml:4: keys.horizon: found 3m: ") {
		t.Errorf("got %v", err)
	}
	err = loaded.ValidateOriginators([]Originator{{ID: "web", Deadline: time.Minute}, {ID: "batch", Deadline: 61 * time.Second}})
	if err == nil || strings.Contains(err.Error(), "web") || !strings.Contains(err.Error(), "a.yaml:4: keys.horizon: found 3m: want at least three times the deadline of originator batch (1m1s)") {
		t.Errorf("got %v", err)
	}
}

func TestWarnings(t *testing.T) {
	file := "sources: [{file: {paths: [a.log]}, format: nginx-json}]\n"
	mapped := strings.Replace(file, "json}", "json, fields: {idempotency_key: request_id}}", 1)
	quiet := file + "keys: {originators: o.yaml}\n"
	for _, tc := range []struct{ name, yaml, want string }{
		{"quiet", quiet, ""},
		{"no sources", "keys: {originators: o.yaml}\n", "sources: none"},
		{"lateness", quiet + "time: {lateness: 9s, max_future: 4s}\n", "a.yaml:3: time.lateness: 9s: "},
		{"fast clocks", quiet + "time: {max_future: 1m}\n", "a.yaml:3: time.max_future: 1m: "},
		{"fast clocks, short lateness", quiet + "time: {lateness: 10s, max_future: 5s}\n", "those of long requests have 5s to come"},
		{"fast clocks, as much as can be", quiet + "time: {lateness: 10s, max_future: 4s}\n", ""},
		{"no originators", file, "keys.originators: none while qk1 or qk2 is accepted"},
		{"no originators needed", file + "keys: {accept: [traceparent]}\nbudget: {coverage_expected: 0, coverage_floor: 0}\n", ""},
		{"claims only", file + "keys: {accept: [x-request-id]}\n", "so every budget is blind, and CoverageTooLow and AuditorBlind fire for good: claims are believed with budget.coverage_expected: 0 and budget.coverage_floor: 0, or accept"},
		{"claims only, the alert off", file + "keys: {accept: [x-request-id]}\nbudget: {coverage_expected: 0}\n", "a.yaml:3: budget.coverage_floor: no key that proves its author is accepted, so every budget is blind, and AuditorBlind fires for good"},
		{"claims only, the floor off", file + "keys: {accept: [{field: order}]}\nbudget: {coverage_floor: 0}\n", "a.yaml:3: budget.coverage_expected: no key that proves its author is accepted, so CoverageTooLow fires for good"},
		{"logger's id", file + "keys: {originators: o.yaml, accept: [qk1, {field: request_id}]}\n", "a.yaml:2: keys.accept[1]: field request_id is most likely minted"},
		{"logger's id by mapping", mapped + "keys: {originators: o.yaml, accept: [qk1, idempotency-key]}\n", "keys.accept[1]: field request_id is most likely minted"},
		{"mesh, and a connection's id", strings.Replace(file, "nginx", "envoy", 1) + "keys: {accept: [{field: connection_id}]}\nbudget: {coverage_expected: 0, coverage_floor: 0}\n", "keys.accept[0]: field connection_id is most likely minted"},
		{"envoy's id is a header", strings.Replace(file, "nginx", "envoy", 1) + "keys: {originators: o.yaml, accept: [qk1, {field: request_id}]}\n", ""},
		{"verify", file + "keys: {originators: o.yaml, verify_per_second: 20000}\n", "keep 1.4 cores busy"},
		{"lifetime", file + "keys: {originators: o.yaml, lifetime: 1m}\n", "keys.lifetime: 1m is below the horizon of 2m"},
		{"raw", file + "keys: {originators: o.yaml, raw: true}\n", "keys.raw: "},
		{"chosen", quiet + "declared: {chosen: 2}\n", "declared.chosen: 2 while budget.ratio 0.2 is exhausted at 1.2"},
		{"chosen under Envoy's", quiet + "budget: {model: concurrency}\ndeclared: {chosen: 1.25}\n", ""},
		{"chosen above Envoy's", quiet + "budget: {model: concurrency}\ndeclared: {chosen: 1.3}\n", "declared.chosen: 1.3 while budget.ratio 0.2 is exhausted at 1.25"},
		{"chosen under a rate", quiet + "budget: {model: rate}\ndeclared: {chosen: 2}\n", ""},
		{"idle key", quiet + "budget: {model: rate, ratio: 0.3}\n", "a.yaml:3: budget.ratio: the model rate does not use it"},
		{"idle key of a route", quiet + "budget: {ratio: 0.3, routes: {GET /a: {model: rate, min_concurrent: 1}}}\n", "budget.routes[\"GET /a\"].min_concurrent: the model rate does not use it"},
		{"a key for a route", quiet + "budget: {per_minute: 30, routes: {GET /a: {model: rate}}}\n", ""},
		{"coverage", quiet + "budget: {coverage_expected: 0.05}\n", "budget.coverage_expected: "},
		{"salt", quiet + "store: {clickhouse: {addr: [\"a:1\"]}}\n", "keys.salt_file: none with a shared store"},
		{"insecure", quiet + "api: {insecure: true, listen: \"0.0.0.0:1\"}\n", "api.insecure: "},
		{"routes", quiet + "routes: {max: 1, templates: [/a, /b]}\n", "routes.max: 2 templates for 1 routes"},
		{"syslog", "sources: [{syslog: {listen: \":1\", insecure: true}}]\nkeys: {originators: o.yaml}\n", "sources[0].syslog.insecure: whoever reaches :1 can add arrivals"},
		{"datagrams", "sources: [{syslog: {protocol: udp}}]\nkeys: {originators: o.yaml}\n", "sources[0].syslog.protocol: udp loses records under load"},
		{"als", "sources: [{als: {listen: \":1\", insecure: true}}]\nkeys: {originators: o.yaml}\n", "sources[0].als.insecure: whoever reaches :1 can add arrivals"},
		{"push", "sources: [{http: {listen: \":1\", insecure: true}}]\nkeys: {originators: o.yaml}\n", "sources[0].http.insecure: whoever reaches :1 can add arrivals"},
		{"push with a door", "sources: [{http: {listen: \":1\", tls: {cert_file: a, key_file: b}, tokens: [c]}}]\nkeys: {originators: o.yaml}\n", ""},
		{"flush", "sources: [{file: {paths: [a]}, flush: 10s}]\nkeys: {originators: o.yaml}\n", "a.yaml:1: sources[0].flush: records come up to 10s after they were written, and so does every alert"},
		{"flush in time", "sources: [{file: {paths: [a]}, flush: 1s}]\nkeys: {originators: o.yaml}\n", ""},
		{"alerts", quiet + "alerts: {alertmanagers: [\"http://am\"], webhooks: [{url: \"http://hook\", secret: sixteen bytes ..}]}\n", ""},
		{"a webhook without a secret", quiet + "alerts: {webhooks: [\"http://hook\"]}\n", "alerts.webhooks[0]: no secret"},
		{"alerts on claims", "sources: [{file: {paths: [a]}}]\nkeys: {accept: [traceparent]}\nalerts: {alertmanagers: [\"http://am\"]}\n", "budget.coverage_floor: no key that proves its author is accepted"},
		{"alerts on claims as meant", "sources: [{file: {paths: [a]}}]\nkeys: {accept: [traceparent]}\nbudget: {coverage_expected: 0, coverage_floor: 0}\nalerts: {alertmanagers: [\"http://am\"]}\n", ""},
		{"a share of a whole", "sources: [{kafka: {brokers: [\"a:1\"], topics: [a], keyed: true}}]\nkeys: {originators: o.yaml}\nbudget: {floor_per_second: 5}\nalerts: {alertmanagers: [\"http://am\"]}\n", "sources[0].kafka.keyed: the topic is keyed: each of several instances sees its share"},
		{"a share of a share", "sources: [{kafka: {brokers: [\"a:1\"], topics: [a], keyed: true}}]\nkeys: {originators: o.yaml}\nalerts: {alertmanagers: [\"http://am\"]}\n", ""},
		{"sasl", "sources: [{kafka: {brokers: [\"a:1\"], topics: [a], sasl: {mechanism: plain, username: a}}}]\nkeys: {originators: o.yaml}\n", "in the clear"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Parse("a.yaml", []byte(tc.yaml), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := c.Warnings()
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSecretsNeverShown(t *testing.T) {
	data := []byte(`
sources: [{kafka: {brokers: ["a:1"], topics: [a], sasl: {username: me, password: hunter2}}}, {http: {tokens: [hunter2]}}]
store: {clickhouse: {addr: ["a:1"], password: hunter2}}
api: {tokens: [hunter2]}
alerts: {alertmanagers: ["http://me:hunter2@am:1"], webhooks: ["https://hooks.example/hunter2", {url: "https://hooks.example/hunter2", secret: "hunter2hunter2hunter2"}, "https://hooks.example?hunter2", "https://hooks.example#hunter2"]}
`)
	c, err := Parse("a.yaml", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	originators := []Originator{{ID: "web", Keys: []Key{{KID: "a", Secret: NewSecret([]byte("hunter2"))}}}}
	var b strings.Builder
	if err := c.WriteEffective(&b); err != nil {
		t.Fatal(err)
	}
	type holder struct{ Config *Config } // fmt calls no method below it for %s
	for _, v := range []any{c, *c, holder{c}, []any{&holder{c}}, c.API.Tokens, c.Sources[1].HTTP, c.Sources[0].Kafka.SASL, *c.Sources[0].Kafka.SASL, c.Alerts, originators} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b"} {
			fmt.Fprintf(&b, verb+"\n", v)
		}
		b.WriteString(mustJSON(t, v))
	}
	for _, form := range []string{"hunter2", fmt.Sprintf("%x", "hunter2"), fmt.Sprintf("%X", "hunter2"), fmt.Sprint([]byte("hunter2")), "0x68, 0x75", "aHVudGVyMg"} {
		if strings.Contains(b.String(), form) {
			t.Errorf("shown as %s", form)
		}
	}
	if !strings.Contains(b.String(), redacted) || !strings.Contains(b.String(), "https://hooks.example/redacted") {
		t.Error("redaction is not visible")
	}
	if string(c.API.Tokens[0].Bytes()) != "hunter2" || c.Alerts.Webhooks[0].URL.URL() != "https://hooks.example/hunter2" {
		t.Error("the secret itself is lost")
	}
}

// TestDocumented holds docs/configuration.md to the types: every key is there.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths := keyPaths("", reflect.TypeFor[Config]())
	paths = append(paths, keyPaths("", reflect.TypeFor[originatorsFile]())...)
	known := map[string]bool{}
	for _, path := range paths {
		known[path] = true
		if !bytes.Contains(page, []byte("| `"+path+"` |")) {
			t.Errorf("no row for %s", path)
		}
	}
	for line := range strings.Lines(string(page)) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			if path, _, _ := strings.Cut(rest, "`"); !known[path] {
				t.Errorf("row for %s, which is no key", path)
			}
		}
	}
	for _, name := range slices.Concat(formats, schemes, canonicalFields) {
		if !bytes.Contains(page, []byte("`"+name+"`")) {
			t.Errorf("no word on %s", name)
		}
	}
}

// TestLines counts lines as an editor does, whatever ends or begins them.
func TestLines(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"bom", "\ufeffdependency: a\nfoo: b\n", "a.yaml:2: foo"},
		{"crlf", "dependency: a\r\n\r\nfoo: b\r\n", "a.yaml:3: foo"},
		{"comments", "# a\n\n# b\ntime:\n  # c\n\n  idle: 5 # d\n", "a.yaml:7: time.idle"},
		{"block text", "dependency: |\n  a\n  b\nfoo: c\n", "a.yaml:4: foo"},
		{"flow over lines", "time: {\n  idle: 1s,\n  skew: 5\n}\n", "a.yaml:3: time.skew"},
		{"alias", "peers:\n  caller_timeout:\n    a: &t 5\n    b: *t\n", "a.yaml:3: peers.caller_timeout[a]"},
		{"unclosed quote", "dependency: a\ntime: {idle: \"1s}\nroutes: {}\n", "a.yaml:2: not YAML"},
		{"no last line break", "dependency: a\n b: c", "a.yaml:2: not YAML"},
		{"inside a nested list", "sources:\n  - file:\n      paths:\n        - a\n       - b\n", "a.yaml:5: not YAML"},
	} {
		_, err := Parse("a.yaml", []byte(tc.text), nil)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
		}
	}
}

// TestDeepNesting wants an error, not an exhausted stack.
func TestDeepNesting(t *testing.T) {
	for _, text := range []string{
		"sources: " + strings.Repeat("[", 50_000),
		"sources: " + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000),
		strings.Repeat("{a: ", 9_000),
		strings.Repeat("- ", 20_000) + "a",
		"dependency: " + strings.Repeat("a", maxFile),
	} {
		if _, err := Parse("a.yaml", []byte(text), nil); err == nil {
			t.Errorf("accepted %.20q", text)
		} else if len(err.Error()) > 1000 {
			t.Errorf("error of %d bytes", len(err.Error()))
		}
	}
}

// Budgets have their authors' defaults, and a route has what it leaves out from the
// dependency's.
func TestBudgetDefaults(t *testing.T) {
	c, err := Parse("a.yaml", []byte("budget: {model: rate, clients: 4, routes: {GET /a: {model: tokens, max_tokens: 50}, GET /b: {per_minute: 6}}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := c.Budget
	if b.Window != time.Minute || b.PerMinute != 60 || b.MinConcurrent != 3 || b.Tokens != "grpc" {
		t.Errorf("%+v", b)
	}
	own := b.Own()
	if own.Model != "rate" || own.PerMinute != 60 || own.Clients != 4 || own.Ratio != 0.2 {
		t.Errorf("own: %+v", own)
	}
	a, of := own, own
	a.Model, a.MaxTokens = "tokens", 50
	of.PerMinute = 6
	if b.Routes["GET /a"] != a || b.Routes["GET /b"] != of {
		t.Errorf("routes: %+v", b.Routes)
	}
	if c, err = Parse("a.yaml", []byte("budget: {model: rate, window: 10s}\n"), nil); err != nil || c.Budget.Window != 10*time.Second {
		t.Errorf("a window that is written: %v %v", c.Budget.Window, err)
	}
	if c, err = Parse("a.yaml", []byte("budget: {routes: {GET /a: {model: rate}}}\n"), nil); err != nil || c.Budget.Window != 10*time.Second {
		t.Errorf("the window is the dependency's: %v %v", c.Budget.Window, err)
	}
}

// A base URL to which a path is added has nothing behind its own path; what is wrong
// with one is told without showing it.
func TestURLsOfAlerts(t *testing.T) {
	for _, tc := range []struct{ key, url, want string }{
		{"alertmanagers", "http://am:9093", ""},
		{"alertmanagers", "https://am/", ""},
		{"alertmanagers", "https://me:hunter2@am:65535/behind/a/prefix/", ""},
		{"alertmanagers", "http://[::1]:9093/api/v2alerts", ""},
		{"alertmanagers", "http://am:9093/?token=hunter2", "found a ? or # in a base URL"},
		{"alertmanagers", "http://am:9093?", "found a ? or # in a base URL"},
		{"alertmanagers", "http://am:9093/#hunter2", "found a ? or # in a base URL"},
		{"alertmanagers", "http://am:9093/#", "found a ? or # in a base URL"},
		{"alertmanagers", "http://am:9093/api/v2/alerts", "found the path of the API: want the base URL before it"},
		{"alertmanagers", "http://am/hunter2/api/v2/alerts/", "found the path of the API: want the base URL before it"},
		{"alertmanagers", "http://am:9093/api/v2", "found the path of the API: want the base URL before it"},
		{"alertmanagers", "http://am:65536", "want one from 1 to 65535"},
		{"alertmanagers", "http://am:0", "want one from 1 to 65535"},
		{"alertmanagers", "http://am:hunter2", "want a URL that begins with http:// or https://"},
		{"webhooks", "https://hooks.example:99999/hunter2", "want one from 1 to 65535"},
		{"webhooks", "https://hooks.example:443/api/v2/alerts?token=hunter2#a", ""},
	} {
		_, err := Parse("a.yaml", []byte("alerts: {"+tc.key+": [\""+tc.url+"\"]}\n"), nil)
		switch {
		case tc.want == "" && err == nil:
		case tc.want == "" || err == nil || !strings.HasPrefix(err.Error(), "a.yaml:1: alerts."+tc.key+"[0]: ") || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s %s: %v, want %q", tc.key, tc.url, err, tc.want)
		}
	}
}

// TestLoggersIDs: an id that a logger mints is no claimed key, by whatever scheme and
// mapping, and what a caller sent is not taken for one.
func TestLoggersIDs(t *testing.T) {
	for _, c := range []struct {
		format, field string
		minted        bool
	}{
		{"haproxy", "arrival_id", true}, {"haproxy", "unique_id", true}, {"alb", "trace_id", true}, {"alb", "conn_trace_id", true},
		{"caddy-json", "uuid", true}, {"otlp-json", "traceId", true}, {"otlp-proto", "traceId", true}, {"otlp-json", "spanId", true},
		{"envoy-json", "stream_id", true}, {"envoy-als", "stream_id", true}, {"istio-json", "Stream-ID", true},
		{"nginx-json", "connection", true}, {"json", "request-id", true}, {"auto", "stream_id", true},
		{"json", "trace_id", false}, {"json", "uuid", false}, {"envoy-json", "request_id", false}, {"istio-json", "request_id", false},
		{"haproxy", "$1", false}, {"otlp-json", "http.request.header.idempotency-key", false}, {"caddy-json", "request.headers.Idempotency-Key", false},
	} {
		file := "sources: [{file: {paths: [a.log]}, format: " + c.format + ", fields: {"
		for _, text := range []string{
			file + "idempotency_key: " + c.field + "}}]\nkeys: {accept: [idempotency-key]}\n",
			file + "x_request_id: " + c.field + "}}]\nkeys: {accept: [x-request-id]}\n",
			file + "x_ms_client_request_id: " + c.field + "}}]\nkeys: {accept: [x-ms-client-request-id]}\n",
			file + "path: a}}]\nkeys: {accept: [{field: " + c.field + "}]}\n",
		} {
			conf, err := Parse("a.yaml", []byte(text), nil)
			if err != nil {
				if strings.Contains(text, "field: $") {
					continue
				}
				t.Fatal(text, err)
			}
			said := strings.Join(conf.Warnings(), "\n")
			if minted := strings.Contains(said, "keys.accept[0]: field "+c.field+" is most likely minted"); minted != c.minted {
				t.Errorf("%swarned: %v\n%s", text, minted, said)
			}
		}
	}
}
