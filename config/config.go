// Package config turns auditor.yaml and originators.yaml into a validated
// configuration.
//
// Promises:
//   - A file is decoded over the defaults; what it leaves out keeps its
//     default, and no file at all is the default configuration.
//   - Nothing is guessed. An unknown or repeated key, a missing unit, a value
//     out of range or a contradiction between two keys is a fault. A fault
//     names file and line, the key, what was found and what is wanted, and all
//     faults of a file are returned together.
//   - ${NAME} in a value is the environment's NAME; an unset one is a fault. The
//     result is always one scalar: text from the environment can never add a
//     key, a list or an alias. $$ is a dollar sign.
//   - Relative paths are from the directory of the file that names them.
//   - A secret is shown nowhere: not in a fault, not by any fmt verb, not in the
//     effective configuration.
//
// The package opens no sources and listens nowhere; reading the environment is
// the caller's: it passes a getenv, so that a test can.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"
)

// Config is one auditor.yaml. Every field's comment says default, unit,
// constraint and what the constraint prevents.
type Config struct {
	// Dependency is the protected target. Default: the name "default".
	Dependency Dependency `yaml:"dependency"`
	// Sources are where access logs come from. Default: none, which is enough
	// for a replay of named files and nothing else.
	Sources   []Source  `yaml:"sources"`
	Routes    Routes    `yaml:"routes"`
	Peers     Peers     `yaml:"peers"`
	Ignore    Ignore    `yaml:"ignore"`
	Responses Responses `yaml:"responses"`
	Time      Time      `yaml:"time"`
	Keys      Keys      `yaml:"keys"`
	Ledger    Ledger    `yaml:"ledger"`
	Budget    Budget    `yaml:"budget"`
	Declared  Declared  `yaml:"declared"`
	Store     Store     `yaml:"store"`
	API       API       `yaml:"api"`
	Alerts    Alerts    `yaml:"alerts"`

	// file and written say where each key was written, so that Validate can name
	// the line long after decoding. Both are empty in a Config built in Go.
	file    string
	written map[string]int
}

// Dependency says which protected target an arrival belongs to: always Name, or
// the value of the record's Field. Exactly one is set. In YAML a bare text is
// the name.
type Dependency struct {
	Name  string `yaml:"name"`
	Field string `yaml:"field"`
}

func (d *Dependency) setScalar(text string) { *d = Dependency{Name: text} }
func (d Dependency) scalar() (string, bool) { return d.Name, d.Field == "" }
func (d Dependency) wantScalar() string     { return "a name, or {field: NAME}" }

// Routes says how paths are folded into named operations.
type Routes struct {
	// Templates are "METHOD /path/{id}" or "/path/{id}", tried in order. A path
	// that none matches has its ids folded by rule. Default: none.
	Templates []string `yaml:"templates"`
	// Max is the number of distinct routes kept apart, 1 to 10000; the rest are
	// "other". Default 500. Without a bound, ids that look like words would make
	// a row each.
	Max int `yaml:"max"`
}

// Peers says how adjacent callers are folded into workloads.
type Peers struct {
	// Map is from a peer's name, address or CIDR to its workload. Default: none.
	Map map[string]string `yaml:"map"`
	// Max is the number of distinct peers kept apart, 1 to 250; the rest are
	// "other". Default 200. It bounds memory when pods' addresses churn.
	Max int `yaml:"max"`
	// CallerTimeout is how long a workload waits for an answer. Above 0. Default:
	// none. Of this, what a request carries and its originator's deadline the
	// earliest counts; answers later than that are counted as expired.
	CallerTimeout map[string]time.Duration `yaml:"caller_timeout"`
}

// Ignore names requests that are no arrivals (health checks); they are counted
// apart by reason. Default: none.
type Ignore struct {
	Paths      []string `yaml:"paths"`
	UserAgents []string `yaml:"user_agents"`
	Peers      []string `yaml:"peers"`
}

// Responses says how statuses are read.
type Responses struct {
	// Refused are the statuses that turn a caller away without doing the work,
	// 400 to 599. Default [429, 503]. They are no answers: with them in the
	// denominator the dead share would fall as retries start.
	Refused []int `yaml:"refused"`
}

// Time holds the tolerances of the two clocks.
type Time struct {
	// Lateness is how long a tick stays open after its second, above 0. Default
	// 60s. It measures the shipper's delay; below 10s records of slow shippers
	// come late and are unattributable.
	Lateness time.Duration `yaml:"lateness"`
	// Idle is how long a partition read to its end holds back the others, above
	// 0. Default 10s.
	Idle time.Duration `yaml:"idle"`
	// MaxFuture is how far ahead of the wall clock a record may be, above 0.
	// Default 5s. Beyond it the record is quarantined, so that one wrong clock
	// cannot close everybody's ticks. Up to it a record moves its partition's
	// watermark, and takes as much from the time that others have to come: 10 s
	// where a request took long, of which the
	// default leaves half to shippers.
	MaxFuture time.Duration `yaml:"max_future"`
	// Skew is how far ahead of an arrival a key may be minted, 0 or more.
	// Default 5s.
	Skew time.Duration `yaml:"skew"`
}

// Keys says which question keys are accepted and how.
type Keys struct {
	// Accept lists the schemes in the order in which they are looked for; the
	// first whose field is present decides. At least one. Default [qk1, qk2].
	Accept []Accept `yaml:"accept"`
	// RequireVerified makes every claimed key unattributable (unsigned). Default
	// false. Needs qk1 or qk2 in Accept, else nothing at all could be attributed.
	RequireVerified bool `yaml:"require_verified"`
	// Originators is the path of originators.yaml. Default: none, and then no
	// qk1 or qk2 key can be verified.
	Originators string `yaml:"originators" kind:"path"`
	// Horizon is the silence after which a question is forgotten, at least three
	// times the longest declared deadline. Default 2m. Too short, and a retry is
	// counted as a new question: amplification reads low.
	Horizon time.Duration `yaml:"horizon"`
	// Lifetime is how long after its minting a key is good, above 0. Default
	// 24h. It stops old keys from being replayed.
	Lifetime time.Duration `yaml:"lifetime"`
	// Discriminator is from a route to what tells several calls under one key
	// apart. Default: the concrete path. Without one, ten calls for ten ids on
	// a constant path read as ten arrivals of one question.
	Discriminator map[string]Discriminator `yaml:"discriminator"`
	// VerifyPerSecond is the number of qk2 signatures checked a second, 1 or
	// more. Default 5000 (about a third of a core). It keeps forged keys from
	// buying all the processor time; what is over is unattributable (unchecked).
	VerifyPerSecond int `yaml:"verify_per_second"`
	// SaltFile is the path of the salt under which keys are stored. Default:
	// none. Instances that share a store share the salt, or one question would
	// be stored under two hashes.
	SaltFile string `yaml:"salt_file" kind:"path"`
	// Raw stores keys as they are. Default false: a key may be traced to a user.
	Raw bool `yaml:"raw"`
}

// Accept is one accepted scheme: a scheme in docs/configuration.md, or whatever the record's Field
// holds, taken as a claimed key. Exactly one is set. In YAML a bare text is the
// scheme.
type Accept struct {
	Scheme string `yaml:"scheme"`
	Field  string `yaml:"field"`
}

func (a *Accept) setScalar(text string) { *a = Accept{Scheme: text} }
func (a Accept) scalar() (string, bool) { return a.Scheme, a.Field == "" }
func (a Accept) wantScalar() string     { return "a scheme, or {field: NAME}" }

// Discriminator is what stands in the place of the path in a question's
// identity: the value of the record's Field.
type Discriminator struct {
	Field string `yaml:"field"`
}

// Ledger bounds the table of live questions.
type Ledger struct {
	// MaxLiveQuestions is the number of questions held at once, 1 or more, at
	// most 116 bytes each. Default 8000000. Above it questions are sampled by
	// hash and the error is published.
	MaxLiveQuestions int `yaml:"max_live_questions"`
}

// Budget is the retry budget that the dependency grants.
type Budget struct {
	// Model is ratio (Linkerd, Finagle), concurrency (Envoy), rate (SRE book) or
	// tokens (gRPC, AWS). Default ratio. docs/budgets.md says what each is.
	Model string `yaml:"model"`
	// Ratio is the allowed repeats per original, or, for concurrency, the share of
	// repeats among all in flight, 0 to 1. Default 0.2.
	Ratio float64 `yaml:"ratio"`
	// FloorPerSecond is the repeats a second allowed to each of Clients whatever
	// the traffic, 0 or more. Default 0: granted at the target it would be
	// multiplied by nobody knows how many clients.
	FloorPerSecond float64 `yaml:"floor_per_second"`
	// MinConcurrent is the repeats in flight that concurrency allows each of Clients
	// in any case, 0 or more. Default 3.
	MinConcurrent float64 `yaml:"min_concurrent"`
	// PerMinute is the repeats a minute that rate allows each of Clients, 0 or more.
	// Default 60.
	PerMinute float64 `yaml:"per_minute"`
	// Tokens is whose bucket tokens is: grpc or aws. Default grpc.
	Tokens string `yaml:"tokens"`
	// MaxTokens is what the bucket of each of Clients holds: 0 for what its authors
	// say (10 for grpc, 500 for aws), or 5 to 1e6. Default 0.
	MaxTokens float64 `yaml:"max_tokens"`
	// TokenRatio is what a success gives back: 0 for what its authors say (0.1 for
	// grpc, 1 for aws), or 0.001 to 1000. Default 0.
	TokenRatio float64 `yaml:"token_ratio"`
	// Window is the budget's sliding window, whole seconds, 1s to 10m. Default
	// 10s, and 1m for rate. Ticks are whole seconds, a part of one cannot be counted.
	Window time.Duration `yaml:"window"`
	// Low is the consumed share from which the state is low, above 0 and at most
	// 1. Default 0.5.
	Low float64 `yaml:"low"`
	// CoverageFloor is the verified share of arrivals, 0 to 1, below which the
	// state is blind. Default 0.85. Below it the budget speaks for too few.
	CoverageFloor float64 `yaml:"coverage_floor"`
	// CoverageExpected is the verified share of a minute's arrivals, 0 to 1, below
	// which, by more than chance makes it, the CoverageTooLow alert fires. Default 0.95;
	// lower it while keys roll out.
	CoverageExpected float64 `yaml:"coverage_expected"`
	// VisibilityFloor is the share of records able to show a departure, 0 to 1,
	// below which the verdict is blind, and AuditorBlind fires. Default 0.5.
	VisibilityFloor float64 `yaml:"visibility_floor"`
	// MinArrivals is the number of arrivals below which a window has no state, 0
	// or more. Default 20: one retry among two arrivals is no exhausted budget.
	MinArrivals int `yaml:"min_arrivals"`
	// Clients is the number of clients (proxies, processes) that each have a budget
	// by themselves, 1 or more: FloorPerSecond, MinConcurrent, PerMinute and
	// MaxTokens are for each. Default 1.
	Clients int `yaml:"clients"`
	// Routes are budgets of single routes, beside the dependency's. Default:
	// none. A gateway-wide budget lets one route spend everyone's allowance.
	Routes map[string]RouteBudget `yaml:"routes"`
}

// RouteBudget is the budget of one route. What it leaves out is as in Budget, whose
// keys of the same names these are.
type RouteBudget struct {
	Model          string  `yaml:"model"`
	Ratio          float64 `yaml:"ratio"`
	FloorPerSecond float64 `yaml:"floor_per_second"`
	MinConcurrent  float64 `yaml:"min_concurrent"`
	PerMinute      float64 `yaml:"per_minute"`
	Tokens         string  `yaml:"tokens"`
	MaxTokens      float64 `yaml:"max_tokens"`
	TokenRatio     float64 `yaml:"token_ratio"`
	Clients        int     `yaml:"clients"`
}

// Own is the dependency's own budget, as that of a route.
func (b *Budget) Own() RouteBudget {
	var own RouteBudget
	b.inherit(&own, func(string) bool { return true })
	return own
}

// inherit gives a route what it has of the keys that wanted names.
func (b *Budget) inherit(route *RouteBudget, wanted func(key string) bool) {
	from, to := reflect.ValueOf(b).Elem(), reflect.ValueOf(route).Elem()
	keys := keysOf(from.Type())
	for key, i := range keysOf(to.Type()) {
		if wanted(key) {
			to.Field(i).Set(from.Field(keys[key]))
		}
	}
}

// Store is where rows rest. Exactly one of SQLite and ClickHouse is set.
type Store struct {
	// SQLite is the path of the database file. Default auditor.db, unless
	// ClickHouse is set.
	SQLite string `yaml:"sqlite" kind:"path"`
	// ClickHouse is the shared store. Default: none.
	ClickHouse *ClickHouse `yaml:"clickhouse"`
	// Questions says which questions are stored one by one: none, repeated or
	// all. Default repeated. One in 256 always is.
	Questions string `yaml:"questions"`
	// Retention is from a resolution (1s, 10s, 1m, 1h) to how long its rows are
	// kept, above 0. Default 1s: 2h, 10s: 24h, 1m: 14d, 1h: 400d; a resolution
	// left out keeps its default.
	Retention map[string]time.Duration `yaml:"retention"`
}

// ClickHouse is a ClickHouse server or cluster.
type ClickHouse struct {
	// Addr are host:port, at least one; the first that answers is used.
	Addr []string `yaml:"addr"`
	// Database is the name of the database. Default auditor.
	Database string `yaml:"database"`
	// Username is the user. Default "default".
	Username string `yaml:"username"`
	// Password is the user's. At most one of Password and PasswordFile.
	Password Secret `yaml:"password"`
	// PasswordFile is the path of a file that holds it.
	PasswordFile string `yaml:"password_file" kind:"path"`
	// TLS turns TLS on. Default: none.
	TLS *ClientTLS `yaml:"tls"`
	// Protocol is native or http. Default native.
	Protocol string `yaml:"protocol"`
	// Compression of what goes over the network: lz4, zstd or none. Default lz4.
	Compression string `yaml:"compression"`
	// Connections is how many are open at most, at least 1. Default 8.
	Connections int `yaml:"connections"`
	// Cluster is the name of the cluster whose servers hold replicas of the tables.
	// Default: none, one server.
	Cluster string `yaml:"cluster"`
}

func (c *ClickHouse) setDefaults() {
	c.Database, c.Username, c.Protocol, c.Compression, c.Connections = "auditor", "default", "native", "lz4", 8
}

// API is the daemon's listener.
type API struct {
	// Listen is host:port. Default 127.0.0.1:9464. Another address than loopback
	// needs TLS and Tokens, or Insecure: figures name callers and routes.
	Listen string `yaml:"listen"`
	// Insecure allows any address without TLS and Tokens. Default false.
	Insecure bool `yaml:"insecure"`
	// TLS is the listener's certificate. Default: none.
	TLS *ServerTLS `yaml:"tls"`
	// Tokens are the bearer tokens that are let in. Default: none, everybody.
	Tokens []Secret `yaml:"tokens"`
}

// Alerts says who is told.
type Alerts struct {
	// Alertmanagers are the base URLs of all peers of one cluster. Default: none.
	Alertmanagers []Endpoint `yaml:"alertmanagers"`
	// Webhooks get each change as JSON. Default: none.
	Webhooks []Webhook `yaml:"webhooks"`
}

// Webhook is a URL that is told of each change. In YAML a bare text is its URL.
type Webhook struct {
	URL Endpoint `yaml:"url"`
	// Secret signs what is sent, at least 16 bytes: without it a receiver cannot tell
	// who sent it. Default: none. At most one of Secret and SecretFile.
	Secret Secret `yaml:"secret"`
	// SecretFile is the path of a file that holds it.
	SecretFile string `yaml:"secret_file" kind:"path"`
}

func (w *Webhook) setScalar(text string) { *w = Webhook{URL: NewEndpoint(text)} }
func (w Webhook) scalar() (string, bool) {
	return w.URL.String(), w.Secret == (Secret{}) && w.SecretFile == ""
}
func (w Webhook) wantScalar() string { return "a URL, or {url: URL, secret: TEXT}" }

// Default returns the configuration of an empty file. Its relative paths are
// from the working directory.
func Default() Config {
	return Config{
		Dependency: Dependency{Name: "default"},
		Routes:     Routes{Max: 500},
		Peers:      Peers{Max: 200},
		Responses:  Responses{Refused: []int{429, 503}},
		Time: Time{
			Lateness:  60 * time.Second,
			Idle:      10 * time.Second,
			MaxFuture: 5 * time.Second,
			Skew:      5 * time.Second,
		},
		Keys: Keys{
			Accept:          []Accept{{Scheme: "qk1"}, {Scheme: "qk2"}},
			Horizon:         2 * time.Minute,
			Lifetime:        24 * time.Hour,
			VerifyPerSecond: 5000,
		},
		Ledger: Ledger{MaxLiveQuestions: 8_000_000},
		Budget: Budget{
			Model:            "ratio",
			Ratio:            0.2,
			MinConcurrent:    3,
			PerMinute:        60,
			Tokens:           "grpc",
			Window:           10 * time.Second,
			Low:              0.5,
			CoverageFloor:    0.85,
			CoverageExpected: 0.95,
			VisibilityFloor:  0.5,
			MinArrivals:      20,
			Clients:          1,
		},
		Declared: Declared{Chosen: 1.2},
		Store: Store{
			SQLite:    "auditor.db",
			Questions: "repeated",
			Retention: map[string]time.Duration{
				"1s":  2 * time.Hour,
				"10s": 24 * time.Hour,
				"1m":  14 * 24 * time.Hour,
				"1h":  400 * 24 * time.Hour,
			},
		},
		API: API{Listen: "127.0.0.1:9464"},
	}
}

// Load reads the file at path; an empty path is no file, hence the defaults.
func Load(path string, getenv func(string) (string, bool)) (*Config, error) {
	if path == "" {
		c := Default()
		return &c, nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data, getenv)
}

// Parse reads data as the file called name: faults bear that name, and relative
// paths are from its directory. The result is validated. On faults it is nil
// and the error joins them all, in the order of lines.
func Parse(name string, data []byte, getenv func(string) (string, bool)) (*Config, error) {
	c := Default()
	d := newDecoder(name, getenv)
	d.into(&c, data)
	c.file, c.written = d.file, d.written
	c.settle(d.dir)
	if err := d.judge(c.faults()); err != nil {
		return nil, err
	}
	return &c, nil
}

// settle fills in what depends on which keys were written and on where the
// file lies.
func (c *Config) settle(dir string) {
	if _, ok := c.written["store.sqlite"]; !ok && c.Store.ClickHouse != nil {
		c.Store.SQLite = ""
	}
	if _, ok := c.written["budget.window"]; !ok && c.Budget.Model == "rate" {
		c.Budget.Window = time.Minute
	}
	for route, b := range c.Budget.Routes {
		at := keyed("budget.routes", route)
		c.Budget.inherit(&b, func(key string) bool {
			_, ok := c.written[at+"."+key]
			return !ok
		})
		c.Budget.Routes[route] = b
	}
	for i := range c.Sources {
		if s := &c.Sources[i]; s.ALS != nil && s.Format == "auto" {
			s.Format = "envoy-als"
		}
	}
	resolvePaths(reflect.ValueOf(c).Elem(), dir)
}

// maxFile bounds a configuration file; one of a thousand originators has 200 kB.
const maxFile = 1 << 20

// readFile reads a bounded file, so that a path to a device cannot exhaust
// memory.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: longer than %s", path, Size(maxFile))
	}
	return data, nil
}

// A fault is one thing wrong with a file. path is the key it is about; also are
// keys without which it could not be judged.
type fault struct {
	path string
	line int // 0: the line where path, or what encloses it, was written
	text string
	also []string
}

// joinFaults turns faults into one error, in the order of lines and each once.
func joinFaults(file string, written map[string]int, faults []fault) error {
	for i := range faults {
		if faults[i].line == 0 {
			faults[i].line = lineOf(written, faults[i].path)
		}
		for _, path := range faults[i].also {
			if faults[i].line == 0 {
				faults[i].line = lineOf(written, path)
			}
		}
	}
	slices.SortStableFunc(faults, func(a, b fault) int { return a.line - b.line })
	var errs []error
	seen := map[string]bool{}
	for _, f := range faults {
		text := f.text
		if f.path != "" {
			text = f.path + ": " + text
		}
		if f.line > 0 {
			text = fmt.Sprintf("%s:%d: %s", file, f.line, text)
		} else if file != "" {
			text = file + ": " + text
		}
		if !seen[text] {
			seen[text] = true
			errs = append(errs, errors.New(text))
		}
	}
	return errors.Join(errs...)
}

// lineOf returns the line of path or of the nearest key that encloses it.
func lineOf(written map[string]int, path string) int {
	for path != "" {
		if line, ok := written[path]; ok {
			return line
		}
		cut := len(path) - 1
		for cut > 0 && path[cut] != '.' && path[cut] != '[' {
			cut--
		}
		path = path[:cut]
	}
	return 0
}

// resolve makes path absolute, from dir. An empty path stays empty.
func resolve(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
