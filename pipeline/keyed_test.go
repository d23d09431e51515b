package pipeline

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// A keyed partition has one shard, however many the others have.
func TestKeyedPartitionsAreCountedWhole(t *testing.T) {
	rows := func(parallel int) string {
		var rows string
		synctest.Test(t, func(t *testing.T) {
			logs, end := deal(rand.New(rand.NewPCG(3, 3)), storm(40), 2)
			f := &fleet{t: t, logs: logs, committed: make([]ingest.Position, 2), store: newRowStore()}
			f.cfg = liveConfig(t, f.store)
			f.cfg.Keyed, f.cfg.Parallel = []bool{true}, parallel
			f.start()
			time.Sleep(3 * time.Second)
			for i := range logs {
				f.feed(i, len(logs[i].lines))
			}
			time.Sleep(5 * time.Second)
			f.commit()
			for i, at := range f.committed { // each goes on by itself
				if was, _, err := parseLeft(at.Metadata); err != nil || was.EmitFrom <= noon.Unix() {
					t.Errorf("partition %d would be read again from %v, %v", i, at, err)
				}
			}
			f.kill()
			rows = f.store.contents(end)
		})
		return rows
	}
	want := rows(1)
	same(t, "rows of three in parallel", rows(3), want)
}
