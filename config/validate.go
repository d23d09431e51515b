package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate returns everything that contradicts the fields' constraints or each
// other, joined. Load and Parse have done so already; it is for a Config that
// was changed since, or built in Go.
func (c *Config) Validate() error { return joinFaults(c.file, c.written, c.faults()) }

// ValidateOriginators returns the originators whose declared deadline the
// horizon is too short for.
func (c *Config) ValidateOriginators(originators []Originator) error {
	k := checks{}
	for _, o := range originators {
		if need := 3 * o.Deadline; o.Deadline > math.MaxInt64/3 || c.Keys.Horizon < need {
			k.add("keys.horizon", "found %s: want at least three times the deadline of originator %s (%s): a retry after that long would count as a new question",
				formatDuration(c.Keys.Horizon), o.ID, formatDuration(o.Deadline))
		}
	}
	return joinFaults(c.file, c.written, k.faults)
}

// checks gathers faults.
type checks struct{ faults []fault }

func (k *checks) add(path, format string, args ...any) {
	k.faults = append(k.faults, fault{path: path, text: fmt.Sprintf(format, args...)})
}

// missing notes that parent lacks key, unless something in parent could not be
// read at all: it may have been that.
func (k *checks) missing(parent, key, format string, args ...any) {
	k.faults = append(k.faults, fault{path: dotted(parent, key), text: fmt.Sprintf(format, args...), also: []string{parent}})
}

func (k *checks) share(path string, v float64) {
	if !(v >= 0 && v <= 1) {
		k.add(path, "found %v: want a ratio from 0 to 1", v)
	}
}

func (k *checks) rate(path string, v float64) {
	if !(v >= 0) || math.IsInf(v, 0) {
		k.add(path, "found %v: want a number of 0 or more", v)
	}
}

func (k *checks) between(path string, v, low, high int) {
	if v < low || v > high {
		if high == math.MaxInt {
			k.add(path, "found %d: want a whole number of %d or more", v, low)
			return
		}
		k.add(path, "found %d: want a whole number from %d to %d", v, low, high)
	}
}

func (k *checks) positive(path string, v time.Duration) {
	if v <= 0 {
		k.add(path, "found %s: want a duration above 0", formatDuration(v))
	}
}

func (k *checks) notNegative(path string, v time.Duration) {
	if v < 0 {
		k.add(path, "found %s: want a duration of 0 or more", formatDuration(v))
	}
}

func (k *checks) oneOf(path, v string, allowed ...string) {
	if slices.Contains(allowed, v) {
		return
	}
	near, _ := nearest(v, allowed)
	k.add(path, "found %q: want one of %s; the nearest is %q", clip(v), strings.Join(allowed, ", "), near)
}

func (k *checks) filled(path string, list []string) {
	for i, text := range list {
		if text == "" {
			k.add(index(path, i), "found an empty text: want one that can match")
		}
	}
}

// hostPort checks a listener's or server's address. An empty host is every
// address of the machine, which only a listener may have.
func (k *checks) hostPort(path, v string, listener bool) {
	host, port, err := net.SplitHostPort(v)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || !listener && (host == "" || n == 0) || strings.ContainsAny(host, "/@ ") {
		k.add(path, "found %q: want host:port, such as 127.0.0.1:9464", clip(v))
	}
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// faults returns everything that Validate refuses.
func (c *Config) faults() []fault {
	k := &checks{}
	c.checkDependency(k)
	c.checkSources(k)
	c.checkRouting(k)
	c.checkTimes(k)
	c.checkKeys(k)
	c.Budget.check(k)
	c.Declared.check(k, "declared")
	c.checkStore(k)
	c.checkEnds(k)
	return k.faults
}

func (c *Config) checkDependency(k *checks) {
	if (c.Dependency.Name == "") == (c.Dependency.Field == "") {
		k.missing("dependency", "name", "want exactly one of a name and a field, such as dependency: inventory or dependency: {field: upstream_cluster}")
	}
}

func (c *Config) checkRouting(k *checks) {
	k.between("routes.max", c.Routes.Max, 1, 10_000)
	seen := map[string]int{}
	for i, t := range c.Routes.Templates {
		at := index("routes.templates", i)
		if err := checkTemplate(t); err != nil {
			k.add(at, "found %q: %v", clip(t), err)
			continue
		}
		if first, dup := seen[t]; dup {
			k.add(at, "found %q: is routes.templates[%d] already; remove one", clip(t), first)
		}
		seen[t] = i
	}
	k.between("peers.max", c.Peers.Max, 1, 250)
	for _, peer := range sortedKeys(c.Peers.Map) {
		at := keyed("peers.map", peer)
		if err := checkPeer(peer); err != nil {
			k.add(at, "%v", err)
		}
		if c.Peers.Map[peer] == "" {
			k.add(at, "found an empty text: want the workload's name")
		}
	}
	for _, peer := range sortedKeys(c.Peers.CallerTimeout) {
		k.positive(keyed("peers.caller_timeout", peer), c.Peers.CallerTimeout[peer])
	}
	k.filled("ignore.paths", c.Ignore.Paths)
	k.filled("ignore.user_agents", c.Ignore.UserAgents)
	k.filled("ignore.peers", c.Ignore.Peers)
	for i, status := range c.Responses.Refused {
		if status < 400 || status > 599 {
			k.add(index("responses.refused", i), "found %d: want a status from 400 to 599", status)
		}
	}
}

// checkTemplate accepts "METHOD /path/{id}" and "/path/{id}".
func checkTemplate(t string) error {
	const form = `want "METHOD /path/{id}" or "/path/{id}"`
	method, path, found := strings.Cut(t, " ")
	if !found {
		method, path = "", t
	} else if method == "" || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return fmt.Errorf("a method is upper-case letters: %s", form)
	}
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \t\n?#") {
		return fmt.Errorf("%s, without query", form)
	}
	names := map[string]bool{}
	for rest := path; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			break
		}
		end := strings.IndexByte(rest, '}')
		if rest[i] == '}' || end < 0 {
			return fmt.Errorf("{ and } do not pair: %s", form)
		}
		name := rest[i+1 : end]
		if name == "" || strings.ContainsAny(name, "{/") {
			return fmt.Errorf("a name in {} is one plain word: %s", form)
		}
		if names[name] {
			return fmt.Errorf("{%s} stands twice", clip(name))
		}
		names[name] = true
		rest = rest[end+1:]
	}
	return nil
}

// checkPeer refuses what was meant as a CIDR and is none. Names may hold
// slashes (spiffe://…), so only what begins with an address counts as meant.
func checkPeer(peer string) error {
	host, _, slash := strings.Cut(peer, "/")
	digits := strings.Trim(host, "0123456789.") == "" && strings.Contains(host, ".")
	if _, err := netip.ParseAddr(host); err != nil && !digits {
		return nil
	}
	if !slash {
		if _, err := netip.ParseAddr(peer); err != nil {
			return fmt.Errorf("no address: want one such as 10.0.0.1, a CIDR such as 10.0.0.0/8, or a name")
		}
		return nil
	}
	p, err := netip.ParsePrefix(peer)
	if err != nil {
		return fmt.Errorf("no CIDR: want one such as 10.0.0.0/8 or fd00::/8")
	}
	if p != p.Masked() {
		return fmt.Errorf("CIDR with bits beyond its length: want %s", p.Masked())
	}
	return nil
}

func (c *Config) checkTimes(k *checks) {
	k.positive("time.lateness", c.Time.Lateness)
	k.positive("time.idle", c.Time.Idle)
	k.positive("time.max_future", c.Time.MaxFuture)
	k.notNegative("time.skew", c.Time.Skew)
}

func (c *Config) checkKeys(k *checks) {
	if len(c.Keys.Accept) == 0 {
		k.missing("keys", "accept", "want at least one scheme, such as [qk1, qk2]")
	}
	verifiable := false
	seen := map[Accept]int{}
	for i, a := range c.Keys.Accept {
		at := index("keys.accept", i)
		switch {
		case (a.Scheme == "") == (a.Field == ""):
			k.missing(at, "scheme", "want exactly one of a scheme and a field, such as qk1 or {field: my_id}")
		case a.Scheme != "":
			k.oneOf(at, a.Scheme, schemes...)
		}
		verifiable = verifiable || a.Scheme == "qk1" || a.Scheme == "qk2"
		if first, dup := seen[a]; dup {
			k.add(at, "is keys.accept[%d] already; remove one", first)
		} else {
			seen[a] = i
		}
	}
	if c.Keys.RequireVerified && !verifiable && len(c.Keys.Accept) > 0 {
		k.faults = append(k.faults, fault{path: "keys.require_verified", also: []string{"keys.accept"},
			text: "found true while keys.accept has neither qk1 nor qk2: nothing could be attributed"})
	}
	k.positive("keys.horizon", c.Keys.Horizon)
	if c.Keys.Horizon > maxHorizon {
		k.add("keys.horizon", "found %s: want at most %s", formatDuration(c.Keys.Horizon), formatDuration(maxHorizon))
	}
	k.positive("keys.lifetime", c.Keys.Lifetime)
	longest, whose := c.Declared.Deadline, "declared.deadline"
	for _, peer := range sortedKeys(c.Peers.CallerTimeout) {
		if t := c.Peers.CallerTimeout[peer]; t > longest {
			longest, whose = t, keyed("peers.caller_timeout", peer)
		}
	}
	if longest > math.MaxInt64/3 || c.Keys.Horizon > 0 && c.Keys.Horizon < 3*longest {
		k.faults = append(k.faults, fault{path: "keys.horizon", also: []string{whose}, text: fmt.Sprintf(
			"found %s: want at least three times the longest declared deadline (%s: %s): a retry after that long would count as a new question",
			formatDuration(c.Keys.Horizon), whose, formatDuration(longest))})
	}
	for _, route := range sortedKeys(c.Keys.Discriminator) {
		if c.Keys.Discriminator[route].Field == "" {
			k.missing(keyed("keys.discriminator", route), "field", "want the record's field that tells calls apart")
		}
	}
	k.between("keys.verify_per_second", c.Keys.VerifyPerSecond, 1, math.MaxInt)
	k.between("ledger.max_live_questions", c.Ledger.MaxLiveQuestions, 1, math.MaxInt)
}

// resolutions are the row families of the store, finest first.
var resolutions = []string{"1s", "10s", "1m", "1h"}

func (c *Config) checkStore(k *checks) {
	s := &c.Store
	switch {
	case s.SQLite != "" && s.ClickHouse != nil:
		k.add("store", "found sqlite and clickhouse: want exactly one")
	case s.SQLite == "" && s.ClickHouse == nil:
		k.missing("store", "sqlite", "want the path of a database file, or clickhouse")
	}
	if ch := s.ClickHouse; ch != nil {
		const at = "store.clickhouse"
		if len(ch.Addr) == 0 {
			k.missing(at, "addr", "want at least one host:port")
		}
		for i, addr := range ch.Addr {
			k.hostPort(index(at+".addr", i), addr, false)
		}
		if ch.Database == "" {
			k.missing(at, "database", "want the database's name")
		}
		k.password(at, ch.Password, ch.PasswordFile)
		k.clientTLS(at+".tls", ch.TLS)
		k.oneOf(at+".protocol", ch.Protocol, "native", "http")
		k.oneOf(at+".compression", ch.Compression, "lz4", "zstd", "none")
		if ch.Connections < 1 {
			k.add(at+".connections", "found %d: want at least 1", ch.Connections)
		}
	}
	k.oneOf("store.questions", s.Questions, "none", "repeated", "all")
	for _, r := range sortedKeys(s.Retention) {
		at := keyed("store.retention", r)
		if !slices.Contains(resolutions, r) {
			near, _ := nearest(r, resolutions)
			k.add(at, "unknown resolution: want one of %s; the nearest is %q", strings.Join(resolutions, ", "), near)
		}
		k.positive(at, s.Retention[r])
	}
}

func (k *checks) password(at string, password Secret, file string) {
	if password != (Secret{}) && file != "" {
		k.add(at, "found password and password_file: want one of them")
	}
}

func (k *checks) clientTLS(at string, t *ClientTLS) {
	if t != nil && (t.CertFile == "") != (t.KeyFile == "") {
		k.add(at, "found one of cert_file and key_file: want both or neither")
	}
}

// checkEnds checks what faces people: the API and the alerts.
func (c *Config) checkEnds(k *checks) {
	k.listener("api", c.API.Listen, "127.0.0.1:9464", c.API.Insecure, c.API.TLS, c.API.Tokens)
	for i, e := range c.Alerts.Alertmanagers {
		k.alertmanager(index("alerts.alertmanagers", i), e)
	}
	for i := range c.Alerts.Webhooks {
		w, at := &c.Alerts.Webhooks[i], index("alerts.webhooks", i)
		k.endpoint(at, w.URL)
		if w.Secret != (Secret{}) && w.SecretFile != "" {
			k.add(at, "found secret and secret_file: want one of them")
		}
	}
}

// listener checks who is let in where.
func (k *checks) listener(at, listen, example string, insecure bool, t *ServerTLS, tokens []Secret) {
	k.hostPort(at+".listen", listen, true)
	if t != nil && (t.CertFile == "" || t.KeyFile == "") {
		k.add(at+".tls", "want both cert_file and key_file")
	}
	for i, token := range tokens {
		if token == (Secret{}) {
			k.add(index(at+".tokens", i), "found an empty token: it would let everybody in")
		}
	}
	if !loopback(listen) && !insecure && (t == nil || len(tokens) == 0) {
		k.faults = append(k.faults, fault{path: at + ".listen", also: []string{at + ".tls", at + ".tokens", at + ".insecure"}, text: fmt.Sprintf(
			"found %q: want a loopback address such as %s, or tls and tokens, or insecure: true", clip(listen), example)})
	}
}

// endpoint says whether a URL is one.
func (k *checks) endpoint(at string, e Endpoint) bool {
	u, err := url.Parse(e.URL())
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		k.add(at, "want a URL that begins with http:// or https://")
		return false
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			k.add(at, "found a port that there is not: want one from 1 to 65535")
			return false
		}
	}
	return true
}

// apiPath ends the URL of an Alertmanager's interface, where its base is wanted.
var apiPath = regexp.MustCompile(`/api/v[0-9]+(/alerts)?/*$`)

// alertmanager checks a base URL, to which a path is added.
func (k *checks) alertmanager(at string, e Endpoint) {
	switch base := e.URL(); {
	case !k.endpoint(at, e):
	case strings.ContainsAny(base, "?#"):
		k.add(at, "found a ? or # in a base URL: want it without query and fragment, as /api/v2/alerts is added at its end; a password stands before the host, as in https://USER:PASSWORD@HOST")
	case apiPath.MatchString(base):
		k.add(at, "found the path of the API: want the base URL before it, such as http://HOST:9093, as /api/v2/alerts is added at its end")
	}
}

// loopback says that a listener is reached from this machine only. What is no
// address at all has a fault of its own.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// maxHorizon is the longest horizon that the ledger keeps (aggregate.MaxHorizon).
const maxHorizon = 24 * time.Hour
