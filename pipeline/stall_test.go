package pipeline

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// stuck is a store that does not answer while it is held.
type stuck struct {
	*rowStore
	held chan struct{}
}

func (s *stuck) Write(ctx context.Context, w *Written) error {
	select {
	case <-s.held:
		return s.rowStore.Write(ctx, w)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Two partitions, of which the first has a record each second for ten minutes.
func stallFleet(t *testing.T) (f *fleet, step func(seconds int)) {
	f = &fleet{t: t, logs: make([]partLog, 2), committed: make([]ingest.Position, 2), store: newRowStore()}
	f.cfg = liveConfig(t, f.store)
	f.cfg.Lateness, f.cfg.Idle = 15*time.Second, 10*time.Second
	for i := range 600 {
		f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(1000*i, `,"my_id":"a%d"`, i)))
	}
	f.logs[1].lines = []string{strings.TrimSpace(rec(0, "")), strings.TrimSpace(rec(1, ""))}
	return f, func(seconds int) {
		for range seconds {
			f.feed(0, 1)
			time.Sleep(time.Second)
			f.live.Picture()
		}
	}
}

// A partition that is neither read nor idle holds every second open. After a lateness,
// the time of idleness and a margin that is said, with its name, until it is over.
func TestSecondsThatDoNotClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, step := stallFleet(t)
		f.start()
		defer f.kill()
		time.Sleep(settle + time.Second)
		f.feed(1, 1)
		step(50)
		if said := f.live.Picture().Stalled; said != nil {
			t.Errorf("too early it is said that %s", said)
		}
		step(30)
		said := f.live.Picture().Stalled
		if len(said) != 1 || !strings.Contains(said[0], "log/1 holds them open") || !strings.Contains(said[0], "2026-03-03T12:00:00Z") {
			t.Errorf("after 80 s it is said that %q", said)
		}
		for range 30 { // it is read to its end, so that it becomes idle
			f.pause(1)
			f.commit()
			step(1)
		}
		if said := f.live.Picture().Stalled; said != nil {
			t.Errorf("when seconds close again it is said that %s", said)
		}
	})
}

func TestSecondsThatAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, step := stallFleet(t)
		store := &stuck{f.store, make(chan struct{})}
		f.cfg.Writer = store
		f.logs = f.logs[:1]
		f.committed = f.committed[:1]
		f.start()
		defer f.kill()
		time.Sleep(settle + time.Second)
		step(50)
		if said := f.live.Picture().Stalled; said != nil {
			t.Errorf("too early it is said that %s", said)
		}
		step(60)
		if said := f.live.Picture().Stalled; len(said) != 1 || !strings.Contains(said[0], "the store does not answer") {
			t.Errorf("after 115 s it is said that %q", said)
		}
		close(store.held)
		step(3)
		if said := f.live.Picture().Stalled; said != nil {
			t.Errorf("when the store answers again it is said that %s", said)
		}
	})
}

// Where no records come nothing is wrong, however long that lasts.
func TestNothingComesAndNothingCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, step := stallFleet(t)
		f.start()
		defer f.kill()
		time.Sleep(settle + time.Second)
		f.feed(1, 1)
		step(30)
		for range 600 {
			f.pause(0)
			f.pause(1)
			time.Sleep(time.Second)
			if said := f.live.Picture().Stalled; said != nil {
				t.Fatalf("it is said that %s", said)
			}
		}
	})
}
