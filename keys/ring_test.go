package keys

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFields(t *testing.T) {
	for _, k := range []struct {
		accept []Accept
		want   []string
	}{
		{nil, []string{"question_key"}},
		{[]Accept{{Scheme: "qk2"}, {Scheme: "traceparent"}, {Scheme: "qk1"}}, []string{"question_key", "traceparent"}},
		{[]Accept{{"field", "my_id"}, {Scheme: "qk1"}}, []string{"my_id", "question_key"}},
		{[]Accept{{Scheme: "idempotency-key"}, {Scheme: "amz-sdk-invocation-id"}, {Scheme: "gccl-invocation-id"}, {Scheme: "x-ms-client-request-id"}, {Scheme: "x-request-id"}},
			[]string{"idempotency_key", "amz_sdk_invocation_id", "gccl_invocation_id", "x_ms_client_request_id", "x_request_id"}},
	} {
		r := mustRing(t, Config{Accept: k.accept})
		if got := r.Fields(); !slices.Equal(got, k.want) {
			t.Errorf("%v: fields %q, want %q", k.accept, got, k.want)
		}
	}
}

func TestFaults(t *testing.T) {
	secret := bytes.Repeat([]byte("topsecret"), 4)
	good := Key{KID: "a", Secret: secret}
	origin := func(id string, keys ...Key) []Originator { return []Originator{{ID: id, Keys: keys}} }
	for _, k := range []struct {
		name string
		conf Config
		want []string // each part of the error; none means valid
	}{
		{"zero", Config{}, nil},
		{"good", Config{Originators: origin("web", good)}, nil},
		{"two originators, same kid", Config{Originators: append(origin("web", good), origin("bff", good)...)}, nil},
		{"negative numbers", Config{Lifetime: -1, Skew: -1, VerifyPerSecond: -1},
			[]string{"lifetime: -1ns is negative", "skew: -1ns is negative", "verify_per_second: -1"}},
		{"unknown scheme", Config{Accept: []Accept{{Scheme: "qk1"}, {Scheme: "qk3"}}}, []string{`accept[1]: unknown scheme "qk3"`, "traceparent"}},
		{"empty scheme", Config{Accept: []Accept{{}}}, []string{`accept[0]: unknown scheme ""`}},
		{"field without name", Config{Accept: []Accept{{Scheme: "field"}}}, []string{"accept[0]: field is not the name"}},
		{"field with blanks", Config{Accept: []Accept{{"field", "a b"}}}, []string{"accept[0]: field is not the name"}},
		{"scheme with field", Config{Accept: []Accept{{"qk1", "x"}}}, []string{"accept[0]: scheme qk1 reads its own field"}},
		{"twice", Config{Accept: []Accept{{Scheme: "qk1"}, {Scheme: "qk2"}, {Scheme: "qk1"}}}, []string{"accept[2]: qk1 is never reached: accept[0]"}},
		{"shadowed", Config{Accept: []Accept{{Scheme: "x-request-id"}, {"field", "x_request_id"}}}, []string{"accept[1]: x_request_id is never reached: accept[0]"}},
		{"shadowed qk1", Config{Accept: []Accept{{"field", "question_key"}, {Scheme: "qk1"}}}, []string{"accept[1]: qk1 is never reached: accept[0]"}},
		{"bad originator", Config{Originators: origin("Web", good)}, []string{"originators[0]: id is not"}},
		{"long originator", Config{Originators: origin(strings.Repeat("w", 33), good)}, []string{"originators[0]: id is not"}},
		{"originator twice", Config{Originators: append(origin("web", good), origin("web", Key{KID: "b", Secret: secret})...)}, []string{"originators[1] web: id is already that of originators[0]"}},
		{"originator and kid twice", Config{Originators: append(origin("web", good), origin("web", good)...)}, []string{"originators[1] web: id is already", "keys[0] a: kid is already taken"}},
		{"kid twice", Config{Originators: origin("web", good, good)}, []string{"originators[0] web: keys[1] a: kid is already taken"}},
		{"bad kid", Config{Originators: origin("web", Key{KID: "topsecrettopsecret", Secret: secret})}, []string{"originators[0] web: keys[0]: kid is not"}},
		{"short secret", Config{Originators: origin("web", Key{KID: "a", Secret: secret[:31]})}, []string{"originators[0] web: keys[0] a: secret has 31 bytes, at least 32"}},
		{"nothing in it", Config{Originators: origin("web", Key{KID: "a"})}, []string{"keys[0] a: has neither"}},
		{"both in it", Config{Originators: origin("web", Key{KID: "a", Secret: secret, PublicKey: secret[:32]})}, []string{"keys[0] a: has both"}},
		{"public key of 31 bytes", Config{Originators: origin("web", Key{KID: "a", PublicKey: secret[:31]})}, []string{"keys[0] a: public_key has 31 bytes"}},
		{"public key of zeros", Config{Originators: origin("web", Key{KID: "a", PublicKey: make([]byte, 32)})}, []string{"keys[0] a: public_key is one repeated byte"}},
		{"no keys", Config{Originators: origin("web")}, []string{"originators[0] web: no keys"}},
		{"negative deadline", Config{Originators: []Originator{{ID: "web", Deadline: -time.Second, Keys: []Key{good}}}}, []string{"originators[0] web: deadline -1s is negative"}},
		{"all at once", Config{Lifetime: -1, Accept: []Accept{{Scheme: "x"}}, Originators: append(origin("?", good), origin("web", Key{KID: "a", Secret: secret[:9]})...)},
			[]string{"lifetime", "accept[0]", "originators[0]: id", "originators[1] web: keys[0] a: secret has 9"}},
	} {
		r, err := NewRing(k.conf)
		if (err == nil) != (len(k.want) == 0) || (r == nil) != (err != nil) {
			t.Errorf("%s: error %v", k.name, err)
			continue
		}
		for _, part := range k.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", k.name, err, part)
			}
		}
		if err != nil && strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: %q holds a secret", k.name, err)
		}
	}
}

func TestPrintedConfigHoldsNoSecret(t *testing.T) {
	secret := bytes.Repeat([]byte("topsecret"), 4)
	conf := Config{Originators: []Originator{{ID: "web", Keys: []Key{{KID: "a", Secret: secret}}}}}
	m := Minter{Originator: "web", KID: "a", Secret: secret}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		text := fmt.Sprintf(format+format+format+format, conf, conf.Originators[0].Keys[0], m, &m)
		if strings.Contains(text, "topsecret") || strings.Contains(text, "116 111 112") || strings.Contains(text, "0x74, 0x6f") {
			t.Errorf("%s: %s", format, text)
		}
	}
}
