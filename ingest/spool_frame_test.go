package ingest

import (
	"bytes"
	"hash/crc32"
	"testing"
)

func crc32Of(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func FuzzFrame(f *testing.F) {
	f.Add([]byte{}, int64(0))
	f.Add(appendFrame(nil, 7, []byte("a line\n")), int64(7))
	f.Add(appendFrame([]byte("damaged"), 14, []byte("a line\n")), int64(7))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, int64(20))
	f.Fuzz(func(t *testing.T, data []byte, offset int64) {
		if offset < 0 || offset > 1<<60 {
			return
		}
		entry, err := frame(data, offset)
		if err == nil {
			if again := appendFrame(nil, offset, entry); !bytes.HasPrefix(data, again) {
				t.Fatalf("read %q, which is written %q", entry, again)
			}
			if _, err := frame(data, offset+1); err == nil {
				t.Fatal("the same frame is sound at another offset")
			}
		}
		limit := offset + int64(len(data))
		next, err := nextFrame(bytes.NewReader(data), offset, offset, limit)
		if err != nil {
			t.Fatal(err)
		}
		if next >= 0 {
			if _, err := frame(data[next-offset:], next); err != nil || next >= limit {
				t.Fatalf("nextFrame found %d: %v", next, err)
			}
		}
		// Behind anything at all, a sound frame is found.
		whole := appendFrame(bytes.Clone(data), limit, []byte("a line\n"))
		if at, err := nextFrame(bytes.NewReader(whole), offset, offset, offset+int64(len(whole))); err != nil || at < 0 || at > limit {
			t.Fatalf("the frame at %d was not found: %d, %v", limit, at, err)
		}
	})
}

func TestFramesAreFoundAcrossWindows(t *testing.T) {
	for _, junk := range []int{0, 1, 1<<20 - 9, 1<<20 - 8, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3<<20 - 4} {
		data := appendFrame(bytes.Repeat([]byte("j"), junk), int64(100+junk), []byte("x"))
		at, err := nextFrame(bytes.NewReader(data), 100, 100, int64(100+len(data)))
		if err != nil || at != int64(100+junk) {
			t.Errorf("behind %d bytes: found at %d, %v", junk, at, err)
		}
	}
}
