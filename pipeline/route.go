package pipeline

import (
	"bytes"
	"strings"
)

// router folds the concrete path of a request into its route.
type router struct {
	byMethod []template
}

type template struct {
	name     string
	method   string // "" for any
	segments []string
}

func newRouter(templates []string) *router {
	r := &router{}
	for _, t := range templates {
		method, path, ok := strings.Cut(t, " ")
		if !ok {
			method, path = "", t
		}
		r.byMethod = append(r.byMethod, template{name: t, method: method, segments: strings.Split(strings.TrimPrefix(path, "/"), "/")})
	}
	return r
}

// withoutQuery is the path alone.
func withoutQuery(path []byte) []byte {
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		return path[:i]
	}
	return path
}

// route appends the route of a request to dst: the name of the first template
// that matches, with the method where the template has none, or the path with
// what looks like an id folded: a segment of digits only, a UUID, or eight
// hexadecimal digits and more become {id}.
func (r *router) route(dst, method, path []byte) []byte {
	for i := range r.byMethod {
		t := &r.byMethod[i]
		if t.method != "" && t.method != string(method) || !t.matches(path) {
			continue
		}
		if t.method == "" && isMethod(method) {
			dst = append(append(dst, method...), ' ')
		}
		return append(dst, t.name...)
	}
	if isMethod(method) {
		dst = append(append(dst, method...), ' ')
	}
	for len(path) > 0 {
		seg := path
		if i := bytes.IndexByte(path[1:], '/'); i >= 0 {
			seg = path[:i+1]
		}
		if body := bytes.TrimPrefix(seg, []byte("/")); looksLikeID(body) {
			dst = append(append(dst, seg[:len(seg)-len(body)]...), "{id}"...)
		} else {
			dst = append(dst, seg...)
		}
		path = path[len(seg):]
	}
	return dst
}

func (t *template) matches(path []byte) bool {
	path = bytes.TrimPrefix(path, []byte("/"))
	for i, want := range t.segments {
		seg, rest, more := bytes.Cut(path, []byte("/"))
		if more != (i < len(t.segments)-1) {
			return false
		}
		if variable := len(want) > 1 && want[0] == '{' && want[len(want)-1] == '}'; variable {
			if len(seg) == 0 {
				return false
			}
		} else if string(seg) != want {
			return false
		}
		path = rest
	}
	return true
}

// looksLikeID says that a path segment is digits only, or eight hexadecimal
// digits and more, or a UUID. A question key in a path is an id too: it must not
// become the name of a route.
func looksLikeID(s []byte) bool {
	if looksLikeKey(s) {
		return true
	}
	digits := true
	for i, c := range s {
		switch {
		case c >= '0' && c <= '9':
		case c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
			digits = false
		case c == '-' && len(s) == 36 && (i == 8 || i == 13 || i == 18 || i == 23):
			digits = false
		default:
			return false
		}
	}
	return len(s) > 0 && (digits || len(s) >= 8)
}

func looksLikeKey(s []byte) bool {
	return len(s) > 4 && s[0] == 'q' && s[1] == 'k' && (s[2] == '1' || s[2] == '2') && s[3] == '.'
}

// isMethod says that a record's method looks like one: some letters. Whatever
// else stands there names no route.
func isMethod(m []byte) bool {
	if len(m) == 0 || len(m) > 24 {
		return false
	}
	for _, c := range m {
		if (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
