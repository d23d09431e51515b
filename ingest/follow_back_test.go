package ingest

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const known = "the first line, long enough to know it again\n"

// logged starts a Follow and gives what it logs; to be read once it has stopped.
func logged(t *testing.T, h Handler, positions Positions, paths ...string) (followRun, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	f, err := NewFollow(FollowConfig{Paths: paths, Positions: positions, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	return runFollow(t, f, h), &log
}

// laterThan is an hour after a file was changed.
func laterThan(t *testing.T, path string) time.Time {
	t.Helper()
	st, err := os.Stat(path)
	must(t, err)
	return st.ModTime().Add(time.Hour)
}

// A file that is not there when the program starts goes on from where it was read when
// it comes back as it was: nothing is read twice, nothing is called lost, and meanwhile
// it is said that it is not there.
func TestFollowGoesOnWithAFileThatComesBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		rotated bool  // it was rotated, and is still to be read on
		copied  bool  // it comes back as another inode, as from a backup
		missed  bool  // another file is there in between
		keep    int64 // bytes that are not released at the stop
	}{
		{name: "renamed back"},
		{name: "not released", keep: 4},
		{name: "rotated meanwhile", rotated: true},
		{name: "rotated meanwhile, not released", rotated: true, keep: 4},
		{name: "as a copy", copied: true},
		{name: "after another", missed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				logs, away := filepath.Join(dir, "logs"), filepath.Join(dir, "away")
				must(t, os.Mkdir(logs, 0o700))
				path := filepath.Join(logs, "access.log")
				name := "file " + path
				r, m := newRecorder(t), newMemory()
				f := followedTwo(t, r, m, path, c.keep)
				f.stop()
				must(t, os.Rename(logs, away))
				r.keep = 0
				before := r.text(name)

				f, log := logged(t, r, m, path)
				for range 3 {
					time.Sleep(time.Minute)
					if s := f.Partitions()[0]; s.Assigned || !strings.Contains(said(s), "no such file") || s.Gap != 0 {
						t.Errorf("of a file that is away: %+v", s)
					}
				}
				wantText(t, r, name, before)
				if strings.Contains(log.String(), "are gone") || strings.Contains(log.String(), "reading begins") {
					t.Errorf("logged of a file that is away: %s", log)
				}
				want := before
				if c.keep > 0 {
					want += "two\n"
				}
				if c.missed {
					must(t, os.Mkdir(logs, 0o700))
					put(t, path, "something else\n")
					want += "something else\n"
					time.Sleep(2 * time.Second)
					wantText(t, r, name, want)
					if r.lost(name) != 1 {
						t.Errorf("gap %d, want 1: that something may be lost, not how much", r.lost(name))
					}
					must(t, os.RemoveAll(logs))
				}
				put(t, filepath.Join(away, "access.log"), "three\n")
				want += "three\n"
				if c.rotated {
					must(t, os.Rename(filepath.Join(away, "access.log"), filepath.Join(away, "access.log.1")))
					put(t, filepath.Join(away, "access.log"), "in the new file\n")
					want += "in the new file\n"
				}
				if c.copied {
					must(t, os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(away)))
					must(t, os.Rename(filepath.Join(dir, "copy"), logs))
				} else {
					must(t, os.Rename(away, logs))
				}
				time.Sleep(2 * time.Second)
				wantText(t, r, name, want)
				put(t, path, "four\n")
				wantText(t, r, name, want+"four\n")
				if s := f.Partitions()[0]; said(s) != "" || !c.missed && r.lost(name) != 0 {
					t.Errorf("gap %d, %+v", r.lost(name), s)
				}
				f.stop()
				f = startFollow(t, r, m, path)
				wantText(t, r, name, want+"four\n")
				f.stop()
			})
		})
	}
}

// Whatever way the suffixes go, each file that was rotated away unseen is read, oldest
// first, and none that was there before.
func TestFollowReadsAllRotationsThatItDidNotSee(t *testing.T) {
	for _, names := range [][]string{
		{".1", ".2", ".3"}, {".3", ".2", ".1"},
		{"-20261130-10", "-20261130-11", "-20261201"}, {".9", ".10", ".11"},
	} {
		for _, glob := range []string{"", "*"} {
			for _, how := range []string{"down", "away", "killed away"} {
				for _, late := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, glob %q, %s, late %v", names, glob, how, late), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							dir := t.TempDir()
							logs, now := filepath.Join(dir, "logs"), filepath.Join(dir, "logs")
							must(t, os.Mkdir(logs, 0o700))
							path := filepath.Join(logs, "access.log")
							name := "file " + path
							r, m := newRecorder(t), newMemory()
							old := "a part from before, that nobody asked for\n"
							want := ""
							if glob == "" {
								put(t, path+".0", old)
							}
							want += known
							put(t, path, known)
							f := startFollow(t, r, m, path+glob)
							time.Sleep(3 * time.Second)
							wantText(t, r, name, want)
							if how == "down" {
								f.stop()
							} else {
								now = filepath.Join(dir, "away")
								must(t, os.Rename(logs, now))
								time.Sleep(3 * time.Second)
							}
							if how == "killed away" {
								f.stop()
							}
							at := filepath.Join(now, "access.log")
							put(t, at, "the rest of the first\n")
							want += "the rest of the first\n"
							time1 := laterThan(t, at)
							for i, n := range names {
								if i > 0 {
									line := fmt.Sprintf("in file %d of those that nobody saw\n", i)
									put(t, at, line)
									want += line
								}
								must(t, os.Chtimes(at, time1, time1.Add(time.Duration(i)*time.Minute)))
								must(t, os.Rename(at, at+n))
							}
							if late { // a writer that has not noticed: the first is the newest now
								put(t, at+names[0], "late\n")
								must(t, os.Chtimes(at+names[0], time1, time1.Add(time.Hour)))
							}
							if glob == "" {
								must(t, os.Chtimes(at+".0", time1, time1.Add(time.Hour)))
							}
							put(t, at, "now\n")
							if now != logs {
								must(t, os.Rename(now, logs))
							}
							if how != "away" {
								f = startFollow(t, r, m, path+glob)
							}
							defer func() { f.stop() }()
							time.Sleep(3 * time.Second)
							synctest.Wait()
							got := r.text(name)
							if late {
								if n := strings.Count(got, "late\n"); n != 1 {
									t.Errorf("what came late was handed out %d times", n)
								}
								got = strings.Replace(got, "late\n", "", 1)
							}
							if got != want+"now\n" || r.lost(name) != 0 {
								t.Errorf("gap %d, handed out\n%q, want\n%q", r.lost(name), got, want+"now\n")
							}
						})
					})
				}
			}
		}
	}
}

// followedTwo follows a file whose two lines have been read, and released but for the last
// keep bytes.
func followedTwo(t *testing.T, r *recorder, m *memory, path string, keep int64) followRun {
	t.Helper()
	r.keep = keep
	put(t, path, known+"two\n")
	f := startFollow(t, r, m, path)
	wantText(t, r, "file "+path, known+"two\n")
	time.Sleep(5 * time.Second)
	return f
}

// Parts that were rotated away unseen are read, too, when what was read before them is to
// be found nowhere, whether all of that was released or not, and whether it went while the
// program ran or not.
func TestFollowReadsRotationsBehindAFileThatIsLost(t *testing.T) {
	for _, c := range []struct {
		keep    int64 // bytes that are not released when it goes
		running bool
		gap     int64
	}{{0, false, 1}, {4, false, 4}, {0, true, 0}} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			name := "file " + path
			r, m := newRecorder(t), newMemory()
			f := followedTwo(t, r, m, path, c.keep)
			if !c.running {
				f.stop()
				r.keep = 0
			}
			later := laterThan(t, path)
			must(t, os.Remove(path))
			if c.running {
				time.Sleep(5 * time.Minute) // until nothing is held open any more
			}
			put(t, path+".1", "in a file that nobody saw\n")
			must(t, os.Chtimes(path+".1", later, later))
			put(t, path, "now\n")
			if !c.running {
				f = startFollow(t, r, m, path)
			}
			time.Sleep(3 * time.Second)
			wantText(t, r, name, known+"two\nin a file that nobody saw\nnow\n")
			if r.lost(name) != c.gap {
				t.Errorf("%+v: gap %d", c, r.lost(name))
			}
			f.stop()
		})
	}
}

// Who comes back when it was given up, and before anything else was read, is read on
// from where it was left, whatever was called lost of it.
func TestFollowGoesOnWithAFileThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path, away := filepath.Join(dir, "access.log"), filepath.Join(dir, "away")
		name := "file " + path
		r, m := newRecorder(t), newMemory()
		put(t, path, known)
		f := startFollow(t, r, m, path)
		wantText(t, r, name, known)
		f.stop()
		before := `"mtime"`
		if n := bytes.Count(m.saved[name], []byte(before)); n != 1 {
			t.Fatalf("%d files in %s", n, m.saved[name])
		}
		m.saved[name] = bytes.Replace(m.saved[name], []byte(before), []byte(`"gone":7,"mtime"`), 1)
		must(t, os.Rename(path, away))
		f = startFollow(t, r, m, path)
		wantText(t, r, name, known)
		if r.lost(name) != 7 {
			t.Errorf("gap %d", r.lost(name))
		}
		put(t, away, "two\nthree\n")
		must(t, os.Rename(away, path))
		wantText(t, r, name, known+"two\nthree\n")
		f.stop()
		f = startFollow(t, r, m, path)
		put(t, path, "four\n")
		wantText(t, r, name, known+"two\nthree\nfour\n")
		if r.lost(name) != 7 {
			t.Errorf("gap %d", r.lost(name))
		}
		f.stop()
	})
}

// A file that goes is said to be gone, and no longer once another is there; the others
// need not wait for it. One that a glob found may go.
func TestFollowSaysThatAFileIsGone(t *testing.T) {
	for _, glob := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			name := "file " + path
			r, paths := newRecorder(t), path
			if glob {
				paths += "*"
			}
			put(t, path, known)
			f, log := logged(t, r, newMemory(), paths)
			wantText(t, r, name, known)
			for round := range 2 {
				must(t, os.Remove(path))
				time.Sleep(missAfter / 2)
				if s := f.Partitions()[0]; said(s) != "" {
					t.Errorf("of a file that rotation may still make: %+v", s)
				}
				time.Sleep(missAfter)
				ends := r.ends(name)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if s := f.Partitions()[0]; strings.Contains(said(s), "no such file any more") == glob || !s.Assigned || s.Gap != 0 {
					t.Errorf("glob %v: %+v", glob, s)
				}
				if r.ends(name) == ends {
					t.Error("the end is not said any more")
				}
				put(t, path, fmt.Sprintf("another file, the %dth\n", round))
				time.Sleep(2 * time.Second)
				if s := f.Partitions()[0]; said(s) != "" {
					t.Errorf("of a file that is there: %+v", s)
				}
			}
			wantText(t, r, name, known+"another file, the 0th\nanother file, the 1th\n")
			f.stop()
			if n := strings.Count(log.String(), "the file is gone\""); n != 2 && !glob || n > 0 && glob {
				t.Errorf("glob %v: said %d times in %s", glob, n, log)
			}
		})
	}
}
