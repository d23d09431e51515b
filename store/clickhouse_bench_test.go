package store_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
)

// BenchmarkClickHouseEncode makes a native block of a tick's rows in turn as the store
// does, from the rows of a write on, and row by row as the client's plain batch does,
// from values that are ready. Both are measured in processor time; times-plain is how
// many rows the store's way makes while the plain one makes one.
func BenchmarkClickHouseEncode(b *testing.B) {
	rows := wide(benchBase, 500)
	e := store.NewEncoding(&store.Write{Scope: "s", Rules: 1, Rows: rows})
	if by, plain := e.ByColumn(), e.ByRow(); by != plain {
		b.Fatalf("by column a block has %d bytes, by row %d", by, plain)
	}
	ways := [2]func() int{e.ByColumn, e.ByRow}
	var took [2]time.Duration
	for b.Loop() {
		for i, encode := range ways {
			runtime.GC() // each pays for its own rubbish
			before := processor(b)
			for range 10 {
				encode()
			}
			took[i] += processor(b) - before
		}
	}
	n := float64(len(rows) * b.N * 10)
	b.ReportMetric(n/took[0].Seconds(), "rows/cpu-s")
	b.ReportMetric(n/took[1].Seconds(), "plain-rows/cpu-s")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "times-plain")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkClickHouseWrite is BenchmarkWrite with the engine in the same process: its
// work, and that of the server before it, is part of the processor time.
func BenchmarkClickHouseWrite(b *testing.B) {
	s, before := openClickHouse(b, clickhousetest.Start(b)), time.Duration(0)
	n := benchWrite(b, s, func() { before = processor(b) })
	b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(n), "cpu-µs/row")
}

// processor is the processor time of this process.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkClickHouseQueries asks for the worst questions of an hour among many of a
// day, for those of one key, and for a day of minutes of 60 series.
func BenchmarkClickHouseQueries(b *testing.B) {
	for _, questions := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(questions), func(b *testing.B) {
			server := clickhousetest.Start(b)
			s := openClickHouse(b, server)
			const day = 24 * 3600
			for from := 0; from < questions; from += 1_000_000 {
				server.Exec(b, fmt.Sprintf(`INSERT INTO %s.facts (kind, at, scope, dependency, route, key_hash, lot, last, arrivals, originator, first, peers, minor)
SELECT 'question', %d + intDiv(number * %d, %d) AS second, 's', 'seats', concat('GET /', toString(number %% 20)), reinterpretAsFixedString(reverse(sipHash128(number))),
       2147483648, second * 1000000000 + number %% 1000000000 AS latest, 2 + number %% 13 AS n, 'web', latest - 5000000000, ['bff'], n
FROM numbers(%d, %d)`, server.Database, benchBase, day, questions, from, min(1_000_000, questions-from)))
			}
			rows := wide(benchBase, 20)
			for minute := int64(0); minute < day/60; minute += 60 {
				w := &store.Write{Scope: "s", Rules: 1, Closed: benchBase + (minute+60)*60}
				for i := range int64(60) {
					w.Rows = append(w.Rows, shifted(append([]store.Row{}, rows...), benchBase+(minute+i)*60)...)
				}
				if err := s.Write(b.Context(), w); err != nil {
					b.Fatal(err)
				}
			}
			b.Run("worst", func(b *testing.B) {
				for b.Loop() {
					at := time.Unix(benchBase+3600*7, 0)
					got, err := s.WorstQuestions(b.Context(), store.QuestionQuery{From: at, To: at.Add(time.Hour), Dependency: "seats", Limit: 50, Among: questions})
					if err != nil || len(got) != 50 {
						b.Fatal(len(got), err)
					}
				}
			})
			b.Run("worst of the day", func(b *testing.B) {
				for b.Loop() {
					at := time.Unix(benchBase, 0)
					got, err := s.WorstQuestions(b.Context(), store.QuestionQuery{From: at, To: at.Add(24 * time.Hour), Dependency: "seats", Limit: 50, Among: questions})
					if err != nil || len(got) != 50 {
						b.Fatal(len(got), err)
					}
				}
			})
			b.Run("key", func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Questions(b.Context(), [16]byte{1}, 10); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("minutes", func(b *testing.B) {
				for b.Loop() {
					got, err := s.Rows(b.Context(), store.Query{Resolution: store.Minute, From: benchBase, To: benchBase + day, Dependency: "seats", Limit: 1 << 20})
					if err != nil || len(got) != day/60*100 {
						b.Fatal(len(got), err)
					}
				}
			})
			b.Run("minutes of a route", func(b *testing.B) {
				for b.Loop() {
					got, err := s.Rows(b.Context(), store.Query{Resolution: store.Minute, From: benchBase, To: benchBase + day, Dependency: "seats", Route: "GET /7", Limit: 1 << 20})
					if err != nil || len(got) != day/60*5 {
						b.Fatal(len(got), err)
					}
				}
			})
		})
	}
}
