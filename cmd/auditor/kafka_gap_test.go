//go:build unix

package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What is deleted from a topic before it was read is a gap of as many records, and
// nothing else changes; what is deleted after it was read changes nothing.
func TestKafkaRecordsDeleted(t *testing.T) {
	kafkaBroker(t)
	cl := kafkaClient(t)
	topic := kafkaTopic(t, cl, "deleted", 1)
	d := newProcess(t, binary(t), "one", topic, unkeyed)
	d.start()

	truth := kafkaTruth{byTick: map[int64]*[4]uint64{}}
	traffic := newKafkaTraffic(1, false, 1)
	end := int64(0)
	// send makes up questions that are asked once, and returns where their records end.
	send := func(n int, counted func(i int) bool) int64 {
		t.Helper()
		var records []*kgo.Record
		for i := range n {
			now := time.Now()
			line := fmt.Sprintf(`{"time":%q,"time_is":"start","method":"GET","path":"/seats/1","status":200,"duration_ms":1,"client_gone":false,"bytes_sent":1,"peer":"10.0.0.1:1000","question_key":%q}`,
				now.UTC().Format("2006-01-02T15:04:05.000000Z"), traffic.mint("web", secretA, now.UnixMicro()))
			records = append(records, &kgo.Record{Topic: topic, Value: []byte(line)})
			if counted(i) {
				s := now.Unix()
				truth.arrivals, truth.verified, truth.originals, truth.success = truth.arrivals+1, truth.verified+1, truth.originals+1, truth.success+1
				if truth.firstTick == 0 {
					truth.firstTick = s
				}
				truth.lastTick = s
			}
		}
		if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		end += int64(n)
		return end
	}
	all := func(int) bool { return true }
	reads := func(to int64) {
		t.Helper()
		until(t, fmt.Sprintf("the daemon reads up to offset %d", to), func() bool {
			s, _ := d.source()
			return len(s.Partitions) == 1 && s.Partitions[0].Next >= to
		})
	}
	push := func() { // a record that is no arrival moves the watermark on
		line := fmt.Sprintf(`{"time":%q,"method":"GET","path":"/healthz","status":200,"duration_ms":0}`, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(line)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		end++
	}
	settled := func() {
		t.Helper()
		last := time.Unix(truth.lastTick, 0).Add(kafkaLateness + 2*time.Second)
		until(t, "all ticks are closed", func() bool {
			push()
			time.Sleep(200 * time.Millisecond)
			s, _ := d.source()
			return len(s.Partitions) == 1 && s.Partitions[0].Watermark.After(last)
		})
		time.Sleep(3 * time.Second)
	}
	gap := func() uint64 { s, _ := d.source(); return s.GapRecords }

	// More than a block of offsets, so that the position moves off the beginning.
	reads(send(70_000, all))
	if n := gap(); n != 0 {
		t.Fatalf("a gap of %d records before any was deleted", n)
	}
	d.signal(syscall.SIGSTOP)
	time.Sleep(time.Second) // a question of its that lay with the broker has been answered
	was := end
	send(5000, func(i int) bool { return i >= 3000 })
	deleteRecords(t, cl, topic, was+3000)
	d.signal(syscall.SIGCONT)
	reads(end)
	if n := gap(); n != 3000 {
		t.Errorf("a gap of %d records is shown, 3000 were deleted before they were read", n)
	}
	settled()
	until(t, "the position moves off the beginning", func() bool {
		push()
		time.Sleep(200 * time.Millisecond)
		s, _ := d.source()
		return s.Partitions[0].Committed > 0
	})

	time.Sleep(3 * time.Second) // that it is done with everything is committed

	deleteRecords(t, cl, topic, end)
	d.kill()
	d.start()
	reads(send(2000, all))
	if n := gap(); n != 0 {
		t.Errorf("after a restart a gap of %d records is shown, all that was deleted had been counted", n)
	}
	if s, _ := d.source(); s.Error != "" {
		t.Errorf("the source says %q", s.Error)
	}
	settled()
	d.stop()

	u := newUnion(t)
	u.addFile(d.database(), truth.firstTick, truth.lastTick+1)
	u.equals(&truth)
}

// deleteRecords deletes what lies below an offset of a topic's only partition.
func deleteRecords(t *testing.T, cl *kgo.Client, topic string, before int64) {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 30_000
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Offset = before
	of := kmsg.NewDeleteRecordsRequestTopic()
	of.Topic, of.Partitions = topic, append(of.Partitions, part)
	req.Topics = append(req.Topics, of)
	shards := cl.RequestSharded(t.Context(), req)
	if err := shards[0].Err; err != nil {
		t.Fatal(err)
	}
	if got := shards[0].Resp.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.LowWatermark != before {
		t.Fatalf("delete records before %d: error code %d, the log begins at %d", before, got.ErrorCode, got.LowWatermark)
	}
}
