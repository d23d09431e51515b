package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/ingest/accesslog"
)

const checkHelp = `Usage: auditor check [--config auditor.yaml]

Reads the configuration and all that it names, builds everything from it, and
prints the configuration in force, secrets left out, to standard output. What
else it found stands there as YAML comments: the files of each source and what
the first lines of each can show, and the memory that the ledger may take.
Warnings go to standard error.

The exit status is 1 if the configuration cannot be used.

Flags:
`

// check is the subcommand.
func check(ctx context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("check", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), checkHelp); f.PrintDefaults() }
	configFile := f.String("config", "", "check the configuration in `FILE` (default: none, which shows the defaults)")
	rest, err := parse(p, f, args)
	switch {
	case err != nil:
		return exitUsage, err
	case len(rest) == 1 && *configFile == "":
		return exitUsage, fmt.Errorf("found an argument: name the configuration with --config %s", visible(rest[0], 80, ""))
	case len(rest) > 0:
		return exitUsage, fmt.Errorf("found %d arguments, want none", len(rest))
	}
	l, err := load(p, *configFile, true)
	if err != nil {
		return exitFailed, err
	}
	if _, err := l.pipelineConfig(p.now()); err != nil {
		return exitFailed, err
	}
	if l.Store.ClickHouse != nil {
		if _, err := l.clickhouse(); err != nil {
			return exitFailed, err
		}
	}
	if _, err := l.sinks(); err != nil {
		return exitFailed, err
	}
	c := &checker{loaded: l}
	c.identity()
	c.memory()
	c.policy()
	c.shares()
	for i := range l.Sources {
		if err := ctx.Err(); err != nil {
			return exitFailed, err
		}
		c.source(i)
	}
	warnings := append(l.Warnings(), c.warnings...)
	for _, w := range warnings {
		fmt.Fprintf(p.stderr, "warning: %s\n", w)
	}
	if len(c.faults) > 0 {
		return exitFailed, errors.New(strings.Join(c.faults, "\n"))
	}
	if err := c.write(p.stdout); err != nil {
		return exitFailed, fmt.Errorf("write: %w", err)
	}
	return exitOK, nil
}

// checker gathers what is to be said of a configuration that could be read.
type checker struct {
	*loaded
	faults   []string // it cannot be used
	warnings []string // it is most likely not meant
	remarks  []string // for the reader of the configuration in force
}

func (c *checker) refuse(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checker) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

func (c *checker) remark(format string, args ...any) {
	c.remarks = append(c.remarks, fmt.Sprintf(format, args...))
}

// write prints the configuration as a file that can be loaded.
func (c *checker) write(w io.Writer) error {
	if err := c.WriteEffective(w); err != nil {
		return err
	}
	for _, r := range c.remarks {
		if _, err := fmt.Fprintf(w, "# %s\n", r); err != nil {
			return err
		}
	}
	return nil
}

// accepts says that a scheme is accepted.
func (c *checker) accepts(scheme string) bool {
	for _, a := range c.Keys.Accept {
		if a.Scheme == scheme {
			return true
		}
	}
	return false
}

// identity looks for routes whose path cannot tell several calls under one key
// apart. All traffic of a trace has one traceparent, so such calls would count
// as repeats of each other: that is refused. A signed key may stand for one call
// only, so it is no more than suspicious.
func (c *checker) identity() {
	traced, signed := c.accepts("traceparent"), c.accepts("qk1") || c.accepts("qk2")
	if traced && len(c.Routes.Templates) == 0 {
		c.warn("keys.accept: traceparent, and no routes.templates: whether the path tells the calls of one trace apart is not known; list the routes")
	}
	for _, t := range c.Routes.Templates {
		why := constantPath(t)
		if _, ok := c.discriminator(t); ok || why == "" {
			continue
		}
		name := visible(t, 200, "")
		if traced {
			c.refuse("routes.templates: %s %s, and traceparent is accepted: every call of a trace would count as a repeat of the first; give the route a keys.discriminator, or do not accept traceparent", name, why)
		} else if signed {
			c.warn("routes.templates: %s %s: ten calls for ten ids under one signed key count as ten arrivals of one question; give the route a keys.discriminator if that can be", name, why)
		}
	}
	for _, route := range slices.Sorted(maps.Keys(c.Keys.Discriminator)) {
		if why := c.noRoute(route); why != "" {
			c.warn("keys.discriminator: %s %s", visible(route, 200, ""), why)
		}
	}
	for _, route := range slices.Sorted(maps.Keys(c.Budget.Routes)) {
		if why := c.noRoute(route); why != "" && route != "other" { // what is above routes.max has figures, too
			c.warn("budget.routes: %s %s", visible(route, 200, ""), why)
		}
	}
}

// noRoute says why no arrival is of a route, or nothing if one may be: it is a
// template, with a method, or a path as it is folded without one.
func (c *checker) noRoute(route string) string {
	method, path, ok := strings.Cut(route, " ")
	switch {
	case !ok || strings.HasPrefix(method, "/"):
		return "has no method, and every route has one: write it as METHOD /path"
	case slices.Contains(c.Routes.Templates, route) || slices.Contains(c.Routes.Templates, path):
		return ""
	case strings.Contains(path, "?"):
		return "has a query, and no route has one: write the path alone"
	case strings.Contains(strings.ReplaceAll(path, "{id}", ""), "{"):
		return "is none of routes.templates, and without one all that is folded is called {id}: write it as the template is written"
	}
	return ""
}

// discriminator finds that of a template, which without a method is a route for
// each method.
func (c *checker) discriminator(template string) (config.Discriminator, bool) {
	if d, ok := c.Keys.Discriminator[template]; ok {
		return d, true
	}
	if strings.Contains(template, " ") {
		return config.Discriminator{}, false
	}
	for route, d := range c.Keys.Discriminator {
		if _, path, _ := strings.Cut(route, " "); path == template {
			return d, true
		}
	}
	return config.Discriminator{}, false
}

// constantPath says why all calls of a route have the same path, or nothing if
// they have not.
func constantPath(template string) string {
	method, path, ok := strings.Cut(template, " ")
	if !ok {
		method, path = "", template
	}
	segments := strings.Split(strings.Trim(path, "/"), "/")
	if len(segments) == 2 && strings.Contains(segments[0], ".") && (method == "" || method == "POST") && !strings.HasPrefix(segments[0], "{") {
		return "is a gRPC method, whose path is the same for every call"
	}
	if !strings.Contains(path, "{") {
		return "has a constant path"
	}
	return ""
}

// What the ledger of a daemon takes at most.
const (
	bytesPerQuestion = 116
	bytesPerArrival  = 24
)

// memory estimates what the ledger takes, at its bound and at the load declared.
// A question lives for one horizon after its latest arrival, an arrival in an
// open tick for one lateness.
func (c *checker) memory() {
	h, l := c.Keys.Horizon.Seconds(), c.Time.Lateness.Seconds()
	estimate := func(live, rate float64) string {
		arrivals := rate * c.Declared.Chosen * l
		return fmt.Sprintf("%s live questions × %d B + %s arrivals in open ticks × %d B = %s",
			whole(uint64(live)), bytesPerQuestion, whole(uint64(arrivals)), bytesPerArrival,
			size(uint64(live*bytesPerQuestion+arrivals*bytesPerArrival)))
	}
	most := float64(c.Ledger.MaxLiveQuestions)
	c.remark("memory at ledger.max_live_questions, above which a part of the questions is followed (%s questions/s at a horizon of %s): %s",
		whole(uint64(most/h)), length(int64(h)), estimate(most, most/h))
	if rate := c.Declared.OfferedPerSecond; rate > 0 {
		c.remark("memory at declared.offered_per_second (%s/s, %s arrivals each): %s",
			whole(uint64(rate)), factor(c.Declared.Chosen), estimate(rate*h, rate))
		if rate*h > most {
			c.warn("ledger.max_live_questions: %s is less than the %s questions that are live at declared.offered_per_second with a horizon of %s: questions will be sampled",
				whole(uint64(most)), whole(uint64(rate*h)), length(int64(h)))
		}
	}
}

// policy says what a plan finds in the declared layers.
func (c *checker) policy() {
	for _, f := range policy(&c.Declared).Plan().Findings {
		if f.Code == budget.NoBudgetNeeded {
			c.remark("declared: %s", f.Text)
		} else {
			c.warn("declared: %s", f.Text)
		}
	}
}

// shares says what becomes of alerts where several instances share the questions.
func (c *checker) shares() {
	for i := range c.Sources {
		switch k := c.Sources[i].Kafka; {
		case k == nil || !k.Divided():
		case c.Store.ClickHouse != nil:
			c.remark("alerts: instances that share the partitions of sources[%d] judge the sum of what they count, and one of them tells of it", i)
		default:
			c.remark("alerts: of several instances that share the partitions of sources[%d] each judges its own share, since they have no store in common (store.clickhouse): it tells what fires there, and resolves nothing; an Alertmanager does, 3 minutes after the last has told it", i)
		}
	}
}

// source checks that one source can be read, and what its log can show: by its
// first lines where there are any, else by its format.
func (c *checker) source(i int) {
	s, at := &c.Sources[i], fmt.Sprintf("sources[%d]", i)
	parser, err := c.parserOf(s)
	if err != nil {
		c.refuse("%s.zone: %v", at, err)
		return
	}
	var p *accesslog.Parser // none for auto
	if s.Format != "auto" {
		if p, err = accesslog.New(parser); err != nil {
			c.refuse("%s.%s: %v", at, wrongIn(parser), err)
			return
		}
	}
	c.minted(s, at)
	c.spool(s, at)
	seen := false
	if s.File != nil {
		for _, glob := range s.File.Paths {
			names, _ := filepath.Glob(glob) // the glob was checked
			if len(names) == 0 {
				c.warn("%s.file.paths: no file matches %s", at, visible(glob, 200, ""))
			}
			for _, name := range names {
				seen = c.sample(s, at, name, parser) || seen
			}
		}
	}
	if !seen {
		c.never(s, at)
		c.byFormat(s, at, p)
	}
}

// smallSpool is a rate, in bytes a second, below which a spool is warned of: some
// thousand records.
const smallSpool = 256 << 10

// spool says at which rate a spool can take records for ever. It keeps them until a
// restart needs them no more, and gives room back in eighths.
func (c *checker) spool(s *config.Source, at string) {
	most := s.SpoolLimit()
	if most == 0 {
		return
	}
	span := c.Time.Lateness + 2*c.Keys.Horizon
	rate := uint64(float64(most) * 7 / 8 / span.Seconds())
	text := fmt.Sprintf("%s.%s.spool_max: %s holds what comes within time.lateness and two keys.horizon (%s) at up to %s a second",
		at, s.Kind(), most, length(int64(span.Seconds())), size(rate))
	if rate < smallSpool {
		c.warn("%s; senders of more are refused or held back, so raise it if more can come", text)
		return
	}
	c.remark("%s", text)
}

// parserOf is how the records of a source are read when all that is configured is
// asked of them.
func (l *loaded) parserOf(s *config.Source) (accesslog.Config, error) {
	parser, err := parserConfig(s)
	parser.Keys, parser.Extra = l.ring.Fields(), l.extra()
	if field := l.Dependency.Field; field != "" {
		parser.Fields = withField(parser.Fields, "dependency", field)
	}
	return parser, err
}

// wrongIn names the key to which an error of a parser belongs.
func wrongIn(parser accesslog.Config) string {
	if parser.Pattern != "" {
		return "pattern"
	}
	return "format"
}

// minted warns where a key is read from a field in which nginx puts an id of its
// own. The configuration has warned of claimed keys; a signed one is never
// counted wrongly that way, only lost.
func (c *checker) minted(s *config.Source, at string) {
	name := strings.ToLower(s.Fields["question_key"])
	if (name == "request_id" || name == "req_id") && (strings.HasPrefix(s.Format, "nginx-") || s.Format == "ingress-nginx") {
		c.warn("%s.fields.question_key: nginx mints %s for each request, so it is nobody's question key; log $http_question_key", at, name)
	}
}

// byPattern warns of what a pattern has no place for.
func (c *checker) byPattern(at string, p *accesslog.Parser) {
	if !slices.ContainsFunc(c.ring.Fields(), p.Gives) {
		c.warn("%s.pattern: it has no key that is accepted (%s): every arrival would be unattributable (see docs/formats.md)", at, strings.Join(c.ring.Fields(), ", "))
	}
	if c.timed() && !p.GivesDuration() {
		c.warn("%s.pattern: it has no duration%s", at, noTimes)
	}
	if !p.GivesDeparture() {
		c.warn("%s.pattern: it has no field that shows a departure (see docs/formats.md)", at)
	}
}

// byFormat warns of a key that the default line of a format does not hold.
func (c *checker) byFormat(s *config.Source, at string, p *accesslog.Parser) {
	var key bool // the default line shows it
	switch s.Format {
	case "apache", "pattern", "iis":
		c.byPattern(at, p)
		return
	case "nginx-combined":
		if c.timed() {
			c.warn("%s.format: the default line of %s has no duration%s", at, s.Format, noTimes)
		}
	case "ingress-nginx":
	case "envoy-text", "istio-text":
		key = c.accepts("x-request-id")
	default:
		return // the operator names the fields, or HAProxy's captures need none
	}
	if !key && !c.namesKey(s) {
		c.warn("%s.format: the default line of %s holds no key that is accepted: every arrival would be unattributable unless the line was extended (see docs/formats.md)", at, s.Format)
	}
}
