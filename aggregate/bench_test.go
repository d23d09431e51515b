package aggregate

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/targetside/auditor/keys"
)

// stormArrivals makes n arrivals as a target sees them in a storm: half of the
// questions are asked once, the others up to 27 times, 2.9 times in the mean, and
// they are logged in the order of their ends. perSecond sets how many are live.
func stormArrivals(n int, perSecond int) []Arrival {
	r := rand.New(rand.NewPCG(1, 1))
	out := make([]Arrival, 0, n)
	type asked struct {
		id   ID
		left int
		try  uint8
	}
	var waiting []asked
	now := testBase
	step := sec / int64(perSecond)
	for len(out) < n {
		now += step
		var q asked
		if i := len(waiting) - 1 - r.IntN(max(1, min(len(waiting), perSecond*4))); i >= 0 && r.IntN(3) > 0 {
			q = waiting[i]
			waiting[i] = waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
		} else {
			q = asked{id: ID{r.Uint64(), r.Uint64()}, left: 1}
			if r.IntN(2) == 0 {
				for q.left = 2; q.left < 27 && r.IntN(100) < 72; q.left++ {
				}
			}
		}
		q.try++
		a := Arrival{
			Start: now - r.Int64N(sec), Duration: int64(r.IntN(1000)) * 1e6, RetryAfter: -1, Text: r.Uint64(),
			Question: q.id, Class: keys.Verified, Kind: KindEnd, Outcome: OutcomeError, Attempt: min(q.try, 3),
			AttemptsLeft: NoBudget, Route: uint16(q.id.Key % 80), Originator: uint16(1 + q.id.Key%3), Peer: uint8(q.id.Key % 8),
			Flags: Visible | Head | Decidable,
		}
		a.Log = a.Start + a.Duration
		if q.left--; q.left == 0 {
			a.Outcome = OutcomeSuccess
		} else {
			waiting = append(waiting, q)
		}
		out = append(out, a)
	}
	return out
}

func BenchmarkLedger(b *testing.B) {
	for _, rate := range []int{500, 20000} {
		b.Run(fmt.Sprint(rate, "-per-second"), func(b *testing.B) {
			in := stormArrivals(1_000_000, rate)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += len(in) {
				b.StopTimer()
				l, out := NewLedger(Config{Horizon: 120 * sec, Lateness: 120 * sec, Views: SummaryViews(), EndAtLast: true, Worst: 20, KeyHash: func([]byte) [16]byte { return [16]byte{} }}), new(Output)
				b.StartTimer()
				for i := range in[:min(len(in), b.N-n)] {
					l.Add(&in[i], nil, minTick)
					if i%1024 == 0 {
						l.Close(tickOf(in[i].Log-120*sec), out)
						*out = Output{}
					}
				}
				l.Finish(out)
			}
		})
	}
}

// heapInUse is the memory in use, without garbage.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemoryBounds holds the ledger to what `check` promises: 96 bytes per live
// question and 24 per arrival in open ticks. The mix is that of a storm, 2.9
// arrivals a question; questions that come much more often cost 8 bytes for each
// further arrival within the horizon.
func TestMemoryBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("needs half a gigabyte")
	}
	in := stormArrivals(3_000_000, 10000)
	for _, x := range []struct {
		of          string
		cfg         Config
		perQuestion uint64
	}{
		{"of a replay", Config{Horizon: 120 * sec, Lateness: 60 * sec}, 96},
		{"of a daemon, which shows questions", Config{Horizon: 120 * sec, Lateness: 60 * sec, Live: true, KeyHash: hashOf, Episodes: 2}, 116},
	} {
		t.Run(x.of, func(t *testing.T) {
			before := heapInUse()
			l := NewLedger(x.cfg)
			var out Output
			for i := range in {
				in[i].Lot = Lot(in[i].Question.Rest)
				l.Add(&in[i], keyText(&in[i]), minTick)
				if i%4096 == 0 {
					l.Live(&out)
					l.Close(tickOf(in[i].Log-60*sec), &out)
					out = Output{}
				}
			}
			used := heapInUse() - before
			s := l.Stats()
			allowed := uint64(s.Live)*x.perQuestion + uint64(s.Open)*24
			t.Logf("%d live questions, %d open arrivals: %d bytes, %.1f a question if an arrival costs 24", s.Live, s.Open, used,
				float64(used-uint64(s.Open)*24)/float64(s.Live))
			if used > allowed {
				t.Errorf("%d bytes for %d live questions and %d arrivals in open ticks, %d are allowed", used, s.Live, s.Open, allowed)
			}
			runtime.KeepAlive(l)
		})
	}
	runtime.KeepAlive(in)
}

// In a storm of ten times the questions that may be followed a ledger takes no more
// memory than these and the arrivals in open ticks may take.
func TestMemoryInAStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("needs some hundred megabytes")
	}
	const most = 60_000
	in := stormArrivals(3_000_000, 10000)
	before := heapInUse()
	l := NewLedger(Config{Horizon: 120 * sec, Lateness: 60 * sec, MaxLive: most})
	var out Output
	for i := range in {
		l.Add(&in[i], nil, minTick)
		if i%4096 == 0 {
			l.Close(tickOf(in[i].Log-60*sec), &out)
			out = Output{}
		}
	}
	used := heapInUse() - before
	s := l.Stats()
	allowed := uint64(most+most/4)*96 + uint64(s.Open)*24
	t.Logf("one question in %d, %d of them live, %d open arrivals: %d bytes of %d", 1<<s.Bits, s.Live, s.Open, used, allowed)
	if used > allowed || s.Bits < 3 {
		t.Errorf("%d bytes while one question in %d is followed, %d are allowed", used, 1<<s.Bits, allowed)
	}
	runtime.KeepAlive(l)
	runtime.KeepAlive(in)
}

// BenchmarkGrowth reports the longest pause of one Add while the table grows to
// millions of questions, and while all but a part of a million are let go again.
func BenchmarkGrowth(b *testing.B) {
	for _, most := range []int{0, 1_000_000} {
		b.Run(fmt.Sprint("at-most-", most), func(b *testing.B) {
			var worst time.Duration
			for range b.N {
				l := NewLedger(Config{Horizon: 120 * sec, Lateness: 60 * sec, MaxLive: most})
				a := Arrival{Start: testBase, Log: testBase, Duration: 0, RetryAfter: -1, Class: keys.Verified, Kind: KindEnd, AttemptsLeft: NoBudget}
				r := rand.New(rand.NewPCG(1, 1))
				out := new(Output)
				for i := range 4_000_000 {
					a.Question = ID{r.Uint64(), r.Uint64()}
					a.Start += 30_000
					a.Log = a.Start
					at := time.Now()
					l.Add(&a, nil, minTick)
					worst = max(worst, time.Since(at))
					if i%4096 == 0 {
						l.Close(tickOf(a.Log-60*sec), out)
					}
				}
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "ms/worst-add")
		})
	}
}

// BenchmarkOneKey is the cost of an arrival when one key asks everything: a
// constant that somebody took for a key.
func BenchmarkOneKey(b *testing.B) {
	l, out := NewLedger(Config{Horizon: sec, Lateness: sec, Views: SummaryViews()}), new(Output)
	a := Arrival{Duration: 0, RetryAfter: -1, Class: keys.Claimed, Kind: KindEnd, AttemptsLeft: NoBudget}
	b.ReportAllocs()
	for i := range b.N {
		a.Question = ID{1, uint64(i) * 0x9e3779b97f4a7c15}
		a.Start = testBase + int64(i)*sec/100000
		a.Log = a.Start
		l.Add(&a, nil, minTick)
		if i%1024 == 0 {
			l.Close(tickOf(a.Log-sec), out)
			*out = Output{}
		}
	}
}

// BenchmarkUnderWay is what looking for the worst of many questions costs.
func BenchmarkUnderWay(b *testing.B) {
	in := stormArrivals(3_000_000, 10000)
	l := NewLedger(Config{Horizon: 120 * sec, Lateness: 60 * sec, Live: true, KeyHash: hashOf, Episodes: 2})
	out := new(Output)
	for i := range in {
		l.Add(&in[i], keyText(&in[i]), minTick)
		if i%4096 == 0 {
			l.Close(tickOf(in[i].Log-60*sec), out)
			*out = Output{}
		}
	}
	s := l.Stats()
	for b.Loop() {
		l.UnderWay(100, make([]uint16, 80))
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)*1e6/float64(s.Live+s.Open), "ms/million")
}
