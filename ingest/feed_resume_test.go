package ingest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// slowMemory takes its time to keep a position.
type slowMemory struct{ *memory }

func (m slowMemory) Save(ctx context.Context, name string, state []byte) error {
	time.Sleep(2 * time.Second)
	return m.memory.Save(ctx, name, state)
}

// A session that begins anew is told what a restart would be told once all is kept
// that the last one released.
func TestFollowSessionWaitsForThePositionUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.log")
		name := "file " + path
		r := newRecorder(t)
		failed := false
		r.consume = func(_ string, b *Batch) error {
			if b.Offset > 0 && len(b.Data) > 0 && !failed {
				failed = true
				return errors.New("the session fails")
			}
			return nil
		}
		put(t, path, "a\n")
		f := startFollow(t, r, slowMemory{newMemory()}, path)
		defer func() { f.stop() }()
		wantText(t, r, name, "a\n")
		put(t, path, "b\n") // fails, and what was read before is released
		time.Sleep(time.Minute)
		wantText(t, r, name, "a\nb\n")
		if told := r.told(name); len(told) != 2 || told[1].Offset != 2 {
			t.Errorf("sessions are told %+v, the second should be told of offset 2", told)
		}
	})
}

// A session that is to be begun anew is no failure: the next one does not wait longer
// for it.
func TestFollowBeginsAnewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.log")
		r := newRecorder(t)
		anew := 0
		var last time.Time
		r.consume = func(_ string, b *Batch) error {
			if len(b.Data) > 0 && anew < 20 {
				anew++
				last = time.Now()
				return fmt.Errorf("the configuration changes: %w", ErrAnew)
			}
			return nil
		}
		put(t, path, "a\n")
		begun := time.Now()
		f := startFollow(t, r, newMemory(), path)
		defer func() { f.stop() }()
		time.Sleep(time.Minute)
		wantText(t, r, "file "+path, "a\n")
		if took := last.Sub(begun); anew != 20 || took > 20*time.Second {
			t.Errorf("%d sessions were begun anew within %v", anew, took)
		}
	})
}
