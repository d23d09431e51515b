package keys

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
)

// Generated is new key material for one kid of one originator, as text.
type Generated struct {
	Originator string
	KID        string

	// Secret is that of a qk1 key: 43 printable characters with 256 bits of chance in them. The characters themselves are
	// the secret, on both sides: nobody decodes them.
	Secret string

	// PrivateKey and PublicKey are those of a qk2 key in base64url without padding: the 32-byte seed and the 32-byte point,
	// which are also the d and x of a JSON Web Key. The private one stays with the originator.
	PrivateKey string
	PublicKey  string
}

// NewSecret makes a secret for qk1.
func NewSecret(originator, kid string) (Generated, error) {
	g := Generated{Originator: originator, KID: kid}
	if err := g.validate(); err != nil {
		return Generated{}, err
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	g.Secret = base64.RawURLEncoding.EncodeToString(secret[:])
	return g, nil
}

// NewEd25519 makes a key pair for qk2.
func NewEd25519(originator, kid string) (Generated, error) {
	g := Generated{Originator: originator, KID: kid}
	if err := g.validate(); err != nil {
		return Generated{}, err
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return Generated{}, fmt.Errorf("generate key: %w", err)
	}
	g.PrivateKey = base64.RawURLEncoding.EncodeToString(private.Seed())
	g.PublicKey = base64.RawURLEncoding.EncodeToString(public)
	return g, nil
}

func (g Generated) validate() error {
	if !validOriginator(g.Originator) {
		return errors.New("generate key: the originator is not 1 to 32 of a-z, 0-9 and -")
	}
	if !validKID(g.KID) {
		return errors.New("generate key: the kid is not 1 to 8 of a-z and 0-9")
	}
	return nil
}

// YAML returns the target's side as an originators.yaml of its own, or to be merged into one. It holds the secret of a qk1
// key, and only the public half of a qk2 key.
func (g Generated) YAML() string {
	material := "secret: " + `"` + g.Secret + `"`
	if g.PublicKey != "" {
		material = "public_key: " + `"` + g.PublicKey + `"`
	}
	// Ids are quoted: YAML would read an originator named no, or a kid named 1, as something else.
	return fmt.Sprintf("originators:\n  - id: \"%s\"\n    keys:\n      - {kid: \"%s\", %s}\n", g.Originator, g.KID, material)
}

// Minter returns the originator's side.
func (g Generated) Minter() (*Minter, error) {
	m := &Minter{Originator: g.Originator, KID: g.KID}
	if g.PrivateKey == "" {
		m.Secret = []byte(g.Secret)
		return m, nil
	}
	var err error
	m.PrivateKey, err = ParsePrivateKey(g.PrivateKey)
	return m, err
}

// ParsePublicKey reads a public_key of originators.yaml: 32 bytes in base64url, padded or not.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	raw, err := decode32(text)
	if err != nil {
		return nil, fmt.Errorf("parse public key: %w", err)
	}
	return ed25519.PublicKey(raw), nil
}

// ParsePrivateKey reads the private key that NewEd25519 makes: the 32-byte seed in base64url, padded or not.
func ParsePrivateKey(text string) (ed25519.PrivateKey, error) {
	seed, err := decode32(text)
	if err != nil {
		return nil, fmt.Errorf("parse private key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// decode32 never repeats its input, which may be a secret.
func decode32(text string) ([]byte, error) {
	if len(text) == 44 && text[43] == '=' {
		text = text[:43]
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errors.New("not base64url")
	}
	if len(raw) != 32 {
		return nil, fmt.Errorf("%d bytes where 32 are needed", len(raw))
	}
	return raw, nil
}
