package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
	"github.com/targetside/auditor/pipeline"
)

// loaded is a configuration and what it names.
type loaded struct {
	*config.Config
	originators []config.Originator
	ring        *keys.Ring
	files       map[string][sha256.Size]byte // contents of what Config.Files names, by key
}

// load reads a configuration, the originators that it names, and makes the key
// ring. An empty path is the defaults. limit says whether qk2 signatures are
// limited per second; where log time waits for us they are not.
func load(p *program, path string, limit bool) (*loaded, error) {
	c, err := config.Load(path, p.getenv)
	if err != nil {
		return nil, err
	}
	originators, err := config.LoadOriginators(c.Keys.Originators, p.getenv)
	if err != nil {
		return nil, err
	}
	if err := c.ValidateOriginators(originators); err != nil {
		return nil, err
	}
	l := &loaded{Config: c, originators: originators, files: map[string][sha256.Size]byte{}}
	for key, name := range c.Files() {
		if text, err := os.ReadFile(name); err == nil { // else whoever needs it says so
			l.files[key] = sha256.Sum256(text)
		}
	}
	if l.ring, err = keys.NewRing(l.ringConfig(limit)); err != nil {
		return nil, err
	}
	return l, l.checkParsers()
}

// checkParsers refuses a source whose records could not be read as it says, and names the
// line that says it.
func (l *loaded) checkParsers() error {
	var faults []error
	for i := range l.Sources {
		s := &l.Sources[i]
		if s.Format == "auto" {
			continue
		}
		at := fmt.Sprintf("sources[%d]", i)
		parser, err := l.parserOf(s)
		if err != nil {
			faults = append(faults, l.Refuse(at+".zone", "%v", err))
			continue
		}
		if _, err := accesslog.New(parser); err != nil {
			faults = append(faults, l.Refuse(at+"."+wrongIn(parser), "%v", err))
		}
	}
	return errors.Join(faults...)
}

func (l *loaded) ringConfig(limit bool) keys.Config {
	k := keys.Config{RequireVerified: l.Keys.RequireVerified, Lifetime: l.Keys.Lifetime, Skew: l.Time.Skew}
	// With an exchange a record is read by whoever owns it at the moment, perhaps by two,
	// and both must find the same.
	if limit && len(exchanges(l.Config)) == 0 {
		k.VerifyPerSecond = l.Keys.VerifyPerSecond
	}
	for _, a := range l.Keys.Accept {
		if a.Field != "" {
			k.Accept = append(k.Accept, keys.Accept{Scheme: "field", Field: a.Field})
		} else {
			k.Accept = append(k.Accept, keys.Accept{Scheme: a.Scheme})
		}
	}
	for _, o := range l.originators {
		to := keys.Originator{ID: o.ID, Deadline: o.Deadline}
		for _, key := range o.Keys {
			to.Keys = append(to.Keys, keys.Key{KID: key.KID, Secret: key.Secret.Bytes(), PublicKey: key.PublicKey})
		}
		k.Originators = append(k.Originators, to)
	}
	return k
}

// checkFormat refuses a --format that there is not. An empty one leaves the
// configuration's.
func checkFormat(format string) error {
	if format == "" || format == "auto" || slices.Contains(accesslog.Formats(), format) {
		return nil
	}
	_, err := accesslog.New(accesslog.Config{Format: format})
	return fmt.Errorf("--format: %w", err)
}

// parserConfig says how the records of a source are read.
func parserConfig(s *config.Source) (accesslog.Config, error) {
	zone, err := s.Location()
	if err != nil {
		return accesslog.Config{}, err
	}
	c := accesslog.Config{Format: s.Format, Fields: s.Fields, Pattern: s.Pattern, Zone: zone}
	switch s.AttemptScope {
	case "hop":
		c.AttemptScope = accesslog.ScopeHop
	case "origin":
		c.AttemptScope = accesslog.ScopeOrigin
	}
	return c, nil
}

// reformat reads records by another format, whose the pattern is not.
func reformat(c *accesslog.Config, format string) {
	if c.Format != format {
		c.Format, c.Pattern = format, ""
	}
}

// withField is fields with one more.
func withField(fields map[string]string, name, log string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, fields)
	out[name] = log
	return out
}

// extra lists the log fields by which questions are told apart.
func (l *loaded) extra() []string {
	var out []string
	for _, d := range l.Keys.Discriminator {
		if d.Field != "" && !slices.Contains(out, d.Field) {
			out = append(out, d.Field)
		}
	}
	slices.Sort(out)
	return out
}

// pipelineConfig says how the sources of a configuration are read and counted.
// Without a source there is one that reads any file as whatever it seems to be.
func (l *loaded) pipelineConfig(now time.Time) (pipeline.Config, error) {
	c := pipeline.Config{
		Keys:           l.ring,
		Routes:         pipeline.Routes{Templates: l.Routes.Templates, Max: l.Routes.Max},
		Peers:          pipeline.Peers{Map: l.Peers.Map, Max: l.Peers.Max, CallerTimeout: l.Peers.CallerTimeout},
		Ignore:         pipeline.Ignore(l.Ignore),
		Refused:        l.Responses.Refused,
		Discriminators: map[string]string{},
		Horizon:        l.Keys.Horizon,
		Lateness:       l.Time.Lateness,
		MaxFuture:      l.Time.MaxFuture,
		Now:            now,
		Rules: budget.Rules{
			Chosen: l.Declared.Chosen, CoverageFloor: l.Budget.CoverageFloor, VisibilityFloor: l.Budget.VisibilityFloor, MinArrivals: l.Budget.MinArrivals,
		},
	}
	c.Budget, c.RouteBudgets = l.budgets()
	for route, d := range l.Keys.Discriminator {
		c.Discriminators[route] = d.Field
	}
	if l.Keys.SaltFile != "" {
		salt, err := os.ReadFile(l.Keys.SaltFile)
		if err != nil {
			return c, fmt.Errorf("read keys.salt_file: %w", err)
		}
		if len(salt) < 16 {
			return c, fmt.Errorf("keys.salt_file %s holds %d bytes: 16 or more are wanted", l.Keys.SaltFile, len(salt))
		}
		c.Salt = salt
	}
	sources := l.Sources
	if len(sources) == 0 {
		sources = []config.Source{{Format: "auto"}}
	}
	var faults []error
	for i := range sources {
		s := &sources[i]
		parser, err := parserConfig(s)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		c.Sources = append(c.Sources, pipeline.Source{
			Name: sourceName(s), Dependency: l.Dependency.Name, DependencyField: l.Dependency.Field, Parser: parser,
			InFront: s.Vantage == "in_front", TrustedHops: s.AttemptTrusted,
		})
	}
	return c, errors.Join(faults...)
}

// budgets are the dependency's budget and those of single routes.
func (l *loaded) budgets() (all budget.Model, routes map[string]*budget.Model) {
	b := &l.Budget
	all = budget.Model{
		Grant: grantOf(b.Own()), Window: int(b.Window / time.Second), Low: b.Low, CoverageFloor: b.CoverageFloor, MinArrivals: b.MinArrivals,
	}
	routes = map[string]*budget.Model{}
	for route, r := range b.Routes {
		own := all
		own.Grant = grantOf(r)
		routes[route] = &own
	}
	return all, routes
}

// grantOf is what a budget of the configuration allows.
func grantOf(b config.RouteBudget) budget.Grant {
	switch b.Model {
	case "concurrency":
		return budget.Concurrency{Share: b.Ratio, Min: b.MinConcurrent, Proxies: b.Clients}
	case "rate":
		return budget.Rate{PerMinute: b.PerMinute, Processes: b.Clients}
	case "tokens":
		g := budget.GRPCTokens()
		if b.Tokens == "aws" {
			g = budget.AWSTokens()
		}
		return g.Sized(b.MaxTokens, b.TokenRatio, b.Clients)
	}
	return budget.Ratio{Ratio: b.Ratio, FloorPerSecond: b.FloorPerSecond, Clients: b.Clients}
}

// inputs lists the files to replay: those named, read as the source whose paths
// they match or else as the only one; without any, those of the configuration.
func (l *loaded) inputs(args []string) ([]pipeline.Input, error) {
	var out []pipeline.Input
	if len(args) == 0 {
		for i, s := range l.Sources {
			if s.File == nil {
				continue
			}
			for _, glob := range s.File.Paths {
				names, err := filepath.Glob(glob)
				if err != nil {
					return nil, fmt.Errorf("sources[%d]: path %q: %w", i, glob, err)
				}
				if len(names) == 0 {
					return nil, fmt.Errorf("sources[%d]: no file matches %q", i, glob)
				}
				for _, n := range names {
					out = append(out, pipeline.Input{File: n, Source: i})
				}
			}
		}
		if len(out) == 0 {
			return nil, errors.New("no file to replay: name files, or give the configuration a file source")
		}
		return out, nil
	}
	for _, name := range args {
		i, err := l.sourceOf(name)
		if err != nil {
			return nil, err
		}
		out = append(out, pipeline.Input{File: name, Source: i})
	}
	return out, nil
}

// sourceOf finds the source as which a file is to be read.
func (l *loaded) sourceOf(name string) (int, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return 0, err
	}
	files := -1
	for i, s := range l.Sources {
		if s.File == nil {
			continue
		}
		if files == -1 {
			files = i
		} else {
			files = -2
		}
		for _, glob := range s.File.Paths {
			if ok, _ := filepath.Match(glob, abs); ok {
				return i, nil
			}
		}
	}
	switch {
	case files >= 0:
		return files, nil
	case len(l.Sources) <= 1:
		return 0, nil
	}
	return 0, fmt.Errorf("%s matches the paths of no source, and there are several: name it under the source as which it is to be read", name)
}
