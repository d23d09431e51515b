package config

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
)

// Secret is bytes that are never shown: every fmt verb, slog, JSON and YAML get
// a fixed word in their place. The bytes are behind a pointer because fmt calls
// no method below a value whose verb is wrong: it then shows an address.
type Secret struct{ hidden *[]byte }

const redacted = "[redacted]"

// NewSecret hides b; no bytes are no secret.
func NewSecret(b []byte) Secret {
	if len(b) == 0 {
		return Secret{}
	}
	return Secret{&b}
}

// Bytes returns the secret itself, nil for none. The caller must not change it.
func (s Secret) Bytes() []byte {
	if s.hidden == nil {
		return nil
	}
	return *s.hidden
}

// String returns a fixed word, or nothing for no secret.
func (s Secret) String() string {
	if s.hidden == nil {
		return ""
	}
	return redacted
}

// Format writes the fixed word whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText is what JSON and text encoders get.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML is what YAML encoders get.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue is what slog gets.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Endpoint is a URL of which only scheme and host are shown: the rest of a
// webhook is often its password.
type Endpoint struct{ hidden *string }

// NewEndpoint hides a URL; an empty one is none.
func NewEndpoint(u string) Endpoint {
	if u == "" {
		return Endpoint{}
	}
	return Endpoint{&u}
}

// URL returns the URL itself, empty for none.
func (e Endpoint) URL() string {
	if e.hidden == nil {
		return ""
	}
	return *e.hidden
}

// String returns scheme and host, and a fixed word for the rest if there is any.
func (e Endpoint) String() string {
	if e.hidden == nil {
		return ""
	}
	u, err := url.Parse(*e.hidden)
	if err != nil || u.Host == "" {
		return redacted
	}
	shown := u.Scheme + "://" + u.Host
	if *e.hidden != shown && *e.hidden != shown+"/" {
		shown += "/redacted"
	}
	return shown
}

// Format writes String whatever the verb.
func (e Endpoint) Format(f fmt.State, _ rune) { io.WriteString(f, e.String()) }

// MarshalText is what JSON and text encoders get.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// MarshalYAML is what YAML encoders get.
func (e Endpoint) MarshalYAML() (any, error) { return e.String(), nil }

// LogValue is what slog gets.
func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.String()) }
