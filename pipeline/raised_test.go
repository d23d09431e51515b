package pipeline

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// While another instance read the partition it took it to be idle at some offset, and
// was gone before it had stored anything. This one has the partition in memory.
func TestRaisedByAnotherInstance(t *testing.T) {
	for name, c := range map[string]struct {
		raised, goesOn int64
	}{
		"before what is read next": {10, 10}, // memory is as good as before, and the raise holds
		"where it has read on":     {5, 0},   // memory is of another reading
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{t: t, logs: make([]partLog, 1), committed: make([]ingest.Position, 1), store: newRowStore()}
				for i := range 20 {
					f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(1000*i, `,"my_id":"a%d"`, i)))
				}
				f.cfg = liveConfig(t, f.store)
				f.start()
				defer f.kill()
				time.Sleep(settle + time.Second)
				f.feed(0, 10)
				time.Sleep(3 * time.Second)
				f.commit()
				was, known, err := parseLeft(f.committed[0].Metadata)
				if !known || err != nil {
					t.Fatalf("%q: %v", f.committed[0].Metadata, err)
				}
				was.Raised = []markAt{{c.raised, noon.Add(time.Hour).UnixNano()}}
				f.committed[0].Metadata = was.String()
				f.assign()
				if f.next[0] != c.goesOn {
					t.Errorf("reading goes on at %d, want %d", f.next[0], c.goesOn)
				}
				f.feed(0, 20)
				time.Sleep(settle + 3*time.Second)
				late := 0
				f.store.mu.Lock()
				defer f.store.mu.Unlock()
				for _, r := range f.store.rows {
					if r.late != 0 && !r.byPeer {
						late++
					}
				}
				if want := 20 - int(c.raised); late != want {
					t.Errorf("%d ticks have late arrivals, want %d: all behind the raise", late, want)
				}
			})
		})
	}
}
