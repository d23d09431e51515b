package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/targetside/auditor/ingest"
)

// source is one source of the configuration while the daemon runs. When it ends by an
// error it is begun anew, after a pause that grows, unless the error is final
// (ingest.ErrFinal): a consumer group that the client library refuses, a spool of a
// newer version. Meanwhile the other sources are read, and the API says so.
type source struct {
	name, kind string
	sends      bool // its arrivals are counted behind an exchange
	identity   identity
	open       func() (reads, *ingest.DeadLetter, error)
	log        *slog.Logger

	mu       sync.Mutex
	reads    reads
	dead     *ingest.DeadLetter // nil: none
	failed   error              // nil: it runs
	restarts uint64
	gone     gone

	number int // its place in the configuration; see handing
	stop   context.CancelFunc
	ended  chan struct{}
}

// reads is what every source of package ingest can do.
type reads interface {
	Run(ctx context.Context, h ingest.Handler) error
	Partitions() []ingest.PartitionState
}

// The pauses before a source is begun anew: twice as long each time, from the first
// on again when it has run for a while.
const (
	restartMin   = time.Second
	restartMax   = time.Minute
	restartReset = 2 * time.Minute
)

// now is how the source stands.
func (s *source) now() (r reads, restarts uint64, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads, s.restarts, s.failed
}

// begin opens the source.
func (s *source) begin() error {
	r, dead, err := s.open()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads, s.dead, s.failed = r, dead, nil
	return nil
}

// start reads until ctx is done or stop is called.
func (s *source) start(ctx context.Context, h ingest.Handler) {
	ctx, s.stop = context.WithCancel(ctx)
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		s.run(ctx, h)
	}()
}

func (s *source) run(ctx context.Context, h ingest.Handler) {
	pause := restartMin
	for {
		begun := time.Now()
		r, _, _ := s.now()
		err := r.Run(ctx, h)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it ended without a reason")
		}
		if time.Since(begun) >= restartReset {
			pause = restartMin
		}
		s.closeDead()
		for err != nil {
			s.fail(err)
			if errors.Is(err, ingest.ErrFinal) {
				s.log.Error("a source has failed; the others go on", "source", s.name, "error", err)
				<-ctx.Done()
				return
			}
			s.log.Error("a source has failed and is begun anew; the others go on", "source", s.name, "error", err, "pause", pause)
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, restartMax)
			err = s.begin()
		}
		s.mu.Lock()
		s.restarts++
		s.mu.Unlock()
	}
}

func (s *source) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

// giveUp gives back what a source holds that was never started.
func (s *source) giveUp() {
	if r, ok := s.reads.(io.Closer); ok {
		r.Close()
	}
	s.closeDead()
}

// standby says that another instance reads what this one would.
func (s *source) standby() bool {
	r, _, _ := s.now()
	k, ok := r.(interface{ Standby() bool })
	return ok && k.Standby()
}

// letter takes a line that could not be read.
func (s *source) letter(line []byte, reason string, from ingest.Partition, at ingest.Ref) {
	s.mu.Lock()
	dead := s.dead
	s.mu.Unlock()
	if dead != nil {
		dead.Put(line, reason, from, at)
	}
}

// closeDead writes the dead letters that still wait.
func (s *source) closeDead() {
	s.mu.Lock()
	dead := s.dead
	s.mu.Unlock()
	if dead == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := dead.Close(ctx); err != nil {
		s.log.Warn("not all dead letters were written", "source", s.name, "error", err)
	}
}
