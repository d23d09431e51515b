package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// framed cuts a stream that is read in parts of the sizes given, the last one again
// and again.
func framed(stream string, max int, sizes ...int) (messages []string, truncated int64) {
	f := syslogFrames{max: max}
	for i := 0; len(stream) > 0; i++ {
		room := f.room()
		n := min(len(stream), len(room), sizes[min(i, len(sizes)-1)])
		copy(room, stream[:n])
		f.took(n)
		stream = stream[n:]
		for m, ok := f.next(); ok; m, ok = f.next() {
			messages = append(messages, string(m))
		}
	}
	f.end()
	return messages, f.truncated
}

func TestSyslogFrames(t *testing.T) {
	counted := func(m string) string { return fmt.Sprintf("%d %s", len(m), m) }
	for _, c := range []struct {
		name, stream string
		want         []string
		truncated    int64
	}{
		{"line feeds", "<1>a\n<1>b\r\n<1>c\n", []string{"<1>a", "<1>b\r", "<1>c"}, 0},
		{"counts", counted("<1>a") + counted("<1>b\nb") + counted("<1>c"), []string{"<1>a", "<1>b\nb", "<1>c"}, 0},
		{"counts, and a line feed behind each", counted("<1>a") + "\n" + counted("<1>b") + "\n", []string{"<1>a", "<1>b"}, 0},
		{"both in one stream", "<1>a\n" + counted("<1>b") + "<1>c\n", []string{"<1>a", "<1>b", "<1>c"}, 0},
		{"lines that begin with numbers", "10.0.0.1 - - x\n404 not a count\n7 <1>abcd\n", []string{"10.0.0.1 - - x", "404 not a count", "<1>abcd"}, 0},
		{"a number that is no count", "0 <1>a\n1234567890 <1>b\n12345x\n", []string{"0 <1>a", "1234567890 <1>b", "12345x"}, 0},
		{"empty lines", "\n\n<1>a\n\n", []string{"<1>a"}, 0},
		{"cut before its line feed", "<1>a\n<1>b", []string{"<1>a"}, 1},
		{"cut before its count is over", "<1>a\n5 <1>b", []string{"<1>a"}, 1},
		{"cut in its count", "<1>a\n12", []string{"<1>a"}, 1},
		{"too long", "<1>a\n" + strings.Repeat("x", 101) + "\n<1>b\n", []string{"<1>a", "<1>b"}, 1},
		{"too long by its count", counted("<1>a") + counted("<"+strings.Repeat("x", 100)) + counted("<1>b"), []string{"<1>a", "<1>b"}, 1},
		{"as long as can be", strings.Repeat("x", 100) + "\n" + counted("<"+strings.Repeat("x", 99)), []string{strings.Repeat("x", 100), "<" + strings.Repeat("x", 99)}, 0},
		{"too long, and cut", strings.Repeat("x", 300), nil, 1},
		{"nothing", "", nil, 0},
	} {
		for _, sizes := range [][]int{{1 << 20}, {1}, {3, 1, 7}} {
			got, truncated := framed(c.stream, 100, sizes...)
			if !slices.Equal(got, c.want) || truncated != c.truncated {
				t.Errorf("%s, in parts of %d: %q and %d truncated, want %q and %d", c.name, sizes, got, truncated, c.want, c.truncated)
			}
		}
	}
}

// FuzzSyslog holds the framer to its promise that what it gives does not depend on how
// the stream was cut, and messages to being one line each.
func FuzzSyslog(f *testing.F) {
	f.Add("<190>Mar  3 10:15:42 web-1 nginx: {\"a\":1}\n<13>1 - h a - - [x a=\"]\"] b\n", uint8(3))
	f.Add("57 <134>1 2026-03-03T10:15:42+01:00 - haproxy 811 - - a line\n<1>b", uint8(1))
	f.Add("9 <13>a\nb\n 999 <x\n10.0.0.1 - -\n", uint8(9))
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		const max = 64
		whole, lost := framed(stream, max, 1<<20)
		parts, lostToo := framed(stream, max, 1+int(size))
		if !slices.Equal(whole, parts) || lost != lostToo {
			t.Fatalf("whole %q and %d truncated, in parts of %d %q and %d", whole, lost, 1+int(size), parts, lostToo)
		}
		for _, m := range whole {
			if len(m) > max {
				t.Fatalf("%q is longer than a message may be", m)
			}
			line := string(appendSyslog(nil, []byte(m)))
			if line != "" && strings.Index(line, "\n") != len(line)-1 {
				t.Fatalf("%q became %q, which is not one line", m, line)
			}
		}
	})
}
