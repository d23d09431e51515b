package storetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/store"
)

func TestFaulty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFaulty(store.NewMemory())
		s := &suite{T: t, store: f}
		f.FailNotStored()
		f.FailStored()
		if err := f.Write(ctx, write(1, 0, row(base, "web", 1, 1, 1))); !errors.Is(err, ErrFault) {
			t.Error(err)
		}
		s.want(store.Tick)
		if err := f.Write(ctx, write(1, 0, row(base, "web", 1, 1, 1))); !errors.Is(err, ErrFault) {
			t.Error(err)
		}
		s.want(store.Tick, `0 "web" -1 r1 v1: 1`)
		f.Delay(time.Minute)
		began := time.Now()
		s.write(write(1, base))
		if d := time.Since(began); d != time.Minute {
			t.Errorf("a write delayed by a minute took %v", d)
		}
		f.Delay(0)
		release := f.Block()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := f.Write(short, write(1, base)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		done := make(chan error)
		go func() { done <- f.Write(ctx, write(1, base)) }()
		synctest.Wait()
		release()
		if err := <-done; err != nil || f.Calls() != 5 {
			t.Errorf("%v after %d writes", err, f.Calls())
		}
	})
}

func TestFaultyIsAStore(t *testing.T) {
	Run(t, func(*testing.T) store.Store { return NewFaulty(store.NewMemory()) })
}
