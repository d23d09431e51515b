package lab

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
)

// keyDropped is the key of a request that carries none.
const keyDropped = ^uint64(0)

// kid names the one secret of every originator.
const kid = "lab"

// secretOf is an originator's secret. It is public, and protects nothing.
func secretOf(originator string) string {
	return "lab-secret-of-" + originator + "-public-and-not-for-production"
}

// signer writes keys. keys.Minter does the same with chance from the system; here
// the same seed must give the same bytes.
type signer struct {
	originator string
	seed       uint64
	mac, other hash.Hash // under its secret, and under one that nobody knows
	sum        []byte
}

func newSigner(originator string, seed uint64) *signer {
	return &signer{originator: originator, seed: seed,
		mac: hmac.New(sha256.New, []byte(secretOf(originator))), other: hmac.New(sha256.New, []byte("of a layer that mints keys it has no right to"))}
}

// qk1 appends a key by its definition: qk1.originator.kid.minted.nonce.tag. n is
// different for each.
func (s *signer) qk1(b []byte, n uint64, minted int64, forged bool) []byte {
	from := len(b)
	b = append(b, "qk1."...)
	b = append(b, s.originator...)
	b = append(b, "."+kid+"."...)
	b = strconv.AppendInt(b, minted, 36)
	b = append(b, '.')
	nonce := s.nonce(n)
	b = base64.RawURLEncoding.AppendEncode(b, nonce[:12])
	mac := s.mac
	if forged {
		mac = s.other
	}
	mac.Reset()
	mac.Write(b[from:])
	s.sum = mac.Sum(s.sum[:0])
	b = append(b, '.')
	return base64.RawURLEncoding.AppendEncode(b, s.sum[:16])
}

// uuid appends a random UUID, as x-request-id is.
func (s *signer) uuid(b []byte, n uint64) []byte {
	u := s.nonce(n)
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	for i, part := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

// nonce looks like chance, and is the same for the same n.
func (s *signer) nonce(n uint64) (b [16]byte) {
	binary.BigEndian.PutUint64(b[:], mix(s.seed^n))
	binary.BigEndian.PutUint64(b[8:], mix(n+s.seed<<17))
	return b
}

// mix spreads a number over 64 bits (SplitMix64's finalizer, Steele et al. 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
