package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// followRun is a Follow that runs in a synctest bubble.
type followRun struct {
	*Follow
	stop func()
}

func startFollow(t testing.TB, h Handler, positions Positions, paths ...string) followRun {
	t.Helper()
	f, err := NewFollow(FollowConfig{Paths: paths, Positions: positions})
	if err != nil {
		t.Fatal(err)
	}
	return runFollow(t, f, h)
}

func runFollow(t testing.TB, f *Follow, h Handler) followRun {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, h) }()
	return followRun{f, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}}
}

// put appends to a file, making it when it is not there.
func put(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// soon is the time within which new lines must be seen.
const soon = 300 * time.Millisecond

// wantText waits as long as new lines may take, in the bubble's time.
func wantText(t testing.TB, r *recorder, name, want string) {
	t.Helper()
	time.Sleep(soon)
	synctest.Wait()
	if got := r.text(name); got != want {
		t.Fatalf("%s was handed out as\n%q, want\n%q", filepath.Base(name), clip(got), clip(want))
	}
}

func clip(s string) string {
	if len(s) > 2000 {
		return s[:1000] + " … " + s[len(s)-1000:]
	}
	return s
}

func TestFollowHandsOutLinesAsTheyAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "access.log")
		name := "file " + path
		r := newRecorder(t)
		f := startFollow(t, r, newMemory(), path)
		defer func() { f.stop() }()

		time.Sleep(5 * time.Second)
		if ps := f.Partitions(); len(ps) != 1 || !strings.Contains(said(ps[0]), "no such file") || len(r.told(name)) != 0 {
			t.Fatalf("of a path that is not there yet: %+v, assigned %v", ps, r.told(name))
		}
		put(t, path, "one\n")
		wantText(t, r, name, "one\n")
		put(t, path, "two\nthr")
		wantText(t, r, name, "one\ntwo\n")
		time.Sleep(time.Hour)
		put(t, path, "ee")
		wantText(t, r, name, "one\ntwo\n")
		put(t, path, "\n\nfive\n")
		wantText(t, r, name, "one\ntwo\nthree\n\nfive\n")

		before := r.ends(name)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := r.ends(name) - before; n < 10 || n > 20 {
			t.Errorf("AtEnd was said %d times in 10 s", n)
		}
		var offsets []int64
		for _, l := range r.lines[name] {
			offsets = append(offsets, l.at.Offset)
		}
		if want := []int64{0, 4, 8, 14, 15}; !slices.Equal(offsets, want) {
			t.Errorf("offsets %v, want %v", offsets, want)
		}
		if s := f.Partitions()[0]; s.Lag() != 0 || s.Next != 20 || s.Records != 5 || s.Bytes != 20 || said(s) != "" || s.Gap != 0 || s.Partition.Name != name {
			t.Errorf("state %+v", s)
		}
	})
}

func TestFollowGoesThroughRotation(t *testing.T) {
	for _, rotate := range []struct {
		name string
		do   func(t *testing.T, path string)
	}{
		{"rename, create", func(t *testing.T, path string) {
			must(t, os.Rename(path, path+".1"))
			put(t, path, "")
		}},
		{"rename, create later", func(t *testing.T, path string) {
			must(t, os.Rename(path, path+".1"))
			time.Sleep(3 * time.Second)
		}},
		{"rename to a date", func(t *testing.T, path string) { must(t, os.Rename(path, path+"-20261129")) }},
		{"rename, and rename again", func(t *testing.T, path string) {
			must(t, os.Rename(path, path+".2"))
			put(t, path, "between the two rotations\n")
			must(t, os.Rename(path, path+".1"))
		}},
		{"copy, truncate", func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path+".1", data, 0o600))
			must(t, os.Truncate(path, 0))
		}},
		{"delete", func(t *testing.T, path string) { must(t, os.Remove(path)) }},
	} {
		for _, glob := range []string{"", "*"} {
			for _, restart := range []bool{false, true} {
				if restart && rotate.name == "delete" {
					continue
				}
				t.Run(fmt.Sprintf("%s, glob %q, restart %v", rotate.name, glob, restart), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						path := filepath.Join(t.TempDir(), "access.log")
						name := "file " + path
						r, m := newRecorder(t), newMemory()
						want := "the first line, long enough to know it again\n"
						put(t, path, want)
						f := startFollow(t, r, m, path+glob)
						wantText(t, r, name, want)
						if restart {
							f.stop()
						}
						put(t, path, "unread when it is rotated\n")
						want += "unread when it is rotated\n"
						rotate.do(t, path)
						if strings.Contains(rotate.name, "again") {
							want += "between the two rotations\n"
						}
						if restart {
							f = startFollow(t, r, m, path+glob)
						}
						defer func() { f.stop() }()
						put(t, path, "in the new file\n")
						want += "in the new file\n"
						wantText(t, r, name, want)
						put(t, path, "more of it\n")
						wantText(t, r, name, want+"more of it\n")
						time.Sleep(3 * time.Minute)
						wantText(t, r, name, want+"more of it\n")
						if ps := f.Partitions(); len(ps) != 1 || r.lost(name) != 0 {
							t.Errorf("gap %d, partitions %+v", r.lost(name), ps)
						}
					})
				})
			}
		}
	}
}

func TestFollowReadsWhatIsWrittenToAFileAfterItsRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "access.log")
		name := "file " + path
		r, m := newRecorder(t), newMemory()
		f := startFollow(t, r, m, path)
		put(t, path, "a\nhalf")
		wantText(t, r, name, "a\n")
		must(t, os.Rename(path, path+".1"))
		put(t, path, "b\n")
		wantText(t, r, name, "a\nb\n")
		put(t, path+".1", " a line\nlate\n")
		wantText(t, r, name, "a\nb\nhalf a line\nlate\n")
		put(t, path, "c\n")
		wantText(t, r, name, "a\nb\nhalf a line\nlate\nc\n")
		put(t, path+".1", "never finished")
		time.Sleep(30 * time.Second)
		f.stop()

		f = startFollow(t, r, m, path)
		wantText(t, r, name, "a\nb\nhalf a line\nlate\nc\n")
		put(t, path, "d\n")
		wantText(t, r, name, "a\nb\nhalf a line\nlate\nc\nd\n")
		time.Sleep(61 * time.Second)
		wantText(t, r, name, "a\nb\nhalf a line\nlate\nc\nd\nnever finished")
		put(t, path, "e\n")
		wantText(t, r, name, "a\nb\nhalf a line\nlate\nc\nd\nnever finishede\n")
		if r.lost(name) != 0 {
			t.Errorf("gap %d", r.lost(name))
		}
		f.stop()
	})
}

func TestFollowSaysWhatIsLost(t *testing.T) {
	const first = "the first line, long enough to know it again\n"
	t.Run("cut to zero without a copy", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			name := "file " + path
			r := newRecorder(t)
			f := startFollow(t, r, newMemory(), path)
			defer func() { f.stop() }()
			put(t, path, first+"half a line")
			wantText(t, r, name, first)
			must(t, os.Truncate(path, 0))
			put(t, path, "new\n")
			wantText(t, r, name, first+"new\n")
			if r.lost(name) != int64(len("half a line")) {
				t.Errorf("gap %d", r.lost(name))
			}
			// Grown beyond the old position between two looks.
			must(t, os.Truncate(path, 0))
			put(t, path, "another\n"+first+first)
			wantText(t, r, name, first+"new\nanother\n"+first+first)
		})
	})
	t.Run("gone after a restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			name := "file " + path
			r, m := newRecorder(t), newMemory()
			r.keep = 10
			put(t, path, first)
			f := startFollow(t, r, m, path)
			wantText(t, r, name, first)
			f.stop()
			must(t, os.Remove(path))
			put(t, filepath.Join(filepath.Dir(path), "holds-the-inode"), "")
			put(t, path, "new\n")
			f = startFollow(t, r, m, path)
			wantText(t, r, name, first+"new\n")
			if r.lost(name) != 10 {
				t.Errorf("gap %d, want the 10 bytes that were not released", r.lost(name))
			}
			if left := r.told(name); len(left) != 2 || left[1].Offset != int64(len(first)-10) || left[1].Metadata != fmt.Sprint("m", len(first)-10) {
				t.Errorf("told that it was left at %+v", left)
			}
			f.stop()
			r.keep = 0
			f = startFollow(t, r, m, path)
			time.Sleep(soon)
			f.stop()
			must(t, os.Remove(path))
			put(t, path, "newer\n")
			before := r.lost(name)
			f = startFollow(t, r, m, path)
			wantText(t, r, name, first+"new\nnew\nnewer\n")
			if r.lost(name) != before+1 {
				t.Errorf("gap %d, want 1 more than %d: that something is lost, not how much", r.lost(name), before)
			}
			f.stop()
		})
	})
	t.Run("a line too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			name := "file " + path
			r := newRecorder(t)
			f, err := NewFollow(FollowConfig{Paths: []string{path}, Positions: newMemory()})
			must(t, err)
			f.tuning.chunk, f.tuning.maxLine = 64, 1000
			run := runFollow(t, f, r)
			defer run.stop()
			long := strings.Repeat("x", 900) + "\n"
			put(t, path, "a\n"+long+strings.Repeat("y", 2000))
			wantText(t, r, name, "a\n"+long)
			if s := f.Partitions()[0]; !strings.Contains(said(s), "no end of line within 1000 bytes") || strings.Contains(said(s), "yy") {
				t.Errorf("state %+v", s)
			}
			put(t, path, "\nb\n")
			wantText(t, r, name, "a\n"+long+"b\n")
			if r.lost(name) != 2001 || said(f.Partitions()[0]) != "" || f.Partitions()[0].Gap != 2001 {
				t.Errorf("gap %d, state %+v", r.lost(name), f.Partitions()[0])
			}
		})
	})
}

func TestFollowFindsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		at := func(n string) string { return filepath.Join(dir, n) }
		name := func(n string) string { return "file " + at(n) }
		then := time.Now().Add(-time.Hour)
		put(t, at("access.log"), "now\n")
		for i, age := range []string{"", "yesterday\n", "before\n"} {
			if age != "" {
				n := at(fmt.Sprint("access.log.", i))
				put(t, n, age)
				must(t, os.Chtimes(n, then, then.Add(-time.Duration(i)*time.Hour)))
			}
		}
		must(t, os.WriteFile(at("access.log.3.gz"), gzipped(t, "long ago\n"), 0o600))
		must(t, os.WriteFile(at("access.log.misnamed"), zstded(t, "compressed\n"), 0o600))
		must(t, os.Mkdir(at("access.log.d"), 0o700))
		put(t, at("access.log-other"), "another log\n")

		r, m := newRecorder(t), newMemory()
		f := startFollow(t, r, m, at("access.log*"), at("app-*.log"))
		wantText(t, r, name("access.log"), "before\nyesterday\nnow\n")
		wantText(t, r, name("access.log-other"), "another log\n")
		put(t, at("app-1.log"), "one\n")
		put(t, at("app-2.log"), "two\n")
		time.Sleep(time.Second)
		wantText(t, r, name("app-1.log"), "one\n")
		wantText(t, r, name("app-2.log"), "two\n")
		if ps := f.Partitions(); len(ps) != 4 {
			t.Errorf("partitions %+v", ps)
		}
		// Rotation with compression, as logrotate does it.
		put(t, at("access.log"), "last\n")
		must(t, os.Rename(at("access.log.2"), at("access.log.4")))
		must(t, os.Rename(at("access.log.1"), at("access.log.2")))
		must(t, os.Rename(at("access.log"), at("access.log.1")))
		put(t, at("access.log"), "new\n")
		wantText(t, r, name("access.log"), "before\nyesterday\nnow\nlast\nnew\n")
		must(t, os.WriteFile(at("access.log.1.gz"), gzipped(t, "now\nlast\n"), 0o600))
		must(t, os.Remove(at("access.log.1")))
		must(t, os.Remove(at("app-1.log")))
		time.Sleep(5 * time.Minute)
		f.stop()
		f = startFollow(t, r, m, at("access.log*"), at("app-*.log"))
		time.Sleep(5 * time.Minute)
		wantText(t, r, name("access.log"), "before\nyesterday\nnow\nlast\nnew\n")
		if ps := f.Partitions(); len(ps) != 3 || ps[2].Partition.Name != name("app-2.log") {
			t.Errorf("partitions %+v", ps)
		}
		for _, p := range f.Partitions() {
			if p.Gap != 0 || r.lost(p.Partition.Name) != 0 {
				t.Errorf("state %+v", p)
			}
		}
		put(t, at("app-1.log"), "again\n")
		time.Sleep(time.Second)
		wantText(t, r, name("app-1.log"), "one\nagain\n")
		f.stop()
	})
}

func TestFollowGoesWithALinkAndWithItsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		link, a, b := filepath.Join(dir, "current"), filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
		put(t, a, "a\n")
		put(t, b, "b\n")
		r, m := newRecorder(t), newMemory()
		must(t, os.Symlink("current", link)) // to itself
		f := startFollow(t, r, m, link)
		time.Sleep(time.Second)
		if s := f.Partitions()[0]; said(s) == "" || !strings.Contains(said(s), link) || s.Lag() != 0 {
			t.Errorf("state %+v", s)
		}
		to := func(target string) {
			must(t, os.Remove(link))
			must(t, os.Symlink(filepath.Base(target), link))
		}
		to(a)
		wantText(t, r, "file "+link, "a\n")
		put(t, a, "a2\n")
		to(b)
		wantText(t, r, "file "+link, "a\na2\nb\n")
		f.stop()
		put(t, b, "b2\n")
		put(t, a, "a3\n")
		to(a)
		f = startFollow(t, r, m, link)
		wantText(t, r, "file "+link, "a\na2\nb\nb2\na3\n")
		to("current")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		n := r.ends("file " + link)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := f.Partitions()[0]; said(s) == "" || r.ends("file "+link) != n {
			t.Errorf("state %+v; AtEnd was said although the file cannot be looked at", s)
		}
		to(a)
		put(t, a, "a4\n")
		wantText(t, r, "file "+link, "a\na2\nb\nb2\na3\na4\n")
		if s := f.Partitions()[0]; said(s) != "" || s.Gap != 0 {
			t.Errorf("state %+v", s)
		}
		f.stop()
	})
}

func TestFollowStartsAPartitionAnewAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		bad, good := filepath.Join(dir, "bad.log"), filepath.Join(dir, "good.log")
		r := newRecorder(t)
		var failed []time.Time // under r.mu, as is healthy
		healthy := false
		r.consume = func(name string, b *Batch) error {
			if name == "file "+bad && len(b.Data) > 0 && !healthy {
				failed = append(failed, time.Now())
				return errors.New("no room")
			}
			return nil
		}
		put(t, bad, "a\nb\n")
		put(t, good, "1\n")
		f := startFollow(t, r, newMemory(), bad, good)
		defer func() { f.stop() }()
		time.Sleep(10 * time.Minute)
		put(t, good, "2\n")
		wantText(t, r, "file "+good, "1\n2\n")
		r.mu.Lock()
		tries := slices.Clone(failed)
		r.mu.Unlock()
		s := f.Partitions()[0]
		if said(s) != "no room" || s.Restarts != int64(len(tries)) || s.Records != 0 || f.Partitions()[1].Restarts != 0 {
			t.Errorf("state %+v after %d failures", s, len(tries))
		}
		if n := len(tries); n < 20 || n > 60 {
			t.Fatalf("%d tries in 10 minutes", n)
		}
		if first, last := tries[1].Sub(tries[0]), tries[len(tries)-1].Sub(tries[len(tries)-2]); first > pauseMin || last < pauseMax/2 || last > pauseMax {
			t.Errorf("paused %v at first and %v at last", first, last)
		}
		r.mu.Lock()
		healthy = true
		r.mu.Unlock()
		time.Sleep(pauseMax)
		wantText(t, r, "file "+bad, "a\nb\n")
		if s := f.Partitions()[0]; said(s) != "" || s.Lag() != 0 || len(r.told("file "+bad)) != len(tries)+1 {
			t.Errorf("state %+v, assigned %d times after %d failures", s, len(r.told("file "+bad)), len(tries))
		}
	})
}

func TestFollowBeginsAtTheLineBehindAnOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "access.log")
		name := "file " + path
		put(t, path, "0123\n")
		r, m := newRecorder(t), newMemory()
		f := startFollow(t, r, m, path)
		wantText(t, r, name, "0123\n")
		must(t, os.Rename(path, path+".1"))
		put(t, path, "5678\nabcd\n")
		r.keep = 13 // at byte 2, in the middle of a line of a rotated file
		wantText(t, r, name, "0123\n5678\nabcd\n")
		f.stop()
		f = startFollow(t, r, m, path)
		wantText(t, r, name, "0123\n5678\nabcd\n5678\nabcd\n")
		f.stop()
	})
}

func TestFollowSavesAndRefusesStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "access.log")
		name := "file " + path
		put(t, path, "secret contents\n")
		r, m := newRecorder(t), newMemory()
		f := startFollow(t, r, m, path)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		m.mu.Lock()
		if m.saves != 1 {
			t.Errorf("saved %d times, once would do", m.saves)
		}
		m.mu.Unlock()
		f.stop()
		if text := string(m.saved[name]); !strings.Contains(text, `"version":1,"offset":16,"metadata":"m16"`) || strings.Contains(text, "secret") {
			t.Errorf("saved %s", text)
		}
		for _, state := range []string{`{"version":2,"offset":3}`, `{`, `{"version":1,"runs":[{"file":3}]}`, `{"version":1,"files":[{"head_len":-1}]}`, `{}`, `{"version":1,"queue":[0]}`} {
			m.saved[name] = []byte(state)
			r := newRecorder(t)
			f := startFollow(t, r, m, path)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if s := f.Partitions()[0]; !strings.Contains(said(s), "saved position of "+name) || len(r.told(name)) != 0 {
				t.Errorf("%s: %+v", state, s)
			}
			f.stop()
			if string(m.saved[name]) != state {
				t.Errorf("%s was overwritten", state)
			}
		}
		m.saved[name], m.err = nil, errors.New("store away")
		r = newRecorder(t)
		f = startFollow(t, r, m, path)
		time.Sleep(10 * time.Second)
		if s := f.Partitions()[0]; !strings.Contains(said(s), "store away") {
			t.Errorf("state %+v", s)
		}
		m.mu.Lock()
		m.err = nil
		m.mu.Unlock()
		time.Sleep(pauseMax)
		wantText(t, r, name, "secret contents\n")
		f.stop()
	})
}
