package pipeline

import (
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
)

// scope is one ledger in shards, and what is known of the partitions that feed it.
// Its figures are those of everything that its partitions have, and of no more.
type scope struct {
	live   *Live
	name   string
	width  int // of shards
	ledger aggregate.Config
	block  int64 // of offsets, see position.go
	shards []*liveShard
	log    *slog.Logger

	// sending is held while batches go to the shards, so that they go in the order
	// in which they moved the watermark. It is taken before mu.
	sending sync.Mutex

	mu       sync.Mutex
	changed  *sync.Cond // of mu: rows were stored
	rules    uint32     // 0: not known yet
	anew     bool       // other rules were in force before
	above    uint32     // the highest of these
	since    uint32     // the rules of which the store knows from which tick on they hold
	paused   bool       // nothing is read; guarded by sending, too
	past     *pastScope // the scope as an earlier configuration left it; nil: there was none
	parts    map[string]*livePart
	hold     time.Time // no tick is closed before: partitions come and go
	closedBy []int64   // by shard, the tick before which all are closed
	closed   int64     // the least of them
	closing  int64     // and the one before which they are told to close all
	final    int64     // ticks before are closed at rest
	before   *atRest   // what was at rest when the scope began
	emitFrom int64     // rows of ticks before were stored by an earlier run
	stored   int64     // rows of ticks before are stored
	cold     bool      // some partition was never read before; until its first tick
	warm     int64     // ticks from here on know all that was asked before
	quiet    int64     // ticks before would be closed, had others been written
	filed    map[int64]uint64
	rows     map[int64]map[rowKey]*aggregate.Counts
	pending  int // rows in rows
	episodes *episodes
	worst    [][]aggregate.Episode // by shard, questions that are under way
	late     map[lateKey]*lateRows
	counted  []Range
	read     int64 // the offset before which all that its partition has is in the windows; of one that is alone
	midst    int64 // the second of log time before which it may have begun to read; noTick: that is the first that came
	windows  *windows
	recent   *closedTicks
	open     *openTicks
	totals   map[uint16]*aggregate.Sums      // of closed ticks that were counted here first, by route
	over     map[uint16]*aggregate.Histogram // arrivals per question in these, of questions that are over
	stats    []aggregate.Stats               // by shard
	again    []aggregate.Stats               // by shard, what of stats this process had counted already
	moved    time.Time                       // when ticks were last stored, or none was due
	storeErr error

	expected      map[string]bool // partitions of past that are still to come
	expectedUntil time.Time

	writing chan struct{} // has room while no rows are stored
}

type rowKey struct {
	dims         aggregate.Dims
	byPeer, wide bool
}

// lateKey is a block of a partition's offsets.
type lateKey struct {
	part  string
	block int64
}

// lateRows are the rows of the late arrivals of a block.
type lateRows struct {
	records uint64
	stored  uint64 // as many as that when it was last stored
	rows    map[lateRow]*aggregate.Counts
}

type lateRow struct {
	tick int64
	rowKey
}

// settle is how long a scope waits after a partition came or went: those of one
// assignment come one after the other.
const settle = 2 * time.Second

func newScope(l *Live, name string, shards int, exchanged bool) *scope {
	s := &scope{
		live: l, name: name, width: shards, block: l.shared.offsetBlock, log: l.cfg.Log.With("scope", name), parts: map[string]*livePart{},
		closed: noTick, closing: noTick, final: noTick, emitFrom: noTick, stored: noTick, warm: noTick, quiet: noTick, midst: noTick, before: &atRest{Closed: noTick},
		filed: map[int64]uint64{}, rows: map[int64]map[rowKey]*aggregate.Counts{}, late: map[lateKey]*lateRows{},
		windows: newWindows(l.keepSeconds(), int64(l.cfg.Lateness/time.Second)), recent: newClosedTicks(), open: newOpenTicks(), totals: map[uint16]*aggregate.Sums{}, over: map[uint16]*aggregate.Histogram{},
		writing: make(chan struct{}, 1), episodes: newEpisodes(),
	}
	if s.ledger = l.shared.ledger; exchanged {
		s.block, s.ledger.KeyHash = l.exchange.receiving.offsetBlock, sentKeyHash
	}
	s.changed = sync.NewCond(&s.mu)
	s.moved = l.cfg.Clock()
	s.stats, s.again, s.closedBy = make([]aggregate.Stats, shards), make([]aggregate.Stats, shards), slices.Repeat([]int64{noTick}, shards)
	s.worst = make([][]aggregate.Episode, shards)
	for range shards {
		s.shards = append(s.shards, newLiveShard(s, l.cfg.share(shards)))
	}
	return s
}

// advance gives a batch its place and sends it to the shards. Without out there is
// nothing in it; d is its decoder, if it has one.
func (s *scope) advance(p *livePart, b *ingest.Batch, out *batch, d *decoder, j *joins) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	job := &liveJob{part: p}
	if out != nil { // in any case: the decoder tells of a name once
		s.live.order.Lock()
		job.routes, job.peers = s.live.reg.add(out)
		s.live.order.Unlock()
	}
	if s.shards == nil || s.paused {
		return errMoved
	}
	s.mu.Lock()
	if out != nil && (p.decided != nil || d != nil && p.mark != d.mark) {
		s.mu.Unlock()
		return errDecided
	}
	if j != nil {
		p.take(j)
		if b.Next > p.told {
			s.windows.source(p.Source).add(j.counts())
		}
	}
	now := s.live.cfg.Clock()
	p.next = max(p.next, b.Next)
	if b.AtEnd {
		p.said = now
	}
	switch {
	case !b.AtEnd:
		p.atEnd = time.Time{}
	case p.atEnd.IsZero() || b.Next > b.Offset: // since something came
		p.atEnd = now
	}
	if out != nil {
		job.batch, job.mark, job.block = out, p.mark, b.Offset/s.block
		job.again = b.Next <= p.told
		job.final = p.final
		p.mark = max(p.mark, out.maxLog)
		if out.table != nil {
			p.table = out.table
		}
		s.windows.lost(p.Source, out.missing, 0)
		p.trail.add(&out.trace)
		p.sent = append(p.sent, b.Offset)
		if !job.again {
			s.windows.read(p.Source, out)
		}
	}
	job.counted = counted(p, b)
	if out == nil {
		s.count(job.counted)
	}
	lost := p.lost(b)
	if p.table.of != 0 { // these were parcels: of which records is missing tells the next one
		lost = 0
	}
	s.windows.lost(p.Source, lost, b.Empty)
	if out != nil {
		s.begin(p, &out.trace)
	}
	job.to = s.closeable(now)
	if out != nil {
		s.closing = max(s.closing, job.to)
	}
	s.mu.Unlock()
	if out != nil {
		s.send(job)
	}
	return nil
}

// counted is the offsets that a batch with records counts.
func counted(p *livePart, b *ingest.Batch) Range {
	if len(b.Data) == 0 {
		return Range{}
	}
	return Range{p.Name, b.Offset, b.Next}
}

// count notes which offsets every shard is through with: what is stored of their
// records is stored with them or later.
func (s *scope) count(x Range) {
	if x.From == x.To {
		return
	}
	for i := len(s.counted) - 1; i >= 0; i-- {
		if r := &s.counted[i]; r.Partition == x.Partition {
			if r.To == x.From {
				r.To = x.To
				return
			}
			break
		}
	}
	s.counted = append(s.counted, x)
}

// begin notes that records of a partition have come.
func (s *scope) begin(p *livePart, t *trace) {
	p.begun = true
	for _, x := range t.ticks {
		if p.warming {
			s.warm = max(s.warm, x.tick+2*s.horizon())
		}
	}
	p.warming = p.warming && len(t.ticks) == 0
}

// atEnd says that there is nothing more to read anywhere.
func (s *scope) atEnd() bool {
	for _, p := range s.parts {
		if p.assigned && p.atEnd.IsZero() {
			return false
		}
	}
	return true
}

// send hands a job to every shard.
func (s *scope) send(j *liveJob) {
	j.left.Store(int32(len(s.shards)))
	for _, sh := range s.shards {
		sh.jobs <- j
	}
}

// closeable is the tick before which every tick may be closed: those that lie one
// lateness below the watermark of every partition. Of a partition that is idle it is
// decided that its watermark is the lowest of those that are not; once that is
// committed, it is. When all are idle nothing closes.
func (s *scope) closeable(now time.Time) int64 {
	if now.Before(s.hold) || len(s.expected) > 0 && now.Before(s.expectedUntil) {
		return noTick
	}
	low, busy := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, p := range s.parts {
		if !p.assigned {
			continue
		}
		p.raise()
		low = min(low, p.mark)
		if !p.idle(now, s.live.cfg.Idle) {
			busy = min(busy, p.mark)
		}
	}
	if busy != math.MaxInt64 {
		for _, p := range s.parts {
			if p.assigned && p.mark < busy && p.decided == nil && len(p.todo) == 0 && len(p.raised) < maxRaised {
				p.decided = &markAt{Offset: p.next, Mark: busy}
			}
		}
	}
	if low == noTick || low == math.MaxInt64 {
		return noTick
	}
	return (low-int64(s.live.cfg.Lateness))/1e9 + 1
}

// pulse is called every PulseEvery.
func (s *scope) pulse() {
	most := s.live.perShard()
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.paused {
		return
	}
	s.mu.Lock()
	now := s.live.cfg.Clock()
	if s.atEnd() {
		s.windows.slide(now.Unix() - 1)
		s.silence()
	}
	job := &liveJob{beat: true, most: most, to: s.closeable(now)}
	s.closing = max(s.closing, job.to)
	s.mu.Unlock()
	s.send(job)
}

// silence notes that nothing was written lately, without which ticks do not close: what
// was asked before is known all the same, once the silence lasts.
func (s *scope) silence() {
	if s.windows.newest == noTick {
		return
	}
	s.quiet = max(s.quiet, s.windows.head-int64(s.live.cfg.Lateness/time.Second))
	if known := s.windows.newest + 2*s.horizon(); s.cold && s.quiet >= known {
		s.cold, s.warm = false, max(s.warm, known)
	}
}

// warming says that what was asked before is not known.
func (s *scope) warming() bool { return s.cold || max(s.closed, s.quiet) < s.warm }

// take books what a shard found in a job; blocks are those of late arrivals.
func (s *scope) take(shard int, j *liveJob, out *aggregate.Output, stats aggregate.Stats, blocks []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.batch != nil && j.left.Add(-1) == 0 {
		j.part.sent = j.part.sent[1:]
		s.count(j.counted)
		select {
		case s.live.shared.spare <- j.batch:
		default:
		}
	}
	if j.again {
		s.again[shard] = sumStats(s.again[shard], stats, s.stats[shard])
	}
	s.stats[shard] = stats
	for _, t := range out.Ticks {
		s.filed[t.At] += uint64(t.N)
		if s.cold {
			s.cold, s.warm = false, max(s.warm, t.At+2*s.horizon())
		}
	}
	if j.beat {
		for _, p := range s.parts {
			s.read = max(s.read, p.through())
		}
	}
	homes := s.live.homes()
	s.recent.begin(out.Rows, s.emitFrom)
	for _, r := range out.Rows {
		if r.From < s.emitFrom {
			continue
		}
		at := s.rows[r.From]
		if at == nil {
			at = map[rowKey]*aggregate.Counts{}
			s.rows[r.From] = at
		}
		k := rowKey{r.Dims, r.View == viewPeers, r.Wide}
		if k.wide {
			k.dims.Route = homes[k.dims.Route]
		}
		if !k.byPeer && !k.wide {
			s.closedSum(r.Dims.Route).AddCounts(r.Counts)
			s.recent.at(r.From, homes[r.Dims.Route]).AddCounts(r.Counts)
			s.over[r.Dims.Route].Merge(&r.Counts.PerQuestion)
		}
		if c := at[k]; c != nil {
			c.Merge(r.Counts)
		} else {
			at[k] = r.Counts
			s.pending++
		}
	}
	s.episodes.take(out.Episodes, s.emitFrom)
	s.compare(out.Sightings)
	for i := range out.Late {
		s.takeLate(&out.Late[i], lateKey{j.part.Name, blocks[i]}, j.again)
		if a := &out.Late[i]; s.recent.from != noTick && a.Tick >= s.recent.from {
			s.recent.at(a.Tick, homes[a.Dims.Route]).Add(a)
		}
	}
	s.windows.add(out.Beats, homes, s.live.cfg.Clock().Unix())
	s.open.add(out.Beats, max(s.stored, s.emitFrom))
	s.closedBy[shard] = max(s.closedBy[shard], j.to)
	s.closed = slices.Min(s.closedBy)
	if s.closed != noTick {
		s.recent.forget(s.closed)
		s.live.leftOut.Add(uint64(s.episodes.pick(s.closed, s.live.cfg.StoreFrom == 1)))
	}
}

func (s *scope) closedSum(route uint16) *aggregate.Sums {
	if s.totals[route] == nil {
		s.totals[route], s.over[route] = new(aggregate.Sums), new(aggregate.Histogram)
	}
	return s.totals[route]
}

// The views of a daemon's ledgers.
const (
	viewOriginators = iota
	viewPeers
)

func (s *scope) takeLate(a *aggregate.Beat, k lateKey, again bool) {
	b := s.late[k]
	if b == nil {
		b = &lateRows{rows: map[lateRow]*aggregate.Counts{}}
		s.late[k] = b
	}
	b.records++
	if !again {
		s.closedSum(a.Dims.Route).Add(a)
	}
	for _, byPeer := range []bool{false, true} {
		d := aggregate.Dims{Route: a.Dims.Route, Originator: a.Dims.Originator}
		if byPeer {
			d = aggregate.Dims{Route: a.Dims.Route, Peer: a.Dims.Peer}
		}
		row := lateRow{a.Tick, rowKey{dims: d, byPeer: byPeer}}
		if b.rows[row] == nil {
			b.rows[row] = new(aggregate.Counts)
		}
		b.rows[row].Book(a)
	}
}

func (s *scope) horizon() int64 { return int64((s.live.cfg.Horizon + time.Second - 1) / time.Second) }

// stop ends the shards. Nothing may be sent any more.
func (s *scope) stop() {
	s.sending.Lock()
	defer s.sending.Unlock()
	for _, sh := range s.shards {
		close(sh.jobs)
	}
	for _, sh := range s.shards {
		<-sh.done
	}
	s.shards = nil
	s.live.probe.forget(s.name)
}
