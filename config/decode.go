package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds the values that one document may expand to through aliases
// and merge keys; the largest honest file has some ten thousand.
const maxNodes = 200_000

// maxMerges bounds how deep merge keys may refer to one another.
const maxMerges = 16

// maxKey bounds a key's length in bytes.
const maxKey = 256

// decoder decodes one document over values that already hold their defaults.
// It goes on after a fault, so that one run shows them all.
type decoder struct {
	file    string // as faults name it
	dir     string // absolute where that is knowable
	getenv  func(string) (string, bool)
	written map[string]int // key path -> line
	faults  []fault
	nodes   int
	root    reflect.Type // of the whole document, to say where a misplaced key belongs
}

func newDecoder(name string, getenv func(string) (string, bool)) *decoder {
	if getenv == nil {
		getenv = func(string) (string, bool) { return "", false }
	}
	dir := filepath.Dir(name)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return &decoder{file: name, dir: dir, getenv: getenv, written: map[string]int{}}
}

// fault notes one fault at a node.
func (d *decoder) fault(path string, n *yaml.Node, format string, args ...any) {
	d.faults = append(d.faults, fault{path: path, line: n.Line, text: fmt.Sprintf(format, args...)})
}

// judge adds the faults of the decoded values, without those that may only be
// the consequence of one in the decoding, and joins all.
func (d *decoder) judge(faults []fault) error {
	all := slices.Clone(d.faults)
	for _, f := range faults {
		if !d.spoiled(f) {
			all = append(all, f)
		}
	}
	return joinFaults(d.file, d.written, all)
}

func (d *decoder) spoiled(f fault) bool {
	for _, known := range d.faults {
		if known.path == "" || overlaps(known.path, f.path) {
			return true
		}
		for _, also := range f.also {
			if overlaps(known.path, also) {
				return true
			}
		}
	}
	return false
}

// overlaps says that one path is the other or encloses it.
func overlaps(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '.' || b[len(a)] == '[')
}

// document parses data and returns its root, nil if there is nothing in it or
// it is no YAML (which is then a fault).
func (d *decoder) document(data []byte) *yaml.Node {
	if len(data) > maxFile {
		d.faults = append(d.faults, fault{text: "longer than " + Size(maxFile).String()})
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for i, line := 0, 1; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			d.faults = append(d.faults, fault{line: line, text: "not UTF-8 text"})
			return nil
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			d.faults = append(d.faults, fault{line: line, text: "control character, want text"})
			return nil
		}
		if i += size; r == '\n' {
			line++
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		d.faults = append(d.faults, syntaxFault(data, err))
		return nil
	}
	if err := dec.Decode(&second); err == nil {
		d.fault("", &second, "second document, want one (remove the --- above it)")
		return nil
	} else if !errors.Is(err, io.EOF) {
		d.faults = append(d.faults, syntaxFault(data, err))
		return nil
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil
	}
	return doc.Content[0]
}

var (
	yamlError = regexp.MustCompile(`(?s)^yaml: (?:line [0-9]+: )?(.*)$`)
	tabIndent = regexp.MustCompile(`(?m)^ *\t[ \t]*[^ \t\r\n#]`)
)

// syntaxFault says where and why data is no YAML, without quoting it: what
// breaks the syntax may be a secret.
func syntaxFault(data []byte, err error) fault {
	text, line := syntaxText(err), syntaxLine(data, err)
	switch {
	case strings.HasPrefix(text, "unknown anchor"):
		return fault{line: line, text: "alias (*) of an anchor (&) that is not defined; quote a text that begins with *"}
	case strings.Contains(text, "cannot start any token") && tabIndent.Match(data):
		i := tabIndent.FindIndex(data)[0]
		return fault{line: 1 + bytes.Count(data[:i], []byte("\n")), text: "tab in the indentation, want spaces"}
	case strings.Contains(text, "',' or") && bytes.Contains(data, []byte("${")):
		text += "; between { } and [ ], quote a value that holds ${}"
	}
	return fault{line: line, text: "not YAML: " + text}
}

func syntaxText(err error) string {
	if err == nil {
		return ""
	}
	if m := yamlError.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return "unreadable"
}

// syntaxLine finds the line that breaks the syntax: the first without which the
// error is another. The library names where the enclosing block begins.
func syntaxLine(data []byte, err error) int {
	text := syntaxText(err)
	var ends []int // of the lines
	for i, b := range data {
		if b == '\n' || i == len(data)-1 {
			ends = append(ends, i+1)
		}
	}
	n := sort.Search(len(ends), func(n int) bool {
		dec := yaml.NewDecoder(bytes.NewReader(data[:ends[n]]))
		for {
			var node yaml.Node
			if err := dec.Decode(&node); err != nil {
				return syntaxText(err) == text
			}
		}
	})
	return min(n+1, max(len(ends), 1))
}

// defaulter is a type whose zero value is not its default.
type defaulter interface{ setDefaults() }

// scalarStruct is a struct that may also be written as one text.
type scalarStruct interface {
	setScalar(string)
	scalar() (string, bool)
	wantScalar() string
}

// into decodes data over what ptr points to.
func (d *decoder) into(ptr any, data []byte) {
	v := reflect.ValueOf(ptr).Elem()
	d.root = v.Type()
	if n := d.document(data); n != nil {
		d.value("", n, v)
	}
}

// value decodes n into v. On a fault v keeps what it held.
func (d *decoder) value(path string, n *yaml.Node, v reflect.Value) {
	n = d.enter(n)
	if n == nil {
		return
	}
	if path != "" {
		d.written[path] = n.Line
	}
	if n.Style&yaml.TaggedStyle != 0 {
		d.fault(path, n, "explicit YAML tag, want none")
		return
	}
	switch v.Interface().(type) {
	case time.Duration, Size, Secret, Endpoint:
		d.scalar(path, n, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if isNull(n) {
			// Taken as "not written", a tls: whose keys were all commented out
			// would turn TLS off.
			d.wrong(path, n, v.Type())
			return
		}
		target := fresh(v.Type().Elem())
		if v.Type().Elem().Kind() == reflect.Struct || d.scalar(path, n, target) {
			v.Set(target.Addr())
		}
		if target.Kind() == reflect.Struct {
			d.structure(path, n, target)
		}
	case reflect.Struct:
		_, text := v.Addr().Interface().(scalarStruct)
		if isNull(n) && !text && !strings.Contains(path, "[") {
			return // a section whose keys are all commented out
		}
		d.structure(path, n, v)
	case reflect.Slice:
		d.list(path, n, v)
	case reflect.Map:
		d.table(path, n, v)
	default:
		d.scalar(path, n, v)
	}
}

// enter counts a node and follows an alias. It returns nil when the document
// expands to too much.
func (d *decoder) enter(n *yaml.Node) *yaml.Node {
	d.nodes++
	if d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.fault("", n, "aliases and merge keys expand to more than %d values", maxNodes)
		}
		return nil
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// fresh returns a settable value of type t that holds its defaults.
func fresh(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if f, ok := v.Interface().(defaulter); ok {
		f.setDefaults()
	}
	return v.Elem()
}

func (d *decoder) structure(path string, n *yaml.Node, v reflect.Value) {
	if s, ok := v.Addr().Interface().(scalarStruct); ok && n.Kind == yaml.ScalarNode {
		var text string
		if d.scalar(path, n, reflect.ValueOf(&text).Elem()) {
			s.setScalar(text)
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		d.wrong(path, n, v.Type())
		return
	}
	if _, ok := v.Addr().Interface().(scalarStruct); ok {
		v.SetZero() // a field replaces the default name
	}
	fields := keysOf(v.Type())
	for _, p := range d.pairs(path, n, secretBeside(v.Type())) {
		i, ok := fields[p.key]
		if !ok {
			d.unknown(path, p, v.Type())
			continue
		}
		d.value(dotted(path, p.key), p.value, v.Field(i))
	}
}

func (d *decoder) list(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.wrong(path, n, v.Type())
		return
	}
	out := reflect.Zero(v.Type()) // an empty list is nil, so that equal files give equal configurations
	for i, item := range n.Content {
		element := fresh(v.Type().Elem())
		d.value(fmt.Sprintf("%s[%d]", path, i), item, element)
		out = reflect.Append(out, element)
		if d.nodes > maxNodes {
			return
		}
	}
	v.Set(out)
}

func (d *decoder) table(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrong(path, n, v.Type())
		return
	}
	for _, p := range d.pairs(path, n, false) {
		element := fresh(v.Type().Elem())
		d.value(keyed(path, p.key), p.value, element)
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		v.SetMapIndex(reflect.ValueOf(p.key), element)
	}
}

// pair is one key of a mapping with its value.
type pair struct {
	key   string
	node  *yaml.Node // of the key
	value *yaml.Node
	flow  bool // between { and }
}

// pairs returns the keys of a mapping in order, merge keys expanded: what is
// written wins over what is merged, earlier merges over later ones. secret says
// that a key may be a piece of a secret that broke the syntax.
func (d *decoder) pairs(path string, n *yaml.Node, secret bool) []pair {
	var out []pair
	seen := map[string]int{}
	d.gather(path, n, secret, 0, seen, &out)
	return out
}

func (d *decoder) gather(path string, n *yaml.Node, secret bool, depth int, seen map[string]int, out *[]pair) {
	if depth > maxMerges {
		d.fault(path, n, "merge keys refer to one another more than %d deep", maxMerges)
		return
	}
	here := map[string]int{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := d.enter(n.Content[i]), n.Content[i+1]
		if key == nil {
			return
		}
		if key.Kind != yaml.ScalarNode || key.Value == "" {
			d.fault(path, key, "key that is no text, want a plain word")
			continue
		}
		if len(key.Value) > maxKey {
			d.fault(path, key, "key longer than %d bytes", maxKey)
			continue
		}
		if key.Tag == "!!merge" {
			merges = append(merges, value)
			continue
		}
		if line, dup := here[key.Value]; dup {
			where := dotted(path, key.Value)
			if secret && n.Style&yaml.FlowStyle != 0 {
				where = path
			}
			d.fault(where, key, "key is written twice, first in line %d; remove one", line)
			continue
		}
		here[key.Value] = key.Line
		if _, merged := seen[key.Value]; merged {
			continue
		}
		seen[key.Value] = key.Line
		*out = append(*out, pair{key.Value, key, value, n.Style&yaml.FlowStyle != 0})
	}
	for _, m := range merges {
		m = d.enter(m)
		if m == nil {
			return
		}
		from := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			from = m.Content
		}
		for _, f := range from {
			if f = d.enter(f); f == nil {
				return
			}
			if f.Kind != yaml.MappingNode {
				d.fault(path, f, "merge key (<<) of something that is no map")
				continue
			}
			d.gather(path, f, secret, depth+1, seen, out)
		}
	}
}

// unknown notes a key that the struct does not have.
func (d *decoder) unknown(path string, p pair, t reflect.Type) {
	near, distance := nearest(p.key, keyNames(t))
	if p.flow && secretBeside(t) && distance*3 > len(p.key) {
		// In {secret: abc,def} the rest of the secret becomes a key.
		d.fault(path, p.node, "unknown key, not shown because a secret stands beside it (quote a secret that holds a comma); the nearest known key is %q", near)
		return
	}
	if distance*2 > len(p.key) {
		if elsewhere := pathsEnding(d.root, p.key); len(elsewhere) > 0 {
			near = elsewhere[0]
		}
	}
	d.fault(dotted(path, p.key), p.node, "unknown key; the nearest known key is %q", near)
}

// wrong notes a node of the wrong kind.
func (d *decoder) wrong(path string, n *yaml.Node, t reflect.Type) {
	if holdsSecret(t) && n.Kind == yaml.ScalarNode && !isNull(n) {
		d.fault(path, n, "found a text, not shown because a secret may stand here: want %s", want(t))
		return
	}
	d.fault(path, n, "found %s: want %s", found(n), want(t))
}

// scalar decodes one text into v and says whether it could.
func (d *decoder) scalar(path string, n *yaml.Node, v reflect.Value) bool {
	secret := isSecret(v.Type())
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.wrong(path, n, v.Type())
		return false
	}
	text, expanded, err := expand(n.Value, d.getenv)
	if err != nil {
		d.fault(path, n, "%v", err)
		return false
	}
	plain := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	refuse := func(why error) bool {
		what := found(n)
		if expanded {
			what = strconv.Quote(clip(n.Value)) + " with the environment's value"
		}
		if secret {
			what = "a value"
		}
		if why != nil {
			d.fault(path, n, "found %s: %v", what, why)
		} else {
			d.fault(path, n, "found %s: want %s", what, want(v.Type()))
		}
		return false
	}
	switch t := v.Addr().Interface().(type) {
	case *Secret:
		*t = NewSecret([]byte(text))
		return true
	case *Endpoint:
		*t = NewEndpoint(text)
		return true
	case *time.Duration:
		parsed, err := parseDuration(text)
		if err != nil {
			return refuse(err)
		}
		*t = parsed
		return true
	case *Size:
		parsed, err := parseSize(text)
		if err != nil {
			return refuse(err)
		}
		*t = parsed
		return true
	}
	// A quoted number is a text, unless the quotes are there for the ${}.
	loose := plain || expanded
	switch v.Kind() {
	case reflect.String:
		if plain && !expanded && n.Tag == "!!bool" {
			return refuse(nil)
		}
		v.SetString(text)
	case reflect.Bool:
		if !loose || text != "true" && text != "false" {
			return refuse(nil)
		}
		v.SetBool(text == "true")
	case reflect.Int:
		parsed, ok := parseCount(text)
		if !loose || !ok {
			return refuse(nil)
		}
		v.SetInt(parsed)
	case reflect.Float64:
		parsed, ok := parseNumber(text)
		if !loose || !ok {
			return refuse(nil)
		}
		v.SetFloat(parsed)
	default:
		panic("config: no decoding of " + v.Type().String())
	}
	return true
}

// found describes a node in an error.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	if isNull(n) {
		return "nothing"
	}
	if n.Tag == "!!str" {
		return strconv.Quote(clip(n.Value))
	}
	return clip(n.Value)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// clip keeps an error readable whatever was found, and hides what looks like a
// URL with a password in it.
func clip(text string) string {
	if strings.Contains(text, "@") {
		return "(text with an @)"
	}
	if len(text) > 60 {
		return strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}

// want describes what a type is decoded from.
func want(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return wantDuration
	case t == reflect.TypeFor[Size]():
		return wantSize
	case isSecret(t):
		return "a text"
	}
	if s, ok := reflect.New(t).Interface().(scalarStruct); ok {
		return s.wantScalar()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return want(t.Elem())
	case reflect.Struct:
		return "a map with the keys " + strings.Join(keyNames(t), ", ")
	case reflect.Slice:
		return "a list, such as [a, b] or []"
	case reflect.Map:
		return "a map, such as {a: b} or {}"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number of 0 or more"
	case reflect.Float64:
		return "a number of 0 or more"
	}
	return "a text"
}
