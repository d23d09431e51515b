package config

import (
	"reflect"
	"strconv"
	"strings"
)

// keysOf returns a struct's YAML keys and their field numbers.
func keysOf(t reflect.Type) map[string]int {
	keys := map[string]int{}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			keys[name] = i
		}
	}
	return keys
}

// keyNames returns a struct's YAML keys in order.
func keyNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// keyPaths returns every key path below t: a list's elements are [], a map's
// values [KEY].
func keyPaths(prefix string, t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return keyPaths(prefix, t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return keyPaths(prefix+"[]", t.Elem())
		}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Struct {
			return keyPaths(prefix+"[KEY]", t.Elem())
		}
	case reflect.Struct:
		var paths []string
		for i := range t.NumField() {
			name := t.Field(i).Tag.Get("yaml")
			if name == "" {
				continue
			}
			path := dotted(prefix, name)
			paths = append(paths, path)
			paths = append(paths, keyPaths(path, t.Field(i).Type)...)
		}
		return paths
	}
	return nil
}

// pathsEnding returns the key paths below t whose last key is key.
func pathsEnding(t reflect.Type, key string) []string {
	var out []string
	for _, path := range keyPaths("", t) {
		if path == key || strings.HasSuffix(path, "."+key) {
			out = append(out, path)
		}
	}
	return out
}

// holdsSecret says that a value of type t may hold a secret at any depth.
func holdsSecret(t reflect.Type) bool {
	if isSecret(t) {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return holdsSecret(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("yaml") != "" && holdsSecret(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// secretBeside says that a key of the struct t is itself a secret.
func secretBeside(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i).Type
		if f.Kind() == reflect.Slice {
			f = f.Elem()
		}
		if isSecret(f) {
			return true
		}
	}
	return false
}

func isSecret(t reflect.Type) bool {
	return t == reflect.TypeFor[Secret]() || t == reflect.TypeFor[Endpoint]()
}

// dotted returns the path of a key below path.
func dotted(path, key string) string {
	if !bare(key) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// keyed returns the path of a map's key below path.
func keyed(path, key string) string {
	if bare(key) {
		return path + "[" + key + "]"
	}
	return path + "[" + strconv.Quote(key) + "]"
}

// bare says that key needs no quotes inside a path.
func bare(key string) bool {
	for _, r := range key {
		if !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return false
		}
	}
	return key != ""
}

// nearest returns the name with the fewest edits from key, and their number;
// what key begins counts as one edit away.
func nearest(key string, names []string) (string, int) {
	if len(key) > 64 {
		key = key[:64]
	}
	best, least := "", int(^uint(0)>>1)
	for _, name := range names {
		n := edits(key, name)
		if len(key) > 2 && n > 1 && strings.HasPrefix(name, key) {
			n = 1 // nginx is rather nginx-json than json
		}
		if n < least {
			best, least = name, n
		}
	}
	return best, least
}

// edits counts the letters to insert, drop, replace or swap with a neighbour.
func edits(a, b string) int {
	var before []int // the row before the last
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// resolvePaths makes every relative path below v absolute, from dir.
func resolvePaths(v reflect.Value, dir string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			resolvePaths(v.Elem(), dir)
		}
	case reflect.Slice:
		if k := v.Type().Elem().Kind(); k == reflect.Struct || k == reflect.Pointer {
			for i := range v.Len() {
				resolvePaths(v.Index(i), dir)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			switch v.Type().Field(i).Tag.Get("kind") {
			case "path":
				f.SetString(resolve(dir, f.String()))
			case "glob":
				for j := range f.Len() {
					f.Index(j).SetString(resolve(globQuote(dir), f.Index(j).String()))
				}
			default:
				if v.Type().Field(i).Tag.Get("yaml") != "" {
					resolvePaths(f, dir)
				}
			}
		}
	}
}

// globQuote keeps a directory's own brackets from being read as a pattern.
func globQuote(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
