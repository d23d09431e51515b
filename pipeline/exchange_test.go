package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/ingest"
)

// exchangeFleet is some daemons that share un-keyed partitions through an exchange,
// and what outlives them. Whoever has been given up does not know it at once.
type exchangeFleet struct {
	t         *testing.T
	r         *rand.Rand
	logs      [][]string                 // by source partition, records of some lines each
	there     []int                      // of these, those that were written by now
	exchange  [][][]byte                 // by partition
	waiting   [][]func()                 // by partition, writes that will be done later
	luck      []*rand.Rand               // by partition, of its writes
	faults    bool                       // of writes
	committed map[string]ingest.Position // by partition
	daemons   []*exchangeDaemon
	current   map[string]*exchangeReading
	zombies   []*exchangeReading
	written   int
	writing   sync.Mutex
}

type exchangeDaemon struct {
	live  *Live
	cfg   LiveConfig
	store *rowStore
	stop  context.CancelFunc
	ended chan struct{}
}

// exchangeReading is a session of a daemon.
type exchangeReading struct {
	daemon  *exchangeDaemon
	part    ingest.Partition
	session ingest.Session
	next    int64
}

const (
	sourceTopic   = "kafka access-logs"
	exchangeTopic = "exchange"
)

func newExchangeFleet(t *testing.T, r *rand.Rand, logs []partLog, partitions, daemons int) *exchangeFleet {
	f := &exchangeFleet{
		t: t, r: r, exchange: make([][][]byte, partitions),
		committed: map[string]ingest.Position{}, current: map[string]*exchangeReading{},
	}
	for _, l := range logs {
		var records []string
		for lines := l.lines; len(lines) > 0; {
			n := min(len(lines), max(1, r.IntN(6)-2))
			records = append(records, strings.Join(lines[:n], "\n")+"\n")
			lines = lines[n:]
		}
		f.logs, f.there = append(f.logs, records), append(f.there, 0)
	}
	for i := range partitions {
		f.luck = append(f.luck, rand.New(rand.NewPCG(r.Uint64(), uint64(i))))
	}
	f.waiting = make([][]func(), partitions)
	for range daemons {
		d := &exchangeDaemon{store: newRowStore()}
		d.cfg = liveConfig(t, d.store)
		d.cfg.Sources = append(d.cfg.Sources, Source{})
		d.cfg.linger = -1 // nothing waits
		d.cfg.Keyed, d.cfg.Outlets, d.cfg.Exchanged = []bool{false, false}, []Outlet{f, nil}, [][]string{nil, {sourceTopic}}
		f.daemons = append(f.daemons, d)
	}
	return f
}

func (f *exchangeFleet) Topic() string { return exchangeTopic }

func (f *exchangeFleet) Partitions(_ context.Context, topic string) (int, error) {
	if topic == exchangeTopic {
		return len(f.exchange), nil
	}
	return len(f.logs), nil
}

var errWrite = errors.New("the broker of this test does not answer")

// Write is called by one session at a time, but for several partitions at once.
func (f *exchangeFleet) Write(_ context.Context, partition int, records [][]byte) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.written += len(records)
	add := func() { f.exchange[partition] = append(f.exchange[partition], records...) }
	if !f.faults {
		add()
		return nil
	}
	luck := f.luck[partition]
	switch luck.IntN(20) {
	case 0: // nothing is written
	case 1: // all is, and nobody is told
		add()
	case 2: // some is
		records = records[:luck.IntN(len(records)+1)]
		add()
	case 3: // it will be
		f.waiting[partition] = append(f.waiting[partition], add)
	default:
		add()
		return nil
	}
	return errWrite
}

func (f *exchangeFleet) start(d *exchangeDaemon) {
	d.live = NewLive(d.cfg)
	ctx, stop := context.WithCancel(context.Background())
	d.stop, d.ended = stop, make(chan struct{})
	go func() { d.live.Run(ctx); close(d.ended) }()
}

// kill ends a daemon without a word.
func (f *exchangeFleet) kill(d *exchangeDaemon) {
	d.stop()
	<-d.ended
	d.live = nil
	for name, x := range f.current {
		if x.daemon == d {
			delete(f.current, name)
		}
	}
	f.zombies = slices.DeleteFunc(f.zombies, func(x *exchangeReading) bool { return x.daemon == d })
}

// names are all partitions, those of the source first.
func (f *exchangeFleet) names() (out []string) {
	for i := range f.logs {
		out = append(out, fmt.Sprintf("%s/%d", sourceTopic, i))
	}
	for i := range f.exchange {
		out = append(out, fmt.Sprintf("kafka %s/%d", exchangeTopic, i))
	}
	return out
}

// assign gives a partition to a daemon. Whoever had it is told, or is not.
func (f *exchangeFleet) assign(name string, d *exchangeDaemon, tell bool) {
	x := f.current[name]
	delete(f.current, name)
	if x != nil {
		if tell || x.daemon == d {
			f.end(x)
		} else {
			f.zombies = append(f.zombies, x)
		}
	}
	f.zombies = slices.DeleteFunc(f.zombies, func(x *exchangeReading) bool {
		if x.part.Name != name || x.daemon != d {
			return false
		}
		x.session.Close(context.Background()) // too late to commit
		return true
	})
	p := ingest.Partition{Name: name}
	if !strings.HasPrefix(name, sourceTopic) {
		p.Source = 1
	}
	s, at, err := d.live.Assigned(context.Background(), p, f.committed[name])
	if err != nil {
		f.t.Fatal(err)
	}
	f.current[name] = &exchangeReading{d, p, s, at.Offset}
}

// end closes a session of an owner, and commits what it released.
func (f *exchangeFleet) end(x *exchangeReading) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	x.session.Close(ctx)
	f.committed[x.part.Name] = x.session.Released()
}

func (f *exchangeFleet) commit(name string) {
	if x := f.current[name]; x != nil {
		f.committed[name] = x.session.Released()
		x.session.Committed(f.committed[name])
	}
}

// read reads up to n records, or says that there are none.
func (f *exchangeFleet) read(x *exchangeReading, n int) {
	b := &ingest.Batch{}
	b.Offset = x.next
	_, i, _ := splitPartition(x.part.Name)
	if x.part.Source == 0 {
		records := f.logs[i][:f.there[i]]
		b.Next = min(x.next+int64(n), int64(len(records)))
		b.AtEnd = b.Next >= int64(len(records))
		for at := x.next; at < b.Next; at++ {
			b.Data = append(b.Data, records[at]...)
			for line := range strings.Count(records[at], "\n") {
				b.Refs = append(b.Refs, ingest.Ref{Line: int64(line + 1), Offset: at})
			}
		}
	} else {
		parcels := f.exchange[i]
		b.Next = min(x.next+int64(n), int64(len(parcels)))
		b.AtEnd = b.Next == int64(len(parcels))
		for at := x.next; at < b.Next; at++ {
			b.Data, b.Sizes = append(b.Data, parcels[at]...), append(b.Sizes, len(parcels[at]))
			b.Refs = append(b.Refs, ingest.Ref{Line: 1, Offset: at})
		}
	}
	if err := x.session.Consume(context.Background(), b); err == nil {
		x.next = b.Next
		return
	} else if !errors.Is(err, errWrite) {
		f.t.Fatal(err)
	}
	// As sources do: the session ends, and another one begins. An owner that was given
	// up finds that out when it asks where.
	if f.current[x.part.Name] == x {
		f.assign(x.part.Name, x.daemon, true)
		return
	}
	x.session.Close(context.Background())
	f.zombies = slices.DeleteFunc(f.zombies, func(o *exchangeReading) bool { return o == x })
}

// grow has everything written.
func (f *exchangeFleet) grow() {
	for i := range f.logs {
		f.there[i] = len(f.logs[i])
	}
}

// atEnd says that every owner has read all there is.
func (f *exchangeFleet) atEnd() bool {
	for _, name := range f.names() {
		x := f.current[name]
		if x == nil {
			return false
		}
		_, i, _ := splitPartition(name)
		if end := []int{len(f.logs[i%len(f.logs)]), len(f.exchange[i%len(f.exchange)])}[x.part.Source]; x.next < int64(end) {
			return false
		}
	}
	return true
}

// begun says that every partition of the exchange has a position. Whoever begins
// without one counts by rules of a later version.
func (f *exchangeFleet) begun() bool {
	for i := range f.exchange {
		if _, known, _ := parseLeft(f.committed[fmt.Sprintf("kafka %s/%d", exchangeTopic, i)].Metadata); !known {
			return false
		}
	}
	return true
}

// union is what the stores of all daemons have together.
func (f *exchangeFleet) union() map[string]storedRow {
	all := map[string]storedRow{}
	type tick struct {
		scope string
		at    int64
	}
	rules := map[tick]uint32{}
	for _, d := range f.daemons {
		for id, row := range d.store.rows {
			old, some := all[id]
			if some && old.rules == row.rules && old.version == row.version && !bytes.Equal(old.counts, row.counts) {
				f.t.Errorf("row %s has two contents in version %d", id, row.version)
			}
			if !some || row.rules > old.rules || row.rules == old.rules && row.version > old.version {
				all[id] = row
			}
			at := tick{row.scope, row.at}
			rules[at] = max(rules[at], row.rules)
		}
	}
	for id, row := range all {
		if row.rules < rules[tick{row.scope, row.at}] {
			delete(all, id)
		}
	}
	return all
}

// anywhere are the questions of some stores, whatever scope they are of.
func anywhere(stores ...*rowStore) askedStore {
	all := askedStore{}
	for _, s := range stores {
		for id, q := range s.asked {
			id.scope = ""
			if was, ok := all[id]; !ok || q.Arrivals > was.Arrivals {
				all[id] = q
			}
		}
	}
	return all
}

func (f *exchangeFleet) totals(rows map[string]storedRow, to int64) aggregate.Totals {
	s := newRowStore()
	s.rows = rows
	return s.totals(f.t, to)
}

// sum adds up the rows of one name in all scopes, late ones apart, in a comparable form.
func (f *exchangeFleet) sum(rows map[string]storedRow, to int64) string {
	sums := map[string]*aggregate.Counts{}
	for _, row := range rows {
		if row.at >= to {
			continue
		}
		c, err := aggregate.DecodeCounts(row.counts)
		if err != nil {
			f.t.Fatal(err)
		}
		name := fmt.Sprint(row.at, row.names, row.byPeer, row.wide, row.late != 0)
		if sums[name] == nil {
			sums[name] = new(aggregate.Counts)
		}
		sums[name].Merge(c)
	}
	var out []string
	for name, c := range sums {
		out = append(out, fmt.Sprintf("%s %x", name, c.Append(nil)))
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// Whatever happens on the way, and whoever writes what he should not, the rows of all
// daemons together are those of one ledger that saw everything.
func TestNothingChangesThroughTheExchange(t *testing.T) {
	everySchedule(t, func(t *testing.T, seed uint64) { exchanged(t, seed, false) })
}

// Idle partitions may make records late, but every arrival is counted once.
func TestIdlePartitionsLoseNothingInTheExchange(t *testing.T) {
	everySchedule(t, func(t *testing.T, seed uint64) { exchanged(t, seed, true) })
}

func everySchedule(t *testing.T, run func(t *testing.T, seed uint64)) {
	for seed := uint64(1); seed <= uint64(*schedules); seed++ {
		if *schedule != 0 {
			seed = *schedule
		}
		t.Run(fmt.Sprint("schedule=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, seed) })
		})
		if *schedule != 0 {
			break
		}
	}
}

func exchanged(t *testing.T, seed uint64, idle bool) {
	r := rand.New(rand.NewPCG(seed, 43))
	lines := storm(30 + r.IntN(60))
	if idle { // a copy that comes late is an arrival, unless its request was long
		lines = slices.CompactFunc(lines, func(a, b logged) bool { return a.text == b.text })
	}
	logs, end := deal(r, lines, 1+r.IntN(4))

	one := &fleet{t: t, logs: logs, committed: make([]ingest.Position, len(logs)), store: newRowStore()}
	one.cfg = liveConfig(t, one.store)
	one.cfg.StoreFrom = 1 + uint32(seed%2)
	one.start()
	time.Sleep(3 * time.Second)
	for i := range logs {
		one.feed(i, len(logs[i].lines))
	}
	time.Sleep(5 * time.Second)
	one.kill()

	f := newExchangeFleet(t, r, logs, 1+r.IntN(4), 2)
	block, size := []int64{1, 4, 16}[r.IntN(3)], []int{1, 100, 1 << 20}[r.IntN(3)]
	wait := []time.Duration{-1, linger}[r.IntN(2)]
	for i, d := range f.daemons {
		luck := rand.New(rand.NewPCG(seed, 50+uint64(i)))
		d.cfg.exchangeBlock, d.cfg.parcelSize, d.cfg.linger, d.cfg.StoreFrom = block, size, wait, one.cfg.StoreFrom
		if idle {
			d.cfg.Idle = time.Duration(r.IntN(5000)) * time.Millisecond
		}
		d.store.fail = func() (bool, bool) { return luck.IntN(6) == 0, luck.IntN(6) == 0 }
		f.start(d)
	}
	f.faults = true
	begun := false
	for n, crashes := 0, 0; n < 200 || !f.atEnd(); n++ {
		names := f.names()
		name := names[r.IntN(len(names))]
		d := f.daemons[r.IntN(len(f.daemons))]
		begun = begun || f.begun()
		switch r.IntN(20) {
		case 0:
			if begun && crashes < 10 {
				crashes++
				f.kill(d)
				f.start(d)
			}
		case 1:
			if begun || strings.HasPrefix(name, sourceTopic) {
				f.assign(name, d, r.IntN(2) == 0)
			}
		case 2, 3:
			f.commit(name)
		case 4, 5:
			i := r.IntN(len(f.logs))
			f.there[i] = min(len(f.logs[i]), f.there[i]+r.IntN(100))
		case 6, 7:
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		case 8:
			if late := &f.waiting[r.IntN(len(f.waiting))]; len(*late) > 0 {
				i := r.IntN(len(*late))
				(*late)[i]()
				*late = slices.Delete(*late, i, i+1)
			}
		case 9, 10:
			if len(f.zombies) > 0 {
				f.read(f.zombies[r.IntN(len(f.zombies))], r.IntN(40))
			}
		default:
			if f.current[name] == nil {
				f.assign(name, d, false)
			}
			f.read(f.current[name], r.IntN(40))
		}
	}
	f.faults = false
	f.grow()
	for _, d := range f.daemons {
		d.store.mu.Lock()
		d.store.fail = nil
		d.store.mu.Unlock()
	}
	for range 5 {
		for i := range f.waiting {
			for _, write := range f.waiting[i] {
				write()
			}
			f.waiting[i] = nil
		}
		for _, name := range f.names() {
			f.read(f.current[name], 1<<20)
			f.commit(name)
		}
		time.Sleep(10 * time.Second)
	}
	for _, d := range f.daemons {
		f.kill(d)
	}
	if idle {
		got, want := f.totals(f.union(), end), f.totals(one.store.rows, end)
		if got.Arrivals != want.Arrivals || got.Success != want.Success || got.Answers != want.Answers || got.BusySeconds != want.BusySeconds {
			t.Errorf("schedule %d: rows have %d arrivals in %v s, want %d in %v", seed, got.Arrivals, got.BusySeconds, want.Arrivals, want.BusySeconds)
		}
		return
	}
	same(t, fmt.Sprintf("schedule %d, rows of all scopes", seed), f.sum(f.union(), end), f.sum(one.store.rows, end))
	whole, horizon := anywhere(one.store), one.cfg.Horizon
	if len(whole) < 10 {
		t.Errorf("schedule %d: %d questions are at rest", seed, len(whole))
	}
	same(t, fmt.Sprintf("schedule %d, questions of all scopes", seed),
		anywhere(f.daemons[0].store, f.daemons[1].store).contents(end, horizon, whole), whole.contents(end, horizon, whole))
}
