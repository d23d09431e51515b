package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

var allRoutes = []string{
	"/api/v1/summary", "/api/v1/series", "/api/v1/top", "/api/v1/questions/k", "/api/v1/budgets", "/api/v1/alerts",
	"/api/v1/policy", "/api/v1/sources", "/api/v1/stream", "/openapi.json", "/metrics", "/healthz", "/readyz",
}

func isProblem(t testing.TB, header http.Header, body []byte, status int) map[string]any {
	t.Helper()
	if ct := header.Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("a problem of type %q: %s", ct, body)
	}
	v := object(t, bytes.NewReader(body))
	if v["status"] != float64(status) || v["title"] == "" || v["type"] == "" {
		t.Fatalf("no problem of status %d: %s", status, body)
	}
	return v
}

func TestMethods(t *testing.T) {
	s := newServer(t, newFake(), Options{})
	for _, path := range allRoutes {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "TRACE"} {
			w := ask(s, method, path)
			if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
				t.Errorf("%s %s: %d, Allow %q", method, path, w.Code, w.Header().Get("Allow"))
			}
			isProblem(t, w.Header(), w.Body.Bytes(), 405)
		}
		if w := ask(s, "OPTIONS", path); w.Code != 204 || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" || w.Body.Len() > 0 {
			t.Errorf("OPTIONS %s: %d %v", path, w.Code, w.Header())
		}
		if path == "/api/v1/stream" {
			if w := ask(s, "HEAD", path); w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" {
				t.Errorf("HEAD %s: %d", path, w.Code)
			}
			continue
		}
		g, h := ask(s, "GET", path), ask(s, "HEAD", path)
		if g.Code != h.Code || g.Header().Get("Content-Type") != h.Header().Get("Content-Type") {
			t.Errorf("HEAD %s: %d, GET %d", path, h.Code, g.Code)
		}
		if c := g.Header().Get("Cache-Control"); path != "/metrics" && c != "no-store" && g.Header().Get("ETag") == "" {
			t.Errorf("%s may be cached: %q", path, c)
		}
	}
}

func TestPage(t *testing.T) {
	with := newServer(t, newFake(), Options{Tokens: [][]byte{[]byte("t")}, Page: fstest.MapFS{
		"index.html": {Data: []byte("<!doctype html><title>x</title>")}, "app/main.js": {Data: []byte("1")},
	}})
	without := newServer(t, newFake(), Options{})
	for _, c := range []struct {
		s    *Server
		path string
		code int
	}{
		{with, "/", 200}, {with, "/app/main.js", 200}, {with, "/app", 404}, {with, "/app/", 404}, {with, "/nothing", 404},
		{with, "/api/v1/nothing", 404}, {with, "/api/v1/summary", 401}, {with, "/..%2f..%2fetc/passwd", 404},
		{without, "/", 404}, {without, "/nothing", 404},
	} {
		w := ask(c.s, "GET", c.path)
		if w.Code != c.code {
			t.Errorf("%s: %d, want %d", c.path, w.Code, c.code)
		}
		if w.Code != 200 {
			isProblem(t, w.Header(), w.Body.Bytes(), c.code)
		} else if w.Header().Get("Content-Security-Policy") == "" || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %v", c.path, w.Header())
		}
	}
}

// The page may run its own files and nothing else, and is compressed for who asks.
func TestPagePolicy(t *testing.T) {
	s := newServer(t, newFake(), Options{Page: fstest.MapFS{
		"index.html": {Data: []byte("<!doctype html><title>x</title>")}, "page.js": {Data: bytes.Repeat([]byte("1;"), 4096)},
	}})
	w := ask(s, "GET", "/page.js", "Accept-Encoding", "gzip")
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Errorf("the policy lets in more than the page: %q", policy)
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v %v", err, w.Header())
	}
	if text, err := io.ReadAll(z); err != nil || len(text) != 8192 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestErrorsOfTheReader(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{fmt.Errorf("query: %w", ErrTooMany), 400},
		{fmt.Errorf("dial 10.0.0.1: %w", ErrUnavailable), 503},
		{fmt.Errorf("query: %w", context.DeadlineExceeded), 504},
		{fmt.Errorf("query: %w", context.Canceled), 499},
		{errors.New("password=hunter2 at 10.0.0.1"), 500},
	} {
		f := newFake()
		f.err = c.err
		s := newServer(t, f, Options{})
		for _, target := range []string{"/api/v1/series", "/api/v1/top?by=peer&from=-1h", "/api/v1/questions/x"} {
			w := ask(s, "GET", target)
			if w.Code != c.code || strings.Contains(w.Body.String(), "10.0.0.1") || strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("%v: %d %s", c.err, w.Code, w.Body)
			}
			isProblem(t, w.Header(), w.Body.Bytes(), c.code)
			if c.code == 503 && w.Header().Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
		}
		// Live figures need no store.
		if w := ask(s, "GET", "/api/v1/summary"); w.Code != 200 {
			t.Errorf("summary: %d", w.Code)
		}
	}
	f := newFake()
	f.answer = nil
	if w := ask(newServer(t, f, Options{}), "GET", "/api/v1/series"); w.Code != 500 {
		t.Errorf("no answer: %d", w.Code)
	}
}

func TestPanicIsAProblemWithoutDetail(t *testing.T) {
	f := newFake()
	f.panics = true
	var log bytes.Buffer
	s := newServer(t, f, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, header := range []string{"", "gzip"} {
		w := ask(s, "GET", "/api/v1/series", "Accept-Encoding", header)
		if v := isProblem(t, w.Header(), w.Body.Bytes(), 500); w.Code != 500 || v["detail"] != nil || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if !strings.Contains(log.String(), "msg=panic") || strings.Contains(log.String(), "secret record") || !strings.Contains(log.String(), "status=500") {
		t.Errorf("log: %s", log.String())
	}
}

func TestLargeAnswersAreCompressed(t *testing.T) {
	s := newServer(t, newFake(), Options{})
	w := ask(s, "GET", "/api/v1/summary", "Accept-Encoding", "gzip")
	if w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(w.Header().Get("Vary"), "Accept-Encoding") {
		t.Fatalf("%v", w.Header())
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || !json.Valid(plain) || !bytes.Equal(plain, ask(s, "GET", "/api/v1/summary").Body.Bytes()) {
		t.Errorf("%v %s", err, plain)
	}
}

// Nothing that a client sends but the method and the route is in the log.
func TestLogHoldsNoKeyAndNoToken(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, newFake(), Options{Tokens: [][]byte{[]byte("tok-hush")}, Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	for _, target := range []string{
		"/api/v1/questions/hush-key", "/api/v1/questions/hush%2Fkey?hush=hush", "/api/v1/summary?dependency=hush", "/hush", "/api/v1/top?by=hush",
	} {
		for _, token := range []string{"Bearer tok-hush", "Bearer wrong-hush", "Basic hush"} {
			ask(s, "GET", target, "Authorization", token, "User-Agent", "hush", "Cookie", "hush")
			ask(s, "HUSH", target, "Authorization", token)
		}
	}
	if n := strings.Count(log.String(), `"msg":"request"`); n != 30 {
		t.Errorf("%d requests logged", n)
	}
	if i := strings.Index(strings.ToLower(log.String()), "hush"); i >= 0 {
		t.Errorf("logged: …%s…", log.String()[max(0, i-100):i+20])
	}
	if !strings.Contains(log.String(), `"route":"/api/v1/questions/{key}"`) {
		t.Error("the route is not logged")
	}
}

func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := newServer(t, f, Options{})
		for _, c := range []struct {
			state State
			code  int
		}{
			{Starting, 503}, {Rebuilding, 503}, {Standby, 200}, {Warming, 200}, {Ready, 200}, {StoreUnavailable, 503}, {"", 503},
		} {
			f.set(&Snapshot{At: time.Now(), State: c.state, Reasons: []string{"because"}})
			w := ask(s, "GET", "/readyz")
			v := object(t, w.Body)
			if w.Code != c.code || v["ready"] != (c.code == 200) || v["state"] != string(c.state) || at(v, "reasons", 0) != "because" {
				t.Errorf("%s: %d %v", c.state, w.Code, v)
			}
			if w := ask(s, "GET", "/healthz"); w.Code != 200 {
				t.Errorf("%s: not alive", c.state)
			}
		}
		f.set(&Snapshot{At: time.Now(), State: Ready})
		time.Sleep(15 * time.Second) // of the bubble's clock
		if w := ask(s, "GET", "/readyz"); w.Code != 200 {
			t.Errorf("15 s old: %d %s", w.Code, w.Body)
		}
		time.Sleep(time.Second)
		if w := ask(s, "GET", "/readyz"); w.Code != 503 || !strings.Contains(w.Body.String(), "16s") {
			t.Errorf("16 s old: %d %s", w.Code, w.Body)
		}
	})
}

func TestFaultsNameTheParameter(t *testing.T) {
	day := 24 * time.Hour
	s := newServer(t, newFake(), Options{Retention: map[time.Duration]time.Duration{time.Second: 2 * time.Hour, 10 * time.Second: day, time.Minute: 14 * day, time.Hour: 400 * day}})
	for _, c := range []struct {
		target string
		faults []string // parameter: part of what is found or wanted
	}{
		{"summary?depndency=inventory", []string{"depndency: one of dependency"}},
		{"summary?dependency=inventory&dependency=x", []string{"dependency: 2 times"}},
		{"summary?dependency=%ff", []string{"dependency: no text"}},
		{"summary?%zz", []string{"(query): decoded"}},
		{"summary?dependency=" + strings.Repeat("x", 600), []string{"dependency: 600 bytes"}},
		{"series?measure=load_fctor", []string{"measure: load_factor"}},
		{"series?measure=arrivals,arrivals", []string{"measure: twice"}},
		{"series?measure=" + strings.Repeat("arrivals,", 20), []string{"measure: at most 16"}},
		{"series?by=moon", []string{"by: one of dependency, route, originator, peer"}},
		{"series?from=yesterday", []string{"from: 2026-11-29T20:10:32Z"}},
		{"series?from=1926-01-01T00:00:00Z", []string{"from: 2000"}},
		{"series?from=2001-01-01T00:00:00Z&to=2101-01-01T00:00:00Z", []string{"from: kept"}},
		{"series?from=-1h&to=-2h", []string{"from: before to"}},
		{"series?to=2199-12-31T00:00:00Z", []string{"from: at most"}},
		{"series?step=1500ms", []string{"step: whole seconds"}},
		{"series?step=0s", []string{"step: whole seconds"}},
		{"series?step=-5s", []string{"step: whole seconds"}},
		{"series?from=-1h&step=1s", []string{"step: 3600 points"}},
		{"series?from=-26h&step=70s", []string{"step: no longer kept"}},
		{"series?from=-399d&step=1d&limit=100&measure=arrivals,repeats", []string{"limit: 50000"}},
		{"series?limit=101", []string{"limit: from 1 to 100"}},
		{"series?limit=0&by=x&from=y", []string{"by: x", "from: y", "limit: 0"}},
		{"series?peer=a&originator=b", []string{"peer: originator"}},
		{"series?peer=a&by=originator", []string{"peer: originator"}},
		{"series?originator=a&by=peer", []string{"originator: peers"}},
		{"top", []string{"by: one of peer"}},
		{"top?by=peer&window=1h", []string{"window: one of 10s, 1m, 5m"}},
		{"top?by=peer&window=1m&from=-1h", []string{"window: beside"}},
		{"top?by=peer&route=x", []string{"route: from or to"}},
		{"top?by=question&from=-1h&peer=x", []string{"peer: several peers"}},
		{"top?by=question&from=-1h&sort=seconds", []string{"sort: excess"}},
		{"top?by=question&sort=seconds", []string{"sort: excess"}},
		{"questions/" + strings.Repeat("x", 3000), []string{"key: no key"}},
		{"questions/%ff", []string{"key: no key"}},
		{"questions/x?limit=1000", []string{"limit: from 1 to 100"}},
		{"sources?source=nosuch", []string{"source: nosuch"}},
	} {
		w := ask(s, "GET", "/api/v1/"+c.target)
		if w.Code != 400 {
			t.Errorf("%s: %d %s", c.target, w.Code, w.Body)
			continue
		}
		v := isProblem(t, w.Header(), w.Body.Bytes(), 400)
		faults := v["errors"].([]any)
		for _, want := range c.faults {
			name, text, _ := strings.Cut(want, ": ")
			found := false
			for _, f := range faults {
				found = found || at(f, "parameter") == name && strings.Contains(fmt.Sprint(at(f, "found"), " ", at(f, "wanted")), text)
			}
			if !found {
				t.Errorf("%s: no %q in %v", c.target, want, faults)
			}
		}
		if len(faults) != len(c.faults) {
			t.Errorf("%s: %v", c.target, faults)
		}
	}
	if w := ask(s, "GET", "/api/v1/questions/nosuch"); w.Code != 404 || strings.Contains(w.Body.String(), "nosuch") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Whatever stands in a query: no 500, and every error is a problem document.
func FuzzQuery(f *testing.F) {
	for _, target := range targets() {
		_, query, _ := strings.Cut(target, "?")
		f.Add(uint8(1), query)
	}
	for i, query := range []string{"from=-106751d&to=now&step=1s", "from=9999-12-31T23:59:59Z", "step=9223372036s", "measure=,,&limit=99999999999999999999",
		"by=peer&from=-0s&to=now", "from=2000-01-01T00:00:00Z&to=2199-12-31T23:59:59.999999999Z&step=31d", "%00=%00&=&;&a=%", "from=2026-11-29T13:49:31 02:00"} {
		f.Add(uint8(i), query)
	}
	paths := []string{"summary", "series", "top", "questions/k", "budgets", "alerts", "policy", "sources"}
	s := newServer(f, newFake(), Options{})
	f.Fuzz(func(t *testing.T, which uint8, query string) {
		r, err := http.NewRequest("GET", "/api/v1/"+paths[int(which)%len(paths)], nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.RawQuery = query
		w := serve(s, r)
		switch {
		case w.Code == 200:
			object(t, w.Body)
		case w.Code >= 500:
			t.Fatalf("%d %s", w.Code, w.Body)
		default:
			isProblem(t, w.Header(), w.Body.Bytes(), w.Code)
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add("qk1.web.a.x")
	f.Add("../../etc/passwd")
	f.Add("%2F\x00\xff")
	f.Add(strings.Repeat("0", 32))
	s := newServer(f, newFake(), Options{})
	f.Fuzz(func(t *testing.T, key string) {
		r, err := http.NewRequest("GET", "/api/v1/questions/"+url.PathEscape(key), nil)
		if err != nil {
			t.Skip()
		}
		w := serve(s, r)
		if w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w.Code != 200 && w.Code != 301 {
			isProblem(t, w.Header(), w.Body.Bytes(), w.Code)
		}
	})
}
