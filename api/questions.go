package api

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
)

// questionsAnswer is what is known of one question key: its questions by route,
// the latest first.
type questionsAnswer struct {
	Meta
	KeyHash   string           `json:"key_hash"`
	Questions []questionAnswer `json:"questions"`
}

const (
	maxKey       = 2048 // bytes of a key's text
	maxQuestions = 100
)

// questions finds a key by its text or by its hash. 32 hex digits may be either:
// a hash is looked for first. The text goes nowhere but into the hash.
func (s *Server) questions(r *http.Request, snap *Snapshot, p *params) (any, error) {
	limit := p.count("limit", 20, maxQuestions)
	// chi matches the path as it was sent where that differs from what it means.
	key, err := chi.URLParam(r, "key"), error(nil)
	if r.URL.RawPath != "" {
		key, err = url.PathUnescape(key)
	}
	if err != nil || key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		p.fault("key", "what is no key", "the text of a question key, percent-encoded, or the 32 hex digits of its hash")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	hashes := make([][16]byte, 0, 2)
	if raw, err := hex.DecodeString(key); err == nil && len(raw) == 16 {
		hashes = append(hashes, [16]byte(raw))
	}
	hashes = append(hashes, s.reader.HashKey(key))
	var all []*Dependency
	for i := range snap.Dependencies {
		all = append(all, &snap.Dependencies[i])
	}
	for _, hash := range hashes {
		found, err := s.reader.Questions(r.Context(), hash, limit)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue
		}
		a := questionsAnswer{Meta: liveMeta(snap, all), KeyHash: hex.EncodeToString(hash[:]), Questions: []questionAnswer{}}
		a.Provisional = false
		for i := range found[:min(limit, len(found))] {
			a.Questions = append(a.Questions, snap.question(&found[i]))
			a.Provisional = a.Provisional || found[i].Live
		}
		return a, nil
	}
	return nil, problem(http.StatusNotFound,
		"no question with this key is known: it was never asked, or asked once and not stored (store.questions), or is older than what is kept")
}
