package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/keys"
)

const keyHelp = `Usage: auditor key new|mint|verify [flags]

  new     make key material for an originator
  mint    mint question keys, for tests and drills
  verify  say who minted a key, when, and which rule it breaks

auditor key new -h lists the flags of new.
`

// key is the subcommand.
func key(ctx context.Context, p *program, args []string) (int, error) {
	if len(args) == 0 {
		fmt.Fprint(p.stderr, keyHelp)
		return exitUsage, errUsage
	}
	switch args[0] {
	case "new":
		return keyNew(p, args[1:])
	case "mint":
		return keyMint(ctx, p, args[1:])
	case "verify":
		return keyVerify(ctx, p, args[1:])
	case "-h", "-help", "--help", "help":
		fmt.Fprint(p.stdout, keyHelp)
		return exitOK, nil
	}
	fmt.Fprint(p.stderr, keyHelp)
	return exitUsage, fmt.Errorf("unknown command %q: new, mint or verify", args[0])
}

const keyNewHelp = `Usage: auditor key new --originator ID [flags]

Makes new key material and prints the target's side of it to standard output: an
originators.yaml, or an entry to be merged into one.

With qk1 both sides hold the same secret, which is in that output. With qk2 the
output holds the public half only; the private one stays with the originator. It
goes to the file that --private-key-file names, which must not exist yet, or else
to standard error, so that it does not end up in a redirected originators.yaml.

Flags:
`

func keyNew(p *program, args []string) (int, error) {
	f := flag.NewFlagSet("key new", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), keyNewHelp); f.PrintDefaults() }
	originator := f.String("originator", "", "make it for the originator `ID`: 1 to 32 of a-z, 0-9 and -")
	kid := f.String("kid", "a", "name the key `KID`: 1 to 8 of a-z and 0-9, another one for each new key")
	scheme := f.String("scheme", "qk1", "make it for `qk1` (HMAC) or qk2 (Ed25519)")
	file := f.String("private-key-file", "", "write the private key of qk2 to `FILE`, readable by its owner only")
	rest, err := parse(p, f, args)
	switch {
	case err != nil:
		return exitUsage, err
	case len(rest) > 0:
		return exitUsage, fmt.Errorf("found %d arguments, want flags only", len(rest))
	case *originator == "":
		return exitUsage, errors.New("--originator is missing: who is going to author the keys?")
	case *scheme != "qk1" && *scheme != "qk2":
		return exitUsage, fmt.Errorf("--scheme %q is unknown: qk1 or qk2", *scheme)
	case *scheme == "qk1" && *file != "":
		return exitUsage, errors.New("--private-key-file is for --scheme qk2: qk1 has one secret for both sides")
	}
	generate := keys.NewSecret
	if *scheme == "qk2" {
		generate = keys.NewEd25519
	}
	g, err := generate(*originator, *kid)
	if err != nil {
		return exitUsage, err
	}
	switch {
	case *file != "":
		if err := writePrivateKey(*file, g.PrivateKey); err != nil {
			return exitFailed, err
		}
		fmt.Fprintf(p.stderr, "The private key of %s, kid %s, is in %s. It stays with the originator.\n", g.Originator, g.KID, *file)
	case g.PrivateKey != "":
		fmt.Fprintf(p.stderr, "PRIVATE KEY of %s, kid %s. It stays with the originator and is shown once:\n%s\n", g.Originator, g.KID, g.PrivateKey)
	}
	if _, err := io.WriteString(p.stdout, g.YAML()); err != nil {
		return exitFailed, fmt.Errorf("write: %w", err)
	}
	return exitOK, nil
}

// writePrivateKey never overwrites: the file may hold the only copy of a key.
func writePrivateKey(name, key string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write private key: %w", err)
	}
	_, err = f.WriteString(key + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write private key: %w", err)
	}
	return nil
}

const keyMintHelp = `Usage: auditor key mint --originators FILE --originator ID [flags]

Mints question keys and prints one a line. A qk1 key is minted with the secret in
originators.yaml; for qk2 that file holds the public half only, so the private
one is needed.

Flags:
`

func keyMint(ctx context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("key mint", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), keyMintHelp); f.PrintDefaults() }
	file := f.String("originators", "", "read originators from `FILE`")
	originator := f.String("originator", "", "mint as the originator `ID`")
	kid := f.String("kid", "", "mint with the key `KID` (default: the only one)")
	count := f.Int("count", 1, "mint `N` keys: each is a question of its own")
	at := f.String("at", "", "mint as of `TIME`, RFC 3339 (default: now)")
	private := f.String("private-key-file", "", "read the private key of qk2 from `FILE`")
	rest, err := parse(p, f, args)
	switch {
	case err != nil:
		return exitUsage, err
	case len(rest) > 0:
		return exitUsage, fmt.Errorf("found %d arguments, want flags only", len(rest))
	case *file == "":
		return exitUsage, errors.New("--originators is missing: name originators.yaml")
	case *originator == "":
		return exitUsage, errors.New("--originator is missing: as whom?")
	case *count < 1:
		return exitUsage, fmt.Errorf("--count %d: want 1 or more", *count)
	}
	now, err := timeFlag(p, *at)
	if err != nil {
		return exitUsage, err
	}
	originators, err := config.LoadOriginators(*file, p.getenv)
	if err != nil {
		return exitFailed, err
	}
	m, err := minter(originators, *originator, *kid, *private)
	if err != nil {
		return exitFailed, fmt.Errorf("%s: %w", *file, err)
	}
	out := bufio.NewWriter(p.stdout)
	for range *count {
		if ctx.Err() != nil {
			return exitFailed, errors.New("interrupted")
		}
		k, err := m.Mint(now)
		if err != nil {
			return exitFailed, err
		}
		out.WriteString(k + "\n") // Flush says what went wrong
	}
	if err := out.Flush(); err != nil {
		return exitFailed, fmt.Errorf("write: %w", err)
	}
	return exitOK, nil
}

// minter finds the key to mint with.
func minter(originators []config.Originator, id, kid, private string) (*keys.Minter, error) {
	var known []string
	for _, o := range originators {
		known = append(known, o.ID)
		if o.ID != id {
			continue
		}
		var kids []string
		for _, k := range o.Keys {
			kids = append(kids, k.KID)
		}
		if kid == "" && len(kids) > 1 {
			return nil, fmt.Errorf("originator %s has the keys %s: choose one with --kid", id, strings.Join(kids, ", "))
		}
		for _, k := range o.Keys {
			if kid != "" && k.KID != kid {
				continue
			}
			m := &keys.Minter{Originator: id, KID: k.KID}
			switch {
			case k.PublicKey == nil && private != "":
				return nil, fmt.Errorf("originator %s, kid %s: is a qk1 key, which needs no --private-key-file", id, k.KID)
			case k.PublicKey == nil:
				m.Secret = k.Secret.Bytes()
			case private == "":
				return nil, fmt.Errorf("originator %s, kid %s: is a qk2 key of which only the public half is here: name the other with --private-key-file", id, k.KID)
			default:
				var err error
				if m.PrivateKey, err = readPrivateKey(private); err != nil {
					return nil, err
				}
				if !m.PrivateKey.Public().(ed25519.PublicKey).Equal(ed25519.PublicKey(k.PublicKey)) {
					return nil, fmt.Errorf("originator %s, kid %s: the private key in %s is of another public key", id, k.KID, private)
				}
			}
			return m, nil
		}
		return nil, fmt.Errorf("originator %s has no key of this kid: it has %s", id, strings.Join(kids, ", "))
	}
	if len(known) == 0 {
		return nil, errors.New("holds no originator")
	}
	return nil, fmt.Errorf("no such originator: there are %s", strings.Join(known, ", "))
}

func readPrivateKey(name string) (ed25519.PrivateKey, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w", err)
	}
	k, err := keys.ParsePrivateKey(strings.TrimSpace(string(data)))
	if err != nil {
		return nil, fmt.Errorf("read private key %s: %w", name, err)
	}
	return k, nil
}

const keyVerifyHelp = `Usage: auditor key verify --originators FILE [flags] KEY…

Says of each qk1 or qk2 key how it would be judged for an arrival now, or at the
time given. KEY "-" reads keys from standard input, one a line, so that they do
not stand in the shell's history. The exit status is 0 if every key is verified,
else 1.

Flags:
`

// verified is what key verify prints of one key. The key itself is not in it.
type verified struct {
	Class      string   `json:"class"`
	Reason     *string  `json:"reason"`
	Scheme     *string  `json:"scheme"`
	Originator *string  `json:"originator"` // as the key says; only proven makes it more than a claim
	KID        *string  `json:"kid"`
	Minted     *string  `json:"minted"`
	AgeMS      *float64 `json:"age_ms"`
	Proven     bool     `json:"proven"`
	Detail     string   `json:"detail"`
}

func keyVerify(ctx context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("key verify", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), keyVerifyHelp); f.PrintDefaults() }
	file := f.String("originators", "", "read originators from `FILE`")
	configFile := f.String("config", "", "take originators, lifetime and skew from the configuration in `FILE` instead")
	at := f.String("at", "", "judge as of `TIME`, RFC 3339 (default: now)")
	output := f.String("output", "text", "print `json` (one object a line) or text")
	texts, err := parse(p, f, args)
	switch {
	case err != nil:
		return exitUsage, err
	case (*file == "") == (*configFile == ""):
		return exitUsage, errors.New("name originators.yaml with --originators, or a configuration with --config")
	case *output != "json" && *output != "text":
		return exitUsage, fmt.Errorf("--output %q is unknown: json or text", *output)
	case len(texts) == 0:
		return exitUsage, errors.New("no key given: name keys, or - for standard input")
	}
	now, err := timeFlag(p, *at)
	if err != nil {
		return exitUsage, err
	}
	ring, err := verifyRing(p, *file, *configFile)
	if err != nil {
		return exitFailed, err
	}
	code, seen := exitOK, false
	judge := func(text string) error {
		if err := ctx.Err(); err != nil {
			return errors.New("interrupted")
		}
		seen = true
		e := ring.Verify(text, now)
		if e.Class != keys.Verified {
			code = exitFailed
		}
		return printVerified(p.stdout, &e, *output == "json")
	}
	for _, text := range texts {
		if text != "-" {
			err = judge(text)
		} else {
			err = eachLine(p.stdin, judge)
		}
		if err != nil {
			return exitFailed, err
		}
	}
	if !seen {
		return exitFailed, errors.New("standard input holds no key")
	}
	return code, nil
}

// verifyRing is the ring of a configuration, or of originators alone under its
// defaults.
func verifyRing(p *program, originators, configFile string) (*keys.Ring, error) {
	if configFile == "" {
		c := config.Default()
		l := &loaded{Config: &c}
		var err error
		if l.originators, err = config.LoadOriginators(originators, p.getenv); err != nil {
			return nil, err
		}
		return keys.NewRing(l.ringConfig(false))
	}
	l, err := load(p, configFile, false)
	if err != nil {
		return nil, err
	}
	return l.ring, nil
}

// eachLine calls f for every line that is not blank. Lines are no longer than a
// key could possibly be; what is longer is judged by its beginning, which is no
// whole key.
func eachLine(r io.Reader, f func(string) error) error {
	const longest = 64 << 10
	in := bufio.NewReaderSize(r, longest)
	for {
		line, more, err := in.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		text := strings.TrimSpace(string(line))
		for more && err == nil {
			_, more, err = in.ReadLine()
		}
		if text == "" {
			continue
		}
		if err := f(text); err != nil {
			return err
		}
	}
}

func printVerified(w io.Writer, e *keys.Explanation, asJSON bool) error {
	v := verified{
		Class: e.Class.String(), Reason: optionalWord(e.Reason.String()), Scheme: optionalWord(e.Scheme),
		Originator: optionalWord(e.Originator), KID: optionalWord(e.KID), Proven: e.Proven, Detail: e.Detail,
	}
	if !e.Minted.IsZero() {
		v.Minted = optionalWord(e.Minted.Format("2006-01-02T15:04:05.000Z"))
		v.AgeMS = optional(float64(e.Age.Milliseconds()), true)
	}
	if asJSON {
		j := json.NewEncoder(w)
		j.SetEscapeHTML(false)
		if err := j.Encode(v); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		return nil
	}
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-11s %s\n", name, value)
		}
	}
	row("class", v.Class)
	row("reason", e.Reason.String())
	row("detail", e.Detail)
	row("originator", claim(e.Originator, e.Proven))
	row("kid", claim(e.KID, e.Proven))
	if v.Minted != nil {
		row("minted", claim(*v.Minted, e.Proven))
		row("age", age(e.Age))
	}
	b.WriteString("\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// claim marks what a key says of itself and does not prove.
func claim(s string, proven bool) string {
	if s == "" || proven {
		return s
	}
	return s + " (it says)"
}

func age(d time.Duration) string {
	if d < 0 {
		return "minted " + (-d).Round(time.Millisecond).String() + " ahead"
	}
	return d.Round(time.Millisecond).String()
}

// timeFlag reads --at.
func timeFlag(p *program, at string) (time.Time, error) {
	if at == "" {
		return p.now(), nil
	}
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return t, errors.New("--at: want a time such as 2026-03-03T10:15:42Z")
	}
	return t, nil
}
