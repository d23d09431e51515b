package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// logWriter writes numbered lines to a log as a server does: to the file that it
// opened, until it is told to open the path again.
type logWriter struct {
	t       *testing.T
	path    string
	rng     *rand.Rand
	mu      sync.Mutex // held by who copies and truncates: nothing is lost between
	f       *os.File
	written []string
	half    string // of a line, still to be written
}

func (w *logWriter) reopen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open()
}

func (w *logWriter) open() {
	if w.f != nil {
		w.flush()
		must(w.t, w.f.Close())
	}
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(w.t, err)
	w.f = f
}

func (w *logWriter) flush() {
	_, err := w.f.WriteString(w.half)
	must(w.t, err)
	w.half = ""
}

func (w *logWriter) write() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	var b strings.Builder
	for range 1 + w.rng.IntN(4) {
		line := fmt.Sprintf("%06d %s\n", len(w.written), strings.Repeat("x", w.rng.IntN(60)))
		w.written = append(w.written, line)
		b.WriteString(line)
	}
	text := b.String()
	if w.rng.IntN(4) == 0 { // the rest comes with the next
		cut := len(text) - 1 - w.rng.IntN(5)
		text, w.half = text[:cut], text[cut:]
	}
	_, err := w.f.WriteString(text)
	must(w.t, err)
}

func (w *logWriter) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.write()
		time.Sleep(time.Duration(w.rng.IntN(150)) * time.Millisecond)
	}
}

const rotated = 6 // files that are kept

func (w *logWriter) shift() {
	for i := rotated; i > 0; i-- {
		from := fmt.Sprint(w.path, ".", i)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if i == rotated {
			must(w.t, os.Remove(from))
		} else {
			must(w.t, os.Rename(from, fmt.Sprint(w.path, ".", i+1)))
		}
	}
}

// rename rotates; the writer goes on with the old file for late.
func (w *logWriter) rename(late time.Duration) {
	w.shift()
	must(w.t, os.Rename(w.path, w.path+".1"))
	time.Sleep(late)
	w.reopen()
}

func (w *logWriter) copyTruncate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	w.shift()
	data, err := os.ReadFile(w.path)
	must(w.t, err)
	must(w.t, os.WriteFile(w.path+".1", data, 0o600))
	must(w.t, os.Truncate(w.path, 0))
}

func TestFollowLosesNothingHoweverItIsRotatedAndStopped(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	for _, mode := range []string{"released fully", "released late", "killed"} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", mode, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { followAtRandom(t, mode, seed) })
			})
		}
	}
}

func followAtRandom(t *testing.T, mode string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	path := filepath.Join(t.TempDir(), "access.log")
	name := "file " + path
	glob := []string{path, path + "*"}[rng.IntN(2)]
	w := &logWriter{t: t, path: path, rng: rand.New(rand.NewPCG(seed, 2))}
	w.reopen()
	ctx, cancel := context.WithCancel(context.Background())
	var writing sync.WaitGroup
	writing.Go(func() { w.run(ctx) })

	r, m := newRecorder(t), newMemory()
	if mode == "released late" {
		r.keep = 700
	}
	start := func() followRun {
		f, err := NewFollow(FollowConfig{Paths: []string{glob}, Positions: m})
		must(t, err)
		f.tuning.chunk = 200 // lines lie across the ends of chunks
		return runFollow(t, f, r)
	}
	f := start()
	up := true
	time.Sleep(1500 * time.Millisecond) // what was never seen under its path is not missed
	synctest.Wait()
	var history []string
	old := m.copy()
	for range 40 {
		op := []string{"rename", "copytruncate", "stop", "start", "start", "snapshot"}[rng.IntN(6)]
		pause := []time.Duration{0, 50, 250, 1500}[rng.IntN(4)] * time.Millisecond
		history = append(history, fmt.Sprint(op, " ", pause))
		switch op {
		case "rename":
			w.rename(time.Duration(rng.IntN(2)*rng.IntN(3000)) * time.Millisecond)
		case "copytruncate":
			w.copyTruncate()
		case "stop":
			if up {
				f.stop()
				up = false
				if mode == "killed" {
					m = old
				}
			}
		case "start":
			if !up {
				f = start()
				up = true
			}
		case "snapshot":
			old = m.copy()
		}
		if up && op != "start" {
			pause = max(pause, 450*time.Millisecond) // what lies further back than files are kept is lost rightly
		}
		time.Sleep(pause)
		if !up && rng.IntN(2) == 0 {
			f = start()
			up = true
		}
		if up && mode == "killed" && rng.IntN(3) == 0 {
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			old = m.copy()
		}
	}
	if !up {
		f = start()
	}
	cancel()
	writing.Wait()
	w.mu.Lock()
	w.flush()
	w.mu.Unlock()
	time.Sleep(5 * time.Second)
	f.stop()
	must(t, w.f.Close())

	got := r.lines[name]
	times := map[string]int{}
	at := map[int64]string{}
	for _, l := range got {
		times[l.text]++
		if was, ok := at[l.at.Offset]; ok && was != l.text && mode != "killed" {
			t.Errorf("offset %d is %q and %q", l.at.Offset, was, l.text)
		}
		at[l.at.Offset] = l.text
	}
	for _, line := range w.written {
		if n := times[line]; n == 0 || n > 1 && mode == "released fully" {
			t.Errorf("%q was handed out %d times", line, n)
		}
		delete(times, line)
	}
	for text, n := range times {
		t.Errorf("%q was never written, and handed out %d times", text, n)
	}
	if r.gap[name] != 0 {
		t.Errorf("gap %d", r.gap[name])
	}
	if len(r.lines) != 1 {
		t.Errorf("%d partitions", len(r.lines))
	}
	if t.Failed() {
		t.Logf("%s, %d lines written: %s", glob, len(w.written), strings.Join(history, ", "))
	}
}
