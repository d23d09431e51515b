package keys

import (
	"strings"
	"testing"
)

// The syntax of every scheme that cannot prove its author. want "" means malformed, "absent" that the field holds no key.
func TestClaimedSyntax(t *testing.T) {
	const (
		absent = "absent"
		id     = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
		other  = "11111111-2222-4333-8444-555555555555"
		trace  = "0af7651916cd43dd8448eb211c80319c"
		parent = "-" + trace + "-b7ad6b7169203331-01"
		zero   = "00000000-0000-0000-0000-000000000000"
	)
	long255, long256 := strings.Repeat("k", 255), strings.Repeat("k", 256)
	for scheme, cases := range map[string]map[string]string{
		"idempotency-key": {
			"8e03978e-40d5":                       "8e03978e-40d5",
			`"8e03978e-40d5"`:                     "8e03978e-40d5", // the quotes belong to the syntax
			`q-"29"`:                              `q-"29"`,        // these do not: they do not enclose
			`"29"-q`:                              `"29"-q`,
			`"a"b"`:                               `"a"b"`,
			`"a\"b\\c"`:                           `a"b\c`,
			`"a, b"`:                              "a, b",
			`"a,a"`:                               "a,a",
			`"a\nb"`:                              "", // no such escape
			`"abc`:                                "", // cut off
			`"abc\"`:                              "",
			`"`:                                   "",
			`""`:                                  "",
			`" "`:                                 "",
			`"-"`:                                 "",
			`"K", "K"`:                            "K",
			`"K","K" , "K"`:                       "K",
			`"K", "L"`:                            "",
			`"K", "K`:                             "",
			`"K", "KK"`:                           "",
			`"K", K`:                              "",
			`"K",`:                                "",
			`"a, b", "a, b"`:                      "a, b",
			"K, K":                                "K",
			"K,K":                                 "K",
			"K, L":                                "",
			"K,":                                  "",
			",":                                   "",
			long255:                               long255,
			long256:                               "",
			`"` + long255 + `"`:                   long255,
			`"` + long256 + `"`:                   "",
			long255 + ", " + long255:              long255,
			"REDACTED":                            "",
			`"REDACTED"`:                          "",
			"[redacted]":                          "",
			"<nil>":                               "",
			"(null)":                              "",
			"null":                                "",
			"undefined":                           "",
			"[object Object]":                     "",
			"***":                                 "",
			"--":                                  "",
			"caf\uFFFD":                           "",
			"café":                                "café",
			"caf\xe9":                             "caf\xe9", // raw bytes are one key as they are
			"cut…":                                "",
			"cut...":                              "",
			"a\x00b":                              "",
			"a\tb":                                "",
			"a\x7f":                               "",
			"nullable":                            "nullable",
			"{7}":                                 "{7}",
			"order 7":                             "order 7",
			"-":                                   absent,
			"":                                    absent,
			"  ":                                  absent,
			" 8e03978e\t":                         "8e03978e",
			`"` + strings.Repeat(`\"`, 255) + `"`: strings.Repeat(`"`, 255),
		},
		"amz-sdk-invocation-id": {
			id:                                     id,
			strings.ToUpper(id):                    id,
			id + ", " + id:                         id,
			id + ", " + other:                      "",
			id[:35]:                                "",
			id + "0":                               "",
			`"` + id + `"`:                         "",
			zero:                                   "",
			strings.Replace(id, "d011", "d01g", 1): "",
			strings.ReplaceAll(id, "-", ""):        "",
			"ffffffff-ffff-ffff-ffff-ffffffffffff": "",
			"FFFFffff-ffff-ffff-ffff-ffffffffffff": "",
			"-":                                    absent,
		},
		"x-ms-client-request-id": {
			id:                          id,
			strings.ToUpper(id):         id,
			"job7:1f2e:fs9::s1:RD:0":    "",
			"job7:5a6b:fs9::s1:RD:1_RT": "",
			id + ":0":                   "",
			":" + id[1:]:                "",
			"free-text":                 "",
			id + "," + id:               id,
		},
		"gccl-invocation-id": {
			id: id,
			"gl-python/3.11 gccl/2.10 gccl-invocation-id/" + id + " gccl-attempt-count/2": id,
			"gccl-invocation-id/" + strings.ToUpper(id):                                   id,
			"gccl-invocation-id/" + id + ", gccl-invocation-id/" + id:                     id,
			"gccl-invocation-id/" + id + " gccl-invocation-id/" + other:                   "",
			"gccl-invocation-id/" + id[:30]:                                               "",
			"gccl-invocation-id/":                                                         "",
			"gl-go/1.26 gax/2.15":                                                         absent,
			"xgccl-invocation-id/" + id:                                                   absent,
			"free-text":                                                                   "",
			id + ", " + id:                                                                id,
		},
		"x-request-id": {
			id:                                     "6f9619ff-8b86-_011-b42d-00c04fc964ff",
			"6f9619ff-8b86-9011-b42d-00c04fc964ff": "6f9619ff-8b86-_011-b42d-00c04fc964ff", // the trace decision
			strings.ToUpper(id):                    "6f9619ff-8b86-_011-b42d-00c04fc964ff",
			"6f9619ff-8b86-d111-b42d-00c04fc964ff": "6f9619ff-8b86-_111-b42d-00c04fc964ff",
			id + ", " + id:                         "6f9619ff-8b86-_011-b42d-00c04fc964ff",
			id + ", " + other:                      "",
			zero:                                   "",
			"6f9619ff8b86d011b42d00c04fc964ff":     "6f9619ff8b86d011b42d00c04fc964ff",
			"Root=1-67891233-abcdef012345678912345678": "Root=1-67891233-abcdef012345678912345678",
			"6f9619ff-8b86-d011-b42d-00c04fc964fg":     "6f9619ff-8b86-d011-b42d-00c04fc964fg",
			"REDACTED":                                 "",
			long256:                                    "",
		},
		"traceparent": {
			"00" + parent:                      trace,
			"00" + parent + ", 00" + parent:    trace,
			"00" + parent + "-x":               "", // version 00 is exactly 55
			"00" + parent + "0":                "",
			"01" + parent:                      trace,
			"cc" + parent + "-what-the-future": trace,
			"cc" + parent + ".what":            "",
			"ff" + parent:                      "",
			"FF" + parent:                      "",
			"0" + parent:                       "",
			"0x" + parent:                      "",
			"00" + parent[:52]:                 "",
			"00" + strings.ToUpper(parent):     "",
			"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01": "",
			"00-" + trace + "-0000000000000000-01":                   "",
			"00-" + trace + "-b7ad6b7169203331-0g":                   "",
			"00_" + trace + "-b7ad6b7169203331-01":                   "",
			trace:                                                    "",
			"absent":                                                 "",
		},
		"field": {
			"order-7":   "order-7",
			`"order-7"`: `"order-7"`, // syntax is nobody's here
			"a, a":      "a",
			"a, b":      "",
			"7":         "7",
			"REDACTED":  "",
			"\uFFFD":    "",
			long255:     long255,
			long256:     "",
			"-":         absent,
			vectorWeb:   vectorWeb,
		},
	} {
		accept := Accept{Scheme: scheme}
		if scheme == "field" {
			accept.Field = "my_id"
		}
		r := mustRing(t, Config{Accept: []Accept{accept}})
		c := r.NewChecker()
		for value, want := range cases {
			a := one(c, value, vectorStart)
			switch {
			case want == absent && a.Reason == Absent && a.Class == Unattributable && a.Key == nil:
			case want == "" && a.Reason == Malformed && a.Class == Unattributable && a.Key == nil:
			case want != "" && want != absent && a.Class == Claimed && a.Reason == None && string(a.Key) == want:
			default:
				t.Errorf("%s: %q: %v %q, key %q, want %q", scheme, value, a.Class, a.Reason, a.Key, want)
			}
		}
	}
}

// The value belongs to the caller.
func TestValuesAreNotChanged(t *testing.T) {
	for scheme, value := range map[string]string{
		"x-request-id": "6F9619FF-8B86-d011-b42d-00c04fc964ff", "idempotency-key": `"a\"b"`, "amz-sdk-invocation-id": "6F9619FF-8B86-d011-b42d-00c04fc964ff"} {
		c := mustRing(t, Config{Accept: []Accept{{Scheme: scheme}}}).NewChecker()
		b := []byte(value)
		if a := c.Attribute([][]byte{b}, false, 0, 0); a.Class != Claimed {
			t.Errorf("%s: %q", scheme, a.Reason)
		}
		if string(b) != value {
			t.Errorf("%s: the value became %q", scheme, b)
		}
	}
}
