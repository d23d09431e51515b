package pipeline

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// A restart has to read again what the ledger must know. What of that was deleted
// meanwhile is a gap only as far as nobody had counted it; but who had asked already
// is not known any more.
func TestDeletedBeforeARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, logs: make([]partLog, 1), committed: make([]ingest.Position, 1), store: newRowStore()}
		for i := range 60 {
			f.logs[0].lines = append(f.logs[0].lines, strings.TrimSpace(rec(1000*i, `,"my_id":"a%d"`, i)))
		}
		f.cfg = liveConfig(t, f.store)
		f.start()
		time.Sleep(settle + time.Second)
		f.feed(0, 50)
		time.Sleep(3 * time.Second)
		f.commit()
		f.kill()
		counted := int64(49 - 15 + 1) // ticks that are closed, with a record each

		f.start()
		if f.next[0] != 0 {
			t.Fatalf("reading begins at %d", f.next[0])
		}
		line := []byte(f.logs[0].lines[52] + "\n")
		b := &ingest.Batch{Next: 53, Gap: 52}
		b.Data, b.Refs, b.Offset = line, []ingest.Ref{{Line: 1, Offset: 52}}, 52
		if err := f.sessions[0].Consume(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		p := f.live.Picture()
		if got, want := int64(p.Sources[0].Gap), 52-counted; got != want {
			t.Errorf("a gap of %d records, want %d: %d of those that are gone were counted", got, want, counted)
		}
		f.kill()
		if want := noon.Unix() + 52 + 40; !p.Warming || f.live.all()[0].warm != want {
			t.Errorf("warming until %d, want %d", f.live.all()[0].warm, want)
		}
	})
}
