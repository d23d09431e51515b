package api

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// answer is a handler of the JSON part: what it returns is printed, an error is
// turned into a problem.
type answer func(r *http.Request, snap *Snapshot, p *params) (any, error)

// routes is the whole surface. Every route takes GET, HEAD and OPTIONS, but /-/reload
// takes POST.
func (s *Server) routes() http.Handler {
	m := chi.NewRouter()
	m.Use(s.observe, s.recoverPanic, harden)
	page := middleware.Compress(5, "text/html", "text/css", "text/javascript", "application/javascript", "image/svg+xml")(http.HandlerFunc(s.servePage))
	m.NotFound(func(w http.ResponseWriter, r *http.Request) {
		if s.page != nil && !strings.HasPrefix(r.URL.Path, "/api/") && reads(r.Method) {
			page.ServeHTTP(w, r)
			return
		}
		writeProblem(w, problem(http.StatusNotFound, "no such resource: see /openapi.json"))
	})
	m.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/-/reload" {
			w.Header().Set("Allow", http.MethodPost)
			writeProblem(w, problem(http.StatusMethodNotAllowed, "the configuration is read anew by POST"))
			return
		}
		w.Header().Set("Allow", allow)
		writeProblem(w, problem(http.StatusMethodNotAllowed, "this API only reads"))
	})

	// Open to everybody: probes have no token, and these hold no figure.
	get(m, "/healthz", s.healthz)
	get(m, "/readyz", s.readyz)
	get(m, "/openapi.json", s.openAPI)
	if s.page != nil {
		get(m, "/", page.ServeHTTP)
	}

	m.Group(func(m chi.Router) {
		m.Use(s.authorize)
		if s.reload != nil {
			m.Post("/-/reload", s.reloadConfig)
		}
		// Bounds itself, and lasts.
		get(m, "/api/v1/stream", s.stream)
		// Compresses by itself.
		get(m, "/metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
			ErrorLog: metricsLog{s.log}, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
			MaxRequestsInFlight: 4, Timeout: s.timeout,
		}).ServeHTTP)
		m.Group(func(m chi.Router) {
			m.Use(s.deadline, middleware.Compress(5, "application/json", "application/problem+json"))
			for pattern, a := range map[string]answer{
				"/api/v1/summary":         s.summary,
				"/api/v1/series":          s.series,
				"/api/v1/top":             s.top,
				"/api/v1/questions/{key}": s.questions,
				"/api/v1/budgets":         s.budgets,
				"/api/v1/alerts":          s.alerts,
				"/api/v1/policy":          s.policy,
				"/api/v1/sources":         s.sources,
			} {
				get(m, pattern, s.json(a))
			}
		})
	})
	return m
}

const allow = "GET, HEAD, OPTIONS"

func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// get registers a route that reads.
func get(m chi.Router, pattern string, h http.HandlerFunc) {
	m.Get(pattern, h)
	m.Head(pattern, h)
	m.Options(pattern, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		w.WriteHeader(http.StatusNoContent)
	})
}

// json prints what a handler answers.
func (s *Server) json(a answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := a(r, s.reader.Snapshot(), parseParams(r.URL.RawQuery))
		var body []byte
		if err == nil {
			if body, err = json.Marshal(v); err != nil {
				err = fmt.Errorf("print the answer: %w", err)
			}
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.Write(append(body, '\n'))
	}
}

// fail answers with the problem that an error is, and logs what the client is not
// told.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, surprising := problemOf(err)
	if surprising {
		s.log.Error("request failed", "route", routeOf(r), "error", err)
	}
	writeProblem(w, p)
}

// pagePolicy lets the page load its own files and ask this API, and nothing else: no
// script or style within HTML, and no text that becomes HTML.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// servePage serves the files of the page; what is none of them is not found.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	if info, err := fs.Stat(s.page, name); err != nil || info.IsDir() {
		writeProblem(w, problem(http.StatusNotFound, "no such file"))
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	http.ServeFileFS(w, r, s.page, name)
}
