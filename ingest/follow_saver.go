package ingest

import (
	"bytes"
	"context"
	"log/slog"
	"time"
)

// saver keeps the newest state, so that who hands it one need not wait.
type saver struct {
	positions Positions
	name      string
	log       *slog.Logger
	states    chan []byte // at most one waits, the newest
	done      chan struct{}
	ctx       context.Context
	cancel    context.CancelFunc
}

const saveTimeout = 10 * time.Second

func newSaver(positions Positions, name string, log *slog.Logger, saved []byte) *saver {
	s := &saver{
		positions: positions, name: name, log: log,
		states: make(chan []byte, 1), done: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.run(saved)
	return s
}

func (s *saver) put(state []byte) {
	select {
	case <-s.states:
	default:
	}
	s.states <- state
}

func (s *saver) run(saved []byte) {
	defer close(s.done)
	failing := false
	for state := range s.states {
		if bytes.Equal(state, saved) {
			continue
		}
		ctx, cancel := context.WithTimeout(s.ctx, saveTimeout)
		err := s.positions.Save(ctx, s.name, state)
		cancel()
		switch {
		case err == nil:
			saved = state
		case !failing:
			s.log.Warn("the position cannot be kept; after a restart more is read again", "err", err)
		}
		failing = err != nil
	}
}

// close waits until the last state is kept, but not longer than ctx allows.
func (s *saver) close(ctx context.Context) {
	close(s.states)
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cancel()
		<-s.done
	}
	s.cancel()
}
