package pipeline

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
	"github.com/targetside/auditor/keys"
)

// batch is a decoded block: its arrivals by shard, and what was left out.
type batch struct {
	decoder int
	shards  []part

	bytes       int64
	lines       int64  // that are not blank
	records     int64  // that they held, of which a line can hold several
	numbered    int64  // all lines
	maxLog      int64  // largest log time of a record
	coarse      uint64 // arrivals whose stamp is whole seconds
	ignored     map[string]uint64
	quarantined map[string]uint64
	samples     []Quarantined
	routes      []routeName // new to the decoder since its previous batch
	peers       []string
	trace       trace  // of a daemon's
	table       *table // of the exchange, behind the batch; nil: it is of no exchange
	missing     int64  // records that the exchange has lost
}

// Quarantined locates a line that could not be read. Of the line itself it says
// nothing: a request may hold secrets.
type Quarantined struct {
	Source string
	Line   int64
	Offset int64
	Reason string
}

// samplesPerReason bounds how many quarantined lines of a block are located.
const samplesPerReason = 3

// decoder turns blocks into batches. It belongs to one goroutine.
type decoder struct {
	number  int
	shards  int // that arrivals are shared out among: those of the scope, or partitions of the exchange
	shared  *shared
	parsers []*accesslog.Parser // by partition
	checker *keys.Checker
	names   *localNames
	entry   accesslog.Entry
	block   []byte // memory of the block at hand
	items   int    // what the batch before gave to one shard at most
	keys    int    // likewise, bytes of keys
	at      ingest.Ref
	route   []byte
	coarse  bool // the stamp of the record at hand is whole seconds

	// Of the record at hand: its arrival, with the dimensions that have no room in
	// there, and the largest log time of earlier records of the block.
	arrival aggregate.Arrival
	peer    uint16
	key     []byte
	before  int64

	live     bool      // a daemon's: late arrivals are kept apart, and questions are drawn
	exchange *outgoing // takes the arrivals, if they are sent; else nil
	line     []byte
	dead     func(line []byte, reason string, at ingest.Ref)
	mark     int64 // its partition's watermark before the block
	history
}

// shared is what all decoders read and none writes.
type shared struct {
	cfg        *Config
	sources    []int // by partition
	router     *router
	callers    *callers
	refused    [1000]bool
	ledger     aggregate.Config
	hasher     hasher
	ignorePath map[string]bool
	ignorePeer map[string]bool
	agents     [][]byte
	deadlines  bool // some peer has a timeout of its own
	shardCount int
	claimedAt  uint16 // the first originator number of claimed keys
	latest     int64  // the largest log time that is not from the future
	spare      chan *batch
	discs      map[string]int // index into Entry.Extra, by route
	lots       lots

	offsetBlock int64 // see position.go
}

func (d *decoder) decode(part int, block ingest.Block) *batch {
	b := d.shared.batch(len(block.Data), d.number)
	for i := range b.shards {
		b.shards[i].grow(d.items, d.keys)
	}
	d.items, d.keys = 0, 0
	parser := d.parsers[part]
	number := int64(0)
	for rest := block.Data; len(rest) > 0; {
		// Without Refs, line numbers are of the block until the batch is put in order.
		d.at = ingest.Ref{Line: number + 1, Offset: block.Offset + int64(len(block.Data)-len(rest))}
		if block.Refs != nil {
			d.at = block.Refs[number]
		}
		var line []byte
		line, rest = parser.Line(rest)
		number++
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if len(line) == 0 || (line[0] <= ' ' || line[0] >= utf8.RuneSelf) && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		b.lines++
		d.line = line
		for len(line) > 0 {
			more, err := parse(parser, line, &d.entry)
			b.records++
			if d.entry.Damaged > 0 && err == nil {
				b.records += int64(d.entry.Damaged)
				d.quarantine(b, accesslog.RejectDamaged, uint64(d.entry.Damaged))
			}
			if err != nil {
				if err == accesslog.RejectOther {
					b.ignored["other_stream"]++
				} else {
					d.quarantine(b, reasonOf(err), 1)
				}
			} else {
				d.take(part, &d.entry, b)
			}
			if len(more) >= len(line) {
				break
			}
			line = more
		}
	}
	for i := range b.shards {
		d.items, d.keys = max(d.items, len(b.shards[i].items)), max(d.keys, len(b.shards[i].keys))
	}
	b.numbered = number
	b.routes, b.peers = d.names.fresh()
	return b
}

// rejectFault quarantines what the reader stumbles over: a fault of this program, which
// shall not end it, since it would read the same line again whenever it is started.
const rejectFault = accesslog.Reject("fault")

func parse(p *accesslog.Parser, line []byte, e *accesslog.Entry) (more []byte, err error) {
	defer func() {
		what := recover()
		if _, gone := what.(interface{ Addr() uintptr }); gone {
			panic(what) // the file was cut short under its mapping
		}
		if what != nil {
			more, err = nil, rejectFault
		}
	}()
	return p.Parse(line, e)
}

// batch returns an empty batch, with the memory of one that is done with.
func (s *shared) batch(size, decoder int) *batch {
	var b *batch
	select {
	case b = <-s.spare:
	default:
		b = &batch{shards: make([]part, s.shardCount)}
	}
	for i := range b.shards {
		b.shards[i] = part{b.shards[i].items[:0], b.shards[i].keys[:0], b.shards[i].late[:0]}
	}
	*b = batch{
		bytes: int64(size), decoder: decoder, shards: b.shards, maxLog: math.MinInt64, trace: b.trace.empty(),
		ignored: map[string]uint64{}, quarantined: map[string]uint64{},
	}
	return b
}

func reasonOf(err error) accesslog.Reject {
	if r, ok := err.(accesslog.Reject); ok {
		return r
	}
	return accesslog.RejectSyntax
}

// quarantine counts records that could not be read, and hands their line on where
// dead letters are wanted.
func (d *decoder) quarantine(b *batch, reason accesslog.Reject, n uint64) {
	b.quarantine(reason, n, d.at)
	if d.dead != nil {
		d.dead(d.line, string(reason), d.at)
	}
}

func (b *batch) quarantine(reason accesslog.Reject, n uint64, at ingest.Ref) {
	b.quarantined[string(reason)] += n
	if b.quarantined[string(reason)] <= samplesPerReason {
		b.samples = append(b.samples, Quarantined{Line: at.Line, Offset: at.Offset, Reason: string(reason)})
	}
}

// rejectFuture quarantines records from further ahead than Config.MaxFuture.
const rejectFuture = accesslog.Reject("future")

// take turns a record into its arrivals, or into a reason why it has none.
func (d *decoder) take(part int, e *accesslog.Entry, b *batch) {
	s := d.shared
	src := &s.cfg.Sources[s.sources[part]]
	if !e.HasTime {
		d.quarantine(b, accesslog.RejectNoTime, 1)
		return
	}
	if e.End > s.latest {
		d.quarantine(b, rejectFuture, 1)
		return
	}
	d.before = b.maxLog
	b.maxLog = max(b.maxLog, e.End)
	path := withoutQuery(e.Path)
	d.peer = d.names.peer(e.Peer)
	if reason := d.ignored(e, path, src); reason != "" {
		b.ignored[reason]++
		return
	}

	dep, depHash := d.names.dependency(src, e.Dependency)
	named := e.Route
	if len(named) == 0 {
		d.route = s.router.route(d.route[:0], e.Method, path)
		named = d.route
	}
	route, routeHash := d.names.route(dep, named)

	a := &d.arrival
	*a = aggregate.Arrival{}
	a.Start, a.Log, a.Duration, a.RetryAfter = e.Start, e.End, e.Duration, e.RetryAfter
	if e.Duration < 0 {
		a.Duration = aggregate.Untimed(!e.StampIsEnd, e.StampIsEnd, false)
	}
	a.Route = route
	d.coarse = e.Uncertainty >= accesslog.WholeSecond
	a.Attempt, a.AttemptsLeft = uint8(min(e.Attempt, 255)), aggregate.NoBudget
	if e.AttemptsLeft >= 0 {
		a.AttemptsLeft = uint8(min(e.AttemptsLeft, aggregate.NoBudget-1))
	}
	a.Outcome, a.Departure, a.Kind = outcome(e.Status, e.GRPCStatus), aggregate.Departure(e.Departure), aggregate.KindEnd
	if e.Notes&accesslog.NoteDeadlineInferred != 0 {
		a.Departure = aggregate.StillThere // nobody logged it: it is an expired answer
	}
	a.Flags = d.flags(e, src)
	a.Text = s.hasher.of(e.Text)
	if e.StreamID != nil {
		const record = 1<<aggregate.PairShift - 1
		a.Text = a.Text&record | s.hasher.of(e.StreamID)&^record
		a.Flags |= aggregate.Paired
		a.Kind = [...]aggregate.Kind{aggregate.KindEnd, aggregate.KindStart, aggregate.KindPeriodic}[e.Kind]
	}
	a.Text ^= uint64(s.sources[part]) * 0x9e3779b97f4a7c15

	attr := d.attribute(e, path, depHash, routeHash)
	open := d.deadlines(e, a, &attr)

	if src.InFront && e.Tries != nil {
		d.tries(e, b, open)
		return
	}
	if src.InFront && e.Local {
		b.ignored["not_forwarded"]++
		return
	}
	a.Flags |= aggregate.Head
	if src.InFront {
		a.Flags |= aggregate.InFront
	}
	d.put(b)
}

// put gives an arrival to its shard. Each try of a record is late by itself, as
// the shard judges too: else it would matter where blocks begin.
func (d *decoder) put(b *batch) {
	a := &d.arrival
	if d.coarse {
		b.coarse++
	}
	n := a.Question.Key
	if a.Class == keys.Unattributable {
		n = a.Text >> aggregate.PairShift * 0x9e3779b97f4a7c15 // the records of one request meet
	}
	shard := (n >> 32) * uint64(d.shards) >> 32
	if d.exchange != nil {
		d.exchange.hand(d, shard)
		return
	}
	late := d.live && b.trace.add(d.shared, a, d.at.Offset, max(d.mark, d.before))
	if !d.none() {
		var counted bool
		if late, counted = d.shared.judge(&d.history, a, d.at.Offset, max(d.mark, d.before), late); counted {
			return
		}
	}
	if late {
		b.shards[shard].late = append(b.shards[shard].late, lateItem{*a, d.peer, d.at.Offset / d.shared.offsetBlock})
		return
	}
	b.shards[shard].add(a, d.peer, d.before, d.key)
}

// tries puts the arrivals that lie inside the record of a logger in front: each
// try that reached an upstream. They follow one another; all but the last were
// given up by the logger, so only the last can show that the caller left, and a
// gRPC status is the last's, if the record's status is. open is of deadlines.
func (d *decoder) tries(e *accesslog.Entry, b *batch, open bool) {
	record, start, some := d.arrival, e.Start, false
	began := e.Duration >= 0 || !e.StampIsEnd // start is known
	last := -1
	for i := range e.Tries {
		if e.Tries[i].Sent {
			last = i
		}
	}
	for i := range e.Tries {
		t := &e.Tries[i]
		if !t.Sent {
			continue
		}
		a := &d.arrival
		*a = record
		a.Start, a.Duration = min(start, e.End), t.Time
		a.Flags |= aggregate.InFront
		if t.Time < 0 {
			a.Duration = aggregate.Untimed(began, false, open && i == last)
			began = false
		}
		if !some {
			a.Flags |= aggregate.Head
		}
		some = true
		a.Text += uint64(i) * 0x9e3779b97f4a7c15
		grpc := accesslog.Unknown
		if i == last && t.Status != 0 && t.Status == e.Status {
			grpc = e.GRPCStatus
		}
		a.Outcome = outcome(t.Status, grpc)
		if a.Flags &^= aggregate.Refused; t.Status > 0 && t.Status < 1000 && d.shared.refused[t.Status] {
			a.Flags |= aggregate.Refused
		}
		if i != last {
			a.Departure, a.RetryAfter = aggregate.StillThere, -1
			a.Flags &^= aggregate.Expired
		}
		d.put(b)
		if t.Time > 0 {
			start += t.Time
		}
	}
	if !some {
		b.ignored["not_forwarded"]++
	}
}

// ignored says why a record is no arrival, "" if it is one.
func (d *decoder) ignored(e *accesslog.Entry, path []byte, src *Source) string {
	s := d.shared
	if e.Outbound && !src.InFront {
		return "outbound"
	}
	if len(s.ignorePath) > 0 && s.ignorePath[string(path)] {
		return "path"
	}
	for _, a := range s.agents {
		if rest, ok := bytes.CutPrefix(e.UserAgent, a); ok && (len(rest) == 0 || rest[0] == '/' || rest[0] == ' ') {
			return "user_agent"
		}
	}
	if len(s.ignorePeer) > 0 && s.ignorePeer[d.names.peers[d.peer]] {
		return "peer"
	}
	return ""
}

func (d *decoder) flags(e *accesslog.Entry, src *Source) (f aggregate.Flags) {
	if e.Local || e.Status > 0 && e.Status < 1000 && d.shared.refused[e.Status] {
		f |= aggregate.Refused
	}
	if e.Visible {
		f |= aggregate.Visible
	}
	if string(e.Method) == "POST" || string(e.Method) == "PATCH" {
		f |= aggregate.NonIdempotent
	}
	if e.AttemptScope == accesslog.ScopeOrigin {
		f |= aggregate.OriginScope
	}
	if src.TrustedHops {
		f |= aggregate.TrustedHop
	}
	if e.RetryAfterShown {
		f |= aggregate.RetryShown
	}
	if len(e.ArrivalID) > 0 || e.Uncertainty <= 1e6 {
		f |= aggregate.Decidable
	}
	return f
}

// attribute says whose question the arrival is. The identity of a question is
// its dependency, route, key and discriminator; the hashes that it is made of are
// under secret seeds, so that nobody can make two questions one.
func (d *decoder) attribute(e *accesslog.Entry, path []byte, dependency, route uint64) keys.Attribution {
	a := &d.arrival
	info := &d.names.info[a.Route]
	disc := path
	if info.disc >= 0 {
		disc = e.Extra[info.disc]
	}
	told := d.shared.hasher.of(disc)
	if info.disc < 0 {
		info.paths.saw(told)
	}
	attr := d.checker.Attribute(e.Keys, e.KeySuspect, e.Start, e.Uncertainty)
	a.Class, a.Reason, d.key = attr.Class, attr.Reason, attr.Key
	switch attr.Class {
	case keys.Unattributable:
		return attr
	case keys.Verified:
		a.Originator = uint16(attr.OriginatorIndex) + 1
	case keys.Claimed:
		a.Originator = d.shared.claimedAt + uint16(attr.SchemeIndex)
	}
	if d.live {
		a.Lot = d.shared.lots.draw(attr.Key, disc)
	}
	hash, scheme := attr.Hash, uint64(attr.SchemeIndex)+1
	if d.exchange != nil {
		hash = d.exchange.hash(attr.Key)
	}
	a.Question.Key = mix(hash[0] + mix(dependency+scheme))
	a.Question.Rest = mix(hash[1] + mix(route+mix(told+scheme)))
	return attr
}

// mix spreads every bit of x over all bits (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// deadlines says whether the caller, or the question, had a deadline that had
// passed. The earliest of those known counts: what the request carried, what its
// peer is declared to wait, what its originator does. open says that there was one, and
// that it cannot be judged: nobody knows the time in system.
func (d *decoder) deadlines(e *accesslog.Entry, a *aggregate.Arrival, attr *keys.Attribution) (open bool) {
	deadline := int64(math.MaxInt64)
	if a.Class == keys.Verified && attr.Deadline > 0 {
		deadline = attr.Minted*1e6 + int64(attr.Deadline)
	}
	if a.Class == keys.Verified && a.Start-attr.Minted*1e6 > int64(d.shared.cfg.Horizon) {
		a.Flags |= aggregate.Reopening
	}
	if e.Deadline > 0 {
		deadline = min(deadline, e.Deadline)
	}
	// One that is counted from the start cannot have passed by then.
	if e.Start > deadline {
		a.Flags |= aggregate.Stale
	}
	if d.shared.deadlines {
		if t, ok := d.shared.callers.timeouts[d.names.peers[d.peer]]; ok {
			deadline = min(deadline, e.Start+int64(t))
		}
	}
	if e.Duration >= 0 && e.Start+e.Duration > deadline {
		a.Flags |= aggregate.Expired
	}
	if open = e.Duration < 0 && deadline < math.MaxInt64; open {
		a.Duration = aggregate.Untimed(!e.StampIsEnd, e.StampIsEnd, true)
	}
	return open
}

// outcome reads the status of an answer. A gRPC status decides where there is
// one; its HTTP equivalents are those of google.rpc.Code.
func outcome(status, grpc int) aggregate.Outcome {
	if grpc > 0 {
		switch grpc {
		case 8, 14: // RESOURCE_EXHAUSTED: 429, UNAVAILABLE: 503
			return aggregate.OutcomeOverload
		case 1, 3, 5, 6, 7, 9, 10, 11, 16: // CANCELLED: 499, and the caller's faults
			return aggregate.OutcomeOther
		}
		return aggregate.OutcomeError
	}
	switch {
	case status == 0 && grpc == 0:
		return aggregate.OutcomeSuccess
	case status == 0:
		return aggregate.OutcomeNone
	case status >= 200 && status < 400:
		return aggregate.OutcomeSuccess
	case status == 429 || status == 503:
		return aggregate.OutcomeOverload
	case status >= 500:
		return aggregate.OutcomeError
	}
	return aggregate.OutcomeOther
}
