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
	states    chan saving // at most one waits, the newest
	done      chan struct{}
	ctx       context.Context
	cancel    context.CancelFunc
}

// saving is a state and the position that it tells of.
type saving struct {
	state []byte
	at    Position
}

const saveTimeout = 10 * time.Second

// newSaver returns a saver that tells what it has kept.
func newSaver(positions Positions, name string, log *slog.Logger, saved []byte, kept func(Position)) *saver {
	s := &saver{
		positions: positions, name: name, log: log,
		states: make(chan saving, 1), done: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.run(saved, kept)
	return s
}

func (s *saver) put(state saving) {
	select {
	case <-s.states:
	default:
	}
	s.states <- state
}

func (s *saver) run(saved []byte, kept func(Position)) {
	defer close(s.done)
	failing := false
	for state := range s.states {
		if bytes.Equal(state.state, saved) {
			continue
		}
		ctx, cancel := context.WithTimeout(s.ctx, saveTimeout)
		err := s.positions.Save(ctx, s.name, state.state)
		cancel()
		switch {
		case err == nil:
			saved = state.state
			kept(state.at)
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
