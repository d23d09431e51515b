package ingest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A session that begins anew is told what a restart would be told, at that moment: a
// commit that is under way is waited for.
func TestKafkaSessionWaitsForTheCommitUnderWay(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	produce(t, cl, "a", 0, numbered(0, 10)...)
	r := newKafkaRecorder(t)
	r.look("kafka a/0", func(p *recorded) { p.released = &Position{3, "first"} })
	start(t, quick(c, "a"), r)
	eventually(t, "the first is committed", func() bool {
		commit, _ := commitOf(c, "a", 0)
		return commit.Metadata == "first"
	})
	arrived, goOn := make(chan struct{}), make(chan struct{})
	c.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(arrived)
		c.SleepControl(func() { <-goOn })
		return nil, nil, false
	})
	r.look("kafka a/0", func(p *recorded) { p.released = &Position{4, "second"} })
	<-arrived
	failed := make(chan struct{})
	r.mu.Lock()
	r.consume = func(_ Partition, b *Batch) error {
		select {
		case <-failed:
			return nil
		default:
			close(failed)
			return errors.New("the session fails")
		}
	}
	r.mu.Unlock()
	produce(t, cl, "a", 0, "one more")
	<-failed
	time.Sleep(100 * time.Millisecond)
	close(goOn)
	eventually(t, "a new session reads", r.has("kafka a/0", 11))
	r.look("kafka a/0", func(p *recorded) {
		if left := p.left[1]; left.Metadata != "second" {
			t.Errorf("the new session is told %+v, the broker has what the commit under way said", left)
		}
	})
}

// What a session released that has failed is not committed once the next one has
// begun from before it.
func TestKafkaSessionIsNotOverruledByTheLast(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	var mu sync.Mutex
	var events []string
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		c.KeepControl()
		events = append(events, *req.(*kmsg.OffsetCommitRequest).Topics[0].Partitions[0].Metadata)
		return nil, nil, false
	})
	r := newKafkaRecorder(t)
	r.look("kafka a/0", func(p *recorded) { p.released = &Position{0, "old"} })
	sessions := 0
	r.assigned = func(_ Partition, left Position) (Position, error) {
		mu.Lock()
		defer mu.Unlock()
		if sessions++; sessions == 2 {
			r.look("kafka a/0", func(p *recorded) { p.released = &Position{0, "new"} })
			events = append(events, "second session")
		}
		return left, nil
	}
	r.consume = func(Partition, *Batch) error {
		if sessions == 1 {
			return errors.New("the session fails")
		}
		return nil
	}
	produce(t, cl, "a", 0, numbered(0, 10)...)
	cfg := quick(c, "a")
	cfg.tune.commitEvery = 200 * time.Millisecond
	start(t, cfg, r)
	eventually(t, "the second session's position is committed", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(events, "new")
	})
	mu.Lock()
	defer mu.Unlock()
	if after := events[slices.Index(events, "second session"):]; slices.Contains(after, "old") {
		t.Errorf("committed: %q", events)
	}
}
