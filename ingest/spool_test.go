package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func newSpool(t testing.TB, cfg SpoolConfig, disk spoolDisk) *Spool {
	t.Helper()
	s, err := openSpool(cfg, disk)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// fastDisk is the real one without its syncs, for who opens a thousand spools.
func fastDisk() spoolDisk {
	d := realDisk()
	d.create = func(path string) (spoolFile, error) {
		f, err := realDisk().create(path)
		return unsynced{f}, err
	}
	d.reopen = func(path string, size int64) (spoolFile, error) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
		return unsynced{f}, errors.Join(err, f.Truncate(size))
	}
	d.syncDir = func(string) error { return nil }
	return d
}

type unsynced struct{ spoolFile }

func (unsynced) Sync() error { return nil }

func add(t testing.TB, s *Spool, lines string) {
	t.Helper()
	must(t, s.Append(context.Background(), []byte(lines)))
}

// readSpool reads from offset to the end, and holds batches to their promises.
func readSpool(t testing.TB, s *Spool, offset int64) (lines []takenLine, next, gap int64) {
	t.Helper()
	must(t, s.reader.seek(offset))
	low := int64(0)
	for {
		b, err := s.reader.next()
		must(t, err)
		if b == nil {
			return lines, s.reader.at(), gap
		}
		if b.Offset < low || b.Next < b.Offset {
			t.Fatalf("batch [%d, %d) after %d", b.Offset, b.Next, low)
		}
		low = b.Next
		gap += b.Gap
		n := 0
		for line := range bytes.Lines(b.Data) {
			ref := b.Refs[n]
			if ref.Offset < b.Offset || ref.Offset >= b.Next {
				t.Fatalf("ref %+v in batch [%d, %d)", ref, b.Offset, b.Next)
			}
			lines = append(lines, takenLine{ref, string(line)})
			n++
		}
		if n != len(b.Refs) {
			t.Fatalf("%d lines, %d refs", n, len(b.Refs))
		}
		b.Done()
	}
}

func textOf(lines []takenLine) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
	}
	return b.String()
}

// copyDir is a directory with the segments and the position of another.
func copyDir(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(to, e.Name()), data, 0o600))
	}
	return to
}

func TestSpoolKeepsLinesInOrder(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSpool(SpoolConfig{Dir: dir, SegmentSize: 200})
	must(t, err)
	var want string
	for i := range 50 {
		text := fmt.Sprintf("%d first\n%d second\n", i, i)
		add(t, s, text)
		want += text
	}
	long := strings.Repeat("x", 100<<10) + "\n"
	add(t, s, long+"short\n"+strings.Repeat("a line\n", 20<<10))
	want += long + "short\n" + strings.Repeat("a line\n", 20<<10)
	all, end, gap := readSpool(t, s, 0)
	if textOf(all) != want || gap != 0 {
		t.Fatalf("read %d bytes, gap %d; want %d", len(textOf(all)), gap, len(want))
	}
	if all[0].at.Line != 1 || all[1].at != (Ref{2, all[0].at.Offset}) || all[2].at.Line != 1 {
		t.Errorf("refs %+v", all[:3])
	}
	if _, err := OpenSpool(SpoolConfig{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	if err := s.Append(context.Background(), bytes.Repeat([]byte("x"), maxEntry+1)); !errors.Is(err, errLineTooLong) {
		t.Errorf("a line of more than maxEntry: %v", err)
	}
	// From the middle of an entry on, the next one is the first.
	mid := all[20].at.Offset
	for _, at := range []int64{mid, mid - 1, mid - 7} {
		if got, _, gap := readSpool(t, s, at); textOf(got) != textOf(all[20:]) || gap != 0 {
			t.Errorf("from %d: %d lines, gap %d; want %d", at, len(got), gap, len(all)-20)
		}
	}
	s.reader.release(Position{Offset: mid, Metadata: "meta"})
	must(t, s.Close())
	if err := s.Append(context.Background(), []byte("x\n")); !errors.Is(err, errSpoolClosed) {
		t.Errorf("after Close: %v", err)
	}

	s = newSpool(t, SpoolConfig{Dir: dir, SegmentSize: 200}, realDisk())
	if left := s.reader.left(); left != (Position{mid, "meta"}) {
		t.Errorf("left at %+v, want %d", left, mid)
	}
	got, next, gap := readSpool(t, s, mid)
	if textOf(got) != textOf(all[20:]) || next != end || gap != 0 {
		t.Errorf("after a restart: %d lines, next %d, gap %d; want %d, %d", len(got), next, gap, len(all)-20, end)
	}
	if _, err := os.Stat(segmentPath(dir, 0)); err == nil {
		t.Error("a segment wholly below the released position is still there")
	}
}

func TestSpoolOffsetsNeverGoBack(t *testing.T) {
	dir := t.TempDir()
	last := int64(-1)
	for i := range 20 {
		s, err := OpenSpool(SpoolConfig{Dir: dir, SegmentSize: 100})
		must(t, err)
		from := s.reader.left().Offset
		for range i % 4 {
			add(t, s, "a line of some length, so that segments end\n")
		}
		lines, next, gap := readSpool(t, s, from)
		if len(lines) != i%4 || gap != 0 || next < last {
			t.Fatalf("%d: %d lines to %d after %d, gap %d", i, len(lines), next, last, gap)
		}
		for _, l := range lines {
			if l.at.Offset <= last {
				t.Fatalf("offset %d after %d", l.at.Offset, last)
			}
			last = l.at.Offset
		}
		s.reader.release(Position{Offset: next})
		must(t, s.Close())
		if i == 10 { // all segments are lost, the position is not
			names, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
			for _, n := range names {
				must(t, os.Remove(n))
			}
		}
	}
}

// Who knows by offsets what was counted of a spool that is lost does not take the lines
// of the one that is made in its place for those.
func TestANewSpoolBeginsBehindTheOneThatWasLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	disk, now := fastDisk(), time.Now()
	disk.now = func() time.Time { return now }
	last := int64(0)
	for i := range 4 {
		s := newSpool(t, SpoolConfig{Dir: dir}, disk)
		for range 1000 {
			add(t, s, "a line\n")
		}
		lines, next, gap := readSpool(t, s, last)
		if len(lines) != 1000 || lines[0].at.Offset < last || gap != 0 {
			t.Fatalf("spool %d: %d lines from %d on, the one before came to %d; gap %d", i, len(lines), lines[0].at.Offset, last, gap)
		}
		last = next
		must(t, s.Close())
		must(t, os.RemoveAll(dir))
		now = now.Add(time.Second)
	}
	if year := 365 * 24 * time.Hour; firstOffset(now.Add(9*year)) >= 1<<53 {
		t.Error("offsets are no whole numbers to who reads them as floating point")
	}
}

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

// faultyDisk is the real one with faults.
type faultyDisk struct {
	mu     sync.Mutex
	write  func(p []byte) (int, error) // in place of the write's end
	sync   func() error
	create error
	cut    error
	rename error
	syncs  atomic.Int64
}

type faultyFile struct {
	spoolFile
	d *faultyDisk
}

func (f faultyFile) Write(p []byte) (int, error) {
	f.d.mu.Lock()
	fault := f.d.write
	f.d.mu.Unlock()
	if fault != nil {
		n, err := fault(p)
		f.spoolFile.Write(p[:n])
		return n, err
	}
	return f.spoolFile.Write(p)
}

func (f faultyFile) Sync() error {
	f.d.syncs.Add(1)
	f.d.mu.Lock()
	fault := f.d.sync
	f.d.mu.Unlock()
	if fault != nil {
		if err := fault(); err != nil {
			return err
		}
	}
	return f.spoolFile.Sync()
}

func (f faultyFile) Truncate(size int64) error {
	if f.d.cut != nil {
		return f.d.cut
	}
	return f.spoolFile.Truncate(size)
}

func (d *faultyDisk) disk() spoolDisk {
	real := realDisk()
	faulty := real
	faulty.create = func(path string) (spoolFile, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.create != nil {
			return nil, d.create
		}
		f, err := real.create(path)
		return faultyFile{f, d}, err
	}
	faulty.replace = func(path string, data []byte) error {
		if d.rename != nil {
			return d.rename
		}
		return real.replace(path, data)
	}
	return faulty
}

func (d *faultyDisk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func TestSpoolPromisesNothingThatIsNotDurable(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(d *faultyDisk)
		want error
	}{
		{"no room after half of it", func(d *faultyDisk) {
			d.write = func(p []byte) (int, error) { return len(p) / 2, syscall.ENOSPC }
		}, syscall.ENOSPC},
		{"no room, and it cannot be cut off", func(d *faultyDisk) {
			d.write = func(p []byte) (int, error) { return len(p), syscall.ENOSPC }
			d.cut = syscall.EIO
		}, syscall.ENOSPC},
		{"not synced", func(d *faultyDisk) { d.sync = func() error { return syscall.EIO } }, syscall.EIO},
		{"read only", func(d *faultyDisk) {
			d.write = func([]byte) (int, error) { return 0, syscall.EROFS }
			d.create = syscall.EROFS
		}, syscall.EROFS},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &faultyDisk{}
			dir := t.TempDir()
			s, err := openSpool(SpoolConfig{Dir: dir}, d.disk())
			must(t, err)
			add(t, s, "before\n")
			for range 2 {
				d.set(func() { c.set(d) })
				for range 3 {
					if err := s.Append(context.Background(), []byte("refused\n")); !errors.Is(err, c.want) {
						t.Fatalf("error %v, want %v", err, c.want)
					}
				}
				if got, _, gap := readSpool(t, s, 0); strings.Contains(textOf(got), "refused") || gap != 0 {
					t.Fatalf("read %q, gap %d", textOf(got), gap)
				}
				d.set(func() { d.write, d.sync, d.create, d.cut = nil, nil, nil, nil })
				add(t, s, "after\n")
			}
			want := "before\nafter\nafter\n"
			if got, _, gap := readSpool(t, s, 0); textOf(got) != want || gap != 0 {
				t.Errorf("read %q, gap %d", textOf(got), gap)
			}
			must(t, s.Close())
			s = newSpool(t, SpoolConfig{Dir: dir}, realDisk())
			if got, _, gap := readSpool(t, s, 0); textOf(got) != want || gap != 0 {
				t.Errorf("after a restart: %q, gap %d", textOf(got), gap)
			}
		})
	}
}

func TestSpoolSharesOneSync(t *testing.T) {
	d := &faultyDisk{}
	s := newSpool(t, SpoolConfig{Dir: t.TempDir()}, d.disk())
	add(t, s, "first\n")
	before := d.syncs.Load()
	entered, open := make(chan struct{}, 10), make(chan struct{})
	d.set(func() { d.sync = func() error { entered <- struct{}{}; <-open; return nil } })
	const n = 64
	var wg sync.WaitGroup
	wg.Go(func() { add(t, s, "it begins the first sync\n") })
	<-entered
	for i := range n {
		wg.Go(func() { add(t, s, fmt.Sprintf("line %d\n", i)) })
	}
	waitFor(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.pending) == n
	})
	close(open)
	wg.Wait()
	if syncs := d.syncs.Load() - before; syncs != 2 {
		t.Errorf("%d syncs for 1 and then %d writes at a time, want 2", syncs, n)
	}
	if got, _, _ := readSpool(t, s, 0); len(got) != n+2 {
		t.Errorf("%d lines", len(got))
	}
}

func TestSpoolIsBounded(t *testing.T) {
	dir := t.TempDir()
	d := &faultyDisk{}
	const most = 4000
	s := newSpool(t, SpoolConfig{Dir: dir, Max: most, SegmentSize: 500}, d.disk())
	size := func() (n int64) {
		names, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
		must(t, err)
		for _, name := range names {
			st, err := os.Stat(name)
			must(t, err)
			n += st.Size()
		}
		return n
	}
	line := strings.Repeat("x", 91) + "\n"
	if err := s.Append(context.Background(), []byte(strings.Repeat(line, 50))); !errors.Is(err, errTooLarge) {
		t.Errorf("more than the spool can hold: %v", err)
	}
	from, total := int64(0), 0
	for round := range 5 {
		n := 0
		for {
			err := s.Append(context.Background(), []byte(line))
			if errors.Is(err, errSpoolFull) {
				break
			}
			must(t, err)
			n++
		}
		if n < 10 || size() > most {
			t.Fatalf("round %d: %d lines taken, %d bytes of %d", round, n, size(), most)
		}
		got, next, gap := readSpool(t, s, from)
		if len(got) != n || gap != 0 {
			t.Fatalf("round %d: read %d of %d lines, gap %d", round, len(got), n, gap)
		}
		total += n
		from = next
		if round == 2 { // not even the position finds room: what is done with makes it
			d.rename = syscall.ENOSPC
		}
		s.reader.release(Position{Offset: next})
		d.rename = nil
	}
	if total < 150 {
		t.Errorf("%d lines in all", total)
	}
}

func TestSpoolAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		dir := t.TempDir()
		cfg := SpoolConfig{Dir: dir, Max: 20000, SegmentSize: 1 + rng.Int64N(2000)}
		s, err := openSpool(cfg, fastDisk())
		must(t, err)
		var written []string
		known := map[int64]string{}
		released := 0 // of written
		for range 150 {
			switch rng.IntN(6) {
			case 0, 1, 2:
				line := fmt.Sprintf("%d %s\n", len(written), strings.Repeat("y", rng.IntN(300)))
				switch err := s.Append(context.Background(), []byte(line)); {
				case err == nil:
					written = append(written, line)
				case !errors.Is(err, errSpoolFull):
					t.Fatal(err)
				}
			case 3:
				got, next, gap := readSpool(t, s, s.reader.left().Offset)
				if textOf(got) != strings.Join(written[released:], "") || gap != 0 {
					t.Fatalf("seed %d: %d lines, want %d; gap %d", seed, len(got), len(written)-released, gap)
				}
				for _, l := range got {
					if was, ok := known[l.at.Offset]; ok && was != l.text {
						t.Fatalf("seed %d: offset %d is another line", seed, l.at.Offset)
					}
					known[l.at.Offset] = l.text
				}
				if n := rng.IntN(len(got) + 1); n < len(got) {
					next = got[n].at.Offset
					released += n
				} else {
					released += len(got)
				}
				s.reader.release(Position{Offset: next})
			case 4:
				must(t, s.Close())
				s, err = openSpool(cfg, fastDisk())
				must(t, err)
			case 5: // killed while writing
				must(t, s.Close())
				if segs, err := segments(dir); err == nil && len(segs) > 0 {
					put(t, segs[len(segs)-1].path, strings.Repeat("\x05\x00\x00\x00torn", rng.IntN(5)))
				}
				s, err = openSpool(cfg, fastDisk())
				must(t, err)
			}
		}
		must(t, s.Close())
	}
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

// While nothing can be kept the partition says why, and that is over as soon as
// something can, though nobody pushes.
func TestPushSaysThatNothingCanBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the disk is broken")
		var bad atomic.Bool
		disk := realDisk()
		disk.create = func(path string) (spoolFile, error) {
			if bad.Load() {
				return nil, broken
			}
			return realDisk().create(path)
		}
		s := newSpool(t, SpoolConfig{Dir: t.TempDir()}, disk)
		p := newPush(PushConfig{Name: "http", Logger: slog.New(slog.DiscardHandler)}, s)
		bad.Store(true)
		if err := s.Append(context.Background(), []byte("lost\n")); !errors.Is(err, broken) {
			t.Fatalf("Append said %v", err)
		}
		if st := p.Partitions()[0]; !errors.Is(st.Err, broken) {
			t.Errorf("the partition says %v", st.Err)
		}
		time.Sleep(5 * releaseEvery)
		if st := p.Partitions()[0]; !errors.Is(st.Err, broken) {
			t.Errorf("after a while the partition says %v", st.Err)
		}
		bad.Store(false)
		time.Sleep(2 * releaseEvery)
		if st := p.Partitions()[0]; st.Err != nil {
			t.Errorf("the disk is well, and the partition says %v", st.Err)
		}
		add(t, s, "kept\n")
	})
}
