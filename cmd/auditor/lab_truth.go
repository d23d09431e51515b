package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/lab"
)

// untrue compares a report with the truth and says where it differs: in the totals,
// and in those of every target, route and peer, in every count that the truth holds;
// and whether the strict bounds hold the arrivals per question that were asked, of
// which the audit cannot know. What the report has besides is derived from these or, as
// fan-out, delays and what is by originator, held by TestTruth. Of a log whose format lacks
// something the truth is what is left of it there.
func untrue(t *lab.Truth, r *aggregate.Report) ([]string, error) {
	truth, err := asObject(t)
	if err != nil {
		return nil, err
	}
	report, err := asObject(r)
	if err != nil {
		return nil, err
	}
	if t.Shown != nil { // what the log has no place for is not asked of its reader
		if truth, err = asObject(t.Shown); err != nil {
			return nil, err
		}
	}
	wrong := untrueObjects(truth, report)
	m := &r.Total
	if low, ok := m.StrictLow.Value(); ok && low > t.PerQuestion()*(1+1e-9) {
		wrong = append(wrong, fmt.Sprintf("total.strict_low: the audit says at least %v, and %v is true", low, t.PerQuestion()))
	}
	if high, ok := m.StrictHigh.Value(); ok && high < t.PerQuestion()*(1-1e-9) {
		wrong = append(wrong, fmt.Sprintf("total.strict_high: the audit says at most %v, and %v is true", high, t.PerQuestion()))
	}
	return wrong, nil
}

func untrueObjects(truth, report map[string]any) []string {
	c := truthCheck{coarse: truth["coarse"] == true}
	input, _ := report["input"].(map[string]any)
	total, _ := truth["total"].(map[string]any)
	c.count("input.lines", total["arrivals"], input["lines"])
	c.count("input.arrivals", total["arrivals"], input["arrivals"])
	for _, name := range []string{"duplicates", "duplicates_undecidable", "late", "clamped"} {
		if got := fmt.Sprint(input[name]); name == "duplicates_undecidable" && truth["seconds"] == true && (got == "1" || got == "2") {
			continue // of thousands of lines in one stamp the hashes of two may meet: docs/definitions.md
		}
		c.count("input."+name, json.Number("0"), input[name])
	}
	for _, name := range []string{"ignored", "quarantined"} {
		m, _ := input[name].(map[string]any)
		for _, reason := range slices.Sorted(maps.Keys(m)) {
			c.count("input."+name+"."+reason, json.Number("0"), m[reason])
		}
	}
	c.object("total", truth["total"], report["total"])
	c.parts("", truth["targets"], report["dependencies"], "dependency", func(path string, want, got map[string]any) {
		c.parts(path+".routes", want["routes"], got["routes"], "route", nil)
		c.parts(path+".peers", want["peers"], got["peers"], "peer", nil)
	})
	return c.wrong
}

func asObject(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var m map[string]any
	return m, d.Decode(&m)
}

// truthCheck collects what differs.
type truthCheck struct {
	wrong  []string
	coarse bool // neither the order nor the delays of a question's arrivals are known
}

// ordered are the counts that rest on the order of a question's arrivals or on the
// delays between them, of which stamps of whole seconds say nothing.
var ordered = []string{".orphan_attempts", ".repeat_after.", ".attempt_budget.", ".retry_after.returned", ".retry_after.early", ".stale_arrivals", ".expired", ".dead_seconds", ".duplicates_undecidable"}

func (c *truthCheck) differs(path string, want, got any) {
	c.wrong = append(c.wrong, fmt.Sprintf("%s: the audit says %v, and %v is true", path, orNothing(got), orNothing(want)))
}

func orNothing(v any) any {
	if v == nil {
		return "nothing"
	}
	return v
}

// parts compares lists by name.
func (c *truthCheck) parts(path string, want, got any, field string, inner func(path string, want, got map[string]any)) {
	found := map[string]map[string]any{}
	list, _ := got.([]any)
	for _, x := range list {
		m, _ := x.(map[string]any)
		name, _ := m[field].(string)
		found[name] = m
	}
	list, _ = want.([]any)
	if len(found) != len(list) {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: the audit knows %d of a %s, and there are %d", path, len(found), field, len(list)))
	}
	for _, x := range list {
		m, _ := x.(map[string]any)
		name, _ := m["name"].(string)
		at := path + "[" + name + "]"
		other, ok := found[name]
		if !ok {
			c.wrong = append(c.wrong, at+": the audit does not know it")
			continue
		}
		c.object(at, m, other)
		if inner != nil {
			inner(at, m, other)
		}
	}
}

// object compares every count of the truth.
func (c *truthCheck) object(path string, want, got any) {
	w, _ := want.(map[string]any)
	g, _ := got.(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(w)) {
		switch k {
		case "name", "routes", "peers":
			continue
		}
		at := path + "." + k
		if _, nested := w[k].(map[string]any); nested {
			if k == "retry_after" && g[k] == nil {
				c.none(at, w[k])
				continue
			}
			c.object(at, w[k], g[k])
			continue
		}
		c.count(at, w[k], g[k])
	}
	for _, k := range slices.Sorted(maps.Keys(g)) { // a bucket that the truth does not have
		if _, known := w[k]; !known && (strings.HasSuffix(path, ".histogram") || strings.HasSuffix(path, ".unattributable")) {
			c.count(path+"."+k, json.Number("0"), g[k])
		}
	}
}

// none wants counts of which the log had no field to be 0.
func (c *truthCheck) none(path string, want any) {
	m, _ := want.(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		c.count(path+"."+k, m[k], json.Number("0"))
	}
}

// count compares one figure: counts exactly, seconds and ratios to nine digits.
func (c *truthCheck) count(path string, want, got any) {
	if c.coarse && slices.ContainsFunc(ordered, func(s string) bool { return strings.Contains("."+path, s) }) {
		return
	}
	w, isNumber := want.(json.Number)
	g, ok := got.(json.Number)
	switch {
	case !isNumber:
		if want != got {
			c.differs(path, want, got)
		}
	case got == nil && w == "0" && strings.Contains(path, ".unattributable."):
		// A reason at 0 may be left out.
	case !ok:
		c.differs(path, want, got)
	case w == g:
	default:
		x, _ := w.Float64()
		y, _ := g.Float64()
		_, whole := w.Int64()
		_, also := g.Int64()
		if whole == nil && also == nil || math.Abs(x-y) > 1e-9*math.Max(1, math.Abs(x)) {
			c.differs(path, want, got)
		}
	}
}
