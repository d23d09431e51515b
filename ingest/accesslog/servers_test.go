package accesslog

import (
	"bytes"
	"strings"
	"testing"
)

// serverLines are the text formats of servers other than nginx and Envoy, as
// their shipped configurations write them.
var serverLines = []struct {
	config Config
	line   string
}{
	{Config{Format: "haproxy"}, "<134>Mar  3 10:15:42 lb1 haproxy[811]: " + haproxyLine("{q-1|2} {3}", "{qk1.web.a.mjq3k2zz.AAAAAAAAAAAA0001.BBBBBBBBBBBBBBBBBBBBBB|2} {3}")},
	{Config{Format: "apache", Pattern: apacheAudit}, apacheAuditLine},
	{Config{Format: "iis", Pattern: iisDefault + " cs(Question-Key)"}, iisLine + " qk1.web.a.mjq3k2zz.AAAAAAAAAAAA0001.BBBBBBBBBBBBBBBBBBBBBB"},
	{Config{Format: "traefik-clf"}, traefikLine},
	{Config{Format: "pattern", Pattern: patternOf}, patternLine},
}

func TestServersDoNotAllocate(t *testing.T) {
	for _, tt := range serverLines {
		if key := doesNotAllocate(t, tt.config, tt.line); key == "" && tt.config.Format != "traefik-clf" {
			t.Errorf("%s: no key", tt.config.Format)
		}
	}
}

// BenchmarkParseServers is to be read beside BenchmarkParse/json: no format takes
// more than three times as long for a record.
func BenchmarkParseServers(b *testing.B) {
	for _, tt := range serverLines {
		b.Run(tt.config.Format, func(b *testing.B) { benchmarkLine(b, tt.config, tt.line) })
	}
}

// FuzzHAProxy tries what syslog, captures and cut lines can look like.
func FuzzHAProxy(f *testing.F) {
	for _, line := range []string{haproxyLine(), haproxyLine("----", "CD--", " 200 ", " -1 ", "0/0/0/2/5", "0/0/0/-1/5"),
		haproxyLine("q-1", "q#7c1", "2/5", "2/+5", "/0 0/0", "/+3 0/0"), serverLines[0].line,
		haproxyLine(" {q-1|2} {3}", "") + ` abortonclose=on question_key="q\"2" x=`} {
		f.Add([]byte(line))
	}
	var parsers []*Parser
	for _, fields := range []map[string]string{nil, {"question_key": "capture 1"}, {"retry_after": "response capture 0"}} {
		p, err := New(Config{Format: "haproxy", Fields: fields, Keys: []string{"question_key"}})
		if err != nil {
			f.Fatal(err)
		}
		parsers = append(parsers, p)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, p := range parsers {
			fuzzLine(t, p, bytes.Clone(line))
		}
	})
}

// FuzzFixed tries the two formats whose columns nobody can choose line by line.
func FuzzFixed(f *testing.F) {
	f.Add([]byte(traefikLine), iisDefault)
	f.Add([]byte(iisLine), iisDefault)
	f.Add([]byte(iisHead), "date time sc-status cs(Question-Key)")
	traefik, err := New(Config{Format: "traefik-clf"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line []byte, fields string) {
		fuzzLine(t, traefik, bytes.Clone(line))
		p, err := New(Config{Format: "iis", Pattern: fields, Keys: []string{"question_key"}})
		if err == nil {
			fuzzLine(t, p, bytes.Clone(line))
		}
		if head := HeadPattern("iis", line); strings.Contains(head, "\n") {
			t.Fatalf("pattern %q", head)
		}
	})
}
