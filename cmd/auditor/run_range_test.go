package main

import (
	"context"
	"testing"
	"time"

	"github.com/targetside/auditor/api"
	"github.com/targetside/auditor/keys"
	"github.com/targetside/auditor/pipeline"
	"github.com/targetside/auditor/store"
)

// busyStore closes a tick whenever it was asked for rows.
type busyStore struct {
	store.Store
	closed int64
}

func (s *busyStore) Rows(context.Context, store.Query) ([]store.Row, error) {
	s.closed++
	return nil, nil
}

func (s *busyStore) Closed(context.Context) (map[string]int64, error) {
	return map[string]int64{"all": s.closed}, nil
}

func (s *busyStore) Splits(context.Context, int64, int64) ([]string, error) { return nil, nil }

// An answer never says that it is complete up to a moment behind its rows, though
// rows are written while it is made.
func TestRangeIsAsCompleteAsItSays(t *testing.T) {
	const closed = 1_796_000_000
	r := &reader{d: &daemon{store: &busyStore{closed: closed}}}
	r.d.setup.Store(&setup{live: pipeline.NewLive(pipeline.LiveConfig{Config: pipeline.Config{Keys: &keys.Ring{}, Horizon: time.Minute, Lateness: time.Minute}})})
	r.snapshot.Store(&api.Snapshot{})
	from := time.Unix(closed-3600, 0)
	got, err := r.Range(t.Context(), api.RangeQuery{Resolution: time.Minute, Step: time.Minute, From: from, To: from.Add(2 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if until := got.CompleteUntil.Unix(); until != closed {
		t.Errorf("complete up to %d, and rows were read when it was %d", until, closed)
	}
}
