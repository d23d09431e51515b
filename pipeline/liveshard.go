package pipeline

import (
	"sync"
	"sync/atomic"

	"github.com/targetside/auditor/aggregate"
)

// liveShard is a ledger of a scope, in a goroutine of its own.
type liveShard struct {
	ledger *aggregate.Ledger
	jobs   chan *liveJob
	done   chan struct{}

	beats    []aggregate.Beat // memory for those to come
	unranked int              // beats before the worst questions are looked for again
}

// keptBeats is for how many beats a shard keeps the memory, some megabytes.
const keptBeats = 1 << 16

// liveJob is a batch for every shard to take its part of, or a beat.
type liveJob struct {
	batch   *batch    // nil: none
	part    *livePart // its partition
	counted Range     // its offsets
	block   int64     // of offsets, that it begins in
	mark    int64     // the partition's watermark before the batch
	to      int64     // ticks before are to be closed
	beat    bool
	most    int             // with a beat: questions that may be followed
	find    *search         // nothing but that
	final   int64           // of its partition
	again   bool            // of a batch that this process has counted already
	passed  *sync.WaitGroup // told by every shard that it is through; nil: nobody waits
	routes  []uint16
	peers   []uint8
	left    atomic.Int32
}

func newLiveShard(s *scope, most int) *liveShard {
	cfg := s.ledger
	cfg.MaxLive = most
	sh := &liveShard{ledger: aggregate.NewLedger(cfg), jobs: make(chan *liveJob, 2), done: make(chan struct{})}
	go sh.work(s, len(s.shards))
	return sh
}

func (sh *liveShard) work(s *scope, number int) {
	defer close(sh.done)
	var a aggregate.Arrival
	for j := range sh.jobs {
		if j.find != nil {
			j.find.found <- sh.ledger.Find(j.find.keyHash)
			continue
		}
		out := &aggregate.Output{Beats: sh.beats}
		var blocks []int64 // of out.Late
		if j.batch != nil {
			part := &j.batch.shards[number]
			keys := part.keys
			for k := range part.items {
				it := &part.items[k]
				it.arrival(&a, j.routes, j.peers)
				if sh.ledger.Closed(&a) { // its partition came when that was so already
					if s.live.shared.ledger.Tick(&a) < j.final { // and its row has it
						keys = keys[it.keyLen:]
						continue
					}
					blocks = sh.late(&a, j.block, out, blocks)
					keys = keys[it.keyLen:]
					continue
				}
				sh.ledger.Add(&a, keys[:it.keyLen], max(j.mark, it.before))
				keys = keys[it.keyLen:]
			}
			for k := range part.late {
				late := &part.late[k]
				late.arrival.Route, late.arrival.Peer = j.routes[late.arrival.Route], j.peers[late.peer]
				blocks = sh.late(&late.arrival, late.block, out, blocks)
			}
		}
		if j.beat {
			sh.ledger.Bound(j.most)
			sh.ledger.Live(out)
			sh.rank(s, number)
		}
		if j.to != noTick {
			sh.ledger.Close(j.to, out)
		}
		s.take(number, j, out, sh.ledger.Stats(), blocks)
		sh.beats = nil
		if cap(out.Beats) <= keptBeats {
			sh.beats = out.Beats[:0]
		}
		if j.passed != nil {
			j.passed.Done()
		}
	}
}

// late counts a late arrival and notes its block, unless it is a copy.
func (sh *liveShard) late(a *aggregate.Arrival, block int64, out *aggregate.Output, blocks []int64) []int64 {
	n := len(out.Late)
	if sh.ledger.AddLate(a, out); len(out.Late) > n {
		blocks = append(blocks, block)
	}
	return blocks
}
