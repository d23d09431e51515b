package ingest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestDeadLetters(t *testing.T) {
	c := cluster(t, 1, []string{"a", "dead"})
	k, err := NewKafka(quick(c, "a"))
	if err != nil {
		t.Fatal(err)
	}
	d := k.DeadLetter("dead")
	from := Partition{Name: "kafka a/3"}
	poison := []byte("{not json")
	d.Put(poison, "malformed", from, Ref{Line: 2, Offset: 77})
	copy(poison, "########") // the caller's memory is used again
	d.Put(bytes.Repeat([]byte("x"), 10<<20), "too_long", from, Ref{Line: 1, Offset: 78})
	ctx, cancel := context.WithTimeout(t.Context(), inTime)
	defer cancel()
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	equal(t, "counts", d.Counts(), DeadLetters{Written: 2})
	d.Put([]byte("later"), "malformed", from, Ref{})
	equal(t, "counts after Close", d.Counts(), DeadLetters{Written: 2, Dropped: 1})

	cl := producer(t, c, kgo.ConsumeTopics("dead"))
	var records []*kgo.Record
	for len(records) < 2 && ctx.Err() == nil {
		records = append(records, cl.PollFetches(ctx).Records()...)
	}
	headers := func(r *kgo.Record) string {
		var all []string
		for _, h := range r.Headers {
			all = append(all, h.Key+"="+string(h.Value))
		}
		return strings.Join(all, " ")
	}
	equal(t, "value", string(records[0].Value), "{not json")
	equal(t, "headers", headers(records[0]), "reason=malformed source=kafka a/3 offset=77 line=2")
	equal(t, "length", len(records[1].Value), deadRecord)
	equal(t, "headers", headers(records[1]), "reason=too_long source=kafka a/3 offset=78 line=1 truncated="+strconv.Itoa(10<<20))
}

// Reading never waits for dead letters: while the cluster takes none they are
// dropped, and counted.
func TestDeadLettersDoNotBlock(t *testing.T) {
	c := cluster(t, 1, []string{"a", "dead"}, kfake.SleepOutOfOrder())
	k, err := NewKafka(quick(c, "a"))
	if err != nil {
		t.Fatal(err)
	}
	goOn := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { <-goOn })
		return nil, nil, false
	})
	d := k.DeadLetter("dead")
	begun := time.Now()
	for i := range 3 * deadQueue {
		d.Put([]byte("poison"), "malformed", Partition{}, Ref{Offset: int64(i)})
	}
	for range 40 {
		d.Put(make([]byte, 1<<20), "malformed", Partition{}, Ref{})
	}
	if took := time.Since(begun); took > inTime/2 {
		t.Errorf("it took %v", took)
	}
	dropped := d.Counts().Dropped
	if dropped < deadQueue {
		t.Errorf("%d dropped", dropped)
	}
	close(goOn)
	ctx, cancel := context.WithTimeout(t.Context(), inTime)
	defer cancel()
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	equal(t, "counts", d.Counts(), DeadLetters{Written: 3*deadQueue + 40 - dropped, Dropped: dropped})
}

func TestDeadLettersOfATopicThatIsMissing(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	var log lockedBuffer
	cfg := quick(c, "a")
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	k, err := NewKafka(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := k.DeadLetter("dead")
	d.Put([]byte(secret), "malformed", Partition{}, Ref{})
	ctx, cancel := context.WithTimeout(t.Context(), inTime)
	defer cancel()
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	equal(t, "counts", d.Counts(), DeadLetters{Failed: 1})
	if s := log.String(); !strings.Contains(s, "topic dead: no such topic") || strings.Contains(s, secret) {
		t.Errorf("log is %s", s)
	}
}

// Close gives up when its time is up.
func TestDeadLettersThatNobodyTakes(t *testing.T) {
	c := cluster(t, 1, []string{"a", "dead"})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, nil, true })
	cfg := quick(c, "a")
	cfg.tune.request = 200 * time.Millisecond
	k, err := NewKafka(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := k.DeadLetter("dead")
	d.Put([]byte("poison"), "malformed", Partition{}, Ref{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := d.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	eventually(t, "it is written in the end", func() bool { return d.Counts().Written == 1 })
}
