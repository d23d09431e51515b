package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/targetside/auditor/store"
)

// ErrFault is the error of writes that were made to fail.
var ErrFault = errors.New("storetest: made to fail")

// Faulty is a store whose writes fail when told to, in both ways that a write can:
// what failed may be stored or not, and its error does not say which. All else is
// the store's within.
type Faulty struct {
	store.Store

	mu     sync.Mutex
	faults []fault
	delay  time.Duration
	gate   chan struct{} // closed, or nil, while writes are let through
	calls  int
}

type fault struct{ stored bool }

// NewFaulty wraps a store.
func NewFaulty(s store.Store) *Faulty { return &Faulty{Store: s} }

// FailStored makes one more write fail though it is stored.
func (f *Faulty) FailStored() { f.fail(fault{stored: true}) }

// FailNotStored makes one more write fail, without storing it.
func (f *Faulty) FailNotStored() { f.fail(fault{}) }

func (f *Faulty) fail(x fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, x)
}

// Delay makes every write take that much longer.
func (f *Faulty) Delay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
}

// Block holds writes back until release is called.
func (f *Faulty) Block() (release func()) {
	gate := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

// Calls is how many writes were begun.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Write implements store.Store. Faults come in the order in which they were asked
// for, one for each write.
func (f *Faulty) Write(ctx context.Context, w *store.Write) error {
	f.mu.Lock()
	f.calls++
	gate, delay := f.gate, f.delay
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	var next *fault
	if len(f.faults) > 0 {
		next, f.faults = &f.faults[0], f.faults[1:]
	}
	f.mu.Unlock()
	if next != nil && !next.stored {
		return ErrFault
	}
	if err := f.Store.Write(ctx, w); err != nil {
		return err
	}
	if next != nil {
		return ErrFault
	}
	return nil
}
