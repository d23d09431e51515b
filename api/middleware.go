package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// routeOf is the pattern of the route, which unlike the path holds no key; what
// matches none is "none".
func routeOf(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil {
		if p := c.RoutePattern(); p != "" && p != "/*" {
			return p
		}
	}
	return "none"
}

// observe counts and logs each request: by its route and never by its path or
// query, which may hold a key, nor with any header.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			status := ww.Status()
			if status == 0 {
				status = http.StatusOK
			}
			route, took := routeOf(r), time.Since(begin)
			s.metrics.observe(route, status, took)
			level := slog.LevelInfo
			if status < http.StatusBadRequest || route == "/readyz" {
				level = slog.LevelDebug // pages and probes ask every second
			}
			s.log.Log(r.Context(), level, "request", "method", methodOf(r), "route", route, "status", status,
				"bytes", ww.BytesWritten(), "seconds", took.Seconds(), "remote", r.RemoteAddr)
		}()
		next.ServeHTTP(ww, r)
	})
}

// methodOf keeps what a client invents as a method out of the log.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return r.Method
	}
	return "other"
}

// recoverPanic turns a panic into a problem without detail. What panicked is in
// the log only; a value may hold a record, so its type stands there and the stack.
func (s *Server) recoverPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			what := fmt.Sprintf("%T", v)
			if err, ok := v.(error); ok {
				what = err.Error()
			}
			s.log.Error("panic", "route", routeOf(r), "panic", what, "stack", string(debug.Stack()))
			if ww, ok := w.(middleware.WrapResponseWriter); ok && ww.Status() != 0 {
				panic(http.ErrAbortHandler) // half an answer must not look whole
			}
			for _, name := range []string{"Content-Encoding", "Content-Length", "Vary"} {
				w.Header().Del(name)
			}
			writeProblem(w, problem(http.StatusInternalServerError, ""))
		}()
		next.ServeHTTP(w, r)
	})
}

// harden sets what keeps a browser from misusing an answer.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// authorize lets in who bears one of the tokens. All of them are compared, each in
// constant time, so that the time taken tells neither which nor how much matched.
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens := s.access.Load().tokens
		if len(tokens) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		sum, match := sha256.Sum256([]byte(strings.TrimSpace(token))), 0
		for i := range tokens {
			match |= subtle.ConstantTimeCompare(sum[:], tokens[i][:])
		}
		if !strings.EqualFold(scheme, "Bearer") || match != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="auditor"`)
			writeProblem(w, problem(http.StatusUnauthorized, "want one of api.tokens, as Authorization: Bearer TOKEN"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// deadline bounds what a handler may take.
func (s *Server) deadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
