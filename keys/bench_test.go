package keys

import (
	"fmt"
	"testing"
	"time"
)

func BenchmarkAttribute(b *testing.B) {
	var fresh, forged [][]byte
	for i := range 8192 { // more than a checker of one set can remember
		nonce := fmt.Sprintf("AAECAwQFBgcI%04d", i)
		fresh = append(fresh, []byte(qk1Text("web", "a", "mjuohs3f", nonce, secretA)))
		forged = append(forged, []byte(qk1Text("web", "a", "mjuohs3f", nonce, secretB)))
	}
	for _, k := range []struct {
		name, scheme string
		values       [][]byte
		sets         int
	}{
		{"qk1/remembered", "qk1", fresh[:1], provenSets},
		{"qk1/remembered-of-8192", "qk1", fresh, provenSets},
		{"qk1/checked", "qk1", fresh, 1},
		{"qk1/forged", "qk1", forged, 1},
		{"qk1/forged-remembered", "qk1", forged[:1], 1},
		{"qk2/remembered", "qk2", [][]byte{[]byte(vectorEd)}, provenSets},
		{"absent", "qk1", [][]byte{[]byte("-")}, 1},
		{"idempotency-key", "idempotency-key", [][]byte{[]byte(`"8e03978e-40d5-43e8-bc93-6894a57f9324"`)}, 1},
		{"x-request-id", "x-request-id", [][]byte{[]byte("6f9619ff-8b86-d011-b42d-00c04fc964ff")}, 1},
		{"traceparent", "traceparent", [][]byte{[]byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")}, 1},
		{"huge", "idempotency-key", [][]byte{make([]byte, 1<<20)}, 1},
	} {
		b.Run(k.name, func(b *testing.B) {
			conf := fixedConfig()
			conf.Accept = []Accept{{Scheme: k.scheme}}
			c := mustRing(b, conf).newChecker(k.sets, 1)
			values := make([][]byte, 1)
			for _, v := range k.values {
				values[0] = v
				c.Attribute(values, false, vectorStart, 0)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(k.values[0])))
			i := 0
			for b.Loop() {
				values[0] = k.values[i]
				c.Attribute(values, false, vectorStart, 0)
				if i++; i == len(k.values) {
					i = 0
				}
			}
		})
	}
	b.Run("qk2/checked", func(b *testing.B) {
		c := mustRing(b, fixedConfig()).newChecker(1, 1)
		values := [][]byte{[]byte(vectorEd)}
		b.ReportAllocs()
		for b.Loop() {
			c.proven = newTable(1)
			c.Attribute(values, false, vectorStart, 0)
		}
	})
}

func BenchmarkMint(b *testing.B) {
	m := Minter{Originator: "web", KID: "a", Secret: []byte(secretA)}
	now := time.UnixMilli(vectorMinted)
	b.ReportAllocs()
	for b.Loop() {
		m.Mint(now)
	}
}
