package pipeline

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/targetside/auditor/aggregate"
)

// shards are the ledgers of one scope, each in a goroutine of its own, and the
// summary of what they find.
type shards struct {
	ledgers []*aggregate.Ledger
	jobs    []chan *job
	found   chan found
	summary *aggregate.Summary
	worst   []aggregate.Worst
	workers sync.WaitGroup
	sink    sync.WaitGroup
}

// job is a batch that was put in order, for every shard to take its part of.
type job struct {
	batch  *batch
	mark   int64 // the file's watermark before the batch
	to     int64 // ticks before this one are to be closed
	routes []uint16
	peers  []uint8
	done   func() // called when the last shard is through
	left   atomic.Int32
}

// found is what one shard found final while it did one job.
type found struct {
	job   int
	out   *aggregate.Output
	first int64
}

func newShards(n int, cfg aggregate.Config, summary *aggregate.Summary) *shards {
	s := &shards{found: make(chan found, 2*n), summary: summary}
	for range n {
		s.ledgers = append(s.ledgers, aggregate.NewLedger(cfg))
		s.jobs = append(s.jobs, make(chan *job, 2))
	}
	for i := range n {
		s.workers.Add(1)
		go s.work(i)
	}
	s.sink.Add(1)
	go s.collect()
	return s
}

func (s *shards) send(j *job) {
	j.left.Store(int32(len(s.jobs)))
	for _, c := range s.jobs {
		c <- j
	}
}

// finish waits until everything is counted.
func (s *shards) finish() {
	for _, c := range s.jobs {
		close(c)
	}
	s.workers.Wait()
	close(s.found)
	s.sink.Wait()
}

func (s *shards) work(i int) {
	defer s.workers.Done()
	l, n := s.ledgers[i], 0
	var a aggregate.Arrival
	for j := range s.jobs[i] {
		part := &j.batch.shards[i]
		keys := part.keys
		for k := range part.items {
			it := &part.items[k]
			it.arrival(&a, j.routes, j.peers)
			l.Add(&a, keys[:it.keyLen], max(j.mark, it.before))
			keys = keys[it.keyLen:]
		}
		out := new(aggregate.Output)
		l.Close(j.to, out)
		if j.left.Add(-1) == 0 {
			j.done()
		}
		s.found <- found{n, out, l.Stats().First}
		n++
	}
	out := new(aggregate.Output)
	l.Finish(out)
	s.found <- found{n, out, l.Stats().First}
}

// collect adds up what the shards find. Seconds of one job come from all shards
// before those of the next.
func (s *shards) collect() {
	defer s.sink.Done()
	waiting := map[int][]found{}
	next := 0
	for f := range s.found {
		s.summary.AddRows(f.out.Rows)
		s.worst = append(s.worst, f.out.Worst...)
		waiting[f.job] = append(waiting[f.job], f)
		for len(waiting[next]) == len(s.jobs) {
			s.addSeconds(waiting[next])
			delete(waiting, next)
			next++
		}
	}
}

func (s *shards) addSeconds(round []found) {
	from := round[0].first
	var all []aggregate.Second
	for _, f := range round {
		from = min(from, f.first)
		all = append(all, f.out.Seconds...)
	}
	slices.SortFunc(all, func(a, b aggregate.Second) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].At == all[0].At {
			n++
		}
		s.summary.AddSecond(from, all[:n]...)
		all = all[n:]
	}
}

func (s *shards) report(in aggregate.Input, places int) *aggregate.Report {
	stats := s.ledgers[0].Stats()
	for _, l := range s.ledgers[1:] {
		stats.Add(l.Stats())
	}
	return s.summary.Report(in, stats, s.worst, places)
}
