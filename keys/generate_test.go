package keys

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"
)

func TestGenerate(t *testing.T) {
	hmacKey, edKey, _ := generated(t)
	if want := "originators:\n  - id: \"web\"\n    keys:\n      - {kid: \"a\", secret: \"" + hmacKey.Secret + "\"}\n"; hmacKey.YAML() != want {
		t.Errorf("%s, want %s", hmacKey.YAML(), want)
	}
	if want := "originators:\n  - id: \"web\"\n    keys:\n      - {kid: \"e\", public_key: \"" + edKey.PublicKey + "\"}\n"; edKey.YAML() != want {
		t.Errorf("%s, want %s", edKey.YAML(), want)
	}
	if strings.Contains(edKey.YAML(), edKey.PrivateKey) {
		t.Error("the private key is in the target's file")
	}
	if len(hmacKey.Secret) != 43 || len(edKey.PrivateKey) != 43 || len(edKey.PublicKey) != 43 {
		t.Errorf("%d, %d, %d characters", len(hmacKey.Secret), len(edKey.PrivateKey), len(edKey.PublicKey))
	}
	again, err := NewSecret("web", "a")
	if err != nil || again.Secret == hmacKey.Secret {
		t.Errorf("two secrets are the same: %v", err)
	}
	for _, ids := range [][2]string{{"", "a"}, {"Web", "a"}, {"web", ""}, {"web", "a-b"}} {
		if _, err := NewSecret(ids[0], ids[1]); err == nil {
			t.Errorf("%q: secret made", ids)
		}
		if _, err := NewEd25519(ids[0], ids[1]); err == nil {
			t.Errorf("%q: key made", ids)
		}
	}
}

// The seed of RFC 8032 gives the public key of RFC 8032 and the signature of the vector.
func TestParseKeys(t *testing.T) {
	private, err := ParsePrivateKey("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	if err != nil || hex.EncodeToString(private.Seed()) != seedHex {
		t.Fatalf("seed %x, %v", private.Seed(), err)
	}
	public, err := ParsePublicKey("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo=")
	if err != nil || hex.EncodeToString(public) != publicHex || !public.Equal(private.Public()) {
		t.Fatalf("public key %x, %v", public, err)
	}
	for _, bad := range []string{"", "A", "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo", "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURp",
		"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUQ", publicHex} {
		if _, err := ParsePublicKey(bad); err == nil || len(bad) > 1 && strings.Contains(err.Error(), bad) {
			t.Errorf("public key %q: %v", bad, err)
		}
		if _, err := ParsePrivateKey(bad); err == nil || len(bad) > 1 && strings.Contains(err.Error(), bad) {
			t.Errorf("private key: %v", err)
		}
	}
}

func TestVerify(t *testing.T) {
	conf := fixedConfig()
	conf.VerifyPerSecond = 1
	conf.Accept = []Accept{{Scheme: "traceparent"}, {Scheme: "qk1"}, {Scheme: "qk2"}}
	r := mustRing(t, conf)
	now := time.UnixMilli(vectorMinted).Add(90 * time.Second)
	minted := time.UnixMilli(vectorMinted).UTC()
	for _, k := range []struct {
		text string
		at   time.Time
		want Explanation
	}{
		{vectorWeb, now, Explanation{Class: Verified, Scheme: "qk1", Detail: "tag matches", Originator: "web", KID: "a", Minted: minted, Age: 90 * time.Second, Proven: true}},
		{vectorEd, now, Explanation{Class: Verified, Scheme: "qk2", Detail: "tag matches", Originator: "web", KID: "e", Minted: minted, Age: 90 * time.Second, Proven: true}},
		{vectorEd, now.Add(-100 * time.Second), Explanation{Reason: NotYetValid, Scheme: "qk2", Detail: "skew of 5s", Originator: "web", KID: "e", Minted: minted, Age: -10 * time.Second, Proven: true}},
		{vectorWeb, now.Add(24 * time.Hour), Explanation{Reason: Expired, Scheme: "qk1", Detail: "lifetime of 24h", Originator: "web", KID: "a", Minted: minted, Age: 24*time.Hour + 90*time.Second, Proven: true}},
		{vectorWeb + ", " + vectorWeb, now, Explanation{Class: Verified, Scheme: "qk1", Detail: "tag matches", Originator: "web", KID: "a", Minted: minted, Age: 90 * time.Second, Proven: true}},
		{strings.Replace(vectorWeb, "web.a", "bff.a", 1), now, Explanation{Reason: UnknownOriginator, Scheme: "qk1", Detail: "no originator here", Originator: "bff", KID: "a", Minted: minted, Age: 90 * time.Second}},
		{vectorWeb[:len(vectorWeb)-1] + "A", now, Explanation{Reason: Forged, Scheme: "qk1", Detail: "does not match", Originator: "web", KID: "a", Minted: minted, Age: 90 * time.Second}},
		{vectorWeb[:len(vectorWeb)-1], now, Explanation{Reason: Malformed, Scheme: "qk1", Detail: "22 characters"}},
		{vectorWeb[:len(vectorWeb)-1] + "x", now, Explanation{Reason: Malformed, Scheme: "qk1", Detail: "bits beyond"}},
		{"qk1x" + vectorWeb[4:], now, Explanation{Reason: Malformed, Detail: "begins with"}},
		{"qk3" + vectorWeb[3:], now, Explanation{Reason: Malformed, Detail: "begins with"}},
		{"hello", now, Explanation{Reason: Malformed, Detail: "begins with"}},
		{strings.Repeat("qk1.", 1<<18), now, Explanation{Reason: Malformed, Scheme: "qk1", Detail: "longer than"}},
		{"", now, Explanation{Reason: Absent, Detail: "no key"}},
		{" - ", now, Explanation{Reason: Absent, Detail: "no key"}},
	} {
		got := r.Verify(k.text, k.at)
		if k.want.Detail == "" || !strings.Contains(got.Detail, k.want.Detail) {
			t.Errorf("%.60s: detail %q, want %q", k.text, got.Detail, k.want.Detail)
		}
		got.Detail = k.want.Detail
		if got != k.want {
			t.Errorf("%.60s: %+v, want %+v", k.text, got, k.want)
		}
	}
	onlyTrace := mustRing(t, Config{Accept: []Accept{{Scheme: "traceparent"}}})
	if e := onlyTrace.Verify(vectorWeb, now); e.Reason != Malformed || e.Detail == "" {
		t.Errorf("nothing signed is accepted: %+v", e)
	}
}
