package ingest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a spool makes of files that were cut, damaged, deleted or are of another version.

func TestSpoolCutsATornTailOffAtAnyByte(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSpool(SpoolConfig{Dir: dir})
	must(t, err)
	var ends []int64
	for i := range 6 {
		add(t, s, fmt.Sprintf("entry %d\nits second line\n", i))
		ends = append(ends, s.end)
	}
	all, _, _ := readSpool(t, s, 0)
	must(t, s.Close())
	begin := s.segs[0].base
	whole, err := os.ReadFile(segmentPath(dir, begin))
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for size := range len(whole) + 1 {
		for _, tail := range [][]byte{nil, make([]byte, 30), {1, 2, 3}, bytes.Repeat([]byte{byte(rng.Uint32())}, 9)} {
			torn := t.TempDir()
			must(t, os.WriteFile(segmentPath(torn, begin), append(slices.Clone(whole[:size]), tail...), 0o600))
			s, err := openSpool(SpoolConfig{Dir: torn}, fastDisk())
			must(t, err)
			sound := 0
			for _, end := range ends {
				if end <= begin+int64(size) {
					sound++
				}
			}
			got, next, gap := readSpool(t, s, 0)
			if textOf(got) != textOf(all[:2*sound]) || gap != 0 {
				t.Fatalf("cut at %d with a tail of %d bytes: %d lines, gap %d; want %d", size, len(tail), len(got), gap, 2*sound)
			}
			add(t, s, "new\n")
			if got, _, gap := readSpool(t, s, next); textOf(got) != "new\n" || gap != 0 || got[0].at.Offset < next {
				t.Fatalf("cut at %d: then read %v, gap %d", size, got, gap)
			}
			must(t, s.Close())
		}
	}
}

func TestSpoolLosesOnlyWhatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSpool(SpoolConfig{Dir: dir, SegmentSize: 150})
	must(t, err)
	for i := range 14 {
		add(t, s, fmt.Sprintf("entry %02d\nits second line\n", i))
	}
	all, end, _ := readSpool(t, s, 0)
	must(t, s.Close())
	segs, err := segments(dir)
	must(t, err)
	if len(segs) < 4 {
		t.Fatalf("%d segments", len(segs))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, seg := range segs {
		data, err := os.ReadFile(seg.path)
		must(t, err)
		for at := range data {
			broken := copyDir(t, dir)
			bad := slices.Clone(data)
			bad[at] ^= byte(1 + rng.IntN(255))
			must(t, os.WriteFile(filepath.Join(broken, filepath.Base(seg.path)), bad, 0o600))
			s, err := openSpool(SpoolConfig{Dir: broken, SegmentSize: 150}, fastDisk())
			must(t, err)
			got, next, gap := readSpool(t, s, 0)
			var want []takenLine // all but the frame that holds the byte
			hit := seg.base + int64(at)
			lost := int64(0)
			for i, l := range all {
				behind := end
				for _, m := range all[i:] {
					if m.at.Offset > l.at.Offset {
						behind = m.at.Offset
						break
					}
				}
				if at >= segmentHeader && hit >= l.at.Offset && hit < behind && behind-l.at.Offset < 100 {
					lost++
					continue
				}
				want = append(want, l)
			}
			tail := lost > 0 && next < end // the last frame is taken for a torn one
			if textOf(got) != textOf(want) || (gap > 0) != (lost > 0 && !tail) || tail && hit < end-100 {
				t.Fatalf("byte %d of %s: %d lines, gap %d, to %d; want %d, to %d", at, seg.path, len(got), gap, next, len(want), end)
			}
			add(t, s, "new\n")
			if got, _, gap := readSpool(t, s, next); textOf(got) != "new\n" || gap != 0 {
				t.Fatalf("byte %d of %s: then read %q, gap %d", at, seg.path, textOf(got), gap)
			}
			must(t, s.Close())
		}
	}
}

func TestSpoolReadsOnWithoutASegment(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSpool(SpoolConfig{Dir: dir, SegmentSize: 50})
	must(t, err)
	for i := range 5 {
		add(t, s, fmt.Sprintf("entry %d, one a segment, is long enough\n", i))
	}
	must(t, s.Close())
	segs, err := segments(dir)
	must(t, err)
	must(t, os.Remove(segs[0].path))
	must(t, os.Remove(segs[2].path))
	must(t, os.Truncate(segs[3].path, 30))
	must(t, os.WriteFile(positionPath(dir), []byte(`{"version":1,"offset":77777}`), 0o600)) // damaged: without its sum
	s = newSpool(t, SpoolConfig{Dir: dir}, realDisk())
	got, _, gap := readSpool(t, s, 0)
	if want := "entry 1, one a segment, is long enough\nentry 4, one a segment, is long enough\n"; textOf(got) != want {
		t.Errorf("read %q", textOf(got))
	}
	if want := segs[4].base - segs[2].base - segmentHeader; gap < want-segmentHeader || gap > want+segs[0].end {
		t.Errorf("gap %d, want about %d", gap, want)
	}
	for _, bad := range []func(string){
		func(d string) {
			must(t, os.WriteFile(positionPath(d), []byte(`{"version":2,"offset":0,"metadata":"","sum":`+fmt.Sprint(spoolPosition{Version: 2}.sum())+`}`), 0o600))
		},
		func(d string) {
			h := appendHeader(nil, 0)
			h[6] = 2
			h = append(h[:16], crcOf(h[:16])...)
			must(t, os.WriteFile(segmentPath(d, 0), h, 0o600))
		},
	} {
		d := t.TempDir()
		bad(d)
		if s, err := OpenSpool(SpoolConfig{Dir: d}); err == nil || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("of a later version: %v", err)
			s.Close()
		}
	}
}

func crcOf(b []byte) []byte {
	h := appendHeader(nil, 0)
	copy(h, b)
	sum := crc32Of(h[:16])
	return []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)}
}

// What is written into a segment that was deleted under the spool would not be kept:
// it goes into another, and what was read of it by nobody is a gap.
func TestSpoolGoesOnWhenItsFilesAreGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s, err := openSpool(SpoolConfig{Dir: dir}, realDisk())
	must(t, err)
	defer s.Close()
	kept := func(want string) { // after a crash
		t.Helper()
		again := newSpool(t, SpoolConfig{Dir: copyDir(t, dir)}, realDisk())
		if lines, _, _ := readSpool(t, again, 0); textOf(lines) != want {
			t.Errorf("kept is %q, want %q", textOf(lines), want)
		}
	}
	add(t, s, "a\n")
	kept("a\n")
	first := s.segs[0].base
	must(t, os.Remove(s.segs[len(s.segs)-1].path))
	add(t, s, "b\n")
	kept("b\n")
	path := s.segs[len(s.segs)-1].path
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, os.Rename(path, path+".aside"))
	must(t, os.WriteFile(path, data, 0o600))
	add(t, s, "c\n")
	kept("b\nc\n")
	gone := s.segs[len(s.segs)-1].end - first
	must(t, os.RemoveAll(dir))
	add(t, s, "d\n")
	kept("d\n")
	if _, err := openSpool(SpoolConfig{Dir: dir}, realDisk()); err == nil {
		t.Error("another process may open the directory that was made anew")
	}
	lines, _, gap := readSpool(t, s, 0)
	if textOf(lines) != "d\n" || gap < gone || gap > gone+2*segmentHeader {
		t.Errorf("read %q after a gap of %d, want d after one of %d", textOf(lines), gap, gone)
	}
	s.reader.release(Position{Offset: s.reader.at()})
	must(t, os.RemoveAll(dir))
	add(t, s, "e\n")
	if lines, _, gap := readSpool(t, s, 0); textOf(lines) != "e\n" || gap > 2*segmentHeader {
		t.Errorf("read %q after a gap of %d, want e: all before was released", textOf(lines), gap)
	}
}
