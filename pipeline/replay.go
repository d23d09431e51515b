package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
)

// Input is one file to audit, read as the source with that index.
type Input struct {
	File   string
	Source int
}

// Audit is the outcome of a replay.
type Audit struct {
	Report *aggregate.Report
	// Quarantined locates some of the lines that could not be read, of each
	// reason.
	Quarantined []Quarantined
	// Formats are the formats that the files were read as, in the order of names.
	Formats []string
}

// blockSize is how much is decoded at once: so much that handing batches around is
// nothing beside reading them.
const blockSize = 4 << 20

// Replay audits files to their ends. Each file is a partition of one scope; they
// are merged by log time and else by name, so that their order changes no figure,
// not even which names are beyond a limit. progress, if not nil, is told the bytes
// read of all files so far, from other goroutines, one at a time.
func Replay(ctx context.Context, cfg Config, inputs []Input, stdin io.Reader, progress func(read int64)) (*Audit, error) {
	r := &replayer{cfg: &cfg, progress: progress}
	defer r.close()
	if err := r.open(inputs, stdin); err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

type replayer struct {
	cfg      *Config
	progress func(int64)
	files    []*partition
	shared   *shared
	decoders []*decoder
	reg      *registry

	reading sync.Mutex   // held while a block is read; of what follows, too
	unread  []*partition // those that have not ended
	readErr error

	lines, bytes int64
	coarse       uint64
	ignored      map[string]uint64
	quarantined  map[string]uint64
	samples      []Quarantined
}

// partition is one file, in the order of its lines.
type partition struct {
	*ingest.File
	source  int
	format  string
	pattern string  // of the format, where the file declares one
	holds   string  // the pattern that the lines before the next block declare
	joined  *joined // set when its lines may be split

	number int
	peek   *accesslog.Parser // for reading
	next   int64             // log time of the next record to be read

	// Of the goroutine that puts batches in order.
	first int64 // log time of the file's first record
	mark  int64 // watermark: the largest log time so far
	line  int64 // lines so far
	ended bool
}

// task is a block on its way through a decoder.
type task struct {
	part  *partition
	block ingest.Block
	holds string // what was declared before the block
	last  bool   // the partition ends here; there is no block
	done  chan *batch
}

func (r *replayer) close() {
	for _, f := range r.files {
		f.Close()
	}
}

// peekSize is how much of a file is looked at to find its format and first stamp.
const peekSize = 64 << 10

// maxBlank is how far into a file its first line is looked for.
const maxBlank = 32 << 20

func (r *replayer) open(inputs []Input, stdin io.Reader) error {
	var faults []error
	var named []os.FileInfo
	stdinNamed := false
	inputs = slices.Clone(inputs)
	slices.SortStableFunc(inputs, func(a, b Input) int { return strings.Compare(a.File, b.File) })
	for _, in := range inputs {
		twice := in.File == ingest.Stdin && stdinNamed
		stdinNamed = stdinNamed || in.File == ingest.Stdin
		if st, err := os.Stat(in.File); err == nil && in.File != ingest.Stdin {
			twice = slices.ContainsFunc(named, func(o os.FileInfo) bool { return os.SameFile(o, st) })
			named = append(named, st)
		}
		if twice {
			faults = append(faults, fmt.Errorf("read %s: is named twice, and would be counted twice", in.File))
			continue
		}
		f, err := ingest.Open(in.File, stdin)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		p := &partition{File: f, source: in.Source, number: len(r.files)}
		r.files = append(r.files, p)
		if err := p.look(r.cfg.Sources[in.Source].Parser); err != nil {
			faults = append(faults, err)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if !slices.ContainsFunc(r.files, func(p *partition) bool { return p.format != "" }) {
		return errors.New("nothing to audit: every file is empty")
	}
	return nil
}

// look finds out what a file is from its beginning. An empty one, as a log is
// just after rotation, has no format.
func (p *partition) look(parser accesslog.Config) error {
	var sample []byte
	var err error
	for size := peekSize; ; size *= 2 {
		if sample, err = p.Peek(size); err != nil {
			return err
		}
		if len(bytes.Trim(sample, " \t\r\n\x00")) > 0 {
			break
		}
		if len(sample) < size {
			return nil
		}
		if size > maxBlank {
			return fmt.Errorf("read %s: is no log: nothing but blanks in its first %d MiB", p.Name(), size>>20)
		}
	}
	if i := binaryAt(sample); i >= 0 {
		return fmt.Errorf("read %s: is not a text log: byte %d is 0x%02x", p.Name(), i, sample[i])
	}
	if p.format = parser.Format; p.format == "" || p.format == "auto" {
		if p.format, err = accesslog.Detect(sample); err != nil {
			return fmt.Errorf("read %s: %w", p.Name(), err)
		}
	}
	p.pattern = accesslog.HeadPattern(p.format, sample)
	if j := new(accesslog.Joiner); j.Needed(sample) {
		p.joined = &joined{joiner: j}
	}
	return nil
}

// binaryAt finds a byte that no log has: a NUL that is not part of the run that
// a truncated log begins with. It returns -1 if the sample is text.
func binaryAt(sample []byte) int {
	head := len(sample) - len(bytes.TrimLeft(sample, "\x00"))
	if i := bytes.IndexByte(sample[head:], 0); i >= 0 && (i == 0 || sample[head+i-1] != '\n') {
		return head + i
	}
	return -1
}

func (r *replayer) prepare() error {
	c := r.cfg
	if c.Parallel <= 0 {
		c.Parallel = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if c.block <= 0 {
		c.block = blockSize
	}
	ledger := aggregate.Config{
		Horizon: int64(c.Horizon), Lateness: int64(c.Lateness), Views: aggregate.SummaryViews(), EndAtLast: true,
		Worst: c.Worst, KeyHash: KeyHasher(c.Salt),
	}
	ledger.Fared = !c.onlyRepeats()
	s, extra := newShared(c, ledger)
	for _, p := range r.files {
		s.sources = append(s.sources, p.source)
	}
	r.shared = s
	r.reg = newRegistry(c.Parallel, c.Routes.Max, c.Peers.Max)
	for i := range c.Parallel {
		parsers, err := r.parsers(extra)
		if err != nil {
			return err
		}
		d := newDecoder(i, s, c)
		d.parsers = parsers
		r.decoders = append(r.decoders, d)
	}
	peek, err := r.parsers(nil)
	if err != nil {
		return err
	}
	for i, p := range r.files {
		p.peek, p.mark = peek[i], math.MinInt64
		p.next = p.nextStamp(r.shared.latest)
		p.first = p.next
	}
	r.ignored, r.quarantined = map[string]uint64{}, map[string]uint64{}
	return nil
}

// parsers returns a parser for each file. Files of one source, format and pattern
// share one.
func (r *replayer) parsers(extra []string) ([]*accesslog.Parser, error) {
	type kind struct {
		source          int
		format, pattern string
	}
	made := map[kind]*accesslog.Parser{}
	var out []*accesslog.Parser
	for _, p := range r.files {
		k := kind{p.source, p.format, p.pattern}
		if made[k] == nil && p.format != "" {
			source := r.cfg.Sources[p.source]
			source.Parser.Pattern = cmp.Or(p.pattern, source.Parser.Pattern)
			parser, err := newParser(r.cfg, &source, p.format, extra)
			if err != nil {
				return nil, err
			}
			made[k] = parser
		}
		out = append(out, made[k])
	}
	return out, nil
}

// nextStamp is the log time of the first record to come that will be counted, so
// not later than latest. Before the first block is read it stands for the
// watermark: no on-time record of the file is counted in a tick more than one
// lateness before it.
func (p *partition) nextStamp(latest int64) int64 {
	if p.format == "" {
		return math.MaxInt64
	}
	sample, err := p.Peek(peekSize)
	if err != nil {
		return math.MinInt64 // the next read says what is wrong
	}
	p.peek.Declare(p.holds)
	var e accesslog.Entry
	var joiner accesslog.Joiner // in mid-file a part may be missing: then the next record stands in
	for len(sample) > 0 {
		line := sample
		if i := bytes.IndexByte(sample, '\n'); i >= 0 {
			line, sample = sample[:i], sample[i+1:]
		} else {
			sample = nil
		}
		if p.joined != nil {
			var ok bool
			if line, ok = joiner.Line(line); !ok {
				continue
			}
		}
		if _, err := p.peek.Parse(bytes.TrimSuffix(line, []byte("\r")), &e); err == nil && e.HasTime && e.End <= latest {
			return e.End
		}
	}
	return math.MinInt64
}

// run drives the work. The goroutine that calls it puts batches in order.
func (r *replayer) run(ctx context.Context) (*Audit, error) {
	order := make(chan *task, 2*r.cfg.Parallel)
	var wg sync.WaitGroup
	r.unread = slices.Clone(r.files)
	for _, d := range r.decoders {
		wg.Go(func() {
			debug.SetPanicOnFault(true) // for blocks that are mapped
			for t := r.next(ctx, order, d); t != nil; t = r.next(ctx, order, d) {
				r.decode(t, d)
			}
		})
	}
	go func() {
		wg.Wait()
		close(order)
	}()
	names := &names{reg: r.reg, ring: r.cfg.Keys, claimedAt: r.shared.claimedAt}
	sum := newShards(r.cfg.Parallel, r.shared.ledger, aggregate.NewSummary(names, &r.cfg.Budget, r.cfg.RouteBudgets))
	for t := range order {
		r.order(t, sum)
	}
	sum.finish()
	if err := ctx.Err(); err != nil {
		return nil, interrupted{err}
	}
	if r.readErr != nil {
		return nil, r.readErr
	}
	return r.audit(sum, names), nil
}

// decode does a task. A file that was cut short under it ends the replay.
func (r *replayer) decode(t *task, d *decoder) {
	var b *batch
	defer func() {
		if what := recover(); what != nil {
			err := t.part.Faulted(&t.block, what)
			if err == nil {
				panic(what)
			}
			r.reading.Lock()
			r.readErr, r.unread = err, nil
			r.reading.Unlock()
			b = r.shared.batch(0, d.number)
		}
		t.block.Free()
		t.done <- b
	}()
	d.parsers[t.part.number].Declare(t.holds)
	b = d.decode(t.part.number, t.block)
}

// next reads the next block of all files, always of the one whose next line was
// written first, and announces it in order. The decoder that asks gets it, in its
// own memory: so a block is read and decoded by one core. It returns nil when
// there is nothing more to do.
func (r *replayer) next(ctx context.Context, order chan<- *task, d *decoder) *task {
	r.reading.Lock()
	defer r.reading.Unlock()
	for len(r.unread) > 0 && ctx.Err() == nil {
		p := slices.MinFunc(r.unread, func(a, b *partition) int {
			switch {
			case a.next < b.next:
				return -1
			case a.next > b.next:
				return 1
			}
			return a.number - b.number
		})
		t := &task{part: p, done: make(chan *batch, 1)}
		var err error
		block, mapped := ingest.Block{}, false
		if p.joined == nil && p.format != "iis" { // of which every line is looked at here
			block, mapped = p.Map(r.cfg.block)
		}
		if !mapped {
			block, err = p.Next(r.cfg.block, d.block)
		}
		switch {
		case errors.Is(err, io.EOF):
			t.last = true
			p.Close()
			r.unread = slices.DeleteFunc(r.unread, func(x *partition) bool { return x == p })
		case err != nil:
			r.readErr, r.unread = err, nil
			return nil
		default:
			if !mapped {
				d.block = block.Data
			}
			t.block = p.joined.join(block)
			t.holds, p.holds = p.holds, ingest.Declared(t.block.Data, accesslog.Declares(p.format), p.holds)
			if len(r.unread) > 1 {
				p.next = p.nextStamp(r.shared.latest)
			}
		}
		select {
		case order <- t:
		case <-ctx.Done():
			return nil
		}
		if t.last {
			continue
		}
		if r.progress != nil {
			var n int64
			for _, f := range r.files {
				n += f.Read()
			}
			r.progress(n)
		}
		return t
	}
	return nil
}

// order takes the next batch in the order of positions.
func (r *replayer) order(t *task, sum *shards) {
	p := t.part
	if t.last {
		p.ended = true
		if j := p.joined; j != nil {
			r.lines += j.extra
			r.count(accesslog.RejectCut, len(j.joiner.Pending()))
			r.count(accesslog.RejectTooLong, j.joiner.Dropped())
		}
		return
	}
	b := <-t.done
	r.reg.add(b)
	for _, q := range b.samples {
		r.sample(p, q)
	}
	r.lines += b.lines
	r.bytes += b.bytes
	r.coarse += b.coarse
	for k, n := range b.ignored {
		r.ignored[k] += n
	}
	for k, n := range b.quarantined {
		r.quarantined[k] += n
	}
	mark := p.mark
	p.mark = max(p.mark, b.maxLog)
	p.line += b.numbered
	sum.send(&job{
		batch: b, mark: mark, to: r.closeable(),
		routes: r.reg.routeOf[b.decoder], peers: r.reg.peerOf[b.decoder],
		done: func() {
			select {
			case r.shared.spare <- b:
			default:
			}
		},
	})
}

func (r *replayer) count(reason accesslog.Reject, n int) {
	if n > 0 {
		r.quarantined[string(reason)] += uint64(n)
	}
}

// closeable is the tick before which every tick of the scope may be closed: those
// that lie one lateness below the watermark of every file.
func (r *replayer) closeable() int64 {
	low := int64(math.MaxInt64)
	for _, p := range r.files {
		if !p.ended {
			low = min(low, max(p.mark, p.first))
		}
	}
	if low == math.MinInt64 || low == math.MaxInt64 {
		return math.MinInt64
	}
	return (low-int64(r.cfg.Lateness))/1e9 + 1
}

// sample gives a quarantined line its place in the file, unless enough of its
// reason are known.
func (r *replayer) sample(p *partition, q Quarantined) {
	same := 0
	for i := range r.samples {
		if r.samples[i].Reason == q.Reason {
			same++
		}
	}
	if same >= samplesPerReason {
		return
	}
	q.Source = p.Name()
	if p.joined == nil {
		q.Line += p.line
	}
	r.samples = append(r.samples, q)
}

func (r *replayer) audit(sum *shards, names *names) *Audit {
	in := aggregate.Input{
		Lines: uint64(r.lines), Bytes: uint64(r.bytes), Ignored: r.ignored, Quarantined: r.quarantined, Coarse: r.coarse,
	}
	names.vary(r.decoders)
	a := &Audit{Report: sum.report(in, r.cfg.Worst), Quarantined: r.samples}
	for _, p := range r.files {
		a.Formats = append(a.Formats, p.format)
	}
	return a
}

// interrupted is the end of a replay that was told to stop.
type interrupted struct{ cause error }

func (interrupted) Error() string   { return "interrupted" }
func (e interrupted) Unwrap() error { return e.cause }
