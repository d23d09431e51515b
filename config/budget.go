package config

import (
	"math"
	"reflect"
	"slices"
	"time"
)

// models are the budget models, and the keys that each of them uses.
var models = map[string][]string{
	"ratio":       {"ratio", "floor_per_second", "clients"},
	"concurrency": {"ratio", "min_concurrent", "clients"},
	"rate":        {"per_minute", "clients"},
	"tokens":      {"tokens", "max_tokens", "token_ratio", "clients"},
}

func (b *Budget) check(k *checks) {
	own := b.Own()
	own.check(k, "budget", nil)
	if b.Window < time.Second || b.Window > 10*time.Minute || b.Window%time.Second != 0 {
		k.add("budget.window", "found %s: want whole seconds from 1s to 10m", formatDuration(b.Window))
	}
	k.share("budget.low", b.Low)
	if b.Low == 0 {
		k.add("budget.low", "found 0: want a ratio above 0, or every state would be low")
	}
	k.share("budget.coverage_floor", b.CoverageFloor)
	k.share("budget.coverage_expected", b.CoverageExpected)
	k.share("budget.visibility_floor", b.VisibilityFloor)
	k.between("budget.min_arrivals", b.MinArrivals, 0, math.MaxInt)
	for _, route := range sortedKeys(b.Routes) {
		r := b.Routes[route]
		r.check(k, keyed("budget.routes", route), &own)
	}
}

// check notes what is wrong with a budget, but for values that it has inherited: of
// those the fault has been told once.
func (r *RouteBudget) check(k *checks, at string, inherited *RouteBudget) {
	var was RouteBudget
	if inherited != nil {
		was = *inherited
	}
	own := func(differs bool) bool { return differs || inherited == nil }
	if own(r.Model != was.Model) {
		k.oneOf(at+".model", r.Model, "ratio", "concurrency", "rate", "tokens")
	}
	if own(r.Ratio != was.Ratio) {
		k.share(at+".ratio", r.Ratio)
	}
	if own(r.FloorPerSecond != was.FloorPerSecond) {
		k.rate(at+".floor_per_second", r.FloorPerSecond)
	}
	if own(r.MinConcurrent != was.MinConcurrent) {
		k.rate(at+".min_concurrent", r.MinConcurrent)
	}
	if own(r.PerMinute != was.PerMinute) {
		k.rate(at+".per_minute", r.PerMinute)
	}
	if own(r.Tokens != was.Tokens) {
		k.oneOf(at+".tokens", r.Tokens, "grpc", "aws")
	}
	if v := r.MaxTokens; own(v != was.MaxTokens) && v != 0 && !(v >= leastTokens && v <= 1e6) {
		k.add(at+".max_tokens", "found %v: want 0 (what its authors say), or a number from %d to 1e6", v, leastTokens)
	}
	if v := r.TokenRatio; own(v != was.TokenRatio) && v != 0 && !(v >= 0.001 && v <= 1000) {
		k.add(at+".token_ratio", "found %v: want 0 (what its authors say), or a number from 0.001 to 1000", v)
	}
	if own(r.Clients != was.Clients) {
		k.between(at+".clients", r.Clients, 1, math.MaxInt)
	}
}

// leastTokens is more than the reserve of any bucket.
const leastTokens = 5

var routeBudgetType = reflect.TypeFor[RouteBudget]()

// idle are the keys of a budget that are written under at and that its model does
// not use.
func (c *Config) idle(at, model string) (out []string) {
	used := map[string]bool{"model": true}
	for _, key := range models[model] {
		used[key] = true
	}
	for _, key := range keyNames(routeBudgetType) {
		if _, written := c.written[at+"."+key]; written && !used[key] {
			out = append(out, key)
		}
	}
	return out
}

func (c *Config) warnBudget(warn func(path, format string, args ...any)) {
	b := &c.Budget
	if len(b.Routes) == 0 { // else it may be there for them
		for _, key := range c.idle("budget", b.Model) {
			warn("budget."+key, "the model %s does not use it", b.Model)
		}
	}
	for _, route := range sortedKeys(b.Routes) {
		at := keyed("budget.routes", route)
		for _, key := range c.idle(at, b.Routes[route].Model) {
			warn(at+"."+key, "the model %s does not use it", b.Routes[route].Model)
		}
	}
	c.warnCoverage(warn)
	// What it lets pass for each original.
	exhausted := math.Inf(1)
	switch b.Model {
	case "ratio":
		exhausted = 1 + b.Ratio
	case "concurrency":
		exhausted = 1 / (1 - b.Ratio)
	}
	if c.Declared.Chosen > exhausted+1e-9 {
		warn("declared.chosen", "%v while budget.ratio %v is exhausted at %v", c.Declared.Chosen, b.Ratio, exhausted)
	}
}

// warnCoverage says where the two thresholds of the verified share, which is 0 for
// good if only claims are accepted, tell more than is known.
func (c *Config) warnCoverage(warn func(path, format string, args ...any)) {
	b := &c.Budget
	const instead = "claims are believed with budget.coverage_expected: 0 and budget.coverage_floor: 0, or accept qk1 or qk2"
	switch signed := slices.ContainsFunc(c.Keys.Accept, func(a Accept) bool { return a.Scheme == "qk1" || a.Scheme == "qk2" }); {
	case signed && b.CoverageExpected < b.CoverageFloor:
		warn("budget.coverage_expected", "below coverage_floor: the state is blind before the alert fires")
	case signed:
	case b.CoverageFloor > 0 && b.CoverageExpected > 0:
		warn("budget.coverage_floor", "no key that proves its author is accepted, so every budget is blind, and CoverageTooLow and AuditorBlind fire for good: %s", instead)
	case b.CoverageFloor > 0:
		warn("budget.coverage_floor", "no key that proves its author is accepted, so every budget is blind, and AuditorBlind fires for good: %s", instead)
	case b.CoverageExpected > 0:
		warn("budget.coverage_expected", "no key that proves its author is accepted, so CoverageTooLow fires for good: %s", instead)
	}
}
