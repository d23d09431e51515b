package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
)

// failing is a source that ends when it is told to.
type failing struct{ end chan error }

func (f failing) Run(ctx context.Context, _ ingest.Handler) error {
	select {
	case err := <-f.end:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (failing) Partitions() []ingest.PartitionState { return nil }

// A source that ends is begun anew, each time after a longer pause, which is bounded
// and short again once it has run for a while.
func TestSourcesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := failing{make(chan error)}
		var opened []time.Duration
		begun := time.Now()
		refused := 0
		s := &source{name: "s", log: slog.New(slog.DiscardHandler), open: func() (reads, *ingest.DeadLetter, error) {
			if refused > 0 {
				refused--
				return nil, nil, errors.New("not yet")
			}
			opened = append(opened, time.Since(begun))
			return f, nil, nil
		}}
		if err := s.begin(); err != nil {
			t.Fatal(err)
		}
		s.start(t.Context(), nil)
		trouble := errors.New("trouble")
		fail := func(after time.Duration) time.Duration {
			t.Helper()
			n := len(opened)
			begun = time.Now()
			f.end <- trouble
			synctest.Wait()
			if _, _, failed := s.now(); failed != trouble {
				t.Errorf("after it has failed its error is %v", failed)
			}
			time.Sleep(after)
			synctest.Wait()
			if len(opened) != n+1 {
				t.Fatalf("after %v it is not begun anew", after)
			}
			if _, _, failed := s.now(); failed != nil {
				t.Errorf("it runs, and its error is %v", failed)
			}
			return opened[n]
		}
		var pauses []time.Duration
		for range 8 {
			pauses = append(pauses, fail(restartMax))
		}
		if got, want := fmt.Sprint(pauses), "[1s 2s 4s 8s 16s 32s 1m0s 1m0s]"; got != want {
			t.Errorf("pauses are %s, want %s", got, want)
		}
		time.Sleep(restartReset)
		if pause := fail(restartMax); pause != restartMin {
			t.Errorf("after it has run for a while the pause is %v", pause)
		}
		time.Sleep(restartReset)
		refused = 3
		if pause := fail(restartMax); pause != 15*time.Second {
			t.Errorf("when it could not be opened three times it is begun after %v, want 1 + 2 + 4 + 8 s", pause)
		}
		if _, restarts, _ := s.now(); restarts != 10 {
			t.Errorf("%d restarts, want 10", restarts)
		}

		n := len(opened)
		f.end <- fmt.Errorf("newer than this program: %w", ingest.ErrFinal)
		time.Sleep(time.Hour)
		if _, _, failed := s.now(); !errors.Is(failed, ingest.ErrFinal) || len(opened) != n {
			t.Errorf("after a final error it was begun anew, or its error is %v", failed)
		}
		s.stop()
		<-s.ended
	})
}
