package ingest

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// The oldest versions of the protocol that are spoken, and those at which the
// request that is encoded here changes.
func TestKafkaVersions(t *testing.T) {
	for name, v := range map[string]*kversion.Versions{
		"1.0": kversion.V1_0_0(), "1.1": kversion.V1_1_0(), "2.0": kversion.V2_0_0(),
		"2.1": kversion.V2_1_0(), "2.8": kversion.V2_8_0(), "3.7": kversion.V3_7_0(), "4.0": kversion.V4_0_0(),
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, 1, []string{"a"}, kfake.MaxVersions(v))
			cl := producer(t, c, kgo.MaxVersions(v), kgo.DisableIdempotentWrite())
			produce(t, cl, "a", 0, numbered(0, 10)...)
			r := newKafkaRecorder(t)
			k := start(t, quick(c, "a"), r)
			eventually(t, "it is read", r.has("kafka a/0", 10))
			if err := k.Check(t.Context()); err != nil {
				t.Error(err)
			}
			k.stop()
			commit, _ := commitOf(c, "a", 0)
			equal(t, "commit", Position{commit.Offset, commit.Metadata}, Position{10, "up to 10"})
		})
	}
}

// Leaders and the group's coordinator move while records are read.
func TestKafkaLeadersMove(t *testing.T) {
	c := cluster(t, 3, []string{"a"}, kfake.NumBrokers(3))
	cl := producer(t, c)
	r := newKafkaRecorder(t)
	k := start(t, quick(c, "a"), r)
	names := []string{"kafka a/0", "kafka a/1", "kafka a/2"}
	for round := range 5 {
		for p := range int32(3) {
			produce(t, cl, "a", p, numbered(10*round, 10)...)
		}
		for _, name := range names {
			eventually(t, name+" is read on", r.has(name, 10*(round+1)))
		}
		for p := range int32(3) {
			if err := c.MoveTopicPartition("a", p, (c.LeaderFor("a", p)+1)%3); err != nil {
				t.Fatal(err)
			}
		}
		if round%2 == 1 {
			c.RehashCoordinators()
		}
	}
	for p, name := range names {
		equal(t, name, r.lines(name), numbered(0, 50))
		eventually(t, "its position is committed", func() bool {
			commit, _ := commitOf(c, "a", int32(p))
			return commit.Offset == 50
		})
		equal(t, name+" restarts", k.state(name).Restarts, 0)
	}
}

// With no commit in between, only the last one, after Close, can tell whoever
// comes next.
func TestKafkaLastCommit(t *testing.T) {
	c := cluster(t, 2, []string{"a"})
	cl := producer(t, c)
	for p := range int32(2) {
		produce(t, cl, "a", p, numbered(0, 10)...)
	}
	cfg := quick(c, "a")
	cfg.tune.commitEvery = time.Hour
	r1, r2 := newKafkaRecorder(t), newKafkaRecorder(t)
	k1 := start(t, cfg, r1)
	eventually(t, "all is read", func() bool { return r1.has("kafka a/0", 10)() && r1.has("kafka a/1", 10)() })
	if _, ok := commitOf(c, "a", 0); ok {
		t.Error("there is a commit already")
	}
	k2 := start(t, cfg, r2) // ends the generation
	eventually(t, "two members share", func() bool { return len(assignedNames(k1)) == 1 && len(assignedNames(k2)) == 1 })
	name := assignedNames(k2)[0]
	handedOver(t, r2, name, Position{10, "up to 10"})
	for p := range int32(2) {
		produce(t, cl, "a", p, numbered(10, 5)...)
	}
	eventually(t, "both read on", func() bool {
		return r2.has(name, 5)() && r1.has(assignedNames(k1)[0], 15)()
	})
	k1.stop()
	k2.stop()
	for p := range int32(2) {
		commit, _ := commitOf(c, "a", p)
		equal(t, "commit", Position{commit.Offset, commit.Metadata}, Position{15, "up to 15"})
	}
}

// Close is given part of the session timeout, so that there is time to commit.
func TestKafkaCloseHasADeadline(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	h := &slowToClose{newKafkaRecorder(t), make(chan time.Duration, 1)}
	cfg := quick(c, "a")
	cfg.SessionTimeout = 300 * time.Millisecond
	k := start(t, cfg, h)
	eventually(t, "it reads", func() bool { return len(assignedNames(k)) == 1 && k.state("kafka a/0").Next == 0 })
	k.stop()
	if left := <-h.left; left > 100*time.Millisecond {
		t.Errorf("Close has %v", left)
	}
}

type slowToClose struct {
	*kafkaRecorder
	left chan time.Duration
}

func (h *slowToClose) Assigned(ctx context.Context, p Partition, left Position) (Session, Position, error) {
	s, from, err := h.kafkaRecorder.Assigned(ctx, p, left)
	return &slowSession{s, h.left}, from, err
}

type slowSession struct {
	Session
	left chan time.Duration
}

func (s *slowSession) Close(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Hour)
	}
	select {
	case s.left <- time.Until(deadline):
	default:
	}
	<-ctx.Done() // it never gets done
	s.Session.Close(ctx)
	return ctx.Err()
}

// kafka-go's ConsumerGroup.Close waits for a rebalance to end, up to 35 s.
func TestKafkaStopsDuringARebalance(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	joining := make(chan struct{})
	c.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(joining)
		return nil, nil, true // no answer, for as long as somebody does not join again
	})
	cfg := quick(c, "a")
	cfg.SessionTimeout = time.Minute
	k := start(t, cfg, newKafkaRecorder(t))
	<-joining
	begun := time.Now()
	k.stop()
	if took := time.Since(begun); took > inTime/2 {
		t.Errorf("stopping took %v", took)
	}
}
