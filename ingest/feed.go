package ingest

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// stream is a partition that this process alone reads and keeps the position of:
// a followed file or a spool. One goroutine calls it, but for wake's sender.
type stream interface {
	// load finds out where the partition was left; it is called until it succeeds.
	load(ctx context.Context) error
	// left is the last position that was released.
	left() Position
	// seek makes the first record at or behind offset the next to be read, as far
	// as it is still there.
	seek(offset int64) error
	// present says whether there is something to read at all; until then nobody is
	// told of the partition.
	present() (bool, error)
	// at is the offset to be read next.
	at() int64
	// next is the next batch, or nil when there is nothing more to read. An error
	// is trouble that may pass: it is asked again.
	next() (*Batch, error)
	// release takes note of a position, lets go of what lies below and sees to it
	// that the position is kept. It does not wait for a slow keeper.
	release(Position)
	// kept is the position that is kept: what left would be after a crash.
	kept() Position
	// flush waits until the last released position is kept, or ctx is done.
	flush(ctx context.Context)
	// wake receives when there may be more to read.
	wake() <-chan struct{}
	// unread is how many bytes wait, -1 if that is not known.
	unread() int64
}

// limited is a stream that holds so much at most.
type limited interface {
	// newer says whether all that is in it has been read, and nothing of it is let go
	// before newer records come.
	newer(awaited bool)
}

const (
	releaseEvery = time.Second // how often Released is asked, and AtEnd said again
	pauseMin     = 100 * time.Millisecond
	pauseMax     = 30 * time.Second
	pauseReset   = time.Minute // a session that held so long starts the pauses anew
)

// pauseBefore is how long to wait before the nth restart, n from 1: twice as long
// each time, capped, of which the upper half is left to chance.
func pauseBefore(n int) time.Duration {
	d := pauseMax
	if n < 10 {
		d = min(pauseMax, pauseMin<<(n-1))
	}
	return d/2 + rand.N(d/2)
}

// feed hands what a stream holds to a handler, session after session.
type feed struct {
	part    Partition
	src     stream
	log     *slog.Logger
	closeIn time.Duration // for a session to close and its position to be kept

	retire chan struct{} // closed when the partition is no longer wanted

	mu    sync.Mutex
	stats PartitionState
}

func newFeed(p Partition, src stream, log *slog.Logger, closeIn time.Duration) *feed {
	return &feed{
		part: p, src: src, log: log.With("partition", p.Name), closeIn: closeIn,
		retire: make(chan struct{}), stats: PartitionState{Partition: p, Next: -1, End: -1, Committed: -1},
	}
}

// state is how far it is.
func (f *feed) state() PartitionState {
	lag := f.src.unread()
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	if s.Next >= 0 && lag >= 0 {
		s.End = s.Next + lag
	}
	return s
}

// fail takes note of why it does not read, and says it when that is new.
func (f *feed) fail(err error) {
	f.mu.Lock()
	was := f.stats.Err
	f.stats.Err = err
	f.mu.Unlock()
	if err != nil && (was == nil || was.Error() != err.Error()) {
		f.log.Warn("reading is held up and tried again", "err", err)
	}
}

// run reads until ctx is done or the feed is retired. Trouble of the handler
// ends the session; the next one begins after a pause.
func (f *feed) run(ctx context.Context, h Handler) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-f.retire:
			cancel()
		case <-ctx.Done():
		}
	}()
	loaded := false
	for failures := 0; ; {
		began := time.Now()
		var err error
		if !loaded {
			err = f.src.load(ctx)
			loaded = err == nil
		}
		if err == nil && f.await(ctx) {
			err = f.session(ctx, h)
		}
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) >= pauseReset || errors.Is(err, ErrAnew) {
			failures = 0
		}
		failures++
		pause := pauseBefore(failures)
		f.mu.Lock()
		f.stats.Restarts++
		f.stats.Err = err
		f.mu.Unlock()
		f.log.Warn("the partition stopped and starts again", "err", err, "pause", pause)
		if !rest(ctx, pause) {
			break
		}
	}
	if loaded {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.closeIn)
		defer cancel()
		f.src.flush(ctx)
	}
}

// await waits until the partition is there; false if ctx was done before.
func (f *feed) await(ctx context.Context) bool {
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	for {
		there, err := f.src.present()
		f.fail(err)
		if there {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-f.src.wake():
		case <-tick.C:
		}
	}
}

// rest waits; false if ctx was done before.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// session runs one session, from Assigned to Close. The methods of the session
// are called one at a time.
func (f *feed) session(ctx context.Context, h Handler) (err error) {
	told := f.resume(ctx)
	s, begin, err := h.Assigned(ctx, f.part, told)
	if err != nil {
		return err
	}
	f.assigned(true, told)
	defer func() {
		f.assigned(false, told)
		f.newer(nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.closeIn)
		defer cancel()
		err = errors.Join(err, s.Close(ctx))
		f.src.release(s.Released())
	}()
	if err := f.src.seek(begin.Offset); err != nil {
		return err
	}
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	asked := time.Now() // when Released was asked
	var ended time.Time // when AtEnd was said, if nothing came since
	for {
		if now := time.Now(); now.Sub(asked) >= releaseEvery {
			asked = now
			f.src.release(s.Released())
			f.newer(s)
			if kept := f.src.kept(); kept != told {
				told = kept
				f.assigned(true, told)
				s.Committed(told)
			}
		}
		b, err := f.src.next()
		f.fail(err)
		more := b != nil
		if err == nil && !more && time.Since(ended) >= releaseEvery {
			at := f.src.at()
			b = &Batch{Block: Block{Offset: at}, Next: at, AtEnd: true}
		}
		if b != nil {
			ended = time.Time{}
			if b.AtEnd {
				ended = time.Now()
			}
			if err := f.hand(ctx, s, b); err != nil {
				return err
			}
		}
		if more && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.src.wake():
		case <-tick.C:
		}
	}
}

// newer tells a stream that is bounded whether the session, which may be nil, waits for
// newer records and for nothing else.
func (f *feed) newer(s Session) {
	if src, ok := f.src.(limited); ok {
		a, ok := s.(NewerAwaiter)
		src.newer(ok && f.src.unread() == 0 && a.AwaitsNewer())
	}
}

// resume is where a new session begins: where a restart would begin. What the last
// session released may still be on its way to be kept; that is waited for, since the
// new session decides anew and must not be overruled by it.
func (f *feed) resume(ctx context.Context) Position {
	end := time.Now().Add(f.closeIn)
	for f.src.kept() != f.src.left() && time.Now().Before(end) && rest(ctx, 5*time.Millisecond) {
	}
	return f.src.kept()
}

func (f *feed) assigned(is bool, kept Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Assigned, f.stats.Committed = is, kept.Offset
}

// hand gives the session a batch and counts it.
func (f *feed) hand(ctx context.Context, s Session, b *Batch) error {
	lines, size, gap, empty, next := len(b.Refs), len(b.Data), b.Gap, b.Empty, b.Next // the batch is soon another's
	if err := s.Consume(ctx, b); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Records += int64(lines)
	f.stats.Bytes += int64(size)
	f.stats.Gap += gap
	f.stats.Empty += empty
	f.stats.Next, f.stats.Progress = next, time.Now()
	return nil
}
