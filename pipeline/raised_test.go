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
				was.Raised = []markAt{{Offset: c.raised, Mark: noon.Add(time.Hour).UnixNano()}}
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

// A decoder tells of a name once. Where its batch is refused, because it was decided
// meanwhile that the partition is idle, the name is known all the same.
func TestARefusedBatchLeavesItsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, cfg: liveConfig(t, newRowStore()), committed: make([]ingest.Position, 1)}
		f.store = f.cfg.Writer.(*rowStore)
		begun := time.Now()
		f.cfg.Clock = func() time.Time { return noon.Add(3*time.Second + time.Since(begun)) }
		f.logs = make([]partLog, 1)
		for i := range 3 {
			f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(i*1000, "")))
		}
		f.start()
		s := f.sessions[0].(*session)
		var all []*decoder
		for range cap(f.live.decoders) {
			d := <-f.live.decoders
			all = append(all, d)
			b := &ingest.Batch{Next: 1}
			b.Data, b.Refs = []byte(f.logs[0].lines[0]+"\n"), []ingest.Ref{{Line: 1}}
			if err := f.live.equip(d, 0, b.Data); err != nil {
				t.Fatal(err)
			}
			d.mark = 1 // not the partition's
			if err := s.scope.advance(s.part, b, d.decode(0, b.Block), d, nil); err != errDecided {
				t.Fatalf("the batch is answered with %v", err)
			}
		}
		for _, d := range all {
			f.live.decoders <- d
		}
		f.feed(0, 3)
		time.Sleep(time.Second)
		p := f.live.Picture()
		if n := p.Dependencies[0].Windows[0].Routes; len(n) != 1 || n[0].Arrivals != 3 || n[0].Name != "GET /seats/{id}" {
			t.Errorf("counted are %+v", n)
		}
		f.kill()
	})
}
