package keys

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// A Minter authors question keys for one originator: qk1 with a Secret, qk2 with a PrivateKey. Exactly one must be set. It
// is safe for concurrent use while its fields are left alone.
type Minter struct {
	Originator string
	KID        string
	Secret     []byte
	PrivateKey ed25519.PrivateKey
}

// String and GoString keep the secret out of whatever prints a Minter.
func (m Minter) String() string { return "minter " + m.Originator + "." + m.KID }

// GoString is String.
func (m Minter) GoString() string { return m.String() }

// Mint returns a new key minted at the time given. Every call is a new question.
func (m *Minter) Mint(now time.Time) (string, error) {
	switch {
	case !validOriginator(m.Originator):
		return "", errors.New("mint key: the originator is not 1 to 32 of a-z, 0-9 and -")
	case !validKID(m.KID):
		return "", errors.New("mint key: the kid is not 1 to 8 of a-z and 0-9")
	case (len(m.Secret) > 0) == (len(m.PrivateKey) > 0):
		return "", errors.New("mint key: exactly one of a secret and a private key is needed")
	case len(m.PrivateKey) == 0 && len(m.Secret) < minSecretSize:
		return "", fmt.Errorf("mint key: the secret has %d bytes, at least %d are needed", len(m.Secret), minSecretSize)
	case len(m.PrivateKey) > 0 && len(m.PrivateKey) != ed25519.PrivateKeySize:
		return "", fmt.Errorf("mint key: the private key has %d bytes, an Ed25519 private key has %d", len(m.PrivateKey), ed25519.PrivateKeySize)
	}
	minted := now.UnixMilli()
	if minted < 0 || minted > math.MaxInt64/nsPerMS {
		return "", errors.New("mint key: the clock is outside the years 1970 to 2262")
	}
	var nonce [nonceSize * 6 / 8]byte
	rand.Read(nonce[:]) // never fails

	text := make([]byte, 0, maxTextSize)
	text = append(text, "qk1."...)
	if len(m.PrivateKey) > 0 {
		text[2] = '2'
	}
	text = append(text, m.Originator...)
	text = append(text, '.')
	text = append(text, m.KID...)
	text = append(text, '.')
	text = strconv.AppendInt(text, minted, 36)
	text = append(text, '.')
	text = base64.RawURLEncoding.AppendEncode(text, nonce[:])
	var tag []byte
	if len(m.PrivateKey) > 0 {
		tag = ed25519.Sign(m.PrivateKey, text)
	} else {
		mac := hmac.New(sha256.New, m.Secret)
		mac.Write(text)
		tag = mac.Sum(nil)[:sha256.Size/2]
	}
	text = append(text, '.')
	return string(base64.RawURLEncoding.AppendEncode(text, tag)), nil
}

// NewQuestion mints a key and returns a context that carries it. Call it once per question, where the question begins and
// above every retry loop; never in a transport, an interceptor or a retry's body: each try would then look like a question
// of its own, proven and new, and the amplification like 1.
//
// A key that the context already carries is replaced: that begins a question of one's own. Whoever serves somebody else's
// question must not call it, but carry the incoming key on with WithKey.
func (m *Minter) NewQuestion(ctx context.Context) (context.Context, error) {
	key, err := m.Mint(time.Now())
	if err != nil {
		return ctx, err
	}
	return WithKey(ctx, key), nil
}

type contextKey struct{}

// WithKey returns a context that carries an incoming key on, unchanged and whatever its form: judging it is the target's
// business. An empty key carries nothing.
func WithKey(ctx context.Context, key string) context.Context {
	if key == "" {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, key)
}

// FromContext returns the key that the context carries.
func FromContext(ctx context.Context) (string, bool) {
	key, ok := ctx.Value(contextKey{}).(string)
	return key, ok
}
