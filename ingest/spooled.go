package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// spooled is what the sources have in common to which records are sent: the spool
// that keeps them until they are counted, and the partition that it is.
type spooled struct {
	log     *slog.Logger
	spool   *Spool
	feed    *feed
	closeIn time.Duration

	kept, refused, dropped, truncated, waits, connections atomic.Int64
}

// Intake says what became of the messages that were sent to a source; a push is one.
// Counters run from the start of the process.
type Intake struct {
	// Kept are on the disk.
	Kept int64
	// Refused were pushes that were not kept for want of room, or because nothing could
	// be written or the daemon stopped: their senders were told to send them again. Who
	// is not answered is not refused.
	Refused int64
	// Dropped were whole and are lost: there was no room for them (UDP), or the daemon
	// stopped while there was none.
	Dropped int64
	// Truncated came cut short, were longer than a message may be, or none of the
	// protocol, and were thrown away, but for the entries of ALS that came whole: a record
	// that may be cut is not read.
	Truncated int64
	// Waits is how often reading stopped because nothing could be kept.
	Waits int64
	// Connections are open now, or pushes under way; 0 of a source without.
	Connections int64
}

// Intake is what became of what was sent.
func (s *spooled) Intake() Intake {
	return Intake{
		Kept: s.kept.Load(), Refused: s.refused.Load(), Dropped: s.dropped.Load(), Truncated: s.truncated.Load(),
		Waits: s.waits.Load(), Connections: s.connections.Load(),
	}
}

// newSpooled is the source of that partition. A logger that is nil is nobody, and no
// time to close is 10 s.
func newSpooled(p Partition, spool *Spool, log *slog.Logger, closeIn time.Duration) *spooled {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if closeIn <= 0 {
		closeIn = 10 * time.Second
	}
	return &spooled{log: log, spool: spool, closeIn: closeIn, feed: newFeed(p, &spool.reader, log, closeIn)}
}

// run hands what is kept to h while serve takes what is sent, which it does until its
// context is done and all that was under way has ended. Then it closes the session and
// the spool.
func (s *spooled) run(ctx context.Context, h Handler, serve func(context.Context) error) (err error) {
	defer func() { err = errors.Join(err, s.spool.Close()) }()
	feeding := make(chan struct{})
	feedCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() {
		defer close(feeding)
		s.feed.run(feedCtx, h)
	}()
	err = serve(ctx)
	stop()
	<-feeding
	return err
}

// Close gives the spool back when Run was never called.
func (s *spooled) Close() error { return s.spool.Close() }

// Partitions is how far the spool is read. Its Err is also what keeps records from
// being taken, its Full why they find no room.
func (s *spooled) Partitions() []PartitionState {
	state := s.feed.state()
	if err := s.spool.failed(); err != nil && state.Err == nil {
		state.Err = fmt.Errorf("nothing can be kept in the spool: %w", err)
	}
	state.Full = s.spool.full()
	return []PartitionState{state}
}

// waitForRoom is how long a source waits before it tries again to keep something:
// the spool is looked for room each second.
const waitForRoom = 100 * time.Millisecond

// keep makes the lines of n messages durable, however long that takes: meanwhile
// nothing more is read of the one who sent them. It gives up when ctx is done, with one
// last try, and what it could not keep is counted as dropped.
func (s *spooled) keep(ctx context.Context, lines []byte, n int64) error {
	if len(lines) == 0 {
		return nil
	}
	for waited := false; ; waited = true {
		err := s.spool.Append(context.WithoutCancel(ctx), lines)
		if err == nil {
			s.kept.Add(n)
			return nil
		}
		if errors.Is(err, errTooLarge) || errors.Is(err, errLineTooLong) || errors.Is(err, errSpoolClosed) || ctx.Err() != nil {
			s.dropped.Add(n)
			return err
		}
		if !waited {
			s.waits.Add(1)
			s.log.Debug("reading waits until something can be kept", "err", err)
		}
		rest(ctx, waitForRoom)
	}
}
