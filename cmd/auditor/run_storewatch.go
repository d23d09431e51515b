package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/targetside/auditor/store"
)

// storeWatch asks the store now and then whether it still keeps what it is given:
// while nothing comes nothing is written, and nobody else would notice.
type storeWatch struct {
	store store.Store
	log   *slog.Logger
	err   atomic.Pointer[error]
}

// watchEvery is how often the store is asked. It is a write that waits for the
// disk, and one that rows wait for.
const watchEvery = 3 * time.Second

func (w *storeWatch) run(ctx context.Context) {
	every(ctx, watchEvery, func() { w.ask(ctx) })
}

// watchWithin is how long the store may take for an answer; one that takes longer is
// too slow to keep up.
const watchWithin = 10 * time.Second

func (w *storeWatch) ask(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, watchWithin)
	defer cancel()
	err := w.store.Check(within)
	if ctx.Err() != nil {
		return
	}
	switch was := w.failed(); {
	case err != nil && was == nil:
		w.log.Error("the store cannot be written to; what is counted waits, and no position is committed", "error", err)
	case err == nil && was != nil:
		w.log.Info("the store can be written to again")
	}
	w.err.Store(&err)
}

// failed is why the store could not be written to when it was last asked.
func (w *storeWatch) failed() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}
