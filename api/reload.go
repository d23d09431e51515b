package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Reloaded is what a reload has changed.
type Reloaded struct {
	// Changed are the keys whose values are others than before.
	Changed []string
	// Recounts says that records are read or identified differently, so that what is
	// not final is counted anew.
	Recounts bool
}

// Reload is how the latest reload went. The start counts as one.
type Reload struct {
	Failed bool
	// At is when one last succeeded.
	At time.Time
}

type reloadAnswer struct {
	Changed  []string `json:"changed"`
	Recounts bool     `json:"recounts"`
}

// reloadTime bounds how long a client is answered after; the reload itself goes on.
const reloadTime = 2 * time.Minute

// reloadConfig hands POST /-/reload on. A page that a browser shows from elsewhere
// cannot ask for it.
func (s *Server) reloadConfig(w http.ResponseWriter, r *http.Request) {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		writeProblem(w, problem(http.StatusForbidden, "a page from elsewhere asks for this"))
		return
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(reloadTime + writeSlack)) // or it is as it was
	ctx, cancel := context.WithTimeout(r.Context(), reloadTime)
	defer cancel()
	done, err := s.reload(ctx)
	switch {
	case errors.Is(err, ErrUnavailable):
		writeProblem(w, problem(http.StatusServiceUnavailable, err.Error()))
		return
	case err != nil:
		writeProblem(w, problem(http.StatusUnprocessableEntity, err.Error()))
		return
	}
	body, err := json.Marshal(reloadAnswer{append([]string{}, done.Changed...), done.Recounts})
	if err != nil {
		s.fail(w, r, fmt.Errorf("print the answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(append(body, '\n'))
}
