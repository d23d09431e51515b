package accesslog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// mutants makes lines that are almost those of a log: bytes changed, cut, moved,
// put in, and lines glued.
func mutants(r *rand.Rand, lines [][]byte) func() []byte {
	tokens := []string{`"`, `\`, `\"`, `,`, `}`, `{`, `[`, `]`, `:`, ` `, `-`, `.`, `null`, `true`, `false`, `0`, `12345678`,
		`123456789.5`, `""`, `"-"`, `\u00e9`, `\xC3`, "\xff", "\x00", "\t", `,"status":7`, `,"a\"b":1`, `"path":`, strings.Repeat("x", 70)}
	return func() []byte {
		b := bytes.Clone(lines[r.IntN(len(lines))])
		for range r.IntN(4) {
			i := r.IntN(len(b) + 1)
			j := min(i+r.IntN(12), len(b))
			token := tokens[r.IntN(len(tokens))]
			switch r.IntN(6) {
			case 0:
				b = b[:i]
			case 1:
				b = append(b[:i:i], b[j:]...)
			case 2:
				b = append(append(b[:i:i], token...), b[i:]...)
			case 3:
				b = append(append(b[:i:i], token...), b[j:]...)
			case 4:
				o := lines[r.IntN(len(lines))]
				b = append(b[:i:i], o[r.IntN(len(o)):]...)
			case 5:
				b = append(b, lines[r.IntN(len(lines))]...)
			}
		}
		return b[:len(b):len(b)]
	}
}

// readAll prints every record of a line.
func readAll(p *Parser, line []byte) string {
	var out strings.Builder
	for n := 0; n < 8 && (n == 0 || len(line) != 0); n++ {
		var e Entry
		rest, err := p.Parse(line, &e)
		if err != nil {
			fmt.Fprintf(&out, "%v %d %v\n", err, e.Damaged, e.Notes.Strings())
		} else {
			fmt.Fprintf(&out, "%+v\n", e)
		}
		line = rest
	}
	return out.String()
}

// spaced is how some programs write JSON.
func spaced(line []byte) []byte {
	line = bytes.ReplaceAll(line, []byte(`":`), []byte(`": `))
	return bytes.ReplaceAll(line, []byte(`,"`), []byte(`, "`))
}

// TestMarkedAgrees reads mutated lines with and without marks: with them most
// members are read by run, without them none is.
func TestMarkedAgrees(t *testing.T) {
	for _, format := range []string{"json", "nginx-json", "envoy-json", "logfmt"} {
		lines := benchLines(format, 20)
		if format == "logfmt" {
			lines = benchLines("json", 20) // in envelopes
		}
		for _, l := range lines {
			lines = append(lines, spaced(l))
		}
		for _, s := range seeds() {
			lines = append(lines, []byte(s))
		}
		c := Config{Format: format, Keys: []string{"question_key", "my_id", "path"}, Extra: []string{"shop", "protocol"}}
		marked, unmarked := mustNew(t, c), mustNew(t, c)
		unmarked.unmarked = true
		r := rand.New(rand.NewPCG(3, uint64(len(format))))
		next := mutants(r, lines)
		for range 4_000 {
			line := next()
			if got, want := readAll(marked, line), readAll(unmarked, line); got != want {
				t.Fatalf("%s, line %q:\n  marked %s\nunmarked %s", format, line, got, want)
			}
			if line = lines[r.IntN(len(lines))]; r.IntN(2) == 0 {
				if got, want := readAll(marked, line), readAll(unmarked, line); got != want {
					t.Fatalf("%s, whole line %q:\n  marked %s\nunmarked %s", format, line, got, want)
				}
			}
		}
	}
}

// TestRunReadsAll sees to it that ordinary records need nothing but run, from
// the second of a kind on, save for a bare value at the very end.
func TestRunReadsAll(t *testing.T) {
	for _, format := range []string{"json", "nginx-json", "envoy-json"} {
		p := mustNew(t, Config{Format: format})
		for i, line := range benchLines(format, 50) {
			var e Entry
			if _, err := p.Parse(line, &e); err != nil {
				t.Fatal(err)
			}
			p.tokenizeJSON(line, 0, 0)
			if i < 2 {
				continue
			}
			p.raw.reset(p.format.vendor)
			if _, next, done := p.run(line[:len(line):len(line)], 1, &p.root.first); (!done || next != len(line)) && bytes.IndexByte(line[next:], ',') >= 0 {
				t.Fatalf("%s, line %d: run stopped before %q", format, i, line[next:])
			}
		}
	}
}
