package lab

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxFile is the largest scenario that is read, in bytes.
const maxFile = 1 << 20

// File is what a scenario file holds: a scenario, and arms that are it with
// something changed. Where there are none, it is its own arm.
type File struct {
	Scenario
	Arms []Arm
}

// Arm is one way to run a scenario.
type Arm struct {
	Name string
	Says string
	Scenario
}

// Arm returns the arm of a name; "" is the first.
func (f *File) Arm(name string) (Arm, error) {
	var names []string
	for _, a := range f.Arms {
		if name == "" || a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Arm{}, fmt.Errorf("%s has no arm %q: %s", f.Name, name, strings.Join(names, ", "))
}

// Parse reads a scenario file. The error joins all faults that were found, each with
// file and line.
func Parse(file string, data []byte) (*File, error) {
	d := &decoder{file: file, lines: map[string]int{}}
	root := d.document(data)
	if root == nil {
		return nil, d.err()
	}
	base, arms := d.split(root)
	f := &File{}
	f.Scenario = d.scenario(base)
	for i := 0; i+1 < len(arms); i += 2 {
		says, set := d.arm(arms[i+1])
		a := Arm{Name: arms[i].Value, Says: says}
		d.known(base, set)
		if !plainName(a.Name) {
			d.fault(arms[i], "arm %q: want letters, digits and ._-, at most 64, for folders are named by it", a.Name)
		}
		a.Scenario = d.scenario(merged(base, set))
		f.Arms = append(f.Arms, a)
	}
	if len(f.Arms) == 0 {
		f.Arms = []Arm{{Name: f.Name, Says: f.Says, Scenario: f.Scenario}}
	}
	return f, d.err()
}

// decoder goes on after a fault, so that one run shows them all.
type decoder struct {
	file   string
	lines  map[string]int // path of a value -> line, of the scenario that is read
	faults []string
}

func (d *decoder) fault(n *yaml.Node, format string, args ...any) {
	d.at(n.Line, format, args...)
}

func (d *decoder) at(line int, format string, args ...any) {
	text := fmt.Sprintf("%s:%d: %s", d.file, line, fmt.Sprintf(format, args...))
	if !slices.Contains(d.faults, text) { // arms repeat what the base has
		d.faults = append(d.faults, text)
	}
}

func (d *decoder) err() error {
	if len(d.faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(d.faults, "\n"))
}

func (d *decoder) document(data []byte) *yaml.Node {
	if len(data) > maxFile {
		d.faults = append(d.faults, fmt.Sprintf("%s: longer than %d bytes, which no scenario is", d.file, maxFile))
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		d.faults = append(d.faults, d.file+": is empty, want a scenario")
		return nil
	case err != nil:
		d.faults = append(d.faults, fmt.Sprintf("%s: %s", d.file, strings.TrimPrefix(err.Error(), "yaml: ")))
		return nil
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		d.fault(&more, "a second document, want one scenario in a file")
		return nil
	}
	root := doc.Content[0]
	if !d.plain(root) {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		d.fault(root, "is no mapping, want the fields of a scenario")
		return nil
	}
	return root
}

// plain refuses what would make one value stand in two lines, and names twice.
func (d *decoder) plain(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		d.fault(n, "aliases are not read here: write the value out")
		return false
	}
	ok := true
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			for j := 0; j < i; j += 2 {
				if n.Content[j].Value == c.Value {
					d.fault(c, "%s is here twice", c.Value)
					ok = false
				}
			}
		}
		ok = d.plain(c) && ok
	}
	return ok
}

// split takes the arms out of a file.
func (d *decoder) split(root *yaml.Node) (base *yaml.Node, arms []*yaml.Node) {
	c := *root
	c.Content = nil
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		if k.Value != "arms" {
			c.Content = append(c.Content, k, v)
			continue
		}
		if v.Kind != yaml.MappingNode {
			d.fault(v, "arms is no mapping, want arms by name")
			continue
		}
		arms = v.Content
	}
	return &c, arms
}

// arm takes an arm apart.
func (d *decoder) arm(n *yaml.Node) (says string, set *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, "an arm is no mapping, want says and set")
		return "", nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch k, v := n.Content[i], n.Content[i+1]; k.Value {
		case "says":
			says = v.Value
		case "set":
			if v.Kind != yaml.MappingNode {
				d.fault(v, "set is no mapping, want what is different in this arm")
				continue
			}
			set = v
		default:
			d.fault(k, "%s is unknown: an arm has says and set", k.Value)
		}
	}
	return says, set
}

// known holds an arm to what the scenario has: a client, layer, target or route of
// another name would change nothing.
func (d *decoder) known(base, set *yaml.Node) {
	if set == nil {
		return
	}
	for i := 0; i+1 < len(set.Content); i += 2 {
		part, names := set.Content[i].Value, set.Content[i+1]
		if !slices.Contains([]string{"clients", "layers", "targets", "routes"}, part) || names.Kind != yaml.MappingNode {
			continue
		}
		for j := 0; j+1 < len(names.Content); j += 2 {
			if at := member(base, part); at < 0 || member(base.Content[at+1], names.Content[j].Value) < 0 {
				d.fault(names.Content[j], "%q is none of the scenario's %s, which are all that an arm can set", names.Content[j].Value, part)
			}
		}
	}
}

// plainName says that a file may have the name, on any system, and a table.
func plainName(s string) bool {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r))
	}
	return s != "" && len(s) <= 64 && s[0] != '.' && s[0] != '-' && !strings.ContainsFunc(s, odd)
}

// member is where a name stands in a mapping, before its value; -1 if it does not.
func member(n *yaml.Node, name string) int {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return i
			}
		}
	}
	return -1
}

// merged is a mapping with what another sets: mappings are merged, everything else
// is replaced.
func merged(base, set *yaml.Node) *yaml.Node {
	if set == nil {
		return base
	}
	if base.Kind != yaml.MappingNode || set.Kind != yaml.MappingNode {
		return set
	}
	c := *base
	c.Content = slices.Clone(base.Content)
	for i := 0; i+1 < len(set.Content); i += 2 {
		at := member(&c, set.Content[i].Value)
		if at < 0 {
			c.Content = append(c.Content, set.Content[i], set.Content[i+1])
			continue
		}
		c.Content[at] = set.Content[i] // its line is the one to name
		c.Content[at+1] = merged(c.Content[at+1], set.Content[i+1])
	}
	return &c
}

// scenario decodes and validates one.
func (d *decoder) scenario(n *yaml.Node) Scenario {
	clear(d.lines)
	before := len(d.faults)
	s := Scenario{Scale: 1}
	d.lines[""] = n.Line
	d.value("", n, reflect.ValueOf(&s).Elem())
	if len(d.faults) == before {
		s.validate(func(path, format string, args ...any) {
			line := d.lines[path]
			for p := path; line == 0 && p != ""; line = d.lines[p] {
				p = p[:max(strings.LastIndexByte(p, '/'), 0)]
			}
			d.at(line, "%s: %s", strings.ReplaceAll(path, "/", "."), fmt.Sprintf(format, args...))
		})
	}
	return s
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	limitType    = reflect.TypeFor[Limit]()
)

// defaulter is a part of a scenario that is not all zero where nothing is written.
type defaulter interface{ defaults() }

func (d *decoder) value(path string, n *yaml.Node, v reflect.Value) {
	d.lines[path] = n.Line
	what := cmp.Or(path[strings.LastIndexByte(path, '/')+1:], "scenario")
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
		if x, ok := v.Addr().Interface().(defaulter); ok {
			x.defaults()
		}
	}
	if v.Kind() == reflect.Struct {
		if n.Kind != yaml.MappingNode {
			d.fault(n, "%s is no mapping, want %s", what, strings.Join(fieldNames(v.Type()), ", "))
			return
		}
		d.fields(path, n, v)
		return
	}
	if v.Kind() == reflect.Slice {
		if n.Kind != yaml.SequenceNode {
			d.fault(n, "%s is no list, want one like [a, b]", what)
			return
		}
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode || c.Value == "" {
				d.fault(c, "%s holds something that is no name", what)
				return
			}
			v.Set(reflect.Append(v, reflect.ValueOf(c.Value)))
		}
		return
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.fault(n, "%s has no value, or more than one: leave it out, or write one", what)
		return
	}
	d.scalar(what, n, v)
}

func (d *decoder) scalar(what string, n *yaml.Node, v reflect.Value) {
	number := func() float64 {
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
			d.fault(n, "%s %q is no number of 0 or more", what, n.Value)
			return 0
		}
		return f
	}
	switch {
	case v.Type() == durationType:
		x, err := time.ParseDuration(n.Value)
		if err != nil || x < 0 || x > 1000*time.Hour {
			d.fault(n, "%s %q is no time: write it as 400ms, 20s or 5m", what, n.Value)
		}
		v.SetInt(int64(x))
	case v.Type() == limitType && n.Value == "unbounded":
		v.SetFloat(float64(Unbounded))
	case v.Kind() == reflect.Float64:
		v.SetFloat(number())
	case v.Kind() == reflect.Int:
		if x := number(); x == math.Trunc(x) && x <= 1<<31 {
			v.SetInt(int64(x))
		} else {
			d.fault(n, "%s %q is no whole number", what, n.Value)
		}
	case v.Kind() == reflect.Uint64:
		x, err := strconv.ParseUint(n.Value, 10, 64)
		if err != nil {
			d.fault(n, "%s %q is no whole number of 0 or more", what, n.Value)
		}
		v.SetUint(x)
	case v.Kind() == reflect.Bool:
		if n.Tag != "!!bool" {
			d.fault(n, "%s %q is neither true nor false", what, n.Value)
		}
		v.SetBool(strings.EqualFold(n.Value, "true")) // YAML has True and TRUE, too
	default:
		v.SetString(n.Value)
	}
}

// fields decodes a mapping into a struct, and one of things by name into a list
// of them, in the order of the file.
func (d *decoder) fields(path string, n *yaml.Node, v reflect.Value) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		f, named, ok := field(v.Type(), k.Value)
		if !ok {
			d.fault(k, "%s is unknown%s", k.Value, nearest(k.Value, fieldNames(v.Type())))
			continue
		}
		at := strings.TrimPrefix(path+"/"+k.Value, "/")
		if !named {
			d.value(at, c, v.Field(f))
			d.lines[at] = k.Line
			continue
		}
		d.lines[at] = k.Line
		if c.Kind != yaml.MappingNode {
			d.fault(c, "%s is no mapping, want %s by name", k.Value, k.Value)
			continue
		}
		for j := 0; j+1 < len(c.Content); j += 2 {
			x := reflect.New(v.Field(f).Type().Elem())
			if y, ok := x.Interface().(defaulter); ok {
				y.defaults()
			}
			x.Elem().FieldByName("Name").SetString(c.Content[j].Value)
			// Routes are named for paths, so the name may hold what joins a path here.
			inner := at + "/" + strings.ReplaceAll(c.Content[j].Value, "/", "∕")
			d.value(inner, c.Content[j+1], x.Elem())
			d.lines[inner] = c.Content[j].Line
			v.Field(f).Set(reflect.Append(v.Field(f), x.Elem()))
		}
	}
}

func field(t reflect.Type, name string) (at int, named, ok bool) {
	for i := range t.NumField() {
		tag, kind, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if tag != "" && tag == name {
			return i, kind == "named", true
		}
	}
	return 0, false, false
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); tag != "" {
			names = append(names, tag)
		}
	}
	return names
}

// nearest says which known name was meant, or all of them.
func nearest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if x := distance(name, k); x < least {
			best, least = k, x
		}
	}
	if best != "" {
		return ": " + best + "?"
	}
	return ": " + strings.Join(known, ", ")
}

// distance counts the letters to change, add or drop.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
