package accesslog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const patternLine = `2026-03-03T10:15:42.118Z [web-1] "GET /seats/7?x=\"y\" HTTP/1.1" 200 57 41ms gone=0 - key=q-1 peer=10.0.0.1 try 2`

const patternOf = `^(?P<time>\S+) \[[^\]]*\] "(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}) (?P<bytes_sent>\d+) (?P<duration>\S+)(?: gone=(?P<client_gone>\d))? (?P<user_agent>.*) key=(?P<question_key>\S*) peer=(?P<remote_addr>[0-9a-f.:]+)(?: try (?P<attempt>\d+))?$`

func TestPattern(t *testing.T) {
	p := mustNew(t, Config{Format: "pattern", Pattern: patternOf, Keys: []string{"question_key"}, Trace: true})
	var e Entry
	if _, err := p.Parse([]byte(patternLine), &e); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%d %s %s %d %d %v %q %s %s %d %v %v", e.Start, e.Method, e.Path, e.Status, e.BytesSent, e.Duration, e.UserAgent, e.Keys[0], e.Peer, e.Attempt, e.Gone, e.Visible)
	if want := `1772532942118000000 GET /seats/7?x=\"y\" 200 57 41000000 "" q-1 10.0.0.1 2 no true`; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if e.Sources["peer"] != "remote_addr" || e.Sources["path"] != "" || e.Sources["request"] != "request" {
		t.Errorf("sources %v", e.Sources)
	}
	// Optional parts that are not there.
	if _, err := p.Parse([]byte(strings.Replace(strings.TrimSuffix(patternLine, " try 2"), " gone=0", "", 1)), &e); err != nil || e.Attempt != 0 || e.Visible {
		t.Errorf("%v, attempt %d, visible %v", err, e.Attempt, e.Visible)
	}
	for line, want := range map[string]error{
		patternLine + " more": RejectSyntax, patternLine[:60]: RejectCut, "a message": RejectSyntax,
		strings.Replace(patternLine, "2026", "1826", 1): RejectBadTime,
	} {
		if _, err := p.Parse([]byte(line), &e); err != want {
			t.Errorf("%s: got %v, want %v", line, err, want)
		}
	}
}

// With nginx's fields in it a line is read as nginx's.
func TestPatternOfNginx(t *testing.T) {
	p := mustNew(t, Config{Format: "pattern", Pattern: `(?P<time>\S+) (?P<status>\d+) (?P<request_time>\S+) (?P<request_completion>\S*)`})
	var e Entry
	if _, err := p.Parse([]byte("2026-03-03T10:15:42.118Z 499 0.118 "), &e); err != nil || e.Start != 1772532942e9 || e.Departure != BeforeResponse {
		t.Errorf("%v, start %d, %v", err, e.Start, e.Departure)
	}
}

func TestPatternErrors(t *testing.T) {
	for _, tt := range []struct{ pattern, fields, want string }{
		{"", "", "needs a pattern"},
		{`(?P<time>\S+`, "", "missing closing )"},
		{`(?P<time>[z-a])`, "", `invalid character class range at "z-a"`},
		{`(?P<time>\S+) (?P<staus>\d+)`, "", `group "staus" is no field, did you mean "status"?`},
		{`(?P<status>\d+)`, "", "no time"},
		{`(?P<time>\S+) (?P<status>\S+) (?P<status>\S+)`, "", `group "status" is there twice`},
		{`(?P<time>\S+)\b`, "", `\b`},
		{`(?P<time>[α-ω]+)`, "", "outside ASCII"},
		{`(?P<time>\S+)` + strings.Repeat(`(?:ab){0,999}`, 6), "", "too large"},
		{`(?P<time>\S+)`, "rid", `nothing in it is called "rid", which fields.question_key names`},
	} {
		c := Config{Format: "pattern", Pattern: tt.pattern}
		if tt.fields != "" {
			c.Fields = map[string]string{"question_key": tt.fields}
		}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.pattern, err, tt.want)
		}
	}
	if _, err := New(Config{Format: "json", Pattern: "x"}); err == nil || !strings.Contains(err.Error(), "no pattern") {
		t.Errorf("got %v", err)
	}
}

func TestPatternGives(t *testing.T) {
	p := mustNew(t, Config{Format: "pattern", Pattern: `(?P<time>\S+) (?P<rid>\S+) (?P<shop>\S+)`,
		Fields: map[string]string{"question_key": "rid"}, Keys: []string{"question_key", "shop", "idempotency_key"}})
	for name, want := range map[string]bool{"question_key": true, "shop": true, "idempotency_key": false, "attempt": false, "other": false} {
		if p.Gives(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	if !mustNew(t, Config{Format: "json"}).Gives("question_key") {
		t.Error("json gives what it is given")
	}
}

// patternsForOracle hold every construct. Names are canonical, since only those
// can be compared.
var patternsForOracle = []string{
	patternOf,
	`(?P<time>\S+) (?P<path>.*) (?P<status>\d+)`,
	`(?P<time>.*?)(?: (?P<path>a|ab|abc))?(?P<status>[bc]*)( (?P<peer>x+?)(?P<method>x*))?`,
	`(?P<time>(?:ab?){1,3})(?P<path>(?:[^"\\]|\\.)*)(?P<status>"?.{0,2})`,
	`(?i)(?P<time>get|POST)(?P<path>(?:a*)*)(?P<status>(?:b|)+)(?P<peer>[^a]{2,})?`,
	`(?P<time>a+)(?P<path>a+)(?P<method>(?:(?:a|b)*?c)*)$`,
	`(?P<time>"(?:\\.|[^"\\]+)*")(?P<path>.*)`,
	`(?P<time>(?:\\.|[^"\\])*)(?P<path>\\?"?[a-c]*)(?P<peer>.*)`,
	`(?P<time>(?:x(?P<path>a)?)*)(?P<peer>.*)`,
}

// matchBoth holds the program to what Go's regexp finds, group by group.
func matchBoth(t *testing.T, p *Parser, re *regexp.Regexp, line []byte) {
	t.Helper()
	prog := p.program
	ok := prog.match(line)
	if prog.steps < 0 {
		return // refused: too many ways
	}
	want := re.FindSubmatchIndex(line)
	if ok != (want != nil) {
		t.Fatalf("%s on %q: matched %v, want %v", re, line, ok, want != nil)
	}
	if !ok {
		return
	}
	n := 0
	for i, name := range re.SubexpNames() {
		if name == "" {
			continue
		}
		if got := prog.groups[2*n : 2*n+2]; got[0] >= 0 != (want[2*i] >= 0) || got[0] >= 0 && !slices.Equal(got, want[2*i:2*i+2]) {
			t.Fatalf("%s on %q: %s is %v, want %v", re, line, name, got, want[2*i:2*i+2])
		}
		n++
	}
}

func oracle(t testing.TB, pattern string) (*Parser, *regexp.Regexp) {
	p, err := New(Config{Format: "pattern", Pattern: pattern})
	if err != nil {
		t.Fatal(err)
	}
	return p, regexp.MustCompile(`^(?:` + pattern + `)$`)
}

func TestPatternAgreesWithRegexp(t *testing.T) {
	words := []string{"", "a", "ab", "abc", "b", "c", " ", `"`, `\`, `\"`, "x", "xx", "get", "POST", "200"}
	for _, pattern := range patternsForOracle {
		p, re := oracle(t, pattern)
		matchBoth(t, p, re, []byte(patternLine))
		for _, a := range words {
			for _, b := range words {
				for _, c := range words {
					matchBoth(t, p, re, []byte(a+b+c))
				}
			}
		}
		r := rand.New(rand.NewPCG(7, 8))
		for range 3000 {
			var line []byte
			for range 4 + r.IntN(8) {
				line = append(line, words[r.IntN(len(words))]...)
			}
			matchBoth(t, p, re, line)
		}
	}
}

// A line that can be read in very many ways costs no more than its length says.
func TestPatternIsBounded(t *testing.T) {
	p := mustNew(t, Config{Format: "pattern", Pattern: `(?P<time>(?:a|b|ab)*)(?:(?:a*)*b)*c`})
	var e Entry
	if _, err := p.Parse(bytes.Repeat([]byte("ab"), 1<<15), &e); err != RejectSyntax {
		t.Errorf("got %v", err)
	}
	long := mustNew(t, Config{Format: "pattern", Pattern: `(?P<time>\S+) (?P<path>(?:[^"\\]|\\.)*) (?P<peer>.*)`})
	line := append([]byte("2026-03-03T10:15:42Z "), bytes.Repeat([]byte(`\" x`), 1<<16)...)
	if _, err := long.Parse(line, &e); err != nil {
		t.Errorf("got %v", err)
	}
}

// FuzzPattern compares what expressions find with Go's regexp.
func FuzzPattern(f *testing.F) {
	type pair struct {
		p  *Parser
		re *regexp.Regexp
	}
	var pairs []pair
	for _, pattern := range patternsForOracle {
		p, re := oracle(f, pattern)
		pairs = append(pairs, pair{p, re})
	}
	for i := range patternsForOracle {
		f.Add(uint8(i), []byte(patternLine), "")
	}
	f.Add(uint8(0), []byte(`abc "a\"" 200`), `(?P<time>[^ ]+)(?: (?P<path>.+?))*`)
	f.Fuzz(func(t *testing.T, n uint8, line []byte, pattern string) {
		one := pairs[int(n)%len(pairs)]
		if len(pattern) < 100 && !bytes.ContainsFunc([]byte(pattern), func(r rune) bool { return r > 126 }) {
			if p, err := New(Config{Format: "pattern", Pattern: pattern}); err == nil {
				// A part of the line only, as regexp's ^ and $ in (?m) would have it.
				if re, err := regexp.Compile(`^(?:` + pattern + `)$`); err == nil && !strings.Contains(pattern, "m") {
					one = pair{p, re}
				}
			}
		}
		if !bytes.ContainsFunc(line, func(r rune) bool { return r > 126 || r == '\n' }) {
			matchBoth(t, one.p, one.re, line)
		}
		fuzzLine(t, one.p, bytes.Clone(line))
	})
}

// Every canonical name can be a group.
func TestPatternNames(t *testing.T) {
	for _, name := range []string{"duration_s", "start_time", "grpc_timeout", "x_request_id"} {
		if _, err := New(Config{Format: "pattern", Pattern: `(?P<time>\S+) (?P<` + name + `>\S+)`}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range fieldNames[:fArrivalID] {
		if name == "end_time" {
			continue
		}
		if _, err := New(Config{Format: "pattern", Pattern: `(?P<end_time>\S+) (?P<` + name + `>\S+)`}); err != nil {
			t.Error(err)
		}
	}
}
