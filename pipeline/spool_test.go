package pipeline

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// nowhere is a listener that nobody reaches.
type nowhere struct {
	closed chan struct{}
	once   sync.Once
}

func (l *nowhere) Accept() (net.Conn, error) { <-l.closed; return nil, net.ErrClosed }
func (l *nowhere) Close() error              { l.once.Do(func() { close(l.closed) }); return nil }
func (l *nowhere) Addr() net.Addr            { return &net.TCPAddr{} }

// pushed is a daemon with one source, to which lines are pushed.
type pushed struct {
	*ingest.Push
	live  *Live
	stop  func()
	warns *strings.Builder
}

const pushedMax = 2 << 20

func startPushed(t *testing.T, cfg LiveConfig, dir string) *pushed {
	p := &pushed{live: NewLive(cfg), warns: new(strings.Builder)}
	var err error
	p.Push, err = ingest.NewPush(ingest.PushConfig{
		Name: "push", Listener: &nowhere{closed: make(chan struct{})}, Spool: ingest.SpoolConfig{Dir: dir, Max: pushedMax},
		Logger: slog.New(slog.NewTextHandler(p.warns, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	lived, end := context.WithCancel(context.Background())
	running.Go(func() { p.live.Run(lived) })
	reading := make(chan error, 1)
	go func() { reading <- p.Run(ctx, p.live) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-reading; err != nil {
			t.Error(err)
		}
		end()
		running.Wait()
	})
	t.Cleanup(p.stop)
	return p
}

// send pushes a line until it is taken, as shippers do, and says how long that took.
func (p *pushed) send(t *testing.T, line string, within time.Duration) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Second) {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/ingest", strings.NewReader(line)))
		switch {
		case w.Code == http.StatusOK:
			return
		case w.Code != http.StatusTooManyRequests:
			t.Fatalf("%d: %s", w.Code, w.Body)
		case time.Since(begun) > within:
			t.Fatalf("a push is refused for %v: %+v", within, p.Partitions())
		}
	}
}

func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		st, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += st.Size()
	}
	return n
}

// A spool that is full of open seconds takes what closes them, whatever the stamps are:
// no push is refused for ever, also after a restart, each record is counted once, and
// what is due is given back. Meanwhile it is said what is wrong.
func TestFullSpoolMovesOn(t *testing.T) {
	const pushes = 50
	for name, each := range map[string]time.Duration{"all in one second": time.Millisecond, "a log at its pace": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, dir, begun := newRowStore(), t.TempDir(), time.Now()
				cfg := liveConfig(t, store)
				stamp := func(after time.Duration, n int) string { // of some 150 kB
					return rec(int((2*time.Hour+after)/time.Millisecond), `,"my_id":"q%d","pad":%q`, n, strings.Repeat("x", 150_000))
				}
				p := startPushed(t, cfg, dir)
				warned, refused := false, int64(0)
				for n := range pushes {
					if n == pushes/2 {
						warned, refused = strings.Count(p.warns.String(), "Raise spool_max") == 1, p.Intake().Refused
						p.stop()
						p = startPushed(t, cfg, dir)
					}
					time.Sleep(time.Until(begun.Add(time.Duration(n) * each)))
					p.send(t, stamp(time.Duration(n)*each, n), 90*time.Second)
				}
				if full := p.Partitions()[0].Full; full == nil || !warned || refused == 0 {
					t.Errorf("full: %v, warned %v, refused %d", full, warned, refused)
				}
				if err := p.Partitions()[0].Err; err != nil {
					t.Errorf("it cannot be read: %v", err)
				}
				if most := sizeOf(t, dir); most > pushes*160_000 {
					t.Errorf("the spool has %d bytes", most)
				}
				kept := p.Intake().Kept
				// The log goes on, and all that was sent is beyond what is needed again.
				for n := range 3 {
					time.Sleep(2 * time.Minute)
					p.send(t, stamp(time.Since(begun), pushes+n), 90*time.Second)
				}
				time.Sleep(30 * time.Second)
				synctest.Wait()
				if full, size := p.Partitions()[0].Full, sizeOf(t, dir); full != nil || size > pushedMax/2 {
					t.Errorf("%d bytes are left in the spool, full: %v", size, full)
				}
				if got := p.Intake().Kept; got != kept+3 || got != pushes-pushes/2+3 {
					t.Errorf("%d pushes kept, then %d", kept, got)
				}
				p.stop()
				// All but the last record, whose second is open.
				sum := store.totals(t, noon.Add(2*time.Hour+time.Since(begun)).Unix()-60)
				if sum.Arrivals != pushes+2 || sum.Originals != pushes+2 || sum.Unattributable.Total != 0 {
					t.Errorf("counted %+v, want %d originals", sum, pushes+2)
				}
			})
		})
	}
}

// A partition awaits newer records only if there is nothing else to wait for: no other
// partition that is behind and being read, no rows that are still to be stored.
func TestWhatNewerRecordsAreAwaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := stallFleet(t)
		var away atomic.Bool
		f.store.fail = func() (before, after bool) { return away.Load(), false }
		f.start()
		defer f.kill()
		time.Sleep(settle + time.Second)
		says := func(why string, first, second bool) {
			t.Helper()
			for i, want := range []bool{first, second} {
				if got := f.sessions[i].(ingest.NewerAwaiter).AwaitsNewer(); got != want {
					t.Errorf("%s: partition %d awaits newer records: %v", why, i, got)
				}
			}
		}
		f.feed(0, 60)
		says("the second is still to be read", false, true)
		f.feed(1, 2) // to its end, two milliseconds after the first record
		time.Sleep(2 * time.Second)
		says("the first has more, and the second is far behind", true, true)
		away.Store(true)
		for range 15 {
			f.pause(1)
			time.Sleep(time.Second)
		}
		f.commit() // that the second is idle
		time.Sleep(2 * time.Second)
		says("seconds close and are not stored", false, false)
		away.Store(false)
		time.Sleep(10 * time.Second)
		says("all is stored that may be closed, but the first has more", true, false)
	})
}
