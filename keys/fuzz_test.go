package keys

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"
)

var signedForm = regexp.MustCompile(`^(qk([12])\.([a-z0-9-]{1,32})\.([a-z0-9]{1,8})\.(0|[1-9a-z][0-9a-z]{0,12})\.[A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]+)$`)

// naive says what the signed key is worth, by other means than the package: a regular expression, big integers, and the
// standard library's own comparisons.
func naive(conf Config, value string, start, uncertainty int64) Reason {
	value = strings.Trim(value, " \t")
	if value == "" || value == "-" {
		return Absent
	}
	parts := strings.Split(value, ",")
	for i := range parts {
		if parts[i] = strings.Trim(parts[i], " \t"); parts[i] != parts[0] {
			return Malformed
		}
	}
	m := signedForm.FindStringSubmatch(parts[0])
	if m == nil || strings.ContainsAny(parts[0], "\r\n") || len(value) > maxValueSize {
		return Malformed
	}
	tag, err := base64.RawURLEncoding.Strict().DecodeString(m[6])
	if err != nil || len(tag) != map[string]int{"1": 16, "2": 64}[m[2]] {
		return Malformed
	}
	minted, _ := new(big.Int).SetString(m[5], 36)
	if !minted.IsInt64() {
		return Malformed
	}
	var key *Key
	for _, o := range conf.Originators {
		for i, k := range o.Keys {
			if o.ID == m[3] && k.KID == m[4] && (len(k.Secret) > 0) == (m[2] == "1") {
				key = &o.Keys[i]
			}
		}
	}
	if key == nil {
		return UnknownOriginator
	}
	if m[2] == "1" {
		mac := hmac.New(sha256.New, key.Secret)
		mac.Write([]byte(m[1]))
		if !hmac.Equal(mac.Sum(nil)[:16], tag) {
			return Forged
		}
	} else if !ed25519.Verify(key.PublicKey, []byte(m[1]), tag) {
		return Forged
	}
	age := new(big.Int).Sub(big.NewInt(start), new(big.Int).Mul(minted, big.NewInt(1e6)))
	slack := big.NewInt(max(uncertainty, 0))
	if age.Cmp(new(big.Int).Add(big.NewInt(int64(24*time.Hour)), slack)) > 0 {
		return Expired
	}
	if age.Neg(age).Cmp(new(big.Int).Add(big.NewInt(int64(5*time.Second)), slack)) > 0 {
		return NotYetValid
	}
	return None
}

// FuzzAttribute holds Attribute to the naive reading of signed keys, asks twice (the second answer is remembered), and
// looks at what claimed schemes let through.
func FuzzAttribute(f *testing.F) {
	for _, text := range []string{vectorWeb, vectorBatch, vectorEd, vectorWeb + ", " + vectorWeb, vectorWeb[:40], "-", "", "qk1.", "qk1.....", " ,",
		qk1Text("web", "b", "0", "AAECAwQFBgcICQoL", secretB), qk1Text("web", "a", "1y2p0ij32e8e7", "AAECAwQFBgcICQoL", secretA)} {
		f.Add(text, "", false, int64(vectorStart), int64(0))
	}
	for _, text := range []string{`"a\"b"`, `"K", "K"`, "6f9619ff-8b86-d011-b42d-00c04fc964ff", "gl-go/1 gccl-invocation-id/6f9619ff-8b86-d011-b42d-00c04fc964ff",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "job7:1f2e:fs9::s1:RD:0", "a\uFFFD", `"`, `"\`} {
		f.Add("", text, true, int64(0), int64(time.Second))
	}
	conf := fixedConfig()
	signed := mustRing(f, conf).newChecker(1, 1)
	claimed := make(map[string]*Checker)
	for name := range claimedSchemes {
		claimed[name] = mustRing(f, Config{Accept: []Accept{{Scheme: name}}}).newChecker(1, 1)
	}
	claimed["field"] = mustRing(f, Config{Accept: []Accept{{"field", "my_id"}}}).newChecker(1, 1)

	f.Fuzz(func(t *testing.T, key, claim string, suspect bool, start, uncertainty int64) {
		for range 2 {
			value := []byte(key)
			a := signed.Attribute([][]byte{value}, false, start, uncertainty)
			if want := naive(conf, key, start, uncertainty); a.Reason != want || (a.Class == Verified) != (want == None) {
				t.Fatalf("%q at %d ± %d: %v %q, want %q", key, start, uncertainty, a.Class, a.Reason, want)
			}
			if a.Class == Verified && naive(conf, string(a.Key), start, uncertainty) != None || string(value) != key {
				t.Fatalf("%q gives %q", key, a.Key)
			}
		}
		for name, c := range claimed {
			value := []byte(claim)
			a := c.Attribute([][]byte{value}, suspect, start, uncertainty)
			if string(value) != claim {
				t.Fatalf("%s changed %q", name, claim)
			}
			if (a.Class == Claimed) != (a.Reason == None) || a.Class == Verified || (a.Key != nil) != (a.Reason == None) {
				t.Fatalf("%s: %q: %+v", name, claim, a)
			}
			if a.Class != Claimed {
				continue
			}
			if suspect || len(a.Key) == 0 || len(a.Key) > maxFreeSize || bytes.ContainsAny(a.Key, "\x00\r\n\x7f") || bytes.Contains(a.Key, []byte("\uFFFD")) {
				t.Fatalf("%s: %q gives %q, suspect %v", name, claim, a.Key, suspect)
			}
			// A value is the same question when a proxy doubles it.
			first := string(a.Key)
			if double := claim + ", " + claim; len(double) <= maxValueSize {
				if b := c.Attribute([][]byte{[]byte(double)}, false, start, uncertainty); b.Class != Claimed || string(b.Key) != first {
					t.Fatalf("%s: %q doubled: %q %q, want %q", name, claim, b.Reason, b.Key, first)
				}
			}
		}
	})
}
