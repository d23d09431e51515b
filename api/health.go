package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// healthAnswer says that the process answers, and no more: an instance that
// cannot count must not be restarted for it.
type healthAnswer struct {
	Status string `json:"status"`
}

// readyAnswer says whether figures can be had here, and why not.
type readyAnswer struct {
	Ready   bool     `json:"ready"`
	State   State    `json:"state"`
	Reasons []string `json:"reasons"`
	At      instant  `json:"at"`
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeState(w, http.StatusOK, healthAnswer{"ok"})
}

// readyz is 200 for an instance that answers for what it has to: a standby with
// stored figures, one that is warming with what it has seen.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	snap := s.reader.Snapshot()
	a := readyAnswer{State: snap.State, Reasons: append([]string{}, snap.Reasons...), At: instant(snap.At)}
	switch snap.State {
	case Ready, Warming, Standby:
		a.Ready = true
	default:
		a.Reasons = append(a.Reasons, reasons[snap.State])
	}
	if age := time.Since(snap.At); snap.State != Starting && age > s.staleAfter {
		a.Ready = false
		a.Reasons = append(a.Reasons, fmt.Sprintf("the figures stand still since %s", shortDuration(age.Truncate(time.Second))))
	}
	status := http.StatusOK
	if !a.Ready {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "5")
	}
	writeState(w, status, a)
}

// reasons are what a state by itself says.
var reasons = map[State]string{
	Starting:         "no record is read yet",
	Rebuilding:       "re-reading what the ledger has to know: figures are not of now",
	StoreUnavailable: "the store cannot be written to: live figures go on, offsets wait",
	Stalled:          "stored figures and metrics stand still",
	Failed:           "no source can be read: see /api/v1/sources",
}

func writeState(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}
