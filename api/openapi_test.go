package api

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-chi/chi/v5"
)

func document(t testing.TB) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(openAPIDocument), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func keysOf(m any) []string { return sortedNames(m.(map[string]any)) }

func TestOpenAPIHasEveryRoute(t *testing.T) {
	s := newServer(t, newFake(), Options{Page: fstest.MapFS{}, Reload: reloads(nil, nil)})
	var routes []string
	chi.Walk(s.handler.(chi.Router), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method == "GET" && route != "/" || method == "POST" { // the page is no part of the API
			routes = append(routes, route)
		}
		return nil
	})
	slices.Sort(routes)
	if paths := keysOf(document(t)["paths"]); !slices.Equal(routes, paths) {
		t.Errorf("routes %v, documented %v", routes, paths)
	}
}

// schemas checks decoded JSON against the schemas of a document, and notes which
// properties it has seen.
type schemas struct {
	all  map[string]any
	seen map[string]bool
	used map[string]bool
}

func (x *schemas) check(at string, name string, schema map[string]any, v any) error {
	if ref, ok := schema["$ref"].(string); ok {
		name = strings.TrimPrefix(ref, "#/components/schemas/")
		x.used[name] = true
		s, ok := x.all[name].(map[string]any)
		if !ok {
			return fmt.Errorf("%s: no schema %s", at, name)
		}
		return x.check(at, name, s, v)
	}
	if list, ok := schema["oneOf"].([]any); ok {
		matches, first := 0, error(nil)
		for _, s := range list {
			if err := x.check(at, name, s.(map[string]any), v); err == nil {
				matches++
			} else if first == nil {
				first = err
			}
		}
		if matches != 1 {
			return fmt.Errorf("%s: %v matches %d of oneOf: %v", at, v, matches, first)
		}
		return nil
	}
	var types []string
	switch ty := schema["type"].(type) {
	case string:
		types = []string{ty}
	case []any:
		for _, s := range ty {
			types = append(types, s.(string))
		}
	}
	is := map[string]bool{}
	switch v := v.(type) {
	case nil:
		is["null"] = true
	case bool:
		is["boolean"] = true
	case string:
		is["string"] = true
	case float64:
		is["number"], is["integer"] = true, v == math.Trunc(v)
	case []any:
		is["array"] = true
	case map[string]any:
		is["object"] = true
	}
	if !slices.ContainsFunc(types, func(s string) bool { return is[s] }) {
		return fmt.Errorf("%s: %v is none of %v", at, v, types)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		return fmt.Errorf("%s: %v is none of %v", at, v, enum)
	}
	switch v := v.(type) {
	case []any:
		for i, y := range v {
			if err := x.check(fmt.Sprintf("%s[%d]", at, i), name, schema["items"].(map[string]any), y); err != nil {
				return err
			}
		}
	case map[string]any:
		props, _ := schema["properties"].(map[string]any)
		for _, r := range asList(schema["required"]) {
			if _, ok := v[r.(string)]; !ok {
				return fmt.Errorf("%s: no %s", at, r)
			}
		}
		for key, y := range v {
			sub, ok := props[key].(map[string]any)
			if ok {
				x.seen[name+"."+key] = true
			} else if sub, ok = schema["additionalProperties"].(map[string]any); !ok {
				return fmt.Errorf("%s: %s is not documented", at, key)
			}
			if err := x.check(at+"."+key, name, sub, y); err != nil {
				return err
			}
		}
	}
	return nil
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// Every field of an answer is documented, and every documented field is answered.
func TestAnswersAreThoseOfOpenAPI(t *testing.T) {
	doc := document(t)
	x := &schemas{all: at(doc, "components", "schemas").(map[string]any), seen: map[string]bool{}, used: map[string]bool{}}
	f := newFake()
	s := newServer(t, f, Options{Reload: reloads(&Reloaded{Changed: []string{"routes.templates"}, Recounts: true}, nil)})
	requests := []string{"/-/reload", "/healthz", "/readyz", "/api/v1/summary?no=1", "/api/v1/nothing"}
	for _, target := range targets() {
		requests = append(requests, target)
	}
	try := func(target string) {
		method := "GET"
		if target == "/-/reload" {
			method = "POST"
		}
		w := ask(s, method, target)
		path, _, _ := strings.Cut(target, "?")
		if strings.HasPrefix(path, "/api/v1/questions/") {
			path = "/api/v1/questions/{key}"
		}
		status := fmt.Sprint(w.Code)
		operation, ok := at(doc, "paths", path).(map[string]any)
		if !ok {
			operation = at(doc, "paths", "/api/v1/summary").(map[string]any) // 404
		}
		responses := at(operation, strings.ToLower(method), "responses").(map[string]any)
		response, ok := responses[status]
		if !ok {
			response = responses["default"]
		}
		mime := w.Header().Get("Content-Type")
		schema, ok := at(response, "content").(map[string]any)[mime]
		if !ok {
			t.Errorf("%s: %s of status %s is not documented", target, mime, status)
			return
		}
		if err := x.check(path, "", at(schema, "schema").(map[string]any), any(object(t, w.Body))); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
	for _, target := range requests {
		try(target)
	}
	f.set(&Snapshot{At: noon, State: Starting})
	for _, target := range requests {
		try(target)
	}
	for name, schema := range x.all {
		if !x.used[name] {
			t.Errorf("schema %s is of no answer", name)
		}
		props, _ := schema.(map[string]any)["properties"].(map[string]any)
		for key := range props {
			if !x.seen[name+"."+key] {
				t.Errorf("%s.%s is documented and in no answer", name, key)
			}
		}
	}
}

// A handler names its parameters when it is given another: the document has the
// same ones.
func TestOpenAPIHasEveryParameter(t *testing.T) {
	doc := document(t)
	s := newServer(t, newFake(), Options{})
	known := regexp.MustCompile(`want one of ([a-z_, ]+)`)
	for path, item := range doc["paths"].(map[string]any) {
		if !strings.HasPrefix(path, "/api/") {
			continue
		}
		var documented []string
		for _, p := range asList(at(item, "get", "parameters")) {
			if at(p, "in") == "query" {
				documented = append(documented, at(p, "name").(string))
			}
		}
		slices.Sort(documented)
		var found []string
		for _, more := range []string{"", "&from=-1h"} {
			if more != "" && path != "/api/v1/top" {
				continue
			}
			w := ask(s, "GET", strings.Replace(path, "{key}", "x", 1)+"?by=route&nosuch=1"+more)
			if w.Code != 400 {
				t.Errorf("%s: %d for an unknown parameter", path, w.Code)
				continue
			}
			for _, fault := range object(t, w.Body)["errors"].([]any) {
				if m := known.FindStringSubmatch("want " + at(fault, "wanted").(string)); m != nil && at(fault, "parameter") == "nosuch" {
					found = append(found, strings.Split(m[1], ", ")...)
				}
			}
		}
		slices.Sort(found)
		found = slices.Compact(found)
		if !slices.Equal(found, documented) {
			t.Errorf("%s takes %v, documented %v", path, found, documented)
		}
	}
}

func TestOpenAPIServed(t *testing.T) {
	s := newServer(t, newFake(), Options{Tokens: [][]byte{[]byte("t")}})
	w := ask(s, "GET", "/openapi.json")
	if w.Code != 200 || w.Body.String() != openAPIDocument || w.Header().Get("ETag") == "" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	if w := ask(s, "GET", "/openapi.json", "If-None-Match", w.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("unchanged: %d with %d bytes", w.Code, w.Body.Len())
	}
}
