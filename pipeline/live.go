package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
)

// Live counts what sources read, for as long as they do: it is the handler of a
// daemon's sources.
//
//	source ─ batch ─ session ─ decoder ─ in order ─┬ shard ─┬ scope ─┬ windows
//	                                               └ shard ─┘        └ writer
//
// Each partition is decoded by the goroutine that reads it. A scope is one ledger,
// in as many shards as it has: a keyed partition alone, or everything that is not
// keyed together, since the arrivals of one question may come by any of those.
type Live struct {
	cfg      *LiveConfig
	shared   *shared
	reg      *registry // under order
	decoders chan *decoder
	extra    []string // log fields that discriminate

	// order is held while batches get their place in the order of things, and
	// their names numbers.
	order sync.Mutex

	mu     sync.Mutex // of scopes and formats
	scopes map[string]*scope
	format []string // by source, once it is known

	probe    *probe
	exchange *exchange // nil: none

	picturing sync.Mutex               // held while a picture is taken
	gauges    map[routeName]*gauge     // of dependencies and routes
	watches   map[string]*budget.Watch // of dependencies

	begun time.Time // when it went on where another stopped

	leftOut atomic.Uint64 // questions that are over and were not stored
	past    past          // what this process counted by earlier configurations
}

// LiveConfig says how a daemon counts.
type LiveConfig struct {
	Config
	// Idle is how long a partition at its end holds back the others.
	Idle time.Duration
	// Keyed says of each source whether its partitions are keyed by question.
	Keyed []bool
	// Parts says of each source whether a partition holds the lines of one logger in
	// order, so that those which a container's runtime parted can be put together.
	Parts []bool
	// Outlets are, by source, where its arrivals are sent to be counted, nil for here;
	// and Exchanged, for a source that takes them, the topics that they are from. See
	// exchange.go.
	Outlets   []Outlet
	Exchanged [][]string
	Writer    Writer
	Log       *slog.Logger
	// DeadLetters take, by source, the lines that could not be read; nil for none.
	// They keep nothing of a line and do not wait.
	DeadLetters []func(line []byte, reason string, from ingest.Partition, at ingest.Ref)
	// Clock is the wall clock.
	Clock func() time.Time
	// StoreFrom is from how many arrivals on a question is stored by itself; 0: none
	// is. One in aggregate.DrawnOneIn is in any case.
	StoreFrom uint32
	// MaxPending is how many rows may wait for the writer before reading stops.
	MaxPending int
	// MaxLive is how many questions are followed at once; of more, a part is. 0 is any
	// number.
	MaxLive int

	offsetBlock, exchangeBlock int64         // 0 is offsetBlock, and exchangeBlock
	parcelSize                 int           // 0 is parcelSize
	linger                     time.Duration // 0 is linger, less is none
}

// everything is the scope of all partitions that are not keyed.
const everything = "all"

// NewLive returns a handler without partitions. Run makes it work.
func NewLive(cfg LiveConfig) *Live {
	c := &cfg.Config
	if c.Parallel <= 0 {
		c.Parallel = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if cfg.MaxPending <= 0 {
		cfg.MaxPending = 200_000 // of about 1 KiB
	}
	shared, extra := newShared(c, aggregate.Config{
		Horizon: int64(c.Horizon), Lateness: int64(c.Lateness), Live: true, KeyHash: KeyHasher(c.Salt), Episodes: cfg.StoreFrom,
		Views: []aggregate.View{{ByRoute: true, ByOriginator: true, Every: 1}, {ByRoute: true, ByPeer: true, Every: 1}},
	})
	shared.offsetBlock = cmp.Or(cfg.offsetBlock, offsetBlock)
	for i := range c.Sources {
		shared.sources = append(shared.sources, i)
	}
	readers := runtime.GOMAXPROCS(0)
	l := &Live{
		cfg: &cfg, shared: shared, extra: extra, reg: newRegistry(readers, c.Routes.Max, c.Peers.Max),
		decoders: make(chan *decoder, readers), scopes: map[string]*scope{}, gauges: map[routeName]*gauge{}, watches: map[string]*budget.Watch{}, format: make([]string, len(c.Sources)),
		probe: newProbe(c.Horizon, cfg.Clock),
	}
	for i := range readers {
		own := *shared
		d := newDecoder(i, &own, c)
		d.live, d.parsers = true, make([]*accesslog.Parser, len(c.Sources))
		l.decoders <- d
	}
	if len(cfg.Outlets) > 0 || len(cfg.Exchanged) > 0 {
		cfg.linger = cmp.Or(cfg.linger, linger)
		l.exchange = newExchange(&cfg, shared, readers)
	}
	return l
}

// PulseEvery is how often arrivals are told of and ticks closed. A picture taken as
// often shows what was read at most twice that ago.
const PulseEvery = 500 * time.Millisecond

// Run closes ticks and beats, and hands rows to the writer once a second, until ctx
// ends. Sources may be started before and must have ended before ctx does.
func (l *Live) Run(ctx context.Context) {
	tick := time.NewTicker(PulseEvery)
	defer tick.Stop()
	var writes sync.WaitGroup
	defer writes.Wait()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			for _, s := range l.all() {
				s.stop()
			}
			return
		case <-tick.C:
			for _, s := range l.all() {
				if s.abandoned() {
					l.drop(s)
					continue
				}
				s.pulse()
				if n%int(time.Second/PulseEvery) == 0 && len(s.writing) == 0 {
					writes.Go(func() { s.write(ctx) })
				}
			}
		}
	}
}

// drop forgets a scope whose partitions others have long counted on.
func (l *Live) drop(s *scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.abandoned() {
		l.forget(s)
	}
}

// restart forgets a scope that is to begin anew, as its sessions are told.
func (l *Live) restart(s *scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(s)
}

func (l *Live) forget(s *scope) {
	if l.scopes[s.name] == s {
		delete(l.scopes, s.name)
		s.stop()
	}
}

func (l *Live) all() []*scope {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*scope
	for _, name := range sortedKeys(l.scopes) {
		out = append(out, l.scopes[name])
	}
	return out
}

// Assigned implements ingest.Handler.
func (l *Live) Assigned(ctx context.Context, p ingest.Partition, at ingest.Position) (ingest.Session, ingest.Position, error) {
	if p.Source < 0 || p.Source >= len(l.cfg.Sources) {
		return nil, at, errors.New("the partition is of no source of this configuration")
	}
	if p.Source < len(l.cfg.Outlets) && l.cfg.Outlets[p.Source] != nil {
		return l.send(ctx, p, at)
	}
	was, known, err := parseLeft(at.Metadata)
	if err != nil {
		return nil, at, err
	}
	name, shards := everything, l.shared.shardCount
	exchanged := l.cfg.exchanged(p.Source) != nil
	if exchanged || l.cfg.Keyed[p.Source] {
		name, shards = p.Name, 1
	}
	if alone := name != everything; known && was.Alone != alone {
		return nil, at, fmt.Errorf("%s was counted with keyed: %t, which cannot be changed: what is at rest would be counted twice, or lost. Set keyed: %t again, or another kafka.group with start: last", p.Name, was.Alone, was.Alone)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	take := func(s *scope) (ingest.Session, ingest.Position, error) {
		if s == nil {
			return nil, at, nil
		}
		if source, ok := s.reads(p); ok {
			return nil, at, fmt.Errorf("%s is read by sources[%d] already; by sources[%d] too it would be counted twice: take it out of one", p.Name, source, p.Source)
		}
		part, from, ok := s.assign(p, at, was, known)
		if !ok {
			return nil, at, nil
		}
		return l.session(s, part), ingest.Position{Offset: from, Metadata: at.Metadata}, nil
	}
	if session, from, err := take(l.scopes[name]); session != nil || err != nil {
		return session, from, err
	}
	var before *atRest
	if name == everything { // else the partition has the scope for itself
		l.mu.Unlock()
		if before, err = l.recollect(ctx, name); err != nil {
			l.cfg.Log.Warn("nothing is stored before that is known", "scope", name, "error", err)
		}
		l.mu.Lock()
		if session, from, err := take(l.scopes[name]); session != nil || err != nil {
			return session, from, err // another partition has begun it meanwhile
		}
	}
	if s := l.scopes[name]; s != nil {
		l.cfg.Log.Info("another instance has counted on; the scope begins anew", "scope", name, "partition", p.Name)
		s.stop()
	}
	s := newScope(l, name, shards, exchanged)
	if before != nil {
		s.before = before
	}
	s.inherit(l.past.scopes[name])
	delete(l.past.scopes, name) // a later one goes by positions
	l.scopes[name] = s
	return take(s)
}

// exchanged are the topics whose arrivals a source takes, nil if it has records.
func (c *LiveConfig) exchanged(source int) []string {
	if source < len(c.Exchanged) {
		return c.Exchanged[source]
	}
	return nil
}

// session is that of a partition that is counted here.
func (l *Live) session(s *scope, p *livePart) ingest.Session {
	own := session{live: l, scope: s, part: p}
	if topics := l.cfg.exchanged(p.Source); topics != nil {
		return &receiver{session: own, topics: topics}
	}
	return &own
}

// perShard is how many questions each shard may follow.
func (l *Live) perShard() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	shards := 0
	for _, s := range l.scopes {
		shards += len(s.closedBy)
	}
	return l.cfg.share(shards)
}

// share is how many questions each of some shards may follow.
func (c *LiveConfig) share(shards int) int {
	if c.MaxLive == 0 {
		return 0
	}
	return max(1, c.MaxLive/max(1, shards))
}

// names gives names to numbers.
func (l *Live) names() *names {
	return &names{reg: l.reg, ring: l.cfg.Keys, claimedAt: l.shared.claimedAt}
}

// equip gives the decoder a parser for a source, if it has none. The format is found
// out from the first batch that tells.
func (l *Live) equip(d *decoder, source int, sample []byte) error {
	if d.parsers[source] != nil {
		return nil
	}
	format, err := l.formatOf(source, sample)
	if err != nil {
		return err
	}
	d.parsers[source], err = newParser(&l.cfg.Config, &l.cfg.Sources[source], format, l.extra)
	return err
}

func (l *Live) formatOf(source int, sample []byte) (format string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if format = cmp.Or(l.format[source], l.cfg.Sources[source].Parser.Format, "auto"); format == "auto" {
		if format, err = accesslog.Detect(sample); err != nil {
			return "", err
		}
	}
	l.format[source] = format
	return format, nil
}

// session is a partition while it is assigned.
type session struct {
	live  *Live
	scope *scope
	part  *livePart
}

// Consume implements ingest.Session.
func (s *session) Consume(ctx context.Context, b *ingest.Batch) error {
	if b.Done != nil {
		defer b.Done()
	}
	if err := s.scope.room(ctx); err != nil {
		return err
	}
	for _, piece := range s.scope.cut(s.part, b) {
		if err := s.consume(ctx, piece); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) consume(ctx context.Context, b *ingest.Batch) error {
	block, j := b.Block, (*joins)(nil)
	if source := s.part.Source; source < len(s.live.cfg.Parts) && s.live.cfg.Parts[source] {
		block, j = s.part.join(b)
	}
	if len(block.Data) == 0 {
		return s.scope.advance(s.part, b, nil, nil, j)
	}
	d, err := s.live.take(ctx, s.live.decoders, s.part.Partition, block.Data)
	if err != nil {
		return err
	}
	defer func() { s.live.decoders <- d }()
	mark, was, err := s.scope.ready(s.part)
	if err != nil {
		return err
	}
	d.mark, d.history, d.shards = mark, was, s.scope.width
	if block.Declares != "" {
		d.parsers[s.part.Source].Declare(block.Declared)
	}
	return s.scope.advance(s.part, b, d.decode(s.part.Source, block), d, j)
}

// take takes one of some decoders, and prepares it for records of a partition. It is
// to be put back.
func (l *Live) take(ctx context.Context, from chan *decoder, p ingest.Partition, sample []byte) (*decoder, error) {
	select {
	case d := <-from:
		if err := l.equip(d, p.Source, sample); err != nil {
			from <- d
			return nil, err
		}
		d.shared.latest = l.cfg.Clock().Add(l.cfg.MaxFuture).UnixNano()
		l.letters(d, p)
		return d, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// letters lets a decoder hand on what it cannot read of a partition.
func (l *Live) letters(d *decoder, p ingest.Partition) {
	d.dead = nil
	if letters := l.cfg.DeadLetters; p.Source < len(letters) && letters[p.Source] != nil {
		d.dead = func(line []byte, reason string, at ingest.Ref) { letters[p.Source](line, reason, p, at) }
	}
}

// Released implements ingest.Session.
func (s *session) Released() ingest.Position { return s.scope.released(s.part) }

// AwaitsNewer implements ingest.NewerAwaiter.
func (s *session) AwaitsNewer() bool { return s.scope.awaitsNewer(s.part) }

// Committed implements ingest.Session.
func (s *session) Committed(at ingest.Position) { s.scope.committed(s.part, at) }

// Close implements ingest.Session. What the partition told the ledger stays valid:
// if nobody else counted it meanwhile, reading goes on where it stopped.
func (s *session) Close(ctx context.Context) error {
	s.scope.unassign(s.part)
	return s.scope.write(ctx)
}

// homes are, by route, the first route of its dependency, which stands for that.
func (l *Live) homes() []uint16 {
	l.reg.mu.Lock()
	defer l.reg.mu.Unlock()
	return l.reg.homes
}
