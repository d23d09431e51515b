package accesslog

import (
	"strings"
	"testing"
)

// A line of text that a source ends in without a line feed is no record: what is left
// of it may read like a whole one, with a shorter duration, or without its key. What ends
// in a brace, or lies in an envelope that does, is whole without it.
func TestUnended(t *testing.T) {
	lines := servedLines(t)
	lines["haproxy"] = haproxyLine("q-1", "q-2")
	lines["traefik-clf"] = traefikLine
	lines["iis"] = iisLine
	lines["nginx-combined"] = `192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "a" rt=0.412 key=q-1`
	lines["logfmt"] = `time=2026-03-03T10:15:42Z method=GET path=/a status=200 duration_ms=412`
	lines["envoy-text"] = `[2026-03-03T10:15:42.118Z] "GET /export HTTP/1.1" 200 DC 0 734003 2150 12 "-" "dl/1" "11111111-2222-4333-8444-555555555555" "files.internal" "10.0.3.31:9000"`
	for _, json := range []string{"json", "nginx-json", "envoy-json"} {
		lines[json] = string(benchLines(json, 1)[0])
	}
	for format, line := range lines {
		p := mustNew(t, Config{Format: format})
		if format == "iis" {
			p = mustNew(t, Config{Format: format, Pattern: iisDefault})
		}
		read := func(text string) error {
			var e Entry
			line, rest := p.Line([]byte(text))
			if len(rest) != 0 {
				t.Fatalf("%s: more than a line", format)
			}
			_, err := p.Parse(line, &e)
			return err
		}
		wrapped := `{"message":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(line) + `"}`
		text := !p.format.json && p.format.batch == nil
		for range 2 {
			if err := read(line + "\n"); err != nil {
				t.Errorf("%s: %v", format, err)
			}
			if err := read(line); text && err != RejectCut || !text && err != nil {
				t.Errorf("%s without its line feed: %v", format, err)
			}
			if _, err := p.Parse([]byte(line), &Entry{}); err != nil {
				t.Errorf("%s, a line by itself after one without: %v", format, err)
			}
			if err := read(wrapped); err != nil {
				t.Errorf("%s in an envelope: %v", format, err)
			}
		}
		for n := len(line) - 1; text && n > len(line)/2; n-- {
			if err := read(line[:n]); err == nil {
				t.Fatalf("%s: read, and cut to %q", format, line[:n])
			}
		}
	}
}
