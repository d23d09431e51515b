package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Above its limit a spool takes one write after the other, and only while all that is in
// it is read and newer records alone make room: so it grows by its own size in about a
// minute, and then ever more slowly.
func TestFullSpoolGrowsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 64_000
		s := newSpool(t, SpoolConfig{Dir: t.TempDir(), Max: limit, SegmentSize: 8000}, fastDisk())
		line := []byte(strings.Repeat("x", 999) + "\n")
		offered := func() bool { return s.Append(context.Background(), line) == nil }
		for offered() {
		}
		at := int64(0)
		read := func() {
			_, next, gap := readSpool(t, s, at)
			if at = next; gap != 0 {
				t.Fatalf("a gap of %d", gap)
			}
		}
		within := func(d time.Duration) (taken int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				if offered() {
					taken++
					read()
				}
			}
			return taken
		}
		s.reader.newer(true)
		if offered() {
			t.Error("it grows before it is read")
		}
		read()
		s.reader.newer(false)
		if n := within(time.Minute); n != 0 {
			t.Errorf("it grows by %d though room will come by itself", n)
		}
		s.reader.newer(true)
		first, second, third := within(64*time.Second), within(128*time.Second), within(256*time.Second)
		for _, n := range []int{first, second, third} {
			if n < 50 || n > 70 {
				t.Errorf("lines of 1,000 bytes taken in 64, 128 and 256 s: %d, %d, %d; want some 64 each", first, second, third)
				break
			}
		}
		for s.used() < 12*limit {
			if within(2*overdraftPause) == 0 {
				t.Fatalf("nothing is taken any more at %d bytes", s.used())
			}
		}
		// What makes room ends it at once.
		s.reader.release(Position{Offset: at})
		s.reader.newer(false)
		if !offered() {
			t.Error("there is no room, though all is released")
		}
	})
}

// hoarder releases nothing before it is told to, and says that it waits for newer records.
type hoarder struct {
	*recorder
	awaits, released atomic.Bool
}

type hoarding struct {
	Session
	h *hoarder
}

func (h *hoarder) Assigned(ctx context.Context, p Partition, left Position) (Session, Position, error) {
	s, at, err := h.recorder.Assigned(ctx, p, left)
	return &hoarding{s, h}, at, err
}

func (s *hoarding) Released() Position {
	if s.h.released.Load() {
		return s.Session.Released()
	}
	return Position{}
}

func (s *hoarding) AwaitsNewer() bool { return s.h.awaits.Load() }

// That a spool is full is said for as long as senders are refused, with the reason, and
// logged once. Who is refused is counted.
func TestFullSpoolIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		cfg := PushConfig{Listen: "nowhere", Name: "push", Spool: SpoolConfig{Max: 1 << 20}}
		cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
		cfg.Spool.Logger = cfg.Logger
		p := newTestPush(t, cfg, fastDisk())
		h := &hoarder{recorder: newRecorder(t)}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- p.run(ctx, h, func(ctx context.Context) error { <-ctx.Done(); return nil })
		}()
		sent, kept, refused := 0, 0, 0
		push := func(seconds int) {
			for range seconds {
				sent++
				switch w := send(p, "POST", "/ingest", strings.NewReader(strings.Repeat(fmt.Sprintf("%099d\n", sent), 1500))); w.Code {
				case 200:
					kept++
				case 429:
					refused++
				default:
					t.Fatalf("%d: %s", w.Code, w.Body)
				}
				time.Sleep(time.Second)
			}
		}
		state := func() (said error) {
			s := p.Partitions()[0]
			if s.Err != nil {
				t.Errorf("it cannot be read: %v", s.Err)
			}
			return s.Full
		}
		push(10)
		if full := state(); full != nil || refused == 0 {
			t.Errorf("after %d refusals: %v", refused, full)
		}
		push(10)
		if full := state(); full == nil || !strings.Contains(full.Error(), "not stored yet") {
			t.Errorf("nothing is let go of, and it is said: %v", full)
		}
		before := kept
		h.awaits.Store(true)
		push(30)
		if full := state(); full == nil || !strings.Contains(full.Error(), "Raise spool_max") {
			t.Errorf("newer records are awaited, and it is said: %v", full)
		}
		if kept-before < 2 || kept-before > 6 {
			t.Errorf("%d pushes of 150 kB were taken in 30 s", kept-before)
		}
		h.released.Store(true)
		time.Sleep(2 * fullFor)
		if full := state(); full != nil {
			t.Errorf("there is room, and it is said: %v", full)
		}
		push(2)
		time.Sleep(2 * fullAgain)
		if got := p.Intake(); got != (Intake{Kept: int64(kept), Refused: int64(refused)}) || kept+refused != sent {
			t.Errorf("%+v, of %d that were kept and %d that were not", got, kept, refused)
		}
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got := strings.Count(h.text("push"), "\n"); got != 1500*kept {
			t.Errorf("%d lines handed out, want %d", got, 1500*kept)
		}
		text := log.String()
		if strings.Count(text, "messages find no room") != 1 || strings.Count(text, "messages find room again") != 1 {
			t.Errorf("the log:\n%s", text)
		}
	})
}
