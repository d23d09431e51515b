package api

import (
	"reflect"
	"slices"
	"strings"

	"github.com/targetside/auditor/aggregate"
)

// measureFields are the fields of a measure that are numbers, by their names in a
// report joined by dots ("responses.dead_share"), and where they lie.
var measureFields = fieldsOf(reflect.TypeFor[aggregate.Measure](), "", nil)

// measureNames are the names of measureFields and of unattributable.* in order.
var measureNames = namesOfMeasures()

func fieldsOf(t reflect.Type, prefix string, at []int) map[string][]int {
	fields := map[string][]int{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := append(slices.Clone(at), f.Index...)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Type == reflect.TypeFor[aggregate.Unattributable](), f.Type == reflect.TypeFor[aggregate.Budget]():
			// The first is named by reason; the second is of log time, and no row has it.
		case inner == reflect.TypeFor[aggregate.Figure](), inner.Kind() == reflect.Uint64, inner.Kind() == reflect.Float64:
			fields[prefix+name] = path
		case inner.Kind() == reflect.Struct:
			for n, p := range fieldsOf(inner, prefix+name+".", path) {
				fields[n] = p
			}
		}
	}
	return fields
}

const unattributablePrefix = "unattributable."

func namesOfMeasures() []string {
	names := sortedNames(measureFields)
	names = append(names, unattributablePrefix+"total")
	aggregate.Unattributable{}.Each(func(reason string, _ uint64) { names = append(names, unattributablePrefix+reason) })
	slices.Sort(names)
	return names
}

// knownOpen says that a field is known of seconds that are not closed: plain sums and
// ratios of such.
func knownOpen(name string) bool {
	switch name {
	case "arrivals", "attributable", "verified", "claimed", "coverage", "read_share", "originals", "repeats", "load_factor", "stale_arrivals":
		return true
	}
	return strings.HasPrefix(name, unattributablePrefix) || strings.HasPrefix(name, "responses.")
}

// valuesOf picks some fields of a measure by name. What the measure does not have, or
// is not known of what is open, is null.
func valuesOf(m *aggregate.Measure, names []string, open bool) map[string]any {
	values := make(map[string]any, len(names))
	for _, name := range names {
		if open && !knownOpen(name) {
			values[name] = nil
			continue
		}
		if reason, ok := strings.CutPrefix(name, unattributablePrefix); ok {
			values[name] = m.Unattributable.Total
			m.Unattributable.Each(func(r string, n uint64) {
				if r == reason {
					values[name] = n
				}
			})
			continue
		}
		v, err := reflect.ValueOf(m).Elem().FieldByIndexErr(measureFields[name])
		if err != nil { // a part that is null as a whole
			values[name] = nil
			continue
		}
		values[name] = v.Interface()
	}
	return values
}

// measures reads the names of measures, joined by commas.
func (p *params) measures() []string {
	v, has := p.text("measure")
	if !has {
		return []string{"arrivals", "load_factor", "amplification"}
	}
	const most = 16
	names := strings.Split(v, ",")
	if len(names) > most {
		p.fault("measure", "more than 16 names", "at most 16")
		return nil
	}
	for i, name := range names {
		if slices.Contains(measureNames, name) && !slices.Contains(names[:i], name) {
			continue
		}
		if slices.Contains(names[:i], name) {
			p.fault("measure", clip(name)+" twice", "each name once")
		} else {
			p.fault("measure", clip(name), "names of figures of docs/definitions.md, as "+nearest(name, measureNames))
		}
		return nil
	}
	return names
}

// nearest names what was probably meant: the names that share the most letter
// pairs with it.
func nearest(name string, names []string) string {
	score := func(s string) (n int) {
		for i := range len(s) - 1 {
			if strings.Contains(name, s[i:i+2]) {
				n++
			}
		}
		return n*100 - len(s)
	}
	best := slices.MaxFunc(names, func(a, b string) int { return score(a) - score(b) })
	if score(best) < 200 {
		return "load_factor or responses.dead_share"
	}
	return best
}
