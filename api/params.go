package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// params reads the parameters of one request and collects what is wrong with
// them, so that a client is told all of it at once.
type params struct {
	values map[string]string
	known  []string
	faults []Fault
	// missing is the problem of something named that there is not, unless the
	// request is faulty.
	missing *Problem
}

// maxParam bounds the length of a value in bytes. No name is longer.
const maxParam = 512

// parseParams takes a query apart. A parameter may stand once.
func parseParams(raw string) *params {
	p := &params{values: map[string]string{}}
	values, err := url.ParseQuery(raw)
	if err != nil {
		p.fault("(query)", "what cannot be decoded", "parameters as name=value, percent-encoded, joined by &")
	}
	for _, name := range sortedNames(values) {
		list := values[name]
		v := list[0]
		switch {
		case len(list) > 1:
			p.fault(clipName(name), fmt.Sprintf("it %d times", len(list)), "it once")
		case len(v) > maxParam:
			p.fault(clipName(name), fmt.Sprintf("%d bytes", len(v)), fmt.Sprintf("at most %d", maxParam))
		case !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl):
			p.fault(clipName(name), "bytes that are no text", "UTF-8 without control characters")
		default:
			p.values[name] = v
			continue
		}
		p.known = append(p.known, name) // one fault of it is enough
	}
	return p
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func clipName(name string) string { return strings.Trim(clip(name), `"`) }

func (p *params) fault(name, found, wanted string) {
	p.faults = append(p.faults, Fault{name, found, wanted})
}

// text is a parameter as it stands; has says that it was given and is not empty.
func (p *params) text(name string) (v string, has bool) {
	p.known = append(p.known, name)
	v = p.values[name]
	return v, v != ""
}

// name is a parameter that selects by name; empty selects all.
func (p *params) name(name string) string {
	v, _ := p.text(name)
	return v
}

// oneOf is a parameter with few values; def where it is not given.
func (p *params) oneOf(name, def string, of ...string) string {
	v, has := p.text(name)
	switch {
	case !has && def != "":
		return def
	case slices.Contains(of, v):
		return v
	case !has:
		p.fault(name, "nothing", "one of "+strings.Join(of, ", "))
	default:
		p.fault(name, clip(v), "one of "+strings.Join(of, ", "))
	}
	return of[0]
}

// count is a whole number from 1 to most.
func (p *params) count(name string, def, most int) int {
	v, has := p.text(name)
	if !has {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		p.fault(name, clip(v), fmt.Sprintf("a whole number from 1 to %d", most))
		return def
	}
	return n
}

// The moments that a range may reach to: what lies outside is a mistake, and
// could not be written in RFC 3339 either.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

const wantTime = "a time as 2026-11-29T20:10:32Z, now, or a duration before now as -15m, in the years 2000 to 2199"

// moment is a point in time: RFC 3339, now, or a duration before now.
func (p *params) moment(name string, now, def time.Time) time.Time {
	v, has := p.text(name)
	if !has {
		return def
	}
	t, ok := parseMoment(v, now)
	if !ok || t.Before(earliest) || !t.Before(latest) {
		p.fault(name, clip(v), wantTime)
		return def
	}
	return t
}

func parseMoment(v string, now time.Time) (time.Time, bool) {
	if v == "now" {
		return now, true
	}
	if strings.HasPrefix(v, "-") {
		d, ok := parseDuration(v[1:])
		return now.Add(-d), ok
	}
	// A + that was not encoded arrives as a space.
	if i := strings.LastIndexByte(v, ' '); i > 10 {
		v = v[:i] + "+" + v[i+1:]
	}
	t, err := time.Parse(time.RFC3339, v)
	return t, err == nil
}

// parseDuration reads what time.ParseDuration does, and days as in 14d.
func parseDuration(v string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(v, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil
	}
	d, err := time.ParseDuration(v)
	return d, err == nil && d > 0
}

// seconds is a duration of whole seconds, from 1s; 0 where it is not given.
func (p *params) seconds(name string, most time.Duration) time.Duration {
	v, has := p.text(name)
	if !has {
		return 0
	}
	d, ok := parseDuration(v)
	if !ok || d < time.Second || d > most || d%time.Second != 0 {
		p.fault(name, clip(v), "whole seconds from 1s to "+shortDuration(most)+", as 10s, 5m or 1h")
		return 0
	}
	return d
}

// shortDuration prints whole seconds as people write them.
func shortDuration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= u.unit && d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// err is the problem of everything found wrong, unknown parameters included; nil
// if nothing was.
func (p *params) err() error {
	for _, name := range sortedNames(p.values) {
		if !slices.Contains(p.known, name) {
			known := "no parameters"
			if len(p.known) > 0 {
				known = "one of " + strings.Join(p.known, ", ")
			}
			p.fault(clipName(name), "an unknown parameter", known)
		}
	}
	const most = 20
	if len(p.faults) > most {
		p.faults = p.faults[:most]
	}
	if len(p.faults) > 0 {
		return badRequest(p.faults)
	}
	if p.missing != nil {
		return p.missing
	}
	return nil
}
