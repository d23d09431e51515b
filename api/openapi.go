package api

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

// openAPIDocument describes every route and every field of an answer; tests hold
// it to both.
//
//go:embed openapi.json
var openAPIDocument string

var openAPITag = func() string {
	sum := sha256.Sum256([]byte(openAPIDocument))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}()

func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", openAPITag)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(openAPIDocument))
}
