package ingest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// assignedNames are the partitions that a source reads now.
func assignedNames(k *running) (names []string) {
	for _, s := range k.Partitions() {
		if s.Assigned {
			names = append(names, s.Partition.Name)
		}
	}
	return
}

// handedOver waits until a handler is told where a partition was left. A source calls
// it its own shortly before.
func handedOver(t *testing.T, r *kafkaRecorder, name string, want Position) {
	t.Helper()
	eventually(t, name+" is handed over", func() (is bool) {
		r.look(name, func(p *recorded) { is = len(p.left) > 0 })
		return is
	})
	r.look(name, func(p *recorded) { equal(t, name+" was left", p.left, []Position{want}) })
}

func TestKafkaKeyedMembersShare(t *testing.T) {
	c := cluster(t, 4, []string{"a"})
	cl := producer(t, c)
	for p := range int32(4) {
		produce(t, cl, "a", p, numbered(0, 10)...)
	}
	r1, r2 := newKafkaRecorder(t), newKafkaRecorder(t)
	k1 := start(t, quick(c, "a"), r1)
	eventually(t, "one member reads all", func() bool { return len(assignedNames(k1)) == 4 })
	for p := range 4 {
		name := []string{"kafka a/0", "kafka a/1", "kafka a/2", "kafka a/3"}[p]
		eventually(t, name+" is read", r1.has(name, 10))
	}
	if k1.Shared() {
		t.Error("who reads all sees a part")
	}
	k2 := start(t, quick(c, "a"), r2)
	eventually(t, "two members share", func() bool {
		return len(assignedNames(k1)) == 2 && len(assignedNames(k2)) == 2
	})
	both := append(assignedNames(k1), assignedNames(k2)...)
	slices.Sort(both)
	equal(t, "all partitions are read", both, []string{"kafka a/0", "kafka a/1", "kafka a/2", "kafka a/3"})
	if !k1.Shared() || !k2.Shared() {
		t.Errorf("who shares sees all: %v, %v", k1.Shared(), k2.Shared())
	}
	equal(t, "who shares knows all there are", k1.Whole(), both)
	equal(t, "and the other", k2.Whole(), both)
	for _, name := range assignedNames(k2) {
		handedOver(t, r2, name, Position{10, "up to 10"})
	}
	k2.stop()
	eventually(t, "who stays takes over", func() bool { return len(assignedNames(k1)) == 4 })
	if k1.Shared() {
		t.Error("who took over sees a part")
	}
	if k1.Standby() {
		t.Error("a member that reads stands by")
	}
}

func TestKafkaOneMemberReadsWhatIsNotKeyed(t *testing.T) {
	c := cluster(t, 2, []string{"a", "b"})
	cl := producer(t, c)
	cfg := quick(c, "a", "b")
	cfg.Keyed = false
	all := []string{"kafka a/0", "kafka a/1", "kafka b/0", "kafka b/1"}
	var members []*running
	var recorders []*kafkaRecorder
	join := func() {
		r := newKafkaRecorder(t)
		recorders = append(recorders, r)
		members = append(members, start(t, cfg, r))
	}
	join()
	eventually(t, "one member reads all", func() bool { return slices.Equal(assignedNames(members[0]), all) })

	// Whoever joins stands by, whatever its member id and whoever leads the group.
	for n := 1; n < 4; n++ {
		join()
		eventually(t, "the new one stands by", func() bool {
			return members[n].Standby() && slices.Equal(assignedNames(members[0]), all)
		})
		if members[0].Standby() {
			t.Error("the holder stands by")
		}
	}
	produce(t, cl, "b", 1, numbered(0, 10)...)
	eventually(t, "the holder reads", recorders[0].has("kafka b/1", 10))

	members[0].stop()
	holder := -1
	eventually(t, "one of the others takes over", func() bool {
		for i, m := range members[1:] {
			if slices.Equal(assignedNames(m), all) && !m.Standby() {
				holder = i + 1
			}
		}
		return holder > 0
	})
	produce(t, cl, "b", 1, numbered(10, 10)...)
	eventually(t, "and reads on", recorders[holder].has("kafka b/1", 10))
	equal(t, "from where it was left", recorders[holder].lines("kafka b/1"), numbered(10, 10))
	handedOver(t, recorders[holder], "kafka b/1", Position{10, "up to 10"})
	for i, m := range members[1:] {
		if i+1 != holder {
			eventually(t, "the rest stands by", m.Standby)
			equal(t, "and reads nothing", len(assignedNames(m)), 0)
		}
	}
}

func TestHolderBalancer(t *testing.T) {
	member := func(id string, held int32, topics ...string) kafka.GroupMember {
		b := &holderBalancer{}
		b.holds(held)
		data, _ := b.UserData()
		return kafka.GroupMember{ID: id, Topics: topics, UserData: data}
	}
	partitions := []kafka.Partition{{Topic: "a", ID: 0}, {Topic: "a", ID: 1}, {Topic: "b", ID: 0}, {Topic: "other", ID: 0}}
	for name, test := range map[string]struct {
		members []kafka.GroupMember
		want    string
	}{
		"none held it: the smallest id":       {[]kafka.GroupMember{member("m2", 0, "a", "b"), member("m1", 0, "a", "b")}, "m1"},
		"who held it keeps it":                {[]kafka.GroupMember{member("m1", 0, "a", "b"), member("m2", 3, "a", "b")}, "m2"},
		"who held it last, not who came back": {[]kafka.GroupMember{member("m1", 3, "a", "b"), member("m2", 9, "a", "b")}, "m2"},
		"who reads all topics":                {[]kafka.GroupMember{member("m1", 9, "a"), member("m2", 0, "a", "b")}, "m2"},
		"strange user data counts as none":    {[]kafka.GroupMember{{ID: "m1", Topics: []string{"a", "b"}, UserData: []byte("strange")}, member("m2", 1, "a", "b")}, "m2"},
	} {
		got := (&holderBalancer{}).AssignGroups(test.members, partitions)
		for _, m := range test.members {
			want := map[string][]int{}
			if m.ID == test.want {
				want = map[string][]int{"a": {0, 1}, "b": {0}}
			}
			equal(t, name+": "+m.ID, got[m.ID], want)
		}
		slices.Reverse(test.members)
		equal(t, name+", in another order", (&holderBalancer{}).AssignGroups(test.members, partitions), got)
	}
	equal(t, "nobody", len((&holderBalancer{}).AssignGroups(nil, partitions)), 0)
}

// One group cannot be shared by members that would divide partitions differently:
// neither would know what the other reads.
func TestKafkaMembersMustAgree(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	k := start(t, quick(c, "a"), newKafkaRecorder(t))
	eventually(t, "one member reads", func() bool { return len(assignedNames(k)) == 1 })
	cfg := quick(c, "a")
	cfg.Keyed = false
	other := start(t, cfg, newKafkaRecorder(t))
	eventually(t, "the other is refused, and says why", func() bool {
		return other.Err() != nil && strings.Contains(other.Err().Error(), "give each kind of reader a group of its own")
	})
	equal(t, "the first reads on", len(assignedNames(k)), 1)
}

// kafka-go assigns no partition at all while one of several topics is unknown.
func TestKafkaTopicsThatCome(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c)
	produce(t, cl, "a", 0, "one")
	r := newKafkaRecorder(t)
	k := start(t, quick(c, "a", "b"), r)
	eventually(t, "the topic that is there is read", r.has("kafka a/0", 1))
	if err := k.Err(); !errors.Is(err, ErrKafkaNoTopic) {
		t.Errorf("error is %v", err)
	}
	if err := c.CreateTopic("b", 2, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "b", 1, "two")
	eventually(t, "the new one, too", r.has("kafka b/1", 1))
	eventually(t, "no error is left", func() bool { return k.Err() == nil })

	// Partitions that are added.
	add := kmsg.NewPtrCreatePartitionsRequest()
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = "a", 3
	add.Topics = append(add.Topics, topic)
	add.TimeoutMillis = 5000
	if _, err := add.RequestWith(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
	other := producer(t, c)
	produce(t, other, "a", 2, "three")
	eventually(t, "the new partition is read", r.has("kafka a/2", 1))

	// And a topic that goes.
	if err := c.DeleteTopic("b"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is missed", func() bool { return errors.Is(k.Err(), ErrKafkaNoTopic) })
	produce(t, other, "a", 0, "four")
	eventually(t, "and the rest is read on", r.has("kafka a/0", 2))
	r.look("kafka a/0", func(p *recorded) { equal(t, "lines", p.lines, []string{"one", "four"}) })
}

func TestKafkaConsumeErrorStopsItsPartitionOnly(t *testing.T) {
	c := cluster(t, 2, []string{"a", "b"})
	cl := producer(t, c)
	for _, topic := range []string{"a", "b"} {
		for p := range int32(2) {
			produce(t, cl, topic, p, numbered(0, 10)...)
		}
	}
	r := newKafkaRecorder(t)
	failures := 3 // touched by one partition's goroutine only
	r.consume = func(p Partition, b *Batch) error {
		if p.Name == "kafka a/1" && b.Next > 5 && failures > 0 {
			failures--
			return errors.New("this one is broken")
		}
		return nil
	}
	r.assigned = func(p Partition, left Position) (Position, error) { // goes on where it was
		if n := len(r.lines(p.Name)); n > 0 {
			left.Offset = int64(n)
		}
		return left, nil
	}
	cfg := quick(c, "a", "b")
	cfg.BatchBytes = 20 // three lines: some are taken over before it fails
	k := start(t, cfg, r)
	for _, name := range []string{"kafka a/0", "kafka a/1", "kafka b/0", "kafka b/1"} {
		eventually(t, name+" is read", r.has(name, 10))
		equal(t, name, r.lines(name), numbered(0, 10))
		sessions := 1
		if name == "kafka a/1" {
			sessions = 4
		}
		r.look(name, func(p *recorded) { equal(t, name+" sessions", p.sessions, sessions) })
		equal(t, name+" restarts", k.state(name).Restarts, sessions-1)
		equal(t, name+" error", k.state(name).Err, nil)
	}
}

func TestKafkaAssignedErrorIsTriedAgain(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	produce(t, producer(t, c), "a", 0, "one")
	r := newKafkaRecorder(t)
	refusals := 2
	r.assigned = func(_ Partition, left Position) (Position, error) {
		if refusals > 0 {
			refusals--
			return left, errors.New("the store is away")
		}
		return left, nil
	}
	k := start(t, quick(c, "a"), r)
	eventually(t, "it is read", r.has("kafka a/0", 1))
	equal(t, "restarts", k.state("kafka a/0").Restarts, 2)
}

// A handler that has no room holds up its own partition, and nothing else.
func TestKafkaConsumeHoldsBack(t *testing.T) {
	c := cluster(t, 2, []string{"a"})
	cl := producer(t, c)
	for p := range int32(2) {
		produce(t, cl, "a", p, numbered(0, 10)...)
	}
	r := newKafkaRecorder(t)
	blocking := &blocker{kafkaRecorder: r, name: "kafka a/0", held: make(chan struct{})}
	k := start(t, quick(c, "a"), blocking)
	eventually(t, "the other is read", r.has("kafka a/1", 10))
	<-blocking.held
	produce(t, cl, "a", 1, "more")
	eventually(t, "and read on", r.has("kafka a/1", 11))
	eventually(t, "its position is committed", func() bool {
		commit, _ := commitOf(c, "a", 1)
		return commit.Offset == 11
	})
	if s := k.state("kafka a/0"); s.Stalls != 0 || s.Restarts != 0 {
		t.Errorf("held back counts as trouble: %+v", s)
	}
	begun := time.Now()
	k.stop()
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("stopping took %v", took)
	}
}

// blocker blocks in Consume of one partition until its context ends.
type blocker struct {
	*kafkaRecorder
	name string
	held chan struct{}
}

func (b *blocker) Assigned(ctx context.Context, p Partition, left Position) (Session, Position, error) {
	s, from, err := b.kafkaRecorder.Assigned(ctx, p, left)
	if p.Name == b.name {
		s = &blocked{s, b.held}
	}
	return s, from, err
}

type blocked struct {
	Session
	held chan struct{}
}

func (b *blocked) Consume(ctx context.Context, _ *Batch) error {
	close(b.held)
	<-ctx.Done()
	return ctx.Err()
}

func TestKafkaBrokerErrorsPass(t *testing.T) {
	for name, fault := range map[string]kfake.Fault{
		"not the leader":   {Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition, Count: 3},
		"unknown":          {Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.UnknownServerError, Count: 3},
		"unknown topic":    {Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.UnknownTopicOrPartition, Count: 3},
		"storage":          {Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.KafkaStorageError, Count: 3},
		"join":             {Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.CoordinatorLoadInProgress, Count: 2},
		"sync":             {Keys: []kmsg.Key{kmsg.SyncGroup}, Err: kerr.RebalanceInProgress, Count: 2},
		"find coordinator": {Keys: []kmsg.Key{kmsg.FindCoordinator}, Err: kerr.CoordinatorNotAvailable, Count: 2},
		"positions":        {Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.NotCoordinator, Count: 3},
		"start of the log": {Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.LeaderNotAvailable, Count: 2},
		"commit":           {Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.NotCoordinator, Count: 2},
		"heartbeat":        {Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.UnknownMemberID, Count: 1},
		"topics not known": {Keys: []kmsg.Key{kmsg.Metadata}, Err: kerr.LeaderNotAvailable, Count: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, 1, []string{"a"})
			cl := producer(t, c)
			produce(t, cl, "a", 0, numbered(0, 10)...)
			faults := c.Fault(fault)
			r := newKafkaRecorder(t)
			k := start(t, quick(c, "a"), r)
			eventually(t, "the errors came", func() bool { return faults.Hits() >= fault.Count })
			produce(t, cl, "a", 0, numbered(10, 10)...)
			eventually(t, "all is read", r.has("kafka a/0", 20))
			equal(t, "lines", r.lines("kafka a/0"), numbered(0, 20))
			eventually(t, "all is committed", func() bool {
				commit, _ := commitOf(c, "a", 0)
				return commit.Offset == 20
			})
			eventually(t, "no error is left", func() bool { return k.Err() == nil && k.state("kafka a/0").Err == nil })
		})
	}
}
