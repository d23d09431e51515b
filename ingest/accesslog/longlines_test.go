package accesslog

import (
	"strings"
	"testing"
	"time"
)

// Whatever a line is made of, the time that it takes grows with its length, not with the
// square of it.
func TestLongLines(t *testing.T) {
	heads := []string{"", `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET / HTTP/1.1" 200 5 "-" "a" `,
		`[2026-03-03T10:15:42.118Z] "GET /a HTTP/1.1" 200 - 0 5 3 2 "-" "`, `{"a":"`}
	units := []string{`] "`, `[ `, `a=[ `, `x="a"b `, `" `, `a" `, `[03/Mar/2026:10:15:42 +0000] "`, `\x`, ` : `, `, `, `{"a":{`, `{"a":[`, `{"a":"b`, `{"log":"`}
	late := time.Now().Add(60 * time.Second)
	for _, format := range Formats() {
		c := Config{Format: format, Keys: []string{"question_key"}}
		if format == "pattern" {
			c.Pattern = patternOf
		}
		p := mustNew(t, c)
		for _, head := range heads {
			for _, unit := range units {
				for line := []byte(head + strings.Repeat(unit, 1<<17/len(unit))); len(line) != 0; {
					rest, _ := p.Parse(line, &Entry{})
					if len(rest) >= len(line) {
						t.Fatalf("%s: no progress", format)
					}
					if line = rest; time.Now().After(late) {
						t.Fatalf("%s: %s and many times %s take too long", format, head, unit)
					}
				}
			}
		}
	}
}

// A value with raw quotes is passed over, and a line of nothing else is refused.
func TestOddTokens(t *testing.T) {
	p := mustNew(t, Config{Format: "logfmt", Keys: []string{"question_key"}})
	line := func(n int) string {
		return `time=2026-03-03T10:15:42Z path=/a agent="` + strings.Repeat(`a"b `, n) + `x" question_key=q-1`
	}
	var e Entry
	if _, err := p.Parse([]byte(line(maxOdd-2)), &e); err != nil || string(e.Path) != "/a" || !e.KeySuspect {
		t.Errorf("%v, path %s, suspect %v", err, e.Path, e.KeySuspect)
	}
	if _, err := p.Parse([]byte(line(4*maxOdd)), &e); err != RejectSyntax {
		t.Errorf("many: %v", err)
	}
	whole := `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET / HTTP/1.1" 200 5 "-" "a"` + strings.Repeat(` [::1]:80`, maxOdd)
	p = mustNew(t, Config{Format: "nginx-combined"})
	if _, err := p.Parse([]byte(whole), &e); err != nil {
		t.Errorf("addresses: %v", err)
	}
}
