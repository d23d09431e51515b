package ingest

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// tokens are the bearer tokens that are let in, hashed; without any everybody is.
type tokens [][sha256.Size]byte

func hashTokens(list [][]byte) (out tokens) {
	for _, t := range list {
		out = append(out, sha256.Sum256(t))
	}
	return out
}

// refuse says why a request is not let in; nil if it is. All tokens are compared,
// each in constant time, so that the time taken tells neither which nor how much
// matched.
func (t tokens) refuse(r *http.Request) *problem {
	if len(t) == 0 {
		return nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum, match := sha256.Sum256([]byte(strings.TrimSpace(token))), 0
	for i := range t {
		match |= subtle.ConstantTimeCompare(sum[:], t[i][:])
	}
	if strings.EqualFold(scheme, "Bearer") && match == 1 {
		return nil
	}
	p := problemf(http.StatusUnauthorized, "want one of the source's tokens, as Authorization: Bearer TOKEN")
	p.header = http.Header{"Www-Authenticate": {`Bearer realm="auditor"`}, "Connection": {"close"}}
	return p
}
