package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// wholeRecords is a handler that keeps records as they are, by partition.
type wholeRecords struct {
	t    testing.TB
	mu   sync.Mutex
	all  map[string][]string
	ends []time.Duration // how old the word was that a partition is at its end
}

type wholeSession struct {
	*wholeRecords
	name string
	next int64
}

func (h *wholeRecords) Assigned(_ context.Context, p Partition, left Position) (Session, Position, error) {
	return &wholeSession{h, p.Name, left.Offset}, left, nil
}

func (s *wholeSession) Consume(_ context.Context, b *Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(b.Sizes) != len(b.Refs) {
		s.t.Errorf("%d records have %d sizes", len(b.Refs), len(b.Sizes))
	}
	data := b.Data
	for i, size := range b.Sizes {
		if b.Refs[i].Line != 1 || b.Refs[i].Offset < s.next {
			s.t.Errorf("a record at %+v after offset %d", b.Refs[i], s.next)
		}
		s.next = b.Refs[i].Offset + 1
		s.all[s.name] = append(s.all[s.name], string(data[:size]))
		data = data[size:]
	}
	if len(data) > 0 {
		s.t.Errorf("%d bytes are of no record", len(data))
	}
	if b.AtEnd {
		s.ends = append(s.ends, time.Since(b.Asked))
	}
	s.next = b.Next
	if b.Done != nil {
		b.Done()
	}
	return nil
}

func (s *wholeSession) Released() Position          { return Position{Offset: s.next} }
func (s *wholeSession) Committed(Position)          {}
func (s *wholeSession) Close(context.Context) error { return nil }

func TestWrittenRecordsAreReadWhole(t *testing.T) {
	c := cluster(t, 2, []string{"a", "b"})
	cfg := quick(c, "a")
	cfg.Whole = true
	k, err := NewKafka(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := k.Writer("a")
	equal(t, "topic", w.Topic(), "a")
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprintf("%d\n\x00\n%s", i, strings.Repeat("\n", i)))
	}
	want = append(want, strings.Repeat("x", 500<<10), strings.Repeat("y", 500<<10), "z") // more than one request takes
	var records [][]byte
	for _, r := range want {
		records = append(records, []byte(r))
	}
	if err := w.Write(t.Context(), 1, records); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(records[0], []byte(want[0])) || len(records) != len(want) {
		t.Error("the records were changed")
	}
	if err := w.Write(t.Context(), 0, nil); err != nil {
		t.Error(err)
	}
	h := &wholeRecords{t: t, all: map[string][]string{}}
	r := start(t, cfg, h)
	eventually(t, "all are read", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.all["kafka a/1"]) == len(want) && len(h.ends) > 3
	})
	r.stop()
	if !slices.Equal(h.all["kafka a/1"], want) || len(h.all["kafka a/0"]) != 0 {
		t.Errorf("read are other records: %d of %d, and %d", len(h.all["kafka a/1"]), len(want), len(h.all["kafka a/0"]))
	}
	for _, age := range h.ends {
		if age < 0 || age > inTime {
			t.Errorf("a partition's end was told %v after it was asked for", age)
		}
	}
}

func TestPartitionsOfTopics(t *testing.T) {
	c := cluster(t, 3, []string{"a", "b"})
	k, err := NewKafka(quick(c, "a"))
	if err != nil {
		t.Fatal(err)
	}
	w, gone := k.Writer("b"), k.Writer("none")
	for _, topic := range []string{"a", "b"} {
		n, err := w.Partitions(t.Context(), topic)
		if n != 3 || err != nil {
			t.Errorf("topic %s has %d partitions, %v", topic, n, err)
		}
	}
	if n, err := gone.Partitions(t.Context(), "none"); n != 0 || !errors.Is(err, ErrKafkaNoTopic) {
		t.Errorf("a topic that is not there has %d partitions, %v", n, err)
	}
}

// A write that is refused, or not answered, is an error; nothing is tried again.
func TestWritesThatFail(t *testing.T) {
	c := cluster(t, 1, []string{"a", "b"})
	cfg := quick(c, "a")
	cfg.tune.request = 500 * time.Millisecond
	k, err := NewKafka(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := k.Writer("b")
	var asked, answer atomic.Int32 // of the broker's goroutine, too
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked.Add(1)
		code := answer.Load()
		if code == 0 {
			return nil, nil, false
		}
		if code < 0 { // the broker never answers
			return nil, nil, true
		}
		res := req.ResponseKind().(*kmsg.ProduceResponse)
		res.SetVersion(req.GetVersion())
		topic, part := kmsg.NewProduceResponseTopic(), kmsg.NewProduceResponseTopicPartition()
		topic.Topic, part.ErrorCode = "b", int16(code)
		topic.Partitions = append(topic.Partitions, part)
		res.Topics = append(res.Topics, topic)
		return res, nil, true
	})
	for name, x := range map[string]struct {
		code int32
		want error
		says string
	}{
		"not enough replicas": {19, nil, "Replicas"},
		"not the leader":      {6, nil, "Leader"},
		"not allowed":         {29, ErrKafkaForbidden, "needs Write"},
	} {
		asked.Store(0)
		answer.Store(x.code)
		err := w.Write(t.Context(), 0, [][]byte{[]byte("one")})
		if err == nil || x.want != nil && !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.says) || !strings.Contains(err.Error(), "b/0") {
			t.Errorf("%s: %v", name, err)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	answer.Store(-1)
	begun := time.Now()
	if err := w.Write(t.Context(), 0, [][]byte{[]byte("one")}); err == nil || time.Since(begun) > inTime/2 {
		t.Errorf("without an answer: %v after %v", err, time.Since(begun))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Write(ctx, 0, [][]byte{[]byte("one")}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
	answer.Store(0)
	eventually(t, "it works again", func() bool { return w.Write(t.Context(), 0, [][]byte{[]byte("two")}) == nil })
}
