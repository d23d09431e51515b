package config

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// Originator is a party that authors question keys.
type Originator struct {
	// ID is 1 to 32 of a-z, 0-9 and -.
	ID string
	// Deadline is how long it waits for an answer, counted from minting; 0: not
	// declared.
	Deadline time.Duration
	// Keys are all live at once, for rotation; at least one.
	Keys []Key
}

// Key is one key of an originator: a Secret (qk1) or a PublicKey (qk2).
type Key struct {
	// KID is 1 to 8 of a-z and 0-9, once per originator.
	KID string
	// Secret is at least 32 raw bytes, none for qk2.
	Secret Secret
	// PublicKey is 32 bytes of Ed25519, nil for qk1.
	PublicKey []byte
}

// originatorsFile is originators.yaml as it is written.
type originatorsFile struct {
	Originators []originatorEntry `yaml:"originators"`
}

type originatorEntry struct {
	ID       string        `yaml:"id"`
	Deadline time.Duration `yaml:"deadline"`
	Keys     []keyEntry    `yaml:"keys"`
}

type keyEntry struct {
	KID        string `yaml:"kid"`
	Secret     Secret `yaml:"secret"`
	SecretEnv  string `yaml:"secret_env"`
	SecretFile string `yaml:"secret_file" kind:"path"`
	PublicKey  string `yaml:"public_key"`
}

const minSecret = 32

var (
	originatorID = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	keyID        = regexp.MustCompile(`^[a-z0-9]{1,8}$`)
)

// LoadOriginators reads originators.yaml and the secrets it names, in files and
// in the environment. An empty path or file is no originators. A secret file's
// last line break is no part of the secret. Errors never hold secrets.
func LoadOriginators(path string, getenv func(string) (string, bool)) ([]Originator, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read originators: %w", err)
	}
	return parseOriginators(path, data, getenv, readFile)
}

func parseOriginators(name string, data []byte, getenv func(string) (string, bool), read func(string) ([]byte, error)) ([]Originator, error) {
	d := newDecoder(name, getenv)
	var file originatorsFile
	d.into(&file, data)
	resolvePaths(reflect.ValueOf(&file).Elem(), d.dir)

	k := &checks{}
	var out []Originator
	ids, material := map[string]int{}, map[string]string{}
	for i, entry := range file.Originators {
		at := index("originators", i)
		o := Originator{ID: entry.ID, Deadline: entry.Deadline}
		if !originatorID.MatchString(entry.ID) {
			k.missing(at, "id", "want 1 to 32 of a-z, 0-9 and -")
		} else if first, dup := ids[entry.ID]; dup {
			k.add(at+".id", "found %q: is the id of originators[%d] already; put all keys under one", entry.ID, first)
		} else {
			ids[entry.ID] = i
		}
		if len(entry.Keys) == 0 {
			k.missing(at, "keys", "want at least one key")
		}
		kids := map[string]int{}
		for j, e := range entry.Keys {
			where := index(at+".keys", j)
			if !keyID.MatchString(e.KID) {
				k.missing(where, "kid", "want 1 to 8 of a-z and 0-9")
			} else if first, dup := kids[e.KID]; dup {
				k.add(where+".kid", "found %q: is the kid of %s already; a new key has a new kid", e.KID, index(at+".keys", first))
			} else {
				kids[e.KID] = j
			}
			key, ok := k.material(d, where, e, read)
			if !ok {
				continue
			}
			// Shared material would let one originator author the other's keys.
			id := string(key.Secret.Bytes()) + "\x00" + string(key.PublicKey)
			if first, dup := material[id]; dup {
				k.add(where, "has the same secret or public key as %s; want one of its own", first)
			} else {
				material[id] = where
			}
			o.Keys = append(o.Keys, key)
		}
		out = append(out, o)
	}
	if err := d.judge(k.faults); err != nil {
		return nil, err
	}
	return out, nil
}

// material fetches the secret or public key of one entry.
func (k *checks) material(d *decoder, at string, e keyEntry, read func(string) ([]byte, error)) (Key, bool) {
	key := Key{KID: e.KID}
	set := 0
	for _, given := range []bool{e.Secret != (Secret{}), e.SecretEnv != "", e.SecretFile != "", e.PublicKey != ""} {
		if given {
			set++
		}
	}
	if set != 1 {
		k.add(at, "found %d of secret, secret_env, secret_file and public_key: want exactly one", set)
		return key, false
	}
	field := ".secret"
	switch {
	case e.Secret != (Secret{}):
		key.Secret = e.Secret
	case e.SecretEnv != "":
		field = ".secret_env"
		value, ok := d.getenv(e.SecretEnv)
		if !envName.MatchString(e.SecretEnv) {
			// It may be the secret itself, so it is not shown.
			k.add(at+field, "want the name of an environment variable: letters, digits and _")
			return key, false
		}
		if !ok {
			k.add(at+field, "environment variable %s is not set", e.SecretEnv)
			return key, false
		}
		key.Secret = NewSecret([]byte(value))
	case e.SecretFile != "":
		field = ".secret_file"
		data, err := read(e.SecretFile)
		if err != nil {
			k.add(at+field, "read secret: %v", err)
			return key, false
		}
		text := strings.TrimSuffix(string(data), "\n")
		if len(text) < len(data) {
			text = strings.TrimSuffix(text, "\r")
		}
		key.Secret = NewSecret([]byte(text))
	default:
		decoded, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimRight(e.PublicKey, "="))
		if err != nil || len(decoded) != 32 {
			k.add(at+".public_key", "want the 32 bytes of an Ed25519 public key in base64url (43 characters, - and _ rather than + and /)")
			return key, false
		}
		key.PublicKey = decoded
		return key, true
	}
	if len(key.Secret.Bytes()) < minSecret {
		k.add(at+field, "secret is shorter than %d bytes: it could be guessed", minSecret)
		return key, false
	}
	return key, true
}
