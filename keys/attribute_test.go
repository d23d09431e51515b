package keys

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fixed material. The Ed25519 seed and public key are those of RFC 8032, section 7.1, test 1.
const (
	secretA   = "0123456789abcdef0123456789abcdef"
	secretB   = "fedcba9876543210fedcba9876543210"
	secretK9  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghij"
	seedHex   = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
	publicHex = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
)

// Vectors that this package had no part in. minted is 2026-01-01T00:00:00.123Z, in base 36 by a three-line Python loop; the
// nonce of the first and the third is the bytes 0 to 11. The tags come from the shell:
//
//	printf %s "$before_last_dot" | openssl dgst -sha256 -mac HMAC -macopt key:$secret -binary | head -c16 | base64
//	printf %s "$before_last_dot" >m; openssl pkeyutl -sign -inkey ed.pem -rawin -in m | base64 -w0
//
// with + and / turned into - and _ and the padding removed (OpenSSL 3.0.19).
const (
	vectorMinted = 1767225600123
	vectorWeb    = "qk1.web.a.mjuohs3f.AAECAwQFBgcICQoL.aeXUVVFEFy4wOdgeQAZjLw"
	vectorBatch  = "qk1.nightly-batch-2.k9.mjuohs3f._-_-_-_-_-_-_-_-.eXNTy23KHol3tGz-61XLJQ"
	vectorEd     = "qk2.web.e.mjuohs3f.AAECAwQFBgcICQoL.8Uf6z1MEWezukrr3kzUUBQCDQ6I9J0c4bht3SPIDik-hunxzYAe4luT5czKpzYWe86uC3u28uI0X10gWM3ywDA"
)

const vectorStart = vectorMinted*nsPerMS + 250*int64(time.Millisecond)

func fixedConfig() Config {
	public, _ := hex.DecodeString(publicHex)
	return Config{Originators: []Originator{
		{ID: "web", Deadline: 20 * time.Second, Keys: []Key{
			{KID: "a", Secret: []byte(secretA)}, {KID: "b", Secret: []byte(secretB)}, {KID: "e", PublicKey: public}}},
		{ID: "nightly-batch-2", Deadline: time.Hour, Keys: []Key{{KID: "k9", Secret: []byte(secretK9)}}},
	}}
}

func mustRing(t testing.TB, c Config) *Ring {
	t.Helper()
	r, err := NewRing(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// one attributes a single value; the ring must read a single field.
func one(c *Checker, value string, start int64) Attribution {
	return c.Attribute([][]byte{[]byte(value)}, false, start, 0)
}

// qk1Text mints by hand.
func qk1Text(originator, kid, minted, nonce, secret string) string {
	text := "qk1." + originator + "." + kid + "." + minted + "." + nonce
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

func qk2Text(originator, kid, minted, nonce string) string {
	seed, _ := hex.DecodeString(seedHex)
	text := "qk2." + originator + "." + kid + "." + minted + "." + nonce
	sig := ed25519.Sign(ed25519.NewKeyFromSeed(seed), []byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func TestVectors(t *testing.T) {
	c := mustRing(t, fixedConfig()).NewChecker()
	for _, v := range []struct {
		text, scheme, originator string
		index                    int
		deadline                 time.Duration
	}{
		{vectorWeb, "qk1", "web", 0, 20 * time.Second},
		{vectorBatch, "qk1", "nightly-batch-2", 1, time.Hour},
		{vectorEd, "qk2", "web", 0, 20 * time.Second},
	} {
		for _, round := range []string{"first arrival", "remembered"} {
			a := one(c, v.text, vectorStart)
			if a.Class != Verified || a.Reason != None || a.Scheme != v.scheme || a.Originator != v.originator ||
				a.OriginatorIndex != v.index || a.Minted != vectorMinted || a.Deadline != v.deadline || string(a.Key) != v.text {
				t.Errorf("%s: %s: %+v", v.text, round, a)
			}
		}
	}
}

// The words are a contract with reports and metrics.
func TestWords(t *testing.T) {
	want := []string{"", "absent", "malformed", "unknown_originator", "forged", "expired", "not_yet_valid", "unsigned", "unchecked", "late"}
	for i, w := range want {
		if got := Reason(i).String(); got != w {
			t.Errorf("reason %d is %q, want %q", i, got, w)
		}
	}
	if NumReasons != len(want) {
		t.Errorf("NumReasons is %d", NumReasons)
	}
	for c, w := range map[Class]string{Unattributable: "unattributable", Claimed: "claimed", Verified: "verified"} {
		if c.String() != w {
			t.Errorf("class %d is %q, want %q", c, c.String(), w)
		}
	}
}

func TestSignedReasons(t *testing.T) {
	const nonce = "AAECAwQFBgcICQoL"
	sig := func(text string) string { return text[strings.LastIndexByte(text, '.')+1:] }
	changed := func(text string, at int, to byte) string {
		if text[at] == to {
			t.Fatalf("%q has %q at %d already", text, to, at)
		}
		return text[:at] + string(to) + text[at+1:]
	}
	last := len(vectorWeb) - 1
	flip := byte('A')
	if vectorWeb[last] == 'A' {
		flip = 'Q'
	}
	cases := []struct {
		name, text string
		want       Reason
	}{
		{"empty", "", Absent},
		{"blank", " \t ", Absent},
		{"dash", "-", Absent},
		{"dash in blanks", " - ", Absent},
		{"good, in blanks", " " + vectorWeb + "\t", None},

		{"joined by a proxy", vectorWeb + ", " + vectorWeb, None},
		{"joined three times without blanks", vectorWeb + "," + vectorWeb + "," + vectorWeb, None},
		{"joined signature", vectorEd + ", " + vectorEd, None},
		{"two different keys", vectorWeb + ", " + vectorBatch, Malformed},
		{"trailing comma", vectorWeb + ",", Malformed},
		{"leading comma", ", " + vectorWeb, Malformed},
		{"only commas", ",,", Malformed},
		{"joined with a semicolon", vectorWeb + ";" + vectorWeb, Malformed},

		{"neither prefix", "hello", Malformed},
		{"upper-case prefix", "QK1" + vectorWeb[3:], Malformed},
		{"unknown version", "qk3" + vectorWeb[3:], Malformed},
		{"only the prefix", "qk1.", Malformed},
		{"prefix without dot", "qk1", Malformed},
		{"quoted", `"` + vectorWeb + `"`, Malformed},
		{"redacted", "REDACTED", Malformed},
		{"damaged", strings.Replace(vectorWeb, "AAEC", "A\uFFFDC", 1), Malformed},
		{"cut by one", vectorWeb[:last], Malformed},
		{"cut signature", vectorEd[:len(vectorEd)-1], Malformed},
		{"one more", vectorWeb + "A", Malformed},
		{"padded tag", vectorWeb + "==", Malformed},
		{"seventh part", vectorWeb + ".x", Malformed},
		{"five parts", vectorWeb[:strings.LastIndexByte(vectorWeb, '.')], Malformed},
		{"stray trailing bits", vectorWeb[:last] + string(base64Alphabet[base64Value[vectorWeb[last]]|1]), Malformed},
		{"stray trailing bits of a signature", vectorEd[:len(vectorEd)-1] + "B", Malformed},
		{"standard base64", changed(vectorWeb, last-3, '+'), Malformed},
		{"qk1 with a signature", "qk1.web.a.mjuohs3f." + nonce + "." + sig(vectorEd), Malformed},
		{"qk2 with a tag", "qk2.web.e.mjuohs3f." + nonce + "." + sig(vectorWeb), Malformed},
		{"short nonce", qk1Text("web", "a", "mjuohs3f", nonce[1:], secretA), Malformed},
		{"long nonce", qk1Text("web", "a", "mjuohs3f", nonce+"A", secretA), Malformed},
		{"nonce outside the alphabet", qk1Text("web", "a", "mjuohs3f", nonce[1:]+"=", secretA), Malformed},
		{"no originator", qk1Text("", "a", "mjuohs3f", nonce, secretA), Malformed},
		{"upper-case originator", qk1Text("Web", "a", "mjuohs3f", nonce, secretA), Malformed},
		{"underscore in originator", qk1Text("we_b", "a", "mjuohs3f", nonce, secretA), Malformed},
		{"long originator", qk1Text(strings.Repeat("w", 33), "a", "mjuohs3f", nonce, secretA), Malformed},
		{"no kid", qk1Text("web", "", "mjuohs3f", nonce, secretA), Malformed},
		{"long kid", qk1Text("web", "aaaaaaaaa", "mjuohs3f", nonce, secretA), Malformed},
		{"dash in kid", qk1Text("web", "a-b", "mjuohs3f", nonce, secretA), Malformed},
		{"no minted", qk1Text("web", "a", "", nonce, secretA), Malformed},
		{"leading zero", qk1Text("web", "a", "0mjuohs3f", nonce, secretA), Malformed},
		{"upper-case minted", qk1Text("web", "a", "MJUOHS3F", nonce, secretA), Malformed},
		{"signed minted", qk1Text("web", "a", "-mjuohs3f", nonce, secretA), Malformed},
		{"minted over 63 bits", qk1Text("web", "a", "1y2p0ij32e8e8", nonce, secretA), Malformed},
		{"minted of 13 z", qk1Text("web", "a", "zzzzzzzzzzzzz", nonce, secretA), Malformed},
		{"minted of 14 digits", qk1Text("web", "a", "10000000000000", nonce, secretA), Malformed},

		{"unknown originator", qk1Text("bff", "a", "mjuohs3f", nonce, secretA), UnknownOriginator},
		{"unknown kid", qk1Text("web", "c", "mjuohs3f", nonce, secretA), UnknownOriginator},
		{"longest ids, unknown", qk1Text(strings.Repeat("w", 32), "aaaaaaaa", "mjuohs3f", nonce, secretA), UnknownOriginator},
		{"kid of another originator", qk1Text("web", "k9", "mjuohs3f", nonce, secretK9), UnknownOriginator},
		{"qk1 by the kid of a public key", qk1Text("web", "e", "mjuohs3f", nonce, secretA), UnknownOriginator},
		{"qk1 keyed with the public key", qk1Text("web", "e", "mjuohs3f", nonce, string(fixedConfig().Originators[0].Keys[2].PublicKey)), UnknownOriginator},
		{"qk2 by the kid of a secret", qk2Text("web", "a", "mjuohs3f", nonce), UnknownOriginator},

		{"second live kid", qk1Text("web", "b", "mjuohs3f", nonce, secretB), None},
		{"the other kid's secret", qk1Text("web", "b", "mjuohs3f", nonce, secretA), Forged},
		{"nonce changed", changed(vectorWeb, last-30, 'z'), Forged},
		{"minted changed", strings.Replace(vectorWeb, "mjuohs3f", "mjuohs3g", 1), Forged},
		{"tag changed", changed(vectorWeb, last-5, 'z'), Forged},
		{"last bits of the tag changed", changed(vectorWeb, last, flip), Forged},
		{"originator changed", strings.Replace(vectorBatch, "nightly-batch-2.k9", "web.a", 1), Forged},
		{"signature changed", changed(vectorEd, len(vectorEd)-5, 'z'), Forged},
		{"signed text changed", strings.Replace(vectorEd, "AAEC", "BAEC", 1), Forged},

		{"minted in 1970", qk1Text("web", "a", "0", nonce, secretA), Expired},
		{"minted beyond nanoseconds", qk1Text("web", "a", "zzzzzzzzz", nonce, secretA), NotYetValid},
		{"largest minted", qk1Text("web", "a", "1y2p0ij32e8e7", nonce, secretA), NotYetValid},
		{"forged and expired", qk1Text("web", "a", "0", nonce, secretB), Forged},
		{"forged and not yet valid", qk1Text("web", "a", "zzzzzzzzz", nonce, secretB), Forged},
		{"unknown and expired", qk1Text("bff", "a", "0", nonce, secretA), UnknownOriginator},
		{"malformed and unknown", qk1Text("bff", "a", "mjuohs3f", nonce[1:], secretA), Malformed},
	}
	c := mustRing(t, fixedConfig()).NewChecker()
	for _, k := range cases {
		for _, round := range []string{"first", "again"} {
			a := one(c, k.text, vectorStart)
			if a.Reason != k.want || (a.Class == Verified) != (k.want == None) || a.Class == Claimed {
				t.Errorf("%s, %s: %v %q, want %q", k.name, round, a.Class, a.Reason, k.want)
			}
			if (a.Key != nil) != (k.want == None) {
				t.Errorf("%s, %s: key %q", k.name, round, a.Key)
			}
			if proven := k.want == None || k.want == Expired || k.want == NotYetValid; (a.OriginatorIndex >= 0) != proven || (a.Originator != "") != proven {
				t.Errorf("%s, %s: originator %q (%d)", k.name, round, a.Originator, a.OriginatorIndex)
			}
			if (a.SchemeIndex < 0) != (k.want == Absent) || (a.Scheme == "") != (k.want == Absent) {
				t.Errorf("%s, %s: scheme %q (%d)", k.name, round, a.Scheme, a.SchemeIndex)
			}
		}
	}
}

// Every single-character change of a genuine key leaves nothing verified: a key has exactly one text.
func TestNoSecondText(t *testing.T) {
	c := mustRing(t, fixedConfig()).NewChecker()
	for _, text := range []string{vectorWeb, vectorEd} {
		if a := one(c, text, vectorStart); a.Class != Verified {
			t.Fatalf("%q: %q", text, a.Reason)
		}
		step := 1
		if text == vectorEd {
			step = 7 // a signature check is slow
		}
		for at := range text {
			for ch := 0; ch < 256; ch += step {
				if byte(ch) == text[at] {
					continue
				}
				other := []byte(text)
				other[at] = byte(ch)
				if a := c.Attribute([][]byte{other}, false, vectorStart, 0); a.Class != Unattributable {
					t.Fatalf("%q is %v", other, a.Class)
				}
			}
		}
	}
}

func TestTimes(t *testing.T) {
	const ms, minted = int64(time.Millisecond), vectorMinted * nsPerMS
	day := int64(24 * time.Hour)
	c := mustRing(t, fixedConfig()).NewChecker()
	for _, k := range []struct {
		name               string
		start, uncertainty int64
		want               Reason
	}{
		{"at once", minted, 0, None},
		{"exactly the lifetime", minted + day, 0, None},
		{"1 ns more", minted + day + 1, 0, Expired},
		{"1 s more, stamp of whole seconds", minted + day + 1000*ms, 1000 * ms, None},
		{"1 s and 1 ns more, stamp of whole seconds", minted + day + 1000*ms + 1, 1000 * ms, Expired},
		{"exactly the skew", minted - 5000*ms, 0, None},
		{"1 ns beyond the skew", minted - 5000*ms - 1, 0, NotYetValid},
		{"6 s ahead, stamp of whole seconds", minted - 6000*ms, 1000 * ms, None},
		{"6 s and 1 ns ahead, stamp of whole seconds", minted - 6000*ms - 1, 1000 * ms, NotYetValid},
		{"negative uncertainty counts as none", minted + day + 1, -5000 * ms, Expired},
		{"start before all time", math.MinInt64, 0, NotYetValid},
		{"start after all time", math.MaxInt64, 0, Expired},
		{"boundless uncertainty", math.MaxInt64, math.MaxInt64, None},
	} {
		a := c.Attribute([][]byte{[]byte(vectorWeb)}, false, k.start, k.uncertainty)
		if a.Reason != k.want {
			t.Errorf("%s: %q, want %q", k.name, a.Reason, k.want)
		}
	}
}

func TestTimesAreConfigured(t *testing.T) {
	conf := fixedConfig()
	conf.Lifetime, conf.Skew = time.Minute, time.Second
	c := mustRing(t, conf).NewChecker()
	start := int64(vectorMinted * nsPerMS)
	for add, want := range map[time.Duration]Reason{
		time.Minute: None, time.Minute + 1: Expired, -time.Second: None, -time.Second - 1: NotYetValid} {
		if a := one(c, vectorWeb, start+int64(add)); a.Reason != want {
			t.Errorf("%v: %q, want %q", add, a.Reason, want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	accept := func(names ...string) (list []Accept) {
		for _, n := range names {
			if field, ok := strings.CutPrefix(n, "field:"); ok {
				list = append(list, Accept{"field", field})
			} else {
				list = append(list, Accept{Scheme: n})
			}
		}
		return list
	}
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	forged := vectorWeb[:len(vectorWeb)-1] + "A"
	signedFirst := accept("qk1", "traceparent", "qk2", "field:my_id") // fields: question_key, traceparent, my_id
	for _, k := range []struct {
		name    string
		accept  []Accept
		values  []string
		suspect bool
		only    bool // RequireVerified
		class   Class
		reason  Reason
		scheme  string
		index   int
	}{
		{"signed wins", signedFirst, []string{vectorWeb, trace, "x"}, false, false, Verified, None, "qk1", 0},
		{"the prefix decides between qk1 and qk2", signedFirst, []string{vectorEd, trace, "x"}, false, false, Verified, None, "qk2", 2},
		{"forged does not fall through", signedFirst, []string{forged, trace, "x"}, false, false, Unattributable, Forged, "qk1", 0},
		{"malformed does not fall through", signedFirst, []string{"??", trace, "x"}, false, false, Unattributable, Malformed, "qk1", 0},
		{"malformed claim does not fall through", signedFirst, []string{"", "00-1", "x"}, false, false, Unattributable, Malformed, "traceparent", 1},
		{"empty falls through", signedFirst, []string{"", trace, "x"}, false, false, Claimed, None, "traceparent", 1},
		{"dash falls through", signedFirst, []string{"-", " ", "x"}, false, false, Claimed, None, "my_id", 3},
		{"nothing", signedFirst, []string{"-", "", ""}, false, false, Unattributable, Absent, "", -1},
		{"missing values are empty", signedFirst, nil, false, false, Unattributable, Absent, "", -1},
		{"claim before signed", accept("traceparent", "qk1"), []string{trace, vectorWeb}, false, false, Claimed, None, "traceparent", 0},
		{"qk2 not accepted", accept("qk1", "traceparent"), []string{vectorEd, trace}, false, false, Unattributable, Malformed, "qk1", 0},
		{"qk1 not accepted", accept("qk2"), []string{vectorWeb}, false, false, Unattributable, Malformed, "qk2", 0},
		{"question_key as a named field", accept("field:question_key"), []string{vectorWeb}, false, false, Claimed, None, "question_key", 0},
		{"suspect line", signedFirst, []string{vectorWeb, trace, "x"}, true, false, Unattributable, Malformed, "qk1", 0},
		{"suspect line, claim", signedFirst, []string{"", trace, "x"}, true, false, Unattributable, Malformed, "traceparent", 1},
		{"suspect line, nothing", signedFirst, []string{"", "-", ""}, true, false, Unattributable, Absent, "", -1},
		{"unsigned", signedFirst, []string{"", trace, "x"}, false, true, Unattributable, Unsigned, "traceparent", 1},
		{"malformed before unsigned", signedFirst, []string{"", "00-1", "x"}, false, true, Unattributable, Malformed, "traceparent", 1},
		{"verified where required", signedFirst, []string{vectorWeb, trace, "x"}, false, true, Verified, None, "qk1", 0},
		{"absent before unsigned", signedFirst, []string{"", "", ""}, false, true, Unattributable, Absent, "", -1},
		{"other Google client falls through", accept("gccl-invocation-id", "field:my_id"), []string{"gl-go/1.26 gax/2.15", "x"}, false, false, Claimed, None, "my_id", 1},
	} {
		conf := fixedConfig()
		conf.Accept, conf.RequireVerified = k.accept, k.only
		c := mustRing(t, conf).NewChecker()
		values := make([][]byte, len(k.values))
		for i, v := range k.values {
			values[i] = []byte(v)
		}
		a := c.Attribute(values, k.suspect, vectorStart, 0)
		if a.Class != k.class || a.Reason != k.reason || a.Scheme != k.scheme || a.SchemeIndex != k.index {
			t.Errorf("%s: %v %q by %q (%d)", k.name, a.Class, a.Reason, a.Scheme, a.SchemeIndex)
		}
		if a.Class != Verified && (a.OriginatorIndex != -1 || a.Originator != "" || a.Minted != 0 || a.Deadline != 0) {
			t.Errorf("%s: %+v names an originator", k.name, a)
		}
	}
}

// Verdicts differ by nothing but cost whether they are remembered, evicted or new.
func TestEvictionKeepsVerdicts(t *testing.T) {
	r := mustRing(t, fixedConfig())
	c := r.newChecker(1, 1)
	var texts []string
	for i := range 40 {
		nonce := fmt.Sprintf("AAECAwQFBgcICQ%02d", i)
		texts = append(texts, qk1Text("web", "a", "mjuohs3f", nonce, secretA), qk1Text("web", "a", "mjuohs3f", nonce, secretB))
	}
	for round := range 3 {
		for i, text := range texts {
			for range 2 {
				want := [2]Reason{None, Forged}[i%2]
				if a := one(c, text, vectorStart); a.Reason != want {
					t.Fatalf("round %d: %s: %q, want %q", round, text, a.Reason, want)
				}
			}
		}
	}
	one(c, texts[0], vectorStart)
	if a := one(c, texts[0], vectorStart+int64(48*time.Hour)); a.Reason != Expired {
		t.Errorf("remembered key two days later: %q", a.Reason)
	}
}

// A verdict belongs to one whole text: same set, same first word of the hash, or the other table never answers for it.
func TestForgedTextCannotHitAProvenOne(t *testing.T) {
	c := mustRing(t, fixedConfig()).newChecker(1, 1) // one set: every text competes for the same four entries
	if a := one(c, vectorWeb, vectorStart); a.Class != Verified {
		t.Fatal(a.Reason)
	}
	for at := 20; at < len(vectorWeb)-1; at++ {
		ch := byte('x')
		if vectorWeb[at] == ch {
			ch = 'y'
		}
		if vectorWeb[at] == '.' {
			continue
		}
		forged := vectorWeb[:at] + string(ch) + vectorWeb[at+1:]
		if a := one(c, forged, vectorStart); a.Class != Unattributable {
			t.Fatalf("%s is %v", forged, a.Class)
		}
		if a := one(c, vectorWeb, vectorStart); a.Class != Verified {
			t.Fatalf("after %s the genuine key is %q", forged, a.Reason)
		}
	}
	tab := newTable(16)
	tab.put([2]uint64{7, 8}, newEntry([2]uint64{7, 8}, 0, 1))
	for _, h := range [][2]uint64{{7, 9}, {6, 8}, {8, 7}, {0, 0}} {
		if tab.get(h) != nil {
			t.Errorf("%v found", h)
		}
	}
}

func TestRotationAndReload(t *testing.T) {
	conf := fixedConfig()
	before := mustRing(t, conf).NewChecker()
	newKid := qk1Text("web", "b", "mjuohs3f", "AAECAwQFBgcICQoL", secretB)
	for _, text := range []string{vectorWeb, newKid} {
		if a := one(before, text, vectorStart); a.Class != Verified {
			t.Errorf("two live kids: %q", a.Reason)
		}
	}

	conf.Originators[0].Keys = conf.Originators[0].Keys[1:] // kid a is withdrawn
	after := mustRing(t, conf).NewChecker()
	if a := one(after, vectorWeb, vectorStart); a.Reason != UnknownOriginator {
		t.Errorf("withdrawn kid: %q", a.Reason)
	}
	if a := one(after, newKid, vectorStart); a.Class != Verified {
		t.Errorf("kept kid: %q", a.Reason)
	}

	conf.Originators[0].Keys[0].Secret = []byte(secretA) // same kid, other secret
	replaced := mustRing(t, conf).NewChecker()
	if a := one(replaced, newKid, vectorStart); a.Reason != Forged {
		t.Errorf("replaced secret: %q", a.Reason)
	}
	if a := one(after, newKid, vectorStart); a.Class != Verified {
		t.Errorf("the configuration was changed under a ring: %q", a.Reason)
	}
}

func TestRingKeepsNoneOfTheCallersBytes(t *testing.T) {
	conf := fixedConfig()
	r := mustRing(t, conf)
	for _, o := range conf.Originators {
		for _, k := range o.Keys {
			clear(k.Secret)
			clear(k.PublicKey)
		}
	}
	c := r.NewChecker()
	for _, text := range []string{vectorWeb, vectorBatch, vectorEd} {
		if a := one(c, text, vectorStart); a.Class != Verified {
			t.Errorf("%s: %q", text, a.Reason)
		}
	}
}

func TestVerifyPerSecond(t *testing.T) {
	const second = int64(time.Second)
	nonce := func(i int) string { return fmt.Sprintf("AAECAwQFBgcIC%03d", i) }
	key := func(i int) string { return qk2Text("web", "e", "mjuohs3f", nonce(i)) }
	conf := fixedConfig()
	conf.VerifyPerSecond = 2
	r := mustRing(t, conf)
	c, other := r.NewChecker(), r.NewChecker()
	start := vectorStart / second * second

	expect := func(name string, c *Checker, text string, at int64, want Reason) {
		t.Helper()
		if a := one(c, text, at); a.Reason != want {
			t.Errorf("%s: %q, want %q", name, a.Reason, want)
		}
	}
	expect("first", c, key(0), start, None)
	expect("second, by another checker", other, key(1), start+second-1, None)
	expect("third", c, key(2), start, Unchecked)
	expect("third, at the other checker", other, key(2), start, Unchecked)
	expect("a remembered key costs nothing", c, key(0), start, None)
	expect("qk1 is not limited", c, vectorWeb, start, None)
	expect("malformed comes first", c, key(2)[1:], start, Malformed)
	expect("unknown comes first", c, qk2Text("bff", "e", "mjuohs3f", nonce(3)), start, UnknownOriginator)
	expect("expired comes first", c, qk2Text("web", "e", "0", nonce(3)), start, Expired)
	if a := one(c, qk2Text("web", "e", "0", nonce(3)), start); a.OriginatorIndex != -1 {
		t.Error("an unchecked tag proved an originator")
	}
	expect("next second", c, key(2), start+second, None)
	expect("forged counts", c, key(5)[:len(key(5))-6]+"AAAAAA", start+second, Forged)
	expect("and is remembered", c, key(5)[:len(key(5))-6]+"AAAAAA", start+second, Forged)
	expect("spent", c, key(6), start+second, Unchecked)
	expect("a straggler's second is still spent", c, key(6), start, Unchecked)
	expect("and does not reset the present one", c, key(6), start+second, Unchecked)

	expect("its slot, a minute later", c, key(6), start+64*second, None)
	expect("its slot, a minute later", c, key(9), start+64*second, None)
	expect("its slot, spent again", c, key(10), start+64*second, Unchecked)

	c.LogTime(start + 10*second)
	expect("log time rules", c, key(11), start+second, None)
	expect("log time rules", c, key(7), start+2*second, None)
	expect("log time rules", c, key(8), start+3*second, Unchecked)

	unlimited := mustRing(t, fixedConfig()).NewChecker()
	for i := range 20 {
		expect("no limit", unlimited, key(i), start, None)
	}
}

func TestHugeValues(t *testing.T) {
	conf := fixedConfig()
	for name := range claimedSchemes {
		conf.Accept = append(conf.Accept, Accept{Scheme: name})
	}
	conf.Accept = append(conf.Accept, Accept{Scheme: "qk1"}, Accept{"field", "my_id"})
	r := mustRing(t, conf)
	c := r.NewChecker()
	for i := range r.Fields() {
		for _, huge := range []string{
			strings.Repeat("a", 1<<20), vectorWeb + strings.Repeat(" ", 1<<20), strings.Repeat(vectorWeb+", ", 10_000) + vectorWeb,
			strings.Repeat("\\", 1<<20), `"` + strings.Repeat(`\"`, 1<<19) + `"`, strings.Repeat(",", 1<<20), strings.Repeat(" ", maxValueSize+1)} {
			values := make([][]byte, len(r.Fields()))
			values[i] = []byte(huge)
			if a := c.Attribute(values, false, vectorStart, 0); a.Reason != Malformed {
				t.Errorf("%s: %.20q…: %v %q", r.Fields()[i], huge, a.Class, a.Reason)
			}
		}
	}
}

// One ring, many checkers; run with -race.
func TestConcurrentCheckers(t *testing.T) {
	conf := fixedConfig()
	conf.VerifyPerSecond = 1_000_000
	r := mustRing(t, conf)
	texts := []string{vectorWeb, vectorBatch, vectorEd, vectorWeb[:len(vectorWeb)-1] + "A"}
	want := []Reason{None, None, None, Forged}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			c := r.newChecker(1, 1)
			for i := range 300 {
				at := (i + g) % len(texts)
				if a := one(c, texts[at], vectorStart); a.Reason != want[at] {
					t.Errorf("%s: %q", texts[at], a.Reason)
				}
				fresh := qk1Text("web", "a", strconv.FormatInt(vectorMinted, 36), fmt.Sprintf("AAECAwQFBg%d%05d", g, i), secretA)
				if a := one(c, fresh, vectorStart); a.Class != Verified {
					t.Errorf("%s: %q", fresh, a.Reason)
				}
			}
		})
	}
	group.Wait()
}

func TestNoAllocation(t *testing.T) {
	conf := fixedConfig()
	conf.Accept = []Accept{{Scheme: "qk1"}, {Scheme: "qk2"}, {Scheme: "x-request-id"}, {Scheme: "idempotency-key"}}
	c := mustRing(t, conf).newChecker(1, 1)
	var fresh [][]byte
	for i := range 64 {
		fresh = append(fresh, []byte(qk1Text("web", "a", "mjuohs3f", fmt.Sprintf("AAECAwQFBgcICQ%02d", i), secretA)))
	}
	next := 0
	for name, values := range map[string][][]byte{
		"remembered": {[]byte(vectorWeb)},
		"ed25519":    {[]byte(vectorEd)},
		"forged":     {[]byte(vectorWeb[:len(vectorWeb)-1] + "A")},
		"malformed":  {[]byte("nothing")},
		"joined":     {[]byte(vectorWeb + ", " + vectorWeb)},
		"masked":     {nil, []byte("6f9619ff-8b86-d011-b42d-00c04fc964ff")},
		"escaped":    {nil, nil, []byte(`"a\"b"`)},
		"new":        {nil},
	} {
		run := func() {
			if name == "new" {
				values[0], next = fresh[next%len(fresh)], next+1
			}
			c.Attribute(values, false, vectorStart, 0)
		}
		run()
		if n := testing.AllocsPerRun(50, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestTagBits holds tagBits to encoding/base64.
func TestTagBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		high, low := r.Uint64(), r.Uint64()
		raw := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, high), low)
		text := base64.RawURLEncoding.AppendEncode(nil, raw)
		if h, l := tagBits(text); h != high || l != low {
			t.Fatalf("%s: %x %x, want %x %x", text, h, l, high, low)
		}
	}
}
