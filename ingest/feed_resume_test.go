package ingest

import (
	"context"
	"errors"
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
