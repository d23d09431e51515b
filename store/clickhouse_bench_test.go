package store_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
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
// work, and that of the server before it, is part of the processor time; own-cpu-µs is
// the server's, which a real one has not. With roll-ups each row is written about 1.3
// times.
func BenchmarkClickHouseWrite(b *testing.B) {
	server := clickhousetest.Start(b)
	s, before := openClickHouse(b, server), time.Duration(0)
	server.Measure()
	n := benchWrite(b, s, func() { before = processor(b) - server.Own() })
	b.ReportMetric(float64((processor(b)-server.Own()-before).Nanoseconds())/float64(n)/1e3, "cpu-µs/row")
	b.ReportMetric(float64(server.Own().Nanoseconds())/float64(n)/1e3, "own-cpu-µs/row")
}

// processor is the processor time of this process.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkClickHouseQueries asks for what the API's routes ask the store for, among
// questions of a day and a day of minutes of 100 series: summary is the whole day's
// total, made of hours; series the day by minutes, of all series and of a route; top the
// worst questions of the day, and of an hour; key what is known of one key. cpu-ms is
// the processor time of all that takes part, the test's server too; slope is by which
// power of the number of questions that grew since the size before.
func BenchmarkClickHouseQueries(b *testing.B) {
	last, before := map[string]float64{}, 0
	for _, questions := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(questions), func(b *testing.B) {
			server := clickhousetest.Start(b)
			s := openClickHouse(b, server)
			fillDay(b, server, s, questions)
			for _, q := range dayQueries(s, questions) {
				b.Run(q.name, func(b *testing.B) {
					begun := processor(b)
					for b.Loop() {
						if err := q.ask(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					ms := float64((processor(b) - begun).Microseconds()) / 1e3 / float64(b.N)
					b.ReportMetric(ms, "cpu-ms/op")
					if was := last[q.name]; was > 0 {
						b.ReportMetric(math.Log(ms/was)/math.Log(float64(questions)/float64(before)), "slope")
					}
					last[q.name] = ms
				})
			}
			before = questions
		})
	}
}

const day = 24 * 3600

// fillDay stores questions of a day, and a day of minutes of 20 routes by 5 originators.
func fillDay(b *testing.B, server *clickhousetest.Server, s store.Store, questions int) {
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
			w.Rows = append(w.Rows, shifted(slices.Clone(rows), benchBase+(minute+i)*60)...)
		}
		if err := s.Write(b.Context(), w); err != nil {
			b.Fatal(err)
		}
	}
	for i := range int64(30) { // hours are made a part at a time
		if err := s.Write(b.Context(), &store.Write{Scope: "s", Rules: 1, Closed: benchBase + day + i}); err != nil {
			b.Fatal(err)
		}
	}
}

type dayQuery struct {
	name string
	ask  func(context.Context) error
}

func dayQueries(s store.Store, questions int) []dayQuery {
	rows := func(resolution store.Resolution, route string, want int) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := s.Rows(ctx, store.Query{Resolution: resolution, From: benchBase, To: benchBase + day, Dependency: "seats", Route: route, Limit: 1 << 20})
			if err == nil && len(got) != want {
				err = fmt.Errorf("%d rows, not %d", len(got), want)
			}
			return err
		}
	}
	worst := func(from, length time.Duration) func(context.Context) error {
		at := time.Unix(benchBase, 0).Add(from)
		return func(ctx context.Context) error {
			got, err := s.WorstQuestions(ctx, store.QuestionQuery{From: at, To: at.Add(length), Dependency: "seats", Limit: 50, Among: questions})
			if err == nil && (len(got) != 50 || got[49].Arrivals != 14) {
				err = fmt.Errorf("%d questions", len(got))
			}
			return err
		}
	}
	key := func(ctx context.Context) error {
		_, err := s.Questions(ctx, [16]byte{1}, 10)
		return err
	}
	return []dayQuery{
		{"summary", rows(store.Hour, "", 24*100)}, {"series", rows(store.Minute, "", day/60*100)}, {"series of a route", rows(store.Minute, "GET /7", day/60*5)},
		{"top", worst(0, 24*time.Hour)}, {"top of an hour", worst(7*time.Hour, time.Hour)}, {"key", key},
	}
}
