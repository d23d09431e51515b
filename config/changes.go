package config

import (
	"fmt"
	"reflect"
)

// Changes lists the keys whose values are others than in an older configuration, in
// the order of the keys. A list or map is one key where elements come or go.
func (c *Config) Changes(old *Config) []string {
	return changes("", reflect.ValueOf(*old), reflect.ValueOf(*c))
}

func changes(path string, old, now reflect.Value) (out []string) {
	t := now.Type()
	switch t.Kind() {
	case reflect.Pointer:
		if !old.IsNil() && !now.IsNil() {
			return changes(path, old.Elem(), now.Elem())
		}
	case reflect.Struct:
		names, fields := keyNames(t), keysOf(t)
		for _, name := range names {
			i := fields[name]
			out = append(out, changes(dotted(path, name), old.Field(i), now.Field(i))...)
		}
		if len(names) > 0 {
			return out
		}
	case reflect.Slice:
		if old.Len() == 0 && now.Len() == 0 {
			return nil
		}
		if k := t.Elem().Kind(); old.Len() == now.Len() && k == reflect.Struct {
			for i := range now.Len() {
				out = append(out, changes(index(path, i), old.Index(i), now.Index(i))...)
			}
			return out
		}
	case reflect.Map:
		if old.Len() == 0 && now.Len() == 0 {
			return nil
		}
	}
	if reflect.DeepEqual(old.Interface(), now.Interface()) { // looks through Secret, too
		return nil
	}
	return []string{path}
}

// Files are the files besides originators.yaml that the configuration names and that
// are read, by the key that does.
func (c *Config) Files() map[string]string {
	out := map[string]string{}
	files("", reflect.ValueOf(*c), out)
	return out
}

// writtenPaths are keys of paths that the program writes to, or reads by itself.
var writtenPaths = map[string]bool{"sqlite": true, "spool": true, "originators": true}

func files(path string, v reflect.Value, out map[string]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			files(path, v.Elem(), out)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				files(index(path, i), v.Index(i), out)
			}
		}
	case reflect.Struct:
		fields := keysOf(v.Type())
		for _, name := range keyNames(v.Type()) {
			i := fields[name]
			f, at := v.Field(i), dotted(path, name)
			if v.Type().Field(i).Tag.Get("kind") != "path" {
				files(at, f, out)
			} else if f.String() != "" && !writtenPaths[name] {
				out[at] = f.String()
			}
		}
	}
}

// Refuse says what is wrong with a key, and where it stands.
func (c *Config) Refuse(path, format string, args ...any) error {
	return joinFaults(c.file, c.written, []fault{{path: path, text: fmt.Sprintf(format, args...)}})
}
