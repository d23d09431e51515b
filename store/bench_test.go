package store_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/targetside/auditor/aggregate"
	"github.com/targetside/auditor/keys"
	"github.com/targetside/auditor/store"
)

// wide are the rows of one tick: 500 routes by 5 originators and by 2 peers, of a
// few arrivals each, with repeats of earlier seconds.
func wide(at int64, routes int) []store.Row {
	const second = int64(1e9)
	r := rand.New(rand.NewPCG(uint64(at), 1))
	l := aggregate.NewLedger(aggregate.Config{Horizon: 120 * second, Lateness: 60 * second, Views: []aggregate.View{
		{Every: 1, ByRoute: true, ByOriginator: true}, {Every: 1, ByRoute: true, ByPeer: true},
	}})
	for route := range routes {
		for originator := range 5 {
			for try := range int64(3) {
				l.Add(&aggregate.Arrival{
					Start: (at-try*4)*second + r.Int64N(second), Duration: r.Int64N(second), RetryAfter: -1, Text: r.Uint64(),
					Route: uint16(route), Originator: uint16(originator), Peer: uint8(originator % 2),
					Question: aggregate.ID{Key: uint64(route), Rest: uint64(originator)}, Class: keys.Verified, Kind: aggregate.KindEnd,
					Outcome: aggregate.OutcomeError, AttemptsLeft: aggregate.NoBudget, Flags: aggregate.Head | aggregate.Visible,
				}, nil, 0)
			}
		}
	}
	out := new(aggregate.Output)
	l.Finish(out)
	var rows []store.Row
	for _, x := range out.Rows {
		if x.From == at && !x.Wide {
			rows = append(rows, store.Row{
				Family: store.Family(x.View), At: at, Scope: "s", LateBlock: store.OnTime, Dependency: "seats",
				Route: fmt.Sprint("GET /", x.Dims.Route), Name: fmt.Sprint(x.Dims.Originator, x.Dims.Peer), Rules: 1, Version: 1, Counts: x.Counts,
			})
		}
	}
	return rows
}

func benchStore(b *testing.B) store.Store {
	s, err := store.OpenSQLite(b.Context(), filepath.Join(b.TempDir(), "a.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// shifted are the same rows at another time.
func shifted(rows []store.Row, at int64) []store.Row {
	for i := range rows {
		rows[i].At = at
	}
	return rows
}

const benchBase = 1_795_000_000 / 3600 * 3600

// BenchmarkWrite writes a tick each time, roll-ups included: one of ten seconds
// every tenth, one of a minute every sixtieth.
func BenchmarkWrite(b *testing.B) {
	benchWrite(b, benchStore(b), func() {})
}

// benchWrite writes ticks to a store, and returns how many rows that were. It says when
// it begins with it.
func benchWrite(b *testing.B, s store.Store, begins func()) (n int) {
	rows := wide(benchBase, 500)
	b.ReportAllocs()
	at := int64(benchBase)
	begins()
	for b.Loop() {
		if err := s.Write(b.Context(), &store.Write{Scope: "s", Rules: 1, Rows: shifted(rows, at), Closed: at}); err != nil {
			b.Fatal(err)
		}
		at++
		n += len(rows)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
	return n
}

// BenchmarkHour writes an hour of one tick a minute with 5,000 series, and says how
// long the longest write took of those that make the hour's roll-up.
func BenchmarkHour(b *testing.B) {
	s := benchStore(b)
	rows := wide(benchBase, 715)[:5000]
	longest, at := time.Duration(0), int64(benchBase)
	for b.Loop() {
		for range 60 {
			if err := s.Write(b.Context(), &store.Write{Scope: "s", Rules: 1, Rows: shifted(rows, at), Closed: at + 1}); err != nil {
				b.Fatal(err)
			}
			at += 60
		}
		for i := range int64(50) {
			start := time.Now()
			if err := s.Write(b.Context(), &store.Write{Scope: "s", Rules: 1, Closed: at + i}); err != nil {
				b.Fatal(err)
			}
			longest = max(longest, time.Since(start))
		}
	}
	b.ReportMetric(longest.Seconds(), "s/longest")
}

// BenchmarkReadTicks reads an hour of ticks of one route among 20.
func BenchmarkReadTicks(b *testing.B) {
	s := benchStore(b)
	rows := wide(benchBase, 20)
	for at := int64(benchBase); at < benchBase+3600; at += 20 {
		w := &store.Write{Scope: "s", Rules: 1}
		for i := range int64(20) {
			w.Rows = append(w.Rows, shifted(append([]store.Row{}, rows...), at+i)...)
		}
		if err := s.Write(b.Context(), w); err != nil {
			b.Fatal(err)
		}
	}
	read(b, s, store.Query{Resolution: store.Tick, From: benchBase, To: benchBase + 3600, Route: "GET /7", Limit: 1 << 20})
}

// BenchmarkReadHours reads a year of hours of one route among 5.
func BenchmarkReadHours(b *testing.B) {
	s := benchStore(b)
	rows := wide(benchBase, 5)
	const year = 365 * 24 * 3600
	for day := int64(benchBase); day < benchBase+year; day += 24 * 3600 {
		w := &store.Write{Scope: "s", Rules: 1, Closed: day + 24*3600}
		for at := day; at < day+24*3600; at += 3600 {
			w.Rows = append(w.Rows, shifted(append([]store.Row{}, rows...), at)...)
		}
		if err := s.Write(b.Context(), w); err != nil {
			b.Fatal(err)
		}
	}
	read(b, s, store.Query{Resolution: store.Hour, From: benchBase, To: benchBase + year, Route: "GET /3", Limit: 1 << 20})
}

func read(b *testing.B, s store.Store, q store.Query) {
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		rows, err := s.Rows(b.Context(), q)
		if err != nil || len(rows) == 0 {
			b.Fatalf("%d rows, %v", len(rows), err)
		}
		n += len(rows)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
