package keys

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"
)

// What a zero Config.Lifetime and Config.Skew mean.
const (
	DefaultLifetime = 24 * time.Hour
	DefaultSkew     = 5 * time.Second
)

// minSecretSize is the size of the HMAC's output: a shorter secret would be the weakest part.
const minSecretSize = 32

// Accept names one scheme that Attribute looks for.
type Accept struct {
	Scheme string // "qk1", "qk2", a claimed scheme ("idempotency-key", "traceparent", …), or "field"
	Field  string // the record's field, for Scheme "field" only
}

// Name returns the scheme's name, or the field's for a named field.
func (a Accept) Name() string {
	if a.Scheme == "field" {
		return a.Field
	}
	return a.Scheme
}

// FieldName returns the canonical name of the record's field in which keys of the
// scheme stand, "" if there is no such scheme.
func (a Accept) FieldName() string {
	switch a.Scheme {
	case "qk1", "qk2":
		return "question_key"
	case "field":
		return a.Field
	}
	return claimedSchemes[a.Scheme].field
}

// Originator is a party that authors keys.
type Originator struct {
	ID       string        // 1 to 32 of a-z, 0-9 and -
	Deadline time.Duration // how long it waits for an answer, counted from minted; 0 = not declared
	Keys     []Key         // all of them are live at once: add the new kid, mint with it, then drop the old one
}

// Key is one key of an originator: either a secret (qk1) or a public key (qk2).
type Key struct {
	KID       string // 1 to 8 of a-z and 0-9; unique within the originator, qk1 and qk2 together
	Secret    []byte // raw bytes, at least 32
	PublicKey ed25519.PublicKey
}

// String and GoString keep secrets out of whatever prints a configuration.
func (k Key) String() string {
	switch {
	case len(k.Secret) > 0:
		return "qk1 kid " + k.KID
	case len(k.PublicKey) > 0:
		return "qk2 kid " + k.KID
	}
	return "empty kid " + k.KID
}

// GoString is String.
func (k Key) GoString() string { return k.String() }

// Config says which keys are accepted and who may author them.
type Config struct {
	Accept          []Accept // in order of precedence; empty means qk1, qk2
	Originators     []Originator
	RequireVerified bool          // claimed keys are unattributable (unsigned)
	Lifetime        time.Duration // a key minted longer ago has expired; 0 means DefaultLifetime
	Skew            time.Duration // how far minted may be ahead of the start; 0 means DefaultSkew

	// VerifyPerSecond bounds the qk2 signatures that the checkers of this ring verify together per second of log time; keys
	// above it are Unchecked. 0 means no limit, which is what a replay uses.
	VerifyPerSecond int
}

// Ring is a validated set of accepted schemes and live keys. It does not change: a reload makes a new Ring, whose checkers
// start with empty caches. It is safe for concurrent use.
type Ring struct {
	accept   []Accept
	schemes  []string // the names of accept
	fields   []keyField
	names    []string // of fields
	authors  map[string]int32
	keys     []ringKey
	origins  []Originator // without keys
	unsigned bool         // claimed keys are refused
	lifetime int64        // ns
	skew     int64        // ns
	limit    limiter

	// The caches know a key by its hash under two secret seeds of this ring, so that nobody can aim at a cached verdict.
	seeds [2]maphash.Seed
}

// keyField is one record field with the accepted scheme or schemes that read it.
type keyField struct {
	name   string
	read   claimReader // nil for question_key of qk1 and qk2
	accept int         // the first entry of Config.Accept that reads it
	qk     [2]int      // for question_key: the entries of qk1 and qk2, -1 where not accepted
}

// ringKey is one key of the ring: secret for qk1, public for qk2.
type ringKey struct {
	origin int
	secret []byte
	public ed25519.PublicKey
}

// NewRing validates the configuration; the error joins every fault found and names no secret.
func NewRing(c Config) (*Ring, error) {
	r := &Ring{
		accept:   slices.Clone(c.Accept),
		authors:  make(map[string]int32),
		unsigned: c.RequireVerified,
		lifetime: int64(c.Lifetime),
		skew:     int64(c.Skew),
		limit:    limiter{perSecond: c.VerifyPerSecond},
		seeds:    [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
	if len(r.accept) == 0 {
		r.accept = []Accept{{Scheme: "qk1"}, {Scheme: "qk2"}}
	}
	if r.lifetime == 0 {
		r.lifetime = int64(DefaultLifetime)
	}
	if r.skew == 0 {
		r.skew = int64(DefaultSkew)
	}
	var faults []error
	if r.lifetime < 0 {
		faults = append(faults, fmt.Errorf("lifetime: %v is negative", c.Lifetime))
	}
	if r.skew < 0 {
		faults = append(faults, fmt.Errorf("skew: %v is negative", c.Skew))
	}
	if c.VerifyPerSecond < 0 {
		faults = append(faults, fmt.Errorf("verify_per_second: %d is negative; 0 means no limit", c.VerifyPerSecond))
	}
	faults = append(faults, r.addSchemes()...)
	faults = append(faults, r.addOriginators(c.Originators)...)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return r, nil
}

// addSchemes fills r.fields from r.accept.
func (r *Ring) addSchemes() (faults []error) {
	for i, a := range r.accept {
		r.schemes = append(r.schemes, a.Name())
		f := keyField{accept: i, name: a.FieldName(), qk: [2]int{-1, -1}}
		version := 0 // of qk1 and qk2, counted from 0
		switch a.Scheme {
		case "qk1", "qk2":
			version = int(a.Scheme[2] - '1')
			f.qk[version] = i
		case "field":
			if !validField(a.Field) {
				faults = append(faults, fmt.Errorf("accept[%d]: field is not the name of a record field (1 to 128 printable characters without blanks)", i))
				continue
			}
			f.read = freeText
		default:
			s, ok := claimedSchemes[a.Scheme]
			if !ok {
				faults = append(faults, fmt.Errorf("accept[%d]: unknown scheme %q; the schemes are %s, or {field: NAME}", i, a.Scheme, strings.Join(Schemes(), ", ")))
				continue
			}
			f.read = s.read
		}
		if a.Scheme != "field" && a.Field != "" {
			faults = append(faults, fmt.Errorf("accept[%d]: scheme %s reads its own field: remove field %q", i, a.Scheme, a.Field))
			continue
		}
		at := slices.IndexFunc(r.fields, func(g keyField) bool { return g.name == f.name })
		if at < 0 {
			r.fields = append(r.fields, f)
			r.names = append(r.names, f.name)
			continue
		}
		if g := &r.fields[at]; f.read == nil && g.read == nil && g.qk[version] < 0 {
			g.qk[version] = i // qk1 beside qk2: the prefix of the value decides
			continue
		}
		faults = append(faults, fmt.Errorf("accept[%d]: %s is never reached: accept[%d] reads the same field %s", i, a.Name(), r.fields[at].accept, f.name))
	}
	return faults
}

func validField(name string) bool {
	if len(name) < 1 || len(name) > 128 {
		return false
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] == 0x7f {
			return false
		}
	}
	return true
}

// addOriginators fills r.origins, r.keys and r.authors. An id that breaks its own syntax is not repeated in the fault: what
// stands there may be a secret pasted into the wrong place.
func (r *Ring) addOriginators(origins []Originator) (faults []error) {
	seen := make(map[string]int)
	for i, o := range origins {
		at := fmt.Sprintf("originators[%d]", i)
		if !validOriginator(o.ID) {
			faults = append(faults, fmt.Errorf("%s: id is not 1 to 32 of a-z, 0-9 and -", at))
		} else {
			at += " " + o.ID
			if first, dup := seen[o.ID]; dup {
				faults = append(faults, fmt.Errorf("%s: id is already that of originators[%d]: put all keys under one entry", at, first))
			} else {
				seen[o.ID] = i
			}
		}
		if o.Deadline < 0 {
			faults = append(faults, fmt.Errorf("%s: deadline %v is negative", at, o.Deadline))
		}
		if len(o.Keys) == 0 {
			faults = append(faults, fmt.Errorf("%s: no keys: add one with a secret or a public_key", at))
		}
		r.origins = append(r.origins, Originator{ID: o.ID, Deadline: o.Deadline})
		for j, k := range o.Keys {
			if err := r.addKey(i, o.ID, k); err != nil {
				faults = append(faults, fmt.Errorf("%s: keys[%d]%w", at, j, err))
			}
		}
	}
	return faults
}

func (r *Ring) addKey(origin int, id string, k Key) error {
	if !validKID(k.KID) {
		return errors.New(": kid is not 1 to 8 of a-z and 0-9")
	}
	author := id + "." + k.KID
	if _, dup := r.authors[author]; dup {
		return fmt.Errorf(" %s: kid is already taken: every key of an originator needs its own", k.KID)
	}
	r.authors[author] = int32(len(r.keys))
	r.keys = append(r.keys, ringKey{origin: origin, secret: bytes.Clone(k.Secret), public: bytes.Clone(k.PublicKey)})
	switch {
	case len(k.Secret) > 0 && len(k.PublicKey) > 0:
		return fmt.Errorf(" %s: has both a secret and a public_key: give them two kids", k.KID)
	case len(k.Secret) == 0 && len(k.PublicKey) == 0:
		return fmt.Errorf(" %s: has neither a secret nor a public_key", k.KID)
	case len(k.PublicKey) > 0 && len(k.PublicKey) != ed25519.PublicKeySize:
		return fmt.Errorf(" %s: public_key has %d bytes, an Ed25519 public key has %d", k.KID, len(k.PublicKey), ed25519.PublicKeySize)
	case len(k.PublicKey) > 0 && bytes.Count(k.PublicKey, k.PublicKey[:1]) == len(k.PublicKey):
		return fmt.Errorf(" %s: public_key is one repeated byte, a placeholder", k.KID)
	case len(k.PublicKey) == 0 && len(k.Secret) < minSecretSize:
		return fmt.Errorf(" %s: secret has %d bytes, at least %d are needed", k.KID, len(k.Secret), minSecretSize)
	}
	return nil
}

// Fields returns the canonical record fields whose values Attribute wants, in its order, each once.
func (r *Ring) Fields() []string { return slices.Clone(r.names) }

// Accepted returns the accepted schemes in order: what Attribution.SchemeIndex counts.
func (r *Ring) Accepted() []Accept { return slices.Clone(r.accept) }

// Originators returns the ids of the originators in order: what
// Attribution.OriginatorIndex counts.
func (r *Ring) Originators() []string {
	var ids []string
	for _, o := range r.origins {
		ids = append(ids, o.ID)
	}
	return ids
}

// Schemes returns the names of all schemes, signed ones first, without "field".
func Schemes() []string {
	names := []string{"qk1", "qk2"}
	for name := range claimedSchemes {
		names = append(names, name)
	}
	slices.Sort(names[2:])
	return names
}
