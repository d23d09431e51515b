package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeFiles is the disk of the busted originators.
func fakeFiles(path string) ([]byte, error) {
	switch filepath.Base(path) {
	case "short":
		return []byte("hunter2\n"), nil
	case "almost":
		return []byte(strings.Repeat("x", 31) + "\n"), nil
	case "good":
		return []byte(strings.Repeat("g", 32) + "\n"), nil
	}
	return nil, fmt.Errorf("open %s: permission denied", filepath.Base(path))
}

func TestOriginators(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw := strings.Repeat("f", 31) + " "
	write("conf/keys/unix", raw+"\n")
	write("conf/keys/dos", "d"+raw+"\r\n")
	write("conf/keys/bare", "b"+raw)
	write("conf/keys/two", "t"+raw+"\n\n")
	write("conf/originators.yaml", `
originators:
  - id: web
    deadline: 20s
    keys:
      - {kid: a, secret: "raw: bytes, with $$ and 32 letters…"}
      - {kid: "1", secret_env: SECRET}
      - {kid: 2, secret_file: keys/unix}
      - {kid: c, secret_file: keys/dos}
      - {kid: d, secret_file: `+filepath.Join(dir, "conf/keys/bare")+`}
      - {kid: e, secret_file: keys/two}
  - id: batch-7
    keys: [{kid: a, public_key: `+strings.Repeat("A_-", 14)+`A}]
`)
	path := filepath.Join(dir, "conf/originators.yaml")
	got, err := LoadOriginators(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].ID != "web" || got[0].Deadline != 20*time.Second || got[1].ID != "batch-7" || got[1].Deadline != 0 {
		t.Fatalf("got %+v", got)
	}
	for i, want := range []string{"raw: bytes, with $ and 32 letters…", strings.Repeat("s", 32), raw, "d" + raw, "b" + raw, "t" + raw + "\n"} {
		if key := got[0].Keys[i]; string(key.Secret.Bytes()) != want || key.PublicKey != nil {
			t.Errorf("key %d is wrong", i)
		}
	}
	if key := got[1].Keys[0]; len(key.PublicKey) != 32 || key.Secret.Bytes() != nil {
		t.Errorf("public key %d bytes", len(key.PublicKey))
	}
	if got[0].Keys[2].KID != "2" {
		t.Errorf("kid %q", got[0].Keys[2].KID)
	}

	for _, empty := range []string{"", "# none\n", "originators: []\n"} {
		write("empty.yaml", empty)
		if got, err := LoadOriginators(filepath.Join(dir, "empty.yaml"), nil); err != nil || len(got) != 0 {
			t.Errorf("%q: %v, %v", empty, got, err)
		}
	}
	if got, err := LoadOriginators("", nil); err != nil || got != nil {
		t.Errorf("no path: %v, %v", got, err)
	}
	if _, err := LoadOriginators(filepath.Join(dir, "absent.yaml"), nil); err == nil || !strings.Contains(err.Error(), "absent.yaml") {
		t.Errorf("absent: %v", err)
	}
	write("gone.yaml", "originators: [{id: a, keys: [{kid: a, secret_file: nowhere}]}]\n")
	if _, err := LoadOriginators(filepath.Join(dir, "gone.yaml"), nil); err == nil || !strings.Contains(err.Error(), ":1: originators[0].keys[0].secret_file: read secret: open "+filepath.Join(dir, "nowhere")) {
		t.Errorf("absent secret: %v", err)
	}
}

func FuzzOriginators(f *testing.F) {
	for _, path := range []string{"testdata/busted_originators.yaml", "testdata/busted_originators_ids.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("originators: [{id: web, deadline: 20s, keys: [{kid: a, secret: 01234567890123456789012345678901}, {kid: b, secret_file: good}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseOriginators("o.yaml", data, environment, fakeFiles)
		if err != nil {
			return
		}
		for _, o := range got {
			if !originatorID.MatchString(o.ID) || len(o.Keys) == 0 || o.Deadline < 0 {
				t.Errorf("accepted %+v", o)
			}
			for _, k := range o.Keys {
				if (len(k.Secret.Bytes()) >= minSecret) == (len(k.PublicKey) == 32) {
					t.Errorf("accepted %+v", k)
				}
				if len(k.Secret.Bytes()) > 0 && bytes.Contains(fmt.Appendf(nil, "%+v", o), k.Secret.Bytes()) {
					t.Error("secret shown")
				}
			}
		}
	})
}

func FuzzConfig(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("/etc/auditor/auditor.yaml", data, environment)
		if err != nil {
			return
		}
		c.Warnings()
		if err := c.Validate(); err != nil {
			t.Errorf("accepted, then refused: %v", err)
		}
		roundTrip(t, c)
	})
}
