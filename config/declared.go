package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Declared is the policy on the drawing, with which measurements are compared.
// A value of 0 is not declared.
type Declared struct {
	// Chosen is the load factor meant to be tolerated, 1 or more. Default 1.2.
	Chosen float64 `yaml:"chosen"`
	// Deadline is how long the outermost caller waits.
	Deadline time.Duration `yaml:"deadline"`
	// CapacityPerSecond is the arrivals a second that the dependency can serve.
	CapacityPerSecond float64 `yaml:"capacity_per_second"`
	// OfferedPerSecond is the questions a second in the busy hour.
	OfferedPerSecond float64 `yaml:"offered_per_second"`
	// Queue is the arrivals that may wait at the dependency.
	Queue int `yaml:"queue"`
	// DrainPerSecond is the arrivals a second at which that queue empties.
	DrainPerSecond float64 `yaml:"drain_per_second"`
	// Service is the time one arrival takes once it is served.
	Service time.Duration `yaml:"service"`
	// Layers are the callers from the outermost to the adjacent one, at most 20.
	Layers []Layer `yaml:"layers"`
}

// Layer is one party that may retry. Exactly one of Attempts, Retries and
// Budget is set.
type Layer struct {
	// Name is the layer's own, not empty and not used twice.
	Name string `yaml:"name"`
	// Attempts is the tries per call, the first included, 1 to 1000.
	Attempts *int `yaml:"attempts"`
	// Retries is the tries per call after the first, 0 to 1000.
	Retries *int `yaml:"retries"`
	// Budget is the allowed retries as a share, 0 to less than 1, of what BudgetOf
	// says.
	Budget *float64 `yaml:"budget"`
	// BudgetOf is originals (Linkerd, Finagle, GEP-3388) or all, retries among them
	// (Envoy). Default originals. Only with Budget.
	BudgetOf string `yaml:"budget_of"`
	// Timeout is how long one try may take. 0: as long as what is below it takes.
	Timeout time.Duration `yaml:"timeout"`
	// Backoff is the wait before each retry; the longest, if it grows. 0: none.
	Backoff time.Duration `yaml:"backoff"`
	// HonoursRetryAfter says that the layer waits as long as it is asked to.
	HonoursRetryAfter bool `yaml:"honours_retry_after"`
}

// LoadPlan reads the policy in the file at path: its keys alone, or a whole
// configuration with a declared: section. Of the other sections it reads no more than
// their names, so that secrets from the environment need not be there. The policy has
// one layer at least. Faults are as of Load.
func LoadPlan(path string, getenv func(string) (string, bool)) (*Declared, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	return ParsePlan(path, data, getenv)
}

// ParsePlan reads data as the file called name.
func ParsePlan(name string, data []byte, getenv func(string) (string, bool)) (*Declared, error) {
	declared, err := parsePolicy(name, data, getenv)
	if err == nil && len(declared.Layers) == 0 {
		return nil, fmt.Errorf("%s declares no layers, so there is nothing to work out: name who may try again, from the outermost to the adjacent one, in a list of layers", name)
	}
	return declared, err
}

func parsePolicy(name string, data []byte, getenv func(string) (string, bool)) (*Declared, error) {
	d := newDecoder(name, getenv)
	declared, k, at := Default().Declared, &checks{}, ""
	root := d.document(data)
	if root != nil && root.Kind == yaml.MappingNode {
		sections := keyNames(reflect.TypeFor[Config]())
		switch top := topKeys(root); {
		case slices.Contains(top, "declared"):
			at = "declared"
		case slices.ContainsFunc(top, func(key string) bool { return slices.Contains(sections, key) }):
			return nil, fmt.Errorf("%s: has no declared: section, under which a configuration has its policy", name)
		}
	}
	if at == "" {
		d.root = reflect.TypeFor[Declared]()
		if root != nil {
			d.value("", root, reflect.ValueOf(&declared).Elem())
		}
	} else {
		d.section(at, root, reflect.TypeFor[Config](), reflect.ValueOf(&declared).Elem())
	}
	declared.check(k, at)
	if err := d.judge(k.faults); err != nil {
		return nil, err
	}
	return &declared, nil
}

// topKeys are the keys of a document.
func topKeys(root *yaml.Node) (out []string) {
	if root.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(root.Content); i += 2 {
			out = append(out, root.Content[i].Value)
		}
	}
	return out
}

// section decodes one key of a document of type t into v, and of the others reads no
// more than their names.
func (d *decoder) section(key string, root *yaml.Node, t reflect.Type, v reflect.Value) {
	d.root = t
	known := keysOf(t)
	for _, p := range d.pairs("", root, false) {
		if p.key == key {
			d.value(key, p.value, v)
		} else if _, ok := known[p.key]; !ok {
			d.unknown("", p, t)
		}
	}
}

// mostDeclared and leastDeclared bound a declared rate, so that what follows from it
// is a number.
const mostDeclared, leastDeclared = 1e15, 1e-6

// check notes what is wrong with the policy that stands under the key at.
func (d *Declared) check(k *checks, at string) {
	if !(d.Chosen >= 1 && d.Chosen <= mostDeclared) {
		k.add(dotted(at, "chosen"), "found %v: want a factor of 1 or more (1.2 is one retry in five questions)", d.Chosen)
	}
	rate := func(key string, v float64) {
		if v != 0 && !(v >= leastDeclared && v <= mostDeclared) {
			k.add(dotted(at, key), "found %v: want 0 (not declared), or a number from %v to %v", v, leastDeclared, mostDeclared)
		}
	}
	k.notNegative(dotted(at, "deadline"), d.Deadline)
	rate("capacity_per_second", d.CapacityPerSecond)
	rate("offered_per_second", d.OfferedPerSecond)
	k.between(dotted(at, "queue"), d.Queue, 0, math.MaxInt)
	rate("drain_per_second", d.DrainPerSecond)
	k.notNegative(dotted(at, "service"), d.Service)
	layers := dotted(at, "layers")
	if n := len(d.Layers); n > 20 {
		k.add(layers, "found %d: want at most 20", n)
	}
	names := map[string]int{}
	for i := range d.Layers {
		l, at := &d.Layers[i], index(layers, i)
		if l.Name == "" {
			k.missing(at, "name", "want the layer's name")
		} else if !plain(l.Name) {
			k.add(at+".name", "found characters that a name does not have: want letters, digits, blanks and ._-/:()+, at most 64")
		} else if first, dup := names[l.Name]; dup {
			k.add(at+".name", "found %q: is the name of %s already", clip(l.Name), index(layers, first))
		} else {
			names[l.Name] = i
		}
		l.check(k, at)
	}
}

// plain says that a name is harmless to look at wherever it is printed.
func plain(name string) bool {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(" ._-/:()+", r)
	}
	return utf8.RuneCountInString(name) <= 64 && !strings.ContainsFunc(name, odd)
}

func (l *Layer) check(k *checks, at string) {
	set := 0
	if l.Attempts != nil {
		set++
		k.between(at+".attempts", *l.Attempts, 1, 1000)
	}
	if l.Retries != nil {
		set++
		k.between(at+".retries", *l.Retries, 0, 1000)
	}
	if l.Budget != nil {
		set++
		if !(*l.Budget >= 0 && *l.Budget <= 0.999) {
			k.add(at+".budget", "found %v: want a ratio from 0 to 0.999", *l.Budget)
		}
	}
	if set != 1 {
		k.add(at, "found %d of attempts, retries and budget: want exactly one", set)
	}
	if l.BudgetOf != "" {
		k.oneOf(at+".budget_of", l.BudgetOf, "originals", "all")
		if l.Budget == nil && set > 0 {
			k.add(at+".budget_of", "found %q without a budget: want budget, or neither", clip(l.BudgetOf))
		}
	}
	k.notNegative(at+".timeout", l.Timeout)
	k.notNegative(at+".backoff", l.Backoff)
}
