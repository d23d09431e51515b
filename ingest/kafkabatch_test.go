package ingest

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
)

// A record that is no text is one line, whatever bytes it has, and the line is where
// the record is.
func TestBinaryRecords(t *testing.T) {
	records := []string{"plain", "two\nlines\r\n", "\x00\x0a\x0d\xff", ""}
	var lines []string
	var refs []Ref
	b := batcher{binary: true, next: 7, size: 1 << 20, take: func(b *Batch) error {
		lines = strings.Split(strings.TrimSuffix(string(b.Data), "\n"), "\n")
		refs = slices.Clone(b.Refs)
		if b.Offset != 7 || b.Next != 11 || b.Empty != 1 {
			t.Errorf("offset %d, next %d, empty %d", b.Offset, b.Next, b.Empty)
		}
		return nil
	}}
	for i, r := range records {
		if err := b.record(7+int64(i), []byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.flush(false); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 3 || len(refs) != 3 {
		t.Fatalf("%d lines and %d places of 3 records", len(lines), len(refs))
	}
	for i, line := range lines {
		if got, err := base64.StdEncoding.DecodeString(line); err != nil || string(got) != records[i] {
			t.Errorf("record %d: %q, %v", i, got, err)
		}
		if refs[i] != (Ref{Line: 1, Offset: 7 + int64(i)}) {
			t.Errorf("record %d is at %+v", i, refs[i])
		}
	}
}
