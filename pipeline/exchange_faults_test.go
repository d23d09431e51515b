package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/keys"
)

// hall is a fleet whose source partitions have the lines that are given, each a record.
func hall(t *testing.T, daemons, partitions int, logs ...[]string) *exchangeFleet {
	t.Helper()
	f := newExchangeFleet(t, rand.New(rand.NewPCG(1, 1)), nil, partitions, daemons)
	for _, lines := range logs {
		f.logs, f.there = append(f.logs, lines), append(f.there, len(lines))
	}
	for _, d := range f.daemons {
		f.start(d)
	}
	return f
}

// everything gives all partitions to a daemon.
func (f *exchangeFleet) everything(d *exchangeDaemon) {
	for _, name := range f.names() {
		f.assign(name, d, true)
	}
}

// round reads every partition to its end, and waits.
func (f *exchangeFleet) round(wait time.Duration) {
	for _, name := range f.names() {
		f.read(f.current[name], 1<<20)
	}
	time.Sleep(wait)
}

func (f *exchangeFleet) endAll() {
	for _, d := range f.daemons {
		if d.live != nil {
			f.kill(d)
		}
	}
}

func (f *exchangeFleet) counts(source int) SourceCounts {
	total := newSourceCounts()
	for _, d := range f.daemons {
		if d.live != nil {
			total.add(&d.live.Picture().Sources[source])
		}
	}
	return *total
}

const exchangeZero = "kafka " + exchangeTopic + "/0"

// consume gives a session of an exchange partition a record.
func (f *exchangeFleet) consume(x *exchangeReading, record []byte) error {
	b := &ingest.Batch{Next: x.next + 1, Sizes: []int{len(record)}}
	b.Offset, b.Data, b.Refs = x.next, record, []ingest.Ref{{Line: 1, Offset: x.next}}
	return x.session.Consume(context.Background(), b)
}

// Instances that would not count alike are refused, with a word on what to do.
func TestExchangesThatDoNotFit(t *testing.T) {
	line := rec(1000, `,"my_id":"a"`)
	for name, c := range map[string]struct {
		change func(f *exchangeFleet, d *exchangeDaemon)
		part   string
		says   []string
	}{
		"another salt": {
			change: func(f *exchangeFleet, d *exchangeDaemon) { d.cfg.Salt = []byte("another salt") },
			part:   exchangeZero, says: []string{"another salt", "keys.salt_file", "offset 0"},
		},
		"an originator that is not known": {
			change: func(f *exchangeFleet, d *exchangeDaemon) {
				d.cfg.Keys, _ = keys.NewRing(keys.Config{Accept: []keys.Accept{{Scheme: "field", Field: "other_id"}}})
			},
			part: exchangeZero, says: []string{`"claimed:my_id"`, "the same configuration"},
		},
		"more partitions, seen by who sends": {
			change: func(f *exchangeFleet, d *exchangeDaemon) { f.exchange = append(f.exchange, nil) },
			part:   sourceTopic + "/0", says: []string{"topic exchange has 2 partitions, and had 1", "kafka.exchange.topic"},
		},
		"more partitions, seen by who receives": {
			change: func(f *exchangeFleet, d *exchangeDaemon) {
				f.exchange = append(f.exchange, nil)
				delete(f.current, sourceTopic+"/0")
				f.committed[sourceTopic+"/0"] = ingest.Position{Offset: 1} // as if it had never been read
				f.start(d)
				f.assign(sourceTopic+"/0", d, true)
				f.read(f.current[sourceTopic+"/0"], 1)
				f.kill(d)
			},
			part: exchangeZero, says: []string{"parcels for 1 partitions of the exchange and for 2"},
		},
		"a position of another exchange": {
			change: func(f *exchangeFleet, d *exchangeDaemon) {
				p := f.committed[sourceTopic+"/0"]
				p.Metadata = strings.Replace(p.Metadata, `:"exchange"`, `:"earlier"`, 1)
				f.committed[sourceTopic+"/0"] = p
			},
			part: sourceTopic + "/0", says: []string{"exchange.topic is exchange, and was earlier", "kafka.group"},
		},
		"a position of somebody who counted by himself": {
			change: func(f *exchangeFleet, d *exchangeDaemon) {
				f.committed[sourceTopic+"/0"] = ingest.Position{Offset: 1, Metadata: (&left{EmitFrom: 5}).String()}
			},
			part: sourceTopic + "/0", says: []string{"without kafka.exchange", "kafka.group"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := hall(t, 2, 1, []string{line, line})
				defer f.endAll()
				f.everything(f.daemons[0])
				f.round(time.Second)
				f.commit(sourceTopic + "/0")
				f.kill(f.daemons[1])
				c.change(f, f.daemons[1])
				f.start(f.daemons[1])
				source := 0
				if c.part == exchangeZero {
					source = 1
				}
				s, at, err := f.daemons[1].live.Assigned(context.Background(), ingest.Partition{Source: source, Name: c.part}, f.committed[c.part])
				for offset := at.Offset; err == nil && offset < int64(len(f.exchange[0])); offset++ {
					err = f.consume(&exchangeReading{session: s, next: offset}, f.exchange[0][offset])
				}
				if !errors.Is(err, ErrExchange) {
					t.Fatalf("the answer is %v", err)
				}
				for _, word := range c.says {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%q does not say %q", err, word)
					}
				}
			})
		})
	}
	if _, _, err := parseLeft(`{"v":2,"exchange":"x","of":3,"mark":5}`); err == nil {
		t.Error("a position of an exchange is one to count from")
	}
}

// What else lies in the exchange's topic is passed over and counted, and what comes
// behind it is read.
func TestForeignRecordsInTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := hall(t, 1, 1, []string{rec(1000, `,"my_id":"a"`), rec(2000, `,"my_id":"b"`)})
		defer f.endAll()
		f.everything(f.daemons[0])
		f.read(f.current[sourceTopic+"/0"], 1)
		damaged := f.exchange[0][0][:len(f.exchange[0][0])-3]
		f.exchange[0] = [][]byte{[]byte("nonsense\n"), damaged, f.exchange[0][0]}
		f.read(f.current[sourceTopic+"/0"], 1)
		f.read(f.current[exchangeZero], 10)
		time.Sleep(time.Second)
		c := f.counts(1)
		if c.Quarantined["parcel"] != 2 || c.Lines != 4 || c.Ignored["resent"] != 0 {
			t.Errorf("counted are %+v; want two arrivals and two records that are none", c)
		}
		if n := f.daemons[0].live.Picture().Live; n != 2 {
			t.Errorf("%d questions are remembered, want 2", n)
		}
	})
}

// Arrivals that the exchange's cluster has lost, though it acknowledged them, are a gap.
func TestArrivalsMissingInTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		for i := range 40 {
			lines = append(lines, rec(1000*i, `,"my_id":"a%d"`, i))
		}
		f := hall(t, 1, 1, lines)
		defer f.endAll()
		f.everything(f.daemons[0])
		for range 4 {
			f.read(f.current[sourceTopic+"/0"], 10)
		}
		f.exchange[0] = append(f.exchange[0][:1:1], f.exchange[0][2:]...)
		f.read(f.current[exchangeZero], 10)
		if c := f.counts(1); c.Gap != 10 || c.Lines != 30 {
			t.Errorf("%d records are gone and %d came; want 10 and 30", c.Gap, c.Lines)
		}
	})
}

// A source's log that ends before what was read of it goes on with records that
// receivers would take for known ones: they are a gap, until it is longer than it was.
func TestASourceLogIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		for i := range 30 {
			lines = append(lines, rec(1000*i, `,"my_id":"a%d"`, i))
		}
		f := hall(t, 1, 1, lines[:10])
		defer f.endAll()
		name, d := sourceTopic+"/0", f.daemons[0]
		f.everything(d)
		f.round(time.Second)

		f.logs[0] = append(lines[:4:4], lines[10:]...) // it ended at 4, and has grown since
		f.there[0] = len(f.logs[0])
		f.committed[name] = ingest.Position{Offset: 4} // as a source says that is told so
		f.current[name] = nil
		f.assign(name, d, false)
		f.current[name].next = 4
		f.read(f.current[name], 3)
		f.commit(name)
		gap := f.counts(0).Gap
		f.kill(d)
		f.start(d)
		f.everything(d) // what it was told is gone, and still known
		f.read(f.current[name], 1<<20)
		if gap += f.counts(0).Gap; gap != 6 {
			t.Errorf("a gap of %d records, want the 6 that are in the place of others", gap)
		}
		f.round(time.Second)
		if c := f.counts(1); c.Lines != 24 || c.Ignored["resent"] != 0 {
			t.Errorf("%+v arrived, want 10 and 14", c)
		}
	})
}

// closed is the tick before which every partition of the exchange is closed.
func (f *exchangeFleet) closed() int64 { return f.daemons[0].live.Picture().Closed }

// A quiet source partition holds back the others until its sender has found it at its
// end for long enough, and then no further than when that was.
func TestQuietPartitionsInTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		now := func() time.Time { return noon.Add(time.Since(begun)) }
		second := func() int { return int(time.Since(begun) / time.Second) }
		f := newExchangeFleet(t, rand.New(rand.NewPCG(1, 1)), nil, 2, 1)
		f.logs, f.there = [][]string{{rec(0, `,"my_id":"first"`)}, nil}, []int{1, 0}
		d := f.daemons[0]
		d.cfg.Clock, d.cfg.Idle = now, 10*time.Second
		f.start(d)
		defer f.endAll()
		f.everything(d)
		grow := func(i int, text string) {
			f.logs[i] = append(f.logs[i], text)
			f.there[i]++
		}
		// Partition 1 grows, 0 is quiet; its sender looks each second, until it hangs.
		looks := true
		pass := func(seconds int) {
			for range seconds {
				time.Sleep(time.Second)
				grow(1, rec(1000*second(), `,"my_id":"n%d"`, second()))
				for _, name := range f.names() {
					if name != sourceTopic+"/0" || looks {
						f.read(f.current[name], 10)
					}
				}
			}
			time.Sleep(PulseEvery)
		}
		lateness := int(d.cfg.Lateness / time.Second)
		pass(9)
		if at := f.closed(); at != noTick && at > noon.Unix() {
			t.Errorf("%d ticks are closed while a partition is quiet and not idle", at-noon.Unix())
		}
		pass(40)
		if at, want := f.closed(), noon.Unix()+int64(second()-lateness); at < want-2 || at > want+1 {
			t.Errorf("closed up to %d while it is idle, want %d", at-noon.Unix(), want-noon.Unix())
		}
		looks = false
		hung := second()
		pass(30)
		if at, want := f.closed(), noon.Unix()+int64(hung-lateness); at < want-2 || at > want+1 {
			t.Errorf("closed up to %d after its sender hung at %d, want %d", at-noon.Unix(), hung, want-noon.Unix())
		}
		// What came to it meanwhile is in time.
		grow(0, rec(1000*(hung+1), `,"my_id":"meanwhile"`))
		looks = true
		pass(30)
		d.store.mu.Lock()
		defer d.store.mu.Unlock()
		for _, r := range d.store.rows {
			if r.late != 0 {
				t.Errorf("tick %d has late arrivals", r.at-noon.Unix())
			}
		}
	})
}

// A claim that a partition is at its end is as old as the look, however long it is on
// its way.
func TestWhenAPartitionWasSeenAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := hall(t, 1, 1, []string{rec(0, "")})
		defer f.endAll()
		d := f.daemons[0]
		d.cfg.Idle = 5 * time.Second
		f.kill(d)
		f.start(d)
		f.everything(d)
		x := f.current[sourceTopic+"/0"]
		f.read(x, 1)
		look := func(age time.Duration) (idle int64) {
			t.Helper()
			b := &ingest.Batch{Next: 1, AtEnd: true, Asked: time.Now().Add(-age)}
			b.Offset = 1
			if err := x.session.Consume(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			h, _, err := openParcel(d.live.exchange.print, f.exchange[0][len(f.exchange[0])-1])
			if err != nil {
				t.Fatal(err)
			}
			return h.idle
		}
		time.Sleep(4 * time.Second)
		if at := look(0); at != 0 {
			t.Errorf("idle after 4 s, until %d", at)
		}
		time.Sleep(2 * time.Second)
		if at := look(3 * time.Second); at != 0 {
			t.Errorf("idle though it was seen after 3 s, until %d", at)
		}
		time.Sleep(10 * time.Second)
		if at, want := look(7*time.Second), d.cfg.Clock().Add(-7*time.Second).UnixMilli(); at != want {
			t.Errorf("idle until %d, want %d", at, want)
		}
	})
}
