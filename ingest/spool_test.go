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
