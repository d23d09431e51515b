package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

// readSecrets takes the secrets out of originators.yaml by "originator/kid".
// It reads the plain form of the example file only.
func readSecrets(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read originators: %w", err)
	}
	secrets := map[string]string{}
	id := ""
	for _, m := range regexp.MustCompile(`(?m)^ *- id: (\S+)$|\{kid: (\w+), secret: "([^"]+)"\}`).FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			id = m[1]
			continue
		}
		secrets[id+"/"+m[2]] = m[3]
	}
	for _, want := range []string{"web/a", "web/b", "legacy/a"} {
		if secrets[want] == "" {
			return nil, fmt.Errorf("read originators %s: no secret for %s", path, want)
		}
	}
	return secrets, nil
}

// mintKey writes a qk1 question key. It is its own code on purpose: what the
// logs hold must not depend on the code that later reads them.
func mintKey(secret, originator, kid string, minted time.Time) string {
	nonce := make([]byte, 12)
	rand.Read(nonce)
	body := "qk1." + originator + "." + kid + "." + strconv.FormatInt(minted.UnixMilli(), 36) + "." +
		base64.RawURLEncoding.EncodeToString(nonce)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return body + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// newUUID returns a UUID of version 7, whose version digit Envoy may rewrite.
func newUUID(now time.Time) string {
	b := make([]byte, 16)
	rand.Read(b)
	ms := now.UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (8 * (5 - i)))
	}
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
