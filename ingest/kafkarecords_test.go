package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rawBatch is a record batch as it lies in a log, of records at the offsets that
// are given (from base), each of which says its own offset. span is how many
// offsets the batch covers, at least.
func rawBatch(base int64, attributes int16, producer int64, span int, offsets ...int) []byte {
	var records []byte
	for _, o := range offsets {
		value := fmt.Sprintf("at %d", base+int64(o))
		r := []byte{0}                                  // attributes
		r = binary.AppendVarint(r, 0)                   // time
		r = binary.AppendVarint(r, int64(o))            // offset
		r = append(binary.AppendVarint(r, 1), 'k')      // key
		r = binary.AppendVarint(r, int64(len(value)))   // value
		r = append(r, value...)                         //
		r = binary.AppendVarint(r, 1)                   // headers
		r = append(binary.AppendVarint(r, 1), 'h')      //
		r = append(binary.AppendVarint(r, 3), "abc"...) //
		records = append(binary.AppendVarint(records, int64(len(r))), r...)
	}
	b := kmsg.RecordBatch{
		FirstOffset: base, Magic: 2, Attributes: attributes, LastOffsetDelta: int32(span - 1),
		ProducerID: producer, NumRecords: int32(len(offsets)), Records: records,
	}
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	return sealed(raw)
}

func sealed(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return
}

// told is what a batcher was told, in words.
func told(f *fetched, from int64) (string, int, error) {
	var words []string
	b := batcher{next: from, size: 1 << 20, take: func(b *Batch) error {
		if b.Gap > 0 {
			words = append(words, fmt.Sprintf("gap %d", b.Gap))
		}
		for i, line := range strings.Split(strings.TrimSuffix(string(b.Data), "\n"), "\n") {
			if len(b.Refs) == 0 {
				break
			}
			if want := fmt.Sprintf("at %d", b.Refs[i].Offset); line != want {
				words = append(words, "wrong:"+line)
			}
			words = append(words, fmt.Sprint(b.Refs[i].Offset))
		}
		return nil
	}}
	var r recordReader
	cut, err := r.read(f, from, &b)
	if flush := b.flush(false); flush != nil {
		err = flush
	}
	if b.told.hidden > 0 {
		words = append(words, fmt.Sprintf("hidden %d", b.told.hidden))
	}
	return strings.Join(append(words, fmt.Sprintf("next %d", b.next)), ", "), cut, err
}

func TestRecordsOfEveryKind(t *testing.T) {
	three := func(base int64) []byte { return rawBatch(base, 0, -1, 3, 0, 1, 2) }
	aborted := []abortedTransaction{{7, 10}}
	for name, test := range map[string]struct {
		set     []byte
		aborted []abortedTransaction
		from    int64
		want    string
	}{
		"nothing":                          {nil, nil, 5, "next 5"},
		"in order":                         {join(three(10), three(13)), nil, 10, "10, 11, 12, 13, 14, 15, next 16"},
		"records before the offset":        {join(three(10), three(13)), nil, 11, "11, 12, 13, 14, 15, next 16"},
		"a whole batch before the offset":  {join(three(10), three(13)), nil, 14, "14, 15, next 16"},
		"records missing before a batch":   {three(10), nil, 4, "gap 6, 10, 11, 12, next 13"},
		"records missing between batches":  {join(three(10), three(20)), nil, 10, "10, 11, 12, gap 7, 20, 21, 22, next 23"},
		"records missing inside a batch":   {rawBatch(10, 0, -1, 6, 1, 4), nil, 10, "gap 1, 11, gap 2, 14, gap 1, next 16"},
		"a batch that compaction emptied":  {join(three(10), rawBatch(13, 0, -1, 4), three(17)), nil, 10, "10, 11, 12, gap 4, 17, 18, 19, next 20"},
		"the mark of a transaction":        {join(rawBatch(10, attrTransaction, 7, 2, 0, 1), rawBatch(12, attrTransaction|attrControl, 7, 1, 0), three(13)), nil, 10, "10, 11, 13, 14, 15, hidden 1, next 16"},
		"only a mark":                      {rawBatch(12, attrTransaction|attrControl, 7, 1, 0), nil, 12, "hidden 1, next 13"},
		"an aborted transaction":           {join(rawBatch(10, attrTransaction, 7, 2, 0, 1), three(12), rawBatch(15, attrTransaction|attrControl, 7, 1, 0), rawBatch(16, attrTransaction, 7, 1, 0)), aborted, 10, "12, 13, 14, 16, hidden 3, next 17"},
		"an aborted one, of another":       {join(rawBatch(10, attrTransaction, 8, 2, 0, 1), rawBatch(12, 0, 7, 1, 0)), aborted, 10, "10, 11, 12, next 13"},
		"begun inside an aborted one":      {join(rawBatch(10, attrTransaction, 7, 2, 0, 1), rawBatch(12, attrTransaction, 7, 2, 0, 1)), aborted, 11, "hidden 3, next 14"},
		"the mark lies before the offset":  {join(rawBatch(10, attrTransaction|attrControl, 7, 1, 0), rawBatch(11, attrTransaction, 7, 2, 0, 1)), []abortedTransaction{{7, 5}}, 11, "11, 12, next 13"},
		"aborted only after these records": {rawBatch(10, attrTransaction, 7, 2, 0, 1), []abortedTransaction{{7, 12}}, 10, "10, 11, next 12"},
	} {
		got, _, err := told(&fetched{records: test.set, aborted: test.aborted}, test.from)
		if err != nil || got != test.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, test.want)
		}
	}
}

func TestRecordsCutOff(t *testing.T) {
	whole, next := rawBatch(10, 0, -1, 2, 0, 1), rawBatch(12, 0, -1, 2, 0, 1)
	for n := range len(next) {
		got, cut, err := told(&fetched{records: join(whole, next[:n])}, 10)
		want := 0
		if n >= batchPrefix {
			want = len(next)
		}
		if got != "10, 11, next 12" || cut != want || err != nil {
			t.Fatalf("%d of %d bytes: %s, cut %d, %v", n, len(next), got, cut, err)
		}
	}
}

func TestRecordsThatAreDamaged(t *testing.T) {
	damage := func(change func(b []byte) []byte) []byte {
		return join(rawBatch(10, 0, -1, 2, 0, 1), change(rawBatch(12, 0, -1, 2, 0, 1)))
	}
	for want, set := range map[string][]byte{
		"its checksum is wrong": damage(func(b []byte) []byte { b[len(b)-1] ^= 1; return b }),
		"format 1 is older":     damage(func(b []byte) []byte { b[16] = 1; return b }),
		"it has 60 bytes":       damage(func(b []byte) []byte { binary.BigEndian.PutUint32(b[8:], 48); return b }),
		"do not fit into it":    damage(func(b []byte) []byte { b[60]++; return sealed(b) }),
		"it has a record at 13": damage(func(b []byte) []byte { b[26] = 0; return sealed(b) }),
		"ends before it begins": damage(func(b []byte) []byte { b[23] = 0xff; return sealed(b) }),
		"in a way with number":  damage(func(b []byte) []byte { b[22] = 7; return sealed(b) }),
		"gzip: ":                damage(func(b []byte) []byte { b[22] = 1; return sealed(b) }),
		"lz4: ":                 damage(func(b []byte) []byte { b[22] = 3; return sealed(b) }),
		"zstd: ":                damage(func(b []byte) []byte { b[22] = 4; return sealed(b) }),
	} {
		got, _, err := told(&fetched{records: set}, 10)
		var damaged *batchError
		if !errors.As(err, &damaged) || !errors.Is(err, ErrKafkaUnreadable) || damaged.at != 12 || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one about %q", err, want)
		}
		if !strings.HasPrefix(got, "10, 11, ") {
			t.Errorf("%s: told %s", want, got)
		}
	}
}

// FuzzRecords: whatever a broker sends, nothing breaks and offsets only go up.
func FuzzRecords(f *testing.F) {
	f.Add(rawBatch(10, 0, -1, 3, 0, 1, 2), int64(10), true)
	f.Add(join(rawBatch(10, attrTransaction, 7, 2, 0, 1), rawBatch(12, attrTransaction|attrControl, 7, 1, 0)), int64(11), true)
	f.Add(rawBatch(10, 4, -1, 6, 1, 4), int64(0), true)
	f.Add(rawBatch(10, 0, -1, 6, 4, 1), int64(0), true) // in the wrong order
	f.Add(join(rawBatch(20, 0, -1, 2, 0, 1), rawBatch(10, 0, -1, 3, 0, 1, 2)), int64(0), false)
	f.Fuzz(func(t *testing.T, set []byte, from int64, seal bool) {
		if seal && len(set) >= batchHeader { // so that more than checksums is tried
			if size := 12 + int(binary.BigEndian.Uint32(set[8:])); size >= batchHeader && size <= len(set) {
				sealed(set[:size])
			}
		}
		next := max(from, 0)
		b := batcher{next: next, size: 100, take: func(b *Batch) error {
			if b.Next < next || b.Gap < 0 {
				t.Fatalf("from %d to %d, gap %d", next, b.Next, b.Gap)
			}
			for _, ref := range b.Refs {
				if ref.Offset < next || ref.Offset >= b.Next {
					t.Fatalf("a record at %d between %d and %d", ref.Offset, next, b.Next)
				}
			}
			next = b.Next
			return nil
		}}
		var r recordReader
		r.read(&fetched{records: set, aborted: []abortedTransaction{{7, 10}}}, next, &b)
		b.flush(true)
	})
}

// kafka-go hands marks out as records, and records that were taken back, too.
func TestKafkaTransactions(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	cl := producer(t, c, kgo.TransactionalID("shipper"))
	transaction := func(commit bool, values ...string) {
		t.Helper()
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, cl, "a", 0, values...)
		if err := cl.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)); err != nil {
			t.Fatal(err)
		}
	}
	transaction(true, numbered(0, 5)...)
	transaction(false, numbered(5, 5)...) // the shipper fails, and tries again
	transaction(true, numbered(5, 5)...)
	r := newKafkaRecorder(t)
	k := start(t, quick(c, "a"), r)
	eventually(t, "what was committed is read", r.has("kafka a/0", 10))
	eventually(t, "up to the end", func() bool { return k.state("kafka a/0").Next == 18 })
	equal(t, "lines", r.lines("kafka a/0"), numbered(0, 10))
	r.look("kafka a/0", func(p *recorded) { equal(t, "gap", p.gap, 0) })
	equal(t, "hidden", k.state("kafka a/0").Hidden, 8)

	// An open transaction hides what is behind it, and that is no stall and no end.
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "a", 0, "hidden for now")
	eventually(t, "there is a lag", func() bool { s := k.state("kafka a/0"); return s.Lag() == 1 })
	ends := func() (n int) {
		r.look("kafka a/0", func(p *recorded) { n = p.ends })
		return
	}
	before := ends()
	asked := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true})
	eventually(t, "it is asked for again and again", func() bool { return asked.Hits() >= 5 })
	equal(t, "ends that were told, although a record is to come", ends()-before, 0)
	if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	eventually(t, "then it is read", r.has("kafka a/0", 11))
	eventually(t, "and the end is told", func() bool { return ends() > before })
}

// serve answers fetches from one crafted log in place of the broker's.
func serve(c *kfake.Cluster, answer func(offset int64) (records []byte, end int64)) {
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		in := req.(*kmsg.FetchRequest)
		res := fetchCode(req, 0).(*kmsg.FetchResponse)
		p := &res.Topics[0].Partitions[0]
		p.RecordBatches, p.HighWatermark = answer(in.Topics[0].Partitions[0].FetchOffset)
		p.LastStableOffset, p.LogStartOffset = p.HighWatermark, 0
		return res, nil, true
	})
}

// A batch that is damaged every time is a gap, and does not stop the partition.
func TestKafkaDamagedBatchIsPassedOver(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	bad := rawBatch(2, 0, -1, 5, 0, 1, 2, 3, 4)
	bad[70] ^= 1
	log := join(rawBatch(0, 0, -1, 2, 0, 1), bad, rawBatch(7, 0, -1, 1, 0))
	serve(c, func(offset int64) ([]byte, int64) {
		if offset >= 8 {
			return nil, 8
		}
		return log, 8
	})
	r := newKafkaRecorder(t)
	k := start(t, quick(c, "a"), r)
	eventually(t, "it goes on", r.has("kafka a/0", 3))
	equal(t, "lines", r.lines("kafka a/0"), []string{"at 0", "at 1", "at 7"})
	r.look("kafka a/0", func(p *recorded) {
		equal(t, "gap", p.gap, 5)
		equal(t, "sessions", p.sessions, 1)
	})
	eventually(t, "no error is left", func() bool { return k.state("kafka a/0").Err == nil })
}

func TestKafkaBatchThatIsCutOff(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	long := rawBatch(0, 0, -1, 2, 0, 1)
	cfg := quick(c, "a")
	cfg.FetchBytes = 20
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		in := req.(*kmsg.FetchRequest).Topics[0].Partitions[0]
		res := fetchCode(req, 0).(*kmsg.FetchResponse)
		p := &res.Topics[0].Partitions[0]
		p.HighWatermark, p.LastStableOffset, p.LogStartOffset = 2, 2, 0
		if in.FetchOffset == 0 {
			p.RecordBatches = long[:min(len(long), int(in.PartitionMaxBytes))]
		}
		return res, nil, true
	})
	r := newKafkaRecorder(t)
	start(t, cfg, r)
	eventually(t, "it is read", r.has("kafka a/0", 2))
}

// The broker has records, says so, and gives none: kafka-go's Reader waits for ever.
func TestKafkaStalls(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	asked := 0 // touched by the cluster's goroutine only
	serve(c, func(offset int64) ([]byte, int64) {
		if asked++; offset > 0 || asked < 20 {
			return nil, 1
		}
		return rawBatch(0, 0, -1, 1, 0), 1
	})
	cfg := quick(c, "a")
	cfg.StallAfter = 1 // ns: every answer is one too many
	r := newKafkaRecorder(t)
	k := start(t, cfg, r)
	eventually(t, "a stall is seen", func() bool { return errors.Is(k.state("kafka a/0").Err, ErrKafkaStalled) })
	eventually(t, "it is read in the end", r.has("kafka a/0", 1))
	s := k.state("kafka a/0")
	if s.Stalls == 0 || s.Restarts != 0 {
		t.Errorf("%d stalls, %d restarts", s.Stalls, s.Restarts)
	}
}

// A broker that takes the question and never answers.
func TestKafkaSilence(t *testing.T) {
	c := cluster(t, 1, []string{"a"})
	produce(t, producer(t, c), "a", 0, "one")
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, nil, true })
	cfg := quick(c, "a")
	cfg.tune.request = 200_000_000 // ns
	r := newKafkaRecorder(t)
	k := start(t, cfg, r)
	eventually(t, "it is read over a new connection", r.has("kafka a/0", 1))
	equal(t, "stalls", k.state("kafka a/0").Stalls, 1)
}
