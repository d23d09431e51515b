package ingest

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commits puts a position into a group that has no members.
func commits(t testing.TB, c *kfake.Cluster, topic string, partition int, left Position) {
	t.Helper()
	cfg := quick(c, topic)
	k, err := NewKafka(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer k.link.pool.CloseIdleConnections()
	eventually(t, "the position is committed", func() bool { // a broker that has just begun may not be available yet
		return len(k.link.commit(t.Context(), membership{-1, ""}, map[topicPartition]Position{{topic, partition}: left})) == 0
	})
}

// kafka-go's own generation knows the offset alone: the metadata must come back,
// too, and reading begins where the handler says, before or behind it.
func TestKafkaResumesFromPositionAndMetadata(t *testing.T) {
	for name, from := range map[string]int64{"there": 40, "before": 25, "behind": 70} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, 2, []string{"a"})
			cl := producer(t, c)
			produce(t, cl, "a", 0, numbered(0, 100)...)
			commits(t, c, "a", 0, Position{40, "emit from 7"})
			r := newKafkaRecorder(t)
			r.assigned = func(p Partition, left Position) (Position, error) {
				if p.Name == "kafka a/0" {
					equal(t, "left", left, Position{40, "emit from 7"})
					left = Position{Offset: from}
				} else {
					equal(t, "left of the other", left, Position{0, ""})
				}
				return left, nil
			}
			k := start(t, quick(c, "a"), r)
			eventually(t, "all is read", func() bool { return k.state("kafka a/0").Next == 100 })
			equal(t, "lines", r.lines("kafka a/0"), numbered(int(from), int(100-from)))
			k.stop()

			// And again, from what was committed by itself.
			produce(t, cl, "a", 0, "new")
			again := newKafkaRecorder(t)
			start(t, quick(c, "a"), again)
			eventually(t, "it goes on", again.has("kafka a/0", 1))
			again.look("kafka a/0", func(p *recorded) {
				equal(t, "left", p.left, []Position{{100, "up to 100"}})
				equal(t, "lines", p.lines, []string{"new"})
			})
		})
	}
}

func TestKafkaCommitsWhileItReads(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	produce(t, cl, "a", 0, numbered(0, 10)...)
	r := newKafkaRecorder(t)
	hold := Position{Offset: 3, Metadata: "the handler's own"}
	r.look("kafka a/0", func(p *recorded) { p.released = &hold })
	k := start(t, quick(c, "a"), r)
	eventually(t, "what is released is committed, not what was read", func() bool {
		commit, _ := commitOf(c, "a", 0)
		return commit.Offset == 3 && commit.Metadata == hold.Metadata
	})
	next := Position{Offset: 3, Metadata: "the same offset, more is known"}
	r.look("kafka a/0", func(p *recorded) { p.released = &next })
	eventually(t, "metadata alone is committed, too", func() bool {
		commit, _ := commitOf(c, "a", 0)
		return commit.Metadata == next.Metadata
	})
	long := Position{Offset: 4, Metadata: strings.Repeat("x", MaxMetadata+1)}
	r.look("kafka a/0", func(p *recorded) { p.released = &long })
	eventually(t, "metadata that no broker takes is refused", func() bool { return k.state("kafka a/0").Refused > 0 })
	if commit, _ := commitOf(c, "a", 0); commit.Offset != 3 {
		t.Errorf("committed %d", commit.Offset)
	}
	r.look("kafka a/0", func(p *recorded) { p.released = &Position{Offset: 9, Metadata: "last"} })
	k.stop()
	commit, _ := commitOf(c, "a", 0)
	equal(t, "after Close", Position{commit.Offset, commit.Metadata}, Position{9, "last"})
}

// kafka-go's Reader jumps to the first offset and says nothing.
func TestKafkaGapBelowTheStartOfTheLog(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	for i := range 10 {
		produce(t, cl, "a", 0, numbered(10*i, 10)...)
	}
	commits(t, c, "a", 0, Position{15, "m"})
	if err := c.DeleteRecords("a", 0, 43); err != nil {
		t.Fatal(err)
	}
	r := newKafkaRecorder(t)
	k := start(t, quick(c, "a"), r)
	eventually(t, "all that is left is read", func() bool { return k.state("kafka a/0").Next == 100 })
	r.look("kafka a/0", func(p *recorded) {
		equal(t, "left", p.left, []Position{{15, "m"}})
		equal(t, "gap", p.gap, 28)
		equal(t, "lines", p.lines, numbered(43, 57))
		equal(t, "sessions", p.sessions, 1)
	})
	equal(t, "gap in the state", k.state("kafka a/0").Gap, 28)
}

// The log's start moves over a reader that is held back.
func TestKafkaGapUnderTheReader(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	produce(t, cl, "a", 0, numbered(0, 10)...)
	r := newKafkaRecorder(t)
	held, goOn := make(chan struct{}), make(chan struct{})
	first := true
	r.consume = func(_ Partition, b *Batch) error {
		if first && len(b.Refs) > 0 {
			first = false
			close(held)
			<-goOn
		}
		return nil
	}
	k := start(t, quick(c, "a"), r)
	<-held
	for i := 1; i < 10; i++ {
		produce(t, cl, "a", 0, numbered(10*i, 10)...)
	}
	if err := c.DeleteRecords("a", 0, 60); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	eventually(t, "the rest is read", func() bool { return k.state("kafka a/0").Next == 100 })
	r.look("kafka a/0", func(p *recorded) {
		equal(t, "gap", p.gap, 50)
		equal(t, "lines", p.lines, append(numbered(0, 10), numbered(60, 40)...))
	})
}

// A log from which all was deleted has a gap, too, and no record to hang it on.
func TestKafkaGapUpToTheEnd(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	produce(t, producer(t, c), "a", 0, numbered(0, 10)...)
	if err := c.DeleteRecords("a", 0, 10); err != nil {
		t.Fatal(err)
	}
	r := newKafkaRecorder(t)
	commits(t, c, "a", 0, Position{Offset: 4})
	k := start(t, quick(c, "a"), r)
	eventually(t, "the end is reached", func() bool { return k.state("kafka a/0").Next == 10 })
	r.look("kafka a/0", func(p *recorded) { equal(t, "gap", p.gap, 6) })
}

// kafka-go's Reader tries for ever.
func TestKafkaPositionBehindTheEnd(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	produce(t, cl, "a", 0, numbered(0, 10)...)
	commits(t, c, "a", 0, Position{500, "of a log that is no more"})
	r := newKafkaRecorder(t)
	r.anywhere = true
	r.assigned = func(_ Partition, left Position) (Position, error) {
		return Position{Offset: 500}, nil // it remembers having read that
	}
	k := start(t, quick(c, "a"), r)
	eventually(t, "it goes on at the end", func() bool { return k.state("kafka a/0").Next == 10 })
	produce(t, cl, "a", 0, "new")
	eventually(t, "what is new is read", r.has("kafka a/0", 1))
	equal(t, "lines", r.lines("kafka a/0"), []string{"new"})
	r.look("kafka a/0", func(p *recorded) {
		equal(t, "left", p.left, []Position{{500, "of a log that is no more"}, {10, ""}})
	})
	s := k.state("kafka a/0")
	if s.Truncations != 1 || s.Restarts != 1 || s.Err != nil {
		t.Errorf("%d truncations, %d restarts, error %v", s.Truncations, s.Restarts, s.Err)
	}
	k.stop()
	if commit, _ := commitOf(c, "a", 0); commit.Offset != 11 {
		t.Errorf("committed %d", commit.Offset)
	}
}

// A replica that begins to lead may not know its end yet; that passes.
func TestKafkaPositionBehindTheEndForAMoment(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	produce(t, cl, "a", 0, numbered(0, 10)...)
	commits(t, c, "a", 0, Position{10, "m"})
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		return fetchCode(req, 1), nil, true // OFFSET_OUT_OF_RANGE, once
	})
	r := newKafkaRecorder(t)
	k := start(t, quick(c, "a"), r)
	produce(t, cl, "a", 0, "new")
	eventually(t, "it goes on", r.has("kafka a/0", 1))
	r.look("kafka a/0", func(p *recorded) { equal(t, "sessions", p.sessions, 1) })
	equal(t, "truncations", k.state("kafka a/0").Truncations, 0)
}

// fetchCode answers a fetch with an error for its partition.
func fetchCode(req kmsg.Request, code int16) kmsg.Response {
	in := req.(*kmsg.FetchRequest)
	res := in.ResponseKind().(*kmsg.FetchResponse)
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic = in.Topics[0].Topic
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition = in.Topics[0].Partitions[0].Partition
	p.ErrorCode, p.HighWatermark, p.LastStableOffset, p.LogStartOffset = code, -1, -1, -1
	topic.Partitions = append(topic.Partitions, p)
	res.Topics = append(res.Topics, topic)
	return res
}

// A member that the group has given up must not move its successor's position.
func TestKafkaZombieCommitsNothing(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	produce(t, cl, "a", 0, numbered(0, 10)...)
	r := newKafkaRecorder(t)
	k := start(t, quick(c, "a"), r)
	eventually(t, "it is committed", func() bool {
		commit, _ := commitOf(c, "a", 0)
		return commit.Offset == 10
	})
	info := c.GroupInfo("auditor")
	for name, as := range map[string]membership{
		"an earlier generation": {info.Epoch - 1, info.Members[0].MemberID},
		"a later generation":    {info.Epoch + 1, info.Members[0].MemberID},
		"another member":        {info.Epoch, "zombie"},
	} {
		p := newKafkaPartition(k.Kafka, "a", 0)
		p.released = Position{Offset: 3, Metadata: "zombie"}
		k.commit(as, []*kafkaPartition{p})
		commit, _ := commitOf(c, "a", 0)
		equal(t, name, Position{commit.Offset, commit.Metadata}, Position{10, "up to 10"})
	}
	equal(t, "refused", k.state("kafka a/0").Refused, 3)
}

// The zombie as it happens: its process stood still, the group went on.
func TestKafkaProcessThatStoodStill(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	produce(t, cl, "a", 0, numbered(0, 10)...)
	r := newKafkaRecorder(t)
	held, goOn := make(chan struct{}), make(chan struct{})
	first := true
	r.consume = func(_ Partition, b *Batch) error {
		if first && len(b.Refs) > 0 {
			first = false
			close(held)
			<-goOn // deaf to its context, as a process that is stopped
		}
		return nil
	}
	cfg := quick(c, "a")
	k := start(t, cfg, r)
	<-held
	// The group gives it up, as after a session timeout; another one reads on.
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = "auditor"
	leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: c.GroupInfo("auditor").Members[0].MemberID}}
	if _, err := leave.RequestWith(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
	second := newKafkaRecorder(t)
	k2 := start(t, quick(c, "a"), second)
	eventually(t, "the other one reads", second.has("kafka a/0", 10))
	eventually(t, "and commits", func() bool {
		commit, _ := commitOf(c, "a", 0)
		return commit.Offset == 10
	})
	r.look("kafka a/0", func(p *recorded) { p.released = &Position{Offset: 5, Metadata: "zombie"} })
	close(goOn)
	eventually(t, "the commit of the first is refused", func() bool { return k.state("kafka a/0").Refused > 0 })
	if commit, _ := commitOf(c, "a", 0); commit.Offset < 10 || commit.Metadata == "zombie" {
		t.Errorf("committed %d, %q", commit.Offset, commit.Metadata)
	}
	k2.stop()
}
