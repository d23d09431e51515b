package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Problem is an error as RFC 9457 has it. Status is the response's; Errors name
// each faulty parameter.
type Problem struct {
	Type   string  `json:"type"`
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail,omitempty"`
	Errors []Fault `json:"errors,omitempty"`
}

// Fault is one thing wrong with a request: what was found in a parameter, and
// what is wanted there.
type Fault struct {
	Parameter string `json:"parameter"`
	Found     string `json:"found"`
	Wanted    string `json:"wanted"`
}

func (p *Problem) Error() string { return p.Title }

// problem is a problem whose type says no more than its status.
func problem(status int, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// badRequest is the problem of faulty parameters.
func badRequest(faults []Fault) *Problem {
	p := problem(http.StatusBadRequest, "")
	for i, f := range faults {
		if i > 0 {
			p.Detail += "; "
		}
		p.Detail += fmt.Sprintf("%s: found %s, want %s", f.Parameter, f.Found, f.Wanted)
	}
	p.Errors = faults
	return p
}

// problemOf turns any error into what the client is told. Of an error that it
// does not know it tells nothing: it may name hosts or hold a record. surprising
// says that the operator should be told of it.
func problemOf(err error) (p *Problem, surprising bool) {
	switch {
	case errors.As(err, &p):
		return p, false
	case errors.Is(err, ErrTooMany):
		return problem(http.StatusBadRequest, "the range holds more rows than can be read at once: "+
			"ask for a shorter range, a longer step, or one dependency, route, originator or peer"), false
	case errors.Is(err, ErrUnavailable):
		return problem(http.StatusServiceUnavailable, "the store cannot be reached now; live figures (summary, top with window) do not need it"), true
	case errors.Is(err, context.DeadlineExceeded):
		return problem(http.StatusGatewayTimeout, "the store took too long: ask for a shorter range"), true
	case errors.Is(err, context.Canceled):
		return problem(statusClientGone, ""), false
	}
	return problem(http.StatusInternalServerError, ""), true
}

// statusClientGone stands in the request log for a client that did not wait.
const statusClientGone = 499

// writeProblem answers with a problem.
func writeProblem(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	switch p.Status {
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "5")
	case statusClientGone:
		p.Title = "Client Closed Request"
	}
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"type":"about:blank","title":"Internal Server Error","status":500}`)
	}
	w.WriteHeader(p.Status)
	w.Write(append(body, '\n'))
}

// clip quotes what a client sent so that it can be shown: valid and short.
func clip(s string) string {
	const most = 64
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > most {
		cut := most
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return fmt.Sprintf("%q", s)
}
