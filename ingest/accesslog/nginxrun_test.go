package accesslog

import (
	"fmt"
	"strings"
	"testing"
)

// Wherever a line is cut off and runs into the next, it is one that is damaged, and the
// next is read, with its own peer or without one.
func TestNginxRunsIn(t *testing.T) {
	for _, format := range []struct{ name, line string }{
		{"nginx-combined", `%s - - [03/Mar/2026:10:15:42 +0000] "GET %s HTTP/1.1" 200 57 "-" "agent/1" rt=0.012 ua="10.0.0.1:80" key="%s"`},
		{"nginx-combined", `%s - bob [03/Mar/2026:10:15:42 +0000|1772532942.118] "GET %s HTTP/1.1" 200 57 "http://a/" "agent/1" key="%s"`},
		{"ingress-nginx", `%s - - [03/Mar/2026:10:15:42 +0000] "GET %s HTTP/1.1" 200 57 "-" "agent/1" 204 0.093 [ns-app-80] [] 10.0.0.1:80 57 0.090 200 5f1d0c9a77e34b6c8f0b1a2d3c4e5f60 key="%s"`},
	} {
		p := mustNew(t, Config{Format: format.name, Keys: []string{"question_key"}})
		first, second := fmt.Sprintf(format.line, "192.0.2.1", "/a", "q-1"), fmt.Sprintf(format.line, "203.0.113.9", "/b", "q-2")
		for cut := 1; cut <= len(first); cut++ {
			if cut == len("192.0.2.1 ") {
				continue // two addresses in a row may be what was meant
			}
			for _, more := range []string{"", first[:cut]} {
				line := []byte(more + first[:cut] + second)
				if more != "" && cut < strings.Index(first, `" 200`) {
					continue
				}
				var e Entry
				rest, err := p.Parse(line, &e)
				want := 1 + min(len(more), 1)
				if err != nil || len(rest) != 0 || string(e.Path) != "/b" || string(e.Keys[0]) != "q-2" || e.Damaged != want || e.Notes&NoteResynchronised == 0 ||
					len(e.Peer) != 0 && string(e.Peer) != "203.0.113.9" {
					t.Errorf("%s, cut at %d: %v, path %s, key %s, peer %s, %d damaged, want %d; %v", format.name, cut, err, e.Path, e.Keys[0], e.Peer, e.Damaged, want, e.Notes.Strings())
				}
			}
		}
		// Both are cut.
		broken := first[:80] + second[:80]
		var e Entry
		rest, err := p.Parse([]byte(broken), &e)
		if err != RejectDamaged || len(rest) == 0 {
			t.Fatalf("%v, and %d bytes are left", err, len(rest))
		}
		if rest, err = p.Parse(rest, &e); err != RejectCut || len(rest) != 0 {
			t.Errorf("%v, and %d bytes are left", err, len(rest))
		}
	}
}

// What is odd and whole is one record.
func TestNginxDoesNotRunIn(t *testing.T) {
	for _, line := range []string{
		`192.0.2.1 - a - b [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "agent/1"`,
		`192.0.2.1 - a[0 [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "agent/1"`,
		`192.0.2.1, 192.0.2.2 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "agent/1"`,
		`host-1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "agent/1"`,
		`2001:db8::1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "agent/1"`,
		`192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "say "hi" [x] "GET" y"`,
		`192.0.2.1 - - [03/Mar/2026:10:15:42 +0000] "GET /a HTTP/1.1" 200 57 "-" "agent/1" [03/Mar/2026:10:15:42 +0000]`,
	} {
		var e Entry
		_, err := mustNew(t, Config{Format: "nginx-combined"}).Parse([]byte(line), &e)
		if peer, _, _ := strings.Cut(line, " "); err != nil || e.Damaged != 0 || string(e.Path) != "/a" || string(e.Peer) != peer {
			t.Errorf("%s: %v, %d damaged, path %s, peer %s", line, err, e.Damaged, e.Path, e.Peer)
		}
	}
}
