package accesslog

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"testing"
)

// decodeBase64 does what the standard library does, with whatever it is given.
func TestDecodeBase64(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	check := func(text []byte) {
		t.Helper()
		want := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
		n, wantErr := base64.StdEncoding.Decode(want, text)
		got := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
		m, err := decodeBase64(got, text)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got[:m], want[:n]) {
			t.Fatalf("%q: %q, %v; want %q, %v", text, got[:m], err, want[:n], wantErr)
		}
	}
	for size := range 180 { // several groups, of each way
		data := make([]byte, size)
		for range 20 {
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			text := base64.StdEncoding.AppendEncode(nil, data)
			check(text)
			check(base64.RawStdEncoding.AppendEncode(nil, data))
			for range 20 {
				bad := bytes.Clone(text)
				if len(bad) > 0 {
					bad[random.IntN(len(bad))] = byte(random.Uint32())
				}
				check(bad)
				check(bad[:random.IntN(len(bad)+1)])
			}
			at := random.IntN(len(text) + 1)
			check(append(append(bytes.Clone(text[:at]), "\r\n"...), text[at:]...))
		}
	}
}
